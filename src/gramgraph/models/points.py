"""Variables whose values are sets or strings, in networks of conditionals: the points that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramgraph.cells.points import PointAxis, text_of
from gramgraph.variables import Points

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


def points_of(model: GraphicalModel) -> dict[int, tuple[Any, ...]]:
    """Variable → the points on which its conditional and those of its children stand, found once."""
    found: dict[int, tuple[Any, ...]] | None = model.plans.get(("lowered", "points"))
    if found is None:
        found = {}
        for v, var in enumerate(model.vars):
            if isinstance(var.domain, Points):
                axes = [axis for c in getattr(model, "conditionals", ()) for axis in _axes(c) if axis.name == var.name]
                found[v] = tuple(dict.fromkeys(p for axis in axes for p in axis.points))
        model.plans[("lowered", "points")] = found
    return found


def labels_of(points: tuple[Any, ...]) -> tuple[str, ...]:
    """Points as labels, all different."""
    texts = [text_of(p) for p in points]
    return tuple(t if texts.count(t) == 1 else f"{i}: {t}" for i, t in enumerate(texts))


def _axes(c: Any) -> list[PointAxis]:
    own = [axis for axis in getattr(c, "axes", ()) if isinstance(axis, PointAxis)]
    parts = getattr(c, "parts", ())
    return own + [axis for part in (parts if isinstance(parts, tuple) else ()) for axis in _axes(part)]
