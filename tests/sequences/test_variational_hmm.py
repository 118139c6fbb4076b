"""Variational learning of hidden Markov models: a bound below the sum over all paths, which never falls."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

import gramgraph as gg
from gramgraph.exceptions import ModelError
from gramgraph.sequences import PoissonHMM


def log_urn(counts: np.ndarray, prior: np.ndarray) -> float:
    total = gammaln(prior.sum(axis=-1)) - gammaln((prior + counts).sum(axis=-1))
    return float(np.sum(total) + (gammaln(prior + counts) - gammaln(prior)).sum())


def by_hand(x: np.ndarray, K: int, M: int, start: float, step: float, symbol: float) -> float:
    """log p(x): all paths, with start, transitions and symbols integrated out."""
    logs = []
    for path in product(range(K), repeat=len(x)):
        z = np.array(path)
        pairs = np.zeros((K, K))
        np.add.at(pairs, (z[:-1], z[1:]), 1.0)
        shown = np.zeros((K, M))
        np.add.at(shown, (z, x), 1.0)
        first = np.bincount(z[:1], minlength=K)
        parts = ((first, np.full(K, start)), (pairs, np.full((K, K), step)), (shown, np.full((K, M), symbol)))
        logs.append(sum(log_urn(counts, prior) for counts, prior in parts))
    return float(np.logaddexp.reduce(logs))


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_below_the_evidence_and_never_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(3, size=7)
    x[:3] = [0, 1, 2]  # all symbols are seen
    start, step, symbol = rng.uniform(0.5, 2.0, size=3)
    model = gg.CategoricalHMM(
        2, start_prior=start, transition_prior=step, emission_prior=symbol, learning="variational", tol=1e-9,
        max_iter=500, random_state=seed,
    ).fit(x[:, None])  # fmt: skip
    log_p = by_hand(x, 2, 3, start, step, symbol)
    assert model.history_[-1] <= log_p + 1e-9 and model.history_[-1] > log_p - 5.0
    assert np.all(np.diff(model.history_) >= -1e-9)
    assert model.transmat_posterior_.sum() == pytest.approx(4 * step + 6)
    assert np.allclose(model.transmat_, model.transmat_posterior_ / model.transmat_posterior_.sum(axis=1)[:, None])
    assert np.allclose(model.emissionprob_posterior_.sum(), 6 * symbol + 7)


def test_it_learns_what_baum_welch_learns_from_much_data_and_drops_states_that_are_not_needed() -> None:
    truth = gg.CategoricalHMM.from_parameters(
        [0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]
    )
    X, _ = truth.sample(1500, random_state=0)
    model = gg.CategoricalHMM(2, learning="variational", n_init=2, random_state=0, tol=1e-4, max_iter=300).fit(X)
    order = np.argsort(-model.emissionprob_[:, 0])
    assert np.allclose(model.emissionprob_[order], truth.emissionprob_, atol=0.06)
    assert np.allclose(model.transmat_[np.ix_(order, order)], truth.transmat_, atol=0.06)
    assert model.log_likelihood_ == pytest.approx(model.score(X)) and model.log_likelihood_ > model.history_[-1]


def test_other_emissions_have_variational_chains() -> None:
    truth = PoissonHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[1.0], [9.0]])
    X, _ = truth.sample(300, random_state=0)
    model = PoissonHMM(2, learning="variational", random_state=0, tol=1e-6).fit(X)
    assert np.all(np.diff(model.history_) >= -1e-9) and not hasattr(model, "emissionprob_posterior_")
    assert np.allclose(np.sort(model.rates_[:, 0]), [1.0, 9.0], atol=1.0)


def test_fixed_parts_masks_and_refusals() -> None:
    X = np.array([[0], [0], [1], [1], [2]])
    model = gg.CategoricalHMM(3, transition_mask="left-right", learning="variational", random_state=0).fit(X)
    assert np.all(model.transmat_[np.tril_indices(3, -1)] == 0.0) and np.all(np.diff(model.history_) >= -1e-9)
    kept = gg.CategoricalHMM(2, learning="variational", fixed=["emissions"], random_state=0).fit(X)
    assert np.all(np.diff(kept.history_) >= -1e-9) and not hasattr(kept, "emissionprob_posterior_")
    with pytest.raises(ModelError, match="ties"):
        gg.CategoricalHMM(2, learning="variational", emission_ties=[0, 0], random_state=0).fit(X)
    with pytest.raises(ModelError, match="learning"):
        gg.CategoricalHMM(2, learning="bayes").fit(X)
