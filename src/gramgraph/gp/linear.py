"""Bayesian linear regression: the weights' side of a Gaussian process with finitely many features.

w ~ N(0, I/α), y = Φ w + N(0, I/β): S⁻¹ = α I + β ΦᵀΦ, m = β S Φᵀ y, and
log p(y) = ½ (M log α + n log β − log |S⁻¹| − β |y − Φm|² − α |m|² − n log 2π).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.bases import Basis
from gramgraph.gp.hyper import Search, ascend
from gramgraph.typing import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Φ = U diag(√lam) Vᵀ: after one decomposition every α and β costs O(M)."""

    V: FloatArray  # (M, r)
    lam: FloatArray  # (r,) eigenvalues of ΦᵀΦ
    c: FloatArray  # (r, q): Uᵀ y
    yy: float  # |y|²
    n: float  # number of rows, or the sum of their weights
    q: int


def spectrum(Phi: FloatArray, Y: FloatArray, weights: FloatArray | None = None) -> Spectrum:
    """The decomposition by SVD, O(n M min(n, M)); a weight of 2 counts a row twice.

    >>> spectrum(np.eye(2), np.ones((2, 1))).lam
    array([1., 1.])
    """
    n = float(len(Phi))
    if weights is not None:
        root, n = np.sqrt(weights)[:, None], float(weights.sum())
        Phi, Y = root * Phi, root * Y
    U, s, Vt = np.linalg.svd(Phi, full_matrices=False)
    keep = s > s[:1].max(initial=0.0) * max(Phi.shape) * np.finfo(float).eps
    c = U[:, keep].T @ Y
    return Spectrum(Vt[keep].T, s[keep] ** 2, c, float((Y**2).sum()), n, Y.shape[1])


@dataclass(frozen=True, eq=False)
class LinearEvidence:
    """α, β, the evidence there, and what went into it."""

    alpha: float
    beta: float
    log_evidence: float
    gamma: float  # effective number of weights, Σ βλ / (α + βλ)
    misfit: float  # |y − Φm|²
    size: float  # |m|²
    trace: float  # tr S
    iterations: int = 0

    @classmethod
    def at(cls, s: Spectrum, alpha: float, beta: float, iterations: int = 0) -> LinearEvidence:
        """The evidence at given precisions, O(M)."""
        M, r = len(s.V), len(s.lam)
        precision = alpha + beta * s.lam
        c2 = (s.c**2).sum(1)
        size = float((beta**2 * s.lam * c2 / precision**2).sum())
        outside = max(s.yy - float(c2.sum()), 0.0)
        misfit = outside + float((c2 * (alpha / precision) ** 2).sum())
        logdet = float(np.log(precision).sum()) + (M - r) * np.log(alpha)
        value = 0.5 * s.q * (M * np.log(alpha) + s.n * np.log(beta) - logdet - s.n * _LOG_2PI)
        value -= 0.5 * (beta * misfit + alpha * size)
        gamma = float((beta * s.lam / precision).sum())
        trace = float((1.0 / precision).sum()) + (M - r) / alpha
        return cls(alpha, beta, float(value), gamma, misfit, size, trace, iterations)


def maximize_evidence(
    s: Spectrum,
    alpha: float,
    beta: float,
    *,
    method: Literal["mackay", "em"] = "mackay",
    max_iter: int = 1000,
    tol: float = 1e-10,
) -> LinearEvidence:
    """α and β of greatest evidence, by MacKay's fixed point or by EM (slower, but it never steps down).

    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(200, 3))
    >>> y = Phi @ rng.normal(size=(3, 1)) + 0.1 * rng.normal(size=(200, 1))
    >>> found = maximize_evidence(spectrum(Phi, y), 1.0, 1.0)
    >>> bool(abs(found.beta / 100.0 - 1.0) < 0.3)
    True
    """
    scale = max(s.yy / max(s.n * s.q, 1.0), 1e-300)
    low, high = 1e-8 / max(scale, 1e-10), 1e8 / max(scale, 1e-10)  # a perfect fit has no noise: stop somewhere
    found = LinearEvidence.at(s, alpha, beta)
    M = len(s.V)
    for iteration in range(1, max_iter + 1):
        if method == "mackay":
            alpha = s.q * found.gamma / max(found.size, 1e-300)
            beta = s.q * max(s.n - found.gamma, 1e-10) / max(found.misfit, 1e-300)
        else:
            alpha = s.q * M / (found.size + s.q * found.trace)
            spread = s.q * found.gamma / found.beta  # tr(ΦᵀΦ S) q
            beta = s.q * s.n / (found.misfit + spread)
        alpha, beta = float(np.clip(alpha, low, high)), float(np.clip(beta, low, high))
        new = LinearEvidence.at(s, alpha, beta, iteration)
        moved = abs(np.log(alpha / found.alpha)) + abs(np.log(beta / found.beta))
        found = new
        if moved < tol:
            break
    return found


def learn_features(
    basis: Basis, X: FloatArray, Y: FloatArray, alpha: float, beta: float, weights: FloatArray | None = None
) -> tuple[Basis, float, float, Search]:
    """Parameters of the basis together with α and β by type-II maximum likelihood: bar_Φ = β (y − Φm) mᵀ − q β Φ S."""
    p = len(basis.theta)
    w = np.ones(len(X)) if weights is None else weights
    n, q = float(w.sum()), Y.shape[1]

    def objective(all_: FloatArray, gradient: bool) -> tuple[float, FloatArray | None]:
        a, b = float(np.exp(all_[p])), float(np.exp(all_[p + 1]))
        Phi, pull = basis.with_theta(all_[:p]).pullback(X)
        s = spectrum(Phi, Y, w)
        found = LinearEvidence.at(s, a, b)
        precision = a + b * s.lam
        m = s.V @ (b * np.sqrt(s.lam)[:, None] * s.c / precision[:, None])
        PhiS = (Phi @ s.V / precision) @ s.V.T
        bar = w[:, None] * (b * (Y - Phi @ m) @ m.T - q * b * PhiS)
        M = Phi.shape[1]
        by_alpha = 0.5 * (q * M - a * found.size - a * q * found.trace)
        by_beta = 0.5 * (q * n - b * found.misfit - q * found.gamma)
        return found.log_evidence, np.concatenate([pull(bar), [by_alpha, by_beta]])

    start = np.concatenate([basis.theta, np.log([alpha, beta])])
    scale = np.log(max(float((Y**2).mean()), 1e-10))
    box = np.concatenate([basis.bounds, [[-23.0 - scale, 23.0 - scale]] * 2])
    found = ascend(objective, start, box)
    if not np.isfinite(found.value):
        raise ModelError("the features could not be learned: the evidence is not finite anywhere that was tried.")
    a, b = np.exp(found.theta[p:])
    return basis.with_theta(found.theta[:p]), float(a), float(b), found
