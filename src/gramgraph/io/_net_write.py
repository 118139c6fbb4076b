"""Writing Hugin NET files, and the tokens that reading and writing share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gramgraph.exceptions import ModelError
from gramgraph.io._names import dense_rows, identifiers
from gramgraph.io._text import as_network
from gramgraph.models import BayesianNetwork

TOKEN = re.compile(r'(?P<word>[^\s(){}=;|%"]++)|(?P<string>"(?:[^"\\]++|\\.)*+")|(?P<mark>[(){}=;|])', re.DOTALL)

_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*) = (.*)", re.ASCII | re.DOTALL)
_OWN = ("data", "states", "label", "position", "name")  # written from the model, not from its properties


def joined(words: Sequence[str]) -> str:
    """Tokens of a value as one line: `(a "b c" (1 2))`."""
    parts: list[str] = []
    for word in words:
        if parts and word != ")" and parts[-1] != "(":
            parts.append(" ")
        parts.append(word)
    return "".join(parts)


def dumps(model: Any) -> bytes:
    """The network as a NET file: numbers as short as they can be without loss, labels, positions and properties kept.

    A name that is not an identifier is written as one like it, with the name itself as `gramgraph_name`.
    """
    net = as_network(model, "NET")
    keys = identifiers(net.variables)
    about = net.metadata.get("variables", {})
    lines = ["net", "{", *([f"    name = {_quoted(net.name)};"] if net.name else [])]
    lines += [*_properties(net.metadata.get("properties", [])), "}"]
    for name in net.variables:
        notes = about.get(name, {})
        lines += ["", f"node {keys[name]}", "{"]
        lines.append(f"    states = ({' '.join(map(_quoted, net.states(name)))});")
        if keys[name] != name:
            lines.append(f"    gramgraph_name = {_quoted(name)};")
        if "label" in notes:
            lines.append(f"    label = {_quoted(notes['label'])};")
        if "position" in notes:
            lines.append(f"    position = ({' '.join(map(repr, notes['position']))});")
        lines += [*_properties(notes.get("properties", [])), "}"]
    for name in net.variables:
        lines += ["", *_potential(net, name, keys, about.get(name, {}).get("table_properties", []))]
    try:
        return "\n".join([*lines, ""]).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ModelError(f"a name cannot be written as UTF-8: {error}") from None


def _potential(net: BayesianNetwork, name: str, keys: dict[str, str], properties: list[str]) -> list[str]:
    conditional = net.conditional(name)
    parents = net.parents(name)
    head = keys[name] + (f" | {' '.join(keys[parent] for parent in parents)}" if parents else "")
    items = [f"({' '.join(map(repr, row))})" for row in dense_rows(conditional, "NET")]
    for parent in reversed(conditional.parents):
        items = [f"({' '.join(items[i : i + parent.size])})" for i in range(0, len(items), parent.size)]
    data = items[0].replace(") (", ")\n            (")
    return [f"potential ({head})", "{", f"    data = {data};", *_properties(properties), "}"]


def _properties(properties: Iterable[str]) -> list[str]:
    """One attribute per property; a text that is not an attribute of NET is kept as a string."""
    lines: list[str] = []
    for text in properties:
        if _is_attribute(text):
            lines.append(f"    {text};")
        else:
            lines.append(f"    gramgraph_property{len(lines)} = {_quoted(text)};")
    return lines


def _is_attribute(text: str) -> bool:
    """Whether reading the text as an attribute gives the text again."""
    match = _ATTRIBUTE.fullmatch(text)
    if match is None or match.group(1) in _OWN or text.startswith("gramgraph_"):
        return False
    tokens = [found.group() for found in TOKEN.finditer(match.group(2))]
    depth = 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if depth < 0 or token in ("{", "}", "=", ";", "|") or token.startswith("//"):
            return False
    return bool(tokens) and depth == 0 and joined(tokens) == match.group(2)


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
