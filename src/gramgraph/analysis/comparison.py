"""How two graphs differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gramgraph._pictures import pictures
from gramgraph._show import Listing, Shown
from gramgraph.exceptions import VariableError, listing
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.directed import DirectedModel
from gramgraph.models.named import NamedGraph

Edge = tuple[str, str]


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """The edges of a second graph beside those of a first: `kept`, `added`, `missing`, `reversed` (as in the second).

    `shd` is the structural Hamming distance, the number of edges to add, remove or turn; `cpdag_shd` the same between
    the Markov equivalence classes, where a direction that no data can tell does not count.

    Parameters
    ----------
    variables : of both graphs.
    kept : edges of both, with the same direction.
    added : edges of the second graph alone.
    missing : edges of the first graph alone.
    reversed : edges of both with different directions, as in the second.
    cpdag_shd : distance of the Markov equivalence classes.

    Examples
    --------
    >>> import gramgraph as gg
    >>> found = gg.compare("a -> b; b -> c", "a -> b; c -> b")
    >>> found.kept, found.reversed, found.shd
    ((('a', 'b'),), (('c', 'b'),), 1)
    """

    variables: tuple[str, ...]
    kept: tuple[Edge, ...]
    added: tuple[Edge, ...]
    missing: tuple[Edge, ...]
    reversed: tuple[Edge, ...]
    cpdag_shd: int

    @property
    def shd(self) -> int:
        """Number of edges to add, remove or turn."""
        return len(self.added) + len(self.missing) + len(self.reversed)

    @property
    def precision(self) -> float:
        """Share of the second graph's edges that the first has, with their direction; 1 where there are none."""
        found = len(self.kept) + len(self.added) + len(self.reversed)
        return len(self.kept) / found if found else 1.0

    @property
    def recall(self) -> float:
        """Share of the first graph's edges that the second has, with their direction; 1 where there are none."""
        there = len(self.kept) + len(self.missing) + len(self.reversed)
        return len(self.kept) / there if there else 1.0

    def plot(self, *, ax: Any = None) -> Any:
        """Both graphs in one picture: edges that differ are named on the arrow; the axes are returned."""
        return pictures().plot_comparison(self, ax=ax)

    def _shown(self) -> Listing:
        kinds = (("added", self.added), ("missing", self.missing), ("reversed", self.reversed))
        rows = [(kind, f"{a} -> {b}") for kind, edges in kinds for a, b in edges]
        title = f"{len(self.kept)} edges in common, distance {self.shd} ({self.cpdag_shd} between equivalence classes)"
        return Listing(title, ("", "edge") if rows else (), rows[:100], max(len(rows) - 100, 0))


def compare(a: Any, b: Any) -> Comparison:
    """How the graph of `b` differs from that of `a`, over the same variables.

    Parameters
    ----------
    a : the graph to compare with: a network, or a structure as `BayesianNetwork` takes it.
    b : the other graph.

    Returns
    -------
    Comparison
        `shd`, `added`, `missing`, `reversed`, `plot()`.

    Examples
    --------
    >>> import gramgraph as gg
    >>> found = gg.compare("a -> b -> c; a -> d", "a -> b <- c; b -> d")
    >>> found.shd, found.added, found.missing, found.reversed
    (3, (('b', 'd'),), (('a', 'd'),), (('c', 'b'),))
    """
    first, second = _network(a), _network(b)
    alone = [name for name in (*first.variables, *second.variables) if name not in first or name not in second]
    if alone:
        raise VariableError(f"graphs over the same variables are compared; only one of them has {listing(alone)}")
    before, after = dict.fromkeys(first.edges), dict.fromkeys(second.edges)
    turned = tuple(edge for edge in after if edge not in before and edge[::-1] in before)
    return Comparison(
        first.variables,
        tuple(edge for edge in after if edge in before),
        tuple(edge for edge in after if edge not in before and edge not in turned),
        tuple(edge for edge in before if edge not in after and edge[::-1] not in turned),
        turned,
        _distance(first.cpdag(), second.cpdag()),
    )


def _network(given: Any) -> DirectedModel:
    return given if isinstance(given, DirectedModel) else BayesianNetwork(given)


def _distance(a: NamedGraph, b: NamedGraph) -> int:
    """Pairs of variables that the two graphs join in different ways."""

    def ways(graph: NamedGraph) -> dict[frozenset[str], Edge | None]:
        joined: dict[frozenset[str], Edge | None] = {frozenset(edge): edge for edge in graph.arrows}
        return joined | {frozenset(link): None for link in graph.links}

    first, second = ways(a), ways(b)
    apart = first.keys() ^ second.keys()
    return len(apart) + sum(first[pair] != second[pair] for pair in first.keys() & second.keys())
