"""Hidden Markov models that emit vectors."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from gramgraph._validation import check_choice, check_jobs, check_positive
from gramgraph.exceptions import ModelError
from gramgraph.sequences._gaussian_emission import COVARIANCE_TYPES, GaussianEmission
from gramgraph.sequences._labels import first_labels, moments_of
from gramgraph.sequences._reading import is_ready, joined, offsets_of, one_row
from gramgraph.sequences.hmm import HiddenMarkovModel
from gramgraph.typing import FloatArray, IntArray


@dataclass(eq=False, repr=False)
class GaussianHMM(HiddenMarkovModel):
    """A hidden Markov model whose states emit Gaussian vectors.

    Parameters
    ----------
    n_states : hidden states.
    covariance_type : "full", "diag", "spherical" (one variance per state) or "tied" (one matrix for all states).
    covariance_prior : weight of the prior that keeps covariances from collapsing, in observations whose variance is
        that of the data; 0 is maximum likelihood.
    start_prior, transition_prior, transition_mask, transition_ties, emission_ties : as in `CategoricalHMM`.
    learning, fixed, n_init, max_iter, tol, n_jobs : as in `CategoricalHMM`.
    init : "kmeans", "random" (means are rows of X), or a fitted model to start from.
    random_state : seed of the starts.

    Notes
    -----
    X has one row per time; entries that are NaN were not observed and are integrated out. Sequences stand one after the
    other with their `lengths`, or in a list of arrays.

    Attributes
    ----------
    startprob_ (K,), transmat_ (K, K), means_ (K, d), covars_ (full (K, d, d), diag (K, d), spherical (K,),
    tied (d, d)), history_ (log posterior before every update: it never falls), n_iter_, converged_, log_likelihood_.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(6, 1, (50, 2))])
    >>> model = GaussianHMM(2, random_state=0).fit(X)
    >>> np.sort(model.means_[:, 0]).round(0).tolist()
    [-0.0, 6.0]
    >>> int((model.predict(X) == model.predict(X)[0]).sum())
    50
    """

    _: KW_ONLY
    covariance_type: str = "full"
    covariance_prior: float = 0.01

    @classmethod
    def from_parameters(cls, startprob: Any, transmat: Any, means: Any, covars: Any, **options: Any) -> Self:
        """A model with known numbers, ready for questions; `covars` has the shape of `covariance_type`.

        >>> model = GaussianHMM.from_parameters([1.0], [[1.0]], [[0.0]], [[1.0]], covariance_type="diag")
        >>> round(model.score([[0.0]]), 6)
        -0.918939
        """
        model = cls(len(startprob), **options)
        model._set_chain(startprob, transmat)
        model.means_ = np.array(means, dtype=np.float64)
        model.covars_ = np.array(covars, dtype=np.float64)
        model._spread = np.ones(model.means_.shape[-1])
        model._emission()
        model.n_features_in_ = model.means_.shape[1]
        return model

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_kind()
        check_positive("covariance_prior", self.covariance_prior, zero=True)

    def _check_kind(self) -> None:
        check_choice("covariance_type", self.covariance_type, COVARIANCE_TYPES)

    def _read(self, X: Any, lengths: Any, *, reset: bool) -> tuple[FloatArray, IntArray]:
        if not reset and lengths is None and is_ready(self, X):
            return X, offsets_of(len(X), None)
        X, lengths = joined(X, lengths)
        X = validate_data(self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite="allow-nan")
        offsets = offsets_of(len(X), lengths)
        if reset:
            rows, (counts, _, spread) = moments_of(X)
            if not counts.all():
                raise ModelError(f"column {int(np.flatnonzero(counts == 0)[0])} of X has no observed value.")
            if rows < self.n_states:
                raise ModelError(f"n_states is {self.n_states}, but there are only n_samples={rows} observed rows.")
            if not np.isfinite(spread).all():
                raise ModelError(
                    f"column {int(np.flatnonzero(~np.isfinite(spread))[0])} of X holds numbers whose squares overflow. "
                    f"Try: scale the columns to moderate numbers."
                )
            if ((spread > 0.0) & (spread < 1e-290)).any():
                raise ModelError(
                    f"column {int(np.flatnonzero((spread > 0.0) & (spread < 1e-290))[0])} of X holds numbers whose "
                    f"squares vanish. Try: scale the columns to moderate numbers."
                )
            self._spread = np.where(spread > 0.0, spread, 1.0)
        return X, offsets

    def _read_one(self, z: Any) -> FloatArray:
        return one_row(z, self.n_features_in_)

    def _begin(
        self, data: FloatArray, offsets: IntArray, rng: np.random.Generator
    ) -> tuple[GaussianEmission, IntArray | None]:
        K = self.n_states
        wide = {
            "full": np.tile(np.diag(self._spread), (K, 1, 1)),
            "diag": np.tile(self._spread, (K, 1)),
            "spherical": np.full(K, self._spread.mean()),
            "tied": np.diag(self._spread),
        }[self.covariance_type]
        middle = moments_of(data)[1][1]
        jobs = check_jobs(1 if self.n_jobs is None else self.n_jobs)
        first = GaussianEmission(np.tile(middle, (K, 1)), wide, self.covariance_type, 1.0, self._spread, jobs)
        if self.init == "random":
            rows = data[rng.choice(len(data), K, replace=False)]
            return replace(
                first, means=np.where(np.isnan(rows), middle, rows), prior=float(self.covariance_prior)
            ), None
        labels = first_labels(data, offsets, K, self.transition_mask, rng, n_jobs=jobs)
        gamma = np.zeros((len(data), K))
        gamma[np.arange(len(data)), labels] = 1.0
        return replace(first.update(data, gamma), prior=float(self.covariance_prior)), labels

    def _emission(self) -> GaussianEmission:
        self._check_kind()
        means, covars = np.asarray(self.means_, dtype=np.float64), np.asarray(self.covars_, dtype=np.float64)
        if means.ndim != 2 or len(means) != self.n_states:
            raise ModelError(f"means must have shape ({self.n_states}, columns); its shape is {means.shape}.")
        K, d = means.shape
        shape = {"full": (K, d, d), "diag": (K, d), "spherical": (K,), "tied": (d, d)}[self.covariance_type]
        if covars.shape != shape:
            raise ModelError(f"covars must have shape {shape} ({self.covariance_type}); its shape is {covars.shape}.")
        if self.covariance_type in ("diag", "spherical") and not (covars > 0.0).all():
            raise ModelError("covars must be positive variances.")
        return GaussianEmission(means, covars, self.covariance_type, float(self.covariance_prior), self._spread)

    def _store(self, emission: GaussianEmission) -> None:
        self.means_, self.covars_ = emission.means, emission.covariances
