"""Values drawn inside cells."""

from __future__ import annotations

import numpy as np

from gramgraph.cells.axes import Axis, LineAxis, Placed
from gramgraph.typing import Array, IntArray

__all__ = ["inside"]


def inside(axis: Axis, cells: IntArray, rng: np.random.Generator) -> tuple[Array, Placed]:
    """Values in the cells, from the marginal density times the hat."""
    if not isinstance(axis, LineAxis) or axis.fixed is not None:
        labels = np.empty(len(cells), dtype=object if not isinstance(axis, LineAxis) else np.float64)
        labels[:] = [axis.value(int(c)) for c in cells]
        zero = np.zeros(len(cells))
        return labels, Placed(cells, cells, zero, np.ones(len(cells)), np.ones(len(cells), dtype=bool))
    low, high, share = axis.hats
    p, size = axis.density.masses, len(low)
    cell, point = np.concatenate([low, high]), np.tile(np.arange(size), 2)
    mass = np.concatenate([p * (1.0 - share), p * share])
    order = np.argsort(cell, kind="stable")
    cell, point, mass = cell[order], point[order], mass[order]
    total = np.bincount(cell, mass, axis.m)
    inner = np.cumsum(mass / total[cell])  # cell j ends at j + 1
    chosen = point[np.minimum(np.searchsorted(inner, cells + rng.random(len(cells)), side="right"), len(point) - 1)]
    t = axis.density.first + axis.density.step * (chosen + rng.random(len(cells)) - 0.5)
    x = axis.density.coordinate.backward(t)
    return x, axis.place(x)
