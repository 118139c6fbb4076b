"""Trees from data: Chow–Liu, and the tree-augmented naive Bayes network."""

from __future__ import annotations

import numpy as np

from gramgraph.data.counts import Counts
from gramgraph.graphs.spanning import spanning_tree
from gramgraph.typing import FloatArray


def information_matrix(counts: Counts, given: int | None = None) -> FloatArray:
    """I(a; b), or I(a; b | given), of every pair of columns, in nats."""
    from gramgraph._numerics.counts.scores import mutual_information

    n = len(counts.variables)
    out = np.zeros((n, n))
    if given is None:
        counts.all_pairs()
    for i in range(n):
        for j in range(i + 1, n):
            if given is None:
                out[i, j] = mutual_information(counts.table((i, j)))
            elif given not in (i, j):
                table = counts.table((given, i, j))
                shares = table.sum(axis=(1, 2)) / max(table.sum(), 1)
                out[i, j] = sum(
                    share * mutual_information(part) for share, part in zip(shares, table, strict=True) if share > 0
                )
    return out + out.T


def chow_liu_parents(counts: Counts, root: int = 0) -> list[tuple[int, ...]]:
    """Parents in the tree with the largest likelihood: the heaviest spanning tree of mutual informations.

    Cost: one pass over all pairs of columns.
    """
    n = len(counts.variables)
    parent = spanning_tree(information_matrix(counts), list(range(n)), root)
    return [(parent[v],) if v in parent else () for v in range(n)]


def tan_parents(counts: Counts, target: int) -> list[tuple[int, ...]]:
    """Parents in the tree-augmented naive Bayes network: the class, and a tree among the features given the class."""
    features = [v for v in range(len(counts.variables)) if v != target]
    parent = spanning_tree(information_matrix(counts, target), features, features[0]) if features else {}
    return [
        () if v == target else (target, parent[v]) if v in parent else (target,) for v in range(len(counts.variables))
    ]
