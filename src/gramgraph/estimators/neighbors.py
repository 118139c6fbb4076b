"""Nearest neighbors by the distance of features: |φ(x) − φ(y)|² = k(x, x) + k(y, y) − 2 k(x, y)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from gramgraph._validation import check_choice, check_count
from gramgraph.estimators._base import KernelEstimator
from gramgraph.exceptions import ModelError
from gramgraph.machines.kernels import KernelSpec
from gramgraph.typing import Array, FloatArray, IntArray

__all__ = ["KernelNeighborsClassifier", "KernelNeighborsRegressor"]

_ROWS = 1024


class _KernelNeighbors(KernelEstimator):
    _sparse_rows = "keep"

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        kernel: KernelSpec = "rbf",
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        weights: str = "uniform",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.weights = weights

    def _store(self, X: Any) -> int:
        from gramgraph.kernels.inputs import count

        check_choice("weights", self.weights, ("uniform", "distance"))
        check_count("n_neighbors", self.n_neighbors)
        X = self._points(X, reset=True, keep=True)
        self.kernel_ = self._resolve(X)
        self.X_fit_, self._diag = X, self.kernel_.diag(X)
        return count(X)

    def kneighbors(self, X: Any) -> tuple[FloatArray, IntArray]:
        """Distances in the kernel's space and numbers of the nearest training points, both (n, k), nearest first.

        k is n_neighbors, or the number of training points where that is smaller. With a precomputed matrix k(x, x) of
        new points is unknown: distances are then relative to it and only their order has a meaning.
        """
        from gramgraph.kernels.inputs import count, take

        check_is_fitted(self, "X_fit_")
        X = self._points(X, reset=False)
        k = min(int(self.n_neighbors), len(self._diag))
        distances, numbers = np.empty((count(X), k)), np.empty((count(X), k), dtype=np.int64)
        for start in range(0, count(X), _ROWS):
            rows = slice(start, min(count(X), start + _ROWS))
            part = take(X, rows)
            D = self._diag - 2.0 * self.kernel_.gram(part, self.X_fit_)
            if self.kernel_.precomputed:
                D -= D.min(axis=1, keepdims=True)
            else:
                D += self.kernel_.diag(part)[:, None]
            near = np.argsort(D, axis=1, kind="stable")[:, :k]  # equal distances: the earlier point first
            numbers[rows] = near
            distances[rows] = np.sqrt(np.maximum(np.take_along_axis(D, near, axis=1), 0.0))
        return distances, numbers

    def _shares(self, X: Any) -> tuple[FloatArray, IntArray]:
        """Weights (n, k) whose rows sum to one, and neighbors."""
        if self.weights == "distance" and self.kernel == "precomputed":
            raise ModelError(
                "weights='distance' needs k(x, x) of new points, which a precomputed matrix does not give."
            )
        distances, numbers = self.kneighbors(X)
        if self.weights == "uniform":
            return np.full(distances.shape, 1.0 / distances.shape[1]), numbers
        scale = np.sqrt(np.abs(self._diag).max(initial=1e-300))
        exact = distances <= 1e-7 * scale  # √ of rounding in a difference of kernel values
        with np.errstate(divide="ignore"):
            W = np.where(exact.any(axis=1, keepdims=True), exact.astype(float), 1.0 / distances)
        return W / W.sum(axis=1, keepdims=True), numbers


class KernelNeighborsClassifier(ClassifierMixin, _KernelNeighbors):
    """Vote of the k nearest training points, near in the space of the kernel: works for any kind of points.

    Parameters: n_neighbors; kernel, gamma, degree, coef0 as in `KernelRidge`; weights "uniform" or "distance" (1/d).
    A prediction costs O(n) kernel values and a sort of them.

    >>> from gramgraph.estimators import KernelNeighborsClassifier
    >>> model = KernelNeighborsClassifier(1, kernel="linear").fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    >>> model.predict([[4.0]])
    array(['b'], dtype='<U1')
    """

    def fit(self, X: Any, y: Any) -> KernelNeighborsClassifier:
        """Keep the training points and their labels."""
        n = self._store(X)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: labels are needed.")
        check_classification_targets(y)
        labels = column_or_1d(y, warn=True)
        if len(labels) != n:
            raise ValueError(f"y must hold a label per point; X has {n} points, y {len(labels)}: inconsistent numbers")
        self.classes_, self._codes = np.unique(labels, return_inverse=True)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of every class among the neighbors, (n, classes)."""
        check_is_fitted(self, "classes_")
        shares, numbers = self._shares(X)
        out = np.zeros((len(shares), len(self.classes_)))
        np.add.at(out, (np.arange(len(shares))[:, None], self._codes[numbers]), shares)
        return out

    def predict(self, X: Any) -> Array:
        """The class with the largest share; the first in sorted order at a tie."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


class KernelNeighborsRegressor(RegressorMixin, _KernelNeighbors):
    """Mean of the targets of the k nearest training points, near in the space of the kernel.

    Parameters as in `KernelNeighborsClassifier`.

    >>> from gramgraph.estimators import KernelNeighborsRegressor
    >>> KernelNeighborsRegressor(2, kernel="linear").fit([[0.0], [1.0], [5.0]], [0.0, 2.0, 9.0]).predict([[0.4]])
    array([1.])
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> KernelNeighborsRegressor:
        """Keep the training points and their targets, (n,) or (n, t)."""
        self._y = self._targets(y, self._store(X), keep=True)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Weighted mean of the neighbors' targets."""
        check_is_fitted(self, "X_fit_")
        shares, numbers = self._shares(X)
        return np.einsum("ij,ij...->i...", shares, self._y[numbers])
