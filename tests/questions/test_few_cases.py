"""Small tables of cases take a road of their own: it reads what the general one reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.questions import reading
from gramgraph.questions.few_cases import codes_of_few
from gramgraph.questions.reading import read
from gramgraph.variables import discrete


def network() -> gg.BayesianNetwork:
    nodes = [discrete("a", ["0", "1", "2"]), discrete("b", ["no", "yes"]), discrete("c", ["+1", "-1"])]
    tables = [gg.Table(var, (), np.full(var.size, 1.0 / var.size)) for var in nodes]
    return gg.BayesianNetwork.from_parts(nodes, tables)


TABLES: dict[str, Callable[[], Any]] = {
    "labels": lambda: pd.DataFrame({"b": ["yes", "no", None], "a": ["2", "0", "1"]}),
    "objects": lambda: pd.DataFrame({"b": ["yes", np.nan, pd.NA]}, dtype=object),
    "numbers": lambda: pd.DataFrame({"a": [2, 0, 1], "c": [1.0, np.nan, -1.0]}, index=["x", "y", "z"]),
    "truth": lambda: pd.DataFrame({"b": [True, False, True]}),
    "categories": lambda: pd.DataFrame({"b": pd.Categorical(["yes", None, "no"], ["yes", "no"])}),
    "gaps": lambda: pd.DataFrame({"a": ["1", float("nan"), None], "b": [np.nan, "no", pd.NaT]}, dtype=object),
    "dicts": lambda: [{"b": "yes"}, {"a": 1, "b": None}, {"c": "-1"}],
}


@pytest.mark.parametrize("name", TABLES)
def test_both_roads_read_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = network()
    assert codes_of_few(net, TABLES[name]()) is not None
    quick = read(net, None, TABLES[name]())
    monkeypatch.setattr(reading, "codes_of_few", lambda model, cases, rows: None)
    slow = read(net, None, TABLES[name]())
    assert quick.observed == slow.observed
    np.testing.assert_array_equal(quick.codes, slow.codes)
    index = pd.RangeIndex(3) if quick.index is None else quick.index
    assert list(index) == list(slow.index)


@pytest.mark.parametrize(
    "cases",
    [
        pd.DataFrame({"b": ["maybe"]}),
        pd.DataFrame({"d": ["yes"]}),
        pd.DataFrame({"b": [gg.Likelihood([0.1, 0.9])]}),
        [{"b": {"yes", "no"}}],
        [{"b": ["yes"]}],
        [],
    ],
)
def test_what_is_unusual_is_left_to_the_general_reader(cases: Any) -> None:
    assert codes_of_few(network(), cases) is None


def test_wide_tables_of_few_rows_are_small_where_that_is_asked() -> None:
    nodes = [discrete(f"x{i}", ["no", "yes"]) for i in range(60)]
    tables = [gg.Table(var, (), np.full(2, 0.5)) for var in nodes]
    net = gg.BayesianNetwork.from_parts(nodes, tables)
    cases = net.sample(100, random_state=0)
    assert codes_of_few(net, cases) is None and codes_of_few(net, cases, rows=99) is None
    found = codes_of_few(net, cases, rows=100)
    assert found is not None and list(found[0]) == list(range(60))
    np.testing.assert_array_equal(found[1][:, 7], cases["x7"].cat.codes)
    assert codes_of_few(net, cases.astype(str).to_dict("records"), rows=100) is not None


@pytest.mark.parametrize("name", TABLES)
def test_gaps_are_told(name: str) -> None:
    found = codes_of_few(network(), TABLES[name]())
    assert found is not None
    assert found.gaps == bool((found.codes < 0).any()) == (name != "truth")
