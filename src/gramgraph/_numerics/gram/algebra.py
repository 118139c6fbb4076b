"""Loops of the Gram algebra: rank-one changes of Cholesky factors, Toeplitz recursions, box-constrained duals.

Factors are lower triangles of C-ordered arrays, worked through row by row so that memory is read in order; the strict
upper triangle is never touched. Arrays are float64; nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True, boundscheck=False)
def cholesky_update(L, x):
    """L Lᵀ + x xᵀ by Givens rotations, in place; x is destroyed. O(n²)."""
    n = L.shape[0]
    c = np.empty(n)
    s = np.empty(n)
    for i in range(n):
        xi = x[i]
        for k in range(i):
            t = c[k] * L[i, k] + s[k] * xi
            xi = c[k] * xi - s[k] * L[i, k]
            L[i, k] = t
        r = math.hypot(L[i, i], xi)
        c[i] = L[i, i] / r
        s[i] = xi / r
        L[i, i] = r


@njit(cache=True, nogil=True, boundscheck=False)
def cholesky_downdate(L, p, floor):
    """L Lᵀ − x xᵀ in place, where p = L⁻¹ x comes in and is destroyed. Returns 1 − pᵀp; at or below `floor` L is kept.

    The rotations that carry (p, √(1 − pᵀp)) to (0, 1) carry (L, 0) to (L′, x): only orthogonal steps, so that the
    loss of digits is the one of the problem itself.
    """
    n = L.shape[0]
    left = 1.0
    for i in range(n):
        left -= p[i] * p[i]
    if left <= floor:
        return left
    alpha = math.sqrt(left)
    c = np.empty(n)
    for i in range(n - 1, -1, -1):
        r = math.hypot(alpha, p[i])
        c[i] = alpha / r
        p[i] = p[i] / r
        alpha = r
    for i in range(n):
        carried = 0.0
        for k in range(i, -1, -1):
            t = c[k] * carried + p[k] * L[i, k]
            L[i, k] = c[k] * L[i, k] - p[k] * carried
            carried = t
    return left


@njit(cache=True, nogil=True, boundscheck=False)
def durbin(c, errors, phi):
    """Durbin's recursion for the symmetric Toeplitz matrix of first column c.

    errors[t] becomes the squared pivot t of its Cholesky factor, phi[1:] the last predictor (phi[0] is not used).
    Returns the number of pivots that were positive. O(n²) time, O(n) memory.
    """
    n = c.shape[0]
    old = np.empty(n)
    e = c[0]
    errors[0] = e
    if not e > 0.0:
        return 0
    for t in range(1, n):
        k = c[t]
        for j in range(1, t):
            k -= phi[j] * c[t - j]
        k /= e
        for j in range(1, t):
            old[j] = phi[j]
        for j in range(1, t):
            phi[j] = old[j] - k * old[t - j]
        phi[t] = k
        e *= (1.0 - k) * (1.0 + k)
        errors[t] = e
        if not e > 0.0:
            return t
    return n


@njit(cache=True, nogil=True, boundscheck=False)
def toeplitz_half(c, Z, out):
    """out = L Z for the Cholesky factor L of the Toeplitz matrix of c, which is never stored. O(n² q)."""
    n = c.shape[0]
    q = Z.shape[1]
    phi = np.zeros(n)
    old = np.empty(n)
    e = c[0]
    for a in range(q):
        out[0, a] = math.sqrt(e) * Z[0, a]
    for t in range(1, n):
        k = c[t]
        for j in range(1, t):
            k -= phi[j] * c[t - j]
        k /= e
        for j in range(1, t):
            old[j] = phi[j]
        for j in range(1, t):
            phi[j] = old[j] - k * old[t - j]
        phi[t] = k
        e *= (1.0 - k) * (1.0 + k)
        root = math.sqrt(e)
        for a in range(q):
            out[t, a] = root * Z[t, a]
        for j in range(1, t + 1):
            w = phi[j]
            for a in range(q):
                out[t, a] += w * out[t - j, a]


@njit(cache=True, nogil=True, boundscheck=False)
def box_dual_steps(K, diag, target, epsilon, low, high, beta, f, steps):
    """Greedy coordinate steps on ½ βᵀKβ − targetᵀβ + ε‖β‖₁ with low ≤ β ≤ high; f = Kβ is kept up to date.

    Every step minimizes exactly along the coordinate whose step lowers the objective most (ties: the first one).
    Returns the number of steps taken: fewer than asked when no coordinate moves any more.
    """
    n = beta.shape[0]
    for step in range(steps):
        best_gain = 0.0
        best = -1
        best_value = 0.0
        for i in range(n):
            h = diag[i]
            g = f[i] - target[i]
            b = beta[i]
            if h > 0.0:
                v = b - g / h
                shrink = epsilon / h
                if v > shrink:
                    v -= shrink
                elif v < -shrink:
                    v += shrink
                else:
                    v = 0.0
            elif g > epsilon:
                v = low[i]
            elif g < -epsilon:
                v = high[i]
            else:
                v = 0.0
            v = min(max(v, low[i]), high[i])
            d = v - b
            gain = -(d * (g + 0.5 * h * d) + epsilon * (abs(v) - abs(b)))
            if gain > best_gain:
                best_gain = gain
                best = i
                best_value = v
        if best < 0:
            return step
        d = best_value - beta[best]
        if d == 0.0:
            return step
        beta[best] = best_value
        for j in range(n):
            f[j] += d * K[best, j]
    return steps


@njit(cache=True, nogil=True, boundscheck=False)
def tridiagonal_solve(d, e, alphas, Z, factors, pivots, out):
    """(T + α I)⁻¹ Z into out (n, q, a) for the tridiagonal T of d and e, and the factors L, D of T + α I = L D Lᵀ.

    factors[k] and pivots[k] hold the entry of L left of its diagonal and that of D, for every α. O(n q) an α.
    """
    n, q = Z.shape
    for x in range(alphas.size):
        pivots[0, x] = d[0] + alphas[x]
        for k in range(1, n):
            factors[k, x] = e[k - 1] / pivots[k - 1, x]
            pivots[k, x] = d[k] + alphas[x] - factors[k, x] * e[k - 1]
        for c in range(q):
            out[0, c, x] = Z[0, c]
            for k in range(1, n):
                out[k, c, x] = Z[k, c] - factors[k, x] * out[k - 1, c, x]
            out[n - 1, c, x] /= pivots[n - 1, x]
            for k in range(n - 2, -1, -1):
                out[k, c, x] = out[k, c, x] / pivots[k, x] - factors[k + 1, x] * out[k + 1, c, x]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def tridiagonal_diagonals(QT, factors, pivots, out):
    """Diagonals of Q (L D Lᵀ)⁻¹ Qᵀ, added to out (a, n): Σ_k m_k² / D_k with m = L⁻¹ Qᵀ, some columns at a time."""
    n = QT.shape[0]
    shifts = pivots.shape[1]
    for first in range(0, n, 128):
        last = min(n, first + 128)
        m = np.zeros((shifts, last - first))
        for k in range(n):
            row = QT[k, first:last]
            for x in range(shifts):
                f, p = factors[k, x], 1.0 / pivots[k, x]
                state, total = m[x], out[x, first:last]
                for i in range(last - first):
                    v = row[i] - f * state[i]
                    state[i] = v
                    total[i] += v * v * p
