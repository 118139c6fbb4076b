"""One tree after the other on binned columns: room for histograms is made once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.machines.boosting.columns import BinnedColumns
from gramgraph.tree_sum import Node
from gramgraph.typing import Array, FloatArray, IntArray

_FEATURE, _BIN, _LEFT, _RIGHT, _MISS_LEFT, _START, _STOP, _DEPTH, _IS_SET = range(9)
_LARGEST = float(np.finfo(np.float64).max)


@dataclass
class Grown:
    """A tree that was just grown: its nodes, and which rows lie in which leaf (valid until the next one)."""

    columns: BinnedColumns
    ints: IntArray
    floats: FloatArray
    sets: Array
    rows: Array
    values: FloatArray  # of the nodes; those of leaves count

    def leaves(self) -> Iterator[tuple[int, Array]]:
        """Each leaf with the rows it was grown on."""
        for k in np.flatnonzero(self.ints[:, _FEATURE] < 0).tolist():
            yield k, self.rows[self.ints[k, _START] : self.ints[k, _STOP]]

    def spread(self) -> FloatArray:
        """The value of every row; all rows were used for growing."""
        out = np.empty(len(self.rows))
        for k, rows in self.leaves():
            out[rows] = self.values[k]
        return out

    def nodes(self) -> Iterator[Node]:
        """The nodes in terms of values instead of bins."""
        for k, row in enumerate(self.ints.tolist()):
            j = row[_FEATURE]
            if j < 0:
                yield Node(value=float(self.values[k]))
            elif row[_IS_SET]:
                flags = self.sets[k, : self.columns.categories[j]] != 0
                yield Node(j, 0.0, row[_LEFT], row[_RIGHT], bool(row[_MISS_LEFT]), 0.0, flags.tolist())
            else:
                edges = self.columns.edges[j]
                threshold = float(edges[row[_BIN]]) if row[_BIN] < len(edges) else _LARGEST
                yield Node(j, threshold, row[_LEFT], row[_RIGHT], bool(row[_MISS_LEFT]))

    def gains(self) -> Iterator[tuple[int, float]]:
        """(feature, gain) of every split."""
        for k in np.flatnonzero(self.ints[:, _FEATURE] >= 0).tolist():
            yield int(self.ints[k, _FEATURE]), float(self.floats[k, 0])


class Grower:
    """Grows trees on gradients and curvatures: the best gain G²/(H + l2) first, histograms of siblings by difference.

    `mass` are weights of the rows that count for `least_rows`; without them each row counts once.
    """

    def __init__(
        self,
        columns: BinnedColumns,
        *,
        max_depth: int = 3,
        max_leaves: int = 31,
        least_rows: int = 1,
        l2: float = 0.0,
        least_hess: float = 1e-3,
        least_gain: float = 0.0,
        mass: FloatArray | None = None,
    ) -> None:
        self.columns = columns
        self.max_depth, self.l2 = max_depth, float(l2)
        self.max_leaves = max(1, min(max_leaves, 1 << min(max_depth, 30), columns.n))
        self.least_rows, self.least_hess, self.least_gain = float(least_rows), least_hess, least_gain
        n, most = columns.n, 2 * self.max_leaves
        self._pool = np.empty((max(1, self.max_leaves), columns.d, 256, 3))
        self._ints = np.zeros((most, 9), dtype=np.int64)
        self._floats = np.zeros((most, 4))
        self._sets = np.zeros((most, 256), dtype=np.uint8)
        self._slot = np.zeros(most, dtype=np.int64)
        self._rows = np.empty(n, dtype=np.int32)
        self.mass = np.empty(0) if mass is None else mass
        self._spare: Any = (np.empty(n, dtype=np.int32), np.empty(n), np.empty(n), np.empty(len(self.mass)))

    def grow(
        self, grad: FloatArray, hess: FloatArray, *, rows: Array | None = None, columns: IntArray | None = None
    ) -> Grown:
        """One tree on all rows, or on the `rows` and `columns` of a sample; leaves hold −G / (H + l2)."""
        from gramgraph._numerics.boosting.trees import grow_tree

        held = self.columns
        if rows is None:
            grad, hess, used = grad.copy(), hess.copy(), held.n
            mass = self.mass.copy()
            self._rows[0] = -1
        else:
            grad, hess, used = grad[rows], hess[rows], len(rows)
            mass = self.mass[rows] if len(self.mass) else self.mass
            self._rows[:used] = rows
        n_nodes = grow_tree(
            held.codes, held.used if columns is None else columns, held.n_bins, held.is_set, self._rows, grad, hess,
            mass, used, self.max_depth, self.max_leaves, self.l2, self.least_rows, self.least_hess, self.least_gain,
            self._pool, self._ints, self._floats, self._sets, self._slot, *self._spare,
        )  # fmt: skip
        floats = self._floats[:n_nodes]
        values = -floats[:, 1] / np.maximum(floats[:, 2] + self.l2, 1e-300)
        return Grown(held, self._ints[:n_nodes], floats, self._sets, self._rows[:used], values)
