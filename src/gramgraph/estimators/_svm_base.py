"""What the support vector machines share: reading the data, keeping support vectors, evaluating expansions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from gramgraph.estimators._base import KernelEstimator, check_positive
from gramgraph.estimators._svm_kernel import ChosenKernel, choose_kernel, gram_of_matrix
from gramgraph.estimators._svm_machine import Settings
from gramgraph.estimators._svm_rows import Source, take_points
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray

__all__ = ["SupportVectors"]

_BLOCK = 1 << 22  # entries of a Gram block in prediction


class SupportVectors(KernelEstimator):
    """What the three machines share: reading the data, keeping support vectors, evaluating expansions."""

    kernel: Any
    gamma: float | str
    degree: int
    coef0: float
    tol: float
    cache_size: float
    max_iter: int
    shrinking: bool

    def _open(self, X: Any, sample_weight: Any, n: int) -> tuple[IntArray, FloatArray, Source]:
        """Rows of positive weight, their weights, and where their kernel rows come from."""
        weight = _check_sample_weight(sample_weight, np.empty((n, 0)), dtype=np.float64, ensure_non_negative=True)
        kept = np.flatnonzero(weight > 0)
        if not len(kept):
            raise ModelError("Every sample weight is zero: no point is left to learn from.")
        weight = weight[kept]
        points = X if len(kept) == n else take_points(X, kept)
        chosen = choose_kernel(self.kernel, points, weight, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        if chosen.kind == "precomputed":
            points = gram_of_matrix(X)[np.ix_(kept, kept)] if len(kept) < n else gram_of_matrix(X)
        self.kernel_: ChosenKernel = chosen
        return kept, weight, chosen.source(points, len(kept))

    def _settings(self, C: float, nu: float | None) -> Settings:
        check_positive("tol", self.tol)
        check_positive("cache_size", self.cache_size)
        if nu is not None and not (isinstance(nu, (int, float, np.floating)) and 0 < nu <= 1):
            raise ModelError(f"nu must be a number in (0, 1]; it is {nu!r}.")
        return Settings(C, nu, self.tol, self.cache_size * 2.0**20, self.max_iter, self.shrinking)

    def _keep(self, X: Any, support: IntArray, weights: FloatArray, intercept: FloatArray) -> None:
        """Support points and the matrix (n_sv, q) of their weights in the q expansions."""
        self.support_ = support
        precomputed = self.kernel_.kind == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if precomputed else take_points(X, support)
        self._weights, self.intercept_ = weights, intercept

    def _expansions(self, X: Any) -> FloatArray:
        """Σ weights k(x_i, x) + intercept, (n, q), a block of points at a time."""
        check_is_fitted(self, "support_")
        X = self._points(X, reset=False)
        n = len(X[0]) if isinstance(X, tuple) else len(X)
        found = np.empty((n, len(self.intercept_)))
        height = max(1, _BLOCK // max(1, len(self.support_)))
        for start in range(0, n, height):
            rows = np.arange(start, min(n, start + height))
            if self.kernel_.kind == "precomputed":
                K: Array = X[rows][:, self.support_]
            else:
                K = self.kernel_.gram(take_points(X, rows), self.support_vectors_)
            found[rows] = K @ self._weights
        found += self.intercept_
        return found

    @property
    def coef_(self) -> FloatArray:
        """Weights of the columns, (q, d), for kernel="linear"."""
        if self.kernel != "linear":
            raise AttributeError("coef_ exists for kernel='linear' only: other kernels have no weight per column.")
        check_is_fitted(self, "support_")
        return np.ascontiguousarray(self._weights.T @ self.support_vectors_)
