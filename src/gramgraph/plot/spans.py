"""Layers of a drawing for which the edges together are as short as possible.

min Σ (layer of head − layer of tail), every edge at least one layer long: a linear program on a network, solved by the
network simplex method (a spanning tree of edges of length one; an edge whose cut could be shortened is exchanged).
Source: E. Gansner, E. Koutsofios, S. North, K.-P. Vo, A technique for drawing directed graphs, 1993.
"""

from __future__ import annotations

from collections.abc import Sequence

Edge = tuple[int, int]

#: Exchanges after which the layers found so far are taken: they are layers all the same.
MOST_EXCHANGES = 4000


def least_span_layers(layer: Sequence[int], edges: Sequence[Edge]) -> list[int]:
    """Layers of least total span for one connected graph without cycles, from any layers that are right (every head
    below its tail); the first layer is 0. Cost O(edges) per exchange.

    >>> least_span_layers([0, 1, 2, 0], [(0, 1), (1, 2), (3, 2)])
    [0, 1, 2, 1]
    """
    edges = list(dict.fromkeys((u, v) for u, v in edges if u != v))
    if len(layer) < 2 or not edges:
        return [0] * len(layer)
    tree = _Tree(list(layer), edges)
    for _ in range(min(MOST_EXCHANGES, 50 * len(edges))):
        if not tree.exchange():
            break
    top = min(tree.layer)
    return _balanced([value - top for value in tree.layer], edges)


class _Tree:
    """Layers, and a spanning tree of edges whose length is one."""

    def __init__(self, layer: list[int], edges: list[Edge]) -> None:
        self.layer, self.edges = layer, edges
        self.at: list[list[int]] = [[] for _ in layer]  # edges of each node
        for k, (u, v) in enumerate(edges):
            self.at[u].append(k)
            self.at[v].append(k)
        self.inside: set[int] = set()
        self._grow()
        self.searched = 0

    def _slack(self, k: int) -> int:
        u, v = self.edges[k]
        return self.layer[v] - self.layer[u] - 1

    def _grow(self) -> None:
        """Join nodes over tight edges; where there is none, move what is joined until there is."""
        joined = [False] * len(self.layer)
        joined[0] = True
        members, fringe = [0], list(self.at[0])
        while len(members) < len(self.layer):
            fringe = [k for k in fringe if joined[self.edges[k][0]] != joined[self.edges[k][1]]]
            k = min(fringe, key=lambda k: (self._slack(k), k))
            u, v = self.edges[k]
            shift = self._slack(k) if joined[u] else -self._slack(k)
            if shift:
                for node in members:
                    self.layer[node] += shift
            self.inside.add(k)
            new = v if joined[u] else u
            joined[new] = True
            members.append(new)
            fringe += self.at[new]

    def _orders(self) -> tuple[list[int], list[int], list[int]]:
        """From node 0 outward: the order, each node's parent, and the tree edge to it."""
        parent, by, order = [-1] * len(self.layer), [-1] * len(self.layer), [0]
        for node in order:
            for k in self.at[node]:
                if k in self.inside and k != by[node]:
                    u, v = self.edges[k]
                    other = v if u == node else u
                    parent[other], by[other] = node, k
                    order.append(other)
        return order, parent, by

    def exchange(self) -> bool:
        """Exchange one edge of the tree for a better one; False where there is none."""
        order, parent, by = self._orders()
        # Edges that leave less those that enter the part below each node: its cut value, but for the sign.
        flow = [0] * len(self.layer)
        for u, v in self.edges:
            flow[u] += 1
            flow[v] -= 1
        for node in reversed(order[1:]):
            flow[parent[node]] += flow[node]
        # The part below `node` may move down while more edges leave it than enter (or up, the other way round), as far
        # as the shortest edge allows that gets shorter.
        count = len(order)
        for i in range(1, count):
            node = order[1 + (self.searched + i) % (count - 1)]
            down = self.edges[by[node]][1] == node  # the tree edge enters: moving down makes it longer
            if (flow[node] > 0) if down else (flow[node] < 0):
                self.searched = (self.searched + i) % (count - 1)
                self._move(node, parent, by, order, down)
                return True
        return False

    def _move(self, node: int, parent: list[int], by: list[int], order: list[int], down: bool) -> None:
        below = [False] * len(self.layer)
        below[node] = True
        for other in order[1:]:
            below[other] = below[other] or below[parent[other]]
        limits = [k for k, (u, v) in enumerate(self.edges) if below[u] != below[v] and below[u if down else v]]
        k = min(limits, key=lambda k: (self._slack(k), k))
        shift = self._slack(k) if down else -self._slack(k)
        for other in range(len(self.layer)):
            if below[other]:
                self.layer[other] += shift
        self.inside.discard(by[node])
        self.inside.add(k)


def _balanced(layer: list[int], edges: Sequence[Edge]) -> list[int]:
    """Nodes that may stand in several layers at the same total span move to the emptiest of these."""
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for u, v in edges:
        below[u].append(v)
        above[v].append(u)
    count = [0] * (max(layer) + 1)
    for value in layer:
        count[value] += 1
    for v in range(len(layer)):
        if len(above[v]) == len(below[v]) and above[v]:
            low, high = max(layer[u] for u in above[v]) + 1, min(layer[u] for u in below[v])
            best = min(
                range(low, high), key=lambda k: (count[k] - (k == layer[v]), abs(k - layer[v])), default=layer[v]
            )
            count[layer[v]] -= 1
            count[best] += 1
            layer[v] = best
    return layer
