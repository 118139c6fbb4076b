"""Kalman filter and Rauch–Tung–Striebel smoother of linear-Gaussian state spaces.

x_t = A[at[t]] x_{t−1} + N(0, Q[at[t]]), y_t = H x_t + N(0, R[rt[t]]), x_0 ~ N(m0, P0). `at` and `rt` point into stacks
of matrices, so that even steps share one matrix and uneven ones have one each; at[0] is not used. NaN entries of y
were not observed. Arrays are C-ordered float64; nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put, put_matrix

_LOG_2PI = 1.8378770664093453
_FEW = 4  # states: products of smaller matrices are summed entry by entry


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _cholesky(S, o):
    """The lower factor of the leading (o, o) corner in place; False when a pivot is not positive."""
    for i in range(o):
        for j in range(i + 1):
            t = S[i, j]
            for k in range(j):
                t -= S[i, k] * S[j, k]
            if i == j:
                if not t > 0.0:
                    return False
                S[i, i] = math.sqrt(t)
            else:
                S[i, j] = t / S[j, j]
    return True


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _combined(x, X, out):
    """xᵀ X by rows of X, which run along memory; those that x leaves out cost nothing."""
    s = X.shape[1]
    for j in range(s):
        out[j] = 0.0
    for k in range(X.shape[0]):
        a, row = x[k], X[k]
        if a != 0.0:
            for j in range(s):
                out[j] += a * row[j]


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _entries(A, columns, counts):
    """Where the entries of every row of A are that are not zero."""
    for i in range(A.shape[0]):
        n = 0
        for k in range(A.shape[1]):
            if A[i, k] != 0.0:
                columns[i, n] = k
                n += 1
        counts[i] = n


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _product(A, columns, counts, X, out):
    """A X by rows of X; entries of A that are zero cost nothing."""
    s = X.shape[1]
    for i in range(A.shape[0]):
        into = out[i]
        for j in range(s):
            into[j] = 0.0
        for e in range(counts[i]):
            k = columns[i, e]
            a, row = A[i, k], X[k]
            for j in range(s):
                into[j] += a * row[j]


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _transposed(X, out):
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[j, i] = X[i, j]


@njit(cache=True, nogil=True, boundscheck=False, forceinline=True, no_cpython_wrapper=True)
def _moved(F, N, P, FP, out):
    """F P Fᵀ + N entry by entry: for few states, where rows are too short to be worth an inner loop of their own."""
    s = F.shape[0]
    for i in range(s):
        for j in range(s):
            x = 0.0
            for k in range(s):
                x += F[i, k] * P[k, j]
            FP[i, j] = x
    for i in range(s):
        for j in range(i + 1):
            x = N[i, j]
            for k in range(s):
                x += FP[i, k] * F[j, k]
            out[i, j] = x
            out[j, i] = x


@njit(cache=True, nogil=True, boundscheck=False)
def kalman_filter(A, Q, at, H, R, rt, y, m0, P0, means, covs, pred_means, pred_covs, logs):
    """Filtered and predicted moments of one series y (T, o), and log p(y_t | y_<t) into logs (T,).

    Returns the number of steps done: T, or the step whose innovation covariance was not positive definite.
    """
    T, o = y.shape
    s = m0.shape[0]
    seen = np.empty(o, dtype=np.int64)
    S = np.empty((o, o))
    G = np.empty((o, s))
    v = np.empty(o)
    AP, turned = np.empty((s, s)), np.empty((s, s))
    columns, counts, last = np.empty((s, s), np.int64), np.empty(s, np.int64), np.int64(-1)
    for t in range(T):
        m, P = pred_means[t], pred_covs[t]
        if t == 0:
            put(m0, m)
            put_matrix(P0, P)
        else:
            F, N, old_m, old_P = A[at[t]], Q[at[t]], means[t - 1], covs[t - 1]
            for i in range(s):
                x = 0.0
                for k in range(s):
                    x += F[i, k] * old_m[k]
                m[i] = x
            if s <= _FEW:
                _moved(F, N, old_P, AP, P)
            else:
                if at[t] != last:
                    _entries(F, columns, counts)
                    last = at[t]
                _product(F, columns, counts, old_P, AP)
                _transposed(AP, turned)
                _product(F, columns, counts, turned, P)
                for i in range(s):
                    for j in range(i):
                        x = 0.5 * (P[i, j] + P[j, i]) + N[i, j]
                        P[i, j] = x
                        P[j, i] = x
                    P[i, i] += N[i, i]
        c = 0
        for i in range(o):
            if not math.isnan(y[t, i]):
                seen[c] = i
                c += 1
        new_m, new_P = means[t], covs[t]
        for i in range(s):
            new_m[i] = m[i]
            for j in range(s):
                new_P[i, j] = P[i, j]
        logs[t] = 0.0
        if c == 0:
            continue
        noise = R[rt[t]]
        for a in range(c):
            i = seen[a]
            x = y[t, i]
            for k in range(s):
                x -= H[i, k] * m[k]
            v[a] = x
            if s <= _FEW:
                for j in range(s):
                    x = 0.0
                    for k in range(s):
                        x += H[i, k] * P[k, j]
                    G[a, j] = x
            else:
                _combined(H[i], P, G[a])
            for b in range(a + 1):
                j = seen[b]
                x = noise[i, j]
                for k in range(s):
                    x += G[a, k] * H[j, k]
                S[a, b] = x
        if not _cholesky(S, c):
            return t
        total = c * _LOG_2PI
        for a in range(c):  # v ← L⁻¹ v and G ← L⁻¹ G: the update is then a sum of outer products
            for b in range(a):
                v[a] -= S[a, b] * v[b]
                for k in range(s):
                    G[a, k] -= S[a, b] * G[b, k]
            v[a] /= S[a, a]
            total += 2.0 * math.log(S[a, a]) + v[a] * v[a]
            for k in range(s):
                G[a, k] /= S[a, a]
        logs[t] = -0.5 * total
        for a in range(c):
            g = G[a]
            for i in range(s):
                x, row = g[i], new_P[i]
                new_m[i] += x * v[a]
                for j in range(s):
                    row[j] -= x * g[j]
    return T


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _gain(P, F, predicted, floor, L, out):
    """P Fᵀ predicted⁻¹ by Cholesky; directions without variance (a state that never moves) get no gain."""
    s = P.shape[0]
    for i in range(s):
        for j in range(i + 1):
            t = predicted[i, j]
            for k in range(j):
                t -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = math.sqrt(t) if t > floor * predicted[i, i] else 0.0
            else:
                L[i, j] = t / L[j, j] if L[j, j] > 0.0 else 0.0
    for r in range(s):
        row = out[r]
        for i in range(s):
            x = 0.0
            for k in range(s):
                x += P[r, k] * F[i, k]
            for k in range(i):
                x -= L[i, k] * row[k]
            row[i] = x / L[i, i] if L[i, i] > 0.0 else 0.0
        for i in range(s - 1, -1, -1):
            x = row[i]
            for k in range(i + 1, s):
                x -= L[k, i] * row[k]
            row[i] = x / L[i, i] if L[i, i] > 0.0 else 0.0


@njit(cache=True, nogil=True, boundscheck=False)
def rts_smoother(A, at, means, covs, pred_means, pred_covs, smooth_means, smooth_covs, gains):
    """Smoothed moments; gains[t] carries from t + 1 to t: Cov(x_t, x_{t+1} | y) = gains[t] @ smooth_covs[t + 1]."""
    T, s = means.shape
    put(means[T - 1], smooth_means[T - 1])
    put_matrix(covs[T - 1], smooth_covs[T - 1])
    L = np.zeros((s, s))
    gap = np.empty((s, s))
    GP = np.empty((s, s))
    for t in range(T - 2, -1, -1):
        G = gains[t]
        _gain(covs[t], A[at[t + 1]], pred_covs[t + 1], 1e-15, L, G)
        for i in range(s):
            x = means[t, i]
            for k in range(s):
                x += G[i, k] * (smooth_means[t + 1, k] - pred_means[t + 1, k])
            smooth_means[t, i] = x
            for j in range(s):
                gap[i, j] = smooth_covs[t + 1, i, j] - pred_covs[t + 1, i, j]
        for i in range(s):
            for j in range(s):
                x = 0.0
                for k in range(s):
                    x += G[i, k] * gap[k, j]
                GP[i, j] = x
        for i in range(s):
            for j in range(i + 1):
                x = covs[t, i, j]
                for k in range(s):
                    x += GP[i, k] * G[j, k]
                smooth_covs[t, i, j] = x
                smooth_covs[t, j, i] = x


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _learned(H, y, noise, m, P, r, N, work):
    """Score r and information N of a predicted state, made those with the observation y too; False: no variance.

    work is (o, s) three times, (o, o) twice, (o,) twice, and the observed entries (o,).
    """
    G, K, NK, S, I, v, w, seen = work
    s = m.shape[0]
    c = 0
    for i in range(y.shape[0]):
        if not math.isnan(y[i]):
            seen[c] = i
            c += 1
    for a in range(c):
        i = seen[a]
        _combined(H[i], P, G[a])
        v[a] = y[i]
        for k in range(s):
            v[a] -= H[i, k] * m[k]
        for b in range(a + 1):
            x = noise[i, seen[b]]
            for k in range(s):
                x += G[a, k] * H[seen[b], k]
            S[a, b] = x
    if not _cholesky(S, c):
        return False
    for b in range(c):  # I ← S⁻¹, a column at a time
        for a in range(c):
            x = 1.0 if a == b else 0.0
            for k in range(a):
                x -= S[a, k] * I[k, b]
            I[a, b] = x / S[a, a]
        for a in range(c - 1, -1, -1):
            x = I[a, b]
            for k in range(a + 1, c):
                x -= S[k, a] * I[k, b]
            I[a, b] = x / S[a, a]
    for a in range(c):  # gains K = S⁻¹ H P, and w = S⁻¹ v − K r
        row = K[a]
        for k in range(s):
            row[k] = 0.0
        w[a] = 0.0
        for b in range(c):
            x, other = I[a, b], G[b]
            w[a] += x * v[b]
            for k in range(s):
                row[k] += x * other[k]
        for k in range(s):
            w[a] -= row[k] * r[k]
        _combined(row, N, NK[a])
    for a in range(c):
        for b in range(a + 1):
            x = I[a, b]
            for k in range(s):
                x += K[a, k] * NK[b, k]
            S[a, b] = x
            S[b, a] = x
    for a in range(c):  # N ← (I − Hᵀ K) N (I − Kᵀ H) + Hᵀ S⁻¹ H
        h, n = H[seen[a]], NK[a]
        for i in range(s):
            row = N[i]
            r[i] += h[i] * w[a]
            x = n[i]
            if h[i] != 0.0:
                for j in range(s):
                    row[j] -= h[i] * n[j]
            for j in range(s):
                row[j] -= x * h[j]
            if h[i] != 0.0:
                for b in range(c):
                    x, other = h[i] * S[a, b], H[seen[b]]
                    for j in range(s):
                        row[j] += x * other[j]
    return True


@njit(cache=True, nogil=True, boundscheck=False)
def scores_backward(A, at, H, ht, R, rt, y, lo, hi, means, covs, pred_means, pred_covs, r, N, smooth_means, C, infos):
    """Means of steps lo … hi − 1 given all observations, what comes later being known as r and N (Bryson and Frazier).

    r (s,) and N (s, s), the score and the information of the observations from step hi on about the predicted state,
    become those from lo on. C (hi − lo, s, s) gets P_t Aᵀ, P_t the filtered covariance, and infos the N of step t + 1:
    covariances are then P_t − C N Cᵀ, and Cov(x_t, x_{t+1}) = C − C N predicted_{t+1}. Nothing is inverted but the
    covariances of observations. False where one of these has a direction without variance.
    """
    T, o = y.shape
    s = means.shape[1]
    AP, turned, back, moved = np.empty((s, s)), np.empty((s, s)), np.empty((s, s)), np.empty(s)
    work = (
        np.empty((o, s)), np.empty((o, s)), np.empty((o, s)), np.empty((o, o)), np.empty((o, o)), np.empty(o),
        np.empty(o), np.empty(o, np.int64),
    )  # fmt: skip
    columns, counts, last = np.empty((s, s), np.int64), np.empty(s, np.int64), np.int64(-1)
    back_columns, back_counts = np.empty((s, s), np.int64), np.empty(s, np.int64)
    for t in range(hi - 1, lo - 1, -1):
        put(means[t], smooth_means[t])
        if t + 1 < T:
            F = A[at[t + 1]]
            if at[t + 1] != last:
                last = at[t + 1]
                _transposed(F, back)
                _entries(F, columns, counts)
                _entries(back, back_columns, back_counts)
            _product(F, columns, counts, covs[t], AP)
            _transposed(AP, C[t - lo])
            put_matrix(N, infos[t - lo])
            _combined(r, AP, moved)
            for i in range(s):
                smooth_means[t, i] += moved[i]
            _combined(r, F, moved)
            put(moved, r)
            _product(back, back_columns, back_counts, N, AP)
            _transposed(AP, turned)
            _product(back, back_columns, back_counts, turned, N)
        else:
            for i in range(s):
                for j in range(s):
                    C[t - lo, i, j] = 0.0
                    infos[t - lo, i, j] = 0.0
        if not _learned(H[ht[t]], y[t], R[rt[t]], pred_means[t], pred_covs[t], r, N, work):
            return False
    return True


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def filter_batch(A, Q, at, H, R, rt, y, m0, P0, means, covs, pred_means, pred_covs, logs, done):
    """`kalman_filter` of many series y (B, T, o) under one model; done[b] is its number of steps."""
    for b in range(y.shape[0]):
        done[b] = kalman_filter(
            A, Q, at, H, R, rt, y[b], m0, P0, means[b], covs[b], pred_means[b], pred_covs[b], logs[b]
        )


# --- stationary processes with one observed number a time: many columns share the covariance recursion ------------
