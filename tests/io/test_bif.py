"""BIF: both readers, the dialects, errors with their places, round trips."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import gramgraph as gg
from gramgraph.exceptions import ModelError, ModelWarning, ParseError
from gramgraph.io import _bif_grammar, bif
from gramgraph.io._text import build_network
from tests.io.drawing import damaged, networks

CANCER = b"""network unknown {
}
variable Pollution {
  type discrete [ 2 ] { low, high };
}
variable Smoker {
  type discrete [ 3 ] { True, False, 0.1 };
}
variable Cancer {
  type discrete [ 2 ] { True, <5 };
}
probability ( Pollution ) {
  table 0.9, 0.1;
}
probability ( Smoker ) {
  table 0.3, 0.6, 0.1;
}
probability ( Cancer | Pollution, Smoker ) {
  (low, True) 0.03, 0.97;
  (high, True) 0.05, 0.95;
  (low, False) 0.001, 0.999;
  (high, False) 0.02, 0.98;
  (low, 0.1) 0.25, 0.75;
  (high, 0.1) 0.5, 0.5;
}
"""

OLD = b"""// a comment
network "Dog problem" { property version 1.1; property "a; quoted one"; }
variable "family out" {  // two states
  type discrete[2] { "tr ue" "false" };
  property position = (112, -69.5) ;
}
variable light-on { type discrete[3] { on, half lit, off }; }
/* entries of a table
   with parents */
probability ( "family out" ) { table 0.15 0.85 ; }
probability ( light-on "family out" ) { table 0.6 0.05, 0.3 0.15 0.1 0.8; property source = me; }
"""


def careful(data: bytes) -> gg.BayesianNetwork:
    parsed = _bif_grammar.parse(data.decode(), source="careful")
    return build_network(parsed.specs, parsed.families, source="careful", normalize=True)


def test_rows_stand_where_their_labels_say() -> None:
    net = bif.loads(CANCER)
    assert net.variables == ("Pollution", "Smoker", "Cancer")
    assert net.states("Smoker") == ("True", "False", "0.1") and net.parents("Cancer") == ("Pollution", "Smoker")
    table = net.conditional("Cancer").table()
    assert table.shape == (2, 3, 2)
    assert table[0, 1].tolist() == [0.001, 0.999] and table[1, 2].tolist() == [0.5, 0.5] and table[1, 0, 0] == 0.05
    assert table.flags.c_contiguous and not table.flags.writeable


def test_quick_and_careful_reader_agree_and_layout_does_not_matter() -> None:
    net = bif.loads(CANCER)
    assert bif._quick(CANCER.decode()) is not None, "the quick reader should know this layout"
    assert careful(CANCER) == net
    lines = CANCER.decode().splitlines()
    reordered = "\n".join([*lines[:18], *lines[23:17:-1], *lines[24:]])  # rows in another order
    loose = CANCER.decode().replace("\n  ", " ").replace(", ", " ").replace(" {", "{ // note\n")
    for text in (reordered, loose, CANCER.decode().replace("\n", "\r\n")):
        assert bif.loads(text.encode()) == net


def test_old_dialect_quotes_comments_and_properties() -> None:
    net = bif.loads(OLD)
    assert net.name == "Dog problem" and net.variables == ("family out", "light-on")
    assert net.states("family out") == ("tr ue", "false") and net.states("light-on") == ("on", "half lit", "off")
    # In `table` the child varies slowest: p(on | tr ue) = 0.6, p(on | false) = 0.05.
    np.testing.assert_allclose(net.conditional("light-on").table(), [[0.6, 0.3, 0.1], [0.05, 0.15, 0.8]], rtol=1e-15)
    assert net.metadata["properties"] == ["version 1.1", '"a; quoted one"']
    note = net.metadata["variables"]
    assert note["family out"]["position"] == [112.0, -69.5] and note["light-on"]["table_properties"] == ["source = me"]
    again = bif.loads(bif.dumps(net))
    assert again == net and again.metadata == net.metadata and again.name == net.name


def test_default_rows_fill_what_is_not_listed() -> None:
    text = CANCER.replace(b"  (low, True) 0.03, 0.97;\n", b"  default 0.4, 0.6;\n").replace(
        b"  (high, 0.1) 0.5, 0.5;\n", b""
    )
    table = bif.loads(text).conditional("Cancer").table()
    assert table[0, 0].tolist() == [0.4, 0.6] == table[1, 2].tolist() and table[1, 0].tolist() == [0.05, 0.95]


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "says"),
    [
        (b"  table 0.9, 0.1;", b"  table 0.9, 0,1;", 12, 1, "needs 2 numbers, 3 came"),
        (
            b"  table 0.9, 0.1;",
            b"  table 0.9, O.1;",
            13,
            14,
            "expected a number in the table of 'Pollution', got 'O.1'",
        ),
        (b"  table 0.9, 0.1;", b"  table 0.9, 1_0;", 13, 14, "got '1_0'"),
        (b"  table 0.9, 0.1;", b"  table -0.1, 1.1;", 12, 1, "p(Pollution) has the entry -0.1"),
        (b"  table 0.9, 0.1;", b"  table nan, 1.1;", 12, 1, "p(Pollution) has the entry nan"),
        (b"  table 0.9, 0.1;", b"  table 0, 0;", 12, 1, "p(Pollution) has only zeros"),
        (b"  table 0.9, 0.1;\n", b"", 12, 1, "its 'table' is missing"),
        (
            b"  (low, False) 0.001, 0.999;",
            b"  (low, False) 0.0, 0.0;",
            18,
            1,
            "p(Cancer | Pollution=low, Smoker=False) has",
        ),
        (b"  (low, False) 0.001, 0.999;\n", b"", 18, 1, "5 rows of 2 · 3 = 6; the row (low, False) is missing"),
        (
            b"(low, False)",
            b"(low, Fals)",
            21,
            3,
            "'Fals' is not a state of Smoker. States: True, False, 0.1. Did you mean",
        ),
        (b"(low, False)", b"(low, True)", 21, 3, "the row (low, True) twice"),
        (b"(low, False)", b"(low)", 21, 3, "expected 2 states"),
        (b"0.001, 0.999;", b"0.001;", 21, 3, "needs 2 numbers, 1 came"),
        (b"0.001, 0.999;", b"0.001, 0.999", 22, 3, "got '(high' (is a ';' missing before it?)"),
        (
            b"| Pollution, Smoker",
            b"| Polution, Smoker",
            18,
            1,
            "'Polution' is not declared as a variable. Did you mean",
        ),
        (b"( Smoker )", b"( Smoker | Cancer )", 15, 1, "the table of 'Smoker' needs"),
        (b"probability ( Smoker ) {\n  table 0.3, 0.6, 0.1;\n}\n", b"", 6, 1, "'Smoker' has no probability table"),
        (b"( Smoker )", b"( Pollution )", 15, 1, "needs 2 numbers, 3 came"),
        (b"variable Smoker", b"variable Pollution", 6, 1, "'Pollution' is declared twice"),
        (b"[ 3 ]", b"[ 4 ]", 7, 19, "'Smoker' declares 4 states but lists 3"),
        (b"[ 3 ]", b"[ three ]", 7, 19, "expected the number of states, got 'three'"),
        (b"{ low, high }", b"{ low, low }", 3, 1, "'Pollution' has the state 'low' twice"),
        (b"type discrete [ 2 ] { low", b"type continuous [ 2 ] { low", 4, 8, "expected 'discrete'"),
        (b"variable Pollution {", b"variable Pollution", 4, 3, "expected '{' after variable 'Pollution', got 'type'"),
        (b"variable Pollution", b'variable "Pollution', 3, 10, "the quote is not closed"),
        (b"network unknown {\n}\n", b"network unknown {\n}\n/* no end", 3, 1, "the comment is not closed"),
        (b"network unknown {", b"net unknown {", 1, 1, "expected 'variable' or 'probability', got 'net'"),
    ],
)
def test_faults_have_a_place(old: bytes, new: bytes, line: int, column: int, says: str) -> None:
    assert old in CANCER
    with pytest.raises(ParseError) as caught:
        bif.loads(CANCER.replace(old, new, 1), source="cancer.bif")
    error = caught.value
    assert says in str(error)
    assert (error.line, error.column) == (line, column)
    assert str(error).startswith(f"cancer.bif:{line}:{column}: ")


def test_cycles_own_parents_and_second_tables() -> None:
    head = b"variable a { type discrete [1] { x }; } variable b { type discrete [1] { x }; }\n"
    for body, says in [
        (b"probability ( a | b ) { table 1; } probability ( b | a ) { table 1; }", "a cycle: "),
        (b"probability ( a | a ) { table 1; } probability ( b ) { table 1; }", "is its own parent"),
        (b"probability ( a | b b ) { table 1; } probability ( b ) { table 1; }", "has the same parent twice"),
        (b"probability ( a ) { table 1; } probability ( a ) { table 1; }", "a second table for variable 'a'"),
    ]:
        with pytest.raises(ParseError, match=says) as caught:
            bif.loads(head + body)
        assert caught.value.line == 2


def test_rows_are_normalized_with_one_warning_that_names_the_worst() -> None:
    text = CANCER.replace(b"0.001, 0.999", b"0.001, 1.5").replace(b"0.9, 0.1", b"0.9, 0.15")
    with pytest.warns(
        ModelWarning, match=r"2 row\(s\).*p\(Cancer \| Pollution=low, Smoker=False\), sums to 1.501"
    ) as seen:
        net = bif.loads(text)
    assert len(seen) == 1
    assert all(np.allclose(net.conditional(v).table().sum(axis=-1), 1.0, rtol=0, atol=1e-15) for v in net.variables)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = bif.loads(CANCER.replace(b"0.001, 0.999", b"0.0011, 0.999"))  # a rounding: repaired without a word
        raw = bif.loads(text.replace(b"0.3, 0.6, 0.1", b"-1, 0, 0"), normalize=False)
    assert near.conditional("Cancer").table()[0, 1].tolist() == [0.0011 / 1.0001, 0.999 / 1.0001]
    assert raw.conditional("Cancer").table()[0, 1].tolist() == [0.001, 1.5]
    assert raw.conditional("Smoker").table().tolist() == [-1.0, 0.0, 0.0]


@given(networks())
def test_round_trip_is_exact(net: gg.BayesianNetwork) -> None:
    again = bif.loads(bif.dumps(net))
    assert again == net and again.name == net.name
    assert bif.loads(bif.dumps(net), normalize=False) == net


def test_latin_1_and_byte_order_mark() -> None:
    text = CANCER.decode().replace("Smoker", "Raucher_ö")
    for data in (text.encode("latin-1"), text.encode(), b"\xef\xbb\xbf" + text.encode()):
        assert bif.loads(data).variables[1] == "Raucher_ö"


def test_default_rows_cannot_fill_the_memory() -> None:
    names = [f"v{i}" for i in range(40)]
    text = "".join(f"variable {name} {{ type discrete [2] {{ a b }}; }}\n" for name in names)
    text += f"probability ( v0 | {' '.join(names[1:])} ) {{ default 0.5 0.5; }}"
    with pytest.raises(ParseError, match="would fill .* cells: refused"):
        bif.loads(text.encode())


def test_only_networks_with_numbers_can_be_written() -> None:
    with pytest.raises(ModelError, match=r"BIF holds Bayesian networks.*\.uai"):
        bif.dumps(gg.MarkovNetwork({("a", "b"): [[1, 2], [3, 4]]}))
    with pytest.raises(ModelError, match="give it with cpds"):
        bif.dumps(gg.BayesianNetwork("a -> b"))


def test_any_bytes_give_a_network_or_a_parse_error() -> None:
    n_read = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        for data in damaged([CANCER, OLD], count=1200, seed=7):
            try:
                bif.loads(data)
                n_read += 1
            except ParseError as error:
                assert str(error)
    assert 0 < n_read < 1200


def test_all_shared_networks(shared_data: Path) -> None:
    files = sorted((shared_data / "bn").glob("*.bif.gz"))
    assert len(files) >= 16
    for file in files:
        net = gg.read(file)
        assert len(net) > 0 and net.check_model()
        if file.stat().st_size < 10_000:
            again = bif.loads(bif.dumps(net))
            assert again == net
    child = gg.read(shared_data / "bn" / "child.bif.gz")
    assert "Asy/Patch" in child.states("LungParench") + child.states("ChestXray") + child.states("XrayReport")


def test_tables_agree_with_pyagrum(tmp_path: Path) -> None:
    gum = pytest.importorskip("pyagrum")
    table = b"""network t { }
variable A { type discrete [2] { a0, a1 }; } variable B { type discrete [2] { b0, b1 }; }
variable C { type discrete [3] { c0, c1, c2 }; }
probability ( A ) { table 0.3, 0.7; } probability ( B | A ) { table 0.6, 0.05, 0.4, 0.95; }
probability ( C | A, B ) { table 0.1 0.2 0.3 0.4 0.2 0.3 0.4 0.5 0.7 0.5 0.3 0.1; }"""
    for name, data in (
        ("rows", CANCER.replace(b"<5", b"False").replace(b"0.1 }", b"x }").replace(b", 0.1)", b", x)")),
        ("table", table),
    ):
        file = tmp_path / f"{name}.bif"
        file.write_bytes(data)
        ours, theirs = gg.read(file), gum.loadBN(str(file))
        for variable in ours.variables:
            cpt = theirs.cpt(variable)
            axes = list(cpt.names)[::-1]
            values = np.asarray(cpt.toarray()).transpose([axes.index(n) for n in (*ours.parents(variable), variable)])
            np.testing.assert_allclose(ours.conditional(variable).table(), values, atol=1e-6)
