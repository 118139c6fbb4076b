"""Kalman filter on square roots of covariances: P = L Lᵀ stays positive semidefinite whatever the rounding.

x_t = A[at[t]] x_{t−1} + b[t] + N(0, Lq Lqᵀ), y_t = H[ht[t]] x_t + N(0, R[rt[t]]), x_0 ~ N(m0, L0 L0ᵀ), with
Lq = Lq[at[t]]. Both updates are one triangularization of an array (Kailath, Sayed and Hassibi, 2000): orthogonal maps
of its columns keep its product with itself. Matrices come in stacks with pointers, constant ones stored once;
`b` has T rows or one. Lq has no more columns than there are noises. NaN entries of y were not observed.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put, put_matrix

_jit = njit(cache=True, nogil=True, boundscheck=False)
_vector_sums = njit(cache=True, nogil=True, boundscheck=False, fastmath={"reassoc", "contract"})
_LOG_2PI = 1.8378770664093453
_LOST = 64.0 * 2.220446049250313e-16  # of a deviation: a pivot below this, times the size, has hardly a digit left


@_vector_sums
def _dot(x, y):
    t = 0.0
    for k in range(x.shape[0]):
        t += x[k] * y[k]
    return t


@_jit(no_cpython_wrapper=True)
def triangular(M, rows, cols):
    """Make the first `rows` rows of M lower triangular by reflections of its first `cols` columns, diagonal ≥ 0."""
    mirror = np.empty(cols)
    for i in range(min(rows, cols)):
        v = mirror[i:cols]  # parts of rows are views whose entries are counted from 0: such loops use vector registers
        put(M[i, i:cols], v)
        norm = math.sqrt(_dot(v, v))
        if norm == 0.0:
            continue
        alpha = -norm if v[0] > 0.0 else norm
        v[0] -= alpha
        size = _dot(v, v)
        if size > 0.0:
            for r in range(i, rows):
                row = M[r, i:cols]
                x = _dot(row, v) * (2.0 / size)
                if x != 0.0:
                    for k in range(v.shape[0]):
                        row[k] -= x * v[k]
        if M[i, i] < 0.0:
            for r in range(i, rows):
                M[r, i] = -M[r, i]
        for k in range(i + 1, cols):
            M[i, k] = 0.0


@_jit(no_cpython_wrapper=True)
def root_move(F, N, shift, m, L, new_m, new, wide):
    """new_m = F m + shift and new = root of F L Lᵀ Fᵀ + N Nᵀ; new may be L, new_m not m.

    N (s, c) may have fewer columns than rows; wide (s, s + c) is for work.
    """
    s, c = N.shape
    for i in range(s):
        x = shift[i]
        for k in range(s):
            x += F[i, k] * m[k]
        new_m[i] = x
        row = wide[i]
        for j in range(s):
            row[j] = 0.0
        for j in range(c):
            row[s + j] = N[i, j]
        for k in range(s):
            a, old = F[i, k], L[k]
            if a != 0.0:
                for j in range(k + 1):
                    row[j] += a * old[j]
    triangular(wide, s, s + c)
    for i in range(s):
        for j in range(s):
            new[i, j] = wide[i, j] if j <= i else 0.0


@_jit(no_cpython_wrapper=True)
def look_at_one(h, r, gap, m, L, gain):
    """m and L after one number with variance r, by a rotation for every column of L; log p, NaN where it has none."""
    s = m.shape[0]
    for i in range(s):
        gain[i] = 0.0
    spread = math.sqrt(r)
    for j in range(s - 1, -1, -1):
        x = 0.0
        for k in range(j, s):
            x += h[k] * L[k, j]
        norm = math.sqrt(spread * spread + x * x)
        if x == 0.0 or norm == 0.0:
            continue
        a, b = spread / norm, x / norm
        spread = norm
        for i in range(j, s):
            g, l = gain[i], L[i, j]
            gain[i] = a * g + b * l
            L[i, j] = a * l - b * g
    if not spread > 0.0:
        return math.nan
    z = gap / spread
    for i in range(s):
        m[i] += gain[i] * z
    return -0.5 * (_LOG_2PI + 2.0 * math.log(spread) + z * z)


@_jit(no_cpython_wrapper=True)
def _is_rounding(both, c, s):
    """Whether what one of c observations has beyond those before it, a pivot, is rounding of what they explain."""
    for a in range(1, c):
        before = 0.0
        for e in range(a):
            before += both[a, e] * both[a, e]
        if not both[a, a] > (c + s) * _LOST * math.sqrt(before):
            return True
    return False


@_jit(no_cpython_wrapper=True)
def root_look(G, noise, y, m, L, both, v):
    """m and L after the observation y; log p(y), or NaN, and nothing done, where it has a direction without variance.

    A direction whose deviation is within rounding, 64 (c + s) ε of what the observations before it explain, has none.

    both (o + s, o + s) and v (o,) are for work.
    """
    o, s = y.shape[0], m.shape[0]
    if o == 1:
        if math.isnan(y[0]):
            return 0.0
        gap = y[0]
        for k in range(s):
            gap -= G[0, k] * m[k]
        return look_at_one(G[0], noise[0, 0], gap, m, L, both[0])
    c = 0
    both[:] = 0.0
    for i in range(o):
        if math.isnan(y[i]):
            continue
        x = y[i]
        for k in range(s):
            x -= G[i, k] * m[k]
        v[c] = x
        e = 0
        for u in range(i + 1):  # root of the noise among what was observed
            if math.isnan(y[u]):
                continue
            x = noise[i, u]
            for k in range(e):
                x -= both[c, k] * both[e, k]
            if e == c:
                both[c, c] = math.sqrt(x) if x > 0.0 else 0.0
            else:
                both[c, e] = x / both[e, e] if both[e, e] > 0.0 else 0.0
            e += 1
        c += 1
    if c == 0:
        return 0.0
    a = 0
    for i in range(o):
        if math.isnan(y[i]):
            continue
        for j in range(s):
            x = 0.0
            for k in range(j, s):
                x += G[i, k] * L[k, j]
            both[a, c + j] = x
        a += 1
    for i in range(s):
        for j in range(i + 1):
            both[c + i, c + j] = L[i, j]
    triangular(both, c + s, c + s)
    total = c * _LOG_2PI
    if _is_rounding(both, c, s):
        return math.nan
    for a in range(c):
        if not both[a, a] > 0.0:
            return math.nan
        for e in range(a):
            v[a] -= both[a, e] * v[e]
        v[a] /= both[a, a]
        total += 2.0 * math.log(both[a, a]) + v[a] * v[a]
    for i in range(s):
        for a in range(c):
            m[i] += both[c + i, a] * v[a]
        for j in range(s):
            L[i, j] = both[c + i, c + j] if j <= i else 0.0
    return -0.5 * total


@_jit
def square_root_filter(A, Lq, at, b, H, ht, R, rt, y, m0, L0, means, roots, pred_means, pred_roots, logs):
    """Filtered and predicted means and roots of one series y (T, o), and log p(y_t | y_<t).

    Returns the number of steps done: T, or the step whose innovation has a direction without variance.
    """
    T, o = y.shape
    s = m0.shape[0]
    wide, both, v = np.empty((s, s + Lq.shape[-1])), np.empty((o + s, o + s)), np.empty(o)
    for t in range(T):
        m, L = pred_means[t], pred_roots[t]
        if t == 0:
            put(m0, m)
            put_matrix(L0, L)
        else:
            root_move(A[at[t]], Lq[at[t]], b[min(t, b.shape[0] - 1)], means[t - 1], roots[t - 1], m, L, wide)
        put(m, means[t])
        put_matrix(L, roots[t])
        logs[t] = root_look(H[ht[t]], R[rt[t]], y[t], means[t], roots[t], both, v)
        if math.isnan(logs[t]):
            return t
    return T


@_jit
def square_root_stream(A, Lq, shifts, H, R, y, fresh, total, mean, root, means):
    """The filter as rows y (n, o) come: mean and root are changed in place, means (n, s) are those after each row.

    shifts has a row a step, or one; the first row of a fresh stream is not moved to. (rows done, total + log p(y));
    where not all are done, mean and root are as they were.
    """
    n, o = y.shape
    s = mean.shape[0]
    wide, both, v = np.empty((s, s + Lq.shape[-1])), np.empty((o + s, o + s)), np.empty(o)
    m, ahead, L = mean.copy(), np.empty(s), root.copy()
    for t in range(n):
        if t > 0 or not fresh:
            root_move(A, Lq, shifts[min(t, shifts.shape[0] - 1)], m, L, ahead, L, wide)
            put(ahead, m)
        log = root_look(H, R, y[t], m, L, both, v)
        if math.isnan(log):
            return t, total
        total += log
        put(m, means[t])
    put(m, mean)
    put_matrix(L, root)
    return n, total
