"""Gaussian emissions of all covariance shapes; rows with gaps are handled exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import solve_triangular

from gramgraph._numerics.hmm import emissions as _loops
from gramgraph._threads import in_threads
from gramgraph.exceptions import ModelError
from gramgraph.sequences._unrolled import gaussian_node
from gramgraph.sequences.recursions import likelihoods
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.conditionals import Conditional
    from gramgraph.variables import Var

COVARIANCE_TYPES = ("full", "diag", "spherical", "tied")
_LOG_2PI = float(np.log(2.0 * np.pi))
#: Numbers that stay in the cache. A variance below this share of the squares that it is left of lost too many digits.
_CELLS, _CANCELED = 1 << 16, 1e-6
_LEAST = 1.0 / float(np.finfo(np.float64).max)  # a variance whose inverse is a number


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
    n_jobs: int = 1  # threads that share the rows of an update

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
            _loops.diagonal_gaussian_logs(data, *self._diagonal, out)
            return out
        if not np.isnan(data.sum()):
            self._whitened(np.ones(data.shape[1], dtype=bool)).logs(data, out)
            return out
        for rows, seen in _patterns(data):
            found = np.zeros((len(rows), len(self.means)))
            if seen.any():
                self._whitened(seen).logs(np.ascontiguousarray(data[rows][:, seen]), found)
            out[rows] = found
        return out

    def _variances(self) -> FloatArray:
        return self.covariances if self.kind == "diag" else np.repeat(self.covariances[:, None], self.means.shape[1], 1)

    @cached_property
    def _diagonal(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means, precisions and −½ log(2π σ²), (d, K) each."""
        var = np.ascontiguousarray(self._variances().T)
        return np.ascontiguousarray(self.means.T), 1.0 / var, -0.5 * (_LOG_2PI + np.log(var))

    @cached_property
    def _known(self) -> dict[bytes, _Whitening]:
        return {}

    def _whitened(self, seen: Array) -> _Whitening:
        """That of rows which show these columns; a few are remembered."""
        found = self._known.get(seen.tobytes())
        if found is None:
            count = len(self.means) if self.kind == "full" else 1
            found = _Whitening.of(self.means[:, seen], np.array([self._root(k, seen) for k in range(count)]))
            if len(self._known) >= 32:
                self._known.clear()
            self._known[seen.tobytes()] = found
        return found

    def _dense(self, k: int) -> FloatArray:
        if self.kind in ("diag", "spherical"):
            return np.diag(self._variances()[k])
        return self.covariances[k] if self.kind == "full" else self.covariances

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
        found = self._update_at_once(data, gamma)
        return self._update_dense(data, gamma) if found is None else found

    def _update_at_once(self, data: FloatArray, gamma: FloatArray) -> Self | None:
        """Means and covariances from products around one center; None for gaps, and where too many digits cancel."""
        K, d = self.means.shape
        center = self.means.mean(axis=0)
        if self.kind == "tied":
            weights = np.ones(len(gamma)) @ gamma
            gaps = data - center
            if np.isnan(gaps.sum()):
                return None
            sums = gamma.T @ gaps
            gaps *= np.sqrt(gamma.sum(axis=1))[:, None]
            squares = (gaps.T @ gaps)[None]
        else:
            found = _weighted_products(_loops.pair_products, data, gamma, center, d * (d + 1) // 2, self.n_jobs)
            if found is None:
                return None
            weights, products = found
            sums, squares = products[:, :d], np.empty((K, d, d))
            upper = np.triu_indices(d)
            squares[:, upper[0], upper[1]] = squares[:, upper[1], upper[0]] = products[:, d:]
        alive = weights > 1e-300
        shift = np.where(alive[:, None], sums / np.where(alive, weights, 1.0)[:, None], self.means - center)
        off = weights[:, None, None] * shift[:, :, None] * shift[:, None, :]
        scatter = squares - (off.sum(axis=0, keepdims=True) if self.kind == "tied" else off)
        lived = weights.sum(keepdims=True) > 1e-300 if self.kind == "tied" else alive
        floor = _CANCELED * np.diagonal(squares, axis1=1, axis2=2).max(axis=1)
        safe = scatter + np.diag(self.prior * self.spread) - floor[:, None, None] * np.eye(d)
        try:
            np.linalg.cholesky(safe[lived])
        except np.linalg.LinAlgError:
            return None
        return replace(self, means=center + shift, covariances=self._averaged(scatter, weights))

    def _update_diagonal(self, data: FloatArray, gamma: FloatArray) -> Self:
        weights, means, squares = self._moments_at_once(data, gamma) or self._moments_in_turn(data, gamma)
        squares += self.prior * self.spread[:, None]
        weights += self.prior
        if self.kind == "spherical":
            squares, weights = squares.sum(axis=0), weights.sum(axis=0)
        alive = weights > 1e-300
        var = np.where(alive, squares / np.where(alive, weights, 1.0), self.covariances.T)
        gone = ~((var > _LEAST) & (var < np.inf))
        if gone.any():
            raise _collapsed(int(np.argwhere(gone)[0][-1]))
        return replace(self, means=np.ascontiguousarray(means.T), covariances=np.ascontiguousarray(var.T))

    def _moments_at_once(self, data: FloatArray, gamma: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Weights, means and Σ gamma (x − mean)², (d, K) each; None for gaps, and where too many digits cancel."""
        K, d = self.means.shape
        if d < 4:  # loops are faster
            return None
        center = self.means.mean(axis=0)
        found = _weighted_products(_loops.squares, data, gamma, center, d, self.n_jobs)
        if found is None:
            return None
        weights, products = np.tile(found[0], (d, 1)), found[1]
        sums, squares = np.ascontiguousarray(products[:, :d].T), np.ascontiguousarray(products[:, d:].T)
        alive = weights > 1e-300
        shift = np.where(alive, sums / np.where(alive, weights, 1.0), self.means.T - center[:, None])
        left = squares - weights * shift**2
        if not (left > _CANCELED * squares)[alive].all():
            return None
        return weights, center[:, None] + shift, np.where(alive, left, 0.0)

    def _moments_in_turn(self, data: FloatArray, gamma: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same, squares around the means that were found first; gaps have no part in them."""
        K, d = self.means.shape
        weights, sums, squares = np.zeros((d, K)), np.zeros((d, K)), np.zeros((d, K))
        _loops.weighted_moments(data, gamma, weights, sums)
        alive = weights > 1e-300
        means = np.where(alive, sums / np.where(alive, weights, 1.0), self.means.T)
        _loops.weighted_squares(data, gamma, means, squares)
        return weights, means, squares

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
        """The same, and an error where one is not positive definite."""
        found = self._averaged(scatter.sum(axis=0, keepdims=True) if self.kind == "tied" else scatter, weights)
        for k, cov in enumerate(found[None] if self.kind == "tied" else found):
            if not np.linalg.eigvalsh(cov)[0] > 1e-14 * np.trace(cov):
                raise _collapsed(k)
        return found

    def _averaged(self, scatter: FloatArray, weights: FloatArray) -> FloatArray:
        """Covariances from Σ gamma (x − mean)(x − mean)ᵀ, one per state or the only one, and the prior."""
        if self.kind == "tied":
            weights = weights.sum(keepdims=True)
        total = weights + self.prior
        old = self.covariances[None] if self.kind == "tied" else self.covariances
        alive = (total > 1e-300)[:, None, None]
        extra = np.diag(self.prior * self.spread)
        found = np.where(alive, (scatter + extra) / np.where(alive, total[:, None, None], 1.0), old)
        found = 0.5 * (found + found.transpose(0, 2, 1))
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


@dataclass(frozen=True)
class _Whitening:
    """Rows times the inverse roots of covariances: what is left of a log density are squares.

    log N(x | m_k, L_k L_kᵀ) = constant_k − ½ |L_k⁻¹ (x − c) − L_k⁻¹ (m_k − c)|², one product of matrices for all
    states; where they share a root, one product for the rows.
    """

    center: FloatArray  # (d,) c: keeps digits where all numbers are far from 0
    turn: FloatArray  # (d, d K) the columns of L_k⁻ᵀ, component by component; (d, d) where all share it
    shift: FloatArray  # (d K,) L_k⁻¹ (m_k − c), in the same order
    constants: FloatArray  # (K,)

    @classmethod
    def of(cls, means: FloatArray, roots: FloatArray) -> _Whitening:
        """From K means and as many Cholesky roots, or a single one."""
        (K, d), center = means.shape, means.mean(axis=0)
        inverses = np.array([solve_triangular(L, np.eye(d), lower=True, check_finite=False) for L in roots])
        shift = np.ascontiguousarray((inverses @ (means - center)[:, :, None])[:, :, 0].T).ravel()
        logs = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        constants = np.full(K, -0.5 * d * _LOG_2PI) - logs
        turn = np.ascontiguousarray(inverses.transpose(2, 1, 0)).reshape(d, -1)
        return cls(center, turn, shift, constants)

    def logs(self, X: FloatArray, out: FloatArray) -> None:
        """out (N, K) = log densities of rows without gaps, block by block: products stay in the cache."""
        d, K = len(self.center), len(self.constants)
        shared = self.turn.shape[1] < d * K
        rows = max(_CELLS // (self.turn.shape[1] + d), 16)
        for a in range(0, len(X), rows):
            b = min(a + rows, len(X))
            Z = self._turned(X[a:b] - self.center)
            if shared:
                means, ones = self.shift.reshape(d, K), np.ones((d, K))
                _loops.diagonal_gaussian_logs(Z, means, ones, np.tile(self.constants / d, (d, 1)), out[a:b])
            else:
                _loops.squared_lengths(Z, self.shift, self.constants, out[a:b])

    def _turned(self, Y: FloatArray) -> FloatArray:
        """Y times `turn`, in four parts where there are many columns: component i needs the columns up to i only."""
        d = len(self.center)
        if d < 16:
            return Y @ self.turn
        K = self.turn.shape[1] // d
        out = np.empty((len(Y), d * K))
        for i in range(4):
            lo, hi = d * i // 4, d * (i + 1) // 4
            np.matmul(Y[:, :hi], self.turn[:hi, lo * K : hi * K], out=out[:, lo * K : hi * K])
        return out


def _weighted_products(
    loop: Callable[..., bool], data: FloatArray, gamma: FloatArray, center: FloatArray, more: int, n_jobs: int
) -> tuple[FloatArray, FloatArray] | None:
    """Σ_t gamma[t, k], (K,), and Σ_t gamma[t, k] · (what `loop` makes of row t), (K, d + more), block by block.

    None where data have gaps.
    """
    n, width = len(data), data.shape[1] + more
    rows = max(_CELLS // width, 16)

    def block(a: int) -> tuple[FloatArray, FloatArray] | None:
        here = slice(a, min(a + rows, n))
        work = np.empty((here.stop - a, width))
        if not loop(data[here], center, work):
            return None
        return np.ones(len(work)) @ gamma[here], gamma[here].T @ work

    weights, out = np.zeros(gamma.shape[1]), np.zeros((gamma.shape[1], width))
    for found in in_threads(block, range(0, n, rows), n_jobs):
        if found is None:
            return None
        weights += found[0]
        out += found[1]
    return weights, out


def _patterns(data: FloatArray) -> Iterator[tuple[Any, Array]]:
    """(rows, observed columns) for every pattern of gaps."""
    gaps = np.isnan(data)
    if len(data) == 1:
        yield np.zeros(1, dtype=np.int64), ~gaps[0]
        return
    key = np.packbits(gaps, axis=1)  # whole bytes sort faster than rows of marks
    key = key[:, 0] if key.shape[1] == 1 else key.view(f"V{key.shape[1]}")[:, 0]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    rows = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    for here, at in zip(rows, first.tolist(), strict=True):
        yield here, ~gaps[at]


def _collapsed(k: int) -> ModelError:
    return ModelError(
        f"the covariance of state {k} is not positive definite: the state shrank to a point, or columns depend on each "
        f"other. Try: a larger covariance_prior, fewer states, or covariance_type='diag'."
    )
