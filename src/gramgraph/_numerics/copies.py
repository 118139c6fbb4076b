"""Numba: copies of arrays by loops.

An assignment of an array to a part of another one makes Numba compile the text of an error about shapes: two to three
seconds in every process that starts without a cache.
"""

from __future__ import annotations

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def put(source, into):
    """into[i] = source[i]."""
    for i in range(source.shape[0]):
        into[i] = source[i]


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def put_matrix(source, into):
    """into[i, j] = source[i, j]."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            into[i, j] = source[i, j]
