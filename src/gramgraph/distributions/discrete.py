"""Families on states: coins, categories, counts of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import array, frozen, number, single, vector
from gramgraph.distributions.base import ExponentialFamily, FamilyOfItself, count_of_draws
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray, RandomState


@dataclass(frozen=True)
class Bernoulli(FamilyOfItself):
    """A coin: p(x) = p^x (1 − p)^(1−x) for x ∈ {0, 1}. φ = x, θ = log p/(1 − p), A = log(1 + e^θ).

    Parameters
    ----------
    p : probability of a success.

    Examples
    --------
    >>> coin = Bernoulli(0.25)
    >>> coin.mean, coin.var
    (0.25, 0.1875)
    """

    p: float
    support = "binary"
    natural_interval = (-float("inf"), float("inf"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", number("p", self.p, low=0.0, high=1.0, closed=True))

    @property
    def mean(self) -> float:
        """p."""
        return self.p

    @property
    def var(self) -> float:
        """p (1 − p)."""
        return self.p * (1.0 - self.p)

    @property
    def natural_parameters(self) -> FloatArray:
        """[log p/(1 − p)], infinite for a coin that always shows the same side."""
        with np.errstate(divide="ignore"):
            return np.array([np.log(self.p) - np.log1p(-self.p)])

    @property
    def log_partition(self) -> float:
        """−log(1 − p)."""
        with np.errstate(divide="ignore"):
            return float(-np.log1p(-self.p))

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """p = 1 / (1 + e^−θ)."""
        from scipy.special import expit

        return cls(float(expit(single("theta", theta))))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """p = μ."""
        return cls(float(vector("mu", mu, 1)[0]))

    def log_density(self, x: Any, /) -> Any:
        """log p(x), also where p is 0 or 1.

        >>> Bernoulli(1.0).log_density([0, 1]).tolist()
        [-inf, 0.0]
        """
        points = self._read(x, ())
        with np.errstate(divide="ignore"):
            yes, no = np.log(self.p), np.log1p(-self.p)
        out = np.where(points == 1.0, yes, np.where(points == 0.0, no, -np.inf))
        return float(out) if out.ndim == 0 else out

    def entropy(self) -> float:
        """−p log p − (1 − p) log(1 − p)."""
        from scipy.special import entr

        return float(entr(self.p) + entr(1.0 - self.p))

    def kl(self, other: Self, /) -> float:
        """p log p/q + (1 − p) log (1 − p)/(1 − q).

        >>> Bernoulli(0.5).kl(Bernoulli(1.0))
        inf
        """
        from scipy.special import rel_entr

        self._same(other, "divergence")
        return float(rel_entr(self.p, other.p) + rel_entr(1.0 - self.p, 1.0 - other.p))

    def log_overlap(self, other: Self, /) -> float:
        """log [p q + (1 − p)(1 − q)]."""
        self._same(other, "overlap")
        with np.errstate(divide="ignore"):
            return float(np.log(self.p * other.p + (1.0 - self.p) * (1.0 - other.p)))

    def sample(self, n: int = 1, random_state: RandomState = None) -> IntArray:
        """n draws of 0 and 1, (n,)."""
        return (generator(random_state).random(count_of_draws(n)) < self.p).astype(np.int64)


@dataclass(frozen=True)
class Binomial(FamilyOfItself):
    """Successes of n trials: p(x) = C(n, x) p^x (1 − p)^(n−x).

    φ = x, h = C(n, x), θ = log p/(1 − p), A = n log(1 + e^θ).

    Parameters
    ----------
    p : probability of a success.
    n_trials : number of trials.

    Examples
    --------
    >>> Binomial(0.25, 4).mean, Binomial(0.25, 4).var
    (1.0, 0.75)
    >>> Binomial.fit([1, 3, 2], n_trials=4).p
    0.5
    """

    p: float
    n_trials: int
    support = "trials"
    natural_interval = (-float("inf"), float("inf"))
    flat_base = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", number("p", self.p, low=0.0, high=1.0, closed=True))
        trials = number("n_trials", self.n_trials, low=0, closed=True, whole=True)
        object.__setattr__(self, "n_trials", int(trials))

    @property
    def known(self) -> dict[str, Any]:
        """The number of trials."""
        return {"n_trials": self.n_trials}

    @property
    def mean(self) -> float:
        """n p."""
        return self.n_trials * self.p

    @property
    def var(self) -> float:
        """n p (1 − p)."""
        return self.n_trials * self.p * (1.0 - self.p)

    @property
    def natural_parameters(self) -> FloatArray:
        """[log p/(1 − p)]."""
        with np.errstate(divide="ignore"):
            return np.array([np.log(self.p) - np.log1p(-self.p)])

    @property
    def log_partition(self) -> float:
        """−n log(1 − p)."""
        with np.errstate(divide="ignore"):
            return float(-self.n_trials * np.log1p(-self.p)) if self.n_trials else 0.0

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """p = 1 / (1 + e^−θ)."""
        from scipy.special import expit

        return cls(float(expit(single("theta", theta))), known["n_trials"])

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """p = μ / n."""
        if not known.get("n_trials"):
            raise ModelError("n_trials must be given, and at least 1, to learn the probability.")
        return cls(float(vector("mu", mu, 1)[0]) / known["n_trials"], known["n_trials"])

    @classmethod
    def fit(cls, x: Any, *, weights: Any = None, n_trials: int | None = None, **known: Any) -> Self:
        """The share of successes in counts of `n_trials` trials each."""
        if n_trials is None:
            raise ModelError("how many trials every count is of must be known: Binomial.fit(x, n_trials=…).")
        return super().fit(x, weights=weights, n_trials=n_trials)

    def log_density(self, x: Any, /) -> Any:
        """log p(x), also where p is 0 or 1."""
        from scipy.special import xlog1py, xlogy

        points = self._read(x, ())
        inside = (points == np.floor(points)) & (points >= 0.0) & (points <= self.n_trials)
        at = np.where(inside, points, 0.0)
        found = self._log_base(at) + xlogy(at, self.p) + xlog1py(self.n_trials - at, -self.p)
        out = np.where(inside, found, -np.inf)
        return float(out) if out.ndim == 0 else out

    def _log_base(self, x: FloatArray) -> Any:
        from scipy.special import gammaln

        n = float(self.n_trials)
        return gammaln(n + 1.0) - gammaln(x + 1.0) - gammaln(n - x + 1.0)

    def _mean_log_base(self) -> float:
        from scipy.special import xlog1py, xlogy

        x = np.arange(self.n_trials + 1.0)
        log_base = self._log_base(x)
        return float(np.exp(log_base + xlogy(x, self.p) + xlog1py(self.n_trials - x, -self.p)) @ log_base)

    def sample(self, n: int = 1, random_state: RandomState = None) -> IntArray:
        """n counts, (n,)."""
        return generator(random_state).binomial(self.n_trials, self.p, size=count_of_draws(n))


class _Probabilities(ExponentialFamily):
    """What `Categorical` and `Multinomial` share: probabilities of K states, θ = log p + c, A = trials · c."""

    minimal = False
    probabilities: FloatArray
    _offset: float  # c: p fixes θ only up to a constant, and A must be a function of θ

    def _check(self) -> None:
        p = vector("probabilities", self.probabilities)
        total = float(p.sum())
        if (p < 0.0).any() or abs(total - 1.0) > 1e-6:
            bad = f"entry {int(p.argmin())} is {p.min():g}" if (p < 0.0).any() else f"they sum to {total:.10g}"
            raise ModelError(f"probabilities must not be negative and must sum to 1; {bad}.")
        object.__setattr__(self, "probabilities", frozen(p / total))
        object.__setattr__(self, "_offset", 0.0)

    @property
    def n_states(self) -> int:
        """K."""
        return len(self.probabilities)

    @property
    def natural_parameters(self) -> FloatArray:
        """log p (K,), up to a constant; −inf for what cannot happen."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities) + self._offset

    @classmethod
    def _from_logits(cls, theta: Any, **known: Any) -> Self:
        theta = array("theta", theta)
        if theta.ndim != 1 or not theta.size or (theta == np.inf).any() or not np.isfinite(theta).any():
            raise ModelError(
                f"theta must be K numbers, −inf for what cannot happen but not for all of them; got {theta.tolist()}."
            )
        top = float(theta.max())
        weights = np.exp(theta - top)
        new = cls(weights / weights.sum(), **known)  # type: ignore[call-arg]
        object.__setattr__(new, "_offset", top + float(np.log(weights.sum())))
        return new


@dataclass(frozen=True, eq=False)
class Categorical(_Probabilities):
    """One of K states, coded 0 … K − 1. φ(x) is the unit vector of x, θ = log p (up to a constant), A = log Σ e^θ.

    Parameters
    ----------
    probabilities : (K,).

    Examples
    --------
    >>> die = Categorical([0.5, 0.3, 0.2])
    >>> die.log_density([0, 2]).round(4).tolist()
    [-0.6931, -1.6094]
    >>> Categorical.fit([0, 0, 1, 2], n_states=4).probabilities.tolist()
    [0.5, 0.25, 0.25, 0.0]
    """

    probabilities: FloatArray  # (K,)
    support = "codes"

    def __post_init__(self) -> None:
        self._check()

    @property
    def known(self) -> dict[str, Any]:
        """The number of states."""
        return {"n_states": self.n_states}

    @property
    def log_partition(self) -> float:
        """log Σ_k e^θ_k, 0 for θ = log p."""
        return self._offset

    @property
    def mean_parameters(self) -> FloatArray:
        """p, (K,)."""
        return self.probabilities.copy()

    @property
    def log_partition_hessian(self) -> FloatArray:
        """diag(p) − p pᵀ."""
        p = self.probabilities
        return np.diag(p) - np.outer(p, p)

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """p = softmax(θ)."""
        return cls._from_logits(theta)

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """p = μ."""
        return cls(vector("mu", mu))

    @classmethod
    def fit(cls, x: Any, *, weights: Any = None, n_states: int | None = None, **known: Any) -> Self:
        """Relative frequencies of the codes; without `n_states` the largest code is the last state.

        >>> Categorical.fit([0, 1], weights=[3.0, 1.0]).probabilities.tolist()
        [0.75, 0.25]
        """
        points = cls._read(x, None)
        if n_states is None:
            n_states = int(points.max(initial=-1.0)) + 1 if np.isfinite(points).all() else 1
        n_states = int(number("n_states", max(n_states, 1), low=1, closed=True, whole=True))
        return super().fit(x, weights=weights, n_states=n_states)

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.eye(int(known["n_states"]))[x.astype(np.int64)]

    def sample(self, n: int = 1, random_state: RandomState = None) -> IntArray:
        """n codes, (n,)."""
        edges = np.cumsum(self.probabilities)
        u = generator(random_state).random(count_of_draws(n)) * edges[-1]
        return np.minimum(np.searchsorted(edges, u, side="right"), self._last)

    @property
    def mean(self) -> float:
        """Σ k p_k: the mean of the codes.

        >>> Categorical([0.5, 0.3, 0.2]).mean, round(Categorical([0.5, 0.3, 0.2]).var, 2)
        (0.7, 0.61)
        """
        return float(np.arange(self.n_states) @ self.probabilities)

    @property
    def var(self) -> float:
        """Σ (k − mean)² p_k."""
        return float((np.arange(self.n_states) - self.mean) ** 2 @ self.probabilities)

    @property
    def _last(self) -> int:
        return int(np.flatnonzero(self.probabilities)[-1])


@dataclass(frozen=True, eq=False)
class Multinomial(_Probabilities):
    """Counts of K states in n trials: n!/Π x_k! Π p_k^x_k. φ(x) = x, h = n!/Π x_k!, A = n log Σ e^θ.

    Parameters
    ----------
    probabilities : (K,).
    n_trials : number of trials.

    Examples
    --------
    >>> Multinomial([0.5, 0.5], 2).density([1, 1])
    0.5
    """

    probabilities: FloatArray  # (K,)
    n_trials: int
    support = "composition"
    event_ndim = 1
    flat_base = False

    def __post_init__(self) -> None:
        self._check()
        trials = number("n_trials", self.n_trials, low=0, closed=True, whole=True)
        object.__setattr__(self, "n_trials", int(trials))

    @property
    def known(self) -> dict[str, Any]:
        """The number of trials."""
        return {"n_trials": self.n_trials}

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(K,)."""
        return (self.n_states,)

    @property
    def mean(self) -> FloatArray:
        """n p, (K,)."""
        return self.n_trials * self.probabilities

    @property
    def cov(self) -> FloatArray:
        """n (diag(p) − p pᵀ), (K, K)."""
        return self.log_partition_hessian

    @property
    def log_partition(self) -> float:
        """n log Σ_k e^θ_k."""
        return self.n_trials * self._offset

    @property
    def mean_parameters(self) -> FloatArray:
        """n p, (K,)."""
        return self.mean

    @property
    def log_partition_hessian(self) -> FloatArray:
        """n (diag(p) − p pᵀ)."""
        p = self.probabilities
        return self.n_trials * (np.diag(p) - np.outer(p, p))

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """p = softmax(θ)."""
        return cls._from_logits(theta, n_trials=known["n_trials"])

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """p = μ / n."""
        if not known["n_trials"]:
            raise ModelError("n_trials must be at least 1 to learn probabilities; it is 0.")
        return cls(vector("mu", mu) / known["n_trials"], known["n_trials"])

    @classmethod
    def fit(cls, x: Any, *, weights: Any = None, n_trials: int | None = None, **known: Any) -> Self:
        """Relative frequencies from rows of counts (m, K), which must all have the same sum.

        >>> Multinomial.fit([[1, 3], [2, 2]]).probabilities.tolist()
        [0.375, 0.625]
        """
        points = cls._read(x, None)
        if n_trials is None and points.ndim == 2 and len(points):
            n_trials = int(points[0].sum()) if np.isfinite(points[0]).all() else 0
        return super().fit(points, weights=weights, n_trials=n_trials)

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return x

    def _log_base(self, x: FloatArray) -> Any:
        from scipy.special import gammaln

        return gammaln(self.n_trials + 1.0) - gammaln(x + 1.0).sum(axis=-1)

    def _mean_log_base(self) -> float:
        from scipy.special import gammaln, xlog1py, xlogy

        n = self.n_trials
        k = np.arange(n + 1.0)
        p = self.probabilities[:, None]
        log_factorial = gammaln(k + 1.0)
        choose = log_factorial[-1] - log_factorial - log_factorial[::-1]
        binomial = np.exp(choose + xlogy(k, p) + xlog1py(n - k, -p))
        return float(log_factorial[-1] - (binomial @ log_factorial).sum())

    def sample(self, n: int = 1, random_state: RandomState = None) -> IntArray:
        """n rows of counts, (n, K)."""
        return generator(random_state).multinomial(self.n_trials, self.probabilities, size=count_of_draws(n))
