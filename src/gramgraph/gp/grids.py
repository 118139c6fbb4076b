"""Structured points: an evenly spaced line (Toeplitz) and a full grid (Kronecker). Both are exact."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.evidence import Profile, prepared, profile
from gramgraph.gp.markov import NoiseSplit, split_noise
from gramgraph.gp.methods import Data
from gramgraph.gp.solving import SolvePosterior
from gramgraph.kernels.algebra import Product, Scale, Sum
from gramgraph.kernels.input_maps import OnColumns
from gramgraph.kernels.periodic import Periodic
from gramgraph.kernels.stationary import RBF, Constant, Matern, RationalQuadratic
from gramgraph.linalg.kronecker import _apply, _outer
from gramgraph.linalg.toeplitz import Toeplitz, ToeplitzFactor
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

# --- an even line -------------------------------------------------------------------------------------------------


def is_even_line(X: Any) -> bool:
    """Whether the points are evenly spaced numbers in rising order.

    >>> is_even_line(np.arange(5.0)[:, None]), is_even_line(np.array([[0.0], [1.0], [3.0]]))
    (True, False)
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] != 1 or len(X) < 3:
        return False
    gaps = np.diff(X[:, 0])
    return bool(gaps[0] > 0 and np.ptp(gaps) <= 1e-9 * gaps[0] + 4 * np.finfo(float).eps * np.abs(X).max())


def is_stationary(kernel: Kernel | None) -> bool:
    """Whether the kernel is known to depend on x − x′ only.

    >>> is_stationary(2 * RBF() + Constant(1.0))
    True
    """
    if isinstance(kernel, (RBF, Matern, RationalQuadratic, Periodic, Constant)):
        return True
    if isinstance(kernel, Scale):
        return is_stationary(kernel.base)
    if isinstance(kernel, (Sum, Product)):
        return all(is_stationary(part) for part in (kernel.terms if isinstance(kernel, Sum) else kernel.factors))
    return False


def _autocorrelation(A: FloatArray, B: FloatArray) -> FloatArray:
    """Σ_i Σ_c A[i, c] B[i + l, c] for every lag l ≥ 0, by the Fourier transform."""
    from scipy.fft import irfft, next_fast_len, rfft

    n = len(A)
    size = next_fast_len(2 * n, real=True)
    product = np.conj(rfft(A, size, axis=0)) * rfft(B, size, axis=0)
    return irfft(product.sum(1), size)[:n]


@dataclass(frozen=True, eq=False)
class ToeplitzMethod:
    """Evenly spaced times and a stationary kernel: O(n²) time, O(n) memory."""

    data: Data
    name = "toeplitz"
    exact = True

    def _solved(self, kernel: Kernel) -> tuple[NoiseSplit, ToeplitzFactor, FloatArray, FloatArray, Profile, FloatArray]:
        split = split_noise(kernel)
        noise = self.data.equal_noise
        if split.smooth is None or noise is None:
            raise ModelError("approx='toeplitz' needs a kernel beside its noise, and the same noise at every point.")
        c = split.smooth.gram(self.data.X[:1], self.data.X)[0]
        c[0] += split.noise + noise
        factor = Toeplitz(c).factor()
        R, H, shift = prepared(self.data.Y, self.data.X, self.data.mean)
        columns = np.concatenate([R, H], axis=1)
        solved = factor.solve(columns)
        result = profile(columns.T @ solved, factor.logdet, R.shape[1], self.data.n, self.data.mean)
        return split, factor, columns, solved, result, shift

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """log p(Y); the gradient from sums along the diagonals of α αᵀ and of the inverse, by Fourier transforms."""
        split, factor, _, solved, result, _ = self._solved(kernel)
        if not gradient:
            return result.value, None
        alpha, x = solved @ result.T, factor.first[:, None]
        n, q = self.data.n, self.data.Y.shape[1]
        lags = np.arange(n)
        # Σ_i (Σ⁻¹)_{i, i+l} = Σ_a (n − l − 2a) x_a x_{a+l} / x_0 for the first column x of the inverse
        sums = ((n - lags) * _autocorrelation(x, x) - 2.0 * _autocorrelation(lags[:, None] * x, x)) / x[0, 0]
        bar = _autocorrelation(alpha, alpha) - q * sums
        bar[0] *= 0.5
        smooth = split.smooth
        assert smooth is not None
        _, pull = smooth.pullback(self.data.X[:1], self.data.X)
        return result.value, split.theta(pull(bar[None, :]).theta, float(bar[0]))

    def posterior(self, kernel: Kernel) -> SolvePosterior:
        """The process given the data."""
        split, factor, _, solved, result, shift = self._solved(kernel)
        return SolvePosterior(kernel, self.data, split, factor.solve, solved, result, shift, factor.jitter)

    def with_data(self, data: Data) -> ToeplitzMethod:
        """For other data, which must be evenly spaced too."""
        if not is_even_line(data.X):
            raise ModelError("approx_='toeplitz': the points with the new ones are not evenly spaced. Try: fit anew.")
        return replace(self, data=data)


# --- a full grid --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Grid:
    """All combinations of the values of every column; `order` lists the rows with the last column running fastest."""

    axes: tuple[FloatArray, ...]
    order: IntArray


def find_grid(X: Any) -> Grid | None:
    """The grid that the points form, in any order of rows; None when they form none.

    >>> len(find_grid(np.array([[0.0, 1], [0, 2], [5, 1], [5, 2]])).axes)
    2
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] < 2:
        return None
    axes = [np.unique(X[:, c]) for c in range(X.shape[1])]
    if np.prod([float(len(a)) for a in axes]) != len(X) or min(len(a) for a in axes) < 2:
        return None
    order = np.lexsort(X.T[::-1])
    expected = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(len(X), -1)
    return Grid(tuple(axes), order.astype(np.int64)) if np.array_equal(X[order], expected) else None


@dataclass(frozen=True, eq=False)
class _Piece:
    """A kernel on one column, and where its parameters stand in the whole theta."""

    column: int
    kernel: Kernel
    slots: tuple[int, ...]


def _collect(kernel: Kernel, d: int, at: int) -> tuple[float, list[int], list[_Piece]] | None:
    """A product kernel as a variance, its slots in theta, and pieces of one column each; None for others."""
    if isinstance(kernel, RBF):
        scales = np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (d,))
        free, own = kernel.is_free("length_scale"), np.ndim(kernel.length_scale) == 1
        slots = [(at + (c if own else 0),) if free else () for c in range(d)]
        return 1.0, [], [_Piece(c, RBF(float(scales[c]), fixed=kernel.fixed), slots[c]) for c in range(d)]
    if isinstance(kernel, OnColumns):
        columns = kernel.columns
        columns = [columns] if isinstance(columns, (int, np.integer)) else columns
        if len(columns) != 1 or not isinstance(columns[0], (int, np.integer)):
            return None
        return 1.0, [], [_Piece(int(columns[0]), kernel.base, tuple(range(at, at + len(kernel.theta))))]
    if isinstance(kernel, Constant):
        return kernel.value, [at] if len(kernel.theta) else [], []
    if isinstance(kernel, Scale):
        inner = _collect(kernel.base, d, at + kernel.is_free("variance"))
        if inner is None:
            return None
        return kernel.variance * inner[0], ([at] if kernel.is_free("variance") else []) + inner[1], inner[2]
    if isinstance(kernel, Product):
        variance = 1.0
        own_slots: list[int] = []
        pieces: list[_Piece] = []
        for factor in kernel.factors:
            part = _collect(factor, d, at)
            if part is None:
                return None
            variance, own_slots, pieces = variance * part[0], own_slots + part[1], pieces + part[2]
            at += len(factor.theta)
        return variance, own_slots, pieces
    return None


def is_separable(kernel: Kernel | None, d: int) -> bool:
    """Whether the kernel is a product over columns: RBF, products of `.on(column)` kernels, scaled.

    >>> from gramgraph.kernels import Linear
    >>> is_separable(2 * RBF([1.0, 2.0]), 2), is_separable(Linear(), 2)
    (True, False)
    """
    return kernel is not None and _collect(kernel, d, 0) is not None


@dataclass(frozen=True, eq=False)
class _Eigen:
    split: NoiseSplit
    variance: float
    slots: list[int]
    pieces: list[_Piece]
    values: list[FloatArray]  # of every axis
    vectors: list[FloatArray]
    lam: FloatArray  # (n,) of Σ
    signal: FloatArray  # (n,) of its part without noise
    columns: FloatArray  # (n, c) in the eigenbasis
    result: Profile
    shift: FloatArray
    lifted: float


@dataclass(frozen=True, eq=False)
class _GridSolve:
    """Σ⁻¹ B through the eigenvectors of the axes."""

    vectors: tuple[FloatArray, ...]
    lam: FloatArray
    order: IntArray
    place: IntArray

    def back(self, columns: FloatArray) -> FloatArray:
        """From the eigenbasis to the points in their own order."""
        return _apply(self.vectors, np.ascontiguousarray(columns))[self.place]

    def __call__(self, B: FloatArray) -> FloatArray:
        inner = _apply([Q.T for Q in self.vectors], np.ascontiguousarray(B[self.order]))
        return self.back(inner / self.lam[:, None])


@dataclass(frozen=True, eq=False)
class KroneckerMethod:
    """A full grid and a kernel that is a product over columns: O(Σ n_c³ + n Σ n_c) time, O(n) memory."""

    data: Data
    grid: Grid
    name = "kronecker"
    exact = True

    @cached_property
    def _place(self) -> IntArray:
        place = np.empty_like(self.grid.order)
        place[self.grid.order] = np.arange(len(place))
        return place

    def _axis_gram(self, pieces: list[_Piece], c: int) -> FloatArray:
        axis = self.grid.axes[c][:, None]
        found = [piece.kernel.gram(axis) for piece in pieces if piece.column == c]
        return reduce(np.multiply, found) if found else np.ones((len(axis), len(axis)))

    def _eigen(self, kernel: Kernel) -> _Eigen:
        split = split_noise(kernel)
        d, noise = len(self.grid.axes), self.data.equal_noise
        product = None if split.smooth is None else _collect(split.smooth, d, 0)
        if product is None or noise is None:
            raise ModelError(
                "approx='kronecker' needs a kernel that is a product over columns (RBF, products of .on(column) "
                "kernels, scaled, plus White), and the same noise at every point."
            )
        variance, slots, pieces = product
        pairs = [np.linalg.eigh(self._axis_gram(pieces, c)) for c in range(d)]
        values = [np.maximum(w, 0.0) for w, _ in pairs]
        signal = variance * _outer(values)
        lam = signal + split.noise + noise
        floor = 10.0 * float(np.finfo(float).eps) * float(lam.max())
        lifted = float(max(floor - lam.min(), 0.0))
        lam = np.maximum(lam, floor)
        R, H, shift = prepared(self.data.Y, self.data.X, self.data.mean)
        columns = np.concatenate([R, H], axis=1)[self.grid.order]
        columns = _apply([Q.T for _, Q in pairs], np.ascontiguousarray(columns))
        G = columns.T @ (columns / lam[:, None])
        result = profile(G, float(np.log(lam).sum()), R.shape[1], self.data.n, self.data.mean)
        vectors = [Q for _, Q in pairs]
        return _Eigen(
            split,
            variance,
            slots,
            pieces,
            values=values,
            vectors=vectors,
            lam=lam,
            signal=signal,
            columns=columns,
            result=result,
            shift=shift,
            lifted=lifted,
        )

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """log p(Y) and its gradient, in the eigenvectors of the axes."""
        e = self._eigen(kernel)
        return e.result.value, self._gradient(e) if gradient else None

    def _gradient(self, e: _Eigen) -> FloatArray:
        q = self.data.Y.shape[1]
        alpha = (e.columns @ e.result.T) / e.lam[:, None]
        by_lam = 0.5 * ((alpha**2).sum(1) - q / e.lam)
        smooth = e.split.smooth
        assert smooth is not None
        theta = np.zeros(len(smooth.theta))
        theta[e.slots] += float(by_lam @ e.signal)
        shape = tuple(len(w) for w in e.values)
        for c in sorted({piece.column for piece in e.pieces}):
            others = e.variance * _outer([np.ones(len(w)) if i == c else w for i, w in enumerate(e.values)])
            unfolded = np.moveaxis(alpha.reshape(*shape, -1), c, 0).reshape(shape[c], -1)
            weight = np.moveaxis(others.reshape(shape), c, 0).reshape(shape[c], -1)
            weighted = unfolded * np.repeat(weight, alpha.shape[1], axis=1)
            inner = 0.5 * weighted @ unfolded.T
            traces = np.moveaxis((others / e.lam).reshape(shape), c, 0).reshape(shape[c], -1).sum(1)
            inner[np.diag_indices_from(inner)] -= 0.5 * q * traces
            bar = e.vectors[c] @ inner @ e.vectors[c].T
            self._pull_axis(e.pieces, c, bar, theta)
        return e.split.theta(theta, float(by_lam.sum()))

    def _pull_axis(self, pieces: list[_Piece], c: int, bar: FloatArray, theta: FloatArray) -> None:
        here = [piece for piece in pieces if piece.column == c]
        axis = self.grid.axes[c][:, None]
        done = [piece.kernel.pullback(axis) for piece in here]
        for i, piece in enumerate(here):
            weight = reduce(np.multiply, [K for j, (K, _) in enumerate(done) if j != i], bar)
            np.add.at(theta, list(piece.slots), done[i][1](weight).theta)

    def posterior(self, kernel: Kernel) -> SolvePosterior:
        """The process given the data."""
        e = self._eigen(kernel)
        solve = _GridSolve(tuple(e.vectors), e.lam, self.grid.order, self._place)
        solved = solve.back(e.columns / e.lam[:, None])
        return SolvePosterior(kernel, self.data, e.split, solve, solved, e.result, e.shift, e.lifted)

    def with_data(self, data: Data) -> KroneckerMethod:
        """For other data, which must form a grid too."""
        grid = find_grid(data.X)
        if grid is None:
            raise ModelError("approx_='kronecker': the points with the new ones form no grid. Try: fit anew.")
        return KroneckerMethod(data, grid)
