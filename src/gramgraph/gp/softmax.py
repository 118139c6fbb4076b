"""Laplace's approximation for several classes: one latent function per class, softmax link, one shared kernel.

W = D − Π Πᵀ couples the classes; with E_c = D_c½ (I + D_c½ K D_c½)⁻¹ D_c½ and S = Σ_c E_c the posterior needs C + 1
factorizations of (n, n) matrices and never one of (nC, nC): log |I + K W| = Σ_c log |B_c| + log |S|. Source: Rasmussen
and Williams, "Gaussian Processes for Machine Learning" (2006), section 3.5; the gradient is derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.gp._shown import OneLine
from gramgraph.gp.laplace import Climb, factor_b
from gramgraph.gp.latent import ApproximateEvidence, draw
from gramgraph.gp.likelihoods import Softmax
from gramgraph.kernels.inputs import count, take
from gramgraph.linalg.base import MAX_JITTER
from gramgraph.linalg.dense import DenseFactor
from gramgraph.linalg.triangles import factor_lower
from gramgraph.typing import FloatArray, IntArray, RandomState

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_ROWS = 512  # new points at a time


class _Curvature:
    """R = W (I + K W)⁻¹ in parts, R v = E v − E S⁻¹ Σ_c E_c v_c: C + 1 factorizations at class probabilities P.

    The matrices E_c are written into the memory of E, (C, n, n).
    """

    def __init__(self, K: FloatArray, P: FloatArray, E: FloatArray) -> None:
        n, C = P.shape
        self.K, self.P, self.E = K, P, E
        self.gone = np.empty((n, C))  # 1 − diag(B_c⁻¹): the share of its prior variance that a latent value has lost
        logdet = 0.0
        S = np.zeros((n, n))
        for c in range(C):
            root = np.sqrt(P[:, c])
            factor = factor_b(K, root, E[c])
            logdet += factor.logdet
            V = factor.inverse(overwrite=True)  # in the memory of E[c]
            self.gone[:, c] = np.maximum(1.0 - V.diagonal(), 0.0)
            V *= root
            V *= root[:, None]
            S += V
        self.S = DenseFactor(*factor_lower(S, max_jitter=MAX_JITTER, what="Σ E_c of the softmax link"))
        self.half_logdet = 0.5 * (logdet + self.S.logdet)  # ½ log |I + K W|

    def weigh(self, f: FloatArray) -> FloatArray:
        """W f, point by point diag(π) − π πᵀ."""
        return self.P * (f - (self.P * f).sum(axis=1, keepdims=True))

    def solve(self, r: FloatArray) -> FloatArray:
        """(I + W K)⁻¹ r."""
        return r - self.apply(self.K @ r)

    def apply(self, V: FloatArray) -> FloatArray:
        """R V for V (n, C), O(C n²)."""
        T = self._each(V)
        return T - self._each(np.broadcast_to(self.S.solve(T.sum(axis=1))[:, None], V.shape))

    def _each(self, V: FloatArray) -> FloatArray:
        return np.stack([E @ v for E, v in zip(self.E, V.T, strict=True)], axis=1)


@dataclass(frozen=True, eq=False)
class _SoftmaxMode:
    alpha: FloatArray  # (n, C)
    f: FloatArray  # (n, C)
    curvature: _Curvature
    log_evidence: float
    steps: int
    converged: bool


def _find_mode(
    K: FloatArray, codes: IntArray, n_classes: int, start: FloatArray | None, max_iter: int, tol: float = 1e-10
) -> _SoftmaxMode:
    n = len(codes)
    likelihood = Softmax(n_classes)
    climb = Climb(K, codes, likelihood, np.zeros((n, n_classes)))
    E = np.empty((n_classes, n, n))
    found, steps, converged = climb.run(lambda f: _Curvature(K, likelihood.response(f), E), start, max_iter, tol)
    return _SoftmaxMode(climb.alpha, climb.f, found, climb.value - found.half_logdet, steps, converged)


def _cotangent(mode: _SoftmaxMode, K: FloatArray) -> FloatArray:
    """∂ log q(y)/∂K = (½ A + U) Aᵀ − ½ Σ_c (E_c − E_c S⁻¹ E_c), 5 C n³ operations.

    U = s − R K s carries the movement of the mode; s is the derivative of −½ log |I + K W| by the latent values.
    """
    parts, A = mode.curvature, mode.alpha
    s = _slope_of_logdet(parts, K)
    bar_K = (0.5 * A + s - parts.apply(K @ s)) @ A.T
    for E in parts.E:
        H = parts.S.half_solve(E.T)  # E is symmetric, and its transposed view is Fortran-ordered
        bar_K += 0.5 * (H.T @ H)
        bar_K -= 0.5 * E
    return bar_K


def _slope_of_logdet(parts: _Curvature, K: FloatArray) -> FloatArray:
    """∂(−½ log |I + K W|)/∂f, (n, C): −½ tr(Σᵢ ∂Wᵢ/∂f) with the (C, C) posterior covariance Σᵢ of every point.

    Σ_cc′ = [c = c′] (K⁻¹ + D_c)⁻¹ + G_cᵀ G_c′ with G_c = S^(−½) E_c K; G is made for some columns at a time.
    """
    P, n = parts.P, len(K)
    own, v = np.empty_like(P), np.empty_like(P)  # π_c Σ_cc and π_c (Σ π)_c
    for start in range(0, n, _ROWS):
        here = slice(start, min(n, start + _ROWS))
        G = [parts.S.half_solve(np.asfortranarray(E @ K[:, here]), overwrite=True) for E in parts.E]
        spread = sum(g * P[here, c] for c, g in enumerate(G))
        for c, g in enumerate(G):
            own[here, c] = parts.gone[here, c] + P[here, c] * np.einsum("ki,ki->i", g, g)
            v[here, c] = P[here, c] * (parts.gone[here, c] + np.einsum("ki,ki->i", g, spread))
    return -0.5 * (own - P * own.sum(axis=1, keepdims=True) - 2.0 * v + 2.0 * P * v.sum(axis=1, keepdims=True))


def softmax_evidence(
    kernel: Kernel,
    X: Any,
    codes: IntArray,  # (n,) class numbers 0 … C − 1
    n_classes: int,
    *,
    gradient: bool = False,
    start: FloatArray | None = None,
    max_iter: int = 100,
) -> ApproximateEvidence:
    """log q(y) of the multi-class model and its gradient by theta in closed form; O(C n³) time, C n² memory.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    codes : (n,) class numbers from 0.
    n_classes : number of classes.
    gradient : whether the derivatives by theta are computed as well.
    start : where the iteration begins, or None.
    max_iter : most steps that are taken.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> found = softmax_evidence(2 * RBF(), [[0.0], [1.0], [2.0]], np.array([0, 1, 2]), 3, gradient=True)
    >>> round(found.value, 4), found.theta.shape
    (-3.8675, (2,))
    """
    if not gradient:
        mode = _find_mode(kernel.gram(X), codes, n_classes, start, max_iter)
        return ApproximateEvidence(mode.log_evidence, None, mode.f, mode.steps, mode.converged)
    K, pull = kernel.pullback(X)
    mode = _find_mode(K, codes, n_classes, start, max_iter)
    theta = pull(_cotangent(mode, K)).theta
    return ApproximateEvidence(mode.log_evidence, theta, mode.f, mode.steps, mode.converged)


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxPosterior(OneLine):
    """Gaussian approximation of the latent functions of all classes: mean k(x, X) A, covariance k δ − k R k.

    Parameters
    ----------
    kernel : the kernel.
    X : (n, d) training points.
    alpha : (n, C) weights of the means.
    curvature : of the likelihood, in parts.
    log_evidence : logarithm of the evidence.
    steps : how many steps were taken.
    converged : whether the iteration settled.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> found = softmax_posterior(RBF(), np.array([[-1.0], [0.0], [1.0]]), np.array([0, 1, 2]), 3)
    >>> found.alpha.shape, found.converged
    ((3, 3), True)
    """

    kernel: Kernel
    X: Any
    alpha: FloatArray  # (n, C)
    curvature: _Curvature
    log_evidence: float
    steps: int
    converged: bool

    @property
    def likelihood(self) -> Softmax:
        """The link."""
        return Softmax(self.alpha.shape[1])

    @property
    def jitter(self) -> float:
        """What had to be added to the diagonal of Σ E_c."""
        return self.curvature.S.jitter

    def latent_mean(self, X: Any) -> FloatArray:
        """E f_c(x), (m, C)."""
        out = np.empty((count(X), self.alpha.shape[1]))
        for start in range(0, len(out), _ROWS):
            here = slice(start, start + _ROWS)
            out[here] = self.kernel.gram(take(X, here), self.X) @ self.alpha
        return out

    def latent(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Mean (m, C) and covariance of the classes at each point, (m, C, C); O(C n²) a point."""
        m, C = count(X), self.alpha.shape[1]
        mean, cov = np.empty((m, C)), np.empty((m, C, C))
        for start in range(0, m, _ROWS):
            here = slice(start, min(m, start + _ROWS))
            part = take(X, here)
            K = self.kernel.gram(part, self.X)
            mean[here] = K @ self.alpha
            T = [E @ K.T for E in self.curvature.E]
            G = np.stack([self.curvature.S.half_solve(np.asfortranarray(t)) for t in T])
            cov[here] = np.einsum("ckm,dkm->mcd", G, G)
            for c, t in enumerate(T):
                cov[here, c, c] += np.maximum(self.kernel.diag(part) - np.einsum("mk,km->m", K, t), 0.0)
        return mean, cov

    def sample(self, X: Any, n_samples: int = 1, *, random_state: RandomState = None) -> FloatArray:
        """Draws of all latent functions at the points, jointly: (n_samples, m, C). O((m C)³)."""
        m, C = count(X), self.alpha.shape[1]
        K = self.kernel.gram(X, self.X)
        T = [E @ K.T for E in self.curvature.E]
        G = [self.curvature.S.half_solve(np.asfortranarray(t)) for t in T]
        prior = self.kernel.gram(X)
        cov = np.empty((C, m, C, m))
        for c in range(C):
            for d in range(C):
                cov[c, :, d, :] = G[c].T @ G[d]
            cov[c, :, c, :] += prior - K @ T[c]
        draws = draw(cov.reshape(C * m, C * m), n_samples, random_state).reshape(n_samples, C, m)
        return np.swapaxes(draws, 1, 2) + K @ self.alpha


def softmax_posterior(
    kernel: Kernel,
    X: Any,
    codes: IntArray,
    n_classes: int,
    *,
    start: FloatArray | None = None,
    max_iter: int = 100,
) -> SoftmaxPosterior:
    """The approximate posterior of the latent functions.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    codes : (n,) class numbers from 0.
    n_classes : number of classes.
    start : where the iteration begins, or None.
    max_iter : most steps that are taken.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> process = softmax_posterior(4 * RBF(), [[0.0], [2.0], [4.0]], np.array([0, 1, 2]), 3)
    >>> process.latent_mean([[0.1], [3.9]]).argmax(axis=1)
    array([0, 2])
    """
    mode = _find_mode(kernel.gram(X), codes, n_classes, start, max_iter)
    return SoftmaxPosterior(kernel, X, mode.alpha, mode.curvature, mode.log_evidence, mode.steps, mode.converged)
