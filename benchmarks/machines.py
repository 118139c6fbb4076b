"""Kernel machines where peers are strong: sparse text, products, densities, one row, large processes.

`sparse`: linear machines of random text (60 words a row of 30,000), against `SVC` and `LinearSVC` (hinge loss,
tolerance 1e-3, which gives about our primal objective); `products`: polynomial and linear kernels on letter, pendigits
and a9a where GRAMGRAPH_DATA has them; `density`: log densities at new points; `one row`: `predict` of a single point;
`process`: a fit with five restarts, ours alone (the evidence is in the record).
"""

from __future__ import annotations

import bz2
import gzip
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.tables import Ratio, Result, Target, difference, failures, markdown, ratio_of, shown, summary

__all__ = ["TASKS", "report", "run_cell"]

OURS = "gramgraph"
#: Task → (peers, the ratio that is asked of the first, largest difference of the answers).
TASKS: dict[str, tuple[tuple[str, ...], float, float]] = {
    "sparse": (("sklearn", "sklearn linear"), 2.0, 2e-3),
    "products": (("sklearn",), 3.0, 2e-3),
    "density": (("sklearn",), 2.0, 2e-2),
    "one row": (("sklearn",), 3.0, 1e-2),
    "process": ((), 0.0, 0.0),
}
SHAPES = ("tophat", "epanechnikov", "linear", "cosine", "exponential", "gaussian", "gaussian rtol=1e-4")
ROWS: dict[str, tuple[str, ...]] = {
    "sparse": ("2,000 × 30,000", "6,000 × 30,000"),
    "products": tuple(
        f"{data}, {kernel}" for data in ("letter", "pendigits", "a9a 8,000") for kernel in ("poly", "linear")
    ),
    "density": tuple(f"d = {d}, {shape}" for d in (1, 2, 3, 6) for shape in SHAPES),
    "one row": ("SVC n=200", "SVC n=1000", "SVR n=200", "SVR n=1000", "GPR n=200", "GPR n=1000"),
    "process": ("n=2000", "n=4000"),
}
QUICK = ("2,000 × 30,000", "pendigits, poly", "d = 2, tophat", "SVC n=200")


def _text(n: int) -> tuple[Any, Any]:
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = sparse.random(n, 30_000, density=60 / 30_000, format="csr", random_state=0)
    return X, np.sign(X @ rng.normal(size=30_000) + 0.3 * rng.normal(size=n))


def _mixed(n: int, d: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), (X[:, 0] * X[:, 1] > 0).astype(int)


def _folder() -> Path:
    return Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data")) / "kernel"


def _named(name: str) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    if name == "letter":
        with gzip.open(_folder() / "letter-recognition.data.gz", "rt") as lines:
            rows = [line.strip().split(",") for line in lines if line.strip()]
        return np.array([row[1:] for row in rows], float), np.array([row[0] for row in rows])
    file, _, size = name.partition(" ")
    with bz2.open(_folder() / "libsvm" / f"{file}.bz2") as stream:
        X, y = load_svmlight_file(stream)
    n = int(size.replace(",", "")) if size else len(y)
    return X[:n].toarray(), y[:n]


# --- what is timed: (call, answers, values) of each task ------------------------------------------------------------


def _sparse(row: str, contestant: str) -> tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]:
    X, y = _text(int(row.split()[0].replace(",", "")))

    def primal(machine: Any) -> float:
        w = np.asarray(machine.coef_.toarray() if hasattr(machine.coef_, "toarray") else machine.coef_)[0]
        return float(0.5 * w @ w + np.maximum(1.0 - y * (X @ w + machine.intercept_[0]), 0.0).sum())

    made = {OURS: partial(_svc, OURS), "sklearn": partial(_svc, "sklearn"), "sklearn linear": _linear}[contestant]
    machine = made(kernel="linear")
    return lambda: machine.fit(X, y), lambda m: np.array([primal(m) / len(y)]), lambda m: {"primal": primal(m)}


def _svc(contestant: str, **options: Any) -> Any:
    if contestant == OURS:
        from gramgraph.estimators import SVC as Ours

        return Ours(**options)
    from sklearn.svm import SVC as Peer

    return Peer(**options)


def _linear(kernel: str) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(loss="hinge", tol=1e-3, max_iter=100_000)


def _products(row: str, contestant: str) -> Any:
    name, kernel = row.rsplit(", ", 1)
    X, y = _named(name)
    machine = _svc(contestant, kernel=kernel)
    return lambda: machine.fit(X, y), lambda m: np.array([np.mean(m.predict(X[:3000]) == y[:3000])]), _nothing


def _density(row: str, contestant: str) -> Any:
    d, shape = int(row.split()[2].rstrip(",")), row.split(", ")[1]
    kernel, _, rtol = shape.partition(" rtol=")
    rng = np.random.default_rng(0)
    n = 20_000 if d < 6 else 10_000
    X, new, h = rng.normal(size=(n, d)), rng.normal(size=(1000, d)), n ** (-1.0 / (d + 4.0))
    if contestant == OURS:
        from gramgraph.estimators import KernelDensity as Ours

        model: Any = Ours(h, kernel=kernel, rtol=float(rtol or 0.0))
    else:
        from sklearn.neighbors import KernelDensity as Peer

        model = Peer(bandwidth=h, kernel=kernel, rtol=float(rtol or 0.0))
    model.fit(X)
    shift = 0.0
    if contestant != OURS and kernel == "cosine" and d % 2 == 0:  # this one does not integrate to one
        shift = float(model.score_samples(X[:1])[0] - _cosine(X, X[:1], h))

    # Differences of logarithms of densities; far from all points the peer leaves rounding where there is nothing.
    return lambda: model.score_samples(new), lambda found: np.maximum(found - shift, -15.0), _nothing


def _cosine(X: Any, new: Any, h: float) -> float:
    from gramgraph.estimators import KernelDensity

    return float(KernelDensity(h, kernel="cosine").fit(X).score_samples(new)[0])


def _one_row(row: str, contestant: str) -> Any:
    kind, n = row.split()[0], int(row.split("=")[1])
    X, y, label = _mixed(n, 5 if n == 200 else 20)
    if contestant == OURS:
        from gramgraph import estimators as ours

        made: dict[str, Any] = {"SVC": ours.SVC, "SVR": ours.SVR, "GPR": ours.GaussianProcessRegressor}
    else:
        from sklearn import gaussian_process, svm

        made = {"SVC": svm.SVC, "SVR": svm.SVR, "GPR": gaussian_process.GaussianProcessRegressor}
    options = {"alpha": 0.01, "optimizer": None} if kind == "GPR" else {}
    model = made[kind](**options).fit(X, label if kind == "SVC" else y)
    point = X[:1].copy()
    return lambda: model.predict(point), lambda found: np.asarray(found, float), _nothing


def _process(row: str, contestant: str) -> Any:
    from gramgraph.estimators import GaussianProcessRegressor
    from gramgraph.kernels import RBF, White

    n = int(row.split("=")[-1])
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(n, 4))
    y = np.sin(X[:, 0]) + 0.5 * np.cos(2.0 * X[:, 1]) + 0.1 * rng.normal(size=n)
    model = GaussianProcessRegressor(1.0 * RBF([1.0] * 4) + White(0.1), n_restarts_optimizer=5, random_state=0)
    return lambda: model.fit(X, y), lambda m: None, lambda m: {"evidence": m.log_marginal_likelihood_value_}


def _nothing(_: Any) -> dict[str, float]:
    return {}


WORK: dict[str, Callable[[str, str], Any]] = {
    "sparse": _sparse, "products": _products, "density": _density, "one row": _one_row, "process": _process,
}  # fmt: skip


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement | Failure:
    """One cell, inside the child process; loops are compiled and loaded before the clock starts."""
    from gramgraph._numerics.compiling import tier

    warnings.simplefilter("ignore")
    try:
        call, answer, values = WORK[cell.task](cell.row, cell.contestant)
    except FileNotFoundError as error:
        return Failure("no data", detail=str(error), tried=False)
    last: list[Any] = []
    long = cell.task in ("process", "products")
    with tier("compiled"):
        if cell.contestant == OURS:
            call()
        cpu, wall, repeats = measure(
            lambda: last.__setitem__(slice(None), [call()]), budget=cell.budget, warm=False, most=3 if long else 1000
        )
    found = answer(last[0])
    return Measurement(cpu, wall, repeats, 1, answers=() if found is None else (found,), values=values(last[0]))


def report(
    runner: Runner,
    *,
    networks: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    with_peers: Sequence[str] = ("sklearn",),
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
) -> tuple[str, list[str]]:
    """Run everything; the report as Markdown, and the faults (disagreements, our own failures)."""
    budget, limit = budget or (0.1 if quick else 2.0), limit or (60.0 if quick else 600.0)
    results: dict[tuple[str, str, str], Result] = {}
    for task in tasks or TASKS:
        if task not in TASKS:
            continue
        peers = [p for p in TASKS[task][0] if p.split()[0] in with_peers]
        for row in ROWS[task]:
            if quick and row not in QUICK:
                continue
            print(f"{task}: {row} …", file=sys.stderr, flush=True)
            for contestant in (OURS, *peers):
                results[row, task, contestant] = runner.run(Cell("machines", row, task, contestant, budget, limit))
    return _render(results, budget)


def _render(results: dict[tuple[str, str, str], Result], budget: float) -> tuple[str, list[str]]:
    faults = failures(results)
    assert __doc__ is not None
    parts = [
        "# Kernel machines where peers are strong", "", versions([OURS, "numpy", "numba", "scikit-learn"]) + ".", "",
        __doc__.partition("\n\n")[2].strip(), "",
        f"CPU time, one thread, best of the repeats that fit in {budget:g} s. `ratio`: the peer's time over ours; "
        "`diff`: the largest difference of the answers.", "",
    ]  # fmt: skip
    for task, (names, wanted, tolerance) in TASKS.items():
        peers = [p for p in names if any(t == task and c == p for _, t, c in results)]
        rows, ratios = [], []
        for row in dict.fromkeys(r for r, t, _ in results if t == task):
            mine = results[row, task, OURS]
            cells, gap = [], 0.0
            for peer in peers:
                theirs = results[row, task, peer]
                ratio: Ratio | None = ratio_of(mine, theirs)
                ratios += [ratio] if ratio and peer == peers[0] else []
                cells += [shown(theirs), str(ratio or "")]
                if isinstance(mine, Measurement) and isinstance(theirs, Measurement):
                    gap = max(gap, difference(mine, theirs))
            if gap > tolerance:
                faults.append(f"{task}, {row}: answers differ by {gap:.3g}")
            notes = ", ".join(f"{k} {v:.6g}" for k, v in mine.values.items()) if isinstance(mine, Measurement) else ""
            rows.append([row, shown(mine), *cells, f"{gap:.1e}" if peers else "", notes])
        if rows:
            header = ["row", OURS, *[h for p in peers for h in (p, "ratio")], "diff", "values"]
            head = [summary(ratios, Target(each=wanted)), ""] if ratios else []
            parts += [f"## {task}", "", *head, markdown(header, rows), ""]
    return "\n".join(parts), faults
