"""exp of a matrix of exponents in place, in either precision, a block of rows at a time and mirrored.

Blocks come from matrix products; they are finished while they stand in the cache. Nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit, when_compiled
from gramgraph._numerics.gram.grams import fast_exp

when_compiled("gramgraph._numerics.svm.exponents_compiled")

TILE = 64

_MAGIC = np.float32(
    12583039.0
)  # 1.5 · 2²³ + 127: adding it rounds to a whole number, and its exponent is in the low bits
_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_ZERO, _ONE, _LEAST = np.float32(0.0), np.float32(1.0), np.float32(-88.0)
_C2, _C3, _C4, _C5, _C6, _C7 = (np.float32(1.0 / math.factorial(k)) for k in range(2, 8))


def times_power32(p, k, z):
    """p · 2ᵏ in single precision, with z = k + 127 + 1.5 · 2²³ for k from −127, where it is 0, to 127."""
    return np.float32(math.ldexp(p, int(k)) if k > -127 else 0.0)


@njit(
    cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"}, forceinline=True, no_cpython_wrapper=True
)
def fast_exp32(x):
    """exp(x) for x ≤ 88 in single precision; relative error below 2e-7, 0 for x < −87.7."""
    x = max(x, _LEAST)
    z = x * _LOG2E + _MAGIC
    k = z - _MAGIC
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _C7
    p = p * r + _C6
    p = p * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = p * (r * r) + r + _ONE
    return times_power32(p, k, z)


def exp_down(row, scale):
    """row = exp(min(scale · row, 0)), in place."""
    row[:] = np.exp(np.minimum(scale * row, 0.0))


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _exp_single(row, scale):
    for j in range(row.size):
        row[j] = fast_exp32(min(np.float32(scale) * row[j], _ZERO))


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _exp_double(row, scale):
    for j in range(row.size):
        row[j] = fast_exp(min(scale * row[j], 0.0))


@njit(cache=True, nogil=True, boundscheck=False)
def exp_rows(K, scale):
    """K = exp(min(scale · K, 0)), in place."""
    for i in range(K.shape[0]):
        exp_down(K[i], scale)


def turn8(K, i, j):
    """K[j:j+8, i:i+8] = K[i:i+8, j:j+8]ᵀ."""
    i, j = int(i), int(j)
    K[j : j + 8, i : i + 8] = K[i : i + 8, j : j + 8].T


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def mirror(K, first, last):
    """K[:last, first:last] = K[first:last, :last]ᵀ, by tiles and eight by eight inside; K is in C order, whole."""
    for j0 in range(0, last, TILE):
        j1 = min(j0 + TILE, last)
        for i0 in range(first, last, TILE):
            i1 = min(i0 + TILE, last)
            if j1 <= i0:
                i8 = i0 + (i1 - i0) // 8 * 8
                j8 = j0 + (j1 - j0) // 8 * 8
                for j in range(j0, j8, 8):
                    for i in range(i0, i8, 8):
                        turn8(K, i, j)
                for j in range(j0, j1):
                    for i in range(i0 if j >= j8 else i8, i1):
                        K[j, i] = K[i, j]
            else:
                for j in range(j0, j1):
                    for i in range(max(i0, j + 1), i1):
                        K[j, i] = K[i, j]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _lift_single(row, half, own):
    for j in range(row.size):
        row[j] = fast_exp32(min((row[j] - half[j]) - own, _ZERO))


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _lift_double(row, half, own):
    for j in range(row.size):
        row[j] = fast_exp(min((row[j] - half[j]) - own, 0.0))


def exp_products(row, half, own):
    """row = exp(min(row − half − own, 0)), in place."""
    row[:] = np.exp(np.minimum(row - half - own, 0.0))


def _of_band(K, half, start, stop):
    return float(stop - start) * stop / 20.0  # rows are taken as a whole


@njit(cache=True, nogil=True, boundscheck=False, work=_of_band)
def finish_products(K, half, start, stop):
    """Products zᵢᵀzⱼ in the rows start … stop − 1 of the lower triangle become exp(−‖zᵢ − zⱼ‖²/2), and so do their
    mirror images; half = ‖z‖²/2. `start` is a multiple of the tile."""
    for first in range(start, stop, TILE):
        last = min(first + TILE, stop)
        for i in range(first, last):
            exp_products(K[i, :last], half[:last], half[i])
            K[i, i] = 1.0
        mirror(K, first, last)


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"}, no_cpython_wrapper=True)
def _dot(row, v):
    """Σ row · v in the precision of both. Apart from the exponentials, whose rounding must not be rearranged."""
    total = row[0] * v[0]
    for j in range(1, row.size):
        total += row[j] * v[j]
    return total


def _times_at_once(K, v, out):
    np.exp(np.minimum(K, 0.0, out=K), out=K)
    out[:] = 0.0
    for start in range(0, K.shape[1], 256):
        out += K[:, start : start + 256] @ v[start : start + 256]


def _times_work(K, v, out):
    return K.size / 50.0


@njit(cache=True, nogil=True, boundscheck=False, plain=_times_at_once, work=_times_work)
def exp_times(K, v, out):
    """out = exp(min(K, 0)) @ v; sums of 256 terms in the precision of K, sums of sums in double precision."""
    m = K.shape[1]
    for i in range(K.shape[0]):
        exp_down(K[i], 1.0)
        total = 0.0
        for start in range(0, m, 256):
            stop = min(start + 256, m)
            total += np.float64(_dot(K[i, start:stop], v[start:stop]))
        out[i] = total
