"""The distribution of one number or angle by itself: kernel densities of several widths, mixed by leave-one-out.

Of angles, mixtures of wrapped normal densities are parts as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.cells.mixture_weights import mixture_weights
from gramgraph.cells.torus import TorusMixture, crossed
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray

_GRID = 512
_WIDTHS = 12
_MIXTURES = ((4, 0.05), (8, 0.15), (12, 0.15))  # of angles: components, spread
_TINY = 1e-12


@dataclass(frozen=True)
class Coordinate:
    """A smooth, increasing map of the values to the coordinate t in which densities are estimated.

    real: asinh((x − center) / scale), linear in the bulk and logarithmic in the tails; positive: log x; circle: the
    angle itself in [−π, π). `linear` is the coordinate in which noise is additive.

    >>> Coordinate("positive").forward(np.array([1.0])), Coordinate("circle").forward(np.array([4.0])).round(3)
    (array([0.]), array([-2.283]))
    """

    domain: str
    center: float = 0.0
    scale: float = 1.0

    @property
    def circle(self) -> bool:
        """Whether the ends of the coordinate meet."""
        return self.domain == "circle"

    @classmethod
    def of(cls, x: FloatArray, domain: str) -> Coordinate:
        """Center and scale from the quartiles of the values."""
        if domain != "real":
            return cls(domain)
        if np.abs(x).max(initial=0.0) > 1e300:
            raise ModelError(
                f"numbers reach {np.abs(x).max():.3g}, and axes beyond 1e300 overflow. Try: scale "
                "the columns to moderate numbers."
            )
        if x.size and 0.0 < x.max() - x.min() < 1e-250:
            raise ModelError(
                f"numbers differ by {x.max() - x.min():.3g} at most, too little for an axis. Try: scale the "
                "columns to moderate numbers."
            )
        low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
        scale = max((high - low) / 1.35 or 0.1 * float(x.std()), 1e-9 * abs(middle), 1e-100)
        return cls(domain, float(middle), float(scale) if x.min() < x.max() else 1e-2 * max(abs(float(middle)), 1.0))

    def forward(self, x: FloatArray) -> FloatArray:
        """t(x)."""
        if self.circle:
            return np.asarray(np.mod(x + np.pi, 2.0 * np.pi) - np.pi)
        if self.domain == "positive":
            return np.asarray(np.log(x))
        return np.asarray(np.arcsinh((x - self.center) / self.scale))

    def backward(self, t: FloatArray) -> FloatArray:
        """x(t)."""
        if self.circle:
            return np.asarray(np.mod(t + np.pi, 2.0 * np.pi) - np.pi)
        if self.domain == "positive":
            return np.asarray(np.exp(t))
        return np.asarray(self.center + self.scale * np.sinh(np.clip(t, -700.0, 700.0)))

    def linear(self, x: FloatArray) -> FloatArray:
        """log x of positive numbers, else x."""
        return np.asarray(np.log(x)) if self.domain == "positive" else x

    def log_slope(self, x: FloatArray) -> FloatArray:
        """log dt/dx."""
        if self.circle:
            return np.zeros_like(x)
        if self.domain == "positive":
            return np.asarray(-np.log(x))
        u = (x - self.center) / self.scale
        return np.asarray(-np.log(self.scale) - np.log(np.hypot(1.0, u)))


@dataclass(frozen=True, eq=False)
class LineDensity:
    """A density g(t) on a uniform grid, linear between its points, with exponential tails on the line.

    >>> found = line_density(np.random.default_rng(0).normal(size=4000))
    >>> float(np.exp(found.log_density(np.array([0.0])))[0].round(2))
    0.4
    """

    coordinate: Coordinate
    first: float  # t of the first grid point
    step: float
    values: FloatArray  # (G,) density in t
    tail: float  # length of the exponential tails, in t
    own: float = 0.0  # share of a point's own kernel in the density at that point, in t

    @property
    def grid(self) -> FloatArray:
        """The grid points in t."""
        return np.asarray(self.first + self.step * np.arange(len(self.values)))

    @property
    def masses(self) -> FloatArray:
        """Probability that a grid point stands for, (G,); the tails belong to the ends. They sum to one."""
        out = self.values * self.step
        if not self.coordinate.circle:
            out[[0, -1]] += self.values[[0, -1]] * (self.tail - 0.5 * self.step)
        return np.asarray(out / out.sum())

    def position(self, t: FloatArray) -> FloatArray:
        """Distance from the first grid point in steps."""
        return (t - self.first) / self.step

    def log_density(self, x: FloatArray, *, left_out: bool = False) -> FloatArray:
        """log p(x); with `left_out`, x are points of the sample, and each is judged by the others."""
        t = self.coordinate.forward(x)
        u = self.position(t)
        top = len(self.values) - 1
        if self.coordinate.circle:
            values, inside = np.append(self.values, self.values[0]), np.clip(u, 0.0, top + 1 - 1e-9)
        else:
            values, inside = self.values, np.clip(u, 0.0, top - 1e-9)
        at = inside.astype(np.int64)
        u_in = inside - at
        found = (1.0 - u_in) * values[at] + u_in * values[at + 1]
        out = np.log(np.maximum(found - self.own, 1e-3 * found) if left_out else found)
        if not self.coordinate.circle:
            out = out - np.maximum(np.maximum(-u, u - top), 0.0) * self.step / self.tail
        return np.asarray(out + self.coordinate.log_slope(x))


def line_density(x: Any, domain: str = "real", *, others: Any = None, grid: int = _GRID) -> LineDensity:
    """Estimate the density of real or positive numbers, or of angles.

    Gaussian kernels of twelve widths in the coordinate t, binned linearly on the grid (each width is one FFT). Their
    weights maximize the leave-one-out likelihood (EM) and that of `others`, held-out values. O(n + G log G) a width.
    For angles there are also mixtures of wrapped normal densities, judged by parts of the grid that are left out.

    >>> line_density([1.0, 1.0, 1.0]).log_density(np.array([1.0])).round(0)[0] > 0
    np.True_
    """
    x = np.asarray(x, dtype=np.float64)
    coordinate = Coordinate.of(x, domain)
    t = coordinate.forward(x)
    return _mixed(t, coordinate, None if others is None else coordinate.forward(np.asarray(others, float)), grid)


def _mixed(t: FloatArray, coordinate: Coordinate, others: FloatArray | None, size: int) -> LineDensity:
    circle = coordinate.circle
    spread = 1.0 if circle or t.min() == t.max() else float(t.std())
    first, step = _span(t, circle, spread, size)
    counts = _counts(t, first, step, size, circle)
    curves, top = _smoothed(counts / len(t), _widths(t, spread, step, circle), step, circle)
    L = np.maximum((len(t) * curves - top[:, None]) / max(len(t) - 1, 1), _TINY)  # without a point's own kernel
    if circle:
        counts = np.bincount(np.rint((t - first) / step).astype(np.int64) % size, minlength=size).astype(np.float64)
        more, left_out = _mixtures(np.asarray(first + step * np.arange(size), dtype=np.float64), counts)
        curves, top = np.vstack([curves, more]), np.append(top, np.zeros(len(more)))
        L = np.vstack([L, left_out])
    if others is not None and len(others):
        L = np.hstack([L, np.maximum(curves, _TINY)])
        counts = np.concatenate([counts, _counts(others, first, step, size, circle)])
    used = counts > 0.0
    w = mixture_weights(L[:, used], counts[used], tol=1e-6)
    values = np.maximum(w @ curves, _TINY)
    tail = 0.3 * spread
    total = values.sum() * step
    if not circle:
        total += (values[0] + values[-1]) * (tail - 0.5 * step)
    return LineDensity(coordinate, first, step, values / total, tail, float(w @ top) / len(t))


def _mixtures(grid: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mixtures of normal densities of an angle on the grid, and the same where points are left out by parts."""
    X = grid[:, None]
    found = [TorusMixture.of(X, counts, size=k, spread=s, seed=i) for i, (k, s) in enumerate(_MIXTURES)]
    left = np.empty((len(found), len(grid)))
    for row, mixture in zip(left, found, strict=True):
        for out, without in crossed(mixture, X, counts):
            row[out] = without.density(X[out])
    return np.stack([mixture.density(X) for mixture in found]), left


def _counts(t: FloatArray, first: float, step: float, size: int, circle: bool) -> FloatArray:
    """Points on the grid, each shared between its two neighbors."""
    u = np.clip((t - first) / step, 0.0, (size if circle else size - 1) - 1e-9)
    at = u.astype(np.int64)
    share = u - at
    counts = np.bincount(at, 1.0 - share, size + 1) + np.bincount(at + 1, share, size + 1)
    if circle:
        counts[0] += counts[size]
    return np.asarray(counts[:size])


def _span(t: FloatArray, circle: bool, spread: float, size: int) -> tuple[float, float]:
    if circle:
        return -np.pi, 2.0 * np.pi / size
    low, high = float(t.min()), float(t.max())
    pad = min(0.5 * spread + 0.05 * (high - low), 3.0 * spread)
    return low - pad, (high - low + 2.0 * pad) / (size - 1)


def _widths(t: FloatArray, spread: float, step: float, circle: bool) -> FloatArray:
    """Widths to mix; where values repeat, none is narrower than the usual gap between different ones."""
    low, high = (0.012, 1.0) if circle else (0.02 * spread, 0.8 * spread)
    distinct = np.unique(t)
    if 1 < len(distinct) < 0.5 * len(t):
        low = max(low, 0.4 * float(np.median(np.diff(distinct))))
    low = max(low, step)
    return np.geomspace(low, max(high, 2.0 * low), _WIDTHS)


def _smoothed(counts: FloatArray, widths: FloatArray, step: float, circle: bool) -> tuple[FloatArray, FloatArray]:
    """Densities on the grid, (widths, G), and the kernels at 0, (widths,)."""
    size = len(counts)
    length = size if circle else 2 * size
    steps = np.arange(length)
    gaps = np.minimum(steps, length - steps) * step
    kernels = np.exp(-0.5 * (gaps / widths[:, None]) ** 2)
    kernels /= kernels.sum(axis=1, keepdims=True) * step
    spectrum = np.fft.rfft(counts, length) * np.fft.rfft(kernels, axis=1)
    curves = np.fft.irfft(spectrum, length, axis=1)[:, :size]
    return np.maximum(curves, _TINY), kernels[:, 0]
