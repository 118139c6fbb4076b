"""Independence maps: what a graph states against what a joint distribution holds.

All statements here are about pairs of nodes: x and y independent given a set.  For separation in graphs, and for the
comparison of a graph with a distribution, these say as much as statements about sets: X and Y ∪ W are separated given Z
exactly if X and Y are given Z, and X and W are given Z ∪ Y (decomposition, weak union and contraction).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from gramgraph.exceptions import ModelError
from gramgraph.graphs._nodes import Nodes, as_nodes
from gramgraph.graphs.directed import Digraph, topological_order
from gramgraph.graphs.separation import d_separated, separated
from gramgraph.graphs.undirected import UndirectedGraph
from gramgraph.typing import FloatArray

__all__ = [
    "Independence",
    "dependence",
    "independencies",
    "is_d_map",
    "is_i_map",
    "is_independent",
    "is_perfect_map",
    "joint_independencies",
]


@dataclass(frozen=True, slots=True, order=True)
class Independence:
    """The statement that nodes x < y are independent given the nodes ``given`` (ascending)."""

    x: int
    y: int
    given: tuple[int, ...] = ()

    def __str__(self) -> str:
        condition = f" | {', '.join(map(str, self.given))}" if self.given else ""
        return f"{self.x} ⊥ {self.y}{condition}"


def _questions(n: int, max_given: int | None) -> Iterator[Independence]:
    for x, y in combinations(range(n), 2):
        others = [v for v in range(n) if v not in (x, y)]
        for size in range(len(others) + 1 if max_given is None else min(max_given, len(others)) + 1):
            for given in combinations(others, size):
                yield Independence(x, y, given)


def _holds(graph: Digraph | UndirectedGraph, statement: Independence) -> bool:
    if isinstance(graph, Digraph):
        return d_separated(graph, statement.x, statement.y, statement.given)
    return separated(graph, statement.x, statement.y, statement.given)


def independencies(graph: Digraph | UndirectedGraph, *, max_given: int | None = None) -> tuple[Independence, ...]:
    """Every statement "x and y are independent given Z" that the graph makes, by pairs and then by size of Z.

    Cost O(n² 2ⁿ (n + m)): for small graphs, or with a bound ``max_given`` on the size of Z.

    >>> [str(s) for s in independencies(Digraph.from_edges(3, [(0, 2), (1, 2)]))]
    ['0 ⊥ 1']
    >>> [str(s) for s in independencies(UndirectedGraph.from_edges(3, [(0, 2), (1, 2)]))]
    ['0 ⊥ 1 | 2']
    """
    if isinstance(graph, Digraph):
        topological_order(graph)  # raises when there is a cycle
    return tuple(statement for statement in _questions(graph.n, max_given) if _holds(graph, statement))


def dependence(joint: ArrayLike, xs: Nodes, ys: Nodes, given: Nodes = ()) -> float:
    """How far the joint is from making xs and ys independent given Z: max over x, y, z with p(z) > 0 of

        |p(x, y | z) − p(x | z) p(y | z)|.

    ``joint`` has one axis for each variable and need not be normalized.  0 means independent.  Variables in ``given``
    count as constants in ``xs`` and ``ys``.  Cost: a few passes over the table.
    """
    table = _probabilities(joint)
    return _dependence(table, as_nodes(xs, table.ndim), as_nodes(ys, table.ndim), as_nodes(given, table.ndim))


def _dependence(table: FloatArray, xs: tuple[int, ...], ys: tuple[int, ...], given: tuple[int, ...]) -> float:
    xs, ys = tuple(v for v in xs if v not in given), tuple(v for v in ys if v not in given)
    if set(xs) & set(ys):
        raise ModelError(f"xs and ys must not share unobserved variables, got {xs} and {ys}.")
    used = (*given, *xs, *ys)
    rest = tuple(v for v in range(table.ndim) if v not in used)
    marginal = table.sum(axis=rest) if rest else table
    rank = {v: i for i, v in enumerate(sorted(used))}
    sizes = [int(np.prod([table.shape[v] for v in part], dtype=np.int64)) for part in (given, xs, ys)]
    p = marginal.transpose([rank[v] for v in used]).reshape(sizes)  # (z, x, y)
    p_z = p.sum(axis=(1, 2))
    p = p[p_z > 0] / p_z[p_z > 0, None, None]
    if p.size == 0:
        return 0.0
    return float(np.abs(p - p.sum(axis=2, keepdims=True) * p.sum(axis=1, keepdims=True)).max())


def is_independent(joint: ArrayLike, xs: Nodes, ys: Nodes, given: Nodes = (), *, tol: float = 1e-8) -> bool:
    """Whether xs and ys are independent given ``given`` in the joint, up to ``tol`` in `dependence`.

    >>> xor = np.zeros((2, 2, 2))
    >>> xor[0, 0, 0] = xor[0, 1, 1] = xor[1, 0, 1] = xor[1, 1, 0] = 0.25
    >>> is_independent(xor, 0, 1), is_independent(xor, 0, 1, given=2)
    (True, False)
    """
    return dependence(joint, xs, ys, given) <= tol


def joint_independencies(
    joint: ArrayLike, *, max_given: int | None = None, tol: float = 1e-8
) -> tuple[Independence, ...]:
    """Every statement "x and y are independent given Z" that holds in the joint.  Cost O(n² 2ⁿ · table)."""
    table = _probabilities(joint)
    return tuple(s for s in _questions(table.ndim, max_given) if _dependence(table, (s.x,), (s.y,), s.given) <= tol)


def is_i_map(graph: Digraph | UndirectedGraph, joint: ArrayLike, *, tol: float = 1e-8) -> bool:
    """Whether all that the graph states holds in the joint.

    A DAG is checked by n statements: each node is independent of its other predecessors given its parents.  For an
    undirected graph every separation is checked, since local statements imply the rest only if p > 0.
    """
    table = _matching(graph, joint)
    if isinstance(graph, UndirectedGraph):
        return all(_dependence(table, (s.x,), (s.y,), s.given) <= tol for s in independencies(graph))
    order = topological_order(graph)
    for i, v in enumerate(order):
        others = tuple(u for u in order[:i] if u not in graph.parents[v])
        if others and _dependence(table, (v,), others, graph.parents[v]) > tol:
            return False
    return True


def is_d_map(graph: Digraph | UndirectedGraph, joint: ArrayLike, *, tol: float = 1e-8) -> bool:
    """Whether the graph states all that holds in the joint.  Cost O(n² 2ⁿ · table)."""
    table = _matching(graph, joint)
    return all(_holds(graph, s) or _dependence(table, (s.x,), (s.y,), s.given) > tol for s in _questions(graph.n, None))


def is_perfect_map(graph: Digraph | UndirectedGraph, joint: ArrayLike, *, tol: float = 1e-8) -> bool:
    """Whether graph and joint agree on every independence: an I-map and a D-map.

    >>> coins = np.full((2, 2), 0.25)
    >>> is_perfect_map(Digraph.from_edges(2, []), coins), is_perfect_map(Digraph.from_edges(2, [(0, 1)]), coins)
    (True, False)
    """
    return is_i_map(graph, joint, tol=tol) and is_d_map(graph, joint, tol=tol)


def _probabilities(joint: ArrayLike) -> FloatArray:
    table = np.asarray(joint, np.float64)
    if not np.all(np.isfinite(table)) or np.any(table < 0) or not table.sum() > 0:
        raise ModelError("A joint needs finite values, none below zero and not all zero.")
    return table / table.sum()


def _matching(graph: Digraph | UndirectedGraph, joint: ArrayLike) -> FloatArray:
    table = _probabilities(joint)
    if table.ndim != graph.n:
        raise ModelError(
            f"The joint needs one axis for each of the graph's {graph.n} nodes, got an array with {table.ndim} axes."
        )
    return table
