"""The free points of a support vector problem moved together: where steps on pairs creep, these go straight.

Few points stand between their bounds once the others have settled: in d dimensions of a linear kernel hardly more than
d + 1, and often as few of a polynomial one. Over them the problem is a small quadratic one with Σ β fixed, which a
factorization solves. Nothing is checked.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.svm.batch_rows import split, value
from gramgraph._numerics.svm.smo import TINY

__all__ = ["FEW", "free_points", "minimize_free"]

FEW = 64  # free points that are moved together, at most: beyond, steps on pairs are cheaper
_BOUNDS = 8  # bounds that one call runs into, at most
_RIDGE = 1e-10  # of the largest k(x, x): keeps the factor of points that depend on each other


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def free_points(beta, low, high, m):
    """Places of those of the first m points that stand between their bounds."""
    found = np.empty(m, np.int64)
    count = 0
    for k in range(m):
        if low[k] < beta[k] and beta[k] < high[k]:
            found[count] = k
            count += 1
    return found[:count]


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _factor(K, free, r, A):
    """Lower Cholesky factor of the products of φ_i − φ_r with each other, and a small ridge; whether there is one.

    Differences to the last point, whose β moves against those of the others: so Σ β stays as it is.
    """
    last = free[r - 1]
    own = np.float64(K[last, last])
    largest = 0.0
    for i in range(r - 1):
        largest = max(largest, K[free[i], free[i]] - 2.0 * K[last, free[i]] + own)
    for i in range(r - 1):
        for j in range(i + 1):
            s = K[free[i], free[j]] - K[last, free[i]] - K[last, free[j]] + own
            if i == j:
                s += _RIDGE * largest
            for t in range(j):
                s -= A[i, t] * A[j, t]
            if i > j:
                A[i, j] = s / A[j, j]
            elif s > 0.0:
                A[i, i] = np.sqrt(s)
            else:
                return False
    return True


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _solve(A, r, x):
    """x = (A Aᵀ)⁻¹ x."""
    for i in range(r):
        s = x[i]
        for j in range(i):
            s -= A[i, j] * x[j]
        x[i] = s / A[i, i]
    for i in range(r - 1, -1, -1):
        s = x[i]
        for j in range(i + 1, r):
            s -= A[j, i] * x[j]
        x[i] = s / A[i, i]


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _direction(K, free, r, f, A, u, v):
    """u = towards the minimum over the free points with Σ u = 0, v = K u; how far to go, below zero: nowhere."""
    if not _factor(K, free, r, A):
        return -1.0
    for i in range(r - 1):
        u[i] = f[r - 1] - f[i]
    _solve(A, r - 1, u)
    u[r - 1] = -u[: r - 1].sum()
    slope = 0.0
    curve = 0.0
    for i in range(r):
        v[i] = 0.0
        for j in range(r):
            v[i] += u[j] * K[free[i], free[j]]
        slope -= u[i] * f[i]
        curve += u[i] * v[i]
    return slope / max(curve, TINY) if slope > 0.0 else -1.0


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _go(free, r, beta, low, high, step, u):
    """β moves by at most step · u, up to the first bound: (how far, who met its bound or −1)."""
    stopped = -1
    for i in range(r):
        k = free[i]
        room = high[k] - beta[k] if u[i] > 0.0 else low[k] - beta[k]
        if u[i] != 0.0 and room / u[i] <= step:
            step = room / u[i]
            stopped = i
    for i in range(r):
        beta[free[i]] += step * u[i]
    if stopped >= 0:  # exactly, whatever rounding says
        beta[free[stopped]] = high[free[stopped]] if u[stopped] > 0.0 else low[free[stopped]]
    return step, stopped


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def minimize_free(free, beta, low, high, K, rise, fall):
    """Go to the minimum over the free points, whose rows of K are there; one that meets its bound stays there.

    β and f, in `rise` and `fall`, are changed in place, and the objective never grows.
    """
    size = free.shape[0]
    r = size
    m = rise.shape[0]
    A, u, v, f, before = np.empty((r, r)), np.empty(r), np.empty(r), np.empty(r), np.empty(r)
    for i in range(r):
        f[i] = value(free[i], rise, fall)
        before[i] = beta[free[i]]
    for _ in range(_BOUNDS):
        step = _direction(K, free, r, f, A, u, v) if r > 1 else -1.0
        if step <= 0.0:
            break
        step, stopped = _go(free, r, beta, low, high, step, u)
        for i in range(r):
            f[i] += step * v[i]
        if stopped < 0:
            break
        r -= 1  # who stopped goes behind the others
        free[stopped], free[r] = free[r], free[stopped]
        before[stopped], before[r] = before[r], before[stopped]
        f[stopped] = f[r]
    change = np.zeros(m)
    for i in range(size):
        by = beta[free[i]] - before[i]
        row = K[free[i]]
        for k in range(m):
            change[k] += by * row[k]
    for k in range(m):
        rise[k] += change[k]
        fall[k] += change[k]
    for i in range(r, size):
        k = free[i]
        split(k, value(k, rise, fall), beta, low, high, rise, fall)
