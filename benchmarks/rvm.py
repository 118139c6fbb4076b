"""Relevance vector regression against ARDRegression (scikit-learn), skrvm, sklearn-rvm and fastrvm, one kernel for all.

`python -m benchmarks rvm` (`--tasks "sinc 100" "diabetes 331"`: only these rows). Rows: sinc with noise 0.1 (RMSE to
the function), diabetes and sets of the UCI repository (RMSE on held-out points; the latter where GRAMGRAPH_DATA has
them), each with the number of training points. Ours is the averaged posterior, the default of `RVR`, and "plain" the
sparse one (`average=False`), which is what fastrvm gives. Relevance vectors and RMSE are means over several seeds, the
same for all; "ours above" is our averaged RMSE less the peer's, seed by seed, as a share of the peer's mean with its
standard error, because one seed moves the RMSE by more than the methods differ: a difference below two standard errors
says nothing. The time is that of the first seed and includes the kernel matrix.
fastrvm runs the sequential algorithm in C++ from the empty model: no fifteenfold is asked of that one.
"""

from __future__ import annotations

import gzip
import importlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.tables import Ratio, Result, Target, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS, PLAIN = "gramgraph", "gramgraph plain"
PEERS = ("sklearn", "skrvm", "sklearn_rvm", "fastrvm")
#: Peers that are asked to be fifteen times slower.
ASKED = ("sklearn", "skrvm", "sklearn_rvm")
#: Row → seeds. ARDRegression takes minutes at n = 1,000.
ROWS = {
    "sinc 100": 60,
    "sinc 300": 5,
    "diabetes 331": 10,
    "autompg 300": 5,
    "housing 300": 5,
    "sinc 1000": 1,
}
LABELS = {PLAIN: "gramgraph, average=False", "sklearn": "ARDRegression on kernel columns", "sklearn_rvm": "sklearn-rvm"}


def folder(name: str) -> Path:
    """Where a set of the UCI repository lies."""
    return Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data")) / "kernel" / "uci" / name


def data(row: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Training points and targets, test points and what they should give, and γ of the RBF kernel."""
    kind, n = row.split()[0], int(row.split()[1])
    rng = np.random.default_rng(seed)
    if kind == "sinc":
        x = np.linspace(-10, 10, n)[:, None]
        clean = np.sinc(x[:, 0] / np.pi)
        return x, clean + 0.1 * rng.standard_normal(n), x, clean, 1 / 8
    if kind == "diabetes":
        from sklearn.datasets import load_diabetes

        X, y = load_diabetes(return_X_y=True)
        gamma = 1 / 50
    else:
        with gzip.open(folder(kind) / "data.csv.gz", "rt") as stream:
            table = np.loadtxt(stream, delimiter=",")
        X, y = table[:, :-1], table[:, -1]
        gamma = 0.5 / X.shape[1]
    order = rng.permutation(len(y))
    train, test = order[:n], order[n:]
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X[train], y[train], X[test], y[test], gamma


def ours(X: Any, y: Any, new: Any, gamma: float, average: bool = True) -> tuple[int, Any]:
    from gramgraph.estimators.rvm import RVR

    model = RVR(gamma=gamma, average=average).fit(X, y)
    return len(model.relevance_), model.predict(new)


def ard(X: Any, y: Any, new: Any, gamma: float) -> tuple[int, Any]:
    from sklearn.linear_model import ARDRegression
    from sklearn.metrics.pairwise import rbf_kernel

    model = ARDRegression().fit(rbf_kernel(X, gamma=gamma), y)
    return int((model.coef_ != 0).sum()), model.predict(rbf_kernel(new, X, gamma=gamma))


def skrvm(X: Any, y: Any, new: Any, gamma: float) -> tuple[int, Any]:
    model = importlib.import_module("skrvm").RVR(kernel="rbf", coef1=gamma).fit(X, y)
    return len(model.relevance_), model.predict(new)


def sklearn_rvm(X: Any, y: Any, new: Any, gamma: float) -> tuple[int, Any]:
    model = importlib.import_module("sklearn_rvm").EMRVR(kernel="rbf", gamma=gamma)
    model.fit(X, y)  # gives None back
    return len(model.relevance_vectors_), model.predict(new)


def fastrvm(X: Any, y: Any, new: Any, gamma: float) -> tuple[int, Any]:
    model = importlib.import_module("fastrvm").RVR(kernel="rbf", gamma=gamma, fit_intercept=True).fit(X, y)
    return len(model.relevance_), model.predict(new)


WORK: dict[str, Callable[..., tuple[int, Any]]] = {
    OURS: ours, PLAIN: partial(ours, average=False),
    "sklearn": ard, "skrvm": skrvm, "sklearn_rvm": sklearn_rvm, "fastrvm": fastrvm,
}  # fmt: skip


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """The first seed for the time (ours once before, to load what is compiled), all seeds for vectors and RMSE."""
    import warnings

    warnings.simplefilter("ignore")  # peers speak of convergence, and of what their dependencies will drop
    found: list[tuple[int, float]] = []
    last: list[tuple[int, Any]] = []
    for seed in range(ROWS[cell.row]):
        X, y, new, wanted, gamma = data(cell.row, seed)

        def call(args: tuple[Any, ...] = (X, y, new, gamma)) -> None:
            last[:] = [WORK[cell.contestant](*args)]

        if seed == 0:
            cpu, wall, repeats = measure(call, budget=cell.budget, warm=cell.contestant in (OURS, PLAIN))
        else:
            call()
        vectors, predicted = last[0]
        found.append((vectors, float(np.sqrt(np.mean((predicted - wanted) ** 2)))))
    vectors_mean, rmse = np.mean(found, axis=0)
    values = {"vectors": float(vectors_mean), "rmse": float(rmse)}
    each = {f"rmse {seed}": value for seed, (_, value) in enumerate(found)}
    return Measurement(cpu, wall, repeats, 1, values=values | each)


def above(mine: Result, peer: Result, seeds: int) -> str:
    """Our RMSE less the peer's in percent of the peer's, the mean over seeds with its standard error."""
    if isinstance(mine, Failure) or isinstance(peer, Failure):
        return ""
    a, b = (np.array([one.values[f"rmse {seed}"] for seed in range(seeds)]) for one in (mine, peer))
    d = 100.0 * (a - b) / b.mean()
    return f"{d.mean():+.2f} %" + (f" ± {d.std(ddof=1) / np.sqrt(seeds):.2f}" if seeds > 1 else "")


def report(
    runner: Runner,
    *,
    tasks: Sequence[str] | None = None,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    present = [row for row in ROWS if row.split()[0] in ("sinc", "diabetes") or folder(row.split()[0]).exists()]
    rows = [row for row in present if row in tasks] if tasks else present[:1] if quick else present
    results: dict[tuple[str, str, str], Result] = {}
    lines, ratios = [], []
    for row in rows:
        for name in (OURS, PLAIN, *PEERS):
            cell = Cell("rvm", row, "fit", name, budget or 0.5, limit or (60.0 if quick else 900.0))
            results[row, "fit", name] = runner.run(cell)
        mine = results[row, "fit", OURS]
        for name in (OURS, PLAIN, *PEERS):
            found = results[row, "fit", name]
            ratio: Ratio | None = None if name == OURS else ratio_of(mine, found)
            ratios += [ratio] if ratio and name in ASKED and row.endswith("1000") else []
            values = {} if isinstance(found, Failure) else found.values
            numbers = [f"{values['vectors']:.1f}", f"{values['rmse']:.4g}"] if values else ["", ""]
            paired = "" if name == OURS else above(mine, found, ROWS[row])
            lines.append([row, ROWS[row], LABELS.get(name, name), shown(found), ratio or "", *numbers, paired])
    table = markdown(["data", "seeds", "who", "fit and predict", "ratio", "vectors", "RMSE", "ours above"], lines)
    head = versions(["gramgraph", "scikit-learn", "skrvm", "sklearn-rvm", "fastrvm", "numpy"])
    tail = summary(ratios, Target(each=15.0))
    return f"# Relevance vector regression\n\n{head}\n\n{table}\n\nAt n = 1,000: {tail}\n", failures(results)
