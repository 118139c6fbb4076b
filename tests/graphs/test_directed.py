import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError, VariableError
from gramgraph.graphs import (
    Digraph,
    ancestors,
    ancestral_graph,
    ancestral_set,
    descendants,
    find_cycle,
    is_acyclic,
    is_polytree,
    markov_blanket,
    to_networkx,
    topological_order,
)


@st.composite
def digraphs(draw, max_nodes=7, acyclic=False):
    n = draw(st.integers(1, max_nodes))
    rank = draw(st.permutations(range(n)))
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b and (not acyclic or rank[a] < rank[b])]
    return Digraph.from_edges(n, draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else [])


def test_rows_are_sorted_and_values_are_equal_and_hashable():
    first, second = Digraph(((2, 1), (), ())), Digraph.from_edges(3, [(1, 0), (2, 0), (2, 0)])
    assert first == second
    assert hash(first) == hash(second)
    assert first.parents == ((1, 2), (), ())
    assert first.children == ((), (0,), (0,))
    assert first.has_edge(1, 0)
    assert not first.has_edge(0, 1)
    assert first.adjacent(0, 1)


def test_numpy_numbers_are_nodes():
    graph = Digraph.from_edges(3, np.array([[0, 1], [1, 2]]))
    assert ancestors(graph, np.int64(2)) == (0, 1)
    assert descendants(graph, np.array([1, 0])) == (1, 2)


@pytest.mark.parametrize("edge", [(0, 3), (-1, 0), (0, -1)])
def test_unknown_nodes_are_named(edge):
    with pytest.raises(VariableError, match=r"(3|-1) is not a node of this graph\. Nodes: 0 to 2"):
        Digraph.from_edges(3, [edge])
    with pytest.raises(VariableError, match="is not a node"):
        ancestors(Digraph.from_edges(3, []), edge)
    with pytest.raises(VariableError, match="node numbers"):
        ancestors(Digraph.from_edges(3, []), "HR")


def test_all_faults_are_listed_at_once():
    with pytest.raises(ModelError) as caught:
        Digraph(((0,), (5,)))
    assert len(caught.value.faults) == 2
    assert "own parent" in str(caught.value)


@given(digraphs())
def test_cycles_are_found_and_named(graph):
    cycle = find_cycle(graph)
    assert (cycle is None) == nx.is_directed_acyclic_graph(to_networkx(graph)) == is_acyclic(graph)
    if cycle is not None:
        assert len(set(cycle)) == len(cycle)
        assert cycle[0] == min(cycle)
        assert all(graph.has_edge(a, b) for a, b in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
        with pytest.raises(ModelError, match=" -> ".join(map(str, (*cycle, cycle[0])))):
            topological_order(graph)


@given(digraphs(acyclic=True))
def test_topological_order_is_the_lowest_first(graph):
    assert list(topological_order(graph)) == list(nx.lexicographical_topological_sort(to_networkx(graph)))


@given(digraphs(), st.data())
def test_ancestors_and_descendants(graph, data):
    nodes = data.draw(st.lists(st.integers(0, graph.n - 1), max_size=3))
    reach = nx.to_numpy_array(to_networkx(graph)) > 0
    for k in range(graph.n):  # Warshall: paths of one or more edges
        reach |= np.outer(reach[:, k], reach[k])
    assert ancestors(graph, nodes) == tuple(np.flatnonzero(reach[:, nodes].any(axis=1)))
    assert descendants(graph, nodes) == tuple(np.flatnonzero(reach[nodes].any(axis=0)))
    assert ancestral_set(graph, nodes) == tuple(sorted({*nodes, *ancestors(graph, nodes)}))
    kept, small = ancestral_graph(graph, nodes)
    assert {(kept[a], kept[b]) for a, b in small.edges()} == {(a, b) for a, b in graph.edges() if b in kept}


def test_markov_blanket():
    graph = Digraph.from_edges(7, [(0, 2), (1, 2), (2, 3), (4, 3), (3, 5), (4, 6)])
    assert markov_blanket(graph, 2) == (0, 1, 3, 4)
    assert markov_blanket(graph, 4) == (2, 3, 6)
    assert markov_blanket(graph, 5) == (3,)


@given(digraphs(acyclic=True))
def test_polytree_is_a_forest_without_directions(graph):
    assert is_polytree(graph) == nx.is_forest(to_networkx(graph).to_undirected())


def test_opposite_edges_are_no_polytree():
    assert not is_polytree(Digraph.from_edges(2, [(0, 1), (1, 0)]))


def test_cutting_incoming_edges():
    graph = Digraph.from_edges(4, [(0, 1), (1, 2), (3, 1)])
    assert graph.without_edges_into(1).edges() == ((1, 2),)
    assert graph.subgraph([3, 1, 2]).edges() == ((0, 1), (2, 0))


def test_long_chains_do_not_recurse():
    n = 20_000
    chain = Digraph.from_edges(n, [(i, i + 1) for i in range(n - 1)])
    assert topological_order(chain) == tuple(range(n))
    assert len(ancestors(chain, n - 1)) == n - 1
    assert find_cycle(Digraph.from_edges(n, [(i, (i + 1) % n) for i in range(n)])) == tuple(range(n))
