"""Documents as the loops read them: counts by pairs of document and word, and single tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.typing import FloatArray, IntArray

_LANES = 8


@dataclass(frozen=True)
class Documents:
    """Counts c > 0 of words in documents: those of d are index[ptr[d]:ptr[d + 1]] and count[ptr[d]:ptr[d + 1]]."""

    ptr: IntArray  # (D + 1,)
    index: IntArray  # (pairs,) words
    count: FloatArray  # (pairs,) whole numbers
    n_words: int

    @classmethod
    def of(cls, counts: Any) -> Documents:
        """From a sparse matrix (documents, words) of whole numbers; zeros that are stored are left out."""
        found = counts.tocsr(copy=True)
        found.sum_duplicates()
        found.eliminate_zeros()
        ptr, index = found.indptr.astype(np.int64), found.indices.astype(np.int32)
        return cls(ptr, index, found.data.astype(np.float64), counts.shape[1])

    @property
    def n_documents(self) -> int:
        """How many there are, empty ones included."""
        return len(self.ptr) - 1

    @property
    def n_tokens(self) -> int:
        """How many words in all."""
        return int(self.count.sum())

    def part(self, first: int, last: int) -> Documents:
        """Documents first … last − 1."""
        low, high = self.ptr[first], self.ptr[last]
        return Documents(self.ptr[first : last + 1] - low, self.index[low:high], self.count[low:high], self.n_words)

    def some(self, chosen: IntArray) -> Documents:
        """These documents, in this order."""
        lengths = np.diff(self.ptr)[chosen]
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(ptr[-1]) + np.repeat(self.ptr[chosen] - ptr[:-1], lengths)
        return Documents(ptr, self.index[at], self.count[at], self.n_words)

    def tokens(self) -> Tokens:
        """One entry for each token, words of a document in their order."""
        times = self.count.astype(np.int64)
        before = np.concatenate([[0], np.cumsum(times)])
        return Tokens(before[self.ptr], np.repeat(self.index, times), self.n_words)


@dataclass(frozen=True)
class Tokens:
    """Words of documents, one entry each: words[ptr[d]:ptr[d + 1]] are those of d."""

    ptr: IntArray  # (D + 1,)
    words: IntArray  # (tokens,)
    n_words: int

    def shuffled(self, rng: np.random.Generator) -> Tokens:
        """The tokens of each document in random order."""
        document = np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))
        order = np.lexsort((rng.random(len(self.words)), document))
        return Tokens(self.ptr, self.words[order], self.n_words)


def blocks(ptr: IntArray, most: int) -> list[tuple[int, int]]:
    """Ranges of documents with at most `most` entries each; one that holds more stands alone."""
    out, first, n = [], 0, len(ptr) - 1
    while first < n:
        last = max(first + 1, int(np.searchsorted(ptr, ptr[first] + most, side="right")) - 1)
        out.append((first, min(last, n)))
        first = out[-1][1]
    return out


def padded(values: FloatArray) -> FloatArray:
    """Values (…, T) with zeros up to a multiple of eight topics."""
    short = -values.shape[-1] % _LANES
    return np.ascontiguousarray(np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, short)]), dtype=np.float64)
