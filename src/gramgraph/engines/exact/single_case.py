"""The straight road for the commonest question: one case of plain observations on a small model.

It does nothing that the general road does not do; it only skips what such a question does not need. Anything
unusual (an unknown name or label, another kind of evidence, a large tree, impossible evidence) is left to it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.cache import remember
from gramgraph.compile.lower import Lowered, lower
from gramgraph.compile.range import may_underflow, needs_logs
from gramgraph.engines.exact.junction_tree import _general
from gramgraph.engines.exact.outputs import Outputs
from gramgraph.engines.exact.tree_runner import NO_WEIGHTS
from gramgraph.exceptions import BudgetError
from gramgraph.questions.question import Question
from gramgraph.questions.reading import read_targets

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["quick_query"]

NOBODY: frozenset[str] = frozenset()
#: Up to this many combinations of states the joint table is walked through: no tree is planned or compiled.
JOINT_CELLS = 512
LOG_JOINT_CELLS = math.log(JOINT_CELLS + 0.5)
#: A smaller sum may have lost terms to underflow: the tree, which scales its messages, is asked instead.
SAFE_SUM = 1e-200


class _Tree:
    """What a repeated question can reuse: the runner, its constant arguments, and label → code of each variable."""

    __slots__ = ("after", "before", "blank", "everything", "labels", "marginals", "run", "runner", "width")

    def __init__(self, model: GraphicalModel, runner: Any, outputs: Outputs, everything: bool) -> None:
        from gramgraph._numerics.tree.runner import sums

        plan, p = runner.plan, runner.program
        self.run = sums
        self.runner = runner
        self.everything = everything
        self.marginals = outputs.marginals
        self.width = outputs.width
        self.blank = np.full((1, max(len(plan.masked), 1)), -1, np.int64)
        variables = model.vars
        self.labels = {variables[v].name: (slot, variables[v].discrete._index) for slot, v in enumerate(plan.masked)}
        self.before = (1, 0, 1, p.ints, p.static, plan.lowered.values)
        self.after = (np.arange(len(plan.masked)), runner.no_weights, NO_WEIGHTS, p.log_scale)

    def answer(self, evidence: dict[str, Any]) -> Answer | None:
        codes = self.blank.copy()
        labels = self.labels
        try:
            for name, value in evidence.items():
                slot, index = labels[name]
                codes[0, slot] = index[value]
        except (KeyError, TypeError):
            return None
        out, log_z = np.empty((1, self.width)), np.empty(1)
        memory = self.runner.borrow(1)
        self.run(*self.before, codes, *self.after, memory, out, log_z)
        self.runner.give_back(1, memory)
        log_evidence = float(log_z[0])
        if not log_evidence > -np.inf:  # impossible, or out of range
            return None
        hidden = frozenset(evidence) if self.everything else NOBODY
        return Answer(self.marginals, out[0], log_evidence, engine="junction_tree", hidden=hidden)


class _Joint:
    """The same for a model whose joint table has no more than `JOINT_CELLS` cells."""

    __slots__ = ("arguments", "blank", "everything", "labels", "log_scale", "marginals", "run", "width")

    def __init__(self, model: GraphicalModel, low: Lowered, outputs: Outputs, everything: bool) -> None:
        from gramgraph._numerics.tree.joint import joint_sums

        self.run = joint_sums
        self.everything = everything
        self.marginals = outputs.marginals
        self.width = outputs.width
        self.blank = np.full(len(low.sizes), -1, np.int64)
        column = self.blank.copy()
        for (v,), at in zip(outputs.wants, outputs.columns, strict=True):
            column[v] = at
        self.labels = {var.name: (v, var.discrete._index) for v, var in enumerate(model.vars)}
        self.arguments = (column, low.sizes, low.scope_ptr, low.scope_idx, low.value_ptr, low.values)
        self.log_scale = low.log_scale

    def answer(self, evidence: dict[str, Any]) -> Answer | None:
        codes = self.blank.copy()
        labels = self.labels
        try:
            for name, value in evidence.items():
                v, index = labels[name]
                codes[v] = index[value]
        except (KeyError, TypeError):
            return None
        out = np.empty(self.width)
        total = self.run(codes, *self.arguments, out)
        if not total > SAFE_SUM:
            return None
        hidden = frozenset(evidence) if self.everything else NOBODY
        log_evidence = math.log(total) + self.log_scale
        return Answer(self.marginals, out, log_evidence, engine="enumeration", hidden=hidden)


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
        made = remember(model, key, _prepare(model, list(targets) if key[2] == 0 else targets))
    except TypeError:  # targets that cannot be a key
        return None
    return None if made is None else made.answer(evidence)


def _prepare(model: GraphicalModel, targets: Any) -> _Tree | _Joint | None:
    singles, joints = read_targets(model, targets)
    if joints:
        return None
    everything = singles is None
    wanted = range(len(model.vars)) if singles is None else singles
    low = lower(model)
    if needs_logs(low):
        return None
    small = float(low.log_sizes.sum()) <= LOG_JOINT_CELLS and low.log_scale > -np.inf
    if small and not may_underflow(low):
        return _Joint(model, low, Outputs.of(model, wanted, (), ()), everything)
    question = Question(wanted, (), (), np.zeros((1, 0), np.int64))
    try:
        found = _general(model, low, question, None)
    except BudgetError:  # the general road knows what to do then
        return None
    return None if found is None else _Tree(model, *found, everything)
