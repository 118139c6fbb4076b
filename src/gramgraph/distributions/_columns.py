"""Families of one column, for groups of rows: weighted maximum likelihood and log densities, many groups at once.

Parameters are (k, p): a line for each group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramgraph.typing import Array, FloatArray


@dataclass(frozen=True)
class Family:
    """One column: what its cells are, and how components describe them."""

    name: ClassVar[str] = ""
    wanted: ClassVar[str] = "finite numbers"
    n_parameters: ClassVar[int] = 1

    def moments(self, x: FloatArray) -> FloatArray:
        """Sufficient statistics of every cell, (n, m)."""
        raise NotImplementedError

    def solve(self, n: FloatArray, sums: FloatArray, before: FloatArray | None, pseudo: float) -> FloatArray:
        """Parameters (k, p) from weights (k,) and weighted sums of the moments (k, m); without weight, those before."""
        raise NotImplementedError

    def fit(self, x: FloatArray, R: FloatArray, before: FloatArray | None, pseudo: float) -> FloatArray:
        """Parameters (k, p) from cells x (n,) with weights R (n, k); a component without cells keeps its own."""
        return self.solve(R.sum(axis=0), R.T @ self.moments(x), before, pseudo)

    def logs(self, x: FloatArray, theta: FloatArray) -> FloatArray:
        """log p(x | component), (n, k)."""
        raise NotImplementedError

    def log_prior(self, theta: FloatArray, pseudo: float) -> float:
        """What is added to the objective."""
        return 0.0

    def inside(self, x: FloatArray) -> Array:
        """Which cells the family has a density for."""
        return np.isfinite(x)

    def draw(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One cell for each row of parameters."""
        raise NotImplementedError

    def encode(self, x: FloatArray) -> FloatArray:
        """Cells as points between which distances mean something, (n, m), for the first guess."""
        seen = ~np.isnan(x)
        spread = x[seen].std() if seen.any() else 1.0
        return (np.where(seen, x, x[seen].mean() if seen.any() else 0.0) / (spread or 1.0))[:, None]


def _means(x: FloatArray, R: FloatArray) -> tuple[FloatArray, FloatArray]:
    n = R.sum(axis=0)
    return n, (R.T @ x) / np.where(n > 0.0, n, 1.0)


def _kept(theta: FloatArray, n: FloatArray, before: FloatArray | None) -> FloatArray:
    return theta if before is None else np.where((n > 0.0)[:, None], theta, before)


@dataclass(frozen=True)
class GaussianFamily(Family):
    """Mean and variance, which is not taken for less than 1e-8 of that of all rows."""

    name: ClassVar[str] = "gaussian"
    n_parameters: ClassVar[int] = 2
    least: float = 1e-12

    def moments(self, x: FloatArray) -> FloatArray:
        return np.column_stack([x, x * x])

    def solve(self, n: FloatArray, sums: FloatArray, before: FloatArray | None, pseudo: float) -> FloatArray:
        mean, square = (sums / np.where(n > 0.0, n, 1.0)[:, None]).T
        return _kept(np.column_stack([mean, np.maximum(square - mean * mean, self.least)]), n, before)

    def fit(self, x: FloatArray, R: FloatArray, before: FloatArray | None, pseudo: float) -> FloatArray:
        n, mean = _means(x, R)  # squares around the mean keep their digits
        off = x[:, None] - mean
        variance = (R * off * off).sum(axis=0) / np.where(n > 0.0, n, 1.0)
        return _kept(np.column_stack([mean, np.maximum(variance, self.least)]), n, before)

    def logs(self, x: FloatArray, theta: FloatArray) -> FloatArray:
        mean, variance = theta.T
        return -0.5 * ((x[:, None] - mean) ** 2 / variance + np.log(2.0 * np.pi * variance))

    def draw(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.normal(theta[:, 0], np.sqrt(theta[:, 1]))


@dataclass(frozen=True)
class PoissonFamily(Family):
    """Counts with rate λ."""

    name: ClassVar[str] = "poisson"
    wanted: ClassVar[str] = "counts 0, 1, 2, …"

    def moments(self, x: FloatArray) -> FloatArray:
        return x[:, None]

    def solve(self, n: FloatArray, sums: FloatArray, before: FloatArray | None, pseudo: float) -> FloatArray:
        return _kept(sums / np.where(n > 0.0, n, 1.0)[:, None], n, before)

    def logs(self, x: FloatArray, theta: FloatArray) -> FloatArray:
        from scipy.special import gammaln, xlogy

        rate = theta[:, 0]
        return xlogy(x[:, None], rate) - rate - gammaln(x + 1.0)[:, None]

    def inside(self, x: FloatArray) -> Array:
        return (x >= 0.0) & (x == np.round(x)) & np.isfinite(x)

    def draw(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.poisson(theta[:, 0]).astype(np.float64)


@dataclass(frozen=True)
class GammaFamily(Family):
    """Positive numbers: shape a and rate b; log a − ψ(a) = log mean − mean log, by Newton's method."""

    name: ClassVar[str] = "gamma"
    wanted: ClassVar[str] = "numbers above 0"
    n_parameters: ClassVar[int] = 2
    most: ClassVar[float] = 1e8  # shape: the relative variance is not taken for less than 1e-8

    def moments(self, x: FloatArray) -> FloatArray:
        return np.column_stack([x, np.log(x)])

    def solve(self, n: FloatArray, sums: FloatArray, before: FloatArray | None, pseudo: float) -> FloatArray:
        from scipy.special import digamma, polygamma

        mean, mean_log = (sums / np.where(n > 0.0, n, 1.0)[:, None]).T
        safe = np.where(n > 0.0, mean, 1.0)
        gap = np.maximum(np.log(safe) - mean_log, 0.5 / self.most)
        a = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
        for _ in range(20):  # in log a: the function is monotone there
            slope = 1.0 / a - polygamma(1, a)
            a = a * np.exp(np.clip(-(np.log(a) - digamma(a) - gap) / (a * slope), -2.0, 2.0))
        a = np.clip(a, 1e-8, self.most)
        return _kept(np.column_stack([a, a / safe]), n, before)

    def logs(self, x: FloatArray, theta: FloatArray) -> FloatArray:
        from scipy.special import gammaln

        a, b = theta.T
        return a * np.log(b) - gammaln(a) + (a - 1.0) * np.log(x)[:, None] - b * x[:, None]

    def inside(self, x: FloatArray) -> Array:
        return (x > 0.0) & np.isfinite(x)

    def encode(self, x: FloatArray) -> FloatArray:
        return super().encode(np.log(x))

    def draw(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.gamma(theta[:, 0], 1.0 / theta[:, 1])


@dataclass(frozen=True)
class VonMisesFamily(Family):
    """Angles in radians: mean direction and concentration κ with I₁(κ)/I₀(κ) = length of the mean direction."""

    name: ClassVar[str] = "von_mises"
    n_parameters: ClassVar[int] = 2
    most: ClassVar[float] = 1e8

    def moments(self, x: FloatArray) -> FloatArray:
        return np.column_stack([np.cos(x), np.sin(x)])

    def solve(self, n: FloatArray, sums: FloatArray, before: FloatArray | None, pseudo: float) -> FloatArray:
        from scipy.special import i0e, i1e

        c, s = (sums / np.where(n > 0.0, n, 1.0)[:, None]).T
        r = np.clip(np.hypot(c, s), 0.0, 1.0 - 0.5 / self.most)
        kappa = r * (2.0 - r * r) / (1.0 - r * r)
        for _ in range(30):
            A = i1e(kappa) / i0e(kappa)
            slope = np.where(kappa > 1e-8, 1.0 - A * A - A / np.maximum(kappa, 1e-8), 0.5)
            slope = np.where(
                kappa > 1e5, 0.5 / np.maximum(kappa, 1.0) ** 2, slope
            )  # the difference has no digits there
            kappa = np.clip(kappa - (A - r) / slope, 0.5 * kappa, 2.0 * kappa + 1e-12)
        return _kept(np.column_stack([np.arctan2(s, c), np.minimum(kappa, self.most)]), n, before)

    def logs(self, x: FloatArray, theta: FloatArray) -> FloatArray:
        from scipy.special import i0e

        mean, kappa = theta.T
        off = -2.0 * np.sin(0.5 * (x[:, None] - mean)) ** 2  # cos − 1 without cancellation
        return kappa * off - np.log(2.0 * np.pi * i0e(kappa))

    def encode(self, x: FloatArray) -> FloatArray:
        filled = np.where(np.isnan(x), 0.0, x)
        return np.column_stack([np.cos(filled), np.sin(filled)])

    def draw(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.vonmises(theta[:, 0], theta[:, 1])


@dataclass(frozen=True)
class CategoricalFamily(Family):
    """Labels, given as 0, …, size − 1; `pseudo` is added to every count."""

    name: ClassVar[str] = "categorical"
    size: int = 2

    def moments(self, x: FloatArray) -> FloatArray:
        return self.encode(x)

    def fit(self, x: FloatArray, R: FloatArray, before: FloatArray | None, pseudo: float) -> FloatArray:
        codes = x.astype(np.int64)
        counts = np.array([np.bincount(codes, r, minlength=self.size) for r in R.T]).reshape(-1, self.size)
        return self.solve(counts.sum(axis=1), counts, before, pseudo)

    def solve(self, n: FloatArray, sums: FloatArray, before: FloatArray | None, pseudo: float) -> FloatArray:
        theta = (sums + pseudo) / np.maximum(n + pseudo * self.size, 1e-300)[:, None]
        return _kept(theta, n + pseudo, before)

    def logs(self, x: FloatArray, theta: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(theta).T[x.astype(np.int64)]

    def log_prior(self, theta: FloatArray, pseudo: float) -> float:
        return pseudo * float(np.log(theta).sum()) if pseudo else 0.0

    def encode(self, x: FloatArray) -> FloatArray:
        seen = ~np.isnan(x)
        out = np.zeros((len(x), self.size))
        out[np.flatnonzero(seen), x[seen].astype(np.int64)] = 1.0
        return out

    def draw(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        below = np.cumsum(theta, axis=1) <= rng.random(len(theta))[:, None]
        return np.minimum(below.sum(axis=1), self.size - 1).astype(np.float64)


FAMILIES: dict[str, type[Family]] = {
    family.name: family for family in (GaussianFamily, PoissonFamily, GammaFamily, VonMisesFamily, CategoricalFamily)
}
