"""One case of plain observations that is asked about again and again: what stays the same is prepared once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.lower import lower
from gramgraph.engines.exact.outputs import Outputs
from gramgraph.engines.exact.tree_runner import NO_WEIGHTS

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

NOBODY: frozenset[str] = frozenset()
#: A smaller sum may have lost terms to underflow: the tree, which scales its messages, is asked instead.
SAFE_SUM = 1e-200


class TreeCase:
    """What a repeated question can reuse: the runner, its constant arguments, and label → code of each variable."""

    __slots__ = ("after", "before", "blank", "everything", "labels", "loops", "marginals", "runner", "width")

    def __init__(self, model: GraphicalModel, runner: Any, outputs: Outputs, everything: bool) -> None:
        from gramgraph._numerics.tree import runner as loops

        plan, p = runner.plan, runner.program
        self.loops = loops  # whose function is another one when it has been compiled
        self.runner = runner
        self.everything = everything
        self.marginals = outputs.marginals
        self.width = outputs.width
        self.blank = np.full((1, max(len(plan.masked), 1)), -1, np.int64)
        variables = model.vars
        self.labels = {variables[v].name: (slot, variables[v].discrete.codes) for slot, v in enumerate(plan.masked)}
        self.before = (1, 0, 1, p.ints, p.static, plan.lowered.values)
        self.after = (np.arange(len(plan.masked)), runner.no_weights, NO_WEIGHTS, p.log_scale)

    def answer(self, evidence: dict[str, Any]) -> Answer | None:
        """The answer to one case; None where anything about it is unusual."""
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
        self.loops.sums(*self.before, codes, *self.after, memory, out, log_z)
        self.runner.give_back(1, memory)
        log_evidence = float(log_z[0])
        if not log_evidence > -np.inf:  # impossible, or out of range
            return None
        hidden = frozenset(evidence) if self.everything else NOBODY
        return Answer(self.marginals, out[0], log_evidence, engine="junction_tree", hidden=hidden)


class JointCase:
    """The same for a model whose joint table has few cells: all of them are walked through, and none is kept."""

    __slots__ = ("arguments", "blank", "everything", "labels", "log_scale", "loops", "marginals", "width")

    def __init__(self, model: GraphicalModel, targets: Sequence[int], everything: bool) -> None:
        from gramgraph._numerics.tree import joint as loops

        low, outputs = lower(model), Outputs.of(model, targets, (), ())
        self.loops = loops
        self.everything = everything
        self.marginals = outputs.marginals
        self.width = outputs.width
        self.blank = np.full(len(low.sizes), -1, np.int64)
        column = self.blank.copy()
        for (v,), at in zip(outputs.wants, outputs.columns, strict=True):
            column[v] = at
        self.labels = {var.name: (v, var.discrete.codes) for v, var in enumerate(model.vars)}
        self.arguments = (column, low.sizes, low.scope_ptr, low.scope_idx, low.value_ptr, low.values)
        self.log_scale = low.log_scale

    def answer(self, evidence: dict[str, Any]) -> Answer | None:
        """The answer to one case; None where anything about it is unusual."""
        codes = self.blank.copy()
        labels = self.labels
        try:
            for name, value in evidence.items():
                v, index = labels[name]
                codes[v] = index[value]
        except (KeyError, TypeError):
            return None
        out = np.empty(self.width)
        total = self.loops.joint_sums(codes, *self.arguments, out)
        if not total > SAFE_SUM:
            return None
        hidden = frozenset(evidence) if self.everything else NOBODY
        log_evidence = math.log(total) + self.log_scale
        return Answer(self.marginals, out, log_evidence, engine="enumeration", hidden=hidden)
