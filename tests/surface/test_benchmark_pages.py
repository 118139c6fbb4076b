"""Tables of pages are what the result files say, and every row has a figure or says that it was not measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page, page_rows
from benchmarks.curve_picture import curve_table, picture
from benchmarks.page import NOT_MEASURED, Row

FILES = page.read()


def cell(row: str, task: str, who: str, **more: Any) -> dict[str, Any]:
    return {"row": row, "task": task, "contestant": who, **more}


def timed(row: str, task: str, who: str, cpu: float, units: int = 1, **more: Any) -> dict[str, Any]:
    return cell(row, task, who, cpu=cpu, wall=cpu, repeats=1, units=units, **more)


def files(*cells: dict[str, Any], module: str = "made") -> dict[str, Any]:
    machine = {
        "processor": "P", "cores": 2, "system": "S", "python": "3", "tier": "compiled", "load": [0.5, 7.0],
    }  # fmt: skip
    return {module: {"module": module, "machine": machine, "versions": {"peer": "1.0"}, "faults": [], "cells": cells}}


# ------------------------------------------------------------------------------------------ the pages themselves


def test_pages_are_what_the_result_files_say():
    """After new result files: `python -m benchmarks page`."""
    for path, text in page_rows.made(FILES).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is not what docs/measured says"


def test_every_row_has_a_figure_or_says_that_it_has_none():
    text = (page.DOCS / "benchmarks.md").read_text(encoding="utf-8")
    shown = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    shown = [line for line in shown if len(line) == 5 and line[-1].startswith("`")]
    assert sorted(line[0] for line in shown) == sorted(row.text for row in page_rows.ROWS)
    for words in (line[2] for line in shown):
        assert words == NOT_MEASURED or re.search(r"\d ?(×|n?s|µs|ms|kB|MB|GB|a second)", words), words


def test_goals_that_are_missed_have_a_reason_and_named_cells_exist():
    assert page.faults_of(page_rows.ROWS, FILES) == []


def test_rows_name_modules_that_exist():
    from benchmarks.__main__ import MODULES

    assert set(page_rows.modules_shown()) <= set(MODULES)


def test_only_the_rows_of_the_page_may_be_asked_for():
    assert page_rows.rows_shown("hmm") == {"gauss 8", "kalman 4"}
    assert page_rows.rows_shown("small_networks") is None  # all of them
    assert page_rows.rows_shown("curves") is None and "tree 0 5000" in (page_rows.rows_shown("kernel_trees") or ())


def test_a_run_that_is_interrupted_keeps_what_it_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from benchmarks import vision
    from benchmarks.__main__ import main
    from benchmarks.harness import Cell, Measurement

    def report(runner: Any, **_: Any) -> Any:
        runner.records.append((Cell("vision", "camera", "detect", "gramgraph", 1.0, 1.0), Measurement(0.5, 0.5, 1, 1)))
        raise KeyboardInterrupt

    monkeypatch.setattr(vision, "report", report)
    assert main(["vision", "mixtures", "--json", "--out", str(tmp_path)]) == 1
    kept = page.read(tmp_path)
    assert list(kept) == ["vision"] and kept["vision"]["cells"][0]["cpu"] == 0.5
    assert kept["vision"]["faults"] == ["interrupted: not all was measured"]


def test_result_files_hold_what_a_reader_must_know():
    for name, made in FILES.items():
        assert {"processor", "cores", "system", "python", "tier", "load"} <= set(made["machine"]), name
        assert made["versions"]["gramgraph"] and "date" not in made


# ---------------------------------------------------------------------------------------------- how rows are made


def test_a_module_that_was_not_run_is_not_measured():
    row = Row("work", "made", "task", ("a",), ("peer",), goal=2.0)
    assert page.told(row, {}).words == NOT_MEASURED
    assert page.told(row, files(timed("b", "task", "gramgraph", 1.0))).words == NOT_MEASURED
    assert NOT_MEASURED in page.table([row], {}) and NOT_MEASURED in page.conditions(["made"], {})


def test_the_fastest_peer_counts_and_goals_are_about_the_worst_row():
    cells = [timed("a", "task", "gramgraph", 1.0), timed("a", "case", "peer x", 9.0), timed("a", "case", "peer y", 4.0)]
    cells += [timed("b", "task", "gramgraph", 1.0), timed("b", "case", "peer x", 1.5)]
    row = Row("work", "made", "task", peers=("peer x", "peer y"), peer_task="case", goal=2.0)
    found = page.told(row, files(*cells))
    assert found.words == "4×, 1.5×" and found.reached is False
    assert page.faults_of([row], files(*cells)) == ["work: 4×, 1.5× misses the goal, and `missed` does not say why"]
    explained = Row("work", "made", "task", peers=("peer x",), peer_task="case", goal=2.0, missed="sorting")
    assert page.faults_of([explained], files(*cells)) == []
    assert "≥ 2×: missed; sorting" in page.table([explained], files(*cells))


def test_first_answers_are_told_with_the_fastest_peer_and_what_is_missing():
    cells = [timed("a", "first process", "gramgraph", 0.25), timed("a", "second process", "gramgraph", 0.125)]
    cells += [timed("a", "second process", "pyagrum", 0.5), timed("a", "second process", "pgmpy", 4.0)]
    cells += [cell("b", "first process", "gramgraph", failure="no memory")]
    found = files(*cells, module="cold_start")
    assert "| a | 250 ms | 125 ms | pyAgrum 500 ms, pgmpy 4 s |" in page.first_answers(found)
    assert f"| b | {NOT_MEASURED} | {NOT_MEASURED} |  |" in page.first_answers(found)
    assert page.first_answers_in_words(("a", "b"), found).endswith(f"a 250 ms (pyAgrum 500 ms); b {NOT_MEASURED}.")
    assert page.first_answers({}) == NOT_MEASURED


def test_many_rows_give_the_median_and_the_worst_and_say_who_is_missing():
    cells = [timed(name, "task", "gramgraph", 1.0) for name in "abcde"]
    cells += [timed(name, "task", "peer", t) for name, t in zip("abcd", (2.0, 4.0, 8.0, 16.0), strict=True)]
    cells.append(cell("f", "task", "gramgraph", **{"not run": "too few rows"}))
    row = Row("work", "made", "task", peers=("peer",))
    words = page.told(row, files(*cells)).words
    assert words == "median 6×, smallest 2× (a); 4 rows, 1 more without a figure of the peer"


def test_a_stopped_peer_gives_a_bound_by_the_time_of_all_of_our_units():
    cells = [timed("a", "task", "gramgraph", 0.01, units=1000), cell("a", "task", "peer", stopped=60.0)]
    assert page.told(Row("work", "made", "task", peers=("peer",)), files(*cells)).words == "> 6×"


def test_times_bytes_rates_and_plain_values():
    cells = [timed("a", "t", "gramgraph", 0.5, values={"ratio": 1.8}), timed("a", "t", "gramgraph", 0.0, peak=3 << 20)]
    found = files(*cells)
    wanted = {
        Row("", "made", "t", ("a",), goal=1.0): ("500 ms", True),
        Row("", "made", "t", ("a",), figure="peak", goal=float(1 << 20)): ("3 MB", False),
        Row("", "made", "t", ("a",), figure="rate", goal=1.0): ("2 a second (1 in all)", True),
        Row("", "made", "t", ("a",), figure="ratio", plain=True, goal=1.7): ("1.8×", True),
    }
    for row, (words, reached) in wanted.items():
        told = page.told(row, found)
        assert (told.words, told.reached) == (words, reached)


def test_conditions_tell_machine_tier_versions_and_load():
    text = page.conditions(["made"], files())
    assert "P, 2 cores, S, Python 3" in text and "compiled" in text and "busy: 0.5 to 7" in text and "peer 1.0" in text


def test_a_page_without_its_marks_is_refused():
    text = "a\n<!-- measured x: begin -->\nold\n<!-- measured x: end -->\nb"
    assert page.rewritten(text, {"x": "new"}) == text.replace("old", "new")
    with pytest.raises(ValueError, match="marks the parts"):
        page.rewritten(text, {"y": "new"})
    with pytest.raises(ValueError, match="no end"):
        page.rewritten("<!-- measured x: begin -->", {"x": "new"})


def test_files_of_another_format_are_refused(tmp_path: Path):
    (tmp_path / "old.json").write_text(json.dumps({"format": 1, "module": "old"}))
    with pytest.raises(ValueError, match=r"old\.json has format 1"):
        page.read(tmp_path)


def test_the_drawing_has_a_panel_for_every_curve_that_was_measured():
    cells = [
        timed(str(n), "SVC, points", "gramgraph", n**2 / 1e6, values={"size": float(n)}) for n in (500, 1000, 2000)
    ]
    made = files(*cells, module="curves")["curves"]
    drawn = picture(made)
    assert drawn.count("<polyline") == 1 and "SVC: exponent 2.00" in drawn
    table = curve_table(made)
    assert "| SVC | points | 250 ms at 500 to 4 s at 2,000 | 2.00 | 2 | none |" in table and NOT_MEASURED in table
