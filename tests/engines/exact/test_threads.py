"""Tables of cases on two threads: the numbers of one, and nothing left behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.compile.lower import lower
from gramgraph.engines.exact import junction_tree
from gramgraph.questions.question import over_rows
from gramgraph.questions.reading import read


@pytest.fixture
def net() -> gg.BayesianNetwork:
    return gg.datasets.asia()


@pytest.fixture
def cases(net: gg.BayesianNetwork) -> pd.DataFrame:
    """Some forty cases, nearly all of which show other variables."""
    frame = net.sample(40, random_state=0).astype(object)
    return frame.mask(np.random.default_rng(1).random(frame.shape) > 0.4)


@pytest.fixture
def a_tree_a_pattern(monkeypatch: Any) -> None:
    monkeypatch.setattr(junction_tree, "LARGE_CELLS", 0)
    monkeypatch.setattr(junction_tree, "NARROW_CELLS", 0)


@pytest.mark.usefixtures("a_tree_a_pattern")
def test_trees_of_many_patterns_on_two_threads(net: gg.BayesianNetwork, cases: pd.DataFrame) -> None:
    wanted = [None, [("lung", "smoke"), "xray"]]
    for targets in wanted:
        one, two = (net.query(targets, cases, n_jobs=n_jobs, engine="junction_tree") for n_jobs in (1, 2))
        np.testing.assert_array_equal(one.log_evidence, two.log_evidence)
        for name in one:
            np.testing.assert_array_equal(one[name].probabilities, two[name].probabilities)
    assert net.map_query(cases, n_jobs=2).equals(net.map_query(cases))


@pytest.mark.usefixtures("a_tree_a_pattern")
def test_trees_of_many_patterns_give_the_numbers_of_single_cases(net: gg.BayesianNetwork, cases: pd.DataFrame) -> None:
    told: list[tuple[int, int]] = []
    many = net.query(
        "lung", cases, n_jobs=2, engine="junction_tree", progress=lambda done, total: told.append((done, total))
    )
    for i, case in enumerate(cases.to_dict("records")):
        seen = {name: state for name, state in case.items() if isinstance(state, str)}
        one = net.query("lung", seen, engine="enumeration")
        assert many.log_evidence[i] == pytest.approx(one.log_evidence)
        np.testing.assert_allclose(many["lung"].probabilities[i], one["lung"].probabilities)
    assert told[-1] == (40, 40)


@pytest.mark.usefixtures("a_tree_a_pattern")
def test_trees_of_many_patterns_leave_no_orders(net: gg.BayesianNetwork, cases: pd.DataFrame, monkeypatch: Any) -> None:
    monkeypatch.setattr("gramgraph.compile.tree.UNSEEN_LOG_CELLS", -1.0)
    net.query(None, cases, engine="junction_tree")
    assert all(part.keep.all() for part, _ in lower(net).seen_orders)  # that of nothing observed alone


@pytest.mark.parametrize("first", [1, 4, 1000])
def test_rows_get_trees_of_their_own_however_many_are_looked_at_first(
    net: gg.BayesianNetwork, first: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(junction_tree, "GENERAL_CELLS", 0)
    monkeypatch.setattr(junction_tree, "FIRST_ROWS", first)
    rows = net.sample(400, random_state=0).astype(object)
    kinds = np.random.default_rng(1).random((3, rows.shape[1])) > 0.4
    few = rows.mask(kinds[np.random.default_rng(2).integers(0, 3, 400)])
    many = rows.mask(np.random.default_rng(3).random(rows.shape) > 0.4)
    for cases, jobs in [(few, 3), (many, 1)]:
        question = read(net, None, cases)
        assert len(list(junction_tree._jobs(net, lower(net), question, None))) == jobs
        one = net.query("lung", cases, engine="junction_tree")
        two = net.query("lung", cases, engine="enumeration")
        np.testing.assert_allclose(one.log_evidence, two.log_evidence, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 63, 1025, 2000])
def test_folding_over_rows(n: int) -> None:
    table = np.random.default_rng(n).random((n, 5)) > np.array([0.0, 0.5, 0.001, 0.999, 1.0])
    np.testing.assert_array_equal(over_rows(np.logical_and, table), table.all(axis=0))
    np.testing.assert_array_equal(over_rows(np.logical_or, table), table.any(axis=0))
    np.testing.assert_array_equal(over_rows(np.logical_or, table[:, 1:]), table[:, 1:].any(axis=0))
