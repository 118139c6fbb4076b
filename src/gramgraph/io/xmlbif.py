"""XMLBIF 0.3, the XML interchange format of JavaBayes, Weka, SamIam, pgmpy and pyAgrum.

`<TABLE>` counts through the parents in the order of `<GIVEN>` (the last one fastest) and then through the child, which
varies fastest of all: our own order.
"""

from __future__ import annotations

import re
from typing import Any

from gramgraph.exceptions import ParseError
from gramgraph.io._names import dense_rows
from gramgraph.io._text import Family, Spec, as_network, build_network, shown
from gramgraph.io._xml import Element, content, numbers, parse
from gramgraph.models import BayesianNetwork

_NUMBER = r"(-?\d{1,15}(?:\.\d{0,20})?)"
_POSITION = re.compile(rf"position\s*=?\s*\(?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)?\s*", re.IGNORECASE | re.ASCII)


def loads(data: bytes, *, source: str = "<text>", normalize: bool = True) -> BayesianNetwork:
    """A network from the bytes of an XMLBIF file.

    A `ParseError` with line and column when it does not follow the format.

    >>> variable = b"<VARIABLE><NAME>a</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>"
    >>> definition = b"<DEFINITION><FOR>a</FOR><TABLE>0.2 0.8</TABLE></DEFINITION>"
    >>> text = b"<BIF><NETWORK>" + variable + definition + b"</NETWORK></BIF>"
    >>> loads(text).conditional("a").table().tolist()
    [0.2, 0.8]
    """
    root = _upper(parse(data, source=source, root="BIF"))
    network = root.first("NETWORK")
    if network is None:
        raise _fault("<BIF> holds no <NETWORK>", root, source)
    specs: list[Spec] = []
    families: list[Family] = []
    properties = [item.word for item in network.all("PROPERTY")]
    metadata: dict[str, Any] = {"properties": properties} if properties else {}
    about: dict[str, dict[str, Any]] = {}
    for element in network.children:
        if element.tag == "VARIABLE":
            specs.append(_variable(element, about, source))
        elif element.tag in ("DEFINITION", "PROBABILITY"):
            families.append(_definition(element, about, source))
    about = {name: notes for name, notes in about.items() if notes}
    if about:
        metadata["variables"] = about
    title = network.first("NAME")
    name = "" if title is None else title.word
    return build_network(specs, families, source=source, normalize=normalize, name=name, metadata=metadata)


def _upper(root: Element) -> Element:
    """The tree with tags in upper case: some programs write them in lower case."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        element.tag = element.tag.upper()
        waiting.extend(element.children)
    return root


def _fault(message: str, element: Element, source: str) -> ParseError:
    return ParseError(message, source=source, line=element.at[0], column=element.at[1])


def _only(element: Element, tag: str, what: str, source: str) -> Element:
    """The one child with this tag."""
    found = list(element.all(tag))
    if len(found) != 1:
        raise _fault(f"{what} needs one <{tag}>, {len(found)} came", element, source)
    return found[0]


def _variable(element: Element, about: dict[str, dict[str, Any]], source: str) -> Spec:
    name = _only(element, "NAME", "<VARIABLE>", source).word
    if not name:
        raise _fault("a <VARIABLE> has an empty <NAME>", element, source)
    kinds = [text.lower() for key, text in element.attributes.items() if key.upper() == "TYPE"]
    kind = kinds[0] if kinds else "nature"
    if kind in ("decision", "utility"):
        raise _fault(f"{shown(name)} is a {kind} node; only networks of chance nodes can be read", element, source)
    if kind not in ("nature", "chance", "discrete"):
        raise _fault(f"{shown(name)} has the unknown type {shown(kind)}; expected nature", element, source)
    states = tuple(item.word for item in element.all("OUTCOME", "VALUE"))
    notes = about.setdefault(name, {})
    kept: list[str] = []
    for item in element.all("PROPERTY"):
        text = item.word
        position = _position(text)
        if position is not None and notes.setdefault("position", position) == position:
            continue
        if not re.match(r"fast\s*=", text):  # the states again, in the short form of pyAgrum
            kept.append(text)
    if kept:
        notes["properties"] = kept
    return Spec(name, states, element.at)


def _position(text: str) -> list[float] | None:
    """The two numbers of `position = (x, y)`, whole where they were written so."""
    match = _POSITION.fullmatch(text)
    return None if match is None else [float(word) if "." in word else int(word) for word in match.groups()]


def _definition(element: Element, about: dict[str, dict[str, Any]], source: str) -> Family:
    what = f"<{element.tag}>"
    child = _only(element, "FOR", what, source).word
    parents = tuple(item.word for item in element.all("GIVEN"))
    table = _only(element, "TABLE", f"{what} of {shown(child)}", source)
    properties = [item.word for item in element.all("PROPERTY")]
    if properties:
        about.setdefault(child, {})["table_properties"] = properties
    return Family(child, parents, numbers(table, source=source), table.at)


def dumps(model: Any) -> bytes:
    """The network as an XMLBIF file: numbers as short as they can be without loss, properties and positions kept."""
    net = as_network(model, "XMLBIF")
    about = net.metadata.get("variables", {})
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>"]
    lines.append(content("NAME", net.name, "the name"))
    lines += [content("PROPERTY", text, "the property") for text in net.metadata.get("properties", [])]
    for name in net.variables:
        lines += ["", '<VARIABLE TYPE="nature">', "\t" + content("NAME", name, "the variable")]
        lines += ["\t" + content("OUTCOME", state, f"{name}: the state") for state in net.states(name)]
        notes = about.get(name, {})
        place = notes.get("position")
        if place is not None:
            lines.append(f"\t<PROPERTY>position = ({place[0]!r}, {place[1]!r})</PROPERTY>")
        for text in notes.get("properties", []):
            if place is None or _position(text) != list(place):
                lines.append("\t" + content("PROPERTY", text, "the property"))
        lines.append("</VARIABLE>")
    for name in net.variables:
        lines += ["", *_written_definition(net, name, about.get(name, {}).get("table_properties", []))]
    lines += ["", "</NETWORK>", "</BIF>", ""]
    return "\n".join(lines).encode("utf-8")


def _written_definition(net: BayesianNetwork, name: str, properties: list[str]) -> list[str]:
    lines = ["<DEFINITION>", "\t" + content("FOR", name)]
    lines += ["\t" + content("GIVEN", parent) for parent in net.parents(name)]
    lines.append("\t<TABLE>")
    lines += ["\t\t" + " ".join(map(repr, row)) for row in dense_rows(net.conditional(name), "XMLBIF")]
    lines.append("\t</TABLE>")
    lines += ["\t" + content("PROPERTY", text, "the property") for text in properties]
    lines.append("</DEFINITION>")
    return lines
