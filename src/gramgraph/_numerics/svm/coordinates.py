"""Coordinate descent for linear support vector machines over sparse rows: one sweep over the points.

The problem: min ½ |w|² + ½ ρ s² + b s − Σ α over 0 ≤ α ≤ U, with w = Σ y α x and s = Σ y α. For fixed b it is the
augmented Lagrangian of the dual with the condition s = 0. A step sets one α to its best value: O(nonzeros of its row).
Nothing is checked.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

__all__ = ["sweep"]

# Places of what a sweep reads and says: s; the extremes of the projected gradient, before and now.
TOTAL, OLD_TOP, OLD_BOTTOM, TOP, BOTTOM = range(5)
STATE_SIZE = 5
SMALL = 1e-12


def _dot_at_once(indices, values, start, stop, w):
    return float(values[start:stop] @ w[indices[start:stop]])


def _add_at_once(indices, values, start, stop, by, w):
    w[indices[start:stop]] += by * values[start:stop]


@njit(cache=True, nogil=True, boundscheck=False, plain=_dot_at_once, no_cpython_wrapper=True)
def _dot(indices, values, start, stop, w):
    """The product of a sparse row and w; columns of a row are distinct."""
    even = 0.0
    odd = 0.0
    last = stop - (stop - start) % 2
    for k in range(start, last, 2):
        even += values[k] * w[indices[k]]
        odd += values[k + 1] * w[indices[k + 1]]
    if last < stop:
        even += values[last] * w[indices[last]]
    return even + odd


@njit(cache=True, nogil=True, boundscheck=False, plain=_add_at_once, no_cpython_wrapper=True)
def _add(indices, values, start, stop, by, w):
    """w += by · row."""
    for k in range(start, stop):
        w[indices[k]] += by * values[k]


@njit(cache=True, nogil=True, boundscheck=False)
def sweep(first, indices, values, y, upper, curve, alpha, w, order, size, rho, level, state):
    """One step for each of order[:size]; those that are sure to stay at their bound move behind the others.

    `curve` is |x|² + ρ, `level` is b. Returns how many are left.
    """
    total = state[TOTAL]
    top = -1e300
    bottom = 1e300
    t = np.int64(0)
    while t < size:
        i = order[t]
        side = y[i]
        a = alpha[i]
        g = side * (_dot(indices, values, first[i], first[i + 1], w) + rho * total + level) - 1.0
        v = g
        leaves = False
        if a <= 0.0:
            leaves = g > state[OLD_TOP]
            v = min(g, 0.0)
        elif a >= upper[i]:
            leaves = g < state[OLD_BOTTOM]
            v = max(g, 0.0)
        if leaves:
            size -= 1
            order[t] = order[size]
            order[size] = i
            continue
        top = max(top, v)
        bottom = min(bottom, v)
        if abs(v) > SMALL:
            new = min(max(a - g / curve[i], 0.0), upper[i])
            by = (new - a) * side
            alpha[i] = new
            total += by
            _add(indices, values, first[i], first[i + 1], by, w)
        t += 1
    state[TOTAL] = total
    state[TOP] = top
    state[BOTTOM] = bottom
    return size
