"""Statistics of rows that Gaussian components are linear in."""

from __future__ import annotations

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True)
def quadratic_statistics(x, out):
    """For a block of columns x (d, b): products x[i] x[j], i ≤ j, then x itself, one line of `out` each.

    The last line of `out`, (d(d+1)/2 + d + 1, b), is not touched.
    """
    d, b = x.shape
    at = 0
    for i in range(d):
        for j in range(i, d):
            for t in range(b):
                out[at, t] = x[i, t] * x[j, t]
            at += 1
    for i in range(d):
        for t in range(b):
            out[at, t] = x[i, t]
        at += 1
