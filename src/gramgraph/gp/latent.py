"""The Gaussian approximation of a latent function that was observed through a likelihood, as a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph._validation import generator
from gramgraph.gp._shown import OneLine
from gramgraph.kernels.inputs import count, take
from gramgraph.linalg.dense import Dense, DenseFactor
from gramgraph.typing import FloatArray, RandomState

if TYPE_CHECKING:
    from gramgraph.gp.likelihoods import Likelihood
    from gramgraph.kernels.base import Kernel

_ROWS = 1024  # new points at a time


@dataclass(frozen=True, eq=False)
class ApproximateEvidence:
    """log q(y), the approximate log evidence, its gradient by theta, and what a similar problem may start from."""

    value: float
    theta: FloatArray | None  # (p,)
    start: Any  # pass it as `start=` of the next call
    steps: int  # factorizations of an (n, n) matrix
    converged: bool


@dataclass(frozen=True, eq=False, repr=False)
class LatentPosterior(OneLine):
    """q(f) = GP with mean m + k(x, X) α and covariance k(x, x′) − k(x, X) S½ B⁻¹ S½ k(X, x′), B = I + S½ K S½.

    Laplace's approximation and expectation propagation both have this form; S holds the precisions of the Gaussians
    that stand for the likelihood terms. One new point costs O(n) for its mean and O(n²) for its variance.

    Parameters
    ----------
    kernel : the kernel.
    X : (n, d) training points.
    likelihood : p(y | f).
    alpha : (n,) weights of the mean.
    root : (n,) square roots of the precisions S.
    factor : of B.
    prior_mean : m.
    log_evidence : logarithm of the evidence.
    method : "laplace" or "ep".
    steps : factorizations until convergence.
    converged : whether the iteration settled.
    shift : a known mean that is added to m, or None.

    Examples
    --------
    >>> from gramgraph.gp import Probit, laplace_posterior
    >>> from gramgraph.kernels import RBF
    >>> found = laplace_posterior(RBF(), np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]), Probit())
    >>> type(found).__name__, found.method, found.converged
    ('LatentPosterior', 'laplace', True)
    """

    kernel: Kernel
    X: Any  # (n, d) training points
    likelihood: Likelihood
    alpha: FloatArray  # (n,)
    root: FloatArray  # (n,) √S
    factor: DenseFactor  # of B
    prior_mean: float  # m
    log_evidence: float
    method: str  # "laplace" or "ep"
    steps: int  # factorizations until convergence
    converged: bool
    shift: Any = None  # a `KnownMean` that is added to m

    @classmethod
    def of(
        cls, kernel: Kernel, X: Any, likelihood: Likelihood, found: Any, prior_mean: float, method: str, steps: int
    ) -> LatentPosterior:
        """The posterior at what a method found: α, √S, the factor of B, the evidence, whether it converged."""
        return cls(
            kernel, X, likelihood, found.alpha, found.root, found.factor, prior_mean,
            log_evidence=found.log_evidence, method=method, steps=steps, converged=found.converged,
        )  # fmt: skip

    @property
    def jitter(self) -> float:
        """What had to be added to the diagonal of B, which is at least 1; 0 but for indefinite kernels."""
        return self.factor.jitter

    def _prior(self, X: Any) -> FloatArray:
        """m(x), (m,)."""
        out = np.full(count(X), self.prior_mean)
        return out if self.shift is None else out + self.shift.at(X)

    def latent_mean(self, X: Any) -> FloatArray:
        """E f(x), (m,)."""
        out = self._prior(X)
        for rows, part in _blocks(X):
            out[rows] += self.kernel.gram(part, self.X) @ self.alpha
        return out

    def latent(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(x), each (m,); in blocks of points, O(n) memory a point of a block."""
        mean, var = self._prior(X), np.empty(count(X))
        for rows, part in _blocks(X):
            K = self.kernel.gram(part, self.X)
            mean[rows] += K @ self.alpha
            K *= self.root
            V = self.factor.half_solve(K.T, overwrite=True)  # a Fortran-ordered view: solved in its own memory
            var[rows] = self.kernel.diag(part) - np.einsum("ij,ij->j", V, V)
        return mean, np.maximum(var, 0.0)

    def latent_cov(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and covariance (m, m) of f at the points."""
        K = self.kernel.gram(X, self.X)
        mean = self._prior(X) + K @ self.alpha
        K *= self.root
        V = self.factor.half_solve(K.T, overwrite=True)
        cov = self.kernel.gram(X)
        cov -= V.T @ V
        return mean, cov

    def sample(self, X: Any, n_samples: int = 1, *, random_state: RandomState = None) -> FloatArray:
        """Draws of the latent function at the points, jointly: (n_samples, m). O(m³)."""
        mean, cov = self.latent_cov(X)
        return mean + draw(cov, n_samples, random_state)


def draw(cov: FloatArray, n_samples: int, random_state: RandomState) -> FloatArray:
    """Draws of N(0, cov), one per row; cov may be singular or, by rounding, slightly indefinite."""
    from gramgraph.linalg.base import PositiveDefiniteError, sample

    rng = generator(random_state)
    try:
        return sample(Dense(cov).factor(), n_samples, random_state=rng)
    except PositiveDefiniteError:
        return rng.standard_normal((n_samples, len(cov))) @ symmetric_root(0.5 * (cov + cov.T))


def _blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    n = count(X)
    for start in range(0, n, _ROWS):
        rows = slice(start, min(n, start + _ROWS))
        yield rows, take(X, rows)
