import itertools
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError
from gramgraph.graphs import (
    Digraph,
    PartialDigraph,
    consistent_extension,
    cpdag,
    independencies,
    is_acyclic,
    markov_equivalent,
    meek_closure,
    skeleton,
    v_structures,
)


@cache
def all_dags(n):
    pairs = list(itertools.combinations(range(n), 2))
    found = []
    for choice in itertools.product((0, 1, 2), repeat=len(pairs)):
        edges = [(a, b) if c == 1 else (b, a) for (a, b), c in zip(pairs, choice, strict=True) if c]
        graph = Digraph.from_edges(n, edges)
        if is_acyclic(graph):
            found.append(graph)
    return tuple(found)


@cache
def classes(n):
    """DAGs grouped by the independencies they state."""
    groups = {}
    for graph in all_dags(n):
        groups.setdefault(independencies(graph), []).append(graph)
    return tuple(map(tuple, groups.values()))


def common_pattern(members):
    """Edges directed alike in all members stay directed."""
    n = members[0].n
    shared = set(members[0].edges())
    for graph in members[1:]:
        shared &= set(graph.edges())
    loose = [e for e in skeleton(members[0]).edges() if e not in shared and e[::-1] not in shared]
    return PartialDigraph.from_edges(n, directed=shared, undirected=loose)


def v_pattern(graph):
    into = {edge for a, c, b in v_structures(graph) for edge in ((a, c), (b, c))}
    loose = [e for e in graph.edges() if e not in into]
    return PartialDigraph.from_edges(graph.n, directed=into, undirected=loose)


def test_there_are_as_many_dags_and_classes_as_known():
    # OEIS A003024 and A007984.
    assert [len(all_dags(n)) for n in (1, 2, 3, 4)] == [1, 3, 25, 543]
    assert [len(classes(n)) for n in (1, 2, 3, 4)] == [1, 2, 11, 185]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_cpdag_is_what_all_equivalent_dags_share(n):
    patterns = set()
    for members in classes(n):
        want = common_pattern(members)
        assert {cpdag(graph) for graph in members} == {want}
        patterns.add(want)
    assert len(patterns) == len(classes(n))


def test_equivalence_is_equality_of_independencies():
    for first, second in itertools.combinations(classes(4), 2):
        assert not markov_equivalent(first[0], second[0])
    for members in classes(4):
        assert all(markov_equivalent(members[0], graph) for graph in members)


def test_meek_rules_complete_the_v_structures():
    for members in classes(4):
        assert meek_closure(v_pattern(members[0])) == cpdag(members[0])


def test_meek_rules_are_complete_with_known_directions():
    for members in classes(4):
        pattern = cpdag(members[0])
        for edge in pattern.undirected:
            for known in (edge, edge[::-1]):
                agreeing = [graph for graph in members if known in graph.edges()]
                given_more = PartialDigraph(
                    4, (*pattern.directed, known), tuple(e for e in pattern.undirected if e != edge)
                )
                assert meek_closure(given_more) == common_pattern(agreeing)


def test_extensions_are_members_of_the_class():
    for members in classes(4):
        assert consistent_extension(cpdag(members[0])) in members


@given(st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_extension_exists_exactly_if_some_dag_fits(choice):
    pairs = list(itertools.combinations(range(4), 2))
    directed = [(a, b) if c == 1 else (b, a) for (a, b), c in zip(pairs, choice, strict=True) if c in (1, 2)]
    loose = [pair for pair, c in zip(pairs, choice, strict=True) if c == 3]
    pattern = PartialDigraph.from_edges(4, directed=directed, undirected=loose)
    colliders = {
        (a, c, b)
        for c in range(4)
        for a, b in itertools.combinations(range(4), 2)
        if (a, c) in directed and (b, c) in directed and not pattern.skeleton().has_edge(a, b)
    }
    fitting = [
        graph
        for graph in all_dags(4)
        if skeleton(graph) == pattern.skeleton()
        and set(directed) <= set(graph.edges())
        and set(v_structures(graph)) == colliders
    ]
    found = consistent_extension(pattern)
    assert (found in fitting) if fitting else (found is None)


def test_chain_fork_and_collider():
    chain, fork, collider = (Digraph.from_edges(3, e) for e in ([(0, 1), (1, 2)], [(1, 0), (1, 2)], [(0, 1), (2, 1)]))
    assert markov_equivalent(chain, fork)
    assert not markov_equivalent(chain, collider)
    assert not markov_equivalent(chain, Digraph.from_edges(2, [(0, 1)]))
    assert cpdag(collider).directed == ((0, 1), (2, 1))


def test_larger_graph_by_both_routes():
    graph = Digraph.from_edges(
        9, [(0, 2), (1, 2), (2, 3), (4, 3), (3, 5), (4, 6), (7, 6), (7, 8), (5, 8), (2, 5), (0, 1)]
    )
    assert cpdag(graph) == meek_closure(v_pattern(graph))
    assert markov_equivalent(consistent_extension(cpdag(graph)), graph)


def test_faults_are_named():
    with pytest.raises(ModelError, match="0 -> 1 and 1 -> 0"):
        PartialDigraph.from_edges(2, directed=[(0, 1), (1, 0)])
    with pytest.raises(ModelError, match="also listed as undirected"):
        PartialDigraph.from_edges(2, directed=[(1, 0)], undirected=[(0, 1)])
    with pytest.raises(ModelError, match="cycle 0 -> 1 -> 0"):
        cpdag(Digraph.from_edges(2, [(0, 1), (1, 0)]))
