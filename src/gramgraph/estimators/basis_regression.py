"""Weighted least squares on basis functions: the regression that boosting calls, or a model of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted

from gramgraph._validation import check_positive
from gramgraph.estimators._sound import SoundNumbers, read_matrix
from gramgraph.exceptions import OptionError
from gramgraph.typing import FloatArray


class BasisRegression(RegressorMixin, SoundNumbers, BaseEstimator):
    """y(x) = wᵀφ(x), where w minimizes Σ v (y − wᵀφ)² + alpha ‖w‖²: least squares of V^½ Φ and V^½ y.

    Parameters
    ----------
    basis : None for (1, x); "quadratic" for (1, x, x², products); or a function of X (n, d) that returns Φ (n, m).
    alpha : a small ridge, so that few rows are enough.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> BasisRegression("quadratic").fit(X, X[:, 0] ** 2).predict([[0.5]]).round(4).tolist()
    [0.25]
    """

    def __init__(self, basis: str | Callable[[Any], Any] | None = None, *, alpha: float = 1e-8) -> None:
        self.basis = basis
        self.alpha = alpha

    def _phi(self, X: FloatArray) -> FloatArray:
        if callable(self.basis):
            return np.asarray(self.basis(X), dtype=np.float64).reshape(len(X), -1)
        if self.basis not in (None, "quadratic"):
            raise OptionError(f"basis must be None, 'quadratic' or a function, not {self.basis!r}")
        parts = [np.ones((len(X), 1)), X]
        if self.basis == "quadratic":
            a, b = np.triu_indices(X.shape[1])
            parts.append(X[:, a] * X[:, b])
        return np.concatenate(parts, axis=1)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BasisRegression:
        """Solve the weighted normal equations by QR."""
        alpha = check_positive("alpha", self.alpha, zero=True)
        X = read_matrix(self, X, dtype=np.float64)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: numbers are needed.")
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        if y.ndim == 2 and y.shape[1] == 1:
            from sklearn.utils.validation import column_or_1d

            y = column_or_1d(y, warn=True)
        if y.ndim != 1 or len(y) != len(X):
            raise ValueError(f"y must hold one number per row: X has {len(X)}, y the shape {y.shape}: inconsistent")
        root = np.sqrt(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
        phi = self._phi(X) * root[:, None]
        ridge = np.sqrt(alpha) * np.eye(phi.shape[1])
        whole, goal = np.concatenate([phi, ridge]), np.concatenate([y * root, np.zeros(phi.shape[1])])
        self.coef_ = np.linalg.lstsq(whole, goal, rcond=None)[0]
        return self

    def predict(self, X: Any) -> FloatArray:
        """wᵀφ(x) of every row."""
        check_is_fitted(self, "coef_")
        return self._phi(read_matrix(self, X, dtype=np.float64, reset=False)) @ self.coef_
