"""One pass over rows for Gaussian components: log joints and expected moments, block by block through BLAS.

A log density is linear in the statistics (xᵢxⱼ, xᵢ, 1) of a row, and so are the moments: with F the statistics of a
block of rows, C Fᵀ holds all log joints and R F all moments, two products of matrices. Written out like this, numbers
far from zero lose digits; where a component is so narrow or so far away that more than about five would be lost,
differences from its mean are taken instead (`_Centered`, `_CenteredDiagonal`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gramgraph.typing import FloatArray

LOG_2PI = float(np.log(2.0 * np.pi))
#: Largest second moment over variance for which products are written out.
_FAR = 1e5
#: log weight of a component that is not there: exp of it is 0, and products with it stay finite.
_ABSENT = -1e300


@dataclass(frozen=True)
class Moments:
    """Expected weight, mean and centered second moments of every component; squares alone where it is diagonal."""

    n: FloatArray  # (k,) or, where columns have different gaps, (k, d)
    mean: FloatArray  # (k, d)
    scatter: FloatArray  # (k, d, d) or (k, d)

    def scaled(self, factor: float) -> Moments:
        """Moments of rows that count `factor` times."""
        return Moments(factor * self.n, self.mean, factor * self.scatter)


def block_size(p: int) -> int:
    """Rows of a block whose statistics stay in the cache."""
    return int(np.clip(65536 // max(p, 1), 64, 1024))


def log_weights(weights: FloatArray) -> FloatArray:
    """Their logarithms, finite where a weight is 0."""
    return np.where(weights > 0.0, np.log(np.where(weights > 0.0, weights, 1.0)), _ABSENT)


@lru_cache(maxsize=64)
def _upper(d: int) -> tuple[Any, Any]:
    """Positions of the upper triangle; every pattern of gaps asks for them in every step."""
    return np.triu_indices(d)


def merge(a: Moments | None, b: Moments) -> Moments:
    """Moments of two sets of rows together."""
    if a is None:
        return b
    n = a.n + b.n
    share = b.n / np.where(n > 0.0, n, 1.0)
    full = b.scatter.ndim == 3
    if a.n.ndim == 1:
        share = share[:, None]
    gap = b.mean - a.mean
    cross = (a.n if a.n.ndim == 2 else a.n[:, None]) * share  # a.n b.n / n
    if full:
        between = (cross * gap)[:, :, None] * gap[:, None, :]
    else:
        between = cross * gap * gap
    return Moments(n, a.mean + share * gap, a.scatter + b.scatter + between)


class _Expanded:
    """log joint = ½-quadratic form written out: one row of coefficients for each component."""

    def __init__(self, logs: FloatArray, means: FloatArray, P: FloatArray) -> None:
        k, d = means.shape
        self.d, self.k = d, k
        i, j = _upper(d)
        twice = np.where(i == j, 0.5, 1.0)
        shift = np.einsum("kij,kj->ki", P, means)
        constant = logs - 0.5 * np.einsum("ki,ki->k", shift, means)
        self.coefficients = np.hstack([-P[:, i, j] * twice, shift, constant[:, None]])
        self.p = self.coefficients.shape[1]
        self.size = block_size(self.p)
        self._features = np.empty((self.p, self.size))
        self._features[-1] = 1.0
        self._sums = np.zeros((k, self.p))
        from gramgraph._numerics.mixtures.statistics import quadratic_statistics

        self._statistics = quadratic_statistics

    def logs(self, x: FloatArray) -> FloatArray:
        self._now = features = self._features[:, : x.shape[1]]
        self._statistics(x, features)
        return np.asarray(self.coefficients @ features)

    def add(self, r: FloatArray, x: FloatArray) -> None:
        self._sums += r @ self._now.T

    def moments(self) -> Moments:
        d = self.d
        n, first = self._sums[:, -1], self._sums[:, -1 - d : -1]
        i, j = _upper(d)
        second = np.empty((self.k, d, d))
        second[:, i, j] = second[:, j, i] = self._sums[:, : len(i)]
        mean = first / np.where(n > 0.0, n, 1.0)[:, None]
        return Moments(n.copy(), mean, second - n[:, None, None] * (mean[:, :, None] * mean[:, None, :]))


class _Whitened:
    """Densities without moments: one product whitens a block of rows for all components, and no number is far away."""

    def __init__(self, logs: FloatArray, center: FloatArray, whiten: FloatArray, shift: FloatArray) -> None:
        k, d = shift.shape
        self._logs, self._center, self._whiten, self._shift = logs, center, whiten, shift
        lines = np.concatenate([-shift[:, :, None], whiten], axis=2).swapaxes(0, 1)  # line after line of all components
        lines = np.sqrt(0.5) * lines.reshape(d * k, d + 1)
        half = (d + 1) // 2  # whitening is triangular: half of the lines need half of the columns
        self._upper, self._lower = lines[: half * k, : half + 1].copy(), lines[half * k :]
        part = int(np.clip(32768 // (d * k), 32, 256))
        self.size = 4 * part
        self._x, self._y = np.ones((part, d + 1)), np.empty((d * k, part))

    def on_rows(self, center: FloatArray, unit: FloatArray) -> _Whitened:
        """The same densities of rows that have not been brought to (x − center) / unit."""
        return _Whitened(self._logs, self._center * unit + center, self._whiten / unit, self._shift)

    def logs(self, x: FloatArray) -> FloatArray:
        k, d = self._shift.shape
        m, p = self._upper.shape
        part, n = len(self._x), x.shape[1]
        out = np.empty((k, n))
        for at in range(0, n, part):
            b = min(part, n - at)
            z, y = self._x[:b], self._y[:, :b]
            np.subtract(x[:, at : at + b].T, self._center, out=z[:, 1:])
            np.matmul(self._upper, z[:, :p].T, out=y[:m])
            np.matmul(self._lower, z.T, out=y[m:])
            y = y.reshape(d, k, b)
            np.einsum("ikb,ikb->kb", y, y, out=out[:, at : at + b])
        return np.subtract(self._logs[:, None], out, out=out)


class _Centered:
    """The same from differences to the means, exact to rounding however far the components are."""

    def __init__(self, logs: FloatArray, means: FloatArray, whiten: FloatArray) -> None:
        k, d = means.shape
        self._logs, self._means, self._whiten = logs, means, whiten
        self.size = block_size(d * 4)
        self._n, self._first, self._second = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
        from gramgraph._numerics.mixtures.statistics import whitened_squares

        self._squares = whitened_squares

    def on_rows(self, center: FloatArray, unit: FloatArray) -> _Centered:
        """The same densities of rows that have not been brought to (x − center) / unit."""
        return _Centered(self._logs, self._means * unit + center, self._whiten / unit)

    def logs(self, x: FloatArray) -> FloatArray:
        out = np.empty((len(self._logs), x.shape[1]))
        self._squares(np.ascontiguousarray(x), self._means, self._whiten, out)
        out *= -0.5
        out += self._logs[:, None]
        return out

    def add(self, r: FloatArray, x: FloatArray) -> None:
        self._n += r.sum(axis=1)
        for k, mean in enumerate(self._means):
            off = x - mean[:, None]
            weighted = off * r[k]
            self._first[k] += weighted.sum(axis=1)
            self._second[k] += weighted @ off.T

    def moments(self) -> Moments:
        n = self._n
        shift = self._first / np.where(n > 0.0, n, 1.0)[:, None]
        scatter = self._second - n[:, None, None] * (shift[:, :, None] * shift[:, None, :])
        return Moments(n, self._means + shift, scatter)


def full_pass(
    logs: FloatArray,
    means: FloatArray,
    covariances: FloatArray,
    roots: FloatArray | None = None,
    *,
    moments: bool = True,
) -> Any:
    """What runs over rows for components N(means, covariances) with log weights `logs`; `logs(x)`, `add(r, x)`,
    `moments()`, `size` of its blocks. With `moments=False` nobody will ask for these.

    `roots` R (k, d, any) with R Rᵀ = covariances are taken instead of these: a Cholesky factor of the product knows the
    smallest variance to ε · condition of itself, the triangle of R to ε · √condition.
    """
    k, d = means.shape
    if not d:
        return _Nothing(logs)
    if roots is None:
        L = np.linalg.cholesky(covariances)
    else:
        L = np.asarray(np.linalg.qr(roots.swapaxes(1, 2), "r")).swapaxes(1, 2)
    whiten = np.linalg.inv(L)
    constant = logs - 0.5 * d * LOG_2PI + np.log(np.abs(np.einsum("kii->ki", whiten))).sum(axis=1)
    spread = np.einsum("kij,kij->k", whiten, whiten) / d * (1.0 + np.einsum("ki,ki->k", means, means))
    if spread.max() > _FAR:
        return _Centered(constant, means, whiten)
    if not moments:
        return _Whitened(constant, np.zeros(d), whiten, np.einsum("kij,kj->ki", whiten, means))
    return _Expanded(constant, means, np.swapaxes(whiten, 1, 2) @ whiten)


class _Nothing:
    """Rows that show no column at all."""

    size = 1024

    def __init__(self, logs: FloatArray) -> None:
        self._logs = logs
        self._n = np.zeros(len(logs))

    def logs(self, x: FloatArray) -> FloatArray:
        return np.repeat(self._logs[:, None], x.shape[1], axis=1)

    def add(self, r: FloatArray, x: FloatArray) -> None:
        self._n += r.sum(axis=1)

    def moments(self) -> Moments:
        k = len(self._n)
        return Moments(self._n, np.zeros((k, 0)), np.zeros((k, 0, 0)))


class _ExpandedDiagonal:
    """Independent columns, written out: (x², x, 1), with `seen` (x², x, seen), each 0 where a cell is missing."""

    def __init__(self, logs: FloatArray, means: FloatArray, variances: FloatArray, gaps: bool) -> None:
        self.k, self.d = means.shape
        self.gaps = gaps
        self._log_weights = logs
        inverse = 1.0 / variances
        constant = -0.5 * (LOG_2PI + np.log(variances) + means * means * inverse)
        last = constant if gaps else constant.sum(axis=1, keepdims=True)
        self.coefficients = np.hstack([-0.5 * inverse, means * inverse, last])
        self.size = block_size(self.coefficients.shape[1])
        self._features = np.empty((self.coefficients.shape[1], self.size))
        self._sums = np.zeros(self.coefficients.shape)
        self._n = np.zeros(self.k)

    def logs(self, x: FloatArray, seen: Any = None) -> FloatArray:
        d = self.d
        self._now = features = self._features[:, : x.shape[1]]
        np.multiply(x, x, out=features[:d])
        features[d : 2 * d] = x
        features[2 * d :] = 1.0 if seen is None else seen
        return np.asarray(self.coefficients @ features + self._log_weights[:, None])

    def add(self, r: FloatArray, x: FloatArray, seen: Any = None) -> None:
        self._n += r.sum(axis=1)
        self._sums += r @ self._now.T

    def moments(self) -> tuple[FloatArray, Moments]:
        d = self.d
        n = np.broadcast_to(self._sums[:, 2 * d :], (self.k, d))
        mean = self._sums[:, d : 2 * d] / np.where(n > 0.0, n, 1.0)
        return self._n, Moments(n, mean, np.maximum(self._sums[:, :d] - n * mean * mean, 0.0))


class _CenteredDiagonal:
    """The same from differences to the means."""

    def __init__(self, logs: FloatArray, means: FloatArray, variances: FloatArray) -> None:
        self._log_weights, self._means, self._inverse = logs, means, 1.0 / variances
        self._constant = -0.5 * (LOG_2PI + np.log(variances))
        k, d = means.shape
        self.size = block_size(d * 4)
        self._n, self._seen = np.zeros(k), np.zeros((k, d))
        self._first, self._second = np.zeros((k, d)), np.zeros((k, d))

    def logs(self, x: FloatArray, seen: Any = None) -> FloatArray:
        out = np.empty((len(self._means), x.shape[1]))
        for k, mean in enumerate(self._means):
            terms = self._constant[k][:, None] - 0.5 * self._inverse[k][:, None] * (x - mean[:, None]) ** 2
            out[k] = (terms if seen is None else terms * seen).sum(axis=0)
        return out + self._log_weights[:, None]

    def add(self, r: FloatArray, x: FloatArray, seen: Any = None) -> None:
        self._n += r.sum(axis=1)
        for k, mean in enumerate(self._means):
            w = np.broadcast_to(r[k], x.shape) if seen is None else r[k] * seen
            off = x - mean[:, None]
            self._seen[k] += w.sum(axis=1)
            self._first[k] += (w * off).sum(axis=1)
            self._second[k] += (w * off * off).sum(axis=1)

    def moments(self) -> tuple[FloatArray, Moments]:
        shift = self._first / np.where(self._seen > 0.0, self._seen, 1.0)
        scatter = np.maximum(self._second - self._seen * shift * shift, 0.0)
        return self._n, Moments(self._seen, self._means + shift, scatter)


def diagonal_pass(logs: FloatArray, means: FloatArray, variances: FloatArray, gaps: bool) -> Any:
    """As `full_pass`, for components whose columns are independent; `seen` marks the cells that are there."""
    if ((1.0 + means * means) / variances).max(initial=0.0) > _FAR:
        return _CenteredDiagonal(logs, means, variances)
    return _ExpandedDiagonal(logs, means, variances, gaps)
