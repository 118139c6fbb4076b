"""Undirected graphs on nodes 0..n-1: moral graphs, components, chordality."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

from gramgraph.exceptions import ModelError
from gramgraph.graphs._nodes import Edge, Nodes, as_edges, as_nodes, checked_neighbors
from gramgraph.graphs.directed import Digraph


@dataclass(frozen=True, slots=True)
class UndirectedGraph:
    """An undirected graph, given by the neighbors of each node.

    Parameters
    ----------
    neighbors : for each node the positions of its neighbors.

    Examples
    --------
    >>> graph = UndirectedGraph.from_edges(4, [(0, 1), (2, 1), (2, 3)])
    >>> graph.neighbors
    ((1,), (0, 2), (1, 3), (2,))
    >>> graph.edges()
    ((0, 1), (1, 2), (2, 3))
    """

    neighbors: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        rows = checked_neighbors(self.neighbors, "neighbor")
        sets = [frozenset(row) for row in rows]
        one_way = [(v, u) for v, row in enumerate(rows) for u in row if v not in sets[u]]
        if one_way:
            v, u = one_way[0]
            raise ModelError(f"Node {v} lists {u} as neighbor, but {u} does not list {v}. Use `from_edges`.")
        object.__setattr__(self, "neighbors", rows)

    @classmethod
    def from_edges(cls, n: int, edges: Iterable[tuple[SupportsIndex, SupportsIndex]]) -> UndirectedGraph:
        """The graph on ``n`` nodes with the given edges, in either direction, repetitions allowed."""
        rows: list[list[int]] = [[] for _ in range(n)]
        for a, b in as_edges(edges, n):
            rows[a].append(b)
            rows[b].append(a)
        return cls(tuple(map(tuple, rows)))

    @classmethod
    def from_scopes(cls, n: int, scopes: Iterable[Iterable[SupportsIndex]]) -> UndirectedGraph:
        """The interaction graph on ``n`` nodes: all pairs inside a scope are linked."""
        rows: list[set[int]] = [set() for _ in range(n)]
        for scope in scopes:
            members = as_nodes(scope, n)
            for v in members:
                rows[v].update(members)
        for v, row in enumerate(rows):
            row.discard(v)
        return cls(tuple(tuple(sorted(row)) for row in rows))

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.neighbors)

    def edges(self) -> tuple[Edge, ...]:
        """All edges ``(a, b)`` with a < b, ascending."""
        return tuple((a, b) for a, row in enumerate(self.neighbors) for b in row if a < b)

    def has_edge(self, a: int, b: int) -> bool:
        """Whether the two nodes are linked."""
        return b in self.neighbors[a]

    def subgraph(self, nodes: Nodes) -> UndirectedGraph:
        """The induced subgraph; its node i is the i-th smallest of ``nodes``."""
        kept = as_nodes(nodes, self.n)
        number = {v: i for i, v in enumerate(kept)}
        return UndirectedGraph(tuple(tuple(number[u] for u in self.neighbors[v] if u in number) for v in kept))

    def with_edges(self, edges: Iterable[tuple[SupportsIndex, SupportsIndex]]) -> UndirectedGraph:
        """The graph with further edges."""
        return UndirectedGraph.from_edges(self.n, (*self.edges(), *edges))


def moralize(graph: Digraph) -> UndirectedGraph:
    """Link the parents of each node and drop directions: each family becomes a clique.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> moralize(Digraph.from_edges(3, [(0, 2), (1, 2)])).edges()
    ((0, 1), (0, 2), (1, 2))
    """
    return UndirectedGraph.from_scopes(graph.n, ((*row, v) for v, row in enumerate(graph.parents)))


def connected_components(graph: UndirectedGraph) -> tuple[tuple[int, ...], ...]:
    """Node sets of the connected components, each ascending, ordered by their lowest node.  Cost O(n + m).

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> connected_components(UndirectedGraph.from_edges(4, [(0, 2), (1, 3)]))
    ((0, 2), (1, 3))
    """
    seen = bytearray(graph.n)
    components = []
    for start in range(graph.n):
        if seen[start]:
            continue
        seen[start] = 1
        component = [start]
        for v in component:  # grows while it is read
            for u in graph.neighbors[v]:
                if not seen[u]:
                    seen[u] = 1
                    component.append(u)
        components.append(tuple(sorted(component)))
    return tuple(components)


def _maximum_cardinality_order(graph: UndirectedGraph) -> list[int]:
    """Visit next the node with most visited neighbors, in buckets.  Cost O(n + m)."""
    count = [0] * graph.n
    buckets: list[list[int]] = [list(range(graph.n - 1, -1, -1))]
    visited = bytearray(graph.n)
    order: list[int] = []
    level = 0
    while len(order) < graph.n:
        while not buckets[level]:
            level -= 1
        v = buckets[level].pop()
        if visited[v] or count[v] != level:
            continue  # an old entry: the node has moved to a higher bucket since
        visited[v] = 1
        order.append(v)
        for u in graph.neighbors[v]:
            if not visited[u]:
                count[u] += 1
                if count[u] == len(buckets):
                    buckets.append([])
                buckets[count[u]].append(u)
        level = min(level + 1, len(buckets) - 1)
    return order


def _later(graph: UndirectedGraph, order: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """For each node its position in ``order`` and its neighbors that come later, the next one first."""
    position = [0] * graph.n
    for i, v in enumerate(order):
        position[v] = i
    later = [
        sorted((u for u in row if position[u] > position[v]), key=position.__getitem__)
        for v, row in enumerate(graph.neighbors)
    ]
    return position, later


def perfect_elimination_order(graph: UndirectedGraph) -> tuple[int, ...] | None:
    """An order in which each node's later neighbors are all linked, or None if the graph is not chordal.

    The reverse of a maximum cardinality search is such an order whenever there is one.  Cost O(n + m log n).
    Source: R. Tarjan and M. Yannakakis, SIAM J. Comput. 13, 1984.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> square = UndirectedGraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> perfect_elimination_order(square) is None, sorted(perfect_elimination_order(square.with_edges([(0, 2)])))
    (True, [0, 1, 2, 3])
    """
    order = _maximum_cardinality_order(graph)[::-1]
    _, later = _later(graph, order)
    sets = [frozenset(row) for row in later]
    for v in order:
        # Enough to look at the next later neighbor: it takes the others on as its own.
        if any(u not in sets[later[v][0]] for u in later[v][1:]):
            return None
    return tuple(order)


def is_chordal(graph: UndirectedGraph) -> bool:
    """Whether every cycle of four or more nodes has a chord.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> square = UndirectedGraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> is_chordal(square), is_chordal(square.with_edges([(0, 2)]))
    (False, True)
    """
    return perfect_elimination_order(graph) is not None


def maximal_cliques(graph: UndirectedGraph) -> tuple[tuple[int, ...], ...]:
    """All maximal cliques of a chordal graph, ascending; at most n of them.  Cost O(n + m log n).

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> maximal_cliques(UndirectedGraph.from_edges(4, [(0, 1), (1, 2), (0, 2), (2, 3)]))
    ((0, 1, 2), (2, 3))
    """
    order = perfect_elimination_order(graph)
    if order is None:
        raise ModelError("maximal_cliques needs a chordal graph, and this one is not. Call `triangulate` first.")
    _, later = _later(graph, order)
    # A node with its later neighbors is a clique; it lies in another one exactly if an earlier node, whose next later
    # neighbor it is, has one later neighbor more.
    absorbed = bytearray(graph.n)
    for v in order:
        if later[v] and len(later[v]) == len(later[later[v][0]]) + 1:
            absorbed[later[v][0]] = 1
    return tuple(sorted(tuple(sorted((v, *later[v]))) for v in order if not absorbed[v]))
