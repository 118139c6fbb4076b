"""Smoothing with kernels: local means and lines, and the bandwidth that leaving points out prefers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count, take
from gramgraph.machines.kernels import ResolvedKernel
from gramgraph.typing import FloatArray

_CELLS = 1 << 21  # entries of a block of distances
_NOTHING = 1e-290  # of the largest weight: sums below it hang on how the kernel's values underflow


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
        """Weights of the training points (rows, n) that sum to one; `own` rows leave themselves out.

        A row without any point near has the weights of the points themselves.
        """
        least = 0.0
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
            if not self.kernel.precomputed:
                least = _NOTHING * float((self.kernel.diag(Z) * self.weights).max())
        total = W.sum(axis=1, keepdims=True)
        return np.where(total > least, W / np.where(total > least, total, 1.0), self.weights / self.weights.sum())

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
