"""Gram matrices of distance kernels: 8 × 8 blocks that stay in registers from the coordinates to the kernel's value.

Points come scaled, as C-ordered float64 matrices; nothing is checked. `profile` names the function of s = ‖a − b‖²:
SQUARED s, RBF exp(−s/2), and Matérn 1/2, 3/2, 5/2 of r = √s. Symmetric matrices are computed by half; the mirror image
of a block is transposed in registers. Few columns are subtracted, which loses no digits; many are multiplied.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from gramgraph._numerics.compiling import njit, pays, processor_has, when_compiled
from gramgraph._numerics.vector8 import (
    add8,
    fill8,
    fma8,
    load8,
    max8,
    mul8,
    sqrt8,
    store8,
    store_columns8,
    stream8,
    stream_columns8,
    sub8,
    times_power8,
)

when_compiled("gramgraph._numerics.gram.grams_compiled")


SQUARED, RBF, MATERN12, MATERN32, MATERN52 = 0, 1, 2, 3, 4
SMALL_D = 15  # up to here differences cost little more than products
FEW = 8  # points of one side below which blocks would be mostly empty
FEW_ROWS = 4  # up to which NumPy takes the differences of whole points
STREAMED = 32 << 20  # bytes from which on a matrix leaves the caches anyway and is written past them
_WIDE = processor_has("avx512f")  # a value of eight doubles is one register
_LINE = 64  # bytes of a cache line
_PAGE = 1 << 18  # numbers of a large page
_CHUNK = 128  # columns of the points at a time: eight rows and eight columns fit the first cache
_BAND = 8  # blocks of rows at a time: with their columns they fit the second cache
_CACHED = 1 << 15  # numbers of a band of the NumPy form, which then stays in the second cache
_BANDED = 128  # rows of a band of a symmetric matrix, at least: half of it is computed where there are several
_NUMPY_STEP = 2e-9  # seconds that NumPy takes for one pair and column
_SCALE = {MATERN12: 1.0, MATERN32: 3.0, MATERN52: 5.0}
_SLAB = 256  # blocks of columns at a time

_MAGIC = 6755399441056767.0  # 1.5 · 2⁵² + 1023: adding it rounds to a whole number; its exponent is in the low bits
_LEAST = -709.0  # where 2ᵏ is 0, and so is exp: it starts at _CUT
_CUT = -1022.5 * math.log(2.0)  # numbers below it round to the power −1023
_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))


def times_power(p, k, z):
    """p · 2ᵏ, with z = k + 1023 + 1.5 · 2⁵² for k from −1023, where it is 0, to 1023."""
    return math.ldexp(p, int(k)) if k > -1023 else 0.0


@njit(
    cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"}, forceinline=True, no_cpython_wrapper=True
)
def fast_exp(x):
    """exp(x) for x ≤ 709, in straight-line code that vectorizes; relative error below 4e-16, 0 for x < −708.74."""
    x = max(x, _LEAST)
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


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"}, no_cpython_wrapper=True)
def exp_into(x, out):
    """exp of a vector of numbers up to 709."""
    for i in range(x.size):
        out[i] = fast_exp(x[i])


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _apply(row, profile):
    """The profile of squared distances, in place. Far points, where exp is 0, have finite polynomials too."""
    if profile == 1:
        for j in range(row.size):
            row[j] = fast_exp(-0.5 * row[j])
    elif profile == 2:
        for j in range(row.size):
            row[j] = fast_exp(-math.sqrt(row[j]))
    elif profile == 3:
        for j in range(row.size):
            t = min(math.sqrt(3.0 * row[j]), -_LEAST)
            row[j] = (1.0 + t) * fast_exp(-t)
    elif profile == 4:
        for j in range(row.size):
            t = min(math.sqrt(5.0 * row[j]), -_LEAST)
            row[j] = (1.0 + t + t * t / 3.0) * fast_exp(-t)


@njit(cache=True, nogil=True, boundscheck=False, forceinline=True, no_cpython_wrapper=True)
def exp8(x):
    """`fast_exp` of eight numbers."""
    return _exp8(max8(x, fill8(_LEAST)))


@njit(cache=True, nogil=True, boundscheck=False, forceinline=True, no_cpython_wrapper=True)
def _exp8(x):
    """exp of eight numbers from _LEAST on."""
    z = fma8(x, fill8(_LOG2E), fill8(_MAGIC))
    k = sub8(z, fill8(_MAGIC))
    r = fma8(k, fill8(-_LN2_LOW), fma8(k, fill8(-_LN2_HIGH), x))
    p = fma8(fill8(_C13), r, fill8(_C12))
    p = fma8(p, r, fill8(_C11))
    p = fma8(p, r, fill8(_C10))
    p = fma8(p, r, fill8(_C9))
    p = fma8(p, r, fill8(_C8))
    p = fma8(p, r, fill8(_C7))
    p = fma8(p, r, fill8(_C6))
    p = fma8(p, r, fill8(_C5))
    p = fma8(p, r, fill8(_C4))
    p = fma8(p, r, fill8(_C3))
    p = fma8(p, r, fill8(_C2))
    p = add8(fma8(p, mul8(r, r), r), fill8(1.0))
    return times_power8(p, z)


@njit(cache=True, nogil=True, boundscheck=False, forceinline=True, no_cpython_wrapper=True)
def _value8(s, profile):
    """The profile of eight squared distances."""
    if profile == 0:
        v = s
    elif profile == 1:
        v = exp8(mul8(s, fill8(-0.5)))
    elif profile == 2:
        v = exp8(sub8(fill8(0.0), sqrt8(s)))
    elif profile == 3:
        x = max8(sub8(fill8(0.0), sqrt8(mul8(s, fill8(3.0)))), fill8(_LEAST))
        v = mul8(sub8(fill8(1.0), x), _exp8(x))
    else:
        x = max8(sub8(fill8(0.0), sqrt8(mul8(s, fill8(5.0)))), fill8(_LEAST))
        v = mul8(fma8(mul8(x, fill8(1.0 / 3.0)), x, sub8(fill8(1.0), x)), _exp8(x))
    return v


@njit(cache=True, nogil=True, boundscheck=False, forceinline=True, no_cpython_wrapper=True)
def _distance8(product, a, b):
    """‖a‖² + ‖b‖² − 2 aᵀb of eight pairs, from aᵀb and the squares."""
    return max8(fma8(product, fill8(-2.0), add8(fill8(a), b)), fill8(0.0))


@njit(cache=True, nogil=True, boundscheck=False)
def _pack(A, center, P, squares):
    """Eight points side by side, column after column (missing ones are zeros), chunk by chunk; and their squares.

    The squares are summed in the order of the products, so that equal points have the distance 0 to the last bit.
    """
    n, d = A.shape
    groups = (n + 7) // 8
    for g in range(groups):
        total = fill8(0.0)
        for start in range(0, d, _CHUNK):
            length = min(_CHUNK, d - start)
            at = (start * groups + g * length) * 8
            for c in range(length):
                for r in range(8):
                    i = g * 8 + r
                    P[at + r] = A[i, start + c] - center[start + c] if i < n else 0.0
                v = load8(P, np.uint64(at))
                total = fma8(v, v, total)
                at += 8
        store8(squares, np.uint64(g * 8), total)


@njit(cache=True, nogil=True, boundscheck=False)
def _blocks(P, Q, a2, b2, out, width, shape, first, last, profile, products, symmetric, stream):
    """Blocks of eight rows first … last of `out`, a flat array with `width` numbers a row (and their mirror image).

    Columns of the points come _CHUNK at a time, for bands of rows and slabs of columns of `out` in turn: what is read
    often stays in the caches. Sums wait in `sums` between chunks. With half as wide registers four rows are summed
    before the other four, so that their sums fit.
    """
    n, m, d = shape
    rows, columns = (n + 7) // 8, (m + 7) // 8
    eight, step = np.uint64(8), np.uint64(width)
    chunks = (d + _CHUNK - 1) // _CHUNK
    rest = np.empty(64)
    sums = np.zeros(_BAND * _SLAB * 64 if chunks > 1 else 64)
    for g0 in range(first, last, _BAND):
        g1 = min(g0 + _BAND, last)
        end = g1 if symmetric else columns
        for h0 in range(0, end, _SLAB):
            for chunk in range(chunks):
                start = chunk * _CHUNK
                length = min(_CHUNK, d - start)
                for h in range(h0, min(h0 + _SLAB, end)):
                    for g in range(max(g0, h) if symmetric else g0, g1):
                        zero = fill8(0.0)
                        x0, x1, x2, x3, x4, x5, x6, x7 = zero, zero, zero, zero, zero, zero, zero, zero
                        k = np.uint64(((h - h0) * _BAND + g - g0) * 64)
                        if chunk > 0:
                            x0 = load8(sums, k)
                            x1 = load8(sums, k + np.uint64(8))
                            x2 = load8(sums, k + np.uint64(16))
                            x3 = load8(sums, k + np.uint64(24))
                            x4 = load8(sums, k + np.uint64(32))
                            x5 = load8(sums, k + np.uint64(40))
                            x6 = load8(sums, k + np.uint64(48))
                            x7 = load8(sums, k + np.uint64(56))
                        a, b = np.uint64((start * rows + g * length) * 8), np.uint64((start * columns + h * length) * 8)
                        c, e = a, b
                        if products:
                            for _ in range(length):
                                v = load8(Q, b)
                                x0 = fma8(fill8(P[a]), v, x0)
                                x1 = fma8(fill8(P[a + np.uint64(1)]), v, x1)
                                x2 = fma8(fill8(P[a + np.uint64(2)]), v, x2)
                                x3 = fma8(fill8(P[a + np.uint64(3)]), v, x3)
                                if _WIDE:
                                    x4 = fma8(fill8(P[a + np.uint64(4)]), v, x4)
                                    x5 = fma8(fill8(P[a + np.uint64(5)]), v, x5)
                                    x6 = fma8(fill8(P[a + np.uint64(6)]), v, x6)
                                    x7 = fma8(fill8(P[a + np.uint64(7)]), v, x7)
                                a += eight
                                b += eight
                            for _ in range(0 if _WIDE else length):
                                v = load8(Q, e)
                                x4 = fma8(fill8(P[c + np.uint64(4)]), v, x4)
                                x5 = fma8(fill8(P[c + np.uint64(5)]), v, x5)
                                x6 = fma8(fill8(P[c + np.uint64(6)]), v, x6)
                                x7 = fma8(fill8(P[c + np.uint64(7)]), v, x7)
                                c += eight
                                e += eight
                        else:
                            for _ in range(length):
                                v = load8(Q, b)
                                t = sub8(fill8(P[a]), v)
                                x0 = fma8(t, t, x0)
                                t = sub8(fill8(P[a + np.uint64(1)]), v)
                                x1 = fma8(t, t, x1)
                                t = sub8(fill8(P[a + np.uint64(2)]), v)
                                x2 = fma8(t, t, x2)
                                t = sub8(fill8(P[a + np.uint64(3)]), v)
                                x3 = fma8(t, t, x3)
                                if _WIDE:
                                    t = sub8(fill8(P[a + np.uint64(4)]), v)
                                    x4 = fma8(t, t, x4)
                                    t = sub8(fill8(P[a + np.uint64(5)]), v)
                                    x5 = fma8(t, t, x5)
                                    t = sub8(fill8(P[a + np.uint64(6)]), v)
                                    x6 = fma8(t, t, x6)
                                    t = sub8(fill8(P[a + np.uint64(7)]), v)
                                    x7 = fma8(t, t, x7)
                                a += eight
                                b += eight
                            for _ in range(0 if _WIDE else length):
                                v = load8(Q, e)
                                t = sub8(fill8(P[c + np.uint64(4)]), v)
                                x4 = fma8(t, t, x4)
                                t = sub8(fill8(P[c + np.uint64(5)]), v)
                                x5 = fma8(t, t, x5)
                                t = sub8(fill8(P[c + np.uint64(6)]), v)
                                x6 = fma8(t, t, x6)
                                t = sub8(fill8(P[c + np.uint64(7)]), v)
                                x7 = fma8(t, t, x7)
                                c += eight
                                e += eight
                        if chunk + 1 < chunks:
                            store8(sums, k, x0)
                            store8(sums, k + np.uint64(8), x1)
                            store8(sums, k + np.uint64(16), x2)
                            store8(sums, k + np.uint64(24), x3)
                            store8(sums, k + np.uint64(32), x4)
                            store8(sums, k + np.uint64(40), x5)
                            store8(sums, k + np.uint64(48), x6)
                            store8(sums, k + np.uint64(56), x7)
                            continue
                        if products:
                            s = load8(b2, np.uint64(h * 8))
                            x0, x1 = _distance8(x0, a2[g * 8], s), _distance8(x1, a2[g * 8 + 1], s)
                            x2, x3 = _distance8(x2, a2[g * 8 + 2], s), _distance8(x3, a2[g * 8 + 3], s)
                            x4, x5 = _distance8(x4, a2[g * 8 + 4], s), _distance8(x5, a2[g * 8 + 5], s)
                            x6, x7 = _distance8(x6, a2[g * 8 + 6], s), _distance8(x7, a2[g * 8 + 7], s)
                        x0, x1, x2 = _value8(x0, profile), _value8(x1, profile), _value8(x2, profile)
                        x3, x4, x5 = _value8(x3, profile), _value8(x4, profile), _value8(x5, profile)
                        x6, x7 = _value8(x6, profile), _value8(x7, profile)
                        i, j = g * 8, h * 8
                        at, mirror = np.uint64(i) * step + np.uint64(j), np.uint64(j) * step + np.uint64(i)
                        if i + 8 > n or j + 8 > m:  # at the borders a part of the block counts
                            store_columns8(rest, np.uint64(0), eight, (x0, x1, x2, x3, x4, x5, x6, x7))
                            for q in range(min(8, m - j)):
                                for p in range(min(8, n - i)):
                                    out[(i + p) * width + j + q] = rest[q * 8 + p]
                                    if symmetric:
                                        out[(j + q) * width + i + p] = rest[q * 8 + p]
                        elif stream:
                            stream8(out, at, x0)
                            stream8(out, at + step, x1)
                            stream8(out, at + np.uint64(2) * step, x2)
                            stream8(out, at + np.uint64(3) * step, x3)
                            stream8(out, at + np.uint64(4) * step, x4)
                            stream8(out, at + np.uint64(5) * step, x5)
                            stream8(out, at + np.uint64(6) * step, x6)
                            stream8(out, at + np.uint64(7) * step, x7)
                            if symmetric and g != h:
                                stream_columns8(out, mirror, step, (x0, x1, x2, x3, x4, x5, x6, x7))
                        else:
                            store8(out, at, x0)
                            store8(out, at + step, x1)
                            store8(out, at + np.uint64(2) * step, x2)
                            store8(out, at + np.uint64(3) * step, x3)
                            store8(out, at + np.uint64(4) * step, x4)
                            store8(out, at + np.uint64(5) * step, x5)
                            store8(out, at + np.uint64(6) * step, x6)
                            store8(out, at + np.uint64(7) * step, x7)
                            if symmetric and g != h:
                                store_columns8(out, mirror, step, (x0, x1, x2, x3, x4, x5, x6, x7))


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"})
def _few(A, B, out):
    """‖a_i − b_j‖² where one side has few points: no packing, rows as they stand."""
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            s = 0.0
            for c in range(A.shape[1]):
                t = A[i, c] - B[j, c]
                s += t * t
            out[i, j] = s


def _bands(n, symmetric, n_jobs):
    """Ranges of blocks of eight rows, of about equal work."""
    groups = (n + 7) // 8
    ends = np.arange(1, n_jobs + 1) / n_jobs
    cuts = np.round((np.sqrt(ends) if symmetric else ends) * groups).astype(int)
    starts = np.concatenate([[0], cuts[:-1]])
    return [(int(a), int(b)) for a, b in zip(starts, cuts, strict=True) if b > a]


def _aligned(n, m):
    """A new matrix that starts at a multiple of a cache line.

    Its pages are touched at once: the system clears them in order, not in between writes that go past the caches.
    """
    whole = np.empty(n * m + 7)
    whole[::_PAGE] = 0.0
    skip = (-whole.ctypes.data % _LINE) // 8
    return whole[skip : skip + n * m].reshape(n, m)


class _Wanted(threading.local):
    """What a thread asks of its matrices."""

    same_digits = False


_WANTED = _Wanted()


@contextmanager
def same_digits() -> Iterator[None]:
    """Matrices that this thread computes have the same digits whether loops are compiled or not: NumPy makes them."""
    before = _WANTED.same_digits
    _WANTED.same_digits = True
    try:
        yield
    finally:
        _WANTED.same_digits = before


def distance_gram(A, B=None, profile=RBF, *, out=None, n_jobs=1):
    """profile(‖a_i − b_j‖²), shape (n, m), into `out` when given; O(n m d), by half without B."""
    symmetric = B is None
    other = A if B is None else B
    n, m, d = len(A), len(other), A.shape[1]
    if out is None:
        out = _aligned(n, m) if 8 * n * m >= STREAMED else np.empty((n, m))
    if n == 0 or m == 0:
        return out
    if _WANTED.same_digits or not pays(_blocks, n * m * (d + 10) * _NUMPY_STEP):
        _by_numpy(A, other, out, profile)
    elif min(n, m) < FEW:
        _few(A, other, out)
        for row in out.reshape(1, -1) if out.flags.c_contiguous else out:  # one call, not one a row
            _apply(row, profile)
    elif out.strides[1] != 8:
        out[:] = distance_gram(A, B, profile, n_jobs=n_jobs)
    else:
        _packed(A, other, out, (n, m, d), profile, symmetric, n_jobs)
    if symmetric:
        np.fill_diagonal(out, 0.0 if profile == SQUARED else 1.0)
    return out


def rbf_by_products(A, B, halves):
    """exp(−½‖a_i − b_j‖²) for few rows A, where −½‖b_j‖² is known: one product, for points around zero."""
    s = A @ B.T
    s += halves
    s -= 0.5 * np.einsum("ij,ij->i", A, A)[:, None]
    np.minimum(s, 0.0, out=s)
    return np.exp(s, out=s)


def _by_numpy(A, other, out, profile):
    """The same by NumPy, while the loops are not compiled: band after band, differences of one column at a time.

    `other` is A itself where the matrix is symmetric.
    """
    if len(A) < FEW_ROWS:
        for i in range(len(A)):
            t = other - A[i]
            out[i] = _profile(np.einsum("ij,ij->i", t, t), profile)
        return
    same = other is A
    rows = max(1, min(_CACHED // len(other), max(_BANDED, len(other) // 6) if same else len(other)))
    for start in range(0, len(A), rows):
        first = start if same else 0  # the columns before are the mirror image of what is done
        block, rest = A[start : start + rows], other[first:]
        t, s = np.empty((2, len(block), len(rest)))
        s[:] = 0.0
        for c in range(A.shape[1]):
            np.subtract(block[:, c, None], rest[:, c], out=t)
            t *= t
            s += t
        out[start : start + rows, first:] = _profile(s, profile)
        if same:
            out[start + rows :, start : start + rows] = out[start : start + rows, start + rows :].T


def _profile(s, profile):
    if profile == SQUARED:
        return s
    if profile == RBF:
        s *= -0.5
        far = s < _CUT
        v = np.exp(s, out=s)
    else:
        t = np.sqrt(_SCALE[profile] * s)
        far = t > -_CUT
        v = np.exp(-t)
        if profile != MATERN12:
            np.minimum(t, -_LEAST, out=t)
            v *= 1.0 + t if profile == MATERN32 else 1.0 + t + t * t / 3.0
    v[far] = 0.0  # as compiled: no numbers of few digits
    return v


def _packed(A, other, out, shape, profile, symmetric, n_jobs):
    n, m, d = shape
    products = d > SMALL_D
    center = other.mean(0) if products else np.zeros(d)  # products of small numbers cancel less

    def pack(X):
        size = (len(X) + 7) // 8 * 8
        P, squares = np.empty(size * d), np.empty(size)
        _pack(X, center, P, squares)
        return P, squares

    P, a2 = pack(A)
    Q, b2 = (P, a2) if symmetric else pack(other)
    width = out.strides[0] // 8
    flat = np.lib.stride_tricks.as_strided(out, ((n - 1) * width + m,), (8,))
    stream = out.ctypes.data % _LINE == 0 and width % 8 == 0 and 8 * n * m >= STREAMED

    def run(band):
        _blocks(P, Q, a2, b2, flat, width, shape, band[0], band[1], profile, products, symmetric, stream)

    bands = _bands(n, symmetric, max(1, n_jobs))
    if len(bands) == 1:
        run(bands[0])
    else:
        with ThreadPoolExecutor(len(bands)) as pool:
            list(pool.map(run, bands))


def squared_distances(A, B=None):
    """‖a_i − b_j‖²."""
    return distance_gram(A, B, SQUARED)


def rbf_gram(A, B=None, *, out=None, n_jobs=1):
    """exp(−½ ‖a_i − b_j‖²)."""
    return distance_gram(A, B, RBF, out=out, n_jobs=n_jobs)
