"""Laws that hold for every kind of conditional, and each kind against its formula."""

from __future__ import annotations

import json
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.conditionals import (
    KINDS,
    Conditional,
    Deterministic,
    Gate,
    NoisyMax,
    NoisyOr,
    Table,
    TreeTable,
    from_fields,
)
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.factors import TableFactor
from gramgraph.variables import Var, binary, discrete


def family(rng: np.random.Generator, n_parents: int, child_size: int) -> tuple[Var, tuple[Var, ...]]:
    parents = tuple(discrete(f"p{i}", int(rng.integers(2, 4))) for i in range(n_parents))
    return discrete("y", child_size), parents


def some(kind: str, rng: np.random.Generator, n_parents: int = 2) -> Conditional:
    """A random conditional of each kind."""
    child, parents = family(rng, n_parents, 2 if kind in ("noisy_or", "gate") else 3)
    sizes = [p.size for p in parents]
    if kind == "table":
        return Table(child, parents, rng.dirichlet(np.ones(child.size), size=sizes))
    if kind == "noisy_or":
        return NoisyOr(child, parents, [rng.random(k) for k in sizes], leak=rng.random())
    if kind == "noisy_max":
        links = [rng.dirichlet(np.ones(child.size), size=k) for k in sizes]
        return NoisyMax(child, parents, links, rng.dirichlet(np.ones(child.size)))
    if kind == "deterministic":
        return Deterministic(child, parents, rng.integers(0, child.size, size=sizes))
    if kind == "gate":
        return Gate(child, parents, str(rng.choice(["xor", "or", "and", "count"])))
    if kind == "boosted":
        frame = {var.name: rng.choice(var.states, size=40) for var in (child, *parents)}
        frame[child.name][: child.size] = child.states
        return gg.Boosted(n_estimators=3, min_samples_leaf=1).fit(child, parents, frame)
    assert kind == "tree", f"write a sample of {kind}"

    def grow(left: list[Var]) -> object:
        if not left or rng.random() < 0.3:
            return rng.dirichlet(np.ones(child.size)).tolist()
        first, *rest = left
        return {first.name: {first.states[0]: grow(rest), "*": grow(rest)}}

    return TreeTable(child, parents, grow(list(parents)))


seeds = st.integers(0, 2**32)
kinds = st.sampled_from(sorted(kind for kind, cls in KINDS.items() if cls.tabular))  # others have no table


@given(kinds, seeds, st.integers(0, 4))
def test_rows_are_distributions(kind: str, seed: int, n: int) -> None:
    c = some(kind, np.random.default_rng(seed), n)
    table = c.table()
    assert table.shape == tuple(var.size for var in c.scope)
    assert c.size == table.size
    assert (table >= 0).all()
    assert np.allclose(table.sum(axis=-1), 1.0)
    assert c.faults() == []


@given(kinds, seeds, st.integers(0, 5))
def test_factors_multiply_to_the_table(kind: str, seed: int, n: int) -> None:
    c = some(kind, np.random.default_rng(seed), n)
    total = TableFactor.unit()
    for factor in c.factors():
        assert (factor.values >= 0).all()
        total = total.product(factor)
    hidden = [var for var in total.scope if var not in c.scope]
    assert all(var.name.startswith("y·") for var in hidden)
    total = total.marginalize(hidden).reorder(c.scope)
    assert np.allclose(total.values * np.exp(total.log_scale), c.table(), atol=1e-14)
    small = sum(factor.values.size for factor in c.factors())
    assert c.is_structured == (small < c.size)


@given(kinds, seeds, st.integers(0, 3))
def test_single_cells_agree_with_the_table(kind: str, seed: int, n: int) -> None:
    c = some(kind, np.random.default_rng(seed), n)
    table = c.table()
    for at in product(*(range(var.size) for var in c.scope)):
        assert c.prob_at(at) == pytest.approx(table[at], abs=1e-15)


@given(kinds, seeds, st.integers(0, 3))
def test_fields_survive_json(kind: str, seed: int, n: int) -> None:
    c = some(kind, np.random.default_rng(seed), n)
    fields = json.loads(json.dumps(c.to_fields()))
    again = from_fields(fields, {var.name: var for var in c.scope})
    assert type(again) is type(c)
    assert again.equals(c)
    assert np.array_equal(again.table(), c.table())
    assert again.n_parameters == c.n_parameters
    assert pickle.loads(pickle.dumps(c)).equals(c)
    assert Table(c.child, c.parents, c.table()).equals(c)


def test_fields_name_what_is_wrong() -> None:
    with pytest.raises(ModelError, match="Did you mean 'table'"):
        from_fields({"kind": "tabel"}, {})
    with pytest.raises(ModelError, match="lack child"):
        from_fields({"kind": "table"}, {})
    with pytest.raises(VariableError, match="'q' is not a variable"):
        from_fields({"kind": "table", "child": "q", "parents": [], "values": []}, {"a": binary("a")})


def test_equality_sees_numbers_and_scopes() -> None:
    a, b = binary("a"), binary("b")
    assert not Table(a, (), [0.5, 0.5]).equals(Table(a, (), [0.4, 0.6]))
    assert not Table(a, (), [0.5, 0.5]).equals(Table(b, (), [0.5, 0.5]))
    assert not NoisyOr(a, (b,), [0.5]).equals(NoisyOr(a, (b,), [0.5], leak=0.1))


# ------------------------------------------------------------------------------------------------- tables


def test_tables_list_their_faulty_rows() -> None:
    a, b = binary("a"), discrete("b", 30)
    rows = np.tile([0.5, 0.5], (30, 1))
    rows[3] = [0.5, 0.6]
    assert Table(a, (b,), rows).faults() == ["p(a | b=3) sums to 1.1, not 1"]
    assert len(Table(a, (b,), rows * 2).faults()) == 21
    assert "10 more rows" in Table(a, (b,), rows * 2).faults()[-1]
    rows[5] = [-0.5, 1.5]
    assert any("negative" in fault for fault in Table(a, (b,), rows).faults())
    rows[6, 0] = np.nan
    assert Table(a, (b,), rows).faults() == ["the table of a has entries that are not finite numbers"]
    assert Table(a, (), [2.0, 2.0]).normalized().values.tolist() == [0.5, 0.5]


# ------------------------------------------------------------------------------------------------- noisy


@given(seeds, st.integers(0, 4))
def test_noisy_or_formula(seed: int, n: int) -> None:
    """p(on | x) = 1 − (1 − leak) Π (1 − q_i(x_i))."""
    rng = np.random.default_rng(seed)
    c = some("noisy_or", rng, n)
    assert isinstance(c, NoisyOr)
    for at in product(*(range(p.size) for p in c.parents)):
        off = 1.0 - c.leak[1]
        for q, i in zip(c.probabilities, at, strict=True):
            off *= 1.0 - q[i]
        assert c.table()[at] == pytest.approx([off, 1.0 - off])


@given(seeds, st.integers(0, 3))
def test_noisy_max_is_the_maximum_of_independent_effects(seed: int, n: int) -> None:
    c = some("noisy_max", np.random.default_rng(seed), n)
    assert isinstance(c, NoisyMax)
    k = c.child.size
    for at in product(*(range(p.size) for p in c.parents)):
        expected = np.zeros(k)
        rows = [c.leak, *(link[i] for link, i in zip(c.links, at, strict=True))]
        for effects in product(range(k), repeat=len(rows)):
            expected[max(effects)] += np.prod([row[z] for row, z in zip(rows, effects, strict=True)])
        assert c.table()[at] == pytest.approx(expected)


def test_noisy_or_stays_small_with_many_parents() -> None:
    parents = tuple(binary(f"p{i}") for i in range(60))
    c = NoisyOr(binary("y"), parents, np.full(60, 0.5), leak=0.1)
    assert c.is_structured
    assert sum(f.values.size for f in c.factors()) == 4 + 59 * 8
    assert c.n_parameters == 61
    assert c.prob_at([0] * 60 + [1]) == pytest.approx(0.1)
    assert c.prob_at([1, 1] + [0] * 58 + [0]) == pytest.approx(0.9 * 0.25)
    names = [f.scope[-1].name for f in c.factors()]
    assert names == [f"y·{i}" for i in range(1, 60)] + ["y"]
    assert not NoisyOr(binary("y"), parents[:3], [0.5] * 3).is_structured
    assert NoisyOr(binary("y"), parents[:4], [0.5] * 4).is_structured


def test_noisy_max_with_two_states_is_noisy_or() -> None:
    y, a, b = map(binary, "yab")
    either = NoisyOr(y, (a, b), [0.3, 0.6], leak=0.1)
    largest = NoisyMax(y, (a, b), [[[1, 0], [0.7, 0.3]], [[1, 0], [0.4, 0.6]]], [0.9, 0.1])
    assert np.allclose(either.table(), largest.table())
    assert either.n_parameters == largest.n_parameters == 3


def test_noisy_mistakes() -> None:
    y, a = binary("y"), discrete("a", 3)
    with pytest.raises(ModelError, match="use NoisyMax"):
        NoisyOr(a, (y,), [0.5])
    with pytest.raises(ModelError, match="needs 1 probabilities"):
        NoisyOr(y, (a,), [0.5, 0.5])
    with pytest.raises(ModelError, match="one number, or one for each"):
        NoisyOr(y, (a,), [[0.5, 0.5]])
    assert NoisyOr(y, (a,), [1.5], leak=-0.1).faults() == [
        "the leak of y is -0.1, outside [0, 1]",
        "the link a=2 -> y is 1.5, outside [0, 1]",
    ]
    with pytest.raises(ModelError) as caught:
        NoisyMax(a, (y, y), [np.eye(2), np.eye(3)], [1, 0])
    assert len(caught.value.faults) == 3
    with pytest.raises(ModelError, match="needs 1 links"):
        NoisyMax(a, (y,), [])
    assert NoisyMax(y, (a,), np.full((1, 3, 2), 0.6), [np.nan, 1]).faults() == [
        "the leak of y has entries that are not finite numbers",
        "the link a=0 -> y sums to 1.2, not 1",
        "the link a=1 -> y sums to 1.2, not 1",
        "the link a=2 -> y sums to 1.2, not 1",
    ]


# ------------------------------------------------------------------------------------------------- deterministic


def test_deterministic_takes_labels_and_gives_states() -> None:
    a, b = discrete("a", 3), discrete("b", 3)
    total = Deterministic(discrete("sum", 5), (a, b), lambda x, y: int(x) + int(y))
    for i, j in product(range(3), range(3)):
        assert total.table()[i, j].tolist() == np.eye(5)[i + j].tolist()
    assert total.n_parameters == 0
    assert Deterministic(binary("t"), (), lambda: True).table().tolist() == [0.0, 1.0]


def test_deterministic_names_where_there_is_no_state() -> None:
    a, b = discrete("a", 2), discrete("b", ["x", "y"])
    c = Deterministic(discrete("c", 2), (a, b), lambda i, label: "7" if (i, label) == ("1", "y") else i)
    assert c.faults() == ["the function of c gave '7' at a=1, b=y, which is not one of its states (0, 1)"]
    with pytest.raises(ModelError, match="at a=1, b=y"):
        c.table()
    failing = Deterministic(discrete("c", 2), (a,), lambda i: {"0": 1}[i])
    assert failing.faults() == ["the function of c failed at a=1: KeyError: '1'"]
    assert len(Deterministic(binary("c"), (discrete("a", 50),), lambda i: None).faults()) == 21
    with pytest.raises(ModelError, match="shape"):
        Deterministic(binary("c"), (a,), [0, 1, 1])
    assert "gave 5" in Deterministic(binary("c"), (a,), [0, 5]).faults()[0]


# ------------------------------------------------------------------------------------------------- trees


def test_tree_table() -> None:
    alarm, set_, burglar = binary("alarm"), binary("set"), discrete("burglar", ["none", "clumsy", "skilled"])
    t = TreeTable(
        alarm, (set_, burglar), {"set": {"no": 0.0, "yes": {"burglar": {"none": 0.01, "*": {"yes": 0.8, "no": 0.2}}}}}
    )
    assert t.table()[..., 1].tolist() == [[0, 0, 0], [0.01, 0.8, 0.8]]
    assert t.n_parameters == 3
    assert [context for context, _ in t.leaves()] == [
        {"set": ("no",)},
        {"set": ("yes",), "burglar": ("none",)},
        {"set": ("yes",), "burglar": ("clumsy", "skilled")},
    ]
    several = TreeTable(alarm, (burglar,), {"burglar": {("none", "clumsy"): 0.1, "skilled": 0.3}})
    assert several.table()[:, 1].tolist() == [0.1, 0.1, 0.3]
    assert TreeTable(alarm, (set_,), [0.3, 0.7]).table().tolist() == [[0.3, 0.7], [0.3, 0.7]]


@pytest.mark.parametrize(
    "tree, words",
    [
        ({"b": {"no": 0.1}}, "no branch for b = yes"),
        ({"q": {"no": 0.1}}, "'q' is not a parent"),
        ({"b": {"no": 0.1, "maybe": 0.2, "yes": 0.3}}, "'maybe' is not a state of b"),
        ({"b": {"no": 0.1, ("no", "yes"): 0.2}}, "b=no has more than one branch"),
        ({"b": {"no": {"b": {"no": 0.1, "yes": 0.1}}, "yes": 0.2}}, "at b=no: b is tested a second time"),
        ({"b": {"no": [0.1, 0.2, 0.7], "yes": 0.2}}, "a row of 2 numbers is needed"),
        ({"b": {"no": {"x": 1.0}, "yes": 0.2}}, "x: not a state of a"),
    ],
)
def test_faulty_trees(tree: object, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        TreeTable(binary("a"), (binary("b"),), tree)


def test_tree_rows_that_do_not_sum_to_one_are_named() -> None:
    t = TreeTable(binary("a"), (binary("b"),), {"b": {"no": [0.5, 0.6], "yes": [-0.5, 1.5]}})
    assert t.faults() == ["p(a | b=no) sums to 1.1, not 1", "p(a | b=yes) has negative entries (smallest -0.5)"]


@pytest.mark.parametrize("links", [[1e-17], [1e-17, 3e-17], [1e-300, 0.4, 1e-40], [1e-200] * 5])
def test_a_noisy_or_keeps_links_of_any_size(links: list[float]) -> None:
    parents, child = [binary(f"p{i}") for i in range(len(links))], binary("y")
    c = NoisyOr(child, parents, links)
    alone = [tuple(int(i == j) for j in range(len(links))) for i in range(len(links))]
    for at, q in zip(alone, links, strict=True):
        assert c.table()[(*at, 1)] == pytest.approx(q, rel=1e-14)
        assert c.prob_at((*at, 1)) == pytest.approx(q, rel=1e-14)
    net = gg.BayesianNetwork.from_parts([*parents, child], [*(Table(p, (), [0.5, 0.5]) for p in parents), c])
    p = net.query("p0", {"y": "yes", **{f"p{i}": "no" for i in range(1, len(links))}})["p0"].probabilities
    assert p.tolist() == [0.0, 1.0]


def test_a_noisy_max_is_a_table_without_negative_numbers() -> None:
    rng = np.random.default_rng(3)
    effect, a, b, c = discrete("e", 4), discrete("a", 2), discrete("b", 3), discrete("c", 2)
    links = [rng.dirichlet(np.full(4, 0.05), size=v.size) for v in (a, b, c)]
    noisy = NoisyMax(effect, (a, b, c), links, [1 - 1e-18, 0.0, 1e-18, 0.0])
    table = noisy.table()
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(-1), 1.0, atol=1e-14)
    product = noisy.factors()[0]
    for factor in noisy.factors()[1:]:
        product = product.product(factor)
    hidden = [v for v in product.scope if v not in noisy.scope]
    summed = product.marginalize(hidden).reorder(noisy.scope)
    np.testing.assert_allclose(summed.values * np.exp(summed.log_scale), table, rtol=1e-12)
