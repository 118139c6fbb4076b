"""The benchmark harness works: cells, limits, agreement, tables. Its figures are not judged here."""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import exact_discrete, harness
from benchmarks.__main__ import main
from benchmarks.discrete_rows import cases_of, enough_distinct
from benchmarks.harness import Cell, Failure, Measurement, PeakMemory, measure, runner
from benchmarks.networks import data_folder, draw_cases, network_paths, topological_order
from benchmarks.records import record
from benchmarks.tables import Ratio, Target, best_of, difference, failures, markdown, ratio_of, seconds, shown, summary

needs_data = pytest.mark.skipif(data_folder() is None, reason="no shared data: set GRAMGRAPH_DATA")


def made(cpu: float, *answers: Any) -> Measurement:
    return Measurement(cpu, cpu, 1, 1, answers=tuple(np.asarray(a, float) for a in answers))


def test_measure_gives_the_time_of_one_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    clock = SimpleNamespace(process_time=lambda: 0.004 * len(calls), perf_counter=lambda: 0.01 * len(calls))
    monkeypatch.setattr(harness, "time", clock)
    cpu, wall, repeats = measure(lambda: calls.append(1), budget=0.05, units=2)
    assert (cpu, wall) == pytest.approx((0.002, 0.005))
    assert repeats == 6 and len(calls) == 7  # the first call warms up


def test_peak_memory_sees_an_array_that_is_gone() -> None:
    with PeakMemory() as memory:
        np.ones(8_000_000).sum()
    assert 60e6 < memory.peak < 200e6


def test_difference_is_nan_for_other_shapes_and_zero_for_equal_infinities() -> None:
    assert difference(made(1, [0.5, 0.5]), made(1, [0.5, 0.25])) == 0.25
    assert math.isnan(difference(made(1, [0.5, 0.5]), made(1, [1.0])))
    assert difference(made(1, [-np.inf]), made(1, [-np.inf])) == 0.0


def test_ratios_take_the_better_peer_and_keep_bounds() -> None:
    stopped = Failure("> 10 s", limit=10.0)
    assert ratio_of(made(1e-3), best_of([stopped, made(0.5), made(0.2)])) == Ratio(200.0)
    assert ratio_of(made(1e-3), best_of([stopped, Failure("died")])) == Ratio(10_000.0, bound=True)
    many = Measurement(1e-3, 1e-3, 1, units=1000)
    assert ratio_of(many, stopped) == Ratio(10.0, bound=True)  # the limit is one of a whole cell
    assert ratio_of(made(1e-3), best_of([Failure("not installed")])) is None
    assert "missed" in summary([Ratio(2.0), Ratio(30.0)], Target(median=10, each=5))
    assert seconds(12.3e-6) == "12.3 µs"


def test_parents_come_first() -> None:
    parents = [[3], [0, 2], [], [2]]
    order = topological_order(parents)
    assert sorted(order) == [0, 1, 2, 3]
    assert all(order.index(p) < order.index(v) for v in range(4) for p in parents[v])


@needs_data
def test_cases_are_possible_and_seeded() -> None:
    import gramgraph as gg

    net = gg.read(network_paths(["asia"])["asia"])
    cases = draw_cases(net, 50, name="asia")
    again = draw_cases(net, 50, name="asia")
    assert np.array_equal(cases.codes, again.codes)
    assert cases.observed == again.observed
    for case in range(50):
        full = {v: cases.states[i][cases.codes[case, i]] for i, v in enumerate(cases.variables)}
        assert net.joint_log_prob(full) > -math.inf
    assert cases.frame(mixed=True).notna().sum(axis=1).eq(1).all()


@needs_data
def test_a_cell_that_takes_too_long_is_stopped_and_the_next_one_runs() -> None:
    with runner() as run:
        stopped = run.run(Cell("exact_discrete", "asia", "load", "gramgraph", budget=30, limit=0.01))
        assert isinstance(stopped, Failure)
        assert stopped.limit is not None and stopped.limit <= 0.01  # CPU time: it began to import
        loaded = run.run(Cell("exact_discrete", "asia", "load", "gramgraph", budget=0.01, limit=60))
        assert isinstance(loaded, Measurement), loaded
        absent = run.run(Cell("exact_discrete", "asia", "case", "no_such_peer x", 1, 60))
        assert absent == Failure("not installed", tried=False)


def test_a_cell_that_waits_has_used_no_time() -> None:
    """The clock on the wall says nothing about the peer on a machine that others use, too."""
    assert (harness._cpu_of(os.getpid()) or 0.0) <= time.process_time() + 0.02
    assert harness._cpu_of(2**22 + 1) is None


@needs_data
def test_report_on_asia(tmp_path: Path) -> None:
    """Every task of ours, without peers: a full report and no faults."""
    arguments = [
        "exact_discrete",
        "--networks",
        "asia",
        "--quick",
        "--budget",
        "0.01",
        "--peers",
        "--out",
        str(tmp_path),
    ]
    assert main([*arguments, "--limit", "120", "--json"]) == 0
    text = (tmp_path / "exact_discrete.md").read_text(encoding="utf-8")
    assert text.count("| asia |") == 9  # seven tasks against pyAgrum, files, plans
    assert "disagree" not in text
    kept = json.loads((tmp_path / "exact_discrete.json").read_text(encoding="utf-8"))
    assert kept["report"] == text and kept["machine"]["cores"] and kept["versions"]["numpy"] == np.__version__
    assert all(cell["cpu"] > 0 for cell in kept["cells"] if "not run" not in cell) and len(kept["cells"]) > 5


def test_disagreement_is_a_fault() -> None:
    results: dict[tuple[str, str, str], Any] = {
        ("asia", "batch", "gramgraph"): made(1e-6, [0.4, 0.6]),
        ("asia", "case", "pyagrum lazy"): made(1e-3, [0.4, 0.6]),
        ("asia", "case", "pyagrum shafer"): made(1e-3, [0.3, 0.7]),
    }
    text, faults = exact_discrete._render(results, ["asia"], ["batch"], 1.0, 1.0)
    assert "**disagree**" in text
    assert any("pyagrum shafer" in fault for fault in faults)
    assert not any("pyagrum lazy" in fault for fault in faults)


def test_cost_curves_tell_their_exponent_and_their_cliffs() -> None:
    from benchmarks.curves import cliffs, exponent

    sizes = [10.0, 20.0, 40.0, 80.0]
    assert exponent(sizes, [s**1.5 for s in sizes]) == pytest.approx(1.5)
    assert cliffs(sizes, [1.0, 2.0, 9.0, 18.0]) == [2]
    assert cliffs(sizes, [1.0, 1.0, 1.0, 3.9]) == []
    cubes = [s**3 for s in sizes]
    assert cliffs(sizes, cubes, 3.0) == [] and cliffs(sizes, cubes, 1.0) == [1, 2, 3]
    assert cliffs(sizes, [1e-5, 1e-4, 2e-4, 4e-4]) == []  # too short to be told from the clock's noise


def test_cost_curves_leave_no_gap_in_which_a_cliff_could_hide() -> None:
    from benchmarks.curves import CURVES

    for name, curve in CURVES.items():
        assert len(curve.numbers) >= 4, name
        assert all(1.0 < b / a < 2.05 for a, b in itertools.pairwise(curve.numbers)), name


def test_what_was_not_tried_is_no_failure() -> None:
    """Neither in the record nor among the faults; nor is a row that nobody asked for."""
    cell = Cell("m", "row", "task", "gramgraph", 1.0, 1.0)
    unasked = harness.NOT_ASKED
    assert markdown(["row", "who"], [["a", shown(unasked)], ["b", "1 s"]]).count("\n") == 2
    assert failures({("a", "t", "gramgraph"): unasked, ("b", "t", "gramgraph"): Failure("died")}) == ["b, t: died"]
    assert record(cell, Failure("not offered", tried=False))["not run"] == "not offered"
    assert record(cell, Failure("> 9 s", limit=9.0))["stopped"] == 9.0
    assert record(cell, Failure("ValueError"))["failure"] == "ValueError"
    assert record(cell, Measurement(0.0, 0.0, 0, 1, note="too few rows"))["not run"] == "too few rows"
    with runner() as run:
        run.rows = ("other",)
        assert run.run(cell) == unasked and run.records == []


@needs_data
def test_distinct_cases_differ_in_what_is_observed() -> None:
    cell = Cell("exact_discrete", "insurance", "distinct", "gramgraph", 0.01, 60.0)
    context: dict[str, Any] = {}
    cases = cases_of(cell, context)
    assert enough_distinct(cell, context) and len(cases.frame().drop_duplicates()) == 1000
    assert cases_of(replace(cell, task="batch"), context).observed != cases.observed
    small = replace(cell, row="cancer")
    assert not enough_distinct(small, {})
