"""The best values of models on cells: exact over the anchors, whatever the number that is asked for."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg


def rows(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, kind = rng.normal(size=n), rng.choice(["x", "y"], size=n)
    c = a + 2.0 * (kind == "x") + 0.3 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "kind": kind, "c": c, "t": np.angle(np.exp(1j * (c + 0.5 * rng.normal(size=n))))})


@pytest.fixture(scope="module", params=["dag", "tree"])
def net(request):
    domains = {"t": "circle"}
    if request.param == "dag":
        return gg.learn_dag(rows(), "a -> c <- kind; c -> t", cells=7, domains=domains)
    return gg.learn_tree(rows(), edges=[("a", "c"), ("kind", "c"), ("c", "t")], cells=7, domains=domains)


GIVEN = [{"a": 0.3}, {"c": 0.8, "kind": "x"}, {"t": 1.0}, {"a": -0.2, "kind": "y", "t": 0.4}, {}]


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_every_number_of_best_values_has_the_same_first(net, given):
    alone = net.map_query(given)
    one, three, nine = (net.map_query(given, k=k) for k in (1, 3, 9))
    for best in (one[0], three[0], nine[0]):
        assert best.assignment == alone.assignment and best.log_prob == pytest.approx(alone.log_prob, abs=1e-12)
    assert [b.log_prob for b in nine[:3]] == pytest.approx([b.log_prob for b in three], abs=1e-12)
    assert all(a.log_prob >= b.log_prob for a, b in pairwise(nine))
    for best in nine:  # told with the density at the values
        assert best.log_prob == pytest.approx(net.joint_log_prob({**given, **best.assignment}), abs=1e-6)


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_nothing_at_the_anchors_is_better(net, given):
    free = [name for name in net.variables if name not in given]
    values = [[net.axis(name).value(i) for i in range(net.axis(name).m)] for name in free]
    every = pd.DataFrame(product(*values), columns=free).assign(**given)
    logs = np.sort(net.log_likelihood(every[list(net.variables)]))[::-1]
    assert [b.log_prob for b in net.map_query(given, k=5)] == pytest.approx(logs[:5], abs=1e-6)


def test_a_table_of_cases_gives_what_each_case_gives(net):
    table = net.map_query(pd.DataFrame(GIVEN))
    for (_, row), given in zip(table.iterrows(), GIVEN, strict=True):
        alone = net.map_query(given)
        assert row["log_prob"] == pytest.approx(alone.log_prob, abs=1e-9)
        assert {**given, **alone.assignment} == {name: row[name] for name in net.variables}


def test_likelihoods_count(net):
    heard = net.map_query({"a": 0.3}, virtual_evidence={"kind": [0.0, 1.0]}, k=2)
    told = net.map_query({"a": 0.3, "kind": "y"}, k=2)
    assert [b.assignment["c"] for b in heard] == [b.assignment["c"] for b in told]
    assert [b.log_prob for b in heard] == pytest.approx([b.log_prob for b in told], abs=1e-9)
