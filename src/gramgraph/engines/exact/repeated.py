"""Plain observations that are asked about again and again: what stays the same is prepared once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.tree import joint
from gramgraph.answers import Answer, Assignment
from gramgraph.compile.lower import lower
from gramgraph.engines.exact.outputs import Outputs
from gramgraph.engines.exact.tree_runner import NO_WEIGHTS

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel
    from gramgraph.typing import FloatArray, IntArray

NOBODY: frozenset[str] = frozenset()
#: A smaller sum may have lost terms to underflow: the tree, which scales its messages, is asked instead.
SAFE_SUM = 1e-200
#: Numbers of a program and its tables up to which a case takes some microseconds.
SHORT = 30_000
#: Numbers that Python sums up in less time than NumPy takes to begin.
FEW = 100


class TreeCase:
    """What a repeated question can reuse: the runner, its constant arguments, and label → code of each variable."""

    __slots__ = ("after", "before", "blank", "everything", "labels", "loops", "marginals", "runner", "sums", "width")

    def __init__(self, model: GraphicalModel, runner: Any, outputs: Outputs, everything: bool) -> None:
        plan, p = runner.plan, runner.program
        self.loops = runner.loops
        self.runner = runner
        self.everything = everything
        self.marginals = outputs.marginals
        self.width = outputs.width
        columns = (*plan.sliced, *plan.masked)
        self.blank = np.full((1, max(len(columns), 1)), -1, np.int64)
        variables = model.vars
        self.labels = {variables[v].name: (slot, variables[v].discrete.codes) for slot, v in enumerate(columns)}
        self.before = (1, 0, 1, p.ints, p.static, plan.lowered.values)
        self.after = (np.arange(len(plan.sliced), len(columns)), runner.no_weights, NO_WEIGHTS, p.log_scale)
        self.sums = "short_sums" if len(p.ints) + len(p.static) <= SHORT else "sums"

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
        getattr(self.loops, self.sums)(*self.before, codes, *self.after, memory, out, log_z)
        self.runner.give_back(1, memory)
        log_evidence = float(log_z[0])
        if not log_evidence > -np.inf:  # impossible, or out of range
            return None
        hidden = frozenset(evidence) if self.everything else NOBODY
        return Answer(self.marginals, out[0], log_evidence, engine="junction_tree", hidden=hidden)


class JointCase:
    """The same for a model whose joint table has few cells: all of them are walked through, and none is kept."""

    __slots__ = ("arguments", "blank", "everything", "labels", "log_scale", "marginals", "width")

    def __init__(self, model: GraphicalModel, targets: Sequence[int], everything: bool) -> None:
        low, variables = lower(model), model.vars
        self.everything = everything
        self.marginals = {}
        nothing_seen, at = [-1] * len(low.sizes), 0
        column = nothing_seen.copy()
        for v in targets:
            var = variables[v]
            stop = at + var.size
            self.marginals[var.name] = var, at, stop
            column[v], at = at, stop
        self.width = at
        self.blank = np.array(nothing_seen + column, np.int64)
        self.labels = {var.name: (v, var.discrete.codes) for v, var in enumerate(variables)}
        packed = low.packed
        if packed is None:
            packed = joint.pack(low.sizes, low.scope_ptr, low.scope_idx, low.value_ptr)
        self.arguments = packed, low.values
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
        total = joint.joint_sums(codes, *self.arguments, out)
        if not total > SAFE_SUM:
            return None
        hidden = frozenset(evidence) if self.everything else NOBODY
        log_evidence = math.log(total) + self.log_scale
        return Answer(self.marginals, out, log_evidence, engine="enumeration", hidden=hidden)


class BestCase:
    """The most probable assignment of one case of a small tree."""

    __slots__ = ("after", "before", "blank", "labels", "loops", "n_states", "named", "runner")

    def __init__(self, model: GraphicalModel, runner: Any) -> None:
        plan, p = runner.plan, runner.program
        self.loops = runner.loops
        self.runner = runner
        self.n_states = len(plan.lowered.sizes)
        columns = (*plan.sliced, *plan.masked)
        self.blank = np.full((1, max(len(columns), 1)), -1, np.int64)
        variables = model.vars
        self.labels = {variables[v].name: (slot, variables[v].discrete.codes) for slot, v in enumerate(columns)}
        self.named = [(var.name, var.states) for var in variables]
        self.before = (1, 0, 1, p.ints, p.static, plan.lowered.values)
        self.after = (np.arange(len(plan.sliced), len(columns)), runner.no_weights, NO_WEIGHTS, p.log_scale)

    def answer(self, evidence: dict[str, Any]) -> Assignment | None:
        """The assignment of one case; None where anything about it is unusual."""
        codes = self.blank.copy()
        labels = self.labels
        try:
            for name, value in evidence.items():
                slot, index = labels[name]
                codes[0, slot] = index[value]
        except (KeyError, TypeError):
            return None
        states, log_p = np.zeros((1, self.n_states), np.int64), np.empty(1)
        memory = self.runner.borrow(1)
        self.loops.best(*self.before, codes, *self.after, memory, states, log_p)
        self.runner.give_back(1, memory)
        value = float(log_p[0])
        if not value > -np.inf:  # impossible, or out of range
            return None
        chosen = zip(self.named, states[0].tolist(), strict=False)  # hidden variables of tables come last
        found = {name: known[state] for (name, known), state in chosen if name not in evidence}
        return Assignment(found, value)


class TableCase:
    """Cases with the same observed variables, every one of which is observed in each of them."""

    __slots__ = ("hidden", "mask_columns", "n_visible", "order", "outputs", "runner")

    def __init__(self, job: Any, observed: Sequence[int], hidden: frozenset[str]) -> None:
        self.runner = job.runner
        self.outputs: Outputs = job.outputs
        self.mask_columns = job.mask_columns
        self.hidden = hidden
        plan, at = job.runner.plan, {v: j for j, v in enumerate(observed)}
        self.n_visible = plan.lowered.n_visible
        order = [at[v] for v in (*plan.sliced, *(v for v in plan.masked if v in at))]
        self.order = None if order == list(range(len(observed))) else np.array(order, np.int64)

    def _ordered(self, codes: IntArray) -> IntArray:
        if self.order is None:
            return codes
        return np.ascontiguousarray(codes[:, self.order]) if len(self.order) else np.zeros((len(codes), 1), np.int64)

    def answer(self, codes: IntArray, details: dict[str, Any]) -> Answer | None:
        """The beliefs of all cases; None where one of them is impossible, or out of range."""
        out, log_z = np.empty((len(codes), self.outputs.width)), np.empty(len(codes))
        self.runner.sums(self._ordered(codes), self.mask_columns, out, log_z)
        if not _all_finite(log_z):
            return None
        marginals = self.outputs.marginals
        return Answer(marginals, out, log_z, engine="junction_tree", hidden=self.hidden, details=details)

    def best(self, codes: IntArray) -> tuple[IntArray, FloatArray] | None:
        """Most probable states and log p of all cases; None where one of them is impossible, or out of range."""
        states, log_p = self.runner.best(self._ordered(codes), self.mask_columns)
        if self.n_visible < states.shape[1]:
            states = states[:, : self.n_visible]
        return (states, log_p) if _all_finite(log_p) else None


def _all_finite(x: FloatArray) -> bool:
    """Whether all numbers are finite; the sum of a few is, in Python, before NumPy has begun."""
    return math.isfinite(sum(x.tolist())) if len(x) <= FEW else bool(np.isfinite(x).all())
