"""The penalized likelihood of a linear chain: which features have weights, and value and gradient of the objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph._numerics import descent as _loops
from gramgraph.sequences.crf.encoding import Tokens
from gramgraph.sequences.crf.expectations import expectations_of
from gramgraph.typing import Array, FloatArray, IntArray

_SPARSE_LABELS = 3  # attributes with at most this many labels keep a list instead of a row
_NARROW, _ALL_DENSE = 8, 1 << 17  # labels and cells of rows up to which all have one: it costs no more than a list
_REMEMBERED, _MOST_REMEMBERED = 6, 40  # steps of a descent
_REMEMBERED_CELLS = 1 << 20  # of them, times weights: they are kept twice
_COUNT_CELLS = 1 << 25  # attributes × labels counted at a time
_COUNT_ROWS = 8192  # and positions


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
    attribute, label, count = _count(tokens, y, K, size, min_freq, all_states)
    uses = np.bincount(attribute, count, minlength=size)
    labels = np.bincount(attribute, minlength=size)
    listed = 0 if padded(K) * size <= _ALL_DENSE and K <= _NARROW else min(_SPARSE_LABELS, K - 1)
    is_dense = labels > listed
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
        dense_at=number[:split].astype(np.int64) * padded(K) + label[:split],
        sp_ptr=sp_ptr.astype(np.int64), sp_label=label[split:].astype(np.int32), transition_at=transition_at,
        observed=np.concatenate([count, pairs[transition_at]]),
    )  # fmt: skip


def enough_memory(layout: Layout, tokens: Tokens, c1: float) -> int:
    """How many steps a descent should remember: looking at them must stay cheap beside an evaluation, and short.

    An L1 penalty, whose steps end where weights change their sign, gains nothing from more of them.
    """
    if c1:
        return _REMEMBERED
    steps = layout.K * (len(tokens.ids) + layout.K * len(tokens.ptr))  # of the innermost loops of an evaluation
    most = min(_MOST_REMEMBERED, _REMEMBERED_CELLS // max(1, layout.size), steps // max(1, 8 * layout.size))
    return max(_REMEMBERED, most)


def _count(
    tokens: Tokens, y: Array, K: int, size: int, min_freq: float, all_states: bool
) -> tuple[IntArray, IntArray, FloatArray]:
    """(attribute, label, count) of every state feature that has a weight."""
    block = max(1, _COUNT_CELLS // max(K, 1))
    found: list[tuple[IntArray, FloatArray]] = []
    for low in range(0, size, block):
        high = min(size, low + block)
        counts, seen = np.zeros((high - low) * K), np.zeros((high - low) * K, dtype=np.bool_)
        _add_counts(tokens, y, K, low, high, counts, seen)
        if all_states:
            wanted = np.repeat(seen.reshape(-1, K).any(axis=1), K)
        else:
            wanted = seen & (counts >= min_freq) if min_freq > 0 else seen
        places = np.flatnonzero(wanted)
        found.append((places + low * K, counts[places]))
    places = np.concatenate([p for p, _ in found]) if found else np.empty(0, np.int64)
    counts = np.concatenate([c for _, c in found]) if found else np.empty(0)
    return places // K, places % K, counts


def _add_counts(tokens: Tokens, y: Array, K: int, low: int, high: int, counts: FloatArray, seen: Array) -> None:
    """counts[(f − low) · K + label] += value, and seen = True, for the attributes low … high − 1.

    A number −3 − f says that attribute f stands there with the value 0: seen, and nothing to count.
    """
    for a in range(0, len(y), _COUNT_ROWS):
        ptr = tokens.ptr[a : a + _COUNT_ROWS + 1]
        at = slice(int(ptr[0]), int(ptr[-1]))
        ids = tokens.ids[at].astype(np.int64)
        attribute = np.where(ids >= 0, ids, -3 - ids)
        here = (attribute >= low) & (attribute < high)
        cells = ((attribute - low) * K + np.repeat(y[a : a + _COUNT_ROWS], np.diff(ptr)))[here]
        seen[cells] = True
        live = (ids >= 0)[here]
        np.add.at(counts, cells[live], tokens.data[at][here][live] if len(tokens.data) else 1.0)


class ChainObjective:
    """f(w) = −Σ log p(y | x) + c2 ‖w‖², and its gradient, over all sequences.

    One evaluation costs O(features · K + positions · K²). The tokens belong to the objective from now on.
    """

    def __init__(self, tokens: Tokens, layout: Layout, *, c2: float = 0.0, n_jobs: int = 1) -> None:
        self.layout, self.c2 = layout, c2
        self.expectations = expectations_of(tokens, layout, n_jobs)

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """(f, gradient)."""
        f, g = self.expectations(w)
        return f + _loops.penalize(w, self.layout.observed, self.c2, g), g
