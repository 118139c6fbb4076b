"""Numba: steps through the graph of orders, whose nodes are sets of variables that have their parents already."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)

#: Odd numbers below 2^32 that spread the sets over a hash table; products with 32 bits stay within 64.
_LOW, _HIGH, _HALF = np.uint64(0x9E3779B1), np.uint64(0x85EBCA77), np.uint64(0xFFFFFFFF)


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


@_jit(no_cpython_wrapper=True)
def rest_bound(state, firsts, sizes, patterns, offsets):
    """The most that the variables outside `state` can add: the tables' sum."""
    one = np.uint64(1)
    hope = 0.0
    for g in range(len(firsts)):
        full = (one << np.uint64(sizes[g])) - one
        inside = (state >> np.uint64(firsts[g])) & full
        hope += patterns[offsets[g] + np.int64(full ^ inside)]
    return hope


@_jit
def hopes(states, totals, firsts, sizes, patterns, offsets):
    """For each state, the most that a graph through it can score."""
    out = np.empty(len(states))
    for i in range(len(states)):
        out[i] = totals[i] + rest_bound(states[i], firsts, sizes, patterns, offsets)
    return out


@_jit(no_cpython_wrapper=True)
def _slot(state, keys):
    """Where a state stands in the table (of 2^k places), or the empty place (key 0) where it belongs."""
    mixed = ((state & _HALF) * _LOW) ^ ((state >> np.uint64(32)) * _HIGH)
    at = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(len(keys) - 1))
    while keys[at] != np.uint64(0) and keys[at] != state:
        at += 1
        if at == len(keys):
            at = 0
    return at


@_jit
def insert(states, totals, last, keys, sums, added):
    """States into an empty table that holds them, each once."""
    for i in range(len(states)):
        at = _slot(states[i], keys)
        keys[at] = states[i]
        sums[at] = totals[i]
        added[at] = last[i]


@_jit
def expand(states, totals, begin, n, masks, values, starts, firsts, sizes, patterns, offsets, bound, least, keys, sums,
           added, used, room):  # fmt: skip
    """Add one variable in all ways to states[begin:], into a table that keeps the best total of each new state.

    New states that cannot reach `bound` are dropped; those below `least` too, and the best of these is told. Stops when
    more than `room` places are in use. (Next state to expand, places in use, best hope among those below `least`.)
    """
    one = np.uint64(1)
    lost = -np.inf
    i = begin
    while i < len(states) and used + n <= room:
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
            hope = total + rest_bound(after, firsts, sizes, patterns, offsets)
            if hope < bound:
                continue
            if hope < least:
                lost = max(lost, hope)
                continue
            at = _slot(after, keys)
            if keys[at] == np.uint64(0):
                keys[at] = after
                used += 1
            elif sums[at] > total or (sums[at] == total and added[at] <= v):
                continue
            sums[at] = total
            added[at] = v
        i += 1
    return i, used, lost
