"""Smoothing: kernel regression (Nadaraya–Watson, local linear) and kernel density estimation."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from gramgraph._other_words import OtherWords
from gramgraph._validation import check_choice, check_positive
from gramgraph.estimators._base import KernelEstimator
from gramgraph.estimators._sound import SoundNumbers, read_matrix
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.machines.density import METRICS, SHAPES, KernelMixture, Places
from gramgraph.machines.kernels import KernelSpec, resolve_kernel
from gramgraph.machines.smoothing import Smoother, best_bandwidth, scott
from gramgraph.typing import FloatArray


class NadarayaWatson(RegressorMixin, MultiOutputMixin, KernelEstimator):
    """f(x) = Σ k(x, xᵢ) yᵢ / Σ k(x, xᵢ), or with `degree=1` the value at x of the line fitted with these weights.

    Parameters
    ----------
    bandwidth : h: the kernel sees x/h. "loo" takes the h with the least leave-one-out squared error; kernels on other
        points than vectors, and precomputed matrices, have none.
    kernel : "rbf" (exp(−|x − x′|²/2h²)), a kernel value with k ≥ 0, "precomputed" or a function of two matrices.
    degree : 0 for local means, 1 for local lines, which have no bias at the border.

    Notes
    -----
    There is no `approx`: features approximate k up to an error that is the same everywhere, and f is a ratio of two
    sums that are both small where points are few, so that the error would be as large as f there. Sums are exact
    instead and made in blocks: memory does not grow with n times the number of new points.

    Where all weights are next to the smallest number, "rbf" follows the nearest points; other kernels give the mean of
    y, where the weights sum to less than 1e-290 of the weight that a point has at itself.

    Attributes
    ----------
    bandwidth_, loo_error_ (mean squared, with bandwidth "loo"), X_fit_.

    Examples
    --------
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NadarayaWatson:
        """Keep the points and choose the bandwidth."""
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
            self.bandwidth_, self.loo_error_ = best_bandwidth(self._smoother.loo_error, scott(X, self._weights))
        else:
            self.bandwidth_ = 1.0
        return self

    def predict(self, X: Any) -> FloatArray:
        """The smoothed targets at points, (n,) or (n, t)."""
        check_is_fitted(self, "bandwidth_")
        out = self._smoother.at(self._points(X, reset=False), self.bandwidth_)
        return out[:, 0] if self._flat else out

    @property
    def _smoother(self) -> Smoother:
        rbf = isinstance(self.kernel, str) and self.kernel == "rbf"
        return Smoother(self.kernel_, rbf, self._vectors, self.degree, self.X_fit_, self._Y, self._weights)


class KernelDensity(OtherWords, DensityMixin, SoundNumbers, BaseEstimator):
    """p(x) = Σ wᵢ h⁻ᵈ κ(|x − xᵢ|/h) / Σ wᵢ, with a shape κ that integrates to one.

    Parameters
    ----------
    bandwidth : h, or a rule. "loo": the h with the largest leave-one-out likelihood. "scott", m^(−1/(d+4)) for m points
        (the sum of weights), and "silverman", (m (d + 2)/4)^(−1/(d+4)), are those of scikit-learn: they suit columns of
        unit variance. "normal_reference" is the last times the spread of the data.
    kernel : "gaussian", "tophat", "epanechnikov", "exponential", "linear" or "cosine".
    metric : "euclidean", "manhattan" or "chebyshev"; the density integrates to one for each of them.
    rtol, atol : the error that p may have, relative to it or absolute; sums are exact to rounding where both are 0. A
        tolerance lets Gaussian sums use single precision.

    Notes
    -----
    O(n m) for Gaussian sums, by matrix products; shapes that end at distance h look at the points nearby alone.

    Attributes
    ----------
    bandwidth_, loo_score_ (mean log density of left-out points, with "loo"), X_fit_.

    Examples
    --------
    >>> from gramgraph.estimators import KernelDensity
    >>> KernelDensity(1.0).fit([[0.0]]).score_samples([[0.0]])
    array([-0.91893853])
    """

    def __init__(
        self,
        bandwidth: float | str = "loo",
        *,
        kernel: str = "gaussian",
        metric: str = "euclidean",
        rtol: float = 0.0,
        atol: float = 0.0,
    ) -> None:
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.metric = metric
        self.rtol = rtol
        self.atol = atol

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDensity:
        """Keep the points and choose the bandwidth."""
        check_choice("kernel", self.kernel, SHAPES)
        check_choice("metric", self.metric, tuple(METRICS))
        check_positive("rtol", self.rtol, zero=True)
        check_positive("atol", self.atol, zero=True)
        X = read_matrix(self, X, dtype=np.float64, order="C", copy=True)
        n, d = X.shape
        self.X_fit_, self._weights = X, _weights(sample_weight, n)
        for name in ("loo_score_", "_places"):
            self.__dict__.pop(name, None)
        if isinstance(self.bandwidth, str):
            check_choice("bandwidth", self.bandwidth, ("loo", "scott", "silverman", "normal_reference"))
            if self.bandwidth in ("scott", "silverman"):
                start = float(self._weights.sum()) ** (-1.0 / (d + 4.0))
            else:
                start = scott(X, self._weights)
            if self.bandwidth in ("silverman", "normal_reference"):
                start *= (4.0 / (d + 2.0)) ** (1.0 / (d + 4.0))
            if self.bandwidth == "loo" and n > 1:
                start, worst = best_bandwidth(lambda h: -self._mixture.loo_score(h), start)
                self.loo_score_ = -worst
            self.bandwidth_ = start
        else:
            self.bandwidth_ = check_positive("bandwidth", self.bandwidth)
        return self

    @cached_property
    def _places(self) -> Places:
        return Places(self.X_fit_, self._weights)

    @property
    def _mixture(self) -> KernelMixture:
        return KernelMixture(self.kernel, self.X_fit_, self._weights, self.metric, self.rtol, self.atol, self._places)

    def score_samples(self, X: Any) -> FloatArray:
        """log p at points, (n,)."""
        check_is_fitted(self)
        return self._mixture.log_density(read_matrix(self, X, dtype=np.float64, reset=False), self.bandwidth_)

    def score(self, X: Any, y: Any = None) -> float:
        """Sum of log p over the points."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draws from the density, (n_samples, d)."""
        check_is_fitted(self)
        return self._mixture.draw(n_samples, self.bandwidth_, check_random_state(random_state))


def _weights(sample_weight: Any, n: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(n)
    weights = _check_sample_weight(
        sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True, copy=True
    )
    if not weights.any():
        raise ModelError("sample_weight must have a positive entry; all are zero.")
    return np.asarray(weights, dtype=np.float64)
