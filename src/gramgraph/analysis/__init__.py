"""What a model says about itself: information, sensitivity, messages one by one, the best decisions."""

from __future__ import annotations

from typing import Any

from gramgraph._lazy import lazy_name

_HOMES = {
    "Comparison": "comparison",
    "Conflict": "explanation",
    "Policy": "decisions",
    "Strategy": "decisions",
    "compare": "comparison",
    "conflict": "explanation",
    "entropy": "information",
    "explain": "explanation",
    "kl_divergence": "information",
    "most_informative": "information",
    "mutual_information": "information",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__
