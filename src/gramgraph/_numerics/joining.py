"""Numba: sets that are joined again and again, each told by one of its members."""

from __future__ import annotations

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def root_of(link, v):
    """The member that tells the set of v; `link` leads from each member toward it, and paths are halved on the way."""
    while link[v] != v:
        link[v] = link[link[v]]
        v = link[v]
    return v
