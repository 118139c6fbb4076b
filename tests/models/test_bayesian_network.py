"""Networks as values: joint probabilities, counts, surgery, conversions."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.conditionals import Table
from gramgraph.factors import TableFactor
from gramgraph.models import GraphicalModel, LogLinear, markov_chain, naive_bayes


def joint_of(model: GraphicalModel, *, structured: bool = False) -> np.ndarray:
    """The product of all factors over all variables, hidden ones summed out: brute force."""
    total = TableFactor.unit()
    for factor in model.factors(structured=structured):
        total = total.product(factor)
    hidden = [var for var in total.scope if var.name not in model]
    total = total.marginalize(hidden)
    return total.reorder(model.vars).values * np.exp(total.log_scale)


@st.composite
def networks(draw: st.DrawFn) -> gg.BayesianNetwork:
    n = draw(st.integers(1, 6))
    names = draw(st.permutations([f"v{i}" for i in range(n)]))
    structure = {
        names[i]: draw(st.lists(st.sampled_from(names[:i]), unique=True, max_size=3)) if i else [] for i in range(n)
    }
    states = {name: draw(st.integers(1, 3)) for name in names}
    return gg.BayesianNetwork(structure, states=states).random_tables(draw(st.integers(0, 2**32)))


@given(networks())
def test_the_joint_is_the_product_and_sums_to_one(net: gg.BayesianNetwork) -> None:
    joint = joint_of(net)
    assert joint.sum() == pytest.approx(1.0)
    for at in product(*(range(var.size) for var in net.vars)):
        x = {var.name: var.states[i] for var, i in zip(net.vars, at, strict=True)}
        assert np.exp(net.joint_log_prob(x)) == pytest.approx(joint[at])
    assert net.check_model()


@given(networks())
def test_conversions_keep_the_distribution(net: gg.BayesianNetwork) -> None:
    joint = joint_of(net)
    for other in (net.to_markov_network(), net.to_factor_graph(), net.to_factor_graph().to_markov_network()):
        assert other.variables == net.variables
        assert np.allclose(joint_of(other), joint, atol=1e-14)
    assert net.to_markov_network().graph.edges() == gg.graphs.moralize(net.graph).edges()


@given(networks())
def test_polytrees_stay_trees_as_factor_graphs(net: gg.BayesianNetwork) -> None:
    assert net.to_factor_graph().is_forest == net.is_polytree()


@given(networks(), st.integers(0, 5), st.integers(0, 2))
def test_do_is_truncated_factorization(net: gg.BayesianNetwork, which: int, state: int) -> None:
    var = net.vars[which % len(net)]
    state %= var.size
    after = net.do({var.name: var.states[state]})
    assert after.parents(var.name) == ()
    kept = [c for c in net.conditionals if c is not None and c.child != var]
    total = TableFactor((var,), np.eye(var.size)[state])
    for c in kept:
        total = total.product(TableFactor(c.scope, c.table()))
    expected = total.reorder(net.vars).values * np.exp(total.log_scale)
    assert np.allclose(joint_of(after), expected, atol=1e-14)
    assert all(after.parents(c.child.name) == net.parents(c.child.name) for c in kept)


def test_do_in_its_forms() -> None:
    net = gg.datasets.asia()
    assert net.do("smoke", "no") == net.do({"smoke": "no"})
    assert net.do({"lung": "yes"}).parents("lung") == ()
    assert net.parents("lung") == ("smoke",)
    coin = net.do({"lung": {"no": 0.5, "yes": 0.5}})
    assert coin.cpt["lung"].values.tolist() == [0.5, 0.5] == net.do({"lung": [0.5, 0.5]}).cpt["lung"].values.tolist()
    two = net.do({"lung": "yes", "tub": "no"})
    assert (two.parents("lung"), two.parents("tub")) == ((), ())
    with pytest.raises(gg.StateError):
        net.do({"smoke": "maybe"})
    with pytest.raises(gg.VariableError, match="Did you mean 'smoke'"):
        net.do({"smok": "no"})
    with pytest.raises(gg.ModelError, match=r"sums to 0\.8"):
        net.do({"smoke": [0.5, 0.3]})
    assert gg.BayesianNetwork("a -> b").do({"b": "yes"}).edges == ()


@pytest.mark.parametrize("K, M", [(2, 1), (2, 5), (3, 4), (6, 7)])
def test_parameters_of_a_chain(K: int, M: int) -> None:
    assert markov_chain(M, K).n_parameters == K - 1 + (M - 1) * K * (K - 1)
    assert markov_chain(M, K).random_tables(0).n_parameters == K - 1 + (M - 1) * K * (K - 1)


def test_parameters_of_the_extremes() -> None:
    names = list("abcd")
    full = gg.BayesianNetwork({name: names[:i] for i, name in enumerate(names)}, states=dict.fromkeys(names, 3))
    assert full.n_parameters == 3**4 - 1
    assert gg.BayesianNetwork("a[3]; b[3]; c[3]; d[3]").n_parameters == 4 * (3 - 1)
    assert naive_bayes("y", 3, {"a": 2, "b": 4}).n_parameters == 2 + 3 * 1 + 3 * 3
    assert gg.datasets.alarm_radio().to_markov_network().graph.n == 4


def test_graph_questions_by_name() -> None:
    net = gg.datasets.asia()
    assert net.children("smoke") == ("lung", "bronc")
    assert net.ancestors("xray") == ("asia", "tub", "either", "smoke", "lung")
    assert net.descendants("tub") == ("either", "xray", "dysp")
    assert set(net.markov_blanket("lung")) == {"smoke", "tub", "either"}
    assert net.roots == ("asia", "smoke")
    assert net.leaves == ("xray", "dysp")
    assert net.is_dseparated("asia", "smoke")
    assert net.is_dconnected("asia", "smoke", given=["dysp"])
    assert net.is_dseparated(["asia", "tub"], ["smoke", "bronc"], given=())
    assert net.is_dseparated("xray", ["smoke", "dysp"], given=["either", "bronc"])
    assert net.active_trail("tub", "lung", given="xray") == ("tub", "either", "lung")
    assert net.active_trail("tub", "lung") is None
    assert net.minimal_dseparator("asia", "xray") == ("tub",)
    assert net.minimal_dseparator("asia", "xray", allowed=["either", "lung"]) == ("either",)
    assert net.minimal_dseparator("asia", "tub") is None
    assert not net.is_polytree()
    assert gg.datasets.burglary().is_polytree()
    assert ("bronc", "either") in {tuple(sorted(edge)) for edge in net.moralize().links}
    assert ("asia", "tub") in net.edges
    order = net.topological_order()
    assert all(order.index(a) < order.index(b) for a, b in net.edges)
    with pytest.raises(gg.VariableError, match="Did you mean 'either'"):
        net.markov_blanket("eiter")


def test_markov_equivalence_and_cpdag() -> None:
    chain, fork = gg.BayesianNetwork("A -> B -> C"), gg.BayesianNetwork("C <- B -> A")
    collider = gg.BayesianNetwork("A -> B <- C")
    assert chain.is_equivalent(fork)
    assert not chain.is_equivalent(collider)
    assert not chain.is_equivalent(gg.BayesianNetwork("A -> B -> D"))
    assert chain.cpdag().arrows == ()
    assert collider.cpdag().links == ()
    assert collider.cpdag().has_edge("A", "B")


def test_the_three_graphs_of_the_two_coins() -> None:
    nets = [gg.datasets.two_coins(collider) for collider in "ABC"]
    joints = [joint_of(net) for net in nets]
    assert all(np.array_equal(joint, joints[0]) for joint in joints)
    assert not nets[0].is_equivalent(nets[1])
    for net in nets:
        assert gg.graphs.is_i_map(net.graph, joints[0])
        assert not gg.graphs.is_perfect_map(net.graph, joints[0])


def test_junction_tree_by_name() -> None:
    tree = gg.datasets.asia().to_junction_tree()
    assert tree.width == 2
    assert len(tree.edges) == len(tree.separators) == len(tree.cliques) - 1
    for (a, b), shared in zip(tree.edges, tree.separators, strict=True):
        assert set(shared) == set(tree.cliques[a]) & set(tree.cliques[b])
    assert set(tree.clique_with(["tub", "lung"])) == {"tub", "lung", "either"}
    with pytest.raises(gg.VariableError, match="no clique"):
        tree.clique_with(["asia", "xray"])
    assert nx.is_tree(tree.to_networkx())
    assert "either" in str(tree)
    assert "width 2" in repr(tree)


def test_networkx_and_back() -> None:
    net = gg.datasets.fuel_gauge()
    graph = net.to_networkx()
    assert graph.nodes["gauge"]["states"] == ("empty", "full")
    again = gg.BayesianNetwork.from_networkx(graph, cpds={name: net.conditional(name) for name in net.variables})
    assert again == net
    assert again.name == "fuel gauge"
    with pytest.raises(gg.ModelError, match="cycle"):
        gg.BayesianNetwork.from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]))
    assert set(net.moralize().to_networkx().edges) == {("battery", "gauge"), ("battery", "fuel"), ("gauge", "fuel")}


def test_networks_are_compared_by_value() -> None:
    assert gg.datasets.asia() == gg.datasets.asia()
    assert hash(gg.datasets.asia()) == hash(gg.datasets.asia())
    assert gg.datasets.asia() != gg.datasets.asia().do("smoke", "no")
    changed = gg.datasets.asia().draft()
    changed.cpt["asia"] = 0.011
    assert changed.build() != gg.datasets.asia()
    assert gg.datasets.asia() != gg.BayesianNetwork("a -> b")
    assert gg.datasets.asia() != 3
    noisy = gg.datasets.alarm_radio()
    dense = gg.BayesianNetwork.from_parts(
        noisy.vars, [Table(c.child, c.parents, c.table()) for c in noisy.conditionals if c is not None]
    )
    assert noisy == dense
    assert gg.BayesianNetwork("a -> b") == gg.BayesianNetwork("a -> b")
    assert gg.BayesianNetwork("a -> b") != gg.BayesianNetwork("a; b")


def test_random_tables_are_seeded_and_concentrated() -> None:
    net = gg.BayesianNetwork("a[3] -> b[4] <- c; d[1]")
    assert net.random_tables(3) == net.random_tables(3)
    assert net.random_tables(3) != net.random_tables(4)
    flat = net.random_tables(0, concentration=1e6).cpt["b"].values
    assert np.abs(flat - 0.25).max() < 0.01
    sharp = net.random_tables(0, concentration=1e-2)
    assert sharp.check_model()
    assert (sharp.cpt["b"].values.max(axis=-1) > 0.9).mean() > 0.5
    with pytest.raises(gg.ModelError, match="positive"):
        net.random_tables(0, concentration=0)


def test_short_representations() -> None:
    assert repr(gg.datasets.asia()) == "BayesianNetwork('asia', 8 variables, 8 edges, 18 parameters)"
    assert repr(gg.BayesianNetwork("a -> b")) == "BayesianNetwork(2 variables, 1 edge, structure without tables)"
    assert gg.datasets.asia()._repr_html_().count('class="head"') == 8  # a drawing
    assert "40 more" in markov_chain(100)._repr_html_()


def test_assignments_must_be_full_and_known() -> None:
    net = gg.datasets.fuel_gauge()
    with pytest.raises(gg.VariableError, match="no value for gauge, fuel"):
        net.joint_log_prob({"battery": "flat"})
    with pytest.raises(gg.VariableError, match="not a variable"):
        net.joint_log_prob({"battery": "flat", "fuel": "full", "gauge": "full", "x": 1})
    with pytest.raises(gg.StateError):
        net.joint_log_prob({"battery": "half", "fuel": "full", "gauge": "full"})


def test_structured_factors_sum_to_the_dense_joint() -> None:
    from gramgraph.conditionals import NoisyOr
    from gramgraph.variables import binary

    parents, child = [binary(f"p{i}") for i in range(5)], binary("c")
    cpds = {p.name: 0.1 * (i + 1) for i, p in enumerate(parents)}
    noisy = NoisyOr(child, parents, [0.9, 0.5, 0.3, 0.2, 0.7], leak=0.05)
    net = gg.BayesianNetwork({"c": [p.name for p in parents]}, cpds={**cpds, "c": noisy})
    assert len(net.factors()) > len(net.factors(structured=False)) == 6
    assert np.allclose(joint_of(net, structured=True), joint_of(net), atol=1e-15)
    assert isinstance(LogLinear([("a", [0.0, 1.0])], [1.0]), GraphicalModel)


def test_an_intervention_needs_a_value() -> None:
    net = gg.BayesianNetwork("T -> y; x{real}")
    for missing in ("T", {"T": None}):
        with pytest.raises(gg.ModelError, match=r'do needs a value: do\(\{"T": "yes"\}\)'):
            net.do(missing)
    with pytest.raises(gg.ModelError, match=r'do\(\{"x": 1.0\}\)'):
        net.do("x")
