"""Exact batches on networks with wide tables: time of different cases, the roofline of this machine, peak memory.

`python -m benchmarks wide_tables`. `distinct`: all posteriors of 1,000 cases of which no two are equal (or as many as
fit in five seconds), per case, against the better engine of pyAgrum. `roof`: what an answer that keeps the tables of
all cliques cannot go below. The plan says how many floating-point operations and cells a case has; the rate of a matrix
product and that of a sum of arrays outside of the cache, both measured here on one thread, turn them into seconds, of
which the larger counts. `memory`: growth of the resident set by 200 different cases (of peers, who answer one after the
other: by the first ten), each contestant in a process of its own. Libraries are loaded before on both sides: the peer's
by its import, ours (Numba, LLVM and the machine code) by cases of a small network; what they take stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import discrete_ours, discrete_peers
from benchmarks.discrete_rows import LAZY, SHAFER, cases_of, net_of, pyagrum_of
from benchmarks.harness import Cell, Measurement, PeakMemory, Runner, measure, versions
from benchmarks.networks import network_paths
from benchmarks.tables import Ratio, Result, best_of, difference, failures, markdown, ratio_of, seconds, shown, size

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
AGRUM = (LAZY, SHAFER)
WIDE, LARGE, SMALL = ("mildew", "diabetes"), "munin", "alarm"
#: The peer's time over ours, and the peak, that are asked for.
WANTED, WANTED_PEAK = 20.0, float(100 << 20)
#: Cases of the memory figures; peers answer one after the other, and their peak is there after a few.
CASES, PEER_CASES = 200, 10
TOLERANCE = 1e-8
#: How often a cell goes between memory and cache where all tables together do not fit the latter: it is fetched and
#: written on the way up, and once more on the way down.
TRANSFERS = 4


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One task on one network."""
    if cell.task.startswith("roof"):
        return _roof(cell, context)
    if cell.task.startswith("memory"):
        return _memory(cell, context)
    return (discrete_ours.batch if cell.contestant == OURS else discrete_peers.pyagrum_case)(cell, context)


def _roof(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Seconds a case at the rates of this machine; `values` hold the work and the rates."""
    import gramgraph as gg

    net, cases = net_of(cell, context), cases_of(cell, context)
    plan = gg.plan(net, None, [cases.variables[v] for v in cases.observed])
    n = 1000
    a, b = np.ones((n, n)), np.ones((n, n))
    product, _, _ = measure(lambda: a @ b, budget=cell.budget, least=3)
    x, y, z = (np.ones(1 << 23) for _ in range(3))
    added, _, _ = measure(lambda: np.add(x, y, out=z), budget=cell.budget, least=3)
    flop_rate, byte_rate = 2.0 * n**3 / product, 24.0 * len(x) / added
    moved = 8.0 * TRANSFERS * float(plan.cells)
    roof = max(plan.flops / flop_rate, moved / byte_rate)
    values = {"flops": plan.flops, "bytes": moved, "flop rate": flop_rate, "byte rate": byte_rate}
    return Measurement(roof, roof, 1, 1, values=values)


def load_libraries() -> None:
    """Answer about so many cases of a small network that its loops are compiled, or loaded from a file."""
    import sys

    import gramgraph as gg

    net = gg.read(network_paths([SMALL])[SMALL])
    rows = net.sample(20 * CASES, random_state=0)
    net.query(None, rows.iloc[:, ::2])
    assert "numba" in sys.modules


def _memory(cell: Cell, context: dict[str, Any]) -> Measurement:
    cases = cases_of(cell, context)
    if cell.contestant == OURS:
        net, frame = net_of(cell, context), cases.frame(rows=CASES)
        with PeakMemory() as libraries:
            load_libraries()
        with PeakMemory() as memory:
            answer = net.query(None, frame)
            assert all(len(answer[v].probabilities) == CASES for v in answer)
        return Measurement(0.0, 0.0, 1, CASES, peak=memory.peak, values={"libraries": float(libraries.peak)})
    import pyagrum

    bn = pyagrum_of(cell, context)
    ids = {v: bn.idFromName(v) for v in cases.variables}
    with PeakMemory() as memory:
        engine = (pyagrum.LazyPropagation if cell.contestant == LAZY else pyagrum.ShaferShenoyInference)(bn)
        engine.setNumberOfThreads(1)
        kept = []
        for case in range(PEER_CASES):
            seen = cases.indices(case)
            engine.setEvidence({ids[v]: state for v, state in seen.items()})
            engine.makeInference()
            kept.append([engine.posterior(ids[v]).toarray() for v in cases.variables if v not in seen])
    return Measurement(0.0, 0.0, 1, PEER_CASES, peak=memory.peak)


def report(
    runner: Runner,
    *,
    tasks: Sequence[str] | None = None,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    with_peers: Sequence[str] = ("pyagrum",),
    **_: Any,
) -> tuple[str, list[str]]:
    """Both tables, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    faults: list[str] = []

    def run(row: str, task: str, who: str, *, fresh: bool = False) -> Result:
        cell = Cell("wide_tables", row, task, who, budget or (0.2 if quick else 1.0), limit or 600.0, fresh)
        found = results[row, task, who] = runner.run(cell)
        return found

    peers = AGRUM if "pyagrum" in with_peers else ()
    lines = []
    for row in (*WIDE, LARGE) if tasks is None or "distinct" in tasks else ():
        mine, roof = run(row, "distinct", OURS), run(row, "roof distinct", OURS)
        theirs = {who: run(row, "distinct", who) for who in peers}
        for who, found in theirs.items():
            if isinstance(mine, Measurement) and isinstance(found, Measurement):
                apart = difference(mine, found)
                faults += [] if apart <= TOLERANCE else [f"{row}: answers differ from {who} by {apart:.1e}"]
        ratio: Ratio | None = ratio_of(mine, best_of(theirs.values()))
        lines.append([row, shown(mine), *(shown(found) for found in theirs.values()), ratio or "", *_told(mine, roof)])
    text = f"# Wide tables\n\n{versions([OURS, 'pyagrum', 'numpy'])}\n\n"
    if lines:
        head = [f"different cases (asked: {WANTED:g}×)", OURS, *peers, "ratio"]
        text += (
            markdown([*head, "roof", "roof over our time", "flops a case", "bytes a case", "machine"], lines) + "\n\n"
        )
    if tasks is None or "memory" in tasks:
        peaks = [(who, run(LARGE, "memory distinct", who, fresh=True)) for who in (OURS, *peers)]
        rows = [
            [who, *([size(r.peak), size(r.values.get("libraries"))] if isinstance(r, Measurement) else [r.reason, ""])]
            for who, r in peaks
        ]
        head = [f"{CASES} cases of {LARGE} (asked: {size(WANTED_PEAK)})", "peak", "libraries before"]
        text += markdown(head, rows) + "\n"
    return text, failures(results) + faults


def _told(mine: Result, roof: Result) -> list[str]:
    if not isinstance(mine, Measurement) or not isinstance(roof, Measurement):
        return [""] * 5
    v = roof.values
    machine = f"{v['flop rate'] / 1e9:.1f} Gflop/s, {v['byte rate'] / 1e9:.1f} GB/s"
    return [seconds(roof.cpu), f"{roof.cpu / mine.cpu:.0%}", f"{v['flops']:.3g}", f"{v['bytes']:.3g}", machine]
