"""Learning from data: tables, hidden and missing values, structure."""

from typing import Any

from gramgraph._lazy import lazy_name

_LAZY = {
    "EdgeStrengths": "bootstrap",
    "Effect": "causal",
    "Identification": "causal",
    "LearnedNetwork": "structure",
    "average_effect": "causal",
    "bootstrap_edges": "bootstrap",
    "chow_liu": "trees",
    "identify": "causal",
    "independence_test": "independence",
    "learn_structure": "structure",
    "score": "structure",
    "tan": "trees",
}

__all__ = sorted(_LAZY)


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _LAZY, name)


def __dir__() -> list[str]:
    return __all__
