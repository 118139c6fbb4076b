"""Trees from data: Chow–Liu, and the tree-augmented naive Bayes network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.data.counts import Counts
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.learn.structure import LearnedNetwork

__all__ = ["chow_liu", "chow_liu_parents", "information_matrix", "tan", "tan_parents"]


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


def _spanning_tree(weights: FloatArray, nodes: list[int], root: int) -> dict[int, int]:
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


def chow_liu_parents(counts: Counts, root: int = 0) -> list[tuple[int, ...]]:
    """Parents in the tree with the largest likelihood: the heaviest spanning tree of mutual informations.

    Cost: one pass over all pairs of columns.
    """
    n = len(counts.variables)
    parent = _spanning_tree(information_matrix(counts), list(range(n)), root)
    return [(parent[v],) if v in parent else () for v in range(n)]


def tan_parents(counts: Counts, target: int) -> list[tuple[int, ...]]:
    """Parents in the tree-augmented naive Bayes network: the class, and a tree among the features given the class."""
    features = [v for v in range(len(counts.variables)) if v != target]
    parent = _spanning_tree(information_matrix(counts, target), features, features[0]) if features else {}
    return [
        () if v == target else (target, parent[v]) if v in parent else (target,) for v in range(len(counts.variables))
    ]


def chow_liu(data: Any, root: str | None = None, **options: Any) -> LearnedNetwork:
    """The tree-shaped network with the largest likelihood, its edges pointing away from `root` (or the first column).

    `data` and `options` are those of `gg.learn_structure`, of which this is method="chow_liu".

    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(1000, random_state=0)
    >>> len(chow_liu(frame, root="smoke").edges)
    7
    """
    from gramgraph.learn.structure import learn_structure

    return learn_structure(data, method="chow_liu", root=root, **options)


def tan(data: Any, target: str, **options: Any) -> LearnedNetwork:
    """The tree-augmented naive Bayes network around the class in the column `target`.

    `data` and `options` are those of `gg.learn_structure`, of which this is method="tan".

    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(1000, random_state=0)
    >>> tan(frame, "dysp").parents("dysp")
    ()
    """
    from gramgraph.learn.structure import learn_structure

    return learn_structure(data, method="tan", target=target, **options)
