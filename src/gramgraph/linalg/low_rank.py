"""U Uᵀ + diag(d) and Φ Φᵀ + σ² I: everything in n r² operations by Woodbury's identity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.linalg.base import (
    MAX_JITTER,
    PositiveDefiniteError,
    check_finite,
    check_rows,
    report_jitter,
)
from gramgraph.linalg.dense import DenseFactor
from gramgraph.linalg.triangles import factor_lower
from gramgraph.typing import Array, FloatArray


def _columns(v: FloatArray, like: FloatArray) -> FloatArray:
    """A vector (n,) shaped to scale the rows of `like`."""
    return v if like.ndim == 1 else v[:, None]


@dataclass(frozen=True, eq=False)
class LowRank:
    """A = U Uᵀ + diag(d) with d ≥ 0, a number or one entry per row.

    The loss of digits grows with U Uᵀ / d: about log₁₀ of it are lost in `inverse_diag` and `solve`.

    Parameters
    ----------
    U : (n, r).
    d : (n,).

    Examples
    --------
    >>> import numpy as np
    >>> A = LowRank(np.array([[1.0], [2.0]]), 1.0)
    >>> A.to_dense()
    array([[2., 2.],
           [2., 5.]])
    >>> round(float(np.exp(A.factor().logdet)), 6)
    6.0
    """

    U: FloatArray  # (n, r)
    d: FloatArray | float  # (n,)

    def __post_init__(self) -> None:
        U = np.asarray(self.U, dtype=float)
        if U.ndim != 2 or U.shape[0] == 0:
            raise ModelError(f"U must have shape (n, r) with n ≥ 1; it has {U.shape}.")
        d = np.asarray(self.d, dtype=float)
        if d.shape not in ((), (U.shape[0],)):
            raise ModelError(f"d must be a number or have shape ({U.shape[0]},); it has {d.shape}.")
        d = np.broadcast_to(d, U.shape[:1])
        check_finite(d, "d")
        if not np.all(d >= 0.0):
            raise PositiveDefiniteError(f"d must not be negative; its smallest entry is {d.min():.3g}.")
        object.__setattr__(self, "U", U)
        object.__setattr__(self, "d", d)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.U.shape[0]

    def matvec(self, V: Array, /) -> FloatArray:
        """A V, O(n r) a column."""
        V = check_rows(V, self.n)
        return self.U @ (self.U.T @ V) + _columns(np.asarray(self.d), V) * V

    def to_dense(self) -> FloatArray:
        """A as an array (n, n)."""
        A = self.U @ self.U.T
        A[np.diag_indices(self.n)] += self.d
        return A

    def diag(self) -> FloatArray:
        """The diagonal of A."""
        return np.einsum("ij,ij->i", self.U, self.U) + self.d

    def factor(self, *, max_jitter: float = MAX_JITTER) -> LowRankFactor:
        """The Cholesky factor of M = I + Uᵀ D⁻¹ U (r, r), n r² operations.

        Entries of d below 10 ε of the mean diagonal of A are raised to that level, and the jitter says by how much.
        """
        check_finite(self.U, "U")
        scale = float(self.diag().mean())
        floor = 10.0 * float(np.finfo(float).eps) * scale
        if not floor > 0.0 or floor > max(max_jitter * scale, float(np.min(self.d))):
            raise PositiveDefiniteError(
                f"U Uᵀ + diag(d) is singular: the smallest entry of d is {np.min(self.d):.3g}. Try: a positive "
                f"noise or regularization; max_jitter=… allows a small one to be added."
            )
        d = np.maximum(self.d, floor)
        jitter = float((d - self.d).max())
        report_jitter("The low-rank matrix", jitter, scale)
        root = np.sqrt(d)
        V = self.U / root[:, None]
        M = V.T @ V
        M[np.diag_indices_from(M)] += 1.0
        if M.shape[0]:
            M, _ = factor_lower(np.ascontiguousarray(M), max_jitter=max_jitter, what="I + UᵀD⁻¹U")
        return LowRankFactor(V, root, DenseFactor(M), jitter)


@dataclass(frozen=True, eq=False)
class LowRankFactor:
    """U Uᵀ + D = D^½ (I + V Vᵀ) D^½ with V = D^-½ U and I + VᵀV = inner.

    Parameters
    ----------
    V : (n, r).
    root : (n,) square roots of the diagonal.
    inner : (r, r).
    jitter : what was added to the diagonal.

    Examples
    --------
    >>> from gramgraph.linalg import LowRank
    >>> found = LowRank(np.array([[1.0], [2.0]]), np.array([0.5, 0.5])).factor()
    >>> round(float(found.logdet), 6)
    1.011601
    """

    V: FloatArray  # (n, r)
    root: FloatArray  # (n,) square roots of d
    inner: DenseFactor  # (r, r)
    jitter: float = 0.0

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.V.shape[0]

    @property
    def half_width(self) -> int:
        """Number of columns of H = D^½ [V, I]: r + n."""
        return self.V.shape[1] + self.n

    @property
    def logdet(self) -> float:
        """log |A| = log |D| + log |I + VᵀV|."""
        return 2.0 * float(np.log(self.root).sum()) + self.inner.logdet

    def solve(self, B: Array, /) -> FloatArray:
        """A⁻¹ B = D^-½ (C − V (I + VᵀV)⁻¹ VᵀC) with C = D^-½ B, O(n r) a column."""
        B = check_rows(B, self.n)
        root = _columns(self.root, B)
        C = B / root
        return (C - self.V @ self.inner.solve(self.V.T @ C)) / root

    def inverse_diag(self) -> FloatArray:
        """The diagonal of A⁻¹, n r² operations."""
        P = self.inner.half_solve(self.V.T)
        return np.maximum(1.0 - np.einsum("ij,ij->j", P, P), 0.0) / self.root**2

    def half(self, Z: Array, /) -> FloatArray:
        """D^½ (V Z₁ + Z₂) for the first r and the other n rows of Z."""
        Z = check_rows(Z, self.half_width, "Z")
        r = self.V.shape[1]
        return _columns(self.root, Z) * (self.V @ Z[:r] + Z[r:])


@dataclass(frozen=True, eq=False)
class Features:
    """A = Φ Φᵀ + σ² I, the covariance of Bayesian linear regression on features Φ.

    Parameters
    ----------
    Phi : (n, r).
    noise : σ².

    Examples
    --------
    >>> import numpy as np
    >>> A = Features(np.array([[1.0], [2.0], [3.0]]), noise=0.5)
    >>> A.weights(np.array([2.0, 4.0, 6.0]))
    array([1.93103448])
    """

    Phi: FloatArray  # (n, r)
    noise: float  # σ²

    def __post_init__(self) -> None:
        noise = float(self.noise)
        if not 0.0 <= noise < np.inf:
            raise PositiveDefiniteError(f"The noise must be a finite number that is not negative; it is {noise}.")
        object.__setattr__(self, "Phi", self.low_rank().U)
        object.__setattr__(self, "noise", noise)

    def low_rank(self) -> LowRank:
        """The same matrix as Φ Φᵀ + diag(σ²)."""
        return LowRank(self.Phi, self.noise)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.Phi.shape[0]

    def matvec(self, V: Array, /) -> FloatArray:
        """A V, O(n r) a column."""
        return self.low_rank().matvec(V)

    def to_dense(self) -> FloatArray:
        """A as an array (n, n)."""
        return self.low_rank().to_dense()

    def diag(self) -> FloatArray:
        """The diagonal of A."""
        return self.low_rank().diag()

    def factor(self, *, max_jitter: float = MAX_JITTER) -> LowRankFactor:
        """See `LowRank.factor`."""
        return self.low_rank().factor(max_jitter=max_jitter)

    def weights(self, y: Array, /) -> FloatArray:
        """Φᵀ A⁻¹ y = (ΦᵀΦ + σ² I)⁻¹ Φᵀ y: the ridge weights of the features, (r,) or (r, q)."""
        from gramgraph.linalg.blocks import FeatureSums

        return FeatureSums.of(self.Phi, check_rows(y, self.n, "y")).weights(self.noise)
