"""Densities made of pieces of Gaussians, each between two ends."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.typing import FloatArray

#: Points of Gauss and Legendre in a panel, panels in a cell, and how many deviations it reaches from a Gaussian's mean.
_POINTS, _PANELS, _FAR = 24, 4, 9.0
#: Pieces that are narrower than this many deviations have their moments by points: closed forms would lose digits.
_NARROW = 1.0


class Pieces:
    """w_k N(x; m_k, s_k²) on (low_k, high_k], divided by the Gaussian's mass there: a density of one case.

    It is what remains of a Gaussian variable when something that is constant between thresholds was observed; exact.

    >>> half = Pieces(np.ones(1), np.zeros(1), np.ones(1), np.zeros(1), np.full(1, np.inf))
    >>> round(float(half.moments()[0]), 6), round(float(half.cdf(np.array([0.6744897501960817]))[0]), 6)
    (0.797885, 0.5)
    """

    def __init__(
        self, w: FloatArray, mean: FloatArray, sd: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:  # (k,) each; w sums to one
        kept = w > 0.0
        if not kept.any():  # an impossible case: one piece without a number
            kept = np.arange(len(w)) == 0
        self.w, self.mean, self.sd, self.low, self.high = (part[kept] for part in (w, mean, sd, low, high))

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Ends in standard deviations from the mean."""
        return (self.low - self.mean) / self.sd, (self.high - self.mean) / self.sd

    @cached_property
    def _log_mass(self) -> FloatArray:
        return log_between(*self._ends)

    def moments(self) -> tuple[float, float]:
        """Mean and variance."""
        z, v = self._cut_moments()
        m = self.mean + self.sd * z
        mean = float(self.w @ m)
        return mean, float(self.w @ (self.sd**2 * v + (m - mean) ** 2))

    def _cut_moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of a standard normal between the ends of each piece."""
        a, b = self._ends
        with np.errstate(over="ignore", invalid="ignore"):
            at_a, at_b = (np.where(np.isfinite(e), np.exp(-0.5 * e * e - _HALF - self._log_mass), 0.0) for e in (a, b))
            z = at_a - at_b
            v = 1.0 + np.where(at_a > 0.0, a, 0.0) * at_a - np.where(at_b > 0.0, b, 0.0) * at_b - z * z
        beside = (a > 0.0) | (b < 0.0)
        few = (b - a < _NARROW) | beside & (np.minimum(np.abs(a), np.abs(b)) > 100.0) | ~np.isfinite(z + v)
        if few.any():
            x, p = self._points_of(few)
            x = (x - self.mean[few, None]) / self.sd[few, None]
            z[few] = (p * x).sum(axis=1)
            v[few] = (p * (x - z[few, None]) ** 2).sum(axis=1)
        return z, np.maximum(v, 0.0)

    @cached_property
    def _limits(self) -> tuple[FloatArray, FloatArray]:
        """Between which deviations from its mean the mass of each piece lies."""
        a, b = self._ends
        reach = 36.0 / np.maximum(self._near, 4.0)  # how far it goes beyond the nearer end: e^−36 is left
        low = np.where(a > 0.0, a, np.maximum(a, np.where(b < 0.0, b - reach, -_FAR)))
        return low, np.where(b < 0.0, b, np.minimum(b, np.where(a > 0.0, a + reach, _FAR)))

    @cached_property
    def _near(self) -> FloatArray:
        """Deviations from the mean to the nearer end of pieces beside it."""
        a, b = self._ends
        return np.where((a > 0.0) | (b < 0.0), np.minimum(np.abs(a), np.abs(b)), 0.0)

    def _points_of(self, which: Any) -> tuple[FloatArray, FloatArray]:
        """Points inside some pieces and their shares of them, (pieces, points)."""
        at, weight = np.polynomial.legendre.leggauss(_POINTS)
        low, high = (end[which] for end in self._limits)
        near = self._near[which]
        half = 0.5 * (high - low)
        z = 0.5 * (low + high)[:, None] + half[:, None] * at
        p = weight * np.exp(-0.5 * (z * z - near[:, None] ** 2))
        total = p.sum(axis=1, keepdims=True)
        p = np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / _POINTS)
        return self.mean[which][:, None] + self.sd[which][:, None] * z, p

    def points(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Points, their masses and the density there, for integrals: panels in every cell."""
        at, weight = np.polynomial.legendre.leggauss(_POINTS)
        steps = (np.arange(_PANELS)[:, None] + 0.5 * (at + 1.0)).ravel() / _PANELS
        weights = np.tile(0.5 * weight / _PANELS, _PANELS)
        ends = [self.mean + self.sd * end for end in self._limits]
        starts, cell = np.unique(self.low, return_inverse=True)
        found = []
        for k in range(len(starts)):
            own = Pieces(*(part[cell == k] for part in (self.w, self.mean, self.sd, self.low, self.high)))
            low, high = float(ends[0][cell == k].min()), float(ends[1][cell == k].max())
            x = low + (high - low) * steps
            d = own.density(x)
            p = weights * d
            mass = float(own.w.sum())
            found.append((x, p * (mass / p.sum()) if p.sum() > 0.0 else np.full(len(x), mass / len(x)), d))
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))  # type: ignore[return-value]

    def _blocks(self, x: FloatArray) -> list[FloatArray]:
        """Few points at once where there are many pieces."""
        return np.array_split(x, max(len(x) * len(self.w) // 1_000_000, 1))

    def cdf(self, x: FloatArray) -> FloatArray:
        """P(X ≤ x)."""
        return np.concatenate([self._cdf(part) for part in self._blocks(x)])

    def _cdf(self, x: FloatArray) -> FloatArray:
        inside = np.clip(x[:, None], self.low, self.high)
        z = (inside - self.mean) / self.sd
        with np.errstate(invalid="ignore"):
            part = np.exp(log_between(np.broadcast_to(self._ends[0], z.shape), z) - self._log_mass)
        part = np.where(x[:, None] <= self.low, 0.0, np.where(x[:, None] >= self.high, 1.0, part))
        return np.asarray(np.clip(part @ self.w, 0.0, 1.0))

    def density(self, x: FloatArray) -> FloatArray:
        """p(x)."""
        return np.concatenate([self._density(part) for part in self._blocks(x)])

    def _density(self, x: FloatArray) -> FloatArray:
        z = (x[:, None] - self.mean) / self.sd
        logs = -0.5 * z * z - _HALF - np.log(self.sd) - self._log_mass
        inside = (x[:, None] > self.low) & (x[:, None] <= self.high)
        return np.asarray(np.where(inside, np.exp(np.where(inside, logs, -np.inf)), 0.0) @ self.w)

    def quantile(self, q: FloatArray) -> FloatArray:
        """The value below which a share q lies, by bisection to the last digits."""
        room = 20.0 * float(self.sd.max())
        low = np.full(len(q), float((self.mean + self.sd * self._limits[0]).min()) - room)
        high = np.full(len(q), float((self.mean + self.sd * self._limits[1]).max()) + room)
        for _ in range(90):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    def mode(self) -> float:
        """Where the density is largest, among points inside the pieces."""
        x, _, d = self.points()
        return float(x[d.argmax()])

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """n values: a piece by its weight, a point of it by the inverse distribution function."""
        from scipy.special import log_ndtr, ndtri_exp

        k = rng.choice(len(self.w), size=n, p=self.w / self.w.sum())
        a, b = (end[k] for end in self._ends)
        flip = a > 0.0  # pieces above the mean by their mirror images, where no digits are lost
        bottom = log_ndtr(np.where(flip, -b, a))
        z = ndtri_exp(np.logaddexp(bottom, np.log(rng.random(n)) + self._log_mass[k]))
        x = self.mean[k] + self.sd[k] * np.where(flip, -z, z)
        return np.asarray(np.clip(x, self.low[k], self.high[k]))


_HALF = 0.5 * np.log(2.0 * np.pi)


def log_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """log (Φ(b) − Φ(a)) for a ≤ b, without loss of digits in the tails.

    >>> log_between(np.array([30.0]), np.array([np.inf])).round(3).tolist()
    [-454.321]
    """
    from scipy.special import log_ndtr

    flip = a > 0.0
    top, bottom = log_ndtr(np.where(flip, -a, b)), log_ndtr(np.where(flip, -b, a))
    with np.errstate(divide="ignore", invalid="ignore"):
        out = top + np.log1p(-np.exp(bottom - top))
        narrow = -0.5 * (0.5 * (a + b)) ** 2 - _HALF + np.log(b - a)  # far out or narrow: the density times the width
        out = np.where((b - a < 1e-6) & np.isfinite(narrow), narrow, out)
    return np.where(np.isnan(out), -np.inf, out)
