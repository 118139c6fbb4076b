"""Hill climbing with BIC against pyAgrum.

`python -m benchmarks hill_climbing`. Rows: alarm (37 columns) and random networks of 100 and 250
columns with two to four states and up to three parents near them, 10,000 rows each; ours alone with 500 and 2,000
columns, with the growth of memory. The time holds everything from the frame on: with us also the tables of the network,
with the peer its data base and the graph. Graphs differ, as searches end in different places, which depend on ties
between the two directions of the first arrows: the BIC of both stands beside the times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, PeakMemory, Runner, measure, versions
from benchmarks.networks import network_paths
from benchmarks.tables import Ratio, Result, failures, markdown, ratio_of, shown, size

__all__ = ["report", "run_cell", "world"]

OURS, PEER = "gramgraph", "pyagrum"
ALARM = 37
#: Columns → what the peer's time over ours should be.
AGAINST_PEER = {ALARM: 5.0, 100: 15.0, 250: 15.0}
ALONE = (500, 2000)
ROWS = 10_000


@lru_cache(maxsize=2)
def world(columns: int, rows: int, seed: int = 0) -> Any:
    """A frame of categories: alarm, or a random network whose variables depend on up to three of the 20 before them."""
    import pandas as pd

    if columns == ALARM:
        import gramgraph as gg

        return gg.read(network_paths(["alarm"])["alarm"]).sample(rows, random_state=seed)
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, columns)
    drawn: list[Any] = []
    for v in range(columns):
        parents = rng.choice(np.arange(max(0, v - 20), v), min(int(rng.integers(0, 4)), v, 20), replace=False)
        row = np.zeros(rows, np.int64)
        for p in parents:
            row = row * sizes[p] + drawn[p]
        tables = rng.dirichlet(np.full(sizes[v], 0.5), int(np.prod(sizes[parents], initial=1)))
        drawn.append((rng.random((rows, 1)) > tables[row].cumsum(axis=1)[:, :-1]).sum(axis=1))
    labels = ["a", "b", "c", "d"]
    return pd.DataFrame({f"v{v}": pd.Categorical.from_codes(x, labels[: sizes[v]]) for v, x in enumerate(drawn)})


def _ours(frame: Any) -> list[tuple[str, str]]:
    import gramgraph as gg

    return list(gg.learn_structure(frame).edges)


def _pyagrum(frame: Any) -> list[tuple[str, str]]:
    import pyagrum as gum

    learner = gum.BNLearner(frame)
    learner.setNumberOfThreads(1)
    learner.useGreedyHillClimbing()
    learner.useScoreBIC()
    names = learner.names()
    return [(names[a], names[b]) for a, b in learner.learnDAG().arcs()]


def _bic(edges: list[tuple[str, str]], frame: Any) -> float:
    import gramgraph as gg

    parents: dict[str, list[str]] = {name: [] for name in frame.columns}
    for a, b in edges:
        parents[b].append(a)
    graph = gg.BayesianNetwork(parents, states={name: list(frame[name].cat.categories) for name in parents})
    return gg.learn.score(graph, frame, "bic")


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Learn a graph; everybody once before on few rows and columns."""
    columns, rows = cell.options["columns"], cell.options["rows"]
    frame = world(columns, rows)
    work = _ours if cell.contestant == OURS else _pyagrum
    work(world(20, 500))
    if cell.fresh:
        with PeakMemory() as memory:
            work(frame)
        return Measurement(0.0, 0.0, 1, 1, peak=memory.peak)
    last: list[list[tuple[str, str]]] = []

    def call() -> None:
        last[:] = [work(frame)]

    least = 3 if cell.contestant == OURS and columns * rows < 5_000_000 else 1
    cpu, wall, repeats = measure(call, budget=cell.budget, warm=False, least=least)
    return Measurement(cpu, wall, repeats, 1, values={"BIC": _bic(last[0], frame), "edges": float(len(last[0]))})


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
    results: dict[tuple[str, str, str], Result] = {}

    def run(columns: int, rows: int, name: str, *, fresh: bool = False) -> Result:
        options = {"columns": columns, "rows": rows}
        where = (f"{columns} columns, {rows:,} rows", "memory" if fresh else "search")
        cell = Cell("hill_climbing", *where, name, budget or 0.5, limit or 600.0, fresh, options)
        found = runner.run(cell)
        results[(*where, name)] = found
        return found

    lines = []
    for columns, wanted in AGAINST_PEER.items():
        if quick and columns > 100:
            continue
        mine = run(columns, ROWS, OURS)
        lines.append([f"{columns} columns", OURS, shown(mine), "", _score(mine), ""])
        if PEER in with_peers:
            theirs = run(columns, ROWS, PEER)
            ratio: Ratio | None = ratio_of(mine, theirs)
            verdict = "" if ratio is None else f"≥ {wanted:g}×: {'met' if ratio.value >= wanted else 'missed'}"
            lines.append([f"{columns} columns", PEER, shown(theirs), ratio or "", _score(theirs), verdict])
    for columns in () if quick else ALONE:
        mine, memory = run(columns, ROWS, OURS), run(columns, ROWS, OURS, fresh=True)
        peak = size(memory.peak) if isinstance(memory, Measurement) else memory.reason
        lines.append([f"{columns} columns", OURS, shown(mine), "", _score(mine), f"memory {peak}"])
    table = markdown([f"{ROWS:,} rows", "who", "time", "ratio", "BIC", "goal"], lines)
    head = versions(["gramgraph", "pyagrum", "numpy"])
    return f"# Hill climbing\n\n{head}\n\n{table}\n", failures(results)


def _score(found: Result) -> str:
    return f"{found.values['BIC']:.9g}" if isinstance(found, Measurement) else ""
