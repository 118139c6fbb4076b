"""Bayesian linear regression on basis functions: the finite case of a Gaussian process."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph._validation import check_choice, check_positive, generator
from gramgraph.estimators._sound import SoundNumbers, read_matrix
from gramgraph.exceptions import ModelError
from gramgraph.gp.linear import learn_features, maximize_evidence, spectrum
from gramgraph.gp.linear_weights import WeightPosterior, least_squares, weights_from_rows, weights_from_sums
from gramgraph.gp.posterior import gaussian
from gramgraph.typing import FloatArray


@dataclass(eq=False, repr=False)
class BayesianLinearRegression(RegressorMixin, MultiOutputMixin, SoundNumbers, BaseEstimator):
    """y = wᵀφ(x) + ε, w ~ N(0, I/alpha) or a given Gaussian, ε ~ N(0, 1/beta): the whole posterior of w.

    Parameters
    ----------
    basis : None (1 and x), a name ("polynomial", "gaussian", "sigmoid", "fourier", "pixel", "switch", "v", "legendre",
        "laguerre", "laplace", "bell"), a `Basis` of gramgraph.gp.bases, or a function X ↦ (n, k).
    n_basis : number of functions (or the degree) when a basis is named.
    alpha, beta : precisions of the weights and of the noise; where learning starts, or what is kept. alpha=0 with
        learn=None: no prior; the weights are those of the pseudo-inverse (SVD), of minimum norm where there are many.
    learn : "mackay" or "em" (evidence maximization), "features" (the parameters of the basis too, by type-II maximum
        likelihood), or None (alpha and beta are kept).
    max_iter, tol : evidence maximization stops when the logarithms of alpha and beta move by less than tol.
    prior : (m0, S0), a Gaussian prior of the weights instead of I/alpha; then learn must be None.

    Attributes
    ----------
    coef_ (M,) or (q, M), sigma_ (M, M) covariance of the weights, alpha_, beta_, log_evidence_, gamma_ (effective
    number of weights), basis_, n_iter_.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph import BayesianLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, 200)
    >>> y = -0.3 + 0.5 * x + 0.2 * rng.normal(size=200)
    >>> BayesianLinearRegression().fit(x[:, None], y).coef_.round(1)
    array([-0.3,  0.5])
    """

    basis: Any = None
    _: KW_ONLY
    n_basis: int = 10
    alpha: float = 1.0
    beta: float = 1.0
    learn: str | None = "mackay"
    prior: Any = None
    max_iter: int = 1000
    tol: float = 1e-11

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLinearRegression:
        """Learn from points X and targets y, (n,) or (n, q); a weight of 2 counts a point twice."""
        X, Y, weights = self._data(X, y, sample_weight, reset=True)
        self._begin(X, Y, weights)
        Phi = self.basis_.transform(X)
        if self.alpha_ == 0.0:
            return self._keep(least_squares(self.beta_, Phi, Y, weights))
        self._absorb(Phi, Y, weights)
        return self._keep(weights_from_rows(*self._prior_parts, self.beta_, Phi, Y, weights))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLinearRegression:
        """Learn from more points: the posterior so far is the prior. alpha and beta are those of the first call."""
        if not hasattr(self, "_precision"):
            return self.fit(X, y, sample_weight)
        if self.alpha_ == 0.0:
            raise ModelError("partial_fit needs a prior, alpha > 0: the posterior of a block is the prior of the next")
        X, Y, weights = self._data(X, y, sample_weight, reset=False)
        if Y.shape[1] != self._shift.shape[1]:
            raise ModelError(f"y must have {self._shift.shape[1]} columns as before; it has {Y.shape[1]}.")
        self._absorb(self.basis_.transform(X), Y, weights)
        return self._keep(
            weights_from_sums(*self._prior_parts, self.beta_, self._precision, self._shift, self._yy, self._n)
        )

    def _data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None.")
        X = read_matrix(self, X, reset=reset, dtype=np.float64)
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        if y.ndim > 2 or len(y) != len(X):
            raise ValueError(f"y must have shape ({len(X)},) or ({len(X)}, q); it has {y.shape}: inconsistent numbers.")
        if reset:
            self._flat = y.ndim == 1
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return X, y.reshape(len(y), -1), weights

    def _begin(self, X: FloatArray, Y: FloatArray, weights: FloatArray) -> None:
        """Basis, precisions, and the prior in canonical form."""
        from gramgraph.gp.bases import as_basis

        check_choice("learn", self.learn, (None, "mackay", "em", "features"))
        flat = self.learn is None and self.prior is None
        self.alpha_, self.beta_ = check_positive("alpha", self.alpha, zero=flat), check_positive("beta", self.beta)
        self.basis_ = as_basis(self.basis, X, self.n_basis)
        self.n_iter_ = 1
        if self.prior is not None and self.learn is not None:
            raise ModelError("a given prior of the weights leaves nothing to learn: learn=None.")
        if self.learn == "features":
            self.basis_, self.alpha_, self.beta_, search = learn_features(
                self.basis_, X, Y, self.alpha_, self.beta_, weights
            )
            self.n_iter_ = search.evaluations
        elif self.learn is not None:
            found = maximize_evidence(
                spectrum(self.basis_.transform(X), Y, weights),
                self.alpha_,
                self.beta_,
                method=self.learn,  # type: ignore[arg-type]
                max_iter=self.max_iter,
                tol=self.tol,
            )
            self.alpha_, self.beta_, self.n_iter_ = found.alpha, found.beta, found.iterations
        M = self.basis_.transform(X[:1]).shape[1]
        m0, P0 = self._prior(M)
        self._prior_parts = (m0, P0)
        self._precision, self._shift = P0.copy(), np.repeat((P0 @ m0)[:, None], Y.shape[1], axis=1)
        self._n, self._yy = 0.0, np.zeros(Y.shape[1])

    def _prior(self, M: int) -> tuple[FloatArray, FloatArray]:
        if self.prior is None:
            return np.zeros(M), self.alpha_ * np.eye(M)
        m0 = np.broadcast_to(np.asarray(self.prior[0], dtype=float), (M,)).copy()
        S0 = np.asarray(self.prior[1], dtype=float)
        S0 = S0 if S0.ndim == 2 else np.diag(np.broadcast_to(S0, (M,)))
        if S0.shape != (M, M) or np.linalg.eigvalsh(S0).min() <= 0:
            raise ModelError(f"prior: the covariance of the {M} weights must be a positive definite ({M}, {M}) matrix.")
        return m0, np.linalg.inv(S0)

    def _absorb(self, Phi: FloatArray, Y: FloatArray, weights: FloatArray) -> None:
        weighted = weights[:, None] * Phi
        self._precision = self._precision + self.beta_ * (Phi.T @ weighted)
        self._shift = self._shift + self.beta_ * (weighted.T @ Y)
        self._yy = self._yy + (weights[:, None] * Y**2).sum(0)
        self._n += float(weights.sum())

    def _keep(self, found: WeightPosterior) -> BayesianLinearRegression:
        self._mean, self.sigma_ = found.mean, found.cov
        self.log_evidence_, self.gamma_ = found.log_evidence, found.gamma
        self.coef_ = self._mean[:, 0] if self._flat else self._mean.T
        return self

    # -- answers ------------------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean at X; with standard deviations or the covariance of new observations (noise 1/beta included)."""
        check_is_fitted(self, "coef_")
        if return_std and return_cov:
            raise ModelError("at most one of return_std and return_cov can be asked for.")
        Phi = self._transform(X)
        mean = Phi @ self._mean
        mean = mean[:, 0] if self._flat else mean
        if return_std:
            var = np.maximum(np.einsum("ij,jk,ik->i", Phi, self.sigma_, Phi), 0.0) + 1.0 / self.beta_
            return mean, np.sqrt(var) if self._flat else np.repeat(np.sqrt(var)[:, None], mean.shape[1], axis=1)
        if return_cov:
            return mean, Phi @ self.sigma_ @ Phi.T + np.eye(len(Phi)) / self.beta_
        return mean

    def _transform(self, X: Any) -> FloatArray:
        return self.basis_.transform(read_matrix(self, X, reset=False, dtype=np.float64))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> FloatArray:
        """Functions drawn from the posterior (no noise), at X: (m, n_samples); one output."""
        check_is_fitted(self, "coef_")
        if not self._flat:
            raise ModelError("sample_y draws one output; y had several columns.")
        rng = generator(random_state)
        W = self._mean + symmetric_root(self.sigma_) @ rng.standard_normal((len(self.sigma_), n_samples))
        return self._transform(X) @ W

    def weights(self) -> Any:
        """The posterior of the weights as a `Gaussian`; one output."""
        check_is_fitted(self, "coef_")
        if not self._flat:
            raise ModelError("weights() is for one output; y had several columns.")
        return gaussian(self._mean[:, 0], self.sigma_)

    @property
    def kernel_(self) -> Any:
        """The function view: k(x, x′) = φ(x)ᵀ S0 φ(x′). A Gaussian process with it and noise 1/beta_ is the same."""
        check_is_fitted(self, "coef_")
        if self.alpha_ == 0.0:
            raise ModelError("without a prior of the weights there is no kernel: alpha > 0")
        from gramgraph.kernels import QuadraticForm

        return QuadraticForm(np.linalg.cholesky(np.linalg.inv(self._prior_parts[1]))).fix().warp(self.basis_.transform)
