"""The ways in which a network can be written down."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.conditionals import Deterministic, NoisyOr, Table
from gramgraph.variables import binary, discrete

WET = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]])  # sprinkler, rain, wet


def same(net: gg.BayesianNetwork) -> bool:
    return np.allclose(net.cpt["W"].values, WET, atol=1e-15) and np.allclose(net.cpt["S"].values, [0.7, 0.3])


@pytest.mark.parametrize(
    "wet",
    [
        WET,
        WET.tolist(),
        WET.ravel(),
        WET.reshape(4, 2),
        {("no", "no"): 0, ("no", "yes"): 0.9, ("yes", "no"): 0.8, ("yes", "yes"): 0.99},
        {"S=no, R=no": [1, 0], "R=yes,S=no": [0.1, 0.9], "S=yes, R=no": [0.2, 0.8], "S=yes, R=yes": [0.01, 0.99]},
        {"S=no, R=no": {"no": 1}, ("no", "yes"): 0.9, ("yes", "no"): {"no": 0.2, "yes": 0.8}, ("yes", "yes"): 0.99},
        {"S=no": [1, 0], "S=no, R=yes": 0.9, "S=yes": [[0.2, 0.8], [0.01, 0.99]]},
        {(False, False): 0, (False, True): 0.9, (True, False): 0.8, (True, True): 0.99},
    ],
)
def test_forms_of_a_table(wet: object) -> None:
    assert same(gg.BayesianNetwork("S -> W <- R", cpds={"S": 0.3, "R": [0.8, 0.2], "W": wet}))


def test_structures_in_other_forms() -> None:
    cpds = {"S": 0.3, "R": 0.2, "W": WET}
    assert same(gg.BayesianNetwork({"W": ["S", "R"]}, cpds=cpds))
    assert same(gg.BayesianNetwork(edges=[("S", "W"), ("R", "W")], cpds=cpds))
    s, r, w = map(binary, "SRW")
    parts = [Table(w, (s, r), WET), Table(s, (), [0.7, 0.3]), Table(r, (), [0.8, 0.2])]
    net = gg.BayesianNetwork(cpds=parts)
    assert same(net)
    assert net.variables == ("W", "S", "R")


def test_a_conditional_brings_its_own_order_of_parents() -> None:
    s, r, w = map(binary, "SRW")
    net = gg.BayesianNetwork("S -> W <- R", cpds={"S": 0.3, "R": 0.2, "W": Table(w, (r, s), WET.transpose(1, 0, 2))})
    assert net.parents("W") == ("R", "S")
    assert net.cpt["W"][{"S": "yes", "R": "no"}].tolist() == [0.2, 0.8]


def test_states_come_from_where_they_are_written() -> None:
    net = gg.BayesianNetwork("A{lo|hi} -> B[3]; C; D", states={"C": ["x", "y", "z"], "D": "u|v"})
    assert [net.states(name) for name in "ABCD"] == [("lo", "hi"), ("0", "1", "2"), ("x", "y", "z"), ("u", "v")]
    used = gg.BayesianNetwork(
        "A -> B", cpds={"A": {"lo": 0.5, "hi": 0.5}, "B": {"lo": {"x": 0.1, "y": 0.9}, "hi": {"x": 1}}}
    )
    assert (used.states("A"), used.states("B")) == (("lo", "hi"), ("x", "y"))
    assert used.cpt["B"]["hi"].tolist() == [1.0, 0.0]
    contexts = gg.BayesianNetwork("A -> B", cpds={"A": [0.2, 0.8], "B": {"off": 0.1, "on": 0.7}})
    assert contexts.states("A") == ("off", "on")
    plain = gg.BayesianNetwork("A -> B", cpds={"A": 0.5, "B": {"yes": 0.1, "no": 0.7}})
    assert plain.states("A") == ("no", "yes")


def test_functions_become_deterministic_conditionals() -> None:
    net = gg.BayesianNetwork("A -> C <- B", cpds={"A": 0.5, "B": 0.5, "C": lambda a, b: a == "yes" and b == "yes"})
    assert isinstance(net.conditional("C"), Deterministic)
    assert net.cpt["C"][("yes", "yes")].tolist() == [0.0, 1.0]


def test_all_faults_come_at_once() -> None:
    with pytest.raises(gg.ModelError) as caught:
        gg.BayesianNetwork(
            "A -> B -> C -> B; D{x|x} -> E; F -> G",
            states={"Z": 2, "F": 3},
            cpds={
                "A": [0.5, 0.6],
                "D": [0.5, 0.5],
                "E": {"x": 0.5},
                "F": [0.2, 0.8],
                "G": {"0": 0.1, "1": 0.2, "2": 0.3, "3": 1.0},
                "Q": 0.1,
            },
        )
    text = "\n".join(caught.value.faults)
    for words in (
        "cpds: 'Q' is not a variable",
        "states: 'Z' is not a variable",
        "p(A) sums to 1.1, not 1",
        "D has the state 'x' more than once",
        "cycle: B -> C -> B",
        "the table of F: 3 numbers are expected",
        "'3' is not a state of F",
        "no conditional yet for B, C",
    ):
        assert words in text, words


@pytest.mark.parametrize(
    "cpds, words",
    [
        ({"A": 0.5, "B": 0.5}, "one number, but B has parents"),
        ({"A": 0.5, "B": [0.1, 0.9]}, r"shape \(2, 2\)"),
        ({"A": 0.5, "B": {"no": 0.1}}, "no row for p\\(B \\| A=yes\\)"),
        ({"A": 0.5, "B": {"no": 0.1, "yes": 0.2, ("yes",): 0.3}}, "more than one row"),
        ({"A": 0.5, "B": {"no": 0.1, "A=yes": 0.2, "Z=yes": 1}}, "'Z' cannot stand in a context of B"),
        ({"A": 0.5, "B": {("no", "yes"): 0.1}}, "takes 1 labels"),
        ({"A": 0.5, "B": "text"}, "must be numbers"),
        ({"A": [0.2, 0.3, 0.5], "B": {"no": 0.1, "yes": 0.2}}, r"write A\{a\|b\|c\} or A\[3\]|2 numbers are expected"),
        ({"A": 0.5}, "no conditional yet for B"),
        ({"A": 1.5, "B": {"no": 0, "yes": 1}}, "negative entries"),
        ({"A": [np.nan, 1], "B": {"no": 0, "yes": 1}}, "not finite"),
    ],
)
def test_faulty_tables_are_named(cpds: dict[str, object], words: str) -> None:
    with pytest.raises(gg.ModelError, match=words):
        gg.BayesianNetwork("A -> B", cpds=cpds)


def test_parents_that_disagree_with_the_structure() -> None:
    a, b, c = map(binary, "abc")
    with pytest.raises(gg.ModelError, match="has the parents \\(c\\), but the structure says \\(a\\)"):
        gg.BayesianNetwork("a -> b; c", cpds=[Table(b, (c,), np.eye(2)), Table(a, (), [1, 0]), Table(c, (), [1, 0])])
    with pytest.raises(gg.ModelError, match="gives a the states"):
        gg.BayesianNetwork("a{x|y} -> b", cpds=[Table(b, (a,), np.eye(2)), Table(a, (), [1, 0])])
    with pytest.raises(gg.ModelError, match="more than one conditional"):
        gg.BayesianNetwork(cpds=[Table(a, (), [1, 0]), Table(a, (), [0, 1])])
    with pytest.raises(gg.ModelError, match="cpds must be a list of conditionals"):
        gg.BayesianNetwork(cpds=[0.3])  # type: ignore[list-item]


def test_a_transposed_table_is_recognized() -> None:
    with pytest.raises(gg.ModelError, match="transposed"):
        gg.BayesianNetwork("S -> W <- R", cpds={"S": 0.3, "R": 0.2, "W": WET.reshape(4, 2).T})


def test_a_faulty_network_can_be_inspected() -> None:
    net = gg.BayesianNetwork("A -> B -> A; C", cpds={"A": np.ones(7), "B": np.eye(2), "C": [0.5, 0.6]}, check=False)
    found = net.faults()
    assert len(found) == 3
    assert any("cycle: A -> B -> A" in fault for fault in found)
    assert net.parents("B") == ("A",)
    with pytest.raises(gg.ModelError):
        net.check_model()


def test_a_structure_without_numbers() -> None:
    net = gg.BayesianNetwork("A -> B -> C")
    assert not net.has_tables
    assert net.is_dseparated("A", "C", given="B")
    assert net.n_parameters == 5
    for ask in (
        net.factors,
        lambda: net.joint_log_prob({}),
        net.check_model,
        lambda: net.cpt["A"],
        net.to_markov_network,
    ):
        with pytest.raises(gg.ModelError, match=r"no conditional yet .* fit"):
            ask()


def test_numbers_belong_to_the_network_alone() -> None:
    mine = np.array([0.4, 0.6])
    net = gg.BayesianNetwork("A", cpds={"A": mine})
    part = Table(binary("A"), (), mine)
    mine[:] = 0.5
    assert net.cpt["A"].values.tolist() == [0.4, 0.6] == part.values.tolist()
    with pytest.raises(ValueError, match="read-only"):
        net.cpt["A"].values[0] = 1.0


def test_from_parts_names_unknown_parents() -> None:
    a, b, q = binary("a"), binary("b"), binary("q")
    tables = [Table(a, (), [0.5, 0.5]), Table(b, (q,), np.eye(2))]
    with pytest.raises(gg.ModelError, match="b has the parent 'q', which is not a variable"):
        gg.BayesianNetwork.from_parts([a, b], tables)
    loose = gg.BayesianNetwork.from_parts([a, b], tables, check=False)
    assert any("'q'" in fault for fault in loose.faults())
    with pytest.raises(gg.ModelError, match="is one of b"):
        gg.BayesianNetwork.from_parts([a], [Table(b, (), [0.5, 0.5])])
    with pytest.raises(gg.ModelError, match="with the states 0, 1, 2, not no, yes"):
        gg.BayesianNetwork.from_parts([a, b], [tables[0], Table(b, (discrete("a", 3),), np.full((3, 2), 0.5))])
    with pytest.raises(gg.ModelError, match="more than once"):
        gg.BayesianNetwork.from_parts([a, a], [tables[0], tables[0]])


def test_kinds_of_conditionals_mix() -> None:
    a, b, c = map(binary, "abc")
    net = gg.BayesianNetwork("a -> c <- b", cpds={"a": 0.1, "b": 0.2, "c": NoisyOr(c, (a, b), [0.9, 0.8])})
    assert np.exp(net.joint_log_prob({"a": "yes", "b": "yes", "c": "no"})) == pytest.approx(0.1 * 0.2 * 0.1 * 0.2)
    assert net.n_parameters == 1 + 1 + 3


def test_variables_need_states() -> None:
    for net in (
        gg.BayesianNetwork("A -> B", states={"A": []}, check=False),
        gg.BayesianNetwork("A -> B", states={"A": []}, cpds={"A": [], "B": np.zeros((0, 2))}, check=False),
    ):
        assert "A has no states" in net.faults()
    with pytest.raises(gg.ModelError, match="states are a list of labels"):
        gg.BayesianNetwork("A", states={"A": None})


def test_checks_of_a_large_network_take_one_pass() -> None:
    """A wrong row among ten thousand is found and named."""
    n = 2000
    names = [f"v{i}" for i in range(n)]
    net = gg.BayesianNetwork({name: names[max(0, i - 2) : i] for i, name in enumerate(names)}).random_tables(0)
    assert net.check_model()
    c = net.conditional("v1500")
    wrong = c.table().copy()
    wrong[1, 0] = [0.5, 0.6]
    parts = list(net.conditionals)
    parts[1500] = Table(c.child, c.parents, wrong)
    with pytest.raises(gg.ModelError, match=r"p\(v1500 \| v1498=yes, v1499=no\) sums to 1\.1"):
        gg.BayesianNetwork.from_parts(net.vars, parts)
