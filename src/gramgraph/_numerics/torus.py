"""Mixtures of wrapped normal densities on the circle and the torus, and uniform background. Nothing is checked.

Points are pairs of angles X (b, 2) with counts c. A component has a weight w, a center (2,) and a covariance
(xx, xy, yy); angles differ by the shorter way around, so that a wide component is cut off at its antipode. One angle
alone is a pair whose second angle is 0 and whose second variance is 1 / 2π (`flat`): its normal density is one there.
Loops over components have no branches, so that several run at once.
"""

from __future__ import annotations

from math import log, pi, sqrt

import numpy as np
from numba import njit

from gramgraph._numerics.grams import fast_exp

LEAST = 2e-4  # of a variance: points that repeat are no peak without width


@njit(cache=True, nogil=True, boundscheck=False, inline="always")
def turn(d):
    """The difference of two angles in [−π, π], the shorter way around."""
    d = d - 2.0 * pi if d > pi else d
    return d + 2.0 * pi if d < -pi else d


@njit(cache=True, nogil=True, boundscheck=False)
def forms(w, center, cov):
    """For each component the center, the exponent (xx, xy, yy) and the factor in front, (6, k)."""
    out = np.empty((6, len(w)))
    for k in range(len(w)):
        det = cov[k, 0] * cov[k, 2] - cov[k, 1] * cov[k, 1]
        out[0, k], out[1, k] = center[k, 0], center[k, 1]
        out[2, k], out[3, k], out[4, k] = 0.5 * cov[k, 2] / det, -cov[k, 1] / det, 0.5 * cov[k, 0] / det
        out[5, k] = w[k] / (2.0 * pi * sqrt(det))
    return out


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"reassoc"})
def total_of(values):
    """The sum, in any order."""
    out = 0.0
    for k in range(len(values)):
        out += values[k]
    return out


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def heights(x, y, form, dx, dy, out):
    """out[k] = weight × density of component k at (x, y), and the differences from its center; the sum of all."""
    for k in range(len(out)):
        u, v = turn(x - form[0, k]), turn(y - form[1, k])
        e = form[2, k] * u * u + form[3, k] * u * v + form[4, k] * v * v
        dx[k], dy[k] = u, v
        out[k] = form[5, k] * fast_exp(-e)
    return total_of(out)


@njit(cache=True, nogil=True, boundscheck=False)
def densities(X, w, center, cov, background, out):
    """out[i] = the density of the mixture at X[i]; `background` is the uniform density times its weight."""
    form = forms(w, center, cov)
    part, dx, dy = np.empty(len(w)), np.empty(len(w)), np.empty(len(w))
    for i in range(len(X)):
        out[i] = background + heights(X[i, 0], X[i, 1], form, dx, dy, part)


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def add_point(scale, part, dx, dy, sums):
    """Add the shares scale · part of a point to mass, Σ dx, Σ dy, Σ dx², Σ dx dy, Σ dy² of the components."""
    for k in range(len(part)):
        r = scale * part[k]
        u, v = r * dx[k], r * dy[k]
        sums[0, k] += r
        sums[1, k] += u
        sums[2, k] += v
        sums[3, k] += u * dx[k]
        sums[4, k] += u * dy[k]
        sums[5, k] += v * dy[k]


@njit(cache=True, nogil=True, boundscheck=False)
def learn(X, c, w, center, cov, uniform, base, flat, spread, strength, sweeps, tol):
    """EM in place; the weight of the uniform density `base`. Covariances lean to spread² I by `strength` points.

    Stops when a sweep gains less than `tol` nats in all.
    """
    part, dx, dy = np.empty(len(w)), np.empty(len(w)), np.empty(len(w))
    sums = np.empty((6, len(w)))
    prior = strength * spread * spread
    n, before = c.sum(), -1e300
    for _ in range(sweeps):
        form = forms(w, center, cov)
        sums[:] = 0.0
        score, behind = 0.0, 0.0
        for i in range(len(X)):
            if c[i] == 0.0:
                continue
            total = uniform * base + heights(X[i, 0], X[i, 1], form, dx, dy, part)
            score += c[i] * log(total)
            behind += c[i] * uniform * base / total
            add_point(c[i] / total, part, dx, dy, sums)
        if score - before < tol:
            break
        before, uniform = score, (behind + 0.5) / (n + 0.5)  # half a point more, so that no place is impossible
        for k in range(len(w)):
            mass = sums[0, k]
            w[k] = mass / (n + 0.5)
            mx, my = sums[1, k] / max(mass, 1e-300), sums[2, k] / max(mass, 1e-300)
            cov[k, 0] = max((sums[3, k] - mass * mx * mx + prior) / (mass + strength), LEAST)
            cov[k, 1] = (sums[4, k] - mass * mx * my) / (mass + strength)
            if not flat:
                cov[k, 2] = max((sums[5, k] - mass * my * my + prior) / (mass + strength), LEAST)
            center[k, 0], center[k, 1] = turn(center[k, 0] + mx), turn(center[k, 1] + my)
    return uniform
