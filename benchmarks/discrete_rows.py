"""What the cells of one row share: the network, its cases, and the same network in pyAgrum."""

from __future__ import annotations

from typing import Any

from benchmarks.harness import Cell
from benchmarks.networks import Cases, draw_cases, network_paths, to_pyagrum

__all__ = ["LAZY", "N_CASES", "N_COMPARED", "SHAFER", "cases_of", "free_variables", "net_of", "pyagrum_of"]

N_CASES = 1000
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
    if "cases" not in context:
        context["cases"] = draw_cases(net_of(cell, context), N_CASES, name=cell.row)
    cases: Cases = context["cases"]
    return cases


def pyagrum_of(cell: Cell, context: dict[str, Any]) -> Any:
    if "pyagrum" not in context:
        context["pyagrum"] = to_pyagrum(net_of(cell, context))
    return context["pyagrum"]


def free_variables(cases: Cases, case: int, mixed: bool = False) -> list[str]:
    """Unobserved variables of a case: those whose posteriors are read."""
    seen = cases.indices(case, mixed=mixed)
    return [v for v in cases.variables if v not in seen]
