"""The Numba loops of ``_numerics.tree.triangulation`` against slow, literal definitions."""

import itertools
import math
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph._numerics import compiling
from gramgraph._numerics.tree import clique_forests, search, sparse_elimination, triangulation
from gramgraph.compile import ordering


def csr(sets):
    ptr = np.zeros(len(sets) + 1, np.int64)
    ptr[1:] = np.cumsum([len(s) for s in sets])
    return ptr, np.array([v for s in sets for v in s], np.int64)


def unpack(ptr, idx):
    return [tuple(int(v) for v in idx[ptr[i] : ptr[i + 1]]) for i in range(len(ptr) - 1)]


@st.composite
def problems(draw, max_nodes=12):
    n = draw(st.integers(0, max_nodes))
    scopes = draw(st.lists(st.lists(st.integers(0, n - 1), max_size=5, unique=True), max_size=14)) if n else []
    sizes = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    keep = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    noise = draw(st.sampled_from([0.0, 1.7]))
    seed = draw(st.integers(0, 1000))
    return n, scopes, sizes, np.array(keep, bool), noise * np.random.default_rng(seed).random(n)


def literal_graph(n, scopes, keep):
    graph = {v: set() for v in range(n) if keep[v]}
    for scope in scopes:
        for a, b in itertools.permutations([v for v in scope if keep[v]], 2):
            graph[a].add(b)
    return graph


def literal_elimination(graph, log_sizes, sizes, mode, noise):
    """Greedy elimination with everything computed anew at each step."""
    graph = {v: set(nbrs) for v, nbrs in graph.items()}
    fixed = [round(x * triangulation.FIXED_POINT) for x in log_sizes]
    order, cliques = [], []

    def rank(v):
        missing = [(a, b) for a, b in itertools.combinations(sorted(graph[v]), 2) if b not in graph[a]]
        weight = fixed[v] + sum(fixed[u] for u in graph[v])
        if not missing:
            key = -math.inf
        elif mode == 0:
            key = len(missing) + noise[v]
        elif mode == 1:
            key = weight / triangulation.FIXED_POINT + noise[v]
        else:
            key = math.log1p(sum(float(sizes[a] * sizes[b]) for a, b in missing)) + noise[v]
        return key, weight, v

    while graph:
        v = min(graph, key=rank)
        order.append(v)
        nbrs = graph.pop(v)
        cliques.append(tuple(sorted({v, *nbrs})))
        for a in nbrs:
            graph[a] |= nbrs
            graph[a] -= {a, v}
    return order, cliques


def run(n, scopes, sizes, keep, mode, noise):
    log_sizes = np.log(np.array(sizes, float))
    adj = triangulation.build_adjacency(n, *csr(scopes), keep)
    before = adj.copy()
    order, ptr, idx = triangulation.eliminate(adj, log_sizes, keep, mode, noise)
    assert np.array_equal(adj, before), "eliminate must work on a copy"
    return log_sizes, adj, order, ptr, idx


@given(problems(max_nodes=12))
def test_adjacency_holds_exactly_the_pairs_of_each_scope(problem):
    n, scopes, _, keep, _ = problem
    adj = triangulation.build_adjacency(n, *csr(scopes), keep)
    graph = literal_graph(n, scopes, keep)
    bits = {v: {u for u in range(n) if (int(adj[v, u >> 6]) >> (u & 63)) & 1} for v in range(n)}
    assert bits == {v: graph.get(v, set()) for v in range(n)}


def test_adjacency_of_wide_scopes_across_words():
    n = 150
    scope = list(range(0, n, 2))
    keep = np.ones(n, np.uint8)
    keep[4] = 0
    adj = triangulation.build_adjacency(n, *csr([scope, [1, 149]]), keep)
    graph = literal_graph(n, [scope, [1, 149]], keep)
    bits = {v: {u for u in range(n) if (int(adj[v, u >> 6]) >> (u & 63)) & 1} for v in range(n)}
    assert bits == {v: graph.get(v, set()) for v in range(n)}


@given(problems(), st.sampled_from([0, 1, 2]))
def test_elimination_equals_the_literal_greedy_rule(problem, mode):
    n, scopes, sizes, keep, noise = problem
    log_sizes, _, order, ptr, idx = run(n, scopes, sizes, keep, mode, noise)
    want_order, want_cliques = literal_elimination(literal_graph(n, scopes, keep), log_sizes, sizes, mode, noise)
    assert order.tolist() == want_order
    assert unpack(ptr, idx) == want_cliques


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_elimination_across_many_words(mode):
    rng = np.random.default_rng(3)
    n = 200
    scopes = [rng.choice(n, 3, replace=False).tolist() for _ in range(130)]
    sizes = rng.integers(2, 5, n).tolist()
    keep = rng.random(n) < 0.9
    log_sizes, _, order, ptr, idx = run(n, scopes, sizes, keep, mode, np.zeros(n))
    want_order, want_cliques = literal_elimination(literal_graph(n, scopes, keep), log_sizes, sizes, mode, np.zeros(n))
    assert order.tolist() == want_order
    assert unpack(ptr, idx) == want_cliques


@given(problems(), st.sampled_from([0, 1, 2]))
def test_maximal_cliques_are_those_in_no_other(problem, mode):
    n, scopes, sizes, keep, noise = problem
    _, _, order, ptr, idx = run(n, scopes, sizes, keep, mode, noise)
    cliques = unpack(ptr, idx)
    want = [c for i, c in enumerate(cliques) if not any(set(c) < set(d) for d in cliques)]
    assert unpack(*clique_forests.maximal_cliques(order, ptr, idx)) == want


def check_forest(cliques, parent, visit, n, log_sizes):
    m = len(cliques)
    assert sorted(visit.tolist()) == list(range(m))
    rank = {int(k): i for i, k in enumerate(visit)}
    assert all(parent[k] == -1 or rank[int(parent[k])] < rank[k] for k in range(m))
    for v in range(n):  # running intersection: the cliques with v form one subtree, which has exactly one top
        holders = [k for k in range(m) if v in cliques[k]]
        tops = [k for k in holders if parent[k] == -1 or v not in cliques[parent[k]]]
        assert len(tops) == (1 if holders else 0)
    graph = nx.Graph()
    graph.add_nodes_from(range(m))
    for i, j in itertools.combinations(range(m), 2):
        if shared := len(set(cliques[i]) & set(cliques[j])):
            graph.add_edge(i, j, weight=shared)
    best = sum(d["weight"] for _, _, d in nx.maximum_spanning_edges(graph, data=True))
    assert sum(len(set(cliques[k]) & set(cliques[parent[k]])) for k in range(m) if parent[k] >= 0) == best
    weight = [sum(log_sizes[v] for v in c) for c in cliques]
    for component in nx.connected_components(graph):
        roots = [k for k in component if parent[k] == -1]
        assert len(roots) == 1
        assert weight[roots[0]] >= max(weight[k] for k in component) - 1e-8


@given(problems(), st.sampled_from([0, 1, 2]), st.integers(0, 5))
def test_forest_is_a_maximum_spanning_forest_with_running_intersection(problem, mode, seed):
    n, scopes, sizes, keep, noise = problem
    log_sizes, _, order, ptr, idx = run(n, scopes, sizes, keep, mode, noise)
    cliques = unpack(*clique_forests.maximal_cliques(order, ptr, idx))
    if seed:  # any order of the cliques will do
        cliques = [cliques[i] for i in np.random.default_rng(seed).permutation(len(cliques))]
    parent, visit = clique_forests.junction_forest(*csr(cliques), n, log_sizes)
    check_forest(cliques, parent, visit, n, log_sizes)


def test_forest_prefers_light_parents_for_the_same_separator():
    # {0,1,2} is heaviest (root); {0,3} and {0,4} share node 0 with it and with each other.
    log_sizes = np.log([2.0, 9.0, 9.0, 2.0, 3.0])
    parent, visit = clique_forests.junction_forest(*csr([(0, 1, 2), (0, 3), (0, 4)]), 5, log_sizes)
    assert parent.tolist() == [-1, 0, 1]
    assert visit.tolist() == [0, 1, 2]


@given(problems())
def test_total_log_size(problem):
    n, scopes, sizes, keep, noise = problem
    log_sizes, _, _, ptr, idx = run(n, scopes, sizes, keep, 0, noise)
    total = sum(math.prod(sizes[v] for v in c) for c in unpack(ptr, idx))
    got = clique_forests.total_log_size(ptr, idx, log_sizes)
    assert got == (pytest.approx(math.log(total)) if total else -math.inf)


def test_total_log_size_does_not_overflow():
    ptr, idx = csr([tuple(range(3000)), tuple(range(2999))])
    assert clique_forests.total_log_size(ptr, idx, np.full(3000, math.log(3.0))) == pytest.approx(
        3000 * math.log(3.0) + math.log1p(1 / 3)
    )


def test_star_eliminates_its_leaves_first():
    n = 5001
    scopes = [(2500, v) for v in range(n) if v != 2500]
    keep = np.ones(n, bool)
    for mode in (0, 1, 2):
        log_sizes, _, order, ptr, idx = run(n, scopes, [2] * n, keep, mode, np.zeros(n))
        maximal_ptr, maximal_idx = clique_forests.maximal_cliques(order, ptr, idx)
        assert np.diff(maximal_ptr).tolist() == [2] * 5000
        parent, _ = clique_forests.junction_forest(maximal_ptr, maximal_idx, n, log_sizes)
        assert np.count_nonzero(parent == -1) == 1


SAME_WITHOUT_JIT = """
import numpy as np
from gramgraph._numerics.tree import clique_forests, sparse_elimination, structure as tree_structure, triangulation
from gramgraph.compile import ordering
rng = np.random.default_rng(11)
n, words = 70, []
scopes = [rng.choice(n, 3, replace=False) for _ in range(60)]
ptr = np.arange(0, 3 * 60 + 1, 3, dtype=np.int64)
idx = np.concatenate(scopes).astype(np.int64)
log_sizes = np.log(rng.integers(2, 5, n).astype(float))
keep = rng.random(n) < 0.9
for mode in (0, 1, 2):
    adj = triangulation.build_adjacency(n, ptr, idx, keep)
    order, p, i = triangulation.eliminate(adj, log_sizes, keep, mode, rng.random(n))
    mp, mi = clique_forests.maximal_cliques(order, p, i)
    parent, visit = clique_forests.junction_forest(mp, mi, n, log_sizes)
    words += [array.tolist() for array in (adj, order, p, i, mp, mi, parent, visit)]
    words.append(f"{clique_forests.total_log_size(mp, mi, log_sizes):.12f}")
print(*words, sep=";")
"""


def test_same_numbers_without_jit():
    answers = []
    for disable in ("0", "1"):
        env = {**os.environ, "NUMBA_DISABLE_JIT": disable, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SAME_WITHOUT_JIT],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout)
    assert answers[0] == answers[1]


@given(problems(), st.integers(0, 2))
def test_lists_of_neighbors_give_the_order_of_rows_of_bits(problem, mode):
    n, scopes, sizes, keep, _ = problem
    log_sizes = np.log(np.array(sizes, float))
    adj = triangulation.build_adjacency(n, *csr(scopes), keep)
    ptr, idx = sparse_elimination.neighbor_lists(n, *csr(scopes), keep)
    graph = literal_graph(n, scopes, keep)
    assert [set(row) for row in unpack(ptr, idx)] == [graph.get(v, set()) for v in range(n)]
    assert len(idx) == sum(map(len, graph.values()))
    expected = triangulation.eliminate(adj, log_sizes, keep, mode, np.zeros(n))
    end, *found = sparse_elimination.eliminate_sparse(ptr, idx, log_sizes, keep, mode, False, np.inf, 10**6)
    assert end == sparse_elimination.ALL_GONE
    for a, b in zip(expected, found, strict=True):
        assert np.array_equal(a, b)


@given(problems())
def test_what_needs_no_search_goes_first_and_the_search_goes_on_as_without_it(problem):
    n, scopes, sizes, keep, _ = problem
    keep = keep.astype(np.uint8)
    log_sizes = np.log(np.array(sizes, float))
    adj = triangulation.build_adjacency(n, *csr(scopes), keep)
    expected = search.search_order(adj, log_sizes, keep, np.arange(n), n, -np.inf, 1000, 1e-7)
    found = ordering.sparse_order(*csr(scopes), log_sizes, keep, 1000, 1e-7)
    for a, b in zip(expected, found, strict=True):
        assert np.array_equal(a, b)


def grid(rows, columns):
    at = np.arange(rows * columns).reshape(rows, columns)
    return [*zip(at[:, :-1].flat, at[:, 1:].flat, strict=True), *zip(at[:-1].flat, at[1:].flat, strict=True)]


@pytest.mark.parametrize("limit", ["log size", "room"])
def test_a_search_without_hope_ends_in_one_clique_that_holds_the_rest(limit, monkeypatch):
    n, scopes = 144, csr(grid(12, 12))
    monkeypatch.setattr(ordering, "DENSE_CORE", 0)
    if limit == "log size":
        monkeypatch.setattr(ordering, "HOPELESS_LOG_SIZE", 3.0)
    memory = 1e9 if limit == "log size" else ordering.planning_bytes(n, scopes[0])
    if limit == "room":
        monkeypatch.setattr(ordering, "planning_bytes", lambda *_: 1.0)
        memory = 2.0
    found = ordering.sparse_order(*scopes, np.full(n, math.log(2)), np.ones(n, np.uint8), 1, 1e-9, memory)
    cliques = unpack(*clique_forests.maximal_cliques(*found[:3]))
    assert {v for clique in cliques for v in clique} == set(range(n))
    assert all(any({a, b} <= set(clique) for clique in cliques) for a, b in grid(12, 12))
    assert max(map(len, cliques)) > 20
    chordal = nx.Graph(pair for clique in cliques for pair in itertools.combinations(clique, 2))
    assert nx.is_chordal(chordal)


@pytest.mark.parametrize("kind", ["chain", "tree", "star", "ring", "ladder"])
def test_large_sparse_graphs_keep_their_width_and_cost_memory_for_edges_only(kind):
    import tracemalloc

    n = 20_000
    rng = np.random.default_rng(0)
    pairs = {
        "chain": [(v - 1, v) for v in range(1, n)],
        "tree": [(int(rng.integers(v)), v) for v in range(1, n)],
        "star": [(0, v) for v in range(1, n)],
        "ring": [((v - 1) % n, v) for v in range(n)],
        "ladder": grid(2, n // 2),
    }[kind]
    ptr, idx = csr(pairs)
    log_sizes, keep = np.full(n, math.log(2)), np.ones(n, np.uint8)
    with compiling.tier("compiled"):
        ordering.sparse_order(*csr(grid(3, 3)), log_sizes[:9], keep[:9], 1, 1e-9)  # compiled before memory is measured
        tracemalloc.start()
        found = ordering.sparse_order(ptr, idx, log_sizes, keep, 1, 1e-9)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert np.diff(found.ptr).max() == (3 if kind in ("ring", "ladder") else 2)
    assert len(set(found.order.tolist())) == n
    assert peak <= ordering.planning_bytes(n, ptr)


@given(problems(), st.sampled_from([0, 1000]))
def test_no_greedy_rule_has_fewer_cells_than_the_search(problem, cases):
    n, scopes, sizes, keep, _ = problem
    adjacency = triangulation.build_adjacency(n, *csr(scopes), keep)
    logs = np.log(np.array(sizes, float))
    found = search.search_order(adjacency, logs, keep, np.arange(n), n, -np.inf, cases, 1e-6)[:3]
    links = {pair for scope in scopes for pair in itertools.permutations([v for v in scope if keep[v]], 2)}
    fills = len(found[2]) - len(found[0]) > len(links) // 2

    def summed(order, ptr, idx):
        if not fills:  # orders that add no edge differ in cliques that lie in others alone
            ptr, idx = clique_forests.maximal_cliques(order, ptr, idx)
        return clique_forests.total_log_size(ptr, idx, logs)

    def cells(order, ptr, idx):
        return clique_forests.total_log_size(*clique_forests.maximal_cliques(order, ptr, idx), logs)

    greedy = [triangulation.eliminate(adjacency, logs, keep, mode, np.zeros(n)) for mode in range(3)]
    assert cells(*found) <= cells(*min(greedy, key=lambda one: summed(*one))) + 1e-9
    assert cases or summed(*found) <= min(summed(*one) for one in greedy) + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_what_the_search_finds_is_an_elimination_order_with_its_cliques(seed):
    """Graphs large enough for cores, whose steps come behind all others."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 90))
    scopes = [rng.choice(n, int(rng.integers(2, 4)), replace=False).tolist() for _ in range(int(1.2 * n))]
    keep = (rng.random(n) < 0.9).astype(np.uint8)
    logs = np.log(rng.integers(2, 5, n).astype(float))
    adjacency = triangulation.build_adjacency(n, *csr(scopes), keep)
    order, ptr, idx, _, restarted = search.search_order(adjacency, logs, keep, np.arange(n), n, -np.inf, 1000, 1e-7)
    assert restarted
    graph = literal_graph(n, scopes, keep)
    assert sorted(order.tolist()) == sorted(graph)
    for v, clique in zip(order.tolist(), unpack(ptr, idx), strict=True):
        nbrs = graph.pop(v)
        assert set(clique) == {v, *nbrs}
        for a in nbrs:
            graph[a] |= nbrs
            graph[a] -= {a, v}
