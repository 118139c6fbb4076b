"""BIF, the interchange format of the Bayesian network repositories.

Two readers: the quick one knows the layout that bnlearn writes and checks it string by string while splitting; at the
first surprise the careful one (`_bif_grammar`) reads the text from the start, any layout, and names faults by line and
column. Both give the same network.

Order of numbers: a row `(b, c) p1, p2, …;` holds p(child | b, c). In `table` with parents the child varies slowest and
the last parent fastest, as the interchange format counts through the declared variables from the right; pyAgrum and
pgmpy read it so too. A `default` row stands for every row that is not listed.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, ParseError
from gramgraph.io._bif_grammar import parse
from gramgraph.io._bif_tokens import QUOTED, WORD
from gramgraph.io._names import check_dense
from gramgraph.io._numbers import cells_of, numbers_of
from gramgraph.io._text import MAX_AXES, Family, Spec, as_network, build_network, decode
from gramgraph.models import BayesianNetwork
from gramgraph.typing import IntArray

_VARIABLE = re.compile(
    r'variable ([^\s{}()\[\]|,;"]+) \{\n  type discrete \[ (\d{1,7}) \] \{ ([^{}()\[\]|;"]*) \};\n', re.ASCII
)
_NETWORK = re.compile(r'network ([^\s{}()\[\]|,;"]+) \{\n', re.ASCII)


def loads(data: bytes, *, source: str = "<text>", normalize: bool = True) -> BayesianNetwork:
    """A network from the bytes of a BIF file.

    >>> text = b"variable a { type discrete [2] { no yes }; } probability ( a ) { table 0.2 0.8; }"
    >>> loads(text).conditional("a").table().tolist()
    [0.2, 0.8]
    """
    text = decode(data)
    found = _quick(text)
    if found is not None:
        name, specs, families = found
        try:
            return build_network(specs, families, source=source, normalize=normalize, name=name)
        except ParseError:
            pass  # the careful reader says where
    parsed = parse(text, source=source)
    return build_network(
        parsed.specs,
        parsed.families,
        source=source,
        normalize=normalize,
        name=parsed.name,
        metadata=parsed.metadata,
    )


def _quick(text: str) -> tuple[str, list[Spec], list[Family]] | None:
    """The pieces of a file in bnlearn's layout; None when anything differs from it."""
    if '"' in text or "//" in text or "/*" in text:
        return None
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    chunks = text.split("}\n")
    if chunks.pop():
        return None
    first = _NETWORK.fullmatch(chunks[0]) if chunks else None
    if first is None:
        return None
    name = "" if first[1] == "unknown" else first[1]
    specs: list[Spec] = []
    label_sets: dict[str, tuple[str, ...]] = {}
    at = 1
    for at in range(1, len(chunks)):
        match = _VARIABLE.fullmatch(chunks[at])
        if match is None:
            break
        variable, n, listed = match.groups()
        states = label_sets.get(listed)
        if states is None:
            states = label_sets[listed] = tuple(listed.split(", "))
            if any(not WORD.fullmatch(state) for state in states):
                return None
        if len(states) != int(n):
            return None
        specs.append(Spec(variable, states))
    else:
        at = len(chunks)
    families = _quick_families(chunks[at:], {spec.name: spec.states for spec in specs})
    return None if families is None else (name, specs, families)


def _quick_families(chunks: list[str], states: dict[str, tuple[str, ...]]) -> list[Family] | None:
    """Split every probability block; the labels of its rows must be exactly those that bnlearn would write."""
    layouts: dict[tuple[tuple[str, ...], ...], tuple[list[str], IntArray]] = {}
    heads: list[tuple[str, tuple[str, ...]]] = []
    rows: list[str] = []  # the numbers of each row, as text
    orders: list[IntArray] = []  # of the rows: file order → last parent fastest
    widths: list[int] = []
    counts: list[int] = []
    for chunk in chunks:
        head, _, body = chunk.partition(" ) {\n  ")
        child, _, given = head[14:].partition(" | ")
        parents = tuple(given.split(", ")) if given else ()
        if not head.startswith("probability ( ") or child not in states:
            return None
        if not parents:
            if not body.startswith("table ") or not body.endswith(";\n") or body.count(";") != 1:
                return None
            orders.append(np.array([len(rows)]))
            rows.append(body[6:-2])
            counts.append(1)
        else:
            try:
                key = tuple([states[parent] for parent in parents])
            except KeyError:
                return None
            layout = layouts.get(key)
            if layout is None:
                if len(key) >= MAX_AXES or cells_of(map(len, key)) > len(body):
                    return None
                layout = layouts[key] = _layout(key)
            parts = [part.partition(")") for part in body.split(";\n  ")]
            if [part[0] for part in parts] != layout[0] or not body.endswith(";\n"):
                return None
            orders.append(layout[1] + len(rows))
            rows += [part[2] for part in parts]
            rows[-1] = rows[-1][:-2]
            counts.append(len(parts))
        widths.append(len(states[child]))
        heads.append((child, parents))
    return _quick_numbers(heads, rows, orders, widths, counts)


def _layout(key: tuple[tuple[str, ...], ...]) -> tuple[list[str], IntArray]:
    """What stands before the `)` of every row, first parent fastest; and where rows stand when the last is fastest."""
    heads = ["(" + ", ".join(labels[::-1]) for labels in product(*key[::-1])]
    sizes = [len(labels) for labels in key[::-1]]
    return heads, np.arange(len(heads)).reshape(sizes).T.ravel()


def _quick_numbers(
    heads: list[tuple[str, tuple[str, ...]]],
    rows: list[str],
    orders: list[IntArray],
    widths: list[int],
    counts: list[int],
) -> list[Family] | None:
    """Convert each distinct row once and gather; None when a row has the wrong number of entries or a bad one."""
    if not rows:
        return []
    distinct = {row: i for i, row in enumerate(dict.fromkeys(rows))}
    try:
        numbers = numbers_of(",".join(distinct).split(","))
    except ValueError:
        return None
    lengths = np.array([row.count(",") + 1 for row in distinct])
    begins = lengths.cumsum() - lengths
    which = np.array([distinct[row] for row in rows])[np.concatenate(orders)]
    taken = lengths[which]
    width = np.array(widths)
    if (taken != width.repeat(counts)).any():
        return None
    ends = taken.cumsum()
    flat = numbers[np.arange(ends[-1]) + (begins[which] - (ends - taken)).repeat(taken)]
    flat.flags.writeable = False
    stops = (width * counts).cumsum().tolist()
    spans = zip(heads, [0, *stops], stops, strict=False)
    return [Family(child, parents, flat[a:b]) for (child, parents), a, b in spans]


def dumps(model: Any) -> bytes:
    """The bytes of a BIF file, in bnlearn's layout; names that are not plain words are quoted, floats are exact."""
    net = as_network(model, "BIF")
    name = "unknown" if not net.name else _quoted(net.name) if net.name == "unknown" else _word(net.name)
    notes: dict[str, dict[str, Any]] = net.metadata.get("variables", {})
    out = [f"network {name} {{\n", *_properties(net.metadata.get("properties", ())), "}\n"]
    for variable in net.variables:
        states = net.states(variable)
        note = notes.get(variable, {})
        lines = list(note.get("properties", ()))
        if "position" in note and not any(line.startswith("position") for line in lines):
            x, y = note["position"]
            lines.append(f"position = ({float(x)!r}, {float(y)!r})")
        listed = ", ".join(map(_word, states))
        out.append(f"variable {_word(variable)} {{\n  type discrete [ {len(states)} ] {{ {listed} }};\n")
        out += [*_properties(lines), "}\n"]
    for variable in net.variables:
        out += _block(net, variable, notes.get(variable, {}).get("table_properties", ()))
    text = "".join(out)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ModelError(f"a name cannot be written as UTF-8: {error}") from None


def _block(net: BayesianNetwork, variable: str, properties: Any) -> list[str]:
    """One probability block, rows with the first parent fastest."""
    conditional = net.conditional(variable)
    check_dense(conditional, "BIF")
    table = conditional.table()
    parents = conditional.parents
    if not parents:
        rows = ["  table " + ", ".join(map(repr, table.tolist())) + ";\n"]
        head = f"probability ( {_word(variable)} ) {{\n"
    else:
        given = ", ".join(_word(parent.name) for parent in parents)
        head = f"probability ( {_word(variable)} | {given} ) {{\n"
        labels = product(*([_word(state) for state in parent.states] for parent in reversed(parents)))
        n = len(parents)
        ordered = table.transpose([*range(n - 1, -1, -1), n]).reshape(-1, table.shape[-1]).tolist()
        rows = [
            f"  ({', '.join(combo[::-1])}) {', '.join(map(repr, row))};\n"
            for combo, row in zip(labels, ordered, strict=True)
        ]
    return [head, *rows, *_properties(properties), "}\n"]


def _properties(lines: Any) -> list[str]:
    """Property statements; a text that would end its statement early is quoted."""
    out = []
    for line in lines:
        text = str(line)
        bare = QUOTED.sub("", text)
        plain = text == text.strip() and not any(mark in bare for mark in (";", '"', "//", "/*"))
        out.append(f"  property {text if plain else _quoted(text)};\n")
    return out


def _word(name: str) -> str:
    """A name as it stands in the file: in quotes only where it needs them."""
    plain = WORD.fullmatch(name) and "//" not in name and "/*" not in name
    return name if plain else _quoted(name)


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
