"""Files and streams give the counts of the frame in memory, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph._numerics.compiling import tier
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


def test_kinds_of_columns_of_files(tmp_path) -> None:
    from gramgraph.data import column_kinds

    frame = pd.DataFrame(
        {
            "label": ["b", "a", None],
            "truth": [True, False, True],
            "whole": [3, 1, 2],
            "gap": [1.0, np.nan, 2.0],
            "number": [0.5, 1.0, 2.0],
            "size": pd.Categorical(["s", "l", "s"], ["s", "l"], ordered=True),
            "nothing": [None, None, None],
        }
    )
    expected = column_kinds(frame)
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=2)
    pd.testing.assert_frame_equal(column_kinds(tmp_path / "d.parquet"), expected)
    frame.to_csv(tmp_path / "d.csv", index=False)
    found = column_kinds(tmp_path / "d.csv")
    assert found["kind"].tolist() == ["category", "category", "integer", "integer", "real", "category", "empty"]
    assert found["missing"].tolist() == expected["missing"].tolist()
    dask = pytest.importorskip("dask.dataframe")
    pd.testing.assert_frame_equal(column_kinds(dask.from_pandas(frame, npartitions=2)), expected)


def test_every_kind_of_arrow_stream(frame, tmp_path) -> None:
    from pyarrow import dataset

    frame.to_parquet(tmp_path / "d.parquet", row_group_size=300)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    same(stream_counts(table.to_reader(max_chunksize=77)), frame)
    same(stream_counts(dataset.dataset(tmp_path / "d.parquet")), frame)
    same(stream_counts(dataset.dataset(tmp_path / "d.parquet").scanner()), frame)
    same(stream_counts(tmp_path / "d.parquet", n_jobs=2), frame)
    net = gg.BayesianNetwork("late -> truth", states={"late": ("a", "b", "c")})
    expected = net.fit(frame[["late", "truth"]])
    assert net.fit(table.to_reader()) == expected
    assert net.fit(dataset.dataset(tmp_path / "d.parquet")) == expected


def test_streams_of_polars_and_duckdb(frame, tmp_path) -> None:
    polars = pytest.importorskip("polars")
    path = str(tmp_path / "d.parquet")
    frame.to_parquet(path, row_group_size=300)
    same(stream_counts(polars.scan_parquet(path)), frame)
    expected = gg.learn_structure(frame.dropna())
    assert gg.learn_structure(polars.scan_parquet(path).drop_nulls()) == expected
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as db:
        same(stream_counts(db.from_parquet(path)), frame)
        assert gg.learn_structure(db.sql(f"select * from '{path}' where x is not null")) == expected


def test_gaps_and_hidden_variables_of_a_stream_go_through_em(tmp_path) -> None:
    net = gg.datasets.asia()
    frame = net.sample(500, random_state=0).astype(str)
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1).drop(columns="lung")
    frame.to_parquet(tmp_path / "d.parquet")
    frame.to_csv(tmp_path / "d.csv", index=False)
    with tier("plain"):  # a loop that is compiled in between sums in another order
        expected = net.fit(frame, max_iter=3, random_state=0)
        for data in (tmp_path / "d.parquet", tmp_path / "d.csv", pa.Table.from_pandas(frame).to_reader()):
            assert net.fit(data, max_iter=3, random_state=0) == expected


def test_enumerated_labels_keep_their_order(tmp_path) -> None:
    frame = pd.DataFrame({"size": pd.Categorical(["l", "s", "l"], ["s", "m", "l"]), "b": ["v", "u", "u"]})
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=1)
    arrow = pa.table({"size": pa.DictionaryArray.from_arrays([2, 0, 2], ["s", "m", "l"], ordered=True)})
    for data in (tmp_path / "d.parquet", arrow):
        assert stream_counts(data).variables[0].states == ("s", "m", "l")
        assert stream_counts(data).table([0]).tolist() == [1, 0, 2]
    assert code_table(arrow).variables == stream_counts(arrow).variables
    polars = pytest.importorskip("polars")
    enum = polars.DataFrame({"size": polars.Series(["l", "s"], dtype=polars.Enum(["s", "m", "l"]))})
    for data in (enum, enum.lazy()):
        assert stream_counts(data).variables == code_table(enum).variables
    assert code_table(enum).variables[0].states == ("s", "m", "l")


@pytest.mark.parametrize("on_cluster", [False, True])
def test_a_column_that_a_file_lacks_is_missing_in_its_rows(tmp_path, on_cluster):
    frame = pd.DataFrame({"a": ["x", "y"] * 40, "b": ["u"] * 20 + ["v"] * 60})
    frame[:40].to_parquet(tmp_path / "1.parquet")
    frame[40:].drop(columns="a").to_parquet(tmp_path / "2.parquet")
    client = None
    if on_cluster:
        distributed = pytest.importorskip("distributed")
        client = distributed.Client(processes=False, dashboard_address=None, n_workers=1, set_as_default=False)
    try:
        counts = stream_counts(tmp_path, client=client)
    finally:
        if client is not None:
            client.close()
    assert counts.table(["a", "b"]).tolist() == [[10, 10], [10, 10]]
    assert counts.table(["b"]).tolist() == [20, 60]
