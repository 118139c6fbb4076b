"""All active trails, and where trails stop, against their definition on small graphs."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.graphs import Digraph, UndirectedGraph, active_trails, ancestral_set, openness, reachable, separated


def graphs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    edges = [(a, b) for a, b in combinations(range(n), 2) if rng.random() < 0.5]
    observed = [v for v in range(n) if rng.random() < 0.3]
    return n, edges, observed


def all_trails(n, edges, observed, a, b):
    """By definition: every path without repetition, looked at node by node."""
    graph = Digraph.from_edges(n, edges)
    opened = set(ancestral_set(graph, observed))
    arrows = set(edges)
    for size in range(n - 1):
        for inner in permutations([v for v in range(n) if v not in (a, b)], size):
            trail = (a, *inner, b)
            if any((u, v) not in arrows and (v, u) not in arrows for u, v in pairwise(trail)):
                continue
            if all(
                (v in opened) if (u, v) in arrows and (w, v) in arrows else v not in observed
                for u, v, w in zip(trail, trail[1:], trail[2:], strict=False)
            ):
                yield trail


@given(st.integers(0, 10_000))
def test_trails_are_all_paths_that_are_open(seed):
    n, edges, observed = graphs(seed)
    graph = Digraph.from_edges(n, edges)
    for a, b in permutations(range(n), 2):
        found = active_trails(graph, a, b, observed)
        wanted = set() if a in observed or b in observed else set(all_trails(n, edges, observed, a, b))
        assert set(found) == wanted
        assert list(map(len, found)) == sorted(map(len, found))


@given(st.integers(0, 10_000))
def test_the_edges_are_those_of_the_trails(seed):
    n, edges, observed = graphs(seed)
    graph = Digraph.from_edges(n, edges)
    for a in set(range(n)) - set(observed):
        found = openness(graph, a, observed)
        assert set(found.reached) == set(reachable(graph, a, observed)) - {a}
        used = {frozenset(e) for b in found.reached for t in active_trails(graph, a, b, observed) for e in pairwise(t)}
        assert {frozenset(edge) for edge in found.edges} >= used
        assert set(found.edges) <= set(edges)
        assert set(found.observed) <= set(observed)
        opened = set(ancestral_set(graph, observed))
        assert not set(found.closed) & opened


@given(st.integers(0, 10_000))
def test_undirected_paths_go_around_what_is_observed(seed):
    n, edges, observed = graphs(seed)
    graph = UndirectedGraph.from_edges(n, edges)
    for a in set(range(n)) - set(observed):
        found = openness(graph, a, observed)
        for b in set(range(n)) - set(observed) - {a}:
            joined = not separated(graph, a, b, observed)
            assert (b in found.reached) == joined == bool(active_trails(graph, a, b, observed))


def test_their_number_is_bounded():
    ladder = [(k, k + 1 + j) for k in range(0, 60, 3) for j in (0, 1)] + [
        (k + 1 + j, k + 3) for k in range(0, 60, 3) for j in (0, 1)
    ]
    found = active_trails(Digraph.from_edges(61, ladder), 0, 60, limit=50)
    assert len(found) <= 50
