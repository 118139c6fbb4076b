"""Conditionals on nodes: a table over the nodes of what is free, from the conditional's own density at exact values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gramgraph.conditionals import Boosted, Conditional, Deterministic
from gramgraph.conditionals.continuous import RealConditional, log_density
from gramgraph.conditionals.laws import Laws
from gramgraph.engines.nodes.grids import Grid
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var

#: Nodes are close enough where they stand at most so many standard deviations of the noise apart.
_CLOSE = 1.25
#: Numbers that one form may take while it is made.
_ROOM = 3_000_000
_MOST_POINTS = 64
#: Rows whose values at nodes sum to the mass of the boxes up to this are smooth.
_SMOOTH = 1e-3


class Form(NamedTuple):
    """Variables and logarithms on their states and nodes."""

    scope: tuple[Var, ...]
    logs: FloatArray
    smooth: bool  # values at points; else averages over boxes


def form_of(c: Conditional, grids: Mapping[Var, Grid], known: Mapping[Var, Array], *, rough: bool) -> Form:
    """p(child | parents) on nodes, times the weights of the child's nodes where it is free.

    `known` holds observed values as arrays with one case. Averages over boxes serve while the nodes are `rough`, and
    wherever the noise is narrower than the boxes; else values at the nodes, which converge much faster.
    """
    free = tuple(var for var in c.scope if var not in known)
    if c.tabular and not isinstance(c, Deterministic):
        return _table(c, free, known)
    parents = [var for var in c.parents if var not in known]
    lines = [var for var in parents if not var.is_discrete]
    child_free = c.child not in known
    points = dict.fromkeys(lines, 1)
    if lines and (rough or _is_sharp(c, parents, grids, known, child_free)):
        points = _points(c, parents, lines, grids, known, child_free)
    n_child = 1 if not child_free else c.child.size if c.child.is_discrete else grids[c.child].size
    values, shape, n = _cases(parents, grids, known, c.parents, points)
    smooth = all(r == 1 for r in points.values())
    L = _rows(c, values, n, grids, known, boxes=rough or not smooth, n_child=n_child)
    split: list[int] = []
    for size, var in zip(shape, parents, strict=True):
        r = points.get(var, 1)
        split += [size // r, r]
    L = L.reshape(*split, L.shape[-1])
    if not smooth:
        L = log_mean(L, tuple(range(1, 2 * len(parents), 2)))
    L = L.reshape(*split[::2], L.shape[-1])
    if not child_free:
        L = L[..., 0]
    order = [*parents, *([c.child] if child_free else [])]
    return Form(tuple(order), L, smooth)


def _table(c: Conditional, free: tuple[Var, ...], known: Mapping[Var, Array]) -> Form:
    at = tuple(int(known[var][0]) if var in known else slice(None) for var in c.scope)
    with np.errstate(divide="ignore"):
        return Form(free, np.log(np.asarray(c.table()[at], dtype=np.float64)), True)


def log_sum(logs: FloatArray) -> FloatArray:
    """log of the sum of exp over the last axis."""
    with np.errstate(divide="ignore"):
        return np.asarray(log_mean(logs, (logs.ndim - 1,)) + np.log(logs.shape[-1]))


def log_mean(logs: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """log of the mean of exp over some axes."""
    top = logs.max(axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.squeeze(np.log(np.exp(logs - top).mean(axis=axes, keepdims=True)) + top, axis=axes))


def _cases(
    parents: Sequence[Var],
    grids: Mapping[Var, Grid],
    known: Mapping[Var, Array],
    family: Sequence[Var],
    points: Mapping[Var, int],
) -> tuple[dict[Var, Array], list[int], int]:
    """Values of all combinations of the parents, the sizes of their axes, and their number."""
    axes = [np.arange(var.size) if var.is_discrete else grids[var].inside(points[var]) for var in parents]
    shape = [len(axis) for axis in axes]
    n = int(np.prod(shape)) if shape else 1
    index = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.int64)
    out: dict[Var, Array] = {}
    for var in family:
        if var in known:
            out[var] = np.repeat(known[var], n, axis=0)
        else:
            k = list(parents).index(var)
            out[var] = axes[k][index[k]] if var.is_discrete else axes[k][index[k]][:, None]
    return out, shape, n


def _rows(
    c: Conditional,
    values: dict[Var, Array],
    n: int,
    grids: Mapping[Var, Grid],
    known: Mapping[Var, Array],
    *,
    boxes: bool,
    n_child: int,
) -> FloatArray:
    """Logarithms, (cases of the parents, states or nodes of the child)."""
    if c.child in known:
        values[c.child] = np.repeat(known[c.child], n, axis=0)
        logs = np.asarray(log_density(c, values))[:, None]
    elif c.child.is_discrete:
        columns = []
        for state in range(n_child):
            values[c.child] = np.full(n, state)
            columns.append(log_density(c, values))
        logs = np.stack(columns, axis=1)
    else:
        assert isinstance(c, RealConditional)
        laws, grid = c.laws(values, n), grids[c.child]
        kinked = getattr(laws, "kinked", False)
        masses = laws.log_masses(grid.low, grid.high) if boxes or kinked or getattr(laws, "spiky", False) else None
        if masses is not None and (boxes or not kinked):
            return masses
        if boxes:
            r = max(min(4, _ROOM // max(n * n_child, 1)), 1)
            part = laws.log_density(grid.inside(r)).reshape(n, n_child, r)
            return log_mean(part, (2,)) + np.log(grid.weights)
        logs = laws.log_density(grid.x) + np.log(grid.weights)
        if masses is not None:
            logs = _smooth_or_masses(logs, masses)
        elif _is_narrower(laws, grid) and (masses := laws.log_masses(grid.low, grid.high)) is not None:
            logs = np.where(_agree(logs, masses)[0], logs, masses)
    return np.where(np.isnan(logs), -np.inf, logs)


def _smooth_or_masses(logs: FloatArray, masses: FloatArray) -> FloatArray:
    """Values at nodes where their sum is the mass of all boxes, scaled to it; masses of boxes where it is not.

    The sum is a test of smoothness that costs nothing: values at nodes miss what is narrower than their distance.
    """
    same, off = _agree(logs, masses)
    return np.where(same, logs + off, masses)


def _agree(logs: FloatArray, masses: FloatArray) -> tuple[Array, FloatArray]:
    """Whether values at nodes have the mass of all boxes, and by how much its logarithm is off; (rows, 1) each."""
    total, whole = (log_sum(part)[:, None] for part in (logs, masses))
    with np.errstate(invalid="ignore"):
        off = whole - total
    return np.abs(off) < _SMOOTH, off


def _is_narrower(laws: Laws, grid: Grid) -> bool:
    """Whether the noise of some case is narrower than a box, or nothing: values at nodes may then miss all of it."""
    found = laws.sharpness()
    return found is not None and float(grid.lengths.max()) > _CLOSE * float(np.min(found[1]))


def _is_sharp(
    c: Conditional, parents: Sequence[Var], grids: Mapping[Var, Grid], known: Mapping[Var, Array], child_free: bool
) -> bool:
    """Whether the noise is narrower than the boxes of the child, or than what a step of a parent moves the center.

    Trees jump inside boxes wherever their thresholds lie: they are always averaged.
    """
    if isinstance(c, Boosted):
        return True
    if not isinstance(c, RealConditional) or c.child.is_discrete:
        return False
    ones = dict.fromkeys((var for var in parents if not var.is_discrete), 1)
    values, shape, n = _cases(parents, grids, known, c.parents, ones)
    found = c.laws(values, n).sharpness()
    if found is None:
        return False
    center, width = (part.reshape(shape) for part in found)
    if child_free and float(grids[c.child].lengths.max()) > _CLOSE * float(width.min()):
        return True
    for k, var in enumerate(parents):
        if not var.is_discrete and shape[k] > 1:
            step = np.abs(np.diff(center, axis=k))
            if (step > _CLOSE * np.minimum(*_both(width, k))).any():
                return True
    return False


def _both(width: FloatArray, axis: int) -> tuple[FloatArray, FloatArray]:
    n = width.shape[axis]
    return np.take(width, range(n - 1), axis=axis), np.take(width, range(1, n), axis=axis)


def _points(
    c: Conditional,
    parents: Sequence[Var],
    lines: Sequence[Var],
    grids: Mapping[Var, Grid],
    known: Mapping[Var, Array],
    child_free: bool,
) -> dict[Var, int]:
    """Points in the boxes of every parent: enough for its noise where that is known, within the room there is."""
    out = dict.fromkeys(lines, 4)
    if isinstance(c, RealConditional) and not c.child.is_discrete:
        values, shape, n = _cases(parents, grids, known, c.parents, dict.fromkeys(lines, 1))
        found = c.laws(values, n).sharpness()
        if found is not None:
            center, width = (part.reshape(shape) for part in found)
            for k, var in enumerate(parents):
                if var in out and shape[k] > 1:
                    steps = np.abs(np.diff(center, axis=k)) / np.minimum(*_both(width, k))
                    out[var] = int(np.clip(np.ceil(2.0 * float(np.quantile(steps, 0.95))), 2, _MOST_POINTS))
    size = float(np.prod([var.size if var.is_discrete else grids[var].size for var in parents]))
    size *= (c.child.size if c.child.is_discrete else grids[c.child].size) if child_free else 1
    while size * float(np.prod(list(out.values()))) > _ROOM and max(out.values()) > 1:
        most = max(out, key=lambda var: out[var])
        out[most] = max(out[most] // 2, 1)
    return out
