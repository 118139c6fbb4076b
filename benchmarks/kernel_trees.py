"""Kernel trees against linear-Gaussian, discretized and kernel-density networks, where the truth or the data decide.

`python -m benchmarks kernel_trees`. Rows: the nonlinear tree of 100 variables (three seeds, N samples, 500 cases with
30 % of the variables observed at random, exact posteriors from sum-product on fine grids), and side-chain torsions of
proteins (nats a residue on other proteins). Times are CPU seconds of one thread: the whole fit, and all marginals of
1,000 cases.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, versions
from benchmarks.kernel_worlds import RESIDUES, discretized, discretized_torsions, torsions, tuned_kde, world
from benchmarks.tables import Result, failures, markdown

__all__ = ["report", "run_cell"]

CASES = 500
TREES = ("tree 0 500", "tree 0 5000", "tree 1 5000", "tree 2 5000", "tree 0 20000")
PROTEINS = ("arg 5000", "lys 2000", "met 2000", "cys 2000", "cispro 500")
TREE_CONTESTANTS = ("gramgraph", "gramgraph gaussian", "numpy discretized")
PROTEIN_CONTESTANTS = ("gramgraph", "numpy kde", "numpy discretized")


def _learned(data: dict[str, Any], edge: str) -> dict[str, Any]:
    import pandas as pd

    import gramgraph as gg

    made, Q, seen = data["world"], data["Q"], data["seen"]
    frame = pd.DataFrame(data["X"], columns=made.names)
    gg.learn_tree(frame.iloc[:300, :3], edge)  # compiled loops
    start = time.process_time()
    net = gg.learn_tree(frame, edge, edges=made.edges)
    fit = time.process_time() - start
    start = time.process_time()
    free = gg.learn_tree(frame, edge)
    whole = time.process_time() - start
    found = {frozenset(pair) for pair in free.edges}
    cases = pd.DataFrame(np.where(seen, Q, np.nan), columns=made.names)
    many = pd.concat([cases] * max(1000 // len(cases), 1), ignore_index=True)
    net.query(None, many.iloc[:50])
    start = time.process_time()
    net.query(None, many)
    ask = time.process_time() - start
    answer = net.query(None, cases)
    mean = np.stack([answer[name].mean() for name in made.names], axis=1)
    score = np.stack([answer[name].log_score(Q[:, i]) for i, name in enumerate(made.names)], axis=1)
    hit = {}
    for level in (0.5, 0.9):
        ends = np.stack([answer[name].interval(level) for name in made.names], axis=1)
        hit[level] = float(((ends[:, :, 0] <= Q) & (ends[:, :, 1] >= Q))[~seen].mean())
    levels = np.stack([answer[name].cdf(Q[:, i]) for i, name in enumerate(made.names)], axis=1)[~seen]
    shares = np.histogram(levels, bins=10, range=(0.0, 1.0))[0] / levels.size
    return {
        "mean": mean,
        "score": score,
        "fit": fit,
        "fit and structure": whole,
        "right": sum(frozenset(pair) in found for pair in made.edges),
        "ask": ask,
        "cover50": hit[0.5],
        "cover90": hit[0.9],
        "pit": float(np.abs(shares - 0.1).max()),
        "MB": net.nbytes / 1e6,
    }


def _tree(row: str, contestant: str) -> dict[str, float]:
    _, seed, n = row.split()
    data = world(int(seed), int(n), CASES)
    hidden = ~data["seen"]
    if contestant == "numpy discretized":
        tried = [discretized(data, bins) for bins in (5, 10, 20, 40)]
        errors = [float(np.sqrt(((mean - data["mean"]) ** 2)[hidden].mean())) for mean, _ in tried]
        scores = [float(score[hidden].mean()) for _, score in tried]
        return {"rmse": min(errors), "gap": float(data["score"][hidden].mean()) - max(scores)}
    found = _learned(data, "kernel" if contestant == "gramgraph" else "gaussian")
    mean, score = found.pop("mean"), found.pop("score")
    rmse = float(np.sqrt(((mean - data["mean"]) ** 2)[hidden].mean()))
    return {"rmse": rmse, "gap": float((data["score"] - np.maximum(score, np.log(1e-4)))[hidden].mean()), **found}


def _protein(row: str, contestant: str) -> dict[str, float]:
    import gramgraph as gg

    which, n = row.split()
    data = torsions(which, int(n))
    if data is None:
        raise FileNotFoundError("no torsion tables: set GRAMGRAPH_DATA")
    if contestant == "numpy kde":
        return {"nats": tuned_kde(data)}
    if contestant == "numpy discretized":
        return {"nats": discretized_torsions(data)}
    domains = dict.fromkeys(data["names"], "circle")
    start = time.process_time()
    plain = gg.learn_tree(data["fit"], edge="kernel", edges=data["edges"], domains=domains)
    fit = time.process_time() - start
    tuned = gg.learn_tree(data["fit"], edge="kernel", edges=data["edges"], domains=domains, validation=data["choose"])
    return {
        "nats": float(tuned.log_likelihood(data["judge"]).mean()),
        "without": float(plain.log_likelihood(data["judge"]).mean()),
        "fit": fit,
    }


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One contestant on one row."""
    start = time.process_time()
    values = _tree(cell.row, cell.contestant) if cell.row.startswith("tree") else _protein(cell.row, cell.contestant)
    cpu = time.process_time() - start
    return Measurement(cpu, cpu, 1, 1, values={key: float(value) for key, value in values.items()})


def _row(result: Result, keys: tuple[str, ...]) -> list[str]:
    if not isinstance(result, Measurement):
        return [result.reason] + [""] * (len(keys) - 1)
    return [f"{result.values[key]:.4g}" if key in result.values else "" for key in keys]


def report(runner: Runner, *, quick: bool = False, limit: float | None = None, **_: Any) -> tuple[str, list[str]]:
    """The tables, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}

    def ask(row: str, names: tuple[str, ...]) -> list[tuple[str, Result]]:
        for name in names:
            results[row, "all", name] = runner.run(Cell("kernel_trees", row, "all", name, 1.0, limit or 600.0))
        return [(name, results[row, "all", name]) for name in names]

    keys = ("rmse", "gap", "cover50", "cover90", "pit", "fit", "fit and structure", "right", "ask", "MB")
    trees = [
        [row, name, *_row(found, keys)]
        for row in (TREES[:1] if quick else TREES)
        for name, found in ask(row, TREE_CONTESTANTS)
    ]
    more = ("nats", "without", "fit")
    proteins = [
        [row, name, *_row(found, more)]
        for row in (PROTEINS[-1:] if quick else PROTEINS)
        for name, found in ask(row, PROTEIN_CONTESTANTS)
    ]
    head = versions(["gramgraph", "numpy", "scipy", "numba"])
    first = markdown(["seed, N", "who", *keys], trees)
    second = markdown(["residue, N", "who", "nats", "without the 2,000 rows that choose", "fit"], proteins)
    text = (
        f"# Kernel trees\n\n{head}\n\n`rmse`: to the exact posterior mean. `gap`: log score below the exact "
        f"posterior's. `pit`: largest deviation of a tenth of the PIT histogram. Times in seconds.\n\n{first}\n\n"
        f"Side-chain torsions, held-out nats a residue ({', '.join(RESIDUES)}):\n\n{second}\n"
    )
    missing = [fault for fault in failures(results) if "torsion" not in fault]
    return text, missing
