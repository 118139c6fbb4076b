"""Blocks of rows as bit-vectors, with the labels that occurred: what one batch, file or partition contributes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.data.columns import smallest_integer
from gramgraph.data.counts import Counts, pack
from gramgraph.data.kinds import MAX_INTEGER_STATES, sorted_labels, texts_kind, whole_numbers
from gramgraph.exceptions import VariableError, did_you_mean, listing
from gramgraph.typing import Array, IntArray
from gramgraph.variables import Var, discrete

#: A column with more labels is refused.
MAX_STATES = 10_000


class RealColumnError(VariableError):
    """A column of numbers where states are counted."""


@dataclass(frozen=True, eq=False)
class Packed:
    """Some rows: for every column its labels in order of appearance, and one bit-vector for each of them.

    The last word is filled up with zeros, which no count sees; blocks can therefore be laid side by side.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    bits: list[Array]  # (labels, words) each
    rows: int
    ordered: tuple[bool, ...]  # whether the order of the labels was given with the data

    @property
    def nbytes(self) -> int:
        """Memory of the bit-vectors."""
        return sum(part.nbytes for part in self.bits)


def pack_batches(
    batches: Sequence[Any], *, names: Sequence[str], kept: Container[str] = (), declared: Container[str] = ()
) -> Packed:
    """The rows of Arrow batches, packed: one bit for every row and state.

    The labels of columns in `kept`, and those of ordered dictionaries, keep the order of their dictionary. The states
    of those in `declared` are known, however many whole numbers they are.
    """
    found = [_pack_column(name, [batch.column(name) for batch in batches], name in declared) for name in names]
    ordered = tuple(name in kept or _has_order(batches[0].column(name)) for name in names)
    rows = sum(batch.num_rows for batch in batches)
    return Packed(tuple(names), tuple(labels for labels, _ in found), [bits for _, bits in found], rows, ordered)


def _pack_column(name: str, parts: Sequence[Any], declared: bool) -> tuple[tuple[Any, ...], Array]:
    codes: dict[Any, int] = {}
    found = [_encode(name, part, codes) for part in parts]
    check_labels(name, codes, declared)
    kind = smallest_integer(len(codes))
    column = found[0] if len(found) == 1 else np.concatenate(found)
    bits = np.empty((len(codes), -(-len(column) // 64)), np.uint64)
    pack(np.ascontiguousarray(column, dtype=kind), bits)
    return tuple(codes), bits


def _has_order(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(column.type) and column.type.ordered)


def _encode(name: str, column: Any, codes: dict[Any, int]) -> Array:
    """Codes of a column, -1 where it is missing; `codes` (label → code) grows by what is new."""
    import pyarrow as pa

    coded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    if pa.types.is_decimal(kind) or pa.types.is_nested(kind):
        raise (RealColumnError if pa.types.is_decimal(kind) else VariableError)(
            f"column {name!r} holds {kind}, not labels; counts need states: cut it into intervals first"
        )
    if not coded:
        column = column.dictionary_encode()
    labels = column.dictionary.to_pylist()
    if pa.types.is_floating(kind):
        labels = [_whole(name, kind, label) for label in labels]
    table = np.empty(len(labels) + 1, smallest_integer(len(labels) + len(codes)))
    for i, label in enumerate(labels):
        table[i] = -1 if label is None else codes.setdefault(label, len(codes))
    table[-1] = -1
    indices = column.indices
    places = (indices.fill_null(len(labels)) if indices.null_count else indices).to_numpy(zero_copy_only=False)
    return table[places]


def _whole(name: str, kind: Any, label: float | None) -> int | None:
    """A number without a fraction as a whole one: columns of these with gaps come as floats."""
    if label is None or label != label:
        return None
    if not float(label).is_integer():
        raise RealColumnError(
            f"column {name!r} holds {kind} with fractions, not labels; counts need states: cut it into intervals first "
            "(gg.data.Discretizer, or --bins on the shell)"
        )
    return int(label)


def check_labels(name: str, labels: Iterable[Any], declared: bool = False) -> None:
    """`VariableError` for a column with too many labels, or, unless its states are declared, with too many numbers."""
    known = list(labels)
    if not declared and len(known) > MAX_INTEGER_STATES:
        whole = all(isinstance(label, int) and not isinstance(label, bool) for label in known)
        if whole or texts_kind(known).kind == "real":
            raise _too_real(name, known)
    if len(known) > MAX_STATES:
        raise VariableError(f"column {name!r} has more than {MAX_STATES} different labels: too many for a table")


def _too_real(name: str, labels: Sequence[Any]) -> RealColumnError:
    if all(isinstance(label, int) or float(label).is_integer() for label in labels):
        return RealColumnError(
            f"column {name!r} has more than {MAX_INTEGER_STATES} different whole numbers: cut it into intervals first "
            "(gg.data.Discretizer, or --bins on the shell)"
        )
    return RealColumnError(
        f"column {name!r} holds numbers with fractions, not labels; counts need states: cut it into intervals first "
        "(gg.data.Discretizer, or --bins on the shell)"
    )


def state_orders(
    names: Sequence[str],
    labels: Sequence[Sequence[Any]],
    ordered: Sequence[bool],
    declared: Container[str] = (),
) -> tuple[tuple[Var, ...], list[IntArray]]:
    """The variables, and for each which label stands at each state: sorted, where no order was given."""
    variables, orders = [], []
    for name, known, given in zip(names, labels, ordered, strict=True):
        if not known:
            raise VariableError(f"column {name!r} has nothing but missing cells: leave it out")
        if name not in declared and texts_kind(known).kind == "real":
            raise _too_real(name, known)
        places = {label: i for i, label in enumerate(known)}
        order = range(len(known)) if given else [places[label] for label in sorted_labels(known)]
        orders.append(np.array(list(order), np.int64))
        variables.append(discrete(name, [known[i] for i in order]))
    return tuple(variables), orders


class Labels:
    """The labels of some columns as they come up, block after block."""

    def __init__(self, names: Sequence[str], declared: Container[str] = ()) -> None:
        self.names, self.declared = tuple(names), declared
        self.codes: list[dict[Any, int]] = [{} for _ in names]
        self.ordered: tuple[bool, ...] = ()

    def add(self, labels: Sequence[Sequence[Any]], ordered: Sequence[bool]) -> list[list[int]]:
        """Position of each label of a block among all labels."""
        self.ordered = (
            tuple(ordered) if not self.ordered else tuple(a and b for a, b in zip(self.ordered, ordered, strict=True))
        )
        places = []
        for name, codes, found in zip(self.names, self.codes, labels, strict=True):
            places.append([codes.setdefault(label, len(codes)) for label in found])
            check_labels(name, codes, name in self.declared)
        return places

    def states(self) -> tuple[tuple[Var, ...], list[IntArray]]:
        """The variables, and which label stands at each of their states."""
        known = [list(codes) for codes in self.codes]
        return state_orders(self.names, known, self.ordered or (False,) * len(self.names), self.declared)

    def values(self, orders: Sequence[IntArray]) -> list[list[Any]]:
        """The labels as they came, in the order of the states."""
        known = [list(codes) for codes in self.codes]
        return [[labels[i] for i in order] for labels, order in zip(known, orders, strict=True)]


class Collected:
    """Blocks on their way to one table of bit-vectors."""

    def __init__(self, names: Sequence[str], declared: Container[str] = ()) -> None:
        self.labels = Labels(names, declared)
        self.parts: list[tuple[list[list[int]], list[Array], int]] = []

    def add(self, block: Packed) -> Collected:
        """Append a block."""
        self.parts.append((self.labels.add(block.labels, block.ordered), block.bits, block.rows))
        return self

    @property
    def rows(self) -> int:
        """Rows so far."""
        return sum(rows for _, _, rows in self.parts)

    def counts(self) -> Counts:
        """The counts of all rows; the blocks are given up column by column, so that memory is not needed twice."""
        variables, orders = self.labels.states()
        words = sum(-(-rows // 64) for _, _, rows in self.parts)
        out = np.zeros((sum(var.size for var in variables), words), np.uint64)
        first = 0
        for c, order in enumerate(orders):
            state = np.empty(len(order), np.int64)
            state[order] = np.arange(len(order))
            at = 0
            for places, bits, _ in self.parts:
                part = bits[c]
                bits[c] = np.empty((0, 0), np.uint64)
                for place, vector in zip(places[c], part, strict=True):
                    out[first + state[place], at : at + part.shape[1]] = vector
                at += part.shape[1]
            first += len(order)
        there = np.concatenate([ones(rows) for _, _, rows in self.parts])
        values = [whole_numbers(labels) or labels for labels in self.labels.values(orders)]
        variables = tuple(discrete(var.name, known) for var, known in zip(variables, values, strict=True))
        return Counts.from_bits(variables, out, self.rows, there=there, labels=values)


def ones(rows: int) -> Array:
    """A bit-vector whose first `rows` bits are set."""
    out = np.full(-(-rows // 64), ~np.uint64(0))
    if rows % 64:
        out[-1] = (np.uint64(1) << np.uint64(rows % 64)) - np.uint64(1)
    return out


def choose(names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The columns to read; `VariableError` for one that is not there, or twice."""
    for name in names:
        if names.count(name) > 1:
            raise VariableError(f"the table has more than one column {name!r}: rename or drop one of them")
    if columns is None:
        return list(names)
    for name in columns:
        if name not in names:
            known = listing(map(repr, names))
            raise VariableError(f"the table has no column {name!r}; it has {known}.{did_you_mean(name, names)}")
    return list(columns)
