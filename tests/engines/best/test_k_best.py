"""The k most probable assignments, against sorting the joint table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.conditionals import Table
from gramgraph.engines.best.k_best import k_best, k_best_codes
from gramgraph.engines.exact.elimination import Elimination
from gramgraph.engines.exact.enumeration import Enumeration
from gramgraph.engines.exact.factor_tree import FactorTree
from gramgraph.exceptions import ImpossibleEvidenceError
from gramgraph.models import BayesianNetwork
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.testing import random_bayesian_network, random_markov_network, random_question
from gramgraph.variables import binary, discrete


def sorted_joint(model: GraphicalModel, question: Question) -> np.ndarray:
    """log p of all possible assignments, largest first."""
    _, joint = Enumeration()._joint(model, question, 0, None)
    logs = np.sort(joint.logs.reshape(-1))[::-1]
    return logs[logs > -np.inf]


@pytest.mark.parametrize("engine", [None, Elimination(), FactorTree()], ids=["default", "elimination", "factor_tree"])
@pytest.mark.parametrize("seed", range(6))
def test_values_are_those_of_the_sorted_joint(engine: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model: GraphicalModel = (
        random_bayesian_network(rng, 5, zeros=0.2, single=0.1)
        if seed % 2
        else random_markov_network(rng, 4, n_factors=5)
    )
    question = random_question(rng, model, cases=None, observe=0.2, likelihood=0.2)
    truth = sorted_joint(model, question)[:40]
    found = []
    for codes, log_prob in k_best_codes(model, question, engine=engine):
        found.append((tuple(codes), log_prob))
        if len(found) == 40:
            break
    np.testing.assert_allclose([value for _, value in found], truth, rtol=1e-9, atol=1e-9)
    assert len({codes for codes, _ in found}) == len(found), "no assignment comes twice"
    for codes, log_prob in found:
        names = {var.name: var.states[code] for var, code in zip(model.vars, codes, strict=True)}
        weights = sum(float(np.log(w[codes[i]])) for i, w in question.soft_weights(0).items())
        assert model.joint_log_prob(names) + weights == pytest.approx(log_prob, abs=1e-9)


def test_named_answers_leave_out_the_evidence() -> None:
    net = random_bayesian_network(np.random.default_rng(1), 5)
    seen = {"v2": net.states("v2")[0]}
    found = k_best(net, seen, 4)
    assert len(found) == 4
    assert [a.log_prob for a in found] == sorted((a.log_prob for a in found), reverse=True)
    assert found[0].log_prob == pytest.approx(net.map_query(seen).log_prob)
    for answer in found:
        assert set(answer.assignment) == set(net.variables) - {"v2"}
        assert net.joint_log_prob({**answer.assignment, **seen}) == pytest.approx(answer.log_prob)


def test_fewer_answers_when_no_more_are_possible() -> None:
    net = random_bayesian_network(np.random.default_rng(3), 2, max_states=2)
    found = k_best(net, {}, 50)
    assert len(found) == 4
    assert sum(np.exp(a.log_prob) for a in found) == pytest.approx(1.0)


def test_through_map_query_with_virtual_evidence() -> None:
    net = random_bayesian_network(np.random.default_rng(9), 4, max_states=3)
    weights = {"v1": [0.1] * (len(net.states("v1")) - 1) + [5.0]}
    first, second, third = net.map_query({}, k=3, virtual_evidence=weights)
    assert first.log_prob >= second.log_prob >= third.log_prob
    assert first.log_prob == pytest.approx(net.map_query({}, virtual_evidence=weights).log_prob)


def test_impossible_evidence_raises() -> None:
    rain, wet = binary("rain"), binary("wet")
    cpds = [Table(rain, (), np.array([0.8, 0.2])), Table(wet, (rain,), np.array([[1.0, 0.0], [1.0, 0.0]]))]
    net = BayesianNetwork.from_parts([rain, wet], cpds)
    with pytest.raises(ImpossibleEvidenceError, match="wet=yes"):
        k_best(net, {"wet": "yes"}, 2)


def test_advice_over_budget_names_another_engine() -> None:
    parents, child = [discrete(f"p{i}", 2) for i in range(30)], discrete("c", 2)
    tables = [gg.Table(v, (), [0.4, 0.6]) for v in parents]
    wide = gg.BayesianNetwork.from_parts([*parents, child], [*tables, gg.NoisyOr(child, parents, [0.5] * 30)])
    for how in ({}, {"k": 2}, {"engine": "elimination"}):
        with pytest.raises(gg.BudgetError, match=r"targets=\[…\]") as caught:
            wide.map_query({"c": "1"}, **how)
        assert "auto" not in str(caught.value)
    for engine, other in (("auto", "search"), ("elimination", "search"), ("enumeration", "junction_tree")):
        with pytest.raises(gg.BudgetError) as caught:
            gg.datasets.asia().map_query(engine=engine, memory=100.0)
        assert f'engine="{other}"' in str(caught.value)
        assert f'engine="{engine}"' not in str(caught.value)
