"""Positions of the nodes of a drawing: layers from top to bottom, few crossings, straight edges.

Four steps on integers: (1) layers for which the edges together are as short as possible; (2) edges that span
several layers become chains of dummy nodes; (3) median sweeps order each layer, the order with the fewest crossings
is kept; (4) positions by least squares: in each layer Σ w (x − wanted)² is minimized under the order and the minimal
distances, which is isotonic regression and takes linear time. Components are drawn apart and packed on shelves.

Cost: O(sweeps · e log e) with e counted after step 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gramgraph.plot.layering import Component

Point = tuple[float, float]
Edge = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """Centers of the nodes, the points that each edge passes (tail first), and the size of the whole."""

    centers: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def layered_layout(
    n: int,
    edges: Sequence[Edge],  # (tail, head); tails stand above heads
    *,
    widths: Sequence[float],  # (n,) widths of the nodes
    heights: Sequence[float],  # (n,) heights of the nodes
    gap_x: float = 18.0,
    gap_y: float = 42.0,
    sweeps: int = 12,
) -> Layout:
    """Place n boxes and route the edges between them. A cycle is drawn too: one of its edges points upward.

    >>> lay = layered_layout(3, [(0, 1), (0, 2)], widths=[10, 10, 10], heights=[8, 8, 8])
    >>> lay.centers[1][0] < lay.centers[0][0] < lay.centers[2][0]
    True
    """
    pieces = []
    for nodes in _components(n, edges):
        local = {v: i for i, v in enumerate(nodes)}
        inner = [k for k, (u, _) in enumerate(edges) if u in local]
        piece = Component(
            [(local[edges[k][0]], local[edges[k][1]]) for k in inner],
            [widths[v] for v in nodes],
            [heights[v] for v in nodes],
            gap_x,
            gap_y,
        )
        pieces.append((nodes, inner, Layout(*piece.place(sweeps))))
    return _pack(n, len(edges), pieces, gap_x, gap_y)


def orient(n: int, edges: Sequence[Edge]) -> list[Edge]:
    """Directions for an undirected graph: away from a node in the middle, breadth first."""
    neighbors = _neighbors(n, edges)
    rank = [-1] * n
    count = 0
    for nodes in _components(n, edges):
        layer = [_middle(nodes, neighbors)]
        rank[layer[0]] = count
        count += 1
        while layer:
            following = []
            for u in layer:
                for v in neighbors[u]:
                    if rank[v] < 0:
                        rank[v] = count
                        count += 1
                        following.append(v)
            layer = following
    return [(u, v) if rank[u] <= rank[v] else (v, u) for u, v in edges]


def curve(route: Sequence[Point]) -> list[tuple[Point, Point, Point]]:
    """The cubic Bézier pieces (control, control, end) of a route; smooth everywhere.

    A route has two points in every layer that it touches: between these it is straight, from layer to layer it bends.
    """
    slopes: list[float] = []  # dx/dy at each point
    for (xa, ya), (xb, yb) in zip(route[::2], route[1::2], strict=True):
        slopes += [(xb - xa) / (yb - ya) if yb != ya else 0.0] * 2
    pieces = []
    for k in range(len(route) - 1):
        (xa, ya), (xb, yb) = route[k], route[k + 1]
        reach = (yb - ya) / 2 if k % 2 else (yb - ya) / 3
        if (xa, ya) != (xb, yb):
            pieces.append(((xa + slopes[k] * reach, ya + reach), (xb - slopes[k + 1] * reach, yb - reach), (xb, yb)))
    return pieces


# ------------------------------------------------------------------------------------------------ components


def _neighbors(n: int, edges: Sequence[Edge]) -> list[list[int]]:
    out: list[list[int]] = [[] for _ in range(n)]
    for u, v in edges:
        out[u].append(v)
        out[v].append(u)
    return out


def _middle(nodes: Sequence[int], neighbors: list[list[int]]) -> int:
    """The middle of a longest shortest path, found by two searches from its ends."""

    def farthest(start: int) -> tuple[int, dict[int, int]]:
        came = {start: -1}
        queue = [start]
        for u in queue:
            for v in neighbors[u]:
                if v not in came:
                    came[v] = u
                    queue.append(v)
        return queue[-1], came

    end, came = farthest(farthest(nodes[0])[0])
    path = [end]
    while came[path[-1]] >= 0:
        path.append(came[path[-1]])
    return path[len(path) // 2]


def _components(n: int, edges: Sequence[Edge]) -> list[list[int]]:
    neighbors = _neighbors(n, edges)
    seen = [False] * n
    out = []
    for start in range(n):
        if seen[start]:
            continue
        seen[start] = True
        found = [start]
        for u in found:
            for v in neighbors[u]:
                if not seen[v]:
                    seen[v] = True
                    found.append(v)
        out.append(sorted(found))
    return out


def _pack(
    n: int, n_edges: int, pieces: list[tuple[list[int], list[int], Layout]], gap_x: float, gap_y: float
) -> Layout:
    """Components on shelves, tallest first, so that the whole is a little wider than high."""
    area = sum((p.width + gap_x) * (p.height + gap_y) for _, _, p in pieces)
    limit = max([p.width for _, _, p in pieces] + [1.6 * area**0.5], default=0.0)
    centers: list[Point] = [(0.0, 0.0)] * n
    routes: list[tuple[Point, ...]] = [()] * n_edges
    left = top = shelf = width = 0.0
    for nodes, inner, piece in sorted(pieces, key=lambda item: (-item[2].height, item[0][0])):
        if left > 0.0 and left + piece.width > limit:
            left, top, shelf = 0.0, top + shelf + gap_y, 0.0
        for v, (x, y) in zip(nodes, piece.centers, strict=True):
            centers[v] = (x + left, y + top)
        for k, route in zip(inner, piece.routes, strict=True):
            routes[k] = tuple((x + left, y + top) for x, y in route)
        left += piece.width
        width = max(width, left)
        shelf = max(shelf, piece.height)
        left += 2.0 * gap_x
    return Layout(tuple(centers), tuple(routes), width, top + shelf)
