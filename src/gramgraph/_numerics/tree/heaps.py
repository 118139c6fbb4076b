"""Numba: a binary heap that knows where each item stands, with the smallest (key, tie, index) on top."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramgraph._numerics.compiling import njit

IntVector: TypeAlias = NDArray[np.int64]


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _before(a: int, b: int, key: NDArray[np.float64], tie: IntVector) -> bool:
    if key[a] != key[b]:
        return bool(key[a] < key[b])
    if tie[a] != tie[b]:
        return bool(tie[a] < tie[b])
    return a < b


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def sift_down(heap: IntVector, pos: IntVector, size: int, i: int, key: NDArray[np.float64], tie: IntVector) -> None:
    """Move the item at place i down to where it belongs."""
    item = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child + 1], heap[child], key, tie):
            child += 1
        if not _before(heap[child], item, key, tie):
            break
        heap[i] = heap[child]
        pos[heap[i]] = i
        i = child
    heap[i] = item
    pos[item] = i


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def sift_up(heap: IntVector, pos: IntVector, i: int, key: NDArray[np.float64], tie: IntVector) -> None:
    """Move the item at place i up to where it belongs."""
    item = heap[i]
    while i > 0:
        above = (i - 1) >> 1
        if not _before(item, heap[above], key, tie):
            break
        heap[i] = heap[above]
        pos[heap[i]] = i
        i = above
    heap[i] = item
    pos[item] = i


@njit(pauses=True, cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def pop(heap: IntVector, pos: IntVector, size: int, key: NDArray[np.float64], tie: IntVector) -> int:
    """Take the top item off a heap of ``size`` items; the caller counts ``size`` down."""
    top = int(heap[0])
    pos[top] = -1
    if size > 1:
        heap[0] = heap[size - 1]
        pos[heap[0]] = 0
        sift_down(heap, pos, size - 1, 0, key, tie)
    return top
