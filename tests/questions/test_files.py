"""Posteriors of tables that are not in memory equal those of the same frame, wherever the cases come from."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.answers.columns import posterior_columns
from gramgraph.cli import main
from gramgraph.questions import files

pytest.importorskip("pyarrow")

TARGETS = ["lung", ("bronc", "either")]


@pytest.fixture(scope="module")
def net():
    return gg.datasets.asia()


@pytest.fixture(scope="module")
def frame(net):
    rows = net.sample(3000, random_state=0)[["smoke", "xray", "asia"]].astype(object)
    rows.loc[::3, "xray"] = None
    rows["id"] = [f"p{i}" for i in range(len(rows))]
    return rows


@pytest.fixture(scope="module")
def truth(net, frame):
    return net.query(TARGETS, frame, keep="id")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 8 * 512 * 7)  # 512 rows of 7 numbers


def table_of(frame, kind, folder):
    if kind == "frame":
        return frame
    if kind == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=5)
    if kind in ("lazy", "stream"):
        polars = pytest.importorskip("polars")
        made = polars.from_pandas(frame)
        return made.lazy() if kind == "lazy" else made.to_arrow().to_reader(500)
    path = folder / f"cases.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=700)
    else:
        frame.to_csv(path, index=False)
    return path


def check(written, frame, truth, rtol=1e-12):
    table = written.to_frame()
    assert written.rows == len(table) == len(frame)
    assert table["id"].tolist() == frame["id"].tolist()
    assert np.allclose(table["log_evidence"], truth.log_evidence, rtol=1e-12)
    assert np.allclose(table["lung=yes"], truth["lung"].probabilities[:, 1], rtol=rtol)
    joint = truth["bronc", "either"].probabilities.reshape(len(frame), 4)
    assert np.allclose(table.iloc[:, -4:], joint, rtol=rtol)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", ["frame", "parquet", "csv", "csv.gz", "lazy", "stream", "dask"])
def test_any_table_gives_the_posteriors_of_its_frame(net, frame, truth, kind, tmp_path):
    written = net.query(TARGETS, table_of(frame, kind, tmp_path), keep=["id"], out=tmp_path / "p.parquet")
    check(written, frame, truth)
    assert sorted(os.listdir(tmp_path)) in (["p.parquet"], [f"cases.{kind}", "p.parquet"])  # nothing else is left


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.pq"])
def test_any_file_may_be_written(net, frame, truth, name, tmp_path):
    source = table_of(frame, "parquet", tmp_path)
    check(net.query(TARGETS, source, keep=["id"], out=tmp_path / name, n_jobs=2), frame, truth)


@pytest.mark.usefixtures("small_blocks")
def test_single_precision_and_progress(net, frame, truth, tmp_path):
    told = []
    source = table_of(frame, "parquet", tmp_path)
    written = net.query(
        TARGETS, source, keep=["id"], out=tmp_path / "p.parquet", dtype="float32",
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    check(written, frame, truth, rtol=1e-6)
    assert written.to_frame()["lung=yes"].dtype == np.float32
    assert told[-1] == (3000, 3000) and len(told) > 3


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", ["parquet", "csv", "dask"])
def test_an_interrupted_call_goes_on_where_it_was(net, frame, truth, kind, tmp_path):
    source = table_of(frame, kind, tmp_path)

    def stop(done, total):
        if done >= 1500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        net.query(TARGETS, source, keep=["id"], out=tmp_path / "p.parquet", progress=stop)
    assert not (tmp_path / "p.parquet").exists()
    told = []
    written = net.query(
        TARGETS, source, keep=["id"], out=tmp_path / "p.parquet", progress=lambda done, total: told.append(done)
    )
    assert written.resumed >= 1500 and told[0] > 1500
    check(written, frame, truth)
    again = net.query(TARGETS, source, keep=["id"], out=tmp_path / "p.parquet")
    assert again.resumed == 0


@pytest.mark.usefixtures("small_blocks")
def test_parts_of_another_question_are_not_used(net, frame, truth, tmp_path):
    source = table_of(frame, "parquet", tmp_path)

    def stop(done, total):
        if done >= 1500:
            raise KeyboardInterrupt

    other = net.fit(net.sample(200, random_state=1), prior="bdeu")
    with pytest.raises(KeyboardInterrupt):
        other.query(TARGETS, source, keep=["id"], out=tmp_path / "p.parquet", progress=stop)
    written = net.query(TARGETS, source, keep=["id"], out=tmp_path / "p.parquet")
    assert written.resumed == 0
    check(written, frame, truth)


def test_on_a_cluster(net, frame, truth, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, dashboard_address=None, n_workers=1, threads_per_worker=2) as client:
        for kind in ("parquet", "csv", "frame", "stream", "dask"):
            source = table_of(frame, kind, tmp_path)
            where: set[str] = set()
            with monkeypatch.context() as patch:
                patch.setattr(files, "posterior_columns", _noting(where))
                written = net.query(TARGETS, str(source) if kind in ("parquet", "csv") else source, keep=["id"],
                                    out=tmp_path / "p.parquet", client=client)  # fmt: skip
            check(written, frame, truth)
            assert where and all("Dask" in thread for thread in where), "answered by the workers"


def _noting(where):
    def columns(*args):
        where.add(threading.current_thread().name)
        return posterior_columns(*args)

    return columns


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_worker_killed_in_the_middle_changes_no_row(kind, net, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 8 * 1000 * 5)  # a thousand rows
    distributed = pytest.importorskip("distributed")
    rows = net.sample(40_000, random_state=1)[["smoke", "xray", "asia"]].astype(str)
    rows["id"] = np.arange(len(rows))
    path = tmp_path / f"cases.{kind}"
    if kind == "parquet":
        rows.to_parquet(path, row_group_size=1000)
    else:
        rows.to_csv(path, index=False)
    options = {"keep": ["id"], "dtype": "float32"}
    alone = net.query(["lung", "bronc"], str(path), out=tmp_path / "alone.parquet", **options).to_frame()
    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
        ) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):

        def kill(done: int, total: int) -> None:
            if not killed:
                killed.extend(client.run(os.getpid).values())
                os.kill(killed[0], signal.SIGKILL)

        written = net.query(
            ["lung", "bronc"], str(path), out=tmp_path / "p.parquet", client=client, progress=kill, **options
        )
        alive = set(client.run(os.getpid).values())
    assert len(killed) == 2 and killed[0] not in alive
    pd.testing.assert_frame_equal(written.to_frame(), alone, check_exact=True)


def test_parts_of_row_groups_are_not_taken_for_parts_of_blocks(net, frame, truth, tmp_path, small_blocks):
    distributed = pytest.importorskip("distributed")
    source = str(table_of(frame, "parquet", tmp_path))

    def stop(done, total):
        raise KeyboardInterrupt

    with (
        distributed.Client(processes=False, dashboard_address=None, n_workers=1, threads_per_worker=1) as client,
        pytest.raises(KeyboardInterrupt),
    ):
        net.query(TARGETS, source, keep=["id"], out=tmp_path / "p.parquet", client=client, progress=stop)
    written = net.query(TARGETS, source, keep=["id"], out=tmp_path / "p.parquet")
    assert written.resumed == 0
    check(written, frame, truth)


def test_a_client_that_is_none_is_refused_first(net, frame, tmp_path):
    with pytest.raises(gg.OptionError, match="client is a distributed.Client or the address of a scheduler, not int"):
        net.query("lung", str(tmp_path / "no such file.csv"), out=tmp_path / "p.parquet", client=3)
    with pytest.raises(gg.OptionError, match="give out='posteriors.parquet', too"):
        net.query("lung", {"smoke": "yes"}, client=3)


@pytest.mark.parametrize("kind", ["parquet", "csv", "frame"])
def test_a_column_beside_the_model_is_to_be_kept(net, frame, tmp_path, kind):
    source = table_of(frame, kind, tmp_path)
    with pytest.raises(gg.VariableError, match=r"'id' is not a variable.*keep=\['id'\]"):
        net.query("lung", source if kind == "frame" else str(source), out=tmp_path / "p.parquet")
    assert not (tmp_path / "p.parquet").exists() and not (tmp_path / ".p.parquet.parts").exists()


def test_impossible_cases_are_counted(tmp_path):
    net = gg.BayesianNetwork("a -> b", cpds={"a": [0.5, 0.5], "b": [[1, 0], [0, 1]]})
    cases = pd.DataFrame({"a": ["no", "no", None], "b": ["no", "yes", "yes"]})
    written = net.query("a", cases, out=tmp_path / "p.csv")
    table = written.to_frame()
    assert written.impossible == 1 and "1 impossible" in str(written)
    assert np.isneginf(table["log_evidence"][1]) and table.loc[1, ["a=no", "a=yes"]].isna().all()


def test_real_variables(tmp_path):
    net = gg.BayesianNetwork(
        "sex{f|m} -> height{real}",
        cpds={"sex": [0.5, 0.5], "height": {"f": {"intercept": 165, "sd": 7}, "m": {"intercept": 178, "sd": 8}}},
    )
    cases = pd.DataFrame({"height": [160.0, None, 190.5]})
    cases.to_csv(tmp_path / "c.csv", index=False)
    table = net.query("sex", str(tmp_path / "c.csv"), out=tmp_path / "p.csv").to_frame()
    assert np.allclose(table["sex=m"], net.query("sex", cases)["sex"].probabilities[:, 1])
    real = net.query(None, pd.DataFrame({"sex": ["f", None]}), out=tmp_path / "q.parquet").to_frame()
    assert real["height mean"].tolist() == pytest.approx([165.0, 171.5])


def test_an_empty_table_gives_an_empty_file(net, frame, tmp_path):
    source = table_of(frame.iloc[:0], "csv", tmp_path)
    written = net.query("lung", source, keep="id", out=tmp_path / "p.parquet")
    assert written.rows == 0 and written.columns == ("id", "log_evidence", "lung=no", "lung=yes")


def test_without_out_a_file_is_read_into_memory(net, frame, truth, tmp_path):
    answer = net.query(TARGETS, table_of(frame, "csv", tmp_path), keep="id")
    assert np.allclose(answer["lung"].probabilities, truth["lung"].probabilities)


def test_mistakes_are_told_and_leave_nothing_behind(net, frame, tmp_path):
    source = table_of(frame, "parquet", tmp_path)
    with pytest.raises(gg.VariableError, match="'id' is not a variable"):
        net.query("lung", source, out=tmp_path / "p.parquet")
    with pytest.raises(gg.VariableError, match=r"no column 'Id' to keep.*Did you mean 'id'"):
        net.query("lung", source, keep="Id", out=tmp_path / "p.parquet")
    with pytest.raises(gg.GramGraphError, match=r"ends in \.parquet"):
        net.query("lung", source, keep="id", out=tmp_path / "p.xlsx")
    with pytest.raises(gg.GramGraphError, match="no folder"):
        net.query("lung", source, keep="id", out=tmp_path / "none" / "p.csv")
    with pytest.raises(gg.GramGraphError, match="dtype is 'float32' or 'float64'"):
        net.query("lung", source, keep="id", out=tmp_path / "p.csv", dtype="int8")
    with pytest.raises(FileNotFoundError):
        net.query("lung", tmp_path / "no.parquet", out=tmp_path / "p.csv")
    wrong = frame.assign(smoke="maybe")
    with pytest.raises(gg.StateError, match="row 0: 'maybe' is not a state of smoke"):
        net.query("lung", wrong, keep="id", out=tmp_path / "p.csv")
    assert os.listdir(tmp_path) == ["cases.parquet"]
    (tmp_path / ".p.csv.parts").mkdir()
    (tmp_path / ".p.csv.parts" / "mine.txt").touch()
    with pytest.raises(gg.GramGraphError, match="something else is there"):
        net.query("lung", frame, keep="id", out=tmp_path / "p.csv")


def test_from_the_shell(net, frame, truth, tmp_path, capsys):
    source, out = str(table_of(frame, "parquet", tmp_path)), str(tmp_path / "p.parquet")
    assert main(["query", "dataset:asia", "--target", "lung", "--cases", source, "--out", out, "--keep", "id"]) == 0
    assert "3,000 cases" in capsys.readouterr().err
    assert np.allclose(pd.read_parquet(out)["lung=yes"], truth["lung"].probabilities[:, 1])
    assert main(["map", "dataset:asia", "--cases", source]) == 2
    assert main(["query", "dataset:asia", "--target", "lung", "--cases", source, "--keep", "id"]) == 2
    assert "needs --out" in capsys.readouterr().err
