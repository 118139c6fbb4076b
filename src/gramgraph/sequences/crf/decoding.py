"""Answers of a linear chain with given weights: best paths, marginals, n-best lists, with constraints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from gramgraph.exceptions import ModelError, StateError, did_you_mean
from gramgraph.sequences.crf.encoding import FeatureTable, Tokens
from gramgraph.sequences.crf.objective import ChainWeights
from gramgraph.sequences.crf.packing import blocks_of, posteriors, rows_of
from gramgraph.sequences.crf.recursions import log_posteriors
from gramgraph.typing import Array, FloatArray, IntArray

_IMPOSSIBLE = -math.inf


@dataclass(frozen=True)
class Rules:
    """What a labeling may contain: which first labels, and which label after which."""

    start: Array  # (K,) bool
    steps: Array  # (K, K) bool

    @classmethod
    def free(cls, K: int) -> Rules:
        """Everything is allowed."""
        return cls(np.ones(K, dtype=np.bool_), np.ones((K, K), dtype=np.bool_))


def read_rules(constraints: Any, classes: Sequence[Any]) -> Rules:
    """Rules from None, "BIO", or pairs (label, next label) that are forbidden, with None for the start.

    >>> rules = read_rules("BIO", ["B-NP", "I-NP", "I-VP", "O"])
    >>> rules.start.tolist(), rules.steps[0].tolist()
    ([True, False, False, True], [True, True, False, True])
    """
    rules = Rules.free(len(classes))
    if constraints is None:
        return rules
    if isinstance(constraints, str):
        if constraints != "BIO":
            hint = did_you_mean(constraints, ["BIO"])
            raise ModelError(f"constraints must be None, 'BIO' or pairs of labels; it is {constraints!r}.{hint}")
        for j, label in enumerate(classes):
            if str(label)[:2] == "I-":
                rules.start[j] = False
                rules.steps[:, j] = [str(before) in (f"B-{str(label)[2:]}", label) for before in classes]
        return rules
    if not isinstance(constraints, Iterable):
        raise ModelError(f"constraints must be None, 'BIO' or pairs of labels; it is {constraints!r}.")
    index = {label: i for i, label in enumerate(classes)}
    for pair in constraints:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ModelError(f"constraints must hold pairs (label, next label); got {pair!r}.")
        before, after = pair
        for label in (after,) if before is None else pair:
            if label not in index:
                raise StateError.unknown(label, "the labels", [str(c) for c in classes])
        if before is None:
            rules.start[index[after]] = False
        else:
            rules.steps[index[before], index[after]] = False
    return rules


def allowed_labels(allowed: Any, offsets: IntArray, classes: Sequence[Any]) -> Array:
    """(N, K) booleans from what a user allows: a sequence a sequence, at each position None or a list of labels."""
    K = len(classes)
    if allowed is None:
        return np.empty((0, K), dtype=np.bool_)
    if len(allowed) != len(offsets) - 1:
        raise ModelError(f"allowed has {len(allowed)} sequences, but X has {len(offsets) - 1}.")
    index = {label: i for i, label in enumerate(classes)}
    found = np.ones((int(offsets[-1]), K), dtype=np.bool_)
    for s, positions in enumerate(allowed):
        if positions is None:
            continue
        if len(positions) != offsets[s + 1] - offsets[s]:
            raise ModelError(
                f"allowed[{s}] has {len(positions)} positions, but sequence {s} has {offsets[s + 1] - offsets[s]}."
            )
        for t, labels in enumerate(positions):
            if labels is None:
                continue
            row = found[int(offsets[s]) + t]
            row[:] = False
            for label in [labels] if isinstance(labels, str) or not isinstance(labels, Iterable) else labels:
                if label not in index:
                    raise StateError.unknown(label, "the labels", [str(c) for c in classes])
                row[index[label]] = True
    return found


@dataclass(frozen=True)
class Chain:
    """Weights and rules of a fitted chain; tokens come with the numbers of its attributes."""

    weights: ChainWeights
    rules: Rules
    held: tuple[Any, ...] | None = field(default=None, init=False, repr=False, compare=False)  # of `tagged`

    @property
    def K(self) -> int:
        """The number of labels."""
        return len(self.weights.transitions)

    def _features(self, tokens: Tokens) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What the loops take: features (renumbered in place, unknown ones dropped) and weights."""
        from gramgraph._numerics.crf.recursions import part_features

        w = self.weights
        mid = np.empty(len(tokens.ptr) - 1, dtype=np.int64)
        part_features(tokens.ptr, tokens.ids, tokens.data, np.empty(0, dtype=np.int32), w.n_dense, mid)
        return (tokens.ptr, mid, tokens.ids, tokens.data), (w.dense, w.sp_ptr, w.sp_label, w.sp_weight, w.n_dense)

    def _logs(self, width: int) -> tuple[FloatArray, FloatArray]:
        """(transitions, start) padded to `width`, −inf for what may not be."""
        K = self.K
        A, start = np.full((width, width), -np.inf), np.full(width, -np.inf)
        A[:K, :K] = np.where(self.rules.steps, self.weights.transitions, -np.inf)
        start[:K][self.rules.start] = 0.0
        return A, start

    @cached_property
    def _padded_logs(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(transitions, their transpose, start) as the loop of best paths takes them."""
        A, start = self._logs(self.weights.width)
        return A.ravel(), np.ascontiguousarray(A.T).ravel(), start

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "held"}  # it has addresses

    def _hold(self, table: FeatureTable, labels: list[Any], tokens: int) -> bool:
        """Make what `tagged` needs; False while that is not worth compiling."""
        table.prepare(tokens)
        if table.quick is None:
            return False
        from gramgraph._numerics.crf import tagging

        w, (kinds, *lookups) = self.weights, table.quick
        arrays = (*lookups, w.dense, w.sp_ptr, w.sp_label, w.sp_weight, *self._padded_logs)
        kind, kept = (list if table.plain else dict), tuple(labels)
        model = tagging.as_numbers(kind, bool(table.plain), w.n_dense, w.width, kinds, arrays, kept)
        # what has an address here stays alive as long as the address is known
        self.__dict__["held"] = table.quick, tagging, model.ctypes.data, (model, arrays, kept)
        return True

    def tagged(self, table: FeatureTable, labels: list[Any], x: list[Any]) -> list[Any] | None:
        """What `viterbi` finds for one sequence, in one compiled call; None where only the other way can."""
        held = self.held
        if not x or ((held is None or held[0] is not table.quick) and not self._hold(table, labels, len(x))):
            return None
        _, loops, address, _alive = self.__dict__["held"]
        found = x.copy()  # another thread may change x
        return found if loops.tag(id(found), address) > _IMPOSSIBLE else None

    def viterbi(self, tokens: Tokens, allowed: Array) -> tuple[Array, FloatArray]:
        """(labels (N,), scores (S,)) of the best paths, in O(N K²)."""
        from gramgraph._numerics.crf.recursions import viterbi

        features, weights = self._features(tokens)
        labels = np.empty(len(tokens.ptr) - 1, dtype=np.int32)
        best = np.zeros(len(tokens.offsets) - 1)
        viterbi(
            tokens.offsets, *features, *weights, *self._padded_logs, allowed, self.K, self.weights.width, labels, best
        )  # fmt: skip
        if (best == -np.inf).any():
            _refuse(int(np.argmax(best == -np.inf)))
        return labels, best

    def marginals(self, tokens: Tokens, allowed: Array) -> tuple[FloatArray, FloatArray]:
        """(p(label at t | x) (N, K), log Z (S,)) by scaled forward–backward, with logarithms where numbers end."""
        scores = self._scores(*self._features(tokens), allowed[:0])
        shift = float(self.weights.transitions.max())
        M = np.exp(self.weights.transitions - shift) * self.rules.steps
        A, first = self._logs(self.K)
        log_z = np.zeros(len(tokens.offsets) - 1)
        blocks, loop = blocks_of(tokens.offsets, self.K)
        for sequences, rows, steps in blocks:
            limits = allowed[rows] if len(allowed) else None
            gamma = scores[rows]
            _, found, good = posteriors(gamma, M, self.rules.start.astype(float), limits, steps, loop)
            found += shift * (np.diff(tokens.offsets)[sequences] - 1)
            for s, at in zip(np.flatnonzero(~good), rows_of(steps, np.flatnonzero(~good)), strict=True):
                exact = scores[rows[at]]
                if limits is not None:
                    exact[~limits[at]] = -np.inf
                found[s], gamma[at], _ = log_posteriors(exact, A, first)
                if found[s] == -np.inf:
                    _refuse(int(sequences[s]))
            log_z[sequences] = found
            scores[rows] = gamma / gamma.sum(axis=1, keepdims=True)  # the sum is 1 but for rounding
        return scores, log_z

    def scores(self, tokens: Tokens, allowed: Array) -> FloatArray:
        """Σ of the weights of state features, (N, K); −inf where a label is not allowed."""
        return self._scores(*self._features(tokens), allowed)

    def _scores(self, features: tuple[Any, ...], weights: tuple[Any, ...], allowed: Array) -> FloatArray:
        from gramgraph._numerics.crf.recursions import token_scores

        N, width = len(features[1]), self.weights.width
        rows = np.empty(N * width)
        token_scores(*features, *weights, width, 0, N, rows)
        found = np.ascontiguousarray(rows.reshape(N, width)[:, : self.K])
        if len(allowed):
            found[~allowed] = -np.inf
        return found

    def n_best(self, tokens: Tokens, allowed: Array, k: int) -> list[tuple[Array, FloatArray]]:
        """For every sequence (labels (n, T), scores (n,)) of its n ≤ k best paths."""
        from gramgraph._numerics.crf.recursions import best_paths

        scores = self.scores(tokens, allowed)
        A, start = self._logs(self.K)
        found = []
        for lo, hi in zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True):
            if hi == lo:
                found.append((np.empty((1, 0), dtype=np.int64), np.zeros(1)))
                continue
            values, labels = np.empty(k), np.empty((k, int(hi - lo)), dtype=np.int64)
            n = best_paths(scores[lo:hi], A, start, k, values, labels)
            found.append((labels[:n], values[:n]))
        return found

    def path_scores(self, tokens: Tokens, labels: IntArray, allowed: Array) -> FloatArray:
        """Σ of all weights along given paths, (S,); −inf for labels below 0 and what the rules forbid."""
        scores = self.scores(tokens, allowed)
        A, start = self._logs(self.K)
        local = np.where(labels >= 0, scores[np.arange(len(labels)), labels], -np.inf)
        first = np.zeros(len(labels), dtype=np.bool_)
        first[tokens.offsets[:-1][np.diff(tokens.offsets) > 0]] = True
        before = np.roll(labels, 1)
        local += np.where(first, start[labels], A[before, labels])
        sums = np.concatenate(([0.0], np.cumsum(np.where(np.isfinite(local), local, 0.0))))
        bad = np.concatenate(([0], np.cumsum(~np.isfinite(local))))
        lo, hi = tokens.offsets[:-1], tokens.offsets[1:]
        return np.where(bad[hi] > bad[lo], -np.inf, sums[hi] - sums[lo])

    def pruned(self, new_id: Array) -> tuple[Chain, Array, int]:
        """(the chain without attributes whose weights are all 0, numbers of the old attributes in it, how many)."""
        w = self.weights
        rows = w.dense.reshape(-1, w.width)
        keep_dense = (rows != 0.0).any(axis=1)
        owner = np.repeat(np.arange(len(w.sp_ptr) - 1), np.diff(w.sp_ptr))
        live = w.sp_weight != 0.0
        sizes = np.bincount(owner[live], minlength=len(w.sp_ptr) - 1)
        kept = np.concatenate([keep_dense, sizes > 0])
        number = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        sp_ptr = np.concatenate(([0], np.cumsum(sizes[sizes > 0]))).astype(np.int64)
        made = replace(
            w, dense=rows[keep_dense].ravel(), sp_ptr=sp_ptr, sp_label=w.sp_label[live], sp_weight=w.sp_weight[live]
        )
        final = np.full(len(new_id), -1, dtype=np.int32)
        final[new_id >= 0] = number[new_id[new_id >= 0]]
        return replace(self, weights=made), final, int(kept.sum())

    def state_features(self) -> tuple[IntArray, IntArray, FloatArray]:
        """(attribute, label, weight) of all state features whose weight is not 0."""
        w = self.weights
        rows = w.dense.reshape(-1, w.width)[:, : self.K]
        attribute, label = np.nonzero(rows)
        owner = w.n_dense + np.repeat(np.arange(len(w.sp_ptr) - 1), np.diff(w.sp_ptr))
        return (
            np.concatenate([attribute, owner]),
            np.concatenate([label, w.sp_label]),
            np.concatenate([rows[attribute, label], w.sp_weight]),
        )


def _refuse(sequence: int) -> NoReturn:
    raise ModelError(f"no labeling of sequence {sequence} keeps the constraints.")
