"""Sequences in batches of like length, and their features as sparse matrices that NumPy and SciPy multiply.

No loop has to be compiled or loaded for them, and one batch at a time is worked on, so that its scores and
probabilities stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.sequences.crf import recursions as _packed
from gramgraph.sequences.crf.encoding import Tokens
from gramgraph.typing import Array, FloatArray, IntArray

_CELLS = 160_000  # positions × labels a block: its probabilities stay in the cache
_BATCH = 4 * _CELLS  # and a batch: its features are one sparse matrix
_ENTRIES = 1 << 17  # features looked at together, before learning
_CALLS = 64  # a step of NumPy costs as much as this many positions in a compiled loop
_FEW_STEPS = 2000  # and so many are done before such a loop is loaded
_GROUPED = 64  # attributes whose joint presence is looked at: the bits of one number
_SHARE = 8  # a group must stand at this many positions in the mean


def blocks_of(offsets: IntArray, K: int) -> tuple[list[tuple[IntArray, Array, list[int]]], bool]:
    """(sequences, rows, steps) of sequences of like length, longest first, empty ones left out; whether to use a loop.

    It is needed where all steps together are many, for the positions that there are: a few long sequences.
    """
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")[: int((lengths > 0).sum())]
    ends = np.cumsum(lengths[order])
    found, lo, steps, size = [], 0, 0, max(1, _CELLS // K)
    while lo < len(order):
        hi = min(len(order), int(np.searchsorted(ends, (int(ends[lo - 1]) if lo else 0) + size)) + 1)
        found.append((order[lo:hi], *_packed.pack(offsets, order[lo:hi])))
        steps += len(found[-1][2]) - 1
        lo = hi
    return found, steps > max(_FEW_STEPS, int(offsets[-1]) // _CALLS)


def posteriors(
    scores: FloatArray, M: FloatArray, start: FloatArray | None, allowed: Array | None, steps: list[int], loop: bool
) -> tuple[FloatArray, FloatArray, Array]:
    """What `packed_posteriors` gives; with `loop`, narrow blocks pass through compiled code, sequence by sequence."""
    if not loop or steps[-1] >= _CALLS * (len(steps) - 1):
        return _packed.packed_posteriors(scores, M, start, allowed, steps)
    from gramgraph._numerics.crf.recursions import sequence_posteriors

    K, S = len(M), steps[1]
    pairs, log_z, good = np.zeros((K, K)), np.zeros(S), np.ones(S, dtype=np.bool_)
    first = np.ones(K) if start is None else start
    top = np.zeros((len(scores), 1))
    if not max(scores.max(), -scores.min()) < _packed.LARGE:
        top = scores.max(axis=1, keepdims=True)
        scores -= top
    np.exp(scores, out=scores)
    if allowed is not None:
        scores *= allowed
    parts: Iterable[Any] = [slice(None)] if S == 1 else rows_of(steps, np.arange(S))
    for s, rows in enumerate(parts):
        log_z[s], good[s], scores[rows] = sequence_posteriors(scores[rows], M, first, pairs)
        log_z[s] += top[rows].sum() if good[s] else 0.0
    return pairs, log_z, good


def rows_of(steps: list[int], sequences: Array) -> Iterator[IntArray]:
    """The rows of some sequences of a block."""
    first, sizes = np.array(steps[:-1]), np.diff(steps)
    for s in sequences:
        yield first[sizes > s] + s


@dataclass(frozen=True)
class Batch:
    """Some blocks of sequences, and their features.

    Row i has the columns of `matrix` (attributes with a row of weights, then groups of them) and, for attributes with a
    list of labels, the weights `which` at the cells i · K + label.
    """

    blocks: tuple[tuple[int, list[int]], ...]  # first row, steps
    matrix: Any  # csr_array (n, columns)
    transpose: Any  # the same arrays, as csc_array (columns, n)
    cells: Array  # int32
    which: Array  # int32
    values: FloatArray  # of cells; nothing when all are 1

    def scores(self, rows: FloatArray, lists: FloatArray) -> FloatArray:
        """Σ of weights, (n, K)."""
        found: FloatArray = self.matrix @ rows
        np.add.at(found.reshape(-1), self.cells, self._weighted(lists[self.which]))
        return found

    def add_counts(self, gamma: FloatArray, rows: FloatArray, lists: FloatArray) -> None:
        """Add expected counts of all features."""
        rows += self.transpose @ gamma
        np.add.at(lists, self.which, self._weighted(gamma.reshape(-1)[self.cells]))

    def _weighted(self, x: FloatArray) -> FloatArray:
        return x * self.values if len(self.values) else x


class Batches:
    """The features of all sequences, batch by batch.

    The attributes 0 … 63 are the most frequent ones. Which of them stand together at a position repeats over and over,
    so every such group is a column of its own, whose weights are a small matrix product, and positions have about half
    as many entries.
    """

    def __init__(self, tokens: Tokens, new_id: Array, n_dense: int, sp_ptr: IntArray, sp_label: Array, K: int) -> None:
        self.n_dense, self.K = n_dense, K
        self._new_id, self._sp_ptr, self._sp_label, self._valued = new_id, sp_ptr, sp_label, len(tokens.data) > 0
        self.members, group = self._groups(tokens)
        self._ones = np.ones(0)
        blocks, _ = blocks_of(tokens.offsets, K)
        self.batches: list[Batch] = []
        held: list[tuple[Array, list[int]]] = []
        for k, (_, rows, steps) in enumerate(blocks):
            held.append((rows, steps))
            if k == len(blocks) - 1 or sum(len(some) for some, _ in held) * K >= _BATCH:
                self.batches.append(self._batch(tokens, held, group))
                held = []

    @property
    def n_columns(self) -> int:
        """Attributes with a row of weights, and groups."""
        return self.n_dense + len(self.members)

    def rows(self, dense: FloatArray) -> FloatArray:
        """Weights of all columns, (n_columns, K), from those of the attributes."""
        return np.concatenate([dense, self.members @ dense[: self.members.shape[1]]])

    def attributes(self, counts: FloatArray) -> FloatArray:
        """Counts of attributes, (n_dense, K), from those of all columns."""
        found = counts[: self.n_dense]
        found[: self.members.shape[1]] += self.members.T @ counts[self.n_dense :]
        return found

    def _numbers(self, tokens: Tokens, at: Any) -> tuple[Array, FloatArray]:
        """(numbers of attributes, −1 for those without weights; values, or nothing) of some entries."""
        ids = tokens.ids[at]
        found = np.where(ids >= 0, self._new_id[np.maximum(ids, 0)], -1)
        return found, tokens.data[at] if self._valued else tokens.data

    def _groups(self, tokens: Tokens) -> tuple[FloatArray, Array]:
        """(members (groups, attributes) of 0 and 1, the group of every position); none where they do not repeat."""
        N, most = len(tokens.ptr) - 1, min(_GROUPED, self.n_dense)
        bits, entries = np.zeros(N, dtype=np.uint64), 0
        stretch = max(1, _ENTRIES * N // max(1, len(tokens.ids)))
        for a in range(0, N, stretch):
            z = min(a + stretch, N)
            ptr = tokens.ptr[a : z + 1]
            number, values = self._numbers(tokens, slice(int(ptr[0]), int(ptr[-1])))
            grouped = self._grouped(number, values, most)
            entries += int(grouped.sum())
            one = np.where(grouped, np.uint64(1) << np.where(grouped, number, 0).astype(np.uint64), np.uint64(0))
            sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(one)))  # differences are right modulo 2^64
            bits[a:z] = np.diff(sums[ptr - ptr[0]])
        if int(np.bitwise_count(bits).sum()) == entries:  # else an attribute stands twice at a position
            while most:
                found, group = np.unique(bits & np.uint64((1 << most) - 1), return_inverse=True)
                if len(found) * _SHARE <= N:
                    members = (found[:, None] >> np.arange(most, dtype=np.uint64)) & np.uint64(1)
                    return members.astype(float), group.astype(np.int32)
                most //= 2
        return np.zeros((0, 0)), np.empty(0, np.int32)

    def _grouped(self, number: Array, values: FloatArray, most: int) -> Array:
        found = (number >= 0) & (number < most)
        return found & (values == 1.0) if self._valued else found

    def _batch(self, tokens: Tokens, blocks: list[tuple[Array, list[int]]], group: Array) -> Batch:
        from scipy.sparse import csr_array

        made = [self._block(tokens, rows, group) for rows, _ in blocks]
        columns, values, sizes, cells, which, cell_values = (np.concatenate(some) for some in zip(*made, strict=True))
        ptr = np.concatenate((np.zeros(1, np.int32), np.cumsum(sizes, dtype=np.int32)))
        matrix = csr_array((self._data(len(columns), values), columns, ptr), shape=(len(sizes), self.n_columns))
        places = np.cumsum([0, *(len(rows) for rows, _ in blocks)])
        cells += np.repeat((places[:-1] * self.K).astype(np.int32), [len(some[3]) for some in made])
        starts = zip(places[:-1].tolist(), (steps for _, steps in blocks), strict=True)
        return Batch(tuple(starts), matrix, matrix.T, cells, which, cell_values)

    def _block(self, tokens: Tokens, rows: Array, group: Array) -> tuple[Array, ...]:
        """(columns, their values, how many a row; cells, weights there, their values) of some positions."""
        begin = tokens.ptr[rows]
        sizes = tokens.ptr[rows + 1] - begin
        number, values = self._numbers(tokens, _ranges(begin, sizes))
        row = np.repeat(np.arange(len(rows)), sizes)
        dense = (number >= 0) & (number < self.n_dense)
        extra = int(len(group) > 0)  # the group is the first entry of a row
        if extra:
            dense &= ~self._grouped(number, values, self.members.shape[1])
        counts = np.bincount(row[dense], minlength=len(rows)) + extra
        at = np.arange(int(dense.sum())) + extra * (row[dense] + 1)
        columns, data = np.empty(int(counts.sum()), dtype=np.int32), values
        columns[at] = number[dense]
        if extra:
            columns[np.cumsum(counts) - counts] = self.n_dense + group[rows]
        if self._valued:
            data = np.ones(len(columns))
            data[at] = values[dense]
        listed = number >= self.n_dense
        owner = number[listed] - self.n_dense
        lengths = self._sp_ptr[owner + 1] - self._sp_ptr[owner]
        which = _ranges(self._sp_ptr[owner], lengths).astype(np.int32)
        cells = np.repeat(row[listed] * self.K, lengths).astype(np.int32) + self._sp_label[which]
        return columns, data, counts, cells, which, np.repeat(values[listed], lengths) if self._valued else values

    def _data(self, n: int, values: FloatArray) -> FloatArray:
        """The values, or ones: where all values are 1, all batches share one array of them."""
        if self._valued:
            return values
        if len(self._ones) < n:
            self._ones = np.ones(n)
        return self._ones[:n]


def _ranges(begin: IntArray, sizes: IntArray) -> IntArray:
    """begin[0], …, begin[0] + sizes[0] − 1, begin[1], …"""
    ends = np.cumsum(sizes)
    return np.repeat(begin - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)
