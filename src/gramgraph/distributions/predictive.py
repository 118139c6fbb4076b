"""What conjugate models predict where that is not an exponential family: a family averaged over its parameter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import array, covariance_like, frozen, number, vector
from gramgraph.distributions._gaussian_door import rows_of
from gramgraph.distributions._moments import log_bessel
from gramgraph.distributions._root import psd_root
from gramgraph.distributions.base import count_of_draws
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, RandomState


class Predictive(ABC):
    """A distribution that has a density and draws, but is not an exponential family.

    Examples
    --------
    >>> round(StudentT(5.0).density(0.0), 4)
    0.3796
    """

    @abstractmethod
    def log_density(self, x: Any, /) -> Any:
        """log p(x); −inf outside the support."""

    @abstractmethod
    def sample(self, n: int = 1, random_state: RandomState = None) -> Array:
        """n independent draws, with the draws on the first axis."""

    def density(self, x: Any, /) -> Any:
        """p(x), of the same shape as `log_density`."""
        value = np.exp(self.log_density(x))
        return float(value) if np.ndim(value) == 0 else value


@dataclass(frozen=True)
class StudentT(Predictive):
    """Student's t: a normal whose precision is averaged over a Gamma distribution.

    Parameters
    ----------
    dof : degrees of freedom ν > 0
    loc, scale : center, and the width that tends to the standard deviation as ν grows

    Examples
    --------
    >>> StudentT(5.0, loc=1.0, scale=2.0).mean, round(StudentT(5.0, scale=2.0).var, 4)
    (1.0, 6.6667)
    """

    dof: float
    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dof", number("dof", self.dof, low=0.0))
        object.__setattr__(self, "loc", number("loc", self.loc))
        object.__setattr__(self, "scale", number("scale", self.scale, low=0.0))

    @property
    def mean(self) -> float:
        """The center; NaN for ν ≤ 1, where there is no mean."""
        return self.loc if self.dof > 1.0 else float("nan")

    @property
    def var(self) -> float:
        """scale² ν/(ν − 2); infinite for ν ≤ 2."""
        return self.scale**2 * self.dof / (self.dof - 2.0) if self.dof > 2.0 else float("inf")

    def log_density(self, x: Any, /) -> Any:
        """log p(x), elementwise."""
        z = (array("x", x) - self.loc) / self.scale
        out = _log_t_scale(self.dof, 1) - np.log(self.scale) - 0.5 * (self.dof + 1.0) * np.log1p(z * z / self.dof)
        return float(out) if np.ndim(out) == 0 else out

    def cdf(self, x: Any, /) -> Any:
        """P(X ≤ x), elementwise.

        >>> StudentT(3.0).cdf(0.0)
        0.5
        """
        from scipy.special import stdtr

        out = stdtr(self.dof, (array("x", x) - self.loc) / self.scale)
        return float(out) if np.ndim(out) == 0 else out

    def quantile(self, q: Any, /) -> Any:
        """The inverse of `cdf`.

        >>> round(StudentT(3.0).quantile(0.975), 4)
        3.1824
        """
        from scipy.special import stdtrit

        out = self.loc + self.scale * stdtrit(self.dof, array("q", q))
        return float(out) if np.ndim(out) == 0 else out

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n,)."""
        return self.loc + self.scale * generator(random_state).standard_t(self.dof, size=count_of_draws(n))


@dataclass(frozen=True, eq=False)
class MultivariateT(Predictive):
    """Student's t on R^d: a Gaussian whose precision is averaged over a Wishart distribution.

    Parameters
    ----------
    dof : ν > 0
    loc : center, (d,)
    shape : (d, d) positive definite, tends to the covariance as ν grows

    Examples
    --------
    >>> MultivariateT(5.0, [0.0, 1.0], [[1.0, 0.0], [0.0, 2.0]]).mean.tolist()
    [0.0, 1.0]
    """

    dof: float
    loc: FloatArray  # (d,)
    shape: FloatArray  # (d, d)

    def __post_init__(self) -> None:
        loc = vector("loc", self.loc)
        shape = covariance_like("shape", self.shape, len(loc))
        root = psd_root(shape, "shape")
        if not root.full:
            raise ModelError(f"shape must be positive definite; its rank is {root.rank} of {len(loc)}.")
        object.__setattr__(self, "dof", number("dof", self.dof, low=0.0))
        object.__setattr__(self, "loc", frozen(loc))
        object.__setattr__(self, "shape", frozen(shape))
        object.__setattr__(self, "_root", root)

    @property
    def mean(self) -> FloatArray:
        """The center; NaN for ν ≤ 1."""
        return self.loc.copy() if self.dof > 1.0 else np.full_like(self.loc, np.nan)

    @property
    def cov(self) -> FloatArray:
        """shape · ν/(ν − 2); infinite for ν ≤ 2."""
        return self.shape * (self.dof / (self.dof - 2.0)) if self.dof > 2.0 else np.full_like(self.shape, np.inf)

    def log_density(self, x: Any, /) -> Any:
        """log p(x): a number for one point (d,), an array for rows (n, d)."""
        d = len(self.loc)
        points, single = rows_of(x, d)
        z = self._root.solve((points - self.loc).T)  # type: ignore[attr-defined]
        q = np.einsum("ij,ij->j", z, z)
        scale = _log_t_scale(self.dof, d) - 0.5 * self._root.log_det  # type: ignore[attr-defined]
        out = scale - 0.5 * (self.dof + d) * np.log1p(q / self.dof)
        return float(out[0]) if single else out

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n, d)."""
        rng, n = generator(random_state), count_of_draws(n)
        z = rng.standard_normal((n, len(self.loc))) / np.sqrt(rng.chisquare(self.dof, size=(n, 1)) / self.dof)
        return self.loc + z @ self._root.F.T  # type: ignore[attr-defined]


@dataclass(frozen=True)
class NegativeBinomial(Predictive):
    """p(x) = Γ(x + r)/(Γ(r) x!) p^r (1 − p)^x: a Poisson count whose rate is averaged over Gamma(r, p/(1 − p)).

    Parameters
    ----------
    r : shape of the gamma distribution of the rate.
    p : probability of a success.

    Examples
    --------
    >>> NegativeBinomial(2.0, 0.5).mean, NegativeBinomial(2.0, 0.5).var
    (2.0, 4.0)
    """

    r: float
    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", number("r", self.r, low=0.0))
        object.__setattr__(self, "p", number("p", self.p, low=0.0, high=1.0))

    @property
    def mean(self) -> float:
        """r (1 − p)/p."""
        return self.r * (1.0 - self.p) / self.p

    @property
    def var(self) -> float:
        """r (1 − p)/p²."""
        return self.mean / self.p

    def log_density(self, x: Any, /) -> Any:
        """log probability of counts, elementwise."""
        from scipy.special import gammaln

        points = array("x", x)
        good = np.isfinite(points) & (points >= 0.0) & (points == np.floor(points))
        k = np.where(good, points, 0.0)
        choose = gammaln(k + self.r) - gammaln(self.r) - gammaln(k + 1.0)
        out = np.where(good, choose + self.r * np.log(self.p) + k * np.log1p(-self.p), -np.inf)
        return float(out) if out.ndim == 0 else out

    def sample(self, n: int = 1, random_state: RandomState = None) -> Array:
        """n counts, (n,)."""
        return generator(random_state).negative_binomial(self.r, self.p, size=count_of_draws(n))


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(Predictive):
    """Counts of K states in n trials whose probabilities are averaged over Dirichlet(α).

    Parameters
    ----------
    n_trials : number of trials.
    alpha : (K,).

    Examples
    --------
    >>> DirichletMultinomial(3, [1.0, 1.0]).density([1, 2])  # all splits are alike
    0.25
    """

    n_trials: int
    alpha: FloatArray  # (K,)

    def __post_init__(self) -> None:
        alpha = vector("alpha", self.alpha)
        if (alpha <= 0.0).any():
            raise ModelError(f"alpha must be positive; it is {alpha.tolist()}.")
        trials = int(number("n_trials", self.n_trials, low=0, closed=True, whole=True))
        object.__setattr__(self, "n_trials", trials)
        object.__setattr__(self, "alpha", frozen(alpha))

    @property
    def mean(self) -> FloatArray:
        """n α/Σα, (K,)."""
        return self.n_trials * self.alpha / self.alpha.sum()

    @property
    def cov(self) -> FloatArray:
        """n (n + s)/(1 + s) (diag(m) − m mᵀ) with s = Σα and m = α/s, (K, K)."""
        s = float(self.alpha.sum())
        m = self.alpha / s
        return self.n_trials * (self.n_trials + s) / (1.0 + s) * (np.diag(m) - np.outer(m, m))

    def log_density(self, x: Any, /) -> Any:
        """log probability of rows of counts, (…, K)."""
        from scipy.special import gammaln

        x, K, s = array("x", x), len(self.alpha), float(self.alpha.sum())
        if x.ndim < 1 or x.shape[-1] != K:
            raise ModelError(f"x must have shape (…, {K}); its shape is {x.shape}.")
        good = (np.isfinite(x) & (x >= 0.0) & (x == np.floor(x))).all(axis=-1) & (x.sum(axis=-1) == self.n_trials)
        k = np.where(good[..., None], x, 0.0)
        terms = gammaln(k + self.alpha) - gammaln(self.alpha) - gammaln(k + 1.0)
        out = terms.sum(axis=-1) + gammaln(self.n_trials + 1.0) + gammaln(s) - gammaln(self.n_trials + s)
        out = np.where(good, out, -np.inf)
        return float(out) if out.ndim == 0 else out

    def sample(self, n: int = 1, random_state: RandomState = None) -> Array:
        """n rows of counts, (n, K)."""
        rng = generator(random_state)
        return rng.multinomial(self.n_trials, rng.dirichlet(self.alpha, size=count_of_draws(n)))


@dataclass(frozen=True)
class BetaBinomial(Predictive):
    """Successes in n trials whose chance is averaged over Beta(a, b).

    Parameters
    ----------
    n_trials : number of trials.
    a : pseudo-count of successes.
    b : pseudo-count of failures.

    Examples
    --------
    >>> BetaBinomial(4, 1.0, 1.0).density([0, 1, 2, 3, 4]).round(12).tolist()
    [0.2, 0.2, 0.2, 0.2, 0.2]
    """

    n_trials: int
    a: float
    b: float

    def __post_init__(self) -> None:
        trials = int(number("n_trials", self.n_trials, low=0, closed=True, whole=True))
        object.__setattr__(self, "n_trials", trials)
        object.__setattr__(self, "a", number("a", self.a, low=0.0))
        object.__setattr__(self, "b", number("b", self.b, low=0.0))

    @property
    def mean(self) -> float:
        """n a/(a + b)."""
        return self.n_trials * self.a / (self.a + self.b)

    @property
    def var(self) -> float:
        """n ab (a + b + n) / ((a + b)² (a + b + 1))."""
        s = self.a + self.b
        return self.n_trials * self.a * self.b * (s + self.n_trials) / (s * s * (s + 1.0))

    def log_density(self, x: Any, /) -> Any:
        """log probability of counts, elementwise."""
        points = array("x", x)
        both = np.stack([points, self.n_trials - points], axis=-1)
        both = np.where(np.isfinite(both), both, -1.0)
        return DirichletMultinomial(self.n_trials, np.array([self.a, self.b])).log_density(both)

    def sample(self, n: int = 1, random_state: RandomState = None) -> Array:
        """n counts, (n,)."""
        rng, n = generator(random_state), count_of_draws(n)
        return rng.binomial(self.n_trials, rng.beta(self.a, self.b, size=n))


@dataclass(frozen=True)
class VonMisesPredictive(Predictive):
    """An angle x ~ VonMises(m, noise) whose mean direction m is averaged over VonMises(mean, concentration).

    p(x) = I₀(|κ e^{ix} + R e^{im}|) / (2π I₀(κ) I₀(R)) with κ the noise concentration and R that of the mean.

    Parameters
    ----------
    mean : of the parameter.
    concentration : of the direction.
    noise : of the observations.

    Examples
    --------
    >>> flat = VonMisesPredictive(0.0, 0.0, 3.0)
    >>> round(flat.density(2.0) * 2 * np.pi, 12)
    1.0
    """

    mean: float
    concentration: float
    noise: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean))
        for name in ("concentration", "noise"):
            object.__setattr__(self, name, number(name, getattr(self, name), low=0.0, closed=True))

    def log_density(self, x: Any, /) -> Any:
        """log p(x) of angles, elementwise."""
        from scipy.special import ive

        points = array("x", x)
        k, r = self.noise, self.concentration
        length = np.sqrt(np.maximum(k * k + r * r + 2.0 * k * r * np.cos(points - self.mean), 0.0))
        out = np.log(ive(0.0, length)) + length - log_bessel(0.0, k) - log_bessel(0.0, r) - np.log(2.0 * np.pi)
        out = np.where(np.isfinite(points), out, -np.inf)
        return float(out) if out.ndim == 0 else out

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n angles in [−π, π], (n,)."""
        rng, n = generator(random_state), count_of_draws(n)
        x = rng.vonmises(rng.vonmises(self.mean, self.concentration, size=n), self.noise)
        return (x + np.pi) % (2.0 * np.pi) - np.pi


def _log_t_scale(dof: float, d: int) -> float:
    from scipy.special import gammaln

    return float(gammaln(0.5 * (dof + d)) - gammaln(0.5 * dof) - 0.5 * d * np.log(dof * np.pi))
