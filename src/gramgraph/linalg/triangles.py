"""Cholesky factors and inverses in the lower triangle of an array, in place."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gramgraph.linalg.base import PositiveDefiniteError, check_finite, jitter_levels, report_jitter
from gramgraph.linalg.unlocked import triangle
from gramgraph.typing import Array, FloatArray

#: Condition number below which blocks of the diagonal may be inverted and multiplied instead of solved.
_EASY = 1e6


def factor_lower(
    A: Array, *, max_jitter: float, what: str = "The Gram matrix", floor: float = 0.0, least: float = 0.0
) -> tuple[Array, float]:
    """Turn the lower triangle of the C-ordered A into its Cholesky factor, in place; the jitter that was needed.

    The strict upper triangle keeps A, from which the lower one is restored when a try has failed. `floor` is a number
    that no eigenvalue is below, when one is known (noise on the diagonal): a far smaller condition number than double
    precision can bear allows a quicker way. `least` is the smallest jitter that is tried.
    """
    diagonal = A.diagonal().copy()
    scale = float(diagonal.mean(dtype=float))
    eps = float(np.finfo(A.dtype).eps)
    if not np.isfinite(scale):
        check_finite(A, what)
    easy = scale * len(diagonal) < _EASY * floor
    jitter = 0.0
    for jitter in jitter_levels(scale, eps=eps, limit=max_jitter if scale > 0.0 else 0.0, least=least):
        if jitter > least:
            restore_lower(A)
        np.fill_diagonal(A, diagonal + A.dtype.type(jitter))
        info = _potrf(A, easy)
        pivots = A.diagonal()
        if info == 0 and np.isfinite(pivots).all():
            if np.all(pivots**2 > eps * np.maximum(diagonal, 0.0)):
                report_jitter(what, jitter, scale)
                return A, jitter
        elif jitter == 0.0:
            restore_lower(A)
            np.fill_diagonal(A, diagonal)
            check_finite(A, what)
    raise PositiveDefiniteError.after_jitter(what, jitter, scale)


def _potrf(A: Array, easy: bool) -> int:
    """Cholesky factor of the lower triangle of a C-ordered matrix, in place; 0, or the pivot that broke."""
    from gramgraph.linalg.blocked import BLOCKED, blocked_cholesky

    if len(A) >= BLOCKED:
        found = blocked_cholesky(A, well_conditioned=easy)
        if found is not None:
            return found
    return triangle("potrf", A)


def invert_lower(L: Array) -> None:
    """Turn the Cholesky factor in the lower triangle of the C-ordered L into (L Lᵀ)⁻¹, in place; 2n³/3 operations."""
    from gramgraph.linalg.blocked import BLOCKED, blocked_inverse

    if len(L) < BLOCKED or not blocked_inverse(L):
        triangle("potri", L)


def restore_lower(A: FloatArray, block: int = 256) -> None:
    """Copy the strict upper triangle into the lower one; the diagonal stays."""
    n = A.shape[0]
    for start in range(0, n, block):
        stop = min(n, start + block)
        A[start:stop, :start] = A[:start, start:stop].T
        corner = A[start:stop, start:stop]
        np.copyto(corner, corner.T.copy(), where=_below(block)[: stop - start, : stop - start])


@lru_cache(maxsize=4)
def _below(n: int) -> Array:
    """Where a square matrix is below its diagonal."""
    return np.tri(n, k=-1, dtype=np.bool_)
