"""Support vector regression and the one-class machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.utils.validation import column_or_1d

from gramgraph.estimators import _svm_dual as duals
from gramgraph.estimators._base import check_positive
from gramgraph.estimators._svm_base import SupportVectors
from gramgraph.estimators._svm_machine import warn_about
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray

__all__ = ["SVR", "OneClassSVM"]


class SVR(RegressorMixin, SupportVectors):
    """Support vector regression: min ½ ‖w‖² + C Σ wᵢ max(0, |yᵢ − f(xᵢ)| − ε).

    With `nu` the width ε is found by the machine (`epsilon_`) such that at most a share ν of the points lies outside
    the tube. Kernels and solver as in `SVC`. Fitted: `support_`, `support_vectors_`, `dual_coef_` (1, n_sv),
    `intercept_`, `margin_support_` (on the edge of the tube), `bound_support_` (outside), `dual_objective_`.

    >>> import numpy as np
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> machine = SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(machine.predict(X) - np.sin(X[:, 0])).max() < 0.06)
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        nu: float | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float = 200,
        max_iter: int = -1,
        shrinking: bool = True,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.nu = nu
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.shrinking = shrinking

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVR:
        """Learn from points X and numbers y; a sample weight multiplies C."""
        X = self._points(X, reset=True)
        n = len(X[0]) if isinstance(X, tuple) else len(X)
        y = self._targets(y, n)
        y = column_or_1d(y, warn=True)
        check_positive("C", self.C)
        check_positive("epsilon", self.epsilon, zero=True)
        settings = self._settings(float(self.C), self.nu)
        kept, weight, source = self._open(X, sample_weight, n)
        upper = self.C * weight
        if self.nu is None:
            dual = duals.regression(y[kept], upper, float(self.epsilon))
        else:
            dual = duals.nu_regression(y[kept], upper, float(self.nu))
        found = duals.solve(
            dual,
            source,
            tol=settings.tol,
            cache_bytes=settings.cache_bytes,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
        )
        self.epsilon_ = float(self.epsilon) if self.nu is None else -found.half_width
        warn_about(found.converged, found.curved, self.max_iter, type(self).__name__)
        used = np.flatnonzero(found.beta)
        self._keep(X, kept[used], found.beta[used, None], np.array([-found.rho]))
        self.dual_coef_ = found.beta[used][None]
        self.n_support_ = np.array([len(used)], np.int32)
        at_bound = np.any(found.alpha[:, used] >= dual.upper[:, used], axis=0)
        self.margin_support_, self.bound_support_ = kept[used[~at_bound]], kept[used[at_bound]]
        self.n_iter_, self.dual_objective_ = found.iterations, found.objective
        return self

    def predict(self, X: Any) -> FloatArray:
        """f(x) of every point."""
        return self._expansions(X)[:, 0]


class OneClassSVM(OutlierMixin, SupportVectors):
    """The support of a distribution: a half-space away from the origin in feature space that holds most points.

    min ½ αᵀKα with 0 ≤ α ≤ w, Σ α = ν Σ w; at most a share ν of the training points lies outside (decision < 0).

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> machine = OneClassSVM(nu=0.1).fit(X)
    >>> machine.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        nu: float = 0.5,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float = 200,
        max_iter: int = -1,
        shrinking: bool = True,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.shrinking = shrinking

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Learn the region of the points X; y is not looked at."""
        X = self._points(X, reset=True)
        n = len(X[0]) if isinstance(X, tuple) else len(X)
        if self.nu is None:
            raise ModelError("nu must be a number in (0, 1]; it is None.")
        settings = self._settings(1.0, self.nu)
        kept, weight, source = self._open(X, sample_weight, n)
        found = duals.solve(
            duals.one_class(weight, float(self.nu)),
            source,
            tol=settings.tol,
            cache_bytes=settings.cache_bytes,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
        )
        warn_about(found.converged, found.curved, self.max_iter, type(self).__name__)
        used = np.flatnonzero(found.beta)
        self._keep(X, kept[used], found.beta[used, None], np.array([-found.rho]))
        self.dual_coef_ = found.beta[used][None]
        self.n_support_ = np.array([len(used)], np.int32)
        self.offset_ = found.rho
        self.n_iter_, self.dual_objective_ = found.iterations, found.objective
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Signed distance, scaled: positive inside."""
        return self._expansions(X)[:, 0]

    def score_samples(self, X: Any) -> FloatArray:
        """The decision before the offset is taken off."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> IntArray:
        """1 inside, −1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
