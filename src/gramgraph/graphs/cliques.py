"""Maximal cliques of any graph."""

from __future__ import annotations

from gramgraph.graphs.undirected import UndirectedGraph


def every_maximal_clique(graph: UndirectedGraph) -> tuple[tuple[int, ...], ...]:
    """All maximal cliques, ascending; a graph that is not chordal may have exponentially many.

    Each node is tried with its neighbors that come later in an order of least degrees; inside, only what is no
    neighbor of a pivot is tried. Cost: O(d n 3^(d/3)) for a graph in which every part has a node of degree at most d.

    >>> every_maximal_clique(UndirectedGraph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 0)]))
    ((0, 1), (0, 3), (1, 2), (2, 3), (4,))
    """
    near = [frozenset(row) for row in graph.neighbors]
    found: list[tuple[int, ...]] = []
    done: set[int] = set()
    for v in _least_degrees_first(near):
        stack: list[tuple[tuple[int, ...], set[int], set[int]]] = [((v,), set(near[v] - done), set(near[v] & done))]
        while stack:
            clique, open_, closed = stack.pop()
            if not open_:
                if not closed:
                    found.append(tuple(sorted(clique)))
                continue
            pivot = max(sorted(open_ | closed), key=lambda u: len(near[u] & open_))
            for u in sorted(open_ - near[pivot]):
                stack.append(((*clique, u), open_ & near[u], closed & near[u]))
                open_ = open_ - {u}
                closed = closed | {u}
        done.add(v)
    return tuple(sorted(found))


def _least_degrees_first(near: list[frozenset[int]]) -> list[int]:
    """The nodes such that each has the fewest neighbors among those that come after it. O(nodes + edges)."""
    degree = [len(row) for row in near]
    buckets: list[list[int]] = [[] for _ in range(max(degree, default=0) + 1)]
    for v in reversed(range(len(near))):
        buckets[degree[v]].append(v)
    order: list[int] = []
    gone = bytearray(len(near))
    least = 0
    while len(order) < len(near):
        while not buckets[least]:
            least += 1
        v = buckets[least].pop()
        if gone[v] or degree[v] != least:
            continue
        gone[v] = 1
        order.append(v)
        for u in near[v]:
            if not gone[u]:
                degree[u] -= 1
                buckets[degree[u]].append(u)
        least = max(least - 1, 0)
    return order
