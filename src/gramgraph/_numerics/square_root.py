"""Kalman filter on square roots of covariances: P = L Lᵀ stays positive semidefinite whatever the rounding.

x_t = A[at[t]] x_{t−1} + b[t] + N(0, Lq Lqᵀ), y_t = H[ht[t]] x_t + N(0, R[rt[t]]), x_0 ~ N(m0, L0 L0ᵀ), with
Lq = Lq[at[t]]. Both updates are one triangularization of an array (Kailath, Sayed and Hassibi, 2000): orthogonal maps
of its columns keep its product with itself. Matrices come in stacks with pointers, constant ones stored once;
`b` has T rows or one. NaN entries of y were not observed.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)
_LOG_2PI = 1.8378770664093453


@_jit
def triangular(M, rows, cols):
    """Make the first `rows` rows of M lower triangular by reflections of its first `cols` columns, diagonal ≥ 0."""
    v = np.empty(cols)
    for i in range(min(rows, cols)):
        norm = 0.0
        for k in range(i, cols):
            norm += M[i, k] * M[i, k]
        norm = math.sqrt(norm)
        if norm == 0.0:
            continue
        alpha = -norm if M[i, i] > 0.0 else norm
        for k in range(i, cols):
            v[k] = M[i, k]
        v[i] -= alpha
        size = 0.0
        for k in range(i, cols):
            size += v[k] * v[k]
        if size > 0.0:
            for r in range(i, rows):
                x = 0.0
                for k in range(i, cols):
                    x += M[r, k] * v[k]
                x *= 2.0 / size
                for k in range(i, cols):
                    M[r, k] -= x * v[k]
        if M[i, i] < 0.0:
            for r in range(i, rows):
                M[r, i] = -M[r, i]
        for k in range(i + 1, cols):
            M[i, k] = 0.0


@_jit
def square_root_filter(A, Lq, at, b, H, ht, R, rt, y, m0, L0, means, roots, pred_means, pred_roots, logs):
    """Filtered and predicted means and roots of one series y (T, o), and log p(y_t | y_<t).

    Returns the number of steps done: T, or the step whose innovation has a direction without variance.
    """
    T, o = y.shape
    s = m0.shape[0]
    wide = np.empty((s, 2 * s))
    both = np.empty((o + s, o + s))
    seen = np.empty(o, dtype=np.int64)
    v = np.empty(o)
    for t in range(T):
        m, L = pred_means[t], pred_roots[t]
        if t == 0:
            m[:] = m0
            L[:] = L0
        else:
            F, N, old_m, old = A[at[t]], Lq[at[t]], means[t - 1], roots[t - 1]
            shift = b[min(t, b.shape[0] - 1)]
            for i in range(s):
                x = shift[i]
                for k in range(s):
                    x += F[i, k] * old_m[k]
                m[i] = x
                for j in range(s):
                    x = 0.0
                    for k in range(j, s):
                        x += F[i, k] * old[k, j]
                    wide[i, j] = x
                    wide[i, s + j] = N[i, j]
            triangular(wide, s, 2 * s)
            for i in range(s):
                for j in range(s):
                    L[i, j] = wide[i, j] if j <= i else 0.0
        new_m, new = means[t], roots[t]
        new_m[:] = m
        new[:] = L
        logs[t] = 0.0
        c = 0
        for i in range(o):
            if not math.isnan(y[t, i]):
                seen[c] = i
                c += 1
        if c == 0:
            continue
        G, noise = H[ht[t]], R[rt[t]]
        both[:] = 0.0
        for a in range(c):
            i = seen[a]
            x = y[t, i]
            for k in range(s):
                x -= G[i, k] * m[k]
            v[a] = x
            for e in range(a + 1):  # root of the noise among what was observed
                x = noise[i, seen[e]]
                for k in range(e):
                    x -= both[a, k] * both[e, k]
                if e == a:
                    both[a, a] = math.sqrt(x) if x > 0.0 else 0.0
                else:
                    both[a, e] = x / both[e, e] if both[e, e] > 0.0 else 0.0
            for j in range(s):
                x = 0.0
                for k in range(j, s):
                    x += G[i, k] * L[k, j]
                both[a, c + j] = x
        for i in range(s):
            for j in range(i + 1):
                both[c + i, c + j] = L[i, j]
        triangular(both, c + s, c + s)
        total = c * _LOG_2PI
        for a in range(c):
            if not both[a, a] > 0.0:
                return t
            for e in range(a):
                v[a] -= both[a, e] * v[e]
            v[a] /= both[a, a]
            total += 2.0 * math.log(both[a, a]) + v[a] * v[a]
        logs[t] = -0.5 * total
        for i in range(s):
            for a in range(c):
                new_m[i] += both[c + i, a] * v[a]
            for j in range(s):
                new[i, j] = both[c + i, c + j] if j <= i else 0.0
    return T
