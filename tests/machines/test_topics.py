"""Topics below the estimator: the sampler, the bound and the estimate against enumeration; priors; coherence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.special import gammaln, logsumexp, psi

from gramgraph._numerics.compiling import tier
from gramgraph._numerics.topics import draws, expectations
from gramgraph.machines.topics import held_out
from gramgraph.machines.topics.collapsed import CollapsedFit
from gramgraph.machines.topics.collection import Documents, Tokens, blocks, padded
from gramgraph.machines.topics.fitting import Prior, first_topics, random_topics
from gramgraph.machines.topics.gibbs import Chain, GibbsFit
from gramgraph.machines.topics.priors import CountTable, from_counts, from_mean_logs
from gramgraph.machines.topics.variational import (
    OnlineFit,
    VariationalFit,
    mean_logs,
    variational_shares,
)

ORACLE = [[0, 0, 1], [2, 2, 1]]
PAIRS = {(0, 1): 0.873551, (0, 2): 0.695985, (0, 3): 0.266867, (2, 5): 0.548013}


@pytest.fixture(autouse=True)
def _compiled() -> Iterator[None]:
    with tier("compiled"):
        yield


def tokens_of(documents: list[list[int]], n_words: int) -> Tokens:
    ptr = np.concatenate([[0], np.cumsum([len(d) for d in documents])]).astype(np.int64)
    return Tokens(ptr, np.array(list(itertools.chain(*documents)), np.int32), n_words)


def documents_of(documents: list[list[int]], n_words: int) -> Documents:
    counts = np.array([np.bincount(d, minlength=n_words) for d in documents])
    return Documents.of(scipy.sparse.csr_array(counts))


def log_joints(tokens: Tokens, alpha: Any, beta: Any) -> tuple[Any, Any]:
    """All topics of all tokens, and log p(w, z) of each, from the definition."""
    T, n = len(alpha), len(tokens.words)
    document = np.repeat(np.arange(len(tokens.ptr) - 1), np.diff(tokens.ptr))
    Z = np.array(list(itertools.product(range(T), repeat=n)))
    out = np.zeros(len(Z))
    for s, z in enumerate(Z):
        n_dt, n_tw = np.zeros((document.max() + 1, T)), np.zeros((T, tokens.n_words))
        np.add.at(n_dt, (document, z), 1.0)
        np.add.at(n_tw, (z, tokens.words), 1.0)
        out[s] = _dirichlet(n_dt, alpha) + _dirichlet(n_tw, beta)
    return Z, out


def _dirichlet(counts: Any, a: Any) -> float:
    a = np.broadcast_to(a, counts.shape)
    found = gammaln(a.sum(axis=1)) - gammaln((a + counts).sum(axis=1)) + (gammaln(a + counts) - gammaln(a)).sum(axis=1)
    return float(found.sum())


def same(Z: Any, weights: Any, i: int, j: int) -> float:
    return float(weights @ (Z[:, i] == Z[:, j]))


def check_chain(tokens: Tokens, alpha: Any, beta: Any, seed: int, truth: dict[tuple[int, int], float]) -> None:
    """Shares of sweeps in which tokens have one topic, within 4.5 standard errors of 40 batches: 1 alarm in 10⁴."""
    prior = np.broadcast_to(beta, (len(alpha), tokens.n_words))
    states = Chain(tokens, alpha, prior, seed).states(8200)[200:]
    for (i, j), p in truth.items():
        means = (states[:, i] == states[:, j]).reshape(40, -1).mean(axis=1)
        error = max(means.std(ddof=1) / math.sqrt(40.0), 1e-3)
        assert abs(means.mean() - p) < 4.5 * error, (i, j, means.mean(), p, error)


# --------------------------------------------------------------------------------------------- the sampler


def test_the_oracle_is_what_enumeration_gives() -> None:
    Z, logs = log_joints(tokens_of(ORACLE, 3), np.full(2, 0.5), np.full((2, 3), 0.5))
    assert logsumexp(logs) == pytest.approx(-7.5795090602, abs=1e-9)
    weights = np.exp(logs - logsumexp(logs))
    for (i, j), p in PAIRS.items():
        assert same(Z, weights, i, j) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gibbs_draws_from_the_oracle(seed: int) -> None:
    check_chain(tokens_of(ORACLE, 3), np.full(2, 0.5), np.full((2, 3), 0.5), seed, PAIRS)


@pytest.mark.parametrize("seed", range(6))
def test_gibbs_draws_from_enumerated_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    T, W = (3, 4) if seed % 2 else (2, 5)
    documents = [rng.integers(W, size=n).tolist() for n in ((4, 3) if seed % 2 else (3, 0, 5))]
    tokens = tokens_of(documents, W)
    alpha, beta = rng.uniform(0.2, 1.5, T), rng.uniform(0.2, 1.5, W)
    Z, logs = log_joints(tokens, alpha, np.tile(beta, (T, 1)))
    weights = np.exp(logs - logsumexp(logs))
    truth = {(i, j): same(Z, weights, i, j) for i, j in itertools.combinations(range(len(tokens.words)), 2)}
    check_chain(tokens, alpha, beta, seed, truth)


def test_a_topic_with_its_own_prior_is_drawn_as_often_as_it_should() -> None:
    """Nine topics stand in two blocks of eight; the prior of earlier documents differs by topic."""
    rng = np.random.default_rng(5)
    tokens, alpha = tokens_of([[0, 1, 1]], 2), rng.uniform(0.2, 2.0, 9)
    prior = rng.uniform(0.1, 5.0, (9, 2))
    Z, logs = log_joints(tokens, alpha, prior)
    weights = np.exp(logs - logsumexp(logs))
    states = Chain(tokens, alpha, prior, 3).states(8000)
    for t in range(9):
        p = float(weights @ (Z[:, 0] == t))
        found = (states[:, 0] == t).reshape(40, -1).mean(axis=1)
        assert abs(found.mean() - p) < 4.5 * max(found.std(ddof=1) / math.sqrt(40.0), 1e-3)


def test_tables_of_the_chain_are_counts_of_its_topics() -> None:
    rng = np.random.default_rng(0)
    tokens = tokens_of([rng.integers(30, size=50).tolist() for _ in range(20)], 30)
    chain = Chain(tokens, np.full(11, 0.1), np.full((11, 30), 0.05), 0)
    for _ in range(30):
        chain.sweep()
    counts = np.full((11, 30), 0.05)
    np.add.at(counts, (chain.z, tokens.words), 1.0)
    np.testing.assert_allclose(chain.by_topic(chain.rows), counts, atol=1e-9)
    chain.settle()
    np.testing.assert_allclose(chain.by_topic(chain.rows), counts, rtol=1e-14)
    assert chain.document_counts().sum(axis=1).tolist() == [50] * 20


def test_sweeps_are_the_same_interpreted_and_compiled() -> None:
    rng = np.random.default_rng(1)
    tokens = tokens_of([rng.integers(8, size=6).tolist() for _ in range(4)], 8)
    found = []
    for kind in ("plain", "compiled"):
        with tier(kind):
            found.append(Chain(tokens, np.full(3, 0.3), np.full((3, 8), 0.2), 7).states(5))
    np.testing.assert_array_equal(*found)


def test_one_topic_holds_every_token() -> None:
    chain = Chain(tokens_of(ORACLE, 3), np.ones(1), np.ones((1, 3)), 0)
    assert not chain.states(3).any()


def test_log_joint_in_the_trace_is_that_of_the_definition() -> None:
    tokens, alpha, prior = tokens_of(ORACLE, 3), np.array([0.3, 0.9]), np.tile([0.2, 0.5, 0.7], (2, 1))
    fit = GibbsFit(tokens, alpha, prior, 0)
    fit.advance(3)
    Z, logs = log_joints(tokens, alpha, prior)
    [at] = np.flatnonzero((fit.chain.z == Z).all(axis=1))
    assert fit.trace == [pytest.approx(logs[at], abs=1e-10)]


# --------------------------------------------------------------------------------------------- expected counts


def collapsed_round(r: Any, document: Any, word: Any, count: Any, alpha: Any, beta: Any) -> tuple[Any, float]:
    """One round from the definition, pair by pair: the new shares, and Σ c log p(w | all others)."""
    r, log_p = np.array(r), 0.0
    for e in range(len(word)):
        others = count[:, None] * r
        others[e] -= r[e]
        n_dt, n_wt = others[document == document[e]].sum(axis=0), others[word == word[e]].sum(axis=0)
        weights = (n_wt + beta[:, word[e]]) * (n_dt + alpha) / (others.sum(axis=0) + beta.sum(axis=1))
        r[e] = weights / weights.sum()
        tokens = count[document == document[e]].sum()
        log_p += count[e] * math.log(weights.sum() / (tokens - 1.0 + alpha.sum()))
    return r, log_p


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_rounds_of_expected_counts_are_those_of_the_definition(kind: str) -> None:
    rng = np.random.default_rng(3)
    texts = [rng.integers(6, size=n).tolist() for n in (7, 0, 5, 9)]
    documents, alpha = documents_of(texts, 6), rng.uniform(0.2, 1.0, 9)  # nine topics stand in two blocks of eight
    beta = rng.uniform(0.1, 2.0, (9, 6))
    with tier(kind):
        fit = CollapsedFit(documents, alpha, beta, 0)
        document = np.repeat(np.arange(4), np.diff(documents.ptr))
        r = fit.shares.reshape(-1, 16)[:, :9].astype(float)
        for _ in range(3):
            r, log_p = collapsed_round(r, document, documents.index, documents.count, alpha, beta)
            fit.advance()
            np.testing.assert_allclose(fit.shares.reshape(-1, 16)[:, :9], r, atol=1e-6)
            assert fit.trace[-1] == pytest.approx(log_p, rel=1e-6) and (fit.shares.reshape(-1, 16)[:, 9:] == 0.0).all()
    counts = np.zeros((9, 6))
    np.add.at(counts.T, documents.index, documents.count[:, None] * r)
    np.testing.assert_allclose(fit.components, counts + beta, atol=1e-5)


def test_expected_counts_learn_priors_from_soft_counts() -> None:
    """The same fixed point as from whole counts, when shares are whole."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 5, (20, 3))
    soft, whole = (CountTable(counts.astype(kind)) for kind in (float, int))
    totals = CountTable(counts.sum(axis=1)[:, None])
    np.testing.assert_allclose(from_counts(soft, totals, np.ones(3)), from_counts(whole, totals, np.ones(3)))


# --------------------------------------------------------------------------------------------- the bound


def _random_fit(seed: int, learn: tuple[str, bool] = ("", False)) -> VariationalFit:
    rng = np.random.default_rng(seed)
    T, W = int(rng.integers(1, 12)), int(rng.integers(1, 30))
    counts = rng.poisson(rng.choice([0.1, 1.0, 20.0]), (int(rng.integers(1, 12)), W))
    counts[0, 0] += 1
    documents = Documents.of(scipy.sparse.csr_array(counts))
    alpha = rng.choice([0.001, 0.1, 1.0, 10.0]) * rng.uniform(0.5, 2.0, T)
    beta = rng.choice([0.0005, 0.1, 1.0]) * (rng.uniform(0.5, 2.0, W) if rng.random() < 0.5 else np.ones(W))
    return VariationalFit(documents, alpha, np.tile(beta, (T, 1)), random_topics((T, W), seed), learn=learn)


@pytest.mark.parametrize("learn", [("", False), ("both", False), ("both", True), ("doc_topic", False)])
def test_the_bound_never_falls(learn: tuple[str, bool]) -> None:
    for seed in range(12 if learn[0] else 50):
        fit = _random_fit(seed, learn)
        for _ in range(25):
            fit.advance()
        scale = max(1.0, abs(fit.trace[-1]))
        assert np.diff(fit.trace).min() > -1e-10 * scale, seed
        assert np.isfinite(fit.trace).all()


def test_the_bound_is_below_the_evidence() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        T, W = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        documents = [rng.integers(W, size=n).tolist() for n in (3, 4)]
        alpha, beta = rng.uniform(0.1, 2.0, T), rng.uniform(0.1, 2.0, W)
        prior = np.tile(beta, (T, 1))
        truth = logsumexp(log_joints(tokens_of(documents, W), alpha, prior)[1])
        fit = VariationalFit(documents_of(documents, W), alpha, prior, random_topics((T, W), seed))
        for _ in range(40):
            fit.advance()
        assert fit.trace[-1] <= truth + 1e-9
        assert fit.trace[-1] > truth - 6.0
        if T == 1:  # θ = 1: the bound is the evidence
            assert fit.trace[-1] == pytest.approx(truth, abs=1e-9)


def test_the_bound_is_its_definition() -> None:
    """E_q log p(w, z, θ, φ) − E_q log q, written out with r."""
    fit = _random_fit(3)
    for _ in range(3):
        fit.advance()
    lam, gamma, alpha, prior, documents = fit.components, fit.gamma, fit.alpha, fit.prior, fit.documents
    log_phi, log_theta = mean_logs(lam), mean_logs(gamma)
    total = 0.0
    for d in range(documents.n_documents):
        for e in range(documents.ptr[d], documents.ptr[d + 1]):
            joint = log_theta[d] + log_phi[:, documents.index[e]]
            r = np.exp(joint - logsumexp(joint))
            total += documents.count[e] * float(r @ (joint - np.log(np.maximum(r, 1e-300))))

    def divergence(q: Any, p: Any, logs: Any) -> float:
        inside = gammaln(q.sum()) - gammaln(q).sum() - gammaln(p.sum()) + gammaln(p).sum() + (q - p) @ logs
        return float(inside)

    total -= sum(divergence(gamma[d], alpha, log_theta[d]) for d in range(len(gamma)))
    total -= sum(divergence(lam[t], prior[t], log_phi[t]) for t in range(len(lam)))
    assert fit.bound() == pytest.approx(total, rel=1e-10)


def test_the_start_is_scaled_to_all_documents_and_skips_those_that_are_too_long() -> None:
    counts = np.array([[3, 0, 1], [0, 2, 2], [2**40, 0, 0], [0, 0, 0]])
    documents = Documents.of(scipy.sparse.csr_array(counts))
    prior = Prior(np.full(2, 0.5), np.full((2, 3), 0.25))
    start = first_topics(documents, prior, 0)
    assert start.sum() == pytest.approx(1.5 + counts.sum(), rel=1e-6) and (start > 0.0).all()
    assert first_topics(documents.some(np.array([2, 3])), prior, 0).min() > 0.5  # nothing to draw: nearly flat


def test_digamma() -> None:
    x = np.concatenate([np.geomspace(1e-6, 1e6, 300), [1.0, 6.0, 0.5]])
    np.testing.assert_allclose([expectations.digamma(v) for v in x], psi(x), rtol=1e-11, atol=1e-12)


def test_a_full_step_on_all_documents_is_a_round_of_the_batch_fit() -> None:
    rng = np.random.default_rng(0)
    documents = Documents.of(scipy.sparse.csr_array(rng.poisson(1.0, (10, 6))))
    alpha, prior, start = np.full(3, 0.4), np.full((3, 6), 0.2), random_topics((3, 6), 1)
    batch = VariationalFit(documents, alpha, prior, start.copy())
    batch.advance()
    online = OnlineFit(alpha, prior, start.copy(), offset=1.0, decay=0.7)  # the first step is 1
    online.step(documents, documents.n_documents)
    np.testing.assert_allclose(online.components, batch.components, rtol=1e-10)


# --------------------------------------------------------------------------------------------- held-out documents


def exact_p(words: list[int], phi: Any, alpha: Any) -> float:
    T, n = len(alpha), len(words)
    total = 0.0
    for z in itertools.product(range(T), repeat=n):
        total += math.exp(_dirichlet(np.bincount(z, minlength=T)[None], alpha)) * float(np.prod(phi[list(z), words]))
    return total


@pytest.mark.parametrize("n_particles", [1, 4])
def test_left_to_right_has_no_bias(n_particles: int) -> None:
    """20,000 estimates of one p, within 4.5 standard errors: 1 alarm in 10⁵."""
    phi, alpha, words = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]), np.array([0.3, 0.5]), [0, 2, 1, 2, 0, 0, 2, 1, 0]
    truth, n = exact_p(words, phi, alpha), 20_000
    tokens = tokens_of([words] * n, 3)
    logs = held_out.log_probabilities(
        tokens, np.zeros(n, np.int64), phi, alpha, np.random.default_rng(0), n_particles=n_particles
    )
    p = np.exp(logs)
    assert abs(p.mean() - truth) < 4.5 * p.std() / math.sqrt(n)
    assert p.std() > 0.0


def test_left_to_right_of_the_rest_is_a_ratio() -> None:
    phi, alpha, words = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), np.array([0.4, 0.4]), [0, 0, 1, 2, 0]
    tokens = tokens_of([words], 3)
    rng = np.random.default_rng(0)
    found = held_out.log_probabilities(tokens, np.array([3]), phi, alpha, rng, n_particles=20_000)
    truth = math.log(exact_p(words, phi, alpha) / exact_p(words[:3], phi, alpha))
    assert found[0] == pytest.approx(truth, abs=0.02)


def test_left_to_right_with_one_topic_is_exact() -> None:
    phi = np.array([[0.7, 0.2, 0.1]])
    tokens = tokens_of([[0, 1], [], [2]], 3)
    zeros, rng = np.zeros(3, np.int64), np.random.default_rng(0)
    found = held_out.log_probabilities(tokens, zeros, phi, np.array([0.3]), rng, n_particles=3)
    np.testing.assert_allclose(found, [math.log(0.14), 0.0, math.log(0.1)], atol=1e-12)


def test_shares_are_near_the_posterior_mean() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        phi, alpha = rng.dirichlet(np.full(4, 0.4), 3), rng.uniform(0.2, 1.5, 3)
        words = rng.integers(4, size=6).tolist()
        Z = np.array(list(itertools.product(range(3), repeat=6)))
        n = np.array([np.bincount(z, minlength=3) for z in Z])
        weights = np.array([math.exp(_dirichlet(c[None], alpha)) for c in n]) * phi[Z, words].prod(axis=1)
        truth = (weights / weights.sum()) @ (n + alpha) / (6.0 + alpha.sum())
        found = held_out.mean_shares(documents_of([words], 4), phi, alpha)[0]
        assert np.abs(found - truth).max() < 0.08, seed


def test_a_document_without_words_has_the_mean_of_the_prior() -> None:
    phi, alpha = np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([1.0, 3.0])
    empty = documents_of([[], [0]], 2)
    for found in (held_out.mean_shares(empty, phi, alpha), variational_shares(empty, 10.0 * phi, alpha)):
        np.testing.assert_allclose(found[0], [0.25, 0.75])
        assert found[1, 0] > 0.25


# --------------------------------------------------------------------------------------------- priors, coherence


def test_priors_from_counts_maximize_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    theta = rng.dirichlet([0.5, 1.0, 3.0], 400)
    counts = np.array([rng.multinomial(30, p) for p in theta])
    table, totals = CountTable(counts), CountTable(counts.sum(axis=1)[:, None])
    a = np.ones(3)
    for _ in range(30):
        a = from_counts(table, totals, a)
    best = scipy.optimize.minimize(lambda x: -_dirichlet(counts, np.exp(x)), np.zeros(3), method="BFGS", tol=1e-8)
    np.testing.assert_allclose(a, np.exp(best.x), rtol=1e-3)
    one = np.ones(1)
    flat = CountTable(counts.reshape(-1, 1))
    for _ in range(30):
        one = from_counts(flat, totals, one, times=3)
    line = scipy.optimize.minimize_scalar(lambda x: -_dirichlet(counts, np.full(3, math.exp(x))))
    assert one[0] == pytest.approx(math.exp(line.x), rel=1e-3)


def test_priors_from_mean_logs_have_these_means() -> None:
    truth = np.array([0.05, 0.7, 4.0])
    a = np.ones(3)
    for _ in range(100):
        a = from_mean_logs(psi(truth) - psi(truth.sum()), a)
    np.testing.assert_allclose(a, truth, rtol=1e-3)


def test_coherence_by_hand() -> None:
    counts = scipy.sparse.csr_array(np.array([[1, 2, 0], [1, 0, 0], [0, 1, 1], [3, 1, 0]]))
    [found] = held_out.coherence(counts, np.array([[0, 1, 2]]), "umass")
    assert found == pytest.approx(np.mean([math.log(3 / 3), math.log(1 / 3), math.log(2 / 3)]))
    [found] = held_out.coherence(counts, np.array([[0, 1, 2]]), "npmi")
    pair = math.log((2 / 4) / (3 / 4) ** 2) / -math.log(2 / 4)
    assert found == pytest.approx(np.mean([pair, -1.0, math.log((1 / 4) / (3 / 16)) / -math.log(1 / 4)]))


def test_small_things() -> None:
    assert blocks(np.array([0, 3, 3, 10, 11]), 4) == [(0, 2), (2, 3), (3, 4)]
    assert padded(np.ones((2, 9))).shape == (2, 16)
    rows = np.zeros(16)
    draws.count_words(np.array([0, 1, 1]), np.array([2, 0, 0], np.uint16), 8, rows)
    assert rows[[2, 8]].tolist() == [1.0, 2.0]
    joined = held_out.together(tokens_of([[0], [], [1]], 3), tokens_of([[2], [1], []], 3))
    assert joined.words.tolist() == [0, 2, 1, 1] and joined.ptr.tolist() == [0, 2, 3, 4]
