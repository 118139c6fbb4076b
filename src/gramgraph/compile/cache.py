"""Compiled structures kept beside the model that they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["remember"]

MAX_KEPT = 128


def remember(model: GraphicalModel, key: tuple[Any, ...], value: Any) -> Any:
    """Keep `value` under `key`; when there are too many, the oldest half goes (the lowered model always stays)."""
    with model._lock:
        plans = model._plans
        if len(plans) >= MAX_KEPT:
            for old in [k for k in plans if k[0] != "lowered"][: MAX_KEPT // 2]:
                del plans[old]
        plans[key] = value
    return value
