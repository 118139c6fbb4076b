"""Best assignments of discrete models: the exact ones, or what a search finds where those do not fit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from gramgraph.compile.budget import readable
from gramgraph.compile.lower import lower
from gramgraph.compile.tree import TreePlan
from gramgraph.engines.base import ApproximateWarning, Best, Run
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.engines.exact.smaller import may_shrink, rough_tree, smaller_case
from gramgraph.engines.registry import choose, get_engine, next_choice
from gramgraph.exceptions import BudgetError, OptionError
from gramgraph.questions.question import Question

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: An assignment within this part of its bound is taken as proved best.
PROOF = 1e-8
#: An exact run that is expected to take more than this part of the time limit is not begun.
SHARE = 0.25


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


def best_of_tables(model: GraphicalModel, question: Question, run: Run) -> Best:
    """The exact best assignments where they fit into memory and time, else what a search finds.

    Who gives `memory` gets the exact ones or an error.
    """
    if run.memory is None and run.seconds is not None and (why := _too_slow(model, question, run.seconds)):
        return _searched(why, model, question, run)
    name, _ = choose(model, question, run, "best")
    failure: BudgetError | None = None
    for _ in range(2):
        worker = get_engine(name, model.kind)
        worker.strict = True
        try:
            return worker.best(model, question, run)  # type: ignore[no-any-return]
        except BudgetError as error:
            failure = failure if worker.gives_up and failure else error  # the tree says how large the tables are
            other = next_choice("best", model, question, name, error)
            if other is None:
                break
            name = other
    assert failure is not None
    if run.memory is not None:
        raise failure
    return _searched(f"the exact best assignment needs {readable(failure.bytes)}", model, question, run)


def _too_slow(model: GraphicalModel, question: Question, time_limit: float) -> str:
    """Why an exact answer fits neither into memory nor into the time limit, in words; nothing where it does."""
    everything = replace(question, targets=tuple(range(len(model))), joints=())  # a maximum needs barren variables too
    limit = SHARE * time_limit / max(question.n_cases, 1)
    try:
        why = _too_large(JunctionTree().plan(model, everything, maximum=True), limit)
    except BudgetError as error:
        why = f"the exact best assignment needs {readable(error.bytes)}"
    low = lower(model, maximum=True)
    if not why or question.n_cases != 1 or not may_shrink(low, question, hopeless=True):
        return why
    small = smaller_case(low, question, complete=True)
    if small is None:  # nothing is possible, which the exact engines find out as well
        return ""
    tree = rough_tree(small.model, maximum=True)
    return why if tree is None else _too_large(tree, limit)


def _too_large(plan: TreePlan, limit: float) -> str:
    """Why a case on this tree fits neither into memory nor into so many seconds."""
    try:
        plan.check_budget(None)
    except BudgetError as error:
        return f"the exact best assignment needs {readable(error.bytes)}"
    return f"the exact best assignment would take about {plan.seconds:.0f} s a case" if plan.seconds > limit else ""


def _searched(why: str, model: GraphicalModel, question: Question, run: Run) -> Best:
    """What a search finds in place of the exact answer, with a warning that says why."""
    from gramgraph.engines.best.search import MapSearch

    found = MapSearch().best(model, question, run)
    if not all(proved(float(p), float(bound)) for p, bound in zip(found.log_prob, found.bound, strict=True)):
        warnings.warn(
            f"{why}: this one was searched for, and `bound` says how much better any other can be. A longer "
            'time_limit=… (in seconds) may find a better one; engine="junction_tree" insists on the exact one',
            ApproximateWarning,
            stacklevel=6,
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
        return BudgetError(error.message, clique=error.clique, bytes=error.bytes, remedies=helps)
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
    return BudgetError(error.message, clique=error.clique, bytes=error.bytes, remedies=helps)
