"""Linear Gaussian conditionals from second moments: maximum likelihood, or a conjugate prior.

One rule for groups (configurations of discrete parents) with few rows or no spread, the same in `fit`, in EM and in the
scores of structures:

* A group that fewer than d + `FEW` rows show (d: real parents and child) is filled up to so many with rows that spread
  around its own mean as rows spread in all groups together. Where means and slopes of the groups take more than half of
  the rows (a label for every row), that cannot be told, and the spread of all rows stands in for what is missing.
* The variance of a group is not taken for less than `GROUP_FLOOR` times that common one and `FLOOR` times the column's
  together, so that readings that are all equal have a density.

Everything else is maximum likelihood.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import OptionError
from gramgraph.linalg.floors import FLOOR, GROUP_FLOOR, at_least
from gramgraph.typing import FloatArray

__all__ = ["FEW", "FLOOR", "GROUP_FLOOR", "LinearGaussianPrior", "Reference", "regress"]

#: A group is filled up where it has fewer rows than real parents, child and this many together.
FEW = 4


@dataclass(frozen=True)
class LinearGaussianPrior:
    """A conjugate prior of a linear Gaussian: w | σ² ~ N(0, σ² / precision), σ² ~ InverseGamma(shape, scale).

    w are the coefficients (the intercept has a flat prior unless `intercept_precision` is given); for a vector-valued
    child σ² becomes a covariance with the matching inverse Wishart prior. A network that is fitted with it
    takes the posterior means of w and σ². With real data in other units than one, set `scale` accordingly.

    Parameters
    ----------
    precision : of the coefficients, in units of 1 / σ².
    shape : of σ².
    scale : of σ².
    intercept_precision : of the intercept; None for a flat prior.

    Examples
    --------
    >>> import gramgraph as gg, pandas as pd
    >>> data = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 2.0, 4.0, 6.0]})
    >>> net = gg.BayesianNetwork("x{real} -> y{real}").fit(data, prior=gg.learn.LinearGaussianPrior(precision=5.0))
    >>> net.conditional("y").coefficients.tolist()
    [[1.0]]
    """

    precision: float = 1.0
    shape: float = 1.0
    scale: float = 1.0
    intercept_precision: float = 0.0

    def __post_init__(self) -> None:
        for name in ("precision", "shape", "scale", "intercept_precision"):
            value = getattr(self, name)
            low = name in ("precision", "intercept_precision")
            if (
                not isinstance(value, (int, float, np.number))
                or not np.isfinite(value)
                or value < 0
                or (not low and value == 0)
            ):
                raise OptionError(
                    f"{name} of a normal–inverse-Gamma prior must be a {'number from 0' if low else 'positive number'}"
                )

    def has_mean(self, n: float) -> bool:
        """Whether the posterior of σ² from n rows has a mean that `regress` takes as it is."""
        return self.shape + 0.5 * n - (0.0 if self.intercept_precision > 0 else 0.5) >= 2.0

    def penalty(self, W: FloatArray, b: FloatArray, C: FloatArray) -> float:
        """What the estimates of `regress` maximize beside the log-likelihood, up to a constant.

        Posterior means of w are modes as well; that of σ² is the mode under a prior with another power of σ².
        """
        power = self.shape - (1.0 if self.intercept_precision > 0 else 1.5)
        squares = self.precision * W @ W.T + self.intercept_precision * np.outer(b, b)
        spread = self.scale * np.eye(len(C)) + 0.5 * squares
        return -power * float(np.linalg.slogdet(C)[1]) - float(np.trace(np.linalg.solve(C, spread)))


def regress(
    n: float,
    mean: FloatArray,  # (m + k,) of parents and child
    S: FloatArray,  # (m + k, m + k) centered second moments, Σ w (x − mean)(x − mean)ᵀ
    k: int,
    prior: LinearGaussianPrior | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(coefficients, intercept, covariance) of the last k components given the others. O(m³).

    Maximum likelihood divides the residual squares by n. With a prior, posterior means.
    """
    m = len(mean) - k
    S_xx, S_xy, S_yy = S[:m, :m], S[:m, m:], S[m:, m:]
    x, y = mean[:m], mean[m:]
    if prior is None:
        W: FloatArray = np.asarray(np.linalg.lstsq(S_xx, S_xy, rcond=1e-12)[0].T, np.float64) if m else np.zeros((k, 0))
        residual = S_yy - W @ S_xy - (W @ S_xy).T + W @ S_xx @ W.T
        return W, y - W @ x, _positive(residual / n)
    kappa = prior.intercept_precision
    # A flat intercept leaves the centered moments; a proper one shrinks the mean towards zero.
    shrink = n * kappa / (n + kappa) if kappa > 0 else 0.0
    A = S_xx + shrink * np.outer(x, x) + prior.precision * np.eye(m)
    B = S_xy + shrink * np.outer(x, y)
    W = np.asarray(np.linalg.solve(A, B).T, np.float64) if m else np.zeros((k, 0))
    total = S_yy + shrink * np.outer(y, y) - W @ B
    b = (y - W @ x) * (n / (n + kappa) if n > 0 else 0.0)
    shape = prior.shape + 0.5 * n - (0.5 if kappa == 0 else 0.0)
    scale = prior.scale * np.eye(k) + 0.5 * total
    return W, b, _positive(scale / max(shape - 1.0, 0.5 * shape))


@dataclass(frozen=True, eq=False)
class Reference:
    """How (real parents, child) spread around the mean of their group: what single groups are held against."""

    mean: FloatArray  # (d,) of all rows
    spread: FloatArray  # (d, d)
    k: int  # dimension of the child, which comes last
    floor: FloatArray  # (k, k): the least covariance of all rows together
    left: FloatArray  # (k, k): what the real parents leave of the child

    @classmethod
    def of(
        cls,
        mean: FloatArray,
        cov: FloatArray,
        k: int,
        rows: int,
        within: FloatArray | float = 0.0,  # (d, d) second moments around the means of groups, a row counting one
        free: float = 0.0,  # how many rows less coefficients that is
    ) -> Reference:
        """From moments of so many rows; a child that never changes counts in units of its value."""
        d = len(mean)
        if rows <= d:  # any regression on so few rows is exact
            cov = np.diag(np.diag(cov))
        own = np.diag(cov)[d - k :]
        size = np.abs(mean[d - k :])
        unit = np.where(own > (1e-12 * size) ** 2, own, np.where(size > 0, size**2, 1.0))
        floor = np.diag(FLOOR * unit)
        spread = common_spread(cov, rows, within, free)
        return cls(mean, spread, k, floor, at_least(regress(1.0, mean, spread, k)[2], floor))

    @property
    def rows_needed(self) -> int:
        """How many rows a group needs to stand alone."""
        return len(self.mean) + FEW

    def group(
        self, n: float, mean: FloatArray, S: FloatArray, more: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(coefficients, intercept, covariance) of one group, filled up with `more` rows."""
        if n <= 0:
            mean, S = self.mean, np.zeros_like(self.spread)
            more = max(more, 1.0)
        W, b, C = regress(n + more, mean, S + more * self.spread, self.k)
        return W, b, at_least(C, GROUP_FLOOR * self.left + self.floor)

    def log_density(self, W: FloatArray, C: FloatArray) -> float:
        """Mean log-density of the rows that groups are filled up with, under coefficients and covariance of a group."""
        V = np.hstack([-W, np.eye(self.k)])
        log_det = float(np.linalg.slogdet(C)[1])
        squares = float(np.trace(np.linalg.solve(C, V @ self.spread @ V.T)))
        return -0.5 * (self.k * math.log(2.0 * math.pi) + log_det + squares)


def common_spread(cov: FloatArray, rows: int, within: FloatArray | float, free: float) -> FloatArray:
    """Spread around the means of groups from their second moments, of which `free` rows remain; filled up to half of
    the rows with the covariance of all."""
    free = max(free, 0.0)
    more = max(0.5 * rows - free, FEW - free, 0.0)
    return np.asarray((within * (free > 0) + more * cov) / (free + more))


def _positive(S: FloatArray) -> FloatArray:
    """Symmetric, without the small negative eigenvalues of rounding."""
    S = 0.5 * (S + S.T)
    if len(S) == 1:
        return np.maximum(S, 0.0)
    values, vectors = np.linalg.eigh(S)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T) if values[0] < 0 else S


def moments(X: FloatArray, weights: Any = None) -> tuple[float, FloatArray, FloatArray]:
    """(total weight, mean, centered second moments) of rows."""
    w = np.ones(len(X)) if weights is None else weights
    n = float(w.sum())
    mean = (w @ X) / n if n > 0 else np.zeros(X.shape[1])
    off = X - mean
    return n, mean, off.T @ (w[:, None] * off)
