"""The straight road of `query` gives what the general road gives; equal cases share one answer."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph._numerics.counts.rows import distinct_rows
from gramgraph.compile.lower import lower
from gramgraph.conditionals import Table
from gramgraph.engines.exact.enumeration import JOINT_CELLS
from gramgraph.testing.random_models import random_bayesian_network
from gramgraph.variables import discrete


def _case(net: gg.BayesianNetwork, rng: np.random.Generator) -> dict[str, str]:
    draw = net.sample(1, random_state=rng).iloc[0]
    return {v: draw[v] for v in net.variables if rng.random() < 0.4}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7))
def test_small_joints_and_the_tree_agree(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, n, zeros=0.2, single=0.1, noisy=0.2)
    case = _case(net, rng)
    quick, tree = net.query(None, case), net.query(None, case, engine="junction_tree")
    small = math.prod(lower(net).sizes.tolist()) <= JOINT_CELLS
    assert quick.engine == ("enumeration" if small else "junction_tree")
    assert list(quick) == list(tree)
    assert quick.log_evidence == pytest.approx(tree.log_evidence, abs=1e-12)
    for v in tree:
        np.testing.assert_allclose(quick[v].probabilities, tree[v].probabilities, atol=1e-13)
    assert quick[next(iter(case))].probabilities.max() == 1.0 if case else True


def test_named_targets_leave_the_others_out() -> None:
    net = gg.datasets.asia()
    answer = net.query(["lung", "smoke"], {"xray": "yes", "smoke": "no"})
    assert list(answer) == ["lung", "smoke"]
    assert answer["lung"].probabilities == pytest.approx(
        net.query("lung", {"xray": "yes", "smoke": "no"}, engine="junction_tree")["lung"].probabilities, abs=1e-15
    )


def test_sums_too_small_to_trust_go_to_the_tree() -> None:
    chain = [discrete(f"x{i}", ("a", "b")) for i in range(6)]
    row = [1 - 1e-60, 1e-60]
    tables = [Table(chain[0], (), row), *(Table(chain[i], (chain[i - 1],), [row, row]) for i in range(1, 6))]
    net = gg.BayesianNetwork.from_parts(chain, tables)
    case = {f"x{i}": "b" for i in range(1, 6)}
    answer = net.query("x0", case)
    assert answer.engine == "junction_tree"
    assert answer.log_evidence == pytest.approx(5 * math.log(1e-60))
    assert answer["x0"].probabilities[1] == pytest.approx(1e-60)


def test_impossible_evidence_is_named_by_the_general_road() -> None:
    net = gg.datasets.asia()
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.query("lung", {"tub": "yes", "either": "no"})


@given(st.lists(st.lists(st.integers(-1, 2), min_size=3, max_size=3), max_size=60))
def test_distinct_rows_match_a_dictionary(rows: list[list[int]]) -> None:
    codes = np.array(rows, np.int64).reshape(-1, 3)
    first, kind = distinct_rows(codes)
    seen: dict[tuple[int, ...], int] = {}
    expected = [seen.setdefault(tuple(row), len(seen)) for row in rows]
    assert kind.tolist() == expected
    assert [tuple(codes[i]) for i in first] == list(seen)


def test_equal_cases_get_the_answers_of_single_cases() -> None:
    net = random_bayesian_network(np.random.default_rng(3), 12)
    names = list(net.variables[:3])
    cases = net.sample(200, random_state=1)[names]
    assert len(cases.drop_duplicates()) < 100, "the cases should repeat each other"
    many = net.query(None, cases)
    best = net.map_query(cases)
    told: list[int] = []
    for i in (0, 57, 199):
        one = net.query(None, dict(cases.iloc[i]))
        assert many.log_evidence[i] == pytest.approx(one.log_evidence, abs=1e-12)
        for v in one:
            np.testing.assert_allclose(many[v].probabilities[i], one[v].probabilities, atol=1e-13)
        assert best["log_prob"][i] == pytest.approx(net.map_query(dict(cases.iloc[i])).log_prob, abs=1e-12)
    net.query(None, pd.concat([cases] * 3, ignore_index=True), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (600, 600)


def test_likelihoods_of_equal_cases_stay_their_own() -> None:
    net = gg.datasets.asia()
    cases = pd.DataFrame({"smoke": ["yes"] * 40})
    answer = net.query("lung", cases, virtual_evidence={"xray": [1.0, 3.0]})
    one = net.query("lung", {"smoke": "yes", "xray": gg.Likelihood([1.0, 3.0])})
    np.testing.assert_allclose(answer["lung"].probabilities, np.tile(one["lung"].probabilities, (40, 1)), atol=1e-13)
