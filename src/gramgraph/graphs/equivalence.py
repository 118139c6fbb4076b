"""Which DAGs say the same: skeletons, v-structures, Markov equivalence, CPDAGs and their members."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import SupportsIndex

from gramgraph.exceptions import ModelError
from gramgraph.graphs._nodes import Edge, as_edges
from gramgraph.graphs.directed import Digraph, topological_order
from gramgraph.graphs.undirected import UndirectedGraph


@dataclass(frozen=True, slots=True)
class PartialDigraph:
    """A graph with directed edges ``(a, b)``, a -> b, and undirected edges ``(a, b)``, a < b; both ascending.

    Parameters
    ----------
    n : number of nodes.
    directed : pairs (parent, child).
    undirected : pairs without a direction.

    Examples
    --------
    >>> PartialDigraph.from_edges(3, directed=[(2, 1)], undirected=[(1, 0)])
    PartialDigraph(n=3, directed=((2, 1),), undirected=((0, 1),))
    """

    n: int
    directed: tuple[Edge, ...]
    undirected: tuple[Edge, ...]

    def __post_init__(self) -> None:
        directed = set(as_edges(self.directed, self.n))
        undirected = {(min(a, b), max(a, b)) for a, b in as_edges(self.undirected, self.n)}
        faults = [f"Node {a} is linked to itself." for a, b in sorted(directed | undirected) if a == b]
        for a, b in sorted(directed):
            if a < b and (b, a) in directed:
                faults.append(f"{a} -> {b} and {b} -> {a} are both given: list the edge as undirected instead.")
            if (min(a, b), max(a, b)) in undirected:
                faults.append(f"The edge {a} -> {b} is also listed as undirected.")
        if faults:
            raise ModelError(faults)
        object.__setattr__(self, "directed", tuple(sorted(directed)))
        object.__setattr__(self, "undirected", tuple(sorted(undirected)))

    @classmethod
    def from_edges(
        cls,
        n: int,
        *,
        directed: Iterable[tuple[SupportsIndex, SupportsIndex]] = (),
        undirected: Iterable[tuple[SupportsIndex, SupportsIndex]] = (),
    ) -> PartialDigraph:
        """The graph on ``n`` nodes with the given edges; undirected ones in either order of their ends."""
        return cls(n, tuple(as_edges(directed, n)), tuple(as_edges(undirected, n)))

    def skeleton(self) -> UndirectedGraph:
        """The graph without directions."""
        return UndirectedGraph.from_edges(self.n, (*self.directed, *self.undirected))


def skeleton(graph: Digraph) -> UndirectedGraph:
    """The graph without directions.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> skeleton(Digraph.from_edges(3, [(0, 2), (1, 2)])).edges()
    ((0, 2), (1, 2))
    """
    return UndirectedGraph.from_edges(graph.n, graph.edges())


def v_structures(graph: Digraph) -> tuple[tuple[int, int, int], ...]:
    """All ``(a, c, b)`` with a -> c <- b, a < b, and no edge between a and b; ascending.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> v_structures(Digraph.from_edges(3, [(0, 2), (1, 2)]))
    ((0, 2, 1),)
    """
    return tuple(
        sorted(
            (a, c, b)
            for c, row in enumerate(graph.parents)
            for a, b in combinations(row, 2)
            if not graph.adjacent(a, b)
        )
    )


def markov_equivalent(first: Digraph, second: Digraph) -> bool:
    """Whether two DAGs state the same independencies: same skeleton and same v-structures (Verma and Pearl 1990).

    Parameters
    ----------
    first : a graph.
    second : another one on the same nodes.

    Examples
    --------
    >>> chain, fork = Digraph.from_edges(3, [(0, 1), (1, 2)]), Digraph.from_edges(3, [(1, 0), (1, 2)])
    >>> markov_equivalent(chain, fork), markov_equivalent(chain, Digraph.from_edges(3, [(0, 1), (2, 1)]))
    (True, False)
    """
    for graph in (first, second):
        topological_order(graph)  # raises when there is a cycle
    return first.n == second.n and skeleton(first) == skeleton(second) and v_structures(first) == v_structures(second)


def cpdag(graph: Digraph) -> PartialDigraph:
    """The completed PDAG of a DAG's equivalence class: an edge is directed if all members direct it alike.

    Edges are labelled in the order of their heads, for one head the latest tail first.  An edge x -> y is compelled
    if a compelled w -> x has no counterpart w -> y, or if some other parent of y is not a parent of x; else all edges
    into y that have no label yet are reversible.  Cost O(m · largest number of parents).
    Source: D. Chickering, UAI 1995.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> cpdag(Digraph.from_edges(4, [(0, 2), (1, 2), (2, 3)])).directed
    ((0, 2), (1, 2), (2, 3))
    >>> cpdag(Digraph.from_edges(3, [(0, 1), (1, 2)])).undirected
    ((0, 1), (1, 2))
    """
    order = topological_order(graph)
    position = {v: i for i, v in enumerate(order)}
    parents = [frozenset(row) for row in graph.parents]
    compelled: dict[Edge, bool] = {}
    for y in order:
        for x in sorted(graph.parents[y], key=position.__getitem__, reverse=True):
            if (x, y) in compelled:
                continue
            forced = _force_from_above(graph, x, y, parents, compelled)
            if not forced:
                forced = any(z != x and z not in parents[x] for z in graph.parents[y])
            for z in graph.parents[y]:
                compelled.setdefault((z, y), forced)
    return PartialDigraph.from_edges(
        graph.n,
        directed=[edge for edge, fixed in compelled.items() if fixed],
        undirected=[edge for edge, fixed in compelled.items() if not fixed],
    )


def _force_from_above(
    graph: Digraph, x: int, y: int, parents: list[frozenset[int]], compelled: dict[Edge, bool]
) -> bool:
    """Pass compelled edges w -> x on to y; True if one of them has no edge w -> y, which compels x -> y."""
    for w in graph.parents[x]:
        if compelled[w, x]:
            if w not in parents[y]:
                return True
            compelled[w, y] = True
    return False


def meek_closure(graph: PartialDigraph) -> PartialDigraph:
    """Direct every undirected edge whose direction follows, by Meek's four rules until nothing changes.

    a - b becomes a -> b when the other direction would make a new v-structure or a cycle: (1) c -> a, c and b not
    linked; (2) a -> c -> b; (3) a - c -> b and a - d -> b, c and d not linked; (4) a - c -> d -> b, a and d linked,
    c and b not linked.  Source: C. Meek, UAI 1995.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> meek_closure(PartialDigraph.from_edges(3, directed=[(0, 1)], undirected=[(1, 2)])).directed
    ((0, 1), (1, 2))
    """
    into = [set[int]() for _ in range(graph.n)]
    out_of = [set[int]() for _ in range(graph.n)]
    loose = [set[int]() for _ in range(graph.n)]
    for a, b in graph.directed:
        into[b].add(a)
        out_of[a].add(b)
    for a, b in graph.undirected:
        loose[a].add(b)
        loose[b].add(a)

    def linked(a: int, b: int) -> bool:
        return a in into[b] or b in into[a] or a in loose[b]

    def follows(a: int, b: int) -> bool:
        if any(not linked(c, b) for c in into[a]) or not out_of[a].isdisjoint(into[b]):
            return True
        heads = sorted(loose[a] & into[b])
        if any(not linked(c, d) for c, d in combinations(heads, 2)):
            return True
        return any(
            not linked(c, b) and any(d in out_of[c] and linked(a, d) for d in into[b]) for c in loose[a] if c != b
        )

    changed = True
    while changed:
        changed = False
        for a in range(graph.n):
            for b in sorted(loose[a]):
                if follows(a, b):
                    loose[a].discard(b)
                    loose[b].discard(a)
                    into[b].add(a)
                    out_of[a].add(b)
                    changed = True
    return PartialDigraph.from_edges(
        graph.n,
        directed=[(a, b) for b in range(graph.n) for a in sorted(into[b])],
        undirected=[(a, b) for a in range(graph.n) for b in sorted(loose[a]) if a < b],
    )


def consistent_extension(graph: PartialDigraph) -> Digraph | None:
    """A DAG with the same skeleton, the given directions and no further v-structure; None if there is none.

    Again and again a sink is taken off (no directed edge leaves it, and each of its undirected neighbors is linked to
    all its other neighbors), with its undirected edges turned toward it; the lowest number goes first.
    Source: D. Dor and M. Tarsi, technical report R-185, UCLA 1992.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> consistent_extension(PartialDigraph.from_edges(3, undirected=[(0, 1), (1, 2)])).edges()
    ((1, 0), (2, 1))
    >>> consistent_extension(PartialDigraph.from_edges(4, undirected=[(0, 1), (1, 2), (2, 3), (0, 3)])) is None
    True
    """
    near = [set(row) for row in graph.skeleton().neighbors]
    leaving = [set[int]() for _ in range(graph.n)]
    loose = [set[int]() for _ in range(graph.n)]
    for a, b in graph.directed:
        leaving[a].add(b)
    for a, b in graph.undirected:
        loose[a].add(b)
        loose[b].add(a)

    def is_sink(v: int) -> bool:
        return not leaving[v] and all(near[v] - {u} <= near[u] for u in loose[v])

    edges: list[Edge] = []
    left = dict.fromkeys(range(graph.n))
    while left:
        sink = next((v for v in left if is_sink(v)), None)
        if sink is None:
            return None
        del left[sink]
        for u in sorted(near[sink]):
            edges.append((u, sink))
            near[u].discard(sink)
            leaving[u].discard(sink)
            loose[u].discard(sink)
    return Digraph.from_edges(graph.n, edges)
