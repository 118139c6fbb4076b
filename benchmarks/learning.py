"""Learning discrete networks against pyAgrum and pgmpy, on samples of alarm (37 variables, 46 edges).

`python -m benchmarks learning`. Rows: tables from 1,000,000 rows, hill climbing with BIC on 100,000 rows, a step of EM
on 10,000 rows with a fifth of the cells missing. The time holds everything from the frame of categories on (a peer's
database included). Values: the mean absolute difference to the true tables, the BIC of the graph found by our score.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.networks import network_paths, to_pyagrum
from benchmarks.tables import Ratio, Result, Target, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
PEERS = ("pyagrum", "pgmpy")
ROWS = {"tables": 1_000_000, "hill climbing": 100_000, "EM step": 10_000}
EM_STEPS = 5


@cache
def _alarm() -> Any:
    import gramgraph as gg

    return gg.read(network_paths(["alarm"])["alarm"])


@cache
def _frame(row: str, quick: bool) -> Any:
    import pandas as pd

    rows = ROWS[row] // (20 if quick else 1)
    parts = [_alarm().sample(min(100_000, rows), random_state=i) for i in range(max(rows // 100_000, 1))]
    frame = pd.concat(parts, ignore_index=True)
    if row == "EM step":
        frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)
    return frame


def _error(tables: dict[str, Any]) -> float:
    return float(np.mean([np.abs(tables[v] - _alarm().conditional(v).table()).mean() for v in _alarm().variables]))


def _bic(edges: list[tuple[str, str]], frame: Any) -> float:
    import gramgraph as gg

    parents = {v: [a for a, b in edges if b == v] for v in _alarm().variables}
    graph = gg.BayesianNetwork(parents, states={v: _alarm().states(v) for v in parents})
    return gg.learn.score(graph, frame, "bic")


# --- contestants: each gives (what it made, a function from that to the value of the row) -----------------------


def ours(row: str, frame: Any) -> tuple[Any, Callable[[Any], float]]:
    import gramgraph as gg

    if row == "hill climbing":
        return gg.learn_structure(frame), lambda net: _bic(list(net.edges), frame)
    net = _alarm().fit(frame, max_iter=EM_STEPS, tol=0.0)
    return net, lambda net: _error({v: net.conditional(v).table() for v in net.variables})


def pyagrum(row: str, frame: Any) -> tuple[Any, Callable[[Any], float]]:
    import pyagrum as gum

    bn = to_pyagrum(_alarm())
    if row == "EM step":
        frame = frame.astype(object).where(frame.notna(), "?")
        learner = gum.BNLearner(frame, bn, ["?"])
        learner.setNumberOfThreads(1)
        learner.useSmoothingPrior(0.01)  # it stops at combinations that no row shows
        learner.useEM(1e-30)
        learner.EMsetMaxIter(EM_STEPS)
        learner.EMdisableEpsilon()
        made = learner.learnParameters(bn.dag())
    else:
        learner = gum.BNLearner(frame, bn)
        learner.setNumberOfThreads(1)
        if row == "hill climbing":
            learner.useGreedyHillClimbing()
            learner.useScoreBIC()
            dag = learner.learnDAG()
            names = learner.names()
            return [(names[a], names[b]) for a, b in dag.arcs()], lambda edges: _bic(edges, frame)
        learner.useSmoothingPrior(1e-9)
        made = learner.learnParameters(bn.dag())

    def tables(made: Any) -> float:
        found = {}
        for v in _alarm().variables:
            cpt = made.cpt(v)
            order = [*_alarm().parents(v), v]
            found[v] = np.transpose(cpt.toarray(), [list(reversed(cpt.names)).index(name) for name in order])
        return _error(found)

    return made, tables


def pgmpy(row: str, frame: Any) -> tuple[Any, Callable[[Any], float]]:
    if row == "EM step":
        raise NotImplementedError("EM in pgmpy is for hidden variables only")
    if row == "hill climbing":
        from pgmpy.estimators import HillClimbSearch

        made = HillClimbSearch(frame).estimate(scoring_method="bic-d", show_progress=False)
        return made, lambda dag: _bic([(str(a), str(b)) for a, b in dag.edges()], frame)
    from pgmpy.estimators import MaximumLikelihoodEstimator
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork(list(_alarm().edges))
    states = {v: list(_alarm().states(v)) for v in _alarm().variables}
    cpds = MaximumLikelihoodEstimator(model, frame, state_names=states).get_parameters(n_jobs=1)

    def tables(cpds: Any) -> float:
        found = {}
        for cpd in cpds:
            v = cpd.variable
            values = np.moveaxis(cpd.values, 0, -1)
            given = list(cpd.variables[1:])
            found[v] = np.transpose(values, [*(given.index(p) for p in _alarm().parents(v)), values.ndim - 1])
        return _error(found)

    return cpds, tables


WORK: dict[str, Callable[..., tuple[Any, Callable[[Any], float]]]] = {OURS: ours, "pyagrum": pyagrum, "pgmpy": pgmpy}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Learn once or a few times; everybody once before on few rows: imports and compiled code are no learning."""
    frame = _frame(cell.row, cell.task == "quick")
    with contextlib.suppress(NotImplementedError):
        WORK[cell.contestant](cell.row, frame.iloc[:2000])
    last: list[tuple[Any, Callable[[Any], float]]] = []

    def call() -> None:
        last[:] = [WORK[cell.contestant](cell.row, frame)]

    cpu, wall, repeats = measure(call, budget=cell.budget, warm=False, least=2 if cell.contestant == OURS else 1)
    made, value = last[0]
    share = 1.0 / EM_STEPS if cell.row == "EM step" else 1.0
    return Measurement(cpu * share, wall * share, repeats, 1, values={"value": value(made)})


def report(
    runner: Runner, *, quick: bool = False, budget: float | None = None, limit: float | None = None, **_: Any
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, ratios = [], []
    task = "quick" if quick else "full"
    for row, rows in ROWS.items():
        for name in (OURS, *PEERS):
            cell = Cell("learning", row, task, name, budget or 0.5, limit or (60.0 if quick else 600.0))
            results[row, task, name] = runner.run(cell)
        mine = results[row, task, OURS]
        for name in (OURS, *PEERS):
            found = results[row, task, name]
            ratio: Ratio | None = None if name == OURS else ratio_of(mine, found)
            ratios += [ratio] if ratio else []
            value = "" if isinstance(found, Failure) else f"{found.values['value']:.8g}"
            lines.append([f"{row}, {rows // (20 if quick else 1):,} rows", name, shown(found), ratio or "", value])
    table = markdown(["task", "who", "time", "ratio", "error of the tables, or BIC"], lines)
    head = versions(["gramgraph", "pyagrum", "pgmpy", "numpy"])
    text = f"# Learning discrete networks\n\n{head}\n\n{table}\n\n{summary(ratios, Target(each=10.0))}\n"
    return text, failures(results)
