"""From names to numbers: a model's factors as flat arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["Lowered", "lower"]


@dataclass(frozen=True, eq=False)
class Lowered:
    """Factors in flat arrays: factor f has the variables scope_idx[scope_ptr[f]:scope_ptr[f+1]] and its values, in
    row-major order, at values[value_ptr[f]:value_ptr[f+1]].

    The first `n_visible` variables are the model's own, in its order; hidden ones, which structured conditionals
    add, follow. Variables with a single state do not appear in scopes.
    """

    variables: tuple[Var, ...]
    n_visible: int
    sizes: IntArray
    log_sizes: FloatArray
    scope_ptr: IntArray
    scope_idx: IntArray
    value_ptr: IntArray
    values: FloatArray
    owner: IntArray  # (factors,) the child whose conditional this is, or -1
    log_scale: float
    parents: tuple[tuple[int, ...], ...] | None  # of a Bayesian network

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.owner)

    def ancestors(self, nodes: set[int]) -> Array:
        """Mask of the nodes and all their ancestors (of a Bayesian network)."""
        assert self.parents is not None
        seen = np.zeros(len(self.sizes), np.uint8)
        stack = sorted(nodes)
        while stack:
            node = stack.pop()
            if not seen[node]:
                seen[node] = 1
                stack.extend(self.parents[node])
        return seen


def lower(model: GraphicalModel, *, structured: bool = True) -> Lowered:
    """The model's factors in flat arrays; made once per model."""
    if not structured and not any(c is not None and c.is_structured for c in getattr(model, "_conditionals", ())):
        structured = True  # nothing is structured: the same arrays serve
    key = ("lowered", structured)
    found = model._plans.get(key)
    if found is None:
        with model._lock:
            found = model._plans.get(key)
            if found is None:
                found = model._plans[key] = _lower(model, structured)
    return found


def _parts(model: GraphicalModel, structured: bool) -> Iterator[tuple[tuple[Var, ...], FloatArray, float, int]]:
    """(scope, values, log scale, owner) of each factor; plain tables are taken as they are."""
    conditionals = getattr(model, "_conditionals", None)
    if conditionals is None:
        for factor in model.factors(structured=structured):
            yield factor.scope, factor.values, factor.log_scale, -1
        return
    for child, conditional in enumerate(conditionals):
        if conditional is None:
            conditional = model.conditional(model._vars[child].name)  # type: ignore[attr-defined]  # raises
        if structured and conditional.is_structured:
            for factor in conditional.factors():
                yield factor.scope, factor.values, factor.log_scale, child
        else:
            yield conditional.scope, conditional.table(), 0.0, child


def _lower(model: GraphicalModel, structured: bool) -> Lowered:
    variables = list(model._vars)
    index = dict(model._index)
    scope_ptr: list[int] = [0]
    scope_idx: list[int] = []
    values: list[FloatArray] = []
    owner: list[int] = []
    log_scale = 0.0
    for scope, table, scale, child in _parts(model, structured):
        log_scale += scale
        for var in scope:
            if var.name not in index:
                index[var.name] = len(variables)
                variables.append(var)
            if var.size > 1:
                scope_idx.append(index[var.name])
        if len(scope_idx) == scope_ptr[-1]:
            value = float(table.reshape(-1)[0])
            log_scale += float(np.log(value)) if value > 0 else -np.inf
            continue
        scope_ptr.append(len(scope_idx))
        table = table.reshape(-1)
        if child < 0 and (top := float(table.max())) > 0 and not 1e-3 < top < 1e3:
            log_scale += float(np.log(top))
            table = table / top
        values.append(table)
        owner.append(child)
    sizes = np.array([var.size for var in variables], np.int64)
    value_ptr = np.array([0, *accumulate(map(len, values))], np.int64)
    return Lowered(
        variables=tuple(variables),
        n_visible=len(model._vars),
        sizes=sizes,
        log_sizes=np.log(sizes),
        scope_ptr=np.array(scope_ptr, np.int64),
        scope_idx=np.array(scope_idx, np.int64),
        value_ptr=value_ptr,
        values=np.concatenate(values) if values else np.zeros(1),
        owner=np.array(owner, np.int64),
        log_scale=log_scale,
        parents=getattr(model, "_parents", None),
    )
