"""Smoothing: kernel regression (Nadaraya–Watson, local linear) and kernel density estimation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from gramgraph._validation import check_choice, check_positive
from gramgraph.estimators._base import KernelEstimator
from gramgraph.estimators._sound import SoundNumbers, read_matrix
from gramgraph.exceptions import ModelError
from gramgraph.machines.kernels import KernelSpec
from gramgraph.typing import FloatArray

__all__ = ["KernelDensity", "NadarayaWatson"]

_CELLS = 1 << 21  # entries of a block of distances


class NadarayaWatson(RegressorMixin, KernelEstimator):
    """f(x) = Σ k(x, xᵢ) yᵢ / Σ k(x, xᵢ), or with `degree=1` the value at x of the line fitted with these weights.

    Parameters
    ----------
    bandwidth : h: the kernel sees x/h. "loo" takes the h with the least leave-one-out squared error; kernels on other
        points than vectors, and precomputed matrices, have none.
    kernel : "rbf" (exp(−|x − x′|²/2h²)), a kernel value with k ≥ 0, "precomputed" or a function of two matrices.
    degree : 0 for local means, 1 for local lines, which have no bias at the border.

    There is no `approx`: features approximate k up to an error that is the same everywhere, and f is a ratio of two
    sums that are both small where points are few, so that the error would be as large as f there. Sums are exact
    instead and made in blocks: memory does not grow with n times the number of new points.

    Where all weights are below the smallest number, "rbf" follows the nearest points, other kernels give the mean of y.

    Attributes
    ----------
    bandwidth_, loo_error_ (mean squared, with bandwidth "loo"), X_fit_.

    >>> import numpy as np
    >>> from gramgraph.estimators import NadarayaWatson
    >>> X = np.linspace(0, 1, 21)[:, None]
    >>> NadarayaWatson(0.1, degree=1).fit(X, 3 * X[:, 0]).predict([[0.0], [0.5]]).round(6)
    array([0. , 1.5])
    """

    def __init__(self, bandwidth: float | str = "loo", *, kernel: KernelSpec = "rbf", degree: int = 0) -> None:
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.degree = degree

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NadarayaWatson:
        """Keep the points and choose the bandwidth."""
        from gramgraph.kernels.inputs import count
        from gramgraph.machines.kernels import resolve_kernel

        check_choice("degree", self.degree, (0, 1))
        X = self._points(X, reset=True, keep=True)
        self.kernel_ = resolve_kernel(self.kernel, X, gamma=0.5)
        numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"
        self._vectors = numbers and not self.kernel_.precomputed
        if self.degree == 1 and not self._vectors:
            raise ModelError("degree=1 fits lines and needs points that are vectors. Try: degree=0.")
        n = count(X)
        y = self._targets(y, n, keep=True)
        self._flat, self._Y = y.ndim == 1, y.reshape(n, -1)
        self._weights = _weights(sample_weight, n)
        self.X_fit_ = X
        self.__dict__.pop("loo_error_", None)
        if self.bandwidth != "loo" or isinstance(self.bandwidth, np.ndarray):
            self.bandwidth_ = check_positive("bandwidth", self.bandwidth)
        elif self._vectors and n > 1:
            self.bandwidth_, self.loo_error_ = _best_bandwidth(self._loo_error, _scott(X, self._weights))
        else:
            self.bandwidth_ = 1.0
        return self

    def predict(self, X: Any) -> FloatArray:
        """The smoothed targets at points, (n,) or (n, t)."""
        from gramgraph.kernels.inputs import count, take

        check_is_fitted(self, "bandwidth_")
        X = self._points(X, reset=False)
        out = np.empty((count(X), self._Y.shape[1]))
        for rows in _blocks(len(out), len(self._Y)):
            part = take(X, rows)
            out[rows] = self._smooth(part, self._local(part, self.bandwidth_, None))
        return out[:, 0] if self._flat else out

    def _loo_error(self, h: float) -> float:
        total = 0.0
        for rows in _blocks(len(self._Y), len(self._Y)):
            part = self.X_fit_[rows]
            found = self._smooth(part, self._local(part, h, rows))
            total += float(self._weights[rows] @ ((self._Y[rows] - found) ** 2).mean(axis=1))
        return total / float(self._weights.sum())

    def _local(self, part: Any, h: float, own: slice | None) -> FloatArray:
        """Weights of the training points (rows, n) that sum to one; `own` rows leave themselves out."""
        if self.kernel == "rbf" if isinstance(self.kernel, str) else False:
            from scipy.spatial.distance import cdist

            log = cdist(part / h, self.X_fit_ / h, "sqeuclidean")  # squares of large or small units would be lost
            log *= -0.5
            with np.errstate(divide="ignore"):
                log += np.log(self._weights)
            if own is not None:
                log[np.arange(len(log)), np.arange(own.start, own.stop)] = -np.inf
            top = log.max(axis=1, keepdims=True)
            W = np.exp(log - np.where(np.isfinite(top), top, 0.0))
        else:
            scale = h if self._vectors else 1.0
            Z = self.X_fit_ / scale if self._vectors else self.X_fit_
            W = self.kernel_.gram(part / scale if self._vectors else part, Z) * self._weights
            if (W < 0.0).any():
                raise ModelError("kernel: smoothing needs k ≥ 0, but some kernel values are negative.")
            if own is not None:
                W[np.arange(len(W)), np.arange(own.start, own.stop)] = 0.0
        total = W.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, W / np.where(total > 0.0, total, 1.0), self._weights / self._weights.sum())

    def _smooth(self, part: Any, W: FloatArray) -> FloatArray:
        means = W @ self._Y
        if self.degree == 0:
            return means
        center = np.average(self.X_fit_, axis=0, weights=self._weights)
        X = self.X_fit_ - center  # moments around the middle of the data lose fewer digits
        n, d = X.shape
        x_bar = W @ X
        second = (W @ (X[:, :, None] * X[:, None, :]).reshape(n, d * d)).reshape(-1, d, d)
        cross = (W @ (X[:, :, None] * self._Y[:, None, :]).reshape(n, -1)).reshape(-1, d, self._Y.shape[1])
        second -= x_bar[:, :, None] * x_bar[:, None, :]
        cross -= x_bar[:, :, None] * means[:, None, :]
        # Directions in which the weighted points do not spread have no slope.
        slope = np.linalg.pinv(second, rcond=1e-9, hermitian=True) @ cross
        return means + np.einsum("id,idt->it", part - center - x_bar, slope)


class KernelDensity(DensityMixin, SoundNumbers, BaseEstimator):
    """p(x) = Σ wᵢ h⁻ᵈ κ((x − xᵢ)/h) / Σ wᵢ, with a shape κ that integrates to one.

    Parameters
    ----------
    bandwidth : h, "scott", "silverman", or "loo": the h with the largest leave-one-out likelihood.
    kernel : "gaussian", "epanechnikov" or "tophat".

    Attributes
    ----------
    bandwidth_, loo_score_ (mean log density of left-out points, with "loo"), X_fit_.

    >>> from gramgraph.estimators import KernelDensity
    >>> KernelDensity(1.0).fit([[0.0]]).score_samples([[0.0]])
    array([-0.91893853])
    """

    def __init__(self, bandwidth: float | str = "loo", *, kernel: str = "gaussian") -> None:
        self.bandwidth = bandwidth
        self.kernel = kernel

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDensity:
        """Keep the points and choose the bandwidth."""
        check_choice("kernel", self.kernel, ("gaussian", "epanechnikov", "tophat"))
        X = read_matrix(self, X, dtype=np.float64, order="C", copy=True)
        n, d = X.shape
        self.X_fit_, self._weights = X, _weights(sample_weight, n)
        self.__dict__.pop("loo_score_", None)
        if isinstance(self.bandwidth, str):
            check_choice("bandwidth", self.bandwidth, ("loo", "scott", "silverman"))
            start = _scott(X, self._weights)
            if self.bandwidth == "silverman":
                start *= (4.0 / (d + 2.0)) ** (1.0 / (d + 4.0))
            if self.bandwidth == "loo" and n > 1:
                start, worst = _best_bandwidth(lambda h: -self._loo_score(h), start)
                self.loo_score_ = -worst
            self.bandwidth_ = start
        else:
            self.bandwidth_ = check_positive("bandwidth", self.bandwidth)
        return self

    def _log_kernel(self, part: FloatArray, h: float) -> FloatArray:
        """log h⁻ᵈ κ, (rows, n)."""
        from scipy.spatial.distance import cdist
        from scipy.special import gammaln

        d = part.shape[1]
        log = cdist(part / h, self.X_fit_ / h, "sqeuclidean")
        log_ball = 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1.0)
        if self.kernel == "gaussian":
            log *= -0.5
            return log - (0.5 * d * np.log(2.0 * np.pi) + d * np.log(h))
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kernel == "tophat":
                log = np.where(log < 1.0, 0.0, -np.inf)
                return log - (log_ball + d * np.log(h))
            log = np.log(np.maximum(1.0 - log, 0.0))
        return log + (np.log(0.5 * (d + 2.0)) - log_ball - d * np.log(h))

    def score_samples(self, X: Any) -> FloatArray:
        """log p at points, (n,)."""
        check_is_fitted(self)
        X = read_matrix(self, X, dtype=np.float64, reset=False)
        out = np.empty(len(X))
        for rows in _blocks(len(X), len(self.X_fit_)):
            out[rows] = _log_sum(self._log_kernel(X[rows], self.bandwidth_), self._weights)
        return out - np.log(self._weights.sum())

    def score(self, X: Any, y: Any = None) -> float:
        """Sum of log p over the points."""
        return float(self.score_samples(X).sum())

    def _loo_score(self, h: float) -> float:
        total = 0.0
        rest = self._weights.sum() - self._weights
        used = (self._weights > 0.0) & (rest > 0.0)
        for rows in _blocks(len(self.X_fit_), len(self.X_fit_)):
            log = self._log_kernel(self.X_fit_[rows], h)
            log[np.arange(len(log)), np.arange(rows.start, rows.stop)] = -np.inf
            with np.errstate(divide="ignore"):
                found = _log_sum(log, self._weights) - np.log(rest[rows])
            total += float(self._weights[rows][used[rows]] @ np.maximum(found[used[rows]], -1e10))
        return total / float(self._weights[used].sum()) if used.any() else 0.0

    def sample(self, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draws from the density, (n_samples, d)."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        d = self.X_fit_.shape[1]
        centers = self.X_fit_[rng.choice(len(self.X_fit_), size=n_samples, p=self._weights / self._weights.sum())]
        steps = rng.normal(size=(n_samples, d))
        if self.kernel != "gaussian":
            steps /= np.linalg.norm(steps, axis=1, keepdims=True)
            shape = 1.0 if self.kernel == "tophat" else 2.0  # r² follows a beta distribution
            steps *= np.sqrt(rng.beta(0.5 * d, shape, size=(n_samples, 1)))
        return centers + self.bandwidth_ * steps


def _weights(sample_weight: Any, n: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(n)
    weights = _check_sample_weight(
        sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True, copy=True
    )
    if not weights.any():
        raise ModelError("sample_weight must have a positive entry; all are zero.")
    return np.asarray(weights, dtype=np.float64)


def _scott(X: FloatArray, weights: FloatArray) -> float:
    """σ̂ m^(−1/(d+4)) with the mean spread of the columns and m the sum of weights; 1 for equal points."""
    unit = float(np.abs(X).max()) or 1.0  # whatever the unit of the data is, the result is in it
    Z = X / unit
    mean = np.average(Z, axis=0, weights=weights)
    spread = float(np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=weights).mean()))
    found = unit * spread * float(weights.sum()) ** (-1.0 / (X.shape[1] + 4.0))
    return found if spread > 1e-12 and found > 0.0 else 1.0


def _best_bandwidth(loss: Callable[[float], float], start: float) -> tuple[float, float]:
    """The h with the least loss between start/50 and 10·start: a grid, then Brent's search around its best."""
    from scipy.optimize import minimize_scalar

    grid = np.log(start) + np.linspace(-np.log(50.0), np.log(10.0), 18)
    losses = [loss(float(np.exp(g))) for g in grid]
    best = int(np.argmin(losses))
    near = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = minimize_scalar(lambda g: loss(float(np.exp(g))), bounds=near, method="bounded", options={"xatol": 1e-4})
    if found.fun < losses[best]:
        return float(np.exp(found.x)), float(found.fun)
    return float(np.exp(grid[best])), float(losses[best])


def _blocks(n: int, m: int) -> Iterator[slice]:
    step = max(1, _CELLS // max(m, 1))
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


def _log_sum(log: FloatArray, weights: FloatArray) -> FloatArray:
    top = log.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(log - top) @ weights) + top[:, 0]
