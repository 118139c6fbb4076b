import itertools
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError
from gramgraph.graphs import (
    Digraph,
    UndirectedGraph,
    active_trail,
    ancestral_set,
    barren,
    d_separated,
    dependence,
    descendants,
    markov_blanket,
    minimal_d_separator,
    reachable,
    requisite,
    separated,
    to_networkx,
    topological_order,
)
from tests.portions import examples


@st.composite
def dags(draw, min_nodes=2, max_nodes=6):
    n = draw(st.integers(min_nodes, max_nodes))
    rank = draw(st.permutations(range(n)))
    pairs = [(a, b) for a in range(n) for b in range(n) if rank[a] < rank[b]]
    return Digraph.from_edges(n, draw(st.lists(st.sampled_from(pairs), max_size=11, unique=True)))


@st.composite
def disjoint_sets(draw, n, count=3):
    part = draw(st.lists(st.integers(0, count), min_size=n, max_size=n))
    return [tuple(v for v in range(n) if part[v] == k) for k in range(count)]


def is_active(graph, trail, given):
    """The definition, literally: colliders have themselves or a descendant observed, other nodes are not observed."""
    for before, v, after in zip(trail, trail[1:], trail[2:], strict=False):
        if graph.has_edge(before, v) and graph.has_edge(after, v):
            if not {v, *descendants(graph, v)} & set(given):
                return False
        elif v in given:
            return False
    return True


def brute_force_separated(graph, xs, ys, given):
    undirected = to_networkx(graph).to_undirected()
    return not any(
        is_active(graph, trail, given)
        for x, y in itertools.product(xs, ys)
        for trail in nx.all_simple_paths(undirected, x, y)
    )


def random_tables(graph, rng):
    """p(v | parents) for binary variables, axes (parents ascending, v)."""
    return [rng.dirichlet([1.0, 1.0], size=(2,) * len(row)) for row in graph.parents]


def joint_of(graph, tables):
    joint = np.ones((2,) * graph.n)
    for v, table in enumerate(tables):
        axes = [*graph.parents[v], v]
        shape = [2 if u in axes else 1 for u in range(graph.n)]
        joint = joint * np.transpose(table, np.argsort(axes)).reshape(shape)
    return joint


@given(dags(), st.data())
def test_d_separation_is_the_path_definition(graph, data):
    xs, ys, given = data.draw(disjoint_sets(graph.n))
    assert d_separated(graph, xs, ys, given) == brute_force_separated(graph, xs, ys, given)


@given(dags(), st.data())
def test_d_separation_agrees_with_networkx(graph, data):
    xs, ys, given = data.draw(disjoint_sets(graph.n))
    if xs and ys:
        assert d_separated(graph, xs, ys, given) == nx.is_d_separator(to_networkx(graph), set(xs), set(ys), set(given))


@settings(max_examples=examples(60))
@given(dags(max_nodes=5), st.integers(0, 1000), st.data())
def test_d_separation_is_independence_in_a_random_network(graph, seed, data):
    # Random tables are faithful with probability one; 1e-11 lies far above rounding and far below these dependences.
    xs, ys, given = data.draw(disjoint_sets(graph.n))
    if xs and ys:
        joint = joint_of(graph, random_tables(graph, np.random.default_rng(seed)))
        assert d_separated(graph, xs, ys, given) == (dependence(joint, xs, ys, given) < 1e-11)


@given(dags(), st.data())
def test_reachable_is_one_pass_for_all_targets(graph, data):
    xs, given = data.draw(disjoint_sets(graph.n, count=2))
    others = [v for v in range(graph.n) if v not in xs and v not in given]
    want = {*xs} | {v for v in others if not brute_force_separated(graph, xs, [v], given)} if xs else set()
    assert set(reachable(graph, xs, given)) == want


@given(dags(), st.data())
def test_active_trail_is_a_witness(graph, data):
    xs, ys, given = data.draw(disjoint_sets(graph.n))
    trail = active_trail(graph, xs, ys, given)
    assert (trail is None) == d_separated(graph, xs, ys, given)
    if trail is not None:
        assert trail[0] in xs
        assert trail[-1] in ys
        assert len(set(trail)) == len(trail)
        assert all(graph.adjacent(a, b) for a, b in itertools.pairwise(trail))
        assert trail[0] not in given
        assert trail[-1] not in given
        assert is_active(graph, trail, given)


def test_observed_and_shared_nodes():
    chain = Digraph.from_edges(3, [(0, 1), (1, 2)])
    assert d_separated(chain, 0, 0, given=0)
    assert not d_separated(chain, 0, [0, 2], given=1)
    assert d_separated(chain, [0, 1], 2, given=1)
    assert active_trail(chain, 1, 1) == (1,)
    assert active_trail(chain, 0, 2, given=0) is None


def test_every_node_is_parted_from_the_rest_by_its_blanket():
    graph = Digraph.from_edges(7, [(0, 2), (1, 2), (2, 3), (4, 3), (3, 5), (4, 6)])
    for v in range(7):
        blanket = markov_blanket(graph, v)
        rest = [u for u in range(7) if u != v and u not in blanket]
        assert d_separated(graph, v, rest, blanket)
        assert all(not d_separated(graph, v, u, [b for b in blanket if b != u]) for u in blanket)


@settings(max_examples=examples(200))
@given(dags(), st.data())
def test_minimal_separator_separates_and_is_minimal(graph, data):
    xs, ys, required, banned = data.draw(disjoint_sets(graph.n, count=4))
    allowed = [v for v in range(graph.n) if v not in banned]
    free = [v for v in allowed if v not in (*xs, *ys, *required)]
    separators = [
        {*required, *extra}
        for size in range(len(free) + 1)
        for extra in itertools.combinations(free, size)
        if brute_force_separated(graph, xs, ys, (*required, *extra))
    ]
    found = minimal_d_separator(graph, xs, ys, required=required, allowed=allowed)
    if not separators:
        assert found is None
    else:
        assert found is not None
        assert set(found) in separators
        assert not any(other < set(found) for other in separators)


def test_no_separator_for_adjacent_nodes_and_bad_requests():
    graph = Digraph.from_edges(3, [(0, 1), (1, 2)])
    assert minimal_d_separator(graph, 0, 1) is None
    assert minimal_d_separator(graph, 0, 2) == (1,)
    assert minimal_d_separator(graph, 0, 2, allowed=()) is None
    with pytest.raises(ModelError, match="overlaps"):
        minimal_d_separator(graph, 0, 2, required=0)


@given(st.integers(2, 6), st.data())
def test_undirected_separation_is_no_path_left(n, data):
    pairs = list(itertools.combinations(range(n), 2))
    graph = UndirectedGraph.from_edges(n, data.draw(st.lists(st.sampled_from(pairs), max_size=9)))
    xs, ys, given = data.draw(disjoint_sets(n))
    rest = to_networkx(graph)
    rest.remove_nodes_from(given)
    assert separated(graph, xs, ys, given) == (not any(nx.has_path(rest, x, y) for x in xs for y in ys))


def posterior(joint, targets, evidence):
    """p(targets | e) for every assignment e: axes (targets, evidence)."""
    rest = tuple(v for v in range(joint.ndim) if v not in targets and v not in evidence)
    kept = [v for v in range(joint.ndim) if v not in rest]
    table = joint.sum(axis=rest).transpose([kept.index(v) for v in (*targets, *evidence)])
    return table / table.sum(axis=tuple(range(len(targets))), keepdims=True)


@settings(max_examples=examples(80))
@given(dags(max_nodes=6), st.integers(0, 1000), st.data())
def test_requisite_tables_and_evidence_are_exactly_those_that_matter(graph, seed, data):
    targets, evidence = data.draw(disjoint_sets(graph.n, count=2))
    found = requisite(graph, targets, evidence)
    if not targets:
        assert found.tables == found.evidence == ()
        return
    rng = np.random.default_rng(seed)
    tables = random_tables(graph, rng)
    before = posterior(joint_of(graph, tables), targets, evidence)
    for v in range(graph.n):
        other = random_tables(graph, rng)[v]
        after = posterior(joint_of(graph, [*tables[:v], other, *tables[v + 1 :]]), targets, evidence)
        assert (np.abs(after - before).max() > 1e-11) == (v in found.tables)
    for i, v in enumerate(evidence):
        axis = len(targets) + i
        assert (np.abs(np.diff(before, axis=axis)).max() > 1e-11) == (v in found.evidence)
    want = [v for v in range(graph.n) if d_separated(graph, targets, v, evidence)]
    assert list(found.irrelevant) == want
    assert not set(barren(graph, targets, evidence)) & set(found.tables)


def test_functions_of_observed_nodes_do_not_carry_dependence():
    graph = Digraph.from_edges(4, [(0, 1), (1, 2), (1, 3)])  # 1 = f(0)
    assert requisite(graph, 2, evidence=[0, 3]).evidence == (0, 3)
    assert requisite(graph, 2, evidence=[0, 3], deterministic=1).evidence == (0,)
    # With the input hidden the function is random again.
    assert requisite(graph, 2, evidence=3, deterministic=1).evidence == (3,)


@given(dags(), st.data())
def test_barren_nodes_are_those_outside_the_ancestral_set(graph, data):
    targets, evidence = data.draw(disjoint_sets(graph.n, count=2))
    kept = ancestral_set(graph, (*targets, *evidence))
    assert set(barren(graph, targets, evidence)) == set(range(graph.n)) - set(kept)


def test_large_graphs_are_linear_and_do_not_recurse():
    n = 30_000
    chain = Digraph.from_edges(n, [(i, i + 1) for i in range(n - 1)])
    assert d_separated(chain, 0, n - 1, given=n // 2)
    assert len(active_trail(chain, 0, n - 1)) == n
    star = Digraph.from_edges(n, [(i, n - 1) for i in range(n - 1)])
    assert minimal_d_separator(star, 0, 1) == ()
    assert requisite(star, 0, evidence=range(1, n - 1)).evidence == ()


HASH_SEED = """
from gramgraph.graphs import *
g = Digraph.from_edges(9, [(0, 2), (1, 2), (2, 3), (4, 3), (3, 5), (4, 6), (7, 6), (7, 8), (5, 8)])
print(minimal_d_separator(g, 0, 8), active_trail(g, 0, 7, given=8), requisite(g, 5, [8, 1]), cpdag(g))
print(consistent_extension(cpdag(g)), meek_closure(cpdag(g)), triangulate(moralize(g)), junction_tree(moralize(g)))
print(topological_order(g), markov_blanket(g, 3), connected_components(moralize(g)), v_structures(g))
"""


def test_nothing_depends_on_the_hash_seed():
    answers = set()
    for seed in ("0", "1", "77"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", HASH_SEED], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answers.add(done.stdout)
    assert len(answers) == 1


def test_topological_order_of_a_random_network_fits_its_joint():
    # The helper itself: a joint built from tables has these tables as conditionals.
    graph = Digraph.from_edges(4, [(2, 0), (3, 0), (3, 1), (0, 1)])
    assert topological_order(graph) == (2, 3, 0, 1)
    tables = random_tables(graph, np.random.default_rng(5))
    joint = joint_of(graph, tables)
    assert joint.sum() == pytest.approx(1.0)
    assert np.allclose(posterior(joint, (1,), (0, 3)), np.moveaxis(tables[1], -1, 0))
