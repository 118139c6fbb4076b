"""The heaviest tree over some nodes of a weighted graph."""

from __future__ import annotations

import numpy as np

from gramgraph.typing import FloatArray

#: Weights that differ by less, as a share of the largest one (of 1 at least), are equal but for rounding.
EQUAL = 1e-12


def spanning_tree(weights: FloatArray, nodes: list[int], root: int) -> dict[int, int]:
    """Child → parent in the heaviest tree over the nodes, all edges pointing away from the root (Prim).

    Of edges with equal weights the first one is taken: copies of a column have the same weights but for the order in
    which these were added up.
    """
    among = weights[np.ix_(nodes, nodes)]
    slack = EQUAL * max(1.0, float(np.abs(among[np.isfinite(among)]).max(initial=0.0)))
    parent: dict[int, int] = {}
    inside = [root]
    outside = [v for v in nodes if v != root]
    nearest = dict.fromkeys(outside, root)
    while outside:
        top = max(weights[nearest[v], v] for v in outside)
        best = min(v for v in outside if not weights[nearest[v], v] < top - slack)
        parent[best] = nearest[best]
        inside.append(best)
        outside.remove(best)
        for v in outside:
            if weights[best, v] > weights[nearest[v], v] + slack:
                nearest[v] = best
    return parent
