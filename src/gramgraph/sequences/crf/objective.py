"""The penalized likelihood of a linear chain: which features have weights, and value and gradient of the objective."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gramgraph._numerics import crf as _loops
from gramgraph.sequences.crf.encoding import Tokens
from gramgraph.typing import Array, FloatArray, IntArray

__all__ = ["ChainObjective", "ChainWeights", "Layout", "lay_out", "padded"]

_SPARSE_LABELS = 3  # attributes with at most this many labels keep a list instead of a row
_COUNT_CELLS = 1 << 25  # attributes × labels counted at a time


def padded(K: int) -> int:
    """The width of a row of K labels: the next multiple of 8."""
    return (K + 7) // 8 * 8


@dataclass(frozen=True)
class ChainWeights:
    """Weights as the loops take them: rows for dense attributes, lists for sparse ones, (K, K) for transitions."""

    dense: FloatArray  # (n_dense · width,)
    sp_ptr: IntArray
    sp_label: Array  # int32
    sp_weight: FloatArray
    transitions: FloatArray  # (K, K), from row to column
    width: int

    @property
    def n_dense(self) -> int:
        """How many attributes have a row."""
        return len(self.dense) // self.width

    def exp_transitions(self, allowed: Array | None = None) -> tuple[FloatArray, FloatArray, float]:
        """(exp(transitions − shift), its transpose, shift), flat and padded; 0 where a transition is not allowed."""
        K = len(self.transitions)
        shift = float(self.transitions.max()) if K else 0.0
        M = np.zeros((self.width, self.width))
        M[:K, :K] = np.exp(self.transitions - shift)
        if allowed is not None:
            M[:K, :K] *= allowed
        return M.ravel(), np.ascontiguousarray(M.T).ravel(), shift


@dataclass(frozen=True)
class Layout:
    """Which weights there are, and where they stand in the vector w = (dense, sparse, transitions)."""

    K: int
    new_id: Array  # (attributes before,) int32: their numbers here, −1 for those without weights
    n_dense: int
    n_attributes: int
    dense_at: IntArray  # places in the padded dense rows
    sp_ptr: IntArray
    sp_label: Array
    transition_at: IntArray  # places in the flat (K, K) matrix
    observed: FloatArray  # counts of all features in the data, as w

    @property
    def width(self) -> int:
        """Labels in a row, padding included."""
        return padded(self.K)

    @property
    def size(self) -> int:
        """The number of weights."""
        return len(self.observed)

    def weights(self, w: FloatArray) -> ChainWeights:
        """The vector as rows, lists and a matrix."""
        n, m = len(self.dense_at), len(self.sp_label)
        dense = np.zeros(self.n_dense * self.width)
        dense[self.dense_at] = w[:n]
        transitions = np.zeros(self.K * self.K)
        transitions[self.transition_at] = w[n + m :]
        sparse = np.ascontiguousarray(w[n : n + m])
        return ChainWeights(dense, self.sp_ptr, self.sp_label, sparse, transitions.reshape(self.K, -1), self.width)


def lay_out(
    tokens: Tokens, y: Array, K: int, size: int, *, min_freq: float, all_states: bool, all_transitions: bool
) -> Layout:
    """Count features and decide which have weights: those seen (at least min_freq times), or all with all labels."""
    uses = np.zeros(size, dtype=np.int64)
    _loops.count_uses(tokens.ids, uses)
    attribute, label, count = _count(tokens, y, K, size, min_freq, all_states)
    labels = np.bincount(attribute, minlength=size)
    is_dense = labels > min(_SPARSE_LABELS, K - 1)
    # dense first, then sparse, each by frequency: what is looked at often stands together
    order = np.lexsort((-uses, ~is_dense, labels == 0))
    kept = int((labels > 0).sum())
    new_id = np.full(size, -1, dtype=np.int32)
    new_id[order[:kept]] = np.arange(kept, dtype=np.int32)
    n_dense = int(is_dense.sum())
    number = new_id[attribute]
    by = np.lexsort((label, number))
    number, label, count = number[by], label[by], count[by]
    split = int(np.searchsorted(number, n_dense))
    pairs = np.zeros(K * K)
    inner = np.ones(len(y), dtype=bool)
    inner[tokens.offsets[:-1][tokens.offsets[:-1] < len(y)]] = False
    at = np.flatnonzero(inner)
    pairs += np.bincount(y[at - 1].astype(np.int64) * K + y[at], minlength=K * K)
    transition_at = np.flatnonzero((pairs >= max(min_freq, 1.0)) | all_transitions)
    sp_ptr = np.searchsorted(number[split:], np.arange(n_dense, kept + 1))
    return Layout(
        K, new_id, n_dense, kept,
        number[:split].astype(np.int64) * padded(K) + label[:split],
        sp_ptr.astype(np.int64), label[split:].astype(np.int32), transition_at,
        np.concatenate([count, pairs[transition_at]]),
    )  # fmt: skip


def _count(
    tokens: Tokens, y: Array, K: int, size: int, min_freq: float, all_states: bool
) -> tuple[IntArray, IntArray, FloatArray]:
    """(attribute, label, count) of every state feature that has a weight."""
    block = max(1, _COUNT_CELLS // max(K, 1))
    found: list[tuple[IntArray, FloatArray]] = []
    for low in range(0, size, block):
        high = min(size, low + block)
        counts, seen = np.zeros((high - low) * K), np.zeros((high - low) * K, dtype=np.uint8)
        _loops.count_features(tokens.ptr, tokens.ids, tokens.data, y, K, low, high, counts, seen)
        if all_states:
            wanted = np.repeat(seen.reshape(-1, K).any(axis=1), K)
        else:
            wanted = (seen > 0) & (counts >= min_freq) if min_freq > 0 else seen > 0
        places = np.flatnonzero(wanted)
        found.append((places + low * K, counts[places]))
    places = np.concatenate([p for p, _ in found]) if found else np.empty(0, np.int64)
    counts = np.concatenate([c for _, c in found]) if found else np.empty(0)
    return places // K, places % K, counts


class ChainObjective:
    """f(w) = −Σ log p(y | x) + c2 ‖w‖², and its gradient, over all sequences.

    One evaluation costs O(features · K + positions · K²). The tokens are renumbered in place: they belong to the
    objective from here on.
    """

    def __init__(self, tokens: Tokens, layout: Layout, *, c2: float = 0.0, n_jobs: int = 1) -> None:
        self.layout, self.c2 = layout, c2
        self.offsets, self.ptr, self.ids, self.data = tokens.offsets, tokens.ptr, tokens.ids, tokens.data
        self.mid = np.empty(len(self.ptr) - 1, dtype=np.int64)
        _loops.part_features(self.ptr, self.ids, self.data, layout.new_id, layout.n_dense, self.mid)
        lengths = np.diff(self.offsets)
        self.n_pairs = int(np.maximum(lengths - 1, 0).sum())
        cuts = np.searchsorted(self.offsets, np.linspace(0, self.offsets[-1], n_jobs + 1)[1:-1])
        self._cuts = [0, *(int(c) for c in cuts), len(lengths)]

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """(f, gradient)."""
        layout = self.layout
        weights = layout.weights(w)
        M, MT, shift = weights.exp_transitions()
        spans = list(zip(self._cuts[:-1], self._cuts[1:], strict=True))
        if len(spans) == 1:
            parts = [self._part(weights, M, MT, *spans[0])]
        else:
            with ThreadPoolExecutor(len(spans)) as pool:
                parts = list(pool.map(lambda span: self._part(weights, M, MT, *span), spans))
        dense, sparse, expected = parts[0][1:]
        for part in parts[1:]:
            dense, sparse, expected = dense + part[1], sparse + part[2], expected + part[3]
        g = np.concatenate([dense[layout.dense_at], sparse, expected.ravel()[layout.transition_at]])
        g -= layout.observed
        f = sum(part[0] for part in parts) + self.n_pairs * shift - float(layout.observed @ w)
        if self.c2:
            f += self.c2 * float(w @ w)
            g += (2.0 * self.c2) * w
        return f, g

    def _part(
        self, weights: ChainWeights, M: FloatArray, MT: FloatArray, first: int, last: int
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Σ log Z without the shift of transitions, and expected counts, of some sequences."""
        layout = self.layout
        K, width = layout.K, layout.width
        dense, sparse = np.zeros(len(weights.dense)), np.zeros(len(weights.sp_label))
        pairs, failed = np.zeros(len(M)), np.zeros(len(self.offsets) - 1, dtype=np.bool_)
        features = (self.ptr, self.mid, self.ids, self.data)
        lists = (weights.sp_ptr, weights.sp_label, weights.sp_weight)
        total = _loops.chain_gradient(
            self.offsets, *features, weights.dense, *lists, layout.n_dense, M, MT, K, width, first, last,
            dense, sparse, pairs, failed,
        )  # fmt: skip
        pairs *= M
        steps = pairs.reshape(width, width)[:K, :K]
        shift = float(weights.transitions.max())
        for s in np.flatnonzero(failed):
            lo, hi = int(self.offsets[s]), int(self.offsets[s + 1])
            rows, gamma, more = np.empty((hi - lo) * width), np.zeros((hi - lo, width)), np.empty((K, K))
            _loops.token_scores(*features, weights.dense, *lists, layout.n_dense, width, lo, hi, rows)
            scores = rows.reshape(-1, width)[:, :K]
            total += _loops.log_posteriors(scores, weights.transitions, np.zeros(K), gamma[:, :K], more)
            total -= (hi - lo - 1) * shift
            steps += more
            for t in range(lo, hi):
                _loops.scatter(
                    *features, len(self.data) > 0, *lists[:2], layout.n_dense, width, t, gamma.ravel(),
                    (t - lo) * width, dense, sparse,
                )  # fmt: skip
        return float(total), dense, sparse, steps
