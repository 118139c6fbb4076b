"""Square roots of covariances that may be singular."""

from __future__ import annotations

import numpy as np

__all__ = ["root"]


def root(S):
    """A matrix with root rootᵀ = S: the Cholesky factor, or scaled eigenvectors where S is singular."""
    try:
        return np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(S)
        return vectors * np.sqrt(np.maximum(values, 0.0))
