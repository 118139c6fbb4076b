"""Recursions of hidden Markov chains against sums over all paths, and where numbers underflow."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph._numerics import compiling
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences import (
    CategoricalHMM,
    GaussianHMM,
    forward,
    log_likelihood,
    posteriors,
    sample_states,
    viterbi,
)
from tests.portions import examples


def chain(rng: np.random.Generator, K: int, zeros: bool = False) -> tuple[np.ndarray, np.ndarray]:
    start, A = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K)
    if zeros and K > 1:
        A[0, -1] = 0.0
        A[0] /= A[0].sum()
    return start, A


def brute(start: np.ndarray, A: np.ndarray, logs: np.ndarray) -> dict[str, np.ndarray | float]:
    """Everything from the joint of all K^T paths."""
    T, K = logs.shape
    paths = np.array(list(product(range(K), repeat=T)))
    with np.errstate(divide="ignore"):
        joint = np.log(start)[paths[:, 0]] + logs[np.arange(T), paths].sum(axis=1)
        for t in range(1, T):
            joint = joint + np.log(A)[paths[:, t - 1], paths[:, t]]
    total = np.logaddexp.reduce(joint)
    p = np.exp(joint - total)
    gamma = np.array([[p[paths[:, t] == k].sum() for k in range(K)] for t in range(T)])
    pairs = np.zeros((K, K))
    for t in range(1, T):
        np.add.at(pairs, (paths[:, t - 1], paths[:, t]), p)
    return {
        "log": float(total),
        "gamma": gamma,
        "pairs": pairs,
        "best": float(joint.max()),
        "path": paths[joint.argmax()],
    }


@pytest.mark.parametrize("K", [1, 2, 3, 5])
@pytest.mark.parametrize("zeros", [False, True])
def test_everything_equals_the_sum_over_paths(rng: np.random.Generator, K: int, zeros: bool) -> None:
    start, A = chain(rng, K, zeros)
    lengths = [1, 4, 2, 5]
    logs = rng.normal(size=(sum(lengths), K)) * 2 - 3
    logs[3] = 0.0  # a missing observation
    found = posteriors(start, A, logs, lengths)
    states, best = viterbi(start, A, logs, lengths)
    pairs, first = np.zeros((K, K)), np.zeros(K)
    for s, stop in enumerate(np.cumsum(lengths)):
        rows = slice(stop - lengths[s], stop)
        want = brute(start, A, logs[rows])
        assert found.log_likelihoods[s] == pytest.approx(want["log"], abs=1e-12)
        np.testing.assert_allclose(found.probabilities[rows], want["gamma"], rtol=0, atol=1e-12)
        assert best[s] == pytest.approx(want["best"], abs=1e-12)
        np.testing.assert_array_equal(states[rows], want["path"])
        pairs += want["pairs"]
        first += want["gamma"][0]
        filtered, _ = forward(start, A, logs[rows])
        np.testing.assert_allclose(filtered[-1], want["gamma"][-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.transition_counts, pairs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.start_counts, first, rtol=0, atol=1e-12)
    np.testing.assert_allclose(log_likelihood(start, A, logs, lengths), found.log_likelihoods, rtol=1e-14)


@pytest.mark.parametrize("tier", ["plain", "compiled"])
@pytest.mark.parametrize("K", [7, 8, 9, 16, 27])
def test_states_in_eights_and_the_rest(rng: np.random.Generator, K: int, tier: str) -> None:
    start, A = chain(rng, K, zeros=True)
    logs = rng.normal(size=(6, K)) * 2 - 3
    given_logs = logs.copy()
    with compiling.tier(tier):
        found = posteriors(start, A, logs, [3, 3])
        states, best = viterbi(start, A, logs, [3, 3])
    want = [brute(start, A, logs[:3]), brute(start, A, logs[3:])]
    np.testing.assert_allclose(found.log_likelihoods, [one["log"] for one in want], rtol=1e-13)
    np.testing.assert_allclose(found.probabilities, np.concatenate([one["gamma"] for one in want]), atol=1e-12)
    np.testing.assert_allclose(found.transition_counts, want[0]["pairs"] + want[1]["pairs"], atol=1e-12)
    np.testing.assert_allclose(best, [one["best"] for one in want], rtol=1e-13)
    np.testing.assert_array_equal(states, np.concatenate([one["path"] for one in want]))
    np.testing.assert_array_equal(logs, given_logs)


@settings(max_examples=examples(40))
@given(st.integers(1, 9), st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(0, 2**20))
def test_laws_of_posteriors(K: int, lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    start, A = chain(rng, K)
    logs = rng.normal(size=(sum(lengths), K)) * rng.choice([0.1, 10.0, 300.0])
    found = posteriors(start, A, logs, lengths)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert found.transition_counts.sum() == pytest.approx(sum(lengths) - len(lengths), abs=1e-9)
    assert found.start_counts.sum() == pytest.approx(len(lengths))
    assert (viterbi(start, A, logs, lengths)[1] <= found.log_likelihoods + 1e-9).all()
    threads = posteriors(start, A, logs, lengths, n_jobs=3)
    np.testing.assert_array_equal(threads.probabilities, found.probabilities)
    moved = posteriors(start, A, logs + 700.0, lengths)  # a factor a row changes only the likelihood
    np.testing.assert_allclose(moved.probabilities, found.probabilities, rtol=0, atol=1e-10)


def test_many_states_by_the_other_way(rng: np.random.Generator) -> None:
    """Few states are summed within the backward pass, many by a product of matrices: states in copies show both."""
    start, A = chain(rng, 3)
    logs = rng.normal(size=(50, 3))
    few = posteriors(start, A, logs, [20, 30])
    copies = 11  # 33 states, each state in equal parts
    many = posteriors(
        np.repeat(start, copies) / copies,
        np.repeat(np.repeat(A, copies, axis=0), copies, axis=1) / copies,
        np.repeat(logs, copies, axis=1),
        [20, 30],
    )
    np.testing.assert_allclose(
        many.probabilities.reshape(50, 3, copies).sum(axis=2), few.probabilities, rtol=0, atol=1e-12
    )
    back = many.transition_counts.reshape(3, copies, 3, copies).sum(axis=(1, 3))
    np.testing.assert_allclose(back, few.transition_counts, rtol=0, atol=1e-11)
    np.testing.assert_allclose(many.log_likelihoods, few.log_likelihoods, rtol=1e-12)


@pytest.mark.parametrize("size", [50.0, 900.0])
def test_underflow_is_not_impossible(size: float) -> None:
    """The only states that can be reached fit exp(−size) times worse than one that cannot: answers stay exact."""
    rng = np.random.default_rng(4)
    start, A = np.array([1.0, 0.0, 0.0]), np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]])
    logs = rng.normal(size=(6, 3))
    logs[:, 2] += size
    want = brute(start, A, logs)
    found = posteriors(start, A, logs)
    assert found.log_likelihood == pytest.approx(want["log"], rel=1e-13)
    np.testing.assert_allclose(found.probabilities, want["gamma"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.transition_counts, want["pairs"], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(viterbi(start, A, logs)[0], want["path"])


def test_states_that_seem_dead_return() -> None:
    """A state that loses by exp(−400) at first and wins by exp(400) later, without a way between the two."""
    logs = np.array([[0.0, -400.0], [0.0, -400.0], [-400.0, 0.0], [-400.0, 0.0], [-400.0, 0.0]])
    found = posteriors([0.5, 0.5], np.eye(2), logs)
    np.testing.assert_allclose(found.probabilities, np.tile([np.exp(-400.0), 1.0], (5, 1)), rtol=0, atol=1e-12)
    assert found.log_likelihood == pytest.approx(np.log(0.5) - 800.0, rel=1e-13)


def test_a_million_steps(rng: np.random.Generator) -> None:
    start, A = chain(rng, 3)
    logs = rng.normal(size=(1_000_000, 3)) - 50.0
    found = posteriors(start, A, logs)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert found.transition_counts.sum() == pytest.approx(999_999, rel=1e-9)
    # the last stretch forgets the beginning: filtering only the end gives the same
    np.testing.assert_allclose(
        posteriors(start, A, logs[-300:]).probabilities[-10:], found.probabilities[-10:], atol=1e-9
    )
    path, best = viterbi(start, A, logs)
    again = np.log(start[path[0]]) + np.log(A[path[:-1], path[1:]]).sum() + logs[np.arange(len(path)), path].sum()
    assert best[0] == pytest.approx(again, rel=1e-11)


def test_drawn_paths_follow_the_posterior(rng: np.random.Generator) -> None:
    start, A = chain(rng, 3)
    logs = rng.normal(size=(7, 3))
    want = posteriors(start, A, logs, [3, 4])
    drawn = sample_states(start, A, logs, [3, 4], n_samples=20_000, random_state=1)
    share = np.stack([(drawn == k).mean(axis=0) for k in range(3)], axis=1)
    assert np.abs(share - want.probabilities).max() < 0.02  # > 5 standard errors: false alarms below 1e-5
    steps = np.zeros((3, 3))
    for t in (1, 2, 4, 5, 6):
        np.add.at(steps, (drawn[:, t - 1], drawn[:, t]), 1 / 20_000)
    assert np.abs(steps - want.transition_counts).max() < 0.05


def test_impossible_sequences_are_named() -> None:
    A, logs = np.eye(2), np.log(np.array([[1.0, 0.5], [1.0, 0.5], [1e-300, 0.5]]))
    logs[2, 0] = -np.inf
    assert log_likelihood([1.0, 0.0], A, logs, [1, 2]).tolist() == [0.0, -np.inf]
    for ask in (posteriors, forward, sample_states):
        with pytest.raises(ImpossibleEvidenceError, match="sequence 1 has probability zero .* at its row 1"):
            ask([1.0, 0.0], A, logs, [1, 2])
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
        viterbi([1.0, 0.0], A, logs, [1, 2])


def test_nothing_is_read_after_an_impossible_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that nobody wrote to may hold anything: here numbers whose exponential overflows."""
    logs = np.zeros((40, 1))
    logs[3] = -np.inf
    with compiling.tier("plain"):
        monkeypatch.setattr(np, "empty", lambda shape, dtype=np.float64: np.full(shape, 800, dtype=dtype))
        with np.errstate(over="raise"), pytest.raises(ImpossibleEvidenceError, match="at its row 3"):
            forward([1.0], [[1.0]], logs)
        with np.errstate(over="raise"):
            assert log_likelihood([1.0], [[1.0]], logs, [20, 20]).tolist() == [-np.inf, 0.0]


@pytest.mark.parametrize(
    "start, A, logs, lengths, text",
    [
        ([0.5, 0.4], np.eye(2), np.zeros((2, 2)), None, "startprob sums to 0.9"),
        ([0.5, 0.5], [[1.0, 0.0], [0.5, 0.6]], np.zeros((2, 2)), None, "row 1 of transmat sums to 1.1"),
        ([0.5, 0.5], [[1.5, -0.5], [0.5, 0.5]], np.zeros((2, 2)), None, "negative"),
        ([0.5, 0.5], np.eye(3), np.zeros((2, 2)), None, "shape (2, 2)"),
        ([0.5, 0.5], np.eye(2), np.zeros((2, 3)), None, "one column per state"),
        ([0.5, 0.5], np.eye(2), np.full((2, 2), np.nan), None, "not NaN"),
        ([0.5, 0.5], np.eye(2), np.zeros((4, 2)), [1, 2], "add up to 3, but X has 4"),
        ([0.5, 0.5], np.eye(2), np.zeros((4, 2)), [4, 0], "sequence 1 has length 0"),
        ([0.5, 0.5], np.eye(2), np.zeros((4, 2)), [1.5, 2.5], "whole numbers"),
        ([0.5, 0.5], np.eye(2), np.zeros((0, 2)), None, "at least one observation"),
    ],
)
def test_bad_input(start: object, A: object, logs: object, lengths: object, text: str) -> None:
    import re

    with pytest.raises(ModelError, match=re.escape(text)):
        posteriors(start, A, logs, lengths)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(25))
def test_eight_states_are_walked_from_both_ends(seed: int) -> None:
    """Symbols of eight states have loops of their own: the same paths and values as any number of states."""
    rng = np.random.default_rng(seed)
    start, A = rng.dirichlet(np.ones(8)), rng.dirichlet(np.full(8, rng.choice([0.3, 2.0])), 8)
    table = rng.dirichlet(np.ones(5), 8)
    model = CategoricalHMM.from_parameters(start, A, table)
    lengths = rng.integers(1, 10, size=5)
    X = rng.integers(0, 5, size=int(lengths.sum()))
    states, best = viterbi(start, A, np.log(table[:, X].T), lengths)
    value, found = model.decode(X, lengths)
    assert value == pytest.approx(best.sum(), abs=1e-9)
    np.testing.assert_array_equal(found, states)


def test_diagonal_gaussians_of_eight_states_are_dense_ones() -> None:
    rng = np.random.default_rng(0)
    means, var = rng.normal(size=(8, 3)), rng.uniform(0.5, 2.0, size=(8, 3))
    X = rng.normal(size=(40, 3))
    X[3, 1], X[7] = np.nan, np.nan
    chain = np.full(8, 1 / 8), np.full((8, 8), 1 / 8)
    diagonal = GaussianHMM.from_parameters(*chain, means, var, covariance_type="diag")
    dense = GaussianHMM.from_parameters(*chain, means, np.array([np.diag(v) for v in var]), covariance_type="full")
    np.testing.assert_allclose(diagonal.predict_proba(X), dense.predict_proba(X), atol=1e-12)
    assert diagonal.score(X) == pytest.approx(dense.score(X), rel=1e-12)
