"""Support vector regression and the one-class machine."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from gramgraph._validation import check_positive
from gramgraph.estimators._sound import sound
from gramgraph.estimators._svm_base import SupportVectors, learns_in_blocks, refuse_nu
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.machines.sparse import dense
from gramgraph.machines.svm import dual as duals
from gramgraph.machines.svm.machine import Settings
from gramgraph.machines.svm.rows import Source
from gramgraph.typing import FloatArray, IntArray

_SINGLE = 0.1  # of `tol`: what rows in single precision may add to the gap of a search
_ROUNDING = 1e-12  # of decisions, relative to the offset


@dataclass(eq=False, repr=False)
class SVR(RegressorMixin, SupportVectors):
    """Support vector regression: min ½ ‖w‖² + C Σ wᵢ max(0, |yᵢ − f(xᵢ)| − ε).

    With `nu` the width ε is found by the machine (`epsilon_`) such that at most a share ν of the points lies outside
    the tube. Kernels and solver as in `SVC`. Fitted: `support_`, `support_vectors_`, `dual_coef_` (1, n_sv),
    `intercept_`, `margin_support_` (on the edge of the tube), `bound_support_` (outside), `dual_objective_`. `approx`,
    `n_components`, `landmarks`: for large n, as in `SVC`; with them also `partial_fit`.

    Parameters
    ----------
    kernel, gamma, degree, coef0, tol, cache_size, max_iter, shrinking, approx, n_components, landmarks : as in `SVC`.
    random_state : as in `SVC`.
    C : penalty of errors beyond the tube.
    epsilon : half the width of the tube.
    nu : the least share of support vectors, in place of epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> machine = SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(machine.predict(X) - np.sin(X[:, 0])).max() < 0.06)
    True
    """

    _: KW_ONLY
    C: float = 1.0
    epsilon: float = 0.1
    nu: float | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVR:
        """Learn from points X and numbers y; a sample weight multiplies C."""
        X = self._points(X, reset=True)
        y = self._numbers(y, count(X))
        settings = self._checked()
        kept, weight, source = self._open(X, sample_weight, len(y))
        return self._fit_tube(X, kept, source, y[kept], weight, settings)

    @available_if(learns_in_blocks)
    @sound
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVR:
        """Learn from one more block of rows; the features are fixed by the first, support vectors are carried on.

        The machine is that of the new block and the support vectors so far: near that of one `fit`, not equal to it.
        """
        X = self._points(X, reset=not hasattr(self, "_memory"))
        y = self._numbers(y, count(X))
        settings = self._checked()
        refuse_nu(self)
        points, y, weight, source = self._next_block(dense(X), y, sample_weight)
        self._fit_tube(points, np.arange(len(y)), source, y, weight, settings)
        self._end_block()
        return self

    def _numbers(self, y: Any, n: int) -> FloatArray:
        return np.asarray(column_or_1d(self._targets(y, n), warn=True))

    def _checked(self) -> Settings:
        check_positive("C", self.C)
        check_positive("epsilon", self.epsilon, zero=True)
        return self._settings(float(self.C), self.nu)

    def _fit_tube(
        self, X: Any, kept: IntArray, source: Source, y: FloatArray, weight: FloatArray, settings: Settings
    ) -> SVR:
        upper = self.C * weight
        if self.nu is None:
            dual = duals.regression(y, upper, float(self.epsilon))
        else:
            dual = duals.nu_regression(y, upper, float(self.nu))
        found = self._fit_dual(X, kept, source, dual, settings)
        self.epsilon_ = float(self.epsilon) if self.nu is None else -found.half_width
        return self

    def predict(self, X: Any) -> FloatArray:
        """f(x) of every point."""
        return self._expansions(X)[:, 0]


@dataclass(eq=False, repr=False)
class OneClassSVM(OutlierMixin, SupportVectors):
    """The support of a distribution: a half-space away from the origin in feature space that holds most points.

    min ½ αᵀKα with 0 ≤ α ≤ w, Σ α = ν Σ w; at most a share ν of the training points lies outside (decision < 0).
    The margin, where the decision of the exact solution is 0, counts as inside: as points on it are known to the gap of
    the search only, the offset is that of the margin found minus about twice the gap (at most `tol`).
    `approx`, `n_components`, `landmarks`: for large n, as in `SVC`; with them also `partial_fit`.

    Parameters
    ----------
    kernel : a kernel value, a name, or a function.
    gamma : of the kernels with a name.
    degree : of the kernel "poly".
    coef0 : of the kernels "poly" and "sigmoid".
    tol : KKT gap at which a problem is solved.
    cache_size : megabytes of kernel rows that are kept.
    max_iter : most steps; -1: no bound.
    shrinking : whether points at their bounds are set aside.
    approx : None, "nystrom" or "features", as in `SVC`.
    n_components : features of approx.
    landmarks : how they are chosen, as in `KernelRidge`.
    random_state : seed.
    nu : the largest share of outliers.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> machine = OneClassSVM(nu=0.1).fit(X)
    >>> machine.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    _: KW_ONLY
    nu: float = 0.5

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Learn the region of the points X; y is not looked at."""
        X = self._points(X, reset=True)
        settings = self._checked()
        kept, weight, source = self._open(X, sample_weight, count(X))
        return self._fit_region(X, kept, source, weight, settings, float(weight.sum()))

    @available_if(learns_in_blocks)
    @sound
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Learn from one more block of rows; the features are fixed by the first, support vectors are carried on.

        The share ν is that of all points so far, forgotten ones included. The machine is near that of one `fit`, not
        equal to it.
        """
        X = self._points(X, reset=not hasattr(self, "_memory"))
        settings = self._checked()
        points, _, weight, source = self._next_block(dense(X), np.zeros(count(X)), sample_weight)
        self._fit_region(points, np.arange(len(weight)), source, weight, settings, self._memory.total)
        self._end_block()
        return self

    def _checked(self) -> Settings:
        if self.nu is None:
            raise ModelError("nu must be a number in (0, 1]; it is None.")
        return self._settings(1.0, self.nu)

    def _fit_region(
        self, X: Any, kept: IntArray, source: Source, weight: FloatArray, settings: Settings, total: float
    ) -> OneClassSVM:
        found = self._fit_dual(X, kept, source, duals.one_class(weight, float(self.nu) * total), settings)
        # The points on the margin stand at its level to within the gap, on either side of it by rounding alone.
        known = min(settings.tol, 2.0 * max(found.gap, 0.0) + _SINGLE * settings.tol)
        self.offset_ = found.rho - known - _ROUNDING * abs(found.rho)
        self.intercept_ = np.array([-self.offset_])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Signed distance, scaled: positive inside, from 0 to 2 `tol` on the margin."""
        return self._expansions(X)[:, 0]

    def score_samples(self, X: Any) -> FloatArray:
        """The decision before the offset is taken off."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> IntArray:
        """1 inside, −1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
