"""A = Q T Qᵀ with T tridiagonal: (A + α I)⁻¹ for many α at O(n²) each, for less than all eigenvectors cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph.linalg.base import check_rows, check_square
from gramgraph.typing import Array, FloatArray

_BLOCK = 128  # reflections applied at a time


@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """A symmetric matrix as Q T Qᵀ, from 8n³/3 operations.

    Parameters
    ----------
    diagonal : (n,).
    side : (n − 1,).
    Q : (n, n), Fortran order.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[4.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 1.0, 2.0]])
    >>> X, diag = Tridiagonal.of(A).solve_shifted(np.ones((3, 1)), np.array([1.0]))
    >>> bool(np.allclose((A + np.eye(3)) @ X[:, :, 0], 1.0))
    True
    >>> bool(np.allclose(diag[:, 0], np.linalg.inv(A + np.eye(3)).diagonal()))
    True
    """

    diagonal: FloatArray  # (n,)
    side: FloatArray  # (n − 1,)
    Q: FloatArray  # (n, n), Fortran order

    @classmethod
    def of(cls, A: Array, *, overwrite: bool = False) -> Tridiagonal:
        """Reduce a symmetric matrix; `overwrite` destroys a C-ordered A."""
        from scipy.linalg.lapack import dsytrd, dsytrd_lwork

        check_square(A, "A Gram matrix")
        A = np.ascontiguousarray(A, dtype=float)
        work = int(dsytrd_lwork(len(A), lower=1)[0])
        # The transpose of a C-ordered symmetric matrix is itself, Fortran-ordered: no copy.
        C, diagonal, side, tau, _ = dsytrd(A.T, lower=1, lwork=max(work, 1), overwrite_a=overwrite)
        return cls(diagonal, side, _orthogonal(C, tau))

    def eigenvalues(self) -> FloatArray:
        """Increasing, O(n²)."""
        from scipy.linalg import eigvalsh_tridiagonal

        return eigvalsh_tridiagonal(self.diagonal, self.side, check_finite=False)

    def solve_shifted(self, B: Array, alphas: Array) -> tuple[FloatArray, FloatArray]:
        """(A + α I)⁻¹ B, (n, q, a), and the diagonals of (A + α I)⁻¹, (n, a), for α that make A + α I positive."""
        from gramgraph._numerics.gram.algebra import tridiagonal_diagonals, tridiagonal_solve

        n = len(self.diagonal)
        Z = self.Q.T @ np.asarray(check_rows(B, n, "B"), dtype=float)
        alphas = np.asarray(alphas, dtype=float)
        q, a = Z.shape[1], len(alphas)
        factors, pivots, inner = np.zeros((n, a)), np.empty((n, a)), np.empty((n, q, a))
        tridiagonal_solve(self.diagonal, self.side, alphas, np.ascontiguousarray(Z), factors, pivots, inner)
        diagonals = np.zeros((a, n))
        tridiagonal_diagonals(self.Q.T, factors, pivots, diagonals)
        return (self.Q @ inner.reshape(n, -1)).reshape(n, q, a), np.ascontiguousarray(diagonals.T)


def _orthogonal(C: FloatArray, tau: FloatArray) -> FloatArray:
    """Q = H₀ H₁ ⋯ from LAPACK's reflections Hⱼ = I − τⱼ vⱼ vⱼᵀ, some at a time as I − V T Vᵀ."""
    m = len(tau)
    Q = np.zeros((m + 1, m + 1), order="F")
    np.fill_diagonal(Q, 1.0)
    for start in range((m - 1) // _BLOCK * _BLOCK, -1, -_BLOCK) if m else ():
        stop = min(m, start + _BLOCK)
        V = np.tril(C[1 + start :, start:stop], -1)
        np.fill_diagonal(V, 1.0)
        idle = tau[start:stop] == 0.0  # such a reflection is the identity
        V[:, idle] = 0.0
        inverse = np.triu(V.T @ V, 1)
        np.fill_diagonal(inverse, 1.0 / np.where(idle, 1.0, tau[start:stop]))
        rest = Q[1 + start :, 1 + start :]
        rest -= V @ np.linalg.solve(inverse, V.T @ rest)
    return Q
