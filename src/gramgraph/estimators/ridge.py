"""Kernel ridge regression: closed-form leave-one-out, a path of penalties in one go, large n by features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from gramgraph.estimators._base import (
    KernelEstimator,
    KernelSpec,
    check_option,
    check_positive,
)
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray

__all__ = ["KernelRidge", "RidgePath", "ridge_path"]

_ROWS = 2048  # rows of features made at a time
DEFAULT_ALPHAS = np.logspace(-6, 3, 28)


@dataclass(frozen=True)
class RidgePath:
    """Solutions for several penalties: one slice of the last axis each."""

    alphas: FloatArray  # (a,)
    dual_coefs: FloatArray  # (n, t, a)
    loo_residuals: FloatArray  # (n, t, a): y_i − f₋ᵢ(x_i), f₋ᵢ learned without point i; NaN where its weight is 0
    loo_errors: FloatArray  # (a,) weighted mean of their squares
    degrees_of_freedom: FloatArray  # (a,) trace of the hat matrix

    @property
    def best(self) -> int:
        """Index of the smallest leave-one-out error; the larger penalty at a tie."""
        ranked = np.flatnonzero(self.loo_errors == self.loo_errors.min())
        return int(ranked[np.argmax(self.alphas[ranked])])


def ridge_path(
    K: FloatArray,  # (n, n)
    Y: FloatArray,  # (n, t)
    alphas: FloatArray,  # (a,) positive
    weights: FloatArray,  # (n,) non-negative
) -> RidgePath:
    """min_f Σ wᵢ (yᵢ − f(xᵢ))² + α |f|² for every α, from one eigendecomposition; K is overwritten.

    With S = diag(√w), S K S = Q Λ Qᵀ and G = (S K S + α I)⁻¹ = Q (Λ + α)⁻¹ Qᵀ, the coefficients are c = S u with
    u = G S y, and the residual of a left-out point is uᵢ / (Gᵢᵢ √wᵢ). One O(n³), then O(n²) a penalty.
    """
    from scipy.linalg import eigh

    s = np.sqrt(weights)
    K *= s[:, None]
    K *= s
    values, Q = eigh(K, overwrite_a=True, check_finite=False, driver="evd")
    _check_spectrum(values, float(alphas.min()))
    values = np.maximum(values, 0.0)
    shrink = 1.0 / (values[:, None] + alphas)  # (n, a)
    n, t = Y.shape
    inner = (Q.T @ (s[:, None] * Y))[:, :, None] * shrink[:, None, :]
    U = (Q @ inner.reshape(n, -1)).reshape(n, t, len(alphas))
    np.square(Q, out=Q)
    G = Q @ shrink  # (n, a): diagonals of G
    dual = s[:, None, None] * U
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = U / (G * s[:, None])[:, None, :]
    silent = weights == 0.0
    if silent.any():  # a point without weight is left out already: its residual needs K, which is gone
        left_out[silent] = np.nan
    used = ~silent
    errors = np.average((left_out[used] ** 2).mean(axis=1), axis=0, weights=weights[used])
    return RidgePath(alphas, dual, left_out, errors, (values[:, None] * shrink).sum(axis=0))


def _check_spectrum(values: FloatArray, alpha: float) -> None:
    if values[0] < -max(1e-9 * len(values) * abs(values[-1]), 0.0) - 1e-12:
        raise ModelError(
            f"The kernel matrix is not positive semidefinite: its smallest eigenvalue is {values[0]:.3g}, its largest "
            f"{values[-1]:.3g}, so that a penalty of {alpha:.3g} has no meaning. What helps: check the kernel, or clip "
            f"the negative eigenvalues of a precomputed matrix."
        )


def _has_blocks(model: Any) -> bool:
    if model.approx is None:
        raise AttributeError(
            "partial_fit needs approx='nystrom' or 'features': without it the model keeps every point and is solved "
            "anew. What helps: KernelRidge(approx='nystrom', n_components=…)."
        )
    return True


class KernelRidge(RegressorMixin, KernelEstimator):
    """f(x) = Σ cᵢ k(xᵢ, x) with c = (K + α W⁻¹)⁻¹ y: least squares with the penalty α |f|² of the kernel's space.

    Parameters
    ----------
    alpha : positive float, array (t,) of one a target, or "loo": the α of `alphas` with the least leave-one-out error.
    kernel, gamma, degree, coef0 : a kernel value, "rbf", "linear", "poly", "precomputed", or a function of two
        matrices; the numbers serve the names.
    alphas : candidates for "loo"; by default 28 from 1e-6 to 1e3.
    approx : None solves with the (n, n) matrix, O(n³). "nystrom" (m landmarks) and "features" (m random Fourier
        features) solve in m dimensions, O(n m²) time and O(m²) memory beyond the data; only these have `partial_fit`.
    n_components : m.
    landmarks : how the landmarks are chosen: "uniform", "leverage", "kmeans" or "pivots".

    Attributes
    ----------
    dual_coef_ (n,) or (n, t), alpha_, X_fit_, kernel_ ; loo_residuals_ and loo_errors_ (squared, a point) are computed
    when they are first read. With approx: coef_ (m,) or (m, t) on the features of `features_`.

    >>> import numpy as np
    >>> from gramgraph.estimators import KernelRidge
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(alpha="loo", gamma=0.5).fit(X, np.sin(X[:, 0]))
    >>> float(np.abs(model.predict([[1.0]]) - np.sin(1.0)).max()) < 1e-2
    True
    """

    alpha_: Any

    def __init__(
        self,
        alpha: float | str | FloatArray = 1.0,
        *,
        kernel: KernelSpec = "rbf",
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        alphas: FloatArray | None = None,
        approx: str | None = None,
        n_components: int = 200,
        landmarks: str = "uniform",
        random_state: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alphas = alphas
        self.approx = approx
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Learn from points X and targets y; a weight of 2 counts a point twice."""
        self._check_options()
        X, Y, weights = self._data(X, y, sample_weight, reset=True)
        self.kernel_ = self._resolve(X, weights)
        for name in ("_sums", "coef_", "features_", "dual_coef_", "path_", "_loo"):
            self.__dict__.pop(name, None)
        if self.approx is not None:
            self.features_ = self._make_features(X)
            self._accumulate(X, Y, weights, plain=self._plain_is_safe(len(Y)))
            return self._solve_features()
        self.X_fit_, self._Y, self._weights = X, Y, weights
        if isinstance(self.alpha, str):
            path = ridge_path(self._own_gram(), Y, self._candidates(), weights)
            self.path_ = path
            self.alpha_ = float(path.alphas[path.best])
            dual = path.dual_coefs[:, :, path.best]
        else:
            self.alpha_ = self._alpha_value(Y.shape[1])
            dual = _solve(self._own_gram(), Y, self.alpha_, weights)
        self.dual_coef_ = dual[:, 0] if self._flat else dual
        return self

    @available_if(_has_blocks)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Learn from one more block of rows; the features are fixed by the first block.

        Blocks in any number give the answer of one `fit` with these features, to rounding.
        """
        first = not hasattr(self, "_sums")
        if first:
            self._check_options()
        X, Y, weights = self._data(X, y, sample_weight, reset=first)
        if first:
            self.kernel_ = self._resolve(X, weights)
            self.features_ = self._make_features(X)
        self._accumulate(X, Y, weights)
        return self._solve_features()

    def _check_options(self) -> None:
        check_option("approx", self.approx, (None, "nystrom", "features"))
        if isinstance(self.alpha, str):
            check_option("alpha", self.alpha, ("loo",))
            if self.approx is not None:
                raise ModelError("alpha='loo' needs the full kernel matrix: approx=None. What helps: cross-validation.")
        if self.approx is not None and (self.n_components != int(self.n_components) or self.n_components < 1):
            raise ModelError(f"n_components must be an integer of at least 1; it is {self.n_components!r}.")

    def _data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, FloatArray, FloatArray]:
        from gramgraph.kernels.inputs import count

        X = self._points(X, reset=reset)
        n = count(X)
        y = self._targets(y, n)
        if reset:
            self._flat = y.ndim == 1
        weights = (
            np.ones(n)
            if sample_weight is None
            else _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
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

    def _make_features(self, X: Any) -> Any:
        value = self.kernel_.value
        if value is None:
            raise ModelError(
                f"approx={self.approx!r} needs a kernel value or name, as it is evaluated at new pairs of points; "
                f"kernel is {self.kernel!r}."
            )
        if self.approx == "features":
            return value.spectral_sample(self.n_components, X.shape[1], random_state=self.random_state)
        from gramgraph.linalg.nystrom import nystrom

        made = nystrom(value, X, int(self.n_components), method=self.landmarks, random_state=self.random_state)  # type: ignore[arg-type]
        return made

    def _accumulate(self, X: Any, Y: FloatArray, weights: FloatArray, *, plain: bool = False) -> None:
        """Add ΦᵀΦ and Φᵀy, some rows at a time; `plain` sums kernel columns and makes features of the sums."""
        from gramgraph.kernels.inputs import count, take
        from gramgraph.linalg.blocks import FeatureSums

        uniform = bool((weights == 1.0).all())
        total: FeatureSums | None = None
        for rows in _row_blocks(count(X)):
            part = take(X, rows)
            Phi = self.kernel_.gram(part, self.features_.landmarks) if plain else self.features_.transform(part)
            sums = FeatureSums.of(Phi, Y[rows], None if uniform else weights[rows])
            total = sums if total is None else total + sums
        assert total is not None
        if plain:
            W = self.features_.W
            total = FeatureSums(W.T @ total.G @ W, W.T @ total.c, total.yy, total.n)
        self._sums: FeatureSums = self._sums + total if hasattr(self, "_sums") else total

    def _plain_is_safe(self, n: int) -> bool:
        """Whether sums of kernel columns k(x, Z) keep the digits that sums of Nyström features would.

        They save the product with W, two thirds of the work, but lose digits by the condition κ of k(Z, Z): predictions
        move by at most about ε κ (n/m) λ₁ / α, for n/m λ₁ the largest eigenvalue of ΦᵀΦ.
        """
        if self.approx != "nystrom":
            return False
        values = np.linalg.eigvalsh(self.kernel_.gram(self.features_.landmarks, self.features_.landmarks))
        if values[0] <= 0.0:
            return False
        alpha = float(np.min(self._alpha_value(np.size(self.alpha))))
        signal = n / len(values) * float(values[-1]) / alpha
        return float(np.finfo(float).eps) * float(values[-1] / values[0]) * (1.0 + signal) < 1e-7

    def _solve_features(self) -> KernelRidge:
        self.alpha_ = self._alpha_value(self._sums.c.shape[1])
        if np.ndim(self.alpha_) == 0:
            coef = self._sums.weights(self.alpha_)
        else:
            columns = [self._sums.factor(a).solve(self._sums.c[:, j]) for j, a in enumerate(self.alpha_)]
            coef = np.stack(columns, axis=1)
        self.coef_ = coef[:, 0] if self._flat else coef
        return self

    # -- answers ------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> FloatArray:
        """f at new points, (n,) or (n, t); in blocks of rows, O(m) memory a row."""
        from gramgraph.kernels.inputs import count, take

        check_is_fitted(self, "kernel_")
        X = self._points(X, reset=False)
        coef = self.dual_coef_ if self.approx is None else self.coef_
        out = np.empty((count(X), *coef.shape[1:]))
        for rows in _row_blocks(count(X)):
            part = take(X, rows)
            out[rows] = (
                self.kernel_.gram(part, self.X_fit_) if self.approx is None else self.features_.transform(part)
            ) @ coef
        return out

    def path(self, alphas: Any = None) -> RidgePath:
        """Coefficients and leave-one-out errors of the fitted data for many penalties: one eigendecomposition."""
        check_is_fitted(self, "dual_coef_")
        return ridge_path(self._own_gram(), self._Y, self._candidates(alphas), self._weights)

    @property
    def loo_residuals_(self) -> FloatArray:
        """yᵢ − f₋ᵢ(xᵢ) with f₋ᵢ learned without point i, in closed form; (n,) or (n, t)."""
        check_is_fitted(self, "dual_coef_")
        if not hasattr(self, "_loo"):
            self._loo = _loo_residuals(self._own_gram(), self._Y, self.alpha_, self._weights)
        return self._loo[:, 0] if self._flat else self._loo

    @property
    def loo_errors_(self) -> FloatArray:
        """Squares of `loo_residuals_`."""
        return self.loo_residuals_**2


def _row_blocks(n: int) -> Iterator[slice]:
    return (slice(start, min(n, start + _ROWS)) for start in range(0, n, _ROWS))


def _factor(K: FloatArray, s: FloatArray, alpha: float) -> Any:
    """The Cholesky factor of S K S + α I, in K's memory."""
    from gramgraph.linalg.base import PositiveDefiniteError
    from gramgraph.linalg.dense import Dense

    if not (s == 1.0).all():
        K *= s[:, None]
        K *= s
    K[np.diag_indices_from(K)] += alpha
    try:
        return Dense(K).factor(overwrite=True)
    except PositiveDefiniteError as error:
        raise ModelError(
            f"The kernel matrix plus alpha = {alpha:.3g} is not positive definite, so the kernel matrix is not "
            f"positive semidefinite. What helps: check the kernel (or the precomputed matrix), or a larger alpha."
        ) from error


def _per_alpha(alpha: Any, t: int) -> list[tuple[float, Any]]:
    if np.ndim(alpha) == 0:
        return [(float(alpha), slice(None))]
    return [(float(a), np.flatnonzero(alpha == a)) for a in np.unique(alpha)]


def _solve(K: FloatArray, Y: FloatArray, alpha: Any, weights: FloatArray) -> FloatArray:
    s = np.sqrt(weights)
    out = np.empty_like(Y)
    groups = _per_alpha(alpha, Y.shape[1])
    for a, columns in groups:
        factor = _factor(K.copy() if len(groups) > 1 else K, s, a)
        out[:, columns] = s[:, None] * factor.solve(s[:, None] * Y[:, columns])
    return out


def _loo_residuals(K: FloatArray, Y: FloatArray, alpha: Any, weights: FloatArray) -> FloatArray:
    """uᵢ / (Gᵢᵢ √wᵢ), see `ridge_path`; a point of weight zero has its plain residual."""
    s = np.sqrt(weights)
    out = np.empty_like(Y)
    silent = weights == 0.0
    for a, columns in _per_alpha(alpha, Y.shape[1]):
        factor = _factor(K.copy(), s, a)
        U = factor.solve(s[:, None] * Y[:, columns])
        safe = np.where(silent, 1.0, s * factor.inverse_diag())
        out[:, columns] = U / safe[:, None]
        if silent.any():
            out[np.ix_(silent, np.arange(Y.shape[1])[columns])] = Y[silent][:, columns] - K[silent] @ (s[:, None] * U)
    return out
