"""Where a support vector machine gets its kernel rows: a precomputed matrix, or blocks computed on demand.

`source.block(rows, columns)` is K[rows, columns]; `source.full(dtype)` the whole matrix;
`source.times(rows, columns, v)` is K[rows, columns] @ v in blocks. Rows and columns are index arrays into the
training points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramgraph._numerics.svm.exponents import exp_rows, exp_times, finish_products
from gramgraph._threads import blas_libraries, in_threads, one_thread
from gramgraph.machines.points import take_points
from gramgraph.typing import Array, FloatArray, IntArray

_BLOCK = 1 << 18  # entries of a block that is computed at once: it stays in the processor's cache
_LARGE = 1 << 21  # kernel entries from which threads are worth their start
_BAND = 256  # rows of a whole matrix that are made at a time, products first
_PIECES = 16  # as many rectangles are copied one by one; beyond, entry by entry


def most_steps(max_iter: int, n: int) -> int:
    """Steps a search over n points may take: without a limit of the user's, more than any sound problem needs.

    Where rounding of the kernel is above the tolerance the steps would never end.
    """
    return int(max_iter) if max_iter >= 0 else max(10_000_000, 100 * n)


def _stretches(index: IntArray) -> list[tuple[slice, slice]]:
    """(places in the result, places in the source) of the stretches without a gap; whole classes are copied so."""
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(index) != 1) + 1, [len(index)]])
    if len(cuts) > _PIECES:
        return [(slice(0, 0), slice(0, 0))] * (_PIECES + 1)
    return [
        (slice(a, b), slice(int(index[a]), int(index[a]) + b - a))
        for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
        if b > a
    ]


class Source(ABC):
    """Kernel rows over n training points."""

    n: int
    diag: FloatArray

    @abstractmethod
    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """K[rows][:, columns]."""

    @abstractmethod
    def subset(self, points: IntArray) -> Source:
        """The same kernel on some of the points."""

    def settle(self, dtype: Any) -> None:  # noqa: B027 - most sources have one precision
        """Announce the precision that is wanted of blocks; more than that may be given."""

    def arrange(self, columns: IntArray) -> None:
        """Announce the columns that the next `rows_of` calls are about."""
        self._columns = columns

    def rows_of(self, rows: IntArray, start: int = 0) -> Array:
        """K[rows][:, columns[start:]] for the announced columns."""
        return self.block(rows, self._columns[start:])

    def full(self, dtype: Any, n_jobs: int = 1) -> Array:
        """The whole matrix, in blocks of rows."""
        self.settle(dtype)
        K = np.empty((self.n, self.n), dtype)
        everything = np.arange(self.n)
        self.arrange(everything)
        height = max(1, _BLOCK // max(self.n, 1))
        for start in range(0, self.n, height):
            K[start : start + height] = self.rows_of(everything[start : start + height])
        return K

    def times(self, rows: IntArray, columns: IntArray, v: FloatArray) -> FloatArray:
        """K[rows][:, columns] @ v."""
        found = np.zeros(len(rows))
        if not len(columns):
            return found
        self.arrange(columns)
        height = max(1, _BLOCK // len(columns))
        for start in range(0, len(rows), height):
            found[start : start + height] = self.rows_of(rows[start : start + height]) @ v
        return found


class GramRows(Source):
    """A precomputed Gram matrix."""

    def __init__(self, K: Array) -> None:
        self.K = np.ascontiguousarray(K)
        self.n = len(K)
        self.diag = np.diagonal(K).astype(np.float64)

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """K[rows][:, columns]."""
        from gramgraph._numerics.svm.smo import gather

        found = np.empty((len(rows), len(columns)), self.K.dtype)
        down, across = _stretches(rows), _stretches(columns)
        if len(down) * len(across) > _PIECES:
            gather(self.K, found, rows, columns)
            return found
        for to_row, from_row in down:
            for to_column, from_column in across:
                found[to_row, to_column] = self.K[from_row, from_column]
        return found

    def subset(self, points: IntArray) -> GramRows:
        """The matrix of some of the points."""
        return GramRows(self.block(points, points))

    def full(self, dtype: Any, n_jobs: int = 1) -> Array:
        """The matrix itself."""
        return np.ascontiguousarray(self.K, dtype)

    def times(self, rows: IntArray, columns: IntArray, v: FloatArray) -> FloatArray:
        """K[rows][:, columns] @ v; the whole row is read when most of it is wanted."""
        if 2 * len(columns) > self.n:
            spread = np.zeros(self.n, self.K.dtype)
            spread[columns] = v
            all_rows = len(rows) == self.n and bool(np.all(rows == np.arange(self.n)))
            return ((self.K if all_rows else self.K[rows]) @ spread).astype(np.float64)
        return super().times(rows, columns, v)


class KernelRows(Source):
    """Rows of any kernel function `gram(X, Y)` over points of any kind."""

    def __init__(self, gram: Callable[[Any, Any], Array], X: Any, diag: FloatArray) -> None:
        self.gram, self.X, self.diag = gram, X, diag
        self.n = len(diag)

    def arrange(self, columns: IntArray) -> None:
        """Take the column points once."""
        self._columns = columns
        self._points = take_points(self.X, columns)

    def rows_of(self, rows: IntArray, start: int = 0) -> Array:
        """K[rows][:, columns[start:]]; a point's own entry is k(x, x), noise included."""
        columns = self._columns[start:]
        points = take_points(self._points, np.arange(start, len(self._columns))) if start else self._points
        K = np.array(self.gram(take_points(self.X, rows), points), dtype=np.float64)
        at = np.full(self.n, -1)
        at[columns] = np.arange(len(columns))
        place = at[rows]
        mine = np.flatnonzero(place >= 0)
        K[mine, place[mine]] = self.diag[rows[mine]]
        return K

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """K[rows][:, columns]."""
        self.arrange(columns)
        return self.rows_of(rows)

    def subset(self, points: IntArray) -> KernelRows:
        """The same kernel on some of the points."""
        return KernelRows(self.gram, take_points(self.X, points), self.diag[points])


class RBFRows(Source):
    """exp(−γ ‖x − x′‖²) by one matrix product and one exponential.

    The points are centered and carry −γ‖x‖² as a further column, so that the product is the exponent itself. Single
    precision is used where it was asked for and the exponent keeps an error below 1e-5.
    """

    def __init__(self, X: FloatArray, gamma: float) -> None:
        self.team = Team()
        self._set((X - X.mean(axis=0)) * np.sqrt(2.0 * gamma))

    def _set(self, Z: FloatArray) -> None:
        self.Z = Z
        self.n = len(Z)
        self.diag = np.ones(self.n)
        self._wanted: Any = np.float64
        self._sides: tuple[Array, Array] | None = None

    def settle(self, dtype: Any) -> None:
        """Points will be laid out in single or double precision."""
        if dtype != self._wanted:
            self._wanted, self._sides = dtype, None

    def sides(self) -> tuple[Array, Array]:
        """(n, d + 2) each: the exponent of the kernel is the product of a row of the left with one of the right."""
        if self._sides is None:
            half = 0.5 * np.einsum("ij,ij->i", self.Z, self.Z)
            kind: Any = np.float32 if self._wanted == np.float32 and _safe(half) else np.float64
            d = self.Z.shape[1]
            left, right = np.empty((self.n, d + 2), kind), np.empty((self.n, d + 2), kind)
            left[:, :d] = right[:, :d] = self.Z
            left[:, d] = right[:, d + 1] = -half
            left[:, d + 1] = right[:, d] = 1.0
            self._sides = left, right
        return self._sides

    def arrange(self, columns: IntArray) -> None:
        """Lay the column points side by side."""
        self._columns = columns
        self._points = np.ascontiguousarray(self.sides()[1][columns].T)

    def rows_of(self, rows: IntArray, start: int = 0) -> Array:
        """K[rows][:, columns[start:]]."""
        K = self.sides()[0][rows] @ self._points[:, start:]
        exp_rows(K, 1.0)
        return K

    def full(self, dtype: Any, n_jobs: int = 1) -> Array:
        """The whole matrix by bands of rows: products of its lower half, then exponentials and mirror images by tiles.

        Threads share the bands, of which the last are the longest.
        """
        half = 0.5 * np.einsum("ij,ij->i", self.Z, self.Z)
        kind: Any = np.float32 if dtype == np.float32 and _safe(half) else np.float64
        Z = np.ascontiguousarray(self.Z, kind)
        K = np.empty((self.n, self.n), kind)
        half = half.astype(kind)

        def band(first: int) -> None:
            last = min(first + _BAND, self.n)
            np.matmul(Z[first:last], Z[:last].T, out=K[first:last, :last])
            finish_products(K, half, first, last)

        in_threads(band, range(0, self.n, _BAND)[::-1], n_jobs if K.size > _LARGE else 1)
        return K.astype(dtype, copy=False)

    def times(self, rows: IntArray, columns: IntArray, v: FloatArray) -> FloatArray:
        """K[rows][:, columns] @ v; blocks of rows are spread over the threads that BLAS may use."""
        found = np.zeros(len(rows))
        if not len(columns) or not len(rows):
            return found
        left, right = self.sides()
        across, w = np.ascontiguousarray(right[columns].T), v.astype(left.dtype)
        height = max(64, _BLOCK // 4 // len(columns))

        def work(start: int) -> None:
            here = slice(start, start + height)
            exp_times(left[rows[here]] @ across, w, found[here])

        if len(rows) * len(columns) < _LARGE:
            for start in range(0, len(rows), height):
                work(start)
        else:
            self.team.spread(work, range(0, len(rows), height))
        return found

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """K[rows][:, columns]."""
        self.arrange(columns)
        return self.rows_of(rows)

    def subset(self, points: IntArray) -> RBFRows:
        """The same kernel on some of the points."""
        part = RBFRows.__new__(RBFRows)
        part.team = self.team
        part._set(self.Z[points])
        return part


def _safe(half: FloatArray) -> bool:
    """Whether single precision keeps exponents to 1e-5, given ‖z‖²/2 of the points.

    Rounding of a product of length d is far below d·eps in practice: the largest term is what counts.
    """
    return bool(half.max(initial=0.0) * np.finfo(np.float32).eps * 8 < 1e-5)


class Team:
    """As many threads as BLAS may use, for work whose result does not depend on who does which part."""

    def spread(self, work: Callable[[int], None], starts: Sequence[int]) -> None:
        """Call `work` for every start; inside, BLAS uses one thread per call."""
        from concurrent.futures import ThreadPoolExecutor

        threads = max((int(library["num_threads"]) for library in blas_libraries().info()), default=1)
        if threads == 1 or len(starts) == 1:
            for start in starts:
                work(start)
            return
        with one_thread(), ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, starts))


def rbf_columns(Y: FloatArray, gamma: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(center, points around it, half of their squares), in units of the kernel: what `rbf_block` needs of Y."""
    center = Y.mean(axis=0) if len(Y) else np.zeros(Y.shape[1])
    B = (Y - center) * np.sqrt(2.0 * gamma)
    return center, B, 0.5 * np.einsum("ij,ij->i", B, B)


def rbf_block(X: FloatArray, columns: tuple[FloatArray, FloatArray, FloatArray], gamma: float) -> FloatArray:
    """exp(−γ ‖x − y‖²) for all pairs, in double precision, through one matrix product. O(n m d)."""
    center, B, half = columns
    A = (X - center) * np.sqrt(2.0 * gamma)
    K = A @ B.T
    K -= 0.5 * np.einsum("ij,ij->i", A, A)[:, None]
    K -= half
    np.minimum(K, 0.0, out=K)
    return np.exp(K, out=K)
