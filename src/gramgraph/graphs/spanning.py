"""The heaviest tree over some nodes of a weighted graph."""

from __future__ import annotations

from gramgraph.typing import FloatArray


def spanning_tree(weights: FloatArray, nodes: list[int], root: int) -> dict[int, int]:
    """Child → parent in the heaviest tree over the nodes, all edges pointing away from the root (Prim)."""
    parent: dict[int, int] = {}
    inside = [root]
    outside = [v for v in nodes if v != root]
    nearest = dict.fromkeys(outside, root)
    while outside:
        best = max(outside, key=lambda v: (weights[nearest[v], v], -v))
        parent[best] = nearest[best]
        inside.append(best)
        outside.remove(best)
        for v in outside:
            if weights[best, v] > weights[nearest[v], v]:
                nearest[v] = best
    return parent
