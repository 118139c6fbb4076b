"""The most probable values of all variables: max-product on cells, then moves on the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Assignment
from gramgraph.embeddings.network.asking import Cases, _read
from gramgraph.embeddings.network.axes import Axis, LineAxis, Placed
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.embeddings.network.tree import KernelTree

__all__ = ["map_query"]

_SWEEPS = 10
_LOWEST = 1e-300


def map_query(net: KernelTree, evidence: Any) -> Any:
    """An `Assignment` of one case, or a frame with one row a case and its `log_prob`."""
    cases = _read(net, evidence)
    placed = net._placed(cases.columns)
    near = [{v: p.take([i]) for v, p in placed.items() if p.known[i] and p.near[i] >= 0.5} for i in range(cases.number)]
    found = [_one(net, seen) for seen in near]  # what is farther from the data counts for nothing
    free = [{k: v for k, v in values.items() if not _observed(placed, net, k, i)} for i, values in enumerate(found)]
    scores = [_score(net, cases, values, i) for i, values in enumerate(free)]
    if not cases.batched:
        return Assignment(free[0], scores[0], exact=False)
    import pandas as pd

    frame = pd.DataFrame(found, columns=list(net.variables), index=cases.index)
    for name, column in cases.columns.items():
        known = placed[net.index(name)].known
        frame[name] = [c if ok else v for c, ok, v in zip(column, known, frame[name], strict=True)]
    return frame.assign(log_prob=scores)


def _observed(placed: dict[int, Placed], net: KernelTree, name: str, row: int) -> bool:
    at = placed.get(net.index(name))
    return at is not None and bool(at.known[row])


def _score(net: KernelTree, cases: Cases, values: dict[str, Any], row: int) -> float:
    full = {name: [column[row]] for name, column in cases.columns.items()}
    full.update({name: [value] for name, value in values.items()})
    return float(net.log_likelihood(full)[0])


def _heights(axis: Axis) -> FloatArray:
    """log p at the anchors, or of the states."""
    if isinstance(axis, LineAxis):
        return axis.log_base(axis.grid_values[axis.anchors])
    return np.log(np.maximum(axis.q, _LOWEST))


def _one(net: KernelTree, seen: dict[int, Placed]) -> dict[str, Any]:
    tree = net._branches
    logs = [None if R is None else np.log(np.maximum(R, _LOWEST), dtype=np.float64) for R in tree.down]
    inside: list[Array] = [_heights(axis) for axis in net.axes]
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
        v: int(axis.anchors[cell[v]]) for v, axis in enumerate(net.axes) if isinstance(axis, LineAxis) and v not in seen
    }
    heights = {v: _grid_heights(net.axes[v]) for v in grid}
    for _ in range(_SWEEPS):
        changed = False
        for v in grid:
            best = int((heights[v] + _heard(net, v, at)).argmax())
            if best != grid[v]:
                changed, grid[v] = True, best
                low, high, share = net.axes[v].hats  # type: ignore[attr-defined]
                k = slice(best, best + 1)
                at[v] = Placed(low[k], high[k], share[k], np.ones(1), np.ones(1, dtype=bool))
        if not changed:
            break
    out: dict[str, Any] = {}
    for v, axis in enumerate(net.axes):
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
    axis = net.axes[v]
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
