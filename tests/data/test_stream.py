"""Files and streams give the counts of the frame in memory, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.data import Counts, code_table, stream_counts
from gramgraph.data import stream as streaming

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 1003
    late = np.where(np.arange(n) < 900, "a", rng.choice(["a", "b", "c"], n))
    out = pd.DataFrame({"x": rng.choice(["u", "v", "w"], n), "late": late, "truth": rng.random(n) < 0.3})
    out.loc[rng.random(n) < 0.1, "x"] = None
    return out


def same(counts: Counts, frame: pd.DataFrame) -> None:
    whole = Counts(code_table(frame))
    assert counts.names == whole.names
    assert [var.states for var in counts.variables] == [var.states for var in whole.variables]
    assert counts.total == whole.total and counts.has_missing == whole.has_missing
    for columns in ([0], [1, 2], [2, 0, 1], [0, 1, 2]):
        np.testing.assert_array_equal(counts.table(columns), whole.table(columns))


@pytest.mark.parametrize("block", [64, 128, 1 << 17])
def test_files_and_streams(frame, tmp_path, monkeypatch, block) -> None:
    monkeypatch.setattr(streaming, "BLOCK", block)
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=300)
    frame.astype("category").to_parquet(tmp_path / "c.parquet")
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_csv(tmp_path / "d.csv.gz", index=False)
    for name in ("d.parquet", "c.parquet"):
        same(stream_counts(tmp_path / name), frame)
    texts = frame.assign(truth=frame["truth"].map({True: "True", False: "False"}))
    for name in ("d.csv", "d.csv.gz"):
        same(stream_counts(str(tmp_path / name)), texts)
    same(stream_counts(pa.Table.from_pandas(frame, preserve_index=False)), frame)


def test_polars_and_chosen_columns(frame, tmp_path) -> None:
    polars = pytest.importorskip("polars")
    same(stream_counts(polars.from_pandas(frame)), frame)
    frame.to_parquet(tmp_path / "d.parquet")
    same_two = stream_counts(tmp_path / "d.parquet", columns=["late", "x"])
    assert same_two.names == ("late", "x")
    np.testing.assert_array_equal(same_two.table([0, 1]), Counts(code_table(frame)).table(["late", "x"]))


def test_many_states_widen_the_block(tmp_path) -> None:
    values = [f"s{i:03d}" for i in range(200)] * 3
    path = tmp_path / "d.parquet"
    pd.DataFrame({"x": ["s000"] * 100 + values}).to_parquet(path, row_group_size=100)
    counts = stream_counts(path)
    assert counts.table([0]).tolist() == [103, *[3] * 199]


def test_learning_from_a_file_equals_learning_from_the_frame(tmp_path) -> None:
    net = gg.datasets.asia()
    frame = net.sample(2000, random_state=0).astype(str)
    path = tmp_path / "d.parquet"
    frame.to_parquet(path)
    assert net.fit(path, prior="k2") == net.fit(frame, prior="k2")
    assert gg.learn_structure(path) == gg.learn_structure(frame)
    told = []
    gg.data.stream_counts(path, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2000, 2000)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\nx,y\nx,y,z\n", "Expected 2 columns"),
        ("", "Empty CSV"),
        ("a,a\nx,y\n", "more than one column"),
        ("a,b\nx,\ny,\n", "nothing but missing"),
        ("a,b\n", "no rows"),
        ("a,b\n0.5,x\n1.25,y\n", "numbers with fractions"),
    ],
)
def test_bad_csv_files(tmp_path, text, words) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text)
    with pytest.raises(gg.VariableError, match=words):
        stream_counts(path)


def test_columns_that_cannot_be_counted(tmp_path) -> None:
    path = tmp_path / "d.parquet"
    bad = {"not labels": [0.5, 1.0], "more than 20 different whole numbers": range(100), "holds list": [[1], [2]]}
    for words, values in bad.items():
        pd.DataFrame({"x": list(values)}).to_parquet(path)
        with pytest.raises(gg.VariableError, match=words):
            stream_counts(path)
    with pytest.raises(gg.OptionError, match="not from"):
        stream_counts("d.xlsx")
    pd.DataFrame({"x": ["a"]}).to_parquet(path)
    with pytest.raises(gg.VariableError, match="Did you mean 'x'"):
        stream_counts(path, columns=["X"])
    with pytest.raises(OSError):
        stream_counts(tmp_path / "nowhere.parquet")
