"""Mixtures of Gaussians: full, tied, diagonal or spherical covariances, a conjugate prior, missing cells.

Rows are brought to a mean of 0 and a deviation of 1 first (`Scale`); densities come back in the user's units. Missing
cells are integrated out: rows with the same gaps are one group, and what their observed columns tell about the others
is added to the moments exactly. Beside a prior, one rule keeps densities finite: the variance of a component is not
taken for less than `GROUP_FLOOR` times that of all rows and `FLOOR` times the column's together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph._numerics.mixtures.statistics import normalize_logs
from gramgraph.linalg.floors import FLOOR, GROUP_FLOOR, at_least, root_at_least
from gramgraph.machines.mixtures.em import new_weights, weight_penalty
from gramgraph.machines.mixtures.sweeps import Moments, block_size, diagonal_pass, full_pass, log_weights, merge
from gramgraph.typing import Array, FloatArray

SHAPES = ("full", "tied", "diag", "spherical")
_ROWS = 2048  # of a block that stays in the cache


@dataclass(frozen=True)
class Scale:
    """Columns are taken as (x − center) / unit."""

    center: FloatArray  # (d,)
    unit: FloatArray  # (d,)

    @classmethod
    def of(cls, X: FloatArray, w: FloatArray | None, shape: str) -> Scale:
        """From the cells that are there; a column that never changes counts in units of its value."""
        return cls.of_moments(*_column_moments(X, w), shape)

    @classmethod
    def of_moments(cls, center: FloatArray, variance: FloatArray, shape: str) -> Scale:
        """From means and variances of the columns."""
        size = np.abs(center)
        if shape == "spherical":  # one unit for all columns: their proportions mean something
            variance = np.full_like(variance, variance.mean())
            size = np.full_like(size, size.max(initial=0.0))
        flat = ~(variance > (1e-12 * size) ** 2)
        unit = np.where(flat, np.where(size > 0, size, 1.0), np.sqrt(np.where(flat, 1.0, variance)))
        return cls(center, unit)

    def enter(self, X: FloatArray) -> FloatArray:
        """Rows in our units."""
        return (X - self.center) / self.unit

    @property
    def log_volume(self) -> FloatArray:
        """What a log density gains for each observed column when it comes back, (d,)."""
        return -np.log(self.unit)


def _column_moments(X: FloatArray, w: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Means and variances of the columns from the cells that are there."""
    if np.isnan(X.sum()):
        seen = ~np.isnan(X)
        weight = seen * (1.0 if w is None else w[:, None])
        n = weight.sum(axis=0)
        n = np.where(n > 0, n, 1.0)
        center = (weight * np.where(seen, X, 0.0)).sum(axis=0) / n
        return center, (weight * np.where(seen, X - center, 0.0) ** 2).sum(axis=0) / n
    total = float(len(X)) if w is None else w.sum()
    center = (X.sum(axis=0) if w is None else w @ X) / total
    variance = np.zeros(X.shape[1])
    for at in range(0, len(X), _ROWS):
        off = X[at : at + _ROWS] - center
        if w is None:
            variance += np.einsum("ij,ij->j", off, off)
        else:
            variance += np.einsum("i,ij,ij->j", w[at : at + _ROWS], off, off)
    return center, variance / total


@dataclass(frozen=True)
class GaussianParameters:
    """Weights (k,), means (k, d) and covariances (k, d, d), or variances (k, d) where columns are independent.

    `roots` R with R Rᵀ = covariances, where they are known, keep digits of narrow directions that the product loses.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    roots: FloatArray | None = None  # (k, d, d)

    def leave(self, scale: Scale) -> GaussianParameters:
        """In the user's units."""
        u = scale.unit
        factor = np.outer(u, u) if self.covariances.ndim == 3 else u * u
        return GaussianParameters(self.weights, self.means * u + scale.center, self.covariances * factor)

    def enter(self, scale: Scale) -> GaussianParameters:
        """In ours."""
        u = scale.unit
        factor = np.outer(u, u) if self.covariances.ndim == 3 else u * u
        return GaussianParameters(self.weights, scale.enter(self.means), self.covariances / factor)

    def take(self, kept: Array) -> GaussianParameters:
        """Some components; their weights sum to 1 again."""
        weights, roots = self.weights[kept], None if self.roots is None else self.roots[kept]
        return GaussianParameters(weights / weights.sum(), self.means[kept], self.covariances[kept], roots)


def n_free(k: int, d: int, shape: str) -> int:
    """Number of free parameters."""
    spread = {"full": k * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": k * d, "spherical": k}[shape]
    return k - 1 + k * d + spread


@dataclass(frozen=True)
class _Pattern:
    seen: Any  # columns that these rows show
    gone: Any  # the others
    rows: Any  # their positions
    blocks: tuple[FloatArray, ...]  # (columns, rows of the block) each
    weights: tuple[Any, ...]  # None where all rows count one
    marks: tuple[Any, ...]  # with independent columns: 1 where a cell is there


class GaussianRows:
    """Rows for mixtures of one shape; `Mixture` of `em`."""

    def __init__(
        self,
        X: FloatArray,  # (n, d) in our units, NaN where a cell is missing
        w: FloatArray | None,
        shape: str,
        *,
        concentration: float = 1.0,
        prior: Any = None,  # (mean, count, dof, scale) of a normal–inverse-Wishart prior, in our units
    ) -> None:
        self.n_rows, self.d = X.shape
        self.X, self.w, self.shape = X, w, shape
        self.total = float(self.n_rows if w is None else w.sum())
        self.concentration, self.prior = concentration, prior
        self.full = shape in ("full", "tied")
        self.gaps = bool(np.isnan(X).any())
        self._parts = self._patterns() if self.full else [self._one_pattern()]

    # ------------------------------------------------------------------------------------------ rows

    def _patterns(self) -> list[_Pattern]:
        if not self.gaps:
            return [self._cut(np.arange(self.d), np.arange(self.n_rows))]
        seen = ~np.isnan(self.X)
        packed = np.packbits(seen, axis=1)
        _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        which = which.reshape(-1)
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which))
        found = np.split(order, ends[:-1])
        return [self._cut(np.flatnonzero(seen[at]), rows) for at, rows in zip(first, found, strict=True)]

    def _one_pattern(self) -> _Pattern:
        return self._cut(np.arange(self.d), np.arange(self.n_rows))

    def _cut(self, columns: Any, rows: Any) -> _Pattern:
        m = len(columns)
        p = m * (m + 3) // 2 + 1 if self.full else 2 * m + (m if self.gaps else 1)
        size = block_size(p)
        blocks, weights, marks = [], [], []
        whole = len(rows) == self.n_rows
        for at in range(0, len(rows), size):
            part = slice(at, at + size) if whole else rows[at : at + size]
            x = np.ascontiguousarray((self.X[part] if m == self.d else self.X[part][:, columns]).T)
            if not self.full and self.gaps:
                mark = (~np.isnan(x)).astype(np.float64)
                x = np.where(mark > 0.0, x, 0.0)
                marks.append(mark)
            blocks.append(x)
            weights.append(None if self.w is None else self.w[part])
        gone = np.setdiff1d(np.arange(self.d), columns)
        return _Pattern(columns, gone, rows, tuple(blocks), tuple(weights), tuple(marks))

    @cached_property
    def least(self) -> FloatArray:
        """The smallest covariance (or variances) of a component."""
        C = _spread_of_all(self.X, self.w)
        least = GROUP_FLOOR * at_least(C, FLOOR * np.eye(self.d)) + FLOOR * np.eye(self.d) if self.full else None
        if least is not None:
            return least
        own = np.maximum(np.diag(C), FLOOR)
        if self.shape == "spherical":
            own = np.full_like(own, own.mean())
        return np.asarray(GROUP_FLOOR * own + FLOOR)

    # ------------------------------------------------------------------------------------------ expectation

    def _pass(self, parameters: GaussianParameters, part: _Pattern, *, moments: bool = True) -> Any:
        logs = log_weights(parameters.weights)
        if not self.full:
            return diagonal_pass(logs, parameters.means, parameters.covariances, self.gaps)
        o, roots = part.seen, parameters.roots
        if len(o) == self.d:
            return full_pass(logs, parameters.means, parameters.covariances, roots, moments=moments)
        C = parameters.covariances[:, o[:, None], o]
        return full_pass(logs, parameters.means[:, o], C, None if roots is None else roots[:, o], moments=moments)

    def expect(self, parameters: GaussianParameters) -> tuple[Any, float]:
        """(weight of every component, `Moments`), and the log-likelihood."""
        total, moments, n = 0.0, None, np.zeros(len(parameters.weights))
        for part in self._parts:
            run = self._pass(parameters, part)
            for at, (x, w) in enumerate(zip(part.blocks, part.weights, strict=True)):
                extra = (part.marks[at],) if part.marks else ()
                r = run.logs(x, *extra)
                found = normalize_logs(r)
                if w is None:
                    total += float(found.sum())
                else:
                    total += float(w @ found)
                    r *= w
                run.add(r, x, *extra)
            if self.full:
                own = run.moments()
                n += own.n
                moments = merge(moments, self._complete(own, part.seen, part.gone, parameters))
            else:
                n, own = run.moments()
                moments = self._complete_diagonal(n, own, parameters)
        return (n, moments), total

    def _complete(self, own: Moments, o: Any, m: Any, parameters: GaussianParameters) -> Moments:
        """Moments of all columns from those that were seen: E[x_m | x_o] = μ_m + B (x_o − μ_o), and its spread."""
        if len(o) == self.d:
            return own
        k = len(parameters.weights)
        C, mu = parameters.covariances, parameters.means
        mean, scatter = np.empty((k, self.d)), np.empty((k, self.d, self.d))
        C_om = C[:, o[:, None], m]
        B = np.linalg.solve(C[:, o[:, None], o], C_om).swapaxes(1, 2) if len(o) else np.zeros((k, len(m), 0))
        left = C[:, m[:, None], m] - B @ C_om
        cross = B @ own.scatter
        mean[:, o] = own.mean
        mean[:, m] = mu[:, m] + np.einsum("kmo,ko->km", B, own.mean - mu[:, o])
        scatter[:, o[:, None], o] = own.scatter
        scatter[:, m[:, None], o] = cross
        scatter[:, o[:, None], m] = cross.swapaxes(1, 2)
        scatter[:, m[:, None], m] = cross @ B.swapaxes(1, 2) + own.n[:, None, None] * left
        return Moments(own.n, mean, scatter)

    def _complete_diagonal(self, n: FloatArray, own: Moments, parameters: GaussianParameters) -> Moments:
        if not self.gaps:
            return Moments(n, own.mean, own.scatter)
        rest = np.maximum(n[:, None] - own.n, 0.0)
        both = merge(own, Moments(rest, parameters.means, rest * parameters.covariances))
        return Moments(n, both.mean, both.scatter)

    def logs(self, parameters: GaussianParameters) -> FloatArray:
        """log π_k + log p(x | k) of every row, (n, k)."""
        out = np.empty((self.n_rows, len(parameters.weights)))
        for part in self._parts:
            run, at = self._pass(parameters, part, moments=False), 0
            for i, x in enumerate(part.blocks):
                found = run.logs(x, *((part.marks[i],) if part.marks else ()))
                out[part.rows[at : at + x.shape[1]]] = found.T
                at += x.shape[1]
        return out

    # ------------------------------------------------------------------------------------------ maximization

    def maximize(self, statistics: Any, before: GaussianParameters) -> GaussianParameters:
        """Maximum likelihood, or the mode under the prior; a component without rows stays where it is."""
        n, moments = statistics
        weights = new_weights(n, self.concentration)
        return replace(self.components(n, moments, before), weights=weights)

    def components(self, n: FloatArray, moments: Moments, before: GaussianParameters | None) -> GaussianParameters:
        """Means and covariances from moments."""
        mean, scatter, count = moments.mean, moments.scatter, n
        if self.prior is not None:
            m, kappa, dof, scale = self.prior
            off = mean - m
            pull = kappa * n / (kappa + n)
            mean = (n[:, None] * mean + kappa * m) / (n + kappa)[:, None]
            between = off[:, :, None] * off[:, None, :] if self.full else off * off
            own = scale if self.full else np.diag(scale)
            scatter = scatter + pull.reshape(-1, *[1] * (scatter.ndim - 1)) * between
            if self.shape == "tied":
                total = dof + self.d + 1.0 + len(n) + n.sum()
                pooled = (scatter.sum(axis=0) + own) / total
                return GaussianParameters(np.zeros(0), mean, *self._floored(np.repeat(pooled[None], len(n), axis=0)))
            scatter = scatter + own
            count = n + dof + self.d + 2.0
        empty = count <= 0.0
        if self.shape == "tied":
            C = np.repeat((scatter.sum(axis=0) / count.sum())[None], len(n), axis=0)
        else:
            safe = np.where(empty, 1.0, count)
            C = scatter / safe.reshape(-1, *[1] * (scatter.ndim - 1))
            if self.shape == "spherical":
                C = np.repeat(C.mean(axis=1, keepdims=True), self.d, axis=1)
        if empty.any() and before is not None:
            mean = np.where(empty[:, None], before.means, mean)
            if self.shape != "tied":
                C = np.where(empty.reshape(-1, *[1] * (C.ndim - 1)), before.covariances, C)
        return GaussianParameters(np.zeros(0), mean, *self._floored(C))

    def _floored(self, C: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Covariances that are not below the smallest, and their roots."""
        if not self.full:
            return np.maximum(C, self.least), None
        C = 0.5 * (C + C.swapaxes(1, 2))
        own = [root_at_least(one, self.least) for one in (C[:1] if self.shape == "tied" else C)]
        covariances, roots = (np.array(found) for found in zip(*own, strict=True))
        if self.shape == "tied":
            return np.repeat(covariances, len(C), axis=0), np.repeat(roots, len(C), axis=0)
        return covariances, roots

    def log_prior(self, parameters: GaussianParameters) -> float:
        """Dirichlet and normal–inverse-Wishart densities, up to constants."""
        total = weight_penalty(parameters.weights, self.concentration)
        if self.prior is None:
            return total
        m, kappa, dof, scale = self.prior
        off, C = parameters.means - m, parameters.covariances
        k = len(off)
        if self.full:
            log_det = np.linalg.slogdet(C)[1]
            squares = np.einsum("ki,ki->k", off, np.linalg.solve(C, off[:, :, None])[:, :, 0])
            traces = np.einsum("kii->k", np.linalg.solve(C, np.broadcast_to(scale, C.shape)))
        else:
            log_det = np.log(C).sum(axis=1)
            squares = (off * off / C).sum(axis=1)
            traces = (np.diag(scale) / C).sum(axis=1)
        total -= 0.5 * float((log_det + kappa * squares).sum())
        own = slice(0, 1) if self.shape == "tied" else slice(0, k)
        return total - 0.5 * float(((dof + self.d + 1.0) * log_det + traces)[own].sum())

    # ------------------------------------------------------------------------------------------ starts

    def from_responsibilities(self, R: FloatArray) -> GaussianParameters:
        """Parameters from shares (n, k); missing cells stand at their column's mean, with its spread."""
        weighted = R if self.w is None else R * self.w[:, None]
        gone = np.isnan(self.X)
        X = np.where(gone, 0.0, self.X)
        n = weighted.sum(axis=0)
        safe = np.where(n > 0.0, n, 1.0)
        mean = (weighted.T @ X) / safe[:, None]
        missing = weighted.T @ gone  # (k, d): a missing cell has variance 1 in our units
        if self.full:
            scatter = np.empty((len(n), self.d, self.d))
            for k in range(len(n)):
                off = X - mean[k]
                scatter[k] = off.T @ (weighted[:, k, None] * off) + np.diag(missing[k])
        else:
            scatter = np.array([weighted[:, k] @ (X - mean[k]) ** 2 for k in range(len(n))]) + missing
        if self.shape != "tied" and (n <= 0.0).any():  # nothing to start from: as all rows are
            own = np.eye(self.d) if self.full else np.ones(self.d)
            scatter[n <= 0.0] = own
        counts = np.where(n > 0.0, n, 1.0) if self.shape != "tied" else n
        made = self.components(counts, Moments(counts, mean, scatter), None)
        return replace(made, weights=new_weights(n, max(self.concentration, 1.0)))


def _spread_of_all(X: FloatArray, w: FloatArray | None) -> FloatArray:
    """Covariance of the rows that show everything; of single columns where they are too few."""
    d = X.shape[1]
    whole = ~np.isnan(X).any(axis=1)
    if whole.sum() > d:
        Z = X[whole]
        v = np.ones(len(Z)) if w is None else w[whole]
        if v.sum() > 0.0:
            off = Z - (v @ Z) / v.sum()
            return np.asarray(off.T @ (v[:, None] * off) / v.sum())
    seen = ~np.isnan(X)
    v = seen * (1.0 if w is None else w[:, None])
    n = np.where(v.sum(axis=0) > 0.0, v.sum(axis=0), 1.0)
    Z = np.where(seen, X, 0.0)
    mean = (v * Z).sum(axis=0) / n
    return np.diag((v * np.where(seen, X - mean, 0.0) ** 2).sum(axis=0) / n)
