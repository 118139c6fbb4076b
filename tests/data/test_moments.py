"""Moments of real columns: the same in memory, in files, in streams and on a cluster."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.data import moments_of
from gramgraph.data import stream as streaming

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = 1e6 + rng.normal(size=1003)  # far from zero: sums of squares would cancel
    out = pd.DataFrame({"x": x, "y": 0.5 * x + rng.normal(size=1003), "k": rng.integers(0, 9, 1003)})
    out.loc[rng.random(1003) < 0.1, "y"] = np.nan
    return out


def check(found, frame) -> None:
    whole = frame.dropna()
    assert found.names == tuple(frame.columns) and (found.n, found.left_out) == (len(whole), len(frame) - len(whole))
    np.testing.assert_allclose(found.mean, whole.mean(), rtol=1e-13)
    np.testing.assert_allclose(found.covariance, whole.cov(ddof=0), rtol=1e-9, atol=1e-9)


def test_everywhere_the_same(frame, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "BLOCK", 128)
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=300)
    frame.to_csv(tmp_path / "d.csv", index=False)
    check(moments_of(frame), frame)
    serial = moments_of(tmp_path / "d.parquet")
    check(serial, frame)
    threads = moments_of(tmp_path / "d.parquet", n_jobs=2)
    np.testing.assert_array_equal(threads.scatter, serial.scatter)
    check(moments_of(tmp_path / "d.csv"), frame)
    check(moments_of(pa.Table.from_pandas(frame).to_reader()), frame)
    check(moments_of(frame, columns=["k", "x"]), frame[["k", "x"]])


def test_partitions_of_a_dask_frame(frame, tmp_path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    cut = dd.from_pandas(frame, npartitions=5)
    check(moments_of(cut), frame)
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=300)
    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None, "set_as_default": False}
    with distributed.Client(processes=False, **options) as client:
        check(moments_of(cut, client=client), frame)
        np.testing.assert_array_equal(moments_of(cut, client=client).scatter, moments_of(cut).scatter)
        check(moments_of(tmp_path / "d.parquet", client=client), frame)


def test_gaussian_networks_from_files(frame, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "BLOCK", 128)
    path, gaps = tmp_path / "d.parquet", tmp_path / "gaps.csv"
    frame.dropna().to_parquet(path)
    frame.to_csv(gaps, index=False)
    net = gg.BayesianNetwork("x{real} -> y{real}")
    for prior in (None, gg.learn.LinearGaussianPrior(precision=2.0)):
        here, there = net.fit(frame.dropna(), prior=prior), net.fit(path, prior=prior)
        for a, b in zip(here.conditionals, there.conditionals, strict=True):
            np.testing.assert_allclose(a.coefficients, b.coefficients, rtol=1e-8)
            np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-8)
    assert net.fit(gaps, max_iter=2).fit_report is not None, "rows with gaps go through EM"


def test_columns_without_numbers(frame, tmp_path) -> None:
    words = frame.assign(name="somebody")
    words.to_csv(tmp_path / "d.csv", index=False)
    for data in (words, tmp_path / "d.csv"):
        with pytest.raises(gg.VariableError, match="'name' does not hold numbers"):
            moments_of(data)
    empty = moments_of(frame[:0])
    assert empty.n == 0 and empty.covariance.tolist() == [[0.0] * 3] * 3
