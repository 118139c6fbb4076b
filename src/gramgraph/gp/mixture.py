"""Processes that are not a single posterior: the prior itself, and averages over hyper-parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph._validation import generator
from gramgraph.gp.hyper import quadrature, slice_sample
from gramgraph.gp.means import Mean
from gramgraph.gp.row_blocks import without_noise
from gramgraph.kernels.inputs import count
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class PriorProcess:
    """The process before any data; weights of the mean are left out.

    >>> from gramgraph.kernels import RBF
    >>> PriorProcess(RBF(), Mean()).var([[0.0], [1.0]])
    array([1., 1.])
    """

    kernel: Kernel
    trend_of: Mean
    outputs: int = 1

    def mean(self, X: Any) -> FloatArray:
        """The fixed part of the mean, (m, q)."""
        fixed = self.trend_of.fixed(X)
        out = np.zeros((count(X), self.outputs))
        return out if fixed is None else out + fixed.reshape(len(out), -1)

    def _kernel(self, latent: bool) -> Kernel | None:
        return without_noise(self.kernel) if latent else self.kernel

    def var(self, X: Any, *, latent: bool = False) -> FloatArray:
        """k(x, x)."""
        kernel = self._kernel(latent)
        return np.zeros(count(X)) if kernel is None else kernel.diag(X)

    def cov(self, X: Any, *, latent: bool = False) -> FloatArray:
        """k(x, x′)."""
        kernel = self._kernel(latent)
        return np.zeros((count(X), count(X))) if kernel is None else kernel.gram(X)

    def sample(self, X: Any, n_samples: int = 1, *, random_state: Any = None) -> FloatArray:
        """Draws, (m, q, n_samples)."""
        rng = generator(random_state)
        half = symmetric_root(self.cov(X))
        Z = rng.standard_normal((half.shape[1], self.outputs * n_samples))
        return self.mean(X)[:, :, None] + (half @ Z).reshape(count(X), self.outputs, n_samples)


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    """An average of posteriors over hyper-parameters: Σ_i w_i p(f | y, θ_i), by its moments and its draws."""

    parts: tuple[Any, ...]
    weights: FloatArray  # (m,)
    thetas: FloatArray  # (m, p)
    log_evidence: float | None = None  # with quadrature: log ∫ p(y | θ) p(θ) dθ

    def __repr__(self) -> str:
        return f"Mixture({len(self.parts)} posteriors, heaviest weight {self.weights.max():.3g})"

    def mean(self, X: Any) -> FloatArray:
        """Σ w_i μ_i."""
        return sum((w * part.mean(X) for w, part in zip(self.weights, self.parts, strict=True)), start=np.zeros(()))

    def var(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Σ w_i (σ²_i + μ²_i) − (Σ w_i μ_i)², (m, q)."""
        means = [part.mean(X) for part in self.parts]
        center = np.tensordot(self.weights, means, axes=1)
        total = np.zeros_like(center)
        for w, part, m in zip(self.weights, self.parts, means, strict=True):
            v = part.var(X, latent=latent)
            total += w * ((v if v.ndim == 2 else v[:, None]) + (m - center) ** 2)
        return total

    def cov(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Covariances with the spread of the means, (m, m, q)."""
        means = [part.mean(X) for part in self.parts]
        center = np.tensordot(self.weights, means, axes=1)
        total = np.zeros((*center.shape[:1], *center.shape))
        for w, part, m in zip(self.weights, self.parts, means, strict=True):
            C = part.cov(X, latent=latent)
            gap = m - center
            total += w * ((C if C.ndim == 3 else C[:, :, None]) + gap[:, None, :] * gap[None, :, :])
        return total

    def sample(self, X: Any, n_samples: int = 1, *, random_state: Any = None) -> FloatArray:
        """Draws: first the hyper-parameters, then the function."""
        rng = generator(random_state)
        drawn = rng.choice(len(self.parts), size=n_samples, p=self.weights)
        return np.concatenate([self.parts[i].sample(X, 1, random_state=rng) for i in drawn], axis=2)


def integrate_over(
    log_density: Callable[[FloatArray], float],
    posterior: Callable[[FloatArray], Any],
    theta: FloatArray,
    bounds: FloatArray,
    *,
    how: str,
    size: int | None,
    rng: np.random.Generator,
) -> Mixture:
    """The mixture over draws ("slice") or nodes ("quadrature") of theta, uniform between the bounds but for priors."""
    if how == "slice":
        thetas = slice_sample(log_density, theta, bounds, size or 20, random_state=rng)
        weights, log_z = np.full(len(thetas), 1.0 / len(thetas)), None
    else:
        thetas, weights, log_z = quadrature(log_density, theta, bounds, order=size or 3)
        kept = weights > 1e-6
        thetas, weights = thetas[kept], weights[kept] / weights[kept].sum()
    return Mixture(tuple(posterior(t) for t in thetas), weights, thetas, log_z)
