"""Every engine against the brute-force joint, on random models made to be awkward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gramgraph.conditionals import Table
from gramgraph.engines import get_engine
from gramgraph.engines.exact.elimination import Elimination
from gramgraph.engines.exact.enumeration import Enumeration
from gramgraph.engines.registry import engine_names
from gramgraph.models import BayesianNetwork, MarkovNetwork
from gramgraph.questions.question import Question
from gramgraph.testing import check_engine, random_bayesian_network, random_markov_network, random_question
from gramgraph.testing.engines import compare_answers, compare_mpe
from gramgraph.variables import binary, discrete
from tests.portions import seeds

EXACT = list(engine_names("tables", "answer", exact=True))
BEST = set(engine_names("tables", "best", exact=True))
OTHERS = [name for name in EXACT if name != "enumeration"]
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def all_engines() -> list[Any]:
    return [pytest.param(get_engine(name), id=name) for name in OTHERS] + [
        pytest.param(Elimination(log_space=True), id="elimination-log")
    ]


@pytest.mark.parametrize("engine", all_engines())
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_engine_agrees_with_enumeration(engine: Any, seed: int) -> None:
    check_engine(engine, rounds=24, random_state=seed)


@pytest.mark.parametrize("name", OTHERS)
def test_query_by_engine_name(name: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        net = random_bayesian_network(rng, 6)
        evidence = {"v1": net.states("v1")[-1]}
        targets = ["v0", "v5", ("v2", "v4", "v1")]
        truth = net.query(targets, evidence, engine="enumeration")
        found = net.query(targets, evidence, engine=name)
        assert found.engine == name
        assert found.exact
        assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-9)
        for key in truth:
            np.testing.assert_allclose(found[key].probabilities, truth[key].probabilities, **CLOSE)


@pytest.mark.parametrize("name", EXACT)
def test_batched_frame_through_query(name: str) -> None:
    import pandas as pd

    net = random_bayesian_network(np.random.default_rng(8), 6, zeros=0.3)
    states = [net.states(f"v{i}") for i in range(3)]
    frame = pd.DataFrame(
        [{"v0": a, "v1": b, "v2": c} for a in states[0] for b in states[1] for c in (*states[2], None)]
    )
    truth = net.query(["v3", "v0"], frame, engine="enumeration")
    found = net.query(["v3", "v0"], frame, engine=name)
    np.testing.assert_allclose(found.log_evidence, truth.log_evidence, **CLOSE)
    for key in ("v3", "v0"):
        assert found[key].probabilities.shape == (len(frame), len(net.states(key)))
        np.testing.assert_allclose(found[key].probabilities, truth[key].probabilities, **CLOSE)


@pytest.mark.parametrize("name", OTHERS)
def test_variables_that_no_factor_holds_count_with_their_states(name: str) -> None:
    a, b, lone = binary("a"), binary("b"), discrete("lone", 3)
    from gramgraph.factors import TableFactor

    net = MarkovNetwork.from_parts([a, lone, b], [TableFactor((a, b), np.array([[1.0, 2.0], [3.0, 4.0]]))])
    question = Question((0, 1, 2), ((1, 0),), (), np.zeros((1, 0), np.int64))
    found = compare_answers(get_engine(name), net, question)
    assert found.log_evidence == pytest.approx(np.log(30.0))
    assert found["lone"].probabilities.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("name", OTHERS)
def test_everything_observed(name: str) -> None:
    rng = np.random.default_rng(2)
    net = random_bayesian_network(rng, 5)
    codes = np.array([[0] * 5, [1] * 5], dtype=np.int64)
    question = Question((0, 3), ((4, 1),), (4, 2, 0, 1, 3), codes, (), True)
    compare_answers(get_engine(name), net, question)
    if name in BEST:
        compare_mpe(get_engine(name), net, question)


@pytest.mark.parametrize("name", OTHERS)
def test_a_table_without_cases(name: str) -> None:
    net = random_bayesian_network(np.random.default_rng(2), 5)
    question = Question((0, 3), ((4, 1),), (2,), np.zeros((0, 1), np.int64), (), True)
    found = compare_answers(get_engine(name), net, question)
    assert found["v0"].probabilities.shape == (0, net.var("v0").size)
    if name in BEST:
        compare_mpe(get_engine(name), net, question)
    assert str(get_engine(name).plan(net, question))


@pytest.mark.parametrize("name", OTHERS)
def test_impossible_evidence_is_minus_infinity_and_nan(name: str) -> None:
    a, b = binary("a"), binary("b")
    net = BayesianNetwork.from_parts(
        [a, b], [Table(a, (), np.array([1.0, 0.0])), Table(b, (a,), np.array([[0.5, 0.5], [0.2, 0.8]]))]
    )
    question = Question((1,), ((0, 1),), (0,), np.array([[1], [0]]), (), True)
    answer = get_engine(name).answer(net, question)
    assert answer.log_evidence.tolist() == [-np.inf, 0.0]
    assert np.isnan(answer["b"].probabilities[0]).all()
    assert np.isnan(answer["a", "b"].probabilities[0]).all()
    assert answer["b"].probabilities[1].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", OTHERS)
def test_many_small_likelihoods_do_not_underflow(name: str) -> None:
    """A naive-Bayes star whose evidence has probability near e⁻¹⁸⁰⁰."""
    n = 300
    rng = np.random.default_rng(4)
    top = discrete("class", 3)
    leaves = [discrete(f"x{i}", 2) for i in range(n)]
    rates = np.exp(-6.0 + 0.05 * rng.normal(size=(n, 3)))
    tables = [Table(leaf, (top,), np.stack([1 - r, r], axis=1)) for leaf, r in zip(leaves, rates, strict=True)]
    net = BayesianNetwork.from_parts([top, *leaves], [Table(top, (), np.array([0.2, 0.3, 0.5])), *tables])
    logs = np.log([0.2, 0.3, 0.5]) + np.log(rates).sum(axis=0)
    log_p = np.logaddexp.reduce(logs)
    question = Question((0,), (), tuple(range(1, n + 1)), np.ones((1, n), np.int64))
    answer = get_engine(name).answer(net, question)
    assert answer.log_evidence == pytest.approx(log_p, abs=1e-6)
    np.testing.assert_allclose(answer["class"].probabilities, np.exp(logs - log_p), atol=1e-9)


@pytest.mark.parametrize("engine", all_engines())
def test_wide_range_of_potentials(engine: Any) -> None:
    """Entries from e⁻²⁰⁰ to e²⁰⁰ in one table, and scales of e⁻⁷⁰⁰ beside it."""
    rng = np.random.default_rng(0)
    for _ in range(6):
        net = random_markov_network(rng, 5, log_range=60.0)
        compare_answers(engine, net, random_question(rng, net), atol=1e-7)


class Wrong:
    """Enumeration with a wrong log p(e)."""

    name = "wrong"
    exact = True

    def plan(self, model: Any, question: Any) -> None:
        return None

    def answer(self, model: Any, question: Any, run: Any = None) -> Any:
        found = Enumeration().answer(model, question)
        return found.replace(log_evidence=found.log_evidence + 1e-6)


def test_the_check_finds_a_wrong_engine() -> None:
    with pytest.raises(AssertionError, match=r"log p\(e\)"):
        check_engine(Wrong(), rounds=4)
