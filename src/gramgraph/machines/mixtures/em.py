"""Expectation–maximization for mixtures of any family, with the objective never falling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from gramgraph._interrupt import check_interrupt
from gramgraph.typing import FloatArray

P = TypeVar("P")
#: Error of the objective that rounding explains: relative, and for each unit of weight.
ROUNDING = 1e-8


class Mixture(Protocol[P]):
    """Rows and a family of components: what EM asks for."""

    total: float  # weight of all rows

    def expect(self, parameters: P, /) -> tuple[Any, float]:
        """Expected statistics of the rows under `parameters`, and their log-likelihood."""

    def maximize(self, statistics: Any, before: P, /) -> P:
        """The parameters that these statistics make most probable."""

    def log_prior(self, parameters: P, /) -> float:
        """What is added to the log-likelihood, up to a constant."""


@dataclass(frozen=True)
class Climb(Generic[P]):
    """One run of EM: `trace[i]` is the objective before step i + 1, and at the end that of `parameters`."""

    parameters: P
    trace: tuple[float, ...]
    log_likelihood: float
    converged: bool
    fell: float = 0.0  # by how much a step that was not taken would have lowered the objective


def climb(
    mixture: Mixture[P], start: P, max_iter: int, tol: float, tell: Callable[[int], object] = lambda step: None
) -> Climb[P]:
    """Steps until one gains less than `tol` for each unit of weight; a step that loses is not taken."""
    parameters, before = start, start
    trace: list[float] = []
    log_likelihood, fell = -np.inf, 0.0
    converged = False
    for step in range(max_iter + 2):
        check_interrupt()
        statistics, found = mixture.expect(parameters)
        value = found + mixture.log_prior(parameters)
        gain = value - trace[-1] if trace else np.inf
        if gain < 0:
            converged, parameters = True, before
            fell = 0.0 if -gain <= ROUNDING * (abs(value) + mixture.total) else -gain
            break
        trace.append(value)
        log_likelihood = found
        tell(step + 1)
        if converged:
            break
        converged = gain <= tol * mixture.total  # one step more is for free: its statistics are there
        if step >= max_iter and not converged:
            break
        before, parameters = parameters, mixture.maximize(statistics, parameters)
    return Climb(parameters, tuple(trace), log_likelihood, converged, fell)


def best_climb(runs: list[Climb[P]]) -> Climb[P]:
    """The run that ended highest; the first one at a tie."""
    return max(runs, key=lambda run: run.trace[-1])


def new_weights(n: FloatArray, concentration: float) -> FloatArray:
    """Weights of components from expected counts under a Dirichlet prior: π ∝ max(0, n + concentration − 1).

    With a concentration below 1 components that explain too little disappear.
    """
    counts = np.maximum(n + (concentration - 1.0), 0.0)
    total = counts.sum()
    if not total > 0.0:
        counts = (n == n.max()).astype(np.float64)
        total = counts.sum()
    return np.asarray(counts / total)


def weight_penalty(weights: FloatArray, concentration: float) -> float:
    """(concentration − 1) Σ log π over the components that are there."""
    if concentration == 1.0:
        return 0.0
    return (concentration - 1.0) * float(np.log(weights[weights > 0.0]).sum())
