"""Baum–Welch: expectation maximization for hidden Markov models, with priors; it knows no kind of emission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from gramgraph.sequences.recursions import Posteriors, run_posteriors
from gramgraph.typing import Array, FloatArray, IntArray

__all__ = ["Chain", "Emission", "Learned", "baum_welch", "dirichlet_log_prior", "normalized_rows"]


class Emission(Protocol):
    """p(x | state) as a value: what the recursions and Baum–Welch ask of it. `data` is what its model reads X into."""

    @property
    def n_parameters(self) -> int:
        """Free numbers."""

    def likelihoods(self, data: Any, /) -> tuple[FloatArray, FloatArray | None]:
        """p(x_t | state) / exp(shift_t), a new array (N, K), and shift (N,); None stands for zeros."""

    def logs(self, data: Any, /) -> FloatArray:
        """log p(x_t | state), a new array (N, K); 0 where nothing was observed."""

    def update(self, data: Any, gamma: FloatArray, /) -> Self:
        """The maximum of Σ gamma[t, k] log p(x_t | k) + log prior, or at least no fall."""

    def log_prior(self) -> float:
        """Log prior of the parameters, up to a constant."""

    def draw(self, states: IntArray, rng: np.random.Generator, /) -> Array:
        """One observation a state."""


@dataclass(frozen=True)
class Chain:
    """Start (K,) and transition (K, K) probabilities with Dirichlet priors; zeros of the mask stay zeros."""

    start: FloatArray
    transition: FloatArray
    start_prior: FloatArray  # (K,) concentrations
    transition_prior: FloatArray  # (K, K)
    start_mask: Array
    transition_mask: Array

    def update(self, found: Posteriors, fixed: tuple[str, ...]) -> Chain:
        """The chain of highest posterior given expected counts."""
        start, transition = self.start, self.transition
        if "startprob" not in fixed:
            start = normalized_rows(found.start_counts, self.start_prior, start, self.start_mask)
        if "transmat" not in fixed:
            transition = normalized_rows(
                found.transition_counts, self.transition_prior, transition, self.transition_mask
            )
        return replace(self, start=start, transition=transition)

    def log_prior(self) -> float:
        """Σ (concentration − 1) log p over the entries that may be positive."""
        start = dirichlet_log_prior(self.start, self.start_prior, self.start_mask)
        return start + dirichlet_log_prior(self.transition, self.transition_prior, self.transition_mask)

    @property
    def n_parameters(self) -> int:
        """Free probabilities."""
        rows = self.transition_mask.sum(axis=1) - 1
        return int(self.start_mask.sum() - 1 + np.maximum(rows, 0).sum())


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
    progress: Callable[[int, float], object] | None = None,
) -> Learned:
    """Raise log p(x | parameters) + log prior until a step gains less than tol; O(N K²) a step."""
    history: list[float] = []
    last = -np.inf
    for step in range(max_iter):
        b, shift = emission.likelihoods(data)
        found = run_posteriors(
            chain.start,
            chain.transition,
            b,
            shift,
            offsets,
            lambda rows, now=emission: now.logs(data[rows]),  # type: ignore[misc]
            n_jobs=n_jobs,
        )
        last = found.log_likelihood
        history.append(last + chain.log_prior() + emission.log_prior())
        if progress is not None:
            progress(step, history[-1])
        if step and history[-1] - history[-2] < tol:
            return Learned(chain, emission, tuple(history), True, last)
        chain = chain.update(found, fixed)
        if "emissions" not in fixed:
            emission = emission.update(data, found.probabilities)
    return Learned(chain, emission, tuple(history), False, last)


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
