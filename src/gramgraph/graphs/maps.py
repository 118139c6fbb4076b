"""Independence maps: what a graph states against what a joint distribution holds.

All statements here are about pairs of nodes: x and y independent given a set.  For separation in graphs, and for the
comparison of a graph with a distribution, these say as much as statements about sets: X and Y ∪ W are separated given Z
exactly if X and Y are given Z, and X and W are given Z ∪ Y (decomposition, weak union and contraction).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike

from gramgraph.exceptions import ModelError
from gramgraph.graphs._nodes import Nodes, as_nodes
from gramgraph.graphs.directed import Digraph, topological_order
from gramgraph.graphs.separation import d_separated, separated
from gramgraph.graphs.undirected import UndirectedGraph
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.distributions import Gaussian

Node = TypeVar("Node", int, str)
Graph: TypeAlias = Digraph | UndirectedGraph
#: What a graph is compared with: a joint table, a Gaussian, or another graph for all that it states.
Joint: TypeAlias = Union[ArrayLike, "Gaussian", Digraph, UndirectedGraph]
Measure: TypeAlias = Callable[[tuple[int, ...], tuple[int, ...], tuple[int, ...]], float]


@dataclass(frozen=True, slots=True, order=True)
class Independence(Generic[Node]):
    """The statement that x and y are independent given ``given``: nodes in ascending order, or the names of a model.

    Parameters
    ----------
    x : position of the first node.
    y : position of the second node.
    given : nodes that are observed.

    Examples
    --------
    >>> print(Independence("rain", "sprinkler", ("cloudy",)))
    rain ⊥ sprinkler | cloudy
    """

    x: Node
    y: Node
    given: tuple[Node, ...] = ()

    def __str__(self) -> str:
        condition = f" | {', '.join(map(str, self.given))}" if self.given else ""
        return f"{self.x} ⊥ {self.y}{condition}"


def _questions(n: int, max_given: int | None) -> Iterator[Independence[int]]:
    for x, y in combinations(range(n), 2):
        others = [v for v in range(n) if v not in (x, y)]
        for size in range(len(others) + 1 if max_given is None else min(max_given, len(others)) + 1):
            for given in combinations(others, size):
                yield Independence(x, y, given)


def _holds(graph: Graph, statement: Independence[int]) -> bool:
    if isinstance(graph, Digraph):
        return d_separated(graph, statement.x, statement.y, statement.given)
    return separated(graph, statement.x, statement.y, statement.given)


def independencies(graph: Graph, *, max_given: int | None = None) -> tuple[Independence[int], ...]:
    """Every statement "x and y are independent given Z" that the graph makes, by pairs and then by size of Z.

    Cost O(n² 2ⁿ (n + m)): for small graphs, or with a bound ``max_given`` on the size of Z.

    Parameters
    ----------
    graph : the graph, on positions.
    max_given : most nodes in a condition.

    Examples
    --------
    >>> [str(s) for s in independencies(Digraph.from_edges(3, [(0, 2), (1, 2)]))]
    ['0 ⊥ 1']
    >>> [str(s) for s in independencies(UndirectedGraph.from_edges(3, [(0, 2), (1, 2)]))]
    ['0 ⊥ 1 | 2']
    """
    if isinstance(graph, Digraph):
        topological_order(graph)  # raises when there is a cycle
    return tuple(statement for statement in _questions(graph.n, max_given) if _holds(graph, statement))


def dependence(joint: ArrayLike, xs: Nodes, ys: Nodes, given: Nodes = ()) -> float:
    """How far the joint is from making xs and ys independent given Z.

    It is the largest |p(x, y | z) − p(x | z) p(y | z)| over x, y and z with p(z) > 0.

    ``joint`` has one axis for each variable and need not be normalized.  0 means independent.  Variables in ``given``
    count as constants in ``xs`` and ``ys``.  Cost: a few passes over the table.

    Parameters
    ----------
    joint : a table with one axis a variable, or what stands for a distribution.
    xs : nodes on one side.
    ys : nodes on the other side.
    given : nodes that are observed.

    Examples
    --------
    >>> dependence([[0.25, 0.25], [0.25, 0.25]], 0, 1), dependence([[0.5, 0.0], [0.0, 0.5]], 0, 1)
    (0.0, 0.25)
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

    Parameters
    ----------
    joint : a table with one axis a variable, or what stands for a distribution.
    xs : nodes on one side.
    ys : nodes on the other side.
    given : nodes that are observed.
    tol : below which a difference counts as none.

    Examples
    --------
    >>> xor = np.zeros((2, 2, 2))
    >>> xor[0, 0, 0] = xor[0, 1, 1] = xor[1, 0, 1] = xor[1, 1, 0] = 0.25
    >>> is_independent(xor, 0, 1), is_independent(xor, 0, 1, given=2)
    (True, False)
    """
    return dependence(joint, xs, ys, given) <= tol


def joint_independencies(
    joint: ArrayLike, *, max_given: int | None = None, tol: float = 1e-8
) -> tuple[Independence[int], ...]:
    """Every statement "x and y are independent given Z" that holds in the joint.  Cost O(n² 2ⁿ · table).

    Parameters
    ----------
    joint : a table with one axis a variable, or what stands for a distribution.
    max_given : most nodes in a condition.
    tol : below which a difference counts as none.

    Examples
    --------
    >>> [str(found) for found in joint_independencies(np.full((2, 2), 0.25))]
    ['0 ⊥ 1']
    """
    table = _probabilities(joint)
    return tuple(s for s in _questions(table.ndim, max_given) if _dependence(table, (s.x,), (s.y,), s.given) <= tol)


def is_i_map(graph: Graph, joint: Joint, *, tol: float = 1e-8) -> bool:
    """Whether all that the graph states holds in the joint: a table, a `Gaussian`, or another graph.

    A DAG is checked by n statements: each node is independent of its other predecessors given its parents.  For an
    undirected graph the pairs without an edge are checked given all other nodes where these statements imply the rest
    (other graphs, Gaussians of full rank), and every separation else, as tables may hold zeros.

    Dependence is measured by `dependence` in tables, and by the largest partial correlation in Gaussians.

    Parameters
    ----------
    graph : the graph, on positions.
    joint : a table with one axis a variable, or what stands for a distribution.
    tol : below which a difference counts as none.

    Examples
    --------
    >>> linked = np.array([[0.5, 0.0], [0.0, 0.5]])
    >>> is_i_map(Digraph.from_edges(2, []), linked), is_i_map(Digraph.from_edges(2, [(0, 1)]), linked)
    (False, True)
    """
    measure = _measure(graph, joint)
    if isinstance(graph, Digraph):
        order = topological_order(graph)
        above = [(v, tuple(u for u in order[:i] if u not in graph.parents[v])) for i, v in enumerate(order)]
        return all(not others or measure((v,), others, graph.parents[v]) <= tol for v, others in above)
    if _is_graphoid(joint):
        nodes = range(graph.n)
        apart = [pair for pair in combinations(nodes, 2) if pair[1] not in graph.neighbors[pair[0]]]
        rest = {pair: tuple(v for v in nodes if v not in pair) for pair in apart}
        return all(measure((x,), (y,), rest[x, y]) <= tol for x, y in apart)
    return all(measure((s.x,), (s.y,), s.given) <= tol for s in independencies(graph))


def is_d_map(graph: Graph, joint: Joint, *, tol: float = 1e-8) -> bool:
    """Whether the graph states all that holds in the joint.  Cost O(n² 2ⁿ · table); polynomial for two graphs.

    Parameters
    ----------
    graph : the graph, on positions.
    joint : a table with one axis a variable, or what stands for a distribution.
    tol : below which a difference counts as none.

    Examples
    --------
    >>> coins = np.full((2, 2), 0.25)
    >>> is_d_map(Digraph.from_edges(2, []), coins), is_d_map(Digraph.from_edges(2, [(0, 1)]), coins)
    (True, False)
    """
    measure = _measure(graph, joint)
    if isinstance(joint, Digraph | UndirectedGraph):
        return is_i_map(joint, graph)
    return all(_holds(graph, s) or measure((s.x,), (s.y,), s.given) > tol for s in _questions(graph.n, None))


def is_perfect_map(graph: Graph, joint: Joint, *, tol: float = 1e-8) -> bool:
    """Whether graph and joint agree on every independence: an I-map and a D-map.

    Parameters
    ----------
    graph : the graph, on positions.
    joint : a table with one axis a variable, or what stands for a distribution.
    tol : below which a difference counts as none.

    Examples
    --------
    >>> coins = np.full((2, 2), 0.25)
    >>> is_perfect_map(Digraph.from_edges(2, []), coins), is_perfect_map(Digraph.from_edges(2, [(0, 1)]), coins)
    (True, False)
    """
    return is_i_map(graph, joint, tol=tol) and is_d_map(graph, joint, tol=tol)


def _measure(graph: Graph, joint: Joint) -> Measure:
    """How far sets of nodes are from independent in the joint: 0 means independent."""
    if isinstance(joint, Digraph | UndirectedGraph):
        size, measure = joint.n, partial(_connected, joint)
    elif hasattr(joint, "cov"):
        size, measure = len(joint.cov), partial(_partial_correlation, joint.cov)
    else:
        table = _probabilities(joint)
        size, measure = table.ndim, partial(_dependence, table)
    if size != graph.n:
        raise ModelError(f"The joint needs one axis for each of the graph's {graph.n} nodes, got one with {size} axes.")
    return measure


def _is_graphoid(joint: Joint) -> bool:
    """Whether x ⊥ y | rest for all pairs without an edge implies every separation."""
    if isinstance(joint, Digraph | UndirectedGraph):
        return True
    return hasattr(joint, "cov") and np.linalg.matrix_rank(joint.cov) == len(joint.cov)


def _connected(graph: Graph, xs: tuple[int, ...], ys: tuple[int, ...], given: tuple[int, ...]) -> float:
    apart = d_separated if isinstance(graph, Digraph) else separated
    return float(not apart(graph, xs, ys, given))  # type: ignore[arg-type]


def _partial_correlation(cov: FloatArray, xs: tuple[int, ...], ys: tuple[int, ...], given: tuple[int, ...]) -> float:
    """The largest correlation of an x with a y that is left when both are regressed on ``given``."""
    ends = [*xs, *ys]
    S = cov[np.ix_(ends, ends)]
    if given:
        cross = cov[np.ix_(given, ends)]
        S = S - cross.T @ np.linalg.lstsq(cov[np.ix_(given, given)], cross, rcond=None)[0]
    spread = np.sqrt(np.clip(np.diag(S), 0.0, None))
    known = spread <= 1e-7 * np.sqrt(np.diag(cov)[ends])  # a function of ``given``: constant, and independent of all
    scale = np.where(known, np.inf, spread)
    return float(np.abs(S / np.outer(scale, scale))[: len(xs), len(xs) :].max(initial=0.0))


def _probabilities(joint: ArrayLike) -> FloatArray:
    table = np.asarray(joint, np.float64)
    if not np.all(np.isfinite(table)) or np.any(table < 0) or not table.sum() > 0:
        raise ModelError("A joint needs finite values, none below zero and not all zero.")
    return table / table.sum()
