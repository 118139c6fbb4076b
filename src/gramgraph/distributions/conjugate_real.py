"""Conjugate models of real numbers, vectors and angles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gramgraph.distributions._check import covariance_like, frozen, number, vector
from gramgraph.distributions._moments import log_bessel
from gramgraph.distributions.conjugate import ConjugateModel, read_points
from gramgraph.distributions.directional import VonMises
from gramgraph.distributions.line import Normal
from gramgraph.distributions.matrices import InverseWishart
from gramgraph.distributions.positive import Gamma
from gramgraph.distributions.predictive import MultivariateT, StudentT, VonMisesPredictive
from gramgraph.typing import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class NormalNormal(ConjugateModel):
    """x ~ N(m, noise) with known noise, m ~ N(mean, variance). Precisions add, means are averaged by precision.

    Parameters
    ----------
    mean, variance : of the parameter.
    noise : of the observations.

    Examples
    --------
    >>> model = NormalNormal(0.0, 1.0, noise=0.5).update([3.0])
    >>> model.posterior
    Normal(mean=2.0, variance=0.3333333333333333)
    >>> model.predictive
    Normal(mean=2.0, variance=0.8333333333333333)
    """

    mean: float
    variance: float
    noise: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean))
        object.__setattr__(self, "variance", number("variance", self.variance, low=0.0))
        object.__setattr__(self, "noise", number("noise", self.noise, low=0.0))

    @property
    def posterior(self) -> Normal:
        """The unknown mean m."""
        return Normal(self.mean, self.variance)

    @property
    def predictive(self) -> Normal:
        """The next number: N(mean, variance + noise)."""
        return Normal(self.mean, self.variance + self.noise)

    def _read(self, data: Any) -> FloatArray:
        return read_points(data, (), "NormalNormal")

    def _absorb(self, x: FloatArray, w: FloatArray) -> Self:
        n = float(w.sum())
        center = float(w @ x) / n
        gain = self.variance / (self.variance + self.noise / n)
        return type(self)(
            self.mean + gain * (center - self.mean),
            self.variance * self.noise / (self.noise + n * self.variance),
            self.noise,
        )

    def _log_base(self, x: FloatArray) -> Any:
        return -0.5 * x * x / self.noise - 0.5 * (_LOG_2PI + np.log(self.noise))

    def log_evidence(self, data: Any, *, weights: Any = None) -> float:
        """log p(data), taken about the prior mean: far from zero, x² alone would cost all digits."""
        if self.mean == 0.0:
            return super().log_evidence(data, weights=weights)
        x = self._read(data)
        return type(self)(0.0, self.variance, self.noise).log_evidence(x - self.mean, weights=weights)

    def _scaled(self, factor: float) -> Self:
        return type(self)(self.mean, self.variance / factor, self.noise)


@dataclass(frozen=True)
class NormalGamma(ConjugateModel):
    """x ~ N(m, 1/λ) with both unknown: λ ~ Gamma(a, b), m | λ ~ N(mean, 1/(count λ)). It predicts Student's t.

    Parameters
    ----------
    mean : the best guess of m
    count : κ > 0, how many observations that guess is worth
    shape, rate : a and b of the precision; 2a is how many observations the guess b/a of the variance is worth

    Examples
    --------
    >>> model = NormalGamma(0.0, 1.0, 2.0, 2.0).update([1.0, 3.0])
    >>> round(model.mean, 4), model.count, model.shape, round(model.rate, 4)
    (1.3333, 3.0, 3.0, 4.3333)
    >>> model.predictive.dof
    6.0
    """

    mean: float
    count: float
    shape: float
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean))
        for name in ("count", "shape", "rate"):
            object.__setattr__(self, name, number(name, getattr(self, name), low=0.0))

    @property
    def log_normalizer(self) -> float:
        """log Γ(a) − a log b + ½ log(2π/κ)."""
        return self.precision.log_partition + 0.5 * (_LOG_2PI - float(np.log(self.count)))

    @property
    def precision(self) -> Gamma:
        """The distribution of λ."""
        return Gamma(self.shape, self.rate)

    @property
    def posterior(self) -> tuple[StudentT, Gamma]:
        """The marginal distributions of m and of λ."""
        width = float(np.sqrt(self.rate / (self.shape * self.count)))
        return StudentT(2.0 * self.shape, self.mean, width), self.precision

    def log_density(self, m: Any, precision: Any, /) -> Any:
        """log p(m, λ), elementwise.

        >>> round(NormalGamma(0.0, 1.0, 2.0, 2.0).log_density(0.0, 1.0), 4)
        -1.5326
        """
        from scipy.special import xlogy

        m, lam = np.asarray(m, dtype=np.float64), np.asarray(precision, dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            out = xlogy(self.shape - 0.5, lam) - lam * (self.rate + 0.5 * self.count * (m - self.mean) ** 2)
        out = np.where(lam > 0.0, out - self.log_normalizer, -np.inf)
        return float(out) if out.ndim == 0 else out

    @property
    def predictive(self) -> StudentT:
        """The next number: t with 2a degrees of freedom and scale² b (κ + 1)/(a κ)."""
        width = float(np.sqrt(self.rate * (self.count + 1.0) / (self.shape * self.count)))
        return StudentT(2.0 * self.shape, self.mean, width)

    def _read(self, data: Any) -> FloatArray:
        return read_points(data, (), "NormalGamma")

    def _absorb(self, x: FloatArray, w: FloatArray) -> Self:
        n = float(w.sum())
        center = float(w @ x) / n
        spread = float(w @ (x - center) ** 2)
        count = self.count + n
        gap = center - self.mean
        return type(self)(
            self.mean + gap * n / count,
            count,
            self.shape + 0.5 * n,
            self.rate + 0.5 * spread + 0.5 * self.count * n / count * gap * gap,
        )

    def _log_base(self, x: FloatArray) -> Any:
        return -0.5 * _LOG_2PI

    def _scaled(self, factor: float) -> Self:
        return type(self)(self.mean, factor * self.count, factor * self.shape, factor * self.rate)


@dataclass(frozen=True, eq=False)
class NormalInverseWishart(ConjugateModel):
    """x ~ N(m, Σ) on R^d with both unknown: Σ ~ InverseWishart(ν, Ψ), m | Σ ~ N(mean, Σ/count).

    Parameters
    ----------
    mean : (d,), the best guess of m
    count : κ > 0, how many observations that guess is worth
    dof, scale : ν > d − 1 and Ψ (d, d)

    Examples
    --------
    >>> model = NormalInverseWishart([0.0, 0.0], 1.0, 3.0, [[1.0, 0.0], [0.0, 1.0]]).update([[1.0, 1.0], [3.0, 1.0]])
    >>> model.count, model.dof, model.scale.round(4).tolist()
    (3.0, 5.0, [[5.6667, 1.3333], [1.3333, 1.6667]])
    """

    mean: FloatArray  # (d,)
    count: float
    dof: float
    scale: FloatArray  # (d, d)
    event_ndim = 1

    def __post_init__(self) -> None:
        mean = vector("mean", self.mean)
        spread = InverseWishart(self.dof, covariance_like("scale", self.scale, len(mean)))
        object.__setattr__(self, "mean", frozen(mean))
        object.__setattr__(self, "count", number("count", self.count, low=0.0))
        object.__setattr__(self, "dof", spread.dof)
        object.__setattr__(self, "scale", spread.scale)

    @property
    def covariance(self) -> InverseWishart:
        """The distribution of Σ."""
        return InverseWishart(self.dof, self.scale)

    @property
    def log_normalizer(self) -> float:
        """That of the inverse Wishart, and (d/2) log(2π/κ)."""
        return self.covariance.log_partition + 0.5 * len(self.mean) * (_LOG_2PI - float(np.log(self.count)))

    @property
    def posterior(self) -> tuple[MultivariateT, InverseWishart]:
        """The marginal distributions of m and of Σ."""
        free = self.dof - len(self.mean) + 1.0
        return MultivariateT(free, self.mean, self.scale / (self.count * free)), self.covariance

    @property
    def predictive(self) -> MultivariateT:
        """The next vector: t with ν − d + 1 degrees of freedom and shape Ψ (κ + 1)/(κ (ν − d + 1))."""
        free = self.dof - len(self.mean) + 1.0
        return MultivariateT(free, self.mean, self.scale * ((self.count + 1.0) / (self.count * free)))

    def _read(self, data: Any) -> FloatArray:
        return read_points(data, self.mean.shape, "NormalInverseWishart")

    def _absorb(self, x: FloatArray, w: FloatArray) -> Self:
        n = float(w.sum())
        center = (w @ x) / n
        D = (x - center) * np.sqrt(w)[:, None]
        count = self.count + n
        gap = center - self.mean
        scale = self.scale + D.T @ D + self.count * n / count * np.outer(gap, gap)
        return type(self)(self.mean + gap * (n / count), count, self.dof + n, scale)

    def _log_base(self, x: FloatArray) -> Any:
        return -0.5 * len(self.mean) * _LOG_2PI

    def _scaled(self, factor: float) -> Self:
        d = len(self.mean)
        dof = d - 1.0 + factor * (self.dof - d + 1.0)  # ν − (d − 1) is what counts observations
        return type(self)(self.mean, factor * self.count, dof, factor * self.scale)


@dataclass(frozen=True)
class VonMisesMean(ConjugateModel):
    """Angles x ~ VonMises(m, noise) with a known concentration `noise`, m ~ VonMises(mean, concentration).

    The natural parameter κ (cos m, sin m) of the posterior grows by noise · (cos x, sin x) with every angle.

    Parameters
    ----------
    mean : of the parameter.
    concentration : of the direction.
    noise : of the observations.

    Examples
    --------
    >>> model = VonMisesMean(0.0, 1.0, noise=2.0).update([0.5, 0.7])
    >>> round(model.mean, 4), round(model.concentration, 4)
    (0.483, 4.8384)
    """

    mean: float
    concentration: float
    noise: float

    def __post_init__(self) -> None:
        prior = VonMises(self.mean, self.concentration)
        object.__setattr__(self, "mean", prior.mean)
        object.__setattr__(self, "concentration", prior.concentration)
        object.__setattr__(self, "noise", number("noise", self.noise, low=0.0))

    @property
    def posterior(self) -> VonMises:
        """The mean direction m."""
        return VonMises(self.mean, self.concentration)

    @property
    def predictive(self) -> VonMisesPredictive:
        """The next angle."""
        return VonMisesPredictive(self.mean, self.concentration, self.noise)

    def _read(self, data: Any) -> FloatArray:
        return read_points(data, (), "VonMisesMean")

    def _absorb(self, x: FloatArray, w: FloatArray) -> Self:
        theta = self.posterior.natural_parameters + self.noise * np.array([w @ np.cos(x), w @ np.sin(x)])
        found = VonMises.from_natural(theta)
        return type(self)(found.mean, found.concentration, self.noise)

    def _log_base(self, x: FloatArray) -> Any:
        return -_LOG_2PI - log_bessel(0.0, self.noise)

    def _scaled(self, factor: float) -> Self:
        return type(self)(self.mean, factor * self.concentration, self.noise)
