"""What the readers share: text and places, numbers, and the last step from parsed pieces to a checked network.

A reader makes a list of `Spec` (variables in file order) and a list of `Family` (one table per variable) and calls
`build_network`, which checks the structure and the rows and speaks of faults with line and column.

Metadata has one layout for all formats, so that converting keeps what another format can hold:
`metadata["properties"]` is a list of property strings of the network, `metadata["variables"][name]` a dict with any of
`"label"` (a long name), `"position"` (`[x, y]`), `"properties"` (list of strings), `"table_properties"` (list of
strings of the probability block).
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from gramgraph.conditionals import Table
from gramgraph.exceptions import ModelError, ModelWarning, ParseError, did_you_mean, listing
from gramgraph.io._numbers import cells_of, sizes_shown
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray
from gramgraph.variables import Discrete, Var

#: Line and column, both from 1; None where a place is not known.
Place = tuple[int, int] | None

#: Most axes of an array of NumPy.
MAX_AXES = 64

#: A row whose sum is off by more than this is worth a warning when it is repaired.
_WARN_BEYOND = 1e-2

_EPS = 2.0**-52


@dataclass(frozen=True, slots=True)
class Spec:
    """A variable as the file declares it."""

    name: str
    states: tuple[str, ...]
    at: Place = None


@dataclass(frozen=True, slots=True)
class Family:
    """p(child | parents) as the file gives it: numbers in the order (*parents, child), the child varying fastest."""

    child: str
    parents: tuple[str, ...]
    values: FloatArray  # any shape; its size is checked
    at: Place = None


def decode(data: bytes) -> str:
    """Text of a file: UTF-8 (a byte-order mark is dropped), else Latin-1, which never fails."""
    try:
        return data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column (from 1) of a position in a text, in O(offset)."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


class Lines:
    """Line and column of many positions of one text: O(text) once, then O(log lines) each."""

    __slots__ = ("_starts", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []

    def at(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        if not self._starts:
            self._starts = list(accumulate((len(line) + 1 for line in self._text.split("\n")), initial=0))
        line = bisect_right(self._starts, offset) - 1
        return line + 1, offset - self._starts[line] + 1


def shown(token: object, limit: int = 40) -> str:
    """A token in quotes, cut when it is long."""
    word = str(token)
    return repr(word if len(word) <= limit else word[: limit - 1] + "…")


def fault_at(message: str, *, source: str, text: str | None = None, offset: int = 0, at: Place = None) -> ParseError:
    """A `ParseError` at a position in the text, or at a place that is known already."""
    if text is not None:
        at = line_column(text, offset)
    line, column = at if at is not None else (None, None)
    return ParseError(message, source=source, line=line, column=column)


def build_network(
    specs: Sequence[Spec],
    families: Sequence[Family],
    *,
    source: str,
    normalize: bool,
    name: str = "",
    metadata: dict[str, Any] | None = None,
) -> BayesianNetwork:
    """A network from parsed pieces, or a `ParseError` for the first fault of structure or numbers.

    Checked: variables declared once and with at least one state, states named once, one family per variable, parents
    declared and named once, number of entries, no cycle, and, with `normalize`, rows of probabilities, which are then
    divided by their sums. O(numbers) in a few vectorized passes.
    """
    variables = variables_of(specs, source)
    family_of = _families_by_child(families, variables, source)
    for spec in specs:
        if spec.name not in family_of:
            raise fault_at(f"variable {shown(spec.name)} has no probability table", source=source, at=spec.at)
    ordered = [family_of[spec.name] for spec in specs]
    sizes = {name: len(var.states) for name, var in variables.items()}
    shapes = [checked_shape(family, sizes, source) for family in ordered]
    index = {spec.name: i for i, spec in enumerate(specs)}
    parents = [[index[p] for p in family.parents] for family in ordered]
    cycle = find_cycle(parents)
    if cycle:
        message = f"the arcs form a cycle: {cycle_shown([specs[i].name for i in cycle])}"
        raise fault_at(message, source=source, at=ordered[cycle[0]].at)
    tables = [family.values.ravel() for family in ordered]
    if normalize and tables:
        tables = normalize_tables(tables, [shape[-1] for shape in shapes], ordered, variables, source)
    conditionals = [
        Table(variables[f.child], tuple([variables[p] for p in f.parents]), values.reshape(shape))
        for f, values, shape in zip(ordered, tables, shapes, strict=True)
    ]
    return BayesianNetwork.from_parts(
        variables.values(), conditionals, parents=parents, name=name, metadata=metadata, check=False
    )


def variables_of(specs: Sequence[Spec], source: str) -> dict[str, Var]:
    """Name → variable, in file order; equal sets of states share one domain."""
    domains: dict[tuple[str, ...], Discrete] = {}
    variables: dict[str, Var] = {}
    for spec in specs:
        domain = domains.get(spec.states)
        if domain is None:
            domain = domains[spec.states] = Discrete(spec.states)
            if not spec.states:
                raise fault_at(f"variable {shown(spec.name)} has no states", source=source, at=spec.at)
            if len(domain.codes) != len(spec.states):
                twice = next(s for i, s in enumerate(spec.states) if domain.find(s) != i)
                raise fault_at(f"{shown(spec.name)} has the state {shown(twice)} twice", source=source, at=spec.at)
        if spec.name in variables:
            raise fault_at(f"variable {shown(spec.name)} is declared twice", source=source, at=spec.at)
        variables[spec.name] = Var(spec.name, domain)
    return variables


def _families_by_child(families: Sequence[Family], variables: Mapping[str, Var], source: str) -> dict[str, Family]:
    family_of: dict[str, Family] = {}
    for family in families:
        if family.child not in variables:
            hint = did_you_mean(family.child, variables)
            message = f"a table for {shown(family.child)}, which is not declared as a variable.{hint}"
            raise fault_at(message, source=source, at=family.at)
        if family.child in family_of:
            raise fault_at(f"a second table for variable {shown(family.child)}", source=source, at=family.at)
        family_of[family.child] = family
    return family_of


def checked_shape(family: Family, sizes: Mapping[str, int], source: str) -> tuple[int, ...]:
    """The table's shape, once its parents are declared and named once and the numbers are as many as it needs."""
    child, parents = family.child, family.parents
    try:
        shape = (*[sizes[parent] for parent in parents], sizes[child])
    except KeyError as error:
        parent = error.args[0]
        message = f"parent {shown(parent)} of {shown(child)} is not declared.{did_you_mean(parent, sizes)}"
        raise fault_at(message, source=source, at=family.at) from None
    if child in parents or len(parents) > len(set(parents)):
        what = "is its own parent" if child in parents else "has the same parent twice"
        raise fault_at(f"variable {shown(child)} {what}: {listing(parents)}", source=source, at=family.at)
    if len(shape) > MAX_AXES:
        message = f"{shown(child)} has {len(parents)} parents; a table holds at most {MAX_AXES - 1}"
        raise fault_at(message, source=source, at=family.at)
    if cells_of(shape) != family.values.size:
        message = f"the table of {shown(child)} needs {sizes_shown(shape)} numbers, {family.values.size} came"
        raise fault_at(message, source=source, at=family.at)
    return shape


def normalize_tables(
    tables: Sequence[FloatArray],  # flat, the child varying fastest
    sizes: Sequence[int],  # of the children
    families: Sequence[Family],
    variables: Mapping[str, Var],
    source: str,
) -> list[FloatArray]:
    """The tables with every row divided by its sum: views of one buffer, in a few passes over all numbers of the file.

    Negative or non-finite entries and rows of zeros are a `ParseError`; a row off by more than 1e-2 is repaired with
    one `ModelWarning` that names the worst one.
    """
    flat = np.concatenate(tables)
    width = np.array(sizes, dtype=np.int64)
    counts = np.fromiter(map(len, tables), dtype=np.int64, count=len(tables)) // width
    lengths = width.repeat(counts)
    ends = lengths.cumsum()
    sums = np.add.reduceat(flat, ends - lengths)
    low = flat.min()
    if not (low >= 0.0 and np.isfinite(sums).all() and (sums > 0.0).all()):
        raise _row_fault(flat, sums, ends, counts, families, variables, source)
    off = np.abs(sums - 1.0)
    worst = int(off.argmax())
    if off[worst] > _WARN_BEYOND:
        row = _row_name(worst, counts, families, variables)
        n_off = int((off > _WARN_BEYOND).sum())
        warnings.warn(
            f"{source}: {n_off} row(s) of probabilities were off by more than {_WARN_BEYOND:g} and were divided by "
            f"their sums; the worst, {row}, sums to {sums[worst]:.6g}",
            ModelWarning,
            stacklevel=5,
        )
    # A row that sums to one within the rounding of its sum stays as it is: a file written by us reads back bit for bit.
    sums[off <= lengths * _EPS] = 1.0
    flat /= sums.repeat(lengths)
    flat.flags.writeable = False  # so are its views, and the tables need no copies
    stops = (counts * width).cumsum().tolist()
    return [flat[a:b] for a, b in zip([0, *stops], stops, strict=False)]


def _row_fault(
    flat: FloatArray,
    sums: FloatArray,
    ends: Any,
    counts: Any,
    families: Sequence[Family],
    variables: Mapping[str, Var],
    source: str,
) -> ParseError:
    """The error for the first row that cannot be a distribution."""
    bad = ~((flat >= 0.0) & (flat < np.inf))
    if bad.any():
        entry = int(bad.argmax())
        row = int(np.searchsorted(ends, entry, side="right"))
        what = f"has the entry {flat[entry]:g}; probabilities are finite and not negative"
    elif not (sums > 0.0).all():
        row = int((sums <= 0.0).argmax())
        what = "has only zeros, so that it cannot be normalized"
    else:
        row = int((~np.isfinite(sums)).argmax())
        what = "has entries too large to be added"
    owner = int(np.searchsorted(np.cumsum(counts), row, side="right"))
    name = _row_name(row, counts, families, variables)
    return fault_at(f"{name} {what}", source=source, at=families[owner].at)


def _row_name(row: int, counts: Any, families: Sequence[Family], variables: Mapping[str, Var]) -> str:
    """`p(child | parent=state, …)` for a row counted through all tables."""
    ends = np.cumsum(counts)
    owner = int(np.searchsorted(ends, row, side="right"))
    family = families[owner]
    local = row - int(ends[owner] - counts[owner])
    parts: list[str] = []
    for parent in reversed(family.parents):
        local, state = divmod(local, variables[parent].size)
        parts.append(f"{parent}={variables[parent].states[state]}")
    given = f" | {listing(reversed(parts))}" if parts else ""
    return f"p({family.child}{given})"


def find_cycle(parents: Sequence[Sequence[int]]) -> list[int]:
    """Nodes of a directed cycle in arc order, or nothing; O(nodes + arcs), no recursion."""
    waiting = [len(p) for p in parents]
    children: list[list[int]] = [[] for _ in parents]
    for node, given in enumerate(parents):
        for parent in given:
            children[parent].append(node)
    ready = [node for node, n in enumerate(waiting) if n == 0]
    for node in ready:
        for child in children[node]:
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    if len(ready) == len(parents):
        return []
    # Every node left waits for a parent that is also left: walking upward must come back.
    node = next(i for i, n in enumerate(waiting) if n)
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(p for p in parents[node] if waiting[p])
    return path[seen[node] :][::-1]


def cycle_shown(names: Sequence[str], limit: int = 12) -> str:
    """`a -> b -> a`, cut in the middle when the cycle is long."""
    shown_names = list(names) if len(names) <= limit else [*names[:limit], f"… ({len(names) - limit} more)"]
    return " -> ".join([*shown_names, names[0]])


def refuse_reals(model: Any, format_name: str) -> None:
    """`ModelError` for a model with real-valued variables, which the discrete formats cannot hold."""
    names = [var.name for var in model.vars if not var.is_discrete]
    if names:
        raise ModelError(
            f"{format_name} holds discrete variables, and {listing(names[:5])} {'is' if len(names) == 1 else 'are'} "
            "real-valued: write .json instead"
        )


def as_network(model: Any, format_name: str) -> BayesianNetwork:
    """The model, if it is a Bayesian network with all its conditionals; `ModelError` otherwise."""
    if not isinstance(model, BayesianNetwork):
        kind = type(model).__name__
        raise ModelError(f"{format_name} holds Bayesian networks, not a {kind}; write it as .uai, .fg, .json or .gg")
    refuse_reals(model, format_name)
    for name in model.variables:
        model.conditional(name)
    return model
