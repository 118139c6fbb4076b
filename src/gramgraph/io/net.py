"""Hugin NET: `net {…} node X {states = (…);} potential (X | A B) {data = (((…)(…))…);}`, also inside `class C {…}`.

`data` counts through the parents as listed (the last one fastest) and then through the child, which varies fastest of
all. Decision, utility, function and continuous nodes, instances of classes and tables given only by expressions
(`model_data`) are refused. Comments begin with `%` or, as some programs write them, with `//`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import prod
from typing import Any, NamedTuple

from gramgraph.exceptions import ParseError
from gramgraph.io._net_write import TOKEN, dumps, joined
from gramgraph.io._numbers import is_number, numbers_of
from gramgraph.io._text import Family, Lines, Spec, build_network, decode, fault_at, shown
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray

__all__ = ["dumps", "loads"]

_NEXT = re.compile(rf"(?:\s++|%[^\n]*+|//[^\n]*+)*+(?:{TOKEN.pattern})?", re.DOTALL)
_DATA = re.compile(r'(?:[^%;{}"=/]++|/(?!/)|%[^\n]*+|//[^\n]*+)*+')
_COMMENT = re.compile(r"(?:%|//)[^\n]*")
_ESCAPE = re.compile(r'\\([n"\\])')

#: What stands before the name of a node that cannot be read, and what it is.
_REFUSED = {
    "continuous": "a continuous node",
    "decision": "a decision",
    "function": "a function node",
    "instance": "an instance of a class",
    "real": "a function node",
    "utility": "a utility",
}


class _Token(NamedTuple):
    kind: str  # word, string, mark, or end
    text: str  # as written
    start: int

    @property
    def value(self) -> str:
        """The word, or the string without its quotes and escapes."""
        if self.kind != "string":
            return self.text
        return _ESCAPE.sub(lambda m: "\n" if m.group(1) == "n" else m.group(1), self.text[1:-1])


@dataclass(slots=True)
class _Block:
    """What a `{…}` holds: attributes as token lists, and the numbers of `data`."""

    attributes: list[tuple[str, list[_Token]]] = field(default_factory=list)
    data: FloatArray | None = None
    rows: int = 0  # innermost parentheses of `data`, 0 when it is not nested
    data_at: int = 0


def loads(data: bytes, *, source: str = "<text>", normalize: bool = True) -> BayesianNetwork:
    """A network from the bytes of a NET file.

    A `ParseError` with line and column when it does not follow the format.

    >>> text = b'node a { states = ("no" "yes"); } potential (a) { data = (0.2 0.8); }'
    >>> loads(text).conditional("a").table().tolist()
    [0.2, 0.8]
    """
    reader = _Reader(decode(data), source)
    reader.document()
    names = reader.names
    families = [
        Family(names.get(f.child, f.child), tuple([names.get(p, p) for p in f.parents]), f.values, f.at)
        for f in reader.families
    ]
    net = build_network(
        reader.specs, families, source=source, normalize=normalize, name=reader.name, metadata=reader.metadata()
    )
    for family, rows in zip(families, reader.rows, strict=True):
        expected = prod(net.var(parent).size for parent in family.parents)
        if rows and rows != expected:
            message = f"the data of {shown(family.child)} have {rows} rows in parentheses, {expected} were expected"
            raise fault_at(message, source=source, at=family.at)
    return net


class _Reader:
    """A pass over the text from front to back."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.pos = text, source, 0
        self.lines = Lines(text)
        self.name = ""
        self.properties: list[str] = []
        self.specs: list[Spec] = []
        self.families: list[Family] = []
        self.rows: list[int] = []
        self.about: dict[str, dict[str, Any]] = {}
        self.table_properties: dict[str, list[str]] = {}
        self.names: dict[str, str] = {}  # identifier of the file → name of the variable, where they differ

    # -- tokens

    def fail(self, message: str, start: int | None = None) -> ParseError:
        return fault_at(message, source=self.source, text=self.text, offset=self.pos if start is None else start)

    def peek(self) -> _Token:
        match = _NEXT.match(self.text, self.pos)
        assert match is not None  # it may be empty, but always matches
        kind = match.lastgroup
        if kind is not None:
            self.pos = match.start(kind)
            return _Token(kind, match[kind], self.pos)
        self.pos = match.end()
        if self.pos < len(self.text):  # only a quote can start no token
            raise self.fail("a string without its closing quote")
        return _Token("end", "the end of the file", self.pos)

    def take(self) -> _Token:
        token = self.peek()
        if token.kind != "end":
            self.pos = token.start + len(token.text)
        return token

    def expect(self, mark: str) -> _Token:
        token = self.take()
        if token.text != mark:
            raise self.fail(f"expected {mark!r}, found {shown(token.text)}", token.start)
        return token

    def identifier(self, what: str) -> _Token:
        token = self.take()
        if token.kind not in ("word", "string") or not token.value:
            raise self.fail(f"expected {what}, found {shown(token.text)}", token.start)
        return token

    # -- elements

    def document(self) -> None:
        """Everything: elements, or one class around them."""
        seen_class = False
        while (token := self.peek()).kind != "end":
            if token.text != "class":
                self.element()
                continue
            if seen_class:
                raise self.fail("a second class; networks of several classes cannot be read")
            seen_class = True
            self.take()
            title = self.identifier("the name of the class")
            self.expect("{")
            self.class_body()
            self.name = self.name or title.value

    def class_body(self) -> None:
        """Attributes and elements up to the brace that closes the class."""
        while (token := self.peek()).text != "}":
            start = self.pos
            self.take()
            is_attribute = token.kind == "word" and self.peek().text == "="
            self.pos = start
            if is_attribute:
                block = _Block()
                self.attribute(block)
                self.describe_network(block)
            else:
                self.element()
        self.take()

    def element(self) -> None:
        """`net {…}`, `node X {…}` or `potential (…) {…}`."""
        token = self.take()
        while token.text in ("discrete", "chance"):
            token = self.take()
        word = token.text
        if word == "net":
            self.describe_network(self.block())
        elif word == "potential":
            self.potential(token.start)
        elif word == "node":
            self.node(token.start)
        elif word in _REFUSED:
            name = self.take()
            while name.text in ("node", "chance", "function"):
                name = self.take()
            what = f"{shown(name.value)} is {_REFUSED[word]}; only networks of discrete chance nodes can be read"
            raise self.fail(what, token.start)
        else:
            raise self.fail(f"expected net, node or potential, found {shown(word)}", token.start)

    def block(self) -> _Block:
        """`{ name = value; … }`."""
        self.expect("{")
        block = _Block()
        while self.peek().text != "}":
            self.attribute(block)
        self.take()
        return block

    def attribute(self, block: _Block) -> None:
        name = self.take()
        if name.kind != "word":
            raise self.fail(f"expected the name of an attribute or '}}', found {shown(name.text)}", name.start)
        self.expect("=")
        if name.text == "data":
            self.data(block, name.start)
            return
        tokens: list[_Token] = []
        while (token := self.take()).text != ";" or token.kind == "string":
            if token.kind == "end" or (token.kind == "mark" and token.text in "{}="):
                raise self.fail(f"expected ';' after the value of {shown(name.text)}", token.start)
            tokens.append(token)
        block.attributes.append((name.text, tokens))

    def data(self, block: _Block, start: int) -> None:
        """The numbers of a table, all at once: tables are nearly all of a file."""
        body = _DATA.match(self.text, self.pos)
        assert body is not None  # it may be empty, but always matches
        begin, end = body.span()
        self.pos = end
        self.expect(";")
        plain = body.group()
        if "%" in plain or "//" in plain:
            plain = _COMMENT.sub(lambda m: " " * len(m.group()), plain)
        tokens = plain.replace("(", " ").replace(")", " ").split()
        try:
            block.data = numbers_of(tokens)
        except ValueError:
            bad = next((m for m in re.finditer(r"[^\s()]+", plain) if not is_number(m.group())), None)
            what = "data" if bad is None else shown(bad.group())
            hint = " (tables of expressions or of densities cannot be read)" if "normal" in what.lower() else ""
            at = begin + (0 if bad is None else bad.start())
            raise self.fail(f"{what} in data is not a number{hint}", at) from None
        depths = list(accumulate(1 if mark == "(" else -1 for mark in re.sub(r"[^()]+", "", plain)))
        if depths and (depths[-1] != 0 or min(depths) < 0):
            raise self.fail("the parentheses of data do not match", start)
        block.rows = len(re.findall(r"\([^()]*\)", plain)) if max(depths, default=0) > 1 else 0
        block.data_at = start

    # -- meaning

    def describe_network(self, block: _Block) -> None:
        for name, tokens in block.attributes:
            if name == "name" and len(tokens) == 1:
                self.name = tokens[0].value
            else:
                self.properties.append(_property(name, tokens))

    def node(self, start: int) -> None:
        key = self.identifier("the name of a node").value
        block = self.block()
        notes: dict[str, Any] = {}
        kept: list[str] = []
        name, states, values, subtype = key, None, None, ""
        for attribute, tokens in block.attributes:
            if attribute == "states":
                states = self.listed(tokens, attribute, start)
            elif attribute == "gramgraph_name" and len(tokens) == 1 and tokens[0].value:
                name = tokens[0].value
            elif attribute == "label" and len(tokens) == 1:
                notes["label"] = tokens[0].value
            elif attribute == "position" and (position := _pair(tokens)) is not None:
                notes["position"] = position
            else:
                kept.append(_property(attribute, tokens))
                if attribute == "state_values":
                    values = self.listed(tokens, attribute, start)
                elif attribute == "subtype" and len(tokens) == 1:
                    subtype = tokens[0].value
        if kept:
            notes["properties"] = kept
        if name != key:
            self.names[key] = name
        if notes:
            self.about[name] = notes
        self.specs.append(Spec(name, _states(states, values, subtype), self.lines.at(start)))

    def listed(self, tokens: Sequence[_Token], attribute: str, start: int) -> list[str]:
        """The items of `(a b "c")`."""
        if len(tokens) < 2 or tokens[0].text != "(" or tokens[-1].text != ")":
            raise self.fail(f"{attribute} must be a list in parentheses", tokens[0].start if tokens else start)
        for token in tokens[1:-1]:
            if token.kind == "mark":
                raise self.fail(f"expected a name in the list of {attribute}, found {token.text!r}", token.start)
        return [token.value for token in tokens[1:-1]]

    def potential(self, start: int) -> None:
        """`potential (X | A B) { data = …; }`."""
        self.expect("(")
        head: list[_Token] = []
        while (token := self.take()).text != ")" or token.kind == "string":
            if token.kind == "end" or (token.kind == "mark" and token.text != "|"):
                raise self.fail(f"expected a name or ')', found {shown(token.text)}", token.start)
            head.append(token)
        bars = [i for i, token in enumerate(head) if token.kind == "mark"]
        if len(bars) > 1:
            raise self.fail("a potential with more than one '|'", head[bars[1]].start)
        bar = bars[0] if bars else len(head)
        words = [token.value for token in head]
        if bar != 1:
            raise self.fail(f"a potential of one variable was expected, {bar} stand before the '|'", start)
        block = self.block()
        if block.data is None:
            model = any(name == "model_data" for name, _ in block.attributes)
            why = "is given by expressions (model_data), which are not read" if model else "has no data"
            raise self.fail(f"the potential of {shown(words[0])} {why}", start)
        self.families.append(Family(words[0], tuple(words[bar + 1 :]), block.data, self.lines.at(start)))
        self.rows.append(block.rows)
        kept = [_property(name, tokens) for name, tokens in block.attributes]
        if kept:
            self.table_properties[words[0]] = kept

    def metadata(self) -> dict[str, Any]:
        """What the file says beside the numbers."""
        found: dict[str, Any] = {"properties": self.properties} if self.properties else {}
        for key, kept in self.table_properties.items():
            self.about.setdefault(self.names.get(key, key), {})["table_properties"] = kept
        if self.about:
            found["variables"] = self.about
        return found


def _property(name: str, tokens: Sequence[_Token]) -> str:
    """`name = value` as one line; a property that came from another format as it was there."""
    if re.fullmatch(r"gramgraph_property\d*", name) and len(tokens) == 1:
        return tokens[0].value
    return f"{name} = {joined([token.text for token in tokens])}"


def _pair(tokens: Sequence[_Token]) -> list[float] | None:
    """The two numbers of `(x y)`."""
    words = [token.text for token in tokens]
    if len(words) != 4 or words[0] != "(" or words[3] != ")" or not all(map(is_number, words[1:3])):
        return None
    return [int(word) if re.fullmatch(r"-?\d{1,9}", word, re.ASCII) else float(word) for word in words[1:3]]


def _states(states: list[str] | None, values: list[str] | None, subtype: str) -> tuple[str, ...]:
    """Labels of a node: as written, or from the numbers or intervals that it has instead."""
    if states is not None:
        return tuple(states)
    if subtype == "boolean":
        return ("false", "true")
    if values is not None and subtype == "interval":
        return tuple(f"{low} - {high}" for low, high in pairwise(values))
    return tuple(values or ())
