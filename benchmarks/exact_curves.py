"""Cost curves of exact inference: CPU seconds against the width of the model, and against the number of cases.

`python -m benchmarks exact_curves`. `width` is all posteriors of one case on grids of 16 rows and 8 to 14 columns,
whose trees grow by a factor of about two from row to row (their cells are the size); `cases` is all posteriors of
tables of distinct rows on a network of 24 binary nodes, from 64 to 65,536. The exponent is the slope of log seconds
against log size, over the larger half of the sizes; a step is a cliff where the time grows more than twice as fast as
the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.tables import Result, failures, markdown, seconds

__all__ = ["CURVES", "exponent", "report", "run_cell"]

#: Task → sizes: columns of the grid, rows of the table.
CURVES: dict[str, tuple[int, ...]] = {
    "width": (8, 9, 10, 11, 12, 13, 14),
    "cases": tuple(2**k for k in range(6, 17)),
}
#: How much faster than the work the time may grow between neighboring sizes.
CLIFF = 2.0


def _grid(columns: int) -> Any:
    import gramgraph as gg

    rng = np.random.default_rng(columns)
    couplings = tuple(0.3 * rng.normal(size=s) for s in ((16, columns - 1), (15, columns)))
    return gg.models.ising_grid(16, columns, coupling=couplings, field=0.1)


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


def _distinct(n: int) -> Any:
    """n different rows of 17 observed nodes."""
    import pandas as pd

    numbers = np.random.default_rng(1).permutation(2**17)[:n]
    bits = numbers[:, None] >> np.arange(17) & 1
    return pd.DataFrame(np.where(bits > 0, "yes", "no"), columns=[f"x{i}" for i in range(0, 17)])


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One size of one curve; `size` is what the work is proportional to."""
    import gramgraph as gg

    number = int(cell.row)
    if cell.task == "width":
        net = _grid(number)
        evidence = {"x0_0": "+1"}
        size = float(gg.plan(net, None, list(evidence)).cells)
        asked: Any = evidence
    else:
        net, asked, size = _network(), _distinct(number), float(number)
    cpu, wall, repeats = measure(lambda: net.query(None, asked), budget=cell.budget, least=3)
    return Measurement(cpu, wall, repeats, 1, values={"size": size})


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The slope of log time against log size over the larger half of the sizes.

    >>> round(exponent([1, 10, 100, 1000], [5, 5, 50, 500]), 6)
    1.0
    """
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def cliffs(sizes: Sequence[float], times: Sequence[float]) -> list[int]:
    """Numbers of the steps over which the time grows more than `CLIFF` times as fast as the work."""
    return [i + 1 for i in range(len(sizes) - 1) if times[i + 1] / times[i] > CLIFF * max(sizes[i + 1] / sizes[i], 1.0)]


def report(
    runner: Runner, *, tasks: Any = None, quick: bool = False, budget: float | None = None, limit: float | None = None,
    **_: Any,
) -> tuple[str, list[str]]:  # fmt: skip
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, told, faults = [], [], []
    for task in tasks or CURVES:
        points = []
        for number in CURVES[task][::2] if quick else CURVES[task]:
            cell = Cell("exact_curves", str(number), task, "gramgraph", budget or 0.3, limit or 120.0)
            found = results[str(number), task, "gramgraph"] = runner.run(cell)
            if not isinstance(found, Failure):
                points.append((found.values["size"], found.cpu))
                lines.append([task, str(number), f"{found.values['size']:.4g}", seconds(found.cpu)])
        if len(points) > 2:
            sizes, times = zip(*points, strict=True)
            told.append(f"- {task}: exponent {exponent(sizes, times):.2f}")
            faults += [f"{task}: a cliff before size {sizes[i]:.4g}" for i in cliffs(sizes, times)]
    head = ["curve", "columns or rows", "size", "time"]
    steps = "\n".join(told)
    text = f"# Cost of exact inference\n\n{versions(['gramgraph', 'numpy'])}\n\n{markdown(head, lines)}\n\n{steps}\n"
    return text, failures(results) + faults
