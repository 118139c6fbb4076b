"""Values drawn inside cells."""

from __future__ import annotations

import numpy as np

from gramgraph.cells.axes import Axis, LineAxis, Placed
from gramgraph.typing import Array, FloatArray, IntArray


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
    if not axis.circle:
        t = _with_tails(axis, chosen, t, rng)
    x = axis.density.coordinate.backward(t)
    return x, axis.place(x)


def _with_tails(axis: LineAxis, chosen: IntArray, t: FloatArray, rng: np.random.Generator) -> FloatArray:
    """An end of the grid stands for half a step and for the exponential tail beyond it."""
    d, top = axis.density, len(axis.density.values) - 1
    for end, side in ((0, -1.0), (top, 1.0)):
        at = np.flatnonzero(chosen == end)
        if len(at):
            beyond = rng.random(len(at)) < d.tail / (d.tail + 0.5 * d.step)
            far = d.tail * rng.exponential(size=len(at))
            near = -0.5 * d.step * rng.random(len(at))
            t[at] = d.first + d.step * end + side * np.where(beyond, far, near)
    return t
