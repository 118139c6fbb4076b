"""Triangulation, cliques and junction trees: from any undirected graph to a tree of cliques."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from typing import Literal, SupportsIndex, get_args

import numpy as np

from gramgraph._validation import generator
from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.graphs._nodes import Edge, Nodes
from gramgraph.graphs.undirected import UndirectedGraph, is_chordal, maximal_cliques
from gramgraph.typing import Array, FloatArray, IntArray, RandomState

Heuristic = Literal["min_fill", "min_weight", "weighted_min_fill", "best"]
_MODES = {"min_fill": (0,), "min_weight": (1,), "weighted_min_fill": (2,), "best": (0, 1, 2)}
# Noise that proved useful for restarts: in edges for min-fill, in log size for the two weighted rules.
_NOISE = {0: (0.5, 1.5, 3.0), 1: (0.2, 0.7, 1.5), 2: (0.2, 0.7, 1.5)}


@dataclass(frozen=True, slots=True)
class Triangulation:
    """An elimination order with the edges it adds and the maximal cliques that result.

    ``log_size`` is the natural logarithm of the summed table sizes of the cliques.

    Parameters
    ----------
    order : in which nodes are eliminated.
    fill_edges : edges that were added.
    cliques : sets of nodes, as tuples.
    log_size : logarithm of the sum of the cliques' table sizes.

    Examples
    --------
    >>> found = triangulate(UndirectedGraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)]))
    >>> len(found.fill_edges), len(found.cliques)
    (1, 2)
    """

    order: tuple[int, ...]
    fill_edges: tuple[Edge, ...]
    cliques: tuple[tuple[int, ...], ...]
    log_size: float

    @property
    def width(self) -> int:
        """Size of the largest clique less one."""
        return max(map(len, self.cliques), default=0) - 1


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Cliques joined as a forest so that the cliques of any one node hang together (running intersection).

    ``parent[i]`` is the clique above clique i, -1 for a root; ``separators[i]`` is what the two share, () for a root;
    ``order`` lists the cliques with parents first.

    Parameters
    ----------
    cliques : sets of nodes, as tuples.
    parent : for each clique the position of the one above, −1 at a root.
    separators : what a clique shares with the one above.
    order : in which nodes are eliminated.

    Examples
    --------
    >>> tree = junction_tree(UndirectedGraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)]))
    >>> tree.cliques, tree.separators
    (((0, 1, 3), (1, 2, 3)), ((), (1, 3)))
    >>> tree.has_running_intersection()
    True
    """

    cliques: tuple[tuple[int, ...], ...]
    parent: tuple[int, ...]
    separators: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]

    @property
    def width(self) -> int:
        """Size of the largest clique less one."""
        return max(map(len, self.cliques), default=0) - 1

    def edges(self) -> tuple[Edge, ...]:
        """All edges ``(parent, child)`` between cliques, parents first."""
        return tuple((self.parent[k], k) for k in self.order if self.parent[k] >= 0)

    def containing(self, nodes: Nodes) -> int | None:
        """The smallest clique that holds all ``nodes`` (ties: lower index), or None."""
        wanted = {index(v) for v in (nodes if isinstance(nodes, Iterable) else (nodes,))}
        holders = [k for k, clique in enumerate(self.cliques) if wanted.issubset(clique)]
        return min(holders, key=lambda k: (len(self.cliques[k]), k), default=None)

    def has_running_intersection(self) -> bool:
        """Whether each node's cliques form one connected piece of the forest.  Cost O(sum of clique sizes)."""
        tops: dict[int, int] = {}
        for k, clique in enumerate(self.cliques):
            above = frozenset(self.cliques[self.parent[k]]) if self.parent[k] >= 0 else frozenset()
            for v in clique:
                if v not in above:
                    tops[v] = tops.get(v, 0) + 1
        return all(count == 1 for count in tops.values())


def induced_width(graph: UndirectedGraph, order: Iterable[SupportsIndex]) -> int:
    """The most neighbors that a node has when its turn comes, if nodes are eliminated in this order.

    Eliminating a node links its neighbors and takes it away.  Cost O(n · width²).

    Parameters
    ----------
    graph : the graph, on positions.
    order : in which nodes are eliminated.

    Examples
    --------
    >>> star = UndirectedGraph.from_edges(4, [(0, 1), (0, 2), (0, 3)])
    >>> induced_width(star, [1, 2, 3, 0]), induced_width(star, [0, 1, 2, 3])
    (1, 3)
    """
    nodes = [index(v) for v in order]
    if sorted(nodes) != list(range(graph.n)):
        raise ModelError(f"An elimination order holds each of the {graph.n} nodes once, got {len(nodes)} entries.")
    near = [set(row) for row in graph.neighbors]
    width = 0
    for v in nodes:
        width = max(width, len(near[v]))
        for u in near[v]:
            near[u] |= near[v]
            near[u] -= {u, v}
    return width


def triangulate(
    graph: UndirectedGraph,
    sizes: Sequence[int] | Array | None = None,
    *,
    heuristic: Heuristic = "min_fill",
    tries: int = 1,
    random_state: RandomState = 0,
) -> Triangulation:
    """Add edges until the graph is chordal, by greedy elimination.

    ``sizes`` are the numbers of states (default 2 each).  Next goes the node whose elimination adds fewest edges
    ("min_fill"), makes the smallest table ("min_weight"), or adds edges with the smallest sum of size products
    ("weighted_min_fill"); "best" runs all three and keeps the order with the smallest summed table size.  With
    ``tries`` > 1 each rule is repeated that often, after the first time with noise on its key, and the best is kept.

    Parameters
    ----------
    graph : the graph, on positions.
    sizes : states of each node.
    heuristic : name of the rule that picks the next node.
    tries : orders that are tried; the best is kept.
    random_state : seed of ties.

    Examples
    --------
    >>> square = UndirectedGraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> triangulate(square, sizes=[2, 5, 2, 5]).fill_edges
    ((0, 2),)
    """
    from gramgraph._numerics.tree import clique_forests, triangulation

    log_sizes = _log_sizes(sizes, graph.n)
    everyone = np.ones(graph.n, np.uint8)
    edges = np.array(graph.edges(), np.int64).reshape(-1)
    adj = triangulation.build_adjacency(graph.n, np.arange(0, len(edges) + 1, 2, dtype=np.int64), edges, everyone)
    order, ptr, idx = search_order(
        adj, log_sizes, everyone, heuristic=heuristic, tries=tries, random_state=random_state
    )
    maximal_ptr, maximal_idx = clique_forests.maximal_cliques(order, ptr, idx)
    return Triangulation(
        order=tuple(order.tolist()),
        fill_edges=_fill_edges(graph, _tuples(ptr, idx), order.tolist()),
        cliques=_tuples(maximal_ptr, maximal_idx),
        log_size=float(clique_forests.total_log_size(maximal_ptr, maximal_idx, log_sizes)),
    )


def search_order(
    adj: Array,
    log_sizes: FloatArray,
    keep: Array,
    *,
    heuristic: Heuristic = "best",
    tries: int = 1,
    random_state: RandomState = 0,
) -> tuple[IntArray, IntArray, IntArray]:
    """The best of several greedy eliminations, on arrays: ``(order, clique_ptr, clique_idx)``.

    Arguments as in `_numerics.tree.triangulation.eliminate`; "best" is the smallest sum of table sizes over maximal
    cliques, and the first of equals is kept.

    Parameters
    ----------
    adj : for each node its neighbors, as bits of a row of words.
    log_sizes : logarithms of the numbers of states.
    keep : which nodes take part.
    heuristic : name of the rule that picks the next node.
    tries : orders that are tried; the best is kept.
    random_state : seed of ties.

    Examples
    --------
    >>> bits = np.array([[0b010], [0b101], [0b010]], dtype=np.uint64)  # the chain 0 - 1 - 2
    >>> order, _, _ = search_order(bits, np.log([2.0, 2.0, 2.0]), np.ones(3, dtype=np.uint8))
    >>> sorted(order.tolist())
    [0, 1, 2]
    """
    from gramgraph._numerics.tree import clique_forests, triangulation

    if heuristic not in _MODES:
        raise ModelError(
            f"Unknown heuristic {heuristic!r}. Expected one of: {', '.join(get_args(Heuristic))}."
            f"{did_you_mean(heuristic, _MODES)}"
        )
    if tries < 1:
        raise ModelError(f"`tries` counts the runs of each rule and must be at least 1, got {tries}.")
    rng = generator(random_state)
    n = len(log_sizes)
    best = None
    best_size = np.inf
    for attempt in range(tries):
        for mode in _MODES[heuristic]:
            scale = _NOISE[mode][attempt % 3] if attempt else 0.0
            noise = scale * rng.random(n) if attempt else np.zeros(n)
            found = triangulation.eliminate(adj, log_sizes, keep, mode, noise)
            if len(_MODES[heuristic]) * tries == 1:
                return found
            size = clique_forests.total_log_size(*clique_forests.maximal_cliques(*found), log_sizes)
            if best is None or size < best_size:
                best, best_size = found, size
    assert best is not None
    return best


def junction_tree(
    graph: UndirectedGraph,
    sizes: Sequence[int] | Array | None = None,
    *,
    heuristic: Heuristic = "min_fill",
    tries: int = 1,
    random_state: RandomState = 0,
) -> JunctionTree:
    """A junction tree (one tree for each component) of the graph, triangulated first if it is not chordal.

    The forest has the largest possible separators in sum, which is the same as running intersection; each component
    is rooted at the clique with the largest table.

    Parameters
    ----------
    graph : the graph, on positions.
    sizes : states of each node.
    heuristic : name of the rule that picks the next node.
    tries : orders that are tried; the best is kept.
    random_state : seed of ties.

    Examples
    --------
    >>> tree = junction_tree(UndirectedGraph.from_edges(3, [(0, 1), (1, 2)]))
    >>> sorted(tree.cliques), tree.width
    ([(0, 1), (1, 2)], 1)
    """
    if is_chordal(graph):
        cliques = maximal_cliques(graph)
    else:
        found = triangulate(graph, sizes, heuristic=heuristic, tries=tries, random_state=random_state)
        cliques = tuple(sorted(found.cliques))
    return _forest(cliques, graph.n, _log_sizes(sizes, graph.n))


def _forest(cliques: tuple[tuple[int, ...], ...], n: int, log_sizes: FloatArray) -> JunctionTree:
    from gramgraph._numerics.tree import clique_forests

    ptr = np.zeros(len(cliques) + 1, np.int64)
    np.cumsum([len(clique) for clique in cliques], out=ptr[1:])
    idx = np.array([v for clique in cliques for v in clique], np.int64)
    parent, order = clique_forests.junction_forest(ptr, idx, n, log_sizes)
    above = [frozenset(cliques[p]) if p >= 0 else frozenset() for p in parent.tolist()]
    return JunctionTree(
        cliques=cliques,
        parent=tuple(parent.tolist()),
        separators=tuple(tuple(v for v in clique if v in above[k]) for k, clique in enumerate(cliques)),
        order=tuple(order.tolist()),
    )


def _log_sizes(sizes: Sequence[int] | Array | None, n: int) -> FloatArray:
    if sizes is None:
        return np.full(n, np.log(2.0))
    values = np.asarray(sizes, np.float64)
    if values.shape != (n,):
        raise ModelError(f"Expected one size for each of {n} nodes, got an array of shape {values.shape}.")
    if n and not values.min() >= 1:
        raise ModelError(f"Sizes are numbers of states, at least 1, got {values.min()}.")
    return np.log(values)


def _tuples(ptr: IntArray, idx: IntArray) -> tuple[tuple[int, ...], ...]:
    members, ends = idx.tolist(), ptr.tolist()
    return tuple(tuple(members[a:b]) for a, b in pairwise(ends))


def _fill_edges(graph: UndirectedGraph, cliques: Iterable[tuple[int, ...]], order: Sequence[int]) -> tuple[Edge, ...]:
    # In the chordal graph the neighbors of order[i] that come later are the rest of clique i.
    near = [frozenset(row) for row in graph.neighbors]
    return tuple(
        sorted(
            (min(v, u), max(v, u))
            for v, clique in zip(order, cliques, strict=True)
            for u in clique
            if u != v and u not in near[v]
        )
    )
