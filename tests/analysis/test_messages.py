"""Messages that can be read: the worked example of the text, and agreement on random trees."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gramgraph.analysis.messages import max_sum, sum_product
from gramgraph.conditionals import Table
from gramgraph.engines.exact.enumeration import Enumeration
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError, VariableError
from gramgraph.factors import TableFactor
from gramgraph.models import BayesianNetwork, FactorGraph, MarkovNetwork
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.testing import random_bayesian_network, random_markov_network, random_question
from gramgraph.variables import binary, discrete

EMISSION = np.array([[1 / 2, 1 / 4, 1 / 4], [1 / 4, 1 / 2, 1 / 4]])
TRANSITION = np.array([[1 / 4, 3 / 4], [1 / 2, 1 / 2]])
SEEN = {"x1": "R", "x2": "G"}


def hmm() -> FactorGraph:
    """Two steps of a hidden Markov model: f1 = p(z1) p(x1 | z1) and f2 = p(z2 | z1) p(x2 | z2)."""
    z1, z2 = discrete("z1", ["1", "2"]), discrete("z2", ["1", "2"])
    x1, x2 = discrete("x1", "RGB"), discrete("x2", "RGB")
    f1 = TableFactor((z1, x1), 0.5 * EMISSION)
    f2 = TableFactor((z1, z2, x2), TRANSITION[:, :, None] * EMISSION[None])
    return FactorGraph.from_parts([z1, z2, x1, x2], [f1, f2], names=["f1", "f2"])


def test_worked_example_message_by_message() -> None:
    m = sum_product(hmm(), SEEN, normalized=False, root="z2")
    assert m.to_variable("f1", "z1").tolist() == pytest.approx([1 / 4, 1 / 8])
    assert m.to_factor("z1", "f2").tolist() == pytest.approx([1 / 4, 1 / 8])
    assert m.to_variable("f2", "z2").tolist() == pytest.approx([1 / 32, 1 / 8])
    assert m.to_factor("z2", "f2").tolist() == [1.0, 1.0]
    assert m.to_variable("f2", "z1").tolist() == pytest.approx([7 / 16, 3 / 8])
    assert m.belief("z1").to_dict() == pytest.approx({"1": 0.7, "2": 0.3})
    assert m.belief("z2").to_dict() == pytest.approx({"1": 0.2, "2": 0.8})
    assert m.log_evidence == pytest.approx(np.log(10 / 64))
    assert m.schedule == (("f1", "z1"), ("z1", "f2"), ("f2", "z2"), ("z2", "f2"), ("f2", "z1"), ("z1", "f1"))


def test_factor_marginal_and_frame() -> None:
    m = sum_product(hmm(), SEEN, normalized=False, root="z2")
    pair = m.factor_belief("f2")
    assert [var.name for var in pair.scope] == ["z1", "z2"]
    np.testing.assert_allclose(pair.probabilities, [[0.1, 0.6], [0.1, 0.2]], rtol=1e-12)
    frame = m.to_frame()
    assert frame.columns.tolist() == ["step", "sender", "receiver", "variable", "state", "value"]
    rows = frame[(frame["sender"] == "f2") & (frame["receiver"] == "z1")]
    assert rows["state"].tolist() == ["1", "2"]
    assert rows["value"].tolist() == pytest.approx([7 / 16, 3 / 8])
    assert len(frame) == 12


def test_the_same_network_as_a_bayesian_network() -> None:
    """Other factors, other messages, same beliefs; factors are named by their conditionals."""
    z1, z2, x1, x2 = hmm().vars
    net = BayesianNetwork.from_parts(
        [z1, z2, x1, x2],
        [
            Table(z1, (), np.array([0.5, 0.5])),
            Table(z2, (z1,), TRANSITION),
            Table(x1, (z1,), EMISSION),
            Table(x2, (z2,), EMISSION),
        ],
    )
    m = sum_product(net, SEEN)
    assert m.factor_names == ("p(z1)", "p(z2 | z1)", "p(x1 | z1)", "p(x2 | z2)")
    assert m.to_variable("p(x1 | z1)", "z1").tolist() == pytest.approx([2 / 3, 1 / 3]), "normalized by default"
    assert m.to_variable("p(x1)", "z1").tolist() == m.to_variable("p(x1 | z1)", "z1").tolist()
    assert m.belief("z1").prob("1") == pytest.approx(0.7)
    assert m.beliefs["z2"].prob("2") == pytest.approx(0.8)
    assert m.log_evidence == pytest.approx(np.log(10 / 64))


def test_max_sum_on_the_example() -> None:
    m = max_sum(hmm(), SEEN, root="z2")
    assert m.to_variable("f1", "z1").tolist() == pytest.approx(np.log([1 / 4, 1 / 8]))
    assert m.to_variable("f2", "z2").tolist() == pytest.approx(np.log([1 / 64, 3 / 32]))
    assert m.assignment.assignment == {"z1": "1", "z2": "2"}
    assert m.assignment.log_prob == pytest.approx(np.log(1 / 4 * 3 / 4 * 1 / 2))
    assert m.max_marginal("z1").tolist() == pytest.approx(np.log([3 / 32, 1 / 32]))


def test_viterbi_is_max_sum_on_a_chain() -> None:
    rng = np.random.default_rng(3)
    steps, states = 300, 4
    start, move = rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(states), size=states)
    emit = np.log(rng.random((steps, states)))
    chain = [discrete(f"z{t}", states) for t in range(steps)]
    factors = [TableFactor((chain[0],), start)]
    factors += [TableFactor(pair, move) for pair in pairwise(chain)]
    factors += [TableFactor((z,), np.exp(e)) for z, e in zip(chain, emit, strict=True)]
    found = max_sum(MarkovNetwork.from_parts(chain, factors)).assignment
    score, back = np.log(start) + emit[0], []
    for t in range(1, steps):
        ways = score[:, None] + np.log(move)
        back.append(ways.argmax(axis=0))
        score = ways.max(axis=0) + emit[t]
    path = [int(score.argmax())]
    for choice in reversed(back):
        path.append(int(choice[path[-1]]))
    assert found.log_prob == pytest.approx(score.max())
    assert [int(found.assignment[f"z{t}"]) for t in range(steps)] == path[::-1]


def random_forest(seed: int) -> tuple[GraphicalModel, Question]:
    rng = np.random.default_rng(seed)
    net: GraphicalModel = (
        random_bayesian_network(rng, 7, max_parents=2, density=0.35, zeros=0.2 * (seed % 2))
        if seed % 3
        else random_markov_network(rng, 7, n_factors=6, max_scope=2)
    )
    return net, replace(random_question(rng, net, cases=None, observe=0.2), targets=tuple(range(len(net))))


def test_agreement_on_random_forests() -> None:
    trees = 0
    for seed in range(60):
        net, question = random_forest(seed)
        truth = Enumeration().answer(net, question)
        try:
            messages = sum_product(net, question)
        except ModelError:  # the graph has a loop
            continue
        assert messages.log_evidence == pytest.approx(truth.log_evidence, abs=1e-9)
        if truth.log_evidence == -np.inf:
            continue
        trees += 1
        for name, belief in messages.beliefs.items():
            np.testing.assert_allclose(belief.probabilities, truth[name].probabilities, atol=1e-12)
        best = max_sum(net, question)
        value = Enumeration().best(net, question).log_prob
        assert best.assignment.log_prob == pytest.approx(value[0])
        for name in best.variables:
            assert best.max_marginal(name).max() == pytest.approx(value[0])
    assert trees > 20


def test_loops_are_named_and_evidence_can_open_them() -> None:
    a, b, c = binary("a"), binary("b"), binary("c")
    rng = np.random.default_rng(0)
    ring = [TableFactor(pair, rng.random((2, 2)) + 0.1) for pair in ((a, b), (b, c), (c, a))]
    net = MarkovNetwork.from_parts([a, b, c], ring)
    with pytest.raises(ModelError, match="loop") as caught:
        sum_product(net)
    assert all(name in str(caught.value) for name in ("a", "b", "c", "f0", "f1", "f2"))
    opened = sum_product(net, {"c": "yes"})
    truth = Enumeration().answer(net, Question((0,), (), (2,), np.array([[1]])))
    np.testing.assert_allclose(opened.belief("a").probabilities, truth["a"].probabilities, rtol=1e-12)


def test_a_star_of_thousands_is_quick_and_does_not_underflow() -> None:
    hub = discrete("hub", 2)
    leaves = [discrete(f"x{i}", 2) for i in range(2000)]
    factors = [TableFactor((hub, x), np.array([[0.7, 0.3], [0.2, 0.8]]) * 1e-3) for x in leaves]
    net = MarkovNetwork.from_parts([hub, *leaves], factors)
    m = sum_product(net)
    assert m.belief("hub").probabilities.tolist() == pytest.approx([0.5, 0.5])
    assert m.log_evidence == pytest.approx(np.log(2) + 2000 * np.log(1e-3))


def test_errors() -> None:
    m = sum_product(hmm(), SEEN)
    with pytest.raises(VariableError, match="observed"):
        m.belief("x1")
    with pytest.raises(VariableError, match="not neighbors"):
        m.to_factor("z2", "f1")
    with pytest.raises(VariableError, match="f3"):
        m.to_variable("f3", "z1")
    with pytest.raises(VariableError):
        m.to_variable(2, "z1")
    impossible = MarkovNetwork.from_parts([binary("a")], [TableFactor((binary("a"),), np.zeros(2))])
    dead = sum_product(impossible)
    assert dead.log_evidence == -np.inf
    assert dead.to_variable("f0", "a").tolist() == [0.0, 0.0]
    with pytest.raises(ImpossibleEvidenceError):
        dead.belief("a")
    with pytest.raises(ImpossibleEvidenceError):
        max_sum(impossible)
