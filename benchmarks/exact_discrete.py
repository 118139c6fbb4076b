"""Exact inference on discrete Bayesian networks, against pyAgrum's two junction engines and pgmpy.

Tasks, with about a tenth of the variables observed (values drawn from the network):

* `batch`: 1,000 cases as they are drawn, with the same observed variables, time per case; equal rows are computed once
  (small networks have few different ones); peers: one case after the other (`case`);
* `distinct`: 1,000 cases of which no two are equal; as many variables are observed as that takes;
* `mixed`: 1,000 cases, each with its own observed variables;
* `warm`: one case after the other through `net.query`, all posteriors read as arrays;
* `first`: the first answer of a fresh network, compilation of the model included;
* `mpe`, `mpe_batch`: the most probable explanation, one case and 1,000 cases;
* `load`: reading the BIF files;
* `plan`: bytes that the plan announces against the peak that is measured, each in a fresh process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import discrete_ours as ours
from benchmarks import discrete_peers as peers
from benchmarks.discrete_rows import ELIMINATION, LAZY, PROPAGATION, SHAFER, enough_distinct, net_of
from benchmarks.harness import Cell, Failure, Measurement, Runner, versions
from benchmarks.networks import network_paths
from benchmarks.tables import (
    Ratio,
    Result,
    Target,
    best_of,
    difference,
    failures,
    markdown,
    ratio_of,
    seconds,
    shown,
    size,
    summary,
)

__all__ = ["TASKS", "report", "run_cell"]

OURS = "gramgraph"
#: Task → who does it. The peers' `case` stands against our `batch` and our `warm`.
CONTESTANTS: dict[str, tuple[str, ...]] = {
    "batch": (OURS,),
    "warm": (OURS,),
    "case": (LAZY, SHAFER, ELIMINATION, PROPAGATION),
    "distinct": (OURS, LAZY, SHAFER),
    "mixed": (OURS, LAZY, SHAFER),
    "first": (OURS, LAZY, SHAFER),
    "mpe": (OURS, LAZY, ELIMINATION),
    "mpe_batch": (OURS,),
    "load": (OURS, "pyagrum"),
}
TASKS = (*CONTESTANTS, "plan")

WORK: dict[tuple[str, str], Callable[[Cell, dict[str, Any]], Measurement]] = {
    ("batch", OURS): ours.batch,
    ("distinct", OURS): ours.batch,
    ("mixed", OURS): ours.batch,
    ("warm", OURS): ours.warm,
    ("first", OURS): ours.first,
    ("mpe", OURS): ours.mpe,
    ("mpe_batch", OURS): ours.mpe_batch,
    ("load", OURS): ours.load,
    ("plan", OURS): ours.plan_memory,
    ("case", "pyagrum"): peers.pyagrum_case,
    ("distinct", "pyagrum"): peers.pyagrum_case,
    ("mixed", "pyagrum"): peers.pyagrum_case,
    ("first", "pyagrum"): peers.pyagrum_first,
    ("mpe", "pyagrum"): peers.pyagrum_mpe,
    ("load", "pyagrum"): ours.load,
    ("case", "pgmpy"): peers.pgmpy_case,
    ("mpe", "pgmpy"): peers.pgmpy_mpe,
}

#: Answers of two libraries may differ by this much: absolute for probabilities, relative for log probabilities.
TOLERANCE = 1e-8
TOLERANCE_LOG = 1e-6
#: How many of the largest plans are run for the memory figures.
N_LARGEST = 10
#: pgmpy needs seconds to hours a case: it runs on networks up to so many variables, and not for long.
PGMPY_LARGEST = {(ELIMINATION, "case"): 100, (ELIMINATION, "mpe"): 20, (PROPAGATION, "case"): 20}
PGMPY_LIMIT = 10.0


@dataclass(frozen=True)
class Table:
    """One table of the report: our task against the peers' task."""

    title: str
    task: str
    peer_task: str
    peers: tuple[str, ...]
    target: Target
    logs: bool = False  # answers are log probabilities of explanations: ours may be better, never worse


AGRUM = (LAZY, SHAFER)
PGMPY = (ELIMINATION, PROPAGATION)
TABLES = (
    Table("1,000 different cases, same observed variables, per case", "distinct", "distinct", AGRUM, Target(100, 5)),
    Table("1,000 drawn cases, same observed variables, equal rows once, per case", "batch", "case", AGRUM, Target()),
    Table("1,000 cases, each with its own observed variables, per case", "mixed", "mixed", AGRUM, Target()),
    Table("one warm case through `net.query`, all posteriors", "warm", "case", AGRUM, Target(10, 1)),
    Table("first answer of a fresh network", "first", "first", AGRUM, Target(None, 0.5)),
    Table("most probable explanation, one case", "mpe", "mpe", (LAZY,), Target(10, 1), True),
    Table("most probable explanation, 1,000 cases, per case", "mpe_batch", "mpe", (LAZY,), Target(100, 5), True),
    Table("1,000 cases, per case, against pgmpy", "batch", "case", PGMPY, Target(1000, 1000)),
    Table("most probable explanation, against pgmpy", "mpe_batch", "mpe", (ELIMINATION,), Target(1000, 1000), True),
)


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement | Failure:
    """One cell, inside the child process; `context` keeps the models of the row."""
    largest = PGMPY_LARGEST.get((cell.contestant, cell.task))
    if largest is not None and len(net_of(cell, context)) > largest:
        return Failure(f"not run (> {largest} variables)", tried=False)
    if cell.task == "distinct" and not enough_distinct(cell, context):
        return Failure("not run (too few different cases)", tried=False)
    return WORK[cell.task, cell.contestant.split()[0]](cell, context)


Results = dict[tuple[str, str, str], Result]


def report(
    runner: Runner,
    *,
    networks: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    with_peers: Sequence[str] = ("pyagrum", "pgmpy"),
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
) -> tuple[str, list[str]]:
    """Run everything; the report as Markdown, and the faults (disagreements, our own failures)."""
    budget = budget or (0.1 if quick else 0.4)
    limit = limit or (10.0 if quick else 90.0)
    paths = network_paths(networks)
    wanted = tuple(tasks or TASKS)
    results: Results = {}
    sizes: dict[str, float] = {}
    for name, path in paths.items():
        print(f"{name} …", file=sys.stderr, flush=True)
        for task, contestants in CONTESTANTS.items():
            if not _runs(task, wanted) or (task == "load" and ".bif" not in path.name):
                continue
            for contestant in contestants:
                if contestant == OURS or contestant.split()[0] in with_peers:
                    most = PGMPY_LIMIT if "pgmpy" in contestant else limit
                    cell = Cell("exact_discrete", name, task, contestant, budget, min(most, limit))
                    results[name, task, contestant] = runner.run(cell)
        if "plan" in wanted:
            announced = runner.run(Cell("exact_discrete", name, "plan", OURS, 0, limit, options={"announced": True}))
            if isinstance(announced, Measurement):
                sizes[name] = announced.values["announced"]
            else:
                results[name, "plan", OURS] = announced
    for name in sorted(sizes, key=lambda n: (-sizes[n], n))[:N_LARGEST]:
        results[name, "plan", OURS] = runner.run(Cell("exact_discrete", name, "plan", OURS, 0, limit, fresh=True))
    return _render(results, tuple(paths), wanted, budget, limit)


def _runs(task: str, wanted: Sequence[str]) -> bool:
    return task in wanted or (task == "case" and ("batch" in wanted or "warm" in wanted))


# --- the report ---------------------------------------------------------------------------------------------------


def _render(
    results: Results, names: Sequence[str], wanted: Sequence[str], budget: float, limit: float
) -> tuple[str, list[str]]:
    faults = failures(results)
    lines, sections = [], []
    asked = {contestant for _, _, contestant in results}
    for table in TABLES:
        if table.task in wanted and (table.peers[0] == LAZY or asked.intersection(table.peers)):
            line, section = _section(table, results, names, faults)
            lines.append(line)
            sections.append(section)
    if "load" in wanted:
        lines.append(_loading(results, names, sections))
    if "plan" in wanted:
        lines.append(_planning(results, names, sections))
    head = [
        "# Exact inference on discrete networks",
        "",
        versions(["gramgraph", "numpy", "numba", "pyagrum", "pgmpy"]) + ".",
        "",
        f"CPU time (`time.process_time`), one thread, same process and data, best of the repeats that fit in "
        f"{budget:g} s a cell, stopped after {limit:g} s. About 10 % of the variables observed. A ratio is the time of "
        "the better peer engine over ours. `diff` is the largest absolute difference of the answers (tolerance "
        f"{TOLERANCE:g}; relative {TOLERANCE_LOG:g} for log probabilities). Peak is the growth of the resident set "
        "(high-water mark of the kernel).",
        "",
        "| task | ratios |",
        "|:--|:--|",
        *lines,
        "",
    ]
    if faults:
        head += ["**Faults**", "", *[f"- {fault}" for fault in faults], ""]
    return "\n".join([*head, *sections]) + "\n", faults


def _section(table: Table, results: Results, names: Sequence[str], faults: list[str]) -> tuple[str, str]:
    rows: list[list[str]] = []
    ratios: list[Ratio] = []
    for name in names:
        mine = results.get((name, table.task, OURS))
        if mine is None:
            continue
        theirs = {peer: results.get((name, table.peer_task, peer)) for peer in table.peers}
        ratio = ratio_of(mine, best_of(theirs.values()))
        if ratio is not None:
            ratios.append(ratio)
        gap = _gap(table, name, mine, theirs, faults)
        peaks = [size(r.peak) if isinstance(r, Measurement) else "" for r in (mine, *theirs.values())]
        cells = [shown(result) for result in theirs.values()]
        rows.append([name, shown(mine), *cells, str(ratio or ""), gap, " / ".join(filter(None, peaks))])
    text = summary(ratios, table.target)
    if alone := len(rows) - len(ratios):
        text += f"; {alone} more without a time of a peer"
    header = ["network", OURS, *table.peers, "ratio", "diff", "peak"]
    return f"| {table.title} | {text} |", f"## {table.title}\n\n{text}\n\n{markdown(header, rows)}\n"


def _gap(table: Table, name: str, mine: Result, theirs: dict[str, Result | None], faults: list[str]) -> str:
    """Largest difference to any peer that answered, marked and noted as a fault where it is too large."""
    worst, compared = 0.0, False
    for peer, result in theirs.items():
        if not isinstance(mine, Measurement) or not isinstance(result, Measurement) or not result.answers:
            continue
        compared = True
        if table.logs:
            pairs = list(zip(mine.answers, result.answers, strict=False))
            gap = max((float(b[0] - a[0]) / max(1.0, abs(float(b[0]))) for a, b in pairs), default=0.0)
            tolerance = TOLERANCE_LOG
        else:
            gap, tolerance = difference(mine, result), TOLERANCE
        if not gap <= tolerance:
            faults.append(f"{name}, {table.task}: answers differ from {peer} by {gap:.3g}")
        worst = max(worst, gap) if gap == gap else gap
    marked = "" if worst <= (TOLERANCE_LOG if table.logs else TOLERANCE) else " **disagree**"
    return f"{worst:.1e}{marked}" if compared else ""


def _loading(results: Results, names: Sequence[str], sections: list[str]) -> str:
    """Sum over the files that both read."""
    rows, sums = [], [0.0, 0.0]
    for name in names:
        pair = [results.get((name, "load", who)) for who in (OURS, "pyagrum")]
        if pair[0] is None:
            continue
        if all(isinstance(r, Measurement) for r in pair):
            sums = [total + r.cpu for total, r in zip(sums, pair, strict=True) if isinstance(r, Measurement)]
        rows.append([name, *map(shown, pair), str(ratio_of(*pair) or "")])
    text = "no ratios"
    if sums[0] > 0:
        ratio = sums[1] / sums[0]
        met = "met" if ratio >= 1 else "missed"
        text = f"sum {seconds(sums[0])} against {seconds(sums[1])}: {ratio:.3g}× (target ≥ 1×: {met})"
    sections.append(f"## reading BIF files\n\n{text}\n\n{markdown(['network', OURS, 'pyagrum', 'ratio'], rows)}\n")
    return f"| reading BIF files | {text} |"


def _planning(results: Results, names: Sequence[str], sections: list[str]) -> str:
    rows, worst = [], 0.0
    for name in names:
        found = results.get((name, "plan", OURS))
        if not isinstance(found, Measurement):
            continue
        announced, peak = found.values["announced"], float(found.peak or 0)
        off = announced / peak - 1 if peak else float("nan")
        worst = max(worst, abs(off))
        rows.append([name, size(announced), size(peak), f"{off:+.0%}", seconds(found.values["planning"])])
    rows.sort(key=lambda row: row[0])
    text = f"largest deviation {worst:.0%} (target ≤ 20 %: {'met' if worst <= 0.2 else 'missed'})" if rows else "none"
    header = ["network", "announced", "measured peak", "deviation", "planning (wall)"]
    sections.append(f"## bytes announced by the plan, ten largest\n\n{text}\n\n{markdown(header, rows)}\n")
    return f"| bytes announced by the plan, ten largest | {text} |"
