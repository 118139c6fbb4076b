"""Gaussian emissions of all covariance shapes; rows with gaps are handled exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import solve_triangular

from gramgraph._numerics import hmm_emissions as _loops
from gramgraph.exceptions import ModelError
from gramgraph.sequences._unrolled import gaussian_node
from gramgraph.sequences.recursions import likelihoods
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.conditionals import Conditional
    from gramgraph.variables import Var

__all__ = ["COVARIANCE_TYPES", "GaussianEmission"]

COVARIANCE_TYPES = ("full", "diag", "spherical", "tied")
_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class GaussianEmission:
    """N(x | mean_k, Σ_k) with the prior exp(−½ ν (tr(diag(spread) Σ⁻¹) + log |Σ|)): ν observations of variance spread.

    covariances: full (K, d, d), diag (K, d), spherical (K,), tied (d, d). NaN entries of the data were not observed.
    """

    means: FloatArray  # (K, d)
    covariances: FloatArray
    kind: str
    prior: float  # ν
    spread: FloatArray  # (d,)

    @property
    def n_parameters(self) -> int:
        """Means and free entries of the covariances."""
        K, d = self.means.shape
        shape = {"full": K * d * (d + 1) // 2, "diag": K * d, "spherical": K, "tied": d * (d + 1) // 2}
        return K * d + shape[self.kind]

    # ------------------------------------------------------------------------------------------ densities

    def likelihoods(self, data: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Densities divided by the largest of the row, and its logarithm."""
        logs = self.logs(data)
        return likelihoods(logs)

    def logs(self, data: FloatArray, /) -> FloatArray:
        """log N(x_t | mean_k, Σ_k) of the observed entries, (N, K)."""
        out = np.empty((len(data), len(self.means)))
        if self.kind in ("diag", "spherical"):
            var = np.ascontiguousarray(self._variances().T)
            constants = -0.5 * (_LOG_2PI + np.log(var))
            _loops.diagonal_gaussian_logs(data, np.ascontiguousarray(self.means.T), 1.0 / var, constants, out)
            return out
        for rows, seen in _patterns(data):
            X = data[rows] if seen.all() else data[rows][:, seen]
            out[rows] = self._dense_logs(X, seen)
        return out

    def _variances(self) -> FloatArray:
        return self.covariances if self.kind == "diag" else np.repeat(self.covariances[:, None], self.means.shape[1], 1)

    def _dense_logs(self, X: FloatArray, seen: Array) -> FloatArray:
        """Densities of rows that show the same columns, by Cholesky and one triangular solve a state."""
        out = np.zeros((len(X), len(self.means)))
        if X.shape[1] == 0:
            return out
        for k, mean in enumerate(self.means[:, seen]):
            if k == 0 or self.kind == "full":
                L = self._roots[k] if seen.all() else self._root(k, seen)
                constant = -0.5 * X.shape[1] * _LOG_2PI - float(np.log(np.diagonal(L)).sum())
            Z = solve_triangular(L, (X - mean).T, lower=True, overwrite_b=True, check_finite=False)
            out[:, k] = constant - 0.5 * np.einsum("it,it->t", Z, Z)
        return out

    def _dense(self, k: int) -> FloatArray:
        if self.kind in ("diag", "spherical"):
            return np.diag(self._variances()[k])
        return self.covariances[k] if self.kind == "full" else self.covariances

    @cached_property
    def _roots(self) -> tuple[FloatArray, ...]:
        """Cholesky roots of all covariances, for rows without gaps."""
        everything = np.ones(self.means.shape[1], dtype=bool)
        return tuple(self._root(k, everything) for k in range(len(self.means) if self.kind == "full" else 1))

    def _root(self, k: int, seen: Array) -> FloatArray:
        cov = self._dense(k)
        try:
            return np.linalg.cholesky(cov if seen.all() else cov[np.ix_(seen, seen)])
        except np.linalg.LinAlgError:
            raise _collapsed(k) from None

    # -------------------------------------------------------------------------------------------- learning

    def update(self, data: FloatArray, gamma: FloatArray, /) -> Self:
        """Weighted means and covariances; a state without weight keeps its mean."""
        if self.kind in ("diag", "spherical"):
            return self._update_diagonal(data, gamma)
        return self._update_dense(data, gamma)

    def _update_diagonal(self, data: FloatArray, gamma: FloatArray) -> Self:
        K, d = self.means.shape
        weights, sums, squares = np.zeros((d, K)), np.zeros((d, K)), np.zeros((d, K))
        _loops.weighted_moments(data, gamma, weights, sums)
        alive = weights > 1e-300
        means = np.where(alive, sums / np.where(alive, weights, 1.0), self.means.T)
        _loops.weighted_squares(data, gamma, means, squares)
        squares += self.prior * self.spread[:, None]
        weights += self.prior
        if self.kind == "spherical":
            squares, weights = squares.sum(axis=0), weights.sum(axis=0)
        alive = weights > 1e-300
        var = np.where(alive, squares / np.where(alive, weights, 1.0), self.covariances.T)
        if not (var > 0.0).all() or not np.isfinite(1.0 / var).all():
            raise _collapsed(int(np.argwhere(~(var > 0.0) | ~np.isfinite(1.0 / var))[0][-1]))
        return replace(self, means=np.ascontiguousarray(means.T), covariances=np.ascontiguousarray(var.T))

    def _update_dense(self, data: FloatArray, gamma: FloatArray) -> Self:
        K, d = self.means.shape
        weights, sums = np.zeros(K), np.zeros((K, d))
        groups = [(rows, seen) for rows, seen in _patterns(data) if seen.any()]
        for rows, seen in groups:
            g = gamma[rows]
            weights += g.sum(axis=0)
            for k in range(K):
                sums[k] += g[:, k] @ self._completed(data[rows], seen, k)[0] if not seen.all() else 0.0
            if seen.all():
                sums += g.T @ data[rows]
        alive = weights > 1e-300
        means = np.where(alive[:, None], sums / np.where(alive, weights, 1.0)[:, None], self.means)
        scatter = np.zeros((K, d, d))
        for rows, seen in groups:
            g = gamma[rows]
            for k in range(K):
                filled, rest = self._completed(data[rows], seen, k)
                gap = filled - means[k]
                scatter[k] += (gap * g[:, k : k + 1]).T @ gap + g[:, k].sum() * rest
        return replace(self, means=means, covariances=self._covariances(scatter, weights))

    def _covariances(self, scatter: FloatArray, weights: FloatArray) -> FloatArray:
        extra = np.diag(self.prior * self.spread)
        if self.kind == "tied":
            scatter, weights = scatter.sum(axis=0, keepdims=True), weights.sum(keepdims=True)
        total = weights + self.prior
        old = self.covariances[None] if self.kind == "tied" else self.covariances
        alive = (total > 1e-300)[:, None, None]
        found = np.where(alive, (scatter + extra) / np.where(alive, total[:, None, None], 1.0), old)
        found = 0.5 * (found + found.transpose(0, 2, 1))
        for k, cov in enumerate(found):
            lowest = np.linalg.eigvalsh(cov)[0]
            if not lowest > 1e-14 * np.trace(cov):
                raise _collapsed(k)
        return found[0] if self.kind == "tied" else found

    def _completed(self, X: FloatArray, seen: Array, k: int) -> tuple[FloatArray, FloatArray]:
        """E[x | observed entries, state k] of rows that show the same columns, and Cov(x | …), (d, d)."""
        if seen.all():
            return X, np.zeros((1, 1))
        cov, mean = self._dense(k), self.means[k]
        gone = ~seen
        gain = np.linalg.solve(cov[np.ix_(seen, seen)], cov[np.ix_(seen, gone)])
        filled = X.copy()
        filled[:, gone] = mean[gone] + (X[:, seen] - mean[seen]) @ gain
        rest = np.zeros_like(cov)
        rest[np.ix_(gone, gone)] = cov[np.ix_(gone, gone)] - cov[np.ix_(gone, seen)] @ gain
        return filled, rest

    def moments(self, data: FloatArray, gamma: FloatArray, /) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Σ gamma, Σ gamma E[x] and Σ gamma E[x xᵀ], (K,), (K, d), (K, d, d); gaps by their conditional moments."""
        K, d = self.means.shape
        weights, sums, squares = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
        for rows, seen in _patterns(data):
            if not seen.any():
                continue
            g = gamma[rows]
            weights += g.sum(axis=0)
            for k in range(K):
                filled, rest = self._completed(data[rows], seen, k)
                sums[k] += g[:, k] @ filled
                squares[k] += (filled * g[:, k : k + 1]).T @ filled + g[:, k].sum() * rest
        return weights, sums, squares

    def from_moments(self, moments: tuple[FloatArray, ...], /) -> Self:
        """Means and covariances; a state without weight keeps its own."""
        weights, sums, squares = moments
        alive = weights > 1e-300
        means = np.where(alive[:, None], sums / np.where(alive, weights, 1.0)[:, None], self.means)
        scatter = squares - weights[:, None, None] * means[:, :, None] * means[:, None, :]
        if self.kind in ("full", "tied"):
            return replace(self, means=means, covariances=self._covariances(scatter, weights))
        spread = np.diagonal(scatter, axis1=1, axis2=2) + self.prior * self.spread
        total = (weights + self.prior)[:, None]
        found = np.where(total > 1e-300, spread / np.where(total > 1e-300, total, 1.0), self._variances())
        if not (found > 0.0).all():
            raise _collapsed(int(np.argwhere(~(found > 0.0))[0][0]))
        return replace(self, means=means, covariances=found if self.kind == "diag" else found.mean(axis=1))

    def take(self, states: IntArray, /) -> Self:
        """The Gaussians of these states."""
        covariances = self.covariances if self.kind == "tied" else self.covariances[states]
        return replace(self, means=self.means[states], covariances=covariances)

    def nodes(self, z: Var, name: str) -> list[tuple[Var, Conditional]]:
        """The vector as a variable of a network, a Gaussian given the state."""
        covariances = np.array([self._dense(k) for k in range(len(self.means))])
        return [gaussian_node(z, name, self.means, covariances)]

    def log_prior(self) -> float:
        """−½ ν Σ_k (tr(diag(spread) Σ_k⁻¹) + log |Σ_k|)."""
        if self.prior == 0.0:
            return 0.0
        if self.kind in ("diag", "spherical"):
            var = self._variances()
            return float(-0.5 * self.prior * (self.spread / var + np.log(var)).sum())
        total = 0.0
        for cov in self.covariances if self.kind == "full" else self.covariances[None]:
            total += float((self.spread * np.diagonal(np.linalg.inv(cov))).sum() + np.linalg.slogdet(cov)[1])
        return -0.5 * self.prior * total

    def draw(self, states: IntArray, rng: np.random.Generator, /) -> FloatArray:
        """Points, (N, d)."""
        Z = rng.standard_normal((len(states), self.means.shape[1]))
        if self.kind in ("diag", "spherical"):
            return self.means[states] + np.sqrt(self._variances())[states] * Z
        everything = np.ones(self.means.shape[1], dtype=bool)
        for k in range(len(self.means)):
            mine = states == k
            Z[mine] = Z[mine] @ self._root(k, everything).T
        return self.means[states] + Z


def _patterns(data: FloatArray) -> Iterator[tuple[Any, Array]]:
    """(rows, observed columns) for every pattern of gaps."""
    gaps = np.isnan(data)
    holes = gaps.any(axis=1)
    if not holes.any():
        yield slice(None), np.ones(data.shape[1], dtype=bool)
        return
    kinds, which = np.unique(gaps, axis=0, return_inverse=True)
    for i, gap in enumerate(kinds):
        yield np.flatnonzero(which.ravel() == i), ~gap


def _collapsed(k: int) -> ModelError:
    return ModelError(
        f"the covariance of state {k} is not positive definite: the state shrank to a point, or columns depend on each "
        f"other. What helps: a larger covariance_prior, fewer states, or covariance_type='diag'."
    )
