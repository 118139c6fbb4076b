"""Families on positive numbers: waiting times, scales, precisions, variances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import number, vector
from gramgraph.distributions._moments import gamma_entropy, inverse_digamma, shape_from_gap
from gramgraph.distributions.base import ExponentialFamily, FamilyOfItself, count_of_draws
from gramgraph.typing import FloatArray, RandomState


@dataclass(frozen=True)
class Exponential(FamilyOfItself):
    """p(x) = r e^(−r x) for x ≥ 0. φ = x, θ = −r, A = −log r.

    Parameters
    ----------
    rate : inverse of the mean.

    Examples
    --------
    >>> Exponential(2.0).mean, Exponential(2.0).var
    (0.5, 0.25)
    """

    rate: float
    support = "non_negative"
    natural_interval = (-float("inf"), 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, low=0.0))

    @property
    def mean(self) -> float:
        """1 / r."""
        return 1.0 / self.rate

    @property
    def var(self) -> float:
        """1 / r²."""
        return 1.0 / self.rate**2

    @property
    def natural_parameters(self) -> FloatArray:
        """[−r]."""
        return np.array([-self.rate])

    @property
    def log_partition(self) -> float:
        """−log r."""
        return float(-np.log(self.rate))

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """r = −θ."""
        return cls(-float(vector("theta", theta, 1)[0]))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """r = 1 / μ."""
        return cls(1.0 / number("mu", float(vector("mu", mu, 1)[0]), low=0.0))

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n,)."""
        return generator(random_state).exponential(1.0 / self.rate, size=count_of_draws(n))


@dataclass(frozen=True)
class Gamma(ExponentialFamily):
    """p(x) = b^a / Γ(a) x^(a−1) e^(−b x). φ = (log x, x), θ = (a − 1, −b), A = log Γ(a) − a log b.

    Parameters
    ----------
    shape : a > 0
    rate : b > 0, the inverse of the scale

    Examples
    --------
    >>> Gamma(3.0, 2.0).mean, Gamma(3.0, 2.0).var
    (1.5, 0.75)
    """

    shape: float
    rate: float
    support = "non_negative"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", number("shape", self.shape, low=0.0))
        object.__setattr__(self, "rate", number("rate", self.rate, low=0.0))

    @property
    def mean(self) -> float:
        """a / b."""
        return self.shape / self.rate

    @property
    def var(self) -> float:
        """a / b²."""
        return self.shape / self.rate**2

    @property
    def natural_parameters(self) -> FloatArray:
        """[a − 1, −b]."""
        return np.array([self.shape - 1.0, -self.rate])

    @property
    def log_partition(self) -> float:
        """log Γ(a) − a log b."""
        return _gamma_partition(self.shape, self.rate)

    @property
    def mean_parameters(self) -> FloatArray:
        """[E log x, E x] = [ψ(a) − log b, a / b]."""
        from scipy.special import digamma

        return np.array([digamma(self.shape) - np.log(self.rate), self.mean])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """[[ψ′(a), 1/b], [1/b, a/b²]]."""
        return _gamma_hessian(self.shape, self.rate)

    def entropy(self) -> float:
        """a − log b + log Γ(a) + (1 − a) ψ(a), without the cancellation of its terms for large a."""
        return float(gamma_entropy(self.shape) - np.log(self.rate))

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """a = θ₁ + 1, b = −θ₂."""
        t = vector("theta", theta, 2)
        return cls(float(t[0]) + 1.0, -float(t[1]))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """Solves log a − ψ(a) = log E x − E log x; b = a / E x."""
        m = vector("mu", mu, 2)
        mean = number("the mean of x", float(m[1]), low=0.0)
        a = shape_from_gap(float(np.log(mean) - m[0]))
        return cls(a, a / mean)

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.stack([np.log(x), x], axis=-1)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n,)."""
        return generator(random_state).gamma(self.shape, 1.0 / self.rate, size=count_of_draws(n))


@dataclass(frozen=True)
class InverseGamma(ExponentialFamily):
    """p(x) = b^a / Γ(a) x^(−a−1) e^(−b/x): 1/x is Gamma. φ = (log x, 1/x), θ = (−a − 1, −b), A = log Γ(a) − a log b.

    Parameters
    ----------
    shape : a > 0
    scale : b > 0

    Examples
    --------
    >>> InverseGamma(3.0, 4.0).mean, InverseGamma(3.0, 4.0).var
    (2.0, 4.0)
    """

    shape: float
    scale: float
    support = "positive"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", number("shape", self.shape, low=0.0))
        object.__setattr__(self, "scale", number("scale", self.scale, low=0.0))

    @property
    def mean(self) -> float:
        """b / (a − 1), infinite for a ≤ 1."""
        return self.scale / (self.shape - 1.0) if self.shape > 1.0 else float("inf")

    @property
    def var(self) -> float:
        """b² / ((a − 1)² (a − 2)), infinite for a ≤ 2."""
        return self.mean**2 / (self.shape - 2.0) if self.shape > 2.0 else float("inf")

    @property
    def natural_parameters(self) -> FloatArray:
        """[−a − 1, −b]."""
        return np.array([-self.shape - 1.0, -self.scale])

    @property
    def log_partition(self) -> float:
        """log Γ(a) − a log b."""
        return _gamma_partition(self.shape, self.scale)

    @property
    def mean_parameters(self) -> FloatArray:
        """[E log x, E 1/x] = [log b − ψ(a), a / b]."""
        from scipy.special import digamma

        return np.array([np.log(self.scale) - digamma(self.shape), self.shape / self.scale])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """[[ψ′(a), −1/b], [−1/b, a/b²]]."""
        return _gamma_hessian(self.shape, self.scale) * np.array([[1.0, -1.0], [-1.0, 1.0]])

    def entropy(self) -> float:
        """a + log b + log Γ(a) − (1 + a) ψ(a), without the cancellation of its terms for large a."""
        from scipy.special import digamma

        return float(gamma_entropy(self.shape) - 2.0 * digamma(self.shape) + np.log(self.scale))

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """a = −θ₁ − 1, b = −θ₂."""
        t = vector("theta", theta, 2)
        return cls(-float(t[0]) - 1.0, -float(t[1]))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """As for the Gamma distribution of 1/x."""
        m = vector("mu", mu, 2)
        twin = Gamma.from_mean([-m[0], m[1]])
        return cls(twin.shape, twin.rate)

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.stack([np.log(x), 1.0 / x], axis=-1)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n,)."""
        return 1.0 / Gamma(self.shape, self.scale).sample(n, random_state=random_state)


@dataclass(frozen=True)
class ChiSquared(ExponentialFamily):
    """p(x) ∝ x^(k/2−1) e^(−x/2). φ = log x, h = e^(−x/2), θ = k/2 − 1, A = (k/2) log 2 + log Γ(k/2).

    Parameters
    ----------
    dof : degrees of freedom.

    Examples
    --------
    >>> ChiSquared(4.0).mean, ChiSquared(4.0).var
    (4.0, 8.0)
    """

    dof: float
    support = "non_negative"
    natural_interval = (-1.0, float("inf"))
    flat_base = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dof", number("dof", self.dof, low=0.0))

    @property
    def mean(self) -> float:
        """k."""
        return self.dof

    @property
    def var(self) -> float:
        """2 k."""
        return 2.0 * self.dof

    @property
    def natural_parameters(self) -> FloatArray:
        """[k/2 − 1]."""
        return np.array([0.5 * self.dof - 1.0])

    @property
    def log_partition(self) -> float:
        """(k/2) log 2 + log Γ(k/2)."""
        return _gamma_partition(0.5 * self.dof, 0.5)

    @property
    def mean_parameters(self) -> FloatArray:
        """[E log x] = [ψ(k/2) + log 2]."""
        from scipy.special import digamma

        return np.array([digamma(0.5 * self.dof) + np.log(2.0)])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """[[ψ′(k/2)]]."""
        from scipy.special import polygamma

        return np.array([[float(polygamma(1, 0.5 * self.dof))]])

    def entropy(self) -> float:
        """That of Gamma(k/2, 1/2)."""
        return float(gamma_entropy(0.5 * self.dof) + np.log(2.0))

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """k = 2 (θ + 1)."""
        return cls(2.0 * (float(vector("theta", theta, 1)[0]) + 1.0))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """ψ(k/2) = μ − log 2."""
        return cls(2.0 * float(inverse_digamma(vector("mu", mu, 1) - np.log(2.0))[0]))

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.log(x)[..., None]

    def _log_base(self, x: FloatArray) -> Any:
        return -0.5 * x

    def _mean_log_base(self) -> float:
        return -0.5 * self.dof

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n,)."""
        return generator(random_state).chisquare(self.dof, size=count_of_draws(n))


def _gamma_partition(a: float, b: float) -> float:
    from scipy.special import gammaln

    return float(gammaln(a) - a * np.log(b))


def _gamma_hessian(a: float, b: float) -> FloatArray:
    from scipy.special import polygamma

    return np.array([[float(polygamma(1, a)), 1.0 / b], [1.0 / b, a / b**2]])
