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
    """The product of a sparse row and w; four sums, since one would wait for each addition."""
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    last = stop - (stop - start) % 4
    for k in range(start, last, 4):
        a += values[k] * w[indices[k]]
        b += values[k + 1] * w[indices[k + 1]]
        c += values[k + 2] * w[indices[k + 2]]
        d += values[k + 3] * w[indices[k + 3]]
    for k in range(last, stop):
        a += values[k] * w[indices[k]]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True, boundscheck=False, plain=_add_at_once, no_cpython_wrapper=True)
def _add(indices, values, start, stop, by, w):
    """w += by · row."""
    for k in range(start, stop):
        w[indices[k]] += by * values[k]


@njit(cache=True, nogil=True, boundscheck=False)
def sweep(first, indices, values, y, upper, curve, alpha, w, order, size, rho, level, state):
    """One step for each of order[:size]; those that are sure to stay at their bound move behind the others.

    `curve` is |x|² + ρ, `level` is b. `first` and `indices` are unsigned: signed ones would be asked for their sign at
    every entry. Returns how many are left.
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
