from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError, ModelWarning, ParseError
from gramgraph.io import xmlbif
from gramgraph.models import BayesianNetwork
from gramgraph.variables import discrete
from tests.io import peers

DOG = """<?xml version="1.0" encoding="US-ASCII"?>
<!-- a document with the DTD inside, as JavaBayes writes it -->
<!DOCTYPE BIF [
	<!ELEMENT BIF ( NETWORK )*>
	<!ATTLIST BIF VERSION CDATA #REQUIRED>
	<!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
	<!ELEMENT NAME (#PCDATA)>
	<!ELEMENT VARIABLE ( NAME, ( OUTCOME |  PROPERTY )* ) >
	<!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
	<!ELEMENT OUTCOME (#PCDATA)>
	<!ELEMENT DEFINITION ( FOR | GIVEN | TABLE | PROPERTY )* >
	<!ELEMENT FOR (#PCDATA)>
	<!ELEMENT GIVEN (#PCDATA)>
	<!ELEMENT TABLE (#PCDATA)>
	<!ELEMENT PROPERTY (#PCDATA)>
]>
<BIF VERSION="0.3">
<NETWORK>
<NAME>Dog_Problem</NAME>
<PROPERTY>credal-set constant-density-bounded 1.1</PROPERTY>
<VARIABLE TYPE="nature"><NAME>light_on</NAME><OUTCOME>true</OUTCOME><OUTCOME> false </OUTCOME>
	<PROPERTY>position = (218, 195)</PROPERTY><PROPERTY>observed true</PROPERTY></VARIABLE>
<VARIABLE><NAME>bowel</NAME><OUTCOME>true</OUTCOME><OUTCOME>false</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>out</NAME><OUTCOME>true</OUTCOME><OUTCOME>maybe</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
<DEFINITION><FOR>light_on</FOR><TABLE>0.6 0.4 </TABLE></DEFINITION>
<DEFINITION><FOR>bowel</FOR><TABLE><!-- sure -->.01<!-- and -->
 <![CDATA[ 99e-2 ]]></TABLE></DEFINITION>
<DEFINITION><FOR>out</FOR><GIVEN>bowel</GIVEN><GIVEN>light_on</GIVEN>
<TABLE>
0.7 0.2 0.1 <!-- true true -->
0.1 0.1 0.8 <!-- true false -->
0.3 0.3 0.4
0.0 0.5 0.5
</TABLE><PROPERTY>approximate</PROPERTY></DEFINITION>
</NETWORK>
</BIF>
"""


def read(text: str) -> BayesianNetwork:
    return xmlbif.loads(text.encode(), source="dog.xml")


def test_document_with_dtd_comments_and_cdata() -> None:
    net = read(DOG)
    assert net.name == "Dog_Problem"
    assert net.variables == ("light_on", "bowel", "out")
    assert net.states("light_on") == ("true", "false")
    assert net.parents("out") == ("bowel", "light_on")
    table = net.conditional("out").table()  # the last GIVEN and then the child vary fastest
    np.testing.assert_allclose(table[0, 1], [0.1, 0.1, 0.8])
    np.testing.assert_allclose(table[1, 0], [0.3, 0.3, 0.4])
    np.testing.assert_allclose(net.conditional("bowel").table(), [0.01, 0.99])
    assert net.metadata == {
        "properties": ["credal-set constant-density-bounded 1.1"],
        "variables": {
            "light_on": {"position": [218, 195], "properties": ["observed true"]},
            "out": {"table_properties": ["approximate"]},
        },
    }


def test_round_trip_keeps_names_states_bits_and_metadata() -> None:
    for seed in range(8):
        for words in (False, True):
            net = peers.random_network(seed, 10, words=words)
            data = xmlbif.dumps(net)
            again = xmlbif.loads(data)
            peers.same(net, again)
            assert xmlbif.dumps(again) == data
    net = read(DOG)
    again = xmlbif.loads(xmlbif.dumps(net))
    peers.same(net, again)
    assert again.metadata == net.metadata


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True), st.text(min_size=1))
def test_any_name_comes_back_or_is_refused(labels: list[str], name: str) -> None:
    var = discrete(name, labels)
    net = BayesianNetwork.from_parts([var], [peers.draw_table(var, (), np.random.default_rng(0))], name=name)
    try:
        data = xmlbif.dumps(net)
    except ModelError as error:
        assert "no XML file can hold" in str(error)
        return
    peers.same(net, xmlbif.loads(data))


def test_structured_conditionals_become_tables() -> None:
    net = peers.structured_network(1)
    peers.same(net, xmlbif.loads(xmlbif.dumps(net)), atol=1e-15)


def test_lower_case_and_older_tags() -> None:
    net = read(
        "<bif><network><variable type='nature'><name>a</name><value>x</value><value>y</value></variable>"
        "<probability><for>a</for><table>1 3</table></probability></network></bif>".replace("1 3", "0.25 0.75")
    )
    assert net.conditional("a").table().tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("old", "new", "message", "line"),
    [
        ("0.3 0.3 0.4", "0.3 0,3 0.4", "'0,3' in <TABLE> is not a number", 32),
        ("0.3 0.3 0.4", "0.3 0.3", "needs 2 · 2 · 3 = 12 numbers, 11 came", 29),
        ("0.3 0.3 0.4", "0 0 0", "p(out | bowel=false, light_on=true) has only zeros", 29),
        ("0.3 0.3 0.4", "nan 0.3 0.4", "has the entry nan", 29),
        ("0.3 0.3 0.4", "-0.3 0.3 0.4", "has the entry -0.3", 29),
        ("<GIVEN>bowel", "<GIVEN>bowl", "Did you mean 'bowel'?", 29),
        ("<FOR>out", "<FOR>bowel", "a second table for variable 'bowel'", 29),
        ("<FOR>out</FOR>", "<FOR>out</FOR><FOR>bowel</FOR>", "needs one <FOR>, 2 came", 28),
        ("<GIVEN>bowel", "<GIVEN>out", "variable 'out' is its own parent", 29),
        ("<GIVEN>bowel", "<GIVEN>light_on", "light_on", 29),
        ("<OUTCOME>maybe", "<OUTCOME>true", "has the state 'true' twice", 24),
        ('<VARIABLE TYPE="nature"><NAME>out', '<VARIABLE TYPE="utility"><NAME>out', "'out' is a utility node", 24),
        ("<NAME>bowel</NAME>", "<NAME> </NAME>", "empty <NAME>", 23),
        ("</NETWORK>", "</NETWRK>", "XML: mismatched tag", 35),
        ("<BIF VERSION", "<BOF VERSION", "XML: mismatched tag", 36),
        ("<!ELEMENT FOR (#PCDATA)>", "<!ENTITY x 'y'>", "entities are not expanded", 12),
        ("<!ELEMENT FOR (#PCDATA)>", "<!ENTITY % x SYSTEM 'file:///etc/passwd'> %x;", "entities are not expanded", 12),
        ("Dog_Problem", "&other;", "XML: undefined entity", 19),
        ("US-ASCII", "EBCDIC-77", "unknown encoding: EBCDIC-77", 1),
    ],
)
def test_faults_name_line_and_cause(old: str, new: str, message: str, line: int) -> None:
    assert old in DOG
    with pytest.raises(ParseError) as caught:
        read(DOG.replace(old, new, 1))
    assert message in str(caught.value)
    assert (caught.value.source, caught.value.line) == ("dog.xml", line)
    assert caught.value.column is not None


def test_place_of_a_bad_number_after_a_comment() -> None:
    with pytest.raises(ParseError) as caught:
        read(DOG.replace("0.5 0.5\n</TABLE>", "0.5 <!-- one\n two --> 0.x\n</TABLE>"))
    assert (caught.value.line, caught.value.column) == (34, 10)


def test_cycle_is_named() -> None:
    text = DOG.replace("<FOR>bowel</FOR><TABLE>", "<FOR>bowel</FOR><GIVEN>out</GIVEN><TABLE>.5 .5 .5 .5 ")
    with pytest.raises(ParseError, match=r"cycle: (bowel -> out -> bowel|out -> bowel -> out)"):
        read(text)


def test_rows_that_are_far_off_are_repaired_with_one_warning() -> None:
    with pytest.warns(ModelWarning) as caught:
        net = read(DOG.replace("0.3 0.3 0.4", "3 3 4"))
    assert len(caught) == 1
    np.testing.assert_allclose(net.conditional("out").table()[1, 0], [0.3, 0.3, 0.4])
    raw = xmlbif.loads(DOG.replace("0.3 0.3 0.4", "3 3 4").encode(), normalize=False)
    assert raw.conditional("out").table()[1, 0].tolist() == [3, 3, 4]


def test_hostile_documents_are_refused_quickly() -> None:
    entities = '<!ENTITY a0 "x">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    with pytest.raises(ParseError, match="entities are not expanded"):
        read(f"<!DOCTYPE BIF [{entities}]><BIF>&a11;</BIF>")
    with pytest.raises(ParseError, match="nested deeper"):
        read("<BIF>" * 100_000)
    with pytest.raises(ParseError, match="entities are not expanded"):
        read('<!DOCTYPE BIF SYSTEM "http://example.invalid/bif.dtd"><BIF>&x;</BIF>')
    long = "y" * 100_000  # a default attribute must not be copied to every element
    many = "<NETWORK/>" * 20_000
    assert len(read(f'<!DOCTYPE BIF [<!ATTLIST NETWORK a CDATA "{long}">]><BIF>{many}</BIF>')) == 0


def test_names_that_xml_cannot_hold_are_refused() -> None:
    var = discrete("a\x01", 2)
    net = BayesianNetwork.from_parts([var], [peers.draw_table(var, (), np.random.default_rng(0))])
    with pytest.raises(ModelError, match=r"U\+0001"):
        xmlbif.dumps(net)


@pytest.mark.parametrize("seed", range(4))
def test_cross_reading_with_pyagrum(seed: int, tmp_path) -> None:
    gum = pytest.importorskip("pyagrum")
    net = peers.random_network(seed, 8)
    theirs, ours = str(tmp_path / "theirs.bifxml"), str(tmp_path / "ours.bifxml")
    gum.saveBN(peers.to_agrum(net, gum), theirs)
    with open(theirs, "rb") as file:
        peers.agrees_with_agrum(xmlbif.loads(file.read()), gum.loadBN(theirs), atol=1e-5)  # six digits in the file
    with open(ours, "wb") as file:
        file.write(xmlbif.dumps(net))
    peers.agrees_with_agrum(net, gum.loadBN(ours), atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_cross_reading_with_pgmpy(seed: int, tmp_path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    net = peers.random_network(seed, 8)
    text = str(readwrite.XMLBIFWriter(peers.to_pgmpy(net)))
    read_back = read(text)
    assert set(read_back.variables) == set(net.variables)
    for name in net.variables:
        assert read_back.parents(name) == net.parents(name)
        np.testing.assert_allclose(read_back.conditional(name).table(), net.conditional(name).table(), atol=1e-12)
    path = tmp_path / "ours.xml"
    path.write_bytes(xmlbif.dumps(net))
    peers.agrees_with_pgmpy(net, readwrite.XMLBIFReader(str(path)).get_model(), atol=1e-12)
