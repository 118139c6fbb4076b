"""The clique tree over the factor algebra."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gramgraph.engines import Run
from gramgraph.engines.exact.factor_tree import CliqueTree, FactorTree
from gramgraph.engines.exact.sheet import model_factors
from gramgraph.exceptions import BudgetError
from gramgraph.factors import TableFactor
from gramgraph.models import MarkovNetwork
from gramgraph.questions.question import Question
from gramgraph.testing import random_bayesian_network, random_markov_network
from gramgraph.testing.engines import compare_answers
from gramgraph.variables import discrete


@pytest.mark.parametrize("seed", range(12))
def test_every_tree_has_the_running_intersection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, 15, density=0.8) if seed % 2 else random_markov_network(rng, 15, n_factors=20)
    scopes = [factor.scope for factor in model_factors(net)]
    tree = CliqueTree.build(scopes)
    for home, scope in zip(tree.homes, scopes, strict=True):
        assert set(scope) <= set(tree.cliques[home])
    for child, parent in enumerate(tree.parents):
        assert parent < child
        if parent >= 0:
            shared = set(tree.cliques[child]) & set(tree.cliques[parent])
            assert shared == set(tree.separators[child])
            assert len(shared) < min(len(tree.cliques[child]), len(tree.cliques[parent])), "cliques are maximal"
    for var in net.vars:
        inside = [i for i, clique in enumerate(tree.cliques) if var in clique]
        tops = [i for i in inside if tree.parents[i] not in inside]
        assert len(tops) == 1, "the cliques of a variable are connected"


def test_joint_of_far_apart_variables() -> None:
    rng = np.random.default_rng(0)
    variables = [discrete(f"x{i}", 2) for i in range(10)]
    pairs = pairwise(variables)
    net = MarkovNetwork.from_parts(variables, [TableFactor(pair, rng.random((2, 2)) + 0.1) for pair in pairs])
    question = Question((), ((9, 0, 5), (3, 3 + 1)), (7,), np.array([[0], [1], [-1]]), (), True)
    compare_answers(FactorTree(), net, question)


def test_plan_prints_and_memory_is_checked() -> None:
    net = random_bayesian_network(np.random.default_rng(1), 9, density=0.9)
    question = Question((0,), (), (), np.zeros((1, 0), np.int64))
    plan = FactorTree().plan(net, question)
    assert f"width {plan.width}" in str(plan)
    assert plan.largest_clique[0] in str(plan)
    assert plan.flops > 0
    with pytest.raises(BudgetError) as caught:
        FactorTree().answer(net, question, Run(memory=64))
    assert set(caught.value.clique) == set(plan.largest_clique)


def test_no_factors_at_all() -> None:
    a = discrete("a", 4)
    net = MarkovNetwork.from_parts([a], [])
    answer = FactorTree().answer(net, Question((0,), (), (), np.zeros((1, 0), np.int64)))
    assert answer["a"].probabilities.tolist() == [0.25] * 4
    assert answer.log_evidence == pytest.approx(np.log(4.0))
