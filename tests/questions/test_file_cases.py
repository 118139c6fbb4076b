"""From tables of cases to the file of answers: kept values as they are, words as states or gaps, several files."""

from __future__ import annotations

import datetime
import gzip
import os
import sys
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.cli import main
from gramgraph.questions import files

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

BIG = 2**60 + 1


@pytest.fixture(scope="module")
def net():
    return gg.datasets.asia()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 256)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def smokers(n):
    return ["yes", "no", None] * (n // 3)


# ------------------------------------------------------------------------------------------------ kept columns

MIXED = {
    "integers with gaps": pa.array([None if i % 7 == 0 else BIG + i for i in range(900)], pa.int64()),
    "unsigned": pa.array([None if i == 0 else 2**63 + i for i in range(900)], pa.uint64()),
    "late dates": pa.array([None] * 600 + [datetime.date(2020, 1, 1)] * 300, pa.date32()),
    "decimals": pa.array([Decimal(1)] * 600 + [Decimal("12345678.25")] * 300, pa.decimal128(20, 2)),
    "nothing": pa.array([None] * 900, pa.string()),
    "times": pa.array([10**18 + i for i in range(900)], pa.timestamp("ns")),
    "lists": pa.array([[i] for i in range(900)], pa.list_(pa.int64())),
}


@pytest.mark.parametrize("kind", ["parquet", "table", "reader", "lazy", "polars", "client"])
@pytest.mark.parametrize("name", list(MIXED))
def test_a_kept_column_has_the_type_and_the_values_of_its_source(net, kind, name):
    table = pa.table({"smoke": smokers(900), "k": MIXED[name]})
    client = None
    if kind in ("lazy", "polars"):
        source = pytest.importorskip("polars").from_arrow(table)
        source = source.lazy() if kind == "lazy" else source
    elif kind in ("parquet", "client"):
        pq.write_table(table, "c.parquet", row_group_size=300)
        source = "c.parquet"
    else:
        source = table if kind == "table" else table.to_reader(300)
    if kind == "client":
        client = pytest.importorskip("distributed").Client(processes=False, dashboard_address=None, n_workers=1)
    try:
        net.query("lung", source, keep="k", out="o.parquet", client=client)
    finally:
        if client is not None:
            client.close()
    found = pq.read_table("o.parquet")["k"]
    assert found.to_pylist() == MIXED[name].to_pylist()
    if kind not in ("lazy", "polars"):  # these have types of their own
        assert found.type == MIXED[name].type


def test_integers_with_gaps_go_to_csv_as_they_are(net):
    pq.write_table(pa.table({"smoke": smokers(900), "k": MIXED["integers with gaps"]}), "c.parquet")
    net.query("lung", "c.parquet", keep="k", out="o.csv")
    rows = Path("o.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows[:9]] == ["" if i % 7 == 0 else str(BIG + i) for i in range(9)]


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "parquet"])
def test_categories_are_kept_as_their_labels(net, kind):
    frame = pd.DataFrame({"smoke": ["yes", "no", None], "k": pd.Categorical(["b", None, "a"])})
    frame.to_parquet("c.parquet")
    source = "c.parquet" if kind == "parquet" else frame
    if kind in ("polars", "lazy"):
        source = pytest.importorskip("polars").from_pandas(frame)
        source = source.lazy() if kind == "lazy" else source
    net.query("lung", source, keep="k", out="o.parquet")
    assert pq.read_table("o.parquet")["k"].to_pylist() == ["b", None, "a"]


def test_a_dict_of_lists_keeps_its_integers(net):
    net.query("lung", {"smoke": ["yes", "no"], "k": [BIG, None]}, keep="k", out="o.parquet")
    assert pq.read_table("o.parquet")["k"].to_pylist() == [BIG, None]


def test_a_kept_column_of_objects_that_have_no_type_is_refused_first(net):
    frame = pd.DataFrame({"smoke": ["yes", "no"], "k": [1, "a"]})
    with pytest.raises(gg.VariableError, match=r"column 'k' to keep holds values of different types.*astype\(str\)"):
        net.query("lung", frame, keep="k", out="o.parquet")
    assert os.listdir() == []


def test_partitions_of_dask_without_cells_have_the_type_of_the_others(net):
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"smoke": ["yes", "no"] * 4, "k": pd.Series([None] * 4 + [datetime.date(2020, 1, 1)] * 4)})
    frame["k"] = frame["k"].astype(object)
    with pytest.importorskip("dask").config.set({"dataframe.convert-string": False}):
        source = dask.from_pandas(frame, npartitions=2)
        assert net.query("lung", source, keep="k", out="o.parquet").rows == 8
    assert pq.read_table("o.parquet")["k"].to_pylist() == frame["k"].tolist()


def test_a_type_that_the_file_cannot_hold_is_refused_first(net):
    pq.write_table(pa.table({"smoke": smokers(900), "k": MIXED["lists"]}), "c.parquet")
    with pytest.raises(gg.OptionError, match=r"'o.csv' cannot hold the column 'k' of list<.*a Parquet file does"):
        net.query("lung", "c.parquet", keep="k", out="o.csv")
    assert os.listdir() == ["c.parquet"]


@pytest.mark.parametrize("name", ["log_evidence", "lung=no"])
def test_a_kept_column_with_the_name_of_an_answer_is_refused(net, name, capsys):
    pq.write_table(pa.table({"smoke": ["yes"], name: [1]}), "c.parquet")
    with pytest.raises(gg.OptionError, match=f"'{name}' to keep has the name of a column of the answers: rename"):
        net.query("lung", "c.parquet", keep=name, out="o.csv")
    assert os.listdir() == ["c.parquet"]
    Path("c.csv").write_text(f"smoke,{name}\nyes,1\n")
    assert main(["query", "dataset:asia", "--cases", "c.csv", "--keep", name, "-t", "lung", "--out", "o.csv"]) == 2
    assert "has the name of a column of the answers" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["id,id,smoke\n1,2,yes\n", None])
def test_a_column_that_is_there_twice_is_refused(net, text):
    if text is None:
        twice = pa.table([pa.array([1]), pa.array([2]), pa.array(["yes"])], names=["id", "id", "smoke"])
        pq.write_table(twice, "c.parquet")
    else:
        Path("c.csv").write_text(text)
    with pytest.raises(gg.VariableError, match="more than one column 'id'"):
        net.query("lung", "c.parquet" if text is None else "c.csv", keep="id", out="o.csv")
    source = pa.table([pa.array([1]), pa.array([2]), pa.array(["yes"])], names=["id", "id", "smoke"])
    with pytest.raises(gg.VariableError, match="more than one column 'id'"):
        net.query("lung", source.to_reader(), keep="id", out="o.csv")


# ------------------------------------------------------------------------------------------------ words of a CSV file


@pytest.fixture
def regions():
    return gg.BayesianNetwork("r{NA|EU} -> y{no|yes}", cpds={"r": [0.5, 0.5], "y": [[0.9, 0.1], [0.2, 0.8]]})


def test_a_word_for_missing_that_is_a_state_is_the_state(regions):
    Path("c.csv").write_text("id,r\n1,NA\n2,EU\n3,?\n4,\n5,N/A\n6,null\n")
    expected = pytest.approx([0.9, 0.2, 0.55, 0.55, 0.55, 0.55])
    assert regions.query("y", "c.csv", keep="id", out="o.csv").to_frame()["y=no"].tolist() == expected
    assert regions.query("y", "c.csv", keep="id")["y"].probabilities[:, 0].tolist() == expected, "without out"
    gg.write(regions, "r.json")
    assert main(["query", "r.json", "--cases", "c.csv", "--keep", "id", "-t", "y", "--out", "s.csv"]) == 0
    assert pd.read_csv("s.csv")["y=no"].tolist() == expected, "from the shell"


def test_kept_texts_of_a_csv_file_are_as_they_were(net):
    words = ["NA", "?", "007", "1.0", "nan", " x", "None"]
    Path("c.csv").write_text("id,smoke\n" + "".join(f"{word},yes\n" for word in words))
    net.query("lung", "c.csv", keep="id", out="o.parquet")
    assert pq.read_table("o.parquet")["id"].to_pylist() == words


def test_states_that_pandas_wrote_as_floats():
    net = gg.BayesianNetwork(
        "d{0|1|2} -> y{no|yes}", cpds={"d": [0.5, 0.3, 0.2], "y": [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]}
    )
    frame = pd.DataFrame({"d": [0, None, 2, 1]})
    frame.to_csv("c.csv", index=False)
    assert "2.0" in Path("c.csv").read_text()
    expected = pytest.approx(net.query("y", frame)["y"].probabilities[:, 0].tolist())
    assert net.query("y", "c.csv", out="o.parquet").to_frame()["y=no"].tolist() == expected
    gg.write(net, "d.json")
    assert main(["query", "d.json", "--cases", "c.csv", "-t", "y", "--out", "s.csv"]) == 0
    assert pd.read_csv("s.csv")["y=no"].tolist() == expected
    Path("c.csv").write_text("d\n1.5\n")
    with pytest.raises(gg.StateError, match="row 0: '1.5' is not a state of d"):
        net.query("y", "c.csv", out="o.parquet")


@pytest.mark.parametrize("text", ["smoke\nyes\n\nno\n\n", "\n\nsmoke\nyes\n\nno\n\n", "smoke\r\nyes\r\n\r\nno\r\n\r\n"])
@pytest.mark.parametrize("name", ["c.csv", "c.csv.gz"])
def test_an_empty_line_in_a_file_of_one_column_is_a_case(net, text, name):
    data = text.encode()
    Path(name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    expected = net.query("lung", pd.DataFrame({"smoke": ["yes", None, "no", None]}))["lung"].probabilities[:, 1]
    assert net.query("lung", name, out="o.parquet").to_frame()["lung=yes"].tolist() == pytest.approx(expected.tolist())
    assert net.query("lung", name)["lung"].probabilities[:, 1].tolist() == pytest.approx(expected.tolist())


# ------------------------------------------------------------------------------------------------ several files


def write(path, kind, **columns):
    table = pa.table(columns)
    pq.write_table(table, f"{path}.parquet") if kind == "parquet" else table.to_pandas().to_csv(
        f"{path}.csv", index=False
    )


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("pattern", [True, False])
def test_columns_are_looked_for_in_every_file(net, kind, pattern):
    os.mkdir("d")
    write("d/a", kind, id=["a", "b"], smoke=["yes", "no"])
    write("d/b", kind, xray=["yes", None], id=["c", "d"])
    written = net.query("lung", f"d/*.{kind}" if pattern else "d", keep="id", out="o.parquet")
    frame = pd.DataFrame({"smoke": ["yes", "no", None, None], "xray": [None, None, "yes", None]})
    table = written.to_frame()
    assert table["id"].tolist() == list("abcd")
    assert table["lung=yes"].tolist() == pytest.approx(net.query("lung", frame)["lung"].probabilities[:, 1].tolist())


def test_columns_are_looked_for_in_every_file_on_a_cluster(net):
    distributed = pytest.importorskip("distributed")
    os.mkdir("d")
    write("d/a", "parquet", id=[1, 2], smoke=["yes", "no"])
    write("d/b", "parquet", xray=["yes", None], id=[3, 4])
    here = net.query("lung", "d", keep="id", out="o.parquet").to_frame()
    with distributed.Client(processes=False, dashboard_address=None, n_workers=1) as client:
        there = net.query("lung", "d", keep="id", out="p.parquet", client=client).to_frame()
    pd.testing.assert_frame_equal(here, there, check_exact=False, rtol=1e-12)


def test_a_kept_column_stands_in_every_file_with_one_type(net):
    os.mkdir("d")
    write("d/a", "parquet", id=[1, 2], smoke=["yes", "no"])
    write("d/b", "parquet", smoke=["yes", "no"])
    with pytest.raises(gg.VariableError, match=r"d/b.parquet has no column 'id' to keep"):
        net.query("lung", "d", keep="id", out="o.parquet")
    write("d/b", "parquet", id=["x"], smoke=["no"])
    with pytest.raises(gg.VariableError, match=r"'id' to keep is string in d/b.parquet, but int64 in d/a.parquet"):
        net.query("lung", "d", keep="id", out="o.parquet")
    write("d/b", "parquet", id=pa.array([3], pa.int32()), smoke=["no"])
    assert net.query("lung", "d", keep="id", out="o.parquet").to_frame()["id"].tolist() == [1, 2, 3]
    write("d/b", "parquet", id=pa.nulls(1), smoke=["no"])
    net.query("lung", "d", keep="id", out="o.parquet")
    assert pq.read_table("o.parquet")["id"].to_pylist() == [1, 2, None]


def test_values_in_names_of_folders_are_refused_with_what_reads_them(net):
    dataset = pytest.importorskip("pyarrow.dataset")
    table = pa.table({"id": [1, 2], "smoke": ["yes", "no"]})
    pq.write_to_dataset(table, "d", partition_cols=["smoke"])
    with pytest.raises(gg.OptionError, match=r"'smoke=no'.*pyarrow.dataset.dataset\('d', partitioning='hive'\)"):
        net.query("lung", "d", keep="id", out="o.parquet")
    found = net.query("lung", dataset.dataset("d", partitioning="hive"), keep="id", out="o.parquet").to_frame()
    truth = net.query("lung", [{"smoke": "no"}, {"smoke": "yes"}])["lung"].probabilities[:, 1]
    assert found["lung=yes"].tolist() == pytest.approx(truth.tolist())


def test_a_folder_of_both_kinds_and_one_of_none(net):
    os.mkdir("d")
    with pytest.raises(gg.VariableError, match="d: there is no Parquet file and no CSV file"):
        net.query("lung", "d", out="o.parquet")
    write("d/a", "parquet", smoke=["yes"])
    write("d/b", "csv", smoke=["yes"])
    with pytest.raises(
        gg.OptionError, match=r"both Parquet and CSV files: choose with a pattern such as 'd/\*.parquet'"
    ):
        net.query("lung", "d", out="o.parquet")


def test_networks_learn_from_folders_of_csv_files(net):
    os.mkdir("d")
    frame = net.sample(400, random_state=0)
    frame[:200].to_csv("d/a.csv", index=False)
    frame[200:].to_csv("d/b.csv", index=False)
    assert net.fit("d", prior="k2") == net.fit(frame, prior="k2")


def test_a_folder_from_the_shell(net, capsys):
    os.mkdir("d")
    write("d/a", "csv", id=["a", "b"], smoke=["yes", "no"])
    write("d/b", "csv", id=["c", "d"], smoke=["yes", "no"])
    for cases in ("d", "d/*.csv"):
        argv = ["query", "dataset:asia", "--cases", cases, "--keep", "id", "-t", "lung"]
        assert main([*argv, "--out", "o.csv"]) == 0
        assert pd.read_csv("o.csv")["id"].tolist() == list("abcd")
        assert main(argv) == 2
    assert "more than one file, needs --out" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ damaged files


def damaged(kind):
    """The name of a file that cannot be read, and where in a folder of it the fault is."""
    text = "smoke,id\n" + "yes,1\n" * 300_000
    if kind == "zeroed":
        pq.write_table(pa.table({"smoke": ["yes", "no"] * 5000, "id": range(10_000)}), "c.parquet", compression="none")
        with open("c.parquet", "r+b") as stream:
            stream.seek(4)
            stream.write(bytes(2000))
        return "c.parquet"
    if kind == "text.parquet":
        Path("c.parquet").write_text(text)
        return "c.parquet"
    if kind == "truncated":
        packed = gzip.compress(text.encode())
        Path("c.csv.gz").write_bytes(packed[: len(packed) // 2])
        return "c.csv.gz"
    if kind == "not packed":
        Path("c.csv.gz").write_text(text)
        return "c.csv.gz"
    Path("c.csv").write_bytes("smoke,bemerkung\xfc\nyes,1\n".encode("latin-1"))
    return "c.csv"


@pytest.mark.parametrize("kind", ["zeroed", "text.parquet", "truncated", "not packed", "latin-1"])
def test_a_damaged_file_is_an_error_with_its_name(net, kind):
    name = damaged(kind)
    for source in (name, "."):
        with pytest.raises(gg.VariableError, match=name):
            net.query("lung", source, keep="id", out=os.path.abspath("../o.csv"))
    assert os.listdir() == [name] and not [name for name in os.listdir("..") if name.startswith(".o.csv")]


@pytest.mark.parametrize("out", [{"out": "o.csv"}, {}])
def test_without_pyarrow_the_error_says_what_to_install(net, monkeypatch, out, capsys):
    Path("c.csv").write_text("smoke\nyes\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(gg.OptionError, match=r"pip install 'gramgraph\[data\]'"):
        net.query("lung", "c.csv", **out)
    assert main(["query", "dataset:asia", "--cases", "c.csv", "-t", "lung", "--out", "o.parquet"]) == 2
    assert "pip install 'gramgraph[data]'" in capsys.readouterr().err
    assert main(["query", "dataset:asia", "--cases", "c.csv", "-t", "lung", "--out", "o.csv"]) == 0


@pytest.mark.parametrize("kind", ["truncated", "not packed", "latin-1"])
def test_a_damaged_file_is_an_error_with_its_name_from_the_shell(kind, capsys):
    name = damaged(kind)
    for out in ("o.csv", "o.parquet"):
        assert main(["query", "dataset:asia", "--cases", name, "--keep", "id", "-t", "lung", "--out", out]) == 2
        assert name in capsys.readouterr().err
    assert os.listdir() == [name]
