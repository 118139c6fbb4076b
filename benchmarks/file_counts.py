"""All tables of two columns of a Parquet file against DuckDB: alarm, 37 columns, 666 pairs.

`python -m benchmarks file_counts`. The file (10,000,000 rows by forward sampling, row groups of 100,000; with --quick a
twentieth of it) is made first and removed afterwards; it takes about 50 MB. DuckDB is asked in two ways: one group-by a
pair on the file, or on a table of enumerated labels that is made from it first (its time included, and usually the
faster one). Our memory is the growth of the resident set in a process of its own, after the same work on a small file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, PeakMemory, Runner, measure, versions
from benchmarks.networks import network_paths
from benchmarks.tables import Ratio, Result, Target, difference, failures, markdown, ratio_of, shown, size, summary

__all__ = ["report", "run_cell"]

OURS, FILE, TABLE = "gramgraph", "duckdb file", "duckdb table"
ROWS = 10_000_000
GROUP = 100_000


def write_file(path: Path, rows: int) -> None:
    """Samples of alarm, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import gramgraph as gg

    net = gg.read(network_paths(["alarm"])["alarm"])
    schema = pa.schema([(name, pa.string()) for name in net.variables])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for seed in range(max(rows // GROUP, 1)):
            frame = net.sample(min(rows, GROUP), random_state=seed).astype(str)
            writer.write_table(pa.Table.from_pandas(frame, schema, preserve_index=False))


def ours(path: str) -> list[Any]:
    from gramgraph.data import stream_counts

    counts = stream_counts(path)
    counts.all_pairs()
    return [counts.table([a, b]) for a, b in combinations(sorted(counts.names), 2)]


def duckdb(path: str, *, table: bool) -> list[Any]:
    import duckdb

    with duckdb.connect() as db:
        db.execute("set threads to 1; set enable_progress_bar to false")
        source = f"'{path}'"
        names = sorted(row[0] for row in db.execute(f"describe select * from {source}").fetchall())
        labels = {c: [row[0] for row in db.execute(f'select distinct "{c}" from {source} order by 1').fetchall()]
                  for c in names}  # fmt: skip
        if table:
            for c in names:
                db.execute(f'create type "{c}" as enum ({", ".join(repr(label) for label in labels[c])})')
            typed = ", ".join(f'"{c}"::"{c}" as "{c}"' for c in names)
            db.execute(f"create table d as select {typed} from {source}")
            source = "d"
        out = []
        for a, b in combinations(names, 2):
            found = np.zeros((len(labels[a]), len(labels[b])), np.int64)
            for x, y, n in db.execute(f'select "{a}", "{b}", count(*) from {source} group by all').fetchall():
                found[labels[a].index(x), labels[b].index(y)] = n
            out.append(found)
        return out


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Count all pairs, ours once before on few rows; or once more for the memory."""
    path, small = cell.options["path"], cell.options["small"]
    work = ours if cell.contestant == OURS else lambda of: duckdb(of, table=cell.contestant == TABLE)
    work(small)
    if cell.fresh:
        with PeakMemory() as memory:
            work(path)
        return Measurement(0.0, 0.0, 1, 1, peak=memory.peak)
    last: list[Any] = []

    def call() -> None:
        last[:] = work(path)

    cpu, wall, repeats = measure(call, budget=cell.budget, warm=False, least=2 if cell.contestant == OURS else 1)
    return Measurement(cpu, wall, repeats, 1, answers=tuple(found.astype(np.float64) for found in last))


def report(
    runner: Runner,
    *,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    with_peers: Sequence[str] = (TABLE, FILE),
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    rows = ROWS // (20 if quick else 1)
    results: dict[tuple[str, str, str], Result] = {}
    lines, ratios, faults = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        files = {"path": str(Path(folder, "alarm.parquet")), "small": str(Path(folder, "small.parquet"))}
        write_file(Path(files["small"]), 1000)
        write_file(Path(files["path"]), rows)
        for name in (OURS, *(peer for peer in (TABLE, FILE) if peer in with_peers)):
            cell = Cell("file_counts", "pairs", "all", name, budget or 0.5, limit or 1800.0, options=files)
            results["pairs", "all", name] = found = runner.run(cell)
            memory = ""
            if name == OURS:
                sized = runner.run(replace(cell, fresh=True))
                memory = "" if isinstance(sized, Failure) else size(sized.peak)
            mine = results["pairs", "all", OURS]
            ratio: Ratio | None = None if name == OURS else ratio_of(mine, found)
            ratios += [ratio] if ratio else []
            if isinstance(mine, Measurement) and isinstance(found, Measurement) and difference(mine, found) != 0.0:
                faults.append(f"the tables of {name} differ from ours")
            lines.append([f"666 pairs, {rows:,} rows", name, shown(found), ratio or "", memory])
    table = markdown(["task", "who", "time", "ratio", "memory"], lines)
    head = versions(["gramgraph", "duckdb", "pyarrow", "numpy"])
    text = f"# Counts of a file\n\n{head}\n\n{table}\n\n{summary(ratios, Target(each=10.0))}\n"
    return text, faults + failures(results)
