"""Rows of a Gaussian with gaps, each with its own pattern: conditional means, variances, log densities."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.vector8 import fill8, fma8, load8, store8

__all__ = ["block_affine", "condition_rows"]


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
def block_affine(outs_ptr, outs, ins_ptr, ins, value, start, X, out):
    """out[j] = start[j] + Σ_i value · X[i], for every column, with a matrix of dense blocks: the rows `outs` of a block
    need the rows `ins` of X. X and out are flat rows of n numbers; `value` holds block after block, row by row.

    Sixteen columns of four rows stay in registers while the inputs are added; a strip of X stays in the first cache.
    """
    n = np.uint64(out.shape[0] // start.shape[0])
    whole = n // np.uint64(16) * np.uint64(16)
    first = 0
    for g in range(outs_ptr.shape[0] - 1):
        o0, o1, i0 = outs_ptr[g], outs_ptr[g + 1], ins_ptr[g]
        b = ins_ptr[g + 1] - i0
        fours = o0 + (o1 - o0) // 4 * 4
        for c in range(np.uint64(0), whole, np.uint64(16)):
            c8 = c + np.uint64(8)
            for o in range(o0, fours, 4):
                at = first + (o - o0) * b
                s0 = fill8(start[outs[o]])
                s1 = fill8(start[outs[o + 1]])
                s2 = fill8(start[outs[o + 2]])
                s3 = fill8(start[outs[o + 3]])
                t0 = s0
                t1 = s1
                t2 = s2
                t3 = s3
                for k in range(b):
                    row = np.uint64(ins[i0 + k]) * n
                    x = load8(X, row + c)
                    y = load8(X, row + c8)
                    v0 = fill8(value[at + k])
                    v1 = fill8(value[at + b + k])
                    v2 = fill8(value[at + 2 * b + k])
                    v3 = fill8(value[at + 3 * b + k])
                    s0 = fma8(v0, x, s0)
                    t0 = fma8(v0, y, t0)
                    s1 = fma8(v1, x, s1)
                    t1 = fma8(v1, y, t1)
                    s2 = fma8(v2, x, s2)
                    t2 = fma8(v2, y, t2)
                    s3 = fma8(v3, x, s3)
                    t3 = fma8(v3, y, t3)
                store8(out, np.uint64(outs[o]) * n + c, s0)
                store8(out, np.uint64(outs[o]) * n + c8, t0)
                store8(out, np.uint64(outs[o + 1]) * n + c, s1)
                store8(out, np.uint64(outs[o + 1]) * n + c8, t1)
                store8(out, np.uint64(outs[o + 2]) * n + c, s2)
                store8(out, np.uint64(outs[o + 2]) * n + c8, t2)
                store8(out, np.uint64(outs[o + 3]) * n + c, s3)
                store8(out, np.uint64(outs[o + 3]) * n + c8, t3)
            for o in range(fours, o1):
                at = first + (o - o0) * b
                s0 = fill8(start[outs[o]])
                t0 = s0
                for k in range(b):
                    row = np.uint64(ins[i0 + k]) * n
                    v0 = fill8(value[at + k])
                    s0 = fma8(v0, load8(X, row + c), s0)
                    t0 = fma8(v0, load8(X, row + c8), t0)
                store8(out, np.uint64(outs[o]) * n + c, s0)
                store8(out, np.uint64(outs[o]) * n + c8, t0)
        for o in range(o0, o1):
            at = first + (o - o0) * b
            base = np.uint64(outs[o]) * n
            for c in range(whole, n):
                z = start[outs[o]]
                for k in range(b):
                    z += value[at + k] * X[np.uint64(ins[i0 + k]) * n + c]
                out[base + c] = z
        first += (o1 - o0) * b
