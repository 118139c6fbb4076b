"""Work on processes: begun where that pays, with the same results in the same order, and clear errors."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.data import processes
from gramgraph.data.processes import on_processes


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Processes are begun after the first block; the list has the number of blocks that each call gave to them."""
    given: list[int] = []
    by_joblib = processes._by_joblib

    def noted(function: Any, blocks: Any, shared: Any, n_jobs: int) -> Any:
        given.append(len(blocks))
        yield from by_joblib(function, blocks, shared, n_jobs)

    for name in ("BEGIN", "GO_ON", "COMPILING"):
        monkeypatch.setattr(processes, name, -1.0)
    monkeypatch.setattr(processes, "_by_joblib", noted)
    return given


def test_results_come_in_order(eager: list[int]) -> None:
    assert list(on_processes(pow, list(range(20)), shared=(2,), n_jobs=2)) == [k * k for k in range(20)]
    assert eager == [19]


def test_short_work_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_by_joblib", None)  # nobody calls it
    assert list(on_processes(pow, list(range(20)), shared=(2,), n_jobs=2)) == [k * k for k in range(20)]


def test_processes_of_an_earlier_call_cost_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_SEEN", {})
    assert processes._price(2) == processes.BEGIN
    list(processes._by_joblib(abs, [-1, 2], (), 2))
    assert processes._price(2) == processes.GO_ON and processes._price(3) == processes.BEGIN


def test_errors_of_a_process_arrive(eager: list[int]) -> None:
    found = on_processes(int, ["1", "2", "x"], n_jobs=2)
    assert next(found) == 1
    with pytest.raises(ValueError, match="'x'"):
        list(found)


def test_a_process_that_dies_is_told_in_a_sentence() -> None:
    with pytest.raises(gg.ModelError, match="a process died in the middle of its work"):
        list(processes._by_joblib(os._exit, [7], (), 2))


def test_who_stops_asking_waits_for_nobody(eager: list[int]) -> None:
    found = on_processes(pow, list(range(200)), shared=(2,), n_jobs=2)
    assert [next(found), next(found)] == [0, 1]
    found.close()
    assert list(on_processes(pow, [3, 4], shared=(2,), n_jobs=2)) == [9, 16]


def test_a_bootstrap_gives_the_same_numbers_on_processes(eager: list[int]) -> None:
    frame = gg.datasets.asia().sample(300, random_state=0)
    one, two = (
        gg.learn.bootstrap_edges(frame, 6, calibrate=2, random_state=0, n_jobs=n_jobs).to_frame() for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.to_numpy(), two.to_numpy())
    assert eager == [5, 1]
