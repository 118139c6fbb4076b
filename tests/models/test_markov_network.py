"""Markov networks, factor graphs and log-linear models against brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.exceptions import ParseError
from gramgraph.factors import TableFactor
from gramgraph.models import Feature, GraphicalModel, LogLinear
from gramgraph.variables import binary, discrete


def unnormalized(model: GraphicalModel) -> np.ndarray:
    """exp(joint_log_prob) at every assignment."""
    out = np.empty([var.size for var in model.vars])
    for at in np.ndindex(*out.shape):
        x = {var.name: var.states[i] for var, i in zip(model.vars, at, strict=True)}
        out[at] = np.exp(model.joint_log_prob(x))
    return out


def test_factors_in_their_forms_agree() -> None:
    ab, bc = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 4.0], [5.0, 1.0]])
    a, b, c = map(binary, "abc")
    nets = [
        gg.MarkovNetwork([(("a", "b"), ab), (("b", "c"), bc)]),
        gg.MarkovNetwork([TableFactor((a, b), ab), TableFactor((b, c), bc)]),
        gg.MarkovNetwork({("a", "b"): ab, ("b", "c"): bc.ravel()}),
        gg.MarkovNetwork(edges="a - b - c", potentials={("a", "b"): ab.tolist(), ("b", "c"): bc}),
        gg.MarkovNetwork(edges=[("a", "b"), ("b", "c")], potentials={("a", "b"): ab, ("b", "c"): bc}),
        gg.MarkovNetwork(factors=[TableFactor((a, b), ab)], potentials={("b", "c"): bc}),
    ]
    expected = ab[:, :, None] * bc[None]
    for net in nets:
        assert net.variables == ("a", "b", "c")
        assert np.allclose(unnormalized(net), expected)
        assert net == nets[0]
        assert hash(net) == hash(nets[0])
    assert nets[0] != gg.MarkovNetwork([(("a", "b"), ab)])
    assert nets[0] != nets[0].to_factor_graph()


def test_graph_of_a_markov_network() -> None:
    net = gg.MarkovNetwork(edges="a - b - c - d - a; e", potentials={("a", "b"): np.ones((2, 2))})
    assert net.variables == ("a", "b", "c", "d", "e")
    assert net.neighbors("a") == net.markov_blanket("a") == ("b", "d")
    assert net.edges == (("a", "b"), ("a", "d"), ("b", "c"), ("c", "d"))
    assert net.is_separated("a", "c", given=["b", "d"])
    assert not net.is_separated("a", "c", given="b")
    assert net.is_separated("a", "e")
    assert net.cliques() == (("a", "b"), ("a", "d"), ("b", "c"), ("c", "d"), ("e",))
    assert net.factor_scopes() == (("a", "b"),)
    tree = net.to_junction_tree()
    assert tree.width == 2
    assert net.to_networkx().number_of_edges() == 4
    assert gg.MarkovNetwork({("a", "b", "c"): np.ones((2, 2, 2)), ("a", "b"): np.ones((2, 2))}).cliques() == (
        ("a", "b", "c"),
    )
    triangle = gg.MarkovNetwork({pair: np.ones((2, 2)) for pair in (("c", "a"), ("b", "c"), ("b", "a"))})
    assert triangle.cliques() == (("c", "a", "b"),)  # three pairs are linked all to all
    assert triangle.factor_scopes() == (("c", "a"), ("b", "c"), ("b", "a"))


def test_states_of_a_markov_network() -> None:
    net = gg.MarkovNetwork({("a", "b"): np.ones((2, 3)), "c": np.ones(2)}, states={"c": ["lo", "hi"]})
    assert [net.states(v) for v in "abc"] == [("no", "yes"), ("0", "1", "2"), ("lo", "hi")]
    written = gg.MarkovNetwork(edges="a{x|y|z} - b", potentials={("a", "b"): np.ones((3, 2))})
    assert written.states("a") == ("x", "y", "z")
    equal = gg.MarkovNetwork({("a", "b"): lambda a, b: 2.0 if a == b else 1.0}, states={"a": "x|y", "b": "x|y"})
    assert equal.factors()[0].values.tolist() == [[2.0, 1.0], [1.0, 2.0]]


def test_all_faults_of_a_markov_network() -> None:
    with pytest.raises(gg.ModelError) as caught:
        gg.MarkovNetwork(
            [(("a", "b"), np.ones((2, 3))), ("b", [1, 2]), ("a", [-1, 1]), ("c", [np.inf, 1]), TableFactor((), 1.0)],
            states={"d": ["x", "x"]},
        )
    text = "\n".join(caught.value.faults)
    for words in (
        "factor over (b) must have shape (3,)",
        "over (a) has negative",
        "over (c) has entries",
        "more than once",
    ):
        assert words in text, words
    with pytest.raises(gg.ModelError, match="no edge links"):
        gg.MarkovNetwork(edges="a - b; c", potentials={("a", "c"): np.ones((2, 2))})
    with pytest.raises(gg.ModelError, match="has the states"):
        gg.MarkovNetwork([TableFactor((binary("a"),), [1, 1]), TableFactor((discrete("a", 3),), [1, 1, 1])])
    with pytest.raises(gg.ModelError, match="pairs"):
        gg.MarkovNetwork([3])
    with pytest.raises(ParseError):
        gg.MarkovNetwork(edges="a -> b")
    loose = gg.MarkovNetwork([("a", [-1, 1])], check=False)
    assert len(loose.faults()) == 1
    twice = gg.MarkovNetwork([(("a", "a"), np.ones((2, 2)))], check=False)
    assert "twice" in twice.faults()[0]
    with pytest.raises(gg.ModelError, match="failed at a=no"):
        gg.MarkovNetwork([("a", lambda a: 1 / 0)])


def test_energies() -> None:
    E = np.array([[0.0, np.inf], [-700.0, 800.0]])
    net = gg.MarkovNetwork.from_energies({("a", "b"): E}, temperature=2.0)
    assert net.joint_log_prob({"a": "no", "b": "yes"}) == -np.inf
    assert net.joint_log_prob({"a": "yes", "b": "no"}) == pytest.approx(350.0)
    assert net.joint_log_prob({"a": "no", "b": "no"}) == pytest.approx(0.0)
    for bad in (np.nan, -np.inf):
        with pytest.raises(gg.ModelError, match="not numbers"):
            gg.MarkovNetwork.from_energies({"a": [bad, 0.0]})
    with pytest.raises(gg.ModelError, match="temperature"):
        gg.MarkovNetwork.from_energies({"a": [0.0, 1.0]}, temperature=0)


def test_factor_graph() -> None:
    g = gg.FactorGraph(
        [(("a", "b"), np.ones((2, 2))), (("b", "c"), np.ones((2, 2))), ("c", [1, 2])], names=["p", "q", "r"]
    )
    assert g.factor_names == ("p", "q", "r")
    assert g.neighbors("b") == ("p", "q")
    assert g.neighbors("q") == ("b", "c")
    assert g.links == (("a", "p"), ("b", "p"), ("b", "q"), ("c", "q"), ("c", "r"))
    assert g.is_tree
    assert g.factor("r").values.tolist() == [1, 2]
    assert g.markov_blanket("b") == ("a", "c")
    assert g.to_networkx().number_of_nodes() == 6
    loop = gg.FactorGraph([(pair, np.ones((2, 2))) for pair in (("a", "b"), ("b", "c"), ("c", "a"))])
    assert not loop.is_tree
    assert not loop.is_forest
    apart = gg.FactorGraph([("a", [1, 1]), ("b", [1, 1])])
    assert apart.is_forest
    assert not apart.is_tree
    with pytest.raises(gg.VariableError, match="Did you mean"):
        g.neighbors("qq")
    with pytest.raises(gg.ModelError, match="different names"):
        gg.FactorGraph([("a", [1, 1])], names=["x", "y"])
    again = loop.to_markov_network().to_factor_graph()
    assert again == loop


def test_moralization_closes_the_loop_that_a_factor_graph_avoids() -> None:
    """Of a node with two parents the moral graph is a triangle, the factor graph a tree."""
    net = gg.datasets.burglary()
    assert net.to_factor_graph().is_tree
    moral = net.to_markov_network()
    assert moral.graph.has_edge(moral.index("burglary"), moral.index("earthquake"))
    pairwise = gg.FactorGraph([(edge, np.ones((2, 2))) for edge in moral.edges])
    assert not pairwise.is_forest


# ------------------------------------------------------------------------------------------------- log-linear


def test_log_linear_is_the_exponential_of_weighted_features() -> None:
    rng = np.random.default_rng(1)
    ab, ba, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), rng.normal(size=3)
    theta = np.array([0.5, -1.0, 2.0])
    model = LogLinear([(("a", "b"), ab, "first"), (("b", "a"), ba), ("b", b)], theta)
    expected = np.exp(0.5 * ab - ba.T + 2.0 * b)
    assert np.allclose(unnormalized(model), expected)
    assert len(model.factors()) == 2  # the two features over a and b share a factor
    assert np.allclose(unnormalized(model.to_markov_network()), expected)
    assert np.allclose(unnormalized(model.to_factor_graph()), expected)
    assert model.with_weights(theta) == model
    assert np.allclose(unnormalized(model.with_weights([0, 0, 1])), np.exp(np.broadcast_to(b, (2, 3))))
    assert model.features[0].name == "first"
    assert model.neighbors("a") == ("b",)


def test_log_linear_gradient_is_observed_minus_expected() -> None:
    """d log p(x) / dθ_k = f_k(x) − E[f_k], checked by differences on the brute-force log Z."""
    agree = lambda a, b: float(a == b)  # noqa: E731
    model = LogLinear([(("a", "b"), agree), (("b", "c"), agree), ("a", [0, 1])], [0.5, 1.0, -0.2])
    weights = unnormalized(model)
    assignments = list(product(("no", "yes"), repeat=3))
    f = np.array([model.feature_values(dict(zip("abc", x, strict=True))) for x in assignments])
    expected = (weights.ravel() / weights.sum()) @ f
    for k in range(3):
        step = np.eye(3)[k] * 1e-6
        up, down = (np.log(unnormalized(model.with_weights(model.weights + s)).sum()) for s in (step, -step))
        assert (up - down) / 2e-6 == pytest.approx(expected[k], abs=1e-8)


def test_log_linear_mistakes() -> None:
    with pytest.raises(gg.ModelError, match="one weight for each of 1"):
        LogLinear([("a", [0, 1])], [1.0, 2.0])
    with pytest.raises(gg.ModelError, match="not finite"):
        LogLinear([("a", [0, np.inf])])
    with pytest.raises(gg.ModelError, match="weights that are not finite"):
        LogLinear([("a", [0, 1])], [np.nan])
    with pytest.raises(gg.ModelError, match="a feature is"):
        LogLinear(["a"])
    feature = LogLinear([("a", [0.0, 2.0])], [1.0]).features[0]
    assert isinstance(feature, Feature)
    assert unnormalized(LogLinear([feature], [0.5])).tolist() == pytest.approx([1.0, np.e])


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_bayesian_network_as_log_linear_model(seed: int, n: int) -> None:
    """log p(x) is log-linear with one feature log p(x | parents) and weight one per family."""
    names = [f"v{i}" for i in range(n)]
    net = gg.BayesianNetwork({name: names[max(0, i - 2) : i] for i, name in enumerate(names)}).random_tables(seed)
    model = LogLinear([([v.name for v in f.scope], f.log_values()) for f in net.factors()], np.ones(n))
    assert np.allclose(unnormalized(model), unnormalized(net).transpose([net.index(v) for v in model.variables]))
