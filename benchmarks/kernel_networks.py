"""Factorized models against joint kernel densities as the dimension grows, where the truth is known.

`python -m benchmarks kernel_networks` (`--tasks "8 400"`: only these rows). Rows: d = 2, 4, 8, 16 variables in a chain
of nonlinear mechanisms with normal noise, N samples. Figures are held-out nats a row on 2,000 other rows (three samples
of 400 rows, one of 2,000): the truth, kernel networks (`learn_tree` with kernels on the true edges, and with edges that
it finds), `fit(conditional="auto")`, a joint kernel density (its bandwidth by left-out likelihood), conditional kernel
densities along the edges, discretized, linear-Gaussian and copula networks. Times are CPU seconds of one thread.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, versions
from benchmarks.tables import Result, failures, markdown

__all__ = ["chain", "report", "run_cell"]

DIMENSIONS, ROWS = (2, 4, 8, 16), (400, 2000)
CONTESTANTS = (
    "numpy truth",
    "gramgraph kernel, true edges",
    "gramgraph kernel, learned edges",
    "gramgraph auto",
    "gramgraph copula",
    "gramgraph gaussian",
    "numpy joint kernel density",
    "numpy conditional kernel density",
    "numpy discretized",
)
#: Rows that judge; samples of each size.
HELD, SEEDS = 2000, {400: 3, 2000: 1}
_MEANS = (lambda x: 1.2 * np.sin(2.0 * x), lambda x: 1.2 * np.tanh(2.0 * x), lambda x: 1.3 * (np.abs(x) - 0.8))
_NOISE = 0.4


def chain(d: int, n: int, seed: int) -> tuple[Any, Any]:
    """(n rows of a chain of d variables, log density of each by the truth)."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, d))
    X[:, 0] = rng.normal(size=n)
    logs = _log_normal(X[:, 0], 0.0, 1.0)
    for i in range(1, d):
        mean = _MEANS[i % len(_MEANS)](X[:, i - 1])
        X[:, i] = mean + _NOISE * rng.normal(size=n)
        logs = logs + _log_normal(X[:, i], mean, _NOISE)
    return X, logs


def _log_normal(x: Any, mean: Any, sd: float) -> Any:
    return -0.5 * ((x - mean) / sd) ** 2 - np.log(sd * np.sqrt(2.0 * np.pi))


def _log_sum(L: Any) -> Any:
    top = L.max(axis=1, keepdims=True)
    return top[:, 0] + np.log(np.exp(L - top).sum(axis=1))


def _log_kernels(X: Any, Y: Any, width: float) -> Any:
    """log of normal kernels at the rows of Y, by columns in units of their deviations."""
    sd = np.maximum(Y.std(axis=0), 1e-9) * width
    A, B = X / sd, Y / sd
    squares = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2.0 * A @ B.T
    return -0.5 * np.maximum(squares, 0.0) - float(np.log(sd * np.sqrt(2.0 * np.pi)).sum())


_WIDTHS = np.geomspace(0.05, 1.2, 14)


def _left_out(X: Any, width: float) -> float:
    L = _log_kernels(X, X, width)
    np.fill_diagonal(L, -np.inf)
    return float((_log_sum(L) - np.log(len(X) - 1)).mean())


def joint_density(X: Any, Y: Any) -> float:
    """Mean log density of Y under the kernel density of X whose width predicts left-out rows best."""
    best = max(_WIDTHS, key=lambda width: _left_out(X, width))
    return float((_log_sum(_log_kernels(Y, X, best)) - np.log(len(X))).mean())


def conditional_density(X: Any, Y: Any) -> float:
    """p(x₀) Π p(xᵢ, xᵢ₋₁) / p(xᵢ₋₁) by kernel densities of pairs, the width of each by left-out conditionals."""
    total = joint_density(X[:, :1], Y[:, :1])
    for i in range(1, X.shape[1]):
        pair, there = X[:, i - 1 : i + 1], Y[:, i - 1 : i + 1]
        scores = []
        for width in _WIDTHS:
            L, M = _log_kernels(pair, pair, width), _log_kernels(pair[:, :1], pair[:, :1], width)
            np.fill_diagonal(L, -np.inf)
            np.fill_diagonal(M, -np.inf)
            scores.append(float((_log_sum(L) - _log_sum(M)).mean()))
        width = _WIDTHS[int(np.argmax(scores))]
        L, M = _log_kernels(there, pair, width), _log_kernels(there[:, :1], pair[:, :1], width)
        total += float((_log_sum(L) - _log_sum(M)).mean())
    return total


def discretized(X: Any, Y: Any) -> float:
    """Tables along the chain, bins by quantiles, their number by a third of the rows; density = probability / width."""
    cut = len(X) // 3
    tried = {bins: _tables(X[cut:], X[:cut], bins) for bins in (3, 5, 8, 12, 20)}
    return _tables(X, Y, max(tried, key=lambda bins: tried[bins]))


def _tables(X: Any, Y: Any, bins: int) -> float:
    total, before = 0.0, None
    for i in range(X.shape[1]):
        inner = np.unique(np.quantile(X[:, i], np.linspace(0.0, 1.0, bins + 1)[1:-1]))
        span = X[:, i].max() - X[:, i].min()
        edges = np.concatenate([[X[:, i].min() - 0.1 * span], inner, [X[:, i].max() + 0.1 * span]])
        code, there = (np.clip(np.searchsorted(edges, Z[:, i]) - 1, 0, len(edges) - 2) for Z in (X, Y))
        width = np.diff(edges)[there]
        k = len(edges) - 1
        if before is None:
            counts = np.bincount(code, minlength=k) + 0.5
            p = (counts / counts.sum())[there]
        else:
            counts = np.zeros((before[2], k)) + 1.0 / k
            np.add.at(counts, (before[0], code), 1.0)
            p = (counts / counts.sum(axis=1, keepdims=True))[before[1], there]
        outside = (Y[:, i] < edges[0]) | (Y[:, i] > edges[-1])
        total += float(np.where(outside, np.log(1e-4 / span), np.log(p / width)).mean())
        before = (code, there, k)
    return total


def _ours(contestant: str, X: Any, Y: Any) -> float:
    import pandas as pd

    import gramgraph as gg

    names = [f"x{i}" for i in range(X.shape[1])]
    fit, held = pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=names)
    edges = list(pairwise(names))
    if contestant == "gramgraph auto":
        text = " -> ".join(f"{name}{{real}}" for name in names)
        return float(gg.BayesianNetwork(text).fit(fit, conditional="auto").log_likelihood(held).mean())
    edge = contestant.split()[1].rstrip(",")
    return float(gg.learn_tree(fit, edge, edges=None if "learned" in contestant else edges).log_likelihood(held).mean())


_PLAIN = {
    "numpy joint kernel density": joint_density,
    "numpy conditional kernel density": conditional_density,
    "numpy discretized": discretized,
}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One contestant on one dimension and number of rows, over all seeds."""
    d, n = (int(word) for word in cell.row.split())
    start, found = time.process_time(), []
    for seed in range(int(cell.options.get("seeds", SEEDS[n]))):
        X, _ = chain(d, n, seed)
        Y, logs = chain(d, HELD, 1000 + seed)
        if cell.contestant == "numpy truth":
            found.append(float(logs.mean()))
        elif cell.contestant in _PLAIN:
            found.append(_PLAIN[cell.contestant](X, Y))
        else:
            found.append(_ours(cell.contestant, X, Y))
    cpu = time.process_time() - start
    return Measurement(cpu, cpu, 1, 1, values={"nats": float(np.mean(found)), "seconds": cpu / len(found)})


def report(
    runner: Runner, *, quick: bool = False, limit: float | None = None, tasks: Any = None, **_: Any
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side; `--tasks` names rows such as "8 400"."""
    results: dict[tuple[str, str, str], Result] = {}
    rows = [f"{d} {n}" for n in (ROWS[:1] if quick else ROWS) for d in DIMENSIONS]
    rows = [row for row in rows if tasks is None or row in tasks]
    lines = []
    for name in CONTESTANTS:
        line = [name]
        for row in rows:
            few = {"seeds": 1} if quick else {}
            cell = Cell("kernel_networks", row, "all", name, 1.0, limit or 300.0, options=few)
            found = results[row, "all", name] = runner.run(cell)
            line.append(f"{found.values['nats']:.2f}" if isinstance(found, Measurement) else found.reason)
        lines.append(line)
    head = versions(["gramgraph", "numpy", "scipy"])
    table = markdown(["held-out nats a row", *(f"d = {row.split()[0]}, N = {row.split()[1]}" for row in rows)], lines)
    text = (
        f"# Kernel networks\n\n{head}\n\nA chain of nonlinear mechanisms: factorized models stay near the truth as the "
        f"dimension grows, joint kernel densities do not.\n\n{table}\n"
    )
    return text, failures(results)
