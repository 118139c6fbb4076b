"""Latent-variable kernels with a continuous hidden cause: ∫ p(x | z) p(x′ | z) p(z) dz."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.kernels.base import Cotangent, Kernel, KernelError, Pull
from gramgraph.kernels.generative import LatentVariable
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class GaussianLatent(Kernel):
    """k(x, x′) = ∫ N(x; Az + b, Σ) N(x′; Az + b, Σ) N(z; m, C) dz, in closed form.

    With S = A C Aᵀ (`signal`), Σ (`noise`) and μ = Am + b (`mean`): k = N(u; √2 μ, 2S + Σ) N(v; 0, Σ) where
    u = (x + x′)/√2 and v = (x − x′)/√2. Numbers stand for multiples of the unit matrix. O(n m d) after two Cholesky
    factorizations.

    Parameters
    ----------
    signal : S, a number or (d, d).
    noise : Σ, a number or (d, d).
    mean : μ, a number or (d,).
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> k = GaussianLatent()  # z ~ N(0, 1), x | z ~ N(z, 1)
    >>> round(float(k.gram([[0.0]])[0, 0]), 6)  # 1 / (2π √3)
    0.091888
    """

    signal: Any = 1.0  # number or (d, d)
    noise: Any = 1.0
    mean: Any = 0.0  # number or (d,)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("signal", "noise", "mean"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if not np.isfinite(value).all() or value.ndim > (1 if name == "mean" else 2):
                raise KernelError(f"GaussianLatent.{name}: expected finite numbers, got {getattr(self, name)!r:.60}.")
            object.__setattr__(self, name, float(value) if value.ndim == 0 else value)

    @classmethod
    def of(cls, A: Any, noise: Any, *, offset: Any = 0.0, mean: Any = 0.0, cov: Any = 1.0) -> GaussianLatent:
        """From x = Az + offset + noise, z ~ N(mean, cov)."""
        A = np.atleast_2d(np.asarray(A, dtype=np.float64))
        C = np.asarray(cov, dtype=np.float64)
        C = C * np.eye(A.shape[1]) if C.ndim == 0 else C
        m = np.broadcast_to(np.asarray(mean, dtype=np.float64), A.shape[1])
        return cls(A @ C @ A.T, noise, A @ m + np.asarray(offset, dtype=np.float64))

    def _constants(self, d: int) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """(2S + Σ)⁻¹, Σ⁻¹, μ, log of the constant."""
        S, N = (np.asarray(z) * np.eye(d) if np.ndim(z) == 0 else np.asarray(z) for z in (self.signal, self.noise))
        mu = np.broadcast_to(np.asarray(self.mean, dtype=np.float64), d)
        if S.shape != (d, d) or N.shape != (d, d):
            raise KernelError(f"GaussianLatent: covariances are {S.shape} and {N.shape}, points have {d} columns.")
        try:
            roots = [np.linalg.cholesky(part) for part in (2.0 * S + N, N)]
        except np.linalg.LinAlgError:
            raise KernelError("GaussianLatent: the noise must be positive definite, the signal not negative.") from None
        log_c = -d * np.log(2.0 * np.pi) - sum(float(np.log(np.diag(L)).sum()) for L in roots)
        inverse = [np.linalg.solve(L.T, np.linalg.solve(L, np.eye(d))) for L in roots]
        return inverse[0], inverse[1], mu, log_c

    def _diag(self, X: FloatArray) -> FloatArray:
        P, _, mu, log_c = self._constants(X.shape[1])
        off = X - mu
        return np.asarray(np.exp(log_c - np.einsum("ni,ij,nj->n", off, P, off)))

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        P, Q, mu, log_c = self._constants(X.shape[1])
        A, B = X - mu, (X if Y is None else Y) - mu
        half = 0.25 * (P + Q)  # of both squares; (P − Q) / 2 stands between x and x′
        squares = np.einsum("ni,ij,nj->n", A, half, A)[:, None] + np.einsum("ni,ij,nj->n", B, half, B)
        K = np.exp(log_c - squares - 0.5 * A @ (P - Q) @ B.T)

        def pull(bar: FloatArray) -> Cotangent:
            if not inputs:
                return self.cotangent({})
            W = bar * K
            left = -(W.sum(axis=1)[:, None] * (A @ (2.0 * half)) + 0.5 * (W @ B) @ (P - Q))
            right = -(W.sum(axis=0)[:, None] * (B @ (2.0 * half)) + 0.5 * (W.T @ A) @ (P - Q))
            return self.cotangent({}, left + right) if Y is None else self.cotangent({}, left, right)

        return K, pull


def latent_integral(
    density: Callable[[FloatArray], FloatArray],
    likelihood: Callable[[Any, FloatArray], FloatArray],
    low: float,
    high: float,
    *,
    nodes: int = 256,
    circle: bool = False,
) -> LatentVariable:
    """k(x, x′) = ∫ p(z) p(x | z) p(x′ | z) dz over low < z < high, by quadrature.

    `density` is p(z), `likelihood(X, z)` the matrix p(xᵢ | zⱼ). Gauss–Legendre nodes, or equally spaced ones where the
    ends meet (`circle`): errors fall faster than any power of the number of nodes for smooth functions, once nodes
    stand closer than the width of p(x | z). O(n · nodes) features.

    Parameters
    ----------
    density : p(z) as a function of an array.
    likelihood : (X, z) to the matrix p(xᵢ | zⱼ).
    low : left end.
    high : right end.
    nodes : how many nodes.
    circle : whether the ends meet.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> k = latent_integral(norm.pdf, lambda X, z: norm.pdf(np.ravel(X)[:, None], z), -9.0, 9.0)
    >>> X = np.array([[0.0], [1.5]])
    >>> bool(np.abs(k.gram(X) - GaussianLatent().gram(X)).max() < 1e-10)
    True
    """
    if not (np.isfinite([low, high]).all() and low < high and nodes >= 2):
        raise KernelError(f"latent_integral: expected low < high and at least 2 nodes; got {low}, {high}, {nodes}.")
    if circle:
        z, w = low + (high - low) * (np.arange(nodes) + 0.5) / nodes, np.full(nodes, (high - low) / nodes)
    else:
        t, w = np.polynomial.legendre.leggauss(nodes)
        z, w = 0.5 * (high - low) * t + 0.5 * (high + low), 0.5 * (high - low) * w
    p = np.asarray(density(z), dtype=np.float64)
    if p.shape != z.shape or not np.isfinite(p).all() or (p < 0.0).any():
        raise KernelError("latent_integral: density(z) must give one finite number from 0 on for each node.")
    total = float(p @ w)
    if abs(total - 1.0) > 1e-6:
        raise KernelError(
            f"latent_integral: the density integrates to {total:.8g} between {low} and {high}, not to 1. "
            "Try: a wider interval, or more nodes."
        )
    return LatentVariable(p * w / total, lambda X: likelihood(X, z))
