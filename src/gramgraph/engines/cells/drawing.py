"""Draws of all variables given evidence: from the roots of a forest on, every variable given the one above it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.cells.axes import LineAxis, Placed
from gramgraph.cells.drawing import inside
from gramgraph.engines.cells.evidence import Seen
from gramgraph.engines.cells.joints import with_likelihoods
from gramgraph.engines.cells.messages import Branches, upward
from gramgraph.models.on_cells import CellModel
from gramgraph.typing import Array, FloatArray, IntArray

_BLOCK = 20_000


def draw_forest(net: CellModel, n: int, seen: Seen, rng: np.random.Generator) -> dict[int, Array]:
    """n draws of every variable that was not observed: numbers, and cells of all others."""
    known = {v: p for v, p in seen.placed.items() if p.known[0]}
    placed = {v: p for v, p in known.items() if p.near[0] >= 0.5}  # farther away an observation counts for nothing
    tree, heard, _ = with_likelihoods(net, replace(seen, values={v: seen.values[v] for v in placed}))
    up = {v: M[:, 0].astype(np.float64) for v, M in upward(tree, heard, 1).up.items()}
    parts = [_block(net, tree, placed, up, min(_BLOCK, n - i), rng) for i in range(0, n, _BLOCK)]
    free = [v for v in range(len(net)) if v not in known]
    return {v: np.concatenate([part[v] for part in parts]) if parts else np.zeros(0, np.int64) for v in free}


def _block(
    net: CellModel,
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
        x, at[v] = inside(axis, cells, rng)
        out[v] = x if isinstance(axis, LineAxis) else cells
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
