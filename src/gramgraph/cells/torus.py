"""Mixtures of wrapped normal densities of one or two angles: few numbers where kernels would need many points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph._numerics.cells.torus import densities, learn, spread_out
from gramgraph.typing import Array, FloatArray

_STRENGTH = 3.0  # covariances lean to spread² I as if by so many points
_FIRST = 0.3  # standard deviation of all components at the start
_BACKGROUND = 0.01  # weight of the uniform density at the start
_SWEEPS, _TOL = 30, 0.3  # the last sweep gains less nats in all; later ones would only learn the noise
_FOLDS, _AGAIN = 4, 8  # to judge: parts that are left out in turn, and sweeps that forget each of them
_BINS = 256  # of the circle, for points of pairs


@dataclass(frozen=True, eq=False)
class TorusMixture:
    """Σ_k w_k N(x; center_k, cov_k) + uniform, on the circle or the torus, learned by EM.

    >>> angles = np.random.default_rng(0).vonmises([3.0, 0.0], 20.0, size=(500, 2))
    >>> found = TorusMixture.of(angles, np.ones(500), size=4, spread=0.1)
    >>> found.density(np.array([[3.0, 0.0], [-3.1, 0.0], [0.0, 0.0]])).round(0)
    array([3., 3., 0.])
    """

    weights: FloatArray  # (k,)
    centers: FloatArray  # (k, 2)
    covariances: FloatArray  # (k, 3): xx, xy, yy
    uniform: float  # weight of the uniform density
    angles: int  # 1 or 2
    spread: float  # to whose square the variances lean

    @classmethod
    def of(cls, X: FloatArray, counts: FloatArray, *, size: int, spread: float, seed: int = 0) -> TorusMixture:
        """From angles (n, 1) or (n, 2) in [−π, π], each `counts` times; `seed` draws the centers to begin with.

        O(n · size) a sweep, less where components are narrow.
        """
        angles = X.shape[1]
        pairs = _pairs(X)
        centers = pairs[spread_out(pairs, counts, np.random.default_rng(seed).random(size))]
        cov = np.tile([_FIRST**2, 0.0, _FIRST**2 if angles == 2 else 0.5 / np.pi], (len(centers), 1))
        w = np.full(len(centers), (1.0 - _BACKGROUND) / len(centers))
        return cls(w, centers, cov, _BACKGROUND, angles, spread).after(X, counts, _SWEEPS)

    def after(self, X: FloatArray, counts: FloatArray, sweeps: int) -> TorusMixture:
        """The mixture after more sweeps of EM over these points."""
        w, centers, cov = self.weights.copy(), self.centers.copy(), self.covariances.copy()
        flat = self.angles == 1
        base, spread = self._base, self.spread
        uniform = learn(_pairs(X), counts, w, centers, cov, self.uniform, base, flat, spread, _STRENGTH, sweeps, _TOL)
        return TorusMixture(w, centers, cov, float(uniform), self.angles, spread)

    @property
    def _base(self) -> float:
        return float((2.0 * np.pi) ** -float(self.angles))

    def density(self, X: FloatArray) -> FloatArray:
        """The density at angles (n, 1) or (n, 2)."""
        out = np.empty(len(X))
        densities(_pairs(X), self.weights, self.centers, self.covariances, self.uniform * self._base, out)
        return out

    def margin(self, which: int) -> TorusMixture:
        """The mixture of one of two angles."""
        k, zero = len(self.weights), np.zeros(len(self.weights))
        cov = np.stack([self.covariances[:, 2 * which], zero, np.full(k, 0.5 / np.pi)], axis=1)
        centers = np.stack([self.centers[:, which], zero], axis=1)
        return TorusMixture(self.weights, centers, cov, self.uniform, 1, self.spread)

    def ratio(self, X: FloatArray) -> FloatArray:
        """p(x, y) / (p(x) p(y)) at pairs of angles (n, 2)."""
        margins = self.margin(0).density(X[:, :1]) * self.margin(1).density(X[:, 1:])
        return np.asarray(self.density(X) / margins)

    def table(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """p(x, y) / (p(x) p(y)) at all pairs of angles x (m,) and y (p,), (m, p)."""
        both = self.density(np.stack([np.repeat(x, len(y)), np.tile(y, len(x))], axis=1)).reshape(len(x), len(y))
        return np.asarray(both / np.outer(self.margin(0).density(x[:, None]), self.margin(1).density(y[:, None])))


def binned(X: FloatArray) -> tuple[FloatArray, FloatArray, Array]:
    """Pairs of angles on a grid: different points in order (b, 2), their counts, and the point of each row."""
    step = 2.0 * np.pi / _BINS
    at = np.rint((X + np.pi) / step).astype(np.int64) % _BINS
    codes, inverse, counts = np.unique(at[:, 0] * _BINS + at[:, 1], return_inverse=True, return_counts=True)
    points = np.stack([codes // _BINS, codes % _BINS], axis=1) * step - np.pi
    return points, counts.astype(np.float64), inverse


def crossed(found: TorusMixture, X: FloatArray, counts: FloatArray) -> list[tuple[Array, TorusMixture]]:
    """(points that were left out, the mixture after a few sweeps without them), for each of four parts."""
    part = np.arange(len(X)) % _FOLDS
    return [(part == j, found.after(X[part != j], counts[part != j], _AGAIN)) for j in range(_FOLDS)]


def _pairs(X: FloatArray) -> FloatArray:
    full = X if X.shape[1] == 2 else np.hstack([X, np.zeros((len(X), 1))])
    return np.ascontiguousarray(full, dtype=np.float64)
