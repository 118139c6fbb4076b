"""The straight road for the commonest questions: plain observations of one case, or of a few, on a small model.

It does nothing that the general road does not do; it only skips what such a question does not need. Anything
unusual (an unknown name or label, another kind of evidence, a large tree, impossible evidence) is left to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer, Assignment
from gramgraph.compile.cache import remember
from gramgraph.compile.lower import lower
from gramgraph.compile.range import needs_logs
from gramgraph.engines.base import PLAIN
from gramgraph.engines.exact.cold import LARGE, may_eliminate
from gramgraph.engines.exact.enumeration import has_few_cells
from gramgraph.engines.exact.repeated import JointCase
from gramgraph.engines.registry import choose, get_engine
from gramgraph.exceptions import BudgetError
from gramgraph.questions.few_cases import Codes, codes_of_few
from gramgraph.questions.question import Question
from gramgraph.questions.reading import read_targets

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel
    from gramgraph.typing import FloatArray, IntArray

#: Numbers of cases at which the engine chooses another tree.
FEW, MANY = 8, 100
#: Stands for a question that was asked once: the second one is worth preparing, and finds its tree in the cache.
ASKED = object()
NOTHING_SEEN = Codes((), np.zeros((1, 0), np.int64), False)


def quick_query(model: GraphicalModel, targets: Any, evidence: dict[str, Any]) -> Answer | None:
    """The answer, or None when the general road has to be taken."""
    key = ("quick", tuple(targets), 0) if type(targets) is list else ("quick", targets, 1)
    try:
        made = model.plans[key]
    except KeyError:
        if model.kind != "tables" or may_eliminate(model):  # the general road knows whether the tree is worth it yet
            return None
        made = remember(model, key, _prepare(model, targets))
    except TypeError:  # targets that cannot be a key
        return None
    if made is None:  # one tree for all sets of observed variables is too large; one for these may do
        made = _with_these_observed(model, ("quick case", key, *evidence), evidence, partial(_prepare, targets=targets))
    return made.answer(evidence) if made else None


def _prepare(model: GraphicalModel, targets: Any, observed: Codes = NOTHING_SEEN) -> Any:
    """What the engine that "auto" names has ready for such a case; None where it has nothing."""
    singles, joints = read_targets(model, targets)
    if joints or needs_logs(lower(model)):
        return None
    wanted = range(len(model.vars)) if singles is None else singles
    if not observed.observed and has_few_cells(model):  # what "auto" would come to
        return JointCase(model, wanted, singles is None)
    question = Question(wanted, (), observed.observed, observed.codes, everything=singles is None)
    try:
        return get_engine(choose(model, question)[0]).repeated(model, question)
    except BudgetError:  # the general road knows what to do then
        return None


def quick_best(model: GraphicalModel, evidence: dict[str, Any]) -> Assignment | None:
    """The most probable assignment, or None when the general road has to be taken."""
    made = model.plans.get(("quick best",))
    if made is None or made is ASKED:
        made = _from_second_on(model, ("quick best",), _prepare_best)
    if not made:
        made = _with_these_observed(model, ("quick best", *evidence), evidence, _prepare_best)
    return made.answer(evidence) if made else None


def _with_these_observed(
    model: GraphicalModel, key: tuple[Any, ...], evidence: dict[str, Any], prepare: Callable[..., Any]
) -> Any:
    """What is ready for cases with the same observed variables; False where nothing is."""
    made = model.plans.get(key) if evidence else False
    if made is not None and made is not ASKED:
        return made
    if made is None:  # asked for the first time: nothing of the evidence is read for it
        return _from_second_on(model, key, prepare)
    few = codes_of_few(model, [evidence]) if model.kind == "tables" else None
    if few is None or few.gaps:
        return False
    return _from_second_on(model, key, partial(prepare, observed=few))


def quick_table(model: GraphicalModel, targets: Any, cases: Any) -> Answer | None:
    """The answer to a small table without gaps, or None when the general road has to be taken."""
    few = _without_gaps(model, cases)
    made = few is not None and _table_case(model, few, "answer", targets)
    return made.answer(few.codes, {"index": None if type(cases) is list else cases.index}) if few and made else None


def quick_best_table(model: GraphicalModel, cases: Any) -> tuple[IntArray, FloatArray] | None:
    """States and log p of the best assignments of a small table without gaps, or None; see `quick_table`."""
    few = _without_gaps(model, cases)
    made = few is not None and _table_case(model, few, "best", [])
    return made.best(few.codes) if few and made else None


def _prepare_best(model: GraphicalModel, observed: Codes = NOTHING_SEEN) -> Any:
    question = Question((), (), observed.observed, observed.codes)
    return get_engine(choose(model, question, PLAIN, "best")[0]).repeated_best(model, question)


def _without_gaps(model: GraphicalModel, cases: Any) -> Codes | None:
    """Observed variables and their states in each of several cases; None where there is anything else."""
    few = None if len(model.vars) >= LARGE else codes_of_few(model, cases)
    return few if few is not None and few.observed and len(few.codes) > 1 and not few.gaps else None


def _table_case(model: GraphicalModel, few: Codes, task: str, targets: Any) -> Any:
    """What is ready for tables of about this size with these observed variables; False where nothing is."""
    observed, codes = few.observed, few.codes
    asked = (tuple(targets), 0) if type(targets) is list else (targets, 1)
    key = ("quick table", task, asked, observed, len(codes) < FEW, len(codes) < MANY)
    try:
        made = model.plans.get(key)
    except TypeError:  # targets that cannot be a key
        return False
    if made is not None and made is not ASKED:
        return made

    def prepare(model: GraphicalModel) -> Any:
        singles, joints = read_targets(model, targets)
        wanted = range(len(model.vars)) if singles is None else singles
        question = Question(wanted, joints, observed, codes, batched=True, everything=singles is None)
        worker = get_engine(choose(model, question, PLAIN, task)[0])
        return worker.repeated_table(model, question, best=task == "best")

    return _from_second_on(model, key, prepare)


def _from_second_on(model: GraphicalModel, key: tuple[Any, ...], prepare: Callable[[GraphicalModel], Any]) -> Any:
    """What is prepared when a question is asked for the second time; False where nothing is, which is kept too."""
    if may_eliminate(model):  # the general road knows whether the tree is worth it yet
        return False
    if key not in model.plans:
        remember(model, key, ASKED if model.kind == "tables" else False)
        return False
    try:
        return remember(model, key, prepare(model) or False)
    except BudgetError:  # the general road knows what to do then
        return remember(model, key, False)
