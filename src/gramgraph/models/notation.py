"""Graphs as one writes them: `"A -> B <- C; C -> D{low|mid|high}; E[3]"`.

    text      = statement { (";" | newline) statement }
    statement = [ node { arrow node } ]
    arrow     = "->" | "<-" | "→" | "←" | "<->" | "↔" | "-" | "--"        (the last two without direction)
    node      = name [ "{" label { "|" label } "}" | "[" number "]" ]
    name      = a word of letters, digits and _ . ' : @ $ % & * + / = ! ? ~ ^, or any text in double quotes

A `#` outside quotes starts a comment that ends with the line. Plates and hyper-parameters: `plate_notation`.
`a <-> b` is an unobserved common cause: a variable of its own, named "a <-> b", with arrows to both.
The order in which nodes and edges are seen is kept: it is the order of the variables and of the parents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from gramgraph.exceptions import ModelError, ParseError

_TOKEN = re.compile(
    r"""(?P<space>[^\S\n]+|\#[^\n]*)|(?P<end>[;\n])|(?P<arrow><->|->|<-|↔|→|←|--|-)"""
    r"""|(?P<states>\{[^{}\n]*\})|(?P<count>\[[^\[\]\n]*\])"""
    r"""|(?P<quoted>"[^"\n]*")|(?P<name>[\w.':@$%&*+/=!?~^·]+)"""
)
_FORWARD, _BOTH, _NEITHER = ("->", "→"), ("<->", "↔"), ("-", "--")
_MANY_STATES = 1_000_000
#: Joins the names of two variables to the name of their unobserved common cause.
CONFOUNDER = " <-> "


@dataclass
class Structure:
    """Nodes, edges and states in the order in which they were written."""

    names: dict[str, None] = field(default_factory=dict)
    parents: dict[str, dict[str, None]] = field(default_factory=dict)  # child → parents
    links: dict[tuple[str, str], None] = field(default_factory=dict)  # edges without direction
    states: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add_node(self, name: str) -> None:
        """A node, if it is new."""
        self.names.setdefault(name)
        self.parents.setdefault(name, {})

    def add_edge(self, parent: str, child: str) -> None:
        """An edge; written twice it is still one."""
        self.add_node(parent)
        self.add_node(child)
        self.parents[child].setdefault(parent)

    def add_link(self, a: str, b: str) -> None:
        """An edge without direction."""
        self.add_node(a)
        self.add_node(b)
        if (b, a) not in self.links:
            self.links.setdefault((a, b))


def read_structure(given: Any, edges: Iterable[Any] | None = None, *, directed: bool = True) -> Structure:
    """A structure from a text, a dict {child: [parents]} (directed), or a list of pairs.

    >>> s = read_structure("A -> B <- C; C -> D{low|mid|high}")
    >>> list(s.names), list(s.parents["B"]), s.states["D"]
    (['A', 'B', 'C', 'D'], ['A', 'C'], ('low', 'mid', 'high'))
    """
    if isinstance(given, Structure):
        return given
    out = Structure()
    if isinstance(given, str):
        _Text(given, out, directed).read()
    elif isinstance(given, Mapping) and directed:
        for child, parents in given.items():
            out.add_node(str(child))
            for parent in _several(parents, child):
                out.add_edge(str(parent), str(child))
    elif isinstance(given, Iterable):
        edges = [*given, *(edges or ())]
    elif given is not None:
        raise ModelError(f"a structure is a text 'A -> B', a dict {{child: [parents]}} or pairs; got {given!r:.80}")
    add = out.add_edge if directed else out.add_link
    for pair in edges or ():
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(ends := tuple(pair)) != 2:
            wanted = "(parent, child)" if directed else "of two names"
            raise ModelError(f"an edge must be a pair {wanted}, not {pair!r}")
        add(str(ends[0]), str(ends[1]))
    return out


def _several(parents: Any, child: Any) -> Iterator[Any]:
    if parents is None:
        return
    if isinstance(parents, str):
        yield parents
    elif isinstance(parents, Iterable):
        yield from parents
    else:
        raise ModelError(f"the parents of {child} must be a list of names, not {parents!r}")


class _Text:
    """One pass over the text; errors show the line with a caret under the place."""

    def __init__(self, text: str, out: Structure, directed: bool) -> None:
        self.text, self.out, self.directed = text, out, directed
        self.confounded: list[tuple[str, str]] = []

    def read(self) -> None:
        """Reads all statements into `out`."""
        left: str | None = None  # the node before the arrow
        arrow: str | None = None
        for kind, value, at in self.tokens():
            if kind == "end":
                if arrow is not None:
                    self.fail(at, f"a node is missing after '{arrow}'")
                left = None
            elif kind == "arrow":
                if left is None or arrow is not None:
                    self.fail(at, f"a node is missing before '{value}'")
                self.check_arrow(value, at)
                arrow = value
            elif kind in ("states", "count"):
                if left is None or arrow is not None:
                    self.fail(at, "states must follow the name of a node")
                self.declare(left, value, at)
            else:
                name = value[1:-1] if kind == "quoted" else value
                if not name:
                    self.fail(at, "a name must not be empty")
                if left is not None and arrow is None:
                    wanted = "'->', '<-'" if self.directed else "'-'"
                    self.fail(at, f"{wanted}, ';' or the end of the line was expected (quote names that hold spaces)")
                self.join(left, arrow, name)
                left, arrow = name, None
        if arrow is not None:
            self.fail(len(self.text), f"a node is missing after '{arrow}'")
        for a, b in self.confounded:  # after all that was named, so that what is observed stands first
            for child in (a, b):
                self.out.add_edge(f"{a}{CONFOUNDER}{b}", child)

    def tokens(self) -> Iterator[tuple[str, str, int]]:
        """(kind, text, position) of each token that is not a space."""
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                self.fail(at, self.explain(self.text[at]))
            if match.lastgroup != "space":
                yield str(match.lastgroup), match.group(), at
            at = match.end()

    @staticmethod
    def explain(character: str) -> str:
        """Why a character is not allowed here."""
        known = {
            "{": "'{' is not closed on this line: states are written {a|b|c}",
            "[": "'[' is not closed on this line: a number of states is written [3]",
            '"': "the quoted name is not closed on this line",
            ",": "',' has no meaning here: statements are parted by ';' or a new line",
        }
        return known.get(character, f"{character!r} is not expected here (quote names with other characters)")

    def check_arrow(self, arrow: str, at: int) -> None:
        """Edges with direction in a directed graph, without in an undirected one."""
        if self.directed and arrow in _NEITHER:
            self.fail(at, "an edge needs a direction, '->' or '<-' (quote names that hold '-')")
        if not self.directed and arrow not in _NEITHER:
            self.fail(at, "edges of an undirected graph are written '-'")

    def join(self, left: str | None, arrow: str | None, name: str) -> None:
        """A node by itself, or with the edge that leads to it."""
        if left is None or arrow is None:
            self.out.add_node(name)
        elif arrow in _NEITHER:
            self.out.add_link(left, name)
        elif arrow in _BOTH:
            self.out.add_node(name)
            self.confounded.append((left, name))
        elif arrow in _FORWARD:
            self.out.add_edge(left, name)
        else:
            self.out.add_edge(name, left)

    def declare(self, name: str, written: str, at: int) -> None:
        """States of a node, `{a|b}` or `[2]`; a second declaration must agree with the first."""
        inside = written[1:-1].strip()
        if written[0] == "[":
            if not re.fullmatch("[0-9]{1,7}", inside) or not 1 <= int(inside) <= _MANY_STATES:
                self.fail(at, f"a number of states from 1 to {_MANY_STATES:,} is expected, as in {name}[3]")
            states = tuple(map(str, range(int(inside))))
        else:
            states = tuple(label.strip() for label in inside.split("|"))
            if not all(states):
                self.fail(at, f"an empty label: states are written {name}{{low|mid|high}}")
        if self.out.states.setdefault(name, states) != states:
            self.fail(at, f"{name} already has the states {' | '.join(self.out.states[name])}")

    def fail(self, at: int, message: str) -> NoReturn:
        """A `ParseError` that shows the line with a caret."""
        start = self.text.rfind("\n", 0, at) + 1
        stop = self.text.find("\n", at)
        line = self.text[start : len(self.text) if stop < 0 else stop].expandtabs(1)
        column = at - start
        shown, caret = line, column
        if len(line) > 100:  # a window around the place
            cut = max(0, column - 50)
            shown, caret = line[cut : cut + 100], column - cut
        number = self.text.count("\n", 0, at) + 1
        picture = f"{message}\n  {shown}\n  {' ' * caret}^"
        raise ParseError(picture, source="<structure>", line=number, column=column + 1)
