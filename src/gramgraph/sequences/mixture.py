"""Hidden Markov models whose states emit mixtures of Gaussians."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gramgraph._validation import check_count
from gramgraph.conditionals import ConditionalLinearGaussian
from gramgraph.exceptions import ModelError
from gramgraph.sequences._gaussian_emission import GaussianEmission
from gramgraph.sequences._labels import first_labels
from gramgraph.sequences._reading import check_rows
from gramgraph.sequences._unrolled import table_node
from gramgraph.sequences.baum_welch import dirichlet_log_prior, normalized_rows
from gramgraph.sequences.gaussian import GaussianHMM
from gramgraph.sequences.hmm import concentrations
from gramgraph.sequences.recursions import likelihoods
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import real

if TYPE_CHECKING:
    from gramgraph.conditionals import Conditional
    from gramgraph.variables import Var


@dataclass(frozen=True)
class MixtureEmission:
    """Σ_c w[k, c] N(x | component c of state k): all K C components are one `GaussianEmission`, state by state."""

    weights: FloatArray  # (K, C)
    parts: GaussianEmission  # K C means
    prior: FloatArray  # (K, C) concentrations

    @property
    def n_parameters(self) -> int:
        """Those of the components and of the weights."""
        K, C = self.weights.shape
        return self.parts.n_parameters + K * (C - 1)

    def _joint(self, data: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """p(x_t, component | state) / exp(shift_t) as (N, K, C), its sum (N, K), and shift (N,)."""
        with np.errstate(divide="ignore"):
            logs = self.parts.logs(data) + np.log(self.weights).ravel()
        b, shift = likelihoods(logs)
        joint = b.reshape(len(b), *self.weights.shape)
        return joint, joint.sum(axis=2), shift

    def likelihoods(self, data: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Densities of the states divided by the largest component of the row, and its logarithm."""
        _, total, shift = self._joint(data)
        return total, shift

    def logs(self, data: FloatArray, /) -> FloatArray:
        """log p(x_t | state): components are summed with logarithms, as none may underflow here."""
        with np.errstate(divide="ignore"):
            logs = self.parts.logs(data) + np.log(self.weights).ravel()
        return np.logaddexp.reduce(logs.reshape(len(logs), *self.weights.shape), axis=2)

    def update(self, data: FloatArray, gamma: FloatArray, /) -> Self:
        """Weights and components, each row shared among the components of a state by their posterior."""
        share, counts = self._shares(data, gamma)
        weights = normalized_rows(counts, self.prior, self.weights)
        return replace(self, weights=weights, parts=self.parts.update(data, share))

    def _shares(self, data: FloatArray, gamma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """gamma shared among the components, (N, K C), and its sums over rows that show something, (K, C)."""
        with np.errstate(divide="ignore"):
            each = self.parts.logs(data) + np.log(self.weights).ravel()
        each = each.reshape(len(data), *self.weights.shape)
        logs = np.logaddexp.reduce(each, axis=2)
        safe = np.where(np.isfinite(logs), logs, 0.0)
        share = gamma[:, :, None] * np.exp(each - safe[:, :, None])
        seen = ~np.isnan(data).all(axis=1)  # rows without any number say nothing of the weights either
        return np.ascontiguousarray(share.reshape(len(data), -1)), share[seen].sum(axis=0)

    def moments(self, data: FloatArray, gamma: FloatArray, /) -> tuple[FloatArray, ...]:
        """Expected counts of the components, (K, C), and the moments of their Gaussians."""
        share, counts = self._shares(data, gamma)
        return counts, *self.parts.moments(data, share)

    def from_moments(self, moments: tuple[FloatArray, ...], /) -> Self:
        """Weights and components."""
        weights = normalized_rows(moments[0], self.prior, self.weights)
        return replace(self, weights=weights, parts=self.parts.from_moments(moments[1:]))

    def take(self, states: IntArray, /) -> Self:
        """The mixtures of these states."""
        C = self.weights.shape[1]
        parts = self.parts.take((np.asarray(states)[:, None] * C + np.arange(C)).ravel())
        return replace(self, weights=self.weights[states], prior=self.prior[states], parts=parts)

    def nodes(self, z: Var, name: str) -> list[tuple[Var, Conditional]]:
        """The component c and the vector as variables of a network: z -> c, and both -> x."""
        K, C = self.weights.shape
        c, chosen = table_node(z, f"{name}_c", self.weights)
        x = real(name, self.parts.means.shape[1])
        covariances = np.array([self.parts._dense(i) for i in range(K * C)])
        d = x.dimension
        below = ConditionalLinearGaussian(
            x, (z, c), intercept=self.parts.means.reshape(K, C, d), covariance=covariances.reshape(K, C, d, d)
        )
        return [(c, chosen), (x, below)]

    def log_prior(self) -> float:
        """Of weights and covariances."""
        return self.parts.log_prior() + dirichlet_log_prior(self.weights, self.prior)

    def draw(self, states: IntArray, rng: np.random.Generator, /) -> FloatArray:
        """Points, (N, d)."""
        chosen = np.empty(len(states), dtype=np.int64)
        C = self.weights.shape[1]
        for k, row in enumerate(self.weights):
            mine = np.flatnonzero(states == k)
            chosen[mine] = k * C + rng.choice(C, len(mine), p=row)
        return self.parts.draw(chosen, rng)


@dataclass(eq=False, repr=False)
class GaussianMixtureHMM(GaussianHMM):
    """A hidden Markov model whose states emit mixtures of Gaussians: p(x | k) = Σ_c w[k, c] N(x | m[k, c], Σ[k, c]).

    Parameters
    ----------
    n_states, n_components : hidden states, and components of each.
    weight_prior : Dirichlet concentration of the weights of a state, at least 1; 1 is flat.
    covariance_type : "full", "diag" or "spherical" a component, or "tied" (one matrix for all components).
    start_prior : Dirichlet concentrations of the first state; 1 is flat.
    transition_prior : Dirichlet concentrations of the transitions; 1 is flat.
    transition_mask : None, "left-right", or a boolean matrix of possible transitions.
    transition_ties : None, or a matrix of whole numbers: transitions with the same number are equal.
    emission_ties : None, or a label for each state: states with the same label share their emission.
    learning : "baum_welch", "viterbi" or "variational", as in `CategoricalHMM`.
    init : how the parameters begin, or a fitted model to start from.
    fixed : names out of "startprob", "transmat", "emissions" that are not learned.
    n_init : runs from different starts; the best is kept.
    max_iter : most steps that are taken.
    tol : below which a change counts as none.
    n_jobs : number of threads; -1 for one per processor.
    random_state : seed, or a generator.
    covariance_prior : prior of the covariances, as in `GaussianHMM`.

    Notes
    -----
    All others are those of `GaussianHMM`.

    Attributes
    ----------
    startprob_ (K,), transmat_ (K, K), weights_ (K, C), means_ (K, C, d), covars_ (full (K, C, d, d), diag (K, C, d),
    spherical (K, C), tied (d, d)), history_, n_iter_, converged_, log_likelihood_.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loud = np.where(rng.random(200) < 0.5, -4, 4) + rng.normal(size=200)
    >>> X = np.concatenate([loud, rng.normal(size=200)])[:, None]
    >>> model = GaussianMixtureHMM(2, 2, n_init=4, random_state=0).fit(X)
    >>> bool((np.diff(model.history_) >= -1e-9).all()), model.means_.shape
    (True, (2, 2, 1))
    """

    n_components: int = 2
    _: KW_ONLY
    weight_prior: Any = 1.0

    @classmethod
    def from_parameters(
        cls, startprob: Any, transmat: Any, means: Any, covars: Any, *, weights: Any = None, **options: Any
    ) -> Self:
        """A model with known numbers: means (K, C, d), covars of its `covariance_type`, weights (K, C) or None: equal.

        >>> two = [[[-1.0], [1.0]]]
        >>> model = GaussianMixtureHMM.from_parameters([1.0], [[1.0]], two, [[1.0, 1.0]], covariance_type="spherical")
        >>> round(model.score([[0.0]]), 6)
        -1.418939
        """
        means = np.array(means, dtype=np.float64)
        if means.ndim != 3:
            raise ModelError(f"means must have shape (states, components, columns); its shape is {means.shape}.")
        model = cls(len(startprob), means.shape[1], **options)
        model._set_chain(startprob, transmat)
        model.means_, model.covars_ = means, np.array(covars, dtype=np.float64)
        model.weights_ = (
            np.full(means.shape[:2], 1.0 / means.shape[1]) if weights is None else check_rows("weights", weights, 2)
        )
        model._spread = np.ones(means.shape[2])
        model._emission()
        model.n_features_in_ = means.shape[2]
        return model

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_components", self.n_components)
        if isinstance(self.init, GaussianMixtureHMM) and self.init.n_components != self.n_components:
            raise ModelError(f"init has {self.init.n_components} components a state, not {self.n_components}.")

    def _begin(  # type: ignore[override]
        self, data: FloatArray, offsets: IntArray, rng: np.random.Generator
    ) -> tuple[MixtureEmission, IntArray | None]:
        """Components by k-means, shared among the states in one of two ways, which restarts draw.

        Near ones together (k-means of the states first), or any together: a state may have far-apart components.
        """
        K, C = self.n_states, self.n_components
        states, labels = super()._begin(data, offsets, rng)
        if labels is not None and not isinstance(self.transition_mask, str) and rng.random() < 0.5:
            parts_of = rng.permutation(K * C)[first_labels(data, offsets, K * C, None, rng)]
            labels = parts_of // C
        else:
            near = states.logs(data).argmax(axis=1) if labels is None else labels
            parts_of = _inner_labels(data, near, K, C, rng)
        gamma = np.zeros((len(data), K * C))
        gamma[np.arange(len(data)), parts_of] = ~np.isnan(data).all(axis=1)
        shape = {"tied": states.covariances}.get(self.covariance_type, np.repeat(states.covariances, C, axis=0))
        parts = replace(states, means=np.repeat(states.means, C, axis=0), covariances=shape, prior=1.0)
        parts = replace(parts.update(data, gamma), prior=float(self.covariance_prior))
        counts = gamma.sum(axis=0).reshape(K, C) + 1.0
        return self._mixed(counts / counts.sum(axis=1, keepdims=True), parts), labels

    def _mixed(self, weights: FloatArray, parts: GaussianEmission) -> MixtureEmission:
        prior = concentrations("weight_prior", self.weight_prior, weights.shape)
        return MixtureEmission(weights, parts, prior)

    def _emission(self) -> MixtureEmission:  # type: ignore[override]
        self._check_kind()
        weights = check_rows("weights_", self.weights_, 2)
        K, C = weights.shape
        means, covars = np.asarray(self.means_, dtype=np.float64), np.asarray(self.covars_, dtype=np.float64)
        d = means.shape[-1]
        inner = {"full": (d, d), "diag": (d,), "spherical": (), "tied": None}[self.covariance_type]
        shape = (d, d) if inner is None else (K, C, *inner)
        if self.n_states != K or means.shape != (K, C, d) or covars.shape != shape:
            raise ModelError(
                f"weights, means and covars must have shapes {(self.n_states, C)}, {(self.n_states, C, d)} and {shape} "
                f"({self.covariance_type}); they are {weights.shape}, {means.shape} and {covars.shape}."
            )
        if self.covariance_type in ("diag", "spherical") and not (covars > 0.0).all():
            raise ModelError("covars must be positive variances.")
        flat = covars if inner is None else covars.reshape(K * C, *inner)
        prior = float(self.covariance_prior)
        return self._mixed(
            weights, GaussianEmission(means.reshape(K * C, d), flat, self.covariance_type, prior, self._spread)
        )

    def _store(self, emission: MixtureEmission) -> None:  # type: ignore[override]
        K, C = emission.weights.shape
        self.weights_ = emission.weights
        self.means_ = emission.parts.means.reshape(K, C, -1)
        covars = emission.parts.covariances
        self.covars_ = covars if self.covariance_type == "tied" else covars.reshape(K, C, *covars.shape[1:])


def _inner_labels(data: FloatArray, near: IntArray, K: int, C: int, rng: np.random.Generator) -> IntArray:
    """k C + component of every row: k-means of the rows of each state."""
    found = near * C
    for k in range(K):
        mine = np.flatnonzero((near == k) & ~np.isnan(data).all(axis=1))
        if len(mine) >= C:
            found[mine] += first_labels(data[mine], np.array([0, len(mine)]), C, None, rng)
        else:
            found[mine] += np.arange(len(mine))
    return found
