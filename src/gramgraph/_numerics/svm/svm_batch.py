"""Two-class support vector problems on parts of one set of points, solved without leaving compiled code.

The problem: min ½ βᵀKβ − yᵀβ with low ≤ β ≤ high and Σ β fixed. It is that of `smo` with one variable a point;
f = Kβ − y. K comes from W in one of two ways, which `power` tells apart: 0: W is the Gram matrix of all points and
K = W[points, points]; above: W is (d, all points), column by column a point, and K = (scale · xᵀx′ + offset)^power.
Rows of K are gathered or computed when a step first needs them, so that a problem of n points with s distinct rows in
its steps costs n s entries, not n². Inside the loop f is kept twice: `rise` where a point may grow
(BIG elsewhere) and `fall` where it may shrink (−BIG elsewhere), which saves looking at bounds. Nothing is checked.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.svm.batch_lanes import (
    NOWHERE32,
    above8,
    change8,
    earliest8,
    greatest8,
    larger8,
    profit8,
    singles8,
)
from gramgraph._numerics.svm.batch_rows import HALF_BIG, fetch, pack, products, raise_, split, stretches, value
from gramgraph._numerics.svm.free import FEW, free_points, minimize_free
from gramgraph._numerics.svm.smo import TINY
from gramgraph._numerics.svm.smo_lanes import NOWHERE, first8, least8, min8, most8, under8
from gramgraph._numerics.vector8 import LANES, add8, fill8, load8, max8, store8

SHRINK_EVERY = 1000
TOGETHER_EVERY = 100  # steps on pairs, then, of points, one of all free points together
SHRINK_BELOW = 0.8
SMALL = 64  # problems up to this size are not shrunk
# Places of what `solve_box` says.
STEPS, DONE, CURVED, BOTTOM, TOP = range(5)
REPORT_SIZE = 5


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _extremes(rise, fall):
    """(least that may grow, its first place, largest that may shrink)."""
    bottom = NOWHERE
    place = 0
    top = -NOWHERE
    for k in range(rise.shape[0]):
        if rise[k] < bottom:
            bottom = rise[k]
            place = k
        top = max(top, fall[k])
    return bottom, place, top


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _move(rise, fall, Ki, Kj, step):
    """f += step · (Ki − Kj) where it is kept, and the extremes of the new f in the same pass."""
    m = rise.shape[0]
    whole = m // LANES * LANES
    low = fill8(NOWHERE)
    at = fill8(NOWHERE)
    high = fill8(-NOWHERE)
    for k in range(0, whole, LANES):
        here = np.uint64(k)
        by = change8(Ki, Kj, step, here)
        v = add8(load8(rise, here), by)
        u = add8(load8(fall, here), by)
        store8(rise, here, v)
        store8(fall, here, u)
        at = under8(v, low, at, here)
        low = min8(low, v)
        high = max8(high, u)
    bottom = least8(low)
    place = first8(low, at, bottom)
    top = most8(high)
    for k in range(whole, m):
        by = step * np.float64(Ki[k] - Kj[k])
        rise[k] += by
        fall[k] += by
        if rise[k] < bottom:
            bottom = rise[k]
            place = k
        top = max(top, fall[k])
    return bottom, np.int64(place), top


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _partner(fall, Ki, diag, fi, di):
    """The point of the largest (f_k − f_i)² / (K_ii + K_kk − 2 K_ik) among those that may shrink; −1: none."""
    m = fall.shape[0]
    whole = m // LANES * LANES
    most = singles8(np.float32(0.0))
    at = singles8(NOWHERE32)
    for k in range(0, whole, LANES):
        here = np.uint64(k)
        v = profit8(fall, Ki, diag, fi, di, here)
        at = above8(v, most, at, here)
        most = larger8(most, v)
    best = greatest8(most)
    place = np.int64(-1)
    if best > np.float32(0.0):
        place = np.int64(earliest8(most, at, best))
    for k in range(whole, m):
        t = max(np.float32(fall[k] - fi), np.float32(0.0))
        eta = np.float32(np.float32(di) + diag[k]) - np.float32(2.0) * np.float32(Ki[k])
        g = np.float32(np.float32(t * t) / max(eta, np.float32(TINY)))
        if g > best:
            best = g
            place = k
    return place


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _restore(W, power, scale, offset, points, order, m, beta, then, f, f_then, packed, row):
    """f of the points that were left out, order[m:], from its value when β was `then`."""
    n = points.shape[0]
    away = order[m:]
    size = away.shape[0]
    for q in range(size):
        f[away[q]] = f_then[away[q]]
    if power > 0:
        pack(W, points[away], size, packed)
    x = np.zeros(W.shape[0], W.dtype)
    change = 0.0
    for j in range(n):
        moved = beta[j] - then[j]
        if moved == 0.0:
            continue
        if power == 0:
            source = W[points[j]]
            for q in range(size):
                f[away[q]] += moved * source[points[away[q]]]
        elif power == 1:  # the sum over j is one product
            change += moved
            for i in range(W.shape[0]):
                x[i] += moved * W[i, points[j]]
        else:
            for i in range(W.shape[0]):
                x[i] = W[i, points[j]]
            products(packed, x, size, row)
            raise_(row, size, power, scale, offset)
            for q in range(size):
                f[away[q]] += moved * row[q]
    if power == 1:
        products(packed, x, size, row)
        for q in range(size):
            f[away[q]] += scale * row[q] + offset * change


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _leave(rise, fall, bottom, top, order, m):
    """Move points at a bound that cannot violate while the extremes stay behind the others; how many others."""
    count = 0
    gone = np.empty(m, np.int64)
    place = np.empty(m, np.int64)
    n_gone = 0
    for k in range(m):
        grows = rise[k] < HALF_BIG
        falls = fall[k] > -HALF_BIG
        if (grows and (falls or rise[k] <= top)) or (falls and fall[k] >= bottom):
            place[count] = k
            count += 1
        else:
            gone[n_gone] = order[k]
            n_gone += 1
    if count >= SHRINK_BELOW * m or count < 2:
        return m
    for k in range(count):
        order[k] = order[place[k]]
    for k in range(n_gone):
        order[count + k] = gone[k]
    return count


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def solve_box(W, power, scale, offset, points, diag, low, high, beta, f, eps, most, shrinking, K, packed, report):
    """Solve one problem from a feasible β and its f, both in place; K is room for n rows of n. O(n) a step.

    `packed` is room for the coordinates of n points where W holds points.

    `report` gets the steps, whether the gap came below eps, whether negative curvature was met, and the extremes.
    """
    n = points.shape[0]
    order = np.arange(n)
    then = beta
    f_then = f
    m = n
    steps = 0
    widened = False
    every = n if n < SHRINK_EVERY else SHRINK_EVERY
    shrinks = shrinking and n > SMALL
    together = TOGETHER_EVERY
    report[CURVED] = 0.0
    columns = np.empty(n, np.int64)
    cuts = np.empty(n + 2, np.int64)
    rise = np.empty(n)
    fall = np.empty(n)
    b = np.empty(n)
    a_low = np.empty(n)
    a_high = np.empty(n)
    d32 = np.empty(n, np.float32)
    there = np.empty(n, np.bool_)
    x = np.empty(packed.shape[0], W.dtype)
    row = np.empty(n, W.dtype)
    while True:
        # The arrays of the active points, order[:m].
        for k in range(m):
            p = order[k]
            columns[k] = points[p]
            b[k] = beta[p]
            a_low[k] = low[p]
            a_high[k] = high[p]
            d32[k] = diag[points[p]]
            there[k] = False
            split(k, f[p], b, a_low, a_high, rise, fall)
        R = rise[:m]
        F = fall[:m]
        D = d32[:m]
        C = columns[:m]
        count = 0
        if power == 0:
            count = stretches(C, cuts)
        else:
            pack(W, C, m, packed)
        bottom, place, top = _extremes(R, F)
        left = every
        finished = False
        done = False
        while True:
            if top - bottom < eps:
                finished = True
                done = True
                break
            if steps >= most or bottom > HALF_BIG:
                finished = True
                break
            if power > 0 and together <= 0:
                together = TOGETHER_EVERY
                free = free_points(b, a_low, a_high, m)
                if 2 <= free.shape[0] <= FEW:
                    for q in range(free.shape[0]):
                        if not there[free[q]]:
                            fetch(free[q], there, K, W, C, cuts, count, packed, x, power, scale, offset)
                    minimize_free(free, b, a_low, a_high, K, R, F)
                    bottom, place, top = _extremes(R, F)
                    continue
            if shrinks and left == 0:
                break
            i = place
            if not there[i]:
                fetch(i, there, K, W, C, cuts, count, packed, x, power, scale, offset)
            Ki = K[i, :m]
            di = diag[columns[i]]
            j = _partner(F, Ki, D, bottom, di)
            if j < 0:
                finished = True
                break
            if not there[j]:
                fetch(j, there, K, W, C, cuts, count, packed, x, power, scale, offset)
            Kj = K[j, :m]
            dj = diag[columns[j]]
            eta = di + dj - 2.0 * Ki[j]
            if eta < -1e-5 * (abs(di) + abs(dj)):
                report[CURVED] = 1.0
            fj = F[j]
            step = (fj - bottom) / max(eta, TINY)
            room_i = a_high[i] - b[i]
            room_j = b[j] - a_low[j]
            step = min(step, min(room_i, room_j))
            # A variable whose whole room is used stands exactly on its bound, whatever rounding says.
            b[i] = a_high[i] if step == room_i else b[i] + step
            b[j] = a_low[j] if step == room_j else b[j] - step
            split(i, bottom, b, a_low, a_high, R, F)
            split(j, fj, b, a_low, a_high, R, F)
            bottom, place, top = _move(R, F, Ki, Kj, step)
            steps += 1
            left -= 1
            together -= 1
        for k in range(m):
            f[order[k]] = value(k, R, F)
            beta[order[k]] = b[k]
        if finished and m == n:
            break
        # Close to the end all points are looked at once more, as those left out may have become violators.
        if m < n and (finished or (not widened and top - bottom <= 10 * eps)):
            widened = True
            _restore(W, power, scale, offset, points, order, m, beta, then, f, f_then, packed, row)
            order = np.arange(n)
            m = n
            if steps >= most:
                break
        else:
            if m == n:
                then = beta.copy()
                f_then = f.copy()
            m = _leave(R, F, bottom, top, order, m)
    report[STEPS] = steps
    report[DONE] = 1.0 if done else 0.0
    report[BOTTOM] = bottom
    report[TOP] = top


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _stretch(beta, f, y, ratio):
    """The better start for a box that is `ratio` times as large: β scaled with it, or β as it is (then 1).

    Scaling keeps multipliers at their bounds there; where few are, β is nearly the solution already.
    """
    square = 0.0
    total = 0.0
    for k in range(beta.shape[0]):
        square += beta[k] * (f[k] + y[k])
        total += abs(beta[k])
    return ratio if 0.5 * (ratio * ratio - 1.0) * square < (ratio - 1.0) * total else 1.0


def _paths_work(W, power, scale, offset, diag, points, first, side, weight, costs, eps, most, shrinking, K):
    """A problem takes some ten steps a point, each a few passes of NumPy."""
    return 500.0 * points.size * len(costs)


@njit(cache=True, nogil=True, boundscheck=False, work=_paths_work)
def solve_paths(W, power, scale, offset, diag, points, first, side, weight, costs, eps, most, shrinking, K):
    """Problem q has the points points[first[q]:first[q+1]] with sides ±1, box U = C · weight, for growing costs C.

    W, power, scale and offset give the kernel, as at the head of this file, and `diag` is k(x, x) of all points. K is
    room for the matrix of the largest problem: NumPy asks for large pages, which take a third of the time to be had.

    Each C starts at the solution of the last, scaled or as it is. Returns β (costs, all points), and for every problem
    and cost (rho, objective, steps, converged, curved).
    """
    n_problems = first.shape[0] - 1
    n_costs = costs.shape[0]
    packed = np.empty((W.shape[0] if power > 0 else 0, K.shape[0]), W.dtype)
    found = np.zeros((n_costs, points.shape[0]))
    told = np.zeros((n_problems, n_costs, 5))
    report = np.empty(REPORT_SIZE)
    for q in range(n_problems):
        part = points[first[q] : first[q + 1]]
        y = side[first[q] : first[q + 1]]
        w = weight[first[q] : first[q + 1]]
        n = part.shape[0]
        beta = np.zeros(n)
        f = -y
        low = np.empty(n)
        high = np.empty(n)
        for c in range(n_costs):
            for k in range(n):
                bound = costs[c] * w[k]
                low[k] = 0.0 if y[k] > 0 else -bound
                high[k] = bound if y[k] > 0 else 0.0
            if c > 0:
                ratio = _stretch(beta, f, y, costs[c] / costs[c - 1])
                for k in range(n):
                    f[k] = ratio * (f[k] + y[k]) - y[k]
                    # A multiplier that stood at its bound stays there after scaling, whatever rounding says.
                    beta[k] = min(max(ratio * beta[k] * (1.0 + 1e-15), low[k]), high[k])
            solve_box(W, power, scale, offset, part, diag, low, high, beta, f, eps, most, shrinking, K, packed, report)
            free = 0
            level = 0.0
            objective = 0.0
            for k in range(n):
                found[c, first[q] + k] = beta[k]
                objective += beta[k] * f[k] - abs(beta[k])
                if beta[k] > low[k] and beta[k] < high[k]:
                    free += 1
                    level += f[k]
            told[q, c, 0] = level / free if free else 0.5 * (report[BOTTOM] + report[TOP])
            told[q, c, 1] = 0.5 * objective
            told[q, c, 2] = report[STEPS]
            told[q, c, 3] = report[DONE]
            told[q, c, 4] = report[CURVED]
    return found, told
