"""UAI, the format of the inference competitions.

    MARKOV            or BAYES
    3                 number of variables
    2 2 3             their numbers of states
    2                 number of factors
    2 0 1             their scopes: how many variables, which
    2 1 2
    4  …              their tables: how many numbers, the last variable of the scope varying fastest
    6  …

Variables are called x0, x1, … and their states 0, 1, …; names are not kept. Lines that begin with `c` are
comments, and so is what follows a `#`.
Numbers after the last table (some programs append their own sections) are left out with a warning.

A BAYES file becomes a `BayesianNetwork` when the last variable of every scope is its child, every variable is the
child of one scope, the arcs form no cycle, and the rows sum to one so nearly that log Z of the product of the numbers
as they stand is 0 to 1e-8. Otherwise it becomes a `MarkovNetwork` of exactly these numbers: many files marked BAYES
were rounded or hold evidence, and published answers are those of the product as it stands.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, ModelWarning
from gramgraph.factors import TableFactor
from gramgraph.io._names import check_dense
from gramgraph.io._numbers import cells_of
from gramgraph.io._stream import NumberStream
from gramgraph.io._text import MAX_AXES, Family, Spec, build_network, decode, fault_at, find_cycle, refuse_reals, shown
from gramgraph.models import BayesianNetwork, GraphicalModel, MarkovNetwork
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Discrete, Var

#: Rows of a Bayesian network may change log Z by no more than this in all.
_ROUNDING = 1e-8

_COMMENT = re.compile(r"^c(?:[^\S\n][^\n]*)?$|#[^\n]*", re.MULTILINE)
_KIND = re.compile(r"\s*(\S+)")


def loads(data: bytes, *, source: str = "<text>", normalize: bool = True) -> BayesianNetwork | MarkovNetwork:
    """A model from the bytes of a UAI file.

    >>> net = loads(b"MARKOV 2  2 2  1  2 0 1  4  1 2 3 4")
    >>> net.variables, net.factors()[0].values.tolist()
    (('x0', 'x1'), [[1.0, 2.0], [3.0, 4.0]])
    """
    text = without_comments(decode(data))
    first = _KIND.match(text)
    kind = first[1].upper() if first else ""
    if first is None or kind not in ("MARKOV", "BAYES"):
        message = f"expected MARKOV or BAYES, got {shown(first[1]) if first else 'an empty file'}"
        raise fault_at(message, source=source, text=text, offset=first.start(1) if first else 0)
    stream = NumberStream(text, first.end(), source)
    sizes = _sizes(stream)
    scopes = _scopes(stream, sizes)
    values, stops = _tables(stream, sizes, scopes, source)
    if kind == "BAYES" and _is_network(scopes, sizes, values, stops):
        specs = [Spec(var.name, var.states) for var in numbered_variables(sizes)]
        spans = zip(scopes, [0, *stops], stops, strict=False)
        families = [Family(f"x{s[-1]}", tuple([f"x{p}" for p in s[:-1]]), values[a:b]) for s, a, b in spans]
        return build_network(specs, families, source=source, normalize=normalize)
    variables = numbered_variables(sizes)
    factors = [
        TableFactor(tuple([variables[i] for i in scope]), values[a:b].reshape([sizes[i] for i in scope]))
        for scope, a, b in zip(scopes, [0, *stops], stops, strict=False)
    ]
    return MarkovNetwork.from_parts(variables, factors)


def without_comments(text: str) -> str:
    """The text with blanks in the place of comments, so that places in it stay the same."""
    if "#" in text or _COMMENT.search(text, 0, 1 << 16):  # those of the other kind stand at the top
        return _COMMENT.sub(lambda match: " " * len(match.group()), text)
    return text


def numbered_variables(sizes: Sequence[int], labels: Sequence[int] | None = None) -> list[Var]:
    """Variables x0, x1, … (or x with the given labels) with states 0, 1, …; equal sizes share one domain."""
    domains = {size: Discrete(tuple(map(str, range(size)))) for size in dict.fromkeys(sizes)}
    return [Var(f"x{i}", domains[size]) for i, size in zip(labels or range(len(sizes)), sizes, strict=True)]


def most_states(stream: NumberStream) -> int:
    """States (over variables of different sizes) that are believed, as every one of them costs memory."""
    return 10_000 + 4 * stream.values.size


def _sizes(stream: NumberStream) -> list[int]:
    """Numbers of states; refused where no table of the file could hold them."""
    sizes = stream.counts(stream.count("the number of variables"), "a number of states")
    distinct = dict.fromkeys(sizes)
    if 0 in distinct:
        stream.fail("a variable needs at least one state", 1 + sizes.index(0))
    if sum(distinct) > most_states(stream):
        largest = max(distinct)
        stream.fail(f"x{sizes.index(largest)} has {largest} states, far more than the file has numbers", 1)
    return sizes


def _scopes(stream: NumberStream, sizes: Sequence[int]) -> list[list[int]]:
    n = len(sizes)
    n_factors = stream.count("the number of factors")
    if n_factors > stream.left:
        stream.fail(f"{n_factors} factors are announced, {stream.left} numbers follow", stream.pos - 1)
    scopes: list[list[int]] = []
    for i in range(n_factors):
        width = stream.count(f"the number of variables of factor {i}")
        if width > MAX_AXES:
            stream.fail(f"factor {i} has {width} variables; a table holds at most {MAX_AXES}", stream.pos - 1)
        scope = stream.counts(width, f"a variable of factor {i}")
        if width and (max(scope) >= n or len(set(scope)) < width):
            begin = stream.pos - width
            for j, variable in enumerate(scope):
                if variable >= n:
                    stream.fail(f"factor {i} names variable {variable}; there are {n}, counted from 0", begin + j)
                if variable in scope[:j]:
                    stream.fail(f"factor {i} names variable {variable} twice", begin + j)
        scopes.append(scope)
    return scopes


def _tables(
    stream: NumberStream, sizes: Sequence[int], scopes: Sequence[Sequence[int]], source: str
) -> tuple[FloatArray, list[int]]:
    """All entries without the counts between them, and where each table ends."""
    cells = np.array([cells_of([sizes[i] for i in scope]) for scope in scopes], dtype=np.int64)
    if cells.size and float(cells.astype(np.float64).sum()) > stream.left:
        _fail_short(stream, cells)
    stops = np.cumsum(cells)
    total = int(stops[-1]) if cells.size else 0
    marks = np.arange(cells.size) + stops - cells  # where the counts stand
    rest = stream.values[stream.pos :]
    if rest.size < total + cells.size or not np.array_equal(rest[marks], cells):
        _fail_short(stream, cells)
    begin, end = stream.pos, total + cells.size
    if rest.size > end:
        note = f"{source}: {rest.size - end} numbers after the last table were left out"
        warnings.warn(note, ModelWarning, stacklevel=4)
    keep = np.ones(end, dtype=bool)
    keep[marks] = False
    values = rest[:end][keep]
    if total and not (values.min() >= 0.0 and values.max() < np.inf):
        bad = int((~((values >= 0.0) & (values < np.inf))).argmax())
        at = begin + int(np.flatnonzero(keep)[bad])
        stream.fail(f"factor entries are finite and not negative; this one is {values[bad]:g}", at)
    if total:
        tops = np.maximum.reduceat(values, stops - cells)
        if not tops.all():
            bad = int((tops == 0.0).argmax())
            message = f"factor {bad} has no entry but zeros, so that the product of all factors is zero everywhere"
            stream.fail(message, begin + int(marks[bad]) + 1)
    values.flags.writeable = False
    return values, stops.tolist()


def _fail_short(stream: NumberStream, cells: IntArray) -> None:
    """Walk the tables one by one and raise at the first whose count or entries are not as its scope says."""
    for i, needed in enumerate(cells.tolist()):
        given = stream.count(f"the number of entries of factor {i}")
        if given != needed:
            shown_needed = f"{needed} entries" if needed < 10**15 else "an absurd number of entries"
            stream.fail(f"factor {i} has {shown_needed} by its scope; its table announces {given}", stream.pos - 1)
        stream.take(needed, f"the table of factor {i}")


def _is_network(
    scopes: Sequence[Sequence[int]], sizes: Sequence[int], values: FloatArray, stops: Sequence[int]
) -> bool:
    """Whether the factors are the conditionals of a Bayesian network, with rows that sum to one (see above)."""
    n = len(sizes)
    if n == 0 or len(scopes) != n or not all(scopes):
        return False
    parents: list[Sequence[int]] = [()] * n
    for scope in scopes:
        parents[scope[-1]] = scope[:-1]
    if len({scope[-1] for scope in scopes}) != n or find_cycle(parents):
        return False
    width = np.array([sizes[scope[-1]] for scope in scopes])
    counts = np.diff(stops, prepend=0) // width  # rows of each table
    lengths = np.repeat(width, counts)
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(values, np.cumsum(lengths) - lengths)
    off = np.maximum.reduceat(np.abs(sums - 1.0), np.cumsum(counts) - counts)
    return bool(off.sum() <= _ROUNDING)


def dumps(model: Any) -> bytes:
    """The bytes of a UAI file: BAYES for a Bayesian network, MARKOV for any other model; names are not kept."""
    factors = plain_factors(model, "UAI")
    index = {name: i for i, name in enumerate(model.variables)}
    lines = [
        "BAYES" if isinstance(model, BayesianNetwork) else "MARKOV",
        str(len(index)),
        " ".join(str(len(model.states(name))) for name in index),
        str(len(factors)),
    ]
    for factor in factors:
        lines.append(" ".join(map(str, [len(factor.scope), *(index[var.name] for var in factor.scope)])))
    for factor in factors:
        values = plain_values(factor)
        lines += ["", str(values.size), " " + " ".join(map(repr, values.ravel().tolist()))]
    return ("\n".join(lines) + "\n").encode("ascii")


def plain_factors(model: Any, format_name: str) -> tuple[TableFactor, ...]:
    """The factors of a model over its own variables; `ModelError` where a table would be too large."""
    if not isinstance(model, GraphicalModel):
        raise ModelError(f"{format_name} holds graphical models, not a {type(model).__name__}: write .gg instead")
    refuse_reals(model, format_name)
    if isinstance(model, BayesianNetwork):
        for name in model.variables:
            check_dense(model.conditional(name), format_name)
    return model.factors(structured=False)


def plain_values(factor: TableFactor) -> FloatArray:
    """The numbers of a factor with its scale multiplied in; `ModelError` where floats cannot hold them."""
    if factor.log_scale == 0.0:
        return factor.values
    with np.errstate(over="ignore", under="ignore"):
        values: FloatArray = factor.values * np.exp(factor.log_scale)
    lost = (values == 0.0) & (factor.values > 0.0)
    if lost.any() or not np.isfinite(values).all():
        names = ", ".join(var.name for var in factor.scope)
        raise ModelError(f"the factor over ({names}) is beyond the range of floats; write the model as .json")
    return values
