"""Gaussian processes on the line as state spaces: evidence, its reverse, smoothed covariances, draws.

x_t = A[at[t]] x_{t−1} + N(0, Pinf − A Pinf Aᵀ), f_t = hᵀ x_t. `at` points into a stack of matrices, so that even steps
share one and uneven ones have one each; at[0] is not used. Arrays are C-ordered float64; nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.gram.grams import fast_exp


@njit(cache=True, nogil=True, boundscheck=False)
def process_filter(A, at, Pinf, h, R, Y, floor, D, M, V, S):
    """Innovations V (n, c) and their variances S (n,) of columns Y (n, c): Y = L W with W = V / √S.

    D (n, s, s) keeps filtered covariances less the stationary one, M (n, s, c) filtered means. An innovation variance
    below `floor` is raised to it; returns the largest rise.
    """
    n, c = Y.shape
    s = h.shape[0]
    AD = np.empty((s, s))
    P = np.empty((s, s))
    g = np.empty(s)
    lifted = 0.0
    for t in range(n):
        m = M[t]
        if t == 0:
            for i in range(s):
                for j in range(s):
                    P[i, j] = Pinf[i, j]
                for e in range(c):
                    m[i, e] = 0.0
        else:
            F, old = A[at[t]], D[t - 1]
            for i in range(s):
                for j in range(s):
                    x = 0.0
                    for k in range(s):
                        x += F[i, k] * old[k, j]
                    AD[i, j] = x
                for e in range(c):
                    x = 0.0
                    for k in range(s):
                        x += F[i, k] * M[t - 1, k, e]
                    m[i, e] = x
            for i in range(s):
                for j in range(i + 1):
                    x = Pinf[i, j]
                    for k in range(s):
                        x += AD[i, k] * F[j, k]
                    P[i, j] = x
                    P[j, i] = x
        var = R[t]
        for i in range(s):
            x = 0.0
            for k in range(s):
                x += P[i, k] * h[k]
            g[i] = x
            var += h[i] * x
        if var < floor:
            lifted = max(lifted, floor - var)
            var = floor
        S[t] = var
        for e in range(c):
            v = Y[t, e]
            for k in range(s):
                v -= h[k] * m[k, e]
            V[t, e] = v
            v /= var
            for i in range(s):
                m[i, e] += g[i] * v
        for i in range(s):
            for j in range(s):
                D[t, i, j] = P[i, j] - Pinf[i, j] - g[i] * g[j] / var
    return lifted


@njit(cache=True, nogil=True, boundscheck=False)
def process_filter_pull(A, at, Pinf, h, D, M, V, S, q, bar_A, bar_Pinf, bar_R):
    """Reverse of −½ (q Σ log S + Σ V² / S): gradients by A (added a step), by Pinf and by R."""
    n, c = V.shape
    s = h.shape[0]
    bar_m = np.zeros((s, c))
    bar_P = np.zeros((s, s))
    P, AD, T = np.empty((s, s)), np.empty((s, s)), np.empty((s, s))
    g, bar_g, mg = np.empty(s), np.empty(s), np.empty(c)
    for t in range(n - 1, -1, -1):
        F = A[at[t]]
        for i in range(s):
            for j in range(s):
                x = 0.0
                if t > 0:
                    for k in range(s):
                        x += F[i, k] * D[t - 1, k, j]
                AD[i, j] = x
        for i in range(s):
            for j in range(s):
                x = Pinf[i, j]
                if t > 0:
                    for k in range(s):
                        x += AD[i, k] * F[j, k]
                P[i, j] = x
        var = S[t]
        for i in range(s):
            x = 0.0
            for k in range(s):
                x += P[i, k] * h[k]
            g[i] = x
        bar_S = -0.5 * q / var
        for e in range(c):
            x = 0.0
            for i in range(s):
                x += bar_m[i, e] * g[i]
            mg[e] = x
            bar_S += (0.5 * V[t, e] * V[t, e] - x * V[t, e]) / (var * var)
        for i in range(s):
            x = 0.0
            for k in range(s):
                x += bar_P[i, k] * g[k]
            bar_S += g[i] * x / (var * var)
            y = -2.0 * x
            for e in range(c):
                y += bar_m[i, e] * V[t, e]
            bar_g[i] = y / var
        bar_R[t] = bar_S
        for e in range(c):
            bar_v = (mg[e] - V[t, e]) / var
            for i in range(s):
                bar_m[i, e] -= h[i] * bar_v
        for i in range(s):
            for j in range(s):
                bar_P[i, j] += 0.5 * (bar_g[i] * h[j] + h[i] * bar_g[j]) + h[i] * h[j] * bar_S
        if t == 0:
            for i in range(s):
                for j in range(s):
                    bar_Pinf[i, j] += bar_P[i, j]
            return
        into = bar_A[at[t]]
        for i in range(s):
            for j in range(s):
                x = 0.0
                for e in range(c):
                    x += bar_m[i, e] * M[t - 1, j, e]
                y = 0.0
                for k in range(s):
                    y += bar_P[i, k] * AD[k, j]
                into[i, j] += x + 2.0 * y
        for e in range(c):
            for i in range(s):
                x = 0.0
                for k in range(s):
                    x += F[k, i] * bar_m[k, e]
                g[i] = x
            for i in range(s):
                bar_m[i, e] = g[i]
        for i in range(s):
            for j in range(s):
                x = 0.0
                for k in range(s):
                    x += bar_P[i, k] * F[k, j]
                T[i, j] = x
        for i in range(s):
            for j in range(s):
                bar_Pinf[i, j] += bar_P[i, j]
                x = 0.0
                for k in range(s):
                    x += F[k, i] * T[k, j]
                AD[i, j] = x
        for i in range(s):
            for j in range(s):
                bar_P[i, j] = AD[i, j]
                bar_Pinf[i, j] -= AD[i, j]


# --- one Matérn term: the transition in closed form, nothing stored -----------------------------------------------

_BLOCK = 512


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def matern12_evidence(t, y, R, rate, variance, floor):
    """(Σ log S, Σ V²/S, largest rise) of y under variance · exp(−rate |t − t′|) + diag(R); t sorted."""
    n = t.shape[0]
    decay = np.empty(_BLOCK)
    d = m = logs = fit = lifted = 0.0
    product = 1.0
    for start in range(0, n, _BLOCK):
        stop = min(n, start + _BLOCK)
        for i in range(start, stop):
            decay[i - start] = fast_exp(-rate * (t[i] - t[i - 1])) if i else 0.0
        for i in range(start, stop):
            a = decay[i - start]
            d *= a * a
            p = variance + d
            s = p + R[i]
            if s < floor:
                lifted = max(lifted, floor - s)
                s = floor
            m *= a
            v = y[i] - m
            k = p / s
            m += k * v
            d -= k * p
            fit += v * v / s
            product *= s
            if product < 1e-200 or product > 1e200:
                logs += math.log(product)
                product = 1.0
    return logs + math.log(product), fit, lifted


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def matern32_evidence(t, y, R, rate, variance, floor):
    """The same for variance · (1 + r) exp(−r), r = rate |t − t′|: states f and f′/rate, of unit scale."""
    n = t.shape[0]
    steps, decay = np.empty(_BLOCK), np.empty(_BLOCK)
    d11 = d12 = d22 = m1 = m2 = logs = fit = lifted = 0.0
    product = 1.0
    for start in range(0, n, _BLOCK):
        stop = min(n, start + _BLOCK)
        for i in range(start, stop):
            x = rate * (t[i] - t[i - 1]) if i else 0.0
            steps[i - start] = x
            decay[i - start] = fast_exp(-x)
        for i in range(start, stop):
            x, e = steps[i - start], decay[i - start]
            b = x * e
            a, d = e + b, e - b
            u1, u2 = a * d11 + b * d12, a * d12 + b * d22
            w1, w2 = d * d12 - b * d11, d * d22 - b * d12
            d11 = a * u1 + b * u2
            d12 = d * u2 - b * u1
            d22 = d * w2 - b * w1
            p = variance + d11
            s = p + R[i]
            if s < floor:
                lifted = max(lifted, floor - s)
                s = floor
            n1, n2 = a * m1 + b * m2, d * m2 - b * m1
            inv = 1.0 / s
            v = y[i] - n1
            k1, k2 = p * inv, d12 * inv
            m1 = n1 + k1 * v
            m2 = n2 + k2 * v
            d11 -= k1 * p
            d22 -= k2 * d12
            d12 -= k1 * d12
            fit += v * v * inv
            product *= s
            if product < 1e-200 or product > 1e200:
                logs += math.log(product)
                product = 1.0
    return logs + math.log(product), fit, lifted


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def matern52_evidence(t, y, R, rate, variance, floor):
    """The same for variance · (1 + r + r²/3) exp(−r): states f, f′/rate and f″/rate²."""
    n = t.shape[0]
    steps, decay = np.empty(_BLOCK), np.empty(_BLOCK)
    d11 = d12 = d13 = d22 = d23 = d33 = m1 = m2 = m3 = logs = fit = lifted = 0.0
    third = variance / 3.0
    product = 1.0
    for start in range(0, n, _BLOCK):
        stop = min(n, start + _BLOCK)
        for i in range(start, stop):
            x = rate * (t[i] - t[i - 1]) if i else 0.0
            steps[i - start] = x
            decay[i - start] = fast_exp(-x)
        for i in range(start, stop):
            x, e = steps[i - start], decay[i - start]
            h = 0.5 * x * x
            a11, a12, a13 = e * (1.0 + x + h), e * (x + 2.0 * h), e * h
            a21, a22, a23 = -e * h, e * (1.0 + x - 2.0 * h), e * (x - h)
            a31, a32, a33 = e * (h - x), e * (2.0 * h - 3.0 * x), e * (1.0 - 2.0 * x + h)
            u11 = a11 * d11 + a12 * d12 + a13 * d13
            u12 = a11 * d12 + a12 * d22 + a13 * d23
            u13 = a11 * d13 + a12 * d23 + a13 * d33
            u21 = a21 * d11 + a22 * d12 + a23 * d13
            u22 = a21 * d12 + a22 * d22 + a23 * d23
            u23 = a21 * d13 + a22 * d23 + a23 * d33
            u31 = a31 * d11 + a32 * d12 + a33 * d13
            u32 = a31 * d12 + a32 * d22 + a33 * d23
            u33 = a31 * d13 + a32 * d23 + a33 * d33
            d11 = u11 * a11 + u12 * a12 + u13 * a13
            d12 = u11 * a21 + u12 * a22 + u13 * a23
            d13 = u11 * a31 + u12 * a32 + u13 * a33
            d22 = u21 * a21 + u22 * a22 + u23 * a23
            d23 = u21 * a31 + u22 * a32 + u23 * a33
            d33 = u31 * a31 + u32 * a32 + u33 * a33
            p, p3 = variance + d11, d13 - third
            s = p + R[i]
            if s < floor:
                lifted = max(lifted, floor - s)
                s = floor
            n1 = a11 * m1 + a12 * m2 + a13 * m3
            n2 = a21 * m1 + a22 * m2 + a23 * m3
            n3 = a31 * m1 + a32 * m2 + a33 * m3
            inv = 1.0 / s
            v = y[i] - n1
            k1, k2, k3 = p * inv, d12 * inv, p3 * inv
            m1 = n1 + k1 * v
            m2 = n2 + k2 * v
            m3 = n3 + k3 * v
            d11 -= k1 * p
            d22 -= k2 * d12
            d23 -= k2 * p3
            d33 -= k3 * p3
            d13 -= k1 * p3
            d12 -= k1 * d12
            fit += v * v * inv
            product *= s
            if product < 1e-200 or product > 1e200:
                logs += math.log(product)
                product = 1.0
    return logs + math.log(product), fit, lifted


@njit(cache=True, nogil=True, boundscheck=False)
def smoothed_cross(gains, smooth_covs, h, slot, out):
    """Cov(hᵀx_a, hᵀx_b | y) for the times with slot[t] ≥ 0, into out[slot, slot]; O(T m s²)."""
    T, s = smooth_covs.shape[0], h.shape[0]
    m = out.shape[0]
    C = np.empty((m, s))
    who = np.empty(m, dtype=np.int64)
    new = np.empty(s)
    count = 0
    for t in range(T - 1, -1, -1):
        if t < T - 1:
            G = gains[t]
            for a in range(count):
                for i in range(s):
                    x = 0.0
                    for k in range(s):
                        x += G[i, k] * C[a, k]
                    new[i] = x
                for i in range(s):
                    C[a, i] = new[i]
        if slot[t] < 0:
            continue
        b = slot[t]
        for a in range(count):
            x = 0.0
            for i in range(s):
                x += h[i] * C[a, i]
            out[who[a], b] = x
            out[b, who[a]] = x
        own = 0.0
        for i in range(s):
            x = 0.0
            for k in range(s):
                x += smooth_covs[t, i, k] * h[k]
            C[count, i] = x
            own += h[i] * x
        out[b, b] = own
        who[count] = b
        count += 1


@njit(cache=True, nogil=True, boundscheck=False)
def simulate_states(A, half, at, start, Z, h, out):
    """hᵀx_t of x_t = A x_{t−1} + half z_t from x_0 = start z_0, one column a draw: Z (T, s, c), out (T, c)."""
    T, s, c = Z.shape
    x, new = np.zeros((s, c)), np.empty((s, c))
    for t in range(T):
        N = start if t == 0 else half[at[t]]
        for i in range(s):
            for e in range(c):
                v = 0.0
                for k in range(s):
                    v += N[i, k] * Z[t, k, e]
                    if t > 0:
                        v += A[at[t], i, k] * x[k, e]
                new[i, e] = v
        for e in range(c):
            v = 0.0
            for i in range(s):
                x[i, e] = new[i, e]
                v += h[i] * new[i, e]
            out[t, e] = v
