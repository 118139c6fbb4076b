"""Counts and bootstraps on a Dask cluster equal those in memory; a killed worker changes nothing."""

from __future__ import annotations

import os
import signal

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.data import Counts, cluster, code_table, map_reduce, stream_counts
from gramgraph.data.map_reduce import find_client

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "set_as_default": False}
    with distributed.Client(processes=False, **options) as client:
        yield client


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 1003
    late = np.where(np.arange(n) < 900, "a", rng.choice(["a", "b", "c"], n))
    out = pd.DataFrame({"x": rng.choice(["u", "v", "w"], n), "late": late, "truth": rng.random(n) < 0.3})
    out["grade"] = pd.Categorical(rng.choice(["low", "high"], n), ["low", "mid", "high"], ordered=True)
    out["whole"] = rng.integers(0, 4, n)
    out.loc[rng.random(n) < 0.1, "x"] = None
    out.loc[900:, "whole"] = np.nan  # a column of floats then
    return out


def same(found: Counts, frame: pd.DataFrame) -> None:
    whole = Counts(code_table(frame))
    assert found.names == whole.names and found.rows == whole.rows
    assert [var.states for var in found.variables] == [var.states for var in whole.variables]
    assert found.has_missing == whole.has_missing
    for columns in ([0], [1, 2], [4, 0, 1], [3, 1], [0, 1, 2, 3, 4]):
        np.testing.assert_array_equal(found.table(columns), whole.table(columns))
        np.testing.assert_array_equal(found.complete().table(columns), whole.complete().table(columns))
    assert found.fingerprint() == whole.fingerprint()
    for a, b in zip(found.to_table().columns, whole.to_table().columns, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("partitions", [1, 7])
@pytest.mark.parametrize("where", ["threads of Dask", "gathered", "on the workers"])
def test_partition_counts_add_up_to_those_in_memory(frame, client, monkeypatch, partitions, where) -> None:
    monkeypatch.setattr(cluster, "GATHERED", 0 if where == "on the workers" else 1 << 30)
    chosen = None if where == "threads of Dask" else client
    found = stream_counts(dd.from_pandas(frame, npartitions=partitions), client=chosen)
    assert isinstance(found, cluster.ClusterCounts) == (where == "on the workers")
    same(found, frame)


def test_pieces_of_parquet_files_are_read_by_the_workers(frame, client, tmp_path) -> None:
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=100)
    same(stream_counts(tmp_path / "d.parquet", client=client), frame)
    dd.from_pandas(frame, npartitions=3).to_parquet(tmp_path / "folder")
    same(stream_counts(tmp_path / "folder", client=client), frame)
    same(stream_counts(tmp_path / "folder", n_jobs=2), frame)
    same(stream_counts(str(tmp_path / "folder" / "*.parquet")), frame)
    with pytest.raises(gg.VariableError, match="no Parquet file"):
        stream_counts(tmp_path / "*.parquet.d" / "*.parquet")


def test_fit_and_structure_from_a_dask_frame(client, monkeypatch) -> None:
    net = gg.datasets.asia()
    frame = net.sample(2000, random_state=0).astype(str)
    cut = dd.from_pandas(frame, npartitions=5)
    for limit in (0, 1 << 30):
        monkeypatch.setattr(cluster, "GATHERED", limit)
        assert net.fit(cut, prior="k2", client=client) == net.fit(frame, prior="k2")
        assert gg.learn_structure(cut, client=client) == gg.learn_structure(frame)
    gaps = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    hidden = gaps.drop(columns="lung")
    for table in (gaps, hidden):
        here = net.fit(table, max_iter=2, random_state=0)
        assert net.fit(dd.from_pandas(table, npartitions=3), max_iter=2, random_state=0) == here


def test_mistakes_on_the_cluster_are_named(frame, client) -> None:
    cut = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(gg.VariableError, match="Did you mean 'late'"):
        stream_counts(cut, columns=["Late"])
    with pytest.raises(gg.VariableError, match="with fractions"):
        stream_counts(dd.from_pandas(frame.assign(x=0.5), npartitions=3), client=client)
    with pytest.raises(gg.VariableError, match="nothing but missing"):
        stream_counts(dd.from_pandas(frame.assign(x=None), npartitions=3), client=client)
    with pytest.raises(gg.OptionError, match=r"distributed\.Client"):
        stream_counts(cut, client=42)
    with pytest.raises(gg.OptionError, match="weights"):
        gg.learn_structure(cut, weights="late")


def test_map_reduce_is_the_same_everywhere(client) -> None:
    numbers = np.random.default_rng(0).normal(size=30) * 10.0 ** np.arange(-15, 15)
    expected = 0.0
    for x in numbers:
        expected += x
    for options in ({}, {"n_jobs": 2}, {"client": client}):
        assert map_reduce(float, numbers, float.__add__, 0.0, **options) == expected
    with pytest.raises(gg.OptionError, match="n_jobs"):
        map_reduce(float, numbers, float.__add__, 0.0, n_jobs=0)


def test_bootstrap_on_threads_of_a_cluster(client) -> None:
    frame = gg.datasets.sprinkler().sample(300, random_state=0)
    alone = gg.learn.bootstrap_edges(frame, 6, random_state=1)
    spread = gg.learn.bootstrap_edges(frame, 6, random_state=1, client=client)
    from_dask = gg.learn.bootstrap_edges(dd.from_pandas(frame, npartitions=2), 6, random_state=1, client=client)
    np.testing.assert_array_equal(spread.forward, alone.forward)
    assert from_dask.n_graphs == 6


def test_a_worker_killed_in_the_middle_of_a_bootstrap() -> None:
    frame = gg.datasets.asia().sample(1000, random_state=0)
    serial = gg.learn.bootstrap_edges(frame, 30, random_state=3)
    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
        ) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):

        def kill(done: int, total: int) -> None:
            if done == 8 and not killed:
                killed.extend(client.run(os.getpid).values())
                os.kill(killed[0], signal.SIGKILL)

        found = gg.learn.bootstrap_edges(frame, 30, random_state=3, client=client, progress=kill)
        alive = set(client.run(os.getpid).values())
    assert len(killed) == 2 and killed[0] not in alive
    assert found.n_graphs == 30
    np.testing.assert_array_equal(found.forward, serial.forward)


def test_a_cluster_by_its_address() -> None:
    frame = gg.datasets.sprinkler().sample(200, random_state=0).astype(str)
    alone = gg.learn.bootstrap_edges(frame, 3, random_state=1)
    with distributed.LocalCluster(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None, protocol="tcp", host="127.0.0.1"
    ) as workers:
        found = gg.learn.bootstrap_edges(frame, 3, random_state=1, client=workers.scheduler_address)
        cut = dd.from_pandas(frame, npartitions=2)
        assert gg.learn_structure(cut, client=workers.scheduler_address) == gg.learn_structure(frame)
        connection = find_client(workers.scheduler_address)
        assert find_client(workers.scheduler_address) is connection, "one connection serves all"
        connection.close()
        again = find_client(workers.scheduler_address)
        assert again.status == "running"
        again.close()
    np.testing.assert_array_equal(found.forward, alone.forward)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(gg.OptionError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:1'"),
    ):
        gg.learn.bootstrap_edges(frame, 3, client="tcp://127.0.0.1:1")


def test_errors_come_back_from_the_workers(client) -> None:
    over = gg.BudgetError("too large", clique=["A"], bytes=8.0, remedies=["wait"])
    for error in (over, gg.ModelError(["one", "two"]), gg.ParseError("no number", source="a.bif", line=3)):
        with pytest.raises(type(error)) as caught:
            map_reduce(_fail, [error], list.__add__, [], client=client)
        assert str(caught.value) == str(error)


def _fail(error: Exception) -> list:
    raise error


def test_the_client_of_the_session_is_used(monkeypatch, frame) -> None:
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    monkeypatch.setattr(cluster, "GATHERED", 0)
    with distributed.Client(processes=False, **options):
        assert isinstance(stream_counts(dd.from_pandas(frame, npartitions=2)), cluster.ClusterCounts)
    assert not isinstance(stream_counts(dd.from_pandas(frame, npartitions=2)), cluster.ClusterCounts)
