"""Numba: messages along a chain whose step matrices depend on what was seen at each step."""

from __future__ import annotations

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def forward_steps(start, steps, which, out, totals):
    """out[t] ∝ out[t − 1] @ steps[which[t]] (out[−1] is `start`), each sum to one; totals[t] is what it summed to.

    Returns the number of rows done: all, or the row that no state reaches.
    """
    n, K = out.shape
    before = start
    for t in range(n):
        M, now = steps[which[t]], out[t]
        now[:] = 0.0
        for i in range(K):
            if before[i] > 0.0:
                for j in range(K):
                    now[j] += before[i] * M[i, j]
        total = 0.0
        for j in range(K):
            total += now[j]
        if not total > 0.0:
            return t
        for j in range(K):
            now[j] /= total
        totals[t] = total
        before = now
    return n


@_jit
def backward_steps(end, steps, which, out):
    """out[t] ∝ steps[which[t]] @ out[t + 1] (out[n] is `end`), the largest entry one: what the later rows say."""
    n, K = out.shape
    after = end
    for t in range(n - 1, -1, -1):
        M, now = steps[which[t]], out[t]
        top = 0.0
        for i in range(K):
            x = 0.0
            for j in range(K):
                x += M[i, j] * after[j]
            now[i] = x
            top = max(top, x)
        for i in range(K):
            now[i] /= top
        after = now
