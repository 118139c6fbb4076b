"""Square roots of positive semidefinite matrices, with a rank that does not depend on units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray

_EPS = float(np.finfo(np.float64).eps)
#: Eigenvalues of the scaled matrix may be this far below zero: what rounding leaves of a singular matrix.
_SLACK = 1e-9
#: Squared pivots of the scaled matrix above this cannot come from rounding, which is at most eps / pivot².
_CLEAR = 1e-7


@dataclass(frozen=True, eq=False)
class Root:
    """C = F Fᵀ with F (d, r) of full column rank r; z = F⁺ δ whitens a deviation δ.

    Where r = d, F is lower triangular. Ranks are judged after scaling by `width`, so that a coordinate in small units
    counts as much as any other.
    """

    F: FloatArray  # (d, r)
    width: FloatArray  # (d,) scale of every coordinate
    _U: FloatArray | None = None  # (d, r) orthonormal columns of the scaled matrix; None where r = d
    _s: FloatArray | None = None  # (r,) roots of its eigenvalues

    @property
    def rank(self) -> int:
        """Dimension of the support."""
        return self.F.shape[1]

    @property
    def full(self) -> bool:
        """Whether C is positive definite to rounding."""
        return self._U is None

    def solve(self, B: FloatArray) -> FloatArray:
        """F⁺ B for B (d,) or (d, n) whose columns lie in the support; O(d r n)."""
        if self._U is None or self._s is None:
            from scipy.linalg import solve_triangular

            return solve_triangular(self.F, B, lower=True, check_finite=False)
        scaled = self._U.T @ (B.T / self.width).T
        return (scaled.T / self._s).T

    @cached_property
    def for_draws(self) -> FloatArray:
        """A root (d, d) that moves little where C does: F, of a singular C the symmetric root of the scaled matrix.

        The columns of a singular F are eigenvectors, which rounding turns where eigenvalues repeat.
        """
        return self.F if self._U is None else self.F @ self._U.T

    @cached_property
    def _inverse_factor(self) -> FloatArray:
        return self.solve(np.eye(len(self.F)))

    def solve_rows(self, R: FloatArray) -> FloatArray:
        """F⁺ r for every row of R (n, d), as (n, r): one product for many rows, a triangular solve for few."""
        if self.full and len(R) > 2 * len(self.F):
            return R @ self._inverse_factor.T
        return self.solve(R.T).T

    def gap(self, B: FloatArray, size: FloatArray) -> FloatArray:
        """How far columns of B (d, n) leave the support, relative to `size` (d, n); (n,), zeros where r = d."""
        if self._U is None:
            return np.zeros(B.shape[1])
        off = np.abs(B - self.F @ self.solve(B))
        room = size + np.abs(self.width * (np.diagonal(self.F @ self.F.T) > 0.0))[:, None]
        return (off / np.where(room > 0.0, room, 1.0)).max(axis=0, initial=0.0)

    @cached_property
    def log_det(self) -> float:
        """log of the product of the non-zero eigenvalues of C."""
        if self._U is None:
            return 2.0 * float(np.log(np.diagonal(self.F)).sum())
        return 2.0 * float(np.log(np.abs(np.diagonal(np.linalg.qr(self.F, mode="r")))).sum())

    def inverse(self) -> FloatArray:
        """C⁻¹, or the Moore–Penrose inverse of a singular C; O(d³)."""
        if self._U is None:
            P = self.solve(np.eye(len(self.F)))
            return symmetric(P.T @ P)
        Q, R = np.linalg.qr(self.F)
        P = np.linalg.solve(R, Q.T) if self.rank else np.zeros((0, len(self.F)))
        return symmetric(P.T @ P)


def psd_root(C: FloatArray, what: str, scale: FloatArray | None = None) -> Root:
    """The root of a symmetric C (d, d); an error that names the smallest eigenvalue where C is not semidefinite.

    `scale` (d,) is the size of variances at which rounding happened, the diagonal of C when nothing is known: after
    conditioning, a variance far below the one before is zero, not a small number. O(d³), once a matrix.
    """
    d = len(C)
    width = np.sqrt(np.maximum(np.diagonal(C) if scale is None else scale, 0.0))
    width = np.where(width > 0.0, width, 1.0)
    M = C / width[:, None] / width
    least = 10.0 * d * _EPS
    L = None
    if d and float(np.diagonal(M).min()) > least:
        try:
            L = np.linalg.cholesky(M)
        except np.linalg.LinAlgError:
            L = None
        if L is not None and float(np.diagonal(L).min()) ** 2 > _CLEAR:
            return Root(width[:, None] * L, width)
    values, U = np.linalg.eigh(M)  # small pivots may be rounding: eigenvalues decide
    if L is not None and values[0] > least * max(1.0, float(values[-1])):
        return Root(width[:, None] * L, width)
    if d and values[0] < -_SLACK * max(1.0, float(values[-1])):
        low = float(np.linalg.eigvalsh(C)[0])
        raise ModelError(
            f"{what} must be positive semidefinite; its smallest eigenvalue is {low:.6g}. Try: check signs and "
            f"the order of rows and columns; of an estimate from incomplete data, take the nearest semidefinite matrix "
            f"(set negative eigenvalues to zero)."
        )
    top = max(1.0, float(values[-1])) if scale is not None or not d else float(values[-1])
    keep = values > max(least * top, -2.0 * float(values[0]) if d else 0.0, 0.0)
    s = np.sqrt(values[keep])
    return Root(width[:, None] * (U[:, keep] * s), width, U[:, keep], s)


def symmetric(A: FloatArray) -> FloatArray:
    """(A + Aᵀ) / 2."""
    return 0.5 * (A + A.T)
