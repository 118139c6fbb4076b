"""Families on directions: von Mises on angles, von Mises–Fisher on the unit sphere of any dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import frozen, number, vector
from gramgraph.distributions._moments import bessel_ratio, bessel_ratio_slope, inverse_bessel_ratio, log_bessel
from gramgraph.distributions.base import ExponentialFamily, count_of_draws
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, RandomState

_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class VonMises(ExponentialFamily):
    """p(x) = exp(κ cos(x − m)) / (2π I₀(κ)) on angles. φ = (cos x, sin x), θ = κ (cos m, sin m), A = log 2π I₀(κ).

    Parameters
    ----------
    mean : the mean direction m in radians, kept in [−π, π)
    concentration : κ ≥ 0; 0 is the uniform distribution

    Examples
    --------
    >>> round(VonMises(0.0, 2.0).resultant, 4)
    0.6978
    >>> VonMises(0.5, 1.0) * VonMises(0.5, 2.0)
    VonMises(mean=0.5, concentration=3.0)
    """

    mean: float
    concentration: float
    support = "angle"

    def __post_init__(self) -> None:
        angle = number("mean", self.mean)
        if not -np.pi <= angle < np.pi:
            angle = float((angle + np.pi) % (2.0 * np.pi) - np.pi)
        object.__setattr__(self, "mean", angle)
        kappa = number("concentration", self.concentration, low=0.0, closed=True)
        object.__setattr__(self, "concentration", kappa)

    @property
    def resultant(self) -> float:
        """|E (cos x, sin x)| = I₁(κ) / I₀(κ)."""
        return bessel_ratio(2, self.concentration)

    @property
    def circular_var(self) -> float:
        """1 − resultant, from 0 (a point) to 1 (uniform)."""
        return 1.0 - self.resultant

    @property
    def _direction(self) -> FloatArray:
        return np.array([np.cos(self.mean), np.sin(self.mean)])

    @property
    def natural_parameters(self) -> FloatArray:
        """κ (cos m, sin m)."""
        return self.concentration * self._direction

    @property
    def log_partition(self) -> float:
        """log 2π I₀(κ)."""
        return _LOG_2PI + log_bessel(0.0, self.concentration)

    @property
    def mean_parameters(self) -> FloatArray:
        """E (cos x, sin x)."""
        return self.resultant * self._direction

    @property
    def log_partition_hessian(self) -> FloatArray:
        """A₂′(κ) u uᵀ + A₂(κ)/κ (I − u uᵀ) with u the mean direction."""
        return _direction_cov(self._direction, self.concentration)

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """κ = |θ|, m = the angle of θ."""
        t = vector("theta", theta, 2)
        return cls(float(np.arctan2(t[1], t[0])), float(np.hypot(t[0], t[1])))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """Solves I₁(κ)/I₀(κ) = |μ|."""
        m = vector("mu", mu, 2)
        return cls(float(np.arctan2(m[1], m[0])), inverse_bessel_ratio(2, float(np.hypot(m[0], m[1]))))

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.stack([np.cos(x), np.sin(x)], axis=-1)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n angles in [−π, π], (n,)."""
        return generator(random_state).vonmises(self.mean, self.concentration, size=count_of_draws(n))


@dataclass(frozen=True, eq=False)
class VonMisesFisher(ExponentialFamily):
    """p(x) ∝ exp(κ uᵀx) on unit vectors of R^d. φ = x, θ = κ u, A = (d/2) log 2π + log I_{d/2−1}(κ) κ^(1−d/2).

    Densities are with respect to the area of the sphere.

    Parameters
    ----------
    direction : the mean direction u (d,), scaled to length 1; d ≥ 2
    concentration : κ ≥ 0; 0 is the uniform distribution

    Examples
    --------
    >>> p = VonMisesFisher([0.0, 0.0, 1.0], 0.0)
    >>> round(1.0 / p.density([1.0, 0.0, 0.0]) / np.pi, 4)  # the area of the sphere
    4.0
    """

    direction: FloatArray  # (d,)
    concentration: float
    support = "sphere"
    event_ndim = 1

    def __post_init__(self) -> None:
        u = vector("direction", self.direction)
        length = float(np.linalg.norm(u))
        if len(u) < 2 or length == 0.0:
            raise ModelError(f"direction must be a vector of at least two entries, not zero; it is {u.tolist()}.")
        # one of length 1 up to rounding stays as it is, so that a file gives the same bits
        object.__setattr__(self, "direction", frozen(u if abs(length - 1.0) <= 1e-15 else u / length))
        kappa = number("concentration", self.concentration, low=0.0, closed=True)
        object.__setattr__(self, "concentration", kappa)

    @property
    def dim(self) -> int:
        """d."""
        return len(self.direction)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(d,)."""
        return self.direction.shape

    @property
    def resultant(self) -> float:
        """|E x| = I_{d/2}(κ) / I_{d/2−1}(κ)."""
        return bessel_ratio(self.dim, self.concentration)

    @property
    def mean(self) -> FloatArray:
        """E x, inside the sphere."""
        return self.resultant * self.direction

    @property
    def natural_parameters(self) -> FloatArray:
        """κ u."""
        return self.concentration * self.direction

    @property
    def log_partition(self) -> float:
        """(d/2) log 2π + log I_{d/2−1}(κ) κ^(1−d/2)."""
        return 0.5 * self.dim * _LOG_2PI + log_bessel(0.5 * self.dim - 1.0, self.concentration)

    @property
    def mean_parameters(self) -> FloatArray:
        """E x."""
        return self.mean

    @property
    def log_partition_hessian(self) -> FloatArray:
        """A_d′(κ) u uᵀ + A_d(κ)/κ (I − u uᵀ)."""
        return _direction_cov(self.direction, self.concentration)

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """κ = |θ|, u = θ/κ."""
        t = vector("theta", theta)
        return cls(_toward(t), float(np.linalg.norm(t)))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """Solves A_d(κ) = |μ|."""
        m = vector("mu", mu)
        return cls(_toward(m), inverse_bessel_ratio(len(m), float(np.linalg.norm(m))))

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return x

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n unit vectors, (n, d)."""
        from scipy.stats import vonmises_fisher

        rng, n = generator(random_state), count_of_draws(n)
        if self.concentration == 0.0 or n == 0:
            x = rng.standard_normal((n, self.dim))
        else:
            x = vonmises_fisher(self.direction, self.concentration).rvs(n, random_state=rng).reshape(n, self.dim)
        return x / np.linalg.norm(x, axis=1, keepdims=True)


def _direction_cov(u: FloatArray, kappa: float) -> FloatArray:
    d = len(u)
    along = np.outer(u, u)
    across = bessel_ratio(d, kappa) / kappa if kappa > 0.0 else 1.0 / d
    return bessel_ratio_slope(d, kappa) * along + across * (np.eye(d) - along)


def _toward(v: FloatArray) -> FloatArray:
    """The direction of v; the first axis for the zero vector, which has none."""
    return v if v.any() else np.eye(len(v))[0]
