"""Max-min hill climbing: tests say which pairs may be joined, a score says how."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from gramgraph.learn.independence import IndependenceTest, IndependenceTester
from gramgraph.learn.search import Constraints, Scores, Search, hill_climb

#: Shares by which p-values and statistics may differ that are equal but for rounding; that of a statistic counts
#: in the exponent of its p-value.
P_EQUAL, STATISTIC_EQUAL = 1e-6, 1e-9


def max_min_neighbors(
    tester: IndependenceTester, n: int, constraints: Constraints, *, alpha: float, max_given: int
) -> list[list[int]]:
    """Possible parents and children of every variable (MMPC), those that both ends find; required ones always.

    A variable takes in, one by one, the other that stays most dependent on it whichever of those already taken are
    given (at most `max_given` at once), as long as independence is rejected at level `alpha`; then it lets go of those
    that others make independent. Source: I. Tsamardinos, L. Brown, C. Aliferis, Machine Learning 65, 2006.
    """
    known: dict[tuple[int, int, tuple[int, ...]], IndependenceTest] = {}

    def test(a: int, b: int, given: tuple[int, ...]) -> IndependenceTest:
        key = (min(a, b), max(a, b), tuple(sorted(given)))
        if key not in known:
            known[key] = tester(*key)
        return known[key]

    never = constraints.forbidden & constraints.forbidden.T
    must = constraints.required | constraints.required.T
    found = [
        _one(test, v, [u for u in range(n) if u != v and not never[u, v]], alpha=alpha, max_given=max_given)
        for v in range(n)
    ]
    return [[u for u in range(n) if must[u, v] or (u in found[v] and v in found[u])] for v in range(n)]


def _one(
    test: Callable[[int, int, tuple[int, ...]], IndependenceTest],
    target: int,
    others: list[int],
    *,
    alpha: float,
    max_given: int,
) -> list[int]:
    weakest: dict[int, tuple[float, float]] = {}  # (largest p-value, smallest statistic with a minus sign) so far
    for v in others:
        first = test(target, v, ())
        weakest[v] = (first.p_value, -abs(first.statistic))
    taken: list[int] = []
    while True:
        left = [v for v, (p, _) in weakest.items() if p <= alpha and v not in taken]
        if not left:
            break
        newest = _closest(weakest, left)
        taken.append(newest)
        for v in left:
            if v == newest:
                continue
            for size in range(min(max_given, len(taken))):
                for some in combinations(taken[:-1], size):
                    more = test(target, v, (*some, newest))
                    if not more.informative:
                        continue
                    weakest[v] = max(weakest[v], (more.p_value, -abs(more.statistic)))
                    if weakest[v][0] > alpha:
                        break
                if weakest[v][0] > alpha:
                    break
    for v in list(taken):
        rest = [u for u in taken if u != v]
        for size in range(min(max_given, len(rest)) + 1):
            if any(test(target, v, some).separates(alpha, some) for some in combinations(rest, size)):
                taken.remove(v)
                break
    return taken


def _closest(weakest: dict[int, tuple[float, float]], left: list[int]) -> int:
    """The smallest p-value, then the largest statistic, then the first: equal columns differ by rounding."""
    least = min(weakest[v][0] for v in left)
    likely = [v for v in left if weakest[v][0] <= least * (1.0 + P_EQUAL)]
    top = min(weakest[v][1] for v in likely)
    return min(v for v in likely if weakest[v][1] <= top * (1.0 - STATISTIC_EQUAL))


def mmhc(
    scores: Scores,
    tester: IndependenceTester,
    constraints: Constraints,
    start: list[tuple[int, ...]],
    *,
    alpha: float,
    max_given: int,
    patience: int,
    max_steps: int | None = None,
    tell: Callable[[int], object] | None = None,
) -> tuple[list[tuple[int, ...]], Search]:
    """Parents of the best graph that hill climbing finds among the edges which the tests let through."""
    n = len(start)
    near = max_min_neighbors(tester, n, constraints, alpha=alpha, max_given=max_given)
    far = np.ones((n, n), bool)
    for v, found in enumerate(near):
        far[found, v] = False
    within = Constraints(
        constraints.required, constraints.forbidden | (far & ~constraints.required), constraints.max_parents
    )
    search = Search(
        scores, within, [tuple(p for p in found if not within.forbidden[p, v]) for v, found in enumerate(start)]
    )
    return hill_climb(search, patience=patience, max_steps=max_steps, tell=tell), search
