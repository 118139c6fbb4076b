"""Permutation tests of two samples (MMD) and of independence (HSIC) against hyppo and a plain NumPy loop.

`python -m benchmarks embeddings`. Rows: the test, the number of points (a sample), their dimension. Ours does 1,000
permutations a call, all else included, and the time is divided by 1,000; the peers, which do one after the other, do 30
a call, and their time is divided by 30. The NumPy loop is given the Gram matrices for nothing, and its statistic is
compared with ours.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, measure, versions
from benchmarks.tables import Ratio, Result, Target, difference, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
PEERS = ("hyppo", "numpy")
ROWS = ("hsic 1000 1", "mmd 1000 1", "hsic 1000 10", "mmd 1000 10")
PERMUTATIONS = {OURS: 1000, "hyppo": 30, "numpy": 30}


def data(row: str) -> tuple[str, np.ndarray, np.ndarray]:
    """The kind of test and its two samples, drawn under the null hypothesis."""
    kind, n, d = row.split()
    rng = np.random.default_rng(0)
    return kind, rng.normal(size=(int(n), int(d))), rng.normal(size=(int(n), int(d)))


def ours(kind: str, X: Any, Y: Any, number: int) -> float:
    from gramgraph.embeddings import hsic_test, mmd_test

    if kind == "mmd":
        return mmd_test(X, Y, estimator="biased", n_permutations=number, random_state=0).statistic
    return hsic_test(X, Y, n_permutations=number, random_state=0).statistic


def hyppo(kind: str, X: Any, Y: Any, number: int) -> float:
    if kind == "mmd":
        test = importlib.import_module("hyppo.ksample").MMD()
    else:
        test = importlib.import_module("hyppo.independence").Hsic()
    test.test(X, Y, reps=number, auto=False, workers=1)
    return float("nan")  # another normalization


def grams(kind: str, X: Any, Y: Any) -> tuple[Any, Any]:
    """Centered Gram matrices with the median distance, of the points and of the labels for two samples."""
    from gramgraph.embeddings import default_kernel

    if kind == "mmd":
        Z = np.concatenate([X, Y])
        s = np.repeat([1.0 / len(X), -1.0 / len(Y)], [len(X), len(Y)])
        K, L = default_kernel(Z).gram(Z), len(Z) ** 2 * np.outer(s, s)
    else:
        K, L = default_kernel(X).gram(X), default_kernel(Y).gram(Y)
    H = np.eye(len(K)) - 1.0 / len(K)
    return H @ K @ H, H @ L @ H


def loop(K: Any, L: Any, number: int) -> float:
    rng = np.random.default_rng(0)
    for _ in range(number):
        order = rng.permutation(len(K))
        (K * L[np.ix_(order, order)]).sum()
    return float((K * L).sum() / len(K) ** 2)


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One test; seconds a permutation."""
    import warnings

    warnings.simplefilter("ignore")  # hyppo speaks of what its dependencies will drop
    kind, X, Y = data(cell.row)
    number = PERMUTATIONS[cell.contestant]
    found: list[float] = []
    call: Callable[[], None]
    if cell.contestant == "numpy":
        K, L = grams(kind, X, Y)
        call = lambda: found.append(loop(K, L, number))  # noqa: E731
    else:
        work = ours if cell.contestant == OURS else hyppo
        call = lambda: found.append(work(kind, X, Y, number))  # noqa: E731
    cpu, wall, repeats = measure(call, budget=cell.budget, units=number, warm=True)
    answers = () if np.isnan(found[-1]) else (np.array([found[-1]]),)
    return Measurement(cpu, wall, repeats, number, answers=answers)


def report(
    runner: Runner, *, quick: bool = False, budget: float | None = None, limit: float | None = None, **_: Any
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, ratios, faults = [], [], []
    for row in ROWS[:1] if quick else ROWS:
        for name in (OURS, *PEERS):
            cell = Cell("embeddings", row, "test", name, budget or 1.0, limit or (30.0 if quick else 120.0))
            results[row, "test", name] = runner.run(cell)
        mine, plain = results[row, "test", OURS], results[row, "test", "numpy"]
        if isinstance(mine, Measurement) and isinstance(plain, Measurement) and not difference(mine, plain) < 1e-6:
            faults.append(f"{row}: our statistic differs from the plain sum by {difference(mine, plain):.2g}")
        for name in (OURS, *PEERS):
            ratio: Ratio | None = None if name == OURS else ratio_of(mine, results[row, "test", name])
            ratios += [ratio] if ratio and name == "hyppo" else []
            lines.append([row, name, shown(results[row, "test", name]), ratio or ""])
    table = markdown(["test, n, d", "who", "a permutation", "ratio"], lines)
    head = versions(["gramgraph", "hyppo", "numpy", "scipy", "numba"])
    tail = summary(ratios, Target(each=20.0)) if ratios else "hyppo is not installed"
    return f"# Permutation tests\n\n{head}\n\n{table}\n\nAgainst hyppo: {tail}\n", failures(results) + faults
