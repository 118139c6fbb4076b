"""The evidence of a Gaussian process and its gradient, by one Cholesky factorization and one reverse pass.

log p(Y) = −½ tr(Rᵀ P R) − ½ q log |K| − ½ q log |A| − ½ q (n − k) log 2π with R = Y − H b, P = K⁻¹ − K⁻¹H A⁻¹ HᵀK⁻¹
and A = HᵀK⁻¹H (+ B⁻¹). Its cotangent is bar_K = ½ (α αᵀ − q P), α = P R, which the kernel pulls back to all
hyper-parameters at once: O(n³) once, O(n²) a parameter, and no (n, n, p) array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.markov import NoiseSplit, split_noise
from gramgraph.gp.means import Mean
from gramgraph.gp.reverse import by_rows, rbf_moments, row_wise
from gramgraph.kernels.inputs import count
from gramgraph.kernels.stationary import RBF
from gramgraph.linalg.base import MAX_JITTER
from gramgraph.linalg.dense import DenseFactor
from gramgraph.linalg.triangles import factor_lower, invert_lower, restore_lower
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_LOG_2PI = float(np.log(2.0 * np.pi))
_FIRST = 1e-10  # of the diagonal: smaller pivots are looked at, and jitter for the sake of accuracy begins here
_BORNE = 1e-5  # relative error of A α that is borne before anything is added
_ACCURATE = 1e-7  # and after it


@dataclass(frozen=True, eq=False)
class Evidence:
    """log p(Y) and its gradient.

    Parameters
    ----------
    value : log p(Y).
    theta : (p,) derivatives by the kernel's parameters.
    noise : (n,) derivatives by the variance that is added to each diagonal entry.
    jitter : what had to be added to the diagonal.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> found = exact_evidence(RBF(), np.array([[0.0], [1.0]]), np.array([0.5, 0.2]), noise=0.1, gradient=True)
    >>> round(float(found.value), 4), found.theta.shape
    (-1.8693, (1,))
    """

    value: float
    theta: FloatArray | None = None  # (p,) by the kernel's parameters
    noise: FloatArray | None = None  # (n,) by the variance that is added to each diagonal entry
    jitter: float = 0.0


@dataclass(frozen=True, eq=False)
class Trend:
    """What the data say of the weights β of the mean: N(coef, A⁻¹) a column of Y."""

    H: FloatArray  # (n, k)
    coef: FloatArray  # (k, q)
    A: DenseFactor | None  # (k, k); None: weights at their best point, without uncertainty
    KinvH: FloatArray  # (n, k)
    log_factor: float  # ½ log |A| (+ ½ log |B|): its part of −log p(Y), a column
    lost: int  # degrees of freedom that a vague prior takes

    @property
    def cov(self) -> FloatArray:
        """Covariance of the weights, (k, k)."""
        k = self.H.shape[1]
        return np.zeros((k, k)) if self.A is None else self.A.solve(np.eye(k))


@dataclass(frozen=True, eq=False)
class Weights:
    """α = P R, and the trend where the mean has weights."""

    alpha: FloatArray  # (n, q)
    trend: Trend | None
    log_evidence: FloatArray  # (q,) one per column


def solve_weights(factor: DenseFactor, Y: FloatArray, H: FloatArray, mean: Mean) -> Weights:
    """α and the weights of the mean from a factor of K, with Y less the fixed part of the mean; O(n² (q + k))."""
    n, q = Y.shape
    k = H.shape[1]
    if k == 0:
        alpha = factor.solve(Y)
        fit = -0.5 * np.einsum("ij,ij->j", Y, alpha)
        return Weights(alpha, None, fit - 0.5 * factor.logdet - 0.5 * n * _LOG_2PI)
    solved = factor.solve(np.concatenate([Y, H], axis=1))
    KinvY, KinvH = solved[:, :q], solved[:, q:]
    A = H.T @ KinvH
    right = H.T @ KinvY
    prior = mean.weight_prior(k)
    log_factor, lost = 0.0, 0
    if prior is not None:
        b, B = prior
        precision = np.linalg.inv(B)
        A = A + precision
        right = right + (precision @ b)[:, None]
        log_factor = 0.5 * float(np.linalg.slogdet(B)[1])
    elif n < k:
        raise ModelError(
            f"a mean with {k} weights under a {mean.prior} prior needs at least {k} points; n_samples = {n}."
        )
    L, _ = factor_lower(np.ascontiguousarray((A + A.T) / 2.0), max_jitter=MAX_JITTER, what="HᵀK⁻¹H of the mean")
    inner = DenseFactor(L)
    coef = inner.solve(right)
    alpha = KinvY - KinvH @ coef
    fit = -0.5 * np.einsum("ij,ij->j", Y - H @ coef, alpha)
    if prior is not None:
        gap = coef - b[:, None]
        fit = fit - 0.5 * np.einsum("ij,ij->j", gap, precision @ gap)
    if prior is not None or mean.prior == "vague":
        log_factor += 0.5 * inner.logdet
        lost = k if prior is None else 0
    else:
        inner = None  # type: ignore[assignment]
    value = fit - 0.5 * factor.logdet - log_factor - 0.5 * (n - lost) * _LOG_2PI
    return Weights(alpha, Trend(H, coef, inner, KinvH, log_factor, lost), value)


def factor_and_solve(
    A: FloatArray, R: FloatArray, H: FloatArray, mean: Mean, *, floor: float, max_jitter: float = MAX_JITTER
) -> tuple[DenseFactor, Weights]:
    """The factor of A, in its memory, and the weights, with enough on the diagonal for both to be accurate.

    Points that coincide and disagree ask for weights of the size 1 / jitter, whose sums then lose all digits. So where
    a pivot is small, (A + jitter) α is compared with what it should be; if they differ by more than 1e-5 (1e-7 once
    there is jitter), it grows, from 1e-10 of the diagonal on. `floor`: what no eigenvalue of A is below.
    """
    diagonal = A.diagonal().copy()
    scale = float(diagonal.mean())
    least = 0.0
    while True:
        L, jitter = factor_lower(A, max_jitter=max_jitter, floor=floor, least=least)
        factor = DenseFactor(L, jitter)
        weights = solve_weights(factor, R, H, mean)
        least = max(10.0 * jitter, _FIRST * scale)
        if least > max_jitter * scale or not (jitter > 0.0 or nearly_singular(factor, diagonal)):
            return factor, weights
        if _gap(L, diagonal + jitter, weights, R, H) <= (_ACCURATE if jitter > 0.0 else _BORNE):
            return factor, weights
        restore_lower(A)
        np.fill_diagonal(A, diagonal)


def nearly_singular(factor: DenseFactor, diagonal: FloatArray) -> bool:
    """Whether a pivot is so small that solutions may have lost their digits."""
    return bool((factor.L.diagonal() ** 2 < _FIRST * diagonal).any())


def _gap(L: FloatArray, diagonal: FloatArray, weights: Weights, R: FloatArray, H: FloatArray) -> float:
    """max |target − A α| / max |target|, with A's entries from the strict upper triangle of L."""
    from scipy.linalg.blas import dsymm

    target = R if weights.trend is None else R - H @ weights.trend.coef
    pivots = L.diagonal().copy()
    np.fill_diagonal(L, diagonal)
    gap = np.abs(target - dsymm(1.0, L.T, weights.alpha, lower=1)).max(0, initial=0.0)
    np.fill_diagonal(L, pivots)
    size = np.abs(target).max(0, initial=0.0)
    return float((gap / np.where(size > 0.0, size, 1.0)).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Profile:
    """The evidence once the columns [R, H] have been multiplied through Σ⁻¹; the weights of the mean are dealt with."""

    value: float
    coef: FloatArray  # (k, q)
    T: FloatArray  # (q + k, c): [R, H] T are the columns u with bar_Σ = ½ (Σ_c α_c α_cᵀ − q Σ⁻¹), α = Σ⁻¹ u
    cov: FloatArray  # (k, k) of the weights


def profile(G: FloatArray, logdet: float, q: int, n: int, mean: Mean) -> Profile:
    """From G = [R, H]ᵀ Σ⁻¹ [R, H] and log |Σ|: evidence, weights, and the columns that make its gradient."""
    c = len(G)
    k = c - q
    base = -0.5 * q * logdet
    if k == 0:
        value = base - 0.5 * float(np.trace(G)) - 0.5 * n * q * _LOG_2PI
        return Profile(value, np.zeros((0, q)), np.eye(q), np.zeros((0, 0)))
    A, right = G[q:, q:], G[q:, :q]
    prior = mean.weight_prior(k)
    more, lost, fit = 0.0, 0, 0.0
    if prior is not None:
        precision = np.linalg.inv(prior[1])
        A, right = A + precision, right + (precision @ prior[0])[:, None]
        more = 0.5 * float(np.linalg.slogdet(prior[1])[1])
    elif n < k:
        raise ModelError(
            f"a mean with {k} weights under a {mean.prior} prior needs at least {k} points; n_samples = {n}."
        )
    L = DenseFactor(factor_lower(np.ascontiguousarray((A + A.T) / 2), max_jitter=MAX_JITTER, what="HᵀK⁻¹H")[0])
    coef = L.solve(right)
    if prior is not None:
        gap = coef - prior[0][:, None]
        fit -= 0.5 * float((gap * (precision @ gap)).sum())
    T = np.concatenate([np.eye(q), -coef])
    fit -= 0.5 * float(np.einsum("ij,ik,kj->", T, G, T))
    uncertain = prior is not None or mean.prior == "vague"
    cov = np.zeros((k, k))
    if uncertain:
        half = np.linalg.inv(L.lower()).T  # H A^-½, whose quadratic form stands for log |A|
        T = np.concatenate([T, np.sqrt(q) * np.concatenate([np.zeros((q, k)), half])], axis=1)
        more += 0.5 * L.logdet
        lost = k if prior is None else 0
        cov = half @ half.T
    return Profile(base + fit - q * more - 0.5 * q * (n - lost) * _LOG_2PI, coef, T, cov)


def prepared(Y: FloatArray, X: Any, mean: Mean) -> tuple[FloatArray, FloatArray, FloatArray]:
    """R, H, and weights (k, q) by which R was shifted: R less its plain least-squares fit by H loses no digits.

    Under a Gaussian prior nothing is shifted: it would change what the prior says.
    """
    R, H = residual(Y, X, mean)
    k = H.shape[1]
    if k == 0 or mean.weight_prior(k) is not None:
        return R, H, np.zeros((k, R.shape[1]))
    coef = np.asarray(np.linalg.lstsq(H, R, rcond=None)[0], dtype=np.float64)
    return R - H @ coef, H, coef


def exact_evidence(
    kernel: Kernel,
    X: Any,
    Y: FloatArray,  # (n,) or (n, q): columns share the kernel
    *,
    noise: float | FloatArray = 0.0,
    cross: FloatArray | None = None,  # (n, n) covariances of the noise, zero on the diagonal
    mean: Mean | None = None,
    gradient: bool = False,
    max_jitter: float = MAX_JITTER,
) -> Evidence:
    """log p(Y) under the process plus noise on the diagonal, summed over the columns of Y; with its gradient if asked.

    One factorization in place, then its inverse in the same memory. From 600 points on the gradient is taken from there
    some rows at a time: one (n, n) array is alive, and while the kernel is evaluated those of one of its terms.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    Y : (n,) or (n, q) observations; columns share the kernel.
    noise : variances that are added to the diagonal, a number or (n,).
    cross : (n, n) covariances of the noise between points, zero on the diagonal.
    mean : mean function; None for zero.
    gradient : whether the derivatives by theta are computed as well.
    max_jitter : largest multiple of the diagonal that may be added to it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> found = exact_evidence(RBF(), [[0.0], [1.0]], np.array([1.0, 0.5]), noise=0.1, gradient=True)
    >>> round(found.value, 4), found.theta.round(4)
    (-2.2082, array([0.3983]))
    """
    mean = mean or Mean()
    Y = np.asarray(Y, dtype=float)
    Y = Y.reshape(len(Y), -1)
    R, H = residual(Y, X, mean)
    peeled = _peel(kernel)
    rows = gradient and row_wise(peeled.base, X)
    A, pull = peeled.gram(X, gradient and not rows)
    added = np.broadcast_to(np.asarray(noise + peeled.split.noise, dtype=float), (len(Y),))
    A[np.diag_indices_from(A)] += added
    floor = float(added.min())
    if cross is not None:
        A += cross
        floor = 0.0
    factor, weights = factor_and_solve(A, R, H, mean, floor=floor, max_jitter=max_jitter)
    value = float(weights.log_evidence.sum())
    if rows:
        theta, by_noise = peeled.pull_rows(X, factor, weights, R.shape[1])
        return Evidence(value, theta, by_noise, factor.jitter)
    if pull is None:
        return Evidence(value, jitter=factor.jitter)
    bar_K = cotangent(factor, weights, R.shape[1])
    return Evidence(value, pull(bar_K), bar_K.diagonal().copy(), factor.jitter)


@dataclass(frozen=True, eq=False)
class _Peeled:
    """k = variance · base + noise · δ, so that neither the noise nor the scale costs a matrix of its own."""

    split: NoiseSplit
    base: Kernel | None  # None: noise only
    variance: float
    free: bool  # whether the variance is part of theta

    def gram(self, X: Any, gradient: bool) -> tuple[FloatArray, Callable[[FloatArray], FloatArray] | None]:
        """variance · base as a matrix that may be overwritten, and what takes bar_K to the gradient by theta."""
        if self.base is None:
            n = count(X)
            zero = np.zeros((n, n))
            return zero, (lambda bar: self.split.theta(np.zeros(0), float(np.trace(bar)))) if gradient else None
        if not gradient:
            A = np.ascontiguousarray(self.base.gram(X))
            if self.variance != 1.0:
                A *= self.variance
            return A, None
        K, pull_base = self.base.pullback(X)
        v = self.variance

        def pull(bar_K: FloatArray) -> FloatArray:
            theta = v * pull_base(bar_K).theta
            if self.free:
                theta = np.concatenate([[v * float(np.vdot(bar_K, K))], theta])
            return self.split.theta(theta, float(np.trace(bar_K)))

        return np.multiply(K, v, order="C"), pull  # a new matrix: K belongs to the pull

    def pull_rows(self, X: Any, factor: DenseFactor, weights: Weights, q: int) -> tuple[FloatArray, FloatArray]:
        """The gradients by theta and by the noise of each point, in the memory of the factor, which is destroyed."""
        base, A = self.base, factor.L
        assert base is not None
        invert_lower(A)
        U, w = cotangent_parts(weights, q)
        diagonal = (U * U) @ w - 0.5 * q * A.diagonal()
        if isinstance(base, RBF):
            theta, apart = rbf_moments(base, base.prepare(X), A, U, w, q)
            total = apart + self.variance * float(diagonal.sum())
        else:
            theta, total = by_rows(base, X, A, U, w, q)
            theta, total = self.variance * theta, self.variance * total
        if self.free:
            theta = np.concatenate([[total], theta])
        return self.split.theta(theta, float(diagonal.sum())), diagonal


def _peel(kernel: Kernel) -> _Peeled:
    from gramgraph.kernels.algebra import Scale

    split = split_noise(kernel)
    base = split.smooth
    if isinstance(base, Scale):
        return _Peeled(split, base.base, base.variance, base.is_free("variance"))
    return _Peeled(split, base, 1.0, False)


def residual(Y: FloatArray, X: Any, mean: Mean) -> tuple[FloatArray, FloatArray]:
    """Y less the fixed part of the mean, and the basis H of the rest."""
    fixed = mean.fixed(X)
    R = Y if fixed is None else Y - fixed.reshape(len(Y), -1)
    return R, mean.basis(X)


def cotangent(factor: DenseFactor, weights: Weights, q: int) -> FloatArray:
    """bar_K = ½ (α αᵀ − q P) in the memory of the factor, which is destroyed."""
    from scipy.linalg.blas import dsyrk

    A = factor.L
    invert_lower(A)
    U, w = cotangent_parts(weights, q)
    # the C-ordered lower triangle is the upper one of the transposed view
    dsyrk(1.0, U * np.sqrt(w), beta=-0.5 * q, c=A.T, lower=0, overwrite_c=1)
    restore_lower(A.T)
    return A


def cotangent_parts(weights: Weights, q: int) -> tuple[FloatArray, FloatArray]:
    """U (n, c) and w (c,) of bar_K = U diag(w) Uᵀ − ½ q K⁻¹: ½ α αᵀ, and V Vᵀ = K⁻¹ − P of uncertain weights."""
    U, w = weights.alpha, np.full(weights.alpha.shape[1], 0.5)
    trend = weights.trend
    if trend is not None and trend.A is not None:
        V = trend.A.half_solve(trend.KinvH.T).T
        U, w = np.concatenate([U, V], axis=1), np.concatenate([w, np.full(V.shape[1], 0.5 * q)])
    return U, w
