"""Emissions of hidden Markov models: densities of all rows under all states, and weighted sums over the rows.

Rows stand one after the other, (N, …); states are columns. NaN entries of data were not observed.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gramgraph._numerics.grams import fast_exp


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def likelihood_rows(logs, b, shift):
    """b = exp(logs − shift) with shift the largest of the row (0 for a row of −inf)."""
    n, K = logs.shape
    for t in range(n):
        top = -math.inf
        for k in range(K):
            if logs[t, k] > top:
                top = logs[t, k]
        if not top > -math.inf:
            shift[t] = 0.0
            for k in range(K):
                b[t, k] = 0.0
            continue
        shift[t] = top
        for k in range(K):
            x = logs[t, k] - top
            y = fast_exp(x)
            b[t, k] = y if x > -708.0 else 0.0


@njit(cache=True, nogil=True, boundscheck=False)
def symbol_counts(symbols, gamma, out):
    """out (M, K) += Σ_t gamma[t] in the row of its symbol; symbols below zero were not observed."""
    K = gamma.shape[1]
    for t in range(symbols.shape[0]):
        if symbols[t] >= 0:
            row = out[symbols[t]]
            for k in range(K):
                row[k] += gamma[t, k]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _diagonal_of_eight(X, means, precisions, constants, out):
    """`diagonal_gaussian_logs` of eight states: loops of known length stay in registers."""
    n, d = X.shape
    total = np.empty(8)
    for t in range(n):
        for k in range(8):
            total[k] = 0.0
        for i in range(d):
            x = X[t, i]
            if x == x:
                for k in range(8):
                    y = x - means[i, k]
                    total[k] += constants[i, k] - 0.5 * (y * y) * precisions[i, k]
        for k in range(8):
            out[t, k] = total[k]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def diagonal_gaussian_logs(X, means, precisions, constants, out):
    """log N(x_t | mean_k, diag) of the observed entries; means, precisions, constants (d, K), out (N, K).

    constants[i, k] = −½ log(2π σ²). NaN entries of X were not observed.
    """
    n, d = X.shape
    K = means.shape[1]
    if K == 8:
        _diagonal_of_eight(X, means, precisions, constants, out)
        return
    for t in range(n):
        row = out[t]
        for k in range(K):
            row[k] = 0.0
        for i in range(d):
            x = X[t, i]
            if x == x:
                m, p, c = means[i], precisions[i], constants[i]
                for k in range(K):
                    y = x - m[k]
                    row[k] += c[k] - 0.5 * (y * y) * p[k]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def weighted_moments(X, gamma, weights, sums):
    """weights and sums (d, K) += Σ_t gamma[t, k] and Σ_t gamma[t, k] x_t over observed entries."""
    n, d = X.shape
    K = gamma.shape[1]
    done = n - n % 4
    for t in range(0, done, 4):  # four rows at a time: short loops over states cost more to begin than to run
        g0, g1, g2, g3 = gamma[t], gamma[t + 1], gamma[t + 2], gamma[t + 3]
        for i in range(d):
            # a gap weighs nothing
            w0 = 1.0 if X[t, i] == X[t, i] else 0.0
            w1 = 1.0 if X[t + 1, i] == X[t + 1, i] else 0.0
            w2 = 1.0 if X[t + 2, i] == X[t + 2, i] else 0.0
            w3 = 1.0 if X[t + 3, i] == X[t + 3, i] else 0.0
            x0 = X[t, i] if w0 > 0.0 else 0.0
            x1 = X[t + 1, i] if w1 > 0.0 else 0.0
            x2 = X[t + 2, i] if w2 > 0.0 else 0.0
            x3 = X[t + 3, i] if w3 > 0.0 else 0.0
            w, a = weights[i], sums[i]
            for k in range(K):
                w[k] += (g0[k] * w0 + g1[k] * w1) + (g2[k] * w2 + g3[k] * w3)
                a[k] += (g0[k] * x0 + g1[k] * x1) + (g2[k] * x2 + g3[k] * x3)
    for t in range(done, n):
        for i in range(d):
            x = X[t, i]
            if x == x:
                for k in range(K):
                    weights[i, k] += gamma[t, k]
                    sums[i, k] += gamma[t, k] * x


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def weighted_squares(X, gamma, means, squares):
    """squares (d, K) += Σ_t gamma[t, k] (x_t − mean_k)² over observed entries; means (d, K)."""
    n, d = X.shape
    K = gamma.shape[1]
    done = n - n % 4
    for t in range(0, n, 4):
        for i in range(d):
            m, q = means[i], squares[i]
            x0 = X[t, i]
            whole = t < done
            if whole:
                x1, x2, x3 = X[t + 1, i], X[t + 2, i], X[t + 3, i]
                total = (x0 + x1) + (x2 + x3)
                whole = total == total
            if whole:
                g0, g1, g2, g3 = gamma[t], gamma[t + 1], gamma[t + 2], gamma[t + 3]
                for k in range(K):
                    y0, y1, y2, y3 = x0 - m[k], x1 - m[k], x2 - m[k], x3 - m[k]
                    q[k] += (g0[k] * (y0 * y0) + g1[k] * (y1 * y1)) + (g2[k] * (y2 * y2) + g3[k] * (y3 * y3))
            else:
                for u in range(t, min(t + 4, n)):
                    x = X[u, i]
                    if x == x:
                        for k in range(K):
                            y = x - m[k]
                            q[k] += gamma[u, k] * (y * y)
