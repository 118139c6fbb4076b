"""Small networks against pyAgrum: the first answer of a new network, and small tables of distinct cases.

`python -m benchmarks small_networks`. The code is in memory (it was asked before), half of the variables are observed,
and no two rows of a table are the same. `first` builds all structures anew on both sides; `batch` gives all posteriors
of 10 and 100 rows, `mpe` the best assignments of 4 and 40. pyAgrum gets new values case by case (`chgEvidence`), ours
a data frame. Posteriors of the first rows, and what the best assignments are worth, are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.discrete_rows import LAZY, net_of, pyagrum_of
from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.networks import draw_cases
from benchmarks.tables import Result, difference, failures, markdown, ratio_of, seconds

__all__ = ["report", "run_cell"]

NETWORKS = ("cancer", "survey", "asia", "child", "insurance", "alarm", "burglar", "covid1", "titanic", "student2")
TASKS = {"first": 1, "batch 10": 10, "batch 100": 100, "mpe 4": 4, "mpe 40": 40}
WANTED = {"first": 2.0, "batch 10": 5.0, "batch 100": 20.0, "mpe 4": 5.0, "mpe 40": 5.0}
#: Tables with fewer distinct rows than this share of what a task wants are left out.
ENOUGH = 0.4
#: Rows whose answers are compared.
COMPARED = 3


def _rows(cell: Cell, context: dict[str, Any]) -> list[dict[str, str]]:
    """Distinct cases of half of the variables, each possible."""
    key = ("rows", cell.row)
    if key not in context:
        net = net_of(cell, context)
        cases = draw_cases(net, 4000, name=cell.row)
        chosen = np.sort(
            np.random.default_rng(0).choice(len(cases.variables), max(2, len(cases.variables) // 2), False)
        )
        kinds, first = np.unique(cases.codes[:, chosen], axis=0, return_index=True)
        del kinds
        context[key] = [
            {cases.variables[v]: cases.states[v][cases.codes[case, v]] for v in chosen} for case in np.sort(first)
        ]
    rows: list[dict[str, str]] = context[key]
    return rows[: TASKS[cell.task]]


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One task on one network; seconds of the whole table."""
    rows = _rows(cell, context)
    if len(rows) < ENOUGH * TASKS[cell.task]:
        return Measurement(0.0, 0.0, 0, 1, note="too few distinct rows")
    call, answers = (_theirs if cell.contestant == LAZY else _ours)(cell, context, rows)
    shown = tuple(answers())
    cpu, wall, repeats = measure(call, budget=cell.budget, least=5)
    return Measurement(cpu, wall, repeats, 1, answers=shown, values={"rows": float(len(rows))})


Work = tuple[Callable[[], Any], Callable[[], list[Any]]]


def _ours(cell: Cell, context: dict[str, Any], rows: list[dict[str, str]]) -> Work:
    import pandas as pd

    net, frame = net_of(cell, context), pd.DataFrame(rows)
    free = [v for v in net.variables if v not in rows[0]]
    if cell.task == "first":

        def first() -> Any:
            net.plans.clear()
            return net.query(None, rows[0])

        return first, lambda: [np.concatenate([first()[v].probabilities for v in free])]
    if cell.task.startswith("batch"):

        def batch() -> Any:
            return net.query(None, frame)

        return batch, lambda: list(np.concatenate([batch()[v].probabilities[:COMPARED] for v in free], axis=1))

    def best() -> Any:
        return net.map_query(frame)

    return best, lambda: [np.array([_worth(net, row)]) for _, row in best().head(COMPARED).iterrows()]


def _worth(net: Any, row: Any) -> float:
    return float(net.joint_log_prob({v: row[v] for v in net.variables}))


def _theirs(cell: Cell, context: dict[str, Any], rows: list[dict[str, str]]) -> Work:
    import pyagrum

    net, bn = net_of(cell, context), pyagrum_of(cell, context)
    ids = {v: bn.idFromName(v) for v in net.variables}
    coded = [{ids[v]: net.states(v).index(state) for v, state in row.items()} for row in rows]
    free = [ids[v] for v in net.variables if v not in rows[0]]

    def engine() -> Any:
        made = pyagrum.LazyPropagation(bn)
        made.setNumberOfThreads(1)
        made.setEvidence(coded[0])
        return made

    def posteriors(asked: Any) -> list[Any]:
        asked.makeInference()
        return [asked.posterior(v).toarray() for v in free]

    if cell.task == "first":
        return lambda: posteriors(engine()), lambda: [np.concatenate(posteriors(engine()))]
    kept = engine()

    def each(ask: Callable[[Any], Any], some: list[dict[int, int]]) -> list[Any]:
        out = []
        for case in some:
            for v, state in case.items():
                kept.chgEvidence(v, state)
            out.append(ask(kept))
        return out

    if cell.task.startswith("batch"):
        return lambda: each(posteriors, coded), lambda: [np.concatenate(p) for p in each(posteriors, coded[:COMPARED])]

    def worth(found: Any) -> Any:
        states = found.todict()
        return np.array([_worth(net, {v: net.states(v)[states[v]] for v in net.variables})])

    return (
        lambda: each(lambda asked: asked.mpe(), coded),
        lambda: each(lambda asked: worth(asked.mpe()), coded[:COMPARED]),
    )


def report(
    runner: Runner,
    *,
    networks: Any = None,
    tasks: Any = None,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults, ratios = [], [], {}
    for row in networks or NETWORKS:
        for task in tasks or TASKS:
            found = [
                runner.run(Cell("small_networks", row, task, who, budget or (0.1 if quick else 0.5), limit or 60.0))
                for who in ("gramgraph", LAZY)
            ]
            ours, peer = found
            results |= {(row, task, who): one for who, one in zip(("gramgraph", LAZY), found, strict=True)}
            if isinstance(ours, Failure) or not ours.repeats:
                continue
            ratio = ratio_of(ours, peer)
            if not isinstance(peer, Failure):
                apart = difference(ours, peer)
                if not apart <= 1e-6:
                    faults.append(f"{row} {task}: answers are {apart:.1e} apart")
            if ratio is not None:
                ratios.setdefault(task, []).append(ratio.value)
            theirs = peer.reason if isinstance(peer, Failure) else seconds(peer.cpu)
            n = f"{ours.values['rows']:.0f}"
            lines.append([row, task, n, seconds(ours.cpu), theirs, "" if ratio is None else f"{ratio.value:.2f}"])
    head = ["network", "task", "rows", "gramgraph", "pyAgrum", "ratio"]
    told = "\n".join(
        f"- {task}: median {np.median(each):.2f}, smallest {min(each):.2f} (wanted: {WANTED[task]:g})"
        for task, each in ratios.items()
    )
    text = f"# Small networks\n\n{versions(['gramgraph', 'pyagrum', 'numpy'])}\n\n{markdown(head, lines)}\n\n{told}\n"
    return text, failures(results) + faults
