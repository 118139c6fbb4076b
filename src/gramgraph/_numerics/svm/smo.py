"""Sequential minimal optimization for support vector duals: the inner loops.

The problem: min ½ βᵀKβ + Σ p α over boxes 0 ≤ α ≤ U, with β = Σ_c s_c α_c and the sums Σ s α held fixed (over all
variables, or over each sign apart). A point k owns one variable (classification) or two (regression), the *copies* c.
Everything is written in f = s · gradient = Kβ + s p, of shape (copies, m), for the m points that are active:

* `up[g, c, k]` is 0 when variable (c, k) belongs to group g and β_k may grow through it, else BIG; `lo` likewise for
  shrinking. A solution has max(f − lo) − min(f + up) ≤ eps in every group.
* rows of K stand in `K[slot[k], :length]`; a row that is not there is asked for by leaving the loop.

Selection follows the second-order rule of Fan, Chen and Lin (2005). Nothing is checked.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.svm.smo_lanes import (
    NOWHERE,
    first8,
    gain8,
    least8,
    min8,
    most8,
    move8,
    over8,
    rest8,
    sum8,
    under8,
)
from gramgraph._numerics.vector8 import LANES, fill8, max8

BIG = np.float32(1e30)
TINY = 1e-12

# Places of the integer state.
PHASE, POINT_I, COPY_I, POINT_J, COPY_J, N_WANTED, STEPS, CLOCK, CURVED, GROUP = range(10)
STATE_SIZE = 10
# How the loop ended.
OUT_OF_STEPS, CONVERGED, STUCK, MISSING, SHORT = range(5)


# Uncompiled, eight points at a time would be slow: these take all of them, and find the same.


def _extremes_at_once(f, up, lo):
    rising = f + up.astype(np.float64)
    at = int(rising.argmin()) if len(f) else 0
    bottom = rising[at] if len(f) else NOWHERE
    top = (f - lo.astype(np.float64)).max(initial=-NOWHERE)
    return (bottom, np.float64(at), top) if bottom < NOWHERE else (NOWHERE, NOWHERE, top)


def _move_at_once(f, up, lo, Ki, Kj, step):
    m = f.shape[0]
    f += step * (Ki[:m].astype(np.float64) - Kj[:m])
    return _extremes_at_once(f, up, lo)


def _partner_at_once(f, lo, Ki, diag, fi, di):
    m = f.shape[0]
    if m == 0:
        return 0.0, np.int64(-1)
    t = np.maximum((f - lo - fi).astype(np.float32), np.float32(0))
    eta = np.float32(di) + diag[:m] - np.float32(2) * Ki[:m].astype(np.float32)
    gains = t * t / np.maximum(eta, np.float32(TINY))
    k = int(gains.argmax())
    best = float(gains[k])
    return (best, np.int64(k)) if best > 0.0 else (0.0, np.int64(-1))


@njit(cache=True, nogil=True, boundscheck=False, plain=_extremes_at_once)
def extremes(f, up, lo):
    """(min f + up, its first place, max f − lo)."""
    m = f.shape[0]
    whole = m // LANES * LANES
    low = fill8(NOWHERE)
    at = fill8(NOWHERE)
    high = fill8(-NOWHERE)
    for k in range(0, whole, LANES):
        here = np.uint64(k)
        v = sum8(f, up, here)
        at = under8(v, low, at, here)
        low = min8(low, v)
        high = max8(high, rest8(f, lo, here))
    return _ends(f, up, lo, whole, low, at, high)


@njit(cache=True, nogil=True, boundscheck=False, plain=_move_at_once)
def move_extremes(f, up, lo, Ki, Kj, step):
    """f += step · (Ki − Kj), and the extremes of the new f in the same pass."""
    m = f.shape[0]
    whole = m // LANES * LANES
    low = fill8(NOWHERE)
    at = fill8(NOWHERE)
    high = fill8(-NOWHERE)
    for k in range(0, whole, LANES):
        here = np.uint64(k)
        move8(f, Ki, Kj, step, here)
        v = sum8(f, up, here)
        at = under8(v, low, at, here)
        low = min8(low, v)
        high = max8(high, rest8(f, lo, here))
    for k in range(whole, m):
        f[k] += step * (np.float64(Ki[k]) - np.float64(Kj[k]))
    return _ends(f, up, lo, whole, low, at, high)


@njit(cache=True, nogil=True, boundscheck=False)
def _ends(f, up, lo, whole, low, at, high):
    """The extremes from those of the lanes and the points behind `whole`."""
    bottom = least8(low)
    place = first8(low, at, bottom)
    top = most8(high)
    for k in range(whole, f.shape[0]):
        v = f[k] + up[k]
        if v < bottom:
            bottom = v
            place = k
        top = max(top, f[k] - lo[k])
    return bottom, np.float64(place), top


@njit(cache=True, nogil=True, boundscheck=False)
def _gain(f, lo, Ki, diag, fi, di, k):
    """`gain8` of one point, in the same arithmetic."""
    t = max(np.float32(f[k] - lo[k] - fi), np.float32(0.0))
    eta = np.float32(np.float32(di) + diag[k]) - np.float32(2.0) * np.float32(Ki[k])
    return np.float64(np.float32(np.float32(t * t) / max(eta, np.float32(TINY))))


@njit(cache=True, nogil=True, boundscheck=False, plain=_partner_at_once)
def best_partner(f, lo, Ki, diag, fi, di):
    """(gain, k): the largest (f_k − f_i)² / (K_ii + K_kk − 2 K_ik) among variables that may shrink; −1: none."""
    m = f.shape[0]
    whole = m // LANES * LANES
    most = fill8(0.0)
    at = fill8(NOWHERE)
    for k in range(0, whole, LANES):
        here = np.uint64(k)
        v = gain8(f, lo, Ki, diag, fi, di, here)
        at = over8(v, most, at, here)
        most = max8(most, v)
    best = most8(most)
    place = first8(most, at, best) if best > 0.0 else NOWHERE
    for k in range(whole, m):
        g = _gain(f, lo, Ki, diag, fi, di, k)
        if g > best:
            best = g
            place = k
    return best, (np.int64(place) if place < m else np.int64(-1))


@njit(cache=True, nogil=True, boundscheck=False)
def _want(first, f, up, lo, slot, state, wanted):
    """List the missing row `first` and, behind it, the worst violators that have no row either."""
    room = wanted.shape[0]
    half = room // 2
    low_v = np.full(half, 1e300)
    low_k = np.full(half, -1)
    high_v = np.full(half, -1e300)
    high_k = np.full(half, -1)
    for g in range(up.shape[0]):
        for c in range(f.shape[0]):
            for k in range(f.shape[1]):
                if slot[k] >= 0 or k == first:
                    continue
                v = f[c, k]
                if v < low_v[half - 1] and up[g, c, k] == 0.0:
                    q = half - 1
                    while q > 0 and low_v[q - 1] > v:
                        low_v[q] = low_v[q - 1]
                        low_k[q] = low_k[q - 1]
                        q -= 1
                    low_v[q] = v
                    low_k[q] = k
                if v > high_v[half - 1] and lo[g, c, k] == 0.0:
                    q = half - 1
                    while q > 0 and high_v[q - 1] < v:
                        high_v[q] = high_v[q - 1]
                        high_k[q] = high_k[q - 1]
                        q -= 1
                    high_v[q] = v
                    high_k[q] = k
    wanted[0] = first
    count = 1
    for q in range(2 * half):
        k = low_k[q // 2] if q % 2 == 0 else high_k[q // 2]
        if k < 0 or count == room:
            continue
        fresh = True
        for z in range(count):
            if wanted[z] == k:
                fresh = False
        if fresh:
            wanted[count] = k
            count += 1
    state[N_WANTED] = count


@njit(cache=True, nogil=True, boundscheck=False)
def bounds_of(alpha, upper, sign, up, lo, c, k):
    """Set up and lo of one variable from its value."""
    s = sign[c, k]
    a = alpha[c, k]
    grows = a < upper[c, k] if s > 0 else a > 0.0
    falls = a > 0.0 if s > 0 else a < upper[c, k]
    group = 0 if up.shape[0] == 1 or s > 0 else 1
    up[group, c, k] = 0.0 if grows else BIG
    lo[group, c, k] = 0.0 if falls else BIG


@njit(cache=True, nogil=True, boundscheck=False)
def fill_bounds(alpha, upper, sign, up, lo):
    """up and lo of every variable."""
    up[:] = BIG
    lo[:] = BIG
    for c in range(alpha.shape[0]):
        for k in range(alpha.shape[1]):
            bounds_of(alpha, upper, sign, up, lo, c, k)


@njit(cache=True, nogil=True, boundscheck=False)
def _widest(ends):
    """Group and copy of the worst violation, and its size; `ends` is (groups, copies, 3): bottom, place, top."""
    worst = -1e300
    group = 0
    copy = 0
    for g in range(ends.shape[0]):
        bottom = 1e300
        top = -1e300
        at = 0
        for c in range(ends.shape[1]):
            if ends[g, c, 0] < bottom:
                bottom = ends[g, c, 0]
                at = c
            top = max(top, ends[g, c, 2])
        if top - bottom > worst:
            worst = top - bottom
            group = g
            copy = at
    return worst, group, copy


def _run_work(K, slot, length, stamp, sign, alpha, upper, diag, diag32, f, up, lo, ends, eps, steps, state, wanted):
    """A step is a few passes of NumPy over all points. Few problems take more than ten steps a point at once."""
    return min(steps, 10 * f.shape[1]) * (30.0 + 0.01 * up.size)


@njit(cache=True, nogil=True, boundscheck=False, work=_run_work)
def run(K, slot, length, stamp, sign, alpha, upper, diag, diag32, f, up, lo, ends, eps, steps, state, wanted):
    """Steps of the method until the gap is below eps, `steps` are done, or a row is missing; says which.

    `state[PHASE]` tells where to go on: 0 choose both, 1 i is chosen, 2 i and j are chosen. `ends` keeps the extremes
    of every group and copy between calls; it must be filled (phase 0) before the first.
    """
    m = f.shape[1]
    n_groups = up.shape[0]
    n_copies = f.shape[0]
    done = 0
    while True:
        if state[PHASE] == 0:
            gap, g, ci = _widest(ends)
            if gap < eps:
                return CONVERGED
            if done >= steps:
                return OUT_OF_STEPS
            state[GROUP] = g
            state[COPY_I] = ci
            if not ends[g, ci, 1] < m:
                return STUCK
            state[POINT_I] = np.int64(ends[g, ci, 1])
            state[PHASE] = 1
        g = state[GROUP]
        i = state[POINT_I]
        ci = state[COPY_I]
        si = slot[i]
        if si < 0:
            _want(i, f, up, lo, slot, state, wanted)
            return MISSING
        if length[si] < m:
            wanted[0] = i
            return SHORT
        state[CLOCK] += 1
        stamp[si] = state[CLOCK]
        Ki = K[si]
        if state[PHASE] == 1:
            best = -1.0
            state[POINT_J] = -1
            for c in range(n_copies):
                gain, k = best_partner(f[c], lo[g, c], Ki, diag32, f[ci, i], diag[i])
                if k >= 0 and gain > best:
                    best = gain
                    state[POINT_J] = k
                    state[COPY_J] = c
            if state[POINT_J] < 0:
                return STUCK
            state[PHASE] = 2
        j = state[POINT_J]
        cj = state[COPY_J]
        sj = slot[j]
        if sj < 0:
            _want(j, f, up, lo, slot, state, wanted)
            return MISSING
        if length[sj] < m:
            wanted[0] = j
            return SHORT
        stamp[sj] = state[CLOCK]
        Kj = K[sj]
        eta = diag[i] + diag[j] - 2.0 * Ki[j]
        if eta < -1e-5 * (abs(diag[i]) + abs(diag[j])):
            state[CURVED] += 1
        step = (f[cj, j] - f[ci, i]) / max(eta, TINY)
        room_i = upper[ci, i] - alpha[ci, i] if sign[ci, i] > 0 else alpha[ci, i]
        room_j = alpha[cj, j] if sign[cj, j] > 0 else upper[cj, j] - alpha[cj, j]
        step = min(step, min(room_i, room_j))
        # A variable whose whole room is used stands exactly on its bound, whatever rounding says.
        if step == room_i:
            alpha[ci, i] = upper[ci, i] if sign[ci, i] > 0 else 0.0
        else:
            alpha[ci, i] += sign[ci, i] * step
        if step == room_j:
            alpha[cj, j] = 0.0 if sign[cj, j] > 0 else upper[cj, j]
        else:
            alpha[cj, j] -= sign[cj, j] * step
        bounds_of(alpha, upper, sign, up, lo, ci, i)
        bounds_of(alpha, upper, sign, up, lo, cj, j)
        for c in range(n_copies):
            ends[0, c, 0], ends[0, c, 1], ends[0, c, 2] = move_extremes(f[c], up[0, c], lo[0, c], Ki, Kj, step)
            for h in range(1, n_groups):
                ends[h, c, 0], ends[h, c, 1], ends[h, c, 2] = extremes(f[c], up[h, c], lo[h, c])
        done += 1
        state[STEPS] += 1
        state[PHASE] = 0


@njit(cache=True, nogil=True, boundscheck=False)
def fill_ends(f, up, lo, ends):
    """The extremes of every group and copy."""
    for g in range(up.shape[0]):
        for c in range(f.shape[0]):
            ends[g, c, 0], ends[g, c, 1], ends[g, c, 2] = extremes(f[c], up[g, c], lo[g, c])


@njit(cache=True, nogil=True, boundscheck=False)
def may_leave(f, up, lo, ends, keep):
    """keep[k] = False for points at a bound that cannot violate while the extremes stay; how many stay."""
    n_groups = up.shape[0]
    bottom = np.full(n_groups, 1e300)
    top = np.full(n_groups, -1e300)
    for g in range(n_groups):
        for c in range(f.shape[0]):
            bottom[g] = min(bottom[g], ends[g, c, 0])
            top[g] = max(top[g], ends[g, c, 2])
    count = 0
    for k in range(f.shape[1]):
        stays = False
        for g in range(n_groups):
            for c in range(f.shape[0]):
                grows = up[g, c, k] == 0.0
                falls = lo[g, c, k] == 0.0
                if not grows and not falls:
                    continue  # of the other group, or a variable without room
                if (grows and (falls or f[c, k] <= top[g])) or (falls and f[c, k] >= bottom[g]):
                    stays = True
        keep[k] = stays
        count += stays
    return count


def _gather_at_once(source, target, rows, columns):
    target[: len(rows), : len(columns)] = source[rows][:, columns]


def _gather_work(source, target, rows, columns):
    return target.size / 50.0


@njit(cache=True, nogil=True, boundscheck=False, plain=_gather_at_once, work=_gather_work)
def gather(source, target, rows, columns):
    """target[q, k] = source[rows[q], columns[k]]."""
    for q in range(rows.shape[0]):
        a = source[rows[q]]
        b = target[q]
        for k in range(columns.shape[0]):
            b[k] = a[columns[k]]
