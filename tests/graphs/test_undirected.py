import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError
from gramgraph.graphs import (
    Digraph,
    JunctionTree,
    UndirectedGraph,
    connected_components,
    is_chordal,
    junction_tree,
    maximal_cliques,
    moralize,
    perfect_elimination_order,
    to_networkx,
    triangulate,
)
from gramgraph.graphs.cliques import every_maximal_clique

HEURISTICS = ["min_fill", "min_weight", "weighted_min_fill", "best"]


@st.composite
def graphs(draw, max_nodes=9):
    n = draw(st.integers(0, max_nodes))
    pairs = list(itertools.combinations(range(n), 2))
    return UndirectedGraph.from_edges(n, draw(st.lists(st.sampled_from(pairs), max_size=18)) if pairs else [])


def test_rows_are_checked_and_sorted():
    assert UndirectedGraph(((2, 1), (0,), (0,))) == UndirectedGraph.from_edges(3, [(1, 0), (0, 2), (2, 0)])
    with pytest.raises(ModelError, match="0 lists 1 as neighbor, but 1 does not list 0"):
        UndirectedGraph(((1,), ()))
    with pytest.raises(ModelError, match="self-loops"):
        UndirectedGraph.from_edges(2, [(1, 1)])


@given(st.integers(1, 7), st.data())
def test_moral_graph(n, data):
    pairs = list(itertools.combinations(range(n), 2))
    dag = Digraph.from_edges(n, data.draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else [])
    moral = moralize(dag)
    assert {frozenset(e) for e in moral.edges()} == {frozenset(e) for e in nx.moral_graph(to_networkx(dag)).edges()}


@given(graphs())
def test_components(graph):
    want = sorted(tuple(sorted(c)) for c in nx.connected_components(to_networkx(graph)))
    assert list(connected_components(graph)) == want


@given(graphs())
def test_chordality_and_cliques(graph):
    there = to_networkx(graph)
    # networkx calls graphs with fewer than four nodes chordal, and so do we.
    assert is_chordal(graph) == nx.is_chordal(there)
    if is_chordal(graph):
        assert maximal_cliques(graph) == tuple(sorted(tuple(sorted(c)) for c in nx.find_cliques(there)))
    else:
        assert perfect_elimination_order(graph) is None
        with pytest.raises(ModelError, match="triangulate"):
            maximal_cliques(graph)


@given(graphs(), st.sampled_from(HEURISTICS), st.integers(1, 3), st.integers(0, 99))
def test_triangulation_is_chordal_and_contains_the_graph(graph, heuristic, tries, seed):
    sizes = np.random.default_rng(seed).integers(1, 5, graph.n)
    found = triangulate(graph, sizes, heuristic=heuristic, tries=tries, random_state=seed)
    assert sorted(found.order) == list(range(graph.n))
    assert not set(found.fill_edges) & set(graph.edges())
    chordal = graph.with_edges(found.fill_edges)
    assert is_chordal(chordal)
    assert sorted(found.cliques) == list(maximal_cliques(chordal))
    if is_chordal(graph):
        assert found.fill_edges == ()
    total = sum(math.prod(int(sizes[v]) for v in clique) for clique in found.cliques)
    assert math.exp(found.log_size) == pytest.approx(total)
    # Playing the elimination by hand adds the same edges.
    rows = {v: set(row) for v, row in enumerate(graph.neighbors)}
    added = set()
    for v in found.order:
        near = rows.pop(v)
        added |= {(a, b) for a, b in itertools.combinations(sorted(near), 2) if b not in rows[a]}
        for u in near:
            rows[u] = (rows[u] | near) - {u, v}
    assert sorted(added) == list(found.fill_edges)


@given(graphs(), st.integers(0, 99))
def test_best_is_no_worse_than_each_rule_and_more_tries_do_not_hurt(graph, seed):
    sizes = np.random.default_rng(seed).integers(2, 6, graph.n)
    best = triangulate(graph, sizes, heuristic="best").log_size
    for heuristic in HEURISTICS[:3]:
        one = triangulate(graph, sizes, heuristic=heuristic)
        assert best <= one.log_size
        assert triangulate(graph, sizes, heuristic=heuristic, tries=4).log_size <= one.log_size


def test_restarts_are_reproducible_and_can_help():
    side = 6
    edges = [(i * side + j, i * side + j + 1) for i in range(side) for j in range(side - 1)]
    edges += [(i * side + j, i * side + side + j) for i in range(side - 1) for j in range(side)]
    grid = UndirectedGraph.from_edges(side * side, edges)
    first = triangulate(grid, heuristic="best", tries=20, random_state=3)
    assert first == triangulate(grid, heuristic="best", tries=20, random_state=3)
    assert first.log_size < triangulate(grid, heuristic="min_weight").log_size
    assert first.width >= side  # the treewidth of the grid


def test_weights_change_the_choice():
    square = UndirectedGraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    for heuristic in HEURISTICS:
        assert triangulate(square, [2, 9, 2, 9], heuristic=heuristic).fill_edges == ((0, 2),)
        assert triangulate(square, [9, 2, 9, 2], heuristic=heuristic).fill_edges == ((1, 3),)


def test_requests_that_make_no_sense():
    graph = UndirectedGraph.from_edges(2, [(0, 1)])
    with pytest.raises(ModelError, match="Did you mean 'min_fill'"):
        triangulate(graph, heuristic="minfill")
    with pytest.raises(ModelError, match="at least 1"):
        triangulate(graph, tries=0)
    with pytest.raises(ModelError, match="2 nodes"):
        triangulate(graph, sizes=[2])
    with pytest.raises(ModelError, match="numbers of states"):
        triangulate(graph, sizes=[2, 0])


@given(graphs(), st.sampled_from(HEURISTICS))
def test_junction_tree_has_running_intersection_and_holds_every_edge(graph, heuristic):
    tree = junction_tree(graph, heuristic=heuristic)
    assert tree.has_running_intersection()
    assert all(tree.containing(edge) is not None for edge in graph.edges())
    assert all(tree.containing(v) is not None for v in range(graph.n))
    assert sorted(tree.order) == list(range(len(tree.cliques)))
    place = {k: i for i, k in enumerate(tree.order)}
    for above, below in tree.edges():
        assert place[above] < place[below]
        assert set(tree.separators[below]) == set(tree.cliques[above]) & set(tree.cliques[below])
    assert tree.parent.count(-1) == len(connected_components(graph))
    there = to_networkx(tree)
    assert nx.is_forest(there) if tree.cliques else not there.nodes


def test_running_intersection_can_fail():
    bad = JunctionTree(((0, 1), (1, 2), (0, 2)), (-1, 0, 1), ((), (1,), (2,)), (0, 1, 2))
    assert not bad.has_running_intersection()


def test_asia_as_published():
    # visit, tuberculosis, smoking, cancer, bronchitis, either, x-ray, dyspnoea: Lauritzen and Spiegelhalter 1988
    asia = Digraph.from_edges(8, [(0, 1), (2, 3), (2, 4), (1, 5), (3, 5), (5, 6), (5, 7), (4, 7)])
    moral = moralize(asia)
    assert set(moral.edges()) - set(asia.edges()) == {(1, 3), (4, 5)}
    found = triangulate(moral)
    assert len(found.fill_edges) == 1
    assert sorted(map(len, found.cliques)) == [2, 2, 3, 3, 3, 3]
    assert math.exp(found.log_size) == pytest.approx(40)


@given(graphs())
def test_every_maximal_clique_of_any_graph(graph):
    expected = sorted(tuple(sorted(clique)) for clique in nx.find_cliques(to_networkx(graph)))
    assert every_maximal_clique(graph) == tuple(expected)
