"""In which order variables leave tables of which only the positive rows are kept: how many rows that takes, before."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import exp
from typing import NamedTuple

import numpy as np

#: Orders that are tried at most, and seconds that one try takes for each variable, and a run for each row.
TRIES, TRY_SECONDS, ROW_SECONDS = 128, 2e-4, 2e-7
#: Seconds that all tries may take together; an eighth of it where the first order is hopeless.
MOST_SECONDS = 2.0
#: Weights of a wide scope, and of chance, in the choice of the next variable: of every try one pair is drawn.
WIDE, CHANCE = (0.0, 0.2, 0.5), (0.3, 0.7, 1.0)
#: Joins with at least this part of the most rows are the ones that a choice of states should make smaller.
LARGE = 0.25
#: Estimates end here.
MOST_LOG = 600.0


class RelationPlan(NamedTuple):
    """An order of elimination with what it is expected to make."""

    order: tuple[int, ...]  # variables; only a beginning where the rows went over the limit
    rows: float  # of all joins together; about, usually more than there will be
    crowded: tuple[int, ...]  # variables of the largest joins, most often held first


def plan_relations(
    scopes: Sequence[tuple[int, ...]], log_rows: Sequence[float], log_sizes: Sequence[float], most: float
) -> RelationPlan:
    """The best of several greedy orders: next goes the variable whose tables are expected to have the fewest rows in
    common.

    Of two tables |A| |B| / |S| rows are expected to agree, S being all states of what they share: as if rows were
    spread evenly. Orders are tried as long as a better one could pay, none of them by the clock.
    """
    rng = np.random.default_rng(0)
    best = _greedy(scopes, log_rows, log_sizes, 0.0, np.zeros(len(log_sizes)), most)
    spent = 0.0
    for _ in range(TRIES):
        spent += TRY_SECONDS * len(log_sizes)
        if spent > min(0.5 * ROW_SECONDS * best.rows, MOST_SECONDS if best.rows < most else MOST_SECONDS / 8):
            break
        noise = rng.choice(CHANCE) * rng.exponential(size=len(log_sizes))
        found = _greedy(scopes, log_rows, log_sizes, float(rng.choice(WIDE)), noise, min(best.rows, most))
        best = found if found.rows < best.rows else best
    return best


def _greedy(
    scopes: Sequence[tuple[int, ...]],
    log_rows: Sequence[float],
    log_sizes: Sequence[float],
    wide: float,
    noise: np.ndarray,
    most: float,
) -> RelationPlan:
    live = {i: (scope, rows) for i, (scope, rows) in enumerate(zip(scopes, log_rows, strict=True))}
    holders: dict[int, set[int]] = {}
    for i, scope in enumerate(scopes):
        for v in scope:
            holders.setdefault(v, set()).add(i)
    luck = noise.tolist()

    def joined(v: int) -> tuple[float, dict[int, int]]:
        """Log of the expected rows of all that holds v together, and how often each variable stands there."""
        times: dict[int, int] = {}
        rows = 0.0
        for i in holders[v]:
            scope, own = live[i]
            rows += own
            for u in scope:
                if u in times:
                    times[u] += 1
                    rows -= log_sizes[u]
                else:
                    times[u] = 1
        return max(rows, 0.0), times

    about = {v: joined(v) for v in holders}
    queue = [(rows + wide * len(times) - luck[v], v) for v, (rows, times) in about.items()]
    cost = {v: own for own, v in queue}
    heapify(queue)
    order, made, total, made_next = [], [], 0.0, len(scopes)
    while cost:
        own, v = heappop(queue)
        if cost.get(v) != own:  # gone, or counted anew
            continue
        del cost[v]
        rows, times = about.pop(v)
        total += exp(min(rows, MOST_LOG))
        order.append(v)
        made.append((rows, tuple(times)))
        if total > most:
            break
        for i in holders.pop(v):
            for u in live.pop(i)[0]:
                if u != v:
                    holders[u].discard(i)
        rest = tuple(u for u in times if u != v)
        if rest:
            live[made_next] = (rest, min(rows, sum(log_sizes[u] for u in rest)))
            for u in rest:
                holders[u].add(made_next)
            made_next += 1
            for u in rest:
                about[u] = joined(u)
                cost[u] = about[u][0] + wide * len(about[u][1]) - luck[u]
                heappush(queue, (cost[u], u))
    return RelationPlan(tuple(order), total, _crowded(made))


def _crowded(made: Sequence[tuple[float, tuple[int, ...]]]) -> tuple[int, ...]:
    """Variables of the largest joins, those that stand in most of their rows first."""
    top = max((rows for rows, _ in made), default=0.0)
    held: dict[int, float] = {}
    for rows, scope in made:
        if (share := exp(max(rows - top, -MOST_LOG))) >= LARGE:
            for v in scope:
                held[v] = held.get(v, 0.0) + share
    return tuple(sorted(held, key=lambda v: (-held[v], v)))
