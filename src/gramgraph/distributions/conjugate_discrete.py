"""Conjugate models of coins, categories and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gramgraph.distributions._check import frozen, number, vector
from gramgraph.distributions.conjugate import ConjugateModel, read_points, refuse
from gramgraph.distributions.discrete import Bernoulli, Categorical
from gramgraph.distributions.positive import Gamma
from gramgraph.distributions.predictive import BetaBinomial, DirichletMultinomial, NegativeBinomial
from gramgraph.distributions.simplex import Beta, Dirichlet
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray


@dataclass(frozen=True)
class BetaBernoulli(ConjugateModel):
    """x ~ Bernoulli(p), p ~ Beta(a, b); data are 0 and 1. After s successes and f failures: Beta(a + s, b + f).

    Parameters
    ----------
    a : pseudo-count of ones.
    b : pseudo-count of zeros.

    Examples
    --------
    >>> coin = BetaBernoulli(2.0, 2.0).update([1, 1, 1, 0])
    >>> coin.posterior
    Beta(a=5.0, b=3.0)
    >>> coin.predictive
    Bernoulli(p=0.625)
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", number("a", self.a, low=0.0))
        object.__setattr__(self, "b", number("b", self.b, low=0.0))

    @property
    def posterior(self) -> Beta:
        """The chance of success."""
        return Beta(self.a, self.b)

    @property
    def predictive(self) -> Bernoulli:
        """The next trial: Bernoulli(a/(a + b))."""
        return Bernoulli(self.a / (self.a + self.b))

    def predictive_count(self, n_trials: int) -> BetaBinomial:
        """The number of successes in the next n trials.

        >>> BetaBernoulli(1.0, 1.0).predictive_count(2).density(2)
        0.3333333333333333
        """
        return BetaBinomial(n_trials, self.a, self.b)

    def update_counts(self, successes: float, failures: float) -> Self:
        """The model after that many successes and failures, for binomial data.

        >>> BetaBernoulli(1.0, 1.0).update_counts(3, 1)
        BetaBernoulli(a=4.0, b=2.0)
        """
        s = number("successes", successes, low=0.0, closed=True)
        f = number("failures", failures, low=0.0, closed=True)
        return type(self)(self.a + s, self.b + f)

    def _read(self, data: Any) -> FloatArray:
        x = read_points(data, (), "BetaBernoulli")
        refuse(x, (x != 0.0) & (x != 1.0), "0 and 1 (counts: update_counts)")
        return x

    def _absorb(self, x: FloatArray, w: FloatArray) -> Self:
        return type(self)(self.a + float(w @ x), self.b + float(w @ (1.0 - x)))

    def _log_base(self, x: FloatArray) -> Any:
        return 0.0

    def _scaled(self, factor: float) -> Self:
        return type(self)(factor * self.a, factor * self.b)


@dataclass(frozen=True, eq=False)
class DirichletCategorical(ConjugateModel):
    """x ~ Categorical(p) with codes 0 … K − 1, p ~ Dirichlet(α). After counts n_k: Dirichlet(α + n).

    Parameters
    ----------
    alpha : (K,).

    Examples
    --------
    >>> model = DirichletCategorical([1.0, 1.0, 1.0]).update([0, 0, 2])
    >>> model.alpha.tolist(), model.predictive.probabilities.tolist()
    ([3.0, 1.0, 2.0], [0.5, 0.16666666666666666, 0.3333333333333333])
    """

    alpha: FloatArray  # (K,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", Dirichlet(self.alpha).alpha)

    @property
    def posterior(self) -> Dirichlet:
        """The probabilities of the states."""
        return Dirichlet(self.alpha)

    @property
    def predictive(self) -> Categorical:
        """The next state: Categorical(α/Σα)."""
        return Categorical(self.alpha / self.alpha.sum())

    def predictive_counts(self, n_trials: int) -> DirichletMultinomial:
        """The counts of all states in the next n trials.

        >>> round(DirichletCategorical([1.0, 1.0]).predictive_counts(2).density([2, 0]), 12)
        0.333333333333
        """
        return DirichletMultinomial(n_trials, self.alpha)

    def update_counts(self, counts: Any) -> Self:
        """The model after counts of all states (K,), for multinomial data.

        >>> DirichletCategorical([1.0, 1.0]).update_counts([3, 1]).alpha.tolist()
        [4.0, 2.0]
        """
        n = vector("counts", counts, len(self.alpha))
        if (n < 0.0).any():
            raise ModelError(f"counts must not be negative; they are {n.tolist()}.")
        return type(self)(frozen(self.alpha + n))

    def _read(self, data: Any) -> FloatArray:
        x = read_points(data, (), "DirichletCategorical")
        K = len(self.alpha)
        refuse(x, (x < 0.0) | (x >= K) | (x != np.floor(x)), f"codes from 0 to {K - 1} (counts: update_counts)")
        return x

    def _absorb(self, x: FloatArray, w: FloatArray) -> Self:
        return type(self)(self.alpha + np.bincount(x.astype(np.int64), weights=w, minlength=len(self.alpha)))

    def _log_base(self, x: FloatArray) -> Any:
        return 0.0

    def _scaled(self, factor: float) -> Self:
        return type(self)(factor * self.alpha)


@dataclass(frozen=True)
class GammaPoisson(ConjugateModel):
    """x ~ Poisson(λ), λ ~ Gamma(a, b). After n counts: Gamma(a + Σx, b + n). It predicts a negative binomial.

    Parameters
    ----------
    shape, rate : of the gamma distribution.

    Examples
    --------
    >>> model = GammaPoisson(2.0, 1.0).update([3, 4])
    >>> model.posterior
    Gamma(shape=9.0, rate=3.0)
    >>> model.predictive.mean
    3.0
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", number("shape", self.shape, low=0.0))
        object.__setattr__(self, "rate", number("rate", self.rate, low=0.0))

    @property
    def posterior(self) -> Gamma:
        """The rate λ."""
        return Gamma(self.shape, self.rate)

    @property
    def predictive(self) -> NegativeBinomial:
        """The next count: NegativeBinomial(a, b/(b + 1))."""
        return NegativeBinomial(self.shape, self.rate / (self.rate + 1.0))

    def _read(self, data: Any) -> FloatArray:
        x = read_points(data, (), "GammaPoisson")
        refuse(x, (x < 0.0) | (x != np.floor(x)), "counts 0, 1, 2, …")
        return x

    def _absorb(self, x: FloatArray, w: FloatArray) -> Self:
        return type(self)(self.shape + float(w @ x), self.rate + float(w.sum()))

    def _log_base(self, x: FloatArray) -> Any:
        from scipy.special import gammaln

        return -gammaln(x + 1.0)

    def _scaled(self, factor: float) -> Self:
        return type(self)(factor * self.shape, factor * self.rate)
