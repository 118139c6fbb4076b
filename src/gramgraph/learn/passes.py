"""One pass over all columns: how well each of them would do as a further parent of a child."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Self

import numpy as np

from gramgraph.data.counts import Counts
from gramgraph.typing import Array, FloatArray, IntArray

#: With more cells than this (the child with its parents, times a state of a further one), a scan of the codes is
#: cheaper than a pass over the bits.
BIT_CELLS = 256
#: Seconds for a word of the bits and for a row of a scan, about; and what is worth a thread.
WORD, ROW, SHARE = 4e-10, 1e-9, 1e-3


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
        found = counts.vectors()
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
            rows = self._joint(family)

            def some(part: slice) -> None:
                add_by_bits(
                    rows, self.bits, self.first, self.sizes, more[part], states, weight[part], dirichlet, out[part]
                )

            seconds = WORD * rows.size * int(self.sizes[more].sum())
        else:
            codes = coded.matrix
            key, configurations = self._cells(codes, parents, child)

            def some(part: slice) -> None:
                add_by_scan(
                    key, codes, self.sizes, more[part], configurations, states, weight[part], dirichlet, out[part]
                )

            seconds = ROW * len(key) * len(more)
        self._share_out(some, self.sizes[more], seconds)
        return out

    def _share_out(self, some: Callable[[slice], None], sizes: IntArray, seconds: float) -> None:
        """Run `some` over all columns, on threads where these have enough to do."""
        jobs = min(self.n_jobs, int(seconds / SHARE), len(sizes))
        if jobs < 2:
            return some(slice(None))
        ends = np.searchsorted(np.cumsum(sizes), np.arange(1, jobs) * (sizes.sum() / jobs)).tolist()
        first, *rest = map(slice, [0, *ends], [*ends, len(sizes)])
        others = [self._threads.submit(some, part) for part in rest]
        some(first)  # who waits can as well work
        for other in others:
            other.result()
        return None

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.n_jobs - 1)

    def _joint(self, family: tuple[int, ...]) -> Array:
        """The bit-vectors of the cells of these columns, the last one running fastest."""
        parts = [self.bits[self.first[c] : self.first[c + 1]] for c in family]
        rows = parts[0]
        for part in parts[1:]:
            rows = (rows[:, np.newaxis] & part).reshape(-1, part.shape[1])
        return rows

    def _cells(self, codes: Array, parents: tuple[int, ...], child: int) -> tuple[IntArray, int]:
        """The cell of each row among the configurations of the parents that occur, and their number."""
        place = np.zeros(codes.shape[1], np.int64)
        for p in parents:
            place = place * self.sizes[p] + codes[p]
        found, place = np.unique(place, return_inverse=True)
        return place * self.sizes[child] + codes[child], len(found)
