"""Exponential families: p(x) = h(x) exp(θᵀφ(x) − A(θ)). A family says what φ, h and A are; the rest follows here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph._signatures import InitSignature
from gramgraph.distributions import _supports as supports
from gramgraph.distributions._check import array, number, weights_of
from gramgraph.distributions.by_name import ByName, is_by_name
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, RandomState


class ExponentialFamily(ABC):
    """A distribution p(x) = h(x) exp(θᵀφ(x) − A(θ)), as a frozen value.

    φ are the sufficient statistics, θ the natural parameters, A(θ) the log-partition. Its gradient is the mean
    parameter μ = E φ(x), its Hessian the covariance of φ(x). From these come the density, entropy
    A − θᵀμ − E log h, divergence A(θ_q) − A(θ_p) − (θ_q − θ_p)ᵀμ_p, maximum likelihood (μ = average of φ), and products
    and quotients, which add and subtract θ.

    A family gives: `support`, `natural_parameters`, `log_partition`, `mean_parameters`, `log_partition_hessian`,
    `from_natural`, `from_mean`, `sample`, `_phi`; and `_log_base` with `_mean_log_base` where h is not 1.

    Examples
    --------
    >>> from gramgraph.distributions import Gamma
    >>> p = Gamma(2.0, 3.0)
    >>> p.natural_parameters.tolist(), p.statistics(1.0).tolist()
    ([1.0, -3.0], [0.0, 1.0])
    >>> round(p.log_density(1.0), 4), round(-3.0 - p.log_partition, 4)
    (-0.8028, -0.8028)
    """

    #: Where x lives: "binary", "codes", "counts", "trials", "positive_integers", "real", "non_negative", "positive",
    #: "unit", "angle", "composition", "binary_vector", "vector", "simplex", "sphere" or "positive_definite".
    support: ClassVar[str]
    #: Number of axes of one point x: 0 for numbers, 1 for vectors, 2 for matrices.
    event_ndim: ClassVar[int] = 0
    #: Whether φ has no linear relation on the support, so that different θ are different distributions.
    minimal: ClassVar[bool] = True
    #: Whether h = 1 on the support: only then are products and quotients of the family in the family.
    flat_base: ClassVar[bool] = True
    #: Where θ may lie, for families with one natural parameter; None for the others.
    natural_interval: ClassVar[tuple[float, float] | None] = None

    __signature__ = InitSignature()

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        """A distribution from numbers; from names of variables, the family given these: a conditional to be bound."""
        if is_by_name(cls, arguments, named):
            return ByName.of(cls, arguments, named)
        return object.__new__(cls)

    # --- what a family gives --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def natural_parameters(self) -> FloatArray:
        """θ, (k,)."""

    @property
    @abstractmethod
    def log_partition(self) -> float:
        """A(θ) = log ∫ h(x) exp(θᵀφ(x)) dx."""

    @property
    @abstractmethod
    def mean_parameters(self) -> FloatArray:
        """μ = ∇A(θ) = E φ(x), (k,)."""

    @property
    @abstractmethod
    def log_partition_hessian(self) -> FloatArray:
        """∇²A(θ) = Cov φ(x), the Fisher information of θ, (k, k)."""

    @classmethod
    @abstractmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """The member with natural parameters θ (k,); `known` are the constants that the family does not learn."""

    @classmethod
    @abstractmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """The member with mean parameters μ = E φ(x), (k,)."""

    @abstractmethod
    def sample(self, n: int = 1, random_state: RandomState = None) -> Array:
        """n independent draws, with the draws on the first axis."""

    @classmethod
    @abstractmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        """φ of checked points, (…, k)."""

    def checked_statistics(self, points: FloatArray) -> FloatArray:
        """φ of points that are known to lie in the support, (…, k): `statistics` without its checks."""
        return self._phi(points, **self.known)

    @property
    def known(self) -> dict[str, Any]:
        """Constants that the family does not learn, such as the center of a Laplace distribution."""
        return {}

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one point: () for numbers."""
        return ()

    def _log_base(self, x: FloatArray) -> Any:
        """log h(x) of points in the support."""
        return 0.0

    def _mean_log_base(self) -> float:
        """E log h(x)."""
        return 0.0

    # --- what follows ---------------------------------------------------------------------------------------------

    @property
    def log_partition_gradient(self) -> FloatArray:
        """∇A(θ), another name of `mean_parameters`."""
        return self.mean_parameters

    def statistics(self, x: Any, /) -> FloatArray:
        """φ(x), (…, k), for points x with the event's axes last.

        >>> from gramgraph.distributions import Normal
        >>> Normal(0.0, 1.0).statistics([1.0, 3.0]).tolist()
        [[1.0, 1.0], [3.0, 9.0]]
        """
        points = self._read(x, self.event_shape)
        with np.errstate(divide="ignore"):
            return self._phi(points, **self.known)

    def log_density(self, x: Any, /) -> Any:
        """log p(x) (for discrete x the log probability): a float for one point, −inf outside the support.

        >>> from gramgraph.distributions import Poisson
        >>> Poisson(2.0).log_density([0, 1, -1]).round(4).tolist()
        [-2.0, -1.3069, -inf]
        """
        points = self._read(x, self.event_shape)
        inside = np.asarray(supports.inside(self.support, points, self.known))
        if not inside.all():
            points = np.where(supports.spread(inside, points), points, supports.anchor(self.support, self.event_shape))
        with np.errstate(divide="ignore"):
            phi = self._phi(points, **self.known)
        out = bounded_dot(phi, self.natural_parameters) - self.log_partition + self._log_base(points)
        out = np.where(inside, out, -np.inf)
        return float(out) if out.ndim == 0 else out

    def density(self, x: Any, /) -> Any:
        """p(x), of the same shape as `log_density`.

        >>> from gramgraph.distributions import Bernoulli
        >>> Bernoulli(0.25).density([0, 1]).round(12).tolist()
        [0.75, 0.25]
        """
        value = np.exp(self.log_density(x))
        return float(value) if np.ndim(value) == 0 else value

    def entropy(self) -> float:
        """−E log p(x) = A − θᵀμ − E log h.

        >>> from gramgraph.distributions import Bernoulli
        >>> round(Bernoulli(0.5).entropy(), 4)
        0.6931
        """
        mass = bounded_dot(self.mean_parameters, self.natural_parameters)
        return float(self.log_partition - mass - self._mean_log_base())

    def kl(self, other: Self, /) -> float:
        """KL(p ‖ q) = E_p log p(x) / q(x) = A(θ_q) − A(θ_p) − (θ_q − θ_p)ᵀμ_p, never negative.

        >>> from gramgraph.distributions import Exponential
        >>> round(Exponential(1.0).kl(Exponential(2.0)), 4)
        0.3069
        """
        self._same(other, "divergence")
        with np.errstate(invalid="ignore"):
            step = other.natural_parameters - self.natural_parameters
        gap = other.log_partition - self.log_partition - bounded_dot(self.mean_parameters, step)
        return max(0.0, float(gap))

    @classmethod
    def fit(cls, x: Any, *, weights: Any = None, **known: Any) -> Self:
        """Maximum likelihood by moment matching: the member whose E φ is the (weighted) average of φ over x.

        >>> from gramgraph.distributions import Poisson
        >>> Poisson.fit([1, 2, 6])
        Poisson(rate=3.0)
        """
        points = cls._read(x, None)
        if points.ndim != cls.event_ndim + 1 or not len(points):
            raise ModelError(
                f"{cls.__name__}.fit takes data points on the first axis and needs at least one; the shape is "
                f"{points.shape}."
            )
        cls._check_data(points, **known)
        w = weights_of(weights, len(points))
        return cls.from_mean((w / w.sum()) @ cls._phi(points, **known), **known)

    def tilt(self, delta: Any, /) -> Self:
        """The normalized p(x) exp(δᵀφ(x)): the member at θ + δ.

        >>> from gramgraph.distributions import Poisson
        >>> Poisson(2.0).tilt([0.0])
        Poisson(rate=2.0)
        """
        step = array("delta", delta)
        if step.shape != self.natural_parameters.shape:
            raise ModelError(f"delta must have shape {self.natural_parameters.shape}; its shape is {step.shape}.")
        return self._moved(step, "tilted density")

    def product(self, other: Self, /) -> Self:
        """The normalized p(x) q(x): natural parameters add. Only where h = 1, else the product leaves the family.

        >>> from gramgraph.distributions import Beta
        >>> Beta(2.0, 3.0) * Beta(4.0, 1.0)
        Beta(a=5.0, b=3.0)
        """
        self._same(other, "product", flat=True)
        return self._moved(other.natural_parameters, "product")

    def quotient(self, other: Self, /) -> Self:
        """The normalized p(x) / q(x): natural parameters subtract; an error where that has no finite integral.

        >>> from gramgraph.distributions import Beta
        >>> Beta(5.0, 3.0) / Beta(4.0, 1.0)
        Beta(a=2.0, b=3.0)
        """
        self._same(other, "quotient", flat=True)
        return self._moved(-other.natural_parameters, "quotient")

    def log_overlap(self, other: Self, /) -> float:
        """log ∫ p(x) q(x) dx, what normalizing the product divides out.

        >>> from gramgraph.distributions import Exponential
        >>> round(Exponential(1.0).log_overlap(Exponential(1.0)), 4)
        -0.6931
        """
        both = self.product(other)
        return float(both.log_partition - self.log_partition - other.log_partition)

    def __mul__(self, other: object) -> Self:
        return self.product(other) if isinstance(other, type(self)) else NotImplemented

    def __truediv__(self, other: object) -> Self:
        return self.quotient(other) if isinstance(other, type(self)) else NotImplemented

    # --- the door -------------------------------------------------------------------------------------------------

    @classmethod
    def _read(cls, x: Any, event_shape: tuple[int, ...] | None) -> FloatArray:
        """Points as floats with the event's axes last; event_shape None accepts any."""
        points = array("x", x)
        k = cls.event_ndim
        tail = points.shape[points.ndim - k :] if points.ndim >= k else None
        if tail is None or (event_shape is not None and tail != event_shape):
            wanted = "…, " + ", ".join("any" if event_shape is None else str(s) for s in (event_shape or ("",) * k))
            raise ModelError(f"x of {cls.__name__} must have shape ({wanted}); its shape is {points.shape}.")
        return points

    @classmethod
    def _check_data(cls, points: FloatArray, **known: Any) -> None:
        """An error that names the first data point for which φ is not finite or that lies outside the support."""
        inside = np.asarray(supports.inside(cls.support, points, known))
        at = supports.anchor(cls.support, points.shape[1:])
        with np.errstate(divide="ignore", invalid="ignore"):
            inside &= np.isfinite(cls._phi(np.where(supports.spread(inside, points), points, at), **known)).all(-1)
        if not inside.all():
            i = int(np.flatnonzero(~inside)[0])
            raise ModelError(
                f"{cls.__name__}.fit: data point {i} is {np.array2string(points[i], precision=6, threshold=8)}, where "
                f"the likelihood is zero or without bound. Points must lie inside the support ({cls.support})."
            )

    def _moved(self, step: FloatArray, what: str) -> Self:
        here = self.natural_parameters
        with np.errstate(invalid="ignore"):
            theta = np.where(np.isneginf(here), here, here + step)  # what cannot happen stays impossible: 0 / 0 = 0
        try:
            return type(self).from_natural(theta, **self.known)
        except ModelError as error:
            raise ModelError(f"The {what} is no {type(self).__name__}: it has no finite integral. {error}") from error

    def _same(self, other: Any, what: str, *, flat: bool = False) -> None:
        if type(other) is not type(self):
            raise ModelError(f"A {what} needs two {type(self).__name__}; got {type(other).__name__}.")
        if flat and not self.flat_base:
            raise ModelError(
                f"The {what} of two {type(self).__name__} is no {type(self).__name__}: its base measure is not "
                f"constant. Try: tilt(delta) multiplies by exp(δᵀφ(x)), which stays in the family."
            )
        same = self.event_shape == other.event_shape and self.natural_parameters.shape == other.natural_parameters.shape
        if not same or not all(np.array_equal(v, other.known[k]) for k, v in self.known.items()):
            raise ModelError(
                f"A {what} needs two {type(self).__name__} of the same kind; these differ in "
                f"{'size' if not same else ', '.join(self.known)}."
            )


def bounded_dot(phi: FloatArray, theta: FloatArray) -> Any:
    """φᵀθ over the last axis with 0 · ∞ = 0: what cannot happen has no weight."""
    if np.isfinite(theta).all() and np.isfinite(phi).all():
        return phi @ theta
    with np.errstate(invalid="ignore"):
        terms = phi * theta
    return np.where((phi == 0.0) | (theta == 0.0), 0.0, terms).sum(axis=-1)


class FamilyOfItself(ExponentialFamily):
    """Families of numbers with φ(x) = x: the moments of x are those of φ."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """E x."""

    @property
    @abstractmethod
    def var(self) -> float:
        """Var x."""

    @property
    def mean_parameters(self) -> FloatArray:
        """[E x]."""
        return np.array([self.mean])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """[[var x]]."""
        return np.array([[self.var]])

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return x[..., None]


def count_of_draws(n: Any) -> int:
    """The requested number of draws."""
    return int(number("n", n, low=0, closed=True, whole=True))
