"""Large n without an (n, n) factor: preconditioned conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.evidence import prepared, profile
from gramgraph.gp.markov import NoiseSplit, split_noise
from gramgraph.gp.methods import Data
from gramgraph.gp.solving import SolvePosterior
from gramgraph.linalg.blocks import kernel_matvec
from gramgraph.linalg.low_rank import LowRank, LowRankFactor
from gramgraph.linalg.pivoted import pivoted_cholesky
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_DENSE = 6000  # up to this n the Gram matrix is kept


@dataclass(frozen=True, eq=False)
class _Solution:
    X: FloatArray  # (n, c)
    iterations: int
    residual: float  # the largest ‖b − A x‖ / ‖b‖
    lanczos: list[tuple[FloatArray, FloatArray]]  # diagonal and off-diagonal of every column's tridiagonal matrix


def conjugate_gradient(
    matvec: Callable[[FloatArray], FloatArray],
    precondition: Callable[[FloatArray], FloatArray],
    B: FloatArray,  # (n, c)
    *,
    tol: float = 1e-8,
    steps: int = 1000,
) -> _Solution:
    """A⁻¹ B column by column but with shared products A V; stops when every column's residual is below `tol` ‖b‖.

    >>> A = np.diag([1.0, 2.0, 4.0])
    >>> conjugate_gradient(lambda V: A @ V, lambda V: V, np.ones((3, 1))).X[:, 0].round(6)
    array([1.  , 0.5 , 0.25])
    """
    scale = np.abs(B).max(axis=0, initial=0.0)
    scale = np.where(scale > 0.0, scale, 1.0)  # columns of size 1: no square of theirs overflows
    X, R = np.zeros_like(B), B / scale
    size = np.maximum(np.linalg.norm(R, axis=0), 1e-300)
    Z = precondition(R)
    P, rz = Z.copy(), np.einsum("ij,ij->j", R, Z)
    alphas, betas, alive_at = [], [], []
    step = 0
    for step in range(1, steps + 1):  # noqa: B007
        alive = np.linalg.norm(R, axis=0) > tol * size
        if not alive.any():
            break
        AP = matvec(P)
        curvature = np.einsum("ij,ij->j", P, AP)
        alpha = np.where(alive & (curvature > 0), rz / np.where(curvature > 0, curvature, 1.0), 0.0)
        X += alpha * P
        R -= alpha * AP
        Z = precondition(R)
        new = np.einsum("ij,ij->j", R, Z)
        beta = np.where(alive & (rz > 0), new / np.where(rz > 0, rz, 1.0), 0.0)
        P = Z + beta * P
        rz = new
        alphas.append(alpha)
        betas.append(beta)
        alive_at.append(alive)
    residual = float((np.linalg.norm(R, axis=0) / size).max()) if B.size else 0.0
    return _Solution(X * scale, step, residual, _tridiagonals(alphas, betas, alive_at, B.shape[1]))


def _tridiagonals(alphas: Any, betas: Any, alive: Any, c: int) -> list[tuple[FloatArray, FloatArray]]:
    out = []
    for j in range(c):
        a = np.array([x[j] for x, on in zip(alphas, alive, strict=True) if on[j] and x[j] > 0])
        b = np.array([x[j] for x, y, on in zip(betas, alphas, alive, strict=True) if on[j] and y[j] > 0])
        if not len(a):
            out.append((np.ones(1), np.zeros(0)))
            continue
        diagonal = 1.0 / a
        diagonal[1:] += b[:-1] / a[:-1]
        out.append((diagonal, np.sqrt(np.maximum(b[:-1], 0.0)) / a[:-1]))
    return out


@dataclass(frozen=True, eq=False)
class _Product:
    """V ↦ (K + noise) V."""

    kernel: Kernel
    X: Any
    noise: FloatArray
    K: FloatArray | None  # None: made in blocks

    def __call__(self, V: FloatArray) -> FloatArray:
        KV = kernel_matvec(self.kernel, self.X, None, V) if self.K is None else self.K @ V
        return KV + self.noise[:, None] * V


@dataclass(frozen=True, eq=False)
class _Solve:
    """B ↦ (K + noise)⁻¹ B."""

    matvec: _Product
    factor: LowRankFactor
    tol: float

    def __call__(self, B: FloatArray) -> FloatArray:
        return conjugate_gradient(self.matvec, self.factor.solve, B, tol=self.tol).X


@dataclass(frozen=True, eq=False)
class ConjugateGradient:
    """Solutions to a relative residual of `tol`, preconditioned by `rank` pivots of the incomplete Cholesky factor.

    Products with K are made in blocks, O(n²) time a step and O(n · rank) memory (up to n = 6,000 K is kept). log |Σ| is
    estimated by stochastic Lanczos quadrature with `probes` random vectors: the evidence has a random error, the mean
    and the variances have that of `tol`. Hyper-parameters are learned by the exact evidence of a subset.
    """

    data: Data
    rank: int = 100
    tol: float = 1e-8
    probes: int = 10
    seed: int = 0
    name: str = "cg"
    exact = False

    def _system(self, kernel: Kernel) -> tuple[NoiseSplit, _Product, LowRankFactor]:
        split = split_noise(kernel)
        smooth = split.smooth
        if smooth is None:
            raise ModelError("conjugate gradients need a kernel beside its noise.")
        X, n = self.data.X, self.data.n
        noise = np.maximum(self.data.noise + split.noise, 1e-10 * float(np.mean(smooth.diag(X))))
        low = pivoted_cholesky(smooth, X, tol=1e-12, max_rank=min(self.rank, n))
        factor = LowRank(np.ascontiguousarray(low.L), noise).factor()
        return split, _Product(smooth, X, noise, smooth.gram(X) if n <= _DENSE else None), factor

    def _solved(self, kernel: Kernel) -> tuple[Any, ...]:
        split, matvec, factor = self._system(kernel)
        R, H, shift = prepared(self.data.Y, self.data.X, self.data.mean)
        columns = np.concatenate([R, H], axis=1)
        rng = np.random.default_rng(self.seed)
        probes = factor.half(rng.standard_normal((factor.half_width, self.probes)))
        found = conjugate_gradient(matvec, factor.solve, np.concatenate([columns, probes], axis=1), tol=self.tol)
        c = columns.shape[1]
        weights = np.einsum("ij,ij->j", probes, factor.solve(probes))
        logdet = factor.logdet + _log_trace(found.lanczos[c:], weights)
        solved = found.X[:, :c]
        result = profile(columns.T @ solved, logdet, R.shape[1], self.data.n, self.data.mean)
        return split, matvec, factor, solved, result, shift

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """The estimated log p(Y), same random vectors at every call; gradient by differences."""
        value = self._solved(kernel)[4].value
        if not gradient:
            return value, None
        theta, h = kernel.theta, 1e-4
        eye = h * np.eye(len(theta))
        ends = [[self._solved(kernel.with_theta(theta + s * e))[4].value for s in (1, -1)] for e in eye]
        return value, np.array([(up - down) / (2 * h) for up, down in ends])

    def posterior(self, kernel: Kernel) -> SolvePosterior:
        """The process given the data; every variance is one more solution."""
        split, matvec, factor, solved, result, shift = self._solved(kernel)
        solve = _Solve(matvec, factor, self.tol)
        lifted = float((matvec.noise - self.data.noise - split.noise).max(initial=0.0))
        return SolvePosterior(kernel, self.data, split, solve, solved, result, shift, max(factor.jitter, lifted))

    def with_data(self, data: Data) -> ConjugateGradient:
        """For other data."""
        return replace(self, data=data)


def _log_trace(lanczos: list[tuple[FloatArray, FloatArray]], weights: FloatArray) -> float:
    """The mean over probes z of zᵀ log(P⁻¹A) z, from their tridiagonal matrices."""
    from scipy.linalg import eigh_tridiagonal

    total = 0.0
    for (diagonal, off), weight in zip(lanczos, weights, strict=True):
        values, vectors = eigh_tridiagonal(diagonal, off, lapack_driver="stev")  # QR steps end where stemr may not
        total += weight * float(vectors[0] ** 2 @ np.log(np.maximum(values, 1e-300)))
    return total / max(len(weights), 1)
