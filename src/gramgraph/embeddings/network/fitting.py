"""A kernel conditional of a model's variables from the columns of a frame."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from gramgraph._validation import check_choice
from gramgraph.cells.axes import Axis, LineAxis, StateAxis
from gramgraph.cells.columns import numbers_of
from gramgraph.cells.points import PointAxis
from gramgraph.conditionals.kernel import KernelConditional
from gramgraph.data.frames import is_missing
from gramgraph.embeddings.network.candidates import Pair
from gramgraph.embeddings.network.conditional import fit_conditional
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.embeddings.network.edge_mixture import fit_edge
from gramgraph.embeddings.network.learn import EDGES
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.typing import RandomState
from gramgraph.variables import Discrete, Points, Real, Sphere, Var

_LARGEST = 120_000  # numbers in the table of a conditional
_CELLS = 64
_MOST = 4  # parents


def fit_kernel(
    child: Var,
    parents: tuple[Var, ...],
    data: Any,
    *,
    cells: int | None,
    edge: str,
    floor: float,
    random_state: RandomState,
) -> KernelConditional:
    """See `KernelConditional.fit`."""
    check_choice("edge", edge, EDGES)
    if len(parents) > _MOST:
        raise ModelError(f"a kernel conditional takes at most {_MOST} parents; {child.name} has {len(parents)}.")
    family = (*parents, child)
    columns = {var: values_of(var, data) for var in family}
    whole = np.ones(len(columns[child]), dtype=bool)
    for var in family:
        if len(columns[var]) != len(whole):
            told = f"{child.name} has {len(whole)} rows, {var.name} has {len(columns[var])}"
            raise VariableError(f"the columns of a family differ in length: {told}")
        whole &= _known(columns[var])
    if whole.sum() < 2:
        raise ModelError(f"the kernel conditional of {child.name} needs at least 2 rows that know its whole family.")
    size = _cells(family) if cells is None else cells
    made = [axis_of(var, columns[var][whole], size) for var in family]
    if isinstance(made[-1], PointAxis) and made[-1].domain in ("vector", "sphere"):
        made[-1] = made[-1].with_density(list(columns[child][whole]))
    ends = [End(axis, columns[axis.var][whole]) for axis in made]
    axes = tuple(end.axis for end in ends)
    if not parents:
        return KernelConditional(axes, np.asarray(axes[0].q, dtype=np.float64), hats=True)
    if len(parents) == 1:
        found = fit_edge(Pair(ends[0], ends[1]), edge, floor=floor)
        table = np.asarray(found.R, dtype=np.float64) * axes[1].q
        table /= table.sum(axis=1, keepdims=True)
        return _sharpened(KernelConditional(axes, table, found.gain, dict(found.parts), hats=True), ends)
    seed = int(np.random.default_rng(random_state).integers(2**31))
    return _sharpened(replace(fit_conditional(ends[:-1], ends[-1], floor=floor, seed=seed), hats=True), ends)


def _sharpened(c: KernelConditional, ends: list[End]) -> KernelConditional:
    """With the kernel width of a child of vectors or directions that predicts them best given the parents."""
    axis = c.axes[-1]
    if not isinstance(axis, PointAxis) or axis.density is None:
        return c
    every = max(len(ends[0].placed.a) // len(axis.density.sample), 1)
    at = np.arange(0, len(ends[0].placed.a), every)[: len(axis.density.sample)]
    ratios = c.ratios_at([end.placed.take(at) for end in ends[:-1]], len(at))
    return replace(c, axes=(*c.axes[:-1], axis.sharpened(ratios)))


def values_of(var: Var, data: Any) -> Any:
    """A variable's column; rows of numbers for a vector, from one column or from x[0], x[1], …"""
    name = var.name
    dimension = var.domain.dimension if isinstance(var.domain, Real) else 1
    parts = [f"{name}[{i}]" for i in range(dimension)]
    if name in data:
        column = data[name]
        return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if dimension > 1 and all(part in data for part in parts):
        return np.stack([np.asarray(data[part], dtype=np.float64) for part in parts], axis=1)
    raise VariableError(f"the data have no column for {name}")


def _known(column: Any) -> Any:
    if column.ndim == 2:
        return np.isfinite(column).all(axis=1)
    if column.dtype.kind == "f":
        return ~np.isnan(column)
    if column.dtype.kind == "O":
        return np.array([_is_known(value) for value in column], dtype=bool)
    return np.ones(len(column), dtype=bool)


def _is_known(value: Any) -> bool:
    if isinstance(value, (list, tuple, np.ndarray)):  # a vector with a gap is not known
        return not any(is_missing(part) for part in value)
    return not is_missing(value)


def _is_vector(var: Var) -> bool:
    return isinstance(var.domain, Sphere) or (isinstance(var.domain, Real) and var.domain.dimension > 1)


def _cells(family: tuple[Var, ...]) -> int:
    """As many cells as keep the table small, at least 4."""
    lines = sum(not var.is_discrete for var in family)
    states = prod(var.size for var in family if var.is_discrete)
    size = _CELLS if len(family) <= 2 or not lines else int((_LARGEST / max(states, 1)) ** (1.0 / lines))
    return max(min(size, _CELLS), 4)


def axis_of(var: Var, values: Any, cells: int) -> Axis:
    """The cells of a variable from a column of its values."""
    if isinstance(var.domain, Discrete):
        counts = np.bincount([var.index(v) for v in values.tolist()], minlength=var.size).astype(np.float64)
        if (counts == 0.0).any():
            counts += 0.5  # a state that never occurred is unlikely, not impossible
        return StateAxis(var.name, var.states, counts / counts.sum()).of_variable(var)
    if _is_vector(var):
        kind = "sphere" if isinstance(var.domain, Sphere) else "vector"
        return PointAxis.of(var.name, list(values), kind, cells).of_variable(var)
    if isinstance(var.domain, Points):
        return PointAxis.of(var.name, list(values), var.domain.kind, cells)
    x = numbers_of(values, var.name, positive=repr(var.domain) == "positive")
    return LineAxis.of(var.name, x, repr(var.domain), cells).of_variable(var)
