"""The protocol of likelihoods, and what its kinds share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp._integrals import tilted
from gramgraph.typing import Array, FloatArray


class Derivatives(NamedTuple):
    """∂, ∂² and ∂³ of log p(y | f) by f, each (n,)."""

    first: FloatArray
    second: FloatArray
    third: FloatArray


class Moments(NamedTuple):
    """log Z with Z = ∫ p(y | f) N(f; μ, v) df, its derivative by μ, and minus its second derivative; each (n,)."""

    log_z: FloatArray
    slope: FloatArray
    curvature: FloatArray  # within [0, 1/v] for log-concave likelihoods


@dataclass(frozen=True)
class Likelihood(ABC):
    """What Laplace's approximation and expectation propagation ask of p(y | f).

    A new likelihood writes `log_density`, `derivatives`, `response` and `check`; integrals then go through quadrature.

    Examples
    --------
    >>> from gramgraph.gp import Probit
    >>> isinstance(Probit(), Likelihood)
    True
    """

    #: Whether `moments` is accurate for every mean and variance, which expectation propagation needs.
    exact_moments: ClassVar[bool] = False

    @abstractmethod
    def log_density(self, y: Array, f: Array) -> FloatArray:
        """log p(y | f), (n,)."""

    @abstractmethod
    def derivatives(self, y: Array, f: Array) -> Derivatives:
        """Its first three derivatives by f."""

    def gradient(self, y: Array, f: Array) -> FloatArray:
        """The first derivative alone."""
        return self.derivatives(y, f).first

    @abstractmethod
    def response(self, f: Array) -> FloatArray:
        """E[y | f]; for two classes p(second class | f)."""

    @abstractmethod
    def check(self, y: Any) -> FloatArray:
        """Targets as floats, or an error that names the first one that cannot be observed."""

    def spread(self, f: Array) -> FloatArray:
        """Var[y | f]."""
        raise NotImplementedError

    def log_predictive(self, y: Array, mean: Array, var: Array) -> FloatArray:
        """log ∫ p(y | f) N(f; mean, var) df, (n,)."""
        return self.moments(y, mean, var).log_z

    def moments(self, y: Array, mean: Array, var: Array) -> Moments:
        """log Z and its derivatives by the mean, as expectation propagation needs them."""
        y, mean, var = (np.asarray(part, dtype=np.float64) for part in np.broadcast_arrays(y, mean, var))

        def slope(f: FloatArray) -> tuple[FloatArray, FloatArray]:
            found = self.derivatives(y[:, None], f)
            return found.first, found.second

        return Moments(*tilted(lambda f: self.log_density(y[:, None], f), slope, mean, var))

    def averaged(self, mean: Array, var: Array) -> FloatArray:
        """E[y] for f ~ N(mean, var): the response averaged over the latent value, (n,)."""
        return _expectation(self.response, np.asarray(mean), np.asarray(var))

    def averaged_spread(self, mean: Array, var: Array) -> FloatArray:
        """Var[y] for f ~ N(mean, var): E[Var[y | f]] + Var[E[y | f]]."""
        mean, var = np.asarray(mean), np.asarray(var)
        center = self.averaged(mean, var)
        # differences before squares: E[r²] − E[r]² would cancel
        moved = _expectation(lambda f: (self.response(f) - center[:, None]) ** 2, mean, var)
        return _expectation(self.spread, mean, var) + moved


@dataclass(frozen=True, eq=False)
class Weighted(Likelihood):
    """p(y | f)^w: a point of weight 2 counts as two equal ones, a point of weight 0 not at all."""

    base: Likelihood
    weights: FloatArray  # (n,)

    def log_density(self, y: Array, f: Array) -> FloatArray:
        """w log p(y | f)."""
        return self.weights * self.base.log_density(y, f)

    def derivatives(self, y: Array, f: Array) -> Derivatives:
        """Those of the base times w."""
        return Derivatives(*(self.weights * part for part in self.base.derivatives(y, f)))

    def gradient(self, y: Array, f: Array) -> FloatArray:
        """That of the base times w."""
        return self.weights * self.base.gradient(y, f)

    def response(self, f: Array) -> FloatArray:
        """That of the base."""
        return self.base.response(f)

    def check(self, y: Any) -> FloatArray:
        """That of the base."""
        return self.base.check(y)


def _expectation(function: Callable[[Any], FloatArray], mean: FloatArray, var: FloatArray) -> FloatArray:
    """E[function(f)], f ~ N(mean, var), by Gauss–Hermite quadrature with 64 nodes."""
    t, w = np.polynomial.hermite_e.hermegauss(64)
    return function(mean[:, None] + np.sqrt(var)[:, None] * t) @ (w / np.sqrt(2.0 * np.pi))


def targets(y: Any, what: str, ok: Callable[[FloatArray], Array], wanted: str) -> FloatArray:
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: y must hold {wanted}; it holds values that are not numbers.") from None
    bad = np.flatnonzero(~(np.isfinite(values) & ok(values)))
    if len(bad):
        raise ModelError(f"{what}: y must hold {wanted}; y[{bad[0]}] is {values.ravel()[bad[0]]:g}.")
    return values


def sigmoid(f: Array) -> FloatArray:
    from scipy.special import expit

    return expit(f)


def safe_exp(f: Array) -> FloatArray:
    """exp, at most 1e304: a far step of Newton's method gives a huge loss, not a NaN."""
    return np.exp(np.minimum(np.asarray(f, dtype=np.float64), 700.0))
