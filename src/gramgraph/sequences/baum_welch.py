"""Baum–Welch: expectation maximization for hidden Markov models, with priors; it knows no kind of emission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from gramgraph.sequences.recursions import Posteriors, by_rows, run_posteriors, run_viterbi
from gramgraph.typing import Array, FloatArray, IntArray


class Emission(Protocol):
    """p(x | state) as a value: what the recursions and Baum–Welch ask of it. `data` is what its model reads X into."""

    @property
    def n_parameters(self) -> int:
        """Free numbers."""

    def likelihoods(self, data: Any, /) -> tuple[FloatArray, FloatArray | None]:
        """p(x_t | state) / exp(shift_t), a new array (N, K), and shift (N,); None means zeros."""

    def logs(self, data: Any, /) -> FloatArray:
        """log p(x_t | state), a new array (N, K); 0 where nothing was observed."""

    def update(self, data: Any, gamma: FloatArray, /) -> Self:
        """The maximum of Σ gamma[t, k] log p(x_t | k) + log prior, or at least no fall."""

    def moments(self, data: Any, gamma: FloatArray, /) -> tuple[FloatArray, ...]:
        """Expected sufficient statistics: arrays that add up over rows."""

    def from_moments(self, moments: tuple[FloatArray, ...], /) -> Self:
        """The update that belongs to these statistics."""

    def take(self, states: IntArray, /) -> Self:
        """The emission whose state k is this one's state states[k]."""

    def log_prior(self) -> float:
        """Log prior of the parameters, up to a constant."""

    def draw(self, states: IntArray, rng: np.random.Generator, /) -> Array:
        """One observation per state."""


@dataclass(frozen=True)
class Chain:
    """Start (K,) and transition (K, K) probabilities with Dirichlet priors; zeros of the mask stay zeros."""

    start: FloatArray
    transition: FloatArray
    start_prior: FloatArray  # (K,) concentrations
    transition_prior: FloatArray  # (K, K)
    start_mask: Array
    transition_mask: Array
    ties: IntArray | None = None  # (K, K) labels: entries with one label are equal

    def update(self, start_counts: FloatArray, transition_counts: FloatArray, fixed: tuple[str, ...]) -> Chain:
        """The chain of highest posterior given expected counts."""
        start, transition = self.start, self.transition
        if "startprob" not in fixed:
            start = normalized_rows(start_counts, self.start_prior, start, self.start_mask)
        if "transmat" not in fixed:
            counts, prior = transition_counts, self.transition_prior
            if self.ties is not None:
                counts, prior = tied(counts, self.ties), tied(prior, self.ties)
            transition = normalized_rows(counts, prior, transition, self.transition_mask)
        return replace(self, start=start, transition=transition)

    def log_prior(self) -> float:
        """Σ (concentration − 1) log p over the entries that may be positive."""
        start = dirichlet_log_prior(self.start, self.start_prior, self.start_mask)
        return start + dirichlet_log_prior(self.transition, self.transition_prior, self.transition_mask)

    @property
    def n_parameters(self) -> int:
        """Free probabilities."""
        mask = self.transition_mask
        if self.ties is None:
            free = int(np.maximum(mask.sum(axis=1) - 1, 0).sum())
        else:  # rows with the same labels count once
            kinds = {tuple(np.unique(row[open_]).tolist()) for row, open_ in zip(self.ties, mask, strict=True)}
            free = sum(max(len(kind) - 1, 0) for kind in kinds)
        return int(self.start_mask.sum() - 1) + free


@dataclass(frozen=True)
class Learned:
    """Where Baum–Welch ended; history[i] is the log posterior before the i-th update, and it never falls."""

    chain: Chain
    emission: Any
    history: tuple[float, ...]
    converged: bool
    log_likelihood: float  # of the data, at the last entry of the history


def baum_welch(
    chain: Chain,
    emission: Emission,
    data: Any,
    offsets: IntArray,
    *,
    fixed: tuple[str, ...] = (),
    max_iter: int = 100,
    tol: float = 1e-2,
    n_jobs: int | None = None,
    hard: bool = False,
    ties: IntArray | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> Learned:
    """Raise log p(x | parameters) + log prior until a step gains less than tol; O(N K²) a step.

    `hard` takes the most probable path for the truth (Viterbi training): log p(x, path) + log prior never falls.
    `ties`, (K,) labels: states with one label share their emission.
    """
    history: list[float] = []
    last, room = -np.inf, None
    for step in range(max_iter):
        if hard:
            found = _path_counts(chain, emission, data, offsets, n_jobs)
        else:
            found = expectations(chain, emission, data, offsets, n_jobs, room)
        last = found.log_likelihood
        history.append(last + chain.log_prior() + emission.log_prior())
        if progress is not None:
            progress(step, history[-1])
        if step and history[-1] - history[-2] < tol:
            return Learned(chain, emission, tuple(history), True, last)
        chain = chain.update(found.start_counts, found.transition_counts, fixed)
        if "emissions" not in fixed:
            emission = emission.update(data, shared(found.probabilities, ties))
        room = found.probabilities
    return Learned(chain, emission, tuple(history), False, last)


def expectations(
    chain: Chain,
    emission: Emission,
    data: Any,
    offsets: IntArray,
    n_jobs: int | None = None,
    room: FloatArray | None = None,
) -> Posteriors:
    """The E-step: posteriors of states, in `room` if there is one, and expected counts."""
    return run_posteriors(
        chain.start,
        chain.transition,
        lambda rows: emission.likelihoods(data[rows]),
        offsets,
        lambda rows: emission.logs(data[rows]),
        n_jobs=n_jobs,
        room=room,
    )


def _path_counts(chain: Chain, emission: Emission, data: Any, offsets: IntArray, n_jobs: int | None) -> Posteriors:
    """The same for the most probable path, which has all the probability; its log p(path, x) in the likelihood."""
    K = len(chain.start)
    logs = by_rows(lambda rows: emission.logs(data[rows]), int(offsets[-1]), K, n_jobs)
    path, best = run_viterbi(chain.start, chain.transition, logs, offsets, n_jobs=n_jobs)
    gamma = np.zeros((len(path), K))
    gamma[np.arange(len(path)), path] = 1.0
    inner = np.ones(len(path), dtype=bool)
    inner[offsets[:-1]] = False
    after = np.flatnonzero(inner)
    pairs = np.bincount(path[after - 1] * K + path[after], minlength=K * K).reshape(K, K).astype(np.float64)
    first = np.bincount(path[offsets[:-1]], minlength=K).astype(np.float64)
    return Posteriors(gamma, best, first, pairs)


def tied(values: FloatArray, labels: IntArray) -> FloatArray:
    """Every entry replaced by the mean of the entries with its label.

    Rows whose labels are the same, each as often, then have the same sum, so that dividing by it keeps the ties and
    gives the maximum of Σ counts log p under them.
    """
    flat = labels.ravel()
    sums = np.bincount(flat, np.ascontiguousarray(values, dtype=np.float64).ravel())
    means: FloatArray = (sums / np.maximum(np.bincount(flat), 1))[labels]
    return means


def shared(gamma: FloatArray, ties: IntArray | None) -> FloatArray:
    """Weights of states that share an emission: their mean, so that the prior counts as often as `log_prior` does."""
    if ties is None:
        return gamma
    groups = np.zeros((len(ties), int(ties.max()) + 1))
    groups[np.arange(len(ties)), ties] = 1.0
    mean: FloatArray = gamma @ (groups / groups.sum(axis=0)) @ groups.T
    return mean


def normalized_rows(counts: FloatArray, prior: FloatArray, old: FloatArray, mask: Any = 1.0) -> FloatArray:
    """(counts + prior − 1) / their sum, the mode of a Dirichlet posterior; a row without counts stays as it was."""
    raw = np.maximum(counts + (prior - 1.0), 0.0) * mask
    total = raw.sum(axis=-1, keepdims=True)
    return np.where(total > 0.0, raw / np.where(total > 0.0, total, 1.0), old)


def dirichlet_log_prior(p: FloatArray, prior: FloatArray, mask: Any = True) -> float:
    """Σ (prior − 1) log p where that is not 0 · log 0."""
    weight = np.where(mask, prior - 1.0, 0.0)
    with np.errstate(divide="ignore"):
        return float((weight * np.log(np.where(weight > 0.0, p, 1.0))).sum())
