"""What the cells of one row share: the network, its cases, and the same network in pyAgrum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.harness import Cell
from benchmarks.networks import Cases, draw_cases, network_paths, to_pyagrum

__all__ = [
    "LAZY",
    "N_CASES",
    "N_COMPARED",
    "SHAFER",
    "cases_of",
    "enough_distinct",
    "free_variables",
    "net_of",
    "pyagrum_of",
]

N_CASES = 1000
#: Draws for a case that is kept, where no two may be equal.
N_TRIED = 20
#: Cases whose answers are compared between the contestants.
N_COMPARED = 3

LAZY, SHAFER = "pyagrum lazy", "pyagrum shafer"
ELIMINATION, PROPAGATION = "pgmpy elimination", "pgmpy propagation"


def net_of(cell: Cell, context: dict[str, Any]) -> Any:
    if "net" not in context:
        import gramgraph as gg

        context["net"] = gg.read(network_paths([cell.row])[cell.row])
    return context["net"]


def cases_of(cell: Cell, context: dict[str, Any]) -> Cases:
    """Cases as they are drawn, or, for a task that ends in `distinct`, different ones."""
    key = "distinct" if cell.task.endswith("distinct") else "cases"
    if key not in context:
        drawn = draw_cases(net_of(cell, context), N_CASES * (N_TRIED if key == "distinct" else 1), name=cell.row)
        context[key] = _different(drawn) if key == "distinct" else drawn
    cases: Cases = context[key]
    return cases


def enough_distinct(cell: Cell, context: dict[str, Any]) -> bool:
    return len(cases_of(cell, context).codes) == N_CASES


def _different(drawn: Cases) -> Cases:
    """The first `N_CASES` that differ in what is observed; variables are added to it until there are so many."""
    rng = np.random.default_rng(0)
    order = [*drawn.observed, *rng.permutation(np.setdiff1d(np.arange(len(drawn.variables)), drawn.observed)).tolist()]
    most = max(len(drawn.observed), len(order) // 2)  # what is left are the targets
    for count in range(len(drawn.observed), most + 1):
        _, first = np.unique(drawn.codes[:, sorted(order[:count])], axis=0, return_index=True)
        if len(first) >= N_CASES:
            break
    kept = np.sort(first)[:N_CASES]
    return replace(drawn, codes=drawn.codes[kept], observed=tuple(sorted(order[:count])), masks=drawn.masks[kept])


def pyagrum_of(cell: Cell, context: dict[str, Any]) -> Any:
    if "pyagrum" not in context:
        context["pyagrum"] = to_pyagrum(net_of(cell, context))
    return context["pyagrum"]


def free_variables(cases: Cases, case: int, mixed: bool = False) -> list[str]:
    """Unobserved variables of a case: those whose posteriors are read."""
    seen = cases.indices(case, mixed=mixed)
    return [v for v in cases.variables if v not in seen]
