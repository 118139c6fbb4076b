"""Contingency tables of a coded table, each counted once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any, Self

import numpy as np

from gramgraph._threads import in_threads
from gramgraph.data.columns import CodedTable, position_of, smallest_integer
from gramgraph.exceptions import OptionError
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Var

#: Tables with up to this many cells are counted by bits, larger ones by a scan of the rows.
BIT_CELLS = 1500
#: Tables that would have more cells are refused: a family this large cannot be learned from any data.
MAX_CELLS = 50_000_000
#: Tables that are kept, by their number of cells in all.
KEPT_CELLS = 5_000_000
#: Codes that are packed on several threads, where these are allowed.
MANY = 4_000_000


def pack(codes: Array, out: Array) -> None:
    """Bit-vectors (states, words) of one column of codes."""
    from gramgraph._numerics.counts.counting import pack_bytes, pack_rest

    if codes.dtype == np.int8 and codes.flags.c_contiguous:
        pack_bytes(codes, out)
    else:
        pack_rest(codes, 0, out)


def _unpacked(vector: Array) -> Array:
    """A bit-vector as truth values."""
    return np.unpackbits(vector.view(np.uint8), bitorder="little").astype(bool)


class Counts:
    """How often each combination of states occurs, for any set of columns.

    Rows with a missing cell in one of the asked columns do not count. Without weights columns are packed to one bit a
    row and state, and a table of c cells over n rows costs c n / 64 word operations; with weights, or beyond 1,500
    cells, one scan of the rows. Tables are kept and given out read-only.

    Parameters
    ----------
    table : the coded rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramgraph.data import code_table
    >>> counts = Counts(code_table(pd.DataFrame({"a": ["x", "y", "y"], "b": [0, 1, 1]})))
    >>> counts.table(["a", "b"]).tolist()
    [[1, 0], [0, 2]]
    """

    def __init__(self, table: CodedTable) -> None:
        self._coded: CodedTable | None = table
        self._there: Array | None = None
        self._weighted = table.weights is not None
        self._describe(table.variables, table.total, len(table))
        self._bits: Array | None = None
        self._packed = np.zeros(len(table.columns), bool)

    @classmethod
    def from_bits(
        cls,
        variables: Sequence[Var],
        bits: Array,
        rows: int,
        *,
        there: Array | None = None,
        labels: Sequence[Sequence[Any]] | None = None,
    ) -> Self:
        """From packed columns alone (`stream_counts` makes them): every table is then counted by bits.

        `there` is a bit-vector of the places that hold a row; without it they are the first `rows`. `labels` are the
        values that became the states, where these were no texts.
        """
        made = cls.__new__(cls)
        made._coded, made._weighted, made._bits, made._there = None, False, bits, there
        made._describe(tuple(variables), float(rows), rows)
        made.labels = made.labels if labels is None else tuple(map(tuple, labels))
        made._packed = np.ones(len(variables), bool)
        return made

    def _describe(self, variables: tuple[Var, ...], total: float, rows: int) -> None:
        self.variables = variables
        self.names = tuple(var.name for var in variables)
        self.sizes = tuple(var.size for var in variables)
        self.labels: tuple[tuple[Any, ...], ...] = tuple(var.states for var in variables)
        self.total = total  # number of rows, or the sum of their weights
        self._rows = rows
        self._first = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        self._kept: dict[tuple[int, ...], Array] = {}
        self._kept_cells = 0

    def position(self, name: str) -> int:
        """Position of a column."""
        return position_of(name, self.names)

    def complete(self) -> Counts:
        """The counts of the rows without a missing cell."""
        if self._coded is not None:
            return self if not self.has_missing else Counts(self._coded.complete())
        assert self._bits is not None
        shown = np.full(self._bits.shape[1], ~np.uint64(0))
        for c in range(len(self.variables)):
            shown &= np.bitwise_or.reduce(self._bits[self._first[c] : self._first[c + 1]], axis=0)
        rows = int(np.bitwise_count(shown).sum())
        if rows == self._rows:
            return self
        return Counts.from_bits(self.variables, self._bits & shown, rows, there=shown, labels=self.labels)

    @property
    def coded(self) -> CodedTable | None:
        """The rows in memory; None of a file or a stream, whose rows are bits."""
        return self._coded

    def to_table(self) -> CodedTable:
        """The rows as codes, one byte per cell; their order is that of the data."""
        if self._coded is not None:
            return self._coded
        assert self._bits is not None
        there = None if self._there is None else _unpacked(self._there)
        columns = []
        for c, size in enumerate(self.sizes):
            codes = np.full(64 * self._bits.shape[1], -1, smallest_integer(size))
            for state in range(size):
                codes[_unpacked(self._bits[self._first[c] + state])] = state
            columns.append(codes[: self._rows] if there is None else codes[there])
        return CodedTable(self.variables, tuple(columns))

    def fingerprint(self) -> str:
        """A short text that tells data apart: the same for the same rows in memory, in a file and on a cluster."""
        from hashlib import sha256

        found = sha256(repr([(var.name, var.states) for var in self.variables]).encode())
        self.prefetch([(c,) for c in range(len(self.sizes))] + [(c - 1, c) for c in range(1, len(self.sizes))])
        for c in range(len(self.sizes)):
            found.update(np.ascontiguousarray(self.table((c - 1, c) if c else (c,)), dtype=np.float64).tobytes())
        return found.hexdigest()[:32]

    def prefetch(self, families: Sequence[Sequence[int]]) -> None:
        """Announce tables that will be needed, so that they are counted together where each costs a round trip."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._rows

    @cached_property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        if self._coded is not None:
            return self._coded.has_missing
        return any(int(self.table([c]).sum()) < self._rows for c in range(len(self.variables)))

    def table(self, columns: Sequence[int | str]) -> IntArray | FloatArray:
        """Counts (sums of weights) of the columns, given by name or position; the axes follow their order."""
        asked = tuple(self.position(c) if isinstance(c, str) else int(c) for c in columns)
        key = tuple(sorted(asked))
        found = self._kept.get(key)
        if found is None:
            found = self._count(key)
            self._keep(key, found)
        return found if asked == key else found.transpose([key.index(c) for c in asked])

    def _keep(self, key: tuple[int, ...], found: Array) -> None:
        found.flags.writeable = False
        if self._kept_cells + found.size > KEPT_CELLS:
            self._kept.clear()
            self._kept_cells = 0
        self._kept[key] = found
        self._kept_cells += found.size

    def _count(self, key: tuple[int, ...]) -> Array:
        shape = tuple(self.sizes[c] for c in key)
        cells = prod(shape)
        if cells > MAX_CELLS:
            names = ", ".join(self.names[c] for c in key)
            raise OptionError(f"a table over {names} has {cells:,} cells, more than {MAX_CELLS:,}: use fewer parents")
        if not key:
            return np.array(self.total if self._weighted else int(self.total))
        if self._coded is None or (not self._weighted and cells <= BIT_CELLS):
            return self._by_bits(key, cells)
        return self._by_scan(self._coded, key, shape, cells).reshape(shape)

    def _by_bits(self, key: tuple[int, ...], cells: int) -> Array:
        from gramgraph._numerics.counts.counting import count_bits

        bits = self._bits_of(key)
        out = np.zeros(cells, np.int64)
        order = sorted(range(len(key)), key=lambda i: self.sizes[key[i]])  # many states last: fewer ANDs are kept
        chosen = np.array([key[i] for i in order])
        sizes = np.array(self.sizes)[chosen]
        count_bits(bits, self._first[chosen], sizes, out)
        return np.ascontiguousarray(out.reshape(sizes).transpose(np.argsort(order)))

    def _by_scan(self, coded: CodedTable, key: tuple[int, ...], shape: tuple[int, ...], cells: int) -> Array:
        from gramgraph._numerics.counts.counting import count_scan

        strides = np.array([prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)
        weights = np.ones(1) if coded.weights is None else coded.weights
        out = np.zeros(cells)
        count_scan(coded.matrix, np.array(key), strides, weights, out)
        return out if self._weighted else out.astype(np.int64)

    def _bits_of(self, columns: Sequence[int], n_jobs: int = 1) -> Array:
        """The bit-vectors, with these columns packed."""
        if self._bits is None:
            self._bits = np.empty((int(self._first[-1]), -(-self._rows // 64)), np.uint64)
        bits, coded = self._bits, self._coded
        todo = [] if coded is None else [c for c in columns if not self._packed[c]]

        def fill(c: int) -> None:
            assert coded is not None
            pack(coded.columns[c], bits[self._first[c] : self._first[c + 1]])
            self._packed[c] = True

        in_threads(fill, todo, n_jobs if len(todo) * self._rows > MANY else 1)
        return bits

    def vectors(self, n_jobs: int = 1) -> tuple[Array, IntArray] | None:
        """All bit-vectors, and where those of each column begin; None where rows have weights or are elsewhere."""
        return None if self._weighted else (self._bits_of(range(len(self.variables)), n_jobs), self._first)

    def all_pairs(self) -> None:
        """Count every pair of columns in one pass, block by block, and keep the tables."""
        if self._weighted or len(self.variables) < 2:
            return
        from gramgraph._numerics.counts.counting import count_pairs

        columns = range(len(self.variables))
        bits = self._bits_of(columns)
        both = np.zeros((len(bits), len(bits)), np.int64)
        count_pairs(bits, self._first[:-1], self._first[1:], both)
        for i in columns:
            for j in columns[i + 1 :]:
                found = both[self._first[i] : self._first[i + 1], self._first[j] : self._first[j + 1]].copy()
                found.flags.writeable = False
                self._kept[i, j] = found
                self._kept_cells += found.size
