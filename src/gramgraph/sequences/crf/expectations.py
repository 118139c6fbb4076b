"""Σ log Z and expected counts of all features at given weights, in two ways: matrix products, or one compiled loop.

Products need nothing compiled or loaded; the loop is faster where steps are narrow (few or long sequences) and has
hardly a price for each evaluation. Which one is taken depends on whether the loop is worth its compilation.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gramgraph._numerics.compiling import pays
from gramgraph.sequences.crf.encoding import Tokens
from gramgraph.sequences.crf.packing import Batch, Batches, rows_of
from gramgraph.sequences.crf.recursions import log_posteriors, packed_posteriors
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.sequences.crf.objective import Layout

_EVALUATIONS = 100  # of a descent
_STEP, _POSITION = 2e-5, 2e-7  # seconds that products take more, for a step of the longest sequence and for a position


class Expectations(Protocol):
    """A way to the sums."""

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """(Σ log Z, expected counts, as w)."""


def expectations_of(tokens: Tokens, layout: Layout, n_jobs: int) -> Expectations:
    """The sums of these sequences, in the way that is worth it; the tokens may be changed."""
    from gramgraph._numerics.crf import expectations as _loops

    longest, positions = int(np.diff(tokens.offsets).max()), int(tokens.offsets[-1])
    if pays(_loops.expectations, _EVALUATIONS * (_STEP * longest + _POSITION * positions)):
        return ByLoop(tokens, layout, n_jobs)
    return ByProducts(tokens, layout, n_jobs)


class ByProducts:
    """Sparse and small dense matrices, multiplied by NumPy and SciPy; the tokens are copied."""

    def __init__(self, tokens: Tokens, layout: Layout, n_jobs: int) -> None:
        self._layout, self._jobs = layout, n_jobs
        self.data = Batches(tokens, layout.new_id, layout.n_dense, layout.sp_ptr, layout.sp_label, layout.K)
        self._dense_at = layout.dense_at // layout.width * layout.K + layout.dense_at % layout.width

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """(Σ log Z, expected counts)."""
        layout = self._layout
        n, m, K = len(layout.dense_at), len(layout.sp_label), layout.K
        dense, A = np.zeros((layout.n_dense, K)), np.zeros((K, K))
        dense.ravel()[self._dense_at] = w[:n]
        A.ravel()[layout.transition_at] = w[n + m :]
        weights = (self.data.rows(dense), w[n : n + m], A)
        batches = self.data.batches
        if self._jobs == 1 or len(batches) == 1:
            parts = [self._part(weights, batches)]
        else:
            with ThreadPoolExecutor(self._jobs) as pool:
                parts = list(pool.map(lambda k: self._part(weights, batches[k :: self._jobs]), range(self._jobs)))
        counts, lists, pairs = parts[0][1:]
        for part in parts[1:]:
            counts, lists, pairs = counts + part[1], lists + part[2], pairs + part[3]
        found = self.data.attributes(counts)
        g = np.concatenate([found.ravel()[self._dense_at], lists, pairs.ravel()[layout.transition_at]])
        return sum(part[0] for part in parts), g

    def _part(
        self, weights: tuple[FloatArray, FloatArray, FloatArray], batches: list[Batch]
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Σ log Z, and expected counts (columns, lists, transitions), of some batches."""
        rows, lists, A = weights
        shift = float(A.max())
        M = np.exp(A - shift)
        counts, more, pairs = np.zeros_like(rows), np.zeros_like(lists), np.zeros_like(A)
        total = 0.0
        for batch in batches:
            gamma = batch.scores(rows, lists)
            for at, steps in batch.blocks:
                block = gamma[at : at + steps[-1]]
                found, log_z, good = packed_posteriors(block, M, None, None, steps)
                pairs += found * M
                total += float(log_z.sum()) + shift * (steps[-1] - steps[1])
                if not good.all():
                    scores = batch.scores(rows, lists)[at : at + steps[-1]]
                    for some in rows_of(steps, np.flatnonzero(~good)):
                        exact, block[some], found = log_posteriors(scores[some], A, np.zeros(len(A)))
                        pairs += found
                        total += exact - shift * (len(some) - 1)
            batch.add_counts(gamma, counts, more)
        return total, counts, more, pairs


class ByLoop:
    """One compiled loop over the sequences; it keeps the tokens, with the numbers of the weights in them."""

    def __init__(self, tokens: Tokens, layout: Layout, n_jobs: int) -> None:
        from gramgraph._numerics.crf import expectations as _loops
        from gramgraph._numerics.crf.recursions import part_features

        self._layout, self._run, offsets = layout, _loops.expectations, tokens.offsets
        mid = np.empty(len(tokens.ptr) - 1, dtype=np.int64)
        part_features(tokens.ptr, tokens.ids, tokens.data, layout.new_id, layout.n_dense, mid)
        self._given = (
            (tokens.ptr, mid, tokens.ids, tokens.data),
            (layout.dense_at, layout.sp_ptr, layout.sp_label, layout.transition_at),
            layout.K, layout.width,
        )  # fmt: skip
        self._offsets, self._bad = offsets, np.zeros(len(offsets) - 1, dtype=np.bool_)
        longest = int(np.diff(offsets).max())
        jobs = max(1, min(n_jobs, len(offsets) - 1))
        ends = np.searchsorted(offsets, offsets[-1] * np.arange(1, jobs + 1) / jobs).tolist()  # like many positions
        firsts = [0, *ends[:-1]]
        self._parts = [
            (a, z, _loops.scratch(layout.width, layout.n_dense, longest)) for a, z in zip(firsts, ends, strict=True)
        ]

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """(Σ log Z, expected counts)."""
        if len(self._parts) == 1:
            total, lost, g = self._part(w, 0)
        else:
            with ThreadPoolExecutor(len(self._parts)) as pool:
                parts = list(pool.map(lambda k: self._part(w, k), range(len(self._parts))))
            total, lost, g = sum(p[0] for p in parts), sum(p[1] for p in parts), np.sum([p[2] for p in parts], axis=0)
        if lost:
            for s in np.flatnonzero(self._bad):
                total += self._with_logarithms(w, int(s), g)
        return total, g

    def _part(self, w: FloatArray, k: int) -> tuple[float, int, FloatArray]:
        first, behind, scratch = self._parts[k]
        found = np.empty_like(w)
        total, lost = self._run(w, self._offsets, first, behind, *self._given, scratch, found, self._bad)
        return total, lost, found

    def _with_logarithms(self, w: FloatArray, s: int, g: FloatArray) -> float:
        """log Z of a sequence whose numbers left the range; its expected counts are added to g."""
        from gramgraph._numerics.crf.recursions import token_scores

        layout, (ptr, mid, ids, data) = self._layout, self._given[0]
        K, width, n, m = layout.K, layout.width, len(layout.dense_at), len(layout.sp_label)
        lo, hi = int(self._offsets[s]), int(self._offsets[s + 1])
        weights = layout.weights(w)
        scores = np.empty((hi - lo) * width)
        token_scores(
            ptr, mid, ids, data, weights.dense, weights.sp_ptr, weights.sp_label, weights.sp_weight, weights.n_dense,
            width, lo, hi, scores,
        )  # fmt: skip
        log_z, gamma, pairs = log_posteriors(scores.reshape(-1, width)[:, :K], weights.transitions, np.zeros(K))
        dense = np.zeros((layout.n_dense, width))
        lists = g[n : n + m]
        for t in range(lo, hi):
            for e in range(int(ptr[t]), int(ptr[t + 1])):
                p = gamma[t - lo] * data[e] if len(data) else gamma[t - lo]
                if e < mid[t]:
                    dense[ids[e], :K] += p
                else:
                    row = ids[e] - layout.n_dense
                    at = slice(int(layout.sp_ptr[row]), int(layout.sp_ptr[row + 1]))
                    lists[at] += p[layout.sp_label[at]]
        g[:n] += dense.ravel()[layout.dense_at]
        g[n + m :] += pairs.ravel()[layout.transition_at]
        return log_z
