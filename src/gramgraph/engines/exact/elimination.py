"""Variable elimination with pruning, written against the factor algebra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import fsum

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.lower import lower
from gramgraph.compile.range import needs_logs
from gramgraph.engines.base import PLAIN, Best, Engine, Run
from gramgraph.engines.exact.contraction import Contraction, components, contract, table_size
from gramgraph.engines.exact.sheet import Observed, Sheet, check_tables, model_factors, solved_in_range
from gramgraph.factors import Factor, TableFactor
from gramgraph.factors.log_table import LogTable
from gramgraph.models.base import GraphicalModel
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, join


@dataclass(frozen=True)
class Part:
    """One connected piece of what evidence leaves: which factors it holds and how they are summed."""

    members: tuple[int, ...]  # positions in the list of all factors
    contraction: Contraction


@dataclass(frozen=True, repr=False)
class EliminationPlan:
    """What will be computed: for each thing asked, the connected pieces that matter for it.

    `parts[0]` covers all the evidence, so that log p(e) is the sum of its log Z; the later entries hold only the
    pieces in which a variable is asked for.
    """

    asked: tuple[tuple[Var, ...], ...]
    parts: tuple[tuple[Part, ...], ...]

    @cached_property
    def contractions(self) -> tuple[Contraction, ...]:
        """All contractions, in the order in which they run."""
        return tuple(part.contraction for group in self.parts for part in group)

    @property
    def largest_scope(self) -> tuple[Var, ...]:
        """Variables of the largest table that is made."""
        return max((c.largest for c in self.contractions), key=table_size, default=())

    @property
    def largest(self) -> tuple[str, ...]:
        """Names of the variables of the largest table that is made."""
        return tuple(var.name for var in self.largest_scope)

    @property
    def width(self) -> int:
        """Number of variables of the widest table, less one."""
        return max((c.width for c in self.contractions), default=0)

    @property
    def bytes(self) -> int:
        """Peak memory of the run, in bytes."""
        return max((c.bytes for c in self.contractions), default=0)

    @property
    def flops(self) -> int:
        """Multiplications and additions of one case."""
        return sum(c.flops for c in self.contractions)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that the run touches; all others were pruned."""
        return tuple(var.name for var in join(*(scope for c in self.contractions for scope in c.scopes)))

    @property
    def steps(self) -> tuple[str, ...]:
        """One line for each table that is made."""
        lines = []
        for contraction in self.contractions:
            for step in contraction.steps:
                out = ", ".join(var.name for var in step.out) or "nothing"
                names = ", ".join(var.name for var in step.scope)
                lines.append(f"sum out {out} of a table over ({names}), {table_size(step.scope):,} cells")
        return tuple(lines)

    def __str__(self) -> str:
        return (
            f"elimination: width {self.width}, {len(self.steps)} steps, {self.flops:,} operations, "
            f"{self.bytes:,} bytes\nlargest table: {', '.join(self.largest)} ({table_size(self.largest_scope):,} cells)"
        )

    __repr__ = __str__


@dataclass(frozen=True)
class Sources:
    """The factors of a model, each with the node it belongs to; what is barren is found by the nodes."""

    factors: tuple[TableFactor, ...]
    nodes: tuple[int, ...] | None  # the child that each factor defines (Bayesian networks)
    parents: tuple[tuple[int, ...], ...]
    index: dict[str, int]

    @classmethod
    def of(cls, model: GraphicalModel, *, maximum: bool = False) -> Sources:
        """The factors of the model, for a sum or for a maximum over hidden variables."""
        if not isinstance(model, BayesianNetwork):
            return cls(model_factors(model), None, (), model.positions)
        factors: list[TableFactor] = []
        nodes: list[int] = []
        for i, name in enumerate(model.variables):
            c = model.conditional(name)
            own = c.factors_of_maximum() if maximum else c.factors()
            factors.extend(own)
            nodes.extend([i] * len(own))
        return cls(tuple(factors), tuple(nodes), model.parent_positions, model.positions)

    def relevant(self, wanted: Sequence[Var]) -> tuple[int, ...]:
        """Factors of the ancestors of `wanted` (all factors of an undirected model): the others sum to one."""
        if self.nodes is None:
            return tuple(range(len(self.factors)))
        keep = {self.index[var.name] for var in wanted}
        todo = list(keep)
        while todo:
            for parent in self.parents[todo.pop()]:
                if parent not in keep:
                    keep.add(parent)
                    todo.append(parent)
        return tuple(k for k, node in enumerate(self.nodes) if node in keep)


class Reduced:
    """The model's factors conditioned on one case, each one normalized with its log Z beside it; made when needed."""

    def __init__(self, sources: Sources, observed: Observed, *, log_space: bool) -> None:
        self._all: tuple[TableFactor | LogTable, ...] = (
            *sources.factors, *(observed.soft_logs if log_space else observed.soft)
        )  # fmt: skip
        self._hard = observed.hard
        self._log_space = log_space
        self._made: dict[int, tuple[Factor, float]] = {}
        self.unit: Factor = LogTable.unit() if log_space else TableFactor.unit()

    def __getitem__(self, k: int) -> tuple[Factor, float]:
        if k not in self._made:
            own = self._all[k]
            factor: Factor = LogTable.from_table(own) if self._log_space and isinstance(own, TableFactor) else own
            self._made[k] = factor.condition(self._hard).normalize()
        return self._made[k]


class Elimination(Engine):
    """Exact answers by summing one variable after the other out of the factors that hold it.

    Left out before the run: barren nodes (no target and no evidence below them), everything that the evidence
    separates from the target (conditioned factors fall apart into connected pieces; on the moral graph of the
    ancestors this is d-separation), and constants. log p(e) is of all the evidence: pieces without a target are summed
    to a number. Cost: one elimination for each target, exponential in the width that `plan` tells.

    With `log_space`, and where small numbers would be lost otherwise (known beforehand, or noticed on the way), the
    tables hold logarithms: slower, and right for any ratio of numbers.

    >>> from gramgraph.conditionals import Table
    >>> from gramgraph.variables import binary
    >>> rain, wet = binary("rain"), binary("wet")
    >>> cpds = [Table(rain, (), np.array([0.8, 0.2])), Table(wet, (rain,), np.array([[0.9, 0.1], [0.2, 0.8]]))]
    >>> net = BayesianNetwork.from_parts([rain, wet], cpds)
    >>> ans = Elimination().answer(net, Question((0,), (), (1,), np.array([[1]])))
    >>> ans["rain"].probabilities.round(3).tolist(), round(ans.log_evidence, 4)
    ([0.333, 0.667], -1.4271)
    """

    name = "elimination"
    exact = True

    def __init__(self, *, log_space: bool = False) -> None:
        self.log_space = log_space

    def plan(self, model: GraphicalModel, question: Question) -> EliminationPlan:
        """The plan of the case that needs most memory."""
        sources = Sources.of(model)
        plans = [plan for plan, _ in self._patterns(model, sources, question)]
        return max(plans, key=lambda plan: plan.bytes, default=EliminationPlan((), ()))

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """Beliefs and log p(evidence) of every case; cases with the same variables observed share one plan."""
        sheet = Sheet(model, question)
        sources = Sources.of(model)
        logs = self.log_space or needs_logs(lower(model), question)
        for plan, cases in self._patterns(model, sources, question):
            check_tables(plan.bytes, run.memory, plan.largest_scope)
            for case in cases:
                observed = Observed.of(model, question, case)
                _, logs = solved_in_range(partial(_run, plan, sources, observed, sheet, case), logs)
        return sheet.answer(engine=self.name)

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """Most probable full assignment of every case, (cases, variables), and its log probability with the evidence.

        Max-sum in log space with back-tracking. A case of probability zero has codes -1 and -inf.
        """
        sources = Sources.of(model, maximum=True)
        codes = np.full((question.n_cases, len(model)), -1, dtype=np.int64)
        best = np.full(question.n_cases, -np.inf)
        for cases in _same_pattern(question):
            plans: list[Part] | None = None
            for case in cases:
                observed = Observed.of(model, question, case)
                factors = [
                    factor.condition(observed.hard)
                    for factor in (*map(LogTable.from_table, sources.factors), *observed.soft_logs)
                ]
                if plans is None:
                    plans = _parts([factor.scope for factor in factors], tuple(range(len(factors))), ())
                    top = max((part.contraction for part in plans), key=lambda c: c.bytes, default=None)
                    if top is not None:
                        check_tables(top.bytes, run.memory, top.largest)
                at, value = maximize(plans, factors)
                best[case] = value
                if value > -np.inf:
                    at |= observed.hard
                    codes[case] = [at[var] for var in model.vars]
        return Best(codes, best, best)

    def _patterns(
        self, model: GraphicalModel, sources: Sources, question: Question
    ) -> Iterator[tuple[EliminationPlan, list[int]]]:
        for cases in _same_pattern(question):
            observed = Observed.of(model, question, cases[0])
            yield _plan(model, sources, question, observed), cases


def _run(plan: EliminationPlan, sources: Sources, observed: Observed, sheet: Sheet, case: int, logs: bool) -> None:
    """Answer one case."""
    reduced = Reduced(sources, observed, log_space=logs)
    beliefs: dict[tuple[Var, ...], FloatArray] = {}
    log_evidence = 0.0
    for number, (scope, group) in enumerate(zip(plan.asked, plan.parts, strict=True)):
        table, log_z = _solve(scope, group, reduced)
        if number == 0:
            log_evidence = log_z
            if log_evidence == -np.inf:
                return
        beliefs[scope] = table
    sheet.fill(case, log_evidence, observed.hard, beliefs.__getitem__)


def maximize(parts: Sequence[Part], factors: Sequence[LogTable]) -> tuple[dict[Var, int], float]:
    """arg max and max of a product of log tables: each step remembers its best choice, read backward at the end."""
    at: dict[Var, int] = {}
    values: list[float] = []
    for part in parts:
        made: list[LogTable] = []

        def take_out(table: LogTable, out: tuple[Var, ...], made: list[LogTable] = made) -> LogTable:
            made.append(table)
            return table.maximize(out)

        result = contract(part.contraction, [factors[k] for k in part.members], LogTable.unit(), take_out)
        values.append(float(result.logs))
        for table in reversed(made):
            at |= table.condition({var: at[var] for var in table.scope if var in at}).argmax()
    return at, (-np.inf if -np.inf in values else fsum(values))


def _same_pattern(question: Question) -> list[list[int]]:
    """Cases grouped by which variables they observe, in first-seen order."""
    groups: dict[bytes, list[int]] = {}
    for case, seen in enumerate(question.codes >= 0):
        groups.setdefault(seen.tobytes(), []).append(case)
    return list(groups.values())


def _plan(model: GraphicalModel, sources: Sources, question: Question, observed: Observed) -> EliminationPlan:
    """Prune, split and order for one pattern of evidence."""
    sheet_scopes = [(i,) for i in question.targets] + list(question.joints)
    asked = dict.fromkeys(
        tuple(var for var in (model.vars[i] for i in scope) if var not in observed.hard) for scope in sheet_scopes
    )
    asked.pop((), None)
    scopes = [
        tuple(var for var in factor.scope if var not in observed.hard) for factor in (*sources.factors, *observed.soft)
    ]
    soft = tuple(range(len(sources.factors), len(scopes)))
    evidence = (*observed.hard, *(factor.scope[0] for factor in observed.soft))
    parts = []
    for number, wanted in enumerate(asked or {(): None}):
        members = sources.relevant((*wanted, *evidence)) + soft
        found = _parts(scopes, members, wanted)
        if number > 0:
            found = [part for part in found if part.contraction.keep]
        parts.append(tuple(found))
    return EliminationPlan(tuple(asked) or ((),), tuple(parts))


def _parts(scopes: Sequence[tuple[Var, ...]], members: tuple[int, ...], wanted: tuple[Var, ...]) -> list[Part]:
    """Connected pieces of the members, each with its plan; the constants form a piece of their own."""
    parts = []
    inside = [scopes[k] for k in members]
    for group in components(inside):
        own = [inside[i] for i in group]
        present = join(*own)
        keep = tuple(var for var in wanted if var in present)
        out = [var for var in present if var not in keep]
        parts.append(Part(tuple(members[i] for i in group), Contraction.plan(own, keep, (out,))))
    constants = tuple(k for k, scope in zip(members, inside, strict=True) if not scope)
    if constants:
        parts.append(Part(constants, Contraction.plan([()] * len(constants), (), ())))
    return parts


def _solve(scope: tuple[Var, ...], group: Sequence[Part], reduced: Reduced) -> tuple[FloatArray, float]:
    """Belief over `scope` and log Z of the parts."""
    belief = reduced.unit
    logs: list[float] = []
    for part in group:
        operands = [reduced[k] for k in part.members]
        logs.extend(log_z for _, log_z in operands)
        made = contract(part.contraction, [factor for factor, _ in operands], reduced.unit, _sum_out)
        made, log_z = made.normalize()
        logs.append(log_z)
        belief = belief.product(made)
    if -np.inf in logs:
        return np.full(tuple(var.size for var in scope), np.nan), -np.inf
    return _values(belief, scope), fsum(logs)


def _sum_out(table: Factor, out: tuple[Var, ...]) -> Factor:
    return table.marginalize(out)


def _values(belief: Factor, scope: tuple[Var, ...]) -> FloatArray:
    """The normalized numbers of a belief, with the axes in the order of `scope`."""
    normal, _ = belief.normalize()
    values = np.exp(normal.logs) if isinstance(normal, LogTable) else normal.values  # type: ignore[attr-defined]
    return np.asarray(values.transpose([normal.scope.index(var) for var in scope]))
