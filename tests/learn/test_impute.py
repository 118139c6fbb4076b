"""Filling gaps: the most probable cells, and draws with the right distribution."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg


def test_most_probable_cells_equal_map_queries() -> None:
    net = gg.datasets.asia()
    frame = net.sample(60, random_state=0).astype(object)
    gaps = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.3)
    filled = net.impute(gaps)
    assert not filled.isna().any().any()
    known = gaps.notna()
    assert (filled.astype(object)[known] == gaps[known]).sum().sum() == known.sum().sum()
    for i in range(60):
        case = gaps.iloc[i].dropna().to_dict()
        expected = net.map_query(case).log_prob
        assert net.joint_log_prob(filled.iloc[i].to_dict()) == pytest.approx(expected, abs=1e-9)


def test_draws_follow_the_posterior() -> None:
    net = gg.datasets.asia()
    gaps = pd.DataFrame({"xray": ["yes"] * 20_000, "lung": [None] * 20_000, "other": range(20_000)})
    filled = net.impute(gaps, method="draw", random_state=0)
    p = net.query("lung", {"xray": "yes"})["lung"].prob("yes")
    assert (filled["lung"] == "yes").mean() == pytest.approx(p, abs=5 * (p * (1 - p) / 20_000) ** 0.5)
    assert filled["other"].tolist() == list(range(20_000))
    assert filled.equals(net.impute(gaps, method="draw", random_state=0))


def test_impossible_rows_and_wrong_methods_are_named() -> None:
    net = gg.datasets.asia()
    bad = pd.DataFrame({"tub": ["no", "yes"], "either": ["no", "no"], "lung": [None, None]}, index=["a", "b"])
    with pytest.raises(gg.ImpossibleEvidenceError, match="row b"):
        net.impute(bad)
    with pytest.raises(gg.ImpossibleEvidenceError, match="row b"):
        net.impute(bad, method="draw", random_state=0)
    with pytest.raises(gg.OptionError, match="'mpe' or 'draw'"):
        net.impute(bad, method="mean")


def test_cells_keep_their_kind() -> None:
    truth = pd.DataFrame({"c": [True, False] * 5, "d": [True, False, True, True, False] * 2})
    net = gg.BayesianNetwork("c -> d").fit(truth)
    filled = net.impute(pd.DataFrame({"c": [True, None, False], "d": [True, False, True]}))
    assert filled["c"].tolist()[::2] == [True, False] and filled["c"].map(type).eq(bool).all()
    numbers = gg.BayesianNetwork("a -> b").fit(pd.DataFrame({"a": [0, 1, 1, 0], "b": [10, 20, 20, 10]}))
    assert numbers.impute(pd.DataFrame({"a": [0, 1], "b": [np.nan, 20]}))["b"].sum() == 30
