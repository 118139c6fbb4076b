"""From moments back to parameters: inverses of digamma differences and of ratios of Bessel functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray

_TINY = 1e-280  # below this a scaled Bessel function has lost digits


def inverse_digamma(y: FloatArray) -> FloatArray:
    """x > 0 with ψ(x) = y, elementwise; five Newton steps from Minka's start reach rounding."""
    from scipy.special import digamma, polygamma

    y = np.asarray(y, dtype=np.float64)
    with np.errstate(over="ignore", divide="ignore"):
        x = np.where(y >= -2.22, np.exp(np.minimum(y, 700.0)) + 0.5, -1.0 / (y + np.euler_gamma))
    for _ in range(8):
        x = np.maximum(x - (digamma(x) - y) / polygamma(1, x), 1e-3 * x)
    return x


def gamma_entropy(a: Any) -> Any:
    """a + log Γ(a) + (1 − a) ψ(a), the entropy of Gamma(a, 1), elementwise.

    Its terms grow as a log a and cancel to ½ log 2πea: from a = 250 on the expansion in 1/a is exact to rounding.
    """
    from scipy.special import digamma, gammaln

    a = np.asarray(a, dtype=np.float64)
    small, r = np.minimum(a, 250.0), 1.0 / np.maximum(a, 250.0)
    series = 0.5 * (np.log(2.0 * np.pi) + 1.0 - np.log(r)) - r * (1 / 3 + r * (1 / 12 + r * (1 / 90 - r / 120)))
    return np.where(a < 250.0, small + gammaln(small) + (1.0 - small) * digamma(small), series)


def multi_digamma(n: float, d: int) -> float:
    """ψ_d(n) = Σ_{j<d} ψ(n − j/2), the derivative of the log multivariate gamma function."""
    from scipy.special import digamma

    return float(digamma(n - 0.5 * np.arange(d)).sum())


def multi_trigamma(n: float, d: int) -> float:
    """Derivative of ψ_d."""
    from scipy.special import polygamma

    return float(polygamma(1, n - 0.5 * np.arange(d)).sum())


def shape_from_gap(gap: float, d: int = 1, what: str = "data") -> float:
    """n > (d − 1)/2 with d log n − ψ_d(n) = gap: half the degrees of freedom of a Wishart, the shape of a Gamma.

    The left side falls from ∞ to 0, so every positive gap has one solution; a gap of zero means data without spread.
    """
    from scipy.optimize import brentq

    if not gap > 1e-13:
        raise ModelError(
            f"The {what} have no spread (log of the mean = mean of the logs), so that the likelihood grows without "
            f"bound. Try: more data, or a prior."
        )
    floor = 0.5 * (d - 1)

    def miss(u: float) -> float:
        n = floor + np.exp(u)
        return d * np.log(n) - multi_digamma(n, d) - gap

    low, high = -1.0, 1.0
    while miss(low) < 0.0 and low > -690.0:
        low = 2.0 * low
    while miss(high) > 0.0:
        high = 2.0 * high
    u = float(brentq(miss, max(low, -690.0), high, xtol=1e-13, rtol=1e-14))
    n = floor + float(np.exp(u))
    slope = d / n - multi_trigamma(n, d)
    better = n - miss(u) / slope
    return better if better > floor else n


def dirichlet_from_logs(g: FloatArray, what: str = "data") -> FloatArray:
    """α (k,) with ψ(α_i) − ψ(Σ α) = g_i: fixed point steps (always upward), then Newton with the rank-one Hessian."""
    from scipy.special import digamma, polygamma

    if np.exp(g).sum() >= 1.0 - 1e-13 or not np.isfinite(g).all():
        raise ModelError(
            f"The {what} have no spread, so that the likelihood grows without bound. Try: more data, or a prior."
        )
    alpha = np.ones(len(g))
    for _ in range(30):
        alpha = inverse_digamma(digamma(alpha.sum()) + g)
    for _ in range(200):
        miss = digamma(alpha.sum()) - digamma(alpha) + g  # gradient of the mean log likelihood
        q, z = -polygamma(1, alpha), float(polygamma(1, alpha.sum()))
        b = (miss / q).sum() / (1.0 / z + (1.0 / q).sum())
        step = (miss - b) / q
        room = np.where(step > 0.0, alpha / np.where(step > 0.0, step, 1.0), np.inf)
        alpha = alpha - min(1.0, 0.9 * float(room.min())) * step
        if np.abs(step).max() <= 1e-15 * alpha.sum() or np.abs(step / alpha).max() <= 1e-14:
            break
    return alpha


# --- Bessel functions -------------------------------------------------------------------------------------------------


def log_bessel(nu: float, kappa: float) -> float:
    """log (I_ν(κ) κ^−ν), finite at κ = 0 and where I_ν itself underflows."""
    from scipy.special import gammaln, ive

    if kappa > 1.0:
        value = float(ive(nu, kappa))
        if value > _TINY:
            return float(np.log(value)) + kappa - nu * float(np.log(kappa))
    # Σ_k (κ²/4)^k / (k! (ν+1)_k): the largest term is before k = κ/2, and I_ν underflows only for κ well below ν
    k = np.arange(int(kappa) + 60)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(k == 0, 0.0, k * np.log(0.25 * kappa * kappa))
    terms = power - gammaln(k + 1.0) - (gammaln(nu + 1.0 + k) - gammaln(nu + 1.0))
    return -nu * float(np.log(2.0)) - float(gammaln(nu + 1.0)) + float(np.logaddexp.reduce(terms))


def bessel_ratio(d: int, kappa: float) -> float:
    """A_d(κ) = I_{d/2}(κ) / I_{d/2−1}(κ), the length of the mean of a von Mises–Fisher distribution on R^d."""
    from scipy.special import ive

    nu = 0.5 * d - 1.0
    if kappa > 1e-3:
        low = float(ive(nu, kappa))
        if low > _TINY:
            return float(ive(nu + 1.0, kappa)) / low
    value = 0.0  # continued fraction 1 / (2(ν+1)/κ + 1 / (2(ν+2)/κ + …)), from the far end
    for j in range(int(kappa) + 30, 0, -1):
        value = kappa / (2.0 * (nu + j) + kappa * value)
    return value


def bessel_ratio_slope(d: int, kappa: float) -> float:
    """A_d′(κ) = 1 − A² − (d − 1) A / κ; by series where that cancels."""
    if kappa < 1e-4:
        return 1.0 / d - 3.0 * kappa**2 / (d * d * (d + 2.0))
    if kappa > max(1e4, 200.0 * d):
        c = (d - 1.0) * (d - 3.0)
        return (d - 1.0) / (2.0 * kappa**2) - c / (4.0 * kappa**3) - 3.0 * c / (8.0 * kappa**4)
    A = bessel_ratio(d, kappa)
    return 1.0 - A * A - (d - 1.0) * A / kappa


def inverse_bessel_ratio(d: int, length: float) -> float:
    """κ with A_d(κ) = length, for a length in [0, 1)."""
    if not length < 1.0 - 1e-15:
        raise ModelError(
            "The directions are all the same, so that the likelihood grows without bound. Try: more data, or a prior."
        )
    if length <= 0.0:
        return 0.0
    kappa = length * (d - length**2) / (1.0 - length**2)
    return newton_positive(
        lambda k: bessel_ratio(d, k) - length, lambda k: bessel_ratio_slope(d, k), kappa, tolerance=1e-15
    )


def newton_positive(
    miss: Callable[[float], float], slope: Callable[[float], float], x: float, *, tolerance: float, rounds: int = 100
) -> float:
    """A root of an increasing concave function on (0, ∞) by Newton's steps, which may not leave (x/10, 10x)."""
    for _ in range(rounds):
        step = miss(x) / slope(x)
        new = min(max(x - step, 0.1 * x), 10.0 * x)
        if abs(new - x) <= tolerance * x:
            return new
        x = new
    return x
