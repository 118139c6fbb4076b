"""Relevance vector regression against ARDRegression (scikit-learn) and skrvm, on the same kernel columns.

`python -m benchmarks rvm`. Rows: sinc with noise 0.1 (RMSE to the function) and diabetes (RMSE on held-out points).
Every contestant's time includes its kernel matrix; columns: time, ratio, relevance vectors, RMSE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.tables import Ratio, Result, Target, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
PEERS = ("sklearn", "skrvm")
ROWS = ("sinc 300", "sinc 1000", "diabetes 331")


def data(row: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Training points and targets, test points and what they should give, and γ of the RBF kernel."""
    kind, n = row.split()
    if kind == "sinc":
        x = np.linspace(-10, 10, int(n))[:, None]
        clean = np.sinc(x[:, 0] / np.pi)
        return x, clean + 0.1 * np.random.default_rng(0).standard_normal(int(n)), x, clean, 1 / 8
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: int(n)], order[int(n) :]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    return X[train], y[train], X[test], y[test], 1 / 50


def ours(X: Any, y: Any, new: Any, gamma: float) -> tuple[int, Any]:
    from gramgraph.estimators.rvm import RVR

    model = RVR(gamma=gamma).fit(X, y)
    return len(model.relevance_), model.predict(new)


def ard(X: Any, y: Any, new: Any, gamma: float) -> tuple[int, Any]:
    from sklearn.linear_model import ARDRegression
    from sklearn.metrics.pairwise import rbf_kernel

    model = ARDRegression().fit(rbf_kernel(X, gamma=gamma), y)
    return int((model.coef_ != 0).sum()), model.predict(rbf_kernel(new, X, gamma=gamma))


def skrvm(X: Any, y: Any, new: Any, gamma: float) -> tuple[int, Any]:
    from skrvm import RVR  # type: ignore[import-not-found]

    model = RVR(kernel="rbf", coef1=gamma).fit(X, y)
    return len(model.relevance_), model.predict(new)


WORK: dict[str, Callable[..., tuple[int, Any]]] = {OURS: ours, "sklearn": ard, "skrvm": skrvm}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Fit and predict once for the answers (ours also to load what is compiled), then for the time."""
    X, y, new, wanted, gamma = data(cell.row)
    last: list[tuple[int, Any]] = []

    def call() -> None:
        last[:] = [WORK[cell.contestant](X, y, new, gamma)]

    cpu, wall, repeats = measure(call, budget=cell.budget, warm=cell.contestant == OURS)
    vectors, predicted = last[0]
    rmse = float(np.sqrt(np.mean((predicted - wanted) ** 2)))
    return Measurement(cpu, wall, repeats, 1, values={"vectors": vectors, "rmse": rmse})


def report(
    runner: Runner, *, quick: bool = False, budget: float | None = None, limit: float | None = None, **_: Any
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    rows: Sequence[str] = ROWS[:1] if quick else ROWS
    results: dict[tuple[str, str, str], Result] = {}
    lines, ratios = [], []
    for row in rows:
        for name in (OURS, *PEERS):
            cell = Cell("rvm", row, "fit", name, budget or 0.5, limit or (60.0 if quick else 600.0))
            results[row, "fit", name] = runner.run(cell)
        mine = results[row, "fit", OURS]
        for name in (OURS, *PEERS):
            found = results[row, "fit", name]
            ratio: Ratio | None = None if name == OURS else ratio_of(mine, found)
            ratios += [ratio] if ratio else []
            values = {} if isinstance(found, Failure) else found.values
            label = {"sklearn": "ARDRegression on kernel columns"}.get(name, name)
            numbers = [f"{values['vectors']:.0f}", f"{values['rmse']:.4g}"] if values else ["", ""]
            lines.append([row, label, shown(found), ratio or "", *numbers])
    table = markdown(["data", "who", "fit and predict", "ratio", "vectors", "RMSE"], lines)
    head = versions(["gramgraph", "scikit-learn", "skrvm", "numpy"])
    return f"# Relevance vector regression\n\n{head}\n\n{table}\n\n{summary(ratios, Target(each=15.0))}\n", failures(
        results
    )
