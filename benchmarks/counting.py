"""Tables of alarm from 1,000,000 rows against pgmpy: columns of categories, of Arrow texts and of objects.

`python -m benchmarks counting`. The rows are the same in every row of the table, only their kind of column differs; no
two repeats see the same frame, and everybody has run once before on few rows, ours with its loops compiled (a first
million of texts goes by Arrow's own encoding, at half the speed, until they are). The time holds everything from the
frame on. The tables must be the same: both are maximum likelihood.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, measure, versions
from benchmarks.networks import network_paths
from benchmarks.tables import Ratio, Result, difference, failures, markdown, ratio_of, shown

__all__ = ["report", "run_cell"]

OURS, PEER = "gramgraph", "pgmpy"
ROWS, BLOCK = 1_000_000, 100_000
#: Rows before the measurement: from 10,000 on texts go through a loop of their own.
WARM = 20_000
#: Kind of column → its pandas dtype, and what the peer's time over ours should be.
KINDS: dict[str, tuple[Any, float]] = {
    "categories": ("category", 20.0),
    "Arrow texts": ("string[pyarrow]", 20.0),
    "objects": (object, 8.0),
}


@cache
def _alarm() -> Any:
    import gramgraph as gg

    return gg.read(network_paths(["alarm"])["alarm"])


@lru_cache(maxsize=2)
def _frame(kind: str, rows: int, turn: int) -> Any:
    """A frame that no other turn has."""
    import pandas as pd

    size = min(rows, BLOCK)
    parts = [_alarm().sample(size, random_state=1000 * turn + i) for i in range(rows // size)]
    return pd.concat(parts, ignore_index=True).astype(KINDS[kind][0])


def _ours(frame: Any) -> list[Any]:
    net = _alarm().fit(frame)
    return [net.conditional(v).table() for v in _alarm().variables]


def _pgmpy(frame: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        from pgmpy.estimators import MaximumLikelihoodEstimator
        from pgmpy.models import DiscreteBayesianNetwork

        model = DiscreteBayesianNetwork(list(_alarm().edges))
        states = {v: list(_alarm().states(v)) for v in _alarm().variables}
        found = MaximumLikelihoodEstimator(model, frame, state_names=states).get_parameters(n_jobs=1)
    by_name = {cpd.variable: cpd for cpd in found}
    out = []
    for v in _alarm().variables:
        given = list(by_name[v].variables[1:])
        values = np.moveaxis(by_name[v].values, 0, -1)
        out.append(np.transpose(values, [*(given.index(p) for p in _alarm().parents(v)), values.ndim - 1]))
    return out


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Learn the tables of frames, one after the other; the answers are those of the first."""
    from gramgraph._numerics.compiling import tier

    work = _ours if cell.contestant == OURS else _pgmpy
    rows = cell.options["rows"]
    with tier("compiled"):
        work(_frame(cell.row, WARM, 0))
    best: Measurement | None = None
    for turn in range(2):
        frame = _frame(cell.row, rows, turn)
        last: list[Any] = []

        def call(frame: Any = frame, last: list[Any] = last) -> None:
            last[:] = work(frame)

        cpu, wall, _ = measure(call, budget=0.0, warm=False)
        answers = tuple(np.asarray(table, np.float64) for table in last) if best is None else best.answers
        if best is None or cpu < best.cpu:
            best = Measurement(cpu, wall, turn + 1, 1, answers=answers)
    assert best is not None
    return best


def report(
    runner: Runner, *, quick: bool = False, limit: float | None = None, with_peers: Sequence[str] = (PEER,), **_: Any
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    rows = ROWS // (20 if quick else 1)
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults = [], []
    for kind, (_, wanted) in KINDS.items():
        for name in (OURS, *(peer for peer in (PEER,) if peer in with_peers)):
            cell = Cell("counting", kind, "tables", name, 0.0, limit or 600.0, options={"rows": rows})
            results[kind, "tables", name] = runner.run(cell)
        mine = results[kind, "tables", OURS]
        theirs = results.get((kind, "tables", PEER))
        ratio: Ratio | None = ratio_of(mine, theirs)
        verdict = "" if ratio is None else f"≥ {wanted:g}×: {'met' if ratio.value >= wanted else 'missed'}"
        lines.append([kind, shown(mine), shown(theirs), ratio or "", verdict])
        if isinstance(mine, Measurement) and isinstance(theirs, Measurement) and not difference(mine, theirs) < 1e-9:
            faults.append(f"{kind}: the tables differ by {difference(mine, theirs):.3g}")
    table = markdown([f"{rows:,} rows of alarm", OURS, PEER, "ratio", "goal"], lines)
    head = versions(["gramgraph", "pgmpy", "pandas", "pyarrow", "numpy"])
    return f"# Tables from rows in memory\n\n{head}\n\n{table}\n", faults + failures(results)
