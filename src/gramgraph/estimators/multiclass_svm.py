"""Support vector classification with one objective for all classes."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramgraph._interrupt import interruptible
from gramgraph._validation import check_count, check_positive
from gramgraph.data.frames import is_frame
from gramgraph.estimators._base import NamedKernelEstimator
from gramgraph.estimators._classes import read_classes
from gramgraph.estimators._numbers import refuse_dates
from gramgraph.exceptions import ConvergenceWarning
from gramgraph.kernels.inputs import count
from gramgraph.machines.points import take_points
from gramgraph.machines.svm.all_classes import solve_all_classes
from gramgraph.typing import Array, FloatArray

_NOTHING = 1e-12  # of the largest coefficient: what rounding leaves of coefficients that cancel


@dataclass(eq=False, repr=False)
class MulticlassSVC(ClassifierMixin, NamedKernelEstimator):  # type: ignore[misc]
    """min ½ Σ_m |w_m|² + C Σ_i max_m (1 − [m = y_i] + w_mᵀφ(x_i)) − w_{y_i}ᵀφ(x_i): all classes in one objective.

    Parameters
    ----------
    kernel, gamma, degree, coef0 : as in `KernelRidge`.
    C : weight of the errors.
    fit_intercept : add 1 to the kernel, so that every class has a constant, penalized as the other weights are.
    tol : stop when the objective is within so much (relatively) of the smallest one, by the duality gap.
    max_iter : most rounds over the points; a round costs O(n² classes).
    random_state : seed of the order of updates.

    Attributes
    ----------
    classes_, support_ (numbers of points with a coefficient), dual_coef_ (support, classes), X_fit_ (those points),
    objective_, gap_ (how far it may be from the smallest one), n_iter_.

    Examples
    --------
    >>> import gramgraph as gg
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["a", "a", "b", "b", "c", "c"]
    >>> gg.MulticlassSVC(kernel="rbf", C=10.0, random_state=0).fit(X, y).predict([[0.4], [2.5], [4.8]]).tolist()
    ['a', 'b', 'c']
    """

    _: KW_ONLY
    C: float = 1.0
    fit_intercept: bool = True
    tol: float = 1e-5
    max_iter: int = 2000
    random_state: Any = None

    @interruptible()
    def fit(self, X: Any, y: Any) -> Self:
        """Solve the dual."""
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        if is_frame(X):
            refuse_dates(type(self).__name__, X)
        X = self._points(X, reset=True, keep=True)
        n = count(X)
        self.classes_, codes = read_classes(y, np.empty((n, 0)), name=type(self).__name__)
        self.kernel_ = self._resolve(X)
        K = np.array(self.kernel_.gram(X), dtype=np.float64) + float(bool(self.fit_intercept))
        found = solve_all_classes(
            K, codes, len(self.classes_), np.full(n, float(self.C)), tol=float(self.tol), max_iter=int(self.max_iter),
            rng=check_random_state(self.random_state),
        )  # fmt: skip
        largest = np.abs(found.alpha).max(axis=1)
        self.support_ = np.flatnonzero(largest > _NOTHING * largest.max())
        self.dual_coef_ = found.alpha[self.support_]
        self.X_fit_ = X if self.kernel_.precomputed else take_points(X, self.support_)
        self.objective_, self.gap_, self.n_iter_ = found.objective, found.gap, found.n_iter
        if not found.converged:
            warnings.warn(
                f"no convergence in {self.max_iter} rounds: the objective may be {found.gap:.3g} above the least one. "
                "Raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """w_mᵀφ(x): the difference of two classes, (n,), or a column for each class."""
        check_is_fitted(self, "dual_coef_")
        X = self._points(X, reset=False)
        K = np.asarray(self.kernel_.gram(X, self.X_fit_))
        if self.kernel_.precomputed:
            K = K[:, self.support_]
        F = (K + float(bool(self.fit_intercept))) @ self.dual_coef_
        return np.asarray(F[:, 1] - F[:, 0] if len(self.classes_) == 2 else F)

    def predict(self, X: Any) -> Array:
        """The class with the largest value."""
        f = self.decision_function(X)
        return np.asarray(self.classes_[(f > 0.0).astype(int) if f.ndim == 1 else f.argmax(axis=1)])
