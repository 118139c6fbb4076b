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


@njit(cache=True, nogil=True, boundscheck=False)
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
    AP = np.empty((s, s))
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
                for j in range(s):
                    x = 0.0
                    for k in range(s):
                        x += F[i, k] * old_P[k, j]
                    AP[i, j] = x
            for i in range(s):
                for j in range(i + 1):
                    x = N[i, j]
                    for k in range(s):
                        x += AP[i, k] * F[j, k]
                    P[i, j] = x
                    P[j, i] = x
        c = 0
        for i in range(o):
            if not math.isnan(y[t, i]):
                seen[c] = i
                c += 1
        new_m, new_P = means[t], covs[t]
        put(m, new_m)
        put_matrix(P, new_P)
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
            for k in range(s):
                x = 0.0
                for l in range(s):
                    x += H[i, l] * P[l, k]
                G[a, k] = x
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
            for i in range(s):
                new_m[i] += G[a, i] * v[a]
                for j in range(s):
                    new_P[i, j] -= G[a, i] * G[a, j]
    return T


@njit(cache=True, nogil=True, boundscheck=False)
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


@njit(cache=True, nogil=True, boundscheck=False)
def filter_batch(A, Q, at, H, R, rt, y, m0, P0, means, covs, pred_means, pred_covs, logs, done):
    """`kalman_filter` of many series y (B, T, o) under one model; done[b] is its number of steps."""
    for b in range(y.shape[0]):
        done[b] = kalman_filter(
            A, Q, at, H, R, rt, y[b], m0, P0, means[b], covs[b], pred_means[b], pred_covs[b], logs[b]
        )


# --- stationary processes with one observed number a time: many columns share the covariance recursion ------------
