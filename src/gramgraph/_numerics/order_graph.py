"""Numba: steps through the graph of orders, whose nodes are sets of variables that have their parents already."""

from __future__ import annotations

import numpy as np
from numba import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def pattern(first, size, masks, values, starts):
    """For every subset R of variables first … first + size - 1: the most that R can add when all others are allowed.

    h(R) = max over v in R of best(v | all but R) + h(R without v).
    """
    out = np.full(1 << size, -np.inf)
    out[0] = 0.0
    for rest in range(1, 1 << size):
        hidden = np.uint64(rest) << np.uint64(first)
        for i in range(size):
            if rest >> i & 1:
                v = first + i
                for s in range(starts[v], starts[v + 1]):
                    if masks[s] & hidden == np.uint64(0):
                        found = values[s] + out[rest ^ (1 << i)]
                        if found > out[rest]:
                            out[rest] = found
                        break
    return out


@_jit
def expand(states, totals, n, masks, values, starts, firsts, sizes, patterns, offsets, bound, next_states, next_totals,
           last):  # fmt: skip
    """All ways to add one variable to each state that can still reach `bound`; how many were written."""
    count = 0
    one = np.uint64(1)
    for i in range(len(states)):
        state = states[i]
        for v in range(n):
            bit = one << np.uint64(v)
            if state & bit:
                continue
            value = -np.inf
            for s in range(starts[v], starts[v + 1]):
                if masks[s] & ~state == np.uint64(0):
                    value = values[s]
                    break
            if value == -np.inf:
                continue
            total = totals[i] + value
            after = state | bit
            hope = total
            for g in range(len(firsts)):
                inside = (after >> np.uint64(firsts[g])) & ((one << np.uint64(sizes[g])) - one)
                hope += patterns[offsets[g] + np.int64(((one << np.uint64(sizes[g])) - one) ^ inside)]
            if hope < bound:
                continue
            next_states[count] = after
            next_totals[count] = total
            last[count] = v
            count += 1
    return count
