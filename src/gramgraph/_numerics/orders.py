"""Numba: the order of keys, by a merge sort whose compilation is short (`np.argsort` costs more than a second)."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def order_of(keys):
    """The places of the keys, smallest key first, equal keys as they come; O(n log n)."""
    n = keys.shape[0]
    order = np.empty(n, np.int64)
    other = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            a, b = first, middle
            for k in range(first, last):
                if a < middle and (b >= last or keys[order[a]] <= keys[order[b]]):
                    other[k] = order[a]
                    a += 1
                else:
                    other[k] = order[b]
                    b += 1
        order, other = other, order
        width *= 2
    return order


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def falling(values):
    """A sorted copy, largest first."""
    n = values.shape[0]
    order = order_of(values)
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = values[order[n - 1 - i]]
    return out
