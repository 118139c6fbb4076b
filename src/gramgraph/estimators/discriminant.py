"""Classes as Gaussians (linear, quadratic, naive), and Fisher's discriminant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramgraph._numerics.mixtures.statistics import normalize_logs
from gramgraph._validation import check_choice, check_count
from gramgraph.distributions import NormalInverseWishart
from gramgraph.estimators._classes import read_classes, weighed
from gramgraph.estimators._gaussian_network import gaussian_network
from gramgraph.estimators._numbers import column_names, read_numbers
from gramgraph.estimators._sound import SoundNumbers
from gramgraph.exceptions import OptionError
from gramgraph.learn.linear import FEW
from gramgraph.linalg.floors import FLOOR, GROUP_FLOOR, at_least
from gramgraph.machines.discriminant import (
    distinct_rows,
    fill_up,
    fisher_directions,
    labelled_gaussians,
    linear_scores,
    posterior_means,
    scaled_moments,
)
from gramgraph.machines.mixtures.gaussian import GaussianParameters, GaussianRows, Scale
from gramgraph.machines.mixtures.sweeps import Moments, diagonal_pass, full_pass, log_weights
from gramgraph.models import BayesianNetwork
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import discrete

TARGET = "class"
_ROWS = 4096  # of a block that stays in the cache
_SHAPES = {"shared": "tied", "own": "full", "diagonal": "diag"}
_INSTEAD = " Use gg.estimators.NaiveBayesClassifier, which takes labels, or leave the column out"


@dataclass(eq=False, repr=False)
class GaussianClassifier(ClassifierMixin, SoundNumbers, BaseEstimator):  # type: ignore[misc]
    """p(class | x) ∝ π_c N(x; μ_c, Σ_c): missing features are integrated out, in training and in answers.

    Parameters
    ----------
    covariance : "shared" (one Σ: linear discriminant), "own" (quadratic), "diagonal" (Gaussian naive Bayes).
    priors : π, in the order of the sorted classes; None takes the shares of the training rows.
    prior : None, or a `gg.distributions.NormalInverseWishart` of every (μ_c, Σ_c); posterior means are taken.
    unbiased : divide squares by n − classes ("shared") or n_c − 1 (else), not by n.

    Notes
    -----
    A class with fewer than d + 4 different rows ("own"; all together fewer than d + classes + 4, "shared") is filled up
    to so many with rows whose columns are independent and spread as in all rows. The variance of a class is not taken
    for less than 1e-8 times that of all rows and 1e-12 times the column's together: constant columns have a density.

    Attributes
    ----------
    classes_, class_prior_ (k,), means_ (k, d), covariances_ ((d, d) shared, (k, d, d) own, (k, d) diagonal); shared
    also coef_ (k, d) and intercept_ (k,) of the scores; network_: "class -> x", or a variable for each column.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> X = np.array([[0.0, 0.0], [0.2, 0.3], [0.1, -0.2], [3.0, 3.1], [3.2, 2.8], [2.9, 3.3]])
    >>> model = gg.GaussianClassifier().fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> model.predict([[0.1, np.nan], [np.nan, 3.0]]).tolist()
    ['a', 'b']
    """

    covariance: str = "shared"
    _: KW_ONLY
    priors: Any = None
    prior: NormalInverseWishart | None = None
    unbiased: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn a Gaussian for every class."""
        check_choice("covariance", self.covariance, tuple(_SHAPES))
        check_choice("unbiased", self.unbiased, (True, False))
        X = read_numbers(self, X, reset=True, instead=_INSTEAD)
        X, y, w = weighed(X, y, sample_weight)
        self.classes_, codes = read_classes(y, X, name=type(self).__name__)
        k, d = len(self.classes_), X.shape[1]
        self.__dict__.pop("network_", None)
        if np.isnan(X.sum()):
            scale = Scale.of(X, w, "full")
            moments = labelled_gaussians(scale.enter(X), codes, k, w, _SHAPES[self.covariance])
        else:
            moments, scale = scaled_moments(X, codes, k, w)
        self._center, self._unit = scale.center, scale.unit
        self.class_prior_ = self._class_prior(moments.n)
        shown = distinct_rows(X, codes, k, 4 * (d + FEW)) if self.covariance != "diagonal" else None
        means, C = self._estimate(moments, self._prior_in(scale, d), shown)
        self._means, self._covariances = means, C
        u = scale.unit
        self.means_ = means * u + scale.center
        full = C * np.outer(u, u)
        self.covariances_ = (
            full[0]
            if self.covariance == "shared"
            else np.einsum("kii->ki", full)
            if self.covariance == "diagonal"
            else full
        )
        if self.covariance == "shared":
            W, b = linear_scores(log_weights(self.class_prior_), means, C[0], self._least)
            self.coef_ = W / u
            self.intercept_ = b - self.coef_ @ scale.center
            self._scores = W, b
        return self

    def _class_prior(self, n: FloatArray) -> FloatArray:
        if self.priors is None:
            return np.asarray(n / n.sum())
        given = np.asarray(self.priors, dtype=np.float64)
        if given.shape != n.shape or not np.isfinite(given).all() or (given < 0.0).any() or not given.sum() > 0.0:
            raise OptionError(f"priors must be {len(n)} probabilities, one for each class, not {self.priors!r:.60}")
        return np.asarray(given / given.sum())

    def _prior_in(self, scale: Scale, d: int) -> Any:
        if self.prior is None:
            return None
        if not isinstance(self.prior, NormalInverseWishart) or len(self.prior.mean) != d:
            raise OptionError(f"prior is None or a gg.distributions.NormalInverseWishart of {d} columns")
        p, u = self.prior, scale.unit
        return scale.enter(p.mean), p.count, p.dof, p.scale / np.outer(u, u)

    def _estimate(self, moments: Moments, prior: Any, shown: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        n, d = moments.n, moments.mean.shape[1]
        shared = self.covariance == "shared"
        total = moments.scatter.sum(axis=0) / n.sum()
        off = moments.mean - (n @ moments.mean) / n.sum()
        spread = total + off.T @ (n[:, None] / n.sum() * off)
        least = GROUP_FLOOR * at_least(spread, FLOOR * np.eye(d)) + FLOOR * np.eye(d)
        if self.covariance == "diagonal":
            least = np.diag(np.diag(least))
        self._least = least
        if prior is not None:
            mean, C = posterior_means(moments, prior, shared)
        else:
            mean, C = moments.mean, self._divided(moments, shown, np.diag(np.diag(spread)))
        if self.covariance == "diagonal":
            C = C * np.eye(d)
            return mean, np.maximum(C, least)
        if shared:
            return mean, np.repeat(at_least(C[0], least)[None], len(n), axis=0)
        return mean, np.array([at_least(one, least) for one in C])

    def _divided(self, moments: Moments, shown: FloatArray | None, spread: FloatArray) -> FloatArray:
        """Squares over counts; where too few different rows are there for d columns, filled up."""
        d, k = len(spread), len(moments.n)
        if self.covariance == "shared":
            n = moments.n.sum(keepdims=True)
            pooled = Moments(n, moments.mean[:1], moments.scatter.sum(axis=0, keepdims=True))
            lost: Any = k if self.unbiased and n[0] > k else 0.0
            full = pooled if shown is None else fill_up(pooled, shown.sum(keepdims=True), d + k + FEW, spread)
            return np.repeat(full.scatter / (full.n[0] - lost), k, axis=0)
        full = moments if shown is None else fill_up(moments, shown, d + FEW, spread)
        lost = np.where(full.n > 1.0, 1.0, 0.0) if self.unbiased else 0.0
        return np.asarray(full.scatter / (full.n - lost)[:, None, None])

    # ------------------------------------------------------------------------------------------ answers

    def _new(self, X: Any) -> FloatArray:
        check_is_fitted(self, "classes_")
        return read_numbers(self, X, reset=False, instead=_INSTEAD)

    def _log_joint(self, X: FloatArray, *, normalized: bool = False) -> Iterator[tuple[slice, FloatArray]]:
        """log p(class) + log p(x | class), (k, rows), of blocks of rows in our units.

        Where Σ is shared, what all classes have in common is left out unless they are to be `normalized`.
        """
        if np.isnan(X.sum()):
            shape = "diag" if self.covariance == "diagonal" else "full"
            rows = GaussianRows((X - self._center) / self._unit, None, shape)
            yield slice(None), np.ascontiguousarray(rows.logs(self._parameters).T)
            return
        linear = self.covariance == "shared" and not normalized
        logs_of, size = (self._linear, _ROWS) if linear else self._density()
        for at in range(0, len(X), size):
            yield slice(at, at + size), logs_of(X[at : at + size])

    def _linear(self, X: FloatArray) -> FloatArray:
        W, b = self._scores
        logs = (W / self._unit) @ (X - self._center).T
        logs += b[:, None]
        return np.asarray(logs)

    @property
    def _parameters(self) -> GaussianParameters:
        C = self._covariances
        return GaussianParameters(
            self.class_prior_, self._means, np.einsum("kii->ki", C) if self.covariance == "diagonal" else C
        )

    def _density(self) -> tuple[Callable[[FloatArray], FloatArray], int]:
        """Log joints of a block of rows, and how many rows a block may have."""
        p, logs = self._parameters, log_weights(self.class_prior_)
        if self.covariance == "diagonal":
            diagonal = diagonal_pass(logs, p.means, p.covariances, gaps=False)
            return lambda X: diagonal.logs(((X - self._center) / self._unit).T), diagonal.size
        full = full_pass(logs, p.means, p.covariances, moments=False).on_rows(self._center, self._unit)
        return lambda X: full.logs(X.T), _ROWS

    def predict_proba(self, X: Any) -> FloatArray:
        """p(class | what the row shows), (rows, classes)."""
        X = self._new(X)
        out = np.empty((len(X), len(self.classes_)))
        for rows, logs in self._log_joint(X):
            normalize_logs(logs)
            out[rows] = logs.T
        return out

    def _all_logs(self, X: Any) -> FloatArray:
        """Log joints of all rows, (rows, classes)."""
        X = self._new(X)
        out = np.empty((len(X), len(self.classes_)))
        for rows, logs in self._log_joint(X):
            out[rows] = logs.T
        return out

    def predict_log_proba(self, X: Any) -> FloatArray:
        """log p(class | row), finite however small the probabilities are."""
        logs = self._all_logs(X)
        top = logs.max(axis=1, keepdims=True)
        return np.asarray(logs - top - np.log(np.exp(logs - top).sum(axis=1, keepdims=True)))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        return np.asarray(self.classes_[self._all_logs(X).argmax(axis=1)])

    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of the second of two classes, (rows,); else log joints less their mean, (rows, classes)."""
        logs = self._all_logs(X)
        if logs.shape[1] == 2:
            return np.asarray(logs[:, 1] - logs[:, 0])
        return np.asarray(logs - logs.mean(axis=1, keepdims=True))

    def score_samples(self, X: Any) -> FloatArray:
        """log p(row), summed over the classes."""
        X = self._new(X)
        out = np.empty(len(X))
        for rows, logs in self._log_joint(X, normalized=True):
            out[rows] = normalize_logs(logs)
        return np.asarray(out - (~np.isnan(X)) @ np.log(self._unit))

    @cached_property
    def network_(self) -> BayesianNetwork:
        """The classifier as a Bayesian network; states "0", "1", … of "class" in the order of `classes_`."""
        check_is_fitted(self, "classes_")
        names = column_names(self, self.n_features_in_) if hasattr(self, "feature_names_in_") else None
        u = self._unit
        label = TARGET
        while names and label in names:
            label += "_"
        return gaussian_network(
            discrete(label, len(self.classes_)), self.class_prior_, self.means_, self._covariances * np.outer(u, u),
            names,
            dense=self.covariance != "diagonal",
        )  # fmt: skip


@dataclass(eq=False, repr=False)
class FisherDiscriminant(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClassifierMixin,
    SoundNumbers,
    BaseEstimator,  # type: ignore[misc]
):
    """Directions w that part classes best, max wᵀ S_B w / wᵀ S_W w; for two classes w ∝ S_W⁻¹ (m₂ − m₁).

    Parameters
    ----------
    weighting : "pooled" adds the squares of all rows around the means of their classes; "equal" divides those of every
        class by its count first, so that a large class does not rule the direction.
    n_components : how many directions `transform` gives; at most classes − 1, which is what None means.

    Notes
    -----
    Classes are told apart by Gaussians on the projection, each class with its own mean, covariance and share; for two
    classes `threshold_` is the point between the means where both are equally probable.

    Attributes
    ----------
    scalings_ (d, directions), of unit variance within classes (where pooled); classes_, separation_ (directions,):
    eigenvalues of S_W⁻¹ S_B; threshold_.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [4.0, 0.0], [5.0, 2.0], [6.0, 1.0]])
    >>> model = gg.FisherDiscriminant().fit(X, [0, 0, 0, 1, 1, 1])
    >>> model.transform(X).shape, model.score(X, [0, 0, 0, 1, 1, 1])
    ((6, 1), 1.0)
    """

    _: KW_ONLY
    weighting: str = "pooled"
    n_components: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the directions."""
        check_choice("weighting", self.weighting, ("pooled", "equal"))
        X = read_numbers(self, X, reset=True, gaps=False, instead=_INSTEAD)
        X, y, w = weighed(X, y, sample_weight)
        self.classes_, codes = read_classes(y, X, name=type(self).__name__)
        most = min(len(self.classes_) - 1, X.shape[1])
        kept = most if self.n_components is None else check_count("n_components", self.n_components, 1, most)
        moments, scale = scaled_moments(X, codes, len(self.classes_), w)
        W, values = fisher_directions(moments, self.weighting, 1e-10)
        self._center = scale.center
        self.scalings_ = (W[:kept] / scale.unit).T
        self.separation_ = values[:kept]
        self._n_features_out = kept
        self._gaussians = GaussianClassifier("own").fit(self._project(X), codes, w)
        if len(self.classes_) == 2 and kept == 1:
            self.threshold_ = _threshold(self._gaussians) + float(self._center @ self.scalings_[:, 0])
        return self

    def _project(self, X: FloatArray) -> FloatArray:
        return np.asarray((X - self._center) @ self.scalings_)

    def _new(self, X: Any) -> FloatArray:
        check_is_fitted(self, "classes_")
        return self._project(read_numbers(self, X, reset=False, gaps=False, instead=_INSTEAD))

    def transform(self, X: Any) -> FloatArray:
        """The rows on the directions, (rows, directions): Xw."""
        return np.asarray(self._new(X) + self._center @ self.scalings_)

    def predict_proba(self, X: Any) -> FloatArray:
        """p(class | projection), (rows, classes)."""
        Z = self._new(X)
        return self._gaussians.predict_proba(Z)

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        Z = self._new(X)
        return np.asarray(self.classes_[self._gaussians.predict(Z)])

    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of the second class, (rows,); for more classes log joints less their mean."""
        Z = self._new(X)
        return self._gaussians.decision_function(Z)


def _threshold(model: GaussianClassifier) -> float:
    """Where two Gaussians on a line are equally probable: between the means if there is such a point."""
    (m0, m1), (v0, v1) = model.means_[:, 0], model.covariances_[:, 0, 0]
    p0, p1 = model.class_prior_
    a = 0.5 * (1.0 / v0 - 1.0 / v1)
    b = m1 / v1 - m0 / v0
    c = 0.5 * (m0**2 / v0 - m1**2 / v1) + np.log(p1 / p0) + 0.5 * np.log(v0 / v1)
    if abs(a) < 1e-12 * abs(b):
        return float(-c / b) if b else float(0.5 * (m0 + m1))
    root = b * b - 4.0 * a * c
    if root < 0.0:
        return float(0.5 * (m0 + m1))
    found = np.array([(-b + s * np.sqrt(root)) / (2.0 * a) for s in (1.0, -1.0)])
    return float(found[np.abs(found - 0.5 * (m0 + m1)).argmin()])
