"""Families on the real line: the normal distribution and the Laplace distribution with a known center."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import number, vector
from gramgraph.distributions.base import ExponentialFamily, count_of_draws
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, RandomState


@dataclass(frozen=True)
class Normal(ExponentialFamily):
    """N(m, v) on the line. φ = (x, x²), θ = (m/v, −1/(2v)), A = m²/(2v) + ½ log 2πv. `Gaussian` is its vector form.

    Parameters
    ----------
    mean : m
    variance : v > 0, the square of the standard deviation

    Examples
    --------
    >>> Normal(1.0, 4.0).natural_parameters.tolist()
    [0.25, -0.125]
    >>> Normal.from_precision(0.5, 0.25)
    Normal(mean=2.0, variance=4.0)
    """

    mean: float
    variance: float
    support = "real"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean))
        object.__setattr__(self, "variance", number("variance", self.variance, low=0.0))

    @classmethod
    def from_precision(cls, h: float, precision: float) -> Self:
        """From the canonical form exp(h x − ½ P x²): m = h/P, v = 1/P."""
        p = number("precision", precision, low=0.0)
        return cls(number("h", h) / p, 1.0 / p)

    @property
    def var(self) -> float:
        """v."""
        return self.variance

    @property
    def precision(self) -> float:
        """1 / v."""
        return 1.0 / self.variance

    @property
    def natural_parameters(self) -> FloatArray:
        """[m/v, −1/(2v)]."""
        return np.array([self.mean / self.variance, -0.5 / self.variance])

    @property
    def log_partition(self) -> float:
        """m²/(2v) + ½ log 2πv."""
        return float(0.5 * self.mean**2 / self.variance + 0.5 * np.log(2.0 * np.pi * self.variance))

    @property
    def mean_parameters(self) -> FloatArray:
        """[E x, E x²] = [m, m² + v]."""
        return np.array([self.mean, self.mean**2 + self.variance])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """[[v, 2mv], [2mv, 2v² + 4m²v]]."""
        m, v = self.mean, self.variance
        return np.array([[v, 2.0 * m * v], [2.0 * m * v, 2.0 * v**2 + 4.0 * m**2 * v]])

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """v = −1/(2θ₂), m = θ₁ v."""
        t = vector("theta", theta, 2)
        if t[1] >= 0.0:
            raise ModelError(f"theta[1] = −1/(2v) of a Normal must be negative; it is {t[1]:g}.")
        v = -0.5 / float(t[1])
        return cls(float(t[0]) * v, v)

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """m = μ₁, v = μ₂ − μ₁²."""
        m = vector("mu", mu, 2)
        v = float(m[1] - m[0] ** 2)
        if v <= 4e-16 * float(m[1]):
            raise ModelError(
                f"The variance μ₂ − μ₁² must be positive; it is {v:g}. Data without spread have no best fit."
            )
        return cls(float(m[0]), v)

    @classmethod
    def fit(cls, x: Any, *, weights: Any = None, **known: Any) -> Self:
        """Maximum likelihood, with the variance taken about the mean so that large means cost no digits.

        >>> Normal.fit([1.0, 3.0])
        Normal(mean=2.0, variance=1.0)
        """
        points = cls._read(x, None)
        center = float(points.mean()) if points.ndim == 1 and points.size and np.isfinite(points).all() else 0.0
        found = super().fit(points - center, weights=weights)
        return cls(found.mean + center, found.variance)

    def log_density(self, x: Any, /) -> Any:
        """−(x − m)²/(2v) − ½ log 2πv, without the cancellation of θᵀφ − A far from zero.

        >>> round(Normal(1e9, 1.0).log_density(1e9), 4)
        -0.9189
        """
        points = self._read(x, ())
        out = -0.5 * (points - self.mean) ** 2 / self.variance - 0.5 * np.log(2.0 * np.pi * self.variance)
        return float(out) if out.ndim == 0 else out

    def entropy(self) -> float:
        """½ log 2πe v."""
        return float(0.5 * np.log(2.0 * np.pi * np.e * self.variance))

    def kl(self, other: Self, /) -> float:
        """½ [v_p/v_q + (m_p − m_q)²/v_q − 1 − log v_p/v_q]."""
        self._same(other, "divergence")
        ratio = self.variance / other.variance
        return float(0.5 * (ratio - 1.0 - np.log(ratio) + (self.mean - other.mean) ** 2 / other.variance))

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.stack([x, x * x], axis=-1)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n,)."""
        return generator(random_state).normal(self.mean, np.sqrt(self.variance), size=count_of_draws(n))


@dataclass(frozen=True)
class Laplace(ExponentialFamily):
    """p(x) = e^(−|x − c|/b) / 2b around a known center c. φ = |x − c|, θ = −1/b, A = log 2b.

    Parameters
    ----------
    scale : b > 0
    center : c, a constant of the family, not learned

    Examples
    --------
    >>> Laplace(2.0).entropy() == Laplace(2.0, center=7.0).entropy()
    True
    >>> Laplace.fit([1.0, 4.0], center=2.0)
    Laplace(scale=1.5, center=2.0)
    """

    scale: float
    center: float = 0.0
    support = "real"
    natural_interval = (-float("inf"), 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", number("scale", self.scale, low=0.0))
        object.__setattr__(self, "center", number("center", self.center))

    @property
    def known(self) -> dict[str, Any]:
        """The center."""
        return {"center": self.center}

    @property
    def mean(self) -> float:
        """c."""
        return self.center

    @property
    def var(self) -> float:
        """2 b²."""
        return 2.0 * self.scale**2

    @property
    def natural_parameters(self) -> FloatArray:
        """[−1/b]."""
        return np.array([-1.0 / self.scale])

    @property
    def log_partition(self) -> float:
        """log 2b."""
        return float(np.log(2.0 * self.scale))

    @property
    def mean_parameters(self) -> FloatArray:
        """[E |x − c|] = [b]."""
        return np.array([self.scale])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """[[b²]]."""
        return np.array([[self.scale**2]])

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """b = −1/θ."""
        value = float(vector("theta", theta, 1)[0])
        if value >= 0.0:
            raise ModelError(f"theta of a Laplace must be negative; it is {value:g}.")
        return cls(-1.0 / value, **known)

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """b = μ."""
        return cls(float(vector("mu", mu, 1)[0]), **known)

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.abs(x - known.get("center", 0.0))[..., None]

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n,)."""
        return generator(random_state).laplace(self.center, self.scale, size=count_of_draws(n))
