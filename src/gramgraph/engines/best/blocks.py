"""The exact best of many variables at once, given the others: elimination of a part that is narrow enough."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gramgraph.engines.best.problem import MapProblem
from gramgraph.typing import Array, FloatArray, IntArray

#: Variables among which a narrow part is chosen at most: bit rows of so many take 8 MB.
REGION = 8192
#: Cells of all tables of a part.
ROOM = 2.0**24
#: Bits by which more tries may narrow an order.
HOPE = 6.0


class Blocks:
    """Narrow parts of the free variables of a problem, chosen at random."""

    def __init__(self, problem: MapProblem, rng: np.random.Generator) -> None:
        self.problem, self.rng = problem, rng
        self.bits: FloatArray = np.log2(problem.sizes)

    @cached_property
    def _rows(self) -> Array:
        """Bit rows of the graph of all variables, where they are few."""
        return _adjacency(self.problem, np.arange(len(self.bits)))

    def choose(self, limit: float, *, loose: float = 0.0, among: Array | None = None, room: float = ROOM) -> IntArray:
        """An elimination order of part of the free variables in which no table has more than 2^limit cells.

        `loose` is the share of variables that are left where they stand, at random; `among` (variables,) marks those
        that may be taken. In large problems a region around a random variable is taken.
        """
        from gramgraph._numerics.best.elimination import narrow_part

        free = self.problem.free if among is None else self.problem.free[among[self.problem.free]]
        if loose:
            free = free[self.rng.random(len(free)) >= loose]
        if len(self.bits) <= REGION:
            keep = np.zeros(len(self.bits), np.bool_)
            keep[free] = True
            found: IntArray = narrow_part(self._rows, self.bits, keep, limit, room, self.rng.random(len(keep)))
            return found
        free = self.region(free, REGION)
        keep = np.ones(len(free), np.bool_)
        rows = _adjacency(self.problem, free)
        return free[narrow_part(rows, self.bits[free], keep, limit, room, self.rng.random(len(keep)))]

    def region(self, among: IntArray, most: int) -> IntArray:
        """Up to `most` of these variables, around a random one."""
        from gramgraph._numerics.best.moves import grow_region

        if len(among) <= most:
            return among
        p, part = self.problem, self.problem.part
        inside = np.zeros(len(p.sizes), np.bool_)
        inside[among] = True
        start = int(among[int(self.rng.integers(len(among)))])
        found = grow_region(
            part.scope_ptr, part.scope_idx, part.var_ptr, part.var_edge, part.edge_factor, inside, start, most
        )
        return np.sort(found)


def _adjacency(problem: MapProblem, members: IntArray) -> Array:
    """Bit rows of the graph among `members`, in their order."""
    from gramgraph._numerics.tree.triangulation import build_adjacency

    part = problem.part
    local = np.full(len(problem.sizes), -1, np.int64)
    local[members] = np.arange(len(members))
    idx = local[part.scope_idx]
    inside = idx >= 0
    ptr = np.concatenate([[0], np.cumsum(inside)])[part.scope_ptr]
    return build_adjacency(len(members), ptr, idx[inside], np.ones(len(members), np.uint8))


def elimination_order(problem: MapProblem) -> IntArray | None:
    """An order of all free variables with small tables; None when they are too many."""
    found = _ordered(problem, 1)
    return None if found is None else found[0]


def whole_order(problem: MapProblem, room: float, tries: int = 3) -> IntArray | None:
    """An order in which all free variables can be eliminated with at most `room` cells; None when none was found."""
    for attempt in (1, tries):
        found = _ordered(problem, attempt)
        if found is None or found[1].max(initial=0.0) > np.log2(room) + HOPE:
            return None
        if float(np.exp2(found[1]).sum()) <= room:
            return found[0]
    return None


def _ordered(problem: MapProblem, tries: int) -> tuple[IntArray, FloatArray] | None:
    """The best order of so many tries, and the bits of its tables."""
    from gramgraph.graphs import search_order

    members = problem.free
    if len(members) > REGION:
        return None
    bits = np.log2(problem.sizes[members])
    rows, keep = _adjacency(problem, members), np.ones(len(members), np.uint8)
    order, ptr, idx = search_order(rows, bits * np.log(2.0), keep, heuristic="best", tries=tries)
    return members[order], np.add.reduceat(bits[idx], ptr[:-1]) if len(members) else np.zeros(0)


def block_move(problem: MapProblem, order: IntArray, state: IntArray) -> IntArray:
    """`state` with the variables of `order` on their best states given all others. Cost: the tables of the order."""
    from gramgraph._numerics.best.elimination import block_best

    out = state.copy()
    block_best(*problem.tables, *problem.graph[:3], order, out)
    return out
