"""Draws of all variables given evidence: from the roots on, every variable given the one above it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.embeddings.network.cell_axes import Axis, LineAxis, Placed
from gramgraph.embeddings.network.joint import with_likelihoods
from gramgraph.embeddings.network.messages import Branches, upward
from gramgraph.embeddings.network.reading import Given
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.embeddings.network.tree import KernelTree

__all__ = ["draw"]

_BLOCK = 20_000


def draw(net: KernelTree, n: int, given: Given, rng: np.random.Generator) -> dict[int, Any]:
    """n values of every variable that was not observed."""
    seen = {v: p for v, p in given.placed.items() if p.known[0]}
    placed = {v: p for v, p in seen.items() if p.near[0] >= 0.5}  # farther away an observation counts for nothing
    tree, heard, _ = with_likelihoods(net, replace(given, values={v: given.values[v] for v in placed}))
    up = {v: M[:, 0].astype(np.float64) for v, M in upward(tree, heard, 1).up.items()}
    parts = [_block(net, tree, placed, up, min(_BLOCK, n - i), rng) for i in range(0, n, _BLOCK)]
    free = [v for v in range(len(net)) if v not in seen]
    return {v: np.concatenate([part[v] for part in parts]) if parts else [] for v in free}


def _block(
    net: KernelTree,
    tree: Branches,
    placed: dict[int, Placed],
    up: dict[int, FloatArray],
    n: int,
    rng: np.random.Generator,
) -> dict[int, Array]:
    at: dict[int, Placed] = {}
    out: dict[int, Array] = {}
    for v in tree.order:
        if v >= len(net):  # a leaf that stands for a likelihood
            continue
        if v in placed:
            at[v] = placed[v].take(np.zeros(n, dtype=np.int64))
            continue
        axis = net.cell_axes[v]
        own = np.asarray(axis.q, dtype=np.float64).copy()
        for c in tree.children[v]:
            if c in up:
                own *= up[c]
        parent = tree.parent[v]
        cells = _cells(own, None if parent < 0 else (tree.down[v], at[parent], tree.q[parent]), n, rng)
        out[v], at[v] = _inside(axis, cells, rng)
    return out


def _cells(own: FloatArray, above: Any, n: int, rng: np.random.Generator) -> IntArray:
    """A cell for each draw: its own weight times the row of the table at the value of the parent."""
    if above is None:
        return rng.choice(len(own), size=n, p=own / own.sum())
    R, p, _ = above
    near = p.near[:, None]
    rows = R[p.a] * (1.0 - p.f)[:, None] + R[p.b] * p.f[:, None]
    weights = np.cumsum((1.0 + near * (rows - 1.0)) * own, axis=1)
    u = rng.random(n)[:, None] * weights[:, -1:]
    return np.minimum((weights <= u).sum(axis=1), len(own) - 1)


def _inside(axis: Axis, cells: IntArray, rng: np.random.Generator) -> tuple[Array, Placed]:
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
