"""Support vector machines, against scikit-learn (libsvm) and scikit-learn-intelex.

Tasks: `fit` (equal tolerance; dual objectives agree to a relative 1e-5, summed over the pairs of many classes),
`predict` (all training points), `grid` (5 folds × 10 C × 5 γ, against `GridSearchCV`; the best scores are equal), all
on one thread by CPU time; `fit2` is `fit` by wall clock with two threads for either, against scikit-learn-intelex.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.tables import Ratio, Result, Target, best_of, failures, markdown, ratio_of, shown, summary

__all__ = ["TASKS", "report", "run_cell"]

OURS = "gramgraph"
#: Contestants by the name of the module that must be there.
CONTESTANTS = (OURS, "sklearn", "sklearnex")
TASKS = ("fit", "fit2", "predict", "grid")
TARGETS = {"fit": Target(each=3), "fit2": Target(each=1), "predict": Target(each=4), "grid": Target(each=10)}
TOLERANCE = {"fit": 1e-5, "fit2": 1e-5, "predict": 0.005, "grid": 1e-9}
#: Tasks in which only some of the peers take part, and the peer that the ratio is about (else scikit-learn).
ONLY = {"fit2": ("sklearnex",)}
JUDGE = {"fit2": "sklearnex"}


def _mixed(n: int, d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)


def _digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


#: Row → (data, C, tasks).
ROWS: dict[str, tuple[Callable[[], tuple[Any, Any]], float, tuple[str, ...]]] = {
    "5,000 × 20, C = 1": (lambda: _mixed(5_000, 20), 1.0, ("fit", "predict")),
    "5,000 × 20, C = 10": (lambda: _mixed(5_000, 20), 10.0, ("fit", "predict")),
    "20,000 × 50, C = 1": (lambda: _mixed(20_000, 50), 1.0, ("fit", "fit2", "predict")),
    "20,000 × 50, C = 100": (lambda: _mixed(20_000, 50), 100.0, ("fit", "fit2")),
    "digits, pairs of 10 classes": (_digits, 1.0, ("fit", "predict")),
    "1,000 × 10 grid": (lambda: _mixed(1_000, 10), 1.0, ("grid",)),
    "digits, 500 points, grid": (lambda: tuple(part[:500] for part in _digits()), 1.0, ("grid",)),
}
QUICK = ("5,000 × 20, C = 1", "digits, pairs of 10 classes")
COSTS = np.logspace(-1, 2, 10)
GAMMAS = np.logspace(-2, 0, 5)


def _machine(contestant: str, C: float) -> Any:
    if contestant == OURS:
        from gramgraph.estimators import SVC as Ours

        return Ours(C=C)
    if contestant == "sklearnex":
        from sklearnex.svm import SVC as Fast  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return Fast(C=C)
    from sklearn.svm import SVC as Peer

    return Peer(C=C)


def _objective(machine: Any, X: Any, C: float) -> float:
    """The dual objective, from the machine's own support vectors and in double precision; pairs are summed."""
    from sklearn.metrics.pairwise import rbf_kernel

    S, gamma = X[machine.support_], 1.0 / (X.shape[1] * X.var())
    coef, ends = np.asarray(machine.dual_coef_), np.concatenate([[0], np.cumsum(machine.n_support_)])
    k = len(machine.classes_)
    total = 0.0
    for i in range(k):
        for j in range(i + 1, k):
            parts = [np.arange(ends[c], ends[c + 1]) for c in (i, j)]
            here = np.concatenate(parts)
            beta = coef[0] if k == 2 else np.concatenate([coef[j - 1, parts[0]], coef[i, parts[1]]])
            total -= float(np.abs(beta).sum())
            for start in range(0, len(here), 1000):
                rows = here[start : start + 1000]
                total += 0.5 * float(beta[start : start + 1000] @ (rbf_kernel(S[rows], S[here], gamma) @ beta))
    return total


@contextmanager
def _threads(contestant: str, number: int) -> Iterator[None]:
    """This many threads for the contestant, whatever the environment said when it was imported."""
    from threadpoolctl import threadpool_limits

    if contestant == "sklearnex":
        from daal4py import daalinit  # type: ignore[import-not-found,import-untyped,unused-ignore]

        daalinit(number)
    with threadpool_limits(number):
        yield


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement | Failure:
    """One cell, inside the child process."""
    make, C, _ = ROWS[cell.row]
    if "data" not in context:
        context["data"] = make()
    X, y = context["data"]
    if cell.task == "grid":
        return _grid(cell, X, y)
    if cell.contestant == OURS:  # compiled before the clock starts
        _machine(OURS, C).fit(X[:1500], y[:1500])
    machine = _machine(cell.contestant, C)
    if cell.task in ("fit", "fit2"):
        with _threads(cell.contestant, 2 if cell.task == "fit2" else 1):
            if cell.task == "fit":
                if cell.contestant == OURS:  # loads what is compiled; a large fit is not worth doing twice for that
                    machine.fit(X[:5000], y[:5000])
                seconds, wall, repeats = measure(lambda: machine.fit(X, y), budget=cell.budget, warm=False)
            else:
                seconds, repeats = _wall(lambda: machine.fit(X, y), cell.budget)
                wall = seconds
        answers = (np.array([_objective(machine, X, C)]),)
        return Measurement(seconds, wall, repeats, 1, note=f"({len(machine.support_)} SV)", answers=answers)
    key = f"fitted {cell.contestant}"
    if key not in context:
        context[key] = machine.fit(X, y)
    cpu, wall, repeats = measure(lambda: context[key].predict(X), budget=cell.budget)
    return Measurement(cpu, wall, repeats, 1, answers=(np.array([float(np.mean(context[key].predict(X) == y))]),))


def _wall(work: Callable[[], object], budget: float) -> tuple[float, int]:
    """Wall seconds of the best of at least three calls, and how many there were."""
    times: list[float] = []
    while len(times) < 3 or sum(times) < budget:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times), len(times)


def _grid(cell: Cell, X: Any, y: Any) -> Measurement:
    from sklearn.model_selection import GridSearchCV

    if cell.contestant == OURS:
        from gramgraph.estimators import svc_path

        svc_path(X[:200], y[:200], None, COSTS[:2], 2, gamma=GAMMAS[:1])

        def work() -> float:
            return svc_path(X, y, None, COSTS, 5, gamma=GAMMAS).best_score
    else:

        def work() -> float:
            grid = {"C": COSTS, "gamma": GAMMAS}
            return float(GridSearchCV(_machine(cell.contestant, 1.0), grid, cv=5).fit(X, y).best_score_)

    found: list[float] = []
    cpu, wall, repeats = measure(lambda: found.append(work()), budget=cell.budget, warm=False)
    return Measurement(cpu, wall, repeats, 1, answers=(np.array([found[-1]]),))


def report(
    runner: Runner,
    *,
    networks: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    with_peers: Sequence[str] = ("sklearn", "sklearnex"),
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
) -> tuple[str, list[str]]:
    """Run everything; the report as Markdown, and the faults (disagreements, our own failures)."""
    budget, limit = budget or (0.1 if quick else 2.0), limit or (60.0 if quick else 600.0)
    # Peers of other modules may be named on the command line: then all of ours run.
    peers = [p for p in CONTESTANTS[1:] if p in with_peers] or (list(CONTESTANTS[1:]) if with_peers else [])
    results: dict[tuple[str, str, str], Result] = {}
    for row, (_, _, row_tasks) in ROWS.items():
        if quick and row not in QUICK:
            continue
        print(f"{row} …", file=sys.stderr, flush=True)
        for task in row_tasks:
            if task in (tasks or TASKS):
                for contestant in (OURS, *[p for p in peers if p in ONLY.get(task, peers)]):
                    results[row, task, contestant] = runner.run(Cell("svm", row, task, contestant, budget, limit))
    return _render(results, peers, budget)


def _render(results: dict[tuple[str, str, str], Result], peers: Sequence[str], budget: float) -> tuple[str, list[str]]:
    faults = failures(results)
    parts = [
        "# Support vector machines",
        "",
        versions(["gramgraph", "numpy", "numba", "scikit-learn", "scikit-learn-intelex"]) + ".",
        "",
        "CPU time, one thread (`fit2`: wall clock, two threads), same data and tolerance (1e-3), best of the repeats "
        f"that fit in {budget:g} s. `ratio`: scikit-learn's time over ours (`fit2`: scikit-learn-intelex's). `diff`: "
        "relative difference of the dual objective (fit), difference of the accuracy (others).",
        "",
    ]
    for task in TASKS:
        rows, ratios = [], []
        for row in dict.fromkeys(r for r, t, _ in results if t == task):
            mine = results[row, task, OURS]
            there = [peer for peer in peers if (row, task, peer) in results]
            theirs = {peer: results[row, task, peer] for peer in there}
            ratio: Ratio | None = ratio_of(mine, theirs.get(JUDGE.get(task, "sklearn"), best_of(theirs.values())))
            ratios += [ratio] if ratio else []
            gap = _gap(row, task, mine, theirs, faults)
            rows.append([row, shown(mine), *[shown(r) for r in theirs.values()], str(ratio or ""), gap])
        if rows:
            header = ["data", OURS, *[p for p in peers if p in ONLY.get(task, peers)], "ratio", "diff"]
            parts += [f"## {task}", "", summary(ratios, TARGETS[task]), "", markdown(header, rows), ""]
    return "\n".join(parts), faults


def _gap(row: str, task: str, mine: Result, theirs: dict[str, Result], faults: list[str]) -> str:
    worst, compared = 0.0, False
    for peer, result in theirs.items():
        if isinstance(mine, Measurement) and isinstance(result, Measurement) and mine.answers and result.answers:
            a, b = float(mine.answers[0][0]), float(result.answers[0][0])
            gap = abs(a - b) / (abs(b) if task in ("fit", "fit2") else 1.0)
            compared, worst = True, max(worst, gap)
            if gap > TOLERANCE[task]:
                faults.append(f"{row}, {task}: differs from {peer} by {gap:.3g}")
    return f"{worst:.1e}" if compared else ""
