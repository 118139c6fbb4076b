"""To and from networkx, which is loaded only here and only when asked for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from gramgraph.exceptions import ModelError
from gramgraph.graphs.directed import Digraph
from gramgraph.graphs.junction import JunctionTree
from gramgraph.graphs.undirected import UndirectedGraph


def _networkx() -> Any:
    try:
        import networkx
    except ImportError as error:
        raise ImportError("This conversion needs networkx: pip install networkx.") from error
    return networkx


def to_networkx(graph: Digraph | UndirectedGraph | JunctionTree, labels: Sequence[Hashable] | None = None) -> Any:
    """The graph as ``networkx.DiGraph`` or ``networkx.Graph``, its nodes named by ``labels`` (default 0..n-1).

    A junction tree becomes a ``Graph`` whose nodes are the cliques (as tuples, of labels if given) and whose edges
    carry the attribute ``separator``.

    Parameters
    ----------
    graph : the graph, on positions.
    labels : names of the nodes.

    Examples
    --------
    >>> from gramgraph.graphs import Digraph
    >>> sorted(to_networkx(Digraph.from_edges(2, [(0, 1)]), labels=["a", "b"]).edges)
    [('a', 'b')]
    """
    networkx = _networkx()
    if isinstance(graph, JunctionTree):
        return _tree_to_networkx(networkx, graph, labels)
    names = range(graph.n) if labels is None else _checked(labels, graph.n)
    result = networkx.DiGraph() if isinstance(graph, Digraph) else networkx.Graph()
    result.add_nodes_from(names)
    result.add_edges_from((names[a], names[b]) for a, b in graph.edges())
    return result


def _tree_to_networkx(networkx: Any, tree: JunctionTree, labels: Sequence[Hashable] | None) -> Any:
    def named(nodes: Iterable[int]) -> tuple[Hashable, ...]:
        return tuple(nodes) if labels is None else tuple(labels[v] for v in nodes)

    result = networkx.Graph()
    result.add_nodes_from(named(clique) for clique in tree.cliques)
    for above, below in tree.edges():
        result.add_edge(named(tree.cliques[above]), named(tree.cliques[below]), separator=named(tree.separators[below]))
    return result


def _checked(labels: Sequence[Hashable], n: int) -> Sequence[Hashable]:
    if len(labels) != n or len(set(labels)) != n:
        raise ModelError(f"Expected {n} different labels, got {len(labels)} ({len(set(labels))} different).")
    return labels


def digraph_from_networkx(graph: Any) -> tuple[Digraph, tuple[Hashable, ...]]:
    """``(graph, labels)`` of a directed networkx graph: node i is ``labels[i]``, in the order of ``graph.nodes``.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> import networkx as nx
    >>> graph, labels = digraph_from_networkx(nx.DiGraph([("a", "b")]))
    >>> graph.edges(), labels
    (((0, 1),), ('a', 'b'))
    """
    if not graph.is_directed():
        raise ModelError("Expected a directed networkx graph. For undirected ones: undirected_from_networkx.")
    labels, edges = _numbered(graph)
    return Digraph.from_edges(len(labels), edges), labels


def undirected_from_networkx(graph: Any) -> tuple[UndirectedGraph, tuple[Hashable, ...]]:
    """``(graph, labels)`` of an undirected networkx graph: node i is ``labels[i]``, in the order of ``graph.nodes``.

    Parameters
    ----------
    graph : the graph, on positions.

    Examples
    --------
    >>> import networkx as nx
    >>> graph, labels = undirected_from_networkx(nx.Graph([("a", "b")]))
    >>> graph.edges(), labels
    (((0, 1),), ('a', 'b'))
    """
    if graph.is_directed():
        raise ModelError("Expected an undirected networkx graph. For directed ones: digraph_from_networkx.")
    labels, edges = _numbered(graph)
    return UndirectedGraph.from_edges(len(labels), edges), labels


def _numbered(graph: Any) -> tuple[tuple[Hashable, ...], list[tuple[int, int]]]:
    labels = tuple(graph.nodes)
    number = {label: i for i, label in enumerate(labels)}
    return labels, [(number[a], number[b]) for a, b in graph.edges()]
