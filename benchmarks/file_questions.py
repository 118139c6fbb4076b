"""Posteriors of cases in a Parquet file, written to another: alarm, five targets or all, against pyAgrum.

`python -m benchmarks file_questions`. The file (20,000,000 cases by forward sampling, 12 observed variables and a
number; with --quick a tenth of it) is made first and removed afterwards. Ours, once before on a small file, reads,
answers and writes float32, on one thread and, for the five targets, on two; its memory is the growth of the resident
set in a process of its own. The peer has no such door: it answers the first cases one after the other, from memory, and
its posteriors must be ours to single precision.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, PeakMemory, Runner, measure, versions
from benchmarks.networks import network_paths, to_pyagrum
from benchmarks.tables import Ratio, Result, difference, failures, markdown, ratio_of, shown, size

__all__ = ["report", "run_cell"]

OURS, PEER = "gramgraph", "pyagrum"
ROWS, GROUP, COMPARED = 20_000_000, 100_000, 300
TARGETS = ("HYPOVOLEMIA", "LVFAILURE", "INTUBATION", "KINKEDTUBE", "PULMEMBOLUS")
SEEN = 12


@cache
def _alarm() -> Any:
    import gramgraph as gg

    return gg.read(network_paths(["alarm"])["alarm"])


def _seen() -> list[str]:
    others = [name for name in _alarm().variables if name not in TARGETS]
    return [others[i] for i in np.linspace(0, len(others) - 1, SEEN).astype(int)]


def write_file(path: Path, rows: int) -> None:
    """Cases of alarm with a number each, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([*((name, pa.string()) for name in _seen()), ("number", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, GROUP):
            frame = _alarm().sample(min(GROUP, rows - first), random_state=first)[_seen()].astype(str)
            frame["number"] = np.arange(first, first + len(frame))
            writer.write_table(pa.Table.from_pandas(frame, schema, preserve_index=False))


def _targets(task: str) -> list[str]:
    return list(TARGETS) if task == "five" else [name for name in _alarm().variables if name not in _seen()]


def _ours(cell: Cell) -> Measurement:
    path, small = cell.options["path"], cell.options["small"]
    out = str(Path(path).with_name("posteriors.parquet"))

    def call(of: str = path) -> None:
        _alarm().query(_targets(cell.task), of, out=out, keep=["number"], dtype="float32", n_jobs=cell.options["jobs"])

    call(small)
    if cell.fresh:
        with PeakMemory() as memory:
            call()
        return Measurement(0.0, 0.0, 1, 1, peak=memory.peak)
    cpu, wall, repeats = measure(call, budget=cell.budget, units=cell.options["rows"], warm=False)
    import pyarrow.parquet as pq

    head = next(pq.ParquetFile(out).iter_batches(COMPARED)).to_pandas()
    columns = [f"{name}={state}" for name in _targets(cell.task) for state in _alarm().states(name)]
    assert head["number"].tolist() == list(range(len(head)))
    answers = tuple(head[columns].to_numpy(np.float64))
    return Measurement(cpu, wall, repeats, cell.options["rows"], answers=answers)


def _pyagrum(cell: Cell) -> Measurement:
    import pyagrum
    import pyarrow.parquet as pq

    cases = next(pq.ParquetFile(cell.options["path"]).iter_batches(COMPARED)).to_pylist()
    engine = pyagrum.LazyPropagation(to_pyagrum(_alarm()))
    engine.setNumberOfThreads(1)
    for name in _targets(cell.task):
        engine.addTarget(name)
    answers: list[Any] = []

    def call() -> None:
        answers.clear()
        for case in cases:
            engine.setEvidence({name: case[name] for name in _seen()})
            engine.makeInference()
            answers.append(np.concatenate([engine.posterior(name).toarray() for name in _targets(cell.task)]))

    cpu, wall, repeats = measure(call, budget=cell.budget, units=len(cases))
    return Measurement(cpu, wall, repeats, len(cases), answers=tuple(answers))


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Seconds a case."""
    return _ours(cell) if cell.contestant == OURS else _pyagrum(cell)


def report(
    runner: Runner,
    *,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    with_peers: Sequence[str] = (PEER,),
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    rows = ROWS // (10 if quick else 1)
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults = [], []
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder, "cases.parquet"), Path(folder, "small.parquet")
        write_file(path, rows)
        write_file(small, 2000)
        for task, jobs, wanted in (("five", 1, 150_000), ("five", 2, 300_000), ("all", 1, 80_000)):
            options = {"path": str(path), "small": str(small), "rows": rows, "jobs": jobs}
            row = f"{task} targets, {jobs} thread{'s' if jobs > 1 else ''}"
            cell = Cell("file_questions", row, task, OURS, budget or 0.5, limit or 1800.0, options=options)
            results[row, task, OURS] = mine = runner.run(cell)
            memory = runner.run(replace(cell, fresh=True))
            peak = size(memory.peak) if isinstance(memory, Measurement) else memory.reason
            rate = f"{1 / mine.wall:,.0f} (CPU {1 / mine.cpu:,.0f})" if isinstance(mine, Measurement) else ""
            lines.append([row, OURS, shown(mine), rate, f"≥ {wanted:,}", "", peak])
            if jobs == 1 and PEER in with_peers:
                results[row, task, PEER] = theirs = runner.run(replace(cell, contestant=PEER))
                ratio: Ratio | None = ratio_of(mine, theirs)
                rate = f"{1 / theirs.wall:,.0f} (CPU {1 / theirs.cpu:,.0f})" if isinstance(theirs, Measurement) else ""
                lines.append([row, PEER, shown(theirs), rate, "", ratio or "", ""])
                both = isinstance(mine, Measurement) and isinstance(theirs, Measurement)
                if both and not difference(mine, theirs) < 1e-6:  # type: ignore[arg-type]
                    faults.append(f"{row}: posteriors differ by {difference(mine, theirs):.3g}")  # type: ignore[arg-type]
    table = markdown([f"{rows:,} cases", "who", "time a case", "cases a second", "goal", "ratio", "memory"], lines)
    head = versions(["gramgraph", "pyagrum", "pyarrow", "numpy"])
    return f"# Questions from a file\n\n{head}\n\n{table}\n", faults + failures(results)
