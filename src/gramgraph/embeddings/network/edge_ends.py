"""One end of an edge while it is learned: rows on cells, and the smoothers that candidates share."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.cells.axes import Axis, LineAxis, Placed, StateAxis
from gramgraph.typing import FloatArray

_SMALLEST = 1e-7  # eigenvalues of a kernel below this say nothing that a penalty would keep


class End:
    """The rows of a column on the cells of its axis; smoothers are made once and kept for all edges of the column.

    >>> from gramgraph.cells.axes import StateAxis
    >>> axis = StateAxis.of("a", list("xyxx"))
    >>> End(axis, list("xyxx")).smoother("cells", 0.0)[0].tolist()
    [[1.3333333333333333, 0.0], [0.0, 4.0]]
    """

    def __init__(self, axis: Axis, values: Any, others: Any = None) -> None:
        self.axis = axis
        self.values = values
        self.placed = axis.place(values)
        self.others = None if others is None else axis.place(others)
        self._kept: dict[Any, Any] = {}

    def own(self, W: FloatArray) -> FloatArray:
        """What each row contributes to its own estimate, hᵀ W h."""
        from gramgraph._numerics.cells.shares import own_shares

        out = np.empty(len(self.placed.a))
        own_shares(W, self.placed.a, self.placed.b, self.placed.f, out)
        return out

    def at_rows(self, values: FloatArray) -> FloatArray:
        """A function on cells, between them at each row."""
        p = self.placed
        return np.asarray(values[p.a] * (1.0 - p.f) + values[p.b] * p.f)

    def spectrum(self, width: float) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues and eigenfunctions (m, r) of the centered kernel under q; the functions have mean 0, square 1."""
        key = ("spectrum", width)
        if key not in self._kept:
            q = self.axis.q
            K = self.axis.gram(width)
            K = K - (K @ q)[:, None]
            K = K - q @ K
            root = np.sqrt(np.maximum(q, 1e-300))
            values, V = np.linalg.eigh(root[:, None] * K * root)
            keep = values > _SMALLEST
            self._kept[key] = values[keep], np.ascontiguousarray(V[:, keep] / root[:, None])
        found: tuple[FloatArray, FloatArray] = self._kept[key]
        return found

    def filtered(self, width: float, reg: float) -> tuple[FloatArray, FloatArray]:
        """Eigenfunctions × s / (s + λ), (m, r), and the own shares of the rows."""
        key = ("ridge", width, reg)
        if key not in self._kept:
            s, V = self.spectrum(width)
            kept = V * (s / (s + reg))
            self._kept[key] = kept, self.own(kept @ V.T)
        found: tuple[FloatArray, FloatArray] = self._kept[key]
        return found

    def smoother(self, kind: str, width: float) -> tuple[FloatArray, FloatArray]:
        """S (m, m) with S q = 1, and own shares: kernel weights ("kernel"), blocks of cells ("blocks": their number),
        or every cell by itself ("cells")."""
        key = (kind, width)
        if key not in self._kept:
            q = self.axis.q
            if kind == "cells" or isinstance(self.axis, StateAxis):
                S = np.diag(1.0 / np.maximum(q, 1e-300))
            elif kind == "blocks" and isinstance(self.axis, LineAxis):
                middle = np.cumsum(q) - 0.5 * q
                block = np.minimum((middle * width).astype(np.int64), int(width) - 1)
                same = (block[:, None] == block).astype(np.float64)
                S = same / (same @ q)[:, None]
            else:
                K = self.axis.gram(width, by_cell=True)
                S = K / (K @ q)[:, None]
            self._kept[key] = S, self.own(S)
        found: tuple[FloatArray, FloatArray] = self._kept[key]
        return found

    @property
    def linear(self) -> FloatArray:
        """The values in the coordinate in which noise is additive; NaN where they are missing."""
        assert isinstance(self.axis, LineAxis)
        key = "linear"
        if key not in self._kept:
            x = self.axis.read(self.values)
            self._kept[key] = self.axis.density.coordinate.linear(x)
        found: FloatArray = self._kept[key]
        return found

    def rows(self, chosen: Any) -> Placed:
        """The rows `chosen`, on cells."""
        return self.placed if chosen is None else self.placed.take(chosen)
