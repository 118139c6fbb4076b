"""Join graphs: exact with large clusters, better than single factors with small ones, honest about the rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.engines import get_engine
from gramgraph.engines.propagation.join_clusters import LADDER, join_clusters, largest_clusters
from gramgraph.exceptions import OptionError
from gramgraph.models.builders import ising_grid
from gramgraph.testing.engines import compare_answers
from gramgraph.testing.random_models import random_bayesian_network, random_markov_network, random_question
from tests.portions import examples


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_large_clusters_are_exact(seed):
    rng = np.random.default_rng(seed)
    model = (
        random_bayesian_network(rng, 7, zeros=0.2, single=0.2, max_parents=3, density=0.7, noisy=0.2)
        if seed % 2
        else random_markov_network(rng, 6, zeros=0.2, single=0.2)
    )
    question = random_question(rng, model, cases=3, joints=0)
    compare_answers(get_engine("join_graph"), model, question, atol=1e-9)


def errors(model, **options):
    exact = model.query(None, engine="junction_tree")
    found = model.query(None, **options)
    return float(np.mean([np.abs(found[v].probabilities - exact[v].probabilities).mean() for v in exact])), found


def test_larger_clusters_are_nearer():
    rng = np.random.default_rng(4)
    net = ising_grid(8, 8, coupling=tuple(0.7 * rng.normal(size=s) for s in ((8, 7), (7, 8))), field=0.2)
    bp, _ = errors(net, engine="bp")
    small, found = errors(net, engine="join_graph", cells=16)
    large, _ = errors(net, engine="join_graph", cells=128)
    assert large < small < bp
    assert found.details["n_graphs"] == 4 and found.details["clusters"] > 10
    exact, found = errors(net, engine="join_graph")
    assert exact < 1e-10 and found.details["n_graphs"] == 1 and found.details["sweeps"] <= 2
    assert found.log_evidence == pytest.approx(net.log_evidence(), abs=1e-9)


@settings(max_examples=examples(50), deadline=None)
@given(seed=st.integers(0, 10**6), most=st.sampled_from([4, 16, 64]))
def test_every_variable_lives_on_a_tree(seed, most):
    """Clusters and arcs that name a variable: connected, without a loop; each factor has one cluster that holds it."""
    rng = np.random.default_rng(seed)
    n = 9
    scopes = [tuple(rng.choice(n, size=int(rng.integers(2, 4)), replace=False).tolist()) for _ in range(12)]
    order = rng.permutation(n).tolist()
    made = join_clusters(scopes, [2] * n, order, most)
    for v in {v for scope in scopes for v in scope}:
        holders = [i for i, scope in enumerate(made.scopes) if v in scope]
        named = [(i, j) for i, j, names in made.arcs if v in names]
        assert len(named) == len(holders) - 1
        reached = {holders[0]}
        for _ in holders:
            reached |= {b for i, j in named for a, b in ((i, j), (j, i)) if a in reached}
        assert reached == set(holders)
    placed = [f for factors in made.factors for f in factors]
    assert sorted(placed) == list(range(len(scopes)))
    for scope, factors in zip(made.scopes, made.factors, strict=True):
        assert all(set(scopes[f]) <= set(scope) for f in factors)


def test_the_same_seed_gives_the_same_answer():
    rng = np.random.default_rng(0)
    net = ising_grid(6, 6, coupling=tuple(rng.normal(size=s) for s in ((6, 5), (5, 6))), field=0.3)
    a, b, c = (net.query("x0_0", engine="join_graph", cells=8, random_state=s) for s in (1, 1, 2))
    assert np.array_equal(a["x0_0"].probabilities, b["x0_0"].probabilities)
    assert not np.array_equal(a["x0_0"].probabilities, c["x0_0"].probabilities)


def test_impossible_evidence_batches_and_parts_apart():
    net = gg.MarkovNetwork([(("a", "b"), [[1, 0], [0, 1]]), (("c", "d"), [[1, 2], [3, 4]])])
    found = net.query(["d"], [{"a": "yes", "b": "no"}, {"a": "yes"}], engine="join_graph")
    assert found.log_evidence[0] == -np.inf and np.isnan(found["d"].probabilities[0]).all()
    assert found.log_evidence[1] == pytest.approx(np.log(10))
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.query("d", {"a": "yes", "b": "no"}, engine="join_graph")


@pytest.mark.parametrize("options", [{"cells": 1}, {"n_graphs": 0}, {"damping": 1.0}, {"clusters": 3}])
def test_bad_options(options):
    with pytest.raises(OptionError):
        gg.datasets.asia().query("lung", engine="join_graph", **options)


def test_clusters_stay_small_once_nobody_waits():
    scopes, stop = [(i, i + 1) for i in range(40)] + [(i, i + 7) for i in range(30)], np.zeros(1, np.uint8)
    patient = largest_clusters(scopes, [2] * 41, list(range(41)), stop=stop)
    stop[0] = 1
    hurried = largest_clusters(scopes, [2] * 41, list(range(41)), stop=stop)
    assert patient.most > hurried.most == LADDER[-1]
