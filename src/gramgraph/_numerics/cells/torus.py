"""Mixtures of wrapped normal densities on the circle and the torus, and uniform background. Nothing is checked.

Points are pairs of angles X (b, 2) with counts c. A component has a weight w, a center (2,) and a covariance
(xx, xy, yy); angles differ by the shorter way around, so that a wide component is cut off at its antipode. One angle
alone is a pair whose second angle is 0 and whose second variance is 1 / 2π (`flat`): its normal density is one there.
Points go in blocks of neighbors, for each of which a component is one loop without branches, so that several points run
at once; a component whose density is below e⁻²⁰ of its peak all over the box around a block is left out there.
"""

from __future__ import annotations

from math import log, pi, sqrt

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.gram.grams import fast_exp

LEAST = 2e-4  # of a variance: points that repeat are no peak without width
BLOCK = 64  # points that are looked at together
GROUP = 8  # points whose densities are multiplied before the logarithm
DIGITS = 5  # binary digits of an angle by which points are sorted
FAR = 20.0  # nats below the peak of a component


@njit(cache=True, nogil=True, boundscheck=False, forceinline=True, no_cpython_wrapper=True)
def turn(d):
    """The difference of two angles in [−π, π], the shorter way around."""
    d = d - 2.0 * pi if d > pi else d
    return d + 2.0 * pi if d < -pi else d


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def forms(w, center, cov):
    """For each component the center, the exponent (xx, xy, yy), the factor in front, the reach in x and y: (k, 8)."""
    out = np.empty((len(w), 8))
    for k in range(len(w)):
        det = cov[k, 0] * cov[k, 2] - cov[k, 1] * cov[k, 1]
        out[k, 0], out[k, 1] = center[k, 0], center[k, 1]
        out[k, 2], out[k, 3], out[k, 4] = 0.5 * cov[k, 2] / det, -cov[k, 1] / det, 0.5 * cov[k, 0] / det
        out[k, 5] = w[k] / (2.0 * pi * sqrt(det))
        out[k, 6], out[k, 7] = sqrt(2.0 * FAR * cov[k, 0]), sqrt(2.0 * FAR * cov[k, 2])
    return out


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def neighbors(X):
    """Numbers of the points, sorted by the first binary digits of both angles in turn: most neighbors follow."""
    side = 1 << DIGITS
    cell, start = np.empty(len(X), np.int64), np.zeros(side * side + 1, np.int64)
    for i in range(len(X)):
        a = int((X[i, 0] + pi) * (side / (2.0 * pi))) % side
        b = int((X[i, 1] + pi) * (side / (2.0 * pi))) % side
        code = 0
        for d in range(DIGITS):
            code += ((a >> d) & 1) << (2 * d + 1) | ((b >> d) & 1) << (2 * d)
        cell[i] = code
        start[code + 1] += 1
    for q in range(side * side):
        start[q + 1] += start[q]
    order = np.empty(len(X), np.int64)
    for i in range(len(X)):
        order[start[cell[i]]] = i
        start[cell[i]] += 1
    return order


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def blocks(X, order):
    """X in blocks, (blocks, 2, BLOCK), the last filled up with its last point; middles and half widths, (·, 4)."""
    number = -(-len(X) // BLOCK)
    P, box = np.empty((number, 2, BLOCK)), np.empty((number, 4))
    for b in range(number):
        for a in range(2):
            low, high = 1e300, -1e300
            for i in range(BLOCK):
                x = X[order[min(b * BLOCK + i, len(X) - 1)], a]
                P[b, a, i] = x
                low, high = min(low, x), max(high, x)
            box[b, a], box[b, 2 + a] = 0.5 * (low + high), 0.5 * (high - low)
    return P, box


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def reaches(form, box):
    """Whether a component is to be seen anywhere in a box."""
    if abs(turn(box[0] - form[0])) - box[2] > form[6]:
        return False
    return abs(turn(box[1] - form[1])) - box[3] <= form[7]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"}, no_cpython_wrapper=True)
def add_component(P, form, part, total):
    """part[i] = weight × density of a component at the points of a block, added to total."""
    cx, cy, xx, xy, yy, front = form[0], form[1], form[2], form[3], form[4], form[5]
    for i in range(BLOCK):
        u, v = turn(P[0, i] - cx), turn(P[1, i] - cy)
        h = front * fast_exp(-(xx * u * u + xy * u * v + yy * v * v))
        part[i] = h
        total[i] += h


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"}, no_cpython_wrapper=True)
def add_moments(P, form, part, scale, sums):
    """Add the shares scale · part of a block to mass, Σ dx, Σ dy, Σ dx², Σ dx dy, Σ dy² of a component."""
    cx, cy = form[0], form[1]
    mass, x, y, xx, xy, yy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(BLOCK):
        u, v = turn(P[0, i] - cx), turn(P[1, i] - cy)
        r = part[i] * scale[i]
        mass += r
        x += r * u
        y += r * v
        xx += r * u * u
        xy += r * u * v
        yy += r * v * v
    sums[0] += mass
    sums[1] += x
    sums[2] += y
    sums[3] += xx
    sums[4] += xy
    sums[5] += yy


@njit(cache=True, nogil=True, boundscheck=False)
def densities(X, w, center, cov, background, out):
    """out[i] = the density of the mixture at X[i]; `background` is the uniform density times its weight."""
    form = forms(w, center, cov)
    order = neighbors(X)
    P, box = blocks(X, order)
    part, total = np.empty(BLOCK), np.empty(BLOCK)
    for b in range(len(P)):
        total[:] = background
        for k in range(len(w)):
            if reaches(form[k], box[b]):
                add_component(P[b], form[k], part, total)
        here = order[b * BLOCK : (b + 1) * BLOCK]
        for i in range(len(here)):
            out[here[i]] = total[i]


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def score_of(total, c):
    """Σ c log total; most counts are one, so that a few numbers (of 10⁻¹² … 10³ each) share a logarithm."""
    score = 0.0
    for start in range(0, BLOCK, GROUP):
        product = 1.0
        for i in range(start, start + GROUP):
            product *= total[i]
            if c[i] != 1.0:
                score += (c[i] - 1.0) * log(total[i])
        score += log(product)
    return score


@njit(cache=True, nogil=True, boundscheck=False)
def learn(X, c, w, center, cov, uniform, base, flat, spread, strength, sweeps, tol):
    """EM in place; the weight of the uniform density `base`. Covariances lean to spread² I by `strength` points.

    Stops when a sweep gains less than `tol` nats in all.
    """
    order = neighbors(X)
    P, box = blocks(X, order)
    counts = np.zeros((len(P), BLOCK))
    for i in range(len(c)):
        counts[i // BLOCK, i % BLOCK] = c[order[i]]
    part, kept = np.empty((len(w), BLOCK)), np.empty(len(w), np.int64)
    total, scale, sums = np.empty(BLOCK), np.empty(BLOCK), np.empty((len(w), 6))
    prior = strength * spread * spread
    n, before = c.sum(), -1e300
    for _ in range(sweeps):
        form = forms(w, center, cov)
        sums[:] = 0.0
        score, behind = 0.0, 0.0
        for b in range(len(P)):
            total[:] = uniform * base
            seen = 0
            for k in range(len(w)):
                if reaches(form[k], box[b]):
                    add_component(P[b], form[k], part[seen], total)
                    kept[seen] = k
                    seen += 1
            score += score_of(total, counts[b])
            for i in range(BLOCK):
                scale[i] = counts[b, i] / total[i]
                behind += uniform * base * scale[i]
            for s in range(seen):
                add_moments(P[b], form[kept[s]], part[s], scale, sums[kept[s]])
        if score - before < tol:
            break
        before, uniform = score, (behind + 0.5) / (n + 0.5)  # half a point more, so that no place is impossible
        for k in range(len(w)):
            mass = sums[k, 0]
            w[k] = mass / (n + 0.5)
            mx, my = sums[k, 1] / max(mass, 1e-300), sums[k, 2] / max(mass, 1e-300)
            cov[k, 0] = max((sums[k, 3] - mass * mx * mx + prior) / (mass + strength), LEAST)
            cov[k, 1] = (sums[k, 4] - mass * mx * my) / (mass + strength)
            if not flat:
                cov[k, 2] = max((sums[k, 5] - mass * my * my + prior) / (mass + strength), LEAST)
            center[k, 0], center[k, 1] = turn(center[k, 0] + mx), turn(center[k, 1] + my)
    return uniform


@njit(cache=True, nogil=True, boundscheck=False)
def spread_out(X, c, draws):
    """Different points, each drawn in proportion to count × squared distance from those before; `draws` are in [0, 1).

    Fewer than draws where there are no more different points.
    """
    far = np.ones(len(X))
    chosen = np.empty(len(draws), np.int64)
    for q in range(len(draws)):
        left = draws[q] * (far * c).sum()
        i = -1
        for j in range(len(X)):
            if far[j] * c[j] > 0.0:
                i = j
                left -= far[j] * c[j]
                if left <= 0.0:
                    break
        if i < 0:
            return chosen[:q]
        chosen[q] = i
        for j in range(len(X)):
            u, v = turn(X[j, 0] - X[i, 0]), turn(X[j, 1] - X[i, 1])
            near = u * u + v * v
            far[j] = near if q == 0 else min(far[j], near)
    return chosen
