"""Nearest neighbors by the distance of features: |φ(x) − φ(y)|² = k(x, x) + k(y, y) − 2 k(x, y)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from math import lgamma
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from gramgraph._validation import check_choice, check_count
from gramgraph.estimators._base import NamedKernelEstimator
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.machines.neighbors import inverse_distances, nearest
from gramgraph.typing import Array, FloatArray, IntArray


@dataclass(eq=False, repr=False)
class _KernelNeighbors(NamedKernelEstimator):
    _sparse_rows = "keep"

    n_neighbors: int = 5
    _: KW_ONLY
    weights: str = "uniform"

    def _store(self, X: Any) -> int:
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
        check_is_fitted(self, "X_fit_")
        X = self._points(X, reset=False)
        return nearest(self.kernel_, self.X_fit_, self._diag, X, min(int(self.n_neighbors), len(self._diag)))

    def _shares(self, X: Any) -> tuple[FloatArray, IntArray]:
        """Weights (n, k) whose rows sum to one, and neighbors."""
        if self.weights == "distance" and self.kernel == "precomputed":
            raise ModelError(
                "weights='distance' needs k(x, x) of new points, which a precomputed matrix does not give."
            )
        distances, numbers = self.kneighbors(X)
        if self.weights == "uniform":
            return np.full(distances.shape, 1.0 / distances.shape[1]), numbers
        return inverse_distances(distances, self._diag), numbers


class KernelNeighborsClassifier(ClassifierMixin, _KernelNeighbors):
    """Vote of the k nearest training points, near in the space of the kernel: works for any kind of points.

    Parameters: n_neighbors; kernel, gamma, degree, coef0 as in `KernelRidge`; weights "uniform" or "distance" (1/d).
    A prediction costs O(n) kernel values and a sort of them.

    Parameters
    ----------
    n_neighbors : how many neighbors count.
    kernel : a kernel value, a name, or a function.
    gamma : of the kernels with a name.
    degree : of the kernel "poly".
    coef0 : of the kernels "poly" and "sigmoid".
    weights : "uniform" or "distance", as in scikit-learn.

    Examples
    --------
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

    def class_density(self, X: Any) -> FloatArray:
        """p(x | class) = K_c / (N_c V), (n, classes): K_c of the k nearest points are of a class of N_c.

        V is the volume of the ball that reaches to the farthest of them, in the space of the columns; for kernels under
        which the nearest points are those of the smallest Euclidean distance.
        """
        check_is_fitted(self, "classes_")
        points = np.asarray(self.X_fit_, dtype=np.float64)
        _, numbers = self.kneighbors(X)
        X = np.asarray(self._points(X, reset=False), dtype=np.float64)
        d = X.shape[1]
        radius = np.sqrt(((points[numbers] - X[:, None]) ** 2).sum(axis=2)).max(axis=1)
        log_unit = 0.5 * d * np.log(np.pi) - lgamma(0.5 * d + 1.0)
        K = np.zeros((len(X), len(self.classes_)))
        np.add.at(K, (np.arange(len(X))[:, None], self._codes[numbers]), 1.0)
        with np.errstate(divide="ignore"):
            volume = np.exp(log_unit + d * np.log(radius))
        return K / (np.bincount(self._codes) * volume[:, None])

    def predict(self, X: Any) -> Array:
        """The class with the largest share; the first in sorted order at a tie."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


class KernelNeighborsRegressor(RegressorMixin, MultiOutputMixin, _KernelNeighbors):
    """Mean of the targets of the k nearest training points, near in the space of the kernel.

    Parameters as in `KernelNeighborsClassifier`.

    Parameters
    ----------
    n_neighbors : how many neighbors count.
    kernel : a kernel value, a name, or a function.
    gamma : of the kernels with a name.
    degree : of the kernel "poly".
    coef0 : of the kernels "poly" and "sigmoid".
    weights : "uniform" or "distance", as in scikit-learn.

    Examples
    --------
    >>> from gramgraph.estimators import KernelNeighborsRegressor
    >>> KernelNeighborsRegressor(2, kernel="linear").fit([[0.0], [1.0], [5.0]], [0.0, 2.0, 9.0]).predict([[0.4]])
    array([1.])
    """

    def fit(self, X: Any, y: Any) -> KernelNeighborsRegressor:
        """Keep the training points and their targets, (n,) or (n, t)."""
        self._y = self._targets(y, self._store(X), keep=True)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Weighted mean of the neighbors' targets."""
        check_is_fitted(self, "X_fit_")
        shares, numbers = self._shares(X)
        return np.einsum("ij,ij...->i...", shares, self._y[numbers])
