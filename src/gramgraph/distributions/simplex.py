"""Families on probabilities: Beta on the unit interval, Dirichlet on the simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import frozen, number, vector
from gramgraph.distributions._moments import dirichlet_from_logs, gamma_entropy
from gramgraph.distributions.base import ExponentialFamily, count_of_draws
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, RandomState


@dataclass(frozen=True)
class Beta(ExponentialFamily):
    """p(x) = x^(a−1) (1 − x)^(b−1) / B(a, b). φ = (log x, log(1 − x)), θ = (a − 1, b − 1), A = log B(a, b).

    Parameters
    ----------
    a : pseudo-count of successes.
    b : pseudo-count of failures.

    Examples
    --------
    >>> Beta(2.0, 3.0).mean, round(Beta(2.0, 3.0).var, 12)
    (0.4, 0.04)
    """

    a: float
    b: float
    support = "unit"

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", number("a", self.a, low=0.0))
        object.__setattr__(self, "b", number("b", self.b, low=0.0))

    @property
    def mean(self) -> float:
        """a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def var(self) -> float:
        """ab / ((a + b)² (a + b + 1))."""
        n = self.a + self.b
        return self.a * self.b / (n * n * (n + 1.0))

    def quantile(self, q: Any, /) -> Any:
        """The x below which x falls with probability q; a number or an array.

        >>> round(Beta(1.0, 1.0).quantile(0.3), 12)
        0.3
        """
        from scipy.special import betaincinv

        value = betaincinv(self.a, self.b, q)
        return float(value) if np.ndim(value) == 0 else value

    @property
    def natural_parameters(self) -> FloatArray:
        """[a − 1, b − 1]."""
        return np.array([self.a - 1.0, self.b - 1.0])

    @property
    def log_partition(self) -> float:
        """log B(a, b)."""
        from scipy.special import betaln

        return float(betaln(self.a, self.b))

    @property
    def mean_parameters(self) -> FloatArray:
        """[E log x, E log(1 − x)] = ψ(a) − ψ(a + b), ψ(b) − ψ(a + b)."""
        return _mean_logs(np.array([self.a, self.b]))

    @property
    def log_partition_hessian(self) -> FloatArray:
        """diag(ψ′(a), ψ′(b)) − ψ′(a + b)."""
        return _log_cov(np.array([self.a, self.b]))

    def entropy(self) -> float:
        """log B(a, b) − (a − 1) E log x − (b − 1) E log(1 − x), without the cancellation for large a, b."""
        return _entropy(np.array([self.a, self.b]))

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """a = θ₁ + 1, b = θ₂ + 1."""
        t = vector("theta", theta, 2)
        return cls(float(t[0]) + 1.0, float(t[1]) + 1.0)

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """Solves the two digamma equations by Newton's method."""
        alpha = dirichlet_from_logs(vector("mu", mu, 2))
        return cls(float(alpha[0]), float(alpha[1]))

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.stack([np.log(x), np.log1p(-x)], axis=-1)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n,)."""
        return generator(random_state).beta(self.a, self.b, size=count_of_draws(n))


@dataclass(frozen=True, eq=False)
class Dirichlet(ExponentialFamily):
    """p(x) = Γ(Σα)/Π Γ(α_k) Π x_k^(α_k−1) on the simplex. φ = log x, θ = α − 1, A = Σ log Γ(α_k) − log Γ(Σα).

    Densities are with respect to the first K − 1 coordinates.

    Parameters
    ----------
    alpha : (k,) positive concentrations.

    Examples
    --------
    >>> Dirichlet([1.0, 2.0, 1.0]).mean.tolist()
    [0.25, 0.5, 0.25]
    """

    alpha: FloatArray  # (K,)
    support = "simplex"
    event_ndim = 1

    def __post_init__(self) -> None:
        alpha = vector("alpha", self.alpha)
        if len(alpha) < 2 or (alpha <= 0.0).any():
            raise ModelError(f"alpha must be at least two positive numbers; it is {alpha.tolist()}.")
        object.__setattr__(self, "alpha", frozen(alpha))

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(K,)."""
        return self.alpha.shape

    @property
    def mean(self) -> FloatArray:
        """α / Σα, (K,)."""
        return self.alpha / self.alpha.sum()

    @property
    def cov(self) -> FloatArray:
        """(diag(m) − m mᵀ) / (Σα + 1), (K, K)."""
        m = self.mean
        return (np.diag(m) - np.outer(m, m)) / (self.alpha.sum() + 1.0)

    def marginal(self, k: int, /) -> Beta:
        """x_k alone is Beta(α_k, Σα − α_k).

        >>> Dirichlet([1.0, 2.0, 1.0]).marginal(1)
        Beta(a=2.0, b=2.0)
        """
        K = len(self.alpha)
        if not isinstance(k, (int, np.integer)) or not -K <= k < K:
            raise ModelError(f"k must be a whole number from 0 to {K - 1}, not {k!r}")
        return Beta(float(self.alpha[k]), float(np.delete(self.alpha, k).sum()))

    @property
    def natural_parameters(self) -> FloatArray:
        """α − 1, (K,)."""
        return self.alpha - 1.0

    @property
    def log_partition(self) -> float:
        """Σ log Γ(α_k) − log Γ(Σα)."""
        from scipy.special import gammaln

        return float(gammaln(self.alpha).sum() - gammaln(self.alpha.sum()))

    @property
    def mean_parameters(self) -> FloatArray:
        """E log x_k = ψ(α_k) − ψ(Σα), (K,)."""
        return _mean_logs(self.alpha)

    @property
    def log_partition_hessian(self) -> FloatArray:
        """diag(ψ′(α)) − ψ′(Σα), (K, K)."""
        return _log_cov(self.alpha)

    def entropy(self) -> float:
        """log B(α) − Σ (α_k − 1) E log x_k, without the cancellation for large α."""
        return _entropy(self.alpha)

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """α = θ + 1."""
        return cls(vector("theta", theta) + 1.0)

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """Solves ψ(α_k) − ψ(Σα) = μ_k by Newton's method."""
        return cls(dirichlet_from_logs(vector("mu", mu)))

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.log(x)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n, K)."""
        return generator(random_state).dirichlet(self.alpha, size=count_of_draws(n))


def _mean_logs(alpha: FloatArray) -> FloatArray:
    from scipy.special import digamma

    return np.asarray(digamma(alpha) - digamma(alpha.sum()))


def _entropy(alpha: FloatArray) -> float:
    """With g the entropy of Gamma(a, 1): Σ g(α_k) − g(Σα) − (K − 1) ψ(Σα), whose terms are logarithms of α."""
    from scipy.special import digamma

    total = alpha.sum()
    return float(gamma_entropy(alpha).sum() - gamma_entropy(total) - (len(alpha) - 1) * digamma(total))


def _log_cov(alpha: FloatArray) -> FloatArray:
    from scipy.special import polygamma

    return np.diag(polygamma(1, alpha)) - float(polygamma(1, alpha.sum()))
