"""Sums over rows that lie between two cells an end: row i has the share 1 − f[i] in cell a[i] and f[i] in b[i].

Nothing is checked.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit


def _work(*arguments):
    """A pass over the rows by NumPy takes a twentieth of the interpreted steps."""
    return sum(each.size for each in arguments) / 20.0


def _mass_at_once(a, b, f, c, d, g, out):
    columns = out.shape[1]
    flat = np.zeros(out.size)
    for one, u in ((a, 1.0 - f), (b, f)):
        for other, v in ((c, 1.0 - g), (d, g)):
            flat += np.bincount(one * np.int64(columns) + other, u * v, minlength=out.size)
    out += flat.reshape(out.shape)


@njit(cache=True, nogil=True, boundscheck=False, plain=_mass_at_once, work=_work)
def pair_mass(a, b, f, c, d, g, out):
    """out[j, k] += the number of rows in cell j of one end and cell k of the other."""
    for i in range(len(a)):
        u, v = f[i], g[i]
        out[a[i], c[i]] += (1.0 - u) * (1.0 - v)
        out[a[i], d[i]] += (1.0 - u) * v
        out[b[i], c[i]] += u * (1.0 - v)
        out[b[i], d[i]] += u * v


def _values_at_once(R, a, b, f, c, d, g, out):
    low = (1.0 - g) * R[a, c] + g * R[a, d]
    high = (1.0 - g) * R[b, c] + g * R[b, d]
    out[:] = (1.0 - f) * low + f * high


@njit(cache=True, nogil=True, boundscheck=False, plain=_values_at_once, work=_work)
def pair_values(R, a, b, f, c, d, g, out):
    """out[i] = the table R between the cells of row i (bilinear)."""
    for i in range(len(a)):
        u, v = f[i], g[i]
        low = (1.0 - v) * R[a[i], c[i]] + v * R[a[i], d[i]]
        high = (1.0 - v) * R[b[i], c[i]] + v * R[b[i], d[i]]
        out[i] = (1.0 - u) * low + u * high


def _own_at_once(W, a, b, f, out):
    out[:] = (1.0 - f) ** 2 * W[a, a] + f * f * W[b, b] + f * (1.0 - f) * (W[a, b] + W[b, a])


@njit(cache=True, nogil=True, boundscheck=False, plain=_own_at_once, work=_work)
def own_shares(W, a, b, f, out):
    """out[i] = hᵀ W h with h the shares of row i: what a row contributes to its own estimate."""
    for i in range(len(a)):
        u = f[i]
        p, q = a[i], b[i]
        out[i] = (1.0 - u) ** 2 * W[p, p] + u * u * W[q, q] + u * (1.0 - u) * (W[p, q] + W[q, p])


def _spread_work(values, first, step, centers, scales, low, high, share, points, widths, out):
    return len(centers) * len(points) / 20.0


#: Numbers in one block of `_spread_at_once`.
_BLOCK = 1 << 18


def _spread_at_once(values, first, step, centers, scales, low, high, share, points, widths, out):
    at = np.arange(len(points))
    shares = np.zeros((len(points), out.shape[1]))
    shares[at, low] += 1.0 - share
    shares[at, high] += share
    rows = max(_BLOCK // max(len(points), 1), 1)
    for i in range(0, len(centers), rows):
        inverse = 1.0 / scales[i : i + rows, None]
        u = ((points - centers[i : i + rows, None]) * inverse - first) / step
        outside = ~((u >= 0.0) & (u < len(values) - 1))
        u[outside] = 0.0
        k = u.astype(np.int64)
        u -= k
        mass = ((1.0 - u) * values[k] + u * values[k + 1]) * inverse * widths
        mass[outside] = 0.0
        out[i : i + rows] += mass @ shares


@njit(cache=True, nogil=True, boundscheck=False, plain=_spread_at_once, work=_spread_work)
def spread_masses(values, first, step, centers, scales, low, high, share, points, widths, out):
    """out[i, j] = Σ_g share of grid point g in cell j × density of ((y_g − center_i) / scale_i) × width_g.

    The density is given on a uniform grid (values, first, step) and is zero outside.
    """
    top = len(values) - 1
    for i in range(len(centers)):
        inverse = 1.0 / scales[i]
        for g in range(len(points)):
            u = ((points[g] - centers[i]) * inverse - first) / step
            if u < 0.0 or u >= top:
                continue
            k = int(u)
            u -= k
            value = ((1.0 - u) * values[k] + u * values[k + 1]) * inverse * widths[g]
            out[i, low[g]] += (1.0 - share[g]) * value
            out[i, high[g]] += share[g] * value


@njit(cache=True, nogil=True, boundscheck=False)
def inverse_cdf(cumulative, levels, ends, out):
    """out[i, k] = x with F_i(x) = levels[k]; F_i is linear between ends, with values cumulative[i] (from 0 to 1)."""
    top = cumulative.shape[1] - 2
    for i in range(len(cumulative)):
        row = cumulative[i]
        for k in range(len(levels)):
            low, high = 0, top
            while low < high:  # the last cell that begins at or below the level
                middle = (low + high + 1) // 2
                if row[middle] <= levels[k]:
                    low = middle
                else:
                    high = middle - 1
            width = row[low + 1] - row[low]
            share = (levels[k] - row[low]) / width if width > 0.0 else 0.5
            out[i, k] = ends[low] + min(max(share, 0.0), 1.0) * (ends[low + 1] - ends[low])
