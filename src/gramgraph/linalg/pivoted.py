"""Pivoted incomplete Cholesky: the low-rank factor that takes the worst-approximated point next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.linalg.base import PositiveDefiniteError, check_finite, check_square
from gramgraph.linalg.blocks import select
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    """K ≈ L Lᵀ of rank r; K − L Lᵀ is positive semidefinite with the diagonal `residual` and zero at the pivots.

    Parameters
    ----------
    L : (n, r).
    pivots : (r,) rows in the order in which they were taken.
    residual : (n,) diagonal of K − L Lᵀ, not negative.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> found = pivoted_cholesky(RBF(), np.array([[0.0], [0.0], [3.0]]))
    >>> found.L.shape, found.pivots.tolist()
    ((3, 2), [0, 2])
    """

    L: FloatArray  # (n, r)
    pivots: IntArray  # (r,) rows in the order in which they were taken
    residual: FloatArray  # (n,) diagonal of K − L Lᵀ, not negative

    @property
    def rank(self) -> int:
        """Number of pivots."""
        return self.L.shape[1]

    @property
    def residual_trace(self) -> float:
        """trace(K − L Lᵀ), which bounds the error in every norm."""
        return float(self.residual.sum())


def pivoted_cholesky(kernel: Kernel, X: Any, *, tol: float = 1e-6, max_rank: int | None = None) -> PivotedCholesky:
    """Incomplete Cholesky of k(X, X) from its diagonal and r of its columns: n r² operations, n r memory.

    Stops when the trace of the residual is at most `tol` times the trace of K, or at `max_rank`. Ties go to the first
    point, so that the result is always the same.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    tol : share of the trace that may be left.
    max_rank : most columns; None for all.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> found = pivoted_cholesky(RBF(), X, tol=1e-10)
    >>> found.rank < 15, float(np.abs(found.L @ found.L.T - RBF().gram(X)).max()) < 1e-8
    (True, True)
    """
    X = kernel.prepare(X)
    diag = kernel.diag(X)

    def column(i: int) -> FloatArray:
        return kernel.gram(X, select(X, [i]))[:, 0]

    return _run(diag, column, tol, count(X) if max_rank is None else max_rank)


def pivoted_cholesky_matrix(A: Array, *, tol: float = 1e-6, max_rank: int | None = None) -> PivotedCholesky:
    """The same for a given matrix; only its diagonal and the pivot columns are read.

    Parameters
    ----------
    A : a symmetric positive definite matrix.
    tol : share of the trace that may be left.
    max_rank : most columns; None for all.

    Examples
    --------
    >>> found = pivoted_cholesky_matrix(np.array([[1.0, 1.0], [1.0, 1.0]]))
    >>> found.L.tolist()
    [[1.0], [1.0]]
    """
    A = np.asarray(A, dtype=float)
    check_square(A, "A Gram matrix")
    return _run(A.diagonal().copy(), lambda i: A[:, i].copy(), tol, len(A) if max_rank is None else max_rank)


def _run(diag: FloatArray, column: Callable[[int], FloatArray], tol: float, max_rank: int) -> PivotedCholesky:
    n = diag.shape[0]
    if max_rank < 1 or not tol >= 0.0:
        raise ModelError(f"max_rank must be at least 1 and tol not negative; they are {max_rank} and {tol}.")
    check_finite(diag, "The diagonal of the Gram matrix")
    if diag.min() < 0.0:
        i = int(diag.argmin())
        raise PositiveDefiniteError(f"A Gram matrix has no negative diagonal; entry {i} is {diag[i]:.3g}.")
    limit = min(max_rank, n)
    residual = diag.copy()
    total = float(diag.sum())
    floor = 10.0 * float(np.finfo(float).eps) * float(diag.max())
    L = np.empty((n, min(limit, 32)), order="F")
    pivots: list[int] = []
    while len(pivots) < limit and residual.sum() > tol * total:
        p, k = int(residual.argmax()), len(pivots)
        if residual[p] <= floor:  # the rest is rounding
            break
        if k == L.shape[1]:
            L = np.asfortranarray(np.hstack([L, np.empty((n, min(k, limit - k)))]))
        new = column(p)
        new[p] = diag[p]  # a kernel with noise counts it on the diagonal, which a single column cannot show
        new -= L[:, :k] @ L[p, :k]
        new /= np.sqrt(residual[p])
        new[pivots] = 0.0
        L[:, k] = new
        residual -= new * new
        np.maximum(residual, 0.0, out=residual)
        residual[p] = 0.0
        pivots.append(p)
    return PivotedCholesky(L[:, : len(pivots)], np.array(pivots, dtype=np.int64), residual)
