from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError, ModelWarning, ParseError
from gramgraph.io import net as hugin
from gramgraph.models import BayesianNetwork
from gramgraph.variables import discrete
from tests.io import peers

CLINIC = r"""% a clinic; with { and ( in a comment
net
{
    name = "Chest \"clinic\"";
    node_size = (80 40);
    HR_Grid_X = "10";
}
node A
{
    label = "Visit to Asia?";
    position = (119 -5.5);
    states = ("yes" "no"); % two
    HR_Desc = "one\ntwo; (not) the end";
    subtype = label;
}
discrete node T { states = (pos neg "not known"); }
chance node X
{
    subtype = number;
    state_values = (0 1);
}
potential (A) { data = (0.25 0.75); }
potential (T | A)
{
    data = (( 0.5 0.25 0.25 )   % A=yes; (
            ( .125 1.25e-1 0.75 ));
    experience = (10 20);
}
potential ( X | T A )
{   model_nodes = ();
    data = (((1 0) (0.5 0.5)) ((0.2 0.8) (0.3 0.7)) ((0.4 0.6) (0.1 0.9)));
}
"""


def read(text: str, **options: bool) -> BayesianNetwork:
    return hugin.loads(text.encode(), source="clinic.net", **options)


def test_a_file_with_comments_and_attributes() -> None:
    net = read(CLINIC)
    assert net.name == 'Chest "clinic"'
    assert net.variables == ("A", "T", "X")
    assert net.states("T") == ("pos", "neg", "not known")
    assert net.states("X") == ("0", "1")
    assert net.parents("X") == ("T", "A")
    table = net.conditional("X").table()  # the last parent and then the child vary fastest
    assert table[0, 1].tolist() == [0.5, 0.5]
    np.testing.assert_allclose(table[2, 0], [0.4, 0.6])
    assert net.metadata["properties"] == ["node_size = (80 40)", 'HR_Grid_X = "10"']
    assert net.metadata["variables"] == {
        "A": {
            "label": "Visit to Asia?",
            "position": [119, -5.5],
            "properties": [r'HR_Desc = "one\ntwo; (not) the end"', "subtype = label"],
        },
        "X": {"properties": ["subtype = number", "state_values = (0 1)"], "table_properties": ["model_nodes = ()"]},
        "T": {"table_properties": ["experience = (10 20)"]},
    }


def test_round_trip_keeps_names_states_bits_and_metadata() -> None:
    for seed in range(8):
        for words in (False, True):
            net = peers.random_network(seed, 10, words=words)
            data = hugin.dumps(net)
            again = hugin.loads(data)
            peers.same(net, again)
            assert hugin.dumps(again) == data
    net = read(CLINIC)
    again = hugin.loads(hugin.dumps(net))
    peers.same(net, again)
    assert again.metadata == net.metadata


@given(st.lists(st.text(), min_size=1, max_size=4, unique=True), st.text(min_size=1), st.lists(st.text(), max_size=3))
def test_any_name_and_property_comes_back_or_is_refused(labels: list[str], name: str, properties: list[str]) -> None:
    var = discrete(name, labels)
    table = peers.draw_table(var, (), np.random.default_rng(0))
    metadata = {"properties": properties, "variables": {name: {"properties": properties, "label": name}}}
    net = BayesianNetwork.from_parts([var], [table], name=name, metadata=metadata)
    try:
        data = hugin.dumps(net)
    except ModelError as error:
        assert "UTF-8" in str(error)
        return
    again = hugin.loads(data)
    peers.same(net, again)
    assert again.metadata.get("properties", []) == properties
    assert again.metadata["variables"][name].get("properties", []) == properties


@pytest.mark.parametrize(
    "text", ['a = (1 "b c" (2 3))', "a = b", 'k = "x\\"y"', "a = 1 2", "states = (a b)", "= 3", "a = (1"]
)
def test_properties_come_back_as_they_were(text: str) -> None:
    net = read(CLINIC)
    net.metadata["properties"] = [text]
    assert hugin.loads(hugin.dumps(net)).metadata["properties"] == [text]


def test_names_that_are_no_identifiers_keep_a_readable_one() -> None:
    text = hugin.dumps(peers.random_network(0, 10, words=True)).decode()
    assert "node a_b\n" in text  # this variable is called so
    assert 'node a_b_2\n{\n    states = ("yes no0"' in text
    assert 'gramgraph_name = "a b";' in text


def test_class_around_the_elements() -> None:
    inside = CLINIC.split("}\n", 1)[1]
    net = read(f"class Clinic {{ inputs = (); outputs = (A); node_size = (80 40);\n{inside}\n}}")
    assert net.name == "Clinic"
    assert net.variables == ("A", "T", "X")
    peers.same(BayesianNetwork.from_parts([], [], name="C"), read("class C {}"))


def test_structured_conditionals_become_tables() -> None:
    net = peers.structured_network(2)
    peers.same(net, hugin.loads(hugin.dumps(net)), atol=1e-15)


@pytest.mark.parametrize(
    ("old", "new", "message", "line"),
    [
        ("0.5 0.25 0.25", "0.5 0.25 0.x5", "'0.x5' in data is not a number", 25),
        ("0.5 0.25 0.25", "normal(0, 1)", "densities cannot be read", 25),
        ("0.5 0.25 0.25", "0.5 0.25", "needs 2 · 3 = 6 numbers, 5 came", 23),
        ("0.5 0.25 0.25", "0.5 -0.25 0.25", "p(T | A=yes) has the entry -0.25", 23),
        (" .125 1.25e-1 0.75 ));", " .125 1.25e-1 0.75 );", "parentheses of data do not match", 25),
        ("(1 0) (0.5 0.5)", "(1) (0) (0.5 0.5)", "7 rows in parentheses, 6 were expected", 29),
        ("potential (T | A)", "potential (T A)", "2 stand before the '|'", 23),
        ("potential (T | A)", "potential (T | B)", "parent 'B' of 'T' is not declared", 23),
        ("potential (T | A)", "potential (T | A | A)", "more than one '|'", 23),
        ("potential (A) { data = (0.25 0.75); }", "potential (A) { }", "the potential of 'A' has no data", 22),
        ("(A) { data = (0.25 0.75); }", "(A) { model_data = (Normal(0, 1)); }", "expressions (model_data)", 22),
        ("potential (A) { data = (0.25 0.75); }", "", "variable 'A' has no probability table", 8),
        ("discrete node T", "continuous node T", "'T' is a continuous node", 16),
        ("discrete node T", "decision T", "'T' is a decision", 16),
        ("discrete node T", "utility T", "'T' is a utility", 16),
        ("discrete node T", "instance T", "'T' is an instance of a class", 16),
        ("discrete node T", "knot T", "expected net, node or potential, found 'knot'", 16),
        ('"not known"); }', '"not known); }', "a string without its closing quote", 16),
        ("    subtype = label;", "    subtype = label", "expected ';' after the value of 'subtype'", 15),
        ('states = ("yes" "no")', "states = yes", "states must be a list", 12),
        ('states = ("yes" "no")', 'states = ("yes" "yes")', "has the state 'yes' twice", 8),
        ('    states = ("yes" "no");', "", "variable 'A' has no states", 8),
    ],
)
def test_faults_name_line_and_cause(old: str, new: str, message: str, line: int) -> None:
    assert old in CLINIC
    with pytest.raises(ParseError) as caught:
        read(CLINIC.replace(old, new, 1))
    assert message in str(caught.value)
    assert (caught.value.source, caught.value.line) == ("clinic.net", line)
    assert caught.value.column is not None


def test_place_of_a_bad_number() -> None:
    with pytest.raises(ParseError) as caught:
        read(CLINIC.replace("1.25e-1 0.75", "1.25e- 0.75"))
    assert (caught.value.line, caught.value.column) == (26, 20)


@pytest.mark.parametrize(
    "text", ["net {", "class C {", "node", "node A { states = (", "potential (A", 'node "', "net { a = ", "}"]
)
def test_cut_off_files(text: str) -> None:
    with pytest.raises(ParseError):
        read(text)


def test_long_runs_of_nonsense_are_refused_quickly() -> None:
    for piece in ("chance ", "(", "net {} ", "%\n", "node ", "potential (", "a = ", '"', "discrete chance "):
        try:
            read(piece * 50_000)
        except ParseError as error:
            assert error.line is not None


def test_rows_that_are_far_off_are_repaired_with_one_warning() -> None:
    text = CLINIC.replace("data = (0.25 0.75)", "data = (1 3)")
    with pytest.warns(ModelWarning) as caught:
        net = read(text)
    assert len(caught) == 1
    assert net.conditional("A").table().tolist() == [0.25, 0.75]
    assert read(text, normalize=False).conditional("A").table().tolist() == [1, 3]


@pytest.mark.parametrize("seed", range(4))
def test_cross_reading_with_pyagrum(seed: int, tmp_path) -> None:
    gum = pytest.importorskip("pyagrum")
    net = peers.random_network(seed, 8)
    theirs, ours = str(tmp_path / "theirs.net"), str(tmp_path / "ours.net")
    gum.saveBN(peers.to_agrum(net, gum), theirs)
    with open(theirs, "rb") as file:
        read_back = hugin.loads(file.read())
    assert read_back.variables == net.variables
    for name in net.variables:
        np.testing.assert_allclose(
            read_back.conditional(name)
            .table()
            .transpose(
                [*(read_back.parents(name).index(parent) for parent in net.parents(name)), len(net.parents(name))]
            ),
            net.conditional(name).table(),
            rtol=0.0,
            atol=1e-15,
        )
    with open(ours, "wb") as file:
        file.write(hugin.dumps(net))
    peers.agrees_with_agrum(net, gum.loadBN(ours), atol=1e-6)  # pyAgrum reads NET in single precision


@pytest.mark.parametrize("seed", range(4))
def test_cross_reading_with_pgmpy(seed: int, tmp_path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    net = peers.random_network(seed, 8)
    read_back = read(str(readwrite.NETWriter(peers.to_pgmpy(net))))
    for name in net.variables:
        assert read_back.parents(name) == net.parents(name)
        assert read_back.states(name) == net.states(name)
        np.testing.assert_allclose(read_back.conditional(name).table(), net.conditional(name).table(), atol=1e-7)
    path = tmp_path / "ours.net"
    path.write_bytes(hugin.dumps(net))
    model = readwrite.NETReader(str(path)).get_model()
    peers.agrees_with_pgmpy(net, model, atol=1e-12)
