"""Smoothing with kernels: local means and lines, densities, and the bandwidth that leaving points out prefers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count, take
from gramgraph.machines.kernels import ResolvedKernel
from gramgraph.typing import FloatArray

__all__ = ["KernelMixture", "Smoother", "best_bandwidth", "scott"]

_CELLS = 1 << 21  # entries of a block of distances


@dataclass(frozen=True, eq=False)
class Smoother:
    """Local means (degree 0) or lines (degree 1) of the targets of some points."""

    kernel: ResolvedKernel
    rbf: bool  # exp(−|x − x′|²/2h²), in logarithms
    vectors: bool  # whether points can be divided by h
    degree: int
    X: Any  # n points
    Y: FloatArray  # (n, t)
    weights: FloatArray  # (n,)

    def at(self, X: Any, h: float) -> FloatArray:
        """The smoothed targets at points, (m, t)."""
        out = np.empty((count(X), self.Y.shape[1]))
        for rows in _blocks(len(out), len(self.Y)):
            part = take(X, rows)
            out[rows] = self._smooth(part, self._local(part, h, None))
        return out

    def loo_error(self, h: float) -> float:
        """Mean squared error of points that are left out."""
        total = 0.0
        for rows in _blocks(len(self.Y), len(self.Y)):
            part = self.X[rows]
            found = self._smooth(part, self._local(part, h, rows))
            total += float(self.weights[rows] @ ((self.Y[rows] - found) ** 2).mean(axis=1))
        return total / float(self.weights.sum())

    def _local(self, part: Any, h: float, own: slice | None) -> FloatArray:
        """Weights of the training points (rows, n) that sum to one; `own` rows leave themselves out."""
        if self.rbf:
            from scipy.spatial.distance import cdist

            log = cdist(part / h, self.X / h, "sqeuclidean")  # squares of large or small units would be lost
            log *= -0.5
            with np.errstate(divide="ignore"):
                log += np.log(self.weights)
            if own is not None:
                log[np.arange(len(log)), np.arange(own.start, own.stop)] = -np.inf
            top = log.max(axis=1, keepdims=True)
            W = np.exp(log - np.where(np.isfinite(top), top, 0.0))
        else:
            scale = h if self.vectors else 1.0
            Z = self.X / scale if self.vectors else self.X
            W = self.kernel.gram(part / scale if self.vectors else part, Z) * self.weights
            if (W < 0.0).any():
                raise ModelError("kernel: smoothing needs k ≥ 0, but some kernel values are negative.")
            if own is not None:
                W[np.arange(len(W)), np.arange(own.start, own.stop)] = 0.0
        total = W.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, W / np.where(total > 0.0, total, 1.0), self.weights / self.weights.sum())

    def _smooth(self, part: Any, W: FloatArray) -> FloatArray:
        means = W @ self.Y
        if self.degree == 0:
            return means
        center = np.average(self.X, axis=0, weights=self.weights)
        X = self.X - center  # moments around the middle of the data lose fewer digits
        n, d = X.shape
        x_bar = W @ X
        second = (W @ (X[:, :, None] * X[:, None, :]).reshape(n, d * d)).reshape(-1, d, d)
        cross = (W @ (X[:, :, None] * self.Y[:, None, :]).reshape(n, -1)).reshape(-1, d, self.Y.shape[1])
        second -= x_bar[:, :, None] * x_bar[:, None, :]
        cross -= x_bar[:, :, None] * means[:, None, :]
        # Directions in which the weighted points do not spread have no slope.
        slope = np.linalg.pinv(second, rcond=1e-9, hermitian=True) @ cross
        return means + np.einsum("id,idt->it", part - center - x_bar, slope)


@dataclass(frozen=True, eq=False)
class KernelMixture:
    """p(x) = Σ wᵢ h⁻ᵈ κ((x − xᵢ)/h) / Σ wᵢ."""

    shape: str  # "gaussian", "epanechnikov" or "tophat"
    X: FloatArray  # (n, d)
    weights: FloatArray  # (n,)

    def log_density(self, X: FloatArray, h: float) -> FloatArray:
        """log p at points, (m,)."""
        out = np.empty(len(X))
        for rows in _blocks(len(X), len(self.X)):
            out[rows] = _log_sum(self._log_kernel(X[rows], h), self.weights)
        return out - np.log(self.weights.sum())

    def _log_kernel(self, part: FloatArray, h: float) -> FloatArray:
        """log h⁻ᵈ κ, (rows, n)."""
        from scipy.spatial.distance import cdist
        from scipy.special import gammaln

        d = part.shape[1]
        log = cdist(part / h, self.X / h, "sqeuclidean")
        log_ball = 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1.0)
        if self.shape == "gaussian":
            log *= -0.5
            return log - (0.5 * d * np.log(2.0 * np.pi) + d * np.log(h))
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.shape == "tophat":
                log = np.where(log < 1.0, 0.0, -np.inf)
                return log - (log_ball + d * np.log(h))
            log = np.log(np.maximum(1.0 - log, 0.0))
        return log + (np.log(0.5 * (d + 2.0)) - log_ball - d * np.log(h))

    def loo_score(self, h: float) -> float:
        """Mean log density of points that are left out."""
        total = 0.0
        rest = self.weights.sum() - self.weights
        used = (self.weights > 0.0) & (rest > 0.0)
        for rows in _blocks(len(self.X), len(self.X)):
            log = self._log_kernel(self.X[rows], h)
            log[np.arange(len(log)), np.arange(rows.start, rows.stop)] = -np.inf
            with np.errstate(divide="ignore"):
                found = _log_sum(log, self.weights) - np.log(rest[rows])
            total += float(self.weights[rows][used[rows]] @ np.maximum(found[used[rows]], -1e10))
        return total / float(self.weights[used].sum()) if used.any() else 0.0

    def draw(self, n: int, h: float, rng: Any) -> FloatArray:
        """n draws, (n, d)."""
        d = self.X.shape[1]
        centers = self.X[rng.choice(len(self.X), size=n, p=self.weights / self.weights.sum())]
        steps = rng.normal(size=(n, d))
        if self.shape != "gaussian":
            steps /= np.linalg.norm(steps, axis=1, keepdims=True)
            power = 1.0 if self.shape == "tophat" else 2.0  # r² follows a beta distribution
            steps *= np.sqrt(rng.beta(0.5 * d, power, size=(n, 1)))
        return centers + h * steps


def scott(X: FloatArray, weights: FloatArray) -> float:
    """σ̂ m^(−1/(d+4)) with the mean spread of the columns and m the sum of weights; 1 for equal points."""
    unit = float(np.abs(X).max()) or 1.0  # whatever the unit of the data is, the result is in it
    Z = X / unit
    mean = np.average(Z, axis=0, weights=weights)
    spread = float(np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=weights).mean()))
    found = unit * spread * float(weights.sum()) ** (-1.0 / (X.shape[1] + 4.0))
    return found if spread > 1e-12 and found > 0.0 else 1.0


def best_bandwidth(loss: Callable[[float], float], start: float) -> tuple[float, float]:
    """The h with the least loss between start/50 and 10·start: a grid, then Brent's search around its best."""
    from scipy.optimize import minimize_scalar

    grid = np.log(start) + np.linspace(-np.log(50.0), np.log(10.0), 18)
    losses = [loss(float(np.exp(g))) for g in grid]
    best = int(np.argmin(losses))
    near = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = minimize_scalar(lambda g: loss(float(np.exp(g))), bounds=near, method="bounded", options={"xatol": 1e-4})
    if found.fun < losses[best]:
        return float(np.exp(found.x)), float(found.fun)
    return float(np.exp(grid[best])), float(losses[best])


def _blocks(n: int, m: int) -> Iterator[slice]:
    step = max(1, _CELLS // max(m, 1))
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


def _log_sum(log: FloatArray, weights: FloatArray) -> FloatArray:
    top = log.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(log - top) @ weights) + top[:, 0]
