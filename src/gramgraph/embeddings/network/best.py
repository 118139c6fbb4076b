"""The most probable values of all variables: max-product on cells, then moves on the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Assignment
from gramgraph.answers.rows import with_kept
from gramgraph.embeddings.network.cell_axes import Axis, LineAxis, Placed, _single
from gramgraph.embeddings.network.joint import _column as column_of
from gramgraph.embeddings.network.reading import Given
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.embeddings.network.base import CellModel
    from gramgraph.embeddings.network.tree import KernelTree

__all__ = ["best_combinations", "best_frame", "by_max_product", "cells_of_cases", "marginal_best"]

_SWEEPS = 10
_LOWEST = 1e-300


def best_frame(net: CellModel, given: Given, found: list[dict[str, Any]]) -> Any:
    """An `Assignment` of one case, or a frame with one row per case and its `log_prob`."""
    import pandas as pd

    seen = [{v: column[i] for v, column in given.values.items() if given.known(v)[i]} for i in range(given.n_cases)]
    full = [
        {**values, **{net.vars[v].name: value for v, value in own.items()}}
        for values, own in zip(found, seen, strict=True)
    ]
    scores = net.log_likelihood(pd.DataFrame(full, columns=list(net.variables))) + _log_weights(net, given, full)
    if given.batched:
        frame = pd.DataFrame(full, columns=list(net.variables), index=given.index).assign(log_prob=scores)
        return with_kept(frame, given.keep)
    free = {name: value for name, value in found[0].items() if net.index(name) not in seen[0]}
    return Assignment(free, float(scores[0]), exact=False)


def _log_weights(net: CellModel, given: Given, rows: list[dict[str, Any]]) -> FloatArray:
    """log p(what was heard | values), of virtual evidence."""
    total = np.full(len(rows), given.log_scale)
    for v, weights in given.weights.items():
        axis = net.cell_axes[v]
        at = axis.place(column_of([row[axis.name] for row in rows]))
        with np.errstate(divide="ignore"):
            total += np.log(weights[at.a] * (1.0 - at.f) + weights[at.b] * at.f)
    return total


def cells_of_cases(net: CellModel, given: Given) -> list[dict[str, Any]]:
    """Values at the best combination of cells, one dict per case, by max-product on the discrete network."""
    from gramgraph.engines.registry import get_engine

    question = net.cell_question(given, dense=range(len(net)))
    states = get_engine("junction_tree").best(net.cells, question).states
    return [_values_at(net, row) for row in np.asarray(states).tolist()]


def _values_at(net: CellModel, states: list[int]) -> dict[str, Any]:
    return {axis.name: axis.value(cell) for axis, cell in zip(net.cell_axes, states, strict=True)}


def best_combinations(net: CellModel, given: Given, k: int) -> list[Assignment]:
    """The k best combinations of cells of the unobserved variables, by their density, best first."""
    from gramgraph.engines.best.k_best import k_best_codes

    free = [v for v in range(len(net)) if not given.known(v).any()]
    found: dict[tuple[int, ...], Assignment] = {}
    for codes, _ in k_best_codes(net.cells, net.cell_question(given, dense=free)):
        cells = tuple(int(codes[v]) for v in free)
        if cells not in found:  # an observation lies between two cells, which count once
            values = {net.vars[v].name: net.cell_axes[v].value(c) for v, c in zip(free, cells, strict=True)}
            scored = best_frame(net, given, [values])
            found[cells] = Assignment(values, scored.log_prob, exact=False)
        if len(found) == k:
            break
    return sorted(found.values(), key=lambda one: -one.log_prob)


def marginal_best(net: CellModel, given: Given, names: Sequence[str], **options: Any) -> Assignment:
    """The best cells of some variables when the others are integrated out."""
    from gramgraph.engines.best.marginal_map import marginal_map

    wanted = [v for v in net.positions_of(names) if not given.known(v).any()]
    question = net.cell_question(given, dense=wanted)
    found = marginal_map(net.cells, net.names_of(wanted), question, **options)
    cells = {v: net.cells.vars[v].index(found.assignment[net.vars[v].name]) for v in wanted}
    values = {net.vars[v].name: net.cell_axes[v].value(cell) for v, cell in cells.items()}
    chosen = {v: _single(net.cell_axes[v].value(cell)) for v, cell in cells.items()}
    log_p = net._log_p(replace(given, values={**given.values, **chosen}))
    return Assignment(values, float(log_p[0]), exact=False)


def by_max_product(net: KernelTree, given: Given) -> list[dict[str, Any]]:
    """Max-product on the cells of a tree, then every variable moves on its grid until nothing changes."""
    seen = [
        {v: p.take([i]) for v, p in given.placed.items() if p.known[i] and p.near[i] >= 0.5}
        for i in range(given.n_cases)
    ]  # what is farther from the data counts for nothing
    return [_one(net, own) for own in seen]


def _heights(axis: Axis) -> FloatArray:
    """log p at the anchors, or of the states."""
    if isinstance(axis, LineAxis):
        return axis.log_base(axis.grid_values[axis.anchors])
    return np.log(np.maximum(axis.q, _LOWEST))


def _one(net: KernelTree, seen: dict[int, Placed]) -> dict[str, Any]:
    tree = net._branches
    logs = [None if R is None else np.log(np.maximum(R, _LOWEST), dtype=np.float64) for R in tree.down]
    inside: list[Array] = [_heights(axis) for axis in net.cell_axes]
    choice: dict[int, Array] = {}
    for v in reversed(tree.order):
        parent = tree.parent[v]
        if parent < 0:
            continue
        R = logs[v]
        assert R is not None
        if v in seen:
            at = seen[v]
            row = np.asarray(tree.down[v], dtype=np.float64)
            value = row[:, at.a[0]] * (1.0 - at.f[0]) + row[:, at.b[0]] * at.f[0]
            inside[parent] = inside[parent] + np.log(np.maximum(1.0 + at.near[0] * (value - 1.0), _LOWEST))
        else:
            both = R + inside[v]
            choice[v] = both.argmax(axis=1)
            inside[parent] = inside[parent] + both.max(axis=1)
    cell: dict[int, int] = {}
    for v in tree.order:
        parent = tree.parent[v]
        if v in seen:
            cell[v] = int(seen[v].a[0] if seen[v].f[0] < 0.5 else seen[v].b[0])
        elif parent < 0 or (parent in seen and seen[parent].near[0] < 0.5):
            cell[v] = int(inside[v].argmax())
        else:
            cell[v] = int(choice[v][cell[parent]])
    return _moved(net, seen, cell)


def _moved(net: KernelTree, seen: dict[int, Placed], cell: dict[int, int]) -> dict[str, Any]:
    """Values on the grids after every variable has moved to its best point given its neighbors, in turn."""
    at: dict[int, Placed] = dict(seen)
    for v in range(len(net)):
        if v not in seen:
            one = np.array([cell[v]])
            at[v] = Placed(one, one, np.zeros(1), np.ones(1), np.ones(1, dtype=bool))
    grid = {
        v: int(axis.anchors[cell[v]])
        for v, axis in enumerate(net.cell_axes)
        if isinstance(axis, LineAxis) and v not in seen
    }
    heights = {v: _grid_heights(net.cell_axes[v]) for v in grid}
    for _ in range(_SWEEPS):
        changed = False
        for v in grid:
            best = int((heights[v] + _heard(net, v, at)).argmax())
            if best != grid[v]:
                changed, grid[v] = True, best
                low, high, share = net.cell_axes[v].hats  # type: ignore[attr-defined]
                k = slice(best, best + 1)
                at[v] = Placed(low[k], high[k], share[k], np.ones(1), np.ones(1, dtype=bool))
        if not changed:
            break
    out: dict[str, Any] = {}
    for v, axis in enumerate(net.cell_axes):
        if isinstance(axis, LineAxis):
            out[axis.name] = float(axis.grid_values[grid[v]]) if v in grid else None
        else:
            out[axis.name] = axis.value(cell[v])
    return out


def _grid_heights(axis: Axis) -> FloatArray:
    assert isinstance(axis, LineAxis)
    return axis.log_base(axis.grid_values)


def _heard(net: KernelTree, v: int, at: dict[int, Placed]) -> FloatArray:
    """Σ over the neighbors of log r at their values, on the grid of v."""
    axis = net.cell_axes[v]
    assert isinstance(axis, LineAxis)
    low, high, share = axis.hats
    total = np.zeros(len(low))
    for edge in net.edge_list:
        if axis.name not in (edge.x, edge.y):
            continue
        other = at[net.index(edge.y if edge.x == axis.name else edge.x)]
        R = np.asarray(edge.R if edge.x == axis.name else edge.R.T, dtype=np.float64)
        column = R[:, other.a[0]] * (1.0 - other.f[0]) + R[:, other.b[0]] * other.f[0]
        value = 1.0 + other.near[0] * (column[low] * (1.0 - share) + column[high] * share - 1.0)
        total += np.log(np.maximum(value, _LOWEST))
    return total
