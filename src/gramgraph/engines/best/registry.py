"""Searches for best assignments by name, and which one `map_query` takes."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.compile.budget import readable
from gramgraph.compile.lower import lower
from gramgraph.compile.question import Question
from gramgraph.exceptions import BudgetError, OptionError
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = [
    "MAP_ENGINES",
    "advised",
    "best_assignments",
    "check_limits",
    "no_bounds",
    "proved",
    "searched",
    "too_slow",
    "too_wide",
]

#: Name → module and class with `best(model, question, time_limit=, gap=)`.
MAP_ENGINES: dict[str, str] = {
    "graph_cut": "gramgraph.engines.best.graph_cut:GraphCut",
    "icm": "gramgraph.engines.best.search:IteratedModes",
    "search": "gramgraph.engines.best.search:MapSearch",
    "trws": "gramgraph.engines.best.search:TreeReweightedSequential",
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
    check_limits(gap, time_limit)
    module, _, cls = MAP_ENGINES[name].partition(":")
    worker = getattr(importlib.import_module(module), cls)()
    found: Best = worker.best(model, question, time_limit=time_limit, gap=gap)
    return found


def check_limits(gap: Any, time_limit: Any) -> None:
    """`OptionError` unless both are numbers that a search can keep."""
    if time_limit is not None and not (_is_number(time_limit) and float(time_limit) > 0):
        raise OptionError(f"time_limit is a number of seconds above 0, not {time_limit!r}")
    if not (_is_number(gap) and float(gap) >= 0):
        raise OptionError(f"gap is a number from 0 on, in log units, not {gap!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def proved(log_prob: float, bound: float) -> bool:
    """Whether the bound leaves no room for anything better, up to rounding."""
    return bool(bound - log_prob <= PROOF * max(1.0, abs(log_prob)))


def too_slow(model: GraphicalModel, question: Question, worker: Any, time_limit: float) -> str:
    """Why an exact answer fits neither into memory nor into the time limit, in words; nothing where it does."""
    everything = replace(question, targets=tuple(range(len(model))), joints=())  # a maximum needs barren variables too
    try:
        plan = worker.plan(model, everything, maximum=True)
        plan.check_budget(None)
    except BudgetError as error:
        return too_wide(error)
    seconds = plan.seconds * question.n_cases
    return f"the exact best assignment would take about {seconds:.0f} s" if seconds > SHARE * time_limit else ""


def too_wide(error: BudgetError) -> str:
    """Why an exact answer does not fit into memory, in words."""
    return f"the exact best assignment needs {readable(error.bytes)}"


def searched(
    why: str, model: GraphicalModel, question: Question, *, time_limit: float | None = None, gap: float = 0.0
) -> Best:
    """What a search finds in place of the exact answer, with a warning that says why."""
    from gramgraph.engines.fallback import ApproximateWarning

    found = best_assignments("search", model, question, time_limit=time_limit, gap=gap)
    if not all(proved(float(value), float(bound)) for value, bound in zip(*found[1:], strict=True)):
        warnings.warn(
            f"{why}: this one was searched for, and `bound` says how much better any other can be. A longer "
            'time_limit=… (in seconds) may find a better one; engine="junction_tree" insists on the exact one',
            ApproximateWarning,
            stacklevel=5,
        )
    return found


def advised(error: BudgetError, model: GraphicalModel, engine: str) -> BudgetError:
    """The same error with what helps a best assignment; never the engine that ran."""
    try:
        lower(model, maximum=True)
    except BudgetError:  # every engine would need that table
        helps = [
            "ask for the best states of some variables, which takes small factors: map_query(…, targets=[…])",
            'ask for the belief in each variable instead: query(…), or query(…, engine="bp")',
        ]
        return BudgetError(str(error._message), clique=error.clique, bytes=error.bytes, remedies=helps)
    others = {
        "junction_tree": "use an engine that makes smaller tables",
        "search": "take a good assignment, with a bound of how much better any other can be",
        "bp": "take a good assignment by max-product messages",
    }
    ran = {"auto": "junction_tree"}.get(engine, engine)
    same = ("junction_tree", "elimination", "factor_tree")  # they need about the same memory
    helps = [
        "observe or fix variables of that table: observed variables leave it",
        "raise the budget: memory=… (bytes)",
    ]
    if ran in same:
        del others["junction_tree"]
    helps += [f'{why}: engine="{name}"' for name, why in others.items() if name != ran]
    return BudgetError(str(error._message), clique=error.clique, bytes=error.bytes, remedies=helps)


def no_bounds(log_prob: FloatArray, exact: bool) -> FloatArray:
    """Bounds of an engine that has none: the value where it is exact, else infinity."""
    return log_prob if exact else np.full(len(log_prob), np.inf)
