"""Estimates of the density ratio of a pair of columns, each a table on cells with its leave-one-out values.

All of them work on the joint mass P of cells, so that their cost does not grow with the rows but for one pass:
ridge   1 + W_x P W_y, the least-squares ratio in the span of kernel eigenfunctions, penalties λ
smooth  S_x P S_yᵀ, kernel (or histogram) smoothing of the ratio
regress y = f(x) + s(x)·noise with f by kernel ridge regression and a kernel density for the noise
torus   mixtures of wrapped normal densities of two angles, on the 256² points of a grid
copula  the Gaussian copula of normal scores
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._numerics.cells.shares import own_shares, pair_mass, pair_values, spread_masses
from gramgraph.cells.axes import Axis, LineAxis, Placed, StateAxis
from gramgraph.cells.density import line_density
from gramgraph.cells.torus import TorusMixture, binned, crossed
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.typing import FloatArray

REGS = (1e-4, 1e-3)
_BLOCKS = (4, 6, 8, 12, 16, 24, 32)
_SMOOTH = (0.01, 0.02, 0.04)  # widths as shares of the cells
_UNEVEN = tuple(  # widths of x and of y: what jumps is sharp along one of them, and smooth along the other
    pair for narrow, wide in ((0.005, 0.05), (0.01, 0.08), (0.02, 0.12)) for pair in ((narrow, wide), (wide, narrow))
)
_MIXTURES = ((8, 0.05), (16, 0.3), (16, 0.1), (32, 0.3), (32, 0.1))  # on the torus: components, spread
_PENALTIES = np.geomspace(1e-7, 1e-2, 7)
_FLOOR = 1e-3
_DISTINCT = 40  # numbers with at most so many different values are also looked at one by one
_NOISE_GRID = 2048


@dataclass(frozen=True, eq=False)
class Candidate:
    """A ratio table R (m, p) with R q_y = 1 and Rᵀ q_x = 1, and the value of r at every row when that is left out."""

    name: str
    R: FloatArray
    left_out: FloatArray  # (n,)
    negative: float = 0.0  # mass that was below zero before the floor


class Pair:
    """Two ends with the rows that both know, and the joint mass of their cells.

    >>> from gramgraph.cells.axes import StateAxis
    >>> x, y = list("aabb"), list("uuuv")
    >>> pair = Pair(End(StateAxis.of("x", x), x), End(StateAxis.of("y", y), y))
    >>> pair.P.tolist(), pair.n
    ([[0.5, 0.0], [0.25, 0.25]], 4)
    """

    def __init__(self, x: End, y: End) -> None:
        self.x, self.y = x, y
        known = x.placed.known & y.placed.known
        self.rows = None if known.all() else np.flatnonzero(known)
        self.px, self.py = x.rows(self.rows), y.rows(self.rows)
        self.n = len(self.px.a)
        self.P = np.zeros((x.axis.m, y.axis.m))
        pair_mass(*self.px[:3], *self.py[:3], self.P)
        self.P /= max(self.n, 1)

    def values(self, R: FloatArray) -> FloatArray:
        """R at the rows."""
        return _values(R, self.px, self.py)

    def held_out(self, R: FloatArray) -> FloatArray:
        """R at the rows that were held out to choose; none of them without such rows."""
        a, b = self.x.others, self.y.others
        if a is None or b is None:
            return np.zeros(0)
        both = a.known & b.known
        return _values(R, a.take(both), b.take(both))

    def own(self, of_x: FloatArray, of_y: FloatArray) -> FloatArray:
        """Product of the own shares of both ends."""
        both = of_x * of_y
        return both if self.rows is None else both[self.rows]

    def flipped(self) -> Pair:
        """The same pair with its ends exchanged."""
        out = object.__new__(Pair)
        out.x, out.y, out.rows, out.n = self.y, self.x, self.rows, self.n
        out.px, out.py, out.P = self.py, self.px, self.P.T
        return out


def _values(R: FloatArray, a: Placed, b: Placed) -> FloatArray:
    out = np.empty(len(a.a))
    pair_values(np.ascontiguousarray(R, dtype=np.float64), *a[:3], *b[:3], out)
    return out


def balanced(
    R: FloatArray, p: FloatArray, q: FloatArray, *, tol: float = 1e-3, sweeps: int = 10
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sinkhorn: row and column factors (a, b) so that a R b averages to one over each side; (table, a, b).

    >>> table, _, _ = balanced(np.array([[2.0, 1.0], [1.0, 3.0]]), np.full(2, 0.5), np.full(2, 0.5), tol=1e-12)
    >>> table.mean(axis=0).round(6), table.mean(axis=1).round(6)
    (array([1., 1.]), array([1., 1.]))
    """
    a, b = np.ones(len(p)), np.ones(len(q))
    Rq, Rp = R * q, np.ascontiguousarray(R.T * p)
    for _ in range(sweeps):
        new = 1.0 / np.maximum(Rq @ b, 1e-300)
        done = np.abs(new / a - 1.0).max() < tol
        a = new
        b = 1.0 / np.maximum(Rp @ a, 1e-300)
        if done:
            break
    return R * a[:, None] * b, a, b


def candidates(pair: Pair, edge: str, *, quick: bool = False) -> Iterator[Candidate]:
    """The estimates that an edge of this kind mixes; `quick` gives a few of them, to compare pairs."""
    x, y = pair.x.axis, pair.y.axis
    lines = isinstance(x, LineAxis) and isinstance(y, LineAxis)
    if edge == "table" or (isinstance(x, StateAxis) and isinstance(y, StateAxis)):
        yield from _tables(pair)
        return
    if edge in ("copula", "gaussian") and lines:
        yield _copula(pair)
        return
    yield from _ridges(pair, quick)
    if max(x.m, y.m) <= _DISTINCT:
        yield _smooth(pair, "cells", 0.0)
    for width in _SMOOTH[1:2] if quick else _SMOOTH:
        yield _smooth(pair, "kernel", width)
    if lines and not quick:
        for first, second in _UNEVEN:
            yield _smooth(pair, "kernel", first, second)
        if x.domain == y.domain == "circle":
            yield from _torus(pair)
    if edge == "auto" and lines:
        yield _copula(pair)
    if quick:
        return
    if isinstance(y, LineAxis) and not y.circle:
        yield from _regressions(pair)
    if isinstance(x, LineAxis) and not x.circle:
        for found in _regressions(pair.flipped()):
            yield Candidate(found.name + " back", found.R.T, found.left_out, found.negative)


# ------------------------------------------------------------------------------------------ linear in P


def _ridges(pair: Pair, quick: bool) -> Iterator[Candidate]:
    x, y = pair.x, pair.y
    mean_x, mean_y = pair.P.sum(axis=1), pair.P.sum(axis=0)
    P = pair.P - np.outer(mean_x, mean_y)
    middle = len(x.axis.widths) // 2
    for i, wx in enumerate(x.axis.widths):
        left = x.spectrum(wx)[1].T @ P
        for j, wy in enumerate(y.axis.widths):
            if quick and (i != middle or j != len(y.axis.widths) // 2):
                continue
            C = left @ y.spectrum(wy)[1]
            for reg in REGS:
                U, own_x = x.filtered(wx, reg)
                V, own_y = y.filtered(wy, reg)
                R = 1.0 + U @ C @ V.T
                yield _made(pair, f"ridge {i}{j} {reg:g}", R, pair.own(own_x, own_y))


def _smooth(pair: Pair, kind: str, width: float, other: float | None = None) -> Candidate:
    """Kernel smoothing of the pairs, `other` the width along y where it is not that along x."""
    S, own_x = pair.x.smoother(kind, width)
    T, own_y = pair.y.smoother(kind, width if other is None else other)
    name = f"{kind} {width:g}" if other is None else f"{kind} {width:g} × {other:g}"
    return _made(pair, name, S @ pair.P @ T.T, pair.own(own_x, own_y))


def _made(pair: Pair, name: str, R: FloatArray, own: FloatArray) -> Candidate:
    """Floor, balance, and the values at the rows without their own shares."""
    p, q = pair.x.axis.q, pair.y.axis.q
    left = pair.values(R) - own / pair.n
    negative = float(p @ np.maximum(-R, 0.0) @ q)
    R, a, b = balanced(np.maximum(R, _FLOOR), p, q)
    scale = _along(a, pair.px) * _along(b, pair.py)
    return Candidate(name, R, np.maximum(left, _FLOOR) * scale, negative)


def _along(values: FloatArray, p: Placed) -> FloatArray:
    return np.asarray(values[p.a] * (1.0 - p.f) + values[p.b] * p.f)


def _tables(pair: Pair) -> Iterator[Candidate]:
    """Histograms of several numbers of blocks; pairs of states have one, their table itself."""
    if isinstance(pair.x.axis, StateAxis) and isinstance(pair.y.axis, StateAxis):
        S, own_x = pair.x.smoother("cells", 0.0)
        T, own_y = pair.y.smoother("cells", 0.0)
        R = S @ pair.P @ T.T
        left = (pair.values(R) - pair.own(own_x, own_y) / pair.n) * pair.n / max(pair.n - 1, 1)
        yield Candidate("table", R, np.maximum(left, 0.0))
        return
    for number in _BLOCKS:
        yield _smooth(pair, "blocks", float(number))


# ------------------------------------------------------------------------------------------ two angles


def _torus(pair: Pair) -> Iterator[Candidate]:
    """Mixtures of normal densities on the torus; rows are left out by parts."""
    x, y = pair.x.axis, pair.y.axis
    assert isinstance(x, LineAxis) and isinstance(y, LineAxis)
    points, counts, of_row = binned(np.stack([_angles(end, pair.rows) for end in (pair.x, pair.y)], axis=1))
    ends = [axis.density.grid[axis.anchors] for axis in (x, y)]
    for i, (size, spread) in enumerate(_MIXTURES):
        found = TorusMixture.of(points, counts, size=size, spread=spread, seed=i)
        R, _, _ = balanced(found.table(*ends), x.q, y.q)
        change = 1.0 / found.ratio(points)
        for out, without in crossed(found, points, counts):
            change[out] *= without.ratio(points[out])
        yield Candidate(f"torus {size} {spread:g}", R, pair.values(R) * change[of_row])


def _angles(end: End, rows: Any) -> FloatArray:
    assert isinstance(end.axis, LineAxis)
    angles = end.axis.density.coordinate.forward(end.axis.read(end.values))
    return angles if rows is None else np.asarray(angles[rows])


# ------------------------------------------------------------------------------------------ functions with noise


def _regressions(pair: Pair) -> Iterator[Candidate]:
    """p(y | x) with y = f(x) + s(x) e, in the coordinate in which noise is additive; s constant, or a function of x."""
    y = pair.y.linear if pair.rows is None else pair.y.linear[pair.rows]
    if not y.max() > y.min() or pair.x.axis.m < 2:
        return
    fit = _ridge_regression(pair, y)
    one = np.ones(pair.n)
    yield _noisy(pair, "regress", fit, np.ones(pair.x.axis.m), one, one)
    rest = np.abs(fit.left_out)
    level = np.log(np.maximum(rest, 1e-2 * max(float(rest.mean()), 1e-300)))
    scale = _ridge_regression(pair, level)
    at_rows = np.exp(_along(scale.function, pair.px))
    yield _noisy(pair, "regress scaled", fit, np.exp(scale.function), at_rows, np.exp(level - scale.left_out))


@dataclass(frozen=True, eq=False)
class _Fit:
    function: FloatArray  # (m,) on the cells of x
    residuals: FloatArray  # (n,)
    left_out: FloatArray  # (n,) residuals of each row without it


def _ridge_regression(pair: Pair, y: FloatArray) -> _Fit:
    """Kernel ridge regression on the cells of x, penalty by leave-one-out in closed form."""
    p, n, m = pair.px, pair.n, pair.x.axis.m
    s, V = pair.x.spectrum(pair.x.axis.widths[-1])
    T = np.zeros((m, m))
    pair_mass(*p[:3], *p[:3], T)  # HᵀH of the shares H of rows in cells
    mean = float(y.mean())
    b = np.bincount(p.a, (y - mean) * (1.0 - p.f), m) + np.bincount(p.b, (y - mean) * p.f, m)
    B = V * np.sqrt(s)
    B = B - (T.sum(axis=1) / n) @ B
    e, Q = np.linalg.eigh(B.T @ T @ B / n)
    e, Z = np.maximum(e, 0.0), B @ Q
    c = Z.T @ b / n
    best: tuple[float, _Fit] | None = None
    own = np.empty(n)
    size = float(np.abs(y - mean).max()) or 1.0  # squares of large numbers overflow
    for reg in _PENALTIES:
        f = mean + Z @ (c / (e + reg))
        own_shares((Z / (e + reg)) @ Z.T, p.a, p.b, p.f, own)
        rest = y - _along(f, p)
        left = rest / np.maximum(1.0 - (own + 1.0) / n, 0.05)
        error = float((left / size) @ (left / size))
        if best is None or error < best[0]:
            best = error, _Fit(f, rest, left)
    assert best is not None
    return best[1]


def _noisy(
    pair: Pair, name: str, fit: _Fit, scale: FloatArray, at_rows: FloatArray, left_scale: FloatArray
) -> Candidate:
    """The table of f(x) + s(x)·e: the noise density, integrated over the cells of y.

    `scale` is s on cells, `at_rows` at the rows, and `left_scale` there without the row itself.
    """
    x, y = pair.x.axis, pair.y.axis
    assert isinstance(y, LineAxis)
    noise_rows = fit.left_out / left_scale
    noise = line_density(noise_rows)
    ends = 1.5 * max(float(np.abs(noise_rows).max()), 1e-300)
    z = np.linspace(-ends, ends, _NOISE_GRID)
    values = np.exp(noise.log_density(z))
    points = y.density.coordinate.linear(y.grid_values)
    low, high, share = y.hats
    R = np.zeros((x.m, y.m))
    spread_masses(values, z[0], z[1] - z[0], fit.function, scale, low, high, share, points, np.gradient(points), R)
    R, _, _ = balanced(np.maximum(R / y.q, 1e-5), x.q, y.q)
    left = noise.log_density(noise_rows, left_out=True) - np.log(left_scale)
    change = left - noise.log_density(fit.residuals / at_rows) + np.log(at_rows)
    return Candidate(name, R, pair.values(R) * np.exp(np.minimum(change, 1.0)))


def _copula(pair: Pair) -> Candidate:
    """Normal scores with one correlation; the conditional normal is averaged over the cells of y."""
    x, y = pair.x.axis, pair.y.axis
    assert isinstance(x, LineAxis) and isinstance(y, LineAxis)
    zx, zy = _row_scores(pair.x, pair.rows), _row_scores(pair.y, pair.rows)
    zx, zy = zx - zx.mean(), zy - zy.mean()
    size = float(np.sqrt((zx @ zx) * (zy @ zy)))
    r = float(np.clip(zx @ zy / size, -0.999, 0.999)) if size > 0.0 else 0.0
    u, v = x.scores[x.anchors][:, None], y.scores
    ratio = np.exp(-0.5 * (r * r * (u**2 + v**2) - 2.0 * r * u * v) / (1.0 - r * r)) / np.sqrt(1.0 - r * r)
    R = _cell_means(ratio, y)
    R, _, _ = balanced(np.maximum(R, 1e-6), x.q, y.q)
    return Candidate("copula", R, pair.values(R))


def _cell_means(values: FloatArray, axis: LineAxis) -> FloatArray:
    """Means over cells of functions on the grid, (k, G) → (k, m)."""
    low, high, share = axis.hats
    hats = np.zeros((len(low), axis.m))
    at = np.arange(len(low))
    hats[at, low] += 1.0 - share
    hats[at, high] += share
    return np.asarray((values * axis.density.masses) @ hats / axis.q)


def _row_scores(end: End, rows: Any) -> FloatArray:
    axis: Axis = end.axis
    assert isinstance(axis, LineAxis)
    x = axis.read(end.values)
    x = x if rows is None else x[rows]
    u = axis.density.position(axis.density.coordinate.forward(x))
    return np.asarray(np.interp(u, np.arange(len(axis.scores)), axis.scores))
