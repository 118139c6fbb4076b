"""Structure with families of any kind: left-out likelihood of kinds that are mixed or chosen, kept for every family."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gramgraph.cells.axes import Axis
from gramgraph.conditionals.continuous import log_density
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.embeddings.network.fitting import axis_of
from gramgraph.embeddings.network.structure import informations
from gramgraph.exceptions import ModelError, OptionError, VariableError
from gramgraph.graphs.spanning import spanning_tree
from gramgraph.learn.families import CANDIDATES, FITTERS, Sample, log_mix, mixed_weights
from gramgraph.learn.methods import Found, Problem, find_graph
from gramgraph.learn.mixed_table import MixedTable
from gramgraph.learn.search import Constraints
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var, domain_of_word

_ROWS = 1500  # that a search looks at
_PARTNERS = 4  # of each variable, between which a search may put edges
_SLOW = ("predictor",)  # kinds that are fitted at the end alone
METHODS = ("hill_climb", "tabu", "chow_liu")


def with_domains(table: MixedTable, domains: Mapping[str, str] | None) -> MixedTable:
    """The table with columns of angles or positive numbers as such."""
    if not domains:
        return table
    variables = list(table.variables)
    for name, word in domains.items():
        v = table.position(name)
        found = domain_of_word(word, name)
        if found is None or variables[v].is_discrete:
            raise OptionError(
                f"domains[{name!r}] is 'real', 'positive' or 'circle' for a column of numbers, not {word!r}"
            )
        variables[v] = Var(name, found)
    return replace(table, variables=tuple(variables))


@dataclass(frozen=True, eq=False)
class LeftOutScores:
    """Scores of families: log density of a third of the rows under kinds that were fitted to the others and mixed (or
    of the best one), less the logarithm of their number for every parent; in nats."""

    table: MixedTable
    mode: str  # "auto" or "choose"

    name = "left out"

    @cached_property
    def _known(self) -> dict[tuple[int, tuple[int, ...]], float]:
        return {}

    @cached_property
    def rows(self) -> tuple[Array, Array]:
        """Rows to fit and rows to judge by."""
        order = np.random.default_rng(0).permutation(len(self.table))[:_ROWS]
        return order[len(order) // 3 :], order[: len(order) // 3]

    def family(self, child: int, parents: Sequence[int]) -> float:
        """The score of a child with these parents."""
        key = (child, tuple(sorted(parents)))
        if key not in self._known:
            self._known[key] = self._score(*key)
        return self._known[key]

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """The sum over the families of a graph."""
        return math.fsum(self.family(child, found) for child, found in enumerate(parents))

    def _score(self, child: int, parents: tuple[int, ...]) -> float:
        table = self.table
        y, x = table.variables[child], tuple(table.variables[p] for p in parents)
        values = {var: _column(table, v) for var, v in zip((*x, y), (*parents, child), strict=True)}
        sample = Sample(y, x, values, table.frame[[var.name for var in (*x, y)]])
        used, held = self.rows
        learned, judged = sample.take(used), {var: column[held] for var, column in values.items()}
        kinds = [c.kind for c in CANDIDATES if c.applies(y, x) and c.kind not in _SLOW]
        logs: list[FloatArray] = []
        for kind in kinds:
            try:
                made = FITTERS[kind](learned, **({"prior": "bdeu"} if kind == "table" else {}))
                logs.append(np.maximum(np.nan_to_num(log_density(made, judged), nan=-700.0), -700.0))
            except (ModelError, ValueError, np.linalg.LinAlgError):
                continue
        if not logs:
            return -math.inf
        L = np.stack(logs)
        mean = float(L.mean(axis=1).max() if self.mode == "choose" else log_mix(L, mixed_weights(L)).mean())
        return len(held) * mean - math.log(max(len(held), 2)) * len(parents)

    @cached_property
    def partners(self) -> Array:
        """Pairs between which edges are looked for: each variable with those that it shares most information with."""
        table, n = self.table, len(self.table.variables)
        picked = np.sort(np.concatenate(self.rows))
        ends = []
        for v, var in enumerate(table.variables):
            given = _labels(var, table.columns[v][picked])
            axis: Axis = axis_of(var, given, 32)
            ends.append(End(axis, given))
        weights = informations(ends)
        near = np.zeros((n, n), bool)
        for v in range(n):
            best = [int(u) for u in np.argsort(-weights[v], kind="stable") if u != v][:_PARTNERS]
            near[v, best] = near[best, v] = True
        return near


def _column(table: MixedTable, v: int) -> Array:
    column = table.columns[v]
    return np.asarray(column, np.int64) if table.variables[v].is_discrete else np.asarray(column, np.float64)[:, None]


def _labels(var: Var, column: Array) -> Array:
    return np.array(var.states, dtype=object)[column] if var.is_discrete else column


def find_families(problem: Problem, scores: LeftOutScores) -> Found:
    """The graph by hill climbing or Chow–Liu between partners."""
    if problem.method not in METHODS:
        raise OptionError(f"conditional=… works with the methods {', '.join(METHODS)}, not {problem.method!r}")
    given = problem.constraints
    forbidden = (given.forbidden | ~scores.partners) & ~given.required
    if problem.method == "chow_liu":
        return _tree(problem, scores, forbidden)
    most = min(given.max_parents, 4 if given.max_parents < len(scores.table.variables) - 1 else 2)
    fewer = Constraints(given.required, forbidden, most)
    patience = 0 if problem.patience is None else problem.patience
    return find_graph(replace(problem, constraints=fewer, patience=patience))


def _tree(problem: Problem, scores: LeftOutScores, forbidden: Array) -> Found:
    """The heaviest tree of pairs that predict left-out rows better than independence."""
    n = len(scores.table.variables)
    gains = np.full((n, n), -1.0)
    for a in range(n):
        for b in range(a + 1, n):
            if not (forbidden[a, b] and forbidden[b, a]):
                gains[a, b] = gains[b, a] = scores.family(b, (a,)) - scores.family(b, ())
    root = 0 if problem.root is None else scores.table.position(problem.root)
    found = spanning_tree(gains, list(range(n)), root)
    if problem.root is not None and problem.root not in scores.table.names:
        raise VariableError.unknown(problem.root, scores.table.names)
    parents: list[tuple[int, ...]] = [(found[v],) if v in found and gains[found[v], v] > 0.0 else () for v in range(n)]
    return Found(parents)
