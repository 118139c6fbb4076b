"""Models that are a product of factors, without directions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph import graphs
from gramgraph._show import counted
from gramgraph.exceptions import ModelError
from gramgraph.factors import GaussianFactor, SharedTables, TableFactor
from gramgraph.models.checking import domain_faults
from gramgraph.models.named import NamedJunctionTree, name_tree
from gramgraph.models.potentials import factor_faults
from gramgraph.models.statements import GraphStatements
from gramgraph.typing import FloatArray


class FactorModel(GraphStatements):
    """p(x) = (1/Z) Π_c ψ_c(x_c) with non-negative factors ψ_c; variables that share a factor are linked."""

    _shared: tuple[SharedTables, ...] = ()  # all factors in arrays, where the model was made from these
    bare_links: tuple[tuple[int, int], ...] = ()  # edges of the graph that no factor covers
    _writing_faults: tuple[str, ...] = ()

    @cached_property
    def stored_factors(self) -> tuple[TableFactor, ...]:
        """The factors as they were given, one object each."""
        return tuple(factor for part in self._shared for factor in part.factors(self.vars))

    def factors(self, *, structured: bool = True) -> tuple[TableFactor, ...]:
        """The factors as given."""
        return self.stored_factors

    def log_likelihood(self, data: Any, *, memory: float | None = None) -> FloatArray:
        """log p(row) for every row of a table of cases, normalized: log Z is computed once and taken off.

        >>> import gramgraph as gg
        >>> net = gg.MarkovNetwork(factors={("a", "b"): [[3.0, 1.0], [1.0, 3.0]]})
        >>> np.exp(net.log_likelihood([{"a": "no", "b": "no"}, {"a": "no"}])).round(3).tolist()
        [0.375, 0.5]
        """
        found = super().log_likelihood(data, memory=memory)
        return found - float(self.log_evidence(memory=memory)) if len(found) else found

    def faults(self) -> list[str]:
        """Everything that is wrong: states, scopes, negative or non-finite entries."""
        known = {var.name: var for var in self.vars}
        return [*self._writing_faults, *domain_faults(self.vars), *factor_faults(self.stored_factors, known)]

    @cached_property
    def graph(self) -> graphs.UndirectedGraph:
        """The graph on positions in `variables`, for the functions of `gramgraph.graphs`."""
        if self._shared:
            return graphs.UndirectedGraph.from_scopes(
                len(self), [s for part in self._shared for s in part.scopes.tolist()]
            )
        scopes: list[Iterable[int]] = [
            [self.positions[var.name] for var in factor.scope] for factor in self.stored_factors
        ]
        return graphs.UndirectedGraph.from_scopes(len(self), [*scopes, *self.bare_links])

    @property
    def _n_factors(self) -> int:
        return sum(len(part.level) for part in self._shared) if self._shared else len(self.stored_factors)

    @property
    def has_tables(self) -> bool:
        """Whether there are factors; a graph alone has none."""
        return self._n_factors > 0

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All pairs of variables that share a factor."""
        names = self.variables
        return tuple((names[a], names[b]) for a, b in self.graph.edges())

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """The neighbors: given these, all others say nothing about `name`."""
        return self.names_of(self.graph.neighbors[self.index(name)])

    def is_separated(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether every path between `a` and `b` passes through `given`; then they are independent given it."""
        return graphs.separated(self.graph, self.positions_of(a), self.positions_of(b), self.positions_of(given))

    is_dseparated = is_separated  # the word of directed models, so that any model can be asked

    def do(self, interventions: Any) -> Any:
        """Refused: an undirected model does not say which variable acts on which."""
        raise ModelError(
            "do() needs arrows, and this model has none: it says what goes together, not what acts on what. "
            "Use a gg.BayesianNetwork (of kernels: gg.learn_dag) instead; query(…, evidence=…) conditions on values"
        )

    def is_dconnected(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether some path between `a` and `b` goes around `given`."""
        return not self.is_separated(a, b, given)

    def active_trail(
        self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> tuple[str, ...] | None:
        """A shortest path from `a` to `b` around `given`, or None if there is none."""
        found = graphs.open_path(self.graph, self.positions_of(a), self.positions_of(b), self.positions_of(given))
        return None if found is None else self.names_of(found)

    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The maximal cliques of the graph: sets of variables that are all linked, and lie in no larger such set.

        Three variables that three factors link in pairs are one clique; `factor_scopes` tells what the factors hold.

        >>> import gramgraph as gg
        >>> equal = [[2.0, 1.0], [1.0, 2.0]]
        >>> net = gg.MarkovNetwork({("a", "b"): equal, ("b", "c"): equal, ("a", "c"): equal, ("c", "d"): equal})
        >>> net.cliques()
        (('a', 'b', 'c'), ('c', 'd'))
        """
        from gramgraph.graphs.cliques import every_maximal_clique

        return tuple(self.names_of(clique) for clique in every_maximal_clique(self.graph))

    def factor_scopes(self) -> tuple[tuple[str, ...], ...]:
        """The variables of every factor, in the order of the factors and of their axes."""
        if self._shared:
            return tuple(self.names_of(scope) for part in self._shared for scope in part.scopes.tolist())
        return tuple(tuple(var.name for var in factor.scope) for factor in self.stored_factors)

    def to_junction_tree(self, *, heuristic: Any = "min_fill", tries: int = 1) -> NamedJunctionTree:
        """Triangulate, and join the cliques as a tree."""
        return name_tree(
            graphs.junction_tree(self.graph, self._sizes(), heuristic=heuristic, tries=tries), self.variables
        )

    def _equal_factors(self, other: FactorModel) -> bool:
        if self.vars != other.vars or len(self.stored_factors) != len(other.stored_factors):
            return False
        return all(
            a.scope == b.scope and a.log_scale == b.log_scale and _same_numbers(a, b)
            for a, b in zip(self.stored_factors, other.stored_factors, strict=True)
        )

    def __eq__(self, other: object) -> bool:
        """The same variables and the same factors in the same order; names of models do not count."""
        if self is other:
            return True
        if not isinstance(other, FactorModel) or type(self) is not type(other):
            return NotImplemented
        return self._equal_factors(other) and self.graph == other.graph

    def __hash__(self) -> int:
        return hash((type(self), self.variables, tuple(tuple(v.name for v in f.scope) for f in self.stored_factors)))

    def __repr__(self) -> str:
        title = f"{self.name!r}, " if self.name else ""
        return f"{type(self).__name__}({title}{counted(variable=len(self), factor=self._n_factors)})"


def _same_numbers(a: Any, b: Any) -> bool:
    if isinstance(a, GaussianFactor) or isinstance(b, GaussianFactor):
        same = isinstance(a, GaussianFactor) and isinstance(b, GaussianFactor)
        return same and np.array_equal(a.precision, b.precision) and np.array_equal(a.shift, b.shift)
    return np.array_equal(a.values, b.values)
