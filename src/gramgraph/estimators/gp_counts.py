"""Regression of counts by a latent Gaussian process with a log link."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from gramgraph._validation import check_choice, generator
from gramgraph.estimators._gp_kernels import warn_at_bounds
from gramgraph.estimators._gp_latent import LatentEstimator
from gramgraph.exceptions import ModelError
from gramgraph.gp.latent_fit import LatentFit, LatentProblem
from gramgraph.gp.likelihoods import GammaSizes, Likelihood, NegativeBinomial, Poisson
from gramgraph.kernels.inputs import count
from gramgraph.typing import FloatArray


@dataclass(eq=False, repr=False)
class GaussianProcessCounts(RegressorMixin, LatentEstimator):
    """y ~ Poisson(exposure · exp(m + f(x))) with f a Gaussian process, by Laplace's approximation.

    Parameters
    ----------
    kernel : a kernel value; None is a fixed `1.0 * RBF(1.0)`. Kernels of scikit-learn are translated.
    likelihood : "poisson", "negative_binomial" (variance mean + dispersion · mean²), or a value of
        `gramgraph.gp.likelihoods` with a log link: `GammaSizes(shape)` models positive sizes with the same code.
    dispersion : of "negative_binomial".
    center : whether the prior mean m is the log of the mean rate; else 0.
    optimizer, n_restarts_optimizer, max_iter_predict, warm_start, copy_X_train, random_state : as those of
        `GaussianProcessClassifier`.

    Attributes
    ----------
    kernel_, posterior_ (the latent process as a value), prior_mean_ (m), log_marginal_likelihood_value_, X_train_,
    y_train_, search_

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph import kernels
    >>> from gramgraph.estimators import GaussianProcessCounts
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> y = np.random.default_rng(0).poisson(np.exp(1.5 + np.sin(x[:, 0])))
    >>> model = GaussianProcessCounts(1.0 * kernels.RBF(1.0)).fit(x, y)
    >>> mean, std = model.predict([[1.5]], return_std=True)  # exp(2.5) = 12.2
    >>> bool(abs(mean[0] - 12.2) < 4.0), bool(std[0] > np.sqrt(mean[0]))
    (True, True)
    """

    _: KW_ONLY
    likelihood: str | Likelihood = "poisson"
    dispersion: float = 1.0
    center: bool = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        # with a variance of the mean's square most targets are noise
        tags.regressor_tags.poor_score = self.likelihood != "poisson"
        return tags

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, exposure: Any = None) -> GaussianProcessCounts:
        """Learn the kernel's parameters and the latent process; `exposure` (n,) scales the mean of each count."""
        self._check_options()
        check_choice("center", self.center, (True, False))
        link = self._likelihood()
        X = self._points(X, reset=True, keep=bool(self.copy_X_train))
        n = count(X)
        y = column_or_1d(self._targets(y, n, keep=True), warn=True)
        y = link.check(y)
        size = self._exposure(exposure, n)
        self.X_train_, self.y_train_ = X, y
        # half a count when there was none: a rate of 0 has no logarithm
        self.prior_mean_ = float(np.log(max(float(y.sum()), 0.5) / float(size.sum()))) if self.center else 0.0
        self._problem = LatentProblem(
            X, y, link, prior_mean=self.prior_mean_, offset=np.log(size), max_iter=self.max_iter_predict
        )
        old: LatentFit | None = getattr(self, "_fit", None) if self.warm_start else None
        self._fit = self._fit_one(self._problem, old, int(self._generator().integers(2**31)))
        self.kernel_, self.posterior_, self.search_ = self._fit.kernel, self._fit.posterior, self._fit.search
        self.log_marginal_likelihood_value_ = self._fit.log_evidence
        if self.optimizer is not None:
            warn_at_bounds([self.kernel_], self.kernel)
        return self

    def _likelihood(self) -> Likelihood:
        if isinstance(self.likelihood, Likelihood):
            if not isinstance(self.likelihood, (GammaSizes, NegativeBinomial, Poisson)):
                raise ModelError(
                    f"likelihood must have a log link (Poisson, NegativeBinomial, GammaSizes): {self.likelihood!r}. "
                    f"Try: gg.GaussianProcessClassifier for labels, gg.GaussianProcessRegressor for numbers."
                )
            return self.likelihood
        check_choice("likelihood", self.likelihood, ("poisson", "negative_binomial"))
        return Poisson() if self.likelihood == "poisson" else NegativeBinomial(self.dispersion)

    def _exposure(self, exposure: Any, n: int) -> FloatArray:
        if exposure is None:
            return np.ones(n)
        size = check_array(exposure, ensure_2d=False, dtype=np.float64, input_name="exposure", estimator=self)
        if size.shape != (n,) or not (size > 0.0).all():
            raise ModelError(
                f"exposure must hold {n} positive numbers, one per point; its shape is {size.shape}"
                + (f" and its smallest entry {size.min():g}." if size.size else ".")
            )
        return size

    # -- answers ------------------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, *, exposure: Any = None, average: bool = True) -> Any:
        """Expected count, (n,), and with `return_std` the standard deviation of a new count.

        `average=True`: averaged over the posterior of the latent value, exp(μ + v/2) times the exposure; False: the
        plug-in value at its mean, exp(μ), which is the median of the rate.
        """
        X = self._new_points(X)
        log_size = np.log(self._exposure(exposure, count(X)))
        link = self.posterior_.likelihood
        if not average and not return_std:
            return link.response(self.posterior_.latent_mean(X) + log_size)
        mean, var = self.posterior_.latent(X)
        mean += log_size
        expected = link.averaged(mean, var) if average else link.response(mean)
        if not return_std:
            return expected
        return expected, np.sqrt(link.averaged_spread(mean, var) if average else link.spread(mean))

    def log_predictive(self, X: Any, y: Any, *, exposure: Any = None) -> FloatArray:
        """log p(y | x) of each new count, averaged over the posterior of the latent value, (n,)."""
        X = self._new_points(X)
        n = count(X)
        y = self.posterior_.likelihood.check(self._targets(y, n).reshape(n))
        mean, var = self.posterior_.latent(X)
        return self.posterior_.likelihood.log_predictive(y, mean + np.log(self._exposure(exposure, n)), var)

    def latent_mean_and_variance(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance of the log rate m + f(x), each (n,)."""
        found: tuple[FloatArray, FloatArray] = self.posterior_.latent(self._new_points(X))
        return found

    def sample_latent(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> FloatArray:
        """Draws of the log rate, jointly at all points: (n, n_samples)."""
        X = self._new_points(X)
        return self.posterior_.sample(X, n_samples, random_state=generator(random_state)).T

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> float | tuple[float, FloatArray]:
        """Approximate log evidence of the training counts at theta (None: at the learned parameters), its gradient."""
        check_is_fitted(self)
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        here = self.kernel_.theta
        theta = here if theta is None else self._theta_of(theta, len(here))
        found = self._problem.evidence(self.kernel_.with_theta(theta), eval_gradient, self._fit.start)
        return (found.value, found.theta) if eval_gradient and found.theta is not None else found.value
