"""Beliefs about a model on cells, from posterior masses of the cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gramgraph.answers import Belief, RealAnswer
from gramgraph.answers.joint_belief import JointBelief
from gramgraph.answers.line_belief import LineBelief, effective_size
from gramgraph.cells.axes import LineAxis, Placed, StateAxis
from gramgraph.cells.points import PointAxis
from gramgraph.engines.cells.evidence import Seen
from gramgraph.exceptions import BudgetError
from gramgraph.models.on_cells import CellModel
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray

_MEMORY = 2e9


class Masses(NamedTuple):
    """Posterior masses of the cells of what was asked for, (cases, m) or (cases, m_1, …), and log p(evidence)."""

    single: dict[int, Array]
    joint: dict[tuple[int, ...], Array]
    log_p: FloatArray
    engine: str
    exact: bool = True
    details: Mapping[str, Any] = {}


def check_beliefs(net: CellModel, question: Question, memory: float | None, size: int = 8) -> None:
    """`BudgetError` before beliefs are allocated that would not fit."""
    need = float(size) * question.n_cases * sum(net.cell_axes[v].m for v in question.wanted)
    limit = _MEMORY if memory is None else float(memory)
    if need > limit:
        raise BudgetError(
            f"the beliefs of {len(question.wanted)} variables in {question.n_cases} cases take {need / 1e9:.3g} GB; "
            f"allowed are {limit / 1e9:.3g}.",
            bytes=need,
            remedies=["ask for fewer targets or fewer cases at a time", "memory=… (bytes)"],
        )


def answer_of(net: CellModel, question: Question, seen: Seen, found: Masses) -> RealAnswer:
    """Beliefs, made when they are looked at."""
    made = _Beliefs(net, question, seen, found)
    joint = {net.names_of(group): group for group in found.joint}
    log_p = found.log_p if question.batched else float(found.log_p[0])
    support = {net.cell_axes[v].name: p.near for v, p in seen.placed.items()}
    return RealAnswer(
        [*net.names_of(found.single), *joint],
        lambda key: made.joint(joint[key]) if isinstance(key, tuple) else made.single(net.index(key)),
        log_p,
        engine=found.engine,
        exact=found.exact,
        batched=question.batched,
        details={**found.details, **question.details, "support": support},
        observed=made.observed,
    )


class _Beliefs:
    """Makes the beliefs of an answer."""

    def __init__(self, net: CellModel, question: Question, seen: Seen, found: Masses) -> None:
        self.net, self.seen, self.found = net, seen, found
        self.batched, self.index = question.batched, question.index

    def single(self, v: int) -> Any:
        """The belief of a variable that was asked for."""
        return self._believe(v, self.found.single[v])

    def observed(self, key: Any) -> Any:
        """What every case observed can be asked for too."""
        v = self.net.positions.get(key, -1) if isinstance(key, str) else -1
        p = self.seen.placed.get(v)
        return None if p is None or not p.known.all() else self._believe(v, p.shares(self.net.cell_axes[v].m))

    def joint(self, group: tuple[int, ...]) -> Any:
        """The belief of several variables."""
        P = self.found.joint[group]
        if len(group) == 1:
            return self._believe(group[0], P)
        axes = [self.net.cell_axes[v] for v in group]
        if all(isinstance(axis, StateAxis) for axis in axes):
            return self._states(tuple(axis.var for axis in axes), P)
        known = {k: x for k, v in enumerate(group) if (x := self._numbers(v)) is not None}
        return JointBelief(axes, P, batched=self.batched, observed=known, diagnostics=self._tell)

    def _believe(self, v: int, masses: Array) -> Any:
        axis = self.net.cell_axes[v]
        if isinstance(axis, LineAxis):
            return LineBelief(axis, masses, batched=self.batched, observed=self._numbers(v), diagnostics=self._tell)
        p = np.asarray(masses, dtype=np.float64)
        p = p / p.sum(axis=1, keepdims=True)  # single precision before
        if isinstance(axis, PointAxis):
            return self._states((axis.cell_var,), p, points=axis.points, directions=axis.domain == "sphere",
                                axis=None if axis.density is None else axis)  # fmt: skip
        return self._states((axis.cell_var,), p)

    def _states(self, scope: Any, p: Array, **how: Any) -> Belief:
        p = p if self.batched else p[0]
        return Belief(scope, p, batched=self.batched, index=self.index, diagnostics=self._tell, **how)

    def _numbers(self, v: int) -> FloatArray | None:
        """Observed values of a number, NaN where there is none; None where nothing was observed."""
        axis = self.net.cell_axes[v]
        if not isinstance(axis, LineAxis):
            return None
        if axis.fixed is not None:
            return np.full(self.seen.n_cases, axis.fixed)
        return axis.read(self.seen.values[v]) if v in self.seen.values else None

    def _tell(self, belief: Any) -> dict[str, Any]:
        return _diagnostics(self.net, belief, self.seen.placed, self.found.log_p)


def _diagnostics(net: CellModel, belief: Any, placed: Mapping[int, Placed], log_p: FloatArray) -> dict[str, Any]:
    support = {net.cell_axes[v].name: np.where(p.known, p.near, np.nan) for v, p in placed.items()}
    weights = belief.probabilities if isinstance(belief, Belief) else belief.weights
    if isinstance(belief, Belief) and not belief.batched:
        weights = weights[None]
    size = effective_size([net.axis(var.name) for var in belief.scope], weights, net.rows)
    outside = [tuple(k for k, s in support.items() if s[i] < 0.5) for i in range(len(log_p))]
    if belief.batched:
        own: tuple[Any, ...] = (size, support, outside, log_p)
    else:
        own = (float(size[0]), {k: float(s[0]) for k, s in support.items()}, outside[0], float(log_p[0]))
    found = dict(zip(("effective_sample_size", "support", "outside", "log_evidence"), own, strict=True))
    return {**found, "negative_mass": net.negative_mass}
