"""A dense symmetric matrix and its Cholesky factor, by LAPACK on one triangle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.linalg import updates
from gramgraph.linalg.base import (
    MAX_JITTER,
    PositiveDefiniteError,
    check_rows,
    check_square,
    logger,
)
from gramgraph.linalg.triangles import factor_lower, invert_lower, restore_lower
from gramgraph.typing import Array, FloatArray

#: Reciprocal condition number below which a factor in single precision is not trusted.
_SINGLE_RCOND = 1e-5


@dataclass(frozen=True, eq=False)
class Dense:
    """A symmetric matrix as an array; the factorization reads its lower triangle.

    Parameters
    ----------
    A : (n, n).

    Examples
    --------
    >>> import numpy as np
    >>> factor = Dense(np.array([[4.0, 2.0], [2.0, 3.0]])).factor()
    >>> factor.solve(np.array([8.0, 7.0]))
    array([1.25, 1.5 ])
    >>> round(float(np.exp(factor.logdet)), 6), factor.jitter
    (8.0, 0.0)
    """

    A: FloatArray  # (n, n)

    def __post_init__(self) -> None:
        A = np.asarray(self.A)
        check_square(A, "A Gram matrix")
        if A.dtype not in (np.float64, np.float32):
            A = A.astype(float)
        object.__setattr__(self, "A", A)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.A.shape[0]

    def matvec(self, V: Array, /) -> FloatArray:
        """A V."""
        return self.A @ check_rows(V, self.n)

    def to_dense(self) -> FloatArray:
        """A itself, not a copy."""
        return self.A

    def diag(self) -> FloatArray:
        """The diagonal of A."""
        return self.A.diagonal().copy()

    def factor(
        self,
        *,
        max_jitter: float = MAX_JITTER,
        precision: Literal["double", "single"] = "double",
        overwrite: bool = False,
    ) -> DenseFactor | SingleFactor:
        """The Cholesky factor, n³/3 operations.

        A pivot at the level of rounding counts as a breakdown, so that duplicate points give the same answer on every
        machine; jitter then grows by powers of ten from 10 ε up to `max_jitter`, both relative to the mean diagonal.

        `overwrite=True` works in A's own memory, when it is C-ordered, and needs no second n² array: the lower
        triangle becomes the factor, the strict upper one keeps A.

        `precision="single"` factors in float32 (half the time and memory) and refines every solution in float64
        against A, which is kept. It is taken only when the condition number is below 1e5, where refinement
        converges; otherwise the factorization is done in double precision and the log says so.
        """
        if precision not in ("double", "single"):
            hint = did_you_mean(precision, ("double", "single"))
            raise ModelError(f"precision must be 'double' or 'single', not {precision!r}.{hint}")
        if precision == "single" and self.A.dtype == np.float64:
            single = self._single(max_jitter)
            if single is not None:
                return single
            logger.info("Gram matrix: too ill-conditioned for single precision, factored in double precision")
        # order="C" copies Fortran-ordered arrays; a copy in C order of a C array is a plain memcpy
        A = np.ascontiguousarray(self.A) if overwrite else np.array(self.A, order="C")
        if not A.flags.writeable:
            A = A.copy()
        L, jitter = factor_lower(A, max_jitter=max_jitter)
        return DenseFactor(L, jitter)

    def _single(self, max_jitter: float) -> SingleFactor | None:
        """The factor in float32, None when it is not safe."""
        from scipy.linalg.lapack import spocon

        with np.errstate(over="ignore"):
            A = np.array(self.A, dtype=np.float32, order="C")
        norm = float(np.abs(self.A).sum(axis=0).max())
        if not np.isfinite(A).all() or norm == 0.0:
            return None
        try:
            L, jitter = factor_lower(A, max_jitter=0.0)
        except PositiveDefiniteError:
            return None
        rcond, _ = spocon(L.T, np.float32(norm), uplo=b"U")
        return SingleFactor(DenseFactor(L, jitter), self.A) if rcond > _SINGLE_RCOND else None


@dataclass(frozen=True, eq=False)
class DenseFactor:
    """A + jitter·I = L Lᵀ; only the lower triangle of `L` is defined.

    Appending or deleting a point and adding or removing x xᵀ take n² operations and return a new factor.

    Parameters
    ----------
    L : (n, n), whose lower triangle is the factor.
    jitter : what was added to the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> factor = Dense(np.array([[4.0, 2.0], [2.0, 3.0]])).factor()
    >>> larger = factor.append(np.array([1.0, 1.0]), 2.0)
    >>> larger.lower() @ larger.lower().T
    array([[4., 2., 1.],
           [2., 3., 1.],
           [1., 1., 2.]])
    """

    L: FloatArray  # (n, n), C-ordered
    jitter: float = 0.0

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.L.shape[0]

    @property
    def half_width(self) -> int:
        """Number of columns of L."""
        return self.n

    @property
    def logdet(self) -> float:
        """log |A| = 2 Σ log L_ii."""
        return 2.0 * float(np.log(self.L.diagonal().astype(float)).sum())

    def lower(self) -> FloatArray:
        """L with zeros above its diagonal, a copy."""
        return np.tril(self.L)

    def _lapack(self, name: str) -> Any:
        from scipy.linalg import get_lapack_funcs

        return get_lapack_funcs((name,), (self.L,))[0]

    def _blas(self, name: str) -> Any:
        from scipy.linalg import get_blas_funcs

        return get_blas_funcs((name,), (self.L,))[0]

    def solve(self, B: Array, /, *, overwrite: bool = False) -> FloatArray:
        """A⁻¹ B, 2 n² operations a column; in B's memory with `overwrite` when B is Fortran-ordered."""
        B = check_rows(B, self.n)
        if B.size == 0:
            return B.copy()
        if B.size == self.n:  # LAPACK takes one column for a matrix, at a third of the speed
            trsv = self._blas("trsv")
            half = trsv(self.L.T, B.ravel(), lower=0, trans=1)
            return trsv(self.L.T, half, lower=0, overwrite_x=1).reshape(B.shape)
        X, _ = self._lapack("potrs")(self.L.T, B, lower=0, overwrite_b=overwrite)
        return X.reshape(B.shape)

    def half_solve(self, B: Array, /, *, overwrite: bool = False) -> FloatArray:
        """L⁻¹ B: ‖L⁻¹ b‖² = bᵀA⁻¹b, half the work of `solve`."""
        B = check_rows(B, self.n)
        if B.size == 0:
            return B.copy()
        X, _ = self._lapack("trtrs")(self.L.T, B, lower=0, trans=1, overwrite_b=overwrite)
        return X.reshape(B.shape)

    def half(self, Z: Array, /) -> FloatArray:
        """L Z."""
        Z = check_rows(Z, self.n, "Z")
        columns = Z.reshape(self.n, -1)
        if columns.size == 0:
            return Z.copy()
        return self._blas("trmm")(1.0, self.L.T, columns, lower=0, trans_a=1).reshape(Z.shape)

    def inverse(self, *, triangle: Literal["both", "lower"] = "both", overwrite: bool = False) -> FloatArray:
        """A⁻¹, 2n³/3 operations; `overwrite` destroys this factor. With triangle="lower" only that counts."""
        A = np.ascontiguousarray(self.L) if overwrite else np.array(self.L, order="C")
        invert_lower(A)
        if triangle == "both":
            restore_lower(A.T)  # in the transposed view the lower triangle stands above the diagonal, and is copied
        return A

    def inverse_diag(self) -> FloatArray:
        """The diagonal of A⁻¹: column sums of squares of L⁻¹, n³/3 operations."""
        X, _ = self._lapack("trtri")(self.L.T.copy(order="F"), lower=0, overwrite_c=1)
        rows = X.T
        out = np.zeros(self.n)
        for i in range(self.n):  # row by row: what stands above the diagonal does not count and no mask is needed
            out[: i + 1] += rows[i, : i + 1] ** 2
        return out

    def append(self, B: Array, C: Array | float, /, *, max_jitter: float = MAX_JITTER) -> DenseFactor:
        """The factor of [[A, B], [Bᵀ, C]]: points are appended. See `gramgraph.linalg.append`."""
        return updates.append(self, B, C, max_jitter=max_jitter)

    def delete(self, index: int, /) -> DenseFactor:
        """The factor of A without row and column `index`. See `gramgraph.linalg.delete`."""
        return updates.delete(self, index)

    def update(self, x: Array, /) -> DenseFactor:
        """The factor of A + x xᵀ."""
        return updates.update(self, x)

    def downdate(self, x: Array, /) -> DenseFactor:
        """The factor of A − x xᵀ."""
        return updates.downdate(self, x)


@dataclass(frozen=True, eq=False)
class SingleFactor:
    """A Cholesky factor in float32 with solutions refined in float64 against A.

    `solve` is as accurate as in double precision. `logdet`, `half` and `inverse_diag` come from the float32 factor:
    relative errors of about 1e-7 times the condition number (at most 1e5 here), often far less.

    Parameters
    ----------
    factor : the factor in single precision.
    A : (n, n), in double precision.

    Examples
    --------
    >>> from gramgraph.linalg import Dense
    >>> found = Dense(np.array([[2.0, 1.0], [1.0, 2.0]])).factor(precision="single")
    >>> type(found).__name__, found.solve(np.array([3.0, 3.0])).round(12).tolist()
    ('SingleFactor', [1.0, 1.0])
    """

    factor: DenseFactor
    A: FloatArray  # (n, n), float64

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.factor.n

    @property
    def jitter(self) -> float:
        """Always 0: a matrix that needs jitter is factored in double precision."""
        return self.factor.jitter

    @property
    def half_width(self) -> int:
        """Number of columns of L."""
        return self.n

    @property
    def logdet(self) -> float:
        """log |A|, from the float32 factor."""
        return self.factor.logdet

    def solve(self, B: Array, /) -> FloatArray:
        """A⁻¹ B: solve in float32, add corrections for the float64 residual until it stops shrinking."""
        B = np.asarray(check_rows(B, self.n), dtype=float)
        size = np.abs(B).max(axis=0, initial=0.0)  # columns are scaled: float32 has a small range
        size = np.where(size > 0.0, size, 1.0)
        target = B / size
        X = np.zeros_like(target)
        residual, error = target, np.inf
        for _ in range(20):
            largest = float(np.abs(residual).max(initial=0.0))
            if largest == 0.0 or largest > 0.5 * error:
                break
            error = largest
            X = X + largest * self.factor.solve((residual / largest).astype(np.float32)).astype(float)
            residual = target - self.A @ X
        return X * size

    def half(self, Z: Array, /) -> FloatArray:
        """L Z, from the float32 factor."""
        return self.factor.half(np.asarray(Z, dtype=np.float32)).astype(float)

    def inverse_diag(self) -> FloatArray:
        """The diagonal of A⁻¹, from the float32 factor."""
        return self.factor.inverse_diag()
