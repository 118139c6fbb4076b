"""Marginal MAP: the best states of some variables when the others are summed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import monotonic
from typing import Any, Literal

import numpy as np

from gramgraph.answers import Assignment
from gramgraph.compile.budget import budget_of
from gramgraph.compile.lower import lower
from gramgraph.compile.range import needs_logs
from gramgraph.engines.exact.contraction import Contraction, components, contract, table_size
from gramgraph.engines.exact.elimination import Sources
from gramgraph.engines.exact.factor_tree import Calibrated, CliqueTree, best_states, max_out
from gramgraph.engines.exact.impossible import raise_impossible
from gramgraph.engines.exact.one_case import Case, free_positions, one_case
from gramgraph.engines.exact.sheet import Observed, check_tables
from gramgraph.exceptions import VariableError
from gramgraph.factors import TableFactor
from gramgraph.factors.log_table import LogTable
from gramgraph.models.base import GraphicalModel
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, join

#: Bounds this close to the incumbent are equal up to rounding.
ROUNDING = 1e-11

#: Operations of a constrained elimination beyond which the search is tried: some ten seconds.
AFFORDABLE = 1e9

Callback = Callable[[Assignment], object]
Factors = Sequence[TableFactor | LogTable]  # tables, or logarithms of tables, all of one kind


def marginal_map(
    model: GraphicalModel,
    targets: str | Sequence[str],
    evidence: Case = None,
    *,
    virtual_evidence: Mapping[str, Any] | None = None,
    gap: float = 0.0,
    time_limit: float | None = None,
    callback: Callback | None = None,
    memory: float | None = None,
    method: Literal["auto", "elimination", "search"] = "auto",
) -> Assignment:
    """arg max over the targets of Σ over all others of p(x, evidence); `log_prob` is the logarithm of that maximum.

    Sums must be done before maxima, which makes tables larger than those of a query. Where they are affordable
    (`memory` bytes, some ten seconds), the answer comes from one elimination in this constrained order. Otherwise
    depth-first branch and bound: the upper bound of a partial assignment comes from a clique tree of any order, in
    which some maxima are taken before sums (Σ max ≥ max Σ), so that one propagation bounds every state of every
    open target.

    The search stops when upper bound and best value differ by at most `gap` (in log units), after `time_limit`
    seconds, or when `callback(incumbent)`, called at each improvement, returns True. `bound` then tells what the best
    value could be at most, and `exact` is False unless it was reached.

    >>> from gramgraph.testing import random_bayesian_network
    >>> net = random_bayesian_network(np.random.default_rng(0), 5)
    >>> a = marginal_map(net, ["v0", "v3"], method="elimination")
    >>> b = marginal_map(net, ["v0", "v3"], method="search")
    >>> a.assignment == b.assignment, b.exact
    (True, True)
    """
    deadline = inf if time_limit is None else monotonic() + time_limit
    question = one_case(model, evidence, virtual_evidence)
    wanted = tuple(model.vars[i] for i in free_positions(model, targets, question))
    if not wanted:
        raise VariableError("name at least one target: targets=[…]")
    observed = Observed.of(model, question, 0)
    constant, pieces = _pieces(model, wanted, observed, needs_logs(lower(model), question))
    constant += question.log_scale
    if constant == -inf:
        raise_impossible(model, question)
    limit = budget_of(memory)
    solved: dict[Var, int] = {}
    searches: list[_Search] = []
    for factors in pieces:
        own = tuple(var for var in wanted if any(var in factor.scope for factor in factors))
        plan = _constrained(factors, own)
        # Logarithms and the tables kept for back-tracking need more than a plain elimination.
        fits = 3 * plan.bytes <= limit and plan.flops <= AFFORDABLE
        if not own or method == "elimination" or (method == "auto" and fits):
            check_tables((3 if own else 1) * plan.bytes, memory, plan.largest)
            at, value = _eliminate(plan, factors, own)
            constant += value
            solved |= at
        else:
            searches.append(_Search(factors, own, memory))
    if constant == -inf or any(search.value == -inf for search in searches):
        raise_impossible(model, question)
    report = _Report(wanted, solved, constant, searches, callback)
    for search in searches:
        # What earlier pieces left open is taken off, so that the sum keeps the promised gap.
        spare = gap - sum(other.bound - other.value for other in searches if other.done)
        search.run(deadline, max(spare, 0.0), report)
    return report.incumbent()


def _pieces(
    model: GraphicalModel, wanted: tuple[Var, ...], observed: Observed, log_space: bool
) -> tuple[float, list[Factors]]:
    """log of the constants, and the conditioned factors in groups that share no variable."""
    sources = Sources.of(model)
    seen = (*wanted, *observed.hard, *(factor.scope[0] for factor in observed.soft))
    own = [sources.factors[k] for k in sources.relevant(seen)]
    every: Factors = (*own, *observed.soft)
    if log_space:
        every = (*map(LogTable.from_table, own), *observed.soft_logs)
    reduced, constant = [], 0.0
    for factor in every:
        normal, log_z = factor.condition(observed.hard).normalize()
        constant += log_z
        reduced.append(normal)
    groups = components([factor.scope for factor in reduced])
    return constant, [[reduced[k] for k in group] for group in groups]


def _constrained(factors: Factors, targets: tuple[Var, ...]) -> Contraction:
    """All sums first, then the maxima."""
    scopes = [factor.scope for factor in factors]
    rest = [var for var in join(*scopes) if var not in targets]
    return Contraction.plan(scopes, (), (rest, targets))


def _eliminate(plan: Contraction, factors: Factors, targets: tuple[Var, ...]) -> tuple[dict[Var, int], float]:
    """Run the constrained plan in log space and read the best states backward."""
    made: list[LogTable] = []

    def take_out(table: LogTable, out: tuple[Var, ...]) -> LogTable:
        if out[0] not in targets:
            return table.marginalize(out)
        made.append(table)
        return table.maximize(out)

    result = contract(plan, _logs(factors), LogTable.unit(), take_out)
    at: dict[Var, int] = {}
    for table in reversed(made):
        at |= table.condition({var: at[var] for var in table.scope if var in at}).argmax()
    return at, float(result.logs)


class _Search:
    """Depth-first branch and bound over the targets of one connected piece."""

    def __init__(self, factors: Factors, targets: tuple[Var, ...], memory: float | None) -> None:
        self._factors, self._targets = factors, targets
        self._tree = CliqueTree.build([factor.scope for factor in factors])
        check_tables(self._tree.bytes, memory, max(self._tree.cliques, key=table_size))
        self.best = self._start()
        self.value = self._total(self.best)
        self.bound = self._total({})  # no assignment is better than this
        self.done = False

    def run(self, deadline: float, gap: float, report: _Report) -> None:
        """Improve `best` until it is proved within `gap`, the time is up, or the report says stop."""
        self._dive(deadline)
        self._climb(deadline)
        report.improved(self)
        open_nodes: list[tuple[float, dict[Var, int]]] = [(self.bound, {})]
        cut = -inf  # largest bound of what was left out because of the gap
        while open_nodes and not report.stopped and monotonic() < deadline:
            above, at = open_nodes.pop()
            if above <= self.value + gap + ROUNDING:
                cut = max(cut, above)
                continue
            if self._expand(at, open_nodes):
                report.improved(self)
        self.bound = max([self.value, cut, *(above for above, _ in open_nodes)])
        if self.bound <= self.value + ROUNDING:
            self.bound = self.value
        self.done = True

    def _expand(self, at: dict[Var, int], open_nodes: list[tuple[float, dict[Var, int]]]) -> bool:
        """Bound every state of every open target; branch on one of them, best state on top. True: new incumbent."""
        calibrated = self._propagate(at)
        left = [var for var in self._targets if var not in at]
        bounds = {var: _log(calibrated.marginal((var,)), var) for var in left}
        var = max(left, key=lambda v: (_pull(bounds[v], self.value), -left.index(v)))
        if len(left) == 1:  # nothing is relaxed any more: the bounds are the values
            state = int(bounds[var].argmax())
            return self._offer({**at, var: state}, float(bounds[var][state]))
        order = np.argsort(bounds[var], kind="stable")
        open_nodes.extend((float(bounds[var][s]), {**at, var: int(s)}) for s in order if bounds[var][s] > -inf)
        return False

    def _start(self) -> dict[Var, int]:
        """The targets' part of the most probable assignment of all variables: found by one pass."""
        at = best_states(Calibrated(self._tree, _logs(self._factors), LogTable.unit(), max_out))
        return {var: at[var] for var in self._targets}

    def _total(self, at: dict[Var, int]) -> float:
        """Upper bound of all assignments that agree with `at`; the value itself when all targets are in it."""
        return self._propagate(at).up[0].normalize()[1]

    def _dive(self, deadline: float) -> None:
        """Target after target, the state with the largest bound."""
        at: dict[Var, int] = {}
        value = -inf
        for var in self._targets:
            if monotonic() >= deadline:
                return
            logs = _log(self._propagate(at).marginal((var,)), var)
            at[var] = int(logs.argmax())
            value = float(logs[at[var]])
        self._offer(at, value)

    def _climb(self, deadline: float) -> None:
        """Change one target at a time while that helps."""
        better = True
        while better:
            better = False
            for var in self._targets:
                if monotonic() >= deadline:
                    return
                at = {other: state for other, state in self.best.items() if other != var}
                logs = _log(self._propagate(at).marginal((var,)), var)
                state = int(logs.argmax())
                if logs[state] > self.value + ROUNDING:
                    better = self._offer({**at, var: state}, float(logs[state]))

    def _offer(self, at: dict[Var, int], value: float) -> bool:
        if value <= self.value:
            return False
        self.best, self.value = at, value
        return True

    def _propagate(self, at: dict[Var, int]) -> Calibrated[Any]:
        """Messages that sum the other variables and then maximize the targets, clique by clique."""

        def project(table: Any, out: tuple[Var, ...]) -> Any:
            summed = table.marginalize([var for var in out if var not in self._targets])
            return summed.maximize([var for var in out if var in self._targets])

        own = [factor.condition(at) for factor in self._factors]
        unit: Any = LogTable.unit() if isinstance(own[0], LogTable) else TableFactor.unit()
        return Calibrated(self._tree, own, unit, project)


class _Report:
    """The incumbent of all pieces together, and whether the caller wants to stop."""

    def __init__(
        self,
        targets: tuple[Var, ...],
        solved: dict[Var, int],
        constant: float,
        searches: Sequence[_Search],
        callback: Callback | None,
    ) -> None:
        self._targets, self._solved, self._constant = targets, solved, constant
        self._searches, self._callback = searches, callback
        self.stopped = False

    def incumbent(self) -> Assignment:
        """The best assignment so far with its value and its bound."""
        at = dict(self._solved)
        for search in self._searches:
            at |= search.best
        value = self._constant + sum(search.value for search in self._searches)
        bound = self._constant + sum(search.bound for search in self._searches)
        states = {var.name: var.states[at[var]] for var in self._targets}
        return Assignment(states, value, exact=bound <= value, bound=bound)

    def improved(self, search: _Search) -> None:
        """Tell the caller; a true answer stops the search."""
        if self._callback is not None and self._callback(self.incumbent()) is True:
            self.stopped = True


def _log(table: TableFactor | LogTable, var: Var) -> FloatArray:
    """log of a table over one variable."""
    return table.logs if isinstance(table, LogTable) else table.log_values()


def _logs(factors: Factors) -> list[LogTable]:
    return [factor if isinstance(factor, LogTable) else LogTable.from_table(factor) for factor in factors]


def _pull(logs: FloatArray, value: float) -> float:
    """How much of the bounds that are still open belongs to the best state: a high share leads to early cuts."""
    alive = logs[logs > value + ROUNDING]
    top = float(logs.max())
    if alive.size == 0 or top == -inf:
        return inf
    return float(1.0 / np.exp(alive - top).sum())
