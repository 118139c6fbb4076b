"""Families on counts and waiting times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import number, single, vector
from gramgraph.distributions.base import ExponentialFamily, FamilyOfItself, count_of_draws
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray, RandomState


@dataclass(frozen=True)
class Poisson(FamilyOfItself):
    """Counts: p(x) = λ^x e^−λ / x!. φ = x, h = 1/x!, θ = log λ, A = λ.

    Parameters
    ----------
    rate : mean number of events.

    Examples
    --------
    >>> Poisson(2.0).mean, Poisson(2.0).var
    (2.0, 2.0)
    """

    rate: float
    support = "counts"
    natural_interval = (-float("inf"), float("inf"))
    flat_base = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, low=0.0, closed=True))

    @property
    def mean(self) -> float:
        """λ."""
        return self.rate

    @property
    def var(self) -> float:
        """λ."""
        return self.rate

    @property
    def natural_parameters(self) -> FloatArray:
        """[log λ]."""
        with np.errstate(divide="ignore"):
            return np.log([self.rate])

    @property
    def log_partition(self) -> float:
        """λ."""
        return self.rate

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """λ = e^θ."""
        return cls(float(np.exp(single("theta", theta))))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """λ = μ."""
        return cls(float(vector("mu", mu, 1)[0]))

    def _log_base(self, x: FloatArray) -> Any:
        from scipy.special import gammaln

        return -gammaln(x + 1.0)

    def _mean_log_base(self) -> float:
        from scipy.special import gammaln, xlogy

        lam = self.rate
        if lam > 1e8:  # from the expansion of the entropy, ½ log 2πeλ − 1/(12λ)
            entropy = 0.5 * np.log(2.0 * np.pi * np.e * lam) - 1.0 / (12.0 * lam)
            return float(lam - lam * np.log(lam) - entropy)
        reach = 12.0 * np.sqrt(lam)
        x = np.arange(max(0.0, np.floor(lam - reach)), lam + reach + 60.0)
        log_factorial = gammaln(x + 1.0)
        return -float(np.exp(xlogy(x, lam) - lam - log_factorial) @ log_factorial)

    def sample(self, n: int = 1, random_state: RandomState = None) -> IntArray:
        """n counts, (n,)."""
        return generator(random_state).poisson(self.rate, size=count_of_draws(n))


@dataclass(frozen=True)
class Geometric(ExponentialFamily):
    """Trials up to the first success: p(x) = (1 − p)^(x−1) p for x = 1, 2, …. φ = x − 1, θ = log(1 − p), A = −log p.

    Parameters
    ----------
    p : probability of a success.

    Examples
    --------
    >>> Geometric(0.5).density([1, 2, 3]).tolist()
    [0.5, 0.25, 0.125]
    """

    p: float
    support = "positive_integers"
    natural_interval = (-float("inf"), 0.0)

    def __post_init__(self) -> None:
        p = number("p", self.p, low=0.0, high=1.0, closed=True)
        if p == 0.0:
            raise ModelError("p must be above 0: without any chance of success, x is never finite.")
        object.__setattr__(self, "p", p)

    @property
    def mean(self) -> float:
        """1 / p."""
        return 1.0 / self.p

    @property
    def var(self) -> float:
        """(1 − p) / p²."""
        return (1.0 - self.p) / self.p**2

    @property
    def natural_parameters(self) -> FloatArray:
        """[log(1 − p)]."""
        with np.errstate(divide="ignore"):
            return np.log1p([-self.p])

    @property
    def log_partition(self) -> float:
        """−log p."""
        return float(-np.log(self.p))

    @property
    def mean_parameters(self) -> FloatArray:
        """[(1 − p) / p]."""
        return np.array([(1.0 - self.p) / self.p])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """[[(1 − p) / p²]]."""
        return np.array([[self.var]])

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """p = 1 − e^θ, for θ < 0."""
        value = single("theta", theta)
        if value >= 0.0:
            raise ModelError(f"theta of a Geometric must be negative; it is {value:g}.")
        return cls(float(-np.expm1(value)))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """p = 1 / (1 + μ)."""
        value = float(vector("mu", mu, 1)[0])
        return cls(1.0 / (1.0 + number("mu", value, low=0.0, closed=True)))

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return x[..., None] - 1.0

    def sample(self, n: int = 1, random_state: RandomState = None) -> IntArray:
        """n waiting times, (n,)."""
        return generator(random_state).geometric(self.p, size=count_of_draws(n))
