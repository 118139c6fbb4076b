"""Structural EM: monotone, against EM with a fixed graph, hidden variables found, mistakes named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.data import code_table
from gramgraph.learn.em import expected_counts
from gramgraph.learn.structural_em import Completion, _em, _maximize
from gramgraph.testing.random_models import random_bayesian_network
from tests.portions import seeds


def with_gaps(net: gg.BayesianNetwork, rows: int, share: float, seed: int) -> pd.DataFrame:
    frame = net.sample(rows, random_state=seed).astype(object)
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


def observed_bic(net: gg.BayesianNetwork, frame: pd.DataFrame) -> float:
    size = sum(
        int(np.prod(np.shape(net.conditional(v).table())[:-1])) * (len(net.states(v)) - 1) for v in net.variables
    )
    return float(np.sum(net.log_evidence(frame))) - 0.5 * np.log(len(frame)) * size


@pytest.mark.parametrize("seed", range(4))
def test_completions_give_the_expected_counts_of_the_junction_tree(seed) -> None:
    net = random_bayesian_network(np.random.default_rng(seed), 4)
    table = code_table(with_gaps(net, 60, 0.3, seed), net.vars)
    filled = Completion.of(table)
    parents = list(net.parent_positions)
    tables = [np.asarray(net.conditional(v).table()) for v in net.variables]
    weights, log_likelihood = filled.expect(parents, tables)
    counts, expected = expected_counts(net, np.ascontiguousarray(table.matrix.T, np.int64), np.ones(60))
    assert log_likelihood == pytest.approx(expected, abs=1e-8)
    for v, found in enumerate(parents):
        np.testing.assert_allclose(filled.counts(weights).table((*found, v)), counts[v], atol=1e-9)


@pytest.mark.parametrize("seed", seeds(4, 10))
def test_the_score_never_goes_down(seed) -> None:
    net = random_bayesian_network(np.random.default_rng(seed), 5)
    frame = with_gaps(net, 150, 0.25, seed)
    if seed % 2:
        frame = frame.drop(columns=net.variables[0])
    found = gg.learn_structure(frame, method="structural_em", hidden={"h": 2} if seed % 2 else None, random_state=seed)
    trace = found.report.trace
    assert (np.diff(trace) >= -1e-9).all()
    if trace:
        assert trace[-1] == pytest.approx(found.report.score)
    assert observed_bic(found, frame.assign(h=None) if seed % 2 else frame) >= found.report.score - 1e-6


def test_steps_of_em_inside_never_go_down() -> None:
    net = random_bayesian_network(np.random.default_rng(3), 5)
    filled = Completion.of(code_table(with_gaps(net, 200, 0.3, 3), net.vars))
    parents, tables = list(net.parent_positions), [np.asarray(net.conditional(v).table()) for v in net.variables]
    before = filled.expect(parents, tables)[1]
    for _ in range(10):
        weights, value = filled.expect(parents, tables)
        assert value >= before - 1e-9
        before, tables = value, _maximize(filled, parents, weights)
    assert _em(filled, parents, tables, 200.0)[1] >= before - 1e-9


def test_more_is_learned_than_from_complete_rows() -> None:
    truth = gg.datasets.sprinkler()
    frame = with_gaps(truth, 3000, 0.2, 0)
    found = gg.learn_structure(frame, method="structural_em")
    assert found.is_equivalent(truth)
    whole = gg.learn_structure(frame.dropna())
    assert found.report.score >= observed_bic(whole.fit(frame), frame) - 1e-6
    assert found.query("wet", {"rain": "yes"})["wet"].prob("yes") == pytest.approx(
        truth.query("wet", {"rain": "yes"})["wet"].prob("yes"), abs=0.03
    )


def test_without_gaps_it_is_hill_climbing() -> None:
    frame = gg.datasets.asia().sample(1000, random_state=0)
    found, climbed = gg.learn_structure(frame, method="structural_em"), gg.learn_structure(frame)
    assert found.report.score == pytest.approx(climbed.report.score)
    assert found == climbed


def test_a_hidden_cause_makes_the_graph_simple() -> None:
    rng = np.random.default_rng(0)
    h = rng.random(4000) < 0.5
    frame = pd.DataFrame({f"x{i}": np.where(rng.random(4000) < np.where(h, 0.9, 0.1), "b", "a") for i in range(5)})
    found = gg.learn_structure(frame, method="structural_em", hidden={"h": ["low", "high"]}, random_state=1)
    assert found.cpdag().neighbors("h") == tuple(frame.columns)
    assert len(found.edges) == 5
    assert found.report.score > gg.learn_structure(frame).report.score + 50
    assert found.states("h") == ("low", "high")


def test_constraints_and_mistakes() -> None:
    frame = with_gaps(gg.datasets.asia(), 400, 0.1, 1)
    required, forbidden = [("smoke", "xray")], [("either", "xray")]
    net = gg.learn_structure(frame, method="structural_em", required=required, forbidden=forbidden, max_parents=2)
    assert set(required) <= set(net.edges) and not set(forbidden) & set(net.edges)
    assert max(len(net.parents(v)) for v in net.variables) <= 2
    for options, words in (
        ({"score": "k2"}, "'bic' or 'aic'"),
        ({"hidden": {"asia": 2}}, "is a column"),
        ({"hidden": {"h": 1}}, "at least 2 states"),
        ({"hidden": {"h": 30, "i": 30, "j": 30}}, "ways"),
    ):
        with pytest.raises(gg.OptionError, match=words):
            gg.learn_structure(frame, method="structural_em", **options)
    with pytest.raises(gg.OptionError, match="discrete columns"):
        gg.learn_structure({"x": np.linspace(0, 1, 30)}, method="structural_em")
