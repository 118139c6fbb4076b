"""The conjugate prior of any family with one natural parameter, with F(α, ν) by quadrature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import array, number
from gramgraph.distributions.base import ExponentialFamily, count_of_draws
from gramgraph.distributions.conjugate import ConjugateModel, read_points
from gramgraph.distributions.predictive import Predictive
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, RandomState


@dataclass(frozen=True, eq=False)
class ConjugatePrior(ConjugateModel):
    """p(θ) ∝ exp(α θ − ν A(θ)) for the natural parameter θ of a one-parameter family, by quadrature.

    For `Bernoulli`, `Poisson`, `Geometric`, `Exponential`, `Laplace` and `ChiSquared`, also where no closed form is
    known. ν is the number of observations that the prior is worth, α/ν their average statistic. One F costs a few
    hundred evaluations of A.

    Parameters
    ----------
    family : the class of the likelihood
    alpha, nu : α, and ν > 0; α/ν must lie strictly inside the range of E φ(x)
    known : constants of the family, such as {"center": 2.0} of a Laplace

    Examples
    --------
    >>> from gramgraph.distributions import Poisson
    >>> model = ConjugatePrior(Poisson, 2.0, 1.0).update([3, 4])  # Gamma(9, 3) for the rate
    >>> round(model.predictive.density(0), 10), round(0.75**9, 10)
    (0.0750846863, 0.0750846863)
    """

    family: type[ExponentialFamily]
    alpha: float
    nu: float
    known: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ok = isinstance(self.family, type) and issubclass(self.family, ExponentialFamily)
        if not ok or self.family.natural_interval is None:
            raise ModelError(
                f"family must be a class with one natural parameter, such as Poisson; it is {self.family!r}. Others "
                f"have their own models: DirichletCategorical, NormalGamma, NormalInverseWishart."
            )
        object.__setattr__(self, "alpha", number("alpha", self.alpha))
        object.__setattr__(self, "nu", number("nu", self.nu, low=0.0))
        self._mode  # noqa: B018  an α/ν that no member has is refused here

    @cached_property
    def _mode(self) -> float:
        member = self.family.from_mean([self.alpha / self.nu], **self.known)
        theta = float(member.natural_parameters[0])
        if not np.isfinite(theta):
            raise ModelError(
                f"alpha/nu = {self.alpha / self.nu:g} is at the edge of E φ(x): the prior has no integral."
            )
        return theta

    def _log_weight(self, theta: float) -> float:
        return self.alpha * theta - self.nu * self.family.from_natural([theta], **self.known).log_partition

    @cached_property
    def _line(self) -> _Line:
        """The integrand in a coordinate that covers the whole line, centered and scaled."""
        low, high = self.family.natural_interval or (-np.inf, np.inf)
        if np.isfinite(high):
            forward, start = (lambda u: high - np.exp(-u)), -np.log(high - self._mode)
            slope: Callable[[float], float] = lambda u: -u  # noqa: E731
        elif np.isfinite(low):
            forward, start, slope = (lambda u: low + np.exp(u)), np.log(self._mode - low), (lambda u: u)
        else:
            forward, start, slope = (lambda u: u), self._mode, (lambda u: 0.0)

        def value(u: float) -> float:
            return self._log_weight(float(forward(u))) + slope(u)

        return _Line.around(value, forward, float(start))

    @cached_property
    def _log_normalizer(self) -> float:
        line = self._line
        return line.top + float(np.log(line.integrate(lambda theta: 1.0)))

    @property
    def log_normalizer(self) -> float:
        """log F(α, ν) = log ∫ exp(α θ − ν A(θ)) dθ."""
        return self._log_normalizer

    @property
    def posterior(self) -> ParameterDensity:
        """The density of θ."""
        return ParameterDensity(self)

    @property
    def predictive(self) -> GenericPredictive:
        """The next data point: h(x) F(α + φ(x), ν + 1)/F(α, ν)."""
        return GenericPredictive(self)

    def _read(self, data: Any) -> FloatArray:
        x = read_points(data, (), f"ConjugatePrior({self.family.__name__})")
        if len(x):
            self.family._check_data(x, **self.known)
        return x

    def _absorb(self, x: FloatArray, w: FloatArray) -> Self:
        phi = self.family._phi(x, **self.known)[:, 0]
        return type(self)(self.family, self.alpha + float(w @ phi), self.nu + float(w.sum()), self.known)

    def _log_base(self, x: FloatArray) -> Any:
        return self.family.from_natural([self._mode], **self.known)._log_base(x)

    def _scaled(self, factor: float) -> Self:
        return type(self)(self.family, factor * self.alpha, factor * self.nu, self.known)


@dataclass(frozen=True, eq=False)
class ParameterDensity:
    """The density of a natural parameter under a `ConjugatePrior`.

    >>> from gramgraph.distributions import Poisson
    >>> density = ConjugatePrior(Poisson, 9.0, 3.0).posterior
    >>> round(density.expect(np.exp), 8)  # the mean rate
    3.0
    """

    model: ConjugatePrior

    def log_density(self, theta: Any, /) -> Any:
        """log p(θ), elementwise; −inf where θ is not a natural parameter."""
        low, high = self.model.family.natural_interval or (-np.inf, np.inf)
        points = array("theta", theta)
        inside = (points > low) & (points < high)
        flat = [
            self.model._log_weight(float(t)) if ok else -np.inf for t, ok in zip(points.flat, inside.flat, strict=True)
        ]
        out = np.reshape(flat, points.shape) - self.model.log_normalizer
        return float(out) if out.ndim == 0 else out

    def expect(self, f: Callable[[float], float]) -> float:
        """E f(θ) by quadrature."""
        line = self.model._line
        return line.integrate(f) / line.integrate(lambda theta: 1.0)


@dataclass(frozen=True, eq=False)
class GenericPredictive(Predictive):
    """p(x) = h(x) F(α + φ(x), ν + 1)/F(α, ν), whatever the family.

    >>> from gramgraph.distributions import Bernoulli
    >>> round(ConjugatePrior(Bernoulli, 3.0, 5.0).predictive.density(1), 10)
    0.6
    """

    model: ConjugatePrior

    def log_density(self, x: Any, /) -> Any:
        """log p(x), elementwise; every point costs one integral."""
        points = array("x", x)
        member = self.model.family.from_natural([self.model._mode], **self.model.known)
        inside = np.isfinite(member.log_density(points))
        flat = [
            self.model.log_evidence([float(v)]) if ok else -np.inf
            for v, ok in zip(points.flat, np.ravel(inside), strict=True)
        ]
        out = np.reshape(flat, points.shape)
        return float(out) if out.ndim == 0 else out

    def sample(self, n: int = 1, random_state: RandomState = None) -> Array:
        """n draws, (n,): θ by inverting its distribution function on a fine grid, then x given θ."""
        rng, n = generator(random_state), count_of_draws(n)
        theta = self.model._line.draw(rng.random(n))
        cls, known = self.model.family, dict(self.model.known)
        return np.array([cls.from_natural([t], **known).sample(1, random_state=rng)[0] for t in theta])


@dataclass(frozen=True, eq=False)
class _Line:
    """exp(value(u)) over the line, with its maximum `top` at `center` and a width of about `width`."""

    value: Callable[[float], float]
    forward: Callable[[float], float]
    center: float
    width: float
    top: float

    @classmethod
    def around(cls, value: Callable[[float], float], forward: Callable[[float], float], start: float) -> _Line:
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(lambda u: -value(u), bracket=(start - 0.5, start + 0.5))
        center, top = float(found.x), -float(found.fun)
        h = 1e-3
        bend = -(value(center + h) - 2.0 * top + value(center - h)) / (h * h)
        return cls(value, forward, center, float(1.0 / np.sqrt(max(bend, 1e-6))), top)

    def integrate(self, f: Callable[[float], float]) -> float:
        """∫ f(θ(u)) exp(value(u) − top) du to about 1e-12 of its size."""
        from scipy.integrate import quad

        def part(z: float) -> float:
            u = self.center + self.width * z
            with np.errstate(over="ignore", under="ignore"):
                weight = float(np.exp(self._safe(u) - self.top))
            return weight * float(f(self.forward(u))) if weight > 0.0 else 0.0

        edges = [-np.inf, -12.0, -4.0, 0.0, 4.0, 12.0, np.inf]
        parts = [quad(part, a, b, epsabs=1e-14, epsrel=1e-12, limit=200)[0] for a, b in pairwise(edges)]
        return self.width * float(np.sum(parts))

    def draw(self, u: FloatArray) -> FloatArray:
        grid = self.center + self.width * np.linspace(-30.0, 30.0, 6001)
        weights = np.exp([self._safe(g) - self.top for g in grid])
        total = np.concatenate([[0.0], np.cumsum(0.5 * (weights[1:] + weights[:-1]))])
        return np.asarray([self.forward(v) for v in np.interp(u * total[-1], total, grid)])

    def _safe(self, u: float) -> float:
        """value(u), −inf where the parameter leaves the range of floats."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            try:
                found = self.value(u)
            except (ModelError, OverflowError):
                return -np.inf
        return found if np.isfinite(found) else -np.inf
