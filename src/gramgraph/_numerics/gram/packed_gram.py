"""A symmetric matrix as its lower triangle in six bytes an entry, row after row, and products with it.

An entry keeps its sign, its exponent and 36 bits after the point: a relative error of at most 2⁻³⁷ = 7e-12. `high`
holds the upper 32 bits of every double and `low` the next 16. Nothing is checked.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit, when_compiled

when_compiled("gramgraph._numerics.gram.packed_gram_compiled")

_HALF_UNIT = np.uint64(1 << 15)


def bits_of(x):
    """The 64 bits of a double."""
    return np.float64(x).view(np.uint64)


def double_of(bits):
    """The double with these 64 bits."""
    return np.uint64(bits).view(np.float64)


@njit(cache=True, nogil=True, boundscheck=False, forceinline=True, no_cpython_wrapper=True)
def _entry(high, low):
    """The double of its two parts."""
    return double_of((np.uint64(high) << np.uint64(32)) | (np.uint64(low) << np.uint64(16)))


def _put_at_once(rows, diag, start, high, low):
    for i, row in enumerate(rows, start):
        at = i * (i + 1) // 2
        row[i] = diag[i]
        bits = row[: i + 1].view(np.uint64) + _HALF_UNIT
        high[at : at + i + 1] = bits >> np.uint64(32)
        low[at : at + i + 1] = (bits >> np.uint64(16)).astype(np.uint16)


def _put_work(rows, diag, start, high, low):
    return rows.size / 50.0


@njit(cache=True, nogil=True, boundscheck=False, plain=_put_at_once, work=_put_work)
def put_rows(rows, diag, start, high, low):
    """Store rows start … of the matrix, given up to their diagonal, whose entries come from `diag`; rounds to nearest.

    The diagonal is written into `rows` too.
    """
    for r in range(rows.shape[0]):
        i = start + r
        at = i * (i + 1) // 2
        row, upper, lower = rows[r, : i + 1], high[at : at + i + 1], low[at : at + i + 1]
        row[i] = diag[i]
        for j in range(i + 1):
            bits = bits_of(row[j]) + _HALF_UNIT
            upper[j] = np.uint32(bits >> np.uint64(32))
            lower[j] = np.uint16(bits >> np.uint64(16))


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"}, no_cpython_wrapper=True)
def _four_rows(h0, h1, h2, h3, l0, l1, l2, l3, x, y, i):
    """Products of the entries left of column i in rows i … i + 3, with x and (mirrored) into y."""
    s0 = s1 = s2 = s3 = 0.0
    x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
    for j in range(i):
        a0, a1, a2, a3 = _entry(h0[j], l0[j]), _entry(h1[j], l1[j]), _entry(h2[j], l2[j]), _entry(h3[j], l3[j])
        v = x[j]
        s0 += a0 * v
        s1 += a1 * v
        s2 += a2 * v
        s3 += a3 * v
        y[j] += (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)
    y[i] += s0
    y[i + 1] += s1
    y[i + 2] += s2
    y[i + 3] += s3


def _product_by_rows(high, low, x, y):
    y[:] = 0.0
    for i in range(x.size):
        at = i * (i + 1) // 2
        bits = high[at : at + i + 1].astype(np.uint64)
        bits <<= np.uint64(32)
        bits |= low[at : at + i + 1].astype(np.uint64) << np.uint64(16)
        row = bits.view(np.float64)
        y[: i + 1] += row * x[i]
        y[i] += row[:i] @ x[:i]


def _product_work(high, low, x, y):
    return 8.0 * x.size + high.size / 100.0


@njit(cache=True, nogil=True, boundscheck=False, plain=_product_by_rows, work=_product_work)
def product(high, low, x, y):
    """y = A x, n² multiplications and additions; the matrix is read once, in order."""
    n = x.size
    for i in range(n):
        y[i] = 0.0
    whole = n // 4 * 4
    for i in range(0, whole, 4):
        p0 = i * (i + 1) // 2
        p1 = p0 + i + 1
        p2 = p1 + i + 2
        p3 = p2 + i + 3
        _four_rows(
            high[p0 : p0 + i], high[p1 : p1 + i], high[p2 : p2 + i], high[p3 : p3 + i],
            low[p0 : p0 + i], low[p1 : p1 + i], low[p2 : p2 + i], low[p3 : p3 + i],
            x, y, i,
        )  # fmt: skip
        _corner(high, low, x, y, i, i, i + 4)
    _corner(high, low, x, y, 0, whole, n)


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _corner(high, low, x, y, first, start, stop):
    """Rows start … stop, from column `first` to their diagonal."""
    for i in range(start, stop):
        at = i * (i + 1) // 2
        for j in range(first, i):
            a = _entry(high[at + j], low[at + j])
            y[i] += a * x[j]
            y[j] += a * x[i]
        y[i] += _entry(high[at + i], low[at + i]) * x[i]
