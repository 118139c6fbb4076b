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


#: Points of at least so many coordinates of which at most so many are not zero are multiplied as lists.
_COORDINATES, _FILLED = 32, 0.25
_BAND = 256  # rows of a whole matrix that are made at a time


class _Lists:
    """What is not zero in the points, row by row; `number` are the rows of some points."""

    def __init__(self, X: FloatArray) -> None:
        rows, self.idx = np.nonzero(X)
        self.val: Array = X[rows, self.idx]
        self.ptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
        self.number = np.arange(len(X))

    def of(self, points: IntArray) -> _Lists:
        """The same lists for some of the points."""
        part = _Lists.__new__(_Lists)
        part.ptr, part.idx, part.val, part.number = self.ptr, self.idx, self.val, self.number[points]
        return part


class PowerRows(Source):
    """(scale · xᵀx′ + offset)^power with power ≥ 1, by one matrix product and a few products of entries.

    Points with many zeros (columns that mark one of several kinds) are multiplied as lists of what is not zero.
    """

    def __init__(self, X: FloatArray, power: int, scale: float, offset: float) -> None:
        self.X, self.power, self.scale, self.offset = X, power, scale, offset
        self.n = len(X)
        self.diag = self._finish(np.einsum("ij,ij->i", X, X))
        self._wanted: Any = np.float64
        filled = np.count_nonzero(X) if X.shape[1] >= _COORDINATES else X.size
        self._lists = _Lists(X) if filled <= _FILLED * X.size and power > 0 else None

    def _finish(self, S: Array) -> Array:
        if self.scale != 1.0:
            S *= S.dtype.type(self.scale)
        if self.offset != 0.0:
            S += S.dtype.type(self.offset)
        return raised(S, self.power)

    def settle(self, dtype: Any) -> None:
        """Products will be made in single or double precision."""
        self._wanted = dtype
        if self._lists is not None:
            self._lists.val = self._lists.val.astype(dtype, copy=False)

    def coordinates(self, dtype: Any) -> Array:
        """(d, n): the points side by side."""
        return np.ascontiguousarray(self.X.T, dtype)

    def arrange(self, columns: IntArray) -> None:
        """Lay the column points side by side."""
        self._columns = columns
        self._points = np.ascontiguousarray(self.X[columns].T, self._wanted)

    def rows_of(self, rows: IntArray, start: int = 0) -> Array:
        """K[rows][:, columns[start:]]."""
        if self._lists is None:
            return self._finish(self.X[rows].astype(self._points.dtype, copy=False) @ self._points[:, start:])
        found = np.empty((len(rows), self._points.shape[1] - start), self._points.dtype)
        self._put(rows, start, self._points.shape[1], found, 0, False)
        return found

    def _put(self, rows: IntArray, start: int, stop: int, out: Array, first: int, whole: bool) -> None:
        """Kernel rows of the arranged points start … stop − 1 into rows of `out`, from the lists."""
        from gramgraph._numerics.svm.sparse_products import sparse_power_rows

        lists, kind = self._lists, out.dtype.type
        assert lists is not None
        sparse_power_rows(
            lists.ptr, lists.idx, lists.val.astype(kind, copy=False), lists.number[rows], self._points, start, stop,
            kind(self.scale), kind(self.offset), self.power, out, first, whole,
        )  # fmt: skip

    def full(self, dtype: Any, n_jobs: int = 1) -> Array:
        """The whole matrix; from lists, its lower half and the mirror image of that."""
        if self._lists is None:
            return super().full(dtype, n_jobs)
        self.settle(dtype)
        K, everything = np.empty((self.n, self.n), dtype), np.arange(self.n)
        self.arrange(everything)
        for first in range(0, self.n, _BAND):
            last = min(first + _BAND, self.n)
            self._put(everything[first:last], 0, last, K, first, True)
        return K

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """K[rows][:, columns]."""
        self.arrange(columns)
        return self.rows_of(rows)

    def subset(self, points: IntArray) -> PowerRows:
        """The same kernel on some of the points."""
        part = PowerRows.__new__(PowerRows)
        part.X, part.power, part.scale, part.offset = self.X[points], self.power, self.scale, self.offset
        part.n, part.diag, part._wanted = len(points), self.diag[points], self._wanted
        part._lists = None if self._lists is None else self._lists.of(points)
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
