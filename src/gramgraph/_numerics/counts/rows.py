"""Numba: equal rows of an integer table."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)


@_jit
def distinct_rows(codes, most):
    """(first row of each kind, in order of appearance; the kind of every row), by hashing: O(rows · columns).

    No first rows where there are more than `most` kinds: what follows is not looked at then.
    """
    n, width = codes.shape
    slots = 16
    while slots < 2 * n:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    first = np.empty(n, np.int64)
    kind = np.empty(n, np.int64)
    found = 0
    last = np.uint64(slots - 1)
    for i in range(n):
        mixed = np.uint64(0)
        for j in range(width):
            mixed = (mixed ^ np.uint64(codes[i, j])) * MULTIPLIER
            mixed ^= mixed >> SHIFT
        at = mixed & last
        while True:
            k = table[at]
            if k < 0:
                if found == most:
                    return first[:0], kind
                table[at] = found
                first[found] = i
                kind[i] = found
                found += 1
                break
            row = first[k]
            equal = True
            for j in range(width):
                if codes[row, j] != codes[i, j]:
                    equal = False
                    break
            if equal:
                kind[i] = k
                break
            at = (at + np.uint64(1)) & last
    return first[:found], kind
