"""Gram matrices of distance kernels: fused loops for few columns, matrix products for many.

Points come scaled, as C-ordered float64 matrices; nothing is checked. `profile` names the function of s = ‖a − b‖²:
SQUARED s, RBF exp(−s/2), and Matérn 1/2, 3/2, 5/2 of r = √s. Symmetric matrices are computed by half, in tiles, and
mirrored tile by tile while they are in the cache.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

SQUARED, RBF, MATERN12, MATERN32, MATERN52 = 0, 1, 2, 3, 4
SMALL_D = 15  # from here on a matrix product is faster than the fused loop
TILE = 64

_MAGIC = 6755399441055744.0  # 1.5 · 2⁵²: adding it rounds to a whole number, which stands in the low bits
_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))


def times_power(p, k, z):
    """p · 2ᵏ, with z = k + 1.5 · 2⁵²."""
    return math.ldexp(p, int(k))


@intrinsic
def _times_power(typing_context, p, k, z):
    def codegen(context, builder, signature, args):
        whole = ir.IntType(64)
        shifted = builder.shl(builder.bitcast(args[2], whole), ir.Constant(whole, 52))
        return builder.bitcast(builder.add(builder.bitcast(args[0], whole), shifted), ir.DoubleType())

    return types.float64(types.float64, types.float64, types.float64), codegen


@overload(times_power)
def _times_power_compiled(p, k, z):
    return lambda p, k, z: _times_power(p, k, z)


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"}, inline="always")
def fast_exp(x):
    """exp(x) for x ≤ 709, in straight-line code that vectorizes; relative error below 4e-16, 3e-308 for x < −708."""
    x = max(x, -708.0)
    z = x * _LOG2E + _MAGIC
    k = z - _MAGIC
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _C13
    p = p * r + _C12
    p = p * r + _C11
    p = p * r + _C10
    p = p * r + _C9
    p = p * r + _C8
    p = p * r + _C7
    p = p * r + _C6
    p = p * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = p * (r * r) + r + 1.0
    return times_power(p, k, z)


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def exp_into(x, out):
    """exp of a vector of numbers up to 709."""
    for i in range(x.size):
        out[i] = fast_exp(x[i])


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _apply(row, profile):
    """The profile of squared distances, in place."""
    if profile == 1:
        for j in range(row.size):
            row[j] = fast_exp(-0.5 * row[j])
    elif profile == 2:
        for j in range(row.size):
            row[j] = fast_exp(-math.sqrt(row[j]))
    elif profile == 3:
        for j in range(row.size):
            t = math.sqrt(3.0 * row[j])
            row[j] = (1.0 + t) * fast_exp(-t)
    elif profile == 4:
        for j in range(row.size):
            t = math.sqrt(5.0 * row[j])
            row[j] = (1.0 + t + t * t / 3.0) * fast_exp(-t)


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _tile(A, BT, a2, b2, out, i0, i1, j0, j1, profile, products):
    """One tile: squared distances from the columns, or from products that stand in out; then the profile."""
    d, w = A.shape[1], j1 - j0
    for i in range(i0, i1):
        row = out[i, j0:j1]
        if products:
            squares, x = b2[j0:j1], a2[i]
            for j in range(w):
                row[j] = max(x + squares[j] - 2.0 * row[j], 0.0)
        else:
            c = d % 4
            for j in range(w):
                row[j] = 0.0
            for e in range(c):
                x, column = A[i, e], BT[e, j0:j1]
                for j in range(w):
                    t = x - column[j]
                    row[j] += t * t
            while c < d:  # four columns a pass: a quarter of the traffic with the row
                x0, x1, x2, x3 = A[i, c], A[i, c + 1], A[i, c + 2], A[i, c + 3]
                u0, u1, u2, u3 = BT[c, j0:j1], BT[c + 1, j0:j1], BT[c + 2, j0:j1], BT[c + 3, j0:j1]
                for j in range(w):
                    t0, t1, t2, t3 = x0 - u0[j], x1 - u1[j], x2 - u2[j], x3 - u3[j]
                    row[j] += (t0 * t0 + t1 * t1) + (t2 * t2 + t3 * t3)
                c += 4
        _apply(row, profile)


@njit(cache=True, nogil=True, boundscheck=False)
def _rows(A, BT, a2, b2, out, first, last, profile, products, symmetric):
    """Rows first … last of the matrix (and, when symmetric, their mirror image)."""
    m = out.shape[1]
    for i0 in range(first, last, TILE):
        i1 = min(i0 + TILE, last)
        end = i1 if symmetric else m
        for j0 in range(0, end, TILE):
            j1 = min(j0 + TILE, end)
            _tile(A, BT, a2, b2, out, i0, i1, j0, j1, profile, products)
            if symmetric:
                source, image = out[i0:i1, j0:j1], out[j0:j1, i0:i1]
                if j1 <= i0:
                    for j in range(j1 - j0):
                        for i in range(i1 - i0):
                            image[j, i] = source[i, j]
                else:
                    for j in range(j1 - j0):
                        for i in range(j + 1, i1 - i0):
                            image[j, i] = source[i, j]
        if symmetric:
            for i in range(i0, i1):
                out[i, i] = 0.0 if profile == 0 else 1.0


def _bands(n, symmetric, n_jobs):
    """Row ranges of about equal work, at tile borders."""
    ends = np.arange(1, n_jobs + 1) / n_jobs
    cuts = np.round((np.sqrt(ends) if symmetric else ends) * n / TILE).astype(int) * TILE
    cuts[-1] = n
    starts = np.concatenate([[0], cuts[:-1]])
    return [(int(a), int(b)) for a, b in zip(starts, cuts, strict=True) if b > a]


def distance_gram(A, B=None, profile=RBF, *, out=None, n_jobs=1):
    """profile(‖a_i − b_j‖²), shape (n, m), into `out` when given; O(n m d), by half without B."""
    symmetric = B is None
    other = A if B is None else B
    n, m, d = len(A), len(other), A.shape[1]
    if out is None:
        out = np.empty((n, m))
    if n == 0 or m == 0:
        return out
    products = d > SMALL_D
    none = np.empty(0)
    if products:
        center = other.mean(0)  # distances do not change, and products of small numbers cancel less
        A = A - center
        other = A if symmetric else other - center
        a2 = np.einsum("ij,ij->i", A, A)
        b2 = a2 if symmetric else np.einsum("ij,ij->i", other, other)
        _products(A, None if symmetric else other, out)
        BT = np.empty((0, 0))
    else:
        a2 = b2 = none
        BT = np.ascontiguousarray(other.T)
    jobs = _bands(n, symmetric, max(1, n_jobs))

    def run(band):
        _rows(A, BT, a2, b2, out, band[0], band[1], profile, products, symmetric)

    if len(jobs) == 1:
        run(jobs[0])
    else:
        with ThreadPoolExecutor(len(jobs)) as pool:
            list(pool.map(run, jobs))
    return out


def _products(A, B, out):
    """A Bᵀ into out; without B only the lower half of A Aᵀ."""
    if B is not None:
        np.matmul(A, B.T, out=out)
        return
    if not out.flags.c_contiguous:  # dsyrk writes in place only into whole matrices
        np.matmul(A, A.T, out=out)
        return
    from scipy.linalg.blas import dsyrk

    dsyrk(1.0, A.T, c=out.T, trans=1, lower=0, overwrite_c=1)


def squared_distances(A, B=None):
    """‖a_i − b_j‖²."""
    return distance_gram(A, B, SQUARED)


def rbf_gram(A, B=None, *, out=None, n_jobs=1):
    """exp(−½ ‖a_i − b_j‖²)."""
    return distance_gram(A, B, RBF, out=out, n_jobs=n_jobs)
