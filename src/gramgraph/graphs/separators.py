"""Every minimal separator of two nodes, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import combinations

from gramgraph.graphs.undirected import UndirectedGraph


def minimal_separators(
    graph: UndirectedGraph, x: int, y: int, allowed: Iterable[int] | None = None
) -> Iterator[tuple[int, ...]]:
    """All sets of ``allowed`` nodes that cut every path between x and y and none of whose members can be left out.

    Nodes that are not allowed are taken out and their neighbors joined: what a path through them would link.  The first
    separator is the one nearest x.  From a separator S and a member v, the next one moves v to the side of x: it is
    the border of the component of y that is left when v and its neighbors join that side.  Every minimal separator is
    reached so.  Cost O(n m) for each one.  Source: H. Shen and W. Liang, Theoretical Computer Science 180, 1997.

    Parameters
    ----------
    graph : the graph, on positions.
    x : position of the first node.
    y : position of the second node.
    allowed : nodes that may stand in the set.

    Examples
    --------
    >>> square = UndirectedGraph.from_edges(6, [(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5)])
    >>> sorted(minimal_separators(square, 0, 5))
    [(1, 3), (1, 4), (2, 3), (2, 4)]
    """
    usable = set(range(graph.n) if allowed is None else allowed) - {x, y}
    near = _without([set(row) for row in graph.neighbors], set(range(graph.n)) - usable - {x, y})
    if y in near[x]:
        return
    first = _border(near, y, near[x])
    seen, queue = {first}, deque([first])
    while queue:
        separator = queue.popleft()
        yield tuple(sorted(separator))
        side = _component(near, x, separator)
        for v in sorted(separator):
            wall = (near[v] | separator) - side - {v}
            if y not in wall:
                after = _border(near, y, wall)
                if after not in seen:
                    seen.add(after)
                    queue.append(after)


def _without(near: list[set[int]], gone: set[int]) -> list[set[int]]:
    """The graph on the other nodes: two are linked if an edge, or a path through nodes that are gone, joins them."""
    for v in sorted(gone):
        for a, b in combinations(sorted(near[v]), 2):
            near[a].add(b)
            near[b].add(a)
        for a in near[v]:
            near[a].discard(v)
        near[v] = set()
    return near


def _component(near: list[set[int]], start: int, wall: Iterable[int]) -> set[int]:
    """The nodes that paths from ``start`` reach without entering the wall."""
    found, closed, stack = {start}, set(wall), [start]
    while stack:
        fresh = near[stack.pop()] - found - closed
        found |= fresh
        stack.extend(fresh)
    return found


def _border(near: list[set[int]], y: int, wall: Iterable[int]) -> frozenset[int]:
    """The part of the wall that the component of y touches."""
    inside = _component(near, y, wall)
    return frozenset(set().union(*(near[v] for v in inside)) - inside)
