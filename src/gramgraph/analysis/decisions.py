"""The best decisions of an influence diagram: sums over variables, maxima over decisions, from the last one back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph import graphs
from gramgraph._show import Listing, Shown
from gramgraph.compile.budget import budget_of, check_memory, readable
from gramgraph.conditionals import Table
from gramgraph.exceptions import BudgetError, ImpossibleEvidenceError, VariableError, listing
from gramgraph.factors.table import aligned
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.influence_diagram import InfluenceDiagram
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Policy(Shown):
    """What to decide in each situation.

    `given` are the variables that matter for it, `choice` the best option for each combination of their states, and
    `values` the expected utility of every option, shape (*sizes of `given`, options): the sum of those utilities that
    the decision still has an influence on. `possible` says which combinations can occur at all; the others are not
    listed. Call it with a case for the label of the best option.

    Parameters
    ----------
    decision : what is decided.
    given : variables that matter for it.
    values : expected utility of every option, shape (*sizes of `given`, options).
    possible : which combinations of states can occur.

    Examples
    --------
    >>> import gramgraph as gg
    >>> d = gg.InfluenceDiagram("[bet] -> <gain> <- coin", cpds={"coin": 0.6}, utilities={"gain": [[0, 0], [-1, 1]]})
    >>> policy = d.solve().policy["bet"]
    >>> policy(), policy.values.round(3).tolist()
    ('yes', [0.0, 0.2])
    """

    decision: Var
    given: tuple[Var, ...]
    values: FloatArray
    possible: Array  # of truth values

    @property
    def choice(self) -> IntArray:
        """Position of the best option, the first of equals; one axis for each variable of `given`."""
        return np.argmax(self.values, axis=-1)

    def __call__(self, case: Mapping[str, Any] | None = None) -> str:
        """The best option when these states are seen; states of other variables make no difference."""
        seen = case or {}
        missing = [var.name for var in self.given if var.name not in seen]
        if missing:
            raise VariableError(f"what to decide about {self.decision.name} depends on {listing(missing)}, too")
        at = tuple(var.index(seen[var.name]) for var in self.given)
        return self.decision.states[int(self.choice[at])]

    def to_table(self) -> Table:
        """p(decision | given): one for the best option, for use in a network."""
        return Table(self.decision, self.given, np.eye(self.decision.size)[self.choice])

    def to_frame(self) -> pd.DataFrame:
        """One row per situation that can occur: states, best option, and the expected utility of each option."""
        import pandas as pd

        names = [var.name for var in self.given]
        options = [f"{self.decision.name}={label}" for label in self.decision.states]
        return pd.DataFrame(self._rows(), columns=[*names, self.decision.name, *options])

    def _rows(self) -> list[list[Any]]:
        labels = product(*(var.states for var in self.given))
        flat = self.values.reshape(-1, self.decision.size)
        every = zip(labels, self.choice.reshape(-1).tolist(), flat.tolist(), self.possible.reshape(-1), strict=True)
        return [[*seen, self.decision.states[best], *row] for seen, best, row, can_be in every if can_be]

    def _shown(self) -> Listing:
        names = [var.name for var in self.given]
        title = f"{self.decision.name}, given {listing(names) or 'nothing'}"
        rows = self._rows()
        shown = [[f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in rows[:50]]
        header = [*names, self.decision.name, *(f"{label} is worth" for label in self.decision.states)]
        return Listing(title, header, shown, max(len(rows) - 50, 0))


@dataclass(frozen=True, eq=False, repr=False)
class Strategy(Shown):
    """The best policy of every decision, and what it gains on average.

    Parameters
    ----------
    expected_utility : on average, when every policy is followed.
    policy : by decision.
    diagram : what was solved.

    Examples
    --------
    >>> import gramgraph as gg
    >>> d = gg.InfluenceDiagram("[bet] -> <gain> <- coin", cpds={"coin": 0.6}, utilities={"gain": [[0, 0], [-1, 1]]})
    >>> best = d.solve()
    >>> round(best.expected_utility, 3), best.policy["bet"]()
    (0.2, 'yes')
    """

    expected_utility: float
    policy: Mapping[str, Policy]
    diagram: InfluenceDiagram

    @cached_property
    def network(self) -> BayesianNetwork:
        """The network in which every decision follows its policy: for questions about what then happens."""
        net = self.diagram.network
        tables = [
            self.policy[var.name].to_table() if var.name in self.policy else c
            for var, c in zip(net.vars, net.conditionals, strict=True)
        ]
        return BayesianNetwork.from_parts(net.vars, tables, name=net.name)

    def _shown(self) -> Listing:
        rows = []
        for name, policy in self.policy.items():
            for row in policy._rows()[:20]:
                seen = zip(policy.given, row, strict=False)
                rows.append((name, ", ".join(f"{var.name}={label}" for var, label in seen), row[len(policy.given)]))
        return Listing(f"expected utility {self.expected_utility:.6g}", ("decision", "when", "choose"), rows)


def solve_decisions(
    diagram: InfluenceDiagram, evidence: Mapping[str, Any] | None = None, *, memory: float | None = None
) -> Strategy:
    """The policies with the largest expected utility; see `InfluenceDiagram.solve`.

    Variables are eliminated in the reverse of the order in which they become known: unobserved ones are summed out,
    the last decision is maximized, then what was seen before it, and so on (F. Jensen, F. V. Jensen and S. Dittmer, UAI
    1994). Time and memory are those of the largest table on the way.

    Examples
    --------
    >>> import gramgraph as gg
    >>> d = gg.InfluenceDiagram("[bet] -> <gain> <- coin", cpds={"coin": 0.6}, utilities={"gain": [[0, 0], [-1, 1]]})
    >>> round(solve_decisions(d).expected_utility, 3)
    0.2
    """
    net = diagram.network
    given = _read_evidence(diagram, evidence)
    check_memory(memory)
    work = _Elimination(diagram, given, budget_of(memory))
    policies: dict[str, Policy] = {}
    left = {v for v in range(len(net)) if v not in given and v in work.needed}
    for decision in reversed(diagram.decisions):
        seen = set(net.positions_of(diagram.known_before(decision)))
        d = net.index(decision)
        work.sum_out(v for v in left if v not in seen and v != d)
        left &= seen
        policies[decision] = work.decide(d)
    work.sum_out(left)
    ordered = {name: policies[name] for name in diagram.decisions}
    return Strategy(work.total(), ordered, diagram)


def value_of_information(diagram: InfluenceDiagram, variable: str, *, before: str, cost: float = 0.0) -> float:
    """The expected utility with `variable` seen before a decision, less that without, less the cost."""
    net = diagram.network
    v = net.index(variable)
    decisions = diagram.decisions
    if before not in decisions:
        raise VariableError.unknown(before, decisions)
    if variable in decisions:
        raise VariableError(f"{variable} is a decision: it is known once it is made. Ask about a variable")
    below = graphs.descendants(_graph(diagram), net.index(before))
    if v in below:
        raise VariableError(f"{variable} depends on {before}, so that it cannot be seen before that is decided")
    upto = decisions[: decisions.index(before) + 1]
    without = {d: tuple(n for n in known if n != variable or d not in upto) for d, known in diagram.information.items()}
    seen = {**without, before: (*without[before], variable)}
    worth = [
        solve_decisions(InfluenceDiagram.from_parts(net, known, diagram.utilities.values())).expected_utility
        for known in (seen, without)
    ]
    return worth[0] - worth[1] - float(cost)


def _graph(diagram: InfluenceDiagram) -> graphs.Digraph:
    net = diagram.network
    told = {net.index(d): net.positions_of(known) for d, known in diagram.information.items()}
    return graphs.Digraph(tuple(told.get(v, row) for v, row in enumerate(net.parent_positions)))


def _read_evidence(diagram: InfluenceDiagram, evidence: Mapping[str, Any] | None) -> dict[int, int]:
    """Positions and states of what is known from the start."""
    net = diagram.network
    acted = set(graphs.descendants(_graph(diagram), net.positions_of(diagram.decisions)))
    found = {}
    for name, state in (evidence or {}).items():
        v = net.index(name)
        if name in diagram.information or v in acted:
            hint = "evidence is what is known before any decision"
            raise VariableError(f"{name} is {'a decision' if name in diagram.information else 'acted on'}; {hint}")
        found[v] = net.vars[v].index(state)
    return found


@dataclass(frozen=True)
class _Part:
    """Numbers over variables, by position."""

    scope: tuple[int, ...]
    values: FloatArray


class _Elimination:
    """Probabilities (a product of parts) and expected utilities (a sum of parts) of what is not yet eliminated."""

    def __init__(self, diagram: InfluenceDiagram, given: Mapping[int, int], memory: float) -> None:
        net = self.net = diagram.network
        self.sizes, self.memory = [var.size for var in net.vars], memory
        decided = set(net.positions_of(diagram.decisions))
        self.needed = self._needed(diagram, given)
        self.chances = [
            self._cut(_Part((*net.parent_positions[v], v), c.table()), given)
            for v, c in enumerate(net.conditionals)
            if c is not None and v in self.needed and v not in decided
        ]
        self.worths = [
            self._cut(_Part(net.positions_of(var.name for var in u.scope), u.values), given)
            for u in diagram.utilities.values()
        ]

    def _needed(self, diagram: InfluenceDiagram, given: Mapping[int, int]) -> set[int]:
        """What utilities, decisions or evidence depend on; the rest sums to one."""
        net = self.net
        ends = {v for u in diagram.utilities.values() for v in net.positions_of(x.name for x in u.scope)}
        ends |= {*given, *net.positions_of(diagram.decisions)}
        return ends | set(graphs.ancestors(_graph(diagram), sorted(ends)))

    @staticmethod
    def _cut(part: _Part, given: Mapping[int, int]) -> _Part:
        at = tuple(given.get(v, slice(None)) for v in part.scope)
        return _Part(tuple(v for v in part.scope if v not in given), np.asarray(part.values[at]))

    def sum_out(self, which: Iterable[int]) -> None:
        """Sums variables out, the one with the smallest table first."""
        left = set(which)
        while left:
            v = min(left, key=lambda v: (self._cost(v), v))
            left.discard(v)
            p, u = self._take(v)
            mass = p.values.sum(axis=-1)
            if u is not None:
                worth = (p.values * u.values).sum(axis=-1)
                worth = np.divide(worth, mass, out=np.zeros_like(worth), where=mass > 0.0)
                self.worths.append(_Part(u.scope[:-1], worth))
            self._keep(_Part(p.scope[:-1], mass))

    def decide(self, d: int) -> Policy:
        """Maximizes a decision; what it depends on is what is left in its table."""
        known = list(self.chances)
        p, u = self._take(d)
        var = self.net.vars[d]
        self._keep(_Part(p.scope[:-1], p.values.max(axis=-1)))
        if u is None:
            return Policy(var, (), np.zeros(var.size), np.ones((), dtype=bool))
        self.worths.append(_Part(u.scope[:-1], u.values.max(axis=-1)))
        axes = [i for i, v in enumerate(u.scope[:-1]) if self._varies(u.values, i)]
        fixed = tuple(slice(None) if i in axes or i == u.values.ndim - 1 else 0 for i in range(u.values.ndim))
        possible = np.ones(u.values.shape, dtype=bool)
        for part in known:
            if set(part.scope) <= set(u.scope):
                possible &= aligned(part.values, part.scope, u.scope) > 0.0
        others = tuple(i for i in range(u.values.ndim) if i not in axes)
        given = tuple(self.net.vars[u.scope[i]] for i in axes)
        return Policy(var, given, u.values[fixed], np.asarray(possible.any(axis=others)))

    def total(self) -> float:
        """The expected utility, when nothing is left."""
        if any(float(part.values) <= 0.0 for part in self.chances):
            raise ImpossibleEvidenceError("the evidence has probability zero")
        return float(sum(float(part.values) for part in self.worths))

    @staticmethod
    def _varies(values: FloatArray, axis: int) -> bool:
        """Whether the best option or its worth changes along an axis."""
        first = np.take(values, [0], axis=axis)
        return bool((np.abs(values - first) > 1e-12 * (1.0 + np.abs(first))).any())

    def _keep(self, part: _Part) -> None:
        """Keeps a product of probabilities, unless it is a constant; scaled, as ratios of it are all that matters."""
        top = float(part.values.max(initial=0.0))
        values = part.values / top if top > 0.0 else part.values
        if not part.scope or not np.allclose(values, 1.0, rtol=0.0, atol=1e-14):
            self.chances.append(_Part(part.scope, values))

    def _around(self, v: int) -> tuple[list[_Part], list[_Part]]:
        return [p for p in self.chances if v in p.scope], [u for u in self.worths if v in u.scope]

    def _cost(self, v: int) -> int:
        near = {w for parts in self._around(v) for part in parts for w in part.scope}
        return int(np.prod([float(self.sizes[w]) for w in near]))

    def _take(self, v: int) -> tuple[_Part, _Part | None]:
        """(product of the probabilities, sum of the utilities) that hold v, over one scope with v last."""
        chances, worths = self._around(v)
        near = sorted({w for part in (*chances, *worths) for w in part.scope} - {v})
        scope = (*near, v)
        needed = 16.0 * float(np.prod([float(self.sizes[w]) for w in scope]))
        if needed > self.memory:
            names = self.net.names_of(scope)
            raise BudgetError(
                f"a table over {listing(names)} needs {readable(needed)}, more than the budget of "
                f"{readable(self.memory)}",
                clique=names,
                bytes=needed,
                remedies=("raise the budget: memory=… (bytes)", "let fewer variables be known before a decision"),
            )
        self.chances = [p for p in self.chances if v not in p.scope]
        self.worths = [u for u in self.worths if v not in u.scope]
        shape = [self.sizes[w] for w in scope]
        p = np.ones(shape)
        for part in chances:
            p *= aligned(part.values, part.scope, scope)
        if not worths:
            return _Part(scope, p), None
        u = np.zeros(shape)
        for part in worths:
            u += aligned(part.values, part.scope, scope)
        return _Part(scope, p), _Part(scope, u)
