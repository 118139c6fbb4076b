"""Exact diffuse likelihood of one number a step, with its gradient in the variances of the noises.

x_t = A x_{t−1} + N(0, diag(q)), y_t = H[ht[t]] x_t + N(0, r), nothing known of x_0. A is sparse: row i has the entries
cols[starts[i] : starts[i + 1]] with these values. Forward as in `diffuse.py`, with covariances in the place of roots;
backward the score vector ρ and information N of a state given all that comes at it and after it (de Jong's recursion):
∂ log p / ∂ q_i = ½ Σ_t (ρ_i² − N_ii). Unlike expected moments, these are right at variances of zero too.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put, put_matrix
from gramgraph._numerics.state_space.diffuse import _close, _sight

_jit = njit(cache=True, nogil=True, boundscheck=False)
_LOG_2PI = 1.8378770664093453


@_jit
def _times(starts, cols, values, X, width, out):
    """A X of the first columns of X."""
    for i in range(starts.shape[0] - 1):
        for j in range(width):
            out[i, j] = 0.0
        for e in range(starts[i], starts[i + 1]):
            a, k = values[e], cols[e]
            for j in range(width):
                out[i, j] += a * X[k, j]


@_jit
def _both(starts, cols, values, X, half, out):
    """A X Aᵀ of a symmetric X."""
    s = X.shape[0]
    _times(starts, cols, values, X, s, half)
    for i in range(s):
        for j in range(i + 1):
            x = 0.0
            for e in range(starts[j], starts[j + 1]):
                x += values[e] * half[i, cols[e]]
            out[i, j] = x
            out[j, i] = x


def _dense(starts, cols, values):
    s = starts.shape[0] - 1
    A = np.zeros((s, s))
    np.add.at(A, (np.repeat(np.arange(s), np.diff(starts)), cols), values)
    return A


def _filter_by_matrices(starts, cols, values, q, H, ht, r, y, kinds, v, F, gains):
    A, Q = _dense(starts, cols, values), np.diag(q)
    T, s = y.shape[0], q.shape[0]
    m, P, B, n_open = np.zeros(s), np.zeros((s, s)), np.eye(s), s
    size, seen, K = np.ones(s), np.empty(s), np.empty(s)
    total, squares, count = 0.0, 0.0, 0
    for t in range(T):
        if t > 0:
            m, P = A @ m, A @ P @ A.T + Q
            if n_open > 0:
                B[:, :n_open] = A @ B[:, :n_open]
                size = np.maximum(size, np.sqrt((B[:, :n_open] ** 2).sum(axis=1)))
        kinds[t] = 0
        if math.isnan(y[t]):
            continue
        h = H[ht[t]]
        Ph = P @ h
        gap, spread = float(y[t] - h @ m), float(r + h @ Ph)
        v[t] = gap
        length = _sight.plain(B, n_open, h, size, seen) if n_open > 0 else 0.0
        if length > 0.0:
            kinds[t], F[t] = 2, length * length
            _close.plain(B, n_open, seen, length, K)
            n_open -= 1
            total -= 0.5 * _LOG_2PI + math.log(length)
            gains[t] = K
            m = m + K * gap
            P = P + spread * np.outer(K, K) - np.outer(Ph, K) - np.outer(K, Ph)
            continue
        if not spread > 0.0:
            return -math.inf, squares, count
        kinds[t], F[t] = 1, spread
        count += 1
        squares += gap * gap / spread
        total -= 0.5 * (_LOG_2PI + math.log(spread) + gap * gap / spread)
        gain = gains[t] = Ph / spread
        m = m + gain * gap
        P = P - np.outer(Ph, gain)
    return total, squares, count


@_jit(plain=_filter_by_matrices)
def scalar_filter(starts, cols, values, q, H, ht, r, y, kinds, v, F, gains):
    """(log p(y), Σ v² / F, how many numbers closed no direction, log p without those that did).

    kinds (T,) says what an observation did: 0 none, 1 an ordinary one, 2 closed an open direction. v and F are
    innovations and variances, gains (T, s) P h / F. log p is −inf where an innovation has no variance.
    """
    T, s = y.shape[0], q.shape[0]
    m, P, B, n_open = np.zeros(s), np.zeros((s, s)), np.eye(s), s
    size, seen, K = np.ones(s), np.empty(s), np.empty(s)
    half, Ph, moved = np.empty((s, s)), np.empty(s), np.empty(s)
    total, squares, count = 0.0, 0.0, 0
    for t in range(T):
        if t > 0:
            for i in range(s):
                x = 0.0
                for e in range(starts[i], starts[i + 1]):
                    x += values[e] * m[cols[e]]
                moved[i] = x
            put(moved, m)
            _both(starts, cols, values, P, half, P)
            for i in range(s):
                P[i, i] += q[i]
            if n_open > 0:
                _times(starts, cols, values, B, n_open, half)
                put_matrix(half[:, :n_open], B)
                for i in range(s):
                    x = 0.0
                    for j in range(n_open):
                        x += B[i, j] * B[i, j]
                    size[i] = max(size[i], math.sqrt(x))
        kinds[t] = 0
        if math.isnan(y[t]):
            continue
        h = H[ht[t]]
        gap, spread = y[t], r
        for i in range(s):
            x = 0.0
            for k in range(s):
                x += P[i, k] * h[k]
            Ph[i] = x
            spread += h[i] * x
            gap -= h[i] * m[i]
        v[t] = gap
        length = _sight(B, n_open, h, size, seen) if n_open > 0 else 0.0
        if length > 0.0:
            kinds[t], F[t] = 2, length * length
            _close(B, n_open, seen, length, K)
            n_open -= 1
            total -= 0.5 * _LOG_2PI + math.log(length)
            for i in range(s):
                gains[t, i] = K[i]
                m[i] += K[i] * gap
                for j in range(i + 1):
                    P[i, j] += spread * K[i] * K[j] - Ph[i] * K[j] - K[i] * Ph[j]
                    P[j, i] = P[i, j]
            continue
        if not spread > 0.0:
            return -math.inf, squares, count
        kinds[t], F[t] = 1, spread
        count += 1
        squares += gap * gap / spread
        total -= 0.5 * (_LOG_2PI + math.log(spread) + gap * gap / spread)
        for i in range(s):
            K[i] = Ph[i] / spread
            gains[t, i] = K[i]
            m[i] += K[i] * gap
        for i in range(s):
            for j in range(i + 1):
                P[i, j] -= Ph[i] * K[j]
                P[j, i] = P[i, j]
    return total, squares, count


def _score_by_matrices(starts, cols, values, H, ht, kinds, v, F, gains, score):
    A = _dense(starts, cols, values)
    T, s = gains.shape
    rho, N = np.zeros(s), np.zeros((s, s))
    score[:] = 0.0
    for t in range(T - 1, -1, -1):
        if kinds[t] > 0:
            h, K = H[ht[t]], gains[t]
            NK = N @ K
            u, told = float(K @ rho), float(K @ NK)
            own, sure = (v[t] / F[t], 1.0 / F[t]) if kinds[t] == 1 else (0.0, 0.0)
            score[0] += 0.5 * ((own - u) ** 2 - (sure + told))
            rho = rho + h * (own - u)
            cross = np.outer(h, NK)
            N = N + np.outer(h, h) * (sure + told) - cross - cross.T
        if t == 0:
            break
        score[1:] += 0.5 * (rho * rho - np.diagonal(N))
        rho, N = A @ rho, A @ N @ A.T


@_jit(plain=_score_by_matrices)
def scalar_score(starts, cols, values, H, ht, kinds, v, F, gains, score):
    """∂ log p / ∂ (r, q_0, q_1, …) into score (1 + s,), from what `scalar_filter` left; A here is its transpose."""
    T, s = gains.shape
    rho, N = np.zeros(s), np.zeros((s, s))
    half, NK, moved = np.empty((s, s)), np.empty(s), np.empty(s)
    score[:] = 0.0
    for t in range(T - 1, -1, -1):
        if kinds[t] > 0:
            h, K = H[ht[t]], gains[t]
            u, told = 0.0, 0.0  # Kᵀ ρ and Kᵀ N K
            for i in range(s):
                x = 0.0
                for k in range(s):
                    x += N[i, k] * K[k]
                NK[i] = x
                u += K[i] * rho[i]
                told += K[i] * x
            own, sure = (v[t] / F[t], 1.0 / F[t]) if kinds[t] == 1 else (0.0, 0.0)
            score[0] += 0.5 * ((own - u) ** 2 - (sure + told))
            for i in range(s):
                rho[i] += h[i] * (own - u)
                for j in range(s):  # (I − h Kᵀ) N (I − K hᵀ) + h hᵀ / F
                    N[i, j] += h[i] * h[j] * (sure + told) - h[i] * NK[j] - NK[i] * h[j]
        if t == 0:
            break
        for i in range(s):
            score[1 + i] += 0.5 * (rho[i] * rho[i] - N[i, i])
        for i in range(s):
            x = 0.0
            for e in range(starts[i], starts[i + 1]):
                x += values[e] * rho[cols[e]]
            moved[i] = x
        put(moved, rho)
        _both(starts, cols, values, N, half, N)
