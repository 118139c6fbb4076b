"""Messages on a tree-shaped factor graph, to be read: sum-product, and max-sum in log space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from gramgraph._show import Listing, Shown, shorten
from gramgraph.analysis.on_cells import on_tables
from gramgraph.answers import Assignment, Belief
from gramgraph.compile.lower import lower
from gramgraph.compile.range import needs_logs
from gramgraph.engines.exact.impossible import raise_impossible
from gramgraph.engines.exact.one_case import Case, one_case
from gramgraph.engines.exact.sheet import Observed, model_factors, solved_in_range
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError, VariableError
from gramgraph.factors import Factor, TableFactor
from gramgraph.factors.log_table import LogTable
from gramgraph.models.base import GraphicalModel
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.factor_graph import FactorGraph
from gramgraph.models.on_cells import CellModel
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    import pandas as pd

F = TypeVar("F", bound=Factor)
Edge = tuple[int, int]  # sender, receiver: nodes 0 … n-1 are variables, the following ones factors


#: Messages that are printed; `to_frame` has all.
SHOWN_MESSAGES = 40


@dataclass(frozen=True)
class _Graph:
    """A factor graph without loops: variables, then factors, with the order from the roots outward."""

    variables: tuple[Var, ...]
    scopes: tuple[tuple[Var, ...], ...]
    names: tuple[str, ...]  # of the factors
    near: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]  # nodes, each after its parent
    parent: tuple[int, ...]  # -1 for roots

    @classmethod
    def build(cls, scopes: Sequence[tuple[Var, ...]], names: Sequence[str], root: Var | None) -> _Graph:
        """The graph of the scopes; `ModelError` when it has a loop."""
        variables = tuple(dict.fromkeys(var for scope in scopes for var in scope))
        index = {var: i for i, var in enumerate(variables)}
        near: list[list[int]] = [[] for _ in range(len(variables) + len(scopes))]
        for k, scope in enumerate(scopes, start=len(variables)):
            for var in scope:
                near[k].append(index[var])
                near[index[var]].append(k)
        first = [index[root]] if root is not None and root in index else []
        parent, order = [-2] * len(near), []
        for start in (*first, *range(len(variables)), *range(len(variables), len(near))):
            if parent[start] != -2:
                continue
            parent[start] = -1
            todo = [start]
            for node in todo:
                for other in near[node]:
                    if other == parent[node]:
                        continue
                    if parent[other] != -2:
                        raise ModelError(_loop(variables, names, parent, node, other))
                    parent[other] = node
                    todo.append(other)
            order += todo
        return cls(variables, tuple(scopes), tuple(names), tuple(map(tuple, near)), tuple(order), tuple(parent))

    def children(self, node: int) -> list[int]:
        """Neighbors away from the root."""
        return [other for other in self.near[node] if other != self.parent[node]]

    @property
    def schedule(self) -> list[Edge]:
        """All messages in the order in which they are sent: up to the roots, then back."""
        up = [(node, self.parent[node]) for node in reversed(self.order) if self.parent[node] >= 0]
        return up + [(b, a) for a, b in reversed(up)]

    def label(self, node: int) -> str:
        """Name of a variable or of a factor."""
        n = len(self.variables)
        return self.variables[node].name if node < n else self.names[node - n]


def _loop(variables: Sequence[Var], names: Sequence[str], parent: Sequence[int], a: int, b: int) -> str:
    """What is wrong when a and b are neighbors and both were reached: the loop they close."""

    def path(node: int) -> list[int]:
        out = [node]
        while parent[out[-1]] >= 0:
            out.append(parent[out[-1]])
        return out

    left, right = path(a), path(b)
    while len(left) > 1 and len(right) > 1 and left[-2] == right[-2]:
        left.pop()
        right.pop()
    around = [*reversed(left), *right[:-1]]
    shown = " — ".join(variables[i].name if i < len(variables) else names[i - len(variables)] for i in around)
    return (
        f"messages are exact on trees only, and this factor graph has a loop: {shown}. Observe a variable of the loop, "
        'or use engine="junction_tree" (exact on any graph)'
    )


class _Passed(Generic[F]):
    """All messages of a tree. A node sends to a neighbor what it got from all the others."""

    def __init__(
        self, graph: _Graph, factors: Sequence[F], ones: Callable[[Var], F], project: Callable[[F, tuple[Var, ...]], F]
    ) -> None:
        self.graph, self.factors, self._ones, self._project = graph, factors, ones, project
        self.sent: dict[Edge, F] = {}
        for node in reversed(graph.order):
            if graph.parent[node] >= 0:
                inside = [self.sent[child, node] for child in graph.children(node)]
                self.sent[node, graph.parent[node]] = self._message(node, inside, graph.parent[node])
        for node in graph.order:
            self._send_down(node)

    def _send_down(self, node: int) -> None:
        """Products of all incoming messages but one are made from both ends: a node with d neighbors costs O(d)."""
        graph, children = self.graph, self.graph.children(node)
        after: list[list[F]] = [[]]
        for child in reversed(children[1:]):
            after.append(self._merged([self.sent[child, node], *after[-1]]))
        before = [self.sent[graph.parent[node], node]] if graph.parent[node] >= 0 else []
        for position, child in enumerate(children):
            inside = [*before, *after[len(children) - 1 - position]]
            self.sent[node, child] = self._message(node, inside, child)
            before = self._merged([*before, self.sent[child, node]])

    def _merged(self, parts: list[F]) -> list[F]:
        made = parts[0]
        for part in parts[1:]:
            made = made.product(part)
        return [made]

    def _message(self, node: int, inside: Sequence[F], receiver: int) -> F:
        n = len(self.graph.variables)
        made = self._ones(self.graph.variables[node]) if node < n else self.factors[node - n]
        for message in inside:
            made = made.product(message)
        if node < n:
            return made
        var = self.graph.variables[receiver]
        return self._project(made, tuple(other for other in made.scope if other != var))

    def belief(self, node: int) -> F:
        """Everything a node knows: its own factor times all incoming messages, not normalized."""
        n = len(self.graph.variables)
        made = self._ones(self.graph.variables[node]) if node < n else self.factors[node - n]
        for other in self.graph.near[node]:
            made = made.product(self.sent[other, node])
        return made


class _MessageTable(Shown, Generic[F]):
    """Messages by name. Factors are called by name or by position."""

    def __init__(self, model: GraphicalModel, passed: _Passed[F], observed: Observed, *, normalized: bool) -> None:
        self._model, self._passed, self._observed = model, passed, observed
        self._nodes = {passed.graph.label(i): i for i in range(len(passed.graph.near))}
        self.normalized = normalized

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that are not observed."""
        return tuple(var.name for var in self._passed.graph.variables)

    @property
    def factor_names(self) -> tuple[str, ...]:
        """Names of the factors: `p(x | y, z)`, or `p(x)` for short, in a Bayesian network, else as the factor
        graph names them, by default `f0`, `f1`, …."""
        return self._passed.graph.names

    @property
    def factor_scopes(self) -> tuple[tuple[str, ...], ...]:
        """Of each factor the variables that it holds, without the observed ones."""
        return tuple(tuple(var.name for var in scope) for scope in self._passed.graph.scopes)

    @property
    def schedule(self) -> tuple[tuple[str, str], ...]:
        """(sender, receiver) in the order in which messages are sent: from the leaves to the root, and back."""
        graph = self._passed.graph
        return tuple((graph.label(a), graph.label(b)) for a, b in graph.schedule)

    def to_factor(self, variable: str, factor: str | int) -> FloatArray:
        """The message from a variable to a factor: one number per state."""
        return self._read(self._variable(variable), self._factor(factor))

    def to_variable(self, factor: str | int, variable: str) -> FloatArray:
        """The message from a factor to a variable: one number per state."""
        return self._read(self._factor(factor), self._variable(variable))

    def factor_table(self, factor: str | int) -> FloatArray:
        """The factor that the messages pass through, one axis per variable of its `factor_scopes`: with what was
        observed put in; logarithms in max-sum."""
        n = len(self._passed.graph.variables)
        return self._table(self._passed.factors[self._factor(factor) - n])

    def to_frame(self) -> pd.DataFrame:
        """All messages: one row for each state, in the order in which the messages are sent."""
        import pandas as pd

        graph, n = self._passed.graph, len(self._passed.graph.variables)
        rows = []
        for step, (a, b) in enumerate(graph.schedule, start=1):
            var = graph.variables[a if a < n else b]
            for state, value in zip(var.states, self._read(a, b), strict=True):
                rows.append((step, graph.label(a), graph.label(b), var.name, state, float(value)))
        return pd.DataFrame(rows, columns=["step", "sender", "receiver", "variable", "state", "value"])

    def _shown(self) -> Listing:
        graph, n = self._passed.graph, len(self._passed.graph.variables)
        rows = []
        for a, b in graph.schedule[:SHOWN_MESSAGES]:
            states = graph.variables[a if a < n else b].states
            numbers = zip(states, self._read(a, b), strict=True)
            rows.append((graph.label(a), graph.label(b), shorten(", ".join(f"{s}: {x:.6g}" for s, x in numbers), 80)))
        between = f"between {n} variables and {len(graph.names)} factors"
        title = f"{type(self).__name__}: {len(graph.schedule)} messages {between}"
        return Listing(title, ("from", "to", "message"), rows, len(graph.schedule) - len(rows))

    def _variable(self, name: str) -> int:
        var = self._model.var(name)
        if var in self._observed.hard:
            raise VariableError(f"{name} is observed: it takes no part in the messages")
        return self._nodes[name]

    def _factor(self, factor: str | int) -> int:
        names, n = self.factor_names, len(self._passed.graph.variables)
        if isinstance(factor, str):
            if factor in names:
                return n + names.index(factor)
            short = [name.partition(" |")[0] + ")" for name in names]  # p(x) for p(x | parents)
            if factor not in short:
                raise VariableError.unknown(factor, names)
            return n + short.index(factor)
        if not -len(names) <= factor < len(names):
            raise VariableError(f"there are {len(names)} factors, numbered from 0; {factor} is none of them")
        return n + factor % len(names)

    def _read(self, sender: int, receiver: int) -> FloatArray:
        found = self._passed.sent.get((sender, receiver))
        if found is None:
            graph = self._passed.graph
            raise VariableError(f"{graph.label(sender)} and {graph.label(receiver)} are not neighbors")
        return self._numbers(found)

    def _numbers(self, message: F) -> FloatArray:
        raise NotImplementedError

    def _table(self, factor: F) -> FloatArray:
        raise NotImplementedError


class Messages(_MessageTable[Any]):
    """The messages of sum-product, the beliefs they give, and log p(evidence).

    μ_{x→f}(x) = Π_{g≠f} μ_{g→x}(x) and μ_{f→x}(x) = Σ f · Π_{y≠x} μ_{y→f}(y); a leaf variable sends ones, a leaf factor
    itself. p(x | e) ∝ Π_f μ_{f→x}, and p(scope of f | e) ∝ f · Π_y μ_{y→f}.
    """

    log_evidence: float

    def __init__(self, model: GraphicalModel, passed: _Passed[Any], observed: Observed, *, normalized: bool) -> None:
        super().__init__(model, passed, observed, normalized=normalized)
        roots = [node for node in passed.graph.order if passed.graph.parent[node] < 0]
        logs = [passed.belief(node).normalize()[1] for node in roots]
        self.log_evidence = float(sum(logs)) + observed.log_scale if -np.inf not in logs else -np.inf

    def belief(self, variable: str) -> Belief:
        """p(variable | evidence)."""
        return self._belief(self._variable(variable))

    def factor_belief(self, factor: str | int) -> Belief:
        """p(unobserved variables of the factor | evidence)."""
        return self._belief(self._factor(factor))

    @property
    def beliefs(self) -> dict[str, Belief]:
        """p(x | evidence) of every unobserved variable."""
        return {name: self.belief(name) for name in self.variables}

    def _belief(self, node: int) -> Belief:
        if self.log_evidence == -np.inf:
            raise ImpossibleEvidenceError("the evidence has probability zero: there are no beliefs given it")
        table, _ = _linear(self._passed.belief(node)).normalize()
        return Belief(table.scope, np.array(table.values))

    def _numbers(self, message: TableFactor | LogTable) -> FloatArray:
        table = _linear(message)
        if self.normalized:
            return np.array(table.normalize()[0].values)
        return self._table(table)

    def _table(self, factor: TableFactor | LogTable) -> FloatArray:
        table = _linear(factor)
        return np.array(table.values * np.exp(table.log_scale))


def _linear(factor: TableFactor | LogTable) -> TableFactor:
    return factor if isinstance(factor, TableFactor) else factor.to_table()


class MaxMessages(_MessageTable[LogTable]):
    """The messages of max-sum, which are logarithms, and the best assignment found by back-tracking.

    Messages as in sum-product with max for Σ and + for Π. `assignment` holds all unobserved variables.
    """

    assignment: Assignment

    def __init__(
        self, model: GraphicalModel, passed: _Passed[LogTable], observed: Observed, *, normalized: bool
    ) -> None:
        super().__init__(model, passed, observed, normalized=normalized)
        at, value = self._backtrack()
        states = {var.name: var.states[at[var]] for var in model.vars if var in at}
        self.assignment = Assignment(states, value + observed.log_scale)

    def max_marginal(self, variable: str) -> FloatArray:
        """max over all others of log p(x, evidence), one number for each state of the variable."""
        node = self._variable(variable)
        graph = self._passed.graph
        root = _root(graph, node)
        others = [i for i in graph.order if graph.parent[i] < 0 and i != root]
        rest = sum(float(self._passed.belief(i).logs.max()) for i in others)
        return np.array(self._passed.belief(node).logs + (rest + self._observed.log_scale))

    def _backtrack(self) -> tuple[dict[Var, int], float]:
        """From the root outward: a factor picks the best states of its other variables given the one chosen."""
        graph, n = self._passed.graph, len(self._passed.graph.variables)
        at: dict[Var, int] = {}
        value = 0.0
        for node in graph.order:
            if node < n and graph.parent[node] >= 0:
                continue
            belief = self._passed.belief(node)
            if graph.parent[node] < 0:
                value += float(belief.logs.max())
            at |= belief.condition({var: at[var] for var in belief.scope if var in at}).argmax()
        return at, value

    def _numbers(self, message: LogTable) -> FloatArray:
        top = float(message.logs.max())
        return np.array(message.logs - top if self.normalized and np.isfinite(top) else message.logs)

    def _table(self, factor: LogTable) -> FloatArray:
        return np.array(factor.logs)


def _root(graph: _Graph, node: int) -> int:
    while graph.parent[node] >= 0:
        node = graph.parent[node]
    return node


def _prepared(model: GraphicalModel, evidence: Case, root: str | None) -> tuple[_Graph, list[TableFactor], Observed]:
    """The factors of the case and their graph."""
    observed = Observed.of(model, one_case(model, evidence), 0)
    factors = model_factors(model, structured=False)
    named = list(zip(_factor_names(model, factors), factors, strict=True))
    named += [(f"likelihood({weights.scope[0].name})", weights) for weights in observed.soft]
    own = [factor.condition(observed.hard) for _, factor in named]
    start = None if root is None else model.var(root)
    graph = _Graph.build([factor.scope for factor in own], [name for name, _ in named], start)
    return graph, own, observed


def _tables(model: GraphicalModel, evidence: Case) -> tuple[GraphicalModel, Case]:
    return on_tables(model, evidence) if isinstance(model, CellModel) else (model, evidence)


def _factor_names(model: GraphicalModel, factors: Sequence[TableFactor]) -> list[str]:
    if isinstance(model, FactorGraph):  # variables that no factor holds have a table of ones behind the named ones
        return [*model.factor_names, *(f"ones({f.scope[0].name})" for f in factors[len(model.factor_names) :])]
    if isinstance(model, BayesianNetwork):
        families = [(name, ", ".join(model.parents(name))) for name in model.variables]
        return [f"p({name} | {parents})" if parents else f"p({name})" for name, parents in families]
    return [f"f{k}" for k in range(len(factors))]


def _logs_of(factors: Sequence[TableFactor], observed: Observed) -> list[LogTable]:
    """The factors as logarithms; those of likelihoods, which come last, as they were given."""
    logs = [LogTable.from_table(factor) for factor in factors]
    for k, weights in enumerate(observed.soft_logs, start=len(logs) - len(observed.soft_logs)):
        logs[k] = weights.condition(observed.hard)
    return logs


def _log_ones(var: Var) -> LogTable:
    return LogTable((var,), np.zeros(var.size))


def sum_product(
    model: GraphicalModel, evidence: Case = None, *, normalized: bool = True, root: str | None = None
) -> Messages:
    """All messages of sum-product on a factor graph without loops (after the evidence has cut what it cuts).

    Two messages per edge, O(Σ table sizes). With `normalized=False` messages keep their scale, as written by hand
    (they may then underflow on long chains; beliefs and log p(e) never do).

    >>> from gramgraph.conditionals import Table
    >>> from gramgraph.variables import binary
    >>> rain, wet = binary("rain"), binary("wet")
    >>> cpds = [Table(rain, (), np.array([0.8, 0.2])), Table(wet, (rain,), np.array([[0.9, 0.1], [0.2, 0.8]]))]
    >>> net = BayesianNetwork.from_parts([rain, wet], cpds)
    >>> messages = sum_product(net, {"wet": "yes"}, normalized=False)
    >>> messages.to_variable("p(wet | rain)", "rain").round(3).tolist()
    [0.1, 0.8]
    >>> messages.belief("rain").probabilities.round(3).tolist()
    [0.333, 0.667]
    """
    model, evidence = _tables(model, evidence)
    graph, factors, observed = _prepared(model, evidence, root)

    def solve(logs: bool) -> Messages:
        passed: _Passed[Any]
        if logs:
            passed = _Passed(graph, _logs_of(factors, observed), _log_ones, lambda table, out: table.marginalize(out))
        else:
            passed = _Passed(
                graph,
                factors,
                lambda var: TableFactor((var,), np.ones(var.size)),
                lambda table, out: table.marginalize(out),
            )
        return Messages(model, passed, observed, normalized=normalized)

    return solved_in_range(solve, needs_logs(lower(model), one_case(model, evidence)))[0]


def max_sum(
    model: GraphicalModel, evidence: Case = None, *, normalized: bool = False, root: str | None = None
) -> MaxMessages:
    """All messages of max-sum, and the most probable assignment; on a chain this is the Viterbi recursion.

    `normalized` shifts each message to a maximum of zero. Raises `ImpossibleEvidenceError` when p(evidence) = 0.
    """
    model, evidence = _tables(model, evidence)
    graph, factors, observed = _prepared(model, evidence, root)
    passed = _Passed(graph, _logs_of(factors, observed), _log_ones, lambda table, out: table.maximize(out))
    found = MaxMessages(model, passed, observed, normalized=normalized)
    if found.assignment.log_prob == -np.inf:
        raise_impossible(model, one_case(model, evidence))
    return found
