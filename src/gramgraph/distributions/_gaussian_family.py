"""The Gaussian on R^d as an exponential family; its algebra is in `gaussian.py`."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np

from gramgraph.distributions._check import frozen, vector
from gramgraph.distributions._pack import pack, pack_dual, packed_cov, pairs, side_of, unpack, unpack_dual
from gramgraph.distributions._root import Root, psd_root
from gramgraph.distributions.base import ExponentialFamily
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray


class GaussianFamily(ExponentialFamily):
    """φ = (x, x_i x_j for i ≤ j), θ = (Σ⁻¹μ, −½ Σ⁻¹ with off-diagonal entries doubled), A = ½ μᵀΣ⁻¹μ + ½ log |2πΣ|."""

    support = "vector"
    event_ndim = 1
    mean: FloatArray  # (d,)
    cov: FloatArray  # (d, d)

    @property
    def dim(self) -> int:
        """d, the number of coordinates."""
        return len(self.mean)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(d,)."""
        return self.mean.shape

    @cached_property
    def _root(self) -> Root:
        return psd_root(self.cov, "cov", getattr(self, "_scale", None))

    @property
    def rank(self) -> int:
        """Dimension of the support, d unless the covariance is singular."""
        return self._root.rank

    @property
    def is_degenerate(self) -> bool:
        """Whether the covariance is singular to rounding, so that some combination of coordinates is certain."""
        return not self._root.full

    @property
    def var(self) -> FloatArray:
        """Variances of the coordinates, (d,)."""
        return np.diagonal(self.cov).copy()

    @property
    def std(self) -> FloatArray:
        """Standard deviations of the coordinates, (d,)."""
        return np.sqrt(np.maximum(np.diagonal(self.cov), 0.0))

    @property
    def correlation(self) -> FloatArray:
        """Σ_ij / (σ_i σ_j), (d, d); coordinates without variance correlate with nothing."""
        s = np.where(self.std > 0.0, self.std, 1.0)
        R = self.cov / s[:, None] / s
        np.fill_diagonal(R, 1.0)
        return R

    @cached_property
    def precision(self) -> FloatArray:
        """Σ⁻¹, (d, d); for a singular Σ its Moore–Penrose inverse, the precision on the support."""
        return frozen(self._root.inverse())

    @cached_property
    def shift(self) -> FloatArray:
        """h = Σ⁻¹ μ of the canonical form exp(hᵀx − ½ xᵀΣ⁻¹x), (d,)."""
        return frozen(self.precision @ self.mean)

    @property
    def natural_parameters(self) -> FloatArray:
        """(Σ⁻¹μ, −½ Σ⁻¹ packed), d + d(d+1)/2 entries; a singular Σ has none."""
        P, h = self._canonical()
        return np.concatenate([h, pack_dual(-0.5 * P)])

    @property
    def log_partition(self) -> float:
        """½ μᵀΣ⁻¹μ + ½ log |2πΣ|."""
        P, h = self._canonical()
        return float(0.5 * h @ self.mean - 0.5 * np.linalg.slogdet(P / (2.0 * np.pi))[1])

    @property
    def mean_parameters(self) -> FloatArray:
        """(μ, E x_i x_j for i ≤ j)."""
        return np.concatenate([self.mean, pack(self.cov + np.outer(self.mean, self.mean))])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """Covariances of x and of products: Cov(x_k, x_i x_j) = μ_i Σ_jk + μ_j Σ_ik, and Isserlis' theorem."""
        d, m, S = self.dim, self.mean, self.cov
        i, j = pairs(d)
        cross = m[i] * S[:, j] + m[j] * S[:, i]
        M = np.outer(m, m)
        squares = packed_cov(S)
        for a, b in ((i, j), (j, i)):
            squares = squares + M[np.ix_(a, i)] * S[np.ix_(b, j)] + M[np.ix_(a, j)] * S[np.ix_(b, i)]
        return np.block([[S, cross], [cross.T, squares]])

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """Σ⁻¹ = −2Θ, μ = Σ θ₁."""
        t = vector("theta", theta)
        d = side_of(len(t), "theta", linear=1)
        return cls.from_precision(t[:d], unpack_dual(-2.0 * t[d:], d))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """μ and Σ = E xxᵀ − μμᵀ."""
        v = vector("mu", mu)
        d = side_of(len(v), "mu", linear=1)
        m = v[:d]
        return cls(m, unpack(v[d:], d) - np.outer(m, m))  # type: ignore[call-arg]

    @classmethod
    @abstractmethod
    def from_precision(cls, h: Any, precision: Any) -> Self:
        """From the canonical form exp(hᵀx − ½ xᵀPx)."""

    @classmethod
    @abstractmethod
    def from_samples(cls, X: Any, *, weights: Any = None) -> Self:
        """Maximum likelihood from rows of X."""

    @classmethod
    def fit(cls, x: Any, *, weights: Any = None, **known: Any) -> Self:
        """Maximum likelihood from rows, another name of `from_samples`; moments are taken about the mean."""
        return cls.from_samples(x, weights=weights)

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        i, j = pairs(x.shape[-1])
        return np.concatenate([x, x[..., i] * x[..., j]], axis=-1)

    def _canonical(self) -> tuple[FloatArray, FloatArray]:
        if self.is_degenerate:
            raise ModelError(
                "A Gaussian with a singular covariance has no natural parameters: its precision is infinite."
            )
        return self.precision, self.shift
