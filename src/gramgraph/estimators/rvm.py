"""Relevance vector machines: sparse Bayesian regression and classification on kernel columns.

f(x) = w₀ + Σᵢ wᵢ k(x, xᵢ) with w ~ N(0, diag(α)⁻¹). Maximizing the evidence over α drives most αᵢ to infinity; the
training points that remain are the relevance vectors. Source: Tipping and Faul, "Fast marginal likelihood
maximisation for sparse Bayesian models" (2003).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from gramgraph.estimators._base import (
    KernelEstimator,
    KernelSpec,
    ResolvedKernel,
    check_option,
    check_positive,
)
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.typing import FloatArray, IntArray

__all__ = ["RVC", "RVR", "SparseFit"]


@dataclass(frozen=True)
class SparseFit:
    """One sparse Bayesian function: its columns, prior precisions, and posterior N(mu, sigma) of the weights."""

    relevance: IntArray  # (r,) training points whose kernel column is in the model, ascending
    bias: bool  # whether the constant column is in the model; its weight then stands first
    alpha: FloatArray  # (m,) with m = bias + r
    mu: FloatArray  # (m,)
    sigma: FloatArray  # (m, m)
    noise: float  # variance; 1 for classification, where it has no meaning
    evidence: FloatArray  # log evidence after each step
    n_iter: int
    converged: bool


class _RelevanceMachine(KernelEstimator):
    """What both machines share: parameters, design, one sequential fit, evaluation of latent functions."""

    basis: Any
    bias: bool
    tol: float
    max_iter: int
    random_state: Any

    def _check_parameters(self) -> None:
        check_positive("tol", self.tol)
        check_option("bias", self.bias, (True, False))
        whole = isinstance(self.max_iter, (int, np.integer)) and not isinstance(self.max_iter, bool)
        if not whole or self.max_iter < 1:
            raise ModelError(f"max_iter must be an integer of at least 1; it is {self.max_iter!r}.")
        some = isinstance(self.basis, (int, np.integer)) and not isinstance(self.basis, bool) and self.basis >= 1
        if not some and not (isinstance(self.basis, str) and self.basis == "all"):
            raise ModelError(f"basis must be 'all' or a number of landmarks of at least 1; it is {self.basis!r}.")

    def _design(self, X: Any) -> tuple[FloatArray, IntArray, int]:
        """Transposed design (M, n), the training point of each kernel row, and the number of bias rows (0 or 1)."""
        n = count(X)
        if isinstance(self.basis, str) or self.basis >= n:
            points = np.arange(n)
            K = self.kernel_.gram(X)
        else:
            points = np.sort(check_random_state(self.random_state).choice(n, size=int(self.basis), replace=False))
            K = X[:, points].T if self.kernel_.precomputed else self.kernel_.gram(_take(X, points), X)
        if not np.isfinite(K).all():
            raise ModelError(
                f"the kernel {self.kernel!r} gives values that are not finite on these points. What helps: scale X."
            )
        head = int(self.bias)
        T = np.empty((head + len(points), n))
        T[:head] = 1.0
        T[head:] = K
        return T, points, head

    def _sparse(self, found: tuple[Any, ...], points: IntArray, head: int) -> SparseFit:
        active, alpha, mu, sigma, noise, evidence, steps, converged = found
        if not converged:
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} steps before the evidence settled; "
                f"raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        bias = bool(head and len(active) and active[0] == 0)
        relevance = points[active[int(bias) :] - head]
        return SparseFit(relevance, bias, alpha, mu, sigma, float(noise), evidence, int(steps), bool(converged))

    def _keep(self, X: Any, fits: list[SparseFit]) -> None:
        """Store the fits and the points that any of them needs."""
        self.fits_ = fits
        self.relevance_: IntArray = np.unique(np.concatenate([fit.relevance for fit in fits]))
        self.relevance_vectors_ = _take(X, self.relevance_)
        self.n_iter_ = max(max(fit.n_iter for fit in fits), 1)
        one = len(fits) == 1
        for name in ("alpha", "mu", "sigma", "noise", "evidence"):
            values = [getattr(fit, name) for fit in fits]
            setattr(self, f"{name}_", values[0] if one else values)

    def _columns(self, X: Any) -> FloatArray:
        """Kernel columns of new points at the relevance vectors, (n, r): O(n r) kernel values."""
        check_is_fitted(self)
        X = self._points(X, reset=False)
        if self.kernel_.precomputed:
            return np.asarray(X[:, self.relevance_], dtype=np.float64)
        if not len(self.relevance_):
            return np.zeros((count(X), 0))
        return self.kernel_.gram(X, self.relevance_vectors_)

    def _features(self, K: FloatArray, fit: SparseFit) -> FloatArray:
        """Columns of one fit, the bias first."""
        columns = K[:, np.searchsorted(self.relevance_, fit.relevance)]
        return np.column_stack([np.ones(len(K)), columns]) if fit.bias else columns


class RVR(RegressorMixin, _RelevanceMachine):
    """Relevance vector regression: few kernel columns, chosen by the evidence, with predictive standard deviations.

    p(y | x) = N(μᵀφ(x), σ² + φ(x)ᵀ Σ φ(x)) with Σ = (diag(α) + ΦᵀΦ/σ²)⁻¹ and μ = ΣΦᵀy/σ², α and σ² at the maximum of
    the evidence N(y | 0, σ²I + Φ diag(α)⁻¹ Φᵀ). The Gram matrix is computed once; a step then costs O(n m) for m
    columns in the model, memory is O(n²), or O(n · landmarks).

    Parameters
    ----------
    kernel : a kernel value, "rbf", "linear", "poly", "precomputed", or a function of two matrices
    gamma, degree, coef0 : of the kernels given by name
    bias : whether a constant column is a candidate too
    basis : "all" training points as candidates, or a number of them drawn at random (`random_state`)
    noise : "learn", or the known noise variance
    tol : stop when no single change raises the log evidence by this much
    max_iter : most steps; a step adds, re-estimates or removes one column
    random_state : of the draw of landmarks

    Attributes
    ----------
    relevance_, relevance_vectors_ : training points in the model (for several outputs: in any of the models)
    alpha_, mu_, sigma_ : prior precisions, posterior mean and covariance of the weights, bias first where it is used
    noise_ : noise variance; evidence_ : log evidence after each step, never falling
    fits_ : one `SparseFit` an output; with several outputs the attributes above are lists in the same order

    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> x = np.linspace(-10, 10, 100)[:, None]
    >>> y = np.sinc(x[:, 0] / np.pi)
    >>> rvr = RVR(kernel=RBF(length_scale=2.0)).fit(x, y + 0.05 * np.cos(37 * x[:, 0]))
    >>> len(rvr.relevance_) < 20
    True
    >>> mean, std = rvr.predict(x, return_std=True)
    >>> bool(np.abs(mean - y).max() < 0.1)
    True
    """

    def __init__(
        self,
        kernel: KernelSpec = "rbf",
        *,
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        bias: bool = True,
        basis: str | int = "all",
        noise: str | float = "learn",
        tol: float = 1e-3,
        max_iter: int = 5000,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.bias = bias
        self.basis = basis
        self.noise = noise
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> RVR:
        """Choose columns and weights; y of shape (n,) or (n, outputs), each output with its own model."""
        from gramgraph._numerics.sparse_bayes import regression

        self._check_parameters()
        known = None
        if not isinstance(self.noise, str):
            known = check_positive("noise", self.noise)
        elif self.noise != "learn":
            raise ModelError(f"noise must be 'learn' or a positive variance; it is {self.noise!r}.")
        X = self._points(X, reset=True, least=2)
        y = self._targets(y, count(X))
        if count(X) < 2:
            raise ModelError("RVR needs at least two points to tell noise from signal; n_samples = 1.")
        self.kernel_: ResolvedKernel = self._resolve(X)
        T, points, head = self._design(X)
        targets = y[:, None] if y.ndim == 1 else y
        fits = []
        for t in np.ascontiguousarray(targets.T):
            found = regression(T, t, noise=known, tol=self.tol, max_iter=self.max_iter)
            fits.append(self._sparse(found, points, head))
        self._single = y.ndim == 1
        self._keep(X, fits)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictive mean, (n,) or (n, outputs); with `return_std` also the standard deviation of a new y."""
        K = self._columns(X)
        means, deviations = [], []
        for fit in self.fits_:
            features = self._features(K, fit)
            means.append(features @ fit.mu)
            if return_std:
                spread = np.einsum("ij,ij->i", features @ fit.sigma, features)
                deviations.append(np.sqrt(fit.noise + np.maximum(spread, 0.0)))
        mean = means[0] if self._single else np.column_stack(means)
        if not return_std:
            return mean
        return mean, deviations[0] if self._single else np.column_stack(deviations)


class RVC(ClassifierMixin, _RelevanceMachine):
    """Relevance vector classification: a sparse logistic model (softmax for several classes) with probabilities.

    Two classes: p(second class | x) = 1/(1 + exp(−a(x))), the evidence by Laplace's approximation around the most
    probable weights. K > 2 classes: the columns and precisions α of each latent function a_k come from "class k against
    the rest"; the weights are then the most probable ones of the joint model p(k | x) = exp(a_k) / Σ_j exp(a_j).
    Probabilities are those at the most probable weights.

    Parameters are those of `RVR`, without noise. Attributes: `classes_`, and `relevance_`, `relevance_vectors_`,
    `alpha_`, `mu_`, `sigma_`, `evidence_`, `fits_` as there (lists, one entry a class, when there are more than two).

    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where((X**2).sum(1) > 1.0, "outside", "inside")
    >>> rvc = RVC(kernel=RBF(length_scale=1.0)).fit(X, y)
    >>> rvc.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    ['inside', 'outside']
    >>> len(rvc.relevance_) < 15
    True
    """

    def __init__(
        self,
        kernel: KernelSpec = "rbf",
        *,
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        bias: bool = True,
        basis: str | int = "all",
        tol: float = 1e-3,
        max_iter: int = 5000,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.bias = bias
        self.basis = basis
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> RVC:
        """Choose columns and weights; y holds at least two classes, numbers or strings."""
        from gramgraph._numerics.sparse_bayes import logistic

        self._check_parameters()
        X = self._points(X, reset=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: RVC learns from labels.")
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if len(y) != count(X):
            raise ModelError(f"X has {count(X)} points and y {len(y)} labels: inconsistent numbers of samples.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ModelError(
                f"RVC needs at least two classes; y holds one class, {self.classes_[0]!r}, in n_samples = {len(y)}."
            )
        self.kernel_: ResolvedKernel = self._resolve(X)
        T, points, head = self._design(X)
        wanted = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        found = [logistic(T, (codes == k).astype(float), tol=self.tol, max_iter=self.max_iter) for k in wanted]
        if len(found) > 1:
            found = _jointly(T, codes, found)
        self._keep(X, [self._sparse(one, points, head) for one in found])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Latent functions: a(x), positive for the second class, (n,); for K > 2 classes all a_k(x), (n, K)."""
        K = self._columns(X)
        latent = np.column_stack([self._features(K, fit) @ fit.mu for fit in self.fits_])
        return latent[:, 0] if len(self.classes_) == 2 else latent

    def predict_proba(self, X: Any) -> FloatArray:
        """p(k | x) = exp(a_k) / Σ_j exp(a_j), (n, K), in the order of `classes_`."""
        latent = self.decision_function(X)
        if latent.ndim == 1:
            latent = np.column_stack([np.zeros(len(latent)), latent])
        p = np.exp(latent - latent.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """The most probable class of each point."""
        latent = self.decision_function(X)
        index = (latent > 0).astype(np.intp) if latent.ndim == 1 else latent.argmax(axis=1)
        return self.classes_[index]


def _jointly(T: FloatArray, codes: IntArray, found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The same columns and α with the most probable weights, and their covariance, of the joint softmax model."""
    from gramgraph._numerics.sparse_bayes import softmax_mode

    Y = (codes == np.arange(len(found))[:, None]).astype(float)
    designs = [T[one[0]] for one in found]
    weights, sigma, _ = softmax_mode(designs, Y, [one[1] for one in found], [one[2] for one in found])
    ends = np.cumsum([0, *(len(w) for w in weights)])
    return [
        (one[0], one[1], w, sigma[a:b, a:b], *one[4:])
        for one, w, a, b in zip(found, weights, ends[:-1], ends[1:], strict=True)
    ]


def _take(X: Any, points: IntArray) -> Any:
    """Some of the points, as a matrix or as a list, whichever they come in."""
    if isinstance(X, tuple):  # parts of points: each part holds all of them
        return tuple(_take(part, points) for part in X)
    return X[points] if isinstance(X, np.ndarray) else [X[i] for i in points.tolist()]
