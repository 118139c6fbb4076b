"""Sums of a radial kernel over the points that stand near: Σ wᵢ κ(|q − xᵢ|²) for κ that ends at distance 1.

Points stand in *columns*: cells of side 1 over the first coordinates but one, and inside a column in the order of that
last one, `along`. A query looks at the columns around its own, and in each at the stretch whose last coordinate is at
most 1 away. Nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit

__all__ = ["near_sums"]

TOPHAT, EPANECHNIKOV, LINEAR, COSINE = range(4)
PIECE = 512  # points whose squared distances stand in the processor's cache
#: Added to a number, this share of it gives another one.
LEAST_STEP = 2.3e-16
# cos(π r / 2) as a polynomial of r²: eleven terms are exact to rounding for r ≤ 1.
_COS = np.array([(-1.0) ** k * (0.5 * math.pi) ** (2 * k) / math.factorial(2 * k) for k in range(11)])


def _squares_at_once(points, q, first, last, target):
    target[: last - first] = ((points[:, first:last] - q[:, None]) ** 2).sum(axis=0)


def _sum_at_once(shape, squares, weights, first, size):
    r2 = squares[:size]
    if shape == TOPHAT:
        values = np.ones(size)
    elif shape == EPANECHNIKOV:
        values = 1.0 - r2
    elif shape == LINEAR:
        values = 1.0 - np.sqrt(r2)
    else:
        values = np.cos(0.5 * np.pi * np.sqrt(r2))
    return float(np.where(r2 < 1.0, values, 0.0) @ weights[first : first + size])


@njit(cache=True, nogil=True, boundscheck=False, plain=_squares_at_once, no_cpython_wrapper=True)
def _squares(points, q, first, last, target):
    """target[k] = |points[:, first + k] − q|²."""
    size = last - first
    row = points[0]
    x = q[0]
    for k in range(size):
        t = row[first + k] - x
        target[k] = t * t
    for j in range(1, points.shape[0]):
        row = points[j]
        x = q[j]
        for k in range(size):
            t = row[first + k] - x
            target[k] += t * t


@njit(
    cache=True,
    nogil=True,
    boundscheck=False,
    fastmath={"contract", "nsz", "reassoc"},
    plain=_sum_at_once,
    no_cpython_wrapper=True,
)
def _sum(shape, squares, weights, first, size):
    """Σ w κ of one piece."""
    total = 0.0
    if shape == TOPHAT:
        for k in range(size):
            total += weights[first + k] if squares[k] < 1.0 else 0.0
    elif shape == EPANECHNIKOV:
        for k in range(size):
            total += weights[first + k] * max(1.0 - squares[k], 0.0)
    elif shape == LINEAR:
        for k in range(size):
            total += weights[first + k] * max(1.0 - np.sqrt(squares[k]), 0.0)
    else:
        for k in range(size):
            s = min(squares[k], 1.0)
            v = _COS[10]
            v = v * s + _COS[9]
            v = v * s + _COS[8]
            v = v * s + _COS[7]
            v = v * s + _COS[6]
            v = v * s + _COS[5]
            v = v * s + _COS[4]
            v = v * s + _COS[3]
            v = v * s + _COS[2]
            v = v * s + _COS[1]
            v = v * s + _COS[0]
            total += weights[first + k] * max(v, 0.0)
    return total


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _left_of(values, first, last, x):
    """The first place in values[first:last], which grow, that is not below x."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < x:
            first = middle + 1
        else:
            last = middle
    return first


def _work(shape, queries, points, weights, keys, starts, along, shifts, cells, out):
    return 20.0 * queries.shape[0] * shifts.shape[0]  # uncompiled, a column costs about as much as twenty steps


@njit(cache=True, nogil=True, boundscheck=False, work=_work)
def near_sums(shape, queries, points, weights, keys, starts, along, shifts, cells, out):
    """out[i] = Σ w κ(|queries[i] − x|²).

    `points` is (d, n) in the order of the columns; column c has the key keys[c] and the places starts[c]:starts[c + 1];
    cells[i] is the key of the query's own column, and shifts are the differences of keys to those around it.
    """
    room = np.empty(PIECE)
    for i in range(queries.shape[0]):
        q = queries[i]
        x = q[along]
        reach = max(1.0, LEAST_STEP * abs(x))  # of numbers so large that the next one is more than 1 away
        total = 0.0
        for s in range(shifts.shape[0]):
            key = cells[i] + shifts[s]
            c = _left_of(keys, np.int64(0), np.int64(keys.shape[0]), key)
            if c == keys.shape[0] or keys[c] != key:
                continue
            first = _left_of(points[along], starts[c], starts[c + 1], x - reach)
            last = _left_of(points[along], first, starts[c + 1], x + reach)
            for a in range(first, last, PIECE):
                b = min(a + PIECE, last)
                _squares(points, q, a, b, room)
                total += _sum(shape, room, weights, a, b - a)
        out[i] = total
