"""Hidden Markov models that emit counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from gramgraph._numerics.hmm.emissions import poisson_row
from gramgraph.exceptions import ModelError
from gramgraph.sequences._labels import first_labels
from gramgraph.sequences._reading import joined, offsets_of, one_row
from gramgraph.sequences._unrolled import table_node
from gramgraph.sequences.hmm import HiddenMarkovModel
from gramgraph.sequences.recursions import likelihoods
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.conditionals import Conditional
    from gramgraph.variables import Var

_TINY = 1e-300


@dataclass(frozen=True)
class _Counts:
    """Counts with zeros in gaps, which entries were seen, and −Σ log x! of every row."""

    values: FloatArray  # (N, d)
    seen: FloatArray  # (N, d) of 0 and 1
    constant: FloatArray  # (N,)

    def __getitem__(self, rows: Any) -> _Counts:
        return _Counts(self.values[rows], self.seen[rows], self.constant[rows])


@dataclass(frozen=True)
class PoissonEmission:
    """Independent Poisson counts a column, rates (K, d), with Gamma(shape, rate) priors."""

    rates: FloatArray
    shape: float
    rate: float

    @property
    def n_parameters(self) -> int:
        """K d."""
        return self.rates.size

    def likelihoods(self, data: _Counts, /) -> tuple[FloatArray, FloatArray]:
        """Probabilities divided by the largest of the row, and its logarithm."""
        return likelihoods(self.logs(data))

    def logs(self, data: _Counts, /) -> FloatArray:
        """Σ x log λ − λ − log x! over observed entries, (N, K)."""
        zero = self.rates == 0.0
        out = data.values @ np.log(np.where(zero, 1.0, self.rates)).T
        out -= data.seen @ self.rates.T
        out += data.constant[:, None]
        if zero.any():  # a rate of 0 gives no count but 0
            out[data.values @ zero.T > 0.0] = -np.inf
        return out

    def update(self, data: _Counts, gamma: FloatArray, /) -> Self:
        """Weighted means of the counts; with the prior, the mode."""
        return self.from_moments(self.moments(data, gamma))

    def moments(self, data: _Counts, gamma: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Σ gamma and Σ gamma x of the observed entries, (K, d)."""
        return gamma.T @ data.seen, gamma.T @ data.values

    def take(self, states: IntArray, /) -> Self:
        """Rows of the rates."""
        return replace(self, rates=self.rates[states])

    def from_moments(self, moments: tuple[FloatArray, ...], /) -> Self:
        """Means; with the prior, the mode."""
        weights, sums = moments[0] + self.rate, moments[1] + (self.shape - 1.0)
        return replace(self, rates=np.where(weights > _TINY, sums / np.maximum(weights, _TINY), self.rates))

    def nodes(self, z: Var, name: str) -> list[tuple[Var, Conditional]]:
        """A variable a column with states "0", "1", … up to a count that is all but impossible, and "m+" above it."""
        from scipy.special import gammaln, pdtrc

        d = self.rates.shape[1]
        top = int(np.ceil(max(float(r) + 10.0 * np.sqrt(float(r)) + 20.0 for r in self.rates.ravel())))
        counts = np.arange(top)
        out = []
        for c in range(d):
            rates = self.rates[:, c : c + 1]
            logs = counts * np.log(np.maximum(rates, _TINY)) - rates - gammaln(counts + 1.0)
            tail = pdtrc(top - 1, rates)
            label = name if d == 1 else f"{name}_{c}"
            out.append(table_node(z, label, np.concatenate([np.exp(logs), tail], axis=1), [*counts, f"{top}+"]))
        return out

    def log_prior(self) -> float:
        """Σ (shape − 1) log λ − rate λ."""
        logs = np.log(np.maximum(self.rates, _TINY)).sum() if self.shape != 1.0 else 0.0
        return float((self.shape - 1.0) * logs - self.rate * self.rates.sum())

    def draw(self, states: IntArray, rng: np.random.Generator, /) -> FloatArray:
        """Counts, (N, d)."""
        return rng.poisson(self.rates[states]).astype(np.float64)


@dataclass(eq=False, repr=False)
class PoissonHMM(HiddenMarkovModel):
    """A hidden Markov model whose states emit counts, independent Poisson numbers in every column.

    Parameters
    ----------
    n_states : hidden states.
    rate_prior : (shape, rate) of a Gamma prior on every rate, shape ≥ 1; (1, 0) is flat.
    start_prior, transition_prior, transition_mask, transition_ties, emission_ties : as in `CategoricalHMM`.
    learning, fixed, n_init, max_iter, tol, n_jobs : as in `CategoricalHMM`.
    init : "kmeans" (of square roots), "random", or a fitted model to start from.
    random_state : seed, or a generator.

    Notes
    -----
    NaN entries of X were not observed.

    Attributes
    ----------
    startprob_ (K,), transmat_ (K, K), rates_ (K, d), history_, n_iter_, converged_, log_likelihood_.

    Examples
    --------
    >>> model = PoissonHMM(2, random_state=0).fit([[1], [0], [2], [1], [9], [11], [8], [10], [1], [0], [1]])
    >>> sorted(model.rates_[:, 0].round(1).tolist())
    [0.9, 9.5]
    """

    _: KW_ONLY
    rate_prior: tuple[float, float] = (1.0, 0.0)

    @classmethod
    def from_parameters(cls, startprob: Any, transmat: Any, rates: Any, **options: Any) -> Self:
        """A model with known numbers, ready for questions.

        >>> round(PoissonHMM.from_parameters([1.0], [[1.0]], [[2.0]]).score([[0.0]]), 6)
        -2.0
        """
        model = cls(len(startprob), **options)
        model._set_chain(startprob, transmat)
        model.rates_ = np.array(rates, dtype=np.float64)
        model._emission()
        model.n_features_in_ = model.rates_.shape[1]
        return model

    def _read(self, X: Any, lengths: Any, *, reset: bool) -> tuple[_Counts, IntArray]:
        from scipy.special import gammaln

        X, lengths = joined(X, lengths)
        X = validate_data(self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite="allow-nan")
        offsets = offsets_of(len(X), lengths)
        seen = ~np.isnan(X)
        values = np.where(seen, X, 0.0)
        odd = (values < 0.0) | (values != np.floor(values))
        if odd.any():
            row, column = (int(i) for i in np.argwhere(odd)[0])
            raise ModelError(
                f"counts must be whole numbers of at least 0, but row {row}, column {column} of X is "
                f"{values[row, column]:g} (Negative values in data passed to PoissonHMM are refused)."
            )
        if reset:
            if not seen.any(axis=0).all():
                raise ModelError(f"column {int(np.flatnonzero(~seen.any(axis=0))[0])} of X has no observed value.")
            rows = int(seen.any(axis=1).sum())
            if rows < self.n_states:
                raise ModelError(f"n_states is {self.n_states}, but there are only n_samples={rows} observed rows.")
        constant = -gammaln(values + 1.0).sum(axis=1)
        return _Counts(values, seen.astype(np.float64), constant), offsets

    def _stream_logs(self) -> Callable[[Any], FloatArray]:
        strict, rates = super()._stream_logs(), np.ascontiguousarray(self._emission().rates)
        with np.errstate(divide="ignore"):
            log_rates = np.log(rates)

        def logs(z: Any) -> FloatArray:
            x, out = one_row(z, rates.shape[1]), np.empty((1, len(rates)))
            return out if poisson_row(x[0], rates, log_rates, out[0]) else strict(z)

        return logs

    def _begin(
        self, data: _Counts, offsets: IntArray, rng: np.random.Generator
    ) -> tuple[PoissonEmission, IntArray | None]:
        K = self.n_states
        mean = data.values.sum(axis=0) / data.seen.sum(axis=0)
        if self.init == "random":
            return self._made(mean * rng.gamma(2.0, 0.5, (K, len(mean))) + 1e-3), None
        points = np.where(data.seen > 0.0, np.sqrt(data.values), np.nan)
        labels = first_labels(points, offsets, K, self.transition_mask, rng)
        gamma = np.zeros((len(labels), K))
        gamma[np.arange(len(labels)), labels] = 1.0
        rates = (gamma.T @ data.values + mean) / (gamma.T @ data.seen + 1.0)  # one observation of the mean: none is 0
        return self._made(np.maximum(rates, 1e-3)), labels

    def _made(self, rates: FloatArray) -> PoissonEmission:
        try:
            shape, rate = (float(v) for v in self.rate_prior)
        except (TypeError, ValueError):
            raise ModelError(f"rate_prior must be (shape, rate), two numbers; it is {self.rate_prior!r}.") from None
        if not 1.0 <= shape < np.inf or not 0.0 <= rate < np.inf:
            raise ModelError(
                f"rate_prior must be (shape of at least 1, rate of at least 0); it is {self.rate_prior!r}."
            )
        return PoissonEmission(rates, shape, rate)

    def _emission(self) -> PoissonEmission:
        rates = np.asarray(self.rates_, dtype=np.float64)
        if rates.ndim != 2 or len(rates) != self.n_states or not (rates >= 0.0).all() or not np.isfinite(rates).all():
            raise ModelError(f"rates must be numbers of at least 0 of shape ({self.n_states}, columns); got {rates!r}.")
        return self._made(rates)

    def _store(self, emission: PoissonEmission) -> None:
        self.rates_ = emission.rates
