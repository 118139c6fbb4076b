"""Numba: index maps from a table to a smaller one over some of its variables.

A map is a pair of short lists: the offset of cell (hi · n_lo + lo) · inner + r is map[hi] + map[lo] (+ r when the
innermost run is shared). Maps therefore cost about the square root of the table.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

LO_LIMIT = 512


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def grown(array, needed):
    """The array, doubled until it holds `needed` entries."""
    if needed <= array.shape[0]:
        return array
    size = max(array.shape[0], 16)
    while size < needed:
        size *= 2
    bigger = np.zeros(size, np.int64)
    for i in range(array.shape[0]):
        bigger[i] = array[i]
    return bigger


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def expand(out, start, first, last, members, strides, sizes):
    """Write the offsets of all combinations of dimensions first … last-1 (innermost last) from `start` on."""
    out[start] = 0
    count = 1
    for d in range(last - 1, first - 1, -1):
        step = strides[d] if members[d] else 0
        for s in range(1, sizes[d]):
            for j in range(count):
                out[start + s * count + j] = out[start + j] + s * step
        count *= sizes[d]
    return count


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def add_map(maps, n_maps, table, row, k, members, strides, sizes):
    """Index map from a table with dimensions `sizes[:k]` to the one over its members; returns (maps, n_maps)."""
    inner = 1
    shared = 0
    outer = k
    if k > 0:
        shared = 1 if members[k - 1] else 0
        while outer > 0 and (1 if members[outer - 1] else 0) == shared:
            inner *= sizes[outer - 1]
            outer -= 1
    split = outer
    n_lo = 1
    while split > 0 and n_lo * sizes[split - 1] <= LO_LIMIT:
        n_lo *= sizes[split - 1]
        split -= 1
    n_hi = 1
    for d in range(split):
        n_hi *= sizes[d]
    maps = grown(maps, n_maps + n_hi + n_lo)
    table[row, 0] = n_maps
    table[row, 1] = n_hi
    expand(maps, n_maps, 0, split, members, strides, sizes)
    n_maps += n_hi
    table[row, 2] = n_maps
    table[row, 3] = n_lo
    expand(maps, n_maps, split, outer, members, strides, sizes)
    n_maps += n_lo
    table[row, 4] = inner
    table[row, 5] = shared
    return maps, n_maps
