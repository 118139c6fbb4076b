"""The careful reader of BIF: any layout, and faults with line and column.

Blocks `network NAME { … }`, `variable NAME { … }`, `probability ( CHILD | PARENTS ) { … }` in any order. Comments
(`//`, `/* */`) may stand anywhere; `|` and `,` between names are separators, as in the interchange format, where they
count as blanks. A name or state in quotes may hold any character (`\\"` and `\\\\` stand for themselves).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NoReturn

import numpy as np

from gramgraph.exceptions import did_you_mean, listing
from gramgraph.io._bif_tokens import Cursor, without_comments
from gramgraph.io._numbers import cells_of, count_of, is_number, sizes_shown
from gramgraph.io._text import Family, Spec, fault_at, shown, variables_of
from gramgraph.typing import FloatArray

_POSITION = re.compile(r"position\s*=\s*\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\)")

#: Cells that `default` rows may fill beyond what the text holds, in the whole file.
_MOST_FILLED = 1 << 21


@dataclass(slots=True)
class Parsed:
    """What a file says, before the checks that concern the whole network."""

    specs: list[Spec]
    families: list[Family]
    name: str
    metadata: dict[str, Any]


@dataclass(slots=True)
class _Block:
    """A probability block as written; its numbers find their places when all variables are known."""

    child: str
    parents: tuple[str, ...]
    start: int
    table: FloatArray | None = None
    default: FloatArray | None = None
    rows: list[tuple[list[list[str]], FloatArray, int]] = field(default_factory=list)


def parse(text: str, *, source: str) -> Parsed:
    """Read the whole text, or raise `ParseError` at the first place that is no BIF."""
    cursor = Cursor(without_comments(text, source), source)
    specs: list[Spec] = []
    blocks: list[_Block] = []
    network: dict[str, Any] = {}
    notes: dict[str, dict[str, Any]] = {}
    while cursor.kind != "end":
        if cursor.is_word("variable"):
            specs.append(_variable(cursor, notes))
        elif cursor.is_word("probability"):
            blocks.append(_probability(cursor, notes))
        elif cursor.is_word("network") and "name" not in network:
            _network(cursor, network)
        else:
            cursor.fail(f"expected 'variable' or 'probability', got {cursor.shown()}", cursor.start)
    if not specs:
        cursor.fail("expected at least one variable block, the file has none", cursor.start)
    states = {name: var.states for name, var in variables_of(specs, source).items()}
    filled = 0
    families: list[Family] = []
    for block in blocks:
        family, n_filled = _family(block, states, cursor, _MOST_FILLED - filled)
        families.append(family)
        filled += n_filled
    metadata: dict[str, Any] = {}
    if network.get("properties"):
        metadata["properties"] = network["properties"]
    if notes:
        metadata["variables"] = notes
    return Parsed(specs, families, network.get("name", ""), metadata)


def _network(cursor: Cursor, network: dict[str, Any]) -> None:
    cursor.advance()
    placeholder = cursor.is_word("unknown")  # what bnlearn writes for a network without a name
    name = cursor.name("the network's name") if cursor.kind != "{" else ""
    network["name"] = "" if placeholder else name
    cursor.expect("{", "after the network's name")
    properties = network["properties"] = []
    while cursor.kind != "}":
        if not cursor.is_word("property"):
            cursor.fail(f"expected 'property' or '}}' in the network block, got {cursor.shown()}", cursor.start)
        properties.append(cursor.property())
    cursor.advance()


def _variable(cursor: Cursor, notes: dict[str, dict[str, Any]]) -> Spec:
    at = cursor.lines.at(cursor.start)
    cursor.advance()
    name = cursor.name("the variable's name")
    cursor.expect("{", f"after variable {shown(name)}")
    states: tuple[str, ...] | None = None
    properties: list[str] = []
    while cursor.kind != "}":
        if cursor.is_word("property"):
            properties.append(cursor.property())
        elif cursor.is_word("type") and states is None:
            states = _states(cursor, name)
        else:
            cursor.fail(f"expected 'type', 'property' or '}}' in {shown(name)}, got {cursor.shown()}", cursor.start)
    if states is None:
        cursor.fail(f"variable {shown(name)} has no 'type discrete [ n ] {{ … }}'", cursor.start)
    cursor.advance()
    if properties:
        note = notes.setdefault(name, {})
        note["properties"] = properties
        for text in properties:
            if (match := _POSITION.fullmatch(text)) and all(map(is_number, match.groups())):
                note["position"] = [float(match[1]), float(match[2])]
    return Spec(name, states, at)


def _states(cursor: Cursor, name: str) -> tuple[str, ...]:
    cursor.advance()
    if not cursor.is_word("discrete"):
        cursor.fail(f"expected 'discrete', got {cursor.shown()}; other types are not known", cursor.start)
    cursor.advance()
    cursor.expect("[", "before the number of states")
    start = cursor.start
    n = count_of(cursor.value)
    if n < 1:
        cursor.fail(f"expected the number of states, got {cursor.shown()}", start)
    cursor.advance()
    cursor.expect("]", "after the number of states")
    if cursor.kind == "word" and cursor.value == "=":
        cursor.advance()
    cursor.expect("{", "before the states")
    groups = _groups(cursor, "}", "a state")
    labels = _labels(groups, n)
    if labels is None:
        cursor.fail(f"{shown(name)} declares {n} states but lists {len(groups)}", start)
    if cursor.kind == ";":
        cursor.advance()
    return tuple(labels)


def _groups(cursor: Cursor, close: str, what: str) -> list[list[str]]:
    """Words between commas, up to and including the closing mark."""
    groups: list[list[str]] = [[]]
    while cursor.kind != close:
        if cursor.kind == ",":
            groups.append([])
            cursor.advance()
        else:
            groups[-1].append(cursor.name(f"{what} or {close!r}"))
    cursor.advance()
    return [group for group in groups if group]


def _labels(groups: list[list[str]], n: int) -> list[str] | None:
    """n labels: what stands between commas (blanks inside are kept), or else every word; None when neither fits."""
    if len(groups) == n:
        return [" ".join(group) for group in groups]
    words = [word for group in groups for word in group]
    return words if len(words) == n else None


def _probability(cursor: Cursor, notes: dict[str, dict[str, Any]]) -> _Block:
    start = cursor.start
    cursor.advance()
    cursor.expect("(", "after 'probability'")
    child = cursor.name("the child's name")
    names: list[str] = []
    while cursor.kind != ")":
        if cursor.kind in ("|", ","):
            cursor.advance()
        else:
            names.append(cursor.name("a parent's name or ')'"))
    cursor.advance()
    cursor.expect("{", f"after probability ( {child} … )")
    block = _Block(child, tuple(names), start)
    properties: list[str] = []
    while cursor.kind != "}":
        _statement(cursor, block, properties)
    cursor.advance()
    if properties:
        notes.setdefault(child, {})["table_properties"] = properties
    return block


def _statement(cursor: Cursor, block: _Block, properties: list[str]) -> None:
    """One `table`, `default`, `property` or row of a probability block."""
    start = cursor.start
    if cursor.kind == "(":
        cursor.advance()
        groups = _groups(cursor, ")", "a parent's state")
        block.rows.append((groups, cursor.numbers(f"this row of {shown(block.child)}"), start))
    elif cursor.is_word("table") and block.table is None:
        cursor.advance()
        block.table = cursor.numbers(f"the table of {shown(block.child)}")
    elif cursor.is_word("default") and block.default is None:
        cursor.advance()
        block.default = cursor.numbers(f"the default row of {shown(block.child)}")
    elif cursor.is_word("property"):
        properties.append(cursor.property())
    else:
        message = f"expected a row '( … )', 'table', 'default', 'property' or '}}', got {cursor.shown()}"
        cursor.fail(message, start)


def _family(block: _Block, states: Mapping[str, tuple[str, ...]], cursor: Cursor, fillable: int) -> tuple[Family, int]:
    """The block's numbers in the order (*parents, child), and how many cells a default row filled."""
    at = cursor.lines.at(block.start)
    for name in (block.child, *block.parents):
        if name not in states:
            what = "the child" if name == block.child else "the parent"
            hint = did_you_mean(name, states)
            raise fault_at(f"{what} {shown(name)} is not declared as a variable.{hint}", source=cursor.source, at=at)
    k = len(states[block.child])
    sizes = [len(states[name]) for name in block.parents]
    n_rows = cells_of(sizes)
    if block.table is not None:
        if block.table.size != n_rows * k:
            needed = sizes_shown((k, *sizes))
            came = block.table.size
            cursor.fail(f"the table of {shown(block.child)} needs {needed} numbers, {came} came", block.start)
        values = np.ascontiguousarray(block.table.reshape(k, n_rows).T)  # the child varies slowest in `table`
        if not block.rows:
            return Family(block.child, block.parents, values, at), 0
    elif block.default is not None:
        if block.default.size != k:
            cursor.fail(f"the default row of {shown(block.child)} needs {k} numbers", block.start)
        if n_rows * k > fillable:
            needed = sizes_shown((k, *sizes))
            cursor.fail(f"the default row of {shown(block.child)} would fill {needed} cells: refused", block.start)
        values = np.tile(block.default, (n_rows, 1))
    placed = _placed_rows(block, states, sizes, k, cursor)
    if block.table is None and block.default is None:
        if len(placed) < n_rows:  # so no more is allocated than the text has
            _fail_missing(block, states, sizes, placed, cursor)
        values = np.empty((n_rows, k))
    if placed:
        values[list(placed)] = list(placed.values())
    return Family(block.child, block.parents, values, at), (n_rows * k if block.default is not None else 0)


def _placed_rows(
    block: _Block, states: Mapping[str, tuple[str, ...]], sizes: list[int], k: int, cursor: Cursor
) -> dict[int, FloatArray]:
    """Row number (last parent fastest) → numbers, for the rows that name their parents' states."""
    finders = [{label: i for i, label in enumerate(states[name])} for name in block.parents]
    placed: dict[int, FloatArray] = {}
    for groups, values, start in block.rows:
        labels = _labels(groups, len(sizes))
        if labels is None:
            cursor.fail(f"expected {len(sizes)} states, one for each parent of {shown(block.child)}", start)
        row = 0
        for name, size, finder, label in zip(block.parents, sizes, finders, labels, strict=True):
            if label not in finder:
                hint = did_you_mean(label, finder)
                cursor.fail(f"{shown(label)} is not a state of {name}. States: {listing(finder)}.{hint}", start)
            row = row * size + finder[label]
        if values.size != k:
            cursor.fail(f"this row of {shown(block.child)} needs {k} numbers, {values.size} came", start)
        if row in placed:
            cursor.fail(f"{shown(block.child)} has the row ({', '.join(labels)}) twice", start)
        placed[row] = values
    return placed


def _fail_missing(
    block: _Block,
    states: Mapping[str, tuple[str, ...]],
    sizes: list[int],
    placed: Mapping[int, FloatArray],
    cursor: Cursor,
) -> NoReturn:
    """Name the first row that is not there; looks at no more rows than the text has."""
    combos = product(*(states[name] for name in block.parents))
    labels = next(labels for row, labels in enumerate(combos) if row not in placed)
    what = f"the row ({', '.join(labels)})" if block.parents else "its 'table'"
    n_rows = sizes_shown(sizes)
    message = f"{shown(block.child)} has {len(placed)} rows of {n_rows}; {what} is missing and there is no default"
    cursor.fail(message, block.start)
