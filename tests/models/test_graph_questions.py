"""Questions about the graph of a model by name, against brute force over all sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.graphs import (
    Digraph,
    UndirectedGraph,
    adjustment_set,
    adjustment_sets,
    front_door_set,
    induced_width,
    is_adjustment_set,
    is_d_map,
    is_i_map,
    minimal_separators,
    separated,
)


def random_dag(rng: np.random.Generator, n: int, density: float = 0.45) -> Digraph:
    order = rng.permutation(n).tolist()
    edges = [(order[i], order[j]) for i in range(n) for j in range(i + 1, n) if rng.random() < density]
    return Digraph.from_edges(n, edges)


def named(graph: Digraph) -> gg.BayesianNetwork:
    nodes = [f"v{v}" for v in range(graph.n)]
    return gg.BayesianNetwork("; ".join([*nodes, *(f"v{a} -> v{b}" for a, b in graph.edges())]))


def minimal(sets) -> set[tuple[int, ...]]:
    """Those of which no member can be left out."""
    found = {frozenset(s) for s in sets}
    return {tuple(sorted(s)) for s in found if not any(s - {v} in found for v in s)}


def subsets(items):
    items = list(items)
    return itertools.chain.from_iterable(itertools.combinations(items, k) for k in range(len(items) + 1))


@pytest.mark.parametrize("seed", range(25))
def test_every_minimal_adjustment_set_is_found(seed):
    rng = np.random.default_rng(seed)
    graph = random_dag(rng, 7)
    x, y, u = rng.permutation(7)[:3].tolist()
    for hidden in ((), (u,)):
        others = [v for v in range(7) if v not in (x, y, *hidden)]
        expected = minimal(z for z in subsets(others) if is_adjustment_set(graph, x, y, z))
        found = adjustment_sets(graph, x, y, hidden=hidden)
        assert set(found) == expected
        assert list(found) == sorted(found, key=lambda z: (len(z), z))
        one = adjustment_set(graph, x, y, hidden=hidden)
        assert (one in expected) if expected else one is None
        net = named(graph)
        by_name = net.adjustment_sets(f"v{x}", f"v{y}", hidden=[f"v{v}" for v in hidden])
        assert by_name == tuple(tuple(f"v{v}" for v in z) for z in found)


@pytest.mark.parametrize("seed", range(20))
def test_every_minimal_separator_is_found(seed):
    rng = np.random.default_rng(seed)
    edges = [e for e in itertools.combinations(range(8), 2) if rng.random() < 0.3]
    graph = UndirectedGraph.from_edges(8, edges)
    allowed = [v for v in range(2, 8) if rng.random() < 0.8]
    expected = minimal(z for z in subsets(allowed) if separated(graph, 0, 1, z))
    found = list(minimal_separators(graph, 0, 1, allowed))
    assert len(found) == len(set(found))
    assert set(found) == expected


@pytest.mark.parametrize("seed", range(10))
def test_a_confounded_pair_is_a_hidden_parent_of_both(seed):
    rng = np.random.default_rng(seed)
    graph = random_dag(rng, 6)
    a, b, x, y = (f"v{v}" for v in (*rng.permutation(6)[:2].tolist(), *rng.permutation(6)[:2].tolist()))
    net = named(graph)
    rows = {name: list(net.parents(name)) for name in net.variables} | {"u": []}
    rows[a].append("u")
    rows[b].append("u")
    explicit = gg.BayesianNetwork(rows)
    text = "; ".join([*net.variables, *(f"{p} -> {c}" for p, c in net.edges), f"{a} <-> {b}"])
    written = gg.BayesianNetwork(text)
    assert written.variables == (*net.variables, f"{a} <-> {b}")
    assert written.hidden_causes == (f"{a} <-> {b}",)
    expected = explicit.adjustment_sets(x, y, hidden="u")
    assert net.adjustment_sets(x, y, confounded=[(a, b)]) == expected
    assert written.adjustment_sets(x, y) == expected
    same = [
        explicit.identify(y, do=x, hidden="u"),
        net.identify(y, do=x, confounded=[(a, b)]),
        written.identify(y, do=x),
        gg.learn.identify(net, x, y, confounded=[(b, a)]),
    ]
    assert all(found == same[0] for found in same)


def test_confounded_wants_pairs_of_variables():
    net = gg.BayesianNetwork("x -> y")
    for wrong in ([("x", "x")], ["xy"], [("x",)], [3]):
        with pytest.raises(gg.OptionError, match=r'confounded=\[\("a", "b"\)\]'):
            net.adjustment_sets("x", "y", confounded=wrong)
    with pytest.raises(gg.VariableError, match="'z' is not a variable"):
        net.adjustment_sets("x", "y", confounded=[("x", "z")])
    with pytest.raises(gg.ParseError, match="edges of an undirected graph"):
        gg.MarkovNetwork(edges="a <-> b")


def test_the_old_word_for_hidden_nodes_still_works():
    graph = Digraph.from_edges(4, [(0, 1), (0, 3), (1, 2), (2, 3)])
    with pytest.warns(DeprecationWarning, match="Use hidden=… instead|hidden=…"):
        assert front_door_set(graph, 1, 3, observed=[1, 2, 3]) == front_door_set(graph, 1, 3, hidden=0)
    with pytest.warns(DeprecationWarning, match="until 0.4"):
        assert adjustment_set(graph, 1, 3, observed=[1, 2, 3]) is None


def test_independencies_are_printed_with_names():
    net = gg.BayesianNetwork("rain -> wet <- sprinkler; wet -> slip")
    found = net.independencies()
    assert str(found).splitlines()[0] == "rain ⊥ sprinkler"
    assert "rain ⊥ slip | wet" in str(found)
    assert "rain ⊥ slip | wet" in repr(found)
    for pair in itertools.combinations(net.variables, 2):
        for given in subsets(v for v in net.variables if v not in pair):
            stated = any((s.x, s.y, s.given) == (*pair, given) for s in found)
            assert stated == net.is_dseparated(*pair, given)
    assert net.v_structures() == (("rain", "wet", "sprinkler"),)
    assert net.minimal_dseparator("rain", "slip") == ("wet",)
    assert str(gg.MarkovNetwork(edges="a - b - c").independencies()) == "a ⊥ c | b"


def dependent(table: np.ndarray, x: int, y: int, given: tuple[int, ...]) -> bool:
    rest = tuple(v for v in range(table.ndim) if v not in (x, y, *given))
    p = np.moveaxis(table.sum(axis=rest, keepdims=True), (x, y), (0, 1))
    product = p.sum(axis=0, keepdims=True) * p.sum(axis=1, keepdims=True)
    return bool(np.abs(p * p.sum(axis=(0, 1), keepdims=True) - product).max() > 1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_maps_of_a_joint_table_against_every_statement(seed):
    rng = np.random.default_rng(seed)
    truth, claim = (named(random_dag(rng, 4)) for _ in range(2))
    model = truth.random_tables(seed)
    sizes = [2] * 4
    table = np.zeros(sizes)
    for at in itertools.product(range(2), repeat=4):
        case = {name: model.states(name)[i] for name, i in zip(model.variables, at, strict=True)}
        table[at] = np.exp(model.joint_log_prob(case))
    for net in (claim, truth):
        questions = [(x, y, z) for x, y in itertools.combinations(range(4), 2) for z in subsets({*range(4)} - {x, y})]
        stated = [net.is_dseparated(f"v{x}", f"v{y}", [f"v{v}" for v in z]) for x, y, z in questions]
        held = [not dependent(table, *q) for q in questions]
        i_map = all(h for s, h in zip(stated, held, strict=True) if s)
        d_map = all(s for s, h in zip(stated, held, strict=True) if h)
        for joint in (table, model, gg.factors.TableFactor(model.vars, table)):
            assert (net.is_i_map(joint), net.is_d_map(joint)) == (i_map, d_map)
            assert net.is_perfect_map(joint) == (i_map and d_map)
        assert (net.is_i_map(truth), net.is_d_map(truth)) == (i_map, d_map)  # its graph: the numbers are generic


@pytest.mark.parametrize("seed", range(6))
def test_maps_of_a_gaussian_and_of_its_graph(seed):
    rng = np.random.default_rng(seed)
    truth, claim = random_dag(rng, 5), random_dag(rng, 5)
    B = np.zeros((5, 5))
    for v, row in enumerate(truth.parents):
        B[v, list(row)] = rng.uniform(0.5, 1.5, len(row)) * rng.choice([-1, 1], len(row))
    A = np.linalg.inv(np.eye(5) - B)
    joint = gg.Gaussian(np.zeros(5), A @ np.diag(rng.uniform(0.5, 2.0, 5)) @ A.T)
    model = gg.BayesianNetwork.from_gaussian(joint.mean, joint.cov, names=[f"v{v}" for v in range(5)])
    undirected = UndirectedGraph.from_edges(5, [e for e in itertools.combinations(range(5), 2) if rng.random() < 0.6])
    for graph in (claim, truth, undirected):
        assert is_i_map(graph, joint) == is_i_map(graph, truth)
        assert is_d_map(graph, joint) == is_d_map(graph, truth)
    links = gg.MarkovNetwork(edges=[(f"v{a}", f"v{b}") for a, b in undirected.edges()] or "v0; v1")
    if len(links) == 5:
        assert named(claim).is_i_map(links) == is_i_map(claim, undirected)
        assert links.is_d_map(named(claim)) == is_i_map(claim, undirected)
    net = named(claim)
    assert net.is_i_map(joint) == net.is_i_map(model) == is_i_map(claim, truth)
    assert named(truth).is_perfect_map(model)


def test_maps_want_the_same_variables_and_a_table_that_fits():
    net = gg.BayesianNetwork("a -> b")
    with pytest.raises(gg.VariableError, match="'c' is not a variable"):
        net.is_i_map(gg.BayesianNetwork("a -> c").random_tables(0))
    with pytest.raises(gg.VariableError, match="no b"):
        net.is_i_map(gg.BayesianNetwork("a").random_tables(0))
    with pytest.raises(gg.ModelError, match="one axis for each"):
        net.is_i_map(np.ones(2))
    large = gg.BayesianNetwork("; ".join(f"x{i}" for i in range(30)))
    with pytest.raises(gg.ModelError, match="entries, too many"):
        large.is_i_map(large.random_tables(0))


@pytest.mark.parametrize("seed", range(5))
def test_the_induced_width_of_an_order(seed):
    rng = np.random.default_rng(seed)
    graph = UndirectedGraph.from_edges(7, [e for e in itertools.combinations(range(7), 2) if rng.random() < 0.4])
    order = rng.permutation(7).tolist()
    edges, width = {frozenset(e) for e in graph.edges()}, 0
    for i, v in enumerate(order):
        later = [u for u in order[i + 1 :] if frozenset((u, v)) in edges]
        edges |= {frozenset(pair) for pair in itertools.combinations(later, 2)}
        width = max(width, len(later))
    assert induced_width(graph, order) == width
    net = gg.MarkovNetwork(edges="; ".join([f"v{v}" for v in range(7)] + [f"v{a} - v{b}" for a, b in graph.edges()]))
    assert net.induced_width([f"v{v}" for v in order]) == width


def test_an_order_holds_every_variable_once():
    net = gg.BayesianNetwork("a -> c <- b")
    assert net.induced_width(["a", "b", "c"]) == 2  # moralized: a and b are linked
    for wrong in (["a", "b"], ["a", "b", "b"]):
        with pytest.raises(gg.ModelError, match="each of the 3 nodes once"):
            net.induced_width(wrong)


@pytest.mark.parametrize("seed", range(5))
def test_undirected_models_know_the_words_of_directed_ones(seed):
    rng = np.random.default_rng(seed)
    edges = [(f"v{a}", f"v{b}") for a, b in itertools.combinations(range(7), 2) if rng.random() < 0.25]
    net = gg.MarkovNetwork(edges="; ".join([f"v{v}" for v in range(7)] + [f"{a} - {b}" for a, b in edges]))
    nx = pytest.importorskip("networkx")
    given = [f"v{v}" for v in range(2, 7) if rng.random() < 0.3]
    rest = nx.Graph(edges)
    rest.add_nodes_from(net.variables)
    rest.remove_nodes_from(given)
    linked = nx.has_path(rest, "v0", "v1")
    assert net.is_dconnected("v0", "v1", given) == linked != net.is_dseparated("v0", "v1", given)
    trail = net.active_trail("v0", "v1", given)
    assert (trail is not None) == linked
    if trail:
        assert len(trail) == len(nx.shortest_path(rest, "v0", "v1"))
        assert nx.is_path(rest, list(trail))


@pytest.mark.parametrize("suffix", ["bif", "xmlbif", "json", "net", "xdsl"])
def test_files_keep_unobserved_common_causes(tmp_path, suffix):
    net = gg.BayesianNetwork("x -> m -> y; x <-> y").random_tables(0)
    gg.write(net, tmp_path / f"net.{suffix}")
    again = gg.read(tmp_path / f"net.{suffix}")
    assert again.hidden_causes == ("x <-> y",)
    assert again.identify("y", do="x").kind == "front door"


def test_hidden_lists_names_when_a_structure_is_learned():
    frame = gg.BayesianNetwork("h -> a; h -> b; h -> c").random_tables(0).sample(200, random_state=0)
    frame = frame.drop(columns="h")
    names = gg.learn_structure(frame, method="structural_em", hidden=["h"], random_state=0)
    labels = gg.learn_structure(frame, method="structural_em", hidden={"h": ("no", "yes")}, random_state=0)
    assert names == labels
    assert names.states("h") == ("no", "yes")


def test_an_undirected_model_says_why_it_takes_no_intervention():
    net = gg.datasets.asia().to_markov_network()
    with pytest.raises(gg.ModelError, match=r"needs arrows.*gg\.BayesianNetwork"):
        net.do({"smoke": "yes"})
