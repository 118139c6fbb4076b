"""Conditional random fields on graphs and grids."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.sequences.crf.field_objective import FieldObjective
from gramgraph.sequences.crf.fields import Cliques, Field, _beliefs_of_groups, loopy_beliefs, network_of
from gramgraph.sequences.crf.rounds import Rounds

K = 3
STATES = [str(i) for i in range(K)]


def a_field(rng, *, tree=False, triples=True):
    """Five nodes: a path, with a loop and groups of three unless it shall be a tree."""
    edges = np.array([(0, 1), (2, 1), (2, 3), (3, 4)] + ([] if tree else [(4, 0)]))
    cliques = [Cliques(edges, rng.normal(size=(len(edges), 2)))]
    if triples and not tree:
        groups = np.array([(0, 2, 4), (3, 1, 0)])
        cliques.append(Cliques(groups, rng.normal(size=(2, 1))))
    return Field(rng.normal(size=(5, 2)), tuple(cliques)), rng.integers(0, K, 5)


def objective(field, y, method, symmetric=False, c2=0.2):
    return FieldObjective(field, y, K, method=method, c2=c2, symmetric=symmetric, states=STATES)


@pytest.mark.parametrize("method", ["pseudo", "exact", "loopy", "marginal"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_gradient_equals_differences(rng, method, symmetric):
    field, y = a_field(rng, tree=method == "loopy", triples=method != "marginal")
    f = objective(field, y, method, symmetric)
    w = 0.5 * rng.normal(size=f.size)
    _, g = f(w)
    for k in range(0, f.size, 3):
        e = np.zeros(f.size)
        e[k] = 1e-5
        assert (f(w + e)[0] - f(w - e)[0]) / 2e-5 == pytest.approx(g[k], abs=1e-6)


def test_likelihood_equals_the_sum_over_all_labelings(rng):
    field, y = a_field(rng)
    f = objective(field, y, "exact", c2=0.0)
    w = rng.normal(size=f.size)
    local, tables = f.weights(w).tables(field)

    def value(labels):
        total = local[np.arange(5), labels].sum()
        for c, table in zip(field.cliques, tables, strict=True):
            total += sum(table[(i, *labels[members])] for i, members in enumerate(c.members))
        return total

    everything = np.array([value(np.array(labels)) for labels in itertools.product(range(K), repeat=5)])
    assert f(w)[0] == pytest.approx(np.logaddexp.reduce(everything) - value(y), abs=1e-10)


def test_pseudo_likelihood_is_the_product_of_conditionals(rng):
    field, y = a_field(rng)
    f = objective(field, y, "pseudo", c2=0.0)
    w = rng.normal(size=f.size)
    net = network_of(field, *f.weights(w).tables(field), STATES)
    names = net.variables
    total = 0.0
    for i, name in enumerate(names):
        others = {n: str(y[j]) for j, n in enumerate(names) if j != i}
        total -= np.log(net.query(name, others)[name].prob(str(y[i])))
    assert f(w)[0] == pytest.approx(total, abs=1e-10)


def test_propagation_is_exact_on_trees_and_near_elsewhere(rng):
    for tree in (True, False):
        field, y = a_field(rng, tree=tree)
        f = objective(field, y, "exact")
        local, tables = f.weights(0.5 * rng.normal(size=f.size)).tables(field)
        log_z, nodes, cliques = f._exact(local, tables)
        found = loopy_beliefs(field, local, tables)
        tol = 1e-10 if tree else 0.2
        assert found.log_z == pytest.approx(log_z, abs=tol)
        np.testing.assert_allclose(found.nodes, nodes, atol=tol)
        for a, b in zip(found.cliques, cliques, strict=True):
            np.testing.assert_allclose(a, b, atol=tol)
        assert found.settled


def test_pairs_have_the_beliefs_of_groups(rng):
    """The loop for pairs, and the one for cliques of any size, on a graph with loops and several edges at a node."""
    edges = np.array([(a, b) for a in range(7) for b in range(a) if rng.random() < 0.6])
    field = Field(
        np.zeros((7, 1)), (Cliques(edges[:4], np.ones((4, 1))), Cliques(edges[4:], np.ones((len(edges) - 4, 1))))
    )
    local, tables = rng.normal(size=(7, K)), [rng.normal(scale=0.3, size=(len(c.members), K, K)) for c in field.cliques]
    one, other = loopy_beliefs(field, local, tables), _beliefs_of_groups(field, local, tables, 100, 1e-9)
    assert one.settled and one.log_z == pytest.approx(other.log_z, abs=1e-6)
    np.testing.assert_allclose(one.nodes, other.nodes, atol=1e-6)
    for a, b in zip(one.cliques, other.cliques, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    again = loopy_beliefs(field, local, tables, start=one.messages)
    np.testing.assert_allclose(again.nodes, one.nodes, atol=1e-7)


def test_a_few_sweeps_are_exact_on_a_chain(rng):
    field, y = a_field(rng, tree=True)
    f = objective(field, y, "exact")
    local, tables = f.weights(3.0 * rng.normal(size=f.size)).tables(field)
    np.testing.assert_allclose(Rounds(field, local, tables).beliefs, f._exact(local, tables)[1], atol=1e-12)


def test_many_neighbors_stay_in_range():
    star = np.array([(0, i) for i in range(1, 1500)])
    field = Field(np.zeros((1500, 1)), (Cliques(star, np.ones((1499, 1))),))
    local = np.zeros((1500, 2))
    local[1:, 0] = 50.0
    beliefs = loopy_beliefs(field, local, [np.broadcast_to(30.0 * np.eye(2), (1499, 2, 2)).copy()]).nodes
    np.testing.assert_allclose(beliefs[:, 0], 1.0)
    assert np.isfinite(Rounds(field, local, [np.broadcast_to(30.0 * np.eye(2), (1499, 2, 2)).copy()]).beliefs).all()


def test_marginal_takes_pairs_alone(rng):
    field, y = a_field(rng)
    with pytest.raises(gg.ModelError, match="larger cliques"):
        gg.sequences.GraphCRF(method="marginal").fit([field], [y])


def test_a_chain_is_a_linear_chain(rng):
    """The same model written as a graph and as a chain has the same objective and answers."""
    X, y = [], []
    for _ in range(6):
        y.append(rng.integers(0, K, 4))
        X.append([{"a": float(v + rng.normal()), "one": 1.0} for v in y[-1]])
    labels = [[str(v) for v in vector] for vector in y]
    chain = gg.LinearChainCRF(
        c2=0.3, all_possible_states=True, all_possible_transitions=True, epsilon=1e-7, delta=0.0
    ).fit(X, labels)
    edges = [(t, t + 1) for t in range(3)]
    G = [(np.array([[token["a"], 1.0] for token in x]), edges) for x in X]
    for method in ("exact", "loopy"):
        graph = gg.sequences.GraphCRF(c2=0.3, symmetric=False, method=method, epsilon=1e-4).fit(G, labels)
        assert graph.objective_ == pytest.approx(chain.objective_, rel=1e-6)
        np.testing.assert_allclose(graph.predict_proba(G[:1])[0], chain.predict_proba(X[:1])[0], atol=1e-3)
        assert graph.predict(G[:3])[0].tolist() == chain.predict(X[:3])[0]


def test_any_classifier_gives_node_features(rng):
    from sklearn.tree import DecisionTreeClassifier

    y = [np.repeat(rng.integers(0, 2, 5), 6) for _ in range(24)]
    edges = [(i, i + 1) for i in range(29)]
    X = [(np.c_[np.cos(3 * labels) + rng.normal(size=30), rng.normal(size=30)], edges) for labels in y]
    tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
    crf = gg.sequences.GraphCRF(node_classifier=tree, c2=0.1, calibrate=True).fit(X[:16], y[:16])
    alone = np.concatenate([crf.node_classifier_.predict(x[0]) for x in X[16:]])
    assert crf.score(X[16:], y[16:]) > (alone == np.concatenate(y[16:])).mean() + 0.02
    assert crf.weights_.nodes.shape == (3, 2)


def test_grid_labels_images():
    rng = np.random.default_rng(5)
    truth = np.zeros((8, 8), dtype=int)
    truth[3:, 2:6] = 1
    X = [truth + rng.normal(scale=0.7, size=truth.shape) for _ in range(11)]
    crf = gg.sequences.GridCRF(c2=1.0, max_iterations=6).fit(X[:8], [truth] * 8)
    plain = np.mean([((x > 0.5) == truth).mean() for x in X[8:]])
    for inference in ("exact", "loopy"):
        crf.set_params(inference=inference)
        assert crf.predict(X[8:])[0].shape == truth.shape
        assert crf.score(X[8:], [truth] * 3) > plain + 0.05
        (proba,) = crf.predict_proba(X[10:])
        assert proba.shape == (8, 8, 2)
        np.testing.assert_allclose(proba.sum(axis=2), 1.0, atol=1e-9)


@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        ([(np.ones((2, 1)), [(0, 2)])], [[0, 1]], "name nodes outside 0 … 1"),
        ([(np.ones((2, 1)), [(1, 1)])], [[0, 1]], "name a node twice"),
        ([(np.ones((2, 1)), [(0, 1)])], [[0]], "X\\[0\\] has 2 nodes, but y\\[0\\] has 1 labels"),
        ([(np.full((2, 1), np.nan), [(0, 1)])], [[0, 1]], "matrix of finite numbers"),
        ([3], [[0]], "X\\[0\\] must be a Field"),
        ([(np.ones((2, 1)), [(0, 1)]), (np.ones((2, 2)), [(0, 1)])], [[0, 1], [0, 1]], "other features than X\\[0\\]"),
        ([], [], "at least 1 is needed"),
    ],
)
def test_graphs_that_do_not_fit(X, y, text):
    with pytest.raises(gg.ModelError, match=text):
        gg.sequences.GraphCRF().fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        ([np.zeros((2, 3))], [np.zeros((3, 2), int)], "X\\[0\\] has \\(2, 3\\) pixels, but the labels y\\[0\\]"),
        ([np.zeros((2, 3))], [[[0.0, 1.0, np.nan]] * 2], "y\\[0\\] holds NaN"),
        ([np.zeros((2, 3))], [], "X has 1 graphs, but y has 0"),
        ([], [], "at least 1 is needed"),
    ],
)
def test_labels_that_do_not_fit_their_images(X, y, text):
    with pytest.raises(gg.ModelError, match=text):
        gg.sequences.GridCRF().fit(X, y)
    crf = gg.sequences.GridCRF(calibrate=False, max_iterations=1).fit([np.eye(3)], [np.eye(3, dtype=int)])
    with pytest.raises(gg.ModelError, match=text):
        crf.score(X, y)


@pytest.mark.parametrize("c2", [-1.0, np.nan, np.inf, None, "car"])
def test_penalties_out_of_range_are_refused(c2):
    with pytest.raises(gg.OptionError, match="c2 must be a finite number"):
        gg.sequences.GraphCRF(c2=c2).fit([(np.ones((2, 1)), [(0, 1)])], [[0, 1]])


def test_options_are_checked():
    with pytest.raises(gg.ModelError, match="Did you mean 'pseudo'"):
        gg.sequences.GraphCRF(method="psuedo").fit([(np.ones((2, 1)), [(0, 1)])], [[0, 1]])


def test_nodes_without_edges():
    crf = gg.sequences.GraphCRF(c2=0.01).fit([(np.array([[1.0], [-1.0]]), [])], [[0, 1]])
    assert crf.predict([(np.array([[2.0], [-3.0]]), [])])[0].tolist() == [0, 1]
