"""Toeplitz Gram matrices: a stationary kernel on an evenly spaced line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.linalg.base import MAX_JITTER, PositiveDefiniteError, check_finite, check_rows, with_jitter
from gramgraph.typing import Array, FloatArray

#: Largest error of A x = (1, 0, …, 0) with which a factor is trusted.
_MISSED = 1e-4


@dataclass(frozen=True, eq=False)
class Toeplitz:
    """A_ij = c_|i−j|, kept as its first column; noise σ² is added to c₀. O(n) memory throughout.

    Parameters
    ----------
    c : (n,).

    Examples
    --------
    >>> import numpy as np
    >>> A = Toeplitz(np.array([2.0, 1.0, 0.5]))
    >>> A.matvec(np.ones(3))
    array([3.5, 4. , 3.5])
    >>> A.factor().solve(np.array([3.5, 4.0, 3.5]))
    array([1., 1., 1.])
    """

    c: FloatArray  # (n,)

    def __post_init__(self) -> None:
        c = np.ascontiguousarray(self.c, dtype=float)
        if c.ndim != 1 or c.size == 0:
            raise ModelError(f"A Toeplitz matrix is given by its first column, shape (n,) with n ≥ 1; got {c.shape}.")
        check_finite(c, "The first column of a Toeplitz matrix")
        object.__setattr__(self, "c", c)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.c.shape[0]

    def matvec(self, V: Array, /) -> FloatArray:
        """A V by the fast Fourier transform of a circulant matrix that contains A, O(n log n) a column."""
        from scipy.fft import irfft, next_fast_len, rfft

        V = check_rows(V, self.n)
        n = self.n
        size = next_fast_len(2 * n - 1, real=True)
        circulant = np.zeros(size)
        circulant[:n] = self.c
        circulant[size - n + 1 :] = self.c[:0:-1]
        spectrum = rfft(circulant)
        product = rfft(V, size, axis=0) * (spectrum if V.ndim == 1 else spectrum[:, None])
        return irfft(product, size, axis=0)[:n]

    def to_dense(self) -> FloatArray:
        """A as an array (n, n)."""
        from scipy.linalg import toeplitz

        return toeplitz(self.c)

    def diag(self) -> FloatArray:
        """The diagonal of A."""
        return np.full(self.n, self.c[0])

    def factor(self, *, max_jitter: float = MAX_JITTER) -> ToeplitzFactor:
        """Durbin's recursion, n² operations and O(n) memory.

        Jitter grows until the first column of the inverse solves its own equation: positive pivots alone would let
        matrices pass whose solutions are rounding errors.
        """
        from gramgraph._numerics.gram.algebra import durbin

        scale = float(self.c[0])
        errors, phi = np.empty(self.n), np.zeros(self.n)
        floor = float(np.finfo(float).eps) * scale

        def lifted(jitter: float) -> FloatArray | None:
            c = self.c.copy()
            c[0] += jitter
            if durbin(c, errors, phi) != self.n or errors.min() <= floor:
                return None
            missed = Toeplitz(c).matvec(np.concatenate([[1.0], -phi[1:]]) / errors[-1])
            missed[0] -= 1.0
            return c if np.abs(missed).max() < _MISSED else None

        c, jitter = with_jitter(lifted, scale, "The Toeplitz matrix", limit=max_jitter)
        return ToeplitzFactor(c, errors, np.concatenate([[1.0], -phi[1:]]) / errors[-1], jitter)


@dataclass(frozen=True, eq=False)
class ToeplitzFactor:
    """Squared pivots of the Cholesky factor and the first column of the inverse; the factor itself is never stored.

    Parameters
    ----------
    c : (n,) first column of A, jitter included.
    errors : (n,) squared pivots.
    first : (n,) first column of A⁻¹.
    jitter : what was added to the diagonal.

    Examples
    --------
    >>> from gramgraph.linalg import Toeplitz
    >>> found = Toeplitz(np.array([2.0, 1.0, 0.5])).factor()
    >>> found.solve(np.array([3.5, 4.0, 3.5])).round(12).tolist()
    [1.0, 1.0, 1.0]
    """

    c: FloatArray  # (n,) first column, jitter included
    errors: FloatArray  # (n,) squared pivots
    first: FloatArray  # (n,) first column of A⁻¹
    jitter: float = 0.0

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.c.shape[0]

    @property
    def half_width(self) -> int:
        """Number of columns of the Cholesky factor."""
        return self.n

    @property
    def logdet(self) -> float:
        """log |A|, the sum of the logarithms of the squared pivots."""
        return float(np.log(self.errors).sum())

    def solve(self, B: Array, /) -> FloatArray:
        """A⁻¹ B by Levinson's recursion, O(n²) a column."""
        from scipy.linalg import solve_toeplitz

        B = check_rows(B, self.n)
        if not B.size:
            return B.copy()
        try:
            return solve_toeplitz(self.c, B, check_finite=False)
        except np.linalg.LinAlgError:  # the pivots were positive, but too small for the recursion
            scale = float(self.c[0])
            raise PositiveDefiniteError.after_jitter("The Toeplitz matrix", self.jitter, scale) from None

    def inverse_diag(self) -> FloatArray:
        """The diagonal of A⁻¹ from its first column x, O(n).

        By Trench's recursion along the diagonal: b₀ = x₀, b_{i+1} = bᵢ + (x²_{i+1} − x²_{n−1−i}) / x₀.
        """
        x = self.first
        steps = (x[1:] ** 2 - x[:0:-1] ** 2) / x[0]
        half = np.concatenate([[x[0]], x[0] + np.cumsum(steps)])
        k = (self.n + 1) // 2  # the diagonal is symmetric: its first half carries fewer rounding errors
        return np.concatenate([half[:k], half[: self.n - k][::-1]])

    def half(self, Z: Array, /) -> FloatArray:
        """L Z, row by row from the recursion, O(n²) a column and no n² memory."""
        from gramgraph._numerics.gram.algebra import toeplitz_half

        Z = check_rows(Z, self.n, "Z")
        columns = np.ascontiguousarray(Z.reshape(self.n, -1), dtype=float)
        out = np.empty_like(columns)
        toeplitz_half(self.c, columns, out)
        return out.reshape(Z.shape)
