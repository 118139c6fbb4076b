"""The best graph of all, by branch and bound through sets of variables, and a bound where time or memory ends first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from gramgraph.exceptions import OptionError
from gramgraph.learn.order_layers import ROUNDING, Clock, Layers, order_layers
from gramgraph.learn.parent_sets import ParentSets, members, parent_sets
from gramgraph.learn.search import Constraints, Scores, Search, hill_climb
from gramgraph.learn.ties import first_best, least_gain, to_ten_digits

#: Variables that a bit mask holds, with room for the arithmetic.
MAX_VARIABLES = 60
#: Sets of variables of one size that are kept: some 2 GB with all that belongs to them.
MAX_STATES = 20_000_000
#: Up to so many variables tabu search alone gives the first graph.
FEW = 14
#: Sets of one size in the first walks, which look for good graphs.
WIDTHS = (1 << 11, 1 << 14, 1 << 17, 1 << 20)


@dataclass(frozen=True)
class Best:
    """The best graph found, and a score that no graph exceeds: the graph's own where it is proven to be the best."""

    parents: list[tuple[int, ...]]
    bound: float
    interrupted: bool = False  # whether time or Ctrl-C ended the search


def best_graph(
    scores: Scores,
    n: int,
    constraints: Constraints,
    names: tuple[str, ...] | None = None,
    *,
    time_limit: float | None = None,
) -> Best:
    """A graph with the largest score.

    First the sets of parents that no subset and no bound rules out. Variables that can be each other's ancestors
    through these sets form groups, and each group is solved by itself: layer by layer over the subsets whose parents
    are chosen, from each the best set of parents for one more variable. A subset is dropped when even the tables of the
    best completion, made for up to 20 variables at a time as if those of the other tables were free, stay below the
    score of the best graph so far. Walks that keep few subsets of each size come first, for good graphs. Cost: at worst
    O(m 2ᵐ) for a group of m variables, which structure in the data cuts down. Source of the layers: B. Malone, C. Yuan,
    E. Hansen, S. Bridges, UAI 2011.

    After `time_limit` seconds of walks (or Ctrl-C, or when memory for subsets ends) the best graph so far is given,
    with the most that the subsets not followed could have reached as bound. Without a limit, want of memory is an
    error.
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
    clock, parents, bounds = Clock(time_limit), list(guess), []
    for group in sorted(_groups(sets), key=len):
        found, bound = _solve(group, sets, guess, scores, clock)
        bounds.append(bound)
        for v, mask in found.items():
            parents[v] = members(mask)
    total, bound = math.fsum(scores.family(v, found) for v, found in enumerate(parents)), math.fsum(bounds)
    proven = bound <= total + 2 * ROUNDING * max(abs(total), 1.0)
    return Best(parents, total if proven else bound, clock.interrupted)


def _guess(scores: Scores, constraints: Constraints, start: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """A good graph: the better the bound, the fewer sets are met. For few variables tabu search is enough."""
    found = [hill_climb(Search(scores, constraints, list(start)), patience=50)]
    if len(start) > FEW:
        from gramgraph.learn.ges import ges
        from gramgraph.learn.order_search import order_search

        found.append(ges(scores, constraints, list(start))[0])
        found.append(ges(scores, constraints, found[0])[0])
        found.append(order_search(scores, constraints, _better(scores, found), restarts=10)[0])
    return _better(scores, found)


def _better(scores: Scores, graphs: list[list[tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """The best graph, the first of equals."""
    totals = [sum(scores.family(v, parents) for v, parents in enumerate(graph)) for graph in graphs]
    return graphs[first_best(np.array(totals), least_gain(scores))]


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


def _solve(
    group: list[int], sets: list[ParentSets], guess: list[tuple[int, ...]], scores: Scores, clock: Clock
) -> tuple[dict[int, int], float]:
    """(variable → mask of its parents, bound) for one group; variables outside the group may always be parents."""
    if len(group) == 1:
        return {group[0]: sets[group[0]].masks[0]}, sets[group[0]].values[0]
    layers = Layers.of(_by_guess(group, guess), sets)
    best = {v: sum(1 << p for p in guess[v]) for v in group}
    least = least_gain(scores)
    known = math.fsum(to_ten_digits(scores.family(v, guess[v]), least) for v in group)
    bound = layers.root_bound()
    for width in (*(w for w in WIDTHS if w < MAX_STATES), MAX_STATES):
        walk = order_layers(layers, known, width, clock)
        if walk.added is not None and walk.total > known:
            if not walk.total <= known + ROUNDING * abs(known):  # of graphs that are equally good the first one stays
                best = {layers.order[v]: mask for v, mask in layers.masks_of(walk.added, sets).items()}
            known = walk.total
        bound = min(bound, max(walk.bound, known))
        if bound <= known or clock.over():
            return best, bound
    if known == -math.inf:
        raise OptionError(_NOTHING)
    if clock.limit is None:
        raise OptionError(
            f"the search for the best graph met more than {MAX_STATES:,} sets of variables of one size: bound the "
            "number of parents (max_parents=…), leave variables out, use method='tabu', or give time_limit=… for the "
            "best graph found and a bound"
        )
    return best, bound


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
