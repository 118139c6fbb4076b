"""Boosted stumps and trees against scikit-learn: AdaBoost with stumps, gradient boosting with trees of depth 3.

`python -m benchmarks boosting` (`--tasks "stumps 20000x50"`: only these rows). CPU time of `fit`, one thread. Rows
"stumps …" compare 200 rounds of AdaBoost, whose decisions must be equal on nearly all rows; rows "trees …" compare 100
trees of depth 3 with `GradientBoostingClassifier`, and log loss on held-out rows with `HistGradientBoostingClassifier`
at the same depth. Spam is read from GRAMGRAPH_DATA.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.tables import Ratio, Result, Target, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS, PEER, BINNED = "gramgraph", "sklearn", "sklearn binned"
ROWS = ("stumps spam", "stumps 20000x50", "trees 10000x50", "trees 100000x50")


def spam() -> Path:
    """Where the spam data lie."""
    return Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data")) / "kernel" / "esl" / "spam.csv.gz"


def data(row: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and classes, and held-out ones."""
    name = row.split()[1]
    if name == "spam":
        import pandas as pd

        table = pd.read_csv(spam())
        X, y = table.iloc[:, :57].to_numpy(float), table.iloc[:, -1].astype(str).isin(["1", "spam"]).to_numpy()
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:3065], order[3065:]
        return X[train], y[train], X[test], y[test]
    from sklearn.datasets import make_classification

    n, d = map(int, name.split("x"))
    X, y = make_classification(n + n // 4, d, n_informative=15, flip_y=0.05, random_state=1)
    return X[:n], y[:n], X[n:], y[n:]


def model(row: str, who: str) -> Any:
    import sklearn.ensemble as peers

    from gramgraph import estimators

    if row.startswith("stumps"):
        return estimators.AdaBoostClassifier(200) if who == OURS else peers.AdaBoostClassifier(n_estimators=200)
    if who == OURS:
        return estimators.GradientBoostingClassifier(100, max_depth=3, min_samples_leaf=20)
    if who == BINNED:
        return peers.HistGradientBoostingClassifier(max_iter=100, max_depth=3, early_stopping=False)
    return peers.GradientBoostingClassifier(n_estimators=100, max_depth=3)


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Fit once warm and timed, then the log loss and the classes of held-out rows."""
    from sklearn.metrics import log_loss

    X, y, new, wanted = data(cell.row)
    if cell.contestant == OURS:
        model(cell.row, OURS).fit(X[:500], y[:500])  # loads what is compiled
    last: list[Any] = []

    def call() -> None:
        last[:] = [model(cell.row, cell.contestant).fit(X, y)]

    cpu, wall, repeats = measure(call, budget=cell.budget, warm=False)
    found = last[0]
    answers = (np.asarray(found.predict(new), dtype=np.float64),)
    values = {"log loss": float(log_loss(wanted, found.predict_proba(new)))}
    return Measurement(cpu, wall, repeats, 1, answers=answers, values=values)


def agreement(a: Result, b: Result) -> str:
    """The share of held-out rows with the same class."""
    if isinstance(a, Failure) or isinstance(b, Failure):
        return ""
    return f"{(a.answers[0] == b.answers[0]).mean():.4f}"


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
    present = [row for row in ROWS if "spam" not in row or spam().exists()]
    rows = [row for row in present if row in tasks] if tasks else present[:1] if quick else present
    results: dict[tuple[str, str, str], Result] = {}
    lines, ratios = [], []
    for row in rows:
        contestants: tuple[str, ...] = (OURS, PEER) if row.startswith("stumps") else (OURS, PEER, BINNED)
        for name in contestants:
            cell = Cell("boosting", row, "fit", name, budget or 0.5, limit or 1800.0)
            results[row, "fit", name] = runner.run(cell)
        mine = results[row, "fit", OURS]
        for name in contestants:
            found = results[row, "fit", name]
            ratio: Ratio | None = None if name == OURS else ratio_of(mine, found)
            ratios += [ratio] if ratio and name == PEER else []
            loss = "" if isinstance(found, Failure) else f"{found.values['log loss']:.4f}"
            lines.append([row, name, shown(found), ratio or "", loss, agreement(mine, found)])
    table = markdown(["data", "who", "fit", "ratio", "log loss", "same classes"], lines)
    head = versions(["gramgraph", "scikit-learn", "numpy", "numba"])
    return f"# Boosting\n\n{head}\n\n{table}\n\n{summary(ratios, Target(each=8.0))}\n", failures(results)
