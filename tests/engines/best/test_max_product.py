"""Best assignments by propagation: the best one on trees, attained values and no false promise elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.engines import get_engine
from gramgraph.exceptions import ModelError
from gramgraph.factors import TableFactor
from gramgraph.models import MarkovNetwork
from gramgraph.models.builders import ising_grid
from gramgraph.testing.engines import compare_mpe
from gramgraph.testing.random_models import random_bayesian_network, random_question
from gramgraph.variables import binary
from tests.portions import examples


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_trees_are_solved(seed):
    rng = np.random.default_rng(seed)
    model = random_bayesian_network(rng, 7, max_parents=1, density=0.9, zeros=0.3, single=0.2)
    compare_mpe(get_engine("bp"), model, random_question(rng, model, cases=3))


def test_ties_are_broken_alike_everywhere():
    model = ising_grid(1, 8, coupling=1.0)  # all up and all down are equally good
    best = model.map_query(engine="bp")
    assert len(set(best.assignment.values())) == 1
    assert best.log_prob == pytest.approx(7.0)


def test_values_are_attained_and_near_the_best_on_grids():
    gaps = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        pairs = tuple(rng.normal(size=s) for s in ((5, 4), (4, 5)))
        model = ising_grid(5, 5, coupling=pairs, field=0.5 * rng.normal(size=(5, 5)))
        found, truth = model.map_query(engine="bp"), model.map_query()
        assert found.log_prob == pytest.approx(model.joint_log_prob(found.assignment), abs=1e-9)
        assert found.log_prob <= truth.log_prob + 1e-9
        assert not found.exact and found.bound == np.inf and truth.exact
        gaps.append(truth.log_prob - found.log_prob)
    assert np.median(gaps) < 0.5


def test_likelihoods_evidence_and_tables_of_cases():
    net = gg.BayesianNetwork(
        "A -> B; B -> C", cpds={"A": 0.3, "B": {"no": 0.2, "yes": 0.7}, "C": {"no": 0.1, "yes": 0.6}}
    )
    cases = [{"C": "yes"}, {"A": "no"}, {}]
    found, truth = net.map_query(cases, engine="bp"), net.map_query(cases)
    assert found.drop(columns="log_prob").astype(str).equals(truth.drop(columns="log_prob").astype(str))
    np.testing.assert_allclose(found["log_prob"], truth["log_prob"])
    weights = {"B": {"no": 1.0, "yes": 9.0}}
    assert (
        net.map_query(virtual_evidence=weights, engine="bp").assignment
        == net.map_query(virtual_evidence=weights).assignment
    )


def test_impossible_evidence_and_zeros_that_cannot_be_met():
    with pytest.raises(gg.ImpossibleEvidenceError):
        gg.datasets.asia().map_query({"lung": "yes", "either": "no"}, engine="bp")
    x, y, z = (binary(v) for v in "xyz")
    odd = MarkovNetwork(factors=[TableFactor(pair, 1.0 - np.eye(2)) for pair in ((x, y), (y, z), (x, z))])
    with pytest.raises(ModelError, match="no assignment"):
        odd.map_query(engine="bp")
