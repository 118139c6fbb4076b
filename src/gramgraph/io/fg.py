"""Factor graphs of libDAI (`.fg`).

After the number of factors comes one block per factor: how many variables, their labels, their numbers of states, how
many entries are listed, and then pairs `index value`; entries that are not listed are zero. Within a table the first
variable varies fastest. Lines from `#` on are comments. A variable labelled 7 is called x7 and its states 0, 1, ….
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gramgraph.factors import TableFactor
from gramgraph.io._numbers import cells_of, sizes_shown
from gramgraph.io._stream import NumberStream
from gramgraph.io._text import MAX_AXES, decode
from gramgraph.io.uai import most_states, numbered_variables, plain_factors, plain_values
from gramgraph.models import MarkovNetwork
from gramgraph.typing import FloatArray

#: Cells that a file with few listed entries may fill with zeros.
_MOST_FILLED = 1 << 21

_LARGEST_LABEL = 999_999_999

_COMMENT = re.compile(r"#[^\n]*")
_LABEL = re.compile(r"x(0|[1-9]\d{0,8})", re.ASCII)


def loads(data: bytes, *, source: str = "<text>", normalize: bool = True) -> MarkovNetwork:
    """A model from the bytes of a `.fg` file; its factors are kept as they are.

    >>> net = loads(b"1  2  0 1  2 3  2  1 0.5  2 0.25")
    >>> net.factors()[0].values.tolist()
    [[0.0, 0.25, 0.0], [0.5, 0.0, 0.0]]
    """
    text = decode(data)
    if "#" in text:
        text = _COMMENT.sub(lambda match: " " * len(match.group()), text)
    stream = NumberStream(text, 0, source)
    n_factors = stream.count("the number of factors")
    if n_factors > stream.left:
        stream.fail(f"{n_factors} factors are announced, {stream.left} numbers follow", 0)
    sizes: dict[int, int] = {}
    parts: list[tuple[list[int], FloatArray]] = []
    filled = 0
    for i in range(n_factors):
        labels, shape = _scope(stream, sizes, i)
        filled += cells_of(shape)
        if filled > _MOST_FILLED + stream.values.size:
            stream.fail(f"the tables up to factor {i} would have {filled} cells, far more than are listed")
        parts.append((labels, _entries(stream, shape, i)))
    if stream.left:
        stream.fail(f"{stream.left} numbers more than the factors need")
    if sum(dict.fromkeys(sizes.values())) > most_states(stream):
        stream.fail("the variables have far more states than the file has numbers", 0)
    order = sorted(sizes)
    variables = dict(zip(order, numbered_variables([sizes[label] for label in order], order), strict=True))
    factors = [TableFactor(tuple([variables[label] for label in labels]), values) for labels, values in parts]
    return MarkovNetwork.from_parts(variables.values(), factors)


def _scope(stream: NumberStream, sizes: dict[int, int], i: int) -> tuple[list[int], list[int]]:
    """Labels and numbers of states of a factor; a variable has the same number everywhere."""
    width = stream.count(f"the number of variables of factor {i}")
    if width > MAX_AXES:
        stream.fail(f"factor {i} has {width} variables; a table holds at most {MAX_AXES}", stream.pos - 1)
    labels = stream.counts(width, f"a variable of factor {i}")
    if len(set(labels)) < width:
        stream.fail(f"factor {i} names a variable twice", stream.pos - width)
    if width and max(labels) > _LARGEST_LABEL:
        stream.fail(f"expected labels up to {_LARGEST_LABEL}, got {max(labels)}", stream.pos - width)
    shape = stream.counts(width, f"a number of states of factor {i}")
    for j, (label, size) in enumerate(zip(labels, shape, strict=True)):
        at = stream.pos - width + j
        if size < 1 or size > most_states(stream):
            stream.fail(f"expected a number of states from 1 to {most_states(stream)}, got {size}", at)
        if sizes.setdefault(label, size) != size:
            stream.fail(f"variable {label} has {size} states here and {sizes[label]} before", at)
    return labels, shape


def _entries(stream: NumberStream, shape: list[int], i: int) -> FloatArray:
    """The table of a factor from its pairs `index value`."""
    cells = cells_of(shape)
    n = stream.count(f"the number of entries of factor {i}")
    begin = stream.pos
    pairs = stream.take(2 * n, f"the {n} entries of factor {i}").reshape(n, 2)
    where, values = pairs[:, 0], pairs[:, 1]
    wrong = ~((where >= 0) & (where < cells) & (where % 1 == 0))
    if wrong.any():
        bad = int(wrong.argmax())
        message = f"factor {i} has {sizes_shown(shape)} cells; {where[bad]:g} is not an index of one"
        stream.fail(message, begin + 2 * bad)
    wrong = ~((values >= 0.0) & (values < np.inf))
    if wrong.any():
        bad = int(wrong.argmax())
        stream.fail(f"factor entries are finite and not negative; this one is {values[bad]:g}", begin + 2 * bad + 1)
    table = np.zeros(cells)
    table[where.astype(np.int64)] = values
    return table.reshape(shape, order="F").copy(order="C")


def dumps(model: Any) -> bytes:
    """The bytes of a `.fg` file, only entries that are not zero; labels are those of x0, x1, … or else positions."""
    factors = plain_factors(model, "a libDAI factor graph")
    found = [_LABEL.fullmatch(name) for name in model.variables]
    numbered = all(found)
    label = {
        name: match[1] if numbered and match else str(i)
        for i, (name, match) in enumerate(zip(model.variables, found, strict=True))
    }
    lines = [str(len(factors))]
    for factor in factors:
        values = plain_values(factor).ravel(order="F")
        where = np.flatnonzero(values)
        lines += ["", str(len(factor.scope)), " ".join(label[var.name] for var in factor.scope)]
        lines += [" ".join(str(var.size) for var in factor.scope), str(where.size)]
        lines += [f"{i} {value!r}" for i, value in zip(where.tolist(), values[where].tolist(), strict=True)]
    return ("\n".join(lines) + "\n").encode("ascii")
