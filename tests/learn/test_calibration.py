"""Strengths of edges on simulated networks: how often the edges are true."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from tests.portions import first


def logistic_network(seed: int, n: int = 6) -> gg.BayesianNetwork:
    """Two states each, effects from none at all to strong."""
    rng = np.random.default_rng(seed)
    edges = [(a, b) for a, b in itertools.combinations(range(n), 2) if rng.random() < 0.4]
    parents = {f"v{b}": [f"v{a}" for a, c in edges if c == b][:3] for b in range(n)}
    cpds = {}
    for name, above in parents.items():
        weights = rng.choice([-1.0, 1.0], len(above)) * rng.uniform(0.0, 1.5, len(above))
        rows = np.array(list(itertools.product([-1, 1], repeat=len(above)))).reshape(2 ** len(above), len(above))
        p = 1 / (1 + np.exp(-(rows @ weights)))
        cpds[name] = np.stack([1 - p, p], axis=-1).reshape([2] * len(above) + [2])
    return gg.BayesianNetwork(parents, cpds=cpds)


@functools.cache
def bootstraps(worlds: int) -> tuple[list, list]:
    nets = [logistic_network(seed) for seed in range(worlds)]
    frames = [net.sample(300, random_state=i)[list(net.variables)] for i, net in enumerate(nets)]
    return [gg.learn.bootstrap_edges(f, 20, random_state=i) for i, f in enumerate(frames)], nets


@pytest.mark.parametrize("worlds", first(1, [12, 24]))
def test_strengths_are_calibrated(worlds: int) -> None:
    """Shares within three standard errors of the strengths, and the 0.05 that a finite bootstrap may be off."""
    table = gg.learn.reliability(*bootstraps(worlds), bins=5)
    assert table["pairs"].sum() == worlds * 15
    error = np.sqrt(table["strength"] * (1 - table["strength"]) / table["pairs"])
    assert (np.abs(table["share"] - table["strength"]) <= 3 * error + 0.05).all(), table
    assert table["share"].iloc[-1] > 0.9


def worst_excess(table: pd.DataFrame, model_error: float) -> float:
    """By how many standard errors the worst bin is off, beyond the model error."""
    error = np.sqrt(np.maximum(table["strength"] * (1 - table["strength"]), 0.01) / table["pairs"])
    return float(((np.abs(table["share"] - table["strength"]) - model_error) / error).max())


def mean_error(table: pd.DataFrame) -> float:
    return float(np.average(np.abs(table["share"] - table["strength"]), weights=table["pairs"]))


def before_and_after(seeds: range, score: str, n: int, worlds: int, rows: int = 300) -> tuple[pd.DataFrame, ...]:
    nets = [logistic_network(seed, 5 + seed % 3) for seed in seeds]
    raw = [
        gg.learn.bootstrap_edges(net.sample(rows, random_state=i)[list(net.variables)], n, score=score, random_state=i)
        for i, net in enumerate(nets)
    ]
    sure = [strengths.calibrated(worlds, random_state=i) for i, strengths in enumerate(raw)]
    return gg.learn.reliability(raw, nets, bins=5), gg.learn.reliability(sure, nets, bins=5)


def test_calibration_mends_the_strengths_of_a_bold_score() -> None:
    raw, sure = before_and_after(range(300, 308), "aic", n=12, worlds=3)
    assert worst_excess(raw, 0.1) > 2 and mean_error(raw) > 0.2, "AIC says too much"
    assert worst_excess(sure, 0.1) < 1 and mean_error(sure) < 0.1, sure


@pytest.mark.slow
@pytest.mark.parametrize("score", ["bic", "bdeu", "aic"])
def test_calibrated_strengths_are_shares_of_true_edges(score) -> None:
    raw, sure = before_and_after(range(400, 416), score, n=20, worlds=5, rows=400)
    assert worst_excess(sure, 0.1) < 3, sure
    assert mean_error(sure) < max(0.08, mean_error(raw) / 2)


def test_the_map_from_strengths_to_probabilities() -> None:
    from gramgraph.learn.strength_map import StrengthMap

    rng = np.random.default_rng(0)
    hits = rng.integers(0, 51, 20_000)
    truth = StrengthMap(0.6, 1.8, -1.0, 0)
    found = StrengthMap.fit(hits / 50, rng.random(20_000) < truth(hits / 50, 50), 50)
    assert (found.a, found.b, found.c) == pytest.approx((0.6, 1.8, -1.0), abs=0.15)
    grid = found(np.linspace(0, 1, 51), 50)
    assert (np.diff(grid) > 0).all() and found.pairs == 20_000
    turned = StrengthMap.fit(np.array([0.1, 0.9] * 50), np.array([1, 0] * 50), 20)
    assert (np.diff(turned(np.linspace(0, 1, 21), 20)) > 0).all(), "monotone whatever the pairs say"


def test_calibration_keeps_what_is_known_and_does_not_depend_on_threads(tmp_path) -> None:
    frame = logistic_network(1).sample(200, random_state=0)[[f"v{i}" for i in range(6)]]
    known = {"required": [("v0", "v1")], "forbidden": [("v2", "v3"), ("v3", "v2"), ("v4", "v5")]}
    calls: list[tuple[int, int]] = []
    one = gg.learn.bootstrap_edges(
        frame, 6, calibrate=2, random_state=0, progress=lambda done, total: calls.append((done, total)), **known
    )
    two = gg.learn.bootstrap_edges(
        frame, 6, calibrate=2, random_state=0, n_jobs=2, checkpoint=tmp_path / "b.json", **known
    )
    np.testing.assert_array_equal(one.forward, two.forward)
    assert calls[-1] == (2, 2) and one.calibration == two.calibration
    assert one.calibration.pairs == 2 * (15 - 2), "pairs that constraints decide teach nothing"
    assert one.forward[0, 1] == 1.0 and one.forward[1, 0] == 0.0
    assert one.forward[2, 3] == one.forward[3, 2] == 0.0 == one.forward[4, 5] < one.forward[5, 4]
    assert "calibrated" in repr(one) and one.average_network().edges
    with pytest.raises(gg.OptionError, match="once"):
        one.calibrated(2)
    with pytest.raises(gg.OptionError, match="calibrate"):
        gg.learn.bootstrap_edges(frame, 2, calibrate=-1)
    with pytest.raises(gg.OptionError, match="worlds"):
        gg.learn.bootstrap_edges(frame, 2, random_state=0).calibrated(0)


def test_worlds_have_the_gaps_weights_and_real_columns_of_the_data() -> None:
    from gramgraph.learn.calibration import _like
    from gramgraph.learn.mixed_table import read_table

    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)
    frame = pd.DataFrame({"x": rng.normal(size=400) + 3 * group, "g": np.array(["a", "b"])[group]})
    frame.loc[:20, "x"] = np.nan
    frame.loc[390:, "g"] = None
    weights = rng.uniform(0.5, 1.5, 400)
    for data in (frame, frame[["g"]].assign(h=frame["g"])):
        table = read_table(data, weights)
        net = gg.BayesianNetwork("g -> x" if "x" in data else "g -> h").fit(data.dropna())
        drawn = _like(table, gg.learn_structure(data.dropna()), np.random.default_rng(1))
        assert drawn.variables == table.variables and len(net.variables) == 2
        np.testing.assert_array_equal(drawn.weights, weights)
        for old, new in zip(table.columns, drawn.columns, strict=True):
            assert old.dtype == new.dtype
            np.testing.assert_array_equal(
                (old != old) | (old < 0) & (old == -1), (new != new) | (new < 0) & (new == -1)
            )
    table = read_table(frame)
    drawn = _like(table, gg.learn_structure(frame.dropna()), np.random.default_rng(1))
    b = drawn.columns[1] == 1
    assert np.nanmean(drawn.columns[0][b]) - np.nanmean(drawn.columns[0][~b]) == pytest.approx(3.0, abs=0.5)


def test_the_frame_by_hand() -> None:
    from gramgraph.data import code_table
    from gramgraph.learn import EdgeStrengths

    coded = code_table(pd.DataFrame({"a": [0, 1], "b": [0, 1], "c": [0, 1]}))
    forward = np.array([[0, 0.5, 0.1], [0.45, 0, 0.2], [0, 0, 0]])
    table = gg.learn.reliability(
        EdgeStrengths(("a", "b", "c"), forward, 10, coded), gg.BayesianNetwork("a -> b; c"), bins=2
    )
    assert table["strength"].tolist() == pytest.approx([0.15, 0.95])
    assert table["share"].tolist() == [0.0, 1.0] and table["pairs"].tolist() == [2, 1]
    assert (table["low"] <= table["share"]).all() and (table["share"] <= table["high"]).all()


def test_the_picture_and_mistakes() -> None:
    from gramgraph.plot import plot_reliability

    ax = plot_reliability(*bootstraps(12), bins=5)
    assert ax.get_ylabel() == "share of true edges"
    with pytest.raises(gg.OptionError, match="bins"):
        gg.learn.reliability(*bootstraps(12), bins=0)
    with pytest.raises(gg.OptionError, match="its true network"):
        gg.learn.reliability(bootstraps(12)[0], bootstraps(12)[1][:3])
