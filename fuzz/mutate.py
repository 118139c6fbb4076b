"""Valid documents for every format, and ways to break them. Everything follows from a seed."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from fuzz.saved import EXAMPLES, QUICK, example
from gramgraph._container import is_container, pack, unpack
from gramgraph.conditionals import Conditional, Deterministic, NoisyMax, Table
from gramgraph.exceptions import GramGraphError, ParseError
from gramgraph.io.registry import FORMATS, load_format
from gramgraph.models import BayesianNetwork
from gramgraph.variables import Var, discrete

__all__ = ["TOKENS", "broken", "documents"]

#: Files of version 0.1.0, one of every kind.
_OLD = Path(__file__).resolve().parent.parent / "tests" / "io" / "files_0_1_0"
_DATA = Path(os.environ.get("GRAMGRAPH_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))

#: Pieces of data under the folder of reference data that are small enough to be of use.
_FILES = {
    "bif": ["bn/asia.bif.gz", "bn/cancer.bif.gz", "bn/survey.bif.gz", "bn/alarm.bif.gz"],
    "fg": ["uai/libdai/twofactors.fg", "uai/libdai/zeroes1.fg", "uai/libdai/testem_2var.fg", "uai/libdai/hoi1.fg"],
    "json": ["bn_bnrep/burglar.json.gz", "bn_bnrep/firealarm.json.gz", "bn_bnrep/medicaltest.json.gz"],
}
_LARGEST = 20_000

_ANY = [
    "0",
    "-1",
    "1e999",
    "nan",
    "-inf",
    "1_0",
    "\u0663",
    "\ufeff",
    "\0",
    "\r",
    "é",
    "\\",
    '"',
    "'",
    "%",
    "//",
    "/*",
    "*/",
]
_ANY += [
    "4294967296",
    "18446744073709551616",
    "0.5",
    "1",
    "2",
    " ",
    "\n",
    "\t",
    ";",
    ",",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "|",
]

#: Words of each format.
TOKENS: dict[str, list[str]] = {
    "bif": [
        "variable",
        "probability",
        "network",
        "table",
        "default",
        "property",
        "type discrete [ 2 ]",
        "type continuous;",
    ],
    "fg": ["# comment\n", "1\n2\n0 1\n2 2\n4\n"],
    "gzip": ["\x1f", "\x8b\x08"],
    "json": [
        "null",
        "true",
        "1e5",
        "[]",
        "{}",
        '"kind"',
        '"states"',
        '"parents"',
        '"values"',
        '"gramgraph"',
        '"\\ud800"',
        "NaN",
        "[[[[[[",
        "-0",
    ],
    "net": [
        "net",
        "node",
        "potential",
        "data = ",
        "states = ",
        "class C {",
        "continuous",
        "label",
        "model_data",
        "normal",
        "gramgraph_name = ",
    ],
    "uai": ["BAYES", "MARKOV", "3 0 1 2", "# c\n"],
    "xdsl": [
        "<cpt id='a'>",
        "</cpt>",
        "<noisymax id='n'>",
        "<deterministic id='d'>",
        "<state id='s'/>",
        "<parents>",
        "</parents>",
        "<strengths>",
        "<parameters>",
        "<resultingstates>",
        "<property id='gramgraph_states'>",
        "<equation id='e'/>",
        "<submodel id='s'>",
        "<position>1 2 3 4</position>",
        "<extensions>",
        "<genie app='aGrUM'>",
    ],
    "xmlbif": [
        "<VARIABLE>",
        "</VARIABLE>",
        "<NAME>",
        "<OUTCOME>",
        "<FOR>",
        "<GIVEN>",
        "<TABLE>",
        "</TABLE>",
        "<PROPERTY>",
    ],
}
_XML = [
    "<!DOCTYPE a [",
    "<!ENTITY a 'b'>",
    "<!ELEMENT a ANY>",
    "]>",
    "&a;",
    "&#65;",
    "&#0;",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?x y?>",
    "<a>",
    "</a>",
    "<a/>",
    "<?xml version='1.0' encoding='utf-16'?>",
    " xml:space='preserve'",
    "&lt;",
]
TOKENS["xdsl"] += _XML
TOKENS["xmlbif"] += _XML
TOKENS["uai_evidence"] = TOKENS["uai_result"] = ["PR\n", "MAR\n", "MPE\n", "-BEGIN-\n", "1\n1 0 1\n"]


#: Documents as other programs write them.
_FOREIGN: dict[str, list[str]] = {
    "net": [
        """class C { inputs = (); outputs = (A); node_size = (80 40);
        discrete node A { label = "an \\"A\\""; position = (1 -2.5); subtype = boolean; HR_Desc = "x\\ny"; } % note
        node B { states = (a b "c d"); } node D { subtype = interval; state_values = (-infinity 0 1); }
        potential (A |) { data = (.5 5e-1); } potential (D) { data = (1 1); experience = (2); model_nodes = (); }
        potential (B | A D) { data = (((1 0 0) (0 1 0)) % A=false; (
                                      ((0.25 0.25 0.5) (1 1 1))); } }"""
    ],
    "xdsl": [
        """<?xml version="1.0" encoding="ISO-8859-1"?><smile version="1.0" id="n" numsamples="1000"><nodes>
        <cpt id="A" target="true"><state id="x" fault="true"/><state id="y"/>
        <probabilities>0.2 0.8</probabilities></cpt>
        <noisymax id="N"><state id="hi"/><state id="lo"/><parents>A</parents><strengths>1 0</strengths>
        <parameters>0.2 0.8 0 1 0.1 0.9</parameters></noisymax></nodes><extensions>
        <genie version="1.0" name="n" app="G">
        <submodel id="S"><name>sub</name><position>1 2 3 4</position><window>0 0 9 9</window>
        <submodel id="T"><name>T</name>
        <node id="A"><name>An A</name><interior color="e5f6f7"/><font color="0" size="8"/><position>1 2 3 4</position>
        <comment>c</comment><barchart active="true" width="1" height="2"/></node></submodel></submodel>
        <textbox><caption>hello</caption><position>1 2 3 4</position></textbox></genie></extensions></smile>""",
        """<smile version="1.0" id="a"><nodes><cpt id="B"><state id="p"/><state id="q"/>
        <probabilities>0.3 0.7</probabilities>
        </cpt><cpt id="A"><state id="x"/><probabilities>1</probabilities></cpt>
        <cpt id="C"><state id="u"/><state id="v"/>
        <parents>A B</parents><probabilities>0.1 0.9 0.2 0.8</probabilities></cpt></nodes><extensions>
        <genie version="1.0" app="aGrUM 3" name="a"><node id="B"><name>B</name></node></genie></extensions></smile>""",
    ],
    "xmlbif": [
        """<?xml version="1.0" encoding="US-ASCII"?><!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*>
        <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature"> ]><BIF VERSION="0.3"><NETWORK><NAME>n</NAME>
        <PROPERTY>p</PROPERTY><VARIABLE><NAME>a</NAME><OUTCOME>t</OUTCOME><VALUE>f</VALUE>
        <PROPERTY>position = (73,16.5)</PROPERTY><PROPERTY>fast = a{t|f}</PROPERTY></VARIABLE>
        <DEFINITION><FOR>a</FOR><TABLE>0.5<!-- c --> <![CDATA[0.5]]></TABLE><PROPERTY>q</PROPERTY></DEFINITION>
        </NETWORK></BIF>"""
    ],
}


def _table(child: Var, parents: tuple[Var, ...], rng: np.random.Generator) -> Table:
    return Table(child, parents, rng.dirichlet(np.ones(child.size), size=[var.size for var in parents]))


def networks() -> list[BayesianNetwork]:
    """Small networks with all that files can hold: awkward names, structured conditionals, metadata."""
    rng = np.random.default_rng(0)
    a, b, c = discrete("a", 2), discrete("b", ["low", "mid", "high"]), discrete("c", ["no", "yes"])
    d = discrete("d", ["none", "some", "all"])
    odd = discrete('odd "name" <&>', ["a b", "", "é;"])
    plain: list[Conditional] = [_table(a, (), rng), _table(b, (a,), rng), _table(c, (b, a), rng)]
    links = [[[1, 0, 0], [0.2, 0.3, 0.5]], [[0.1, 0.8, 0.1], [1, 0, 0], [0.5, 0.25, 0.25]]]
    notes = {
        "a": {"position": [10, 20], "label": "an A", "properties": ["k = v", "free text"]},
        "b": {"box": [0, 0, 9, 9]},
    }
    metadata = {
        "properties": ["made by hand", "k = (1 2)"],
        "variables": {**notes, "c": {"table_properties": ["t = 1"]}},
    }
    noisy = NoisyMax(d, (a, b), links, [0.9, 0.05, 0.05])
    function = Deterministic(odd, (d, c), rng.integers(0, 3, size=(3, 2)))
    return [
        BayesianNetwork.from_parts([a], [plain[0]], name="one"),
        BayesianNetwork.from_parts([a, b, c], plain, name="three", metadata=metadata),
        BayesianNetwork.from_parts([a, b, c, d, odd], [*plain, noisy, function], name="all kinds"),
    ]


@cache
def documents(name: str, every: bool = False) -> tuple[bytes, ...]:
    """Sound documents of a format: from our writers, and small files of the reference data where there are any.

    With `every`, of every saved kind; without it, of those that are made without compiled code.
    """
    if name == "gzip":
        return tuple(gzip.compress(data, mtime=0) for data in (b"", b"a" * 1000, *documents("bif")[:2]))
    if name == "uai_evidence":
        return (b"1\n2 0 1 2 0\n", b"2 0 1 2 0\n", b"0\n", b"2\n1 0 1\n2 1 0 0 1\n")
    if name == "uai_result":
        return (b"PR\n-3.5\n", b"MAR\n2 2 0.5 0.5 3 0.1 0.2 0.7\n", b"MPE\n3 0 1 0\n", b"PR\n-BEGIN-\n1.5\n")
    if name == "archive":
        return tuple(path.read_bytes() for path in sorted(_OLD.glob("*.npz")))
    if name == "container":
        return tuple(load_format(name).dumps(example(kind)) for kind in (EXAMPLES if every else QUICK))
    module = load_format(name)
    found: list[bytes] = [path.read_bytes() for path in sorted(_OLD.glob(f"*.{name}")) if path.name != "answers.json"]
    found = [data for data in found if len(data) <= _LARGEST]
    for net in networks():
        for model in (net, net.to_markov_network()):
            try:
                found.append(module.dumps(model))
            except GramGraphError:
                continue  # the format does not hold this model
    found += [text.encode() for text in _FOREIGN.get(name, [])]
    for file in _FILES.get(name, []):
        path = _DATA / file
        if path.is_file():
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            if len(data) <= _LARGEST:
                found.append(data)
    return tuple(dict.fromkeys(found))


def broken(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    """The document after one to six accidents.

    Most accidents to a container end at its checksum; half of them happen to its content instead, under a new one.
    """
    if is_container(data) and rng.random() < 0.5:
        return _resealed(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4, 6))):
        gentle = data[:1] == b"<" and rng.random() < 0.7  # most accidents leave no XML at all: few would get far
        accident = rng.choice(_GENTLE if gentle else _ACCIDENTS)
        data = accident(data, others, tokens, rng)[: 4 * _LARGEST]
    return data


def _resealed(data: bytes, rng: random.Random) -> bytes:
    """The container after an accident to its tree or to one of its arrays, with a checksum that fits."""
    try:
        content = unpack(data)
    except ParseError:
        return data
    tree, arrays = content.value, dict(content.arrays)
    if arrays and rng.random() < 0.5:
        name = rng.choice(list(arrays))
        arrays[name] = _changed_array(arrays[name], rng)
    else:
        text = json.dumps(tree).encode()
        for _ in range(10):
            changed = rng.choice((_blow_up, _swap_words, _delete, _move, _flip))(text, (text,), (), rng)
            with suppress(ValueError, RecursionError):
                tree = json.loads(changed)
                break
    with suppress(GramGraphError):
        return pack(content.kind, tree, arrays)
    return data


def _changed_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    out = np.array(array)
    how = rng.randrange(6)
    if how == 0 and out.ndim:
        return out[1:]
    if how == 1:
        return out.ravel()
    if how == 2:
        return out.astype(rng.choice((np.float64, np.int64, np.float32))) if out.dtype.kind in "biuf" else out
    if out.size and out.dtype.kind in "iuf":
        at = rng.randrange(out.size)
        choices = (-1, 0, 7, 10**6) if out.dtype.kind in "iu" else (np.nan, np.inf, -1.0, 0.0, 1e300, 1e-300, 1.5)
        with np.errstate(all="ignore"):
            out.flat[at] = np.array(rng.choice(choices)).astype(out.dtype)
    return out


def _span(data: bytes, rng: random.Random, longest: int = 200) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + int(rng.paretovariate(0.7)) % longest)


def _flip(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    if not data:
        return bytes([rng.randrange(256)])
    at = rng.randrange(len(data))
    value = data[at] ^ (1 << rng.randrange(8)) if rng.random() < 0.6 else rng.randrange(256)
    return data[:at] + bytes([value]) + data[at + 1 :]


def _delete(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    start, stop = _span(data, rng)
    return data[:start] + data[stop:]


def _repeat(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    start, stop = _span(data, rng)
    return data[:stop] + data[start:stop] * rng.choice((1, 1, 2, 3, 50, 1000)) + data[stop:]


def _move(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    start, stop = _span(data, rng)
    rest = data[:start] + data[stop:]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + data[start:stop] + rest[at:]


def _splice(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    other = rng.choice(others)
    start, stop = _span(other, rng, 2000)
    at, end = _span(data, rng)
    return data[:at] + other[start:stop] + data[end:]


def _insert(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    word = rng.choice(tokens) if tokens and rng.random() < 0.6 else rng.choice(_ANY)
    at, end = _span(data, rng, 20)
    return data[:at] + word.encode("utf-8", "replace") + data[at if rng.random() < 0.7 else end :]


def _cut(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _blow_up(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    found = list(re.finditer(rb"\d[\d.eE+-]*", data))
    if not found:
        return data
    match = rng.choice(found)
    choices = [b"999999999", b"-1", b"1e308", b"1e-320", b"0", b"00", b"nan", b"inf", b"9" * 40, b"1" + match.group()]
    choices += [str(rng.randrange(10)).encode(), b"2147483648", b"0x10", b"1.", b"", b"3e9", b"1e5", b"7"]
    return data[: match.start()] + rng.choice(choices) + data[match.end() :]


def _swap_words(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    words = list(re.finditer(rb"[A-Za-z_]\w*", data))
    if len(words) < 2:
        return data
    one, two = sorted(rng.sample(words, 2), key=lambda match: match.start())
    middle = data[one.end() : two.start()]
    return data[: one.start()] + two.group() + middle + one.group() + data[two.end() :]


def _change_text(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    """Break the text of an element or the value of an attribute, and leave the tags."""
    found = list(re.finditer(rb">([^<>]+)<|=\"([^<>\"]*)\"", data))
    if not found:
        return data
    match = rng.choice(found)
    start, stop = match.span(1 if match[1] is not None else 2)
    accident = rng.choice((_flip, _delete, _repeat, _move, _blow_up, _blow_up, _swap_words, _insert))
    words = [word for word in tokens if "<" not in word]
    piece = accident(data[start:stop], (data[start:stop],), words, rng)[:_LARGEST]
    return data[:start] + piece.replace(b"<", b"").replace(b'"', b"") + data[stop:]


def _change_element(data: bytes, others: Sequence[bytes], tokens: Sequence[str], rng: random.Random) -> bytes:
    """Delete, double, rename or move a whole element."""
    found = list(re.finditer(rb"<(\w+)(?:\s[^<>]*)?(?:/>|>(?:[^<]|<state[^<>]*>)*</\1>)", data))
    if len(found) < 2:
        return data
    match, other = rng.sample(found, 2)
    piece, choice = match.group(), rng.randrange(5)
    rest = data[: match.start()] + data[match.end() :]
    if choice == 0:
        return rest
    if choice == 1:
        return data[: match.end()] + piece * rng.choice((1, 1, 2, 100)) + data[match.end() :]
    if choice == 2:
        return data[: match.start()] + piece.replace(match[1], other[1]) + data[match.end() :]
    if choice == 3:
        return data[: match.start()] + other.group() + data[match.end() :]
    at = min(other.start(), len(rest))
    return rest[:at] + piece + rest[at:]


_GENTLE = (_change_text, _change_element)
_ACCIDENTS: tuple[Callable[[bytes, Sequence[bytes], Sequence[str], random.Random], bytes], ...] = (
    _flip, _flip, _delete, _repeat, _move, _splice, _insert, _insert, _cut, _blow_up, _blow_up, _swap_words,
)  # fmt: skip


def targets() -> list[str]:
    """Everything that can be fuzzed: the formats, gzip, and the small files of the UAI format."""
    return [*sorted(FORMATS), "gzip", "uai_evidence", "uai_result"]
