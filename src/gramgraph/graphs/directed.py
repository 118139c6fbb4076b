"""Directed graphs on nodes 0..n-1: orders, ancestors, blankets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import SupportsIndex

from gramgraph.exceptions import ModelError
from gramgraph.graphs._nodes import Edge, Nodes, as_edges, as_nodes, checked_neighbors, flags, marked


@dataclass(frozen=True, slots=True)
class Digraph:
    """A directed graph, given by the parents of each node; cycles are allowed until an order is needed.

    Parameters
    ----------
    parents : for each node the positions of its parents.

    Examples
    --------
    >>> graph = Digraph.from_edges(4, [(0, 2), (1, 2), (2, 3)])
    >>> graph.parents
    ((), (), (0, 1), (2,))
    >>> graph.children[2], graph.edges()
    ((3,), ((0, 2), (1, 2), (2, 3)))
    >>> markov_blanket(graph, 0)
    (1, 2)
    """

    parents: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parents = checked_neighbors(self.parents, "parent")
        children: list[list[int]] = [[] for _ in parents]
        for v, row in enumerate(parents):
            for u in row:
                children[u].append(v)
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "children", tuple(map(tuple, children)))

    @classmethod
    def from_edges(cls, n: int, edges: Iterable[tuple[SupportsIndex, SupportsIndex]]) -> Digraph:
        """The graph on ``n`` nodes with the edges ``(parent, child)``."""
        parents: list[list[int]] = [[] for _ in range(n)]
        for a, b in as_edges(edges, n):
            parents[b].append(a)
        return cls(tuple(map(tuple, parents)))

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.parents)

    def edges(self) -> tuple[Edge, ...]:
        """All edges ``(parent, child)``, ascending."""
        return tuple((a, b) for a, row in enumerate(self.children) for b in row)

    def has_edge(self, parent: int, child: int) -> bool:
        """Whether ``parent -> child`` is an edge."""
        return parent in self.parents[child]

    def adjacent(self, a: int, b: int) -> bool:
        """Whether there is an edge between the two, in either direction."""
        return a in self.parents[b] or b in self.parents[a]

    def subgraph(self, nodes: Nodes) -> Digraph:
        """The induced subgraph; its node i is the i-th smallest of ``nodes``."""
        kept = as_nodes(nodes, self.n)
        number = {v: i for i, v in enumerate(kept)}
        return Digraph(tuple(tuple(number[u] for u in self.parents[v] if u in number) for v in kept))

    def without_edges_into(self, nodes: Nodes) -> Digraph:
        """The same nodes with all edges into ``nodes`` cut: the graph after an intervention on them."""
        cut = flags(as_nodes(nodes, self.n), self.n)
        return Digraph(tuple(() if cut[v] else row for v, row in enumerate(self.parents)))


def topological_order(graph: Digraph) -> tuple[int, ...]:
    """Parents before children; where several nodes are free, the lowest number comes first.  Cost O(m + n log n).

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> topological_order(Digraph.from_edges(3, [(2, 0), (0, 1)]))
    (2, 0, 1)
    """
    waiting = [len(row) for row in graph.parents]
    free = [v for v, count in enumerate(waiting) if count == 0]
    heapify(free)
    order = []
    while free:
        v = heappop(free)
        order.append(v)
        for child in graph.children[v]:
            waiting[child] -= 1
            if waiting[child] == 0:
                heappush(free, child)
    if len(order) < graph.n:
        cycle = find_cycle(graph) or ()
        raise ModelError(
            "A directed acyclic graph is needed, but this one has the cycle "
            f"{' -> '.join(map(str, (*cycle, *cycle[:1])))}. Remove or turn one of these edges."
        )
    return tuple(order)


def find_cycle(graph: Digraph) -> tuple[int, ...] | None:
    """The nodes of one directed cycle in the direction of its edges, lowest number first; None if there is none.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> find_cycle(Digraph.from_edges(4, [(0, 1), (3, 1), (1, 2), (2, 3)]))
    (1, 2, 3)
    """
    # Nodes that are not downstream of a cycle can be taken off in topological order; each node that is left has a
    # parent that is left, so walking upward must come back to a node seen before.
    waiting = [len(row) for row in graph.parents]
    free = [v for v, count in enumerate(waiting) if count == 0]
    left = bytearray(b"\x01" * graph.n)
    while free:
        v = free.pop()
        left[v] = 0
        for child in graph.children[v]:
            waiting[child] -= 1
            if waiting[child] == 0:
                free.append(child)
    start = left.find(1)
    if start < 0:
        return None
    walk = [start]
    seen = {start: 0}
    while True:
        v = next(u for u in graph.parents[walk[-1]] if left[u])
        if v in seen:
            cycle = walk[seen[v] :][::-1]
            lowest = cycle.index(min(cycle))
            return tuple(cycle[lowest:] + cycle[:lowest])
        seen[v] = len(walk)
        walk.append(v)


def is_acyclic(graph: Digraph) -> bool:
    """Whether the graph has no directed cycle.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> is_acyclic(Digraph.from_edges(2, [(0, 1)])), is_acyclic(Digraph.from_edges(2, [(0, 1), (1, 0)]))
    (True, False)
    """
    return find_cycle(graph) is None


def _closure(start: Iterable[int], step: Sequence[Sequence[int]]) -> bytearray:
    """Flags of all nodes that can be reached along ``step`` in one or more steps."""
    reached = bytearray(len(step))
    stack = list(start)
    while stack:
        for u in step[stack.pop()]:
            if not reached[u]:
                reached[u] = 1
                stack.append(u)
    return reached


def ancestors(graph: Digraph, nodes: Nodes) -> tuple[int, ...]:
    """All nodes from which a directed path of one or more edges leads into ``nodes``, ascending.

    Parameters
    ----------
    graph : the graph, on positions.
    nodes : positions.

    Examples
    --------
    >>> ancestors(Digraph.from_edges(4, [(0, 2), (1, 2), (2, 3)]), 3)
    (0, 1, 2)
    """
    return marked(_closure(as_nodes(nodes, graph.n), graph.parents))


def descendants(graph: Digraph, nodes: Nodes) -> tuple[int, ...]:
    """All nodes to which a directed path of one or more edges leads from ``nodes``, ascending.

    Parameters
    ----------
    graph : the graph, on positions.
    nodes : positions.

    Examples
    --------
    >>> descendants(Digraph.from_edges(4, [(0, 2), (1, 2), (2, 3)]), 0)
    (2, 3)
    """
    return marked(_closure(as_nodes(nodes, graph.n), graph.children))


def ancestral_set(graph: Digraph, nodes: Nodes) -> tuple[int, ...]:
    """``nodes`` together with their ancestors, ascending.

    Parameters
    ----------
    graph : the graph, on positions.
    nodes : positions.

    Examples
    --------
    >>> ancestral_set(Digraph.from_edges(4, [(0, 2), (1, 2), (2, 3)]), 2)
    (0, 1, 2)
    """
    given = as_nodes(nodes, graph.n)
    reached = _closure(given, graph.parents)
    for v in given:
        reached[v] = 1
    return marked(reached)


def ancestral_graph(graph: Digraph, nodes: Nodes) -> tuple[tuple[int, ...], Digraph]:
    """``(kept, subgraph)``: the ancestral set of ``nodes`` and the graph on it; its node i is ``kept[i]``.

    Parameters
    ----------
    graph : the graph, on positions.
    nodes : positions.

    Examples
    --------
    >>> kept, graph = ancestral_graph(Digraph.from_edges(4, [(0, 2), (1, 2), (2, 3)]), 2)
    >>> kept, graph.edges()
    ((0, 1, 2), ((0, 2), (1, 2)))
    """
    kept = ancestral_set(graph, nodes)
    return kept, graph.subgraph(kept)


def markov_blanket(graph: Digraph, node: SupportsIndex) -> tuple[int, ...]:
    """Parents, children and the children's other parents, ascending: they part ``node`` from all the rest.

    Parameters
    ----------
    graph : the graph, on positions.
    node : its position.

    Examples
    --------
    >>> markov_blanket(Digraph.from_edges(4, [(0, 2), (1, 2), (2, 3)]), 0)
    (1, 2)
    """
    (v,) = as_nodes(node, graph.n)
    blanket = {*graph.parents[v], *graph.children[v]}
    for child in graph.children[v]:
        blanket.update(graph.parents[child])
    blanket.discard(v)
    return tuple(sorted(blanket))


def is_polytree(graph: Digraph) -> bool:
    """Whether at most one undirected path joins any two nodes (a forest once directions are dropped).  Cost O(n + m).

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> is_polytree(Digraph.from_edges(3, [(0, 2), (1, 2)]))
    True
    >>> is_polytree(Digraph.from_edges(3, [(0, 1), (0, 2), (1, 2)]))
    False
    """
    group = list(range(graph.n))

    def top(v: int) -> int:
        while group[v] != v:
            group[v] = group[group[v]]
            v = group[v]
        return v

    for a, b in graph.edges():
        a, b = top(a), top(b)
        if a == b:
            return False
        group[a] = b
    return True
