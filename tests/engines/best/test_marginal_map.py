"""Marginal MAP: both ways against the joint table of the targets."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.answers import Assignment
from gramgraph.engines.best.marginal_map import marginal_map
from gramgraph.engines.exact.enumeration import Enumeration
from gramgraph.exceptions import BudgetError, ImpossibleEvidenceError, VariableError
from gramgraph.models import BayesianNetwork
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.testing import random_bayesian_network, random_markov_network, random_question
from gramgraph.typing import FloatArray


def truth(model: GraphicalModel, question: Question, targets: tuple[int, ...]) -> tuple[FloatArray, float]:
    """log p(targets, e) for all states of the targets, and log p(e)."""
    asked = Question((), (targets,), question.observed, question.codes, question.likelihoods)
    answer = Enumeration().answer(model, asked)
    if answer.log_evidence == -np.inf:
        return np.full((), -np.inf), -np.inf
    belief = answer[tuple(model.vars[i].name for i in targets)]
    with np.errstate(divide="ignore"):
        return np.log(belief.probabilities) + float(answer.log_evidence), float(answer.log_evidence)


@pytest.mark.parametrize("method", ["elimination", "search", "auto"])
@pytest.mark.parametrize("seed", range(12))
def test_value_and_assignment(method: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model: GraphicalModel = (
        random_bayesian_network(rng, 8, zeros=0.2 * (seed % 3 == 0), single=0.1)
        if seed % 4
        else random_markov_network(rng, 7, n_factors=9, max_scope=2)
    )
    question = random_question(rng, model, cases=None, observe=0.2, likelihood=0.1)
    seen = question.hard_evidence(0)
    targets = tuple(int(i) for i in rng.permutation(len(model)) if int(i) not in seen)[: int(rng.integers(1, 5))]
    logs, log_evidence = truth(model, question, targets)
    names = [model.vars[i].name for i in targets]
    if log_evidence == -np.inf:
        with pytest.raises(ImpossibleEvidenceError):
            marginal_map(model, names, question, method=method)  # type: ignore[arg-type]
        return
    found = marginal_map(model, names, question, method=method)  # type: ignore[arg-type]
    assert found.exact
    assert found.bound == found.log_prob
    assert list(found.assignment) == names
    assert found.log_prob == pytest.approx(logs.max(), abs=1e-9)
    at = tuple(model.vars[i].index(found.assignment[model.vars[i].name]) for i in targets)
    assert logs[at] == pytest.approx(logs.max(), abs=1e-9)


def hard_network() -> BayesianNetwork:
    """Sums and maxima interleave: the greedy start is not the best."""
    return random_bayesian_network(np.random.default_rng(77), 14, max_states=2, max_parents=3, density=0.9)


def test_a_gap_is_kept_and_the_bound_holds() -> None:
    net = hard_network()
    targets = [f"v{i}" for i in range(0, 14, 2)]
    exact = marginal_map(net, targets, method="elimination")
    for gap in (0.0, 0.05, 0.5, 10.0):
        found = marginal_map(net, targets, method="search", gap=gap)
        assert found.log_prob <= exact.log_prob + 1e-9
        assert found.bound >= exact.log_prob - 1e-9
        assert found.bound - found.log_prob <= gap + 1e-9
    assert marginal_map(net, targets, method="search").log_prob == pytest.approx(exact.log_prob)


def test_early_stop_returns_the_incumbent_with_a_bound() -> None:
    net = hard_network()
    targets = [f"v{i}" for i in range(0, 14, 2)]
    exact = marginal_map(net, targets, method="elimination")
    found = marginal_map(net, targets, method="search", time_limit=0.0)
    assert not found.exact
    assert np.isfinite(found.bound)
    assert found.log_prob <= exact.log_prob + 1e-9 <= found.bound + 2e-9
    assert net.log_evidence(found.assignment) == pytest.approx(found.log_prob), "the value belongs to the assignment"


def test_callback_sees_improvements_and_can_stop() -> None:
    net = hard_network()
    targets = [f"v{i}" for i in range(0, 14, 2)]
    seen: list[Assignment] = []
    marginal_map(net, targets, method="search", callback=seen.append)
    values = [a.log_prob for a in seen]
    assert values == sorted(values)
    assert set(seen[-1].assignment) == set(targets)
    stopped = marginal_map(net, targets, method="search", callback=lambda _: True)
    assert not stopped.exact
    assert stopped.log_prob == pytest.approx(values[0])


def test_all_variables_as_targets_is_the_most_probable_explanation() -> None:
    net = random_bayesian_network(np.random.default_rng(4), 7)
    best = net.map_query()
    for method in ("elimination", "search"):
        found = marginal_map(net, net.variables, method=method)  # type: ignore[arg-type]
        assert found.log_prob == pytest.approx(best.log_prob)
        assert found.assignment == best.assignment


def test_through_map_query() -> None:
    net = random_bayesian_network(np.random.default_rng(4), 7)
    evidence = {"v3": net.states("v3")[0]}
    found = net.map_query(evidence, targets=["v0", "v5"])
    joint = net.query(("v0", "v5"), evidence)
    p = joint["v0", "v5"].probabilities
    assert found.log_prob == pytest.approx(np.log(p.max()) + joint.log_evidence)


def test_refuses_before_allocating() -> None:
    net = hard_network()
    for method in ("elimination", "search"):
        with pytest.raises(BudgetError) as caught:
            marginal_map(net, ["v0", "v2"], method=method, memory=100)  # type: ignore[arg-type]
        assert caught.value.clique
    small = marginal_map(net, ["v0", "v2", "v4"], memory=60_000)
    assert small.log_prob == pytest.approx(marginal_map(net, ["v0", "v2", "v4"]).log_prob)


def test_observed_and_unknown_targets_are_refused() -> None:
    net = hard_network()
    with pytest.raises(VariableError, match="observed"):
        marginal_map(net, ["v0"], {"v0": net.states("v0")[0]})
    with pytest.raises(VariableError, match="Did you mean"):
        marginal_map(net, ["v00"])
