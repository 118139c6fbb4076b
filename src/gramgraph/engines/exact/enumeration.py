"""Enumeration: the whole joint table. The oracle of the tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.lower import lower
from gramgraph.compile.range import may_underflow
from gramgraph.engines.base import PLAIN, Best, Engine, IllConditioned, Run
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.engines.exact.repeated import JointCase
from gramgraph.engines.exact.sheet import Observed, Sheet, check_tables, model_factors
from gramgraph.exceptions import BudgetError
from gramgraph.factors.log_table import LogTable, log_sum_exp
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

#: Largest joint table that is made: 2²⁴ cells, 128 MB a copy.
MAX_CELLS = 2**24
#: Up to this many combinations of states all of them are walked through for one case: no tree is planned or compiled.
JOINT_CELLS = 512


def is_walk(model: GraphicalModel, question: Question) -> bool:
    """Whether walking through all combinations of states is the quickest way: one case of plain observations."""
    if question.batched or question.joints or question.likelihoods or question.log_likelihoods:
        return False
    return has_few_cells(model)


def has_few_cells(model: GraphicalModel) -> bool:
    """Whether there are so few combinations of states, and numbers so mild, that one case is a walk through them."""
    cells = 1
    for var in model.vars:
        cells *= var.size
        if cells > JOINT_CELLS:
            return False
    low = lower(model)
    few = len(low.sizes) == len(model.vars) or math.prod(low.sizes.tolist()) <= JOINT_CELLS
    return few and low.log_scale > -np.inf and not may_underflow(low)


@dataclass(frozen=True, repr=False)
class EnumerationPlan:
    """The size of the joint table over the variables that are not observed."""

    largest: tuple[str, ...]
    cells: int

    @property
    def width(self) -> int:
        """Number of variables in the table, less one."""
        return max(len(self.largest) - 1, 0)

    @property
    def bytes(self) -> int:
        """The table, and two more of its size while sums are taken."""
        return 24 * self.cells

    def __str__(self) -> str:
        return f"enumeration: one table over {len(self.largest)} variables, {self.cells:,} cells, {self.bytes:,} bytes"

    __repr__ = __str__


class Enumeration(Engine):
    """Exact answers from the joint table in log space. Cost: the product of all numbers of states.

    Nothing is pruned or reordered, so that it can serve as the reference of the other engines. "auto" (`strict`) has it
    walk through the combinations of states of one case instead, which makes no table.

    >>> import numpy as np
    >>> from gramgraph.conditionals import Table
    >>> from gramgraph.models import BayesianNetwork
    >>> from gramgraph.variables import binary
    >>> rain, wet = binary("rain"), binary("wet")
    >>> cpds = [Table(rain, (), np.array([0.8, 0.2])), Table(wet, (rain,), np.array([[0.9, 0.1], [0.2, 0.8]]))]
    >>> net = BayesianNetwork.from_parts([rain, wet], cpds)
    >>> question = Question((0,), (), (1,), np.array([[1]]))
    >>> Enumeration().answer(net, question)["rain"].probabilities.round(3).tolist()
    [0.333, 0.667]
    """

    name = "enumeration"
    exact = True

    def plan(self, model: GraphicalModel, question: Question) -> Any:
        """The largest joint table that any of the cases needs; of a walk what the tree takes that may stand in."""
        if self.strict:
            return JunctionTree().plan(model, question)
        gone = [var for k, var in enumerate(question.observed) if bool((question.codes[:, k] >= 0).all())]
        free = [var for i, var in enumerate(model.vars) if i not in gone]
        return EnumerationPlan(tuple(var.name for var in free), prod(var.size for var in free))

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """Beliefs and log p(evidence) of every case."""
        if self.strict:
            return self._walked(model, question)
        sheet = Sheet(model, question)
        for case in range(question.n_cases):
            observed, joint = self._joint(model, question, case, run.memory)
            log_z = float(log_sum_exp(joint.logs, tuple(range(joint.logs.ndim))))
            if log_z == -np.inf:
                continue

            def belief(scope: tuple[Var, ...], joint: LogTable = joint, log_z: float = log_z) -> FloatArray:
                return _belief(joint, scope, log_z)

            sheet.fill(case, log_z, observed.hard, belief)
        return sheet.answer(engine=self.name)

    def repeated(self, model: GraphicalModel, question: Question) -> JointCase:
        """The question, ready for any case of plain observations."""
        return JointCase(model, question.targets, question.everything)

    def _walked(self, model: GraphicalModel, question: Question) -> Answer:
        """One case by its sum over all combinations; `IllConditioned` where it is too small to be trusted."""
        seen = {model.vars[v].name: model.vars[v].states[code] for v, code in question.hard_evidence(0).items()}
        found = self.repeated(model, question).answer(seen)
        if found is None:
            raise IllConditioned
        return found

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """Most probable full assignment of every case, (cases, variables), and its log probability with the evidence.

        A case of probability zero has codes -1 and -inf.
        """
        codes = np.full((question.n_cases, len(model)), -1, dtype=np.int64)
        best = np.full(question.n_cases, -np.inf)
        for case in range(question.n_cases):
            observed, joint = self._joint(model, question, case, run.memory)
            best[case] = joint.logs.max()
            if best[case] > -np.inf:
                at = joint.argmax() | observed.hard
                codes[case] = [at.get(var, 0) for var in model.vars]
        return Best(codes, best, best)

    def _joint(
        self, model: GraphicalModel, question: Question, case: int, memory: float | None
    ) -> tuple[Observed, LogTable]:
        """log of the product of all factors, over the unobserved variables that have more than one state."""
        observed = Observed.of(model, question, case)
        free = tuple(var for var in model.vars if var not in observed.hard)
        plan = EnumerationPlan(tuple(var.name for var in free), prod(var.size for var in free))
        if plan.cells > MAX_CELLS:
            raise BudgetError(
                f"enumeration would make a table of {plan.cells:.3g} cells over {len(free)} variables; "
                f"it is made for at most {MAX_CELLS:,}",
                clique=plan.largest,
                bytes=float(plan.bytes),
                remedies=('use engine="junction_tree" or engine="elimination"', "observe more variables"),
            )
        check_tables(plan.bytes, memory, free)
        # A single state needs no axis; so the number of axes stays below what NumPy can hold.
        fixed = observed.hard | {var: 0 for var in free if var.size == 1}
        scope = tuple(var for var in free if var.size > 1)
        joint = LogTable(scope, np.zeros(tuple(var.size for var in scope)))
        for factor in (*map(LogTable.from_table, model_factors(model, structured=False)), *observed.soft_logs):
            joint = joint.product(factor.condition(fixed))
        return observed, joint


def _belief(joint: LogTable, scope: tuple[Var, ...], log_z: float) -> FloatArray:
    """p(scope | evidence); variables of one state get an axis of length one."""
    wide = tuple(var for var in scope if var.size > 1)
    out = tuple(var for var in joint.scope if var not in wide)
    table = joint.marginalize(out)
    logs = table.logs.transpose([table.scope.index(var) for var in wide])
    return np.exp(logs - log_z).reshape(tuple(var.size for var in scope))
