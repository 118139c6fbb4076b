"""The posterior of the weights of Bayesian linear regression, from all rows or from their sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph.gp.linear import LinearEvidence, spectrum
from gramgraph.linalg.dense import Dense, DenseFactor
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False)
class WeightPosterior:
    """N(mean, cov) of the weights of each output, and what the data are worth."""

    mean: FloatArray  # (M, q)
    cov: FloatArray  # (M, M), the same for all outputs
    log_evidence: float
    gamma: float  # effective number of weights


def weights_from_rows(
    m0: FloatArray, P0: FloatArray, beta: float, Phi: FloatArray, Y: FloatArray, weights: FloatArray
) -> WeightPosterior:
    """By the SVD of the whitened features: no squared condition number, as the sums have it.

    >>> weights_from_rows(np.zeros(1), np.eye(1), 1.0, np.ones((1, 1)), np.ones((1, 1)), np.ones(1)).mean
    array([[0.5]])
    """
    root = np.linalg.inv(np.linalg.cholesky(P0)).T  # w = m0 + root u with u ~ N(0, I)
    s = spectrum(Phi @ root, Y - (Phi @ m0)[:, None], weights)
    precision = 1.0 + beta * s.lam
    V = root @ s.V
    mean = m0[:, None] + V @ (beta * np.sqrt(s.lam)[:, None] * s.c / precision[:, None])
    cov = root @ root.T + (V * (1.0 / precision - 1.0)) @ V.T
    log_evidence = LinearEvidence.at(s, 1.0, beta).log_evidence
    return WeightPosterior(mean, cov, log_evidence, float((beta * s.lam / precision).sum()))


def least_squares(beta: float, Phi: FloatArray, Y: FloatArray, weights: FloatArray) -> WeightPosterior:
    """Without a prior: the pseudo-inverse's weights, of minimum norm where the rows leave some open.

    The evidence takes a flat density 1 in the directions that the rows determine; `gamma` is their number.
    """
    root = np.sqrt(weights)[:, None]
    A, B = root * Phi, root * Y
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    kept = s > 1e-15 * s.max(initial=0.0)  # as numpy.linalg.pinv cuts
    s, Vt = s[kept], Vt[kept]
    mean = np.linalg.pinv(A) @ B
    misfit = ((B - A @ mean) ** 2).sum(axis=0)
    n, rank = float(weights.sum()), len(s)
    own = -0.5 * beta * misfit - np.log(s).sum() + 0.5 * (n - rank) * np.log(beta / (2.0 * np.pi))
    return WeightPosterior(mean, (Vt.T / (beta * s * s)) @ Vt, float(own.sum()), float(rank))


def weights_from_sums(
    m0: FloatArray,  # (M,)
    P0: FloatArray,  # (M, M) precision of the prior
    beta: float,
    precision: FloatArray,  # (M, M) P0 + β ΦᵀΦ
    shift: FloatArray,  # (M, q) P0 m0 + β ΦᵀY
    yy: FloatArray,  # (q,) squares of the targets
    n: float,  # rows
) -> WeightPosterior:
    """From the sums of blocks that are no longer at hand."""
    factor = Dense(precision).factor()
    assert isinstance(factor, DenseFactor)
    mean, cov = factor.solve(shift), factor.inverse()
    # |y|² β + m0ᵀP0m0 − mᵀ A m is the misfit at the best weights and the prior's pull together
    fit = beta * yy + float(m0 @ P0 @ m0) - (mean * shift).sum(0)
    logs = float(np.linalg.slogdet(P0)[1]) - factor.logdet + n * np.log(beta / (2.0 * np.pi)) - fit
    return WeightPosterior(mean, cov, 0.5 * float(logs.sum()), float(len(P0) - np.trace(P0 @ cov)))
