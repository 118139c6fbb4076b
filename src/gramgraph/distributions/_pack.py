"""Symmetric matrices as vectors: the upper triangle, row by row."""

from __future__ import annotations

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray


def pairs(d: int) -> tuple[IntArray, IntArray]:
    """Rows i and columns j ≥ i of the entries of a packed (d, d) matrix."""
    return np.triu_indices(d)


def pack(S: FloatArray) -> FloatArray:
    """The upper triangles of S (…, d, d), as (…, d(d+1)/2)."""
    i, j = pairs(S.shape[-1])
    return S[..., i, j]


def pack_dual(M: FloatArray) -> FloatArray:
    """The vector m with mᵀ pack(S) = tr(M S): off-diagonal entries count twice."""
    i, j = pairs(M.shape[-1])
    return M[..., i, j] * np.where(i == j, 1.0, 2.0)


def unpack(v: FloatArray, d: int) -> FloatArray:
    """The symmetric matrix whose packed form is v."""
    i, j = pairs(d)
    S = np.zeros((d, d))
    S[i, j] = v
    S[j, i] = v
    return S


def unpack_dual(v: FloatArray, d: int) -> FloatArray:
    """The inverse of `pack_dual`."""
    i, j = pairs(d)
    return unpack(v * np.where(i == j, 1.0, 0.5), d)


def packed_cov(V: FloatArray) -> FloatArray:
    """V_ik V_jl + V_il V_jk for all pairs of packed entries (i, j), (k, l)."""
    i, j = pairs(len(V))
    return V[np.ix_(i, i)] * V[np.ix_(j, j)] + V[np.ix_(i, j)] * V[np.ix_(j, i)]


def side_of(length: int, what: str, *, linear: int = 0, extra: int = 0) -> int:
    """d with extra + linear · d + d(d+1)/2 = length."""
    for d in range(1, length + 1):
        total = extra + linear * d + d * (d + 1) // 2
        if total == length:
            return d
        if total > length:
            break
    form = ("1 + " if extra else "") + ("d + " if linear else "") + "d(d+1)/2"
    raise ModelError(f"{what} must have {form} entries for some d; it has {length}.")
