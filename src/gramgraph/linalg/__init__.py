"""Gram matrices in the form they have — dense, low rank, features, Kronecker, Toeplitz — factored once, solved often.

Every representation offers `matvec`, `to_dense`, `diag` and `factor()`; every factorization `solve`, `logdet`,
`inverse_diag`, `half` and the `jitter` that was needed.
"""

from __future__ import annotations

from gramgraph.linalg.base import Factored, GramMatrix, PositiveDefiniteError, sample
from gramgraph.linalg.blocks import FeatureSums, accumulate, kernel_matvec
from gramgraph.linalg.dense import Dense, DenseFactor, SingleFactor
from gramgraph.linalg.kronecker import Kronecker, KroneckerFactor
from gramgraph.linalg.low_rank import Features, LowRank, LowRankFactor
from gramgraph.linalg.nystrom import NystromMap, leverage_scores, nystrom, select_landmarks
from gramgraph.linalg.pivoted import PivotedCholesky, pivoted_cholesky, pivoted_cholesky_matrix
from gramgraph.linalg.toeplitz import Toeplitz, ToeplitzFactor
from gramgraph.linalg.tridiagonal import Tridiagonal
from gramgraph.linalg.updates import append, delete, downdate, update

__all__ = [
    "Dense",
    "DenseFactor",
    "Factored",
    "FeatureSums",
    "Features",
    "GramMatrix",
    "Kronecker",
    "KroneckerFactor",
    "LowRank",
    "LowRankFactor",
    "NystromMap",
    "PivotedCholesky",
    "PositiveDefiniteError",
    "SingleFactor",
    "Toeplitz",
    "ToeplitzFactor",
    "Tridiagonal",
    "accumulate",
    "append",
    "delete",
    "downdate",
    "kernel_matvec",
    "leverage_scores",
    "nystrom",
    "pivoted_cholesky",
    "pivoted_cholesky_matrix",
    "sample",
    "select_landmarks",
    "update",
]
