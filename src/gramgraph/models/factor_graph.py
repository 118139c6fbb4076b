"""Factor graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from gramgraph import graphs
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.factors import TableFactor
from gramgraph.models.markov_network import MarkovNetwork
from gramgraph.models.potentials import has_kernels
from gramgraph.models.undirected import FactorModel
from gramgraph.variables import Var


class FactorGraph(FactorModel):
    """A bipartite graph of variables and factors; an edge joins a factor to each variable of its scope.

    `factors` as for `MarkovNetwork`; `names` names them (by default f0, f1, …).

    Parameters
    ----------
    factors : as for `MarkovNetwork`.
    names : names of the factors; by default f0, f1, ….
    states : labels by name.
    name : a title.
    check : whether faults of the tables are an error at once.

    Examples
    --------
    >>> g = FactorGraph([(("a", "b"), [[1, 2], [3, 4]]), (("b", "c"), [[1, 0], [0, 1]])])
    >>> g.neighbors("b"), g.neighbors("f1"), g.is_tree
    (('f0', 'f1'), ('b', 'c'), True)
    """

    factor_names: tuple[str, ...]

    def __new__(cls, factors: Any = None, *args: Any, **options: Any) -> Any:
        """A graph on cells where kernel potentials are among the factors."""
        if cls is FactorGraph and has_kernels(factors):
            from gramgraph.models.of_potentials import KernelFactorGraph

            return object.__new__(KernelFactorGraph)
        return object.__new__(cls)

    def __init__(
        self,
        factors: Any = None,
        *,
        names: Sequence[str] | None = None,
        states: Mapping[str, Any] | None = None,
        name: str = "",
        check: bool = True,
    ) -> None:
        net = MarkovNetwork(factors, states=states, check=check)
        self._set_variables(net.vars)
        self.stored_factors, self._writing_faults = net.stored_factors, net._writing_faults
        self.name, self.metadata = name, {}
        self._set_factor_names(names)

    @classmethod
    def from_parts(
        cls,
        variables: Iterable[Var],
        factors: Sequence[TableFactor],
        *,
        names: Sequence[str] | None = None,
        name: str = "",
        metadata: dict[str, Any] | None = None,
    ) -> Self:
        """From variables and factors; the quick way for readers and converters."""
        made = cls.__new__(cls)
        made._set_variables(variables)
        made.stored_factors = tuple(factors)
        made.name, made.metadata = name, metadata or {}
        made._set_factor_names(names)
        return made

    def _set_factor_names(self, names: Sequence[str] | None) -> None:
        self.factor_names = tuple(names or (f"f{i}" for i in range(len(self.stored_factors))))
        self._factor_index = {name: i for i, name in enumerate(self.factor_names)}
        if len(self.factor_names) != len(self.stored_factors) or len(self._factor_index) != len(self.stored_factors):
            raise ModelError(
                f"{len(self.stored_factors)} different names are needed, one a factor; got {self.factor_names}"
            )

    def factor(self, name: str) -> TableFactor:
        """The factor of this name."""
        if name not in self._factor_index:
            raise VariableError.unknown(name, self.factor_names)
        return self.stored_factors[self._factor_index[name]]

    def neighbors(self, name: str) -> tuple[str, ...]:
        """Names of a variable's factors, or of a factor's variables."""
        if name in self.positions:
            return tuple(
                f for f, factor in zip(self.factor_names, self.stored_factors, strict=True) if name in _names(factor)
            )
        if name not in self._factor_index:
            raise VariableError.unknown(name, (*self.variables, *self.factor_names))
        return _names(self.factor(name))

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """The edges of the bipartite graph, (variable, factor), factor by factor."""
        pairs = zip(self.factor_names, self.stored_factors, strict=True)
        return tuple((variable, name) for name, factor in pairs for variable in _names(factor))

    def bipartite(self) -> graphs.UndirectedGraph:
        """The graph on integers: variables first, then factors."""
        n = len(self)
        pairs = [(self.positions[v], n + self._factor_index[f]) for v, f in self.links]
        return graphs.UndirectedGraph.from_edges(n + len(self.stored_factors), pairs)

    @property
    def is_forest(self) -> bool:
        """Whether the graph has no loop: message passing is then exact."""
        graph = self.bipartite()
        return len(graph.edges()) == graph.n - len(graphs.connected_components(graph))

    @property
    def is_tree(self) -> bool:
        """Whether the graph has no loop and hangs together."""
        graph = self.bipartite()
        return len(graph.edges()) == graph.n - 1 and len(graphs.connected_components(graph)) == 1

    def to_markov_network(self) -> MarkovNetwork:
        """The same product, with variables linked that share a factor."""
        return MarkovNetwork.from_parts(self.vars, self.stored_factors, name=self.name)

    def to_factor_graph(self) -> Self:
        """Itself."""
        return self

    def to_networkx(self) -> Any:
        """A networkx Graph of variables (`bipartite=0`, with `states`) and factors (`bipartite=1`)."""
        import networkx as nx

        out = nx.Graph(name=self.name)
        out.add_nodes_from((var.name, {"bipartite": 0, "states": var.states}) for var in self.vars)
        out.add_nodes_from(self.factor_names, bipartite=1)
        out.add_edges_from(self.links)
        return out


def _names(factor: TableFactor) -> tuple[str, ...]:
    return tuple(var.name for var in factor.scope)
