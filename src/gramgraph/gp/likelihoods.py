"""Log-concave likelihoods p(y | f) of a latent value f: log density, three derivatives, integrals against a Gaussian.

All functions are elementwise over vectors. With a log-concave likelihood the posterior of a Gaussian process has one
mode, −∂²log p/∂f² is never negative, and Laplace's approximation and expectation propagation are stable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramgraph._validation import check_positive
from gramgraph.gp._integrals import log_sigmoid_integral, sigmoid_moments, softmax_integral
from gramgraph.gp._likelihood import Derivatives, Likelihood, Moments, safe_exp, sigmoid, targets
from gramgraph.gp._log_link import GammaSizes, NegativeBinomial, Poisson
from gramgraph.typing import Array, FloatArray

__all__ = [
    "CLogLog",
    "Derivatives",
    "GammaSizes",
    "GaussianNoise",
    "Likelihood",
    "Logistic",
    "Moments",
    "NegativeBinomial",
    "Poisson",
    "Probit",
    "Softmax",
]


# --- two classes, y = −1 or +1 --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Binary(Likelihood):
    def check(self, y: Any) -> FloatArray:
        """Labels −1 and +1."""
        return targets(y, type(self).__name__, lambda v: np.abs(v) == 1.0, "labels −1 and +1")

    def spread(self, f: Array) -> FloatArray:
        """p (1 − p) for labels that count as 0 and 1."""
        p = self.response(f)
        return p * (1.0 - p)


@dataclass(frozen=True)
class Logistic(_Binary):
    """p(y | f) = 1 / (1 + exp(−y f)), y = ±1.

    Examples
    --------
    >>> Logistic().averaged([2.0], [0.0]).round(4), Logistic().averaged([2.0], [9.0]).round(4)
    (array([0.8808]), array([0.7174]))
    """

    exact_moments: ClassVar[bool] = True

    def log_density(self, y: Array, f: Array) -> FloatArray:
        """−log(1 + exp(−y f)), without overflow."""
        return -np.logaddexp(0.0, -np.asarray(y) * f)

    def derivatives(self, y: Array, f: Array) -> Derivatives:
        """y σ(−y f), −σ(f) σ(−f), σ(f) σ(−f) tanh(f/2): no difference of nearly equal numbers."""
        w = sigmoid(f) * sigmoid(-np.asarray(f))
        return Derivatives(y * sigmoid(-np.asarray(y) * f), -w, w * np.tanh(0.5 * np.asarray(f)))

    def response(self, f: Array) -> FloatArray:
        """σ(f)."""
        return sigmoid(f)

    def log_predictive(self, y: Array, mean: Array, var: Array) -> FloatArray:
        """log ∫ σ(y f) N(f; mean, var) df to about 1e-12, finite however small the probability is."""
        return log_sigmoid_integral(np.asarray(y) * mean, np.asarray(var))

    def moments(self, y: Array, mean: Array, var: Array) -> Moments:
        """By two quadratures: in the scale of the Gaussian where it is narrow, of the sigmoid where it is wide."""
        log_z, slope, curvature = sigmoid_moments(np.asarray(y) * mean, np.asarray(var))
        return Moments(log_z, y * slope, curvature)

    def averaged(self, mean: Array, var: Array) -> FloatArray:
        """∫ σ(f) N(f; mean, var) df."""
        return np.exp(log_sigmoid_integral(np.asarray(mean, dtype=np.float64), np.asarray(var, dtype=np.float64)))


_FAR = -40.0  # left of this, φ/Φ and its derivatives come from their asymptotic series


def _mills(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """ρ = φ(z)/Φ(z), w = ρ (z + ρ) = −(log Φ)″ and (log Φ)‴, for every z."""
    from scipy.special import erfcx

    x = np.maximum(-z, -_FAR)
    far = z < _FAR
    with np.errstate(over="ignore"):  # erfcx is infinite far to the right, and ρ is then 0
        near = np.where(far, 0.0, np.minimum(z, 50.0))  # beyond 40, ρ is 0 for double precision
        rho = np.sqrt(2.0 / np.pi) / erfcx(-near / np.sqrt(2.0))
    w = rho * (near + rho)
    third = rho * ((near + rho) * (near + 2.0 * rho) - 1.0)
    i2 = (1.0 / x) ** 2
    rho = np.where(far, x * (1.0 + i2 * (1.0 - i2 * (2.0 - i2 * (10.0 - 74.0 * i2)))), rho)
    w = np.where(far, 1.0 - i2 * (1.0 - i2 * (6.0 - 50.0 * i2)), w)
    third = np.where(far, (2.0 - i2 * (24.0 - 300.0 * i2)) * i2 / x, third)
    return rho, np.clip(w, 0.0, 1.0), third


@dataclass(frozen=True)
class Probit(_Binary):
    """p(y | f) = Φ(y f), y = ±1, Φ the distribution function of N(0, 1). Its integrals are closed formulas.

    Examples
    --------
    >>> Probit().averaged([2.0], [3.0]).round(4)
    array([0.8413])
    """

    exact_moments: ClassVar[bool] = True

    def log_density(self, y: Array, f: Array) -> FloatArray:
        """log Φ(y f)."""
        from scipy.special import log_ndtr

        return log_ndtr(np.asarray(y, dtype=np.float64) * f)

    def derivatives(self, y: Array, f: Array) -> Derivatives:
        """With ρ = φ(z)/Φ(z) and z = y f: y ρ, −ρ (z + ρ), y ρ ((z + ρ)(z + 2ρ) − 1)."""
        rho, w, third = _mills(np.asarray(y, dtype=np.float64) * f)
        return Derivatives(y * rho, -w, y * third)

    def response(self, f: Array) -> FloatArray:
        """Φ(f)."""
        from scipy.special import ndtr

        return ndtr(f)

    def moments(self, y: Array, mean: Array, var: Array) -> Moments:
        """Z = Φ(y μ / √(1 + v))."""
        from scipy.special import log_ndtr

        scale = np.sqrt(1.0 + np.asarray(var))
        z = np.asarray(y) * mean / scale
        rho, w, _ = _mills(z)
        return Moments(log_ndtr(z), y * rho / scale, w / scale**2)

    def averaged(self, mean: Array, var: Array) -> FloatArray:
        """Φ(μ / √(1 + v))."""
        return self.response(np.asarray(mean) / np.sqrt(1.0 + np.asarray(var)))


@dataclass(frozen=True)
class CLogLog(_Binary):
    """p(+1 | f) = 1 − exp(−exp(f)): whether an event with log rate f has happened.

    Examples
    --------
    >>> CLogLog().response([0.0]).round(4)
    array([0.6321])
    """

    def log_density(self, y: Array, f: Array) -> FloatArray:
        """log(1 − exp(−eᶠ)) for y = +1, −eᶠ for y = −1."""
        u = safe_exp(f)
        small = u < 1e-8  # there log(1 − exp(−u)) = log u − u/2
        yes = np.where(small, np.asarray(f) - 0.5 * u, np.log(-np.expm1(-np.where(small, 1.0, u))))
        return np.where(np.asarray(y) > 0, yes, -u)

    def derivatives(self, y: Array, f: Array) -> Derivatives:
        """With u = eᶠ and h = u / (eᵘ − 1): h, h (1 − u − h), … for y = +1; −u three times for y = −1."""
        u = safe_exp(f)
        small = u < 1e-4
        with np.errstate(over="ignore"):  # both branches are computed, and one is taken
            h = np.where(small, 1.0 - u / 2.0 + u * u / 12.0, u / np.expm1(np.where(small, 1.0, u)))
            q = np.where(small, -u / 2.0 - u * u / 12.0, 1.0 - u - h)
        second = h * q
        yes = np.asarray(y) > 0
        first, second, third = h, second, second * q - h * (u + second)
        third = np.where(h > 0.0, third, 0.0)  # 0 · ∞ where the event is certain
        return Derivatives(
            np.where(yes, first, -u), np.where(yes, np.minimum(second, 0.0), -u), np.where(yes, third, -u)
        )

    def response(self, f: Array) -> FloatArray:
        """1 − exp(−eᶠ)."""
        return -np.expm1(-safe_exp(f))


# --- several classes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Softmax:
    """p(y = c | f) = exp(f_c) / Σ_k exp(f_k) for class numbers y and one latent value per class, f (n, C).

    Parameters
    ----------
    n_classes : number of classes.

    Examples
    --------
    >>> Softmax(3).response(np.array([[0.0, 0.0, 1000.0]]))
    array([[0., 0., 1.]])
    """

    n_classes: int

    def log_density(self, y: Array, f: Array) -> FloatArray:
        """f_y − log Σ exp(f), (n,)."""
        return np.take_along_axis(self.log_response(f), np.asarray(y)[:, None], axis=1)[:, 0]

    def gradient(self, y: Array, f: Array) -> FloatArray:
        """[y = c] − p(c | f), (n, C)."""
        out = -self.response(f)
        out[np.arange(len(out)), y] += 1.0
        return out

    def log_response(self, f: Array) -> FloatArray:
        """log p(c | f), (…, C)."""
        moved = np.asarray(f) - np.max(f, axis=-1, keepdims=True)
        return moved - np.log(np.exp(moved).sum(axis=-1, keepdims=True))

    def response(self, f: Array) -> FloatArray:
        """p(c | f), (…, C)."""
        p = np.exp(np.asarray(f) - np.max(f, axis=-1, keepdims=True))
        return p / p.sum(axis=-1, keepdims=True)

    def averaged(self, mean: Array, cov: Array) -> FloatArray:
        """E p(c | f) for f ~ N(mean, cov), (m, C) and (m, C, C); see `gramgraph.gp._integrals.softmax_integral`."""
        return softmax_integral(np.asarray(mean, dtype=np.float64), np.asarray(cov, dtype=np.float64))


# --- numbers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GaussianNoise(Likelihood):
    """y ~ N(f, variance): both approximations are then exact.

    Parameters
    ----------
    variance : of the noise.

    Examples
    --------
    >>> GaussianNoise(0.5).averaged_spread([0.0], [1.0])
    array([1.5])
    """

    exact_moments: ClassVar[bool] = True

    variance: float = 1.0

    def __post_init__(self) -> None:
        check_positive("GaussianNoise.variance", self.variance)

    def log_density(self, y: Array, f: Array) -> FloatArray:
        """−(y − f)²/(2v) − ½ log 2πv."""
        return -0.5 * ((np.asarray(y) - f) ** 2 / self.variance + np.log(2.0 * np.pi * self.variance))

    def derivatives(self, y: Array, f: Array) -> Derivatives:
        """(y − f)/v, −1/v, 0."""
        first = (np.asarray(y) - f) / self.variance
        return Derivatives(first, np.full_like(first, -1.0 / self.variance), np.zeros_like(first))

    def response(self, f: Array) -> FloatArray:
        """f."""
        return np.asarray(f, dtype=np.float64)

    def check(self, y: Any) -> FloatArray:
        """Numbers."""
        return targets(y, "GaussianNoise", np.isfinite, "finite numbers")

    def moments(self, y: Array, mean: Array, var: Array) -> Moments:
        """Z = N(y; μ, v + variance)."""
        total = self.variance + np.asarray(var)
        miss = np.asarray(y) - mean
        return Moments(-0.5 * (miss**2 / total + np.log(2.0 * np.pi * total)), miss / total, 1.0 / total)

    def averaged(self, mean: Array, var: Array) -> FloatArray:
        """μ."""
        return np.asarray(mean, dtype=np.float64)

    def averaged_spread(self, mean: Array, var: Array) -> FloatArray:
        """v + variance."""
        return np.asarray(var) + self.variance
