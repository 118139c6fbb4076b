"""Variational Bayes for hidden Markov models: Dirichlet posteriors of start, transitions and symbols."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.sequences.baum_welch import Chain, Learned, expectations
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Posterior:
    """Where variational Bayes ended: the model of the posterior means, and the weights of the Dirichlet posteriors."""

    learned: Learned
    start: FloatArray  # (K,)
    transition: FloatArray  # (K, K)
    emission: FloatArray | None  # (K, M) of symbols; None where the emission is a point


def variational_bayes(
    chain: Chain,
    emission: Any,
    data: Any,
    offsets: IntArray,
    *,
    fixed: tuple[str, ...] = (),
    max_iter: int = 100,
    tol: float = 1e-2,
    n_jobs: int | None = None,
    ties: IntArray | None = None,
) -> Posterior:
    """q(paths) q(start) q(transitions) q(symbols): Baum–Welch with exp E log p in the place of the probabilities.

    The bound log Z − Σ KL(q ‖ prior) ≤ log p(x) never falls; the rows of exp E log p sum to less than one. Symbols have
    Dirichlet posteriors; other emissions stay points of highest posterior, whose log prior is then part of the bound.
    O(N K²) a step.
    """
    if ties is not None or chain.ties is not None:
        raise ModelError('ties are learned by learning="baum_welch", not by "variational"')
    conjugate = bool(getattr(emission, "conjugate", False)) and "emissions" not in fixed
    found = expectations(chain, emission, data, offsets, n_jobs)
    history: list[float] = []
    settled = False
    for _ in range(max_iter):
        start = found.start_counts + chain.start_prior * chain.start_mask
        transition = found.transition_counts + chain.transition_prior * chain.transition_mask
        symbols = emission.moments(data, found.probabilities)[0] + emission.prior if conjugate else None
        if not conjugate and "emissions" not in fixed:
            emission = emission.update(data, found.probabilities)
        used, cost = _expected(chain, start, transition, fixed)
        seen = emission
        if symbols is not None:
            seen = replace(emission, table=_geometric(symbols))
            cost += _divergence(symbols, emission.prior)
        found = expectations(used, seen, data, offsets, n_jobs, found.probabilities)
        history.append(found.log_likelihood - cost + (0.0 if conjugate else emission.log_prior()))
        if len(history) > 1 and history[-1] - history[-2] < tol:
            settled = True
            break
    mean = replace(
        chain,
        start=chain.start if "startprob" in fixed else start / start.sum(),
        transition=chain.transition if "transmat" in fixed else transition / transition.sum(axis=1, keepdims=True),
    )
    if symbols is not None:
        emission = replace(emission, table=symbols / symbols.sum(axis=1, keepdims=True))
    log_likelihood = expectations(mean, emission, data, offsets, n_jobs).log_likelihood
    learned = Learned(mean, emission, tuple(history), settled, log_likelihood)
    return Posterior(learned, start, transition, symbols)


def _expected(chain: Chain, start: FloatArray, transition: FloatArray, fixed: tuple[str, ...]) -> tuple[Chain, float]:
    """The chain with exp E log p, and what its posteriors cost; fixed parts stay as they are."""
    cost = 0.0
    made = chain
    if "startprob" not in fixed:
        made = replace(made, start=_geometric(start))
        cost += _divergence(start, chain.start_prior * chain.start_mask)
    if "transmat" not in fixed:
        made = replace(made, transition=np.ascontiguousarray(_geometric(transition)))
        cost += _divergence(transition, chain.transition_prior * chain.transition_mask)
    return made, cost


def _geometric(weights: FloatArray) -> FloatArray:
    """exp E log p under Dirichlet(weights), row by row; 0 where the weight is."""
    from scipy.special import digamma

    with np.errstate(divide="ignore", invalid="ignore"):
        logs = digamma(weights) - digamma(weights.sum(axis=-1, keepdims=True))
    return np.where(weights > 0.0, np.exp(logs), 0.0)


def _divergence(weights: FloatArray, prior: FloatArray) -> float:
    """KL(Dirichlet(weights) ‖ Dirichlet(prior)), summed over rows, over the entries that may be positive."""
    from scipy.special import digamma, gammaln

    used = prior > 0.0

    def log_b(a: FloatArray) -> float:
        return float(gammaln(a[used]).sum() - gammaln(a.sum(axis=-1)).sum())

    logs = digamma(np.where(used, weights, 1.0)) - digamma(weights.sum(axis=-1, keepdims=True))
    return log_b(prior) - log_b(weights) + float(((weights - prior) * logs)[used].sum())
