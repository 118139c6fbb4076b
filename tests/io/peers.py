"""Networks for the tests of files, and comparisons with what pyAgrum and pgmpy hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, Deterministic, NoisyMax, Table
from gramgraph.models import BayesianNetwork
from gramgraph.variables import Var, discrete


def draw_table(child: Var, parents: tuple[Var, ...], rng: np.random.Generator) -> Table:
    rows = rng.dirichlet(np.ones(child.size), size=[var.size for var in parents])
    return Table(child, parents, rows)


def random_network(seed: int, n: int = 7, *, words: bool = False, most: int = 3) -> BayesianNetwork:
    """A network with up to `most` parents a node, listed in any order; with `words`, awkward names and labels."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(n)]
    if words:
        odd = [
            "a b",
            'ünï <&> "q"',
            "1st",
            "x;y(z)|{w}",
            "tab\tend",
            " space ",
            "x_1st",
            "per%cent",
            "back\\slash",
            "a_b",
        ]
        names = [odd[i % len(odd)] + ("" if i < len(odd) else str(i)) for i in range(n)]
    order = rng.permutation(n)
    variables = []
    for i, name in enumerate(names):
        size = int(rng.integers(2, 5))
        labels = [f"s{j}" for j in range(size)]
        if words:
            labels = [["yes no", "0", '"q"', "a,b"][j] + str(i) for j in range(size)]
        variables.append(discrete(name, labels))
    conditionals: list[Conditional | None] = [None] * n
    for place, i in enumerate(order):
        before = order[:place]
        count = int(rng.integers(0, min(most, len(before)) + 1))
        parents = tuple(variables[j] for j in rng.permutation(before)[:count])
        conditionals[i] = draw_table(variables[i], parents, rng)
    return BayesianNetwork.from_parts(variables, conditionals, name="net")


def structured_network(seed: int) -> BayesianNetwork:
    """Roots, a noisy-max, a function of it, and a table below all of them."""
    rng = np.random.default_rng(seed)
    a, b, c = discrete("a", 2), discrete("b", 3), discrete("c", 2)
    pain = discrete("pain", ["none", "mild", "strong"])
    again = discrete("again", ["none", "mild", "strong"])
    odd, last = discrete("odd", ["no", "yes"]), discrete("last", 2)

    def link(size: int, neutral: int) -> Any:
        rows = rng.dirichlet(np.ones(3), size=size)
        rows[neutral] = [1.0, 0.0, 0.0]
        return rows

    first = NoisyMax(pain, (b, a), [link(3, 1), link(2, 0)], rng.dirichlet(np.ones(3)))
    second = NoisyMax(again, (pain, c), [link(3, 0), link(2, 1)])
    function = Deterministic(odd, (pain, a, again), rng.integers(0, 2, size=(3, 2, 3)))
    tables = [draw_table(var, (), rng) for var in (a, b, c)]
    below = draw_table(last, (odd, again, b), rng)
    variables = (a, b, c, pain, again, odd, last)
    return BayesianNetwork.from_parts(variables, [*tables, first, second, function, below], name="structured")


def same(left: BayesianNetwork, right: BayesianNetwork, *, atol: float = 0.0) -> None:
    """Equal names, states, parents in order, numbers (bit for bit unless `atol` is given), name and metadata."""
    assert left.variables == right.variables
    assert left.name == right.name
    for name in left.variables:
        assert left.states(name) == right.states(name)
        assert left.parents(name) == right.parents(name)
        one, two = left.conditional(name).table(), right.conditional(name).table()
        if atol:
            np.testing.assert_allclose(one, two, rtol=0.0, atol=atol)
        else:
            np.testing.assert_array_equal(one, two)


def agrum_table(bn: Any, name: str, parents: tuple[str, ...]) -> Any:
    """The table of a pyAgrum network with the axes (*parents, child)."""
    return bn.cpt(name).reorganize([name, *parents[::-1]]).toarray()


def to_agrum(net: BayesianNetwork, gum: Any) -> Any:
    """The same network in pyAgrum, parents in the same order."""
    bn = gum.BayesNet(net.name)
    for name in net.variables:
        bn.add(gum.LabelizedVariable(name, name, list(net.states(name))))
    for name in net.variables:
        for parent in net.parents(name):
            bn.addArc(parent, name)
    for name in net.variables:
        cpt = bn.cpt(name)
        order = cpt.names[1:]  # pyAgrum fills with the first name fastest: child, then parents
        axes = [net.parents(name).index(parent) for parent in reversed(order)]
        table = net.conditional(name).table()
        cpt.fillWith(table.transpose([*axes, table.ndim - 1]).ravel().tolist())
    return bn


def agrees_with_agrum(net: BayesianNetwork, bn: Any, *, atol: float) -> None:
    assert sorted(net.variables) == sorted(bn.names())
    for name in net.variables:
        assert list(net.states(name)) == list(bn.variable(name).labels())
        assert set(net.parents(name)) == {bn.variable(parent).name() for parent in bn.parents(name)}
        table = agrum_table(bn, name, net.parents(name))
        np.testing.assert_allclose(net.conditional(name).table(), table, rtol=0.0, atol=atol)


def to_pgmpy(net: BayesianNetwork) -> Any:
    """The same network in pgmpy."""
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork()
    model.add_nodes_from(net.variables)
    model.add_edges_from([(parent, name) for name in net.variables for parent in net.parents(name)])
    for name in net.variables:
        conditional = net.conditional(name)
        table = np.moveaxis(conditional.table(), -1, 0).reshape(conditional.child.size, -1)
        family = (name, *net.parents(name))
        model.add_cpds(
            TabularCPD(
                name,
                conditional.child.size,
                table,
                evidence=list(net.parents(name)),
                evidence_card=[parent.size for parent in conditional.parents],
                state_names={member: list(net.states(member)) for member in family},
            )
        )
    return model


def agrees_with_pgmpy(net: BayesianNetwork, model: Any, *, atol: float) -> None:
    assert sorted(net.variables) == sorted(model.nodes)
    for name in net.variables:
        cpd = model.get_cpds(name)
        order = cpd.variables[1:]
        assert sorted(order) == sorted(net.parents(name))
        table = np.moveaxis(np.asarray(cpd.values), 0, -1)
        axes = [order.index(parent) for parent in net.parents(name)]
        for member in (name, *net.parents(name)):
            assert [str(state) for state in cpd.state_names[member]] == list(net.states(member))
        table = table.transpose([*axes, table.ndim - 1])
        np.testing.assert_allclose(net.conditional(name).table(), table, rtol=0.0, atol=atol)
