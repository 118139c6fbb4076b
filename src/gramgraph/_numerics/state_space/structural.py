"""Exact diffuse likelihood of one number a step, with slope and curvature in the variances of the noises.

x_t = A x_{t−1} + Σ_c g_tc N(0, q_c), y_t = Σ_w hv[t, w] x_t[hc[t, w]] + N(0, r); of x_0 nothing is known but that it is
a combination of the columns of `start`. A is the identity but for the rows `changed`, of which row i has the entries
cols[starts[i] : starts[i + 1]] with these values. Noise c drives the state at[c]; where periods[c] is positive, the
effects of a season stand in as many states from at[c] on, each in its own place for ever, and the noise is added to the
effect of this step and taken from that of the next, so that they sum to zero and nothing is moved.

Forward as in `diffuse.py`, with covariances in the place of roots; backward the score vector ρ and information N of a
state given all that comes at it and after it (de Jong's recursion): ∂ log p / ∂ q_c = ½ Σ_t ((gᵀ ρ)² − gᵀ N g). Unlike
expected moments, these are right at variances of zero too.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put_matrix
from gramgraph._numerics.state_space.diffuse import _close, _sight

_jit = njit(cache=True, nogil=True, boundscheck=False)
_LOG_2PI = 1.8378770664093453


@_jit(no_cpython_wrapper=True)
def _move(changed, starts, cols, values, x, saved):
    """x ← A x."""
    for i in range(changed.shape[0]):
        t = 0.0
        for e in range(starts[i], starts[i + 1]):
            t += values[e] * x[cols[e]]
        saved[i] = t
    for i in range(changed.shape[0]):
        x[changed[i]] = saved[i]


@_jit(no_cpython_wrapper=True)
def _move_back(changed, starts, cols, values, x, saved):
    """x ← Aᵀ x."""
    for i in range(changed.shape[0]):
        saved[i] = x[changed[i]]
        x[changed[i]] = 0.0
    for i in range(changed.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            x[cols[e]] += values[e] * saved[i]


@_jit(no_cpython_wrapper=True)
def _move_rows(changed, starts, cols, values, X, width, rows):
    """X ← A X of the first columns of X."""
    for i in range(changed.shape[0]):
        out = rows[i]
        for j in range(width):
            out[j] = 0.0
        for e in range(starts[i], starts[i + 1]):
            a, row = values[e], X[cols[e]]
            for j in range(width):
                out[j] += a * row[j]
    for i in range(changed.shape[0]):
        row, out = X[changed[i]], rows[i]
        for j in range(width):
            row[j] = out[j]


@_jit(no_cpython_wrapper=True)
def _move_rows_back(changed, starts, cols, values, X, rows):
    """X ← Aᵀ X."""
    s = X.shape[1]
    for i in range(changed.shape[0]):
        row, out = X[changed[i]], rows[i]
        for j in range(s):
            out[j] = row[j]
            row[j] = 0.0
    for i in range(changed.shape[0]):
        out = rows[i]
        for e in range(starts[i], starts[i + 1]):
            a, row = values[e], X[cols[e]]
            for j in range(s):
                row[j] += a * out[j]


@_jit
def _ends(at, period, t):
    """The states to which a noise of step t is added, and from which it is taken (−1: none)."""
    if period == 0:
        return at, np.int64(-1)
    return at + t % period, at + (t + 1) % period


def _dense(changed, starts, cols, values, s):
    A = np.eye(s)
    A[changed] = 0.0
    np.add.at(A, (np.repeat(changed, np.diff(starts)), cols), values)
    return A


def _directions(at, periods, t, s):
    """(s, k) what the noises of step t do to the states."""
    G = np.zeros((s, len(at)))
    for c in range(len(at)):
        to, fro = _ends.plain(int(at[c]), int(periods[c]), t)
        G[to, c] = 1.0
        if fro >= 0:
            G[fro, c] -= 1.0
    return G


def _filter_by_matrices(
    changed, starts, cols, values, at, periods, hc, hv, start, q, r, y, kinds, v, F, gains
):  # fmt: skip
    T, s = gains.shape
    A = _dense(changed, starts, cols, values, s)
    still = changed.shape[0] == 0
    B, n_open = np.zeros((s, s)), start.shape[1]
    B[:, :n_open] = start
    m, P = np.zeros(s), np.zeros((s, s))
    size, seen, K, h = np.sqrt((B * B).sum(axis=1)), np.empty(s), np.empty(s), np.zeros(s)
    fixed = [(int(at[c]), q[c]) for c in range(len(at)) if periods[c] == 0]
    turning = [(int(at[c]), int(periods[c]), q[c]) for c in range(len(at)) if periods[c] > 0]
    total, squares, count = 0.0, 0.0, 0
    for t in range(T):
        if t > 0:
            if not still:
                m, P = A @ m, A @ P @ A.T
                if n_open > 0:
                    B[:, :n_open] = A @ B[:, :n_open]
                    size = np.maximum(size, np.sqrt((B[:, :n_open] ** 2).sum(axis=1)))
            for i, variance in fixed:
                P[i, i] += variance
            for base, period, variance in turning:
                i, j = base + t % period, base + (t + 1) % period
                P[i, i] += variance
                P[j, j] += variance
                P[i, j] -= variance
                P[j, i] -= variance
        kinds[t] = 0
        if math.isnan(y[t]):
            continue
        h[:] = 0.0
        h[hc[t]] = hv[t]
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
def scalar_filter(changed, starts, cols, values, at, periods, hc, hv, start, q, r, y, kinds, v, F, gains):
    """(log p(y), Σ v² / F, how many numbers closed no direction).

    kinds (T,) says what an observation did: 0 none, 1 an ordinary one, 2 closed an open direction. v and F are
    innovations and variances, gains (T, s) P h / F. log p is −inf where an innovation has no variance.
    """
    T, s = gains.shape
    width, n_rows = hc.shape[1], changed.shape[0]
    B, n_open = np.zeros((s, s)), start.shape[1]
    put_matrix(start, B)
    m, P = np.zeros(s), np.zeros((s, s))
    size, seen, K, h, Ph = np.empty(s), np.empty(s), np.empty(s), np.zeros(s), np.empty(s)
    saved, rows = np.empty(n_rows), np.empty((n_rows, s))
    for i in range(s):
        x = 0.0
        for j in range(n_open):
            x += B[i, j] * B[i, j]
        size[i] = math.sqrt(x)
    total, squares, count = 0.0, 0.0, 0
    for t in range(T):
        if t > 0:
            if n_rows > 0:
                _move(changed, starts, cols, values, m, saved)
                _move_rows(changed, starts, cols, values, P, s, rows)
                for i in range(s):
                    _move(changed, starts, cols, values, P[i], saved)
                if n_open > 0:
                    _move_rows(changed, starts, cols, values, B, n_open, rows)
                    for i in range(n_rows):
                        x = 0.0
                        for j in range(n_open):
                            x += B[changed[i], j] * B[changed[i], j]
                        size[changed[i]] = max(size[changed[i]], math.sqrt(x))
            for c in range(at.shape[0]):
                i, j = _ends(at[c], periods[c], t)
                P[i, i] += q[c]
                if j >= 0:
                    P[j, j] += q[c]
                    P[i, j] -= q[c]
                    P[j, i] -= q[c]
        kinds[t] = 0
        if math.isnan(y[t]):
            continue
        for i in range(s):
            Ph[i] = 0.0
        gap, spread = y[t], r
        for w in range(width):
            a, row = hv[t, w], P[hc[t, w]]
            gap -= a * m[hc[t, w]]
            for i in range(s):
                Ph[i] += a * row[i]
        for w in range(width):
            spread += hv[t, w] * Ph[hc[t, w]]
        v[t] = gap
        length = 0.0
        if n_open > 0:
            for i in range(s):
                h[i] = 0.0
            for w in range(width):
                h[hc[t, w]] = hv[t, w]
            length = _sight(B, n_open, h, size, seen)
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
        inverse, length = 1.0 / spread, 1.0 / math.sqrt(spread)
        for i in range(s):
            gains[t, i] = Ph[i] * inverse
            m[i] += Ph[i] * inverse * gap
            Ph[i] *= length
        for i in range(s):
            row, x = P[i], Ph[i]
            for j in range(s):
                row[j] -= x * Ph[j]
    return total, squares, count


def _score_by_matrices(
    changed, starts, cols, values, at, periods, hc, hv, kinds, v, F, gains, scores, squares, informations
):  # fmt: skip
    T, s = gains.shape
    A = _dense(changed, starts, cols, values, s).T
    still = changed.shape[0] == 0
    rho, N, h = np.zeros(s), np.zeros((s, s)), np.zeros(s)
    squares[:], informations[:], scores[:] = 0.0, 0.0, 0.0
    ends = [(c + 1, int(at[c]), int(periods[c])) for c in range(len(at))]
    for t in range(T - 1, -1, -1):
        if kinds[t] > 0:
            h[:] = 0.0
            h[hc[t]] = hv[t]
            K = gains[t]
            NK = N @ K
            told = float(K @ NK)
            own, sure = (v[t] / F[t], 1.0 / F[t]) if kinds[t] == 1 else (0.0, 0.0)
            gap = own - float(K @ rho)
            scores[t, 0] = gap
            informations[0] += sure + told
            rho = rho + h * gap
            cross = np.outer(h, NK)
            N = N + np.outer(h, h) * (sure + told) - cross - cross.T
        if t == 0:
            break
        for c, base, period in ends:
            if period == 0:
                scores[t, c] = rho[base]
                informations[c] += N[base, base]
            else:
                i, j = base + t % period, base + (t + 1) % period
                scores[t, c] = rho[i] - rho[j]
                informations[c] += N[i, i] + N[j, j] - 2.0 * N[i, j]
        if not still:
            rho, N = A @ rho, A @ N @ A.T
    squares[:] = (scores * scores).sum(axis=0)


@_jit(plain=_score_by_matrices)
def scalar_score(changed, starts, cols, values, at, periods, hc, hv, kinds, v, F, gains, scores, squares, informations):
    """∂ log p / ∂ (r, q) = ½ (squares − informations), from what `scalar_filter` left.

    scores (T, 1 + k) are the derivatives in the noises themselves: that of every observation, and those of the states.
    """
    T, s = gains.shape
    width, n_rows = hc.shape[1], changed.shape[0]
    k = at.shape[0]
    rho, N, NK = np.zeros(s), np.zeros((s, s)), np.empty(s)
    saved, rows = np.empty(n_rows), np.empty((n_rows, s))
    for c in range(k + 1):
        squares[c] = 0.0
        informations[c] = 0.0
        scores[0, c] = 0.0
    for t in range(T - 1, -1, -1):
        scores[t, 0] = 0.0
        if kinds[t] > 0:
            K = gains[t]
            for i in range(s):
                NK[i] = 0.0
            u, told = 0.0, 0.0  # Kᵀ ρ and Kᵀ N K
            for i in range(s):
                x, row = K[i], N[i]
                u += x * rho[i]
                for j in range(s):
                    NK[j] += x * row[j]
            for i in range(s):
                told += K[i] * NK[i]
            own, sure = (v[t] / F[t], 1.0 / F[t]) if kinds[t] == 1 else (0.0, 0.0)
            gap = own - u
            scores[t, 0] = gap
            squares[0] += gap * gap
            informations[0] += sure + told
            for w in range(width):  # N ← (I − h Kᵀ) N (I − K hᵀ) + h hᵀ / F
                a, i = hv[t, w], hc[t, w]
                rho[i] += a * gap
                row = N[i]
                for j in range(s):
                    row[j] -= a * NK[j]
                for j in range(s):
                    N[j, i] -= a * NK[j]
                for z in range(width):
                    row[hc[t, z]] += a * hv[t, z] * (sure + told)
        if t == 0:
            break
        for c in range(k):
            i, j = _ends(at[c], periods[c], t)
            x, told = rho[i], N[i, i]
            if j >= 0:
                x -= rho[j]
                told += N[j, j] - 2.0 * N[i, j]
            scores[t, c + 1] = x
            squares[c + 1] += x * x
            informations[c + 1] += told
        if n_rows > 0:
            _move_back(changed, starts, cols, values, rho, saved)
            _move_rows_back(changed, starts, cols, values, N, rows)
            for i in range(s):
                _move_back(changed, starts, cols, values, N[i], saved)


def _information_by_matrices(
    changed, starts, cols, values, at, periods, hc, hv, kinds, F, gains, scores, out
):  # fmt: skip
    T, s = gains.shape
    A = _dense(changed, starts, cols, values, s)
    still = changed.shape[0] == 0
    D, h = np.zeros((s, scores.shape[1])), np.zeros(s)
    out[:] = 0.0
    for t in range(T):
        if t > 0:
            if not still:
                D = A @ D
            D[:, 1:] += _directions(at, periods, t, s) * scores[t, 1:]
        if kinds[t] > 0:
            h[:] = 0.0
            h[hc[t]] = hv[t]
            gap = h @ D
            gap[0] += scores[t, 0]
            D -= np.outer(gains[t], gap)
            if kinds[t] == 1:
                out += np.outer(gap, gap) / F[t]


@_jit(plain=_information_by_matrices, no_cpython_wrapper=True)
def scalar_information(changed, starts, cols, values, at, periods, hc, hv, kinds, F, gains, scores, out):
    """Average information: gᵢᵀ S⁻¹ gⱼ into out (1 + k, 1 + k), with gᵢ = (∂S / ∂ variance i) S⁻¹ y and S = Cov(y).

    Half of it, the mean of observed and expected information (Gilmour, Thompson and Cullis, 1995), is the curvature of
    −log p in the variances. gᵢ is what the model makes of noises equal to the scores, and S⁻¹ is the filter's gains
    once more: O(T k s), little beside the covariances.
    """
    T, s = gains.shape
    k, width = at.shape[0], hc.shape[1]
    D, saved, gap = np.zeros((1 + k, s)), np.empty(changed.shape[0]), np.empty(1 + k)
    for i in range(k + 1):
        for j in range(k + 1):
            out[i, j] = 0.0
    for t in range(T):
        for c in range(k + 1):
            d = D[c]
            if t > 0:
                _move(changed, starts, cols, values, d, saved)
                if c > 0:
                    i, j = _ends(at[c - 1], periods[c - 1], t)
                    d[i] += scores[t, c]
                    if j >= 0:
                        d[j] -= scores[t, c]
            if kinds[t] > 0:
                K = gains[t]
                x = scores[t, 0] if c == 0 else 0.0
                for w in range(width):
                    x += hv[t, w] * d[hc[t, w]]
                gap[c] = x
                for i in range(s):
                    d[i] -= K[i] * x
                if kinds[t] == 1:
                    for j in range(c + 1):
                        out[c, j] += x * gap[j] / F[t]
    for i in range(k + 1):
        for j in range(i):
            out[j, i] = out[i, j]


@_jit
def scalar_profile(
    changed, starts, cols, values, at, periods, hc, hv, start, q, r, y, kinds, v, F, gains, scores, squares,
    informations, curve,
):  # fmt: skip
    """What `scalar_filter` returns; where log p is finite, scores, squares, informations and curve are filled too."""
    found = scalar_filter(changed, starts, cols, values, at, periods, hc, hv, start, q, r, y, kinds, v, F, gains)
    if found[0] > -math.inf:
        scalar_score(
            changed, starts, cols, values, at, periods, hc, hv, kinds, v, F, gains, scores, squares, informations
        )
        scalar_information(changed, starts, cols, values, at, periods, hc, hv, kinds, F, gains, scores, curve)
    return found
