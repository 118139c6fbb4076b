"""Columns that are sorted or binned once, so that every round only adds up weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.tree_sum import Node
from gramgraph.typing import Array, FloatArray, IntArray

_MOST_BINS = 255
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Split:
    """Rows parted by one column: by a threshold, or by the set of categories that goes left."""

    feature: int
    threshold: float
    missing_left: bool
    goes_left: Array | None
    left: Array  # (n,) of truth values: the rows on the left

    def node(self) -> Node:
        """The root of a stump, with leaves 1 and 2."""
        flags = None if self.goes_left is None else self.goes_left.tolist()
        return Node(self.feature, self.threshold, 1, 2, self.missing_left, goes_left=flags)


class SortedColumns:
    """The columns of X (n, d), each sorted once; `categories[j]` is the number of categories, 0 for a number."""

    def __init__(self, X: FloatArray, categories: Sequence[int] | None = None) -> None:
        self.n, self.d = X.shape
        categories = [0] * self.d if categories is None else list(categories)
        self.X = X
        self.numbers = np.array([j for j in range(self.d) if not categories[j]], dtype=np.int64)
        self.sets = [(j, categories[j], _codes(X[:, j], categories[j])) for j in range(self.d) if categories[j]]
        columns = np.ascontiguousarray(X[:, self.numbers].T)
        self.order = np.argsort(columns, axis=1, kind="stable").astype(
            np.uint32
        )  # unsigned: no look for negative places
        ranked = np.take_along_axis(columns, self.order, axis=1)
        self.present = self.n - np.isnan(ranked).sum(axis=1).astype(np.int64)
        self.last = np.zeros(ranked.shape, dtype=np.uint8)
        self.last[:, :-1] = ranked[:, :-1] < ranked[:, 1:]
        gaps = np.flatnonzero((self.present < self.n) & (self.present > 0))
        self.last[gaps, self.present[gaps] - 1] = 1  # rows with a value | rows without one
        self.order.flags.writeable = self.last.flags.writeable = False

    def square(self, w: FloatArray, s: FloatArray) -> Split | None:
        """The split with the largest S²/W left + S²/W right: least squares of s / w, Gini where s = ±w."""
        from gramgraph._numerics.boosting.stumps import best_square_stump

        u = np.stack((w, s), axis=1)
        return self._best(best_square_stump(self.order, self.last, self.present, u), w, s[:, None], "square")

    def error(self, w: FloatArray, s: FloatArray) -> Split | None:
        """The split with the smallest weighted error, s = ±w."""
        from gramgraph._numerics.boosting.stumps import best_error_stump

        u = np.stack((w, s), axis=1)
        return self._best(best_error_stump(self.order, self.last, self.present, u), w, s[:, None], "error")

    def classes(self, w: FloatArray, codes: IntArray, n_classes: int, criterion: str) -> Split | None:
        """The best split for K classes, by "gini" or "error"."""
        from gramgraph._numerics.boosting.stumps import best_classes_stump

        by_error = criterion == "error"
        found = best_classes_stump(self.order, self.last, self.present, w, codes, np.int64(n_classes), by_error)
        shares = np.zeros((self.n, n_classes))
        shares[np.arange(self.n), codes] = w
        return self._best(found, w, shares, "classes error" if by_error else "classes gini")

    def _best(self, found: tuple[int, int, bool, float], w: FloatArray, s: FloatArray, how: str) -> Split | None:
        """The better of the best threshold and the best set of categories."""
        column, place, missing_left, best = found
        chosen = None if column < 0 else self._threshold(int(column), int(place), bool(missing_left))
        for j, m, codes in self.sets:
            flags, score = _best_set(codes, m, w, s, how)
            if flags is not None and score > best:
                best = score
                chosen = Split(j, 0.0, bool(flags[m]), flags[:m], flags[codes])
        return chosen

    def _threshold(self, column: int, place: int, missing_left: bool) -> Split:
        feature = int(self.numbers[column])
        x = self.X[:, feature]
        below = float(x[self.order[column, place]])
        if place + 1 < self.present[column]:
            above = float(x[self.order[column, place + 1]])
            threshold = 0.5 * below + 0.5 * above
            threshold = below if threshold >= above else threshold
        else:
            threshold, missing_left = _LARGEST, False
        with np.errstate(invalid="ignore"):
            left = x <= threshold
        if missing_left:
            left |= np.isnan(x)
        elif self.present[column] == self.n:  # none is missing here: later ones follow the larger side
            missing_left = bool(2 * left.sum() > self.n)
        return Split(feature, threshold, missing_left, None, left)


def _codes(x: FloatArray, m: int) -> IntArray:
    """Category codes; m stands for a missing one."""
    known = (x >= 0) & (x < m)
    return np.where(known, np.nan_to_num(x), m).astype(np.int64)


def _best_set(codes: IntArray, m: int, w: FloatArray, s: FloatArray, how: str) -> tuple[Array | None, float]:
    """(which of the m categories, and the missing one, go left; the score): ordered by their means, cut once."""
    W = np.bincount(codes, weights=w, minlength=m + 1)
    S = np.stack([np.bincount(codes, weights=column, minlength=m + 1) for column in s.T], axis=1)
    used = np.flatnonzero(W > 0)
    if len(used) < 2:
        return None, -np.inf
    best, flags = -np.inf, None
    for k in range(1 if S.shape[1] <= 2 else S.shape[1]):  # one order is enough for two classes
        ranked = used[np.argsort(S[used, k] / W[used], kind="stable")]
        a, b = np.cumsum(W[ranked])[:-1], np.cumsum(S[ranked], axis=0)[:-1]
        rest, other = W.sum() - a, S.sum(axis=0) - b
        if how == "error":
            scores = np.abs(other - b).sum(axis=1)
        elif how == "classes error":
            scores = b.max(axis=1) + other.max(axis=1)
        else:
            scores = (b * b).sum(axis=1) / a + (other * other).sum(axis=1) / rest
        at = int(np.argmax(scores))
        if scores[at] > best:
            best, flags = float(scores[at]), np.zeros(m + 1, dtype=bool)
            flags[ranked[: at + 1]] = True
    return flags, best


class BinnedColumns:
    """The columns of X (n, d) in at most 255 bins each, as bytes, with the values between bins.

    Bins hold equally many rows where a column has more values than bins; else every value has its own.
    """

    def __init__(self, X: FloatArray, categories: Sequence[int] | None = None, *, max_bins: int = _MOST_BINS) -> None:
        self.n, self.d = X.shape
        self.categories = [0] * self.d if categories is None else list(categories)
        self.is_set = np.array([m > 0 for m in self.categories])
        self.edges = [np.zeros(m) if m else _edges(X[:, j], max_bins) for j, m in enumerate(self.categories)]
        sizes = [len(edges) for edges in self.edges]
        self.n_bins = np.array([size + (not m) for size, m in zip(sizes, self.categories, strict=True)], np.int64)
        self._start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self._flat = np.concatenate([np.zeros(0), *self.edges])
        self.codes = self.bin(X)

    def bin(self, X: FloatArray) -> Any:
        """The bins of other rows with the same columns, (d, n) bytes."""
        from gramgraph._numerics.boosting.trees import bin_columns

        out = np.empty((self.d, len(X)), dtype=np.uint8)
        bin_columns(np.ascontiguousarray(X), self._flat, self._start, self.is_set, out)
        return out

    @cached_property
    def used(self) -> IntArray:
        """Columns that can split at all."""
        gaps = (self.codes == 255).any(axis=1)
        return np.flatnonzero((self.n_bins > 1) | ((self.n_bins > 0) & gaps)).astype(np.int64)


def _edges(x: FloatArray, max_bins: int) -> FloatArray:
    """Values between the bins of one column."""
    x = x[~np.isnan(x)]
    if len(x) > 200_000:  # quantiles of a sample will do
        x = x[np.random.default_rng(0).permutation(len(x))[:200_000]]
    values = np.unique(x)
    if len(values) <= max_bins:
        return _between(values[:-1], values[1:])
    cuts = np.quantile(x, np.linspace(0.0, 1.0, max_bins + 1)[1:-1], method="averaged_inverted_cdf")
    return np.unique(cuts)


def _between(below: FloatArray, above: FloatArray) -> FloatArray:
    middle = 0.5 * below + 0.5 * above
    return np.where(middle >= above, below, middle)
