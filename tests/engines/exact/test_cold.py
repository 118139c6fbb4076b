"""While the junction tree's code is not in memory, elimination answers few targets of large networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph._numerics import compiling
from gramgraph.engines.exact import cold


@pytest.fixture(scope="module")
def chain() -> gg.BayesianNetwork:
    """x0 → x1 → … → x219, each like the one before with probability 0.9."""
    n = cold.LARGE + 20
    text = "; ".join(f"x{i}{{no|yes}} -> x{i + 1}{{no|yes}}" for i in range(n - 1))
    stay = [[0.9, 0.1], [0.2, 0.8]]
    return gg.BayesianNetwork(text, cpds={"x0": [0.5, 0.5], **{f"x{i}": stay for i in range(1, n)}})


@pytest.fixture
def interpreted():
    if compiling.disabled():
        pytest.skip("nothing is compiled")
    with compiling.tier("plain"):
        yield


def test_few_targets_are_eliminated_and_the_answer_says_so(chain, interpreted):
    given = {"x40": "yes", "x60": "no"}
    found = chain.query("x50", given)
    other = chain.query("x50", given, engine="junction_tree")
    assert (found.engine, other.engine) == ("elimination", "junction_tree")
    np.testing.assert_allclose(found["x50"].probabilities, other["x50"].probabilities, rtol=1e-12)
    assert found.log_evidence == pytest.approx(other.log_evidence, rel=1e-12)
    plan = gg.plan(chain, "x50", ["x40", "x60"])
    assert plan.engine == "elimination" and "not compiled" in plan.reason and plan.compile_seconds == 0.0


def test_cases_that_observe_the_same_variables_go_together(chain, interpreted):
    rows = pd.DataFrame({"x40": ["yes", "no", "no"]})
    found, other = chain.query("x50", rows), chain.query("x50", rows, engine="junction_tree")
    assert found.engine == "elimination"
    np.testing.assert_allclose(found["x50"].probabilities, other["x50"].probabilities, rtol=1e-12)


@pytest.mark.parametrize("why", ["many targets", "small network", "memory given", "dear", "long", "compiled"])
def test_the_tree_answers_where_that_is_better(chain, interpreted, monkeypatch, why):
    net, targets, given, options = chain, ["x50"], {"x40": "yes"}, {}
    if why == "many targets":
        targets = [f"x{i}" for i in range(cold.FEW + 1)]
    elif why == "small network":
        net, targets, given = gg.datasets.asia(), ["lung"], {"smoke": "yes"}
    elif why == "memory given":
        options = {"memory": 1e9}
    elif why == "dear":
        monkeypatch.setattr(cold, "FLOPS", 0)
    elif why == "long":  # longer than compiling takes
        monkeypatch.setattr(cold, "ripe", lambda function, seconds: seconds > 1e-6)
    else:
        monkeypatch.setattr(cold, "ripe", lambda function, seconds: True)
    assert net.query(targets, given, **options).engine in ("junction_tree", "enumeration")


def test_impossible_evidence_is_an_error_there_too(chain, interpreted):
    ends = gg.BayesianNetwork(
        "; ".join(f"x{i}{{no|yes}} -> x{i + 1}{{no|yes}}" for i in range(cold.LARGE)),
        cpds={"x0": [1.0, 0.0], **{f"x{i + 1}": [[1.0, 0.0], [0.0, 1.0]] for i in range(cold.LARGE)}},
    )
    with pytest.raises(gg.ImpossibleEvidenceError):
        ends.query("x3", {"x9": "yes"})


def test_a_plan_tells_what_compiling_costs(chain, monkeypatch):
    if compiling.disabled():
        pytest.skip("nothing is compiled")
    from gramgraph._numerics.tree import runner

    if not isinstance(runner.sums, compiling.Door) or runner.sums.in_memory():
        pytest.skip("the tree is compiled already")
    with compiling.tier("auto"):
        assert gg.plan(chain).compile_seconds == 0.0  # little work: interpreted
        monkeypatch.setattr(runner.sums, "rate", 1.0)
        monkeypatch.setattr(runner.sums, "kept", lambda: False)
        plan = gg.plan(chain)
    assert plan.compile_seconds > 2.0 and "first compiles loops, about" in str(plan)
