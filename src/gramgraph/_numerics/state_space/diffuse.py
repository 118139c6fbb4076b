"""Kalman filter from a first state that is unknown in some directions: x_0 ~ N(m0, L0 L0ᵀ + κ B Bᵀ) as κ → ∞.

A belief is a mean m, a root L of the finite part of the covariance, and columns B of the directions that are still
open. Observed numbers come one at a time (Durbin and Koopman, 2012, chapters 5 and 6). One that sees an open direction,
b = Bᵀ h ≠ 0, closes it: rotate the columns so that the first alone is seen, and with K = B₁ / |b|

    m ← m + K (y − hᵀ m),  L Lᵀ ← (I − K hᵀ) L Lᵀ (I − K hᵀ)ᵀ + r K Kᵀ,  B ← the other columns,

at log p = −½ (log 2π + log |b|²). With roots the number of open directions falls by one exactly: nothing is subtracted.
Log p(y) is thus the limit of log p_κ(y) + ½ (closed directions) log κ.

Matrices come in stacks with pointers as in `square_root.py`. Nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put, put_matrix
from gramgraph._numerics.state_space.square_root import root_move, triangular

_jit = njit(cache=True, nogil=True, boundscheck=False)
_LOG_2PI = 1.8378770664093453
#: |Bᵀ h| below this share of what rounding could leave of its terms is no sight of an open direction.
_UNSEEN = 1e-12


@_jit(no_cpython_wrapper=True)
def _whitened(R, H, y, rows, noise, z, W):
    """Observed entries made independent by a unit triangular map: values z, rows W, variances noise; their number."""
    o, s = H.shape
    c = 0
    for i in range(o):
        if not math.isnan(y[i]):
            rows[c] = i
            c += 1
    C = np.zeros((c, c))
    for a in range(c):
        i = rows[a]
        z[a] = y[i]
        put(H[i], W[a])
        for e in range(a):
            x = R[i, rows[e]]
            for k in range(e):
                x -= C[a, k] * noise[k] * C[e, k]
            C[a, e] = x / noise[e] if noise[e] > 0.0 else 0.0
        x = R[i, i]
        for e in range(a):
            x -= C[a, e] * noise[e] * C[a, e]
            z[a] -= C[a, e] * z[e]
            for k in range(s):
                W[a, k] -= C[a, e] * W[e, k]
        noise[a] = x if x > 1e-14 * R[i, i] else 0.0
    return c


@_jit
def _sight(B, q, h, size, b):
    """b = Bᵀ h into b, and its length; 0 where that is rounding. size (s,) is the largest norm that a row of B had."""
    s = h.shape[0]
    total, scale = 0.0, 0.0
    for j in range(q):
        x = 0.0
        for k in range(s):
            x += B[k, j] * h[k]
        b[j] = x
        total += x * x
    for k in range(s):
        scale += abs(h[k]) * size[k]
    length = math.sqrt(total)
    return length if length > _UNSEEN * scale else 0.0


@_jit
def _close(B, q, b, length, K):
    """The direction that is seen into K = B b / |b|², the others to the front of B."""
    s = B.shape[0]
    for i in range(s):
        x = 0.0
        for j in range(q):
            x += B[i, j] * b[j]
        K[i] = x / (length * length)
    first = b[0] + length if b[0] >= 0.0 else b[0] - length  # reflection that takes b to the first axis
    size = first * first
    for j in range(1, q):
        size += b[j] * b[j]
    for i in range(s):
        x = B[i, 0] * first
        for j in range(1, q):
            x += B[i, j] * b[j]
        x *= 2.0 / size
        for j in range(1, q):
            B[i, j - 1] = B[i, j] - x * b[j]
        B[i, q - 1] = 0.0


@_jit(no_cpython_wrapper=True)
def _look_open(h, r, K, m, L, v, work):
    """m and L after a number that closed a direction; work is (s, s + 1)."""
    s = m.shape[0]
    for i in range(s):
        m[i] += K[i] * v
    for j in range(s):
        x = 0.0
        for k in range(s):
            x += h[k] * L[k, j]
        for i in range(s):
            work[i, j] = L[i, j] - K[i] * x
    for i in range(s):
        work[i, s] = math.sqrt(r) * K[i]
    triangular(work, s, s + 1)
    for i in range(s):
        for j in range(s):
            L[i, j] = work[i, j] if j <= i else 0.0


@_jit(no_cpython_wrapper=True)
def _look_closed(h, r, m, L, v, work):
    """m and L after a number that sees no open direction; its log density, NaN where it has no variance."""
    s = m.shape[0]
    work[:] = 0.0  # (s + 1, s + 1)
    work[0, 0] = math.sqrt(r)
    for j in range(s):
        x = 0.0
        for k in range(s):
            x += h[k] * L[k, j]
        work[0, j + 1] = x
        for i in range(s):
            work[i + 1, j + 1] = L[i, j]
    triangular(work, s + 1, s + 1)
    if not work[0, 0] > 0.0:
        return math.nan
    z = v / work[0, 0]
    for i in range(s):
        m[i] += work[i + 1, 0] * z
        for j in range(s):
            L[i, j] = work[i + 1, j + 1] if j <= i else 0.0
    return -0.5 * (_LOG_2PI + 2.0 * math.log(work[0, 0]) + z * z)


@_jit(no_cpython_wrapper=True)
def _moved(A, B, q, size, work):
    """B ← A B; directions that A forgets are dropped. Their number."""
    s = B.shape[0]
    for i in range(s):
        for j in range(q):
            x = 0.0
            for k in range(s):
                x += A[i, k] * B[k, j]
            work[i, j] = x
    for i in range(s):
        norm = 0.0
        for j in range(q):
            B[i, j] = work[i, j]
            norm += work[i, j] * work[i, j]
        size[i] = max(size[i], math.sqrt(norm))
    if q > 0:
        inner = np.empty((q, q))
        for a in range(q):
            for c in range(q):
                x = 0.0
                for i in range(s):
                    x += B[i, a] * B[i, c]
                inner[a, c] = x
        values, V = np.linalg.eigh(inner)
        floor = 1e-26 * values[-1] * q
        if values[0] <= floor:
            kept = 0
            B[:] = 0.0
            for a in range(q):
                if values[a] > floor:
                    for i in range(s):
                        for c in range(q):
                            B[i, kept] += work[i, c] * V[c, a]
                    kept += 1
            return kept
    return q


@_jit
def diffuse_filter(
    A, Lq, at, b, H, ht, R, rt, y, first, m, L, B, q, size,
    means, roots, flats, open_, pred_means, pred_roots, pred_flats, pred_open, logs,
):  # fmt: skip
    """Steps of y (T, o) until no direction is open: (steps done, directions open, whether all went well).

    m, L, B (s, s, of which q columns count) and size (s,) hold the belief before the first of these steps, where
    `first` says that it is not to be moved there, and after the last one at the end. What was known at every step goes
    into means, roots, flats (T, s, s) with open_ (T,) columns, and the same before its observation.
    """
    T, o = y.shape
    s = m.shape[0]
    wide, taller, square = np.empty((s, s + Lq.shape[-1])), np.empty((s, s + 1)), np.empty((s + 1, s + 1))
    rows, noise, z, W = np.empty(o, np.int64), np.empty(o), np.empty(o), np.empty((o, s))
    seen, K, ahead, work = np.empty(s), np.empty(s), np.empty(s), np.empty((s, s))
    for t in range(T):
        if t > 0 or not first:
            root_move(A[at[t]], Lq[at[t]], b[min(t, b.shape[0] - 1)], m, L, ahead, L, wide)
            put(ahead, m)
            q = _moved(A[at[t]], B, q, size, work)
        put(m, pred_means[t])
        put_matrix(L, pred_roots[t])
        put_matrix(B, pred_flats[t])
        pred_open[t] = q
        logs[t] = 0.0
        for a in range(_whitened(R[rt[t]], H[ht[t]], y[t], rows, noise, z, W)):
            v = z[a]
            for k in range(s):
                v -= W[a, k] * m[k]
            length = _sight(B, q, W[a], size, seen) if q > 0 else 0.0
            if length > 0.0:
                _close(B, q, seen, length, K)
                q -= 1
                _look_open(W[a], noise[a], K, m, L, v, taller)
                logs[t] -= 0.5 * _LOG_2PI + math.log(length)
            else:
                log = _look_closed(W[a], noise[a], m, L, v, square)
                if math.isnan(log):
                    return t, q, False
                logs[t] += log
        put(m, means[t])
        put_matrix(L, roots[t])
        put_matrix(B, flats[t])
        open_[t] = q
        if q == 0:
            return t + 1, q, True
    return T, q, True
