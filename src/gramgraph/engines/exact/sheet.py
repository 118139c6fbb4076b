"""What the generic engines share: the evidence of one case, the factors it leaves, and the sheet of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TypeVar

import numpy as np

from gramgraph.answers import Answer, Belief
from gramgraph.compile.budget import check_budget
from gramgraph.factors import TableFactor
from gramgraph.factors.log_table import LogTable
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

Solved = TypeVar("Solved")


@dataclass(frozen=True)
class Observed:
    """The evidence of one case: states that were seen, and likelihood weights as factors of one variable."""

    hard: dict[Var, int]
    soft: tuple[TableFactor, ...]
    soft_logs: tuple[LogTable, ...] = ()  # the same likelihoods, of any range
    log_scale: float = 0.0  # log of what the likelihoods were divided by

    @classmethod
    def of(cls, model: GraphicalModel, question: Question, case: int) -> Observed:
        """The evidence of case number `case`."""
        hard = {model.vars[i]: code for i, code in question.hard_evidence(case).items()}
        soft = tuple(TableFactor((model.vars[i],), w) for i, w in question.soft_weights(case).items())
        logs = tuple(LogTable((model.vars[i],), w) for i, w in question.soft_logs(case).items()) if soft else ()
        return cls(hard, soft, logs, question.log_scale)


def model_factors(model: GraphicalModel, *, structured: bool = True) -> tuple[TableFactor, ...]:
    """The model's factors, with a table of ones for each variable that no factor holds.

    The sum over all states of the model counts such a variable with its number of states.
    """
    factors = model.factors(structured=structured)
    held = {var for factor in factors for var in factor.scope}
    return factors + tuple(TableFactor((var,), np.ones(var.size)) for var in model.vars if var not in held)


def check_tables(needed: float, memory: float | None, largest: Sequence[Var]) -> None:
    """`BudgetError` when a plan needs more than `memory` bytes (default: 60 % of what is free)."""
    check_budget(needed, memory, [var.name for var in largest], float(prod(var.size for var in largest)))


def solved_in_range(solve: Callable[[bool], Solved], logs: bool) -> tuple[Solved, bool]:
    """solve(logs), in logarithms also where linear numbers leave the range of doubles on the way: what is lost there
    may be what matters in the end. Beside it, whether it took logarithms."""
    if not logs:
        try:
            with np.errstate(under="raise"):
                return solve(False), False
        except FloatingPointError:
            pass
    return solve(True), True


class Sheet:
    """The answer while it is being filled, one case after the other. What is not filled stays NaN and -inf."""

    def __init__(self, model: GraphicalModel, question: Question) -> None:
        cases = question.n_cases
        self.model, self.question = model, question
        self.targets = tuple(model.vars[i] for i in question.targets)
        self.joints = tuple(tuple(model.vars[i] for i in joint) for joint in question.joints)
        stops = np.cumsum([0, *(var.size for var in self.targets)])
        self._spans = [(int(a), int(b)) for a, b in pairwise(stops)]
        self._marginals = np.full((cases, int(stops[-1])), np.nan)
        self._joints = [np.full((cases, *(var.size for var in joint)), np.nan) for joint in self.joints]
        self._log_evidence = np.full(cases, -np.inf)

    def fill(
        self, case: int, log_evidence: float, hard: Mapping[Var, int], belief: Callable[[tuple[Var, ...]], FloatArray]
    ) -> None:
        """Write one possible case; `belief(variables)` is the joint of unobserved variables, in this order of axes."""
        self._log_evidence[case] = log_evidence
        for var, (start, stop) in zip(self.targets, self._spans, strict=True):
            self._marginals[case, start:stop] = _with_observed((var,), hard, belief)
        for joint, table in zip(self.joints, self._joints, strict=True):
            table[case] = _with_observed(joint, hard, belief)

    def answer(self, *, engine: str) -> Answer:
        """The filled sheet, as one case or as many, as the question asked."""
        batched = self.question.batched
        columns = {var.name: (var, *span) for var, span in zip(self.targets, self._spans, strict=True)}
        joints = {
            tuple(var.name for var in joint): Belief(joint, table if batched else table[0], batched=batched)
            for joint, table in zip(self.joints, self._joints, strict=True)
        }
        return Answer(
            columns,
            self._marginals if batched else self._marginals[0],
            self._log_evidence if batched else float(self._log_evidence[0]),
            engine=engine,
            joints=joints,
            hidden=self.question.hidden(self.model),
            details=self.question.details,
        )


def _with_observed(
    scope: tuple[Var, ...], hard: Mapping[Var, int], belief: Callable[[tuple[Var, ...]], FloatArray]
) -> FloatArray:
    """Joint over `scope` in which observed variables have all their mass on the state that was seen."""
    free = tuple(var for var in scope if var not in hard)
    inner = belief(free) if free else np.ones(())
    if len(free) == len(scope):
        return inner
    table = np.zeros(tuple(var.size for var in scope))
    table[tuple(hard.get(var, slice(None)) for var in scope)] = inner
    return table
