"""The vectors of limited-memory quasi-Newton descent: what a move has shown, where to go next, and a penalty.

Vectors are often so short that a call of NumPy costs more than its sum; each of these is one call.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gramgraph._numerics.compiling import njit

#: More moves than this, of no longer vectors, are faster as products of matrices.
_MANY, _SHORT = 8, 2048
_ENTRY = 2e-3  # steps of a loop that NumPy takes for one entry
#: A move is remembered when the slope grew along it by more than this share of both lengths.
_GROWN = 1e-10

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "boundscheck": False, "fastmath": {"reassoc", "contract"}}


def _direction_with_numpy(slope, S, Y, products, newest, count):
    rows = [(newest - k) % len(products) for k in range(count)]
    if count > _MANY and slope.size <= _SHORT:
        return _direction_of_products(slope, S[rows[::-1]], Y[rows[::-1]])
    q = -slope
    weights = []
    for i in rows:
        weights.append(float(S[i] @ q) / products[i])
        q -= weights[-1] * Y[i]
    if count:
        q *= products[newest] / float(Y[newest] @ Y[newest])
    for i, a in zip(reversed(rows), reversed(weights), strict=True):
        q += (a - float(Y[i] @ q) / products[i]) * S[i]
    return q, float(q @ slope)


def _direction_of_products(slope, S, Y):
    """The same as products of matrices (Byrd, Nocedal and Schnabel 1994): their number does not grow with the moves.

    Rows stand from the oldest to the newest; R holds the products of moves with changes that are not older.
    """
    products, changes = S @ Y.T, Y @ Y.T
    R, D = np.triu(products), np.diag(products)
    scale = D[-1] / changes[-1, -1]
    u = np.linalg.solve(R, S @ slope)
    right = D * u + scale * (changes @ u - Y @ slope)
    v = np.linalg.solve(R.T[::-1, ::-1], right[::-1])[::-1]  # upwards: a triangle that needs no pivots
    q = scale * (u @ Y - slope) - v @ S
    return q, float(q @ slope)


def _work(slope, S, Y, products, newest, count):
    return _ENTRY * (4 * count + 1) * slope.size


@njit(**_OPTIONS, plain=_direction_with_numpy, work=_work)
def quasi_newton(slope, S, Y, products, newest, count):
    """(− H · slope, its product with the slope) by the two-loop recursion, H a guess of the inverse Hessian.

    It is made from the last `count` moves. Rows of S and Y are moves and what they did to the slope, products their
    inner products; the newest stands at `newest`, older ones before it, around the end.
    """
    size, rows = slope.shape[0], products.shape[0]
    q = -slope
    weights = products.copy()
    for k in range(count):
        i = (newest - k) % rows
        sum_ = 0.0
        for j in range(size):
            sum_ += S[i, j] * q[j]
        weights[i] = sum_ / products[i]
        for j in range(size):
            q[j] -= weights[i] * Y[i, j]
    if count > 0:
        sum_ = 0.0
        for j in range(size):
            sum_ += Y[newest, j] * Y[newest, j]
        for j in range(size):
            q[j] *= products[newest] / sum_
    for k in range(count - 1, -1, -1):
        i = (newest - k) % rows
        sum_ = 0.0
        for j in range(size):
            sum_ += Y[i, j] * q[j]
        change = weights[i] - sum_ / products[i]
        for j in range(size):
            q[j] += change * S[i, j]
    down = 0.0
    for j in range(size):
        down += q[j] * slope[j]
    return q, down


def _remember_with_numpy(w, moved, g, new, S, Y, products, at):
    move, change = moved - w, new - g
    product = float(move @ change)
    if not product > _GROWN * math.sqrt(float(change @ change)) * math.sqrt(float(move @ move)):
        return False
    S[at], Y[at], products[at] = move, change, product
    return True


def _remember_work(w, *rest):
    return 5 * _ENTRY * w.size


@njit(**_OPTIONS, plain=_remember_with_numpy, work=_remember_work)
def remember(w, moved, g, new, S, Y, products, at):
    """Put the move from w, where the gradient was g, into row `at`, if the slope grew along it; whether it did."""
    product, moves, changes = 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        move, change = moved[j] - w[j], new[j] - g[j]
        product += move * change
        moves += move * move
        changes += change * change
    if not product > _GROWN * math.sqrt(changes) * math.sqrt(moves):
        return False
    for j in range(w.shape[0]):
        S[at, j], Y[at, j] = moved[j] - w[j], new[j] - g[j]
    products[at] = product
    return True


def _penalize_with_numpy(w, observed, c2, g):
    g -= observed
    if c2:
        g += (2.0 * c2) * w
    return c2 * float(w @ w) - float(observed @ w)


def _penalize_work(w, *rest):
    return 4 * _ENTRY * w.size


@njit(**_OPTIONS, plain=_penalize_with_numpy, work=_penalize_work)
def penalize(w, observed, c2, g):
    """c2 ‖w‖² − observedᵀ w; its gradient is added to g."""
    squares, product = 0.0, 0.0
    for j in range(w.shape[0]):
        g[j] += 2.0 * c2 * w[j] - observed[j]
        squares += w[j] * w[j]
        product += observed[j] * w[j]
    return c2 * squares - product
