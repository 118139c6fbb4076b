"""Searches for best assignments by name, and which one `map_query` takes."""

from __future__ import annotations

import importlib
import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.compile.budget import readable
from gramgraph.compile.question import Question
from gramgraph.exceptions import BudgetError, OptionError
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["MAP_ENGINES", "best_assignments", "proved"]

#: Name → module and class with `best(model, question, time_limit=, gap=)`.
MAP_ENGINES: dict[str, str] = {
    "graph_cut": "gramgraph.engines.graph_cut:GraphCut",
    "icm": "gramgraph.engines.map_search:IteratedModes",
    "search": "gramgraph.engines.map_search:MapSearch",
    "trws": "gramgraph.engines.map_search:TreeReweightedSequential",
}
#: An assignment within this part of its bound is taken as proved best.
PROOF = 1e-8
#: An exact run that is expected to take more than this part of the time limit is not begun.
SHARE = 0.25

Best = tuple[IntArray, FloatArray, FloatArray]  # states (cases, variables), log p, bounds


def best_assignments(
    name: str, model: GraphicalModel, question: Question, *, time_limit: float | None = None, gap: float = 0.0
) -> Best:
    """States, log p and bounds of every case by one of MAP_ENGINES."""
    if time_limit is not None and not (isinstance(time_limit, Real) and float(time_limit) > 0):
        raise OptionError(f"time_limit is a number of seconds above 0, not {time_limit!r}")
    module, _, cls = MAP_ENGINES[name].partition(":")
    worker = getattr(importlib.import_module(module), cls)()
    found: Best = worker.best(model, question, time_limit=time_limit, gap=gap)
    return found


def proved(log_prob: float, bound: float) -> bool:
    """Whether the bound leaves no room for anything better, up to rounding."""
    return bool(bound - log_prob <= PROOF * max(1.0, abs(log_prob)))


def too_wide(model: GraphicalModel, question: Question, worker: Any, time_limit: float | None) -> bool:
    """Whether an exact answer does not fit into memory, or not into the time, and a time limit allows a search."""
    if time_limit is None:
        return False
    plan = worker.plan(model, question)
    try:
        plan.check_budget(None)
    except BudgetError as error:
        _warn(f"the exact best assignment needs {readable(error.bytes)}")
        return True
    if plan.seconds * question.n_cases > SHARE * time_limit:
        _warn(f"the exact best assignment would take about {plan.seconds * question.n_cases:.0f} s")
        return True
    return False


def _warn(why: str) -> None:
    from gramgraph.engines.fallback import ApproximateWarning

    warnings.warn(
        f'{why}: this one was searched for, and `bound` says how much better any other can be. engine="junction_tree" '
        "insists on the exact one",
        ApproximateWarning,
        stacklevel=5,
    )


def no_bounds(log_prob: FloatArray, exact: bool) -> FloatArray:
    """Bounds of an engine that has none: the value where it is exact, else infinity."""
    return log_prob if exact else np.full(len(log_prob), np.inf)
