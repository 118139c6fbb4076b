"""Search over orders of the variables: given an order, the best parents of each variable are among those before it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph._validation import generator
from gramgraph.learn.parent_sets import ParentSets, members, parent_sets
from gramgraph.learn.search import Constraints, Move, Scores, Search, hill_climb
from gramgraph.learn.ties import DIGITS, best_first, first_best, least_gain

#: Possible parents of a variable: those of hill climbing, and the best ones by themselves, to so many in all.
CANDIDATES = 12
#: Parents of a variable where nobody bounds them.
MAX_PARENTS = 5


@interruptible()
def order_search(
    scores: Scores,
    constraints: Constraints,
    start: list[tuple[int, ...]],
    *,
    restarts: int = 5,
    patience: int | None = None,
    random_state: int = 0,
    tell: Callable[[int], object] | None = None,
    ended: Event | None = None,
) -> tuple[list[tuple[int, ...]], list[Move]]:
    """Parents in the best graph met, and the swaps that led there.

    From the order of a hill-climbed graph, then from `restarts` random ones: the best swap of two neighbors in the
    order, a pair not being swapped back for a while, until `patience` (default: the number of variables) swaps in a row
    did not help. Each variable has up to 12 possible parents (those of the climbed graph and the best ones by
    themselves) and up to 5 parents. Only two families change with a swap. Ctrl-C keeps the best so far
    and sets `ended`.
    Source: M. Teyssier and D. Koller, UAI 2005.
    """
    n = len(start)
    climb = Search(scores, constraints, list(start))
    climbed = hill_climb(climb, patience=10)
    sets: list[ParentSets] = []
    rng = generator(random_state)
    idle = n if patience is None else patience
    least = least_gain(scores)
    best_score, best_order, best_moves = -np.inf, list(range(n)), list[Move]()
    try:
        if climb.interrupted:
            raise KeyboardInterrupt
        sets = _sets(scores, constraints, climbed)
        for attempt in range(restarts + 1):
            check_interrupt()
            keys = rng.random(n) if attempt else np.zeros(n)
            known = [tuple(np.flatnonzero(constraints.required[:, v]).tolist()) for v in range(n)]
            walk = _Walk(sets, _order(known if attempt else climbed, keys), least)
            score, order, moves = walk.run(idle)
            if score > best_score + walk.least:
                best_score, best_order = score, order
                best_moves = moves if attempt else [*climb.moves, *moves]
            if tell:
                tell(attempt + 1)
    except KeyboardInterrupt:
        if ended is not None:
            ended.set()
        if best_score == -np.inf:
            return climbed, climb.moves
    return _parents(sets, best_order), best_moves


def _sets(scores: Scores, constraints: Constraints, climbed: list[tuple[int, ...]]) -> list[ParentSets]:
    """The sets of parents of every variable, from its candidates."""
    n = len(climbed)
    limit = max(MAX_PARENTS, *map(len, climbed)) if n else 0
    bound = Constraints(constraints.required, constraints.forbidden, min(limit, constraints.max_parents))
    out = []
    for v in range(n):
        near = dict.fromkeys(climbed[v])
        near.update(dict.fromkeys(u for u in range(n) if v in climbed[u]))
        alone = scores.family(v, ())
        free = [p for p in range(n) if p != v and p not in near and not constraints.forbidden[p, v]]
        gains = {p: scores.family(v, (p,)) - alone for p in free}
        others = best_first(free, gains.__getitem__, int, least_gain(scores))
        chosen = [*near, *others][: max(CANDIDATES, len(climbed[v]))]
        out.append(parent_sets(scores, v, chosen, bound))
    return out


def _order(parents: list[tuple[int, ...]], keys: np.ndarray) -> list[int]:
    """Parents before children; among those that may come next, the one with the smallest key."""
    left = [set(found) for found in parents]
    waiting = dict.fromkeys(range(len(parents)))
    out = []
    while waiting:
        v = min((v for v in waiting if not left[v]), key=lambda v: (keys[v], v))
        out.append(v)
        del waiting[v]
        for rest in left:
            rest.discard(v)
    return out


def _parents(sets: list[ParentSets], order: list[int]) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = [()] * len(order)
    before = 0
    for v in order:
        out[v] = members(sets[v].best_within(before)[1])
        before |= 1 << v
    return out


class _Walk:
    """An order with the score of every variable, and the gain of every swap."""

    def __init__(self, sets: list[ParentSets], order: list[int], least: float) -> None:
        self.sets, self.order = sets, order
        self.before = [0]
        for v in order:
            self.before.append(self.before[-1] | 1 << v)
        self.value = [sets[v].best_within(self.before[i])[0] for i, v in enumerate(order)]
        digits = max((abs(x) for x in self.value if np.isfinite(x)), default=0.0) * 2.0 ** (2 - DIGITS)
        self.least = max(least, digits)  # a gain is the sum of four scores with so many digits
        self.swapped = [self._swap(i) for i in range(len(order) - 1)]

    def _swap(self, i: int) -> tuple[float, float]:
        """Scores of the variables at i and i + 1 once they have changed places."""
        a, b = self.order[i], self.order[i + 1]
        return self.sets[b].best_within(self.before[i])[0], self.sets[a].best_within(self.before[i] | 1 << b)[0]

    def _gain(self, i: int) -> float:
        return self.swapped[i][0] + self.swapped[i][1] - self.value[i] - self.value[i + 1]

    def run(self, patience: int) -> tuple[float, list[int], list[Move]]:
        """(best score, its order, the swaps up to there)."""
        score = sum(self.value)
        best, best_order, moves, kept = score, list(self.order), list[Move](), 0
        tenure, idle, step = max(len(self.order) // 3, 2), 0, 0
        barred: dict[tuple[int, int], int] = {}
        while self.swapped:
            check_interrupt()
            free = [i for i in range(len(self.swapped)) if barred.get(self._pair(i), -1) < step]
            if not free:
                break
            at = free[first_best(np.array([self._gain(i) for i in free]), self.least)]
            gain = self._gain(at)
            if gain == -np.inf or (gain <= self.least and idle >= patience):
                break
            a, b = self.order[at], self.order[at + 1]
            barred[self._pair(at)] = step + tenure
            self._take(at)
            score += gain
            step += 1
            moves.append(Move("swap", b, a, gain, score))
            if score > best + self.least:
                best, best_order, kept, idle = score, list(self.order), len(moves), 0
            else:
                idle += 1
        return best, best_order, moves[:kept]

    def _pair(self, i: int) -> tuple[int, int]:
        a, b = self.order[i], self.order[i + 1]
        return (a, b) if a < b else (b, a)

    def _take(self, i: int) -> None:
        self.value[i], self.value[i + 1] = self.swapped[i]
        self.order[i], self.order[i + 1] = self.order[i + 1], self.order[i]
        self.before[i + 1] = self.before[i] | 1 << self.order[i]
        for j in (i - 1, i, i + 1):
            if 0 <= j < len(self.swapped):
                self.swapped[j] = self._swap(j)
