from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.conditionals import Deterministic, NoisyMax
from gramgraph.exceptions import ModelError, ModelWarning, ParseError
from gramgraph.io import xdsl
from gramgraph.models import BayesianNetwork
from gramgraph.variables import discrete
from tests.io import peers

GENIE = """<?xml version="1.0" encoding="ISO-8859-1"?>
<smile version="1.0" id="Network1" numsamples="1000">
	<nodes>
		<cpt id="Flu" target="true">
			<state id="present" fault="true" />
			<state id="absent" />
			<probabilities>0.1 0.9</probabilities>
			<property id="source">a book, page 7</property>
		</cpt>
		<cpt id="Cold"><state id="bad"/><state id="mild"/><state id="no"/><probabilities>.1 .2 .7</probabilities></cpt>
		<noisymax id="Fever">
			<state id="high" />
			<state id="low" />
			<state id="none" />
			<parents>Flu Cold</parents>
			<strengths>0 1 1 0 2</strengths>
			<parameters>0.6 0.3 0.1 0 0 1 0.2 0.3 0.5 0.4 0.4 0.2 0 0 1 0.05 0.05 0.9</parameters>
		</noisymax>
		<deterministic id="Bed">
			<state id="yes" />
			<state id="no" />
			<parents>Fever Flu</parents>
			<resultingstates>yes yes yes no no no</resultingstates>
		</deterministic>
		<cpt id="Tea">
			<state id="yes" />
			<state id="no" />
			<parents>Fever Cold</parents>
			<probabilities>.9 .1 .8 .2 .7 .3 .6 .4 .55 .45 .5 .5 .4 .6 .3 .7 .2 .8</probabilities>
		</cpt>
	</nodes>
	<extensions>
		<genie version="1.0" app="GeNIe 2.1" name="A caf\u00e9" faultnameformat="nodestate">
			<node id="Flu">
				<name>Influenza</name>
				<interior color="e5f6f7" />
				<outline color="000080" width="2" />
				<font color="000000" name="Arial" size="8" />
				<position>10 20 82 68</position>
				<comment>winter</comment>
			</node>
			<submodel id="Care">
				<name>Care</name>
				<position>100 100 172 148</position>
				<window>0 0 500 400</window>
				<submodel id="Inner">
					<name>within</name>
					<position>1 2 3 4</position>
					<node id="Tea"><name>Tea</name><position>-10 20 63 68</position>
					<barchart active="true" width="128" height="64" /></node>
				</submodel>
				<node id="Bed"><name>Bed</name><position>0 0 10 10</position></node>
			</submodel>
			<textbox><caption>a note</caption><font color="000000" name="Arial" size="8" />
			<position>5 6 7 8</position></textbox>
		</genie>
	</extensions>
</smile>
""".encode("latin-1")


def read(data: bytes, **options: bool) -> BayesianNetwork:
    return xdsl.loads(data, source="flu.xdsl", **options)


def test_a_file_of_genie() -> None:
    net = read(GENIE)
    assert net.name == "A café"
    assert net.variables == ("Flu", "Cold", "Fever", "Bed", "Tea")
    assert net.states("Flu") == ("present", "absent")
    assert net.states("Fever") == ("none", "low", "high")  # a noisy-max counts upward
    tea = net.conditional("Tea").table()
    np.testing.assert_allclose(tea[net.var("Fever").index("high")], [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
    np.testing.assert_allclose(tea[net.var("Fever").index("none"), 1], [0.3, 0.7])
    bed = net.conditional("Bed")
    assert isinstance(bed, Deterministic)
    high, low, none = (net.var("Fever").index(state) for state in ("high", "low", "none"))
    assert np.asarray(bed.outcomes)[[high, low, none]].tolist() == [[0, 0], [0, 1], [1, 1]]


def test_noisy_max_is_the_strongest_of_independent_effects() -> None:
    net = read(GENIE)
    fever = net.conditional("Fever")
    assert isinstance(fever, NoisyMax)
    # In the order of the file: high 0, low 1, none 2; the columns of Cold stand in the order mild, bad, no.
    flu = {"present": [0.6, 0.3, 0.1], "absent": [0, 0, 1]}
    cold = {"mild": [0.2, 0.3, 0.5], "bad": [0.4, 0.4, 0.2], "no": [0, 0, 1]}
    leak = [0.05, 0.05, 0.9]
    for one, two in product(flu, cold):
        expected = {"high": 0.0, "low": 0.0, "none": 0.0}
        for effects in product(range(3), repeat=3):
            p = flu[one][effects[0]] * cold[two][effects[1]] * leak[effects[2]]
            expected[("high", "low", "none")[min(effects)]] += p
        row = fever.table()[net.var("Flu").index(one), net.var("Cold").index(two)]
        found = dict(zip(net.states("Fever"), row.tolist(), strict=True))
        assert found == pytest.approx(expected, abs=1e-15)


def test_the_screen_is_kept() -> None:
    net = read(GENIE)
    about = net.metadata["variables"]
    assert about["Flu"] == {
        "label": "Influenza",
        "comment": "winter",
        "position": [46.0, 44.0],
        "box": [10, 20, 82, 68],
        "style": {
            "interior": {"color": "e5f6f7"},
            "outline": {"color": "000080", "width": "2"},
            "font": {"color": "000000", "name": "Arial", "size": "8"},
        },
        "properties": ["source = a book, page 7"],
        "attributes": {"target": "true"},
    }
    assert about["Tea"]["submodel"] == "Inner"
    assert about["Bed"]["submodel"] == "Care"
    assert [(part["id"], part.get("submodel")) for part in net.metadata["submodels"]] == [
        ("Care", None),
        ("Inner", "Care"),
    ]
    assert net.metadata["submodels"][0]["window"] == [0, 0, 500, 400]
    assert net.metadata["textboxes"][0]["caption"] == "a note"
    again = xdsl.loads(xdsl.dumps(net))
    assert again.metadata == net.metadata
    peers.same(net, again)


def test_round_trip_keeps_names_states_bits_and_kinds() -> None:
    for seed in range(8):
        nets = [peers.random_network(seed, 10, words=words) for words in (False, True)]
        for net in (*nets, peers.structured_network(seed)):
            data = xdsl.dumps(net)
            again = xdsl.loads(data)
            peers.same(net, again)
            assert xdsl.dumps(again) == data
            for name in net.variables:
                assert type(again.conditional(name)) is type(net.conditional(name))
                assert again.conditional(name).equals(net.conditional(name))


def test_noisy_max_without_a_neutral_state_becomes_a_table() -> None:
    a, b = discrete("a", 2), discrete("b", 2)
    noisy = NoisyMax(b, (a,), [[[0.5, 0.5], [0.25, 0.75]]], [0.5, 0.5])
    net = BayesianNetwork.from_parts([a, b], [peers.draw_table(a, (), np.random.default_rng(0)), noisy])
    data = xdsl.dumps(net)
    assert b"noisymax" not in data
    peers.same(net, xdsl.loads(data))


def test_noisy_max_with_many_parents_is_not_expanded() -> None:
    rng = np.random.default_rng(0)
    parents = [discrete(f"p{i}", 2) for i in range(60)]
    child = discrete("child", 3)
    links = [[[1, 0, 0], rng.dirichlet(np.ones(3))] for _ in parents]
    tables = [peers.draw_table(var, (), rng) for var in parents]
    net = BayesianNetwork.from_parts([*parents, child], [*tables, NoisyMax(child, tuple(parents), links)])
    again = xdsl.loads(xdsl.dumps(net)).conditional("child")
    assert isinstance(again, NoisyMax)
    assert again.equals(net.conditional("child"))


@given(st.lists(st.text(), min_size=1, max_size=4, unique=True), st.text(min_size=1), st.lists(st.text(), max_size=3))
def test_any_name_and_property_comes_back_or_is_refused(labels: list[str], name: str, properties: list[str]) -> None:
    var = discrete(name, labels)
    table = peers.draw_table(var, (), np.random.default_rng(0))
    metadata = {"properties": properties, "variables": {name: {"properties": properties, "comment": name}}}
    net = BayesianNetwork.from_parts([var], [table], name=name, metadata=metadata)
    try:
        data = xdsl.dumps(net)
    except ModelError as error:
        assert "no XML file can hold" in str(error)
        return
    again = xdsl.loads(data)
    peers.same(net, again)
    assert again.metadata.get("properties", []) == properties
    assert again.metadata["variables"][name].get("properties", []) == properties


@pytest.mark.parametrize(
    ("old", "new", "message", "line"),
    [
        (b"0.1 0.9<", b"0.1 O.9<", "'O.9' in <probabilities> is not a number", 7),
        (b"0.1 0.9<", b"0.1<", "needs 2 numbers, 1 came", 7),
        (b"0.1 0.9<", b"0 0<", "p(Flu) has only zeros", 7),
        (
            b"<parents>Fever Cold",
            b"<parents>Fever Gold",
            "parent 'Gold' of 'Tea' is not declared. Did you mean 'Cold'?",
            29,
        ),
        (
            b"<parents>Flu Cold",
            b"<parents>Flu Gold",
            "parent 'Gold' of 'Fever' is not declared. Did you mean 'Cold'?",
            11,
        ),
        (b"<parents>Flu Cold", b"<parents>Flu Flu", "names the parent 'Flu' twice", 11),
        (b"<parents>Flu Cold", b"<parents>Flu Bed", "needs 15 parameters, 18 came", 17),
        (b"0 1 1 0 2<", b"0 1 1 1 2<", "the strengths of 'Fever' must list the states", 16),
        (b"0.05 0.05 0.9<", b"0.05 -0.05 0.9<", "the parameters of 'Fever' must be probabilities", 17),
        (b"yes yes yes no no no<", b"yes yes yes no no<", "needs 6 resulting states, 5 came", 23),
        (b"yes yes yes no no no<", b"yes yse yes no no no<", "'yse' is not a state of 'Bed'. Did you mean 'yes'?", 23),
        (b'<cpt id="Cold">', b"<cpt>", "a <cpt> without id", 10),
        (b'<cpt id="Cold">', b'<cpt id="Flu">', "a second node with the id 'Flu'", 10),
        (b"<probabilities>.9", b"<p>.9", "XML: mismatched tag", 29),
        (b"<nodes>", b'<nodes><equation id="E"/>', "'E' is a continuous variable given by an equation", 3),
        (b"<nodes>", b'<nodes><decision id="E"/>', "'E' is a decision", 3),
        (b"<nodes>", b'<nodes><utility id="E"/>', "'E' is a utility", 3),
        (b"<nodes>", b'<nodes><magic id="E"/>', "of the unknown kind <magic>", 3),
        (b"<nodes>", b"<dynamic/><nodes>", "a dynamic network", 3),
        (b"<smile ", b"<!DOCTYPE smile [<!ENTITY x 'y'>]><smile ", "entities are not expanded", 2),
    ],
)
def test_faults_name_line_and_cause(old: bytes, new: bytes, message: str, line: int) -> None:
    assert old in GENIE
    with pytest.raises(ParseError) as caught:
        read(GENIE.replace(old, new, 1))
    assert message in str(caught.value)
    assert (caught.value.source, caught.value.line) == ("flu.xdsl", line)
    assert caught.value.column is not None


def test_cycle_through_structured_nodes_is_named() -> None:
    data = GENIE.replace(b"<parents>Fever Flu", b"<parents>Fever Bed")
    with pytest.raises(ParseError, match="cycle: Bed -> Bed"):
        read(data)


def test_parameters_far_off_are_repaired_with_a_warning() -> None:
    data = GENIE.replace(b"0.05 0.05 0.9<", b"1 1 18<")
    with pytest.warns(ModelWarning, match="Fever"):
        net = read(data)
    assert net.conditional("Fever").equals(read(GENIE).conditional("Fever"))
    assert read(data, normalize=False).conditional("Fever").leak.tolist() == [18, 1, 1]


@pytest.mark.parametrize("seed", range(4))
def test_cross_reading_with_pgmpy(seed: int, tmp_path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    net = peers.random_network(seed, 8)
    path = str(tmp_path / "theirs.xdsl")
    readwrite.XDSLWriter(peers.to_pgmpy(net)).write(path)
    with open(path, "rb") as file:
        read_back = xdsl.loads(file.read())
    for name in net.variables:
        assert read_back.parents(name) == net.parents(name)
        assert read_back.states(name) == net.states(name)
        np.testing.assert_allclose(read_back.conditional(name).table(), net.conditional(name).table(), atol=1e-12)
    with open(path, "wb") as file:
        file.write(xdsl.dumps(net))
    peers.agrees_with_pgmpy(net, readwrite.XDSLReader(path).get_model(), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_files_of_pyagrum_are_read_in_its_own_order(seed: int, tmp_path) -> None:
    gum = pytest.importorskip("pyagrum")
    bn = peers.to_agrum(peers.random_network(seed, 8), gum)
    path = str(tmp_path / "theirs.xdsl")
    gum.saveBN(bn, path)
    with open(path, "rb") as file:
        peers.agrees_with_agrum(xdsl.loads(file.read()), bn, atol=1e-5)  # six digits in the file


@pytest.mark.parametrize("seed", range(4))
def test_pyagrum_reads_ours_up_to_its_order_of_parents(seed: int, tmp_path) -> None:
    """GeNIe and pgmpy count with the last parent fastest, pyAgrum with the first: it mixes up two parents or more."""
    gum = pytest.importorskip("pyagrum")
    net = peers.random_network(seed, 8, most=1)
    path = str(tmp_path / "ours.xdsl")
    with open(path, "wb") as file:
        file.write(xdsl.dumps(net))
    peers.agrees_with_agrum(net, gum.loadBN(path), atol=1e-6)
