"""Square roots of covariances that may be singular."""

from __future__ import annotations

import numpy as np

__all__ = ["root", "symmetric_root"]


def root(S):
    """A matrix with root rootᵀ = S: the Cholesky factor, or the symmetric root where S is singular."""
    try:
        return np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return symmetric_root(S)


def symmetric_root(S):
    """R = Rᵀ with R R = S for matrices (…, d, d) that may be singular: V diag(λ)^½ Vᵀ, negative λ cut off. O(d³).

    V diag(λ)^½ alone is a root too, but its columns are decided by rounding where eigenvalues repeat, and their signs
    always: seeded draws would differ between processors. R moves little where S does.
    """
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ np.swapaxes(vectors, -1, -2)
