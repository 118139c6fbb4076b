"""Edge strengths: real columns, files, calibration."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg


def mixed_frame(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, n)
    x = rng.normal(size=n) + 3 * group
    return pd.DataFrame(
        {"x": x, "y": 2 * x + rng.normal(size=n), "z": rng.normal(size=n), "g": np.array(["a", "b"])[group]}
    )


def test_real_and_mixed_columns() -> None:
    frame = mixed_frame()
    strengths = gg.learn.bootstrap_edges(frame, 8, random_state=0)
    found = strengths.to_frame()
    assert set(map(frozenset, found.loc[found["strength"] == 1.0, ["from", "to"]].to_numpy())) >= {frozenset("xy")}
    net = strengths.average_network()
    assert all(a == "g" for a, b in net.edges if "g" in (a, b)), "no edge from a real to a discrete variable"
    assert net.query("y", {"x": 1.0})["y"].mean() == pytest.approx(2.0, abs=0.5)
    real = gg.learn.bootstrap_edges(frame[["x", "y", "z"]], 6, random_state=0)
    assert real.forward[0, 1] == real.forward[1, 0] == 0.5, "the data do not tell which way"


def test_checkpoints_of_real_columns(tmp_path) -> None:
    frame, path = mixed_frame(100), tmp_path / "boot.json"
    gg.learn.bootstrap_edges(frame, 2, random_state=0, checkpoint=path)
    more = gg.learn.bootstrap_edges(frame, 4, random_state=0, checkpoint=path)
    np.testing.assert_array_equal(more.forward, gg.learn.bootstrap_edges(frame, 4, random_state=0).forward)
    with pytest.raises(gg.OptionError, match="other data"):
        gg.learn.bootstrap_edges(frame[:99], 4, random_state=0, checkpoint=path)


def test_files_give_the_same_strengths(tmp_path) -> None:
    frame = gg.datasets.asia().sample(300, random_state=0).astype(str)
    path = tmp_path / "d.csv"
    frame.to_csv(path, index=False)
    here = gg.learn.bootstrap_edges(frame, 4, random_state=0)
    there = gg.learn.bootstrap_edges(path, 4, random_state=0)
    np.testing.assert_array_equal(here.forward, there.forward)
    assert here.average_network() == there.average_network()
    with pytest.raises(gg.OptionError, match="weights"):
        gg.learn.bootstrap_edges(path, 4, weights="smoke")


def test_options_that_are_read_once_serve_every_sample() -> None:
    frame = gg.datasets.asia().sample(300, random_state=0)
    required = [("smoke", "lung")]
    listed = gg.learn.bootstrap_edges(frame, 4, random_state=0, required=required)
    passed = gg.learn.bootstrap_edges(
        frame, 4, random_state=0, required=iter(required), tiers=iter([{"smoke", "asia"}])
    )
    assert listed.forward[listed.names.index("smoke"), listed.names.index("lung")] == 1.0
    assert passed.forward[listed.names.index("smoke"), listed.names.index("lung")] == 1.0
