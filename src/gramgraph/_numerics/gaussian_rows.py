"""Rows of a Gaussian with gaps, each with its own pattern: conditional means, variances, log densities."""

from __future__ import annotations

import numpy as np
from numba import njit

from gramgraph._numerics.vector8 import fill8, fma8, load8, store8

__all__ = ["condition_rows", "sparse_affine"]


@njit(cache=True, nogil=True, boundscheck=False)
def condition_rows(P, log_det, X, mean, var, log_p):
    """X (rows, n): deviations from the mean, NaN where not observed. P (n, n): precision, log_det its log |P|.

    Filled: `mean` (rows, n) deviations, `var` (rows, n) with zeros where observed, `log_p` (rows,). With U the gaps of
    a row: mean_U = −P_UU⁻¹ P_UE x_E, Cov = P_UU⁻¹. O(|U|³ + n²) a row.
    """
    n = P.shape[0]
    gaps = np.empty(n, np.int64)
    seen = np.empty(n, np.int64)
    L = np.empty((n, n))
    b = np.empty(n)
    y = np.empty(n)
    for row in range(X.shape[0]):
        u = 0
        e = 0
        for i in range(n):
            if np.isnan(X[row, i]):
                gaps[u] = i
                u += 1
            else:
                seen[e] = i
                e += 1
                mean[row, i] = X[row, i]
                var[row, i] = 0.0
        quadratic = 0.0
        for j in range(e):
            at = seen[j]
            x = X[row, at]
            total = 0.0
            for k in range(j):
                total += P[at, seen[k]] * X[row, seen[k]]
            quadratic += x * (2.0 * total + P[at, at] * x)
        half_det = 0.0
        for j in range(u):
            at = gaps[j]
            total = 0.0
            for k in range(e):
                total += P[at, seen[k]] * X[row, seen[k]]
            b[j] = -total
            for k in range(j + 1):  # Cholesky of P_UU, row by row
                s = P[at, gaps[k]]
                for t in range(k):
                    s -= L[j, t] * L[k, t]
                if k < j:
                    L[j, k] = s / L[k, k]
                else:
                    L[j, j] = np.sqrt(s)
                    half_det += np.log(L[j, j])
        for j in range(u):
            s = b[j]
            for k in range(j):
                s -= L[j, k] * y[k]
            y[j] = s / L[j, j]
            quadratic -= y[j] * y[j]
        for j in range(u - 1, -1, -1):
            s = y[j]
            for k in range(j + 1, u):
                s -= L[k, j] * y[k]
            y[j] = s / L[j, j]
            mean[row, gaps[j]] = y[j]
        for j in range(u):  # column j of L⁻¹; its squares add up to the variance
            total = 0.0
            for k in range(j, u):
                s = 1.0 if k == j else 0.0
                for t in range(j, k):
                    s -= L[k, t] * b[t]
                b[k] = s / L[k, k]
                total += b[k] * b[k]
            var[row, gaps[j]] = total
        log_p[row] = 0.5 * log_det - half_det - 0.5 * quadratic - 0.5 * e * np.log(2.0 * np.pi)


@njit(cache=True, nogil=True, boundscheck=False)
def sparse_affine(ptr, index, value, start, X, out):
    """out[j] = start[j] + Σ value · X[index] over the entries of row j, for every column; X and out are flat rows of n.

    32 columns at a time stay in registers while the entries of a row are added.
    """
    n = np.uint64(out.shape[0] // start.shape[0])
    whole = n // np.uint64(32) * np.uint64(32)
    for j in range(start.shape[0]):
        base = np.uint64(j) * n
        for b in range(np.uint64(0), whole, np.uint64(32)):
            b8 = b + np.uint64(8)
            b16 = b + np.uint64(16)
            b24 = b + np.uint64(24)
            s0 = fill8(start[j])
            s1 = s0
            s2 = s0
            s3 = s0
            for q in range(ptr[j], ptr[j + 1]):
                v = fill8(value[q])
                row = np.uint64(index[q]) * n
                s0 = fma8(v, load8(X, row + b), s0)
                s1 = fma8(v, load8(X, row + b8), s1)
                s2 = fma8(v, load8(X, row + b16), s2)
                s3 = fma8(v, load8(X, row + b24), s3)
            store8(out, base + b, s0)
            store8(out, base + b8, s1)
            store8(out, base + b16, s2)
            store8(out, base + b24, s3)
        for c in range(whole, n):
            x = start[j]
            for q in range(ptr[j], ptr[j + 1]):
                x += value[q] * X[np.uint64(index[q]) * n + c]
            out[base + c] = x
