"""One pass over all columns: how well each of them would do as a further parent of a child."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Self

import numpy as np

from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.typing import Array, FloatArray, IntArray

#: With more cells than this (the child with its parents, times a state of a further one), a scan of the codes is
#: cheaper than a pass over the bits.
BIT_CELLS = 256
#: Seconds for a word of the bits and for a row of a scan, about; what is worth a thread; the most pieces for each.
WORD, ROW, SHARE, PIECES = 4e-10, 1e-9, 4e-4, 2
#: Rows from which on columns are scanned one by one.
LARGE = 20_000
FIRST = np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)
class Passes:
    """Rows without gaps and weights as bit-vectors, and as codes where they are in memory."""

    counts: Counts
    bits: Array  # (states of all columns, words)
    first: IntArray  # where the vectors of each column begin
    sizes: IntArray
    n_jobs: int = 1

    @classmethod
    def over(cls, counts: Counts, n_jobs: int = 1) -> Self | None:
        """None where the rows are not in memory."""
        found = counts.vectors(n_jobs)
        return None if found is None else cls(counts, *found, np.array(counts.sizes, np.int64), n_jobs)

    def reaches(self, cells: int) -> bool:
        """Whether a family of so many cells can be passed over: rows of a file are bits alone."""
        return cells <= BIT_CELLS or self.counts.coded is not None

    def additions(
        self, child: int, parents: tuple[int, ...], more: IntArray, weight: FloatArray, dirichlet: bool
    ) -> FloatArray:
        """Log likelihood, or Dirichlet score with weight[i] in each cell, of the child with `parents` and more[i]."""
        from gramgraph._numerics.counts.additions import add_by_bits, add_by_scan

        family = (*parents, child)
        states = self.counts.sizes[child]
        cells = prod(self.counts.sizes[c] for c in family)
        out = np.empty(len(more))
        coded = self.counts.coded
        if cells <= BIT_CELLS or coded is None:
            known = np.array(family, np.int64)

            def some(part: slice) -> None:
                add_by_bits(known, self.bits, self.first, self.sizes, more[part], weight[part], dirichlet, out[part])

            seconds = WORD * cells * self.bits.shape[1] * int(self.sizes[more].sum())
        else:
            key, configurations = self._cells(coded, parents, child)

            def some(part: slice) -> None:
                if len(key) < LARGE:
                    add_by_scan(
                        key, coded.matrix, self.sizes, more[part], configurations, states, weight[part], dirichlet,
                        out[part],
                    )  # fmt: skip
                    return
                for i in range(*part.indices(len(more))):  # columns as they are: a matrix of them is never made
                    codes, one = np.ascontiguousarray(coded.columns[more[i]])[np.newaxis], slice(i, i + 1)
                    add_by_scan(
                        key, codes, self.sizes[more[one]], FIRST, configurations, states, weight[one], dirichlet,
                        out[one],
                    )  # fmt: skip

            seconds = ROW * len(key) * len(more)
        self._share_out(some, self.sizes[more], seconds)
        return out

    def _share_out(self, some: Callable[[slice], None], sizes: IntArray, seconds: float) -> None:
        """Run `some` over all columns, on threads where these have enough to do."""
        pieces = min(int(seconds / SHARE), PIECES * self.n_jobs, len(sizes))
        if self.n_jobs < 2 or pieces < 2:
            return some(slice(None))
        ends = np.searchsorted(np.cumsum(sizes), np.arange(1, pieces) * (sizes.sum() / pieces)).tolist()
        todo = iter([slice(*ends) for ends in pairwise([0, *ends, len(sizes)])])

        def take() -> None:
            for part in todo:  # shared by all threads: none waits for one that was late to begin
                some(part)

        others = [self._threads.submit(take) for _ in range(min(self.n_jobs, pieces) - 1)]
        take()
        for other in others:
            if not other.cancel():
                other.result()
        return None

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.n_jobs - 1)

    def _cells(self, coded: CodedTable, parents: tuple[int, ...], child: int) -> tuple[IntArray, int]:
        """The cell of each row among the configurations of the parents that occur, and their number."""
        place = np.zeros(len(coded), np.int64)
        for p in parents:
            place = place * self.sizes[p] + coded.columns[p]
        possible = prod(self.counts.sizes[p] for p in parents)
        if possible <= 4 * len(place):  # without sorting the rows
            seen = np.zeros(possible, bool)
            seen[place] = True
            place = (np.cumsum(seen) - 1)[place]
            return place * self.sizes[child] + coded.columns[child], int(seen.sum())
        found, place = np.unique(place, return_inverse=True)
        return place * self.sizes[child] + coded.columns[child], len(found)
