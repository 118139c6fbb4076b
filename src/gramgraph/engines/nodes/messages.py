"""A junction tree on logarithms of tables over nodes: few large cliques, whose numbers reach over any range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gramgraph.graphs import UndirectedGraph
from gramgraph.graphs.junction import junction_tree
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Tree:
    """Cliques of variables (by number), each under the one after it in the order of messages."""

    cliques: tuple[tuple[int, ...], ...]
    parent: tuple[int, ...]  # −1 for a root
    order: tuple[int, ...]  # every clique before its parent

    def home(self, members: Sequence[int]) -> int:
        """A clique that holds all members; the smallest."""
        found = [i for i, clique in enumerate(self.cliques) if set(members) <= set(clique)]
        return min(found, key=lambda i: len(self.cliques[i]))


def tree_of(n: int, scopes: Sequence[Sequence[int]], sizes: Sequence[int]) -> Tree:
    """A junction tree of n variables whose factors have these scopes."""
    edges = {(min(a, b), max(a, b)) for scope in scopes for a in scope for b in scope if a != b}
    made = junction_tree(UndirectedGraph.from_edges(n, sorted(edges)), sizes)
    return Tree(made.cliques, made.parent, made.order[::-1])


def clique_entries(tree: Tree, sizes: Sequence[int]) -> float:
    """Entries of the largest clique."""
    return max((float(np.prod([float(sizes[v]) for v in clique])) for clique in tree.cliques), default=1.0)


def _spread(logs: FloatArray, scope: Sequence[int], clique: Sequence[int]) -> FloatArray:
    """A table over part of a clique with axes of length 1 for the rest."""
    order = sorted(range(len(scope)), key=lambda k: clique.index(scope[k]))
    moved = np.transpose(logs, order)
    have = set(scope)
    shape = iter(moved.shape)
    return moved.reshape([next(shape) if v in have else 1 for v in clique])


def _log_sum(logs: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    if not axes:
        return logs
    top = logs.max(axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.squeeze(np.log(np.exp(logs - top).sum(axis=axes, keepdims=True)) + top, axis=axes))


def run(
    tree: Tree, factors: Sequence[tuple[Sequence[int], FloatArray]], sizes: Mapping[int, int] | Sequence[int]
) -> tuple[list[FloatArray], float]:
    """(beliefs of all cliques as logarithms of joint masses, log of the total)."""
    cliques = tree.cliques
    own = [np.zeros([sizes[v] for v in clique]) for clique in cliques]
    for scope, logs in factors:
        i = tree.home(scope)
        own[i] = own[i] + _spread(logs, scope, cliques[i])
    up: dict[int, FloatArray] = {}
    inner: dict[int, tuple[int, ...]] = {}
    for i in tree.order:
        j = tree.parent[i]
        if j < 0:
            continue
        shared = tuple(v for v in cliques[i] if v in cliques[j])
        inner[i] = shared
        up[i] = _log_sum(own[i], tuple(k for k, v in enumerate(cliques[i]) if v not in shared))
        own[j] = own[j] + _spread(up[i], shared, cliques[j])
    total = 0.0
    for i in tree.order:
        if tree.parent[i] < 0:
            total += float(_log_sum(own[i], tuple(range(own[i].ndim))))
    for i in reversed(tree.order):
        j = tree.parent[i]
        if j < 0:
            continue
        shared = inner[i]
        down = _log_sum(own[j], tuple(k for k, v in enumerate(cliques[j]) if v not in shared))
        clique_order = [v for v in cliques[j] if v in shared]
        back = np.transpose(down, [clique_order.index(v) for v in shared])
        with np.errstate(invalid="ignore"):
            rest = np.where(np.isfinite(up[i]), back - up[i], -np.inf)
        own[i] = own[i] + _spread(rest, shared, cliques[i])
    return own, total


def marginal(tree: Tree, beliefs: Sequence[FloatArray], members: Sequence[int]) -> FloatArray:
    """Joint masses of some variables of one clique, summing to one, axes in the order given."""
    i = tree.home(members)
    logs = _log_sum(beliefs[i], tuple(k for k, v in enumerate(tree.cliques[i]) if v not in members))
    left = [v for v in tree.cliques[i] if v in members]
    logs = np.transpose(logs, [left.index(v) for v in members])
    p = np.exp(logs - logs.max())
    return np.asarray(p / p.sum())
