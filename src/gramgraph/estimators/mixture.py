"""Gaussian mixtures as estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramgraph._validation import check_choice
from gramgraph.distributions import NormalInverseWishart
from gramgraph.estimators._gaussian_network import gaussian_network
from gramgraph.estimators._mixture_base import MixtureEstimator
from gramgraph.estimators._numbers import column_names, read_numbers, read_weights
from gramgraph.exceptions import OptionError
from gramgraph.machines.mixtures.choose import Candidate, by_dirichlet
from gramgraph.machines.mixtures.gaussian import SHAPES, GaussianParameters, GaussianRows, Scale, n_free
from gramgraph.machines.mixtures.online import blend, step_size
from gramgraph.machines.mixtures.starts import STARTS, fill_gaps, shares
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import discrete

_INSTEAD = " Use gg.MixtureOf, which has a family for each column, or leave the column out"


@dataclass(eq=False, repr=False)
class GaussianMixture(MixtureEstimator):
    """p(x) = Σ_k π_k N(x; μ_k, Σ_k), learned by EM; missing cells (NaN) are integrated out exactly.

    Parameters
    ----------
    n_components : how many; or several numbers to choose from, such as range(1, 9).
    covariance_type : "full", "tied" (one for all), "diag" or "spherical".
    choose : None, or how the number of components is found: "bic", "aic", "cv" (density of rows left out, `cv` folds),
        each among 1, …, n_components or the numbers given; "dirichlet": EM starts with n_components, and components
        that explain less than their own numbers cost vanish; of what is left on the way, BIC takes the best.
    concentration : of the Dirichlet prior of the weights; 1 is flat.
    prior : None, or a `gg.distributions.NormalInverseWishart` for every (μ_k, Σ_k); EM then climbs to the mode. For
        other covariance types its density on the covariances of that type.
    tol, max_iter : EM stops when a step gains less than `tol` for each row.
    n_init : runs from different starts; the best is kept.
    init_params : "kmeans", "k-means++", "subset" (k-means of a small set of rows first), "random", "random_from_data".
    means_init, weights_init, precisions_init : where to start instead.
    cv : folds of choose="cv".
    random_state : seed of the starts.
    progress : whether a bar is shown, or a function that is called.

    Notes
    -----
    Beside the prior one rule keeps densities finite: the variance of a component, in every direction, is not taken for
    less than 1e-8 times that of all rows and 1e-12 times the column's together. The objective never falls.

    Attributes
    ----------
    weights_ (k,), means_ (k, d), covariances_ as scikit-learn shapes them, n_components_, converged_, n_iter_,
    lower_bound_ (objective for each row), report_ (its trace), selection_ (what the criterion said of every number),
    network_: "z -> x" for an array, with x a vector; for a frame z and a variable for every column.

    Cost: O(n k d²) for each step.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> X = np.array([[0.0, 0.1], [0.2, np.nan], [0.1, 0.0], [5.0, 5.1], [5.2, 5.0], [np.nan, 5.2]])
    >>> model = gg.GaussianMixture(2, covariance_type="diag", random_state=0).fit(X)
    >>> model.means_[:, 0].round(1).tolist() in ([0.1, 5.1], [5.1, 0.1])
    True
    >>> model.network_.variables
    ('z', 'x')
    """

    n_components: Any = 1
    _: KW_ONLY
    covariance_type: str = "full"
    choose: str | None = None
    cv: int = 5
    concentration: float = 1.0
    prior: NormalInverseWishart | None = None
    tol: float = 1e-5
    max_iter: int = 500
    n_init: int = 1
    init_params: str = "kmeans"
    means_init: Any = None
    weights_init: Any = None
    precisions_init: Any = None
    random_state: Any = None
    progress: Any = False

    _choices: ClassVar = ("bic", "aic", "cv", "dirichlet")

    # ------------------------------------------------------------------------------------------ learning

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Online EM: the first call learns from its rows alone, later ones move expected moments towards those of
        their rows, by a step that shrinks as t^-0.6."""
        fresh = "_online" not in self.__dict__
        if fresh:
            self.fit(X, sample_weight=sample_weight)
        X = self._read(X, reset=False)
        w = read_weights(sample_weight, X)
        rows = self._rows(X, w)
        statistics, _ = rows.expect(self._parameters())
        if fresh:
            self._online = (1, statistics[0] / rows.total, statistics[1].mean, statistics[1].scatter / rows.total)
            self._least = rows.least
            return self
        step = self._online[0] + 1
        n, moments = blend(self._online[1:], statistics, rows.total, step_size(step))
        self._online = (step, n, moments.mean, moments.scatter)
        rows.least = self._least
        self._forget_network()
        self._store(rows.maximize((n * rows.total, moments.scaled(rows.total)), self._parameters()))
        return self

    def _forget_network(self) -> None:
        self.__dict__.pop("network_", None)

    def _read(self, X: Any, *, reset: bool) -> FloatArray:
        return read_numbers(self, X, reset=reset, instead=_INSTEAD)

    def _check_options(self) -> None:
        super()._check_options()
        check_choice("covariance_type", self.covariance_type, SHAPES)
        check_choice("init_params", self.init_params, STARTS)
        if self.prior is not None and not isinstance(self.prior, NormalInverseWishart):
            raise OptionError(f"prior is None or a gg.distributions.NormalInverseWishart, not {self.prior!r:.60}")

    def _prepare(self, X: FloatArray, w: FloatArray | None) -> None:
        scale = Scale.of(X, w, self.covariance_type)
        self._center, self._unit = scale.center, scale.unit
        d = X.shape[1]
        if self.prior is not None and len(self.prior.mean) != d:
            raise OptionError(f"the prior is one of {len(self.prior.mean)} columns; X has {d}")
        self._shift = self._total_volume(X, w)

    @property
    def _scale(self) -> Scale:
        return Scale(self._center, self._unit)

    def _rows(self, X: FloatArray, w: FloatArray | None) -> GaussianRows:
        scale, prior = self._scale, None
        if self.prior is not None:
            u = scale.unit
            own = self.prior.scale / np.outer(u, u)
            prior = (scale.enter(self.prior.mean), self.prior.count, self.prior.dof, own)
        return GaussianRows(
            scale.enter(X), w, self.covariance_type, concentration=float(self.concentration), prior=prior
        )

    def _start(self, rows: GaussianRows, X: FloatArray, w: FloatArray | None, k: int, rng: Any) -> GaussianParameters:
        filled = fill_gaps(X, w)
        made = rows.from_responsibilities(shares(filled, k, self.init_params, rng, w))
        if self.init_params in ("k-means++", "random_from_data"):  # a single row has no spread: that of all rows
            spread = rows.from_responsibilities(np.ones((len(X), 1))).covariances
            made = GaussianParameters(np.full(k, 1.0 / k), made.means, np.repeat(spread, k, axis=0))
        means = self._given("means_init", self.means_init, (k, X.shape[1]))
        if means is not None:
            from gramgraph.machines.mixtures.starts import nearest

            near = rows.from_responsibilities(np.eye(k)[nearest(filled, means)])
            made = GaussianParameters(near.weights, self._scale.enter(means), near.covariances)
            if (made.weights <= 0.0).any():
                made = GaussianParameters(np.full(k, 1.0 / k), made.means, made.covariances)
        if self.precisions_init is not None:
            made = GaussianParameters(made.weights, made.means, self._given_covariances(k, X.shape[1]))
        weights = self._given("weights_init", self.weights_init, (k,))
        if weights is None:
            return made
        if (weights < 0.0).any() or not weights.sum() > 0.0:
            raise OptionError("weights_init must not be negative, and must not all be 0")
        return GaussianParameters(weights / weights.sum(), made.means, made.covariances)

    def _given_covariances(self, k: int, d: int) -> FloatArray:
        """Inverses of `precisions_init`, in our units."""
        shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[self.covariance_type]
        P = self._given("precisions_init", self.precisions_init, shape)
        assert P is not None
        if self.covariance_type in ("full", "tied"):
            if not (np.linalg.eigvalsh(P) > 0.0).all():
                raise OptionError("precisions_init must be positive definite")
            C = np.broadcast_to(np.linalg.inv(P), (k, d, d))
            return np.asarray(C / np.outer(self._unit, self._unit))
        if not (P > 0.0).all():
            raise OptionError("precisions_init must be positive")
        return np.asarray(np.broadcast_to(1.0 / P.reshape(k, -1), (k, d)) / self._unit**2)

    @staticmethod
    def _given(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray | None:
        if value is None:
            return None
        found = np.asarray(value, dtype=np.float64)
        if found.shape != shape or not np.isfinite(found).all():
            raise OptionError(f"{name} must be finite numbers of shape {shape}, not of shape {found.shape}")
        return found

    def _candidates(self, X: Any, w: Any, counts: list[int], rng: Any, tell: Any) -> list[Candidate]:
        if self.choose != "dirichlet":
            return super()._candidates(X, w, counts, rng, tell)
        rows = self._rows(X, w)
        found: list[Candidate] = []
        for _ in range(self.n_init):
            start = self._start(rows, X, w, counts[-1], rng)
            found += by_dirichlet(rows, start, self.max_iter, self.tol, tell)
        return found

    def _store(self, parameters: GaussianParameters) -> None:
        own = parameters.leave(self._scale)
        self.weights_, self.means_ = own.weights, own.means
        C = own.covariances
        kind = self.covariance_type
        self.covariances_ = C[0] if kind == "tied" else C[:, 0] if kind == "spherical" else C

    def _parameters(self) -> GaussianParameters:
        k, d = self.means_.shape
        C = self.covariances_
        if self.covariance_type == "tied":
            C = np.repeat(C[None], k, axis=0)
        elif self.covariance_type == "spherical":
            C = np.repeat(C[:, None], d, axis=1)
        return GaussianParameters(self.weights_, self.means_, C).enter(self._scale)

    def _free(self, k: int) -> int:
        return n_free(k, len(self._center), self.covariance_type)

    def _has_prior(self) -> bool:
        return super()._has_prior() or self.prior is not None or self.choose == "dirichlet"

    def _log_volume(self, X: FloatArray) -> FloatArray:
        return np.asarray((~np.isnan(X)) @ self._scale.log_volume)

    # ------------------------------------------------------------------------------------------ answers

    @property
    def precisions_(self) -> FloatArray:
        """Inverse covariances, in the shape of `covariances_`."""
        check_is_fitted(self, "covariances_")
        if self.covariance_type in ("full", "tied"):
            return np.asarray(np.linalg.inv(self.covariances_))
        return np.asarray(1.0 / self.covariances_)

    def full_covariances(self) -> FloatArray:
        """Covariance matrices of all components, (k, d, d)."""
        check_is_fitted(self, "covariances_")
        k, d = self.means_.shape
        C = self.covariances_
        if self.covariance_type == "full":
            return np.asarray(C)
        if self.covariance_type == "tied":
            return np.repeat(C[None], k, axis=0)
        return np.asarray(C.reshape(k, -1)[:, :, None] * np.eye(d))

    def _draw(self, z: IntArray, rng: np.random.Generator) -> FloatArray:
        L = np.linalg.cholesky(self.full_covariances())
        noise = rng.standard_normal((len(z), self.means_.shape[1]))
        return np.asarray(self.means_[z] + np.einsum("nij,nj->ni", L[z], noise))

    def _network(self, latent: str) -> BayesianNetwork:
        names = column_names(self, len(self.means_[0])) if hasattr(self, "feature_names_in_") else None
        dense = self.covariance_type in ("full", "tied")
        z = discrete(latent, len(self.weights_))
        return gaussian_network(z, self.weights_, self.means_, self.full_covariances(), names, dense=dense)
