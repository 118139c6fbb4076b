"""Gaussian process classification behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from gramgraph._validation import check_choice, generator
from gramgraph.estimators._gp_kernels import as_process_kernel, warn_at_bounds
from gramgraph.estimators._gp_latent import LatentEstimator
from gramgraph.exceptions import ModelError
from gramgraph.gp.latent_fit import LatentFit, LatentProblem, Problem, SoftmaxProblem
from gramgraph.gp.likelihoods import Likelihood, Logistic, Probit
from gramgraph.gp.means import KnownMean, Mean, as_mean, kernel_of_weights
from gramgraph.kernels.inputs import count
from gramgraph.linalg.blocks import select
from gramgraph.machines.svm.classes import couple, pairs_of
from gramgraph.typing import FloatArray

_LINKS: dict[str, Likelihood] = {"logistic": Logistic(), "probit": Probit()}


@dataclass(eq=False, repr=False)
class GaussianProcessClassifier(ClassifierMixin, LatentEstimator):
    """p(class | x) from a latent Gaussian process, by Laplace's approximation or expectation propagation.

    Takes the parameters and answers the methods of scikit-learn's class of this name, and its kernels too. A fit costs
    a few n³ operations a step of the search and about five (n, n) arrays, whatever the number of kernel parameters.

    Parameters
    ----------
    kernel : a kernel value; None is a fixed `1.0 * RBF(1.0)`. Kernels of scikit-learn are translated.
    optimizer : "fmin_l_bfgs_b", None (parameters stay), or a function (objective, theta, bounds) ↦ (theta, value).
    n_restarts_optimizer : further starts, partly near the kernel's parameters, partly anywhere between their bounds.
    max_iter_predict : most rounds of Newton's method, or of expectation propagation.
    warm_start : begin the next fit at the parameters and the mode of the last one. (Inside a fit every step of the
        search begins at the mode of the step before, always.)
    copy_X_train : whether the training points are copied.
    random_state : of the restarts, and of the part of the points on which searches begin when there are many.
    multi_class : "one_vs_rest", "one_vs_one" (a process a class or a pair of classes, each with its own kernel
        parameters), or "softmax": one joint model with a latent function a class that share the kernel.
    n_jobs : threads for the processes of several classes.
    inference : "laplace" or "ep"; expectation propagation is slower, and closer to the true posterior.
    link : "logistic", σ(f), or "probit", Φ(f).
    integrate : None, "quadrature" or "slice": probabilities averaged over the kernel's parameters too, n_hyper nodes a
        parameter (default 3) or n_hyper draws (default 20), instead of at the best ones only.
    n_hyper : see `integrate`.
    mean : of the latent function: None (zero), "constant", "linear", a `gramgraph.gp.Mean`, or a fixed function of X
        that gives (n,), or (n, classes) for more than two. Weights are integrated out under their prior; "vague" is a
        Gaussian of ten logits for a feature in units of its spread.

    Attributes
    ----------
    classes_, n_classes_, X_train_, y_train_
    kernel_ : the kernel with its learned parameters; a tuple of them for one_vs_rest and one_vs_one
    posterior_ : the latent process as a value (`latent`, `latent_cov`, `sample`); a tuple of them as above
    log_marginal_likelihood_value_ : approximate log evidence, the mean over the processes
    searches_ : how the parameters of each process were found
    beta_ : posterior mean of the weights of a learned mean, (k,); a tuple of them as above
    fits_ : all of this, one `LatentFit` a process; with `integrate` its `parts` are the weighted posteriors

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph import GaussianProcessClassifier, kernels
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> y = np.where((X**2).sum(1) > 1.5, "outside", "inside")
    >>> gpc = GaussianProcessClassifier(1.0 * kernels.RBF(1.0)).fit(X, y)
    >>> gpc.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    ['inside', 'outside']
    >>> far = [[9.0, 9.0]]  # no data there: the averaged probability says so, the plug-in one can only follow the mean
    >>> gpc.predict_proba(far).round(1), gpc.predict_proba(far, average=False).shape
    (array([[0.5, 0.5]]), (1, 2))
    """

    _: KW_ONLY
    multi_class: str = "one_vs_rest"
    n_jobs: int | None = None
    inference: str = "laplace"
    link: str = "logistic"
    integrate: str | None = None
    n_hyper: int | None = None
    mean: Any = None

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GaussianProcessClassifier:
        """Learn the kernel's parameters and the latent processes; y holds at least two classes.

        `sample_weight` (n,) raises the likelihood of each point to a power, so that weight 2 counts as two equal
        points; expectation propagation and the softmax link take whole numbers, and so many copies of a point.
        """
        self._check_options()
        check_choice("multi_class", self.multi_class, ("one_vs_rest", "one_vs_one", "softmax"))
        check_choice("inference", self.inference, ("laplace", "ep"))
        check_choice("link", self.link, tuple(_LINKS))
        check_choice("integrate", self.integrate, (None, "quadrature", "slice"))
        if self.n_hyper is not None and (not isinstance(self.n_hyper, (int, np.integer)) or self.n_hyper < 1):
            raise ModelError(f"n_hyper must be None or a whole number of at least 1; it is {self.n_hyper!r}.")
        X = self._points(X, reset=True, keep=bool(self.copy_X_train))
        codes = self._labels(y, count(X))
        X, codes, self._weights = self._weighed(X, codes, sample_weight)
        self.X_train_, self.y_train_ = X, codes
        self._mean = as_mean(self.mean)
        self._extra, self._center = kernel_of_weights(self._mean, X)
        old: list[Any] = list(getattr(self, "fits_", ())) if self.warm_start else []
        problems = self._problems(X, codes)
        seeds = self._generator().integers(2**31, size=len(problems)).tolist()
        olds = old if len(old) == len(problems) else [None] * len(problems)
        self._store(self._all_fits(problems, olds, seeds))
        if self.optimizer is not None:
            warn_at_bounds([self._bare(fit.kernel) for fit in self.fits_], self.kernel)
        return self

    def _whole(self, kernel: Any) -> Any:
        return kernel if self._extra is None else kernel + self._extra

    def _bare(self, kernel: Any) -> Any:
        """The user's kernel with the parameters of the whole, which has no others."""
        if getattr(self, "_extra", None) is None:
            return kernel
        return as_process_kernel(self.kernel, self.X_train_)[0].with_theta(kernel.theta)

    def _shift(self, column: int, minus: int | None = None) -> KnownMean | None:
        """What is known of the mean of one process; None is zero."""
        mean = getattr(self, "_mean", None)
        if mean is None or type(mean) is Mean:
            return None
        return KnownMean(mean, self._center if minus is None else 0.0 * self._center, column, minus)

    def _labels(self, y: Any, n: int) -> Any:
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} learns from labels."
            )
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if len(y) != n:
            raise ModelError(f"X has {n} points and y {len(y)} labels: inconsistent numbers of samples.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.n_classes_ = len(self.classes_)
        if self.n_classes_ < 2:
            raise ModelError(
                f"{type(self).__name__} needs at least two classes; y holds one class, {self.classes_.tolist()[0]!r}, "
                f"in n_samples = {len(y)}. Try: more data, or gg.estimators.OneClassSVM."
            )
        return codes

    def _weighed(self, X: Any, codes: Any, sample_weight: Any) -> tuple[Any, Any, FloatArray | None]:
        """Points, classes and weights; where the approximation knows no weights, copies of points instead of them."""
        if sample_weight is None:
            return X, codes, None
        weights = np.asarray(_check_sample_weight(sample_weight, np.zeros((len(codes), 1))), dtype=np.float64)
        if (weights < 0.0).any() or not (weights > 0.0).any():
            raise ModelError(
                f"sample_weight must hold numbers that are not negative and not all zero; they lie between "
                f"{weights.min():g} and {weights.max():g}."
            )
        if self.inference == "laplace" and (self.n_classes_ == 2 or self.multi_class != "softmax"):
            return X, codes, weights
        copies = weights.astype(np.int64)
        if (copies != weights).any():
            raise ModelError(
                "sample_weight: inference='ep' and multi_class='softmax' take whole numbers only (so many copies of a "
                "point); others go with inference='laplace' and 'one_vs_rest' or 'one_vs_one'."
            )
        rows = np.repeat(np.arange(len(codes)), copies)
        return select(X, rows), codes[rows], None

    def _problems(self, X: Any, codes: Any) -> list[Problem]:
        self._check_combination()
        given = self._weights
        C = self.n_classes_
        if C > 2 and self.multi_class == "softmax":
            if self._shift(0) is not None and self._mean.fixed(X) is not None:
                raise ModelError("multi_class='softmax' learns means with weights; a fixed one goes with 'one_vs_rest'")
            return [SoftmaxProblem(X, codes, C, max_iter=self.max_iter_predict)]

        def binary(points: Any, positive: Any, shift: Any, weights: FloatArray | None = given) -> Problem:
            y, link = np.where(positive, 1.0, -1.0), _LINKS[self.link]
            limit = self.max_iter_predict
            return LatentProblem(points, y, link, self.inference, max_iter=limit, weights=weights, shift=shift)

        if C == 2:
            return [binary(X, codes == 1, self._shift(0))]
        if self.multi_class == "one_vs_rest":
            return [binary(X, codes == c, self._shift(c)) for c in range(C)]
        pairs = []
        for i, j in pairs_of(C):
            rows = np.flatnonzero((codes == i) | (codes == j))
            weights = None if given is None else given[rows]
            pairs.append(binary(select(X, rows), codes[rows] == i, self._shift(i, j), weights))
        return pairs

    def _check_combination(self) -> None:
        if self.n_classes_ > 2 and self.multi_class == "softmax":
            if self.inference != "laplace" or self.link != "logistic":
                raise ModelError(
                    f"multi_class='softmax' is Laplace's approximation with the softmax link, the logistic one for "
                    f"many classes; inference={self.inference!r}, link={self.link!r} go with 'one_vs_rest' and "
                    f"'one_vs_one'."
                )

    def _all_fits(self, problems: list[Problem], olds: list[Any], seeds: list[int]) -> list[LatentFit]:
        tasks = list(zip(problems, olds, seeds, strict=True))
        if len(tasks) == 1 or self.n_jobs in (None, 1):
            return [self._fit_one(*task) for task in tasks]
        from joblib import Parallel, delayed

        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(self._fit_one)(*task) for task in tasks))

    def _store(self, fits: list[LatentFit]) -> None:
        self.fits_ = tuple(fits)
        one = len(fits) == 1
        self.kernel_: Any = self._bare(fits[0].kernel) if one else tuple(self._bare(fit.kernel) for fit in fits)
        self.posterior_: Any = fits[0].posterior if one else tuple(fit.posterior for fit in fits)
        self.searches_ = tuple(fit.search for fit in fits)
        self.log_marginal_likelihood_value_ = float(np.mean([fit.log_evidence for fit in fits]))
        if self._extra is not None and hasattr(fits[0].posterior, "root"):
            found = tuple(self._weights_of(fit.posterior) for fit in fits)
            self.beta_: Any = found[0] if one else found

    def _weights_of(self, process: Any) -> FloatArray:
        """E β = b + B Hᵀα of one process."""
        phi: Any = getattr(self._extra, "phi", None)
        b = 0.0 if process.shift is None else process.shift.weights
        return np.asarray(b + phi.root @ (phi(process.X).T @ process.alpha))

    # -- answers ------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """The most probable class of each point, (n,). Two classes: the sign of the latent mean, O(n) a point."""
        if self._binary and self.fits_[0].mixture is None:
            mean = self.posterior_.latent_mean(self._new_points(X))
            return self.classes_[(mean > 0.0).astype(np.intp)]
        return self.classes_[self.predict_log_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any, average: bool = True) -> FloatArray:
        """p(class | x), (n, C), columns as in `classes_`.

        `average=True`: ∫ p(class | f) q(f | x) df, averaged over the posterior of the latent value, which moves towards
        even odds where the data say little. `average=False`: the plug-in probability at the posterior mean of f.
        """
        return np.exp(self.predict_log_proba(X, average=average))

    def predict_log_proba(self, X: Any, average: bool = True) -> FloatArray:
        """log p(class | x), (n, C): finite however small the probabilities are."""
        X = self._new_points(X)
        one = _log_softmax if not self._binary and self.multi_class == "softmax" else _log_binary
        parts = [_mixed(one, fit, X, average) for fit in self.fits_]
        if len(parts) == 1:
            return parts[0]
        if self.multi_class == "one_vs_rest":
            votes = np.stack([part[:, 1] for part in parts], axis=1)
            return votes - np.logaddexp.reduce(votes, axis=1, keepdims=True)
        R = np.full((count(X), self.n_classes_, self.n_classes_), 0.5)
        for (i, j), part in zip(pairs_of(self.n_classes_), parts, strict=True):
            p = np.exp(np.clip(part, -30.0, 0.0))  # a pair that is sure beyond 1e-13 makes the coupling singular
            R[:, i, j], R[:, j, i] = p[:, 1], p[:, 0]
        return np.log(np.maximum(couple(R), 1e-300))

    @property
    def _binary(self) -> bool:
        check_is_fitted(self)
        return self.n_classes_ == 2

    def latent_mean_and_variance(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance of the latent function, each (n,); (n, processes) for more than two classes."""
        X = self._new_points(X)
        if self._binary:
            mean, var = self.posterior_.latent(X)
            return mean, var
        if self.multi_class == "softmax":
            mean, cov = self.posterior_.latent(X)
            return mean, np.einsum("mcc->mc", cov).copy()
        found = [process.latent(X) for process in self.posterior_]
        return np.stack([m for m, _ in found], axis=1), np.stack([v for _, v in found], axis=1)

    def sample_latent(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> FloatArray:
        """Draws of the latent function, jointly at all points: (n, n_samples); (n, processes, n_samples) for more."""
        X = self._new_points(X)
        rng = generator(random_state)
        if self._binary:
            return self.posterior_.sample(X, n_samples, random_state=rng).T
        if self.multi_class == "softmax":
            return np.moveaxis(self.posterior_.sample(X, n_samples, random_state=rng), 0, 2)
        return np.stack([p.sample(X, n_samples, random_state=rng).T for p in self.posterior_], axis=1)

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> float | tuple[float, FloatArray]:
        """Approximate log evidence of the training labels at theta (None: at the learned parameters), and its gradient.

        With several processes it is their mean; theta then holds one set of parameters for all of them, or one set
        after the other. `clone_kernel` is there for scikit-learn's users: kernels are values, nothing is changed.
        """
        check_is_fitted(self)
        fits = self.fits_
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        p = len(fits[0].kernel.theta)
        if theta is None:
            theta = np.concatenate([fit.kernel.theta for fit in fits])
        shared = np.shape(theta) == (p,)
        parts = np.split(self._theta_of(theta, p if shared else p * len(fits)), 1 if shared else len(fits))
        problems = self._problems(self.X_train_, self.y_train_)
        found = [
            problem.evidence(fit.kernel.with_theta(parts[0 if shared else i]), eval_gradient, fit.start)
            for i, (problem, fit) in enumerate(zip(problems, fits, strict=True))
        ]
        value = float(np.mean([one.value for one in found]))
        if not eval_gradient:
            return value
        slopes = [one.theta for one in found if one.theta is not None]
        return value, np.mean(slopes, axis=0) if shared else np.concatenate(slopes) / len(fits)


def _mixed(one: Callable[..., FloatArray], fit: LatentFit, X: Any, average: bool) -> FloatArray:
    """log Σ w_i p_i over the posteriors of a fit, (n, C)."""
    logs = [np.log(weight) + one(process, X, average) for weight, process in fit.parts if weight > 0.0]
    return logs[0] if len(logs) == 1 else np.logaddexp.reduce(logs, axis=0)


def _log_binary(process: Any, X: Any, average: bool) -> FloatArray:
    """log p of both classes, (n, 2)."""
    likelihood = process.likelihood
    if average:
        mean, var = process.latent(X)
        sides = [likelihood.log_predictive(s, mean, var) for s in (-1.0, 1.0)]
    else:
        mean = process.latent_mean(X)
        sides = [likelihood.log_density(s, mean) for s in (-1.0, 1.0)]
    return np.stack(sides, axis=1)


def _log_softmax(process: Any, X: Any, average: bool) -> FloatArray:
    """log p of all classes, (n, C)."""
    link = process.likelihood
    if not average:
        return link.log_response(process.latent_mean(X))
    return np.log(np.maximum(link.averaged(*process.latent(X)), 1e-300))
