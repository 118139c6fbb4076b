"""Kernel ridge regression: closed-form leave-one-out, a path of penalties in one go, large n by features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from gramgraph._other_words import OtherWords
from gramgraph._validation import check_choice, check_positive
from gramgraph.estimators._base import NamedKernelEstimator
from gramgraph.estimators._sound import sound
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count, take
from gramgraph.machines import ridge_features as _features
from gramgraph.machines.ridge import RidgePath, loo_residuals, ridge_path, solve_dual
from gramgraph.machines.ridge_features import FeatureModel
from gramgraph.machines.sparse import dense
from gramgraph.typing import FloatArray

DEFAULT_ALPHAS = np.logspace(-6, 3, 28)


def _has_blocks(model: Any) -> bool:
    if model.approx is None:
        raise AttributeError(
            "partial_fit needs approx='nystrom' or 'features': without it the model keeps every point and is solved "
            "anew. Try: KernelRidge(approx='nystrom', n_components=…)."
        )
    if isinstance(model.alpha, str) and model.alpha == "loo":
        raise AttributeError(
            "partial_fit cannot leave points out that are gone: alpha='loo' needs fit. Try: alpha='gcv', which "
            "chooses from the sums."
        )
    return True


@dataclass(eq=False, repr=False)
class KernelRidge(OtherWords, RegressorMixin, MultiOutputMixin, NamedKernelEstimator):
    """f(x) = Σ cᵢ k(xᵢ, x) with c = (K + α W⁻¹)⁻¹ y: least squares with the penalty α |f|² of the kernel's space.

    Parameters
    ----------
    alpha : positive float, array (t,) of one a target, or the α of `alphas` with the least "loo" (leave-one-out) or
        "gcv" (generalized cross-validation) error. With approx, "loo" reads the rows a second time, "gcv" does not.
    kernel, gamma, degree, coef0 : a kernel value, "rbf", "linear", "poly", "sigmoid" (not always positive definite),
        "precomputed", or a function of two matrices; the numbers serve the names.
    alphas : candidates for "loo" and "gcv"; by default 28 from 1e-6 to 1e3.
    approx : None solves with the (n, n) matrix, O(n³). "nystrom" (m landmarks) and "features" (m random Fourier
        features) solve in m dimensions, O(n m²) time and O(m²) memory beyond the data; only these have `partial_fit`.
    n_components : m.
    landmarks : how the landmarks are chosen: "uniform", "leverage", "kmeans" or "pivots"; or the points themselves.
    n_jobs : threads over blocks of rows, with approx; None for one, -1 for one a processor.
    random_state : seed of landmarks and features.

    Notes
    -----
    Points are rows of a matrix (dense, or sparse: named kernels and RBF, linear, polynomial and sigmoid values read
    sparse rows as they are, others and approx make them dense), a frame whose columns the kernel asks for by name, or
    whatever the kernel takes: words, sets, graphs.

    Attributes
    ----------
    dual_coef_ (n,) or (n, t), alpha_, X_fit_, kernel_ ; loo_residuals_ and loo_errors_ (squared, a point) are computed
    when they are first read; alpha_scores_ (a,), the errors of `alphas`. With approx: coef_ (m,) or (m, t) on the
    features of `features_`, and no loo_residuals_.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.estimators import KernelRidge
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(alpha="loo", gamma=0.5).fit(X, np.sin(X[:, 0]))
    >>> float(np.abs(model.predict([[1.0]]) - np.sin(1.0)).max()) < 1e-2
    True
    """

    alpha_: Any = field(init=False)
    _sparse_rows = "keep"

    alpha: float | str | FloatArray = 1.0
    _: KW_ONLY
    alphas: FloatArray | None = None
    approx: str | None = None
    n_components: int = 200
    landmarks: Any = "uniform"
    n_jobs: int | None = None
    random_state: int | None = None

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Learn from points X and targets y; a weight of 2 counts a point twice."""
        self._check_options()
        X, Y, weights = self._data(X, y, sample_weight, reset=True)
        self.kernel_ = self._resolve(X, weights)
        for name in ("_model", "coef_", "features_", "dual_coef_", "path_", "_loo", "alpha_scores_"):
            self.__dict__.pop(name, None)
        if self.approx is not None:
            return self._fit_features(X, Y, weights)
        self.X_fit_, self._Y, self._weights = X, Y, weights
        if isinstance(self.alpha, str):
            path = ridge_path(self._own_gram(), Y, self._candidates(), weights)
            self.path_ = path
            self.alpha_scores_ = path.loo_errors if self.alpha == "loo" else path.gcv_errors
            best = _features.best_alpha(path.alphas, self.alpha_scores_)
            self.alpha_ = float(path.alphas[best])
            dual = path.dual_coefs[:, :, best]
        else:
            self.alpha_ = self._alpha_value(Y.shape[1])
            dual = solve_dual(self._own_gram(), Y, self.alpha_, weights)
        self.dual_coef_ = dual[:, 0] if self._flat else dual
        return self

    @available_if(_has_blocks)
    @sound
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Learn from one more block of rows; the features are fixed by the first block (or by given landmarks).

        Blocks in any number give the answer of one `fit` with these features, to rounding (to about 1e-7 where the
        first came through `fit` and the kernel matrix of the landmarks is ill-conditioned). Data beyond memory are read
        block by block, from a file or a memory map. alpha="loo" would need them twice and has no partial_fit; "gcv"
        chooses from the sums.
        """
        first = not hasattr(self, "_model")
        if first:
            self._check_options()
        X, Y, weights = self._data(X, y, sample_weight, reset=first)
        if first:
            self.kernel_ = self._resolve(X, weights)
            self._model = self._new_model(X)
            self.features_ = self._model.features
        self._model = self._model.with_rows(X, Y, weights, n_jobs=self.n_jobs)
        return self._solve_features()

    def _check_options(self) -> None:
        check_choice("approx", self.approx, (None, "nystrom", "features"))
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ("loo", "gcv"))
        if self.approx is not None and (self.n_components != int(self.n_components) or self.n_components < 1):
            raise ModelError(f"n_components must be an integer of at least 1; it is {self.n_components!r}.")

    def _data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, FloatArray, FloatArray]:
        kept = self.approx is None
        X = self._points(X, reset=reset, keep=kept)
        X = X if self.approx is None else dense(X)
        n = count(X)
        y = self._targets(y, n, keep=kept)
        if reset:
            self._flat = y.ndim == 1
        weights = (
            np.ones(n)
            if sample_weight is None
            else _check_sample_weight(
                sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True, copy=kept
            )
        )
        if not weights.any():
            raise ModelError("sample_weight must have a positive entry; all are zero.")
        return X, y.reshape(n, -1), weights

    def _alpha_value(self, t: int) -> Any:
        if np.ndim(self.alpha) == 0:
            return check_positive("alpha", self.alpha)
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.shape != (t,):
            raise ModelError(f"alpha must be one number or one a target, {t}; its shape is {alpha.shape}.")
        return np.array([check_positive("alpha", a) for a in alpha])

    def _candidates(self, alphas: Any = None) -> FloatArray:
        chosen = alphas if alphas is not None else DEFAULT_ALPHAS if self.alphas is None else self.alphas
        found = np.atleast_1d(np.asarray(chosen, dtype=np.float64))
        if found.ndim != 1 or not len(found) or not np.isfinite(found).all() or (found <= 0).any():
            raise ModelError(f"alphas must be positive numbers; they are {chosen!r}.")
        return found

    def _own_gram(self) -> FloatArray:
        """k(X, X) in memory that may be written into."""
        K = self.kernel_.gram(self.X_fit_)
        return K.copy() if self.kernel_.precomputed else K

    # -- large n ------------------------------------------------------------------------------------------------

    def _new_model(self, X: Any) -> FeatureModel:
        features = _features.make_features(
            self.kernel_, X, str(self.approx), int(self.n_components), self.landmarks, self.random_state, self.kernel
        )
        return FeatureModel(self.kernel_, features)

    def _fit_features(self, X: Any, Y: FloatArray, weights: FloatArray) -> KernelRidge:
        chosen = isinstance(self.alpha, str)
        least = self._candidates() if chosen else self._alpha_value(Y.shape[1])
        model = self._new_model(X)
        self.features_ = model.features
        smallest = float(np.min(least))
        self._model = model.with_rows(X, Y, weights, alpha=smallest, refine=not chosen, n_jobs=self.n_jobs)
        if self._model.rough and self._model.sums is not None:
            start = _features.solve(self._model.sums, least)
            better = self._model.refined(start, X, Y, weights, least, self.n_jobs)
            if better is not None:
                return self._solve_features(better)
            self._model = model.with_rows(X, Y, weights, n_jobs=self.n_jobs)
        if chosen and self.alpha == "loo":
            self.alpha_scores_ = self._model.loo_scores(X, Y, weights, self._candidates(), self.n_jobs)
        return self._solve_features()

    def _solve_features(self, coef: FloatArray | None = None) -> KernelRidge:
        sums = self._model.sums
        assert sums is not None
        if isinstance(self.alpha, str):
            alphas = self._candidates()
            if self.alpha == "gcv":
                self.alpha_scores_ = _features.gcv_scores(sums, self._model.weight, alphas)
            self.alpha_ = float(alphas[_features.best_alpha(alphas, self.alpha_scores_)])
        else:
            self.alpha_ = self._alpha_value(sums.c.shape[1])
        coef = _features.solve(sums, self.alpha_) if coef is None else coef
        scale = float(np.sqrt(np.max(sums.yy) / max(self._model.weight, 1e-300)))
        self._expansion = _features.expansion(self.features_, coef, scale)
        self.coef_ = coef[:, 0] if self._flat else coef
        return self

    # -- answers ------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> FloatArray:
        """f at new points, (n,) or (n, t); in blocks of rows, O(m) memory a row."""
        check_is_fitted(self, "kernel_")
        X = self._points(X, reset=False)
        if self.approx is None:
            points, coef = self.X_fit_, self.dual_coef_.reshape(len(self._Y), -1)
        elif self._expansion is not None:
            points, coef = self.features_.landmarks, self._expansion
        else:
            points, coef = None, self.coef_.reshape(len(self.coef_), -1)
        out = np.empty((count(X), coef.shape[1]))

        def answer(band: slice) -> None:
            for part in _features.row_blocks(band.stop - band.start):
                rows = slice(band.start + part.start, band.start + part.stop)
                some = take(X, rows) if self.approx is None else dense(take(X, rows))
                out[rows] = (
                    self.features_.transform(some) if points is None else self.kernel_.gram(some, points)
                ) @ coef

        _features.map_blocks(answer, len(out), self.n_jobs)
        return out[:, 0] if self._flat else out

    def path(self, alphas: Any = None) -> RidgePath:
        """Coefficients and leave-one-out errors of the fitted data for many penalties: one tridiagonal reduction."""
        check_is_fitted(self, "dual_coef_")
        return ridge_path(self._own_gram(), self._Y, self._candidates(alphas), self._weights)

    @property
    def loo_residuals_(self) -> FloatArray:
        """yᵢ − f₋ᵢ(xᵢ) with f₋ᵢ learned without point i, in closed form; (n,) or (n, t)."""
        check_is_fitted(self, "dual_coef_")
        if not hasattr(self, "_loo"):
            self._loo = loo_residuals(self._own_gram(), self._Y, self.alpha_, self._weights)
        return self._loo[:, 0] if self._flat else self._loo

    @property
    def loo_errors_(self) -> FloatArray:
        """Squares of `loo_residuals_`."""
        return self.loo_residuals_**2
