"""The straight road for the commonest question: one case of plain observations on a small tree.

It does nothing that the general road does not do; it only skips what such a question does not need. Anything
unusual (an unknown name or label, another kind of evidence, a large tree, impossible evidence) is left to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.cache import remember
from gramgraph.compile.lower import lower
from gramgraph.compile.question import Question
from gramgraph.engines.door import parse_targets
from gramgraph.engines.junction_tree import _general
from gramgraph.engines.tree_runner import NO_WEIGHTS

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["quick_query"]

NOBODY: frozenset[str] = frozenset()


class _Quick:
    """What a repeated question can reuse: the runner, its constant arguments, and label → code of each variable."""

    __slots__ = ("after", "before", "blank", "everything", "labels", "marginals", "run", "runner", "width")

    def __init__(self, model: GraphicalModel, runner: Any, outputs: Any, everything: bool) -> None:
        from gramgraph._numerics.tree_runner import sums

        plan, p = runner.plan, runner.program
        self.run = sums
        self.runner = runner
        self.everything = everything
        self.marginals = outputs.marginals
        self.width = outputs.width
        self.blank = np.full((1, max(len(plan.masked), 1)), -1, np.int64)
        variables = model._vars
        self.labels = {variables[v].name: (slot, variables[v].discrete._index) for slot, v in enumerate(plan.masked)}
        self.before = (1, 0, 1, p.ints, p.static, plan.lowered.values)
        self.after = (np.arange(len(plan.masked)), runner.no_weights, NO_WEIGHTS, p.log_scale)


def quick_query(model: GraphicalModel, targets: Any, evidence: Any) -> Answer | None:
    """The answer, or None when the general road has to be taken."""
    if type(targets) is list:
        targets = tuple(targets)
        key = ("quick", targets, 0)
    else:
        key = ("quick", targets, 1)
    try:
        made = model._plans[key]
    except KeyError:
        made = remember(model, key, _prepare(model, list(targets) if key[2] == 0 else targets))
    except TypeError:  # targets that cannot be a key
        return None
    if made is None:
        return None
    codes = made.blank.copy()
    labels = made.labels
    try:
        for name, value in evidence.items():
            slot, index = labels[name]
            codes[0, slot] = index[value]
    except (KeyError, TypeError):
        return None
    out, log_z = np.empty((1, made.width)), np.empty(1)
    memory = made.runner.borrow(1)
    made.run(*made.before, codes, *made.after, memory, out, log_z)
    made.runner.give_back(1, memory)
    log_evidence = float(log_z[0])
    if not log_evidence > -np.inf:  # impossible, or out of range
        return None
    hidden = frozenset(evidence) if made.everything else NOBODY
    return Answer(made.marginals, out[0], log_evidence, engine="junction_tree", hidden=hidden)


def _prepare(model: GraphicalModel, targets: Any) -> _Quick | None:
    singles, joints = parse_targets(model, targets)
    if joints:
        return None
    everything = singles is None
    wanted = tuple(range(len(model._vars))) if singles is None else singles
    question = Question(wanted, (), (), np.zeros((1, 0), np.int64))
    found = _general(model, lower(model), question, None)
    return None if found is None else _Quick(model, *found, everything)
