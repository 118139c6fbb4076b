"""Principal components: of points, of features summed over blocks, and of a centered Gram matrix; pre-images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.linalg.blocks import FeatureSums
from gramgraph.machines.kernels import ResolvedKernel
from gramgraph.machines.spectrum import HalfGram, WholeGram, smallest_ritz_value, top_eigenpairs
from gramgraph.typing import FloatArray, IntArray, RandomState

_DENSE = 600  # up to this size all eigenvectors cost less than the search for some of them


def _signs(vectors: FloatArray) -> FloatArray:
    """±1 for every column, so that its largest entry becomes positive: eigenvectors have no sign of their own."""
    sizes = np.abs(vectors)
    first = (sizes >= (1.0 - 1e-9) * sizes.max(axis=0, initial=0.0)).argmax(axis=0)  # rounding decides no tie
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return np.where(signs == 0.0, 1.0, signs)


def linear_components(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(mean, singular values, directions in rows) of centered points; O(n d min(n, d))."""
    from scipy.linalg import svd

    mean = X.mean(axis=0)
    _, s, components = svd(X - mean, full_matrices=False, check_finite=False, overwrite_a=True)
    return mean, s, components * _signs(components.T)[:, None]


def feature_components(sums: FeatureSums, center: FloatArray) -> tuple[FloatArray, FloatArray, float, int]:
    """(eigenvalues, vectors, trace, rank) of ΦᵀΦ − n φ̄ φ̄ᵀ, largest first; what is rounding is zero."""
    values, vectors = np.linalg.eigh(sums.G - sums.n * np.outer(center, center))
    kept = values > 1e-12 * sums.n * max(float(values[-1]), float(center @ center), 1e-300)
    V = vectors[:, ::-1]
    return (values * kept)[::-1], V * _signs(V), float(values.sum()), int(kept.sum())


@dataclass(frozen=True, eq=False)
class KernelComponents:
    """The largest eigenvalues of K̃ = (I − 1/n) K (I − 1/n) with their vectors; zero where they are rounding."""

    values: FloatArray  # (k,)
    vectors: FloatArray  # (n, k)
    trace: float
    column_means: FloatArray  # (n,) of K
    mean: float  # of K

    def positive(self) -> KernelComponents:
        """Those with a positive eigenvalue."""
        kept = self.values > 0.0
        return replace(self, values=self.values[kept], vectors=self.vectors[:, kept])


def kernel_components(
    kernel: ResolvedKernel, X: Any, k: int, *, solver: str, tol: float, random_state: RandomState, n_jobs: int = 1
) -> KernelComponents:
    """The k largest: all by a dense solver, or some by Lanczos, which centers in the products and only reads K."""
    n = count(X)
    some = k < n and (solver == "lanczos" or (solver == "auto" and n > _DENSE and k <= n // 20))
    gram: HalfGram | WholeGram
    if some and not kernel.precomputed:
        gram = HalfGram.of(kernel, X, n_jobs=n_jobs)
    else:
        gram = WholeGram(kernel.gram(X, n_jobs=n_jobs))
    column_means = gram.matvec(np.full(n, 1.0 / n))
    mean = float(column_means.mean())
    trace = gram.trace() - n * mean

    def centered(v: FloatArray) -> FloatArray:
        return _center(gram.matvec(_center(v.ravel())))

    found = top_eigenpairs(centered, n, k, tol=tol, random_state=random_state) if some else None
    if found is None:
        K = gram.K if isinstance(gram, WholeGram) else kernel.gram(X, n_jobs=n_jobs)
        values, vectors = _all_eigenpairs(K.copy() if kernel.precomputed else K, column_means, mean)
    else:
        values, vectors = found
    _check_spectrum(values, trace, n)
    if found is not None and (kernel.value is None or not kernel.value.positive_definite):
        low = smallest_ritz_value(centered, n, random_state=random_state)  # the largest ones show no negative
        _check_spectrum(np.append(values, low), trace, n)
    kept = values > 1e-12 * n * max(float(values[0]), abs(mean), 1e-300)
    vectors = vectors[:, :k]
    return KernelComponents((values * kept)[:k], vectors * _signs(vectors), trace, column_means, mean)


def _center(v: FloatArray) -> FloatArray:
    return v - v.mean(axis=0)


def _all_eigenpairs(K: FloatArray, column_means: FloatArray, mean: float) -> tuple[FloatArray, FloatArray]:
    """Of the centered matrix, largest first; K is overwritten."""
    from scipy.linalg import eigh

    K -= column_means
    K -= column_means[:, None]
    K += mean
    values, vectors = eigh(K, overwrite_a=True, check_finite=False, driver="evd" if len(K) > 1 else "ev")
    return values[::-1], vectors[:, ::-1]


def _check_spectrum(values: FloatArray, trace: float, n: int) -> None:
    largest, smallest = max(float(values[0]), 1e-300), float(values[-1])
    if not np.isfinite(values).all() or smallest < -1e-9 * n * largest - 1e-12 or trace < -1e-9 * n * largest - 1e-9:
        raise ModelError(
            f"The centered kernel matrix is not positive semidefinite: its eigenvalues reach from {smallest:.3g} "
            f"to {largest:.3g} (trace {trace:.3g}). Try: check the kernel or the precomputed matrix."
        )


def fixed_points(
    kernel: ResolvedKernel, X: FloatArray, G: FloatArray, near: IntArray, *, iterations: int = 200
) -> FloatArray:
    """z ← Σ γᵢ k(z, xᵢ) xᵢ / Σ γᵢ k(z, xᵢ), γ the expansion G of P φ; steps that divide by nothing are not taken."""
    G = G + (1.0 - G.sum(axis=1, keepdims=True)) / len(X)  # the mean that projections leave out
    points = X[near]
    for _ in range(iterations):
        W = G * kernel.gram(points, X)
        total = W.sum(axis=1, keepdims=True)
        safe = np.abs(total) > 1e-12
        moved = np.where(safe, (W @ X) / np.where(safe, total, 1.0), points)
        step = np.abs(moved - points).max()
        points = moved
        if step <= 1e-10 * (1.0 + np.abs(points).max()):
            break
    return points
