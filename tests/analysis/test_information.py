"""Entropy, mutual information, the next observation, and the divergence of two models."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.analysis.information import entropy, kl_divergence, most_informative, mutual_information
from gramgraph.conditionals import Table
from gramgraph.engines.exact.enumeration import Enumeration
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError, VariableError
from gramgraph.models import BayesianNetwork, MarkovNetwork
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.testing import random_bayesian_network, random_markov_network
from gramgraph.typing import FloatArray
from gramgraph.variables import binary


def joint(model: GraphicalModel, names: list[str], evidence: dict[str, str]) -> FloatArray:
    """The joint table of the names given the evidence, by enumeration."""
    ids = tuple(model.index(name) for name in names)
    observed = tuple(model.index(name) for name in evidence)
    codes = np.array([[model.var(name).index(state) for name, state in evidence.items()]], dtype=np.int64)
    answer = Enumeration().answer(model, Question((), (ids,), observed, codes.reshape(1, len(observed))))
    return answer[tuple(names)].probabilities


def plain_entropy(p: FloatArray) -> float:
    inside = p[p > 0]
    return float(-(inside * np.log(inside)).sum())


@pytest.mark.parametrize("seed", range(6))
def test_against_the_joint_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net: GraphicalModel = random_bayesian_network(rng, 6, zeros=0.2) if seed % 2 else random_markov_network(rng, 6)
    evidence = {} if seed < 2 else {"v5": net.states("v5")[int(np.argmax(joint(net, ["v5"], {})))]}
    table = joint(net, ["v0", "v1", "v2"], evidence)
    assert entropy(net, ["v0", "v1", "v2"], evidence) == pytest.approx(plain_entropy(table))
    expected = plain_entropy(table.sum(axis=2)) + plain_entropy(table.sum(axis=(0, 1))) - plain_entropy(table)
    assert mutual_information(net, ["v0", "v1"], "v2", evidence) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_expected_reduction_is_mutual_information(seed: int) -> None:
    net = random_bayesian_network(np.random.default_rng(seed), 7, zeros=0.3)
    evidence = {"v6": net.states("v6")[int(np.argmax(joint(net, ["v6"], {})))]}
    frame = most_informative(net, "v0", evidence)
    assert sorted(frame["variable"]) == [f"v{i}" for i in range(1, 6)]
    assert (np.diff(frame["reduction"]) <= 0).all()
    before = entropy(net, "v0", evidence)
    for row in frame.itertuples():
        assert row.reduction == pytest.approx(mutual_information(net, "v0", row.variable, evidence), abs=1e-9)
        assert row.expected_entropy + row.reduction == pytest.approx(before, abs=1e-9)
        assert row.share == pytest.approx(row.reduction / before if before > 0 else 0.0, abs=1e-9)


def test_joint_target_chosen_candidates_and_bits() -> None:
    net = random_bayesian_network(np.random.default_rng(1), 6)
    frame = most_informative(net, ["v0", "v1"], candidates=["v3", "v2"], base=2)
    assert sorted(frame["variable"]) == ["v2", "v3"]
    for row in frame.itertuples():
        bits = mutual_information(net, ["v0", "v1"], row.variable, base=2)
        assert row.reduction == pytest.approx(bits, abs=1e-9)
        assert bits == pytest.approx(mutual_information(net, ["v0", "v1"], row.variable) / np.log(2), abs=1e-9)


def test_known_values() -> None:
    coin, copy, other = binary("coin"), binary("copy"), binary("other")
    half = np.array([0.5, 0.5])
    net = BayesianNetwork.from_parts(
        [coin, copy, other], [Table(coin, (), half), Table(copy, (coin,), np.eye(2)), Table(other, (), half)]
    )
    assert entropy(net, "coin", base=2) == pytest.approx(1.0)
    assert entropy(net, ["coin", "copy", "other"], base=2) == pytest.approx(2.0)
    assert mutual_information(net, "coin", "copy", base=2) == pytest.approx(1.0)
    assert mutual_information(net, "coin", "other") == 0.0
    frame = most_informative(net, "coin", base=2)
    assert frame["variable"].tolist() == ["copy", "other"]
    assert frame["share"].tolist() == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("seed", range(4))
def test_divergence_against_the_joint_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = random_bayesian_network(rng, 5, max_states=2)
    q: GraphicalModel = (
        random_bayesian_network(rng, 5, max_states=2) if seed % 2 else random_markov_network(rng, 5, max_states=2)
    )
    names = list(p.variables)
    a, b = joint(p, names, {}), joint(q, names, {})
    assert kl_divergence(p, q) == pytest.approx(float((a * np.log(a / b)).sum()))
    assert kl_divergence(q, p) == pytest.approx(float((b * np.log(b / a)).sum()))
    assert kl_divergence(p, p) == pytest.approx(0.0, abs=1e-12)


def test_divergence_is_infinite_where_q_is_zero() -> None:
    a = binary("a")
    p = BayesianNetwork.from_parts([a], [Table(a, (), np.array([0.5, 0.5]))])
    q = BayesianNetwork.from_parts([a], [Table(a, (), np.array([1.0, 0.0]))])
    assert kl_divergence(p, q) == np.inf
    assert kl_divergence(q, p) == pytest.approx(np.log(2))
    other = binary("b")
    with pytest.raises(ModelError):
        kl_divergence(p, MarkovNetwork.from_parts([other], []))


def test_errors() -> None:
    net = random_bayesian_network(np.random.default_rng(0), 4)
    with pytest.raises(VariableError, match="observed"):
        entropy(net, "v0", {"v0": net.states("v0")[0]})
    with pytest.raises(VariableError, match="both sides"):
        mutual_information(net, ["v0", "v1"], ["v1"])
    with pytest.raises(VariableError, match="both target and candidate"):
        most_informative(net, "v0", candidates=["v0"])
    certain = BayesianNetwork.from_parts([binary("a")], [Table(binary("a"), (), np.array([1.0, 0.0]))])
    pair = BayesianNetwork.from_parts(
        [binary("a"), binary("b")],
        [Table(binary("a"), (), np.array([1.0, 0.0])), Table(binary("b"), (), np.array([0.5, 0.5]))],
    )
    assert entropy(certain, "a") == 0.0
    for call in (entropy, most_informative):
        with pytest.raises(ImpossibleEvidenceError):
            call(pair, "b", {"a": "yes"})
