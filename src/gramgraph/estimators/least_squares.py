"""Least squares and the lasso on basis functions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted

from gramgraph._validation import check_count, check_positive
from gramgraph.estimators._sound import SoundNumbers, read_matrix
from gramgraph.gp.linear_weights import least_squares
from gramgraph.typing import FloatArray


@dataclass(eq=False, repr=False)
class _OnBasis(RegressorMixin, MultiOutputMixin, SoundNumbers, BaseEstimator):  # type: ignore[misc]
    basis: Any = None
    _: KW_ONLY
    n_basis: int = 10

    def _begin(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        from gramgraph.gp.bases import as_basis

        if y is None:
            raise ValueError("requires y to be passed, but the target y is None.")
        X = read_matrix(self, X, reset=True, dtype=np.float64)
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        if y.ndim > 2 or len(y) != len(X):
            raise ValueError(f"y must have shape ({len(X)},) or ({len(X)}, q); it has {y.shape}: inconsistent numbers.")
        self._flat = y.ndim == 1
        self.basis_ = as_basis(self.basis, X, self.n_basis)
        return np.asarray(self.basis_.transform(X)), y.reshape(len(y), -1)

    def _keep(self, W: FloatArray) -> Self:
        self.coef_ = W[:, 0] if self._flat else W.T
        return self

    def predict(self, X: Any) -> FloatArray:
        """wᵀφ(x) at X."""
        check_is_fitted(self, "coef_")
        X = read_matrix(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.basis_.transform(X) @ self.coef_.T)


@dataclass(eq=False, repr=False)
class LeastSquares(_OnBasis):
    """y = wᵀφ(x) with w = Φ⁺y, the pseudo-inverse by SVD: least squares, of minimum norm where weights are left open.

    Parameters
    ----------
    basis, n_basis : as in `BayesianLinearRegression`: None (1 and x), or one of the eleven names, a basis, a function.

    Attributes
    ----------
    coef_ (M,) or (q, M), basis_, rank_ (weights that the rows determine).

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> x = np.linspace(0, 1, 10)[:, None]
    >>> model = gg.estimators.LeastSquares("polynomial", n_basis=3).fit(x, x[:, 0] ** 3)
    >>> bool(abs(model.predict([[0.5]])[0] - 0.125) < 1e-9)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve for the weights; a weight of 2 counts a row twice."""
        Phi, Y = self._begin(X, y)
        weights = _check_sample_weight(sample_weight, Phi, dtype=np.float64, ensure_non_negative=True)
        found = least_squares(1.0, Phi, Y, weights)
        self.rank_ = int(found.gamma)
        return self._keep(found.mean)


@dataclass(eq=False, repr=False)
class Lasso(_OnBasis):
    """min ‖y − Φw‖² / (2n) + alpha ‖w‖₁ by scikit-learn's coordinate descent: few basis functions remain.

    Parameters
    ----------
    basis, n_basis : as in `LeastSquares`.
    alpha : weight of the penalty. A column of Φ that never changes (the constant of a basis) is not penalized.
    max_iter, tol : as scikit-learn has them.

    Attributes
    ----------
    coef_ (M,) or (q, M), basis_, n_iter_.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> model = gg.estimators.Lasso("legendre", n_basis=8, alpha=0.01).fit(x, x[:, 0] ** 2)
    >>> int((np.abs(model.coef_) > 1e-6).sum())
    2
    """

    alpha: float = 1.0
    max_iter: int = 10000
    tol: float = 1e-8

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the weights."""
        from sklearn.linear_model import Lasso as Solver

        check_positive("alpha", self.alpha)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        Phi, Y = self._begin(X, y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, Phi, ensure_non_negative=True)
        seen = Phi if weights is None else Phi[weights > 0.0]
        flat = np.ptp(seen, axis=0) == 0.0
        constant = np.flatnonzero(flat & (seen[0] != 0.0))
        solver = Solver(
            float(self.alpha), fit_intercept=bool(len(constant)), max_iter=int(self.max_iter), tol=float(self.tol)
        )
        W = np.zeros((Phi.shape[1], Y.shape[1]))
        steps = 0
        for q in range(Y.shape[1]):
            solver.fit(Phi[:, ~flat] if (~flat).any() else Phi, Y[:, q], sample_weight=weights)
            if (~flat).any():
                W[~flat, q] = solver.coef_
            if len(constant):
                W[constant[0], q] = solver.intercept_ / seen[0, constant[0]]
            steps = max(steps, int(np.max(solver.n_iter_)))
        self.n_iter_ = max(steps, 1)
        return self._keep(W)
