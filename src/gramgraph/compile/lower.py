"""From names to numbers: a model's factors as flat arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING

import numpy as np

from gramgraph.compile.bulk import flatten, flatten_shared
from gramgraph.compile.ordering import Order, TreeOrder, searched_order, sparse_order
from gramgraph.compile.seen_orders import SeenOrders
from gramgraph.conditionals import Table
from gramgraph.exceptions import ModelError
from gramgraph.factors import TableFactor
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: With more factors than this a look at the largest and the least entry does not tell whether products stay in range.
FEW_FACTORS = 100
#: Up to so many numbers Python finds the largest and the least before NumPy has begun.
FEW_VALUES = 150


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
    scope_ptr: IntArray
    scope_idx: IntArray
    value_ptr: IntArray
    values: FloatArray
    owner: IntArray  # (factors,) the child whose conditional this is, or -1
    log_scale: float
    parents: tuple[tuple[int, ...], ...] | None  # of a Bayesian network
    #: Which of the model's lowered forms this is: the key of everything that is made from these arrays.
    form: tuple[bool, bool] = (True, False)  # structured, maximum
    #: The integers in one array, in the order of `_numerics.tree.joint.pack`, where they were made together.
    packed: IntArray | None = field(default=None, repr=False)
    _orders: dict[str, Order | TreeOrder] = field(default_factory=dict, repr=False)
    seen_orders: SeenOrders = field(default_factory=SeenOrders, repr=False)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.owner)

    @cached_property
    def log_sizes(self) -> FloatArray:
        """Logarithms of the numbers of states."""
        return np.log(self.sizes)

    @cached_property
    def rough_reach(self) -> float:
        """A number that the first of `reach` does not exceed, from the largest and the least entry alone."""
        n, values = len(self.owner), self.values
        if not 0 < n <= FEW_FACTORS:
            return np.inf if n else 0.0
        if len(values) <= FEW_VALUES:
            top, least = max(numbers := values.tolist()), min(numbers)
            if least <= 0.0:
                least = min([x for x in numbers if x > 0.0], default=1.0)
        else:
            top, least = float(np.maximum.reduce(values)), float(np.minimum.reduce(values))
            if least <= 0.0:
                least = float(np.minimum.reduce(values, initial=1.0, where=values > 0.0))
        return n * (math.log(max(top, 1.0)) - math.log(min(least, 1.0)))

    @cached_property
    def reach(self) -> tuple[float, float]:
        """How far the logarithms of the entries reach; see `reach`."""
        return reach(self)

    @cached_property
    def log_states(self) -> float:
        """Log of the number of states that all variables have together."""
        return float(self.log_sizes.sum())

    @cached_property
    def zeros(self) -> float:
        """The share of the entries that are zero."""
        return 1.0 - np.count_nonzero(self.values) / max(len(self.values), 1)

    def unseen_order(self, seconds_per_cell: float = 0.0, memory: float | None = None) -> Order:
        """An elimination order of all variables, found once, with nothing observed: with a search that pays for one
        case, where cells have a price, and without any otherwise."""
        name = "searched" if seconds_per_cell else "unseen"
        found = self._orders.get(name)
        if found is None:
            keep = (self.sizes > 1).view(np.uint8)
            find = searched_order if seconds_per_cell else sparse_order
            cases = int(seconds_per_cell > 0.0)
            found = find(self.scope_ptr, self.scope_idx, self.log_sizes, keep, cases, seconds_per_cell, memory)
            self._orders[name] = found
        return found.made if isinstance(found, TreeOrder) else found

    def keep_unseen_order(self, order: TreeOrder, searched: bool) -> None:
        """Take the order of a tree that was made with nothing observed, with or without a search."""
        self._orders.setdefault("searched" if searched else "unseen", order)

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


def lower(model: GraphicalModel, *, structured: bool = True, maximum: bool = False) -> Lowered:
    """The model's factors in flat arrays; made once per model.

    `structured` says whether conditionals may bring hidden variables that are summed out; for a `maximum` only such do
    as are functions of the parents.
    """
    asked = ("lowered", "for", structured, maximum)
    found = model.plans.get(asked)
    if found is None:
        found = model.plans[asked] = _lowered_once(model, structured, maximum)
    return found


def _lowered_once(model: GraphicalModel, structured: bool, maximum: bool) -> Lowered:
    """The arrays that serve what is asked; they are the same ones for several."""
    if maximum or not structured:
        compact = [c for c in getattr(model, "conditionals", ()) if c is not None and c.is_structured]
        # the arrays of the sum serve where nothing is structured, and for a maximum where all are functions
        structured = all(c.functional for c in compact) if maximum else not compact
        maximum = maximum and not structured and any(c.functional for c in compact)
    key = ("lowered", structured, maximum)  # what `Lowered.form` says
    found = model.plans.get(key)
    if found is None:
        with model.lock:
            found = model.plans.get(key)
            if found is None:
                found = model.plans[key] = _lower(model, structured, maximum)
    return found


def _lower(model: GraphicalModel, structured: bool, maximum: bool) -> Lowered:
    conditionals = getattr(model, "conditionals", None)
    if conditionals is None:
        return _lower_undirected(model, (structured, maximum))
    parents: tuple[tuple[int, ...], ...] = model.parent_positions  # type: ignore[attr-defined]
    if {type(c) for c in conditionals} <= {Table}:
        sizes = [var.size for var in model.vars]
        if min(sizes, default=2) > 1:
            return _lower_tables(model.vars, sizes, conditionals, parents, (structured, maximum))
    flat = _Flat(model)
    for child, conditional in enumerate(conditionals):
        if conditional is None:
            conditional = model.conditional(model.vars[child].name)  # type: ignore[attr-defined]  # raises
        if conditional.is_structured and (structured or (maximum and conditional.functional)):
            for factor in conditional.factors():
                flat.add(factor, child)
        else:
            flat.add_table((*parents[child], child), conditional.table(), child)
    return flat.done(parents, (structured, maximum))


def _lower_tables(
    variables: tuple[Var, ...],
    sizes: list[int],
    tables: Sequence[Table],
    parents: tuple[tuple[int, ...], ...],
    form: tuple[bool, bool],
) -> Lowered:
    """Tables alone, all of them at once: the integers in one array, which takes hardly longer than a short one, and
    nothing is kept for each table that the arrays do not need."""
    n = len(tables)
    scope_ptr = accumulate((len(row) + 1 for row in parents), initial=0)
    value_ptr = accumulate((table.values.size for table in tables), initial=0)
    members = (v for child, row in enumerate(parents) for v in (*row, child))
    at_values = 2 * n + 2  # behind the count, the sizes and the bounds of the scopes
    at_members = at_values + n + 1
    at_owners = at_members + n + sum(map(len, parents))
    parts = chain((n,), sizes, scope_ptr, value_ptr, members, range(n))
    packed = np.fromiter(parts, np.int64, at_owners + n)
    return Lowered(
        variables=variables,
        n_visible=n,
        sizes=packed[1 : n + 1],
        scope_ptr=packed[n + 1 : at_values],
        scope_idx=packed[at_members:at_owners],
        value_ptr=packed[at_values:at_members],
        values=np.concatenate([table.values for table in tables], axis=None) if n else np.zeros(1),
        owner=packed[at_owners:],
        log_scale=0.0,
        parents=parents,
        form=form,
        packed=packed,
    )


def _lower_undirected(model: GraphicalModel, form: tuple[bool, bool]) -> Lowered:
    """All factors at once; none of them has a child, and none brings hidden variables."""
    sizes = np.fromiter((var.size for var in model.vars), np.int64, len(model.vars))
    shared = getattr(model, "_shared", ())
    try:
        flat = flatten_shared(shared, sizes) if shared else flatten(model.factors(), model.positions, sizes)
    except KeyError:
        raise ModelError(model.faults()) from None  # a factor over a variable that the model does not have
    return Lowered(
        variables=model.vars,
        n_visible=len(sizes),
        sizes=sizes,
        owner=np.full(len(flat.scope_ptr) - 1, -1),
        parents=None,
        form=form,
        **flat._asdict(),
    )


class _Flat:
    """The arrays of `Lowered` while they are being filled."""

    def __init__(self, model: GraphicalModel) -> None:
        self.variables = list(model.vars)
        self.index = model.positions
        self.sizes = [var.size for var in self.variables]
        self.n_visible = len(self.variables)
        self.scope_ptr: list[int] = [0]
        self.scope_idx: list[int] = []
        self.values: list[FloatArray] = []
        self.owner: list[int] = []
        self.log_scale = 0.0

    def add(self, factor: TableFactor, child: int) -> None:
        """A factor of a conditional, which may bring hidden variables."""
        try:
            index = self.index
            scope = tuple([index[var.name] for var in factor.scope])
        except KeyError:
            self._admit(factor.scope)
            scope = tuple([self.index[var.name] for var in factor.scope])
        self.log_scale += factor.log_scale
        self.add_table(scope, factor.values, child)

    def _admit(self, scope: tuple[Var, ...]) -> None:
        """Hidden variables come after the model's own."""
        index = dict(self.index)
        for var in scope:
            if var.name not in index:
                index[var.name] = len(self.variables)
                self.variables.append(var)
                self.sizes.append(var.size)
        self.index = index

    def add_table(self, scope: tuple[int, ...], table: FloatArray, child: int) -> None:
        """Numbers over variables given by position; those with a single state are left out of the scope."""
        sizes = self.sizes
        self.scope_idx.extend([v for v in scope if sizes[v] > 1])
        flat = table.reshape(-1)
        if len(self.scope_idx) == self.scope_ptr[-1]:
            value = float(flat[0])
            self.log_scale += float(np.log(value)) if value > 0 else -np.inf
            return
        self.scope_ptr.append(len(self.scope_idx))
        self.values.append(flat)
        self.owner.append(child)

    def done(self, parents: tuple[tuple[int, ...], ...], form: tuple[bool, bool]) -> Lowered:
        """The finished arrays."""
        sizes = np.array(self.sizes, np.int64)
        return Lowered(
            variables=tuple(self.variables),
            n_visible=self.n_visible,
            sizes=sizes,
            scope_ptr=np.array(self.scope_ptr, np.int64),
            scope_idx=np.array(self.scope_idx, np.int64),
            value_ptr=np.array([0, *accumulate(map(len, self.values))], np.int64),
            values=np.concatenate(self.values) if self.values else np.zeros(1),
            owner=np.array(self.owner, np.int64),
            log_scale=self.log_scale,
            parents=parents,
            form=form,
        )


#: Tables of ordinary models reach over less than e^50 ≈ 10^22 (a grid with couplings of 25).
WIDE = 50.0


def reach(low: Lowered) -> tuple[float, float]:
    """How far the logarithms of the positive entries reach from zero, up and down, summed over all tables: of every
    table, and of wide ones alone. Cost: one look at each entry."""
    if not low.n_factors:
        return 0.0, 0.0
    starts = low.value_ptr[:-1]
    top = np.maximum.reduceat(low.values, starts)
    least = np.minimum.reduceat(np.where(low.values > 0.0, low.values, np.inf), starts)
    spans = np.log(np.maximum(top, 1.0)) - np.log(np.minimum(least, 1.0))
    return float(spans.sum()), float(spans[spans > WIDE].sum())
