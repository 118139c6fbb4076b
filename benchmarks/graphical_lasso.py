"""Graphical lasso with a cross-validated penalty, against `GraphicalLassoCV` (scikit-learn).

`python -m benchmarks graphical_lasso`. Same rows, same five folds, same 16 penalties; the data are standardized first.
Rows are named after the graph and the number of variables: `random` has about two edges a variable, `chain` one, in
`factor` all hang on a hidden variable (ill-conditioned). Columns: CPU time, ratio, the penalty chosen (scikit-learn
centers held-out rows at their own mean, so it may differ), the objective −log |Θ| + tr(SΘ) + α Σ|Θ_ij| that the solver
reaches at the middle penalty, and penalties at which the solver failed in some fold. Our objective may not be above
the peer's by more than 1e-3, and only rows in which the peer solved every penalty count for the target. `own grid` lets
scikit-learn refine its penalties as it does by default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.tables import Ratio, Result, Target, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
PEERS = ("sklearn", "sklearn own grid")
ROWS = ("random 50", "random 200", "chain 200", "factor 200")


def data(row: str) -> np.ndarray:
    """2 p standardized rows of a Gaussian with the named graph."""
    kind, size = row.split()
    p = int(size)
    rng = np.random.default_rng(0)
    if kind == "chain":
        C = 0.6 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    elif kind == "factor":
        loading = rng.uniform(0.2, 0.8, size=(p, 1))
        C = loading @ loading.T
        np.fill_diagonal(C, 1.0)
    else:
        A = np.triu(rng.random((p, p)) < 2 / p, 1) * rng.choice([-1, 1], (p, p)) * rng.uniform(0.2, 0.5, (p, p))
        P = A + A.T
        P += np.diag(np.abs(P).sum(axis=1) + 0.2)
        C = np.linalg.inv(P)
    X = rng.multivariate_normal(np.zeros(p), C, size=2 * p, method="cholesky")
    return (X - X.mean(axis=0)) / X.std(axis=0)


def penalties(X: np.ndarray) -> np.ndarray:
    R = np.abs(np.corrcoef(X.T))
    np.fill_diagonal(R, 0.0)
    return np.geomspace(R.max(), 0.05 * R.max(), 16)


def ours(X: np.ndarray) -> tuple[float, int]:
    from gramgraph.estimators import GraphicalLasso

    model = GraphicalLasso("cv", alphas=penalties(X), cv=5, standardize=False).fit(X)
    return model.alpha_, int((~np.isfinite(model.scores_)).sum())


def sklearn(X: np.ndarray, alphas: Any = None) -> tuple[float, int]:
    from sklearn.covariance import GraphicalLassoCV

    model = GraphicalLassoCV(alphas=penalties(X) if alphas is None else alphas, cv=5).fit(X)
    tried = model.cv_results_["alphas"] > 0
    return model.alpha_, int((~np.isfinite(model.cv_results_["mean_test_score"][tried])).sum())


def sklearn_own(X: np.ndarray) -> tuple[float, int]:
    return sklearn(X, 4)


def precision_at(who: str, S: np.ndarray, alpha: float) -> Any:
    """What the contestant's solver gives for one penalty; None where it fails."""
    if who == OURS:
        from gramgraph.estimators import graphical_lasso_path

        return graphical_lasso_path(S, [alpha]).precisions[0]
    from sklearn.covariance import graphical_lasso

    try:
        return graphical_lasso(S, alpha)[1]
    except FloatingPointError:
        return None


WORK: dict[str, Callable[..., tuple[float, int]]] = {OURS: ours, "sklearn": sklearn, "sklearn own grid": sklearn_own}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Fit once for the answer (ours also to load what is compiled), then for the time."""
    import warnings

    X = data(cell.row)
    S = X.T @ X / len(X)
    last: list[tuple[float, int]] = []

    def call() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            last[:] = [WORK[cell.contestant](X)]

    cpu, wall, repeats = measure(call, budget=cell.budget, warm=cell.contestant == OURS)
    alpha, failed = last[0]
    middle = float(penalties(X)[8])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        T = precision_at(cell.contestant, S, middle)
    value = np.nan
    if T is not None:
        off = np.abs(T).sum() - np.abs(np.diagonal(T)).sum()
        value = float(-np.linalg.slogdet(T)[1] + np.vdot(S, T) + middle * off)
    return Measurement(cpu, wall, repeats, 1, values={"alpha": alpha, "objective": value, "failed": failed})


def report(
    runner: Runner, *, quick: bool = False, budget: float | None = None, limit: float | None = None, **_: Any
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    rows = ROWS[:1] if quick else ROWS
    results: dict[tuple[str, str, str], Result] = {}
    lines, ratios, faults = [], [], []
    for row in rows:
        for name in (OURS, *PEERS):
            cell = Cell("graphical_lasso", row, "cv", name, budget or 0.5, limit or (60.0 if quick else 300.0))
            results[row, "cv", name] = runner.run(cell)
        mine = results[row, "cv", OURS]
        for name in (OURS, *PEERS):
            found = results[row, "cv", name]
            ratio: Ratio | None = None if name == OURS else ratio_of(mine, found)
            values = {} if isinstance(found, Failure) else found.values
            ratios += [ratio] if ratio and name == "sklearn" and not values.get("failed") else []
            numbers = ["", "", ""]
            if values:
                numbers = [f"{values['alpha']:.4g}", f"{values['objective']:.6f}", f"{values['failed']:.0f}"]
            lines.append([row, name, shown(found), ratio or "", *numbers])
        faults += _compared(row, mine, results[row, "cv", "sklearn"])
    table = markdown(["data", "who", "fit", "ratio", "alpha", "objective", "failed"], lines)
    head = versions(["gramgraph", "scikit-learn", "numpy"])
    text = f"# Graphical lasso, cross-validated\n\n{head}\n\n{table}\n\n{summary(ratios, Target(each=5.0))}\n"
    return text, failures(results) + faults


def _compared(row: str, mine: Result, peer: Result) -> list[str]:
    """At the same penalty our objective must not be above the peer's."""
    if isinstance(mine, Failure) or isinstance(peer, Failure):
        return []
    above = mine.values["objective"] - peer.values["objective"]
    return [f"{row}: our objective is {above:.2g} above scikit-learn's"] if above > 1e-3 else []
