"""Rank-one changes of a dense Cholesky factor in n² operations: append, delete, update, downdate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.linalg.base import (
    MAX_JITTER,
    PositiveDefiniteError,
    check_rows,
    check_square,
    jitter_levels,
    report_jitter,
)
from gramgraph.linalg.triangles import factor_lower
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.linalg.dense import DenseFactor


def append(factor: DenseFactor, B: Array, C: Array | float, /, *, max_jitter: float = MAX_JITTER) -> DenseFactor:
    """The factor of [[A, B], [Bᵀ, C]] for B (n,) and a number C, or B (n, q) and C (q, q).

    The new rows are [L⁻¹B]ᵀ and the factor of the Schur complement C − BᵀA⁻¹B. A duplicate point makes that complement
    zero: its diagonal then gets jitter relative to the diagonal of C, reported as in `Dense.factor`.

    Parameters
    ----------
    factor : the factor of A.
    B : (n,) or (n, q) covariances of the new points with the old ones.
    C : a number, or (q, q), those of the new points.
    max_jitter : largest multiple of the diagonal that may be added to it.

    Examples
    --------
    >>> from gramgraph.linalg import Dense
    >>> found = append(Dense(np.array([[4.0]])).factor(), np.array([2.0]), 5.0)
    >>> found.L.tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    n = factor.n
    B = check_rows(B, n, "The new columns").reshape(n, -1)
    corner = np.array(C, dtype=factor.L.dtype, ndmin=2)
    check_square(corner, "The new corner")
    q = corner.shape[0]
    if B.shape[1] != q:
        raise ModelError(f"{B.shape[1]} new columns do not fit a corner of shape {corner.shape}.")
    P = factor.half_solve(B)
    L = np.zeros((n + q, n + q), dtype=factor.L.dtype)
    for i in range(n):
        L[i, : i + 1] = factor.L[i, : i + 1]
    L[n:, :n] = P.T
    S, jitter = _complement(corner, P, max_jitter)
    L[n:, n:] = np.tril(S)
    return replace(factor, L=L, jitter=max(factor.jitter, jitter))


def _complement(C: FloatArray, P: FloatArray, max_jitter: float) -> tuple[FloatArray, float]:
    """The factor of C − PᵀP. Scaled to the diagonal of C, so that jitter is measured against that and not against the
    complement, which for duplicate points is zero up to rounding."""
    S = np.ascontiguousarray(C - P.T @ P)
    scale = C.diagonal().copy()
    if not np.all(scale > 0.0):
        raise PositiveDefiniteError("The diagonal of the new corner must be positive.")
    # Pivots below rounding of C are rounding: lift them to a level at which a plain factorization succeeds.
    eps = float(np.finfo(C.dtype).eps)
    lost = S.diagonal() <= 10.0 * eps * scale
    if not lost.any():
        return factor_lower(S, max_jitter=max_jitter, what="The complement of the new points")
    mean = float(scale.mean())
    for jitter in jitter_levels(mean, eps=eps, limit=max_jitter):
        T = S.copy()
        T[np.diag_indices_from(T)] += jitter
        if jitter == 0.0 or not np.all(T.diagonal() > 10.0 * eps * scale):
            continue
        try:
            L, more = factor_lower(T, max_jitter=0.0, what="The complement of the new points")
        except PositiveDefiniteError:
            continue
        report_jitter("The complement of the new points", jitter, mean)
        return L, jitter + more
    raise PositiveDefiniteError.after_jitter("The matrix with the new points", max_jitter * mean, mean)


def delete(factor: DenseFactor, index: int, /) -> DenseFactor:
    """The factor of A without row and column `index`: the rows below it take up the deleted column by rotations.

    Parameters
    ----------
    factor : the factor of A.
    index : of the row and column that goes.

    Examples
    --------
    >>> from gramgraph.linalg import Dense
    >>> found = delete(Dense(np.array([[4.0, 2.0], [2.0, 5.0]])).factor(), 0)
    >>> found.L.round(6).tolist()
    [[2.236068]]
    """
    from gramgraph._numerics.gram.algebra import cholesky_update

    n = factor.n
    if not -n <= index < n:
        raise ModelError(f"Row {index} cannot be deleted: the factor has rows 0 to {n - 1}.")
    if n == 1:
        raise ModelError("The only row of a factor cannot be deleted.")
    i = index % n
    keep = np.delete(np.arange(n), i)
    L = np.ascontiguousarray(factor.L[np.ix_(keep, keep)], dtype=float)
    if i < n - 1:
        tail = np.ascontiguousarray(L[i:, i:])
        cholesky_update(tail, factor.L[i + 1 :, i].astype(float))
        L[i:, i:] = tail
    return replace(factor, L=L.astype(factor.L.dtype, copy=False))


def _vector_and_copy(factor: DenseFactor, x: Array) -> tuple[FloatArray, FloatArray]:
    """x as a checked vector, and the factor's matrix to write into."""
    x = check_rows(x, factor.n, "x").astype(float)
    if x.ndim != 1:
        raise ModelError(f"x must be a vector; its shape is {x.shape}.")
    return x, np.array(factor.L, dtype=float, order="C")


def update(factor: DenseFactor, x: Array, /) -> DenseFactor:
    """The factor of A + x xᵀ by Givens rotations.

    Parameters
    ----------
    factor : the factor of A.
    x : (n,) vector.

    Examples
    --------
    >>> from gramgraph.linalg import Dense
    >>> found = update(Dense(np.array([[3.0]])).factor(), np.array([1.0]))
    >>> found.L.round(12).tolist()
    [[2.0]]
    """
    from gramgraph._numerics.gram.algebra import cholesky_update

    x, L = _vector_and_copy(factor, x)
    cholesky_update(L, x)
    return replace(factor, L=L.astype(factor.L.dtype, copy=False))


def downdate(factor: DenseFactor, x: Array, /) -> DenseFactor:
    """The factor of A − x xᵀ, which exists while xᵀA⁻¹x < 1.

    Parameters
    ----------
    factor : the factor of A.
    x : (n,) vector.

    Examples
    --------
    >>> from gramgraph.linalg import Dense
    >>> found = downdate(Dense(np.array([[5.0]])).factor(), np.array([1.0]))
    >>> found.L.tolist()
    [[2.0]]
    """
    from gramgraph._numerics.gram.algebra import cholesky_downdate

    x, L = _vector_and_copy(factor, x)
    p = np.asarray(factor.half_solve(x), dtype=float).copy()
    left = cholesky_downdate(L, p, 10.0 * float(np.finfo(factor.L.dtype).eps))
    if not left > 10.0 * float(np.finfo(factor.L.dtype).eps):
        raise PositiveDefiniteError(
            f"A − x xᵀ is not positive definite: xᵀA⁻¹x = {1.0 - left:.6g} must be below 1. Try: remove a "
            f"smaller vector, or add noise to the diagonal first."
        )
    return replace(factor, L=L.astype(factor.L.dtype, copy=False))
