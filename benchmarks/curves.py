"""Cost curves: CPU seconds against size, with log–log exponents, and whether there is a cliff.

`python -m benchmarks curves [--tasks "HMM, rows" …]`. Each curve doubles its size from point to point (the trees of the
grids nearly do). The exponent is the slope of log seconds against log size over the larger half of the sizes. Beside
it stands the order that the algorithm has; a step between neighboring sizes is a cliff where the time grows more than
twice as fast as that order says, which is a fault. Loops are compiled before the clock starts.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, measure, versions
from benchmarks.tables import Result, failures, markdown, seconds

__all__ = ["CURVES", "Curve", "cliffs", "exponent", "report", "run_cell"]

OURS = "gramgraph"
#: How much faster than the order of the work the time may grow between neighboring sizes.
CLIFF = 2.0
#: Steps that start below so many seconds say more about the clock and the machine than about the work.
SHORTEST = 1e-3

#: Calls of more seconds are timed once.
LONG = 0.5

Work = tuple[Callable[[], Any], float]  # what is timed, and its size


@dataclass(frozen=True)
class Curve:
    """What grows, over which numbers, with which order of the time; `work` makes the call from a number."""

    title: str
    axis: str
    numbers: tuple[int, ...]
    order: float
    work: Callable[[int], Work]


def _doubled(first: int, count: int) -> tuple[int, ...]:
    return tuple(first << k for k in range(count))


# --- exact inference ----------------------------------------------------------------------------------------------


def _grid(columns: int) -> Work:
    """All posteriors of one case on a grid of 16 rows; the size is the cells of its tree."""
    import gramgraph as gg

    rng = np.random.default_rng(columns)
    couplings = tuple(0.3 * rng.normal(size=s) for s in ((16, columns - 1), (15, columns)))
    net = gg.models.ising_grid(16, columns, coupling=couplings, field=0.1)
    evidence = {"x0_0": "+1"}
    return lambda: net.query(None, evidence), float(gg.plan(net, None, list(evidence)).cells)


def _network() -> Any:
    """24 binary nodes, each with up to two parents among the four before it."""
    import gramgraph as gg
    from gramgraph.variables import binary

    rng = np.random.default_rng(0)
    nodes = [binary(f"x{i}") for i in range(24)]
    tables = []
    for i, node in enumerate(nodes):
        near = np.arange(max(0, i - 4), i)
        parents = tuple(nodes[j] for j in np.sort(rng.choice(near, min(2, len(near)), replace=False)))
        p = rng.uniform(0.1, 0.9, 2 ** len(parents)).reshape([2] * len(parents))
        tables.append(gg.Table(node, parents, np.stack([p, 1.0 - p], axis=-1)))
    return gg.BayesianNetwork.from_parts(nodes, tables)


def _cases(n: int) -> Work:
    """All posteriors of n different rows of 17 observed nodes."""
    import pandas as pd

    net, numbers = _network(), np.random.default_rng(1).permutation(2**17)[:n]
    bits = numbers[:, None] >> np.arange(17) & 1
    frame = pd.DataFrame(np.where(bits > 0, "yes", "no"), columns=[f"x{i}" for i in range(17)])
    return lambda: net.query(None, frame), n


# --- learning -----------------------------------------------------------------------------------------------------


def _climbing(number: int, *, rows: int | None = None, columns: int | None = None) -> Work:
    """Hill climbing with BIC on a random network; the number is that of the columns or the rows not given."""
    import gramgraph as gg
    from benchmarks.hill_climbing import world

    frame = world(columns or number, rows or number)
    return lambda: gg.learn_structure(frame), number


def _tree(number: int, *, rows: int | None = None, nodes: int | None = None) -> Work:
    """A kernel tree, learned with its structure from a nonlinear tree; the number is that of the rows or the nodes."""
    import pandas as pd

    import gramgraph as gg

    n, k = rows or number, nodes or number
    rng = np.random.default_rng(k)
    columns = [rng.normal(size=n)]
    for i in range(1, k):
        columns.append(np.sin(2.0 * columns[(i - 1) // 2]) + 0.3 * rng.normal(size=n))
    frame = pd.DataFrame({f"x{i}": x for i, x in enumerate(columns)})
    return lambda: gg.learn_tree(frame, "kernel"), number


# --- kernel machines, sequences -----------------------------------------------------------------------------------


def _svc(n: int) -> Work:
    from gramgraph.estimators import SVC

    X = np.random.default_rng(0).normal(size=(n, 10))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return lambda: SVC().fit(X, y), n


def _process(n: int) -> Work:
    """A fit of a Gaussian process from one start."""
    from gramgraph.estimators import GaussianProcessRegressor
    from gramgraph.kernels import RBF, White

    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(n, 4))
    y = np.sin(X[:, 0]) + 0.5 * np.cos(2.0 * X[:, 1]) + 0.1 * rng.normal(size=n)
    return lambda: GaussianProcessRegressor(1.0 * RBF([1.0] * 4) + White(0.1), random_state=0).fit(X, y), n


def _chain(number: int, *, rows: int | None = None, states: int | None = None) -> Work:
    """Forward–backward of GaussianHMM; the number is that of the rows or the states."""
    import gramgraph as gg

    T, K = rows or number, states or number
    rng = np.random.default_rng(0)
    model = gg.GaussianHMM.from_parameters(
        np.full(K, 1.0 / K), rng.dirichlet(np.ones(K), K), rng.normal(size=(K, 2)), np.ones((K, 2)),
        covariance_type="diag",
    )  # fmt: skip
    X = rng.normal(size=(T, 2))
    return lambda: model.predict_proba(X), number


CURVES = {
    "exact, width": Curve("Exact inference", "cells of the tree", (8, 9, 10, 11, 12, 13, 14), 1.0, _grid),
    "exact, cases": Curve("Exact inference", "different cases", _doubled(64, 11), 1.0, _cases),
    "hill climbing, columns": Curve(
        "Hill climbing", "columns (10,000 rows)", (62, 125, 250, 500), 2.0, partial(_climbing, rows=10_000)
    ),
    "hill climbing, rows": Curve(
        "Hill climbing", "rows (50 columns)", _doubled(10_000, 5), 1.0, partial(_climbing, columns=50)
    ),
    "SVC, points": Curve("SVC", "points", _doubled(500, 5), 2.0, _svc),
    "GP, points": Curve("GP fit", "points", _doubled(250, 4), 3.0, _process),
    "kernel tree, rows": Curve("Kernel tree", "rows (15 nodes)", _doubled(500, 5), 1.0, partial(_tree, nodes=15)),
    "kernel tree, nodes": Curve("Kernel tree", "nodes (1,000 rows)", _doubled(8, 5), 2.0, partial(_tree, rows=1_000)),
    "HMM, rows": Curve("HMM posteriors", "rows (8 states)", _doubled(1_000, 10), 1.0, partial(_chain, states=8)),
    "HMM, states": Curve("HMM posteriors", "states (50,000 rows)", _doubled(2, 6), 2.0, partial(_chain, rows=50_000)),
}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One point of one curve; `size` is what the order of the work is about."""
    from gramgraph._numerics.compiling import tier

    curve = CURVES[cell.task]
    warnings.simplefilter("ignore")  # parameters at their bounds are no matter of time
    with tier("compiled"):
        if cell.task not in context:  # loops are compiled on the smallest size
            curve.work(curve.numbers[0])[0]()
            context[cell.task] = True
        call, size = curve.work(int(cell.row))
        start = time.process_time()
        call()
        long = time.process_time() - start > LONG
        cpu, wall, repeats = measure(call, budget=cell.budget, warm=False, least=1 if long else 3)
    return Measurement(cpu, wall, repeats, 1, values={"size": float(size)})


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The slope of log time against log size over the larger half of the sizes.

    >>> round(exponent([1, 10, 100, 1000], [5, 5, 50, 500]), 6)
    1.0
    """
    half = (len(sizes) - 1) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def cliffs(sizes: Sequence[float], times: Sequence[float], order: float = 1.0) -> list[int]:
    """Numbers of the steps over which the time grows more than `CLIFF` times as fast as work of this order."""
    return [
        i + 1
        for i in range(len(sizes) - 1)
        if times[i] >= SHORTEST and times[i + 1] / times[i] > CLIFF * max((sizes[i + 1] / sizes[i]) ** order, 1.0)
    ]


def report(
    runner: Runner, *, tasks: Any = None, quick: bool = False, budget: float | None = None, limit: float | None = None,
    **_: Any,
) -> tuple[str, list[str]]:  # fmt: skip
    """The table, and what went wrong on our side, cliffs among it."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults = [], []
    for task in tasks or CURVES:
        print(f"{task} …", file=sys.stderr, flush=True)
        curve, points = CURVES[task], []
        for number in curve.numbers[:3] if quick else curve.numbers:
            cell = Cell("curves", str(number), task, OURS, budget or 0.3, limit or 180.0)
            found = results[str(number), task, OURS] = runner.run(cell)
            if isinstance(found, Measurement):
                points.append((found.values["size"], found.cpu))
        if len(points) < 2:
            continue
        sizes, times = zip(*points, strict=True)
        steep = cliffs(sizes, times, curve.order)
        faults += [f"{task}: a cliff before {curve.axis} = {sizes[i]:.4g}" for i in steep]
        told = ", ".join(f"{size:,.0f}: {seconds(cpu)}" for size, cpu in points)
        none = "none" if not steep else ", ".join(f"{sizes[i]:,.0f}" for i in steep)
        lines.append([curve.title, curve.axis, told, f"{exponent(sizes, times):.2f}", f"{curve.order:g}", none])
    head = ["what", "against", "size: CPU time", "exponent", "order", "cliffs before"]
    text = f"# Cost curves\n\n{versions([OURS, 'numpy', 'numba'])}\n\n{markdown(head, lines)}\n"
    return text, failures(results) + faults
