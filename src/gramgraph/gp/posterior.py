"""The posterior of a Gaussian process as a value: ask it, condition it again, sample it, differentiate it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph._validation import generator
from gramgraph.exceptions import ModelError
from gramgraph.gp._shown import OneLine
from gramgraph.gp.evidence import Trend, Weights, factor_and_solve, nearly_singular, residual, solve_weights
from gramgraph.gp.markov import split_noise
from gramgraph.gp.means import Mean
from gramgraph.gp.row_blocks import row_blocks, without_noise
from gramgraph.kernels.inputs import as_points, count
from gramgraph.linalg.base import MAX_JITTER, PositiveDefiniteError
from gramgraph.linalg.dense import DenseFactor
from gramgraph.typing import FloatArray, RandomState

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Each point predicted from all others, hyper-parameters kept: Gaussian with these moments."""

    mean: FloatArray  # (n, q)
    var: FloatArray  # (n,) of the observation, noise included
    log_density: FloatArray  # (n,) summed over the columns


@dataclass(frozen=True, eq=False, repr=False)
class ExactPosterior(OneLine):
    """f | y by Cholesky. Columns of Y share the kernel, so that they share the factor and the variance.

    `mean`, `var` and `cov` are those of f(x) plus the kernel's own noise (`White` terms), as scikit-learn's; with
    `latent=True` they are those of f(x) alone. The `noise` of the training points belongs to them only.

    Parameters
    ----------
    kernel : the kernel.
    X : (n, d) training points.
    Y : (n, q) observations.
    noise : (n,) variances.
    trend_of : the learned part of the mean, or None.
    factor : of the Gram matrix with its noise.
    weights : (n, q) of the mean.
    cross : (n, n) covariances of the noise between points, zero on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> process = fit_exact(RBF(), [[0.0], [1.0]], np.array([1.0, 0.0]), noise=0.01)
    >>> process.mean([[0.0]]).round(3), process.var([[0.0]]).round(3)
    (array([[0.985]]), array([0.01]))
    """

    kernel: Kernel
    X: Any
    Y: FloatArray  # (n, q)
    noise: FloatArray  # (n,)
    trend_of: Mean
    factor: DenseFactor
    weights: Weights
    cross: FloatArray | None = None  # (n, n) covariances of the noise between points

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.Y)

    @property
    def log_evidence(self) -> float:
        """log p(Y), summed over the columns."""
        return float(self.weights.log_evidence.sum())

    @property
    def jitter(self) -> float:
        """What had to be added to the diagonal."""
        return self.factor.jitter

    @property
    def alpha(self) -> FloatArray:
        """Weights of the kernel expansion, (n, q)."""
        return self.weights.alpha

    @property
    def trend(self) -> Trend | None:
        """Weights of the mean function."""
        return self.weights.trend

    # -- moments ------------------------------------------------------------------------------------------------

    def mean(self, X: Any) -> FloatArray:
        """E f(x), (m, q): m(x) + k(x, X) α. O(m n q)."""
        out = self._trend_mean(X)
        for rows, part in row_blocks(X):
            out[rows] += self.kernel.gram_columns(part, self._columns) @ self.alpha
        return out

    @cached_property
    def _columns(self) -> Any:
        """The training points as the kernel wants them, for many questions of a few rows."""
        return self.kernel.prepare_columns(self.X)

    def _trend_mean(self, X: Any) -> FloatArray:
        out = np.zeros((count(X), self.Y.shape[1]))
        fixed = self.trend_of.fixed(X)
        if fixed is not None:
            out += fixed.reshape(len(out), -1)
        if self.trend is not None:
            out += self.trend_of.basis(X) @ self.trend.coef
        return out

    def var(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Var f(x), (m,), not negative. O(m n²), in blocks of rows."""
        kernel = without_noise(self.kernel) if latent else self.kernel
        out = np.zeros(count(X)) if kernel is None else kernel.diag(X)
        for rows, part in row_blocks(X):
            half, more = self._halves(part)
            out[rows] -= np.einsum("ij,ij->j", half, half)
            if more is not None:
                out[rows] += np.einsum("ij,ij->j", more, more)
        return np.maximum(out, 0.0)

    def cov(self, X: Any, Z: Any | None = None, *, latent: bool = False) -> FloatArray:
        """Cov(f(x), f(z)), (m, m′); without Z the symmetric (m, m)."""
        kernel = without_noise(self.kernel) if latent else self.kernel
        half, more = self._halves(X)
        other, other_more = (half, more) if Z is None else self._halves(Z)
        C = np.zeros((half.shape[1], other.shape[1])) if kernel is None else kernel.gram(X, Z)
        C -= half.T @ other
        if more is not None and other_more is not None:
            C += more.T @ other_more
        return C if Z is not None else 0.5 * (C + C.T)

    def _halves(self, X: Any) -> tuple[FloatArray, FloatArray | None]:
        """L⁻¹ k(X, x) and, with uncertain weights of the mean, A^-½ (h(x) − HᵀK⁻¹ k(X, x))."""
        K = self.kernel.gram(self.X, X)
        half = self.factor.half_solve(K)
        trend = self.trend
        if trend is None or trend.A is None:
            return half, None
        return half, trend.A.half_solve(self.trend_of.basis(X).T - trend.KinvH.T @ K)

    def __call__(self, X: Any, *, latent: bool = False) -> Any:
        """The values at X as a `Gaussian` of m numbers; one column of Y only."""
        if self.Y.shape[1] != 1:
            raise ModelError("a Gaussian of several outputs: take one column, or use mean and cov.")
        return gaussian(self.mean(X)[:, 0], self.cov(X, latent=latent))

    # -- learning more ------------------------------------------------------------------------------------------

    def condition(self, X: Any, Y: Any, *, noise: float | FloatArray = 0.0) -> ExactPosterior:
        """The posterior after more points: the factor grows by q rows, O(n² q) instead of O(n³).

        Points that the old ones determine, without noise, are the exception: the whole matrix is factored again.
        """
        new = self.kernel.prepare(X)
        m = count(new)
        Y = np.asarray(Y, dtype=float).reshape(m, -1)
        if Y.shape[1] != self.Y.shape[1]:
            raise ModelError(f"expected {self.Y.shape[1]} columns of y, got {Y.shape[1]}.")
        extra = np.broadcast_to(np.asarray(noise, dtype=float), (m,)).copy()
        corner = self.kernel.gram(new)
        corner[np.diag_indices_from(corner)] += extra
        X_all, Y_all, noise_all = _stack(self.X, new), np.concatenate([self.Y, Y]), np.concatenate([self.noise, extra])
        cross = side_by_side(self.cross, None, len(self.Y), m)
        try:
            factor = self.factor.append(self.kernel.gram(self.X, new), corner)
        except PositiveDefiniteError:
            return fit_exact(self.kernel, X_all, Y_all, noise=noise_all, cross=cross, mean=self.trend_of)
        if factor.jitter > 0.0 or nearly_singular(factor, self.kernel.diag(X_all) + noise_all):
            return fit_exact(self.kernel, X_all, Y_all, noise=noise_all, cross=cross, mean=self.trend_of)
        R, H = residual(Y_all, X_all, self.trend_of)
        weights = solve_weights(factor, R, H, self.trend_of)
        return ExactPosterior(self.kernel, X_all, Y_all, noise_all, self.trend_of, factor, weights, cross)

    # -- leave one out ------------------------------------------------------------------------------------------

    def loo(self) -> LeaveOneOut:
        """Leave-one-out predictions in closed form: μ_i = y_i − α_i / P_ii, σ²_i = 1 / P_ii. One O(n³/3)."""
        P = self.factor.inverse_diag()
        trend = self.trend
        if trend is not None and trend.A is not None:
            V = trend.A.half_solve(trend.KinvH.T)
            P = P - np.einsum("ij,ij->j", V, V)
        P = np.maximum(P, np.finfo(float).tiny)
        gap = self.alpha / P[:, None]
        var = 1.0 / P
        logs = -0.5 * (np.log(2.0 * np.pi * var)[:, None] + gap**2 / var[:, None]).sum(1)
        return LeaveOneOut(self.Y - gap, var, logs)

    # -- draws --------------------------------------------------------------------------------------------------

    def sample(
        self,
        X: Any,
        n_samples: int = 1,
        *,
        random_state: RandomState = None,
        method: str = "cholesky",
        n_features: int = 2000,
        latent: bool = False,
    ) -> FloatArray:
        """Draws at X, (m, q, n_samples).

        "cholesky" factors the (m, m) covariance: exact. "pathwise" adds to a draw of the prior (random Fourier
        features) the correction k(x, X) (K + σ²I)⁻¹ (y − f(X) − ε): O(m (n + features)) a draw, for large m.
        """
        rng = generator(random_state)
        if method == "pathwise":
            from gramgraph.gp.pathwise import pathwise_draws

            return pathwise_draws(self, X, n_samples, rng, n_features)
        if method != "cholesky":
            raise ModelError(f"method must be 'cholesky' or 'pathwise'; it is {method!r}.")
        return draw_columns(self.mean(X), self.cov(X, latent=latent), n_samples, rng)

    # -- derivatives --------------------------------------------------------------------------------------------

    def gradient(self, X: Any) -> FloatArray:
        """∂ E f(x) / ∂x, (m, d, q), through the kernel's own reverse pass; of the mean function by differences."""
        X = as_points(X)
        slopes = (
            slopes_of(self._trend_mean, X) if self.trend is not None or self.trend_of.fixed(X) is not None else None
        )
        out = np.empty((*X.shape, self.Y.shape[1]))
        for rows, part in row_blocks(X):
            _, pull = self.kernel.pullback(part, self.X, inputs=True)
            for j in range(self.Y.shape[1]):
                found = pull(np.broadcast_to(self.alpha[:, j], (len(part), self.n)).copy()).X
                if found is None:
                    raise ModelError(f"{type(self.kernel).__name__} gives no gradient by its inputs.")
                out[rows, :, j] = found
        return out if slopes is None else out + np.swapaxes(slopes, 1, 2)


def side_by_side(a: FloatArray | None, b: FloatArray | None, n: int, m: int) -> FloatArray | None:
    """Covariances of the noise of n points and of m others that are independent of them."""
    if a is None and b is None:
        return None
    out = np.zeros((n + m, n + m))
    if a is not None:
        out[:n, :n] = a
    if b is not None:
        out[n:, n:] = b
    return out


def fit_exact(
    kernel: Kernel,
    X: Any,
    Y: Any,
    *,
    noise: float | FloatArray = 0.0,
    cross: FloatArray | None = None,
    mean: Mean | None = None,
    max_jitter: float = MAX_JITTER,
) -> ExactPosterior:
    """Condition the process on y = f(X) + noise: one Cholesky factorization in the memory of the Gram matrix.

    `noise` holds variances, `cross` (n, n) the covariances of noise between points, with zeros on the diagonal.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    Y : (n,) or (n, q) observations; columns share the kernel.
    noise : variances that are added to the diagonal, a number or (n,).
    cross : (n, n) covariances of the noise between points, zero on the diagonal.
    mean : mean function; None for zero.
    max_jitter : largest multiple of the diagonal that may be added to it.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> found = fit_exact(RBF(), np.array([[0.0], [1.0]]), np.array([0.5, 0.2]), noise=0.1)
    >>> np.round(found.mean(np.array([[0.5]])), 4).ravel().tolist()
    [0.362]
    """
    mean = mean or Mean()
    X = kernel.prepare(X)
    Y = np.asarray(Y, dtype=float)
    Y = Y.reshape(len(Y), -1)
    added = np.broadcast_to(np.asarray(noise, dtype=float), (len(Y),)).copy()
    K = np.ascontiguousarray(kernel.gram(X))
    K[np.diag_indices_from(K)] += added
    R, H = residual(Y, X, mean)
    floor = float(added.min(initial=np.inf)) + split_noise(kernel).noise
    if cross is not None:
        K += cross
        floor = 0.0
    factor, weights = factor_and_solve(K, R, H, mean, floor=floor, max_jitter=max_jitter)
    return ExactPosterior(kernel, X, Y, added, mean, factor, weights, cross)


def slopes_of(function: Callable[[FloatArray], FloatArray], X: FloatArray) -> FloatArray:
    """∂ function / ∂x by central differences: (m, k) values give (m, k, d)."""
    out = []
    for c in range(X.shape[1]):
        h = 1e-5 * max(1.0, float(np.abs(X[:, c]).max(initial=0.0)))
        step = h * np.eye(X.shape[1])[c]
        out.append((function(X + step) - function(X - step)) / (2.0 * h))
    return np.stack(out, axis=-1)


def draw_columns(mean: FloatArray, C: FloatArray, n: int, random_state: Any) -> FloatArray:
    """n draws of every column of the mean (m, q), all with covariance C: (m, q, n)."""
    half = symmetric_root(C)
    Z = generator(random_state).standard_normal((half.shape[1], mean.shape[1] * n))
    return mean[:, :, None] + (half @ Z).reshape(*mean.shape, n)


def gaussian(mean: FloatArray, cov: FloatArray) -> Any:
    """N(mean, cov) as the library's `Gaussian`."""
    from gramgraph.distributions.gaussian import Gaussian

    return Gaussian(mean, cov)


def _stack(A: Any, B: Any) -> Any:
    if isinstance(A, tuple):
        return tuple(_stack(a, b) for a, b in zip(A, B, strict=True))
    if isinstance(A, np.ndarray):
        return np.concatenate([A, B])
    if hasattr(A, "iloc"):
        from gramgraph.kernels.tables import joined_tables

        return joined_tables(A, B)
    return [*A, *B]
