"""Relevance vector machines: sparse Bayesian regression and classification on kernel columns.

f(x) = w₀ + Σᵢ wᵢ k(x, xᵢ) with w ~ N(0, diag(α)⁻¹). Maximizing the evidence over α drives most αᵢ to infinity; the
training points that remain are the relevance vectors. Sources: Tipping, "Sparse Bayesian learning and the relevance
vector machine" (2001); Tipping and Faul, "Fast marginal likelihood maximisation for sparse Bayesian models" (2003).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from gramgraph._validation import check_choice, check_positive
from gramgraph.estimators._rvm_base import RelevanceMachine
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.machines.kernels import ResolvedKernel
from gramgraph.machines.rvm import Columns, fit_classes, fit_output
from gramgraph.typing import FloatArray


@dataclass(eq=False, repr=False)
class RVR(RegressorMixin, MultiOutputMixin, RelevanceMachine):
    """Relevance vector regression: few kernel columns, chosen by the evidence, with predictive standard deviations.

    p(y | x) = N(μᵀφ(x), σ² + φ(x)ᵀ Σ φ(x)) with Σ = (diag(α) + ΦᵀΦ/σ²)⁻¹ and μ = ΣΦᵀy/σ², α and σ² at the maximum of
    the evidence N(y | 0, σ²I + Φ diag(α)⁻¹ Φᵀ), an intercept with a flat prior integrated out. The fit begins with all
    columns in the model (350 of them, spread over the data, when there are more), re-estimates their α together until
    few are left, and goes on with single changes until none helps. The Gram matrix is computed once; a step then costs
    O(n m) for m columns in the model, memory is O(n²), or O(n · landmarks). Where weights cancel so that this loses its
    digits (a wide kernel and next to no noise), the fit begins again with wider priors and takes the slower way of QR
    decompositions, which keeps them: O(n r m) a step, for columns that span r dimensions.

    This maximum trusts its choice of columns too much. With `average` its posterior is averaged with that of dense
    models on the columns the fit began with, w ~ N(0, K^(p−2)/α) for p = 1 (a Gaussian process), 1.5, 2 and 3, weighed
    by their evidence. One half is the sparse model's (more where its evidence is higher even with ½ log n taken off for
    each α). Mean and covariance of the average are projected on as few columns as carry the averaged curve: their
    weights are fitted to that curve, not to y. Where the sparse model is nearer to the average than its projection on
    few well-conditioned columns (next to no noise), the sparse model is given. The average adds O(s³ + n s²) for the
    s ≤ 350 columns the fit began with, and O(n²) for each column that is tried.

    Far from all relevance vectors the columns of an RBF kernel vanish, and the standard deviation falls to that of the
    noise and the intercept: it does not say how little is known there.

    Parameters
    ----------
    kernel : a kernel value, "rbf", "linear", "poly", "precomputed", or a function of two matrices
    gamma, degree, coef0 : of the kernels given by name
    bias : whether there is an intercept; with it, y + c is fitted as y, plus c
    basis : "all" training points as candidates, or a number of them drawn at random (`random_state`)
    noise : "learn", or the known noise variance
    average : whether the average of both posteriors is given; without, the posterior at the maximum of the evidence
    tol : stop when no single change raises the log evidence by this much
    max_iter : most steps; a step adds, re-estimates or removes one column
    random_state : of the draw of landmarks

    Attributes
    ----------
    relevance_, relevance_vectors_ : training points in the model (for several outputs: in any of the models)
    alpha_, mu_, sigma_ : prior precisions, posterior mean and covariance of the weights, the intercept (α = 0) first;
        of an average the precisions are 1 / E[w²]
    noise_ : noise variance; evidence_ : log evidence after each single change, never falling, before the average
    fits_ : one `SparseFit` an output; with several outputs the attributes above are lists in the same order

    Examples
    --------
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

    _: KW_ONLY
    noise: str | float = "learn"
    average: bool = True

    def _noise(self) -> float | None:
        """The known noise variance, or None when it is to be learned."""
        if not isinstance(self.noise, str):
            return check_positive("noise", self.noise)
        if self.noise != "learn":
            raise ModelError(f"noise must be 'learn' or a positive variance; it is {self.noise!r}.")
        return None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RVR:
        """Choose columns and weights; y of shape (n,) or (n, outputs), each output with its own model.

        A case of `sample_weight` 2 counts as the case written twice; cases of weight 0 take no part.
        """
        self._check_parameters()
        check_choice("average", self.average, (True, False))
        known = self._noise()
        X = self._points(X, reset=True, least=2)
        y = self._targets(y, count(X))
        kept, weights = self._weigh(X, sample_weight)
        if len(kept) < 2:
            raise ModelError("RVR needs at least two points to tell noise from signal; n_samples = 1.")
        used = self._select(X, kept)
        self.kernel_: ResolvedKernel = self._resolve(used, weights)
        points = self._candidates(count(used))

        @cache
        def columns_of(same: bool) -> Columns:
            T = self._design(used, points, same=same)
            return Columns.of(T, points, weights, kept, bias=self.bias, kernel=self.average)

        columns = columns_of(self.average)  # the same digits cost next to nothing beside an average
        targets = np.array(y[kept][:, None] if y.ndim == 1 else y[kept])
        fits = [
            fit_output(columns, t, noise=known, tol=self.tol, max_iter=self.max_iter, again=lambda: columns_of(True).T)
            for t in np.ascontiguousarray(targets.T)
        ]
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
                deviations.append(np.sqrt(fit.noise + fit.variance(features)))
        mean = means[0] if self._single else np.column_stack(means)
        if not return_std:
            return mean
        return mean, deviations[0] if self._single else np.column_stack(deviations)


class RVC(ClassifierMixin, RelevanceMachine):
    """Relevance vector classification: a sparse logistic model (softmax for several classes) with probabilities.

    Two classes: p(second class | x) = 1/(1 + exp(−a(x))), the evidence by Laplace's approximation around the most
    probable weights. K > 2 classes: the columns and precisions α of each latent function a_k come from "class k against
    the rest"; the weights are then the most probable ones of the joint model p(k | x) = exp(a_k) / Σ_j exp(a_j).
    Probabilities are those at the most probable weights.

    Parameters are those of `RVR`, without noise; the constant column of `bias` is a candidate like the others, and the
    fit begins with the empty model (and once more with the constant, where it was left out). Attributes: `classes_`,
    and `relevance_`, `relevance_vectors_`, `alpha_`, `mu_`, `sigma_`, `evidence_`, `fits_` as there (lists, one entry a
    class, when there are more than two).

    Parameters
    ----------
    kernel, gamma, degree, coef0, bias, basis, tol, max_iter, random_state : as in `RVR`.

    Examples
    --------
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RVC:
        """Choose columns and weights; y holds at least two classes, numbers or strings.

        A case of `sample_weight` 2 counts as the case written twice; cases of weight 0 take no part.
        """
        self._check_parameters()
        X = self._points(X, reset=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: RVC learns from labels.")
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if len(y) != count(X):
            raise ModelError(f"X has {count(X)} points and y {len(y)} labels: inconsistent numbers of samples.")
        kept, weights = self._weigh(X, sample_weight)
        self.classes_, codes = np.unique(y[kept], return_inverse=True)
        if len(self.classes_) < 2:
            raise ModelError(
                f"RVC needs at least two classes; y holds one class, {self.classes_[0]!r}, in n_samples = {len(kept)}."
            )
        used = self._select(X, kept)
        self.kernel_: ResolvedKernel = self._resolve(used, weights)
        head = int(self.bias)
        points = self._candidates(count(used))
        T = self._design(used, points, head)
        T[:head] = 1.0
        fits = fit_classes(T, codes, kept[points], weights=weights, tol=self.tol, max_iter=self.max_iter)
        self._keep(X, fits)
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
