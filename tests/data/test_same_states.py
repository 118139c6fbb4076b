"""The same table in memory, in files and on Dask: the same states in the same order, the same graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg


def test_whole_numbers_have_one_order(tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"i": rng.integers(-3, 14, 500), "j": rng.integers(0, 12, 500)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    known = gg.data.Counts(gg.data.code_table(frame))
    assert known.variables[0].states == tuple(str(i) for i in range(-3, 14))
    others = [
        gg.data.stream_counts(tmp_path / "t.csv"),
        gg.data.stream_counts(tmp_path / "t.parquet"),
        gg.data.stream_counts(dd.from_pandas(frame, npartitions=3)),
        gg.data.Counts(gg.data.code_table(frame.astype(str))),
    ]
    for counts in others:
        assert [v.states for v in counts.variables] == [v.states for v in known.variables]
        np.testing.assert_array_equal(counts.table(["i", "j"]), known.table(["i", "j"]))


def test_real_columns_of_files_give_the_same_graph(tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12_000, 3)), columns=["x", "y", "z"])  # more kinds than labels may have
    frame["y"] += 2 * frame["x"]
    frame["sort"] = rng.choice(["u", "v"], len(frame))
    frame["z"] += 3 * (frame["sort"] == "u") - frame["y"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    known = gg.learn_structure(frame)
    assert {frozenset(edge) for edge in known.edges} == {frozenset("xy"), frozenset("yz"), frozenset(("sort", "z"))}
    for data in (tmp_path / "t.csv", tmp_path / "t.parquet", dd.from_pandas(frame, npartitions=3)):
        net = gg.learn_structure(data)
        assert net.edges == known.edges
        assert net.report.score == pytest.approx(known.report.score, rel=1e-9)
    few = gg.learn.bootstrap_edges(tmp_path / "t.parquet", n=2, random_state=0).to_frame()
    pd.testing.assert_frame_equal(few, gg.learn.bootstrap_edges(frame, n=2, random_state=0).to_frame())


def test_a_stream_that_is_read_once_says_what_helps() -> None:
    pa = pytest.importorskip("pyarrow")
    reader = pa.table({"x": [0.5, 1.5]}).to_reader()
    with pytest.raises(gg.VariableError, match="fractions"):
        gg.learn_structure(reader)


def test_a_discretizer_shows_its_cuts() -> None:
    frame = pd.DataFrame({"x": np.linspace(0, 1, 20)})
    cutter = gg.data.Discretizer(4)
    assert repr(cutter) == "Discretizer(4, method='quantile')"
    assert "x at 3" in repr(cutter.fit(frame))


def test_the_score_of_edges_is_refused_clearly() -> None:
    with pytest.raises(gg.OptionError, match="network is expected"):
        gg.learn.score([("a", "b")], pd.DataFrame({"a": [0, 1], "b": [1, 0]}))
