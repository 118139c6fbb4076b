"""The best graph of all, by dynamic programming over sets of variables."""

from __future__ import annotations

import numpy as np

from gramgraph.exceptions import OptionError
from gramgraph.learn.search import Constraints, Scores

__all__ = ["best_graph"]

#: 2^n subsets are kept for every variable.
MAX_VARIABLES = 20


def best_graph(scores: Scores, n: int, constraints: Constraints) -> list[tuple[int, ...]]:
    """Parents of every variable in a graph with the largest score; O(n 2ⁿ) time and memory.

    First the best parents within every candidate set, then the best last variable (sink) of every set.
    """
    if n > MAX_VARIABLES:
        raise OptionError(
            f"exact search goes up to {MAX_VARIABLES} variables, not {n}: use method='hill_climb' or 'tabu'"
        )
    full = 1 << n
    value = np.full((n, full), -np.inf)
    chosen = np.zeros((n, full), np.int64)
    limit = constraints.max_parents
    for child in range(n):
        must = sum(1 << p for p in range(n) if constraints.required[p, child])
        never = sum(1 << p for p in range(n) if constraints.forbidden[p, child]) | 1 << child
        for mask in range(full):
            if not mask & never and mask & must == must and mask.bit_count() <= limit:
                value[child, mask] = scores.family(child, _members(mask))
                chosen[child, mask] = mask
        for bit in range(n):  # best over all subsets, one variable at a time
            sets = np.arange(full)
            sets = sets[sets >> bit & 1 == 1]
            without = sets ^ (1 << bit)
            # a tie goes to the smaller set
            better = (value[child, without] >= value[child, sets]) & np.isfinite(value[child, without])
            value[child, sets[better]] = value[child, without[better]]
            chosen[child, sets[better]] = chosen[child, without[better]]
    total = np.full(full, -np.inf)
    total[0] = 0.0
    sink = np.full(full, -1, np.int64)
    order = sorted(range(1, full), key=int.bit_count)
    for mask in order:
        for v in _members(mask):
            rest = mask ^ (1 << v)
            found = total[rest] + value[v, rest]
            if found > total[mask]:
                total[mask], sink[mask] = found, v
    if total[full - 1] == -np.inf:
        raise OptionError("no acyclic graph satisfies the required edges, forbidden edges and max_parents together")
    parents: list[tuple[int, ...]] = [()] * n
    mask = full - 1
    while mask:
        v = int(sink[mask])
        mask ^= 1 << v
        parents[v] = _members(int(chosen[v, mask]))
    return parents


def _members(mask: int) -> tuple[int, ...]:
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)
