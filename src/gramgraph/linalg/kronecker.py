"""K₁ ⊗ K₂ ⊗ … + σ² I on a grid of points, through the eigenvectors of the small factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.linalg.base import (
    MAX_JITTER,
    PositiveDefiniteError,
    check_finite,
    check_rows,
    check_square,
    with_jitter,
)
from gramgraph.typing import Array, FloatArray


def _apply(matrices: Sequence[FloatArray], V: FloatArray) -> FloatArray:
    """(M₁ ⊗ M₂ ⊗ …) V: each matrix acts on its own axis, which then goes to the end."""
    X = V.reshape(V.shape[0], -1)
    q = X.shape[1]
    for M in matrices:
        X = (M @ X.reshape(M.shape[0], -1)).T
    return np.ascontiguousarray(X.reshape(q, -1).T).reshape(V.shape)


def _kron(A: FloatArray, B: FloatArray) -> FloatArray:
    return np.asarray(np.kron(A, B), dtype=float)


def _outer(arrays: Sequence[FloatArray]) -> FloatArray:
    """a₁ ⊗ a₂ ⊗ … of vectors or of matrices, a new array."""
    return reduce(_kron, arrays[1:], arrays[0].copy())


@dataclass(frozen=True, eq=False)
class Kronecker:
    """A = K₁ ⊗ … ⊗ K_a + σ² I, with n = n₁ ⋯ n_a rows; the last factor's index runs fastest.

    Parameters
    ----------
    factors : the matrices K₁, …, K_a.
    noise : σ².

    Examples
    --------
    >>> import numpy as np
    >>> A = Kronecker((np.array([[2.0, 1.0], [1.0, 2.0]]), np.eye(3)), noise=1.0)
    >>> A.n, round(float(np.exp(A.factor().logdet)), 6)
    (6, 512.0)
    """

    factors: tuple[FloatArray, ...]
    noise: float = 0.0

    def __post_init__(self) -> None:
        factors = tuple(np.asarray(K, dtype=float) for K in self.factors)
        if not factors:
            raise ModelError("A Kronecker product needs at least one factor.")
        for i, K in enumerate(factors):
            check_square(K, f"Factor {i} of a Kronecker product")
            check_finite(K, f"Factor {i} of a Kronecker product")
        if not 0.0 <= self.noise < np.inf:
            raise PositiveDefiniteError(f"The noise must be a finite number that is not negative; it is {self.noise}.")
        object.__setattr__(self, "factors", factors)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(np.prod([K.shape[0] for K in self.factors]))

    def matvec(self, V: Array, /) -> FloatArray:
        """A V, O(n Σ nᵢ) a column."""
        V = check_rows(V, self.n)
        return _apply(self.factors, V) + self.noise * V

    def to_dense(self) -> FloatArray:
        """A as an array (n, n)."""
        A = _outer(self.factors)
        A[np.diag_indices_from(A)] += self.noise
        return A

    def diag(self) -> FloatArray:
        """The diagonal of A."""
        return _outer([K.diagonal() for K in self.factors]) + self.noise

    def factor(self, *, max_jitter: float = MAX_JITTER) -> KroneckerFactor:
        """Eigenvectors of every factor, O(Σ nᵢ³) operations; jitter until all eigenvalues exceed rounding."""
        from scipy.linalg import eigh

        pairs = [eigh(K, check_finite=False) for K in self.factors]
        values = _outer([w for w, _ in pairs]) + self.noise
        scale = float(self.diag().mean())
        floor = float(np.finfo(float).eps) * float(np.abs(values).max())

        def lifted(jitter: float) -> FloatArray | None:
            return values + jitter if np.all(values + jitter > floor) else None

        positive, jitter = with_jitter(lifted, scale, "The Kronecker product", limit=max_jitter)
        return KroneckerFactor(tuple(Q for _, Q in pairs), positive, jitter)


@dataclass(frozen=True, eq=False)
class KroneckerFactor:
    """A = Q diag(values) Qᵀ with Q = Q₁ ⊗ … ⊗ Q_a.

    Parameters
    ----------
    vectors : eigenvectors of each factor.
    values : (n,) eigenvalues of A.
    jitter : what was added to the diagonal.

    Examples
    --------
    >>> from gramgraph.linalg import Kronecker
    >>> A = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> found = Kronecker((A, A), 0.1).factor()
    >>> round(float(found.logdet), 6)
    4.566389
    """

    vectors: tuple[FloatArray, ...]
    values: FloatArray  # (n,)
    jitter: float = 0.0

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.values.shape[0]

    @property
    def half_width(self) -> int:
        """Number of columns of H = Q diag(values)^½ Qᵀ."""
        return self.n

    @property
    def logdet(self) -> float:
        """log |A|, the sum of the logarithms of the eigenvalues."""
        return float(np.log(self.values).sum())

    def solve(self, B: Array, /) -> FloatArray:
        """Q diag(1/values) QᵀB, O(n Σ nᵢ) a column."""
        B = check_rows(B, self.n)
        C = _apply([Q.T for Q in self.vectors], B)
        C /= self.values if B.ndim == 1 else self.values[:, None]
        return _apply(self.vectors, C)

    def inverse_diag(self) -> FloatArray:
        """Σ_k Q_ik² / values_k, O(n Σ nᵢ)."""
        return _apply([Q * Q for Q in self.vectors], 1.0 / self.values)

    def half(self, Z: Array, /) -> FloatArray:
        """Q diag(values)^½ Qᵀ Z: the symmetric root, which rounding does not turn where eigenvalues repeat."""
        Z = check_rows(Z, self.n, "Z")
        C = _apply([Q.T for Q in self.vectors], Z)
        C *= np.sqrt(self.values if Z.ndim == 1 else self.values[:, None])
        return _apply(self.vectors, C)
