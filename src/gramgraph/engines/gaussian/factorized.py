"""Sparse positive definite matrices, factored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Factorized:
    """P = L D Lᵀ of a sparse positive definite matrix, in an order with little fill-in.

    >>> from scipy.sparse import csc_array
    >>> P = csc_array(np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]))
    >>> made = Factorized.of(P)
    >>> made.solve(np.ones((3, 1))).ravel().round(6).tolist(), made.variances().round(6).tolist()
    ([1.5, 2.0, 1.5], [0.75, 1.0, 0.75])
    """

    order: IntArray
    l_ptr: IntArray
    l_idx: IntArray
    l_val: FloatArray
    D: FloatArray

    @classmethod
    def of(cls, P: Any) -> Factorized:
        """The factor; a `ModelError` for a matrix that is not positive definite."""
        from scipy.sparse import csc_array, triu

        from gramgraph._numerics.gaussian import sparse_cholesky as kernels

        n = P.shape[0]
        if not n:
            none = np.zeros(0, np.int64)
            return cls(none, np.zeros(1, np.int64), none, np.zeros(0), np.zeros(0))
        pattern = csc_array(P, copy=True)
        columns = np.repeat(np.arange(n), np.diff(pattern.indptr))
        off = pattern.indices != columns
        ptr = np.concatenate([[0], np.cumsum(np.bincount(columns[off], minlength=n))]).astype(np.int64)
        order = kernels.minimum_degree(n, ptr, pattern.indices[off].astype(np.int64))
        upper = csc_array(triu(pattern[order][:, order], format="csc"))
        u_ptr, u_idx = upper.indptr.astype(np.int64), upper.indices.astype(np.int64)
        parent, l_ptr = kernels.symbolic(n, u_ptr, u_idx)
        l_idx, l_val, D, bad = kernels.factorize(n, u_ptr, u_idx, upper.data.astype(np.float64), parent, l_ptr)
        if bad >= 0:
            raise ModelError(
                f"the precision matrix is not positive definite: pivot {D[bad]:.3g} at component {int(order[bad])}"
            )
        return cls(order, l_ptr, l_idx, l_val, D)

    @property
    def log_det(self) -> float:
        """log |P|."""
        return float(np.log(self.D).sum())

    def solve(self, B: FloatArray) -> FloatArray:
        """P⁻¹ B for (n, m) right-hand sides."""
        from gramgraph._numerics.gaussian import sparse_cholesky as kernels

        out = np.empty_like(B)
        moved = np.ascontiguousarray(B[self.order])
        kernels.solve_in_place(len(self.D), self.l_ptr, self.l_idx, self.l_val, self.D, moved)
        out[self.order] = moved
        return out

    def variances(self) -> FloatArray:
        """The diagonal of P⁻¹, by the recursion for entries on the pattern of L."""
        from gramgraph._numerics.gaussian import sparse_cholesky as kernels

        diagonal, _ = kernels.selected_inverse(len(self.D), self.l_ptr, self.l_idx, self.l_val, self.D)
        out = np.empty_like(diagonal)
        out[self.order] = diagonal
        return out

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """n draws from N(0, P⁻¹), one per row."""
        from gramgraph._numerics.gaussian import sparse_cholesky as kernels

        z = rng.standard_normal((len(self.D), n))
        kernels.solve_upper_in_place(len(self.D), self.l_ptr, self.l_idx, self.l_val, self.D, z)
        out = np.empty_like(z)
        out[self.order] = z
        return out.T

    @property
    def bytes(self) -> int:
        """Memory of the factor."""
        return self.l_idx.nbytes + self.l_val.nbytes + self.D.nbytes
