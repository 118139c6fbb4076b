"""How many components: by BIC, by the density of rows that were left out, or by a prior that lets components vanish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.machines.mixtures.em import Climb
from gramgraph.machines.mixtures.gaussian import GaussianParameters, GaussianRows, n_free
from gramgraph.typing import IntArray

CHOICES = ("bic", "aic", "cv", "dirichlet")


@dataclass(frozen=True)
class Candidate:
    """A number of components, what the criterion says of it (smaller is better), and the run where there is one."""

    n_components: int
    criterion: float
    run: Any = None


def by_criterion(counts: Sequence[int], fit: Callable[[int], tuple[float, Any]]) -> list[Candidate]:
    """One candidate for each count; `fit` gives (criterion, run)."""
    return [Candidate(k, *fit(k)) for k in counts]


def folds(n: int, cv: int, rng: np.random.RandomState) -> list[tuple[IntArray, IntArray]]:
    """(rows to learn from, rows left out), `cv` times; every row is left out once."""
    order = rng.permutation(n)
    parts = np.array_split(order, min(cv, n))
    return [(np.sort(np.concatenate(parts[:i] + parts[i + 1 :])), np.sort(part)) for i, part in enumerate(parts)]


def by_dirichlet(
    rows: GaussianRows,
    start: GaussianParameters,
    max_iter: int,
    tol: float,
    tell: Callable[[int], object],
) -> list[Candidate]:
    """From many components to one, under a Dirichlet prior of concentration 1 − D/2, D numbers for each component.

    Components whose expected count falls below D/2 vanish by themselves. After each run the lightest one is taken away,
    and EM goes on, until one is left. Of the models on this way, the one with the smallest BIC is the choice.
    """
    free = n_free(2, rows.d, rows.shape) - n_free(1, rows.d, rows.shape) - 1.0
    found: list[Candidate] = []
    rows.concentration = 1.0 - 0.5 * free
    parameters = start
    while True:
        run = _climb_and_prune(rows, parameters, max_iter, tol, tell)
        found.append(Candidate(len(run.parameters.weights), _bic(run, rows), run))
        weights = run.parameters.weights
        if len(weights) == 1:
            return found
        kept = np.ones(len(weights), bool)
        kept[int(weights.argmin())] = False
        parameters = run.parameters.take(kept)


def _climb_and_prune(
    rows: GaussianRows, parameters: GaussianParameters, max_iter: int, tol: float, tell: Any
) -> Climb[GaussianParameters]:
    """EM in which a component that explains less than its own numbers cost vanishes, the lightest first.

    The objective rises as long as the number of components stays.
    """
    cost = 1.0 - rows.concentration
    trace: list[float] = []
    found, before = -np.inf, parameters
    for step in range(max_iter + 1):
        statistics, now = rows.expect(parameters)
        n = statistics[0]
        light = int(n.argmin())
        if len(n) > 1 and n[light] <= cost:
            kept = np.ones(len(n), bool)
            kept[light] = False
            parameters, trace = parameters.take(kept), []
            continue
        value = now + rows.log_prior(parameters)
        if trace and value < trace[-1]:
            return Climb(before, tuple(trace), found, True)
        gain = value - trace[-1] if trace else np.inf
        trace.append(value)
        found, before = now, parameters
        tell(step + 1)
        if gain <= tol * rows.total:
            return Climb(parameters, tuple(trace), found, True)
        if step < max_iter:
            parameters = rows.maximize(statistics, parameters)
    return Climb(before, tuple(trace), found, False)


def _bic(run: Climb[GaussianParameters], rows: GaussianRows) -> float:
    k = len(run.parameters.weights)
    return float(np.log(rows.total) * n_free(k, rows.d, rows.shape) - 2.0 * run.log_likelihood)
