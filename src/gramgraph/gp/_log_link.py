"""Likelihoods of counts and sizes, whose mean is exp(f)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._validation import check_positive
from gramgraph.gp._likelihood import Derivatives, Likelihood, safe_exp, sigmoid, targets
from gramgraph.typing import Array, FloatArray


def _grown(own: Any, m: FloatArray, factor: FloatArray) -> FloatArray:
    """own + m² · factor, at most 1e300: far from the data the mean itself may be near the largest number."""
    with np.errstate(over="ignore"):
        return np.minimum(own + m * m * factor, 1e300)


class _LogLink(Likelihood):
    """The mean of y given f is exp(f)."""

    def response(self, f: Array) -> FloatArray:
        """eᶠ."""
        return safe_exp(f)

    def averaged(self, mean: Array, var: Array) -> FloatArray:
        """exp(μ + v/2)."""
        return safe_exp(np.asarray(mean) + 0.5 * np.asarray(var))


@dataclass(frozen=True)
class Poisson(_LogLink):
    """y ~ Poisson(exp(f)).

    Examples
    --------
    >>> mean = Poisson().averaged([0.0], [0.5])  # exp(0.5 / 2)
    >>> mean.round(4)
    array([1.284])
    """

    def log_density(self, y: Array, f: Array) -> FloatArray:
        """y f − eᶠ − log y!."""
        from scipy.special import gammaln

        return np.asarray(y) * f - safe_exp(f) - gammaln(np.asarray(y) + 1.0)

    def derivatives(self, y: Array, f: Array) -> Derivatives:
        """y − eᶠ, −eᶠ, −eᶠ."""
        rate = safe_exp(f)
        return Derivatives(y - rate, -rate, -rate)

    def spread(self, f: Array) -> FloatArray:
        """eᶠ."""
        return safe_exp(f)

    def check(self, y: Any) -> FloatArray:
        """Counts; values between whole numbers are taken as they are, as a rate would be."""
        return targets(y, "Poisson", lambda v: v >= 0.0, "numbers of at least 0")

    def averaged_spread(self, mean: Array, var: Array) -> FloatArray:
        """m + m² (eᵛ − 1), m the averaged rate."""
        m = self.averaged(mean, var)
        return _grown(m, m, np.expm1(np.minimum(np.asarray(var), 700.0)))


@dataclass(frozen=True)
class NegativeBinomial(_LogLink):
    """Counts with mean m = exp(f) and variance m + dispersion · m².

    Parameters
    ----------
    dispersion : of the variance beyond that of a Poisson number.

    Examples
    --------
    >>> NegativeBinomial(0.5).spread([0.0])
    array([1.5])
    """

    dispersion: float = 1.0

    def __post_init__(self) -> None:
        check_positive("NegativeBinomial.dispersion", self.dispersion)

    def log_density(self, y: Array, f: Array) -> FloatArray:
        """With r = 1/dispersion: log Γ(y+r)/(Γ(r) y!) + y f + r log r − (y + r) log(r + eᶠ)."""
        from scipy.special import gammaln

        r, y = 1.0 / self.dispersion, np.asarray(y)
        constant = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0) + r * np.log(r)
        return constant + y * f - (y + r) * np.logaddexp(np.log(r), f)

    def derivatives(self, y: Array, f: Array) -> Derivatives:
        """With p = σ(f − log r): y − (y + r) p, −(y + r) p (1 − p), −(y + r) p (1 − p)(1 − 2p)."""
        r, y = 1.0 / self.dispersion, np.asarray(y)
        moved = np.asarray(f) - np.log(r)
        p, w = sigmoid(moved), sigmoid(moved) * sigmoid(-moved)
        return Derivatives(y - (y + r) * p, -(y + r) * w, (y + r) * w * np.tanh(0.5 * moved))

    def spread(self, f: Array) -> FloatArray:
        """m + dispersion · m²."""
        m = safe_exp(f)
        return m + self.dispersion * m * m

    def check(self, y: Any) -> FloatArray:
        """Counts."""
        return targets(y, "NegativeBinomial", lambda v: v >= 0.0, "numbers of at least 0")

    def averaged_spread(self, mean: Array, var: Array) -> FloatArray:
        """m + m² ((1 + dispersion) eᵛ − 1), m the averaged mean."""
        m, grown = self.averaged(mean, var), np.expm1(np.minimum(np.asarray(var), 700.0))
        return _grown(m, m, grown + self.dispersion * (1.0 + grown))


@dataclass(frozen=True)
class GammaSizes(_LogLink):
    """Positive sizes with mean exp(f) and variance mean² / shape; shape 1 is the exponential distribution.

    Parameters
    ----------
    shape : mean² / variance.

    Examples
    --------
    >>> GammaSizes(2.0).derivatives([1.0], [0.0]).second
    array([-2.])
    """

    shape: float = 1.0

    def __post_init__(self) -> None:
        check_positive("GammaSizes.shape", self.shape)

    def log_density(self, y: Array, f: Array) -> FloatArray:
        """k log k − log Γ(k) + (k − 1) log y − k f − k y e⁻ᶠ."""
        from scipy.special import gammaln

        k, f = self.shape, np.asarray(f)
        return k * np.log(k) - gammaln(k) + (k - 1.0) * np.log(y) - k * f - k * np.asarray(y) * safe_exp(-f)

    def derivatives(self, y: Array, f: Array) -> Derivatives:
        """k y e⁻ᶠ − k, −k y e⁻ᶠ, k y e⁻ᶠ."""
        t = self.shape * np.asarray(y) * safe_exp(-np.asarray(f))
        return Derivatives(t - self.shape, -t, t)

    def spread(self, f: Array) -> FloatArray:
        """e²ᶠ / shape."""
        return safe_exp(2.0 * np.asarray(f)) / self.shape

    def check(self, y: Any) -> FloatArray:
        """Positive numbers."""
        return targets(y, "GammaSizes", lambda v: v > 0.0, "positive numbers")

    def averaged_spread(self, mean: Array, var: Array) -> FloatArray:
        """m² ((1 + 1/shape) eᵛ − 1), m the averaged mean."""
        m, grown = self.averaged(mean, var), np.expm1(np.minimum(np.asarray(var), 700.0))
        return _grown(0.0, m, grown + (1.0 + grown) / self.shape)
