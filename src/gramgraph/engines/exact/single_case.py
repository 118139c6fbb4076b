"""The straight road for the commonest question: one case of plain observations on a small model.

It does nothing that the general road does not do; it only skips what such a question does not need. Anything
unusual (an unknown name or label, another kind of evidence, a large tree, impossible evidence) is left to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.cache import remember
from gramgraph.compile.lower import lower
from gramgraph.compile.range import needs_logs
from gramgraph.engines.exact.cold import may_eliminate
from gramgraph.engines.registry import choose, get_engine
from gramgraph.exceptions import BudgetError
from gramgraph.questions.question import Question
from gramgraph.questions.reading import read_targets

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


def quick_query(model: GraphicalModel, targets: Any, evidence: dict[str, Any]) -> Answer | None:
    """The answer, or None when the general road has to be taken."""
    if type(targets) is list:
        targets = tuple(targets)
        key = ("quick", targets, 0)
    else:
        key = ("quick", targets, 1)
    try:
        made = model.plans[key]
    except KeyError:
        if may_eliminate(model):  # the general road knows whether the tree is worth it yet
            return None
        made = remember(model, key, _prepare(model, list(targets) if key[2] == 0 else targets))
    except TypeError:  # targets that cannot be a key
        return None
    return None if made is None else made.answer(evidence)


def _prepare(model: GraphicalModel, targets: Any) -> Any:
    """What the engine that "auto" names has ready for such a case; None where it has nothing."""
    singles, joints = read_targets(model, targets)
    if joints or needs_logs(lower(model)):
        return None
    wanted = range(len(model.vars)) if singles is None else singles
    question = Question(wanted, (), (), np.zeros((1, 0), np.int64), everything=singles is None)
    try:
        return get_engine(choose(model, question)[0]).repeated(model, question)
    except BudgetError:  # the general road knows what to do then
        return None
