"""Large n by m inducing points: Titsias' bound, FITC, subset of regressors; and by random Fourier features.

All of them write Σ = VᵀV + diag(Λ) with V (m, n): V = L⁻¹ k(Z, X) for inducing points Z, k(Z, Z) = L Lᵀ; V = φ(X)ᵀ for
features. O(n m²) time; blocks of points are made anew when they are needed, so that memory is O(m² + block · m).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp._shown import OneLine
from gramgraph.gp.evidence import Profile, prepared, profile
from gramgraph.gp.markov import NoiseSplit, split_noise
from gramgraph.gp.methods import Data
from gramgraph.gp.posterior import draw_columns
from gramgraph.gp.row_blocks import row_blocks
from gramgraph.kernels.inputs import count
from gramgraph.linalg.base import MAX_JITTER
from gramgraph.linalg.blocks import select
from gramgraph.linalg.dense import DenseFactor
from gramgraph.linalg.nystrom import select_landmarks
from gramgraph.linalg.triangles import factor_lower
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_BLOCK = 2048
_KEPT = 40_000_000  # numbers of V that may be kept between the two passes of a gradient


@dataclass(frozen=True, eq=False)
class _Sums:
    """Everything about Σ that has the size of m or of the columns [R, H]."""

    split: NoiseSplit
    root: DenseFactor | None  # L of the inducing points; None for features
    inner: DenseFactor  # B = I + V Λ⁻¹ Vᵀ, (m, m)
    C: FloatArray  # (m, c): B⁻¹ V Λ⁻¹ [R, H]
    result: Profile
    trace: float  # Titsias: the gap ½ Σ (k_ii − q_ii) / σ²_i, else 0
    jitter: float
    shift: FloatArray  # (k, q) taken off the weights of the mean
    blocks: tuple[FloatArray, ...] | None = None  # V, block by block


def _factor(K: FloatArray, what: str) -> DenseFactor:
    return DenseFactor(*factor_lower(np.ascontiguousarray(K), max_jitter=MAX_JITTER, what=what))


@dataclass(frozen=True, eq=False)
class Sparse:
    """Inducing points Z.

    - "titsias": a lower bound of the evidence, log p(Y) ≥ log N(Y; 0, Q + σ²I) − ½ tr(K − Q)/σ², and the posterior that
      is nearest to the true one in Kullback–Leibler divergence; the bound is tight when Z carries the function.
    - "fitc": exact marginal variances at the data, independent given Z; its evidence is not a bound.
    - "sor": subset of regressors, Q alone; its evidence is not a bound and favors small noise. Predictive variances are
      those of the projected process, which grow back to the prior's away from Z.
    """

    data: Data
    Z: Any
    name: str = "titsias"
    exact = False

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        return row_blocks(self.data.X, _BLOCK)

    def _root(self, smooth: Kernel) -> DenseFactor:
        return _factor(smooth.gram(self.Z), "The Gram matrix of the inducing points")

    def _noise(self, kernel: Kernel, split: NoiseSplit) -> FloatArray:
        noise = self.data.noise + split.noise
        smooth = split.smooth
        assert smooth is not None
        floor = 1e-10 * max(float(np.mean(smooth.diag(_first(self.Z)))), 1e-300)
        return np.maximum(noise, floor)

    def _lambda(self, V: FloatArray, k: FloatArray, noise: FloatArray) -> FloatArray:
        if self.name != "fitc":
            return noise
        return noise + np.maximum(k - np.einsum("ij,ij->j", V, V), 0.0)

    def sums(self, kernel: Kernel, *, keep: bool = False) -> _Sums:
        """One pass over the data; with `keep` the blocks of V stay, as far as memory is given to them."""
        from scipy.linalg.blas import dsyrk

        split = split_noise(kernel)
        if split.smooth is None:
            raise ModelError("inducing points need a kernel beside its noise.")
        smooth, root = split.smooth, self._root(split.smooth)
        R, H, shift = prepared(self.data.Y, self.data.X, self.data.mean)
        columns = np.concatenate([R, H], axis=1)
        noise = self._noise(kernel, split)
        m = root.n
        B, VC, G = np.zeros((m, m), order="F"), np.zeros((m, columns.shape[1])), np.zeros((columns.shape[1],) * 2)
        log_lambda = trace = 0.0
        kept: list[FloatArray] | None = [] if keep and m * self.data.n <= _KEPT else None
        for rows, part in self._blocks():
            V = root.half_solve(smooth.gram(part, self.Z).T, overwrite=True)  # Fortran order: LAPACK needs no copy
            k = smooth.diag(part) if self.name != "sor" else np.zeros(V.shape[1])
            lam = self._lambda(V, k, noise[rows])
            if self.name == "titsias":
                trace += 0.5 * float((np.maximum(k - np.einsum("ij,ij->j", V, V), 0.0) / lam).sum())
            if kept is not None:
                kept.append(V.copy(order="F"))
            V /= np.sqrt(lam)
            B = dsyrk(1.0, V, beta=1.0, c=B, lower=1, overwrite_c=1)
            scaled = columns[rows] / np.sqrt(lam)[:, None]
            VC += V @ scaled
            G += scaled.T @ scaled
            log_lambda += float(np.log(lam).sum())
        B = np.tril(B) + np.tril(B, -1).T
        B[np.diag_indices_from(B)] += 1.0
        inner = _factor(B, "I + V Λ⁻¹ Vᵀ")
        half = inner.half_solve(VC)
        result = profile(G - half.T @ half, log_lambda + inner.logdet, R.shape[1], self.data.n, self.data.mean)
        blocks = None if kept is None else tuple(kept)
        jitter = max(root.jitter, float((noise - self.data.noise - split.noise).max(initial=0.0)))
        return _Sums(
            split,
            root,
            inner,
            inner.solve(VC),
            result=result,
            trace=trace * R.shape[1],
            jitter=jitter,
            shift=shift,
            blocks=blocks,
        )

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """The bound (Titsias) or the approximate evidence, and its gradient by theta with Z kept."""
        sums = self.sums(kernel, keep=gradient)
        value = sums.result.value - sums.trace
        return (value, self._gradient(kernel, sums)[0]) if gradient else (value, None)

    def evidence_by_points(self, kernel: Kernel) -> tuple[float, FloatArray, FloatArray]:
        """The same with the gradients by theta and by the places of the inducing points, (m, d)."""
        sums = self.sums(kernel, keep=True)
        theta, places = self._gradient(kernel, sums, inputs=True)
        assert places is not None
        return sums.result.value - sums.trace, theta, places

    def _gradient(self, kernel: Kernel, sums: _Sums, *, inputs: bool = False) -> tuple[FloatArray, FloatArray | None]:
        """Second pass: bar_V = V (Σ_c α α ᵀ − q Σ⁻¹) a block, pulled back through k(Z, X), k(Z, Z) and the diagonal.

        ∂/∂theta, and with `inputs` ∂/∂Z.
        """
        split, root = sums.split, sums.root
        smooth = split.smooth
        assert smooth is not None and root is not None
        R, H, _ = prepared(self.data.Y, self.data.X, self.data.mean)
        q = R.shape[1]
        columns = np.concatenate([R, H], axis=1) @ sums.result.T
        C = sums.C @ sums.result.T
        noise = self._noise(kernel, split)
        free = self.data.noise + split.noise > noise * (1 - 1e-12)  # a raised noise does not move
        by_theta, by_noise = np.zeros(len(smooth.theta)), 0.0
        by_places = np.zeros(np.shape(self.Z)) if inputs else None
        EV = np.zeros((root.n, root.n))
        inverse = sums.inner.inverse()
        for i, (rows, part) in enumerate(self._blocks()):
            K, pull = smooth.pullback(part, self.Z, inputs=inputs)
            V = sums.blocks[i] if sums.blocks is not None else root.half_solve(K.T)
            del K
            k, k_pull = smooth.diag_pullback(part)
            lam = self._lambda(V, k, noise[rows])
            alpha = (columns[rows] - V.T @ C) / lam[:, None]
            BV = inverse @ V
            bar_lam = 0.5 * ((alpha**2).sum(1) - q * (1.0 / lam - np.einsum("ij,ij->j", V, BV) / lam**2))
            # V Σ_c α αᵀ − q B⁻¹ V Λ⁻¹, with V α = C since V Σ⁻¹ = B⁻¹ V Λ⁻¹
            BV *= -q / lam
            BV += C @ alpha.T
            bar_V = BV
            bar_k = np.zeros(len(lam))
            if self.name == "titsias":
                bar_V += q * V / lam
                bar_k = -0.5 * q / lam
                bar_lam += 0.5 * q * np.maximum(k - np.einsum("ij,ij->j", V, V), 0.0) / lam**2
            elif self.name == "fitc":
                bar_V -= 2.0 * V * bar_lam
                bar_k = bar_lam
            E = _upper_solve(root, np.asfortranarray(bar_V))
            EV += E @ V.T
            found = pull(np.ascontiguousarray(E.T))
            by_theta += found.theta
            if by_places is not None:
                by_places += _needed(found.Y, smooth)
            if self.name != "sor":
                by_theta += k_pull(bar_k).theta
            by_noise += float(bar_lam[free[rows]].sum())
        bar_Kuu = -0.5 * _upper_solve(root, EV.T).T
        found = smooth.pullback(self.Z, inputs=inputs)[1](0.5 * (bar_Kuu + bar_Kuu.T))
        by_theta += found.theta
        if by_places is not None:
            by_places += _needed(found.X, smooth)
        return split.theta(by_theta, by_noise), by_places

    def posterior(self, kernel: Kernel) -> SparsePosterior:
        """The process given the data through the inducing points."""
        sums = self.sums(kernel)
        smooth, root = sums.split.smooth, sums.root
        assert smooth is not None and root is not None
        return SparsePosterior(kernel, self.data, sums, _Projection(smooth, self.Z, root), True)

    def reselected(self, kernel: Kernel, m: int, rng: np.random.Generator) -> Sparse:
        """With inducing points that suit another kernel."""
        return replace(self, Z=select_inducing(kernel, self.data.X, m, rng))

    def with_data(self, data: Data) -> Sparse:
        """For other data, the inducing points kept."""
        return replace(self, data=data)


@dataclass(frozen=True, eq=False)
class _Projection:
    """v(x) = L⁻¹ k(Z, x): a value rather than a closure, so that models can be saved and sent to other processes."""

    kernel: Kernel
    Z: Any
    root: DenseFactor

    def __call__(self, X: Any) -> FloatArray:
        return self.root.half_solve(self.kernel.gram(X, self.Z).T)


@dataclass(frozen=True, eq=False)
class _Transposed:
    """v(x) = φ(x)."""

    features: Any

    def __call__(self, X: Any) -> FloatArray:
        return self.features.transform(X).T


def select_inducing(kernel: Kernel, X: Any, m: int, rng: np.random.Generator) -> Any:
    """m inducing points: pivots of the incomplete Cholesky factor on a random part of the points, O(m³).

    Every pivot is the point that the others explain least under the kernel, so that they follow its length scales.
    """
    smooth = split_noise(kernel).smooth
    if smooth is None:
        raise ModelError("inducing points need a kernel beside its noise.")
    n = count(X)
    few = min(n, max(10 * m, 2000))
    rows = np.sort(rng.choice(n, size=few, replace=False))
    return select_landmarks(smooth, select(X, rows), m, method="pivots")


def _needed(found: FloatArray | None, kernel: Kernel) -> FloatArray:
    if found is None:
        raise ModelError(f"{kernel} gives no gradient by its inputs: its inducing points cannot be moved.")
    return found


def _first(Z: Any) -> Any:
    from gramgraph.kernels.inputs import take

    return take(Z, slice(0, 1))


def _upper_solve(factor: DenseFactor, B: FloatArray) -> FloatArray:
    """L⁻ᵀ B."""
    from scipy.linalg.lapack import dtrtrs

    X, _ = dtrtrs(factor.L.T, B, lower=0, trans=0, overwrite_b=B.flags.f_contiguous)
    return X


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """m random Fourier features φ: k ≈ φᵀφ with error O(1/√m), then Bayesian linear regression; O(n m²).

    Hyper-parameters are learned by the exact evidence of a subset; `evidence` is that of the features, its
    gradient by differences.
    """

    data: Data
    m: int
    seed: int
    name: str = "rff"
    exact = False

    def sums(self, kernel: Kernel) -> tuple[_Sums, Any]:
        """One pass over the data."""
        split = split_noise(kernel)
        if split.smooth is None:
            raise ModelError("random features need a kernel beside its noise.")
        features = split.smooth.spectral_sample(self.m, self.data.X.shape[1], np.random.default_rng(self.seed))
        R, H, shift = prepared(self.data.Y, self.data.X, self.data.mean)
        columns = np.concatenate([R, H], axis=1)
        noise = np.maximum(self.data.noise + split.noise, 1e-10 * float(features.masses.sum()))
        size = len(features.masses)
        B, VC, G = np.eye(size), np.zeros((size, columns.shape[1])), np.zeros((columns.shape[1],) * 2)
        for rows, part in row_blocks(self.data.X, _BLOCK):
            root = np.sqrt(noise[rows])
            U = features.transform(part).T / root
            B += U @ U.T
            scaled = columns[rows] / root[:, None]
            VC += U @ scaled
            G += scaled.T @ scaled
        inner = _factor(B, "I + Φᵀ Λ⁻¹ Φ")
        half = inner.half_solve(VC)
        logdet = float(np.log(noise).sum()) + inner.logdet
        result = profile(G - half.T @ half, logdet, R.shape[1], self.data.n, self.data.mean)
        jitter = float((noise - self.data.noise - split.noise).max(initial=0.0))
        return _Sums(split, None, inner, inner.solve(VC), result, 0.0, jitter, shift), features

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """The evidence of the features."""
        value = self.sums(kernel)[0].result.value
        if not gradient:
            return value, None
        theta, h = kernel.theta, 1e-5
        eye = h * np.eye(len(theta))
        ends = [[self.sums(kernel.with_theta(theta + s * e))[0].result.value for s in (1, -1)] for e in eye]
        return value, np.array([(up - down) / (2 * h) for up, down in ends])

    def posterior(self, kernel: Kernel) -> SparsePosterior:
        """Bayesian linear regression on the features."""
        sums, features = self.sums(kernel)
        return SparsePosterior(kernel, self.data, sums, _Transposed(features), False)

    def with_data(self, data: Data) -> RandomFeatures:
        """For other data."""
        return replace(self, data=data)


@dataclass(frozen=True, eq=False, repr=False)
class SparsePosterior(OneLine):
    """f(x) = v(x)ᵀ w + rest with w | y ~ N(C, B⁻¹) and, for inducing points, a rest of variance k(x, x) − |v(x)|²."""

    kernel: Kernel
    data: Data
    sums: _Sums
    project: Callable[[Any], FloatArray]  # points ↦ v, (m, ·)
    keeps_rest: bool

    @property
    def log_evidence(self) -> float:
        """The bound or the approximate evidence."""
        return self.sums.result.value - self.sums.trace

    @property
    def jitter(self) -> float:
        """What was added to the Gram matrix of the inducing points, or to a noise that was too small."""
        return self.sums.jitter

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights of v for the columns, weights of the mean, and B⁻¹VΛ⁻¹H."""
        q = self.data.Y.shape[1]
        coef = self.sums.result.coef
        C = self.sums.C[:, :q] - self.sums.C[:, q:] @ coef
        return C, coef + self.sums.shift, self.sums.C[:, q:]

    def mean(self, X: Any) -> FloatArray:
        """E f(x), (m, q); O(m) a point."""
        C, coef, _ = self._weights
        fixed = self.data.mean.fixed(X)
        out = np.zeros((count(X), C.shape[1])) if fixed is None else fixed.reshape(count(X), -1) + np.zeros(C.shape[1])
        for rows, part in row_blocks(X):
            out[rows] += self.project(part).T @ C + self.data.mean.basis(part) @ coef
        return out

    def var(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Var f(x), (m,)."""
        smooth = self.sums.split.smooth
        assert smooth is not None
        out = np.empty(count(X))
        for rows, part in row_blocks(X):
            v = self.project(part)
            half = self.sums.inner.half_solve(v)
            out[rows] = np.einsum("ij,ij->j", half, half)
            if self.keeps_rest:
                out[rows] += np.maximum(smooth.diag(part) - np.einsum("ij,ij->j", v, v), 0.0)
            rest = self.data.mean.basis(part) - v.T @ self._weights[2]
            out[rows] += np.einsum("ij,jk,ik->i", rest, self.sums.result.cov, rest)
        return out + (0.0 if latent else self.sums.split.noise)

    def cov(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Cov f(x), (m, m)."""
        smooth = self.sums.split.smooth
        assert smooth is not None
        v = self.project(X)
        half = self.sums.inner.half_solve(v)
        C = half.T @ half
        if self.keeps_rest:
            C += smooth.gram(X) - v.T @ v
        rest = self.data.mean.basis(X) - v.T @ self._weights[2]
        C += rest @ self.sums.result.cov @ rest.T
        if not latent:
            C[np.diag_indices_from(C)] += self.sums.split.noise
        return 0.5 * (C + C.T)

    def sample(self, X: Any, n_samples: int = 1, *, random_state: Any = None) -> FloatArray:
        """Draws, (m, q, n_samples)."""
        return draw_columns(self.mean(X), self.cov(X), n_samples, random_state)
