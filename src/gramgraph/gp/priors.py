"""Priors of hyper-parameters, as densities of theta = log(value)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.typing import FloatArray


class HyperPrior(Protocol):
    """A density of theta = log(value), up to a constant, and its slope."""

    def log_density(self, theta: FloatArray) -> FloatArray:
        """log density of theta."""
        ...

    def slope(self, theta: FloatArray) -> FloatArray:
        """Its derivative."""
        ...


@dataclass(frozen=True)
class LogNormal:
    """log(value) ~ N(log median, sigma²): the first number is the median of the value itself, not of its logarithm.

    Parameters
    ----------
    median : of the value.
    sigma : standard deviation of its logarithm.

    Examples
    --------
    >>> float(LogNormal(2.0, 1.0).slope(np.log(2.0)))
    -0.0
    """

    median: float
    sigma: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(
            self,
            "median",
            "it is the median of the value itself, not the mean of its logarithm: for log(value) ~ N(0, σ²) write "
            "LogNormal(1.0, σ)",
        )
        _check_positive(self, "sigma", "it is the standard deviation of the logarithm")

    def log_density(self, theta: FloatArray) -> FloatArray:
        """−½ ((θ − log median) / σ)²."""
        return -0.5 * ((theta - np.log(self.median)) / self.sigma) ** 2

    def slope(self, theta: FloatArray) -> FloatArray:
        """Derivative by θ."""
        return -(theta - np.log(self.median)) / self.sigma**2


@dataclass(frozen=True)
class Gamma:
    """value ~ Gamma(shape, rate); the density is that of θ = log(value): shape θ − rate e^θ.

    Parameters
    ----------
    shape : α.
    rate : β.

    Examples
    --------
    >>> round(float(Gamma(2.0, 4.0).slope(np.log(0.5))), 6)
    0.0
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        _check_positive(self, "shape")
        _check_positive(self, "rate", "it is one over the scale")

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Up to a constant."""
        return self.shape * theta - self.rate * np.exp(theta)

    def slope(self, theta: FloatArray) -> FloatArray:
        """Derivative by θ."""
        return self.shape - self.rate * np.exp(theta)


@dataclass(frozen=True)
class InverseGamma:
    """1/value ~ Gamma(shape, scale): keeps length scales away from zero. Density of θ: −shape θ − scale e^−θ.

    Parameters
    ----------
    shape : α.
    scale : β.

    Examples
    --------
    >>> round(float(InverseGamma(2.0, 1.0).slope(np.log(0.5))), 6)
    0.0
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        _check_positive(self, "shape")
        _check_positive(self, "scale")

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Up to a constant."""
        return -self.shape * theta - self.scale * np.exp(-theta)

    def slope(self, theta: FloatArray) -> FloatArray:
        """Derivative by θ."""
        return -self.shape + self.scale * np.exp(-theta)


def _check_positive(prior: Any, name: str, meaning: str = "") -> None:
    value = getattr(prior, name)
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not 0.0 < value < np.inf:
        text = f"{type(prior).__name__}: {name} must be a positive number; it is {value!r}."
        raise ModelError(f"{text} ({meaning[0].upper()}{meaning[1:]}.)" if meaning else text)


def prior_density(
    priors: Mapping[str, HyperPrior] | None, names: Sequence[str]
) -> Callable[[FloatArray], tuple[float, FloatArray]] | None:
    """The sum of log densities of the named entries of theta and its gradient; None without priors.

    A key is a full name (`terms[0].length_scale`) or its end (`length_scale`: wherever it is found).

    >>> density = prior_density({"length_scale": LogNormal(1.0)}, ("variance", "base.length_scale"))
    >>> density(np.array([5.0, 2.0]))
    (-2.0, array([ 0., -2.]))
    """
    if not priors:
        return None
    plain = [name.rsplit("[", 1)[0] if name.endswith("]") else name for name in names]
    rows: list[tuple[HyperPrior, FloatArray]] = []
    for key, prior in priors.items():
        found = [i for i, (a, b) in enumerate(zip(names, plain, strict=True)) if key in (a, b) or b.endswith("." + key)]
        if not found:
            raise ModelError(
                f"hyper_prior: {key!r} is not a free parameter of the kernel. Parameters: {listing(names)}."
                f"{did_you_mean(key, plain)}"
            )
        rows.append((prior, np.array(found)))

    def density(theta: FloatArray) -> tuple[float, FloatArray]:
        total, slope = 0.0, np.zeros_like(theta)
        for prior, at in rows:
            total += float(np.sum(prior.log_density(theta[at])))
            slope[at] += prior.slope(theta[at])
        return total, slope

    return density
