"""The best graph of all, by branch and bound through sets of variables."""

from __future__ import annotations

from functools import reduce
from operator import or_

import numpy as np

from gramgraph.exceptions import OptionError
from gramgraph.learn.parent_sets import ParentSets, members, parent_sets
from gramgraph.learn.search import Constraints, Scores, Search, hill_climb
from gramgraph.typing import Array, FloatArray

__all__ = ["best_graph"]

#: Variables that a bit mask holds, with room for the arithmetic.
MAX_VARIABLES = 60
#: Sets of variables that are kept before the work is called off.
MAX_STATES = 30_000_000
#: Variables of one table of the bound: 2^14 numbers.
PATTERN = 14
#: Sets that are expanded together.
CHUNK = 100_000


def best_graph(
    scores: Scores, n: int, constraints: Constraints, names: tuple[str, ...] | None = None
) -> list[tuple[int, ...]]:
    """Parents of every variable in a graph with the largest score.

    First the sets of parents that no subset and no bound rules out. Variables that can be each other's ancestors
    through these sets form groups, and each group is solved by itself: layer by layer over the subsets whose parents
    are chosen, from each the best set of parents for one more variable. A subset is dropped when even the tables of the
    best completion, made for up to 14 variables at a time as if those of the other tables were free, stay below the
    score of the best graph that the other searches find. Cost: at worst O(m 2ᵐ) for a group of m variables, which
    structure in the data cuts down. Source of the layers: B. Malone, C. Yuan, E. Hansen, S. Bridges, UAI 2011.
    """
    if n > MAX_VARIABLES:
        raise OptionError(
            f"exact search goes up to {MAX_VARIABLES} variables, not {n}: use method='hill_climb' or 'tabu'"
        )
    names = names or tuple(map(str, range(n)))
    every = list(range(n))
    sets = [parent_sets(scores, child, every, constraints, name=names[child]) for child in every]
    if not all(found.masks for found in sets):
        raise OptionError(_NOTHING)
    start = [tuple(np.flatnonzero(constraints.required[:, v]).tolist()) for v in range(n)]
    guess = _guess(scores, constraints, start)
    parents: list[tuple[int, ...]] = [()] * n
    for group in _groups(sets):
        for v, mask in _solve(group, sets, guess, scores).items():
            parents[v] = members(mask)
    return parents


def _guess(scores: Scores, constraints: Constraints, start: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """A good graph: the better the bound, the fewer sets are met. For few variables tabu search is enough."""
    found = [hill_climb(Search(scores, constraints, list(start)), patience=50)]
    if len(start) > PATTERN:
        from gramgraph.learn.ges import ges
        from gramgraph.learn.order_search import order_search

        found.append(ges(scores, constraints, list(start))[0])
        found.append(ges(scores, constraints, found[0])[0])
        found.append(order_search(scores, constraints, max(found, key=lambda g: _total(scores, g)), restarts=10)[0])
    return max(found, key=lambda graph: _total(scores, graph))


def _total(scores: Scores, graph: list[tuple[int, ...]]) -> float:
    return sum(scores.family(v, parents) for v, parents in enumerate(graph))


_NOTHING = "no acyclic graph satisfies the required edges, forbidden edges and max_parents together"


def _groups(sets: list[ParentSets]) -> list[list[int]]:
    """Variables that possible parents join in a circle, each group ascending (strong components)."""
    n = len(sets)
    reach = np.zeros((n, n), bool)  # [v, u]: u can be an ancestor of v
    for v, found in enumerate(sets):
        for u in members(reduce(or_, found.masks, 0)):
            reach[v, u] = True
    for k in range(n):
        reach |= reach[:, k : k + 1] & reach[k]
    both = reach & reach.T
    seen: dict[tuple[int, ...], None] = {}
    for v in range(n):
        seen[tuple(sorted({v, *np.flatnonzero(both[v]).tolist()}))] = None
    return [list(group) for group in seen]


def _solve(group: list[int], sets: list[ParentSets], guess: list[tuple[int, ...]], scores: Scores) -> dict[int, int]:
    """Variable → mask of its parents, for one group; variables outside the group may always be parents."""
    if len(group) == 1:
        return {group[0]: sets[group[0]].masks[0]}
    order = _by_guess(group, guess)
    m = len(order)
    place = {v: i for i, v in enumerate(order)}
    local = [[sum(1 << place[u] for u in members(mask) if u in place) for mask in sets[v].masks] for v in order]
    starts = np.concatenate([[0], np.cumsum([len(found) for found in local])]).astype(np.int64)
    masks = np.array([mask for found in local for mask in found], np.uint64)
    values = np.concatenate([sets[v].values for v in order])
    known = sum(scores.family(v, guess[v]) for v in group)
    layers = _layers(m, masks, values, starts, known - 1e-9 * max(abs(known), 1.0))
    out = {}
    state = (1 << m) - 1
    for states, last in reversed(layers):
        v = int(last[np.searchsorted(states, np.uint64(state))])
        state ^= 1 << v
        inside = masks[starts[v] : starts[v + 1]] & np.uint64(~state & ((1 << m) - 1))
        out[order[v]] = sets[order[v]].masks[int(np.argmax(inside == 0))]
    return out


def _by_guess(group: list[int], guess: list[tuple[int, ...]]) -> list[int]:
    """The group in an order in which neighbors of a good graph stand close: they share the tables of the bound."""
    near: dict[int, list[int]] = {v: [] for v in group}
    for v in group:
        for u in guess[v]:
            if u in near:
                near[v].append(u)
                near[u].append(v)
    order: dict[int, None] = {}
    for start in group:
        stack = [start]
        while stack:
            v = stack.pop()
            if v not in order:
                order[v] = None
                stack.extend(reversed(near[v]))
    return list(order)


def _layers(m: int, masks: Array, values: FloatArray, starts: Array, bound: float) -> list[tuple[Array, Array]]:
    """(sets of variables, which was added last), for every size from 1 to m."""
    from gramgraph._numerics.order_graph import expand, pattern

    count = -(-m // PATTERN)
    firsts = np.array([i * m // count for i in range(count)], np.int64)
    sizes = np.diff(np.append(firsts, m))
    tables = [pattern(int(f), int(s), masks, values, starts) for f, s in zip(firsts, sizes, strict=True)]
    patterns = np.concatenate(tables)
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in tables])])[:-1].astype(np.int64)
    states, totals = np.zeros(1, np.uint64), np.zeros(1)
    out, kept = [], 0
    for size in range(m):
        parts = []
        for begin in range(0, len(states), CHUNK):
            here = slice(begin, begin + CHUNK)
            room = len(states[here]) * (m - size)
            found, sums, last = np.empty(room, np.uint64), np.empty(room), np.empty(room, np.int8)
            used = expand(
                states[here], totals[here], m, masks, values, starts, firsts, sizes, patterns, offsets, bound, found,
                sums, last,
            )  # fmt: skip
            parts.append(_best_of_each(found[:used], sums[:used], last[:used]))
            if len(parts) > 8:
                parts = [_merged(parts)]
        states, totals, last = _merged(parts)
        if not len(states):
            raise OptionError(_NOTHING)
        kept += len(states)
        if kept > MAX_STATES:
            raise OptionError(
                f"the search for the best graph met more than {MAX_STATES:,} sets of variables: bound the number of "
                "parents (max_parents=…), leave variables out, or use method='tabu'"
            )
        out.append((states, last))
    return out


def _merged(parts: list[tuple[Array, FloatArray, Array]]) -> tuple[Array, FloatArray, Array]:
    if len(parts) == 1:
        return parts[0]
    states, totals, last = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return _best_of_each(states, totals, last)


def _best_of_each(states: Array, totals: FloatArray, last: Array) -> tuple[Array, FloatArray, Array]:
    """Every set once, with its largest total; ascending."""
    order = np.lexsort((last, -totals, states))
    states = states[order]
    first = np.ones(len(states), bool)
    first[1:] = states[1:] != states[:-1]
    return states[first], totals[order][first], last[order][first]
