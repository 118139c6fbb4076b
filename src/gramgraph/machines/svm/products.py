"""Kernel rows from inner products: (scale · xᵀx′ + offset)^power of dense points, several kernels of sparse ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.machines.svm.rows import Source
from gramgraph.typing import Array, FloatArray, IntArray


def raised(S: Array, power: int) -> Array:
    """S^power in the memory of S, by repeated products: `S ** power` calls the general power for every entry."""
    if power == 0:
        S[...] = 1.0
        return S
    base = S if power < 3 else S.copy()
    for bit in bin(power)[3:]:
        S *= S
        if bit == "1":
            S *= base
    return S


class PowerRows(Source):
    """(scale · xᵀx′ + offset)^power with power ≥ 1, by one matrix product and a few products of entries."""

    def __init__(self, X: FloatArray, power: int, scale: float, offset: float) -> None:
        self.X, self.power, self.scale, self.offset = X, power, scale, offset
        self.n = len(X)
        self.diag = self._finish(np.einsum("ij,ij->i", X, X))
        self._wanted: Any = np.float64

    def _finish(self, S: Array) -> Array:
        if self.scale != 1.0:
            S *= S.dtype.type(self.scale)
        if self.offset != 0.0:
            S += S.dtype.type(self.offset)
        return raised(S, self.power)

    def settle(self, dtype: Any) -> None:
        """Products will be made in single or double precision."""
        self._wanted = dtype

    def coordinates(self, dtype: Any) -> Array:
        """(d, n): the points side by side."""
        return np.ascontiguousarray(self.X.T, dtype)

    def arrange(self, columns: IntArray) -> None:
        """Lay the column points side by side."""
        self._columns = columns
        self._points = np.ascontiguousarray(self.X[columns].T, self._wanted)

    def rows_of(self, rows: IntArray, start: int = 0) -> Array:
        """K[rows][:, columns[start:]]."""
        return self._finish(self.X[rows].astype(self._points.dtype, copy=False) @ self._points[:, start:])

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """K[rows][:, columns]."""
        self.arrange(columns)
        return self.rows_of(rows)

    def subset(self, points: IntArray) -> PowerRows:
        """The same kernel on some of the points."""
        part = PowerRows(self.X[points], self.power, self.scale, self.offset)
        part._wanted = self._wanted
        return part


class SparseRows(Source):
    """Rows of a kernel over sparse points: a sparse product S, then `finish(S, left, right)` with |x|² of either side.

    The points stay sparse; a block costs its own entries and the nonzero terms of its products.
    """

    def __init__(
        self,
        X: Any,
        squares: FloatArray,
        diag: FloatArray,
        finish: Callable[[Array, FloatArray, FloatArray], Array],
        linear: bool = False,
    ) -> None:
        self.X, self.squares, self.diag, self.finish, self.linear = X, squares, diag, finish, linear
        self.n = X.shape[0]

    def arrange(self, columns: IntArray) -> None:
        """Lay the column points side by side."""
        self._columns = columns
        self._points = self.X[columns].T.tocsr()

    def rows_of(self, rows: IntArray, start: int = 0) -> Array:
        """K[rows][:, columns[start:]]."""
        points = self._points[:, start:] if start else self._points
        S = (self.X[rows] @ points).toarray()
        return self.finish(S, self.squares[rows], self.squares[self._columns[start:]])

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """K[rows][:, columns]."""
        self.arrange(columns)
        return self.rows_of(rows)

    def subset(self, points: IntArray) -> SparseRows:
        """The same kernel on some of the points."""
        return SparseRows(self.X[points], self.squares[points], self.diag[points], self.finish, self.linear)
