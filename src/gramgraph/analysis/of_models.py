"""What models call to say something about themselves: one name for each of their methods."""

from __future__ import annotations

from typing import Any

from gramgraph._lazy import lazy_name

_HOMES = {
    "conflict": "explanation",
    "entropy": "information",
    "explain": "explanation",
    "max_sum": "messages",
    "most_informative": "information",
    "mutual_information": "information",
    "partial_correlations": "gaussian",
    "sensitivity": "sensitivity",
    "sensitivity_function": "sensitivity",
    "solve_decisions": "decisions",
    "sum_product": "messages",
    "to_gaussian": "gaussian",
    "value_of_information": "decisions",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy_name("gramgraph.analysis", _HOMES, name)
