"""Frames of states are those that pandas makes of the same columns, however they were put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.answers import state_frames
from gramgraph.answers.state_frames import FEW_STATES, StateFrames
from gramgraph.variables import Var, discrete

INDEXES: dict[str, Any] = {
    "none": None,
    "numbers": pd.RangeIndex(2, 14, 3),
    "names": pd.Index(list("abcd"), name="case"),
    "days": pd.date_range("2024-01-01", periods=4),
    "pairs": pd.MultiIndex.from_product([["x", "y"], [0, 1]], names=["left", "right"]),
}


def variables(largest: int = 3) -> list[Var]:
    sizes = (2, largest, 2)
    return [discrete(name, [f"s{i}" for i in range(size)]) for name, size in zip("cab", sizes, strict=True)]


def states_of(nodes: list[Var], rows: int = 4) -> np.ndarray:
    """Some states, the last of each variable and a missing one among them."""
    states = np.random.default_rng(0).integers(0, [var.size for var in nodes], (rows, len(nodes)))
    states[0], states[1, 0] = [var.size - 1 for var in nodes], -1
    return states


def in_the_open(nodes: list[Var], states: np.ndarray, index: Any, log_prob: Any) -> pd.DataFrame:
    columns: dict[str, Any] = {
        var.name: pd.Categorical.from_codes(states[:, v], list(var.states)) for v, var in enumerate(nodes)
    }
    return pd.DataFrame(columns if log_prob is None else {**columns, "log_prob": log_prob}, index=index)


def test_this_pandas_has_the_parts_that_frames_are_made_of() -> None:
    assert state_frames._parts() is not None


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("with_log", [True, False])
@pytest.mark.parametrize("largest", [1, 3, FEW_STATES, FEW_STATES + 1, 200])
@pytest.mark.parametrize("index", INDEXES)
def test_the_frame_is_the_one_that_pandas_makes(
    index: str, largest: int, with_log: bool, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not quick:
        monkeypatch.setattr(state_frames, "_parts", lambda: None)
    nodes = variables(largest)
    states, log_prob = states_of(nodes), np.linspace(-2.0, -1.0, 4) if with_log else None
    made = StateFrames(nodes).make(states, INDEXES[index], log_prob)
    asked = in_the_open(nodes, states, INDEXES[index], log_prob)
    pd.testing.assert_frame_equal(made, asked, check_column_type=True)
    assert type(made) is pd.DataFrame and made.columns.tolist() == asked.columns.tolist()
    for var in nodes:
        assert made[var.name].cat.codes.dtype == asked[var.name].cat.codes.dtype


def test_frames_can_be_changed_like_any_other_and_share_nothing() -> None:
    nodes = variables()
    frames, states, index = StateFrames(nodes), states_of(variables()), pd.RangeIndex(4)
    log_prob = np.zeros(4)
    first = frames.make(states, index, log_prob)
    first.insert(0, "id", [1, 2, 3, 4])
    first["sum"] = first["log_prob"] + 1.0
    first.loc[2, "a"], first.index.name, first.columns.name = "s0", "mine", "mine"
    states[:] = 0
    del first["b"]
    assert first.columns.tolist() == ["id", "c", "a", "log_prob", "sum"]
    assert pd.concat([first, first]).shape == (8, 5)
    assert first.sort_values("id", ascending=False)["id"].tolist() == [4, 3, 2, 1]
    assert first.groupby("a", observed=True)["sum"].sum().sum() == 4.0
    second = frames.make(states_of(nodes), index, np.zeros(4))
    pd.testing.assert_frame_equal(second, in_the_open(nodes, states_of(nodes), index, np.zeros(4)))
    assert index.name is second.index.name is second.columns.name is None


def test_no_rows_and_no_variables() -> None:
    nodes = variables()
    assert StateFrames(nodes).make(np.zeros((0, 3), np.int64), None, np.zeros(0)).shape == (0, 4)
    assert StateFrames([]).make(np.zeros((2, 0), np.int64), None, None).shape == (2, 0)


def test_another_pandas_answers_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    net, cases = gg.datasets.asia(), pd.DataFrame({"xray": ["yes", "no"], "smoke": ["no", "no"]}, index=["a", "b"])
    before = [net.map_query(cases) for _ in range(3)]
    monkeypatch.setattr(state_frames, "_parts", lambda: None)
    net = gg.datasets.asia()
    for frame in before:
        pd.testing.assert_frame_equal(frame, net.map_query(cases))
