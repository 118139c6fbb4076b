"""Bayesian logistic regression."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gramgraph._interrupt import interruptible
from gramgraph._validation import check_choice, check_count, check_positive
from gramgraph.distributions import Gaussian
from gramgraph.estimators._classes import read_classes, weighed
from gramgraph.estimators._numbers import read_numbers
from gramgraph.estimators._sound import SoundNumbers
from gramgraph.exceptions import ConvergenceWarning, ModelError, OptionError, StateError, listing
from gramgraph.gp._integrals import log_sigmoid_integral, softmax_integral
from gramgraph.machines.logistic import LINKS, GaussianPrior, Mode, Rows, are_separable, find_mode
from gramgraph.machines.mixtures.gaussian import Scale
from gramgraph.typing import Array, FloatArray

_INSTEAD = " Give it 0/1 columns (pandas.get_dummies), or use gg.estimators.NaiveBayesClassifier, which takes labels"
_ROWS = 4096


@dataclass(eq=False, repr=False)
class BayesianLogisticRegression(ClassifierMixin, SoundNumbers, BaseEstimator):  # type: ignore[misc]
    """p(class | x) from wᵀx + b with the posterior of the weights by Laplace: N(mode, A⁻¹), A the curvature there.

    Parameters
    ----------
    link : "logistic" (softmax where there are more than two classes), "probit" (two classes), "softmax".
    prior : precision α of weights w ~ N(0, I/α), b flat, which is scikit-learn's 1/C; "evidence" learns α by the
        evidence; None: no prior (maximum likelihood); or (m0, S0), mean and covariance of all weights, for each class
        those of the columns and then b, S0 a matrix, a vector of variances or one number.
    solver : "irls" (Newton's steps, O(n d²) each) or "gradient" (quasi-Newton, O(n d) each).
    max_iter, tol : a step that moves the weights by less than `tol` of their posterior deviations is the last.

    Notes
    -----
    `predict_proba` averages over the posterior of the weights, which is less sure where the data say little;
    `average=False` plugs in the mode. Where no prior is given and the classes can be parted without an error, no finite
    weights are best: an error says so.

    Attributes
    ----------
    classes_, coef_ (1, d) or (classes, d), intercept_, sigma_ (covariance of all weights, for each row of coef_ those
    of the columns and then b), alpha_ (where prior is a precision), log_evidence_ (a flat b has density 1), n_iter_.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> X = np.array([[-2.0], [-1.0], [-0.5], [0.4], [1.0], [2.5]])
    >>> model = gg.BayesianLogisticRegression().fit(X, [0, 0, 1, 0, 1, 1])
    >>> far = [[20.0]]
    >>> bool(model.predict_proba(far)[0, 1] < model.predict_proba(far, average=False)[0, 1])
    True
    """

    link: str = "logistic"
    _: KW_ONLY
    prior: Any = 1.0
    solver: str = "irls"
    max_iter: int = 100
    tol: float = 1e-4

    # ------------------------------------------------------------------------------------------ learning

    @interruptible()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the most probable weights and the curvature there."""
        self._check_options()
        X = read_numbers(self, X, reset=True, gaps=False, instead=_INSTEAD)
        X, y, w = weighed(X, y, sample_weight)
        self.classes_, codes = read_classes(y, X, name=type(self).__name__)
        self._open(X, w)
        self._learn(self._rows(X, codes, w), None)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows: the posterior so far is the prior. The first call names or shows all `classes`."""
        self._check_options()
        if self.prior is None:
            raise OptionError("partial_fit needs a prior: the posterior of each block is the prior of the next")
        first = not hasattr(self, "_posterior")
        X = read_numbers(self, X, reset=first, gaps=False, instead=_INSTEAD)
        X, y, w = weighed(X, y, sample_weight)
        found, codes = read_classes(y, X, name=type(self).__name__, least=1)
        if first:
            self.classes_ = found if classes is None else np.unique(np.asarray(classes))
            if len(self.classes_) < 2:
                raise ModelError("the first block shows one class only: name all of them, classes=…")
            self._open(X, w)
        strange = [label for label in found.tolist() if label not in self.classes_.tolist()]
        if strange:
            raise StateError(
                f"{strange[0]!r} is not one of the classes of the first call: "
                f"{listing(map(repr, self.classes_.tolist()))}"
            )
        codes = np.searchsorted(self.classes_, found)[codes]
        self._learn(self._rows(X, codes, w), None if first else self._posterior)
        return self

    def _check_options(self) -> None:
        check_choice("link", self.link, LINKS)
        check_choice("solver", self.solver, ("irls", "gradient"))
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol)
        if isinstance(self.prior, str):
            check_choice("prior", self.prior, ("evidence",))
        elif not (self.prior is None or isinstance(self.prior, (tuple, list))):
            check_positive("prior", self.prior)

    def _open(self, X: FloatArray, w: FloatArray | None) -> None:
        """Units in which the columns have mean 0 and deviation 1, and the link."""
        scale = Scale.of(X, w, "full")
        self._center, self._unit = scale.center, scale.unit
        k = len(self.classes_)
        if self.link == "probit" and k > 2:
            raise ModelError(f"the probit link is one of two classes; y has {k}. Use link='softmax' instead")
        self._link = "softmax" if self.link == "logistic" and k > 2 else self.link
        self._q = k if self._link == "softmax" else 1

    def _features(self, X: FloatArray) -> FloatArray:
        Z = np.empty((len(X), X.shape[1] + 1))
        np.subtract(X, self._center, out=Z[:, :-1])
        Z[:, :-1] /= self._unit
        Z[:, -1] = 1.0
        return Z

    def _rows(self, X: FloatArray, codes: Any, w: FloatArray | None) -> Rows:
        return Rows(self._features(X), codes, w, self._link, self._q)

    def _learn(self, rows: Rows, posterior: GaussianPrior | None) -> None:
        if posterior is not None:
            mode, prior = self._mode(rows, posterior), posterior
        elif self.prior == "evidence":
            mode, prior = self._by_evidence(rows)
        else:
            prior = self._first_prior()
            mode = self._mode(rows, prior)
        if not mode.converged:
            warnings.warn(
                f"no convergence in {self.max_iter} steps. Raise max_iter, or bring the columns to similar scales",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._keep(mode, prior)

    def _mode(self, rows: Rows, prior: GaussianPrior, start: FloatArray | None = None) -> Mode:
        try:
            mode = find_mode(rows, prior, solver=self.solver, start=start, max_iter=self.max_iter, tol=self.tol)
        except np.linalg.LinAlgError:
            mode = None
        if self.prior is None and (mode is None or not mode.converged or _is_flat(mode.precision, len(rows.Z))):
            if are_separable(rows.Z, rows.codes, len(self.classes_)):
                raise ModelError(
                    "the classes can be parted without an error, so that no finite weights are best. Give a prior: "
                    "prior=1.0, or prior='evidence'"
                )
            if mode is None or _is_flat(mode.precision, len(rows.Z)):
                raise ModelError(
                    "the columns are linearly dependent, so that the weights are not determined. Leave one out, or "
                    "give a prior: prior=1.0"
                )
        if mode is None:
            raise ModelError("the curvature at the weights is singular: give a stronger prior, or scale the columns")
        return mode

    def _first_prior(self, alpha: float | None = None) -> GaussianPrior:
        """The prior of v in our units, where w = v / unit and b = v_last − Σ w center."""
        d, q = len(self._center), self._q
        M = d + 1
        if isinstance(self.prior, (tuple, list)):
            return self._given_prior(M, q)
        if self.prior is not None:
            self.alpha_ = float(self.prior) if alpha is None else alpha
        P = np.zeros((q, M, q, M))
        own = np.zeros(M)
        if self.prior is not None:
            own[:d] = self.alpha_ / self._unit**2
        for k in range(q):
            P[k, :, k, :] = np.diag(own)
        if q > 1:  # only differences between classes count: where nothing else does, a sum of 0 fixes the rest
            free = np.flatnonzero(own == 0.0)
            P[:, free, :, free] += 1.0 / q
        return GaussianPrior(np.zeros(q * M), P.reshape(q * M, q * M))

    def _given_prior(self, M: int, q: int) -> GaussianPrior:
        size = q * M
        try:
            m0, S0 = (np.asarray(part, dtype=np.float64) for part in self.prior)
            m0 = np.broadcast_to(m0, (size,))
            S0 = S0 if S0.ndim == 2 else np.diag(np.broadcast_to(S0, (size,)))
            if S0.shape != (size, size):
                raise ValueError
            np.linalg.cholesky(S0)
        except (TypeError, ValueError, np.linalg.LinAlgError):
            raise OptionError(
                f"prior=(m0, S0) must be the mean ({size},) and a positive definite covariance ({size}, {size}) of the "
                f"weights: {q} times {M - 1} columns and b"
            ) from None
        back = np.linalg.inv(self._leave())
        P = np.linalg.inv(back @ S0 @ back.T)
        return GaussianPrior(np.asarray(back @ m0), np.asarray(0.5 * (P + P.T)))

    def _leave(self) -> FloatArray:
        """The matrix from weights in our units to the user's."""
        d = len(self._center)
        T = np.zeros((d + 1, d + 1))
        T[:d, :d] = np.diag(1.0 / self._unit)
        T[d, :d] = -self._center / self._unit
        T[d, d] = 1.0
        return np.asarray(np.kron(np.eye(self._q), T), dtype=np.float64)

    def _by_evidence(self, rows: Rows) -> tuple[Mode, GaussianPrior]:
        """The precision α that makes Laplace's evidence largest, by a search along log α from MacKay's first steps."""
        from scipy.optimize import minimize_scalar

        best: dict[float, tuple[Mode, GaussianPrior]] = {}
        near: list[FloatArray] = []

        def minus(log_alpha: float) -> float:
            prior = self._first_prior(float(np.exp(log_alpha)))
            mode = self._mode(rows, prior, near[-1] if near else None)
            near.append(mode.weights)
            best[log_alpha] = mode, prior
            return -self._evidence(mode, prior)

        around = float(np.log(np.median(self._unit**2)))
        found = minimize_scalar(minus, bounds=(around - 12.0, around + 14.0), method="bounded", options={"xatol": 1e-4})
        mode, prior = best[min(best, key=lambda at: abs(at - found.x))]
        self.alpha_ = float(np.exp(found.x))
        return mode, prior

    def _evidence(self, mode: Mode, prior: GaussianPrior) -> float:
        """log p(classes) = −E + ½ log|P| − ½ log|A|, over directions with a prior; flat ones have density 1."""
        values = np.linalg.eigvalsh(prior.precision)
        proper = values > 1e-10 * max(values[-1], 1e-300)
        flat = int((~proper).sum())
        log_P = float(np.log(values[proper]).sum())
        log_A = float(np.linalg.slogdet(mode.precision)[1])
        return -mode.loss - mode.penalty + 0.5 * (log_P - log_A) + 0.5 * flat * float(np.log(2.0 * np.pi))

    def _keep(self, mode: Mode, prior: GaussianPrior) -> None:
        d = len(self._center)
        self._v = mode.weights
        C = np.linalg.inv(mode.precision)
        self._C = 0.5 * (C + C.T)
        self._posterior = GaussianPrior(mode.weights.reshape(-1), mode.precision)
        self.coef_ = mode.weights[:, :d] / self._unit
        self.intercept_ = mode.weights[:, d] - self.coef_ @ self._center
        T = self._leave()
        self.sigma_ = T @ self._C @ T.T
        self.log_evidence_ = self._evidence(mode, prior)
        self.n_iter_ = mode.n_iter

    # ------------------------------------------------------------------------------------------ answers

    def weights(self) -> Gaussian:
        """The posterior of all weights as a `Gaussian`: for each row of coef_ those of the columns, then b."""
        check_is_fitted(self, "coef_")
        return Gaussian(np.column_stack([self.coef_, self.intercept_]).reshape(-1), self.sigma_)

    def _new(self, X: Any) -> FloatArray:
        check_is_fitted(self, "coef_")
        return self._features(read_numbers(self, X, reset=False, gaps=False, instead=_INSTEAD))

    def latent(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f = wᵀx + b, (n,) each; for a softmax means (n, classes) and covariances."""
        return self._latent(self._new(X))

    def _latent(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        F = Z @ self._v.T
        q, M = self._v.shape
        if q == 1:
            return F[:, 0], np.maximum(np.einsum("ni,ni->n", Z @ self._C, Z), 0.0)
        C = self._C.reshape(q, M, q, M)
        S = np.empty((len(Z), q, q))
        for k in range(q):
            for j in range(k, q):
                S[:, k, j] = S[:, j, k] = np.einsum("ni,ni->n", Z @ C[k, :, j, :], Z)
        return F, S

    def decision_function(self, X: Any) -> FloatArray:
        """wᵀx + b at the mode: (rows,) for two classes, else (rows, classes)."""
        F = self._new(X) @ self._v.T
        if self._q == 1:
            return np.asarray(F[:, 0])
        return np.asarray(F[:, 1] - F[:, 0] if len(self.classes_) == 2 else F)

    def predict_proba(self, X: Any, average: bool = True) -> FloatArray:
        """p(class | row), (rows, classes): averaged over the posterior of the weights, or at their mode."""
        return np.exp(self.predict_log_proba(X, average=average))

    def predict_log_proba(self, X: Any, average: bool = True) -> FloatArray:
        """log p(class | row), (rows, classes)."""
        Z = self._new(X)
        parts = [self._log_proba(Z[at : at + _ROWS], average) for at in range(0, len(Z), _ROWS)]
        return np.concatenate(parts)

    def _log_proba(self, Z: FloatArray, average: bool) -> FloatArray:
        if self._q > 1:
            if average:
                return np.log(np.maximum(softmax_integral(*self._latent(Z)), 1e-300))
            F = Z @ self._v.T
            F = F - F.max(axis=1, keepdims=True)
            return np.asarray(F - np.log(np.exp(F).sum(axis=1, keepdims=True)))
        if average:
            mean, var = self._latent(Z)
        else:
            mean = (Z @ self._v.T)[:, 0]
            var = np.zeros(len(Z))
        if self._link == "probit":
            from scipy.special import log_ndtr

            at = mean / np.sqrt(1.0 + var)
            return np.column_stack([log_ndtr(-at), log_ndtr(at)])
        if not average:
            return -np.logaddexp(0.0, np.column_stack([mean, -mean]))
        return np.column_stack([log_sigmoid_integral(-mean, var), log_sigmoid_integral(mean, var)])

    def predict(self, X: Any) -> Array:
        """The most probable class of each row, at the mode of the weights."""
        f = self.decision_function(X)
        return np.asarray(self.classes_[(f > 0.0).astype(int) if f.ndim == 1 else f.argmax(axis=1)])


def _is_flat(A: FloatArray, n: int) -> bool:
    """Whether some direction is next to undetermined, in columns of deviation 1."""
    return bool(np.linalg.eigvalsh(A)[0] < 1e-6 * n)
