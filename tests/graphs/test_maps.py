"""Independence maps; the first tests are the worked examples of the field."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError
from gramgraph.graphs import (
    Digraph,
    Independence,
    UndirectedGraph,
    dependence,
    independencies,
    is_d_map,
    is_i_map,
    is_independent,
    is_perfect_map,
    joint_independencies,
    markov_equivalent,
    moralize,
)
from tests.portions import examples


@pytest.fixture
def two_coins():
    """A: first coin shows head, B: second coin shows head, C: both show the same."""
    joint = np.zeros((2, 2, 2))
    for a, b in itertools.product((0, 1), repeat=2):
        joint[a, b, int(a == b)] = 0.25
    return joint


THREE = [Digraph.from_edges(3, edges) for edges in ([(0, 2), (1, 2)], [(1, 0), (2, 0)], [(0, 1), (2, 1)])]


def test_two_coins_are_pairwise_independent_but_not_given_the_third(two_coins):
    for x, y, z in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        assert is_independent(two_coins, x, y)
        assert not is_independent(two_coins, x, y, given=z)
        assert dependence(two_coins, x, y, given=z) == pytest.approx(0.25)  # p(x, y | z) = 1/2 or 0 against 1/4
    assert not is_independent(two_coins, 0, [1, 2])
    assert joint_independencies(two_coins) == (Independence(0, 1), Independence(0, 2), Independence(1, 2))


def test_three_dags_serve_the_two_coins_equally_and_none_is_perfect(two_coins):
    for graph in THREE:
        assert is_i_map(graph, two_coins)
        assert not is_d_map(graph, two_coins)  # each hides two of the three independencies
        assert not is_perfect_map(graph, two_coins)
        for edge in graph.edges():  # and no edge can be spared
            fewer = Digraph.from_edges(3, [e for e in graph.edges() if e != edge])
            assert not is_i_map(fewer, two_coins)
    assert not any(markov_equivalent(a, b) for a, b in itertools.combinations(THREE, 2))
    # No DAG at all is perfect, and the only undirected I-map is complete.
    pairs = [(0, 1), (0, 2), (1, 2)]
    undirected = [UndirectedGraph.from_edges(3, e) for k in range(4) for e in itertools.combinations(pairs, k)]
    assert [len(g.edges()) for g in undirected if is_i_map(g, two_coins)] == [3]


def test_extreme_graphs_are_maps_of_anything():
    joint = np.random.default_rng(0).random((2, 3, 2, 2))
    full = [(a, b) for a, b in itertools.combinations(range(4), 2)]
    assert is_i_map(Digraph.from_edges(4, full), joint)
    assert is_i_map(UndirectedGraph.from_edges(4, full), joint)
    assert is_d_map(Digraph.from_edges(4, []), joint)
    assert is_d_map(UndirectedGraph.from_edges(4, []), joint)
    assert not is_i_map(Digraph.from_edges(4, []), joint)


def test_collider_has_no_perfect_undirected_map_and_the_square_no_perfect_dag():
    rng = np.random.default_rng(1)
    collider = Digraph.from_edges(3, [(0, 2), (1, 2)])
    p = np.einsum("a,b,abc->abc", rng.dirichlet([1, 1]), rng.dirichlet([1, 1]), rng.dirichlet([1, 1], size=(2, 2)))
    assert is_perfect_map(collider, p)
    pairs = list(itertools.combinations(range(3), 2))
    for k in range(4):
        for edges in itertools.combinations(pairs, k):
            assert not is_perfect_map(UndirectedGraph.from_edges(3, edges), p)

    square = UndirectedGraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    q = np.einsum("ab,bc,cd,da->abcd", *(rng.random((2, 2)) + 0.1 for _ in range(4)))
    assert is_perfect_map(square, q)
    pairs = list(itertools.combinations(range(4), 2))
    for choice in itertools.product((0, 1, 2), repeat=6):
        edges = [(a, b) if c == 1 else (b, a) for (a, b), c in zip(pairs, choice, strict=True) if c]
        graph = Digraph.from_edges(4, edges)
        try:
            assert not is_perfect_map(graph, q)
        except ModelError:  # a cycle
            continue


@st.composite
def networks(draw):
    n = draw(st.integers(2, 4))
    pairs = list(itertools.combinations(range(n), 2))
    graph = Digraph.from_edges(n, draw(st.lists(st.sampled_from(pairs), max_size=5, unique=True)))
    rng = np.random.default_rng(draw(st.integers(0, 500)))
    sizes = rng.integers(2, 4, n)
    joint = np.ones(sizes)
    for v, row in enumerate(graph.parents):
        table = rng.dirichlet(np.ones(sizes[v]), size=tuple(sizes[list(row)]))
        joint = joint * table.reshape([sizes[u] if u in (*row, v) else 1 for u in range(n)])
    return graph, joint


@settings(max_examples=examples(60))
@given(networks())
def test_a_random_network_is_a_perfect_map_of_its_joint(network):
    graph, joint = network
    assert is_perfect_map(graph, joint, tol=1e-11)
    assert is_perfect_map(graph, 7.0 * joint, tol=1e-11)
    assert joint_independencies(joint, tol=1e-11) == independencies(graph)
    assert is_i_map(moralize(graph), joint, tol=1e-11)


@settings(max_examples=examples(60))
@given(networks(), networks())
def test_i_and_d_map_are_inclusions_of_statements(first, second):
    graph, joint = first[0], second[1]
    if graph.n != joint.ndim:
        return
    stated, true = set(independencies(graph)), set(joint_independencies(joint, tol=1e-11))
    assert is_i_map(graph, joint, tol=1e-11) == (stated <= true)
    assert is_d_map(graph, joint, tol=1e-11) == (true <= stated)


def test_tolerance_does_not_shrink_with_rare_conditions():
    # x and y are equal, but only when z = 1, which is rare.
    joint = np.zeros((2, 2, 2))
    joint[:, :, 0] = 0.25 * (1 - 1e-9)
    joint[0, 0, 1] = joint[1, 1, 1] = 0.5e-9
    assert not is_independent(joint, 0, 1, given=2)


def test_states_that_cannot_happen_are_left_out():
    joint = np.zeros((2, 2, 2))
    joint[:, :, 0] = 0.25
    assert is_independent(joint, 0, 1, given=2)


def test_bound_on_the_size_of_the_condition():
    chain = Digraph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
    assert independencies(chain, max_given=0) == ()
    assert Independence(0, 2, (1,)) in independencies(chain, max_given=1)
    assert all(len(s.given) <= 1 for s in independencies(chain, max_given=1))
    assert str(Independence(0, 2, (1, 3))) == "0 ⊥ 2 | 1, 3"


def test_bad_joints_are_refused():
    graph = Digraph.from_edges(2, [])
    with pytest.raises(ModelError, match="2 nodes"):
        is_i_map(graph, np.ones((2, 2, 2)))
    with pytest.raises(ModelError, match="below zero"):
        is_i_map(graph, [[1.0, -1.0], [1.0, 1.0]])
    with pytest.raises(ModelError, match="share"):
        dependence(np.ones((2, 2)), 0, [0, 1])
