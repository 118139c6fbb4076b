"""The density of vectors and directions: a kernel at every point of a sample, its width by leave-one-out likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gramgraph.typing import FloatArray, IntArray

_VECTOR_WIDTHS = (0.08, 0.12, 0.18, 0.27, 0.4, 0.6, 0.9)  # in standard deviations of the sample
_CONCENTRATIONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
_ROWS = 2000


@dataclass(frozen=True, eq=False)
class PointDensity:
    """(1/n) Σᵢ k(x, xᵢ): normal densities with the sample's covariance times width², or on the sphere C exp(κ xᵀxᵢ).

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> f = PointDensity.of(X, "vector")
    >>> bool(f.log_kernels(np.zeros((1, 2))).shape == (1, 300) and 0.0 < f.width < 1.0)
    True
    """

    kind: str  # "vector" or "sphere"
    sample: FloatArray  # (n, d)
    width: float  # of vectors in standard deviations; of directions the concentration κ

    @classmethod
    def of(cls, X: FloatArray, kind: str) -> PointDensity:
        """The width that predicts each point best from the others."""
        X = np.asarray(X, dtype=np.float64)
        X = X[:: max(len(X) // _ROWS, 1)]
        if kind == "sphere":
            X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
        return cls(kind, X, 1.0).sharpened(np.ones((len(X), 1)), np.ones((1, len(X))))

    def sharpened(self, rows: FloatArray, shares: FloatArray) -> PointDensity:
        """The width that predicts each point of the sample best from the others, with weights rows @ shares (n, n)."""
        with np.errstate(divide="ignore"):
            weights = np.log(np.maximum(rows @ shares, 0.0))
        best, score = self, -np.inf
        for width in _CONCENTRATIONS if self.kind == "sphere" else _VECTOR_WIDTHS:
            f = replace(self, width=width)
            L = f.log_kernels(self.sample) + weights
            np.fill_diagonal(L, -np.inf)
            top = np.maximum(L.max(axis=1), -700.0)
            found = float((top + np.log(np.exp(L - top[:, None]).sum(axis=1) + 1e-300)).mean())
            if found > score:
                best, score = f, found
        return best

    @cached_property
    def root(self) -> FloatArray:
        """Lower triangle L with L Lᵀ = width² × covariance of the sample."""
        X = self.sample - self.sample.mean(axis=0)
        C = X.T @ X / max(len(X), 1)
        floor = 1e-6 * max(float(np.trace(C)) / len(C), 1e-12)
        return np.asarray(self.width * np.linalg.cholesky(C + floor * np.eye(len(C))))

    def log_kernels(self, X: FloatArray) -> FloatArray:
        """log k(x, xᵢ), (rows of X, n)."""
        X = np.asarray(X, dtype=np.float64)
        if self.kind == "sphere":
            X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
            return np.asarray(self.width * (X @ self.sample.T - 1.0) + self._log_c)
        Z, S = (np.linalg.solve(self.root, part.T).T for part in (X, self.sample))
        squares = (Z**2).sum(axis=1)[:, None] + (S**2).sum(axis=1) - 2.0 * Z @ S.T
        log_c = -0.5 * X.shape[1] * np.log(2.0 * np.pi) - float(np.log(np.diag(self.root)).sum())
        return np.asarray(log_c - 0.5 * np.maximum(squares, 0.0))

    @cached_property
    def _log_c(self) -> float:
        """log C + κ of the von Mises–Fisher density."""
        from scipy.special import ive

        d, kappa = self.sample.shape[1], self.width
        order = 0.5 * d - 1.0
        return float(order * np.log(kappa) - 0.5 * d * np.log(2.0 * np.pi) - np.log(ive(order, kappa)))

    def draw(self, at: IntArray, rng: np.random.Generator) -> FloatArray:
        """A point from the kernel at each of some points of the sample, (len(at), d)."""
        d = self.sample.shape[1]
        if self.kind == "vector":
            return np.asarray(self.sample[at] + rng.normal(size=(len(at), d)) @ self.root.T)
        cosine = self._cosines(len(at), rng)
        across = rng.normal(size=(len(at), d))
        center = self.sample[at]
        across -= (across * center).sum(axis=1, keepdims=True) * center
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
        sine = np.sqrt(np.maximum(1.0 - cosine**2, 0.0))
        return np.asarray(cosine[:, None] * center + sine[:, None] * across)

    def _cosines(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Cosines of angles to the center: rejection from a beta envelope (Wood)."""
        d, kappa = self.sample.shape[1], self.width
        b = (d - 1.0) / (2.0 * kappa + np.sqrt(4.0 * kappa**2 + (d - 1.0) ** 2))
        x0 = (1.0 - b) / (1.0 + b)
        c = kappa * x0 + (d - 1.0) * np.log(1.0 - x0**2)
        out, left = np.empty(n), np.arange(n)
        while len(left):
            z = rng.beta(0.5 * (d - 1.0), 0.5 * (d - 1.0), size=len(left))
            w = (1.0 - (1.0 + b) * z) / (1.0 - (1.0 - b) * z)
            good = kappa * w + (d - 1.0) * np.log(1.0 - x0 * w) - c >= np.log(rng.random(len(left)))
            out[left[good]] = w[good]
            left = left[~good]
        return out
