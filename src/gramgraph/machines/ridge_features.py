"""Ridge regression on Nyström or random Fourier features: sums over blocks of rows, penalties from the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.linalg.blocks import FeatureSums, RunningSums
from gramgraph.linalg.nystrom import NystromMap, nystrom
from gramgraph.machines.kernels import ResolvedKernel
from gramgraph.typing import FloatArray

ROWS = 1024  # rows of features made at a time
_PLAIN = 1e-5  # bound below which sums of kernel columns move predictions by about 1e-8 of the targets, or less
_REFINED = 1e-3  # bound below which they do after a refinement, and by about 1e-7 where more blocks are added later
_T = TypeVar("_T")


def row_blocks(n: int, rows: int = ROWS) -> Iterator[slice]:
    """Slices of at most `rows` rows that cover 0 … n."""
    return (slice(start, min(n, start + rows)) for start in range(0, n, rows))


def map_blocks(work: Callable[[slice], _T], n: int, n_jobs: int | None) -> list[_T]:
    """work(rows) for one range of rows a thread, in the order of the rows."""
    from joblib import effective_n_jobs

    jobs = max(1, min(effective_n_jobs(n_jobs), -(-n // ROWS)))
    if jobs == 1:
        return [work(slice(0, n))]
    bands = list(row_blocks(n, -(-n // jobs)))
    with ThreadPoolExecutor(len(bands)) as pool:
        return list(pool.map(work, bands))


def make_features(
    kernel: ResolvedKernel, X: Any, approx: str, m: int, landmarks: Any, random_state: Any, name: object
) -> Any:
    """The map of points to features: `NystromMap`, or random Fourier features."""
    value = kernel.value
    if value is None:
        raise ModelError(
            f"approx={approx!r} needs a kernel value or name, as it is evaluated at new pairs of points; "
            f"kernel is {name!r}."
        )
    if approx == "features":
        d = X.shape[1] if hasattr(X, "shape") and len(X.shape) == 2 else 1
        return value.spectral_sample(m, d, random_state=random_state)
    if not isinstance(landmarks, str):
        return NystromMap.of(value, landmarks)
    return nystrom(value, X, m, method=landmarks, random_state=random_state)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class FeatureModel:
    """Features and the sums of linear regression on them. Rows are read in blocks, so memory does not grow with n."""

    kernel: ResolvedKernel
    features: Any
    sums: FeatureSums | None = None
    weight: float = 0.0  # Σ wᵢ of the rows in the sums
    rough: bool = False  # whether solutions from the sums need `refined`

    def with_rows(
        self,
        X: Any,
        Y: FloatArray,
        weights: FloatArray,
        *,
        alpha: float | None = None,
        refine: bool = False,
        n_jobs: int | None = None,
    ) -> FeatureModel:
        """The model with more rows in its sums.

        `alpha`, the least penalty to come, allows cheaper sums where they are accurate enough; with `refine` also where
        they are after `refined`.
        """
        from gramgraph.kernels.inputs import count, take

        n = count(X)
        uniform = bool((weights == 1.0).all())
        error = np.inf if alpha is None else self.plain_error(float(weights.sum()), alpha)
        plain = error < (_REFINED if refine else _PLAIN)

        def add(band: slice) -> FeatureSums:
            total = RunningSums()
            for part in row_blocks(band.stop - band.start):
                rows = slice(band.start + part.start, band.start + part.stop)
                points = take(X, rows)
                Phi = self.kernel.gram(points, self.features.landmarks) if plain else self.features.transform(points)
                total.add(Phi, Y[rows], None if uniform else weights[rows])
            return total.finish()

        parts = map_blocks(add, n, n_jobs)
        sums = parts[0]
        for part in parts[1:]:
            sums = sums + part
        if plain:
            W = self.features.W
            sums = FeatureSums(W.T @ sums.G @ W, W.T @ sums.c, sums.yy, sums.n)
        if self.sums is not None:
            sums = self.sums + sums
        weight = self.weight + float(weights.sum())
        return FeatureModel(self.kernel, self.features, sums, weight, plain and error >= _PLAIN)

    def plain_error(self, n: float, alpha: float) -> float:
        """A bound of the error that sums of kernel columns k(x, Z) bring in, instead of sums of Nyström features.

        They save the product with W, half of the work, but lose digits by the condition κ of k(Z, Z): predictions move
        by at most about ε κ (n/m) λ₁ / α, for n/m λ₁ the largest eigenvalue of ΦᵀΦ, and by a hundredth of that in
        practice, as rounding errors average out.
        """
        if not isinstance(self.features, NystromMap):
            return np.inf
        W = self.features.W
        top = _largest(self.kernel.gram(self.features.landmarks, self.features.landmarks))
        signal = n / len(W) * top / alpha
        return float(np.finfo(float).eps) * top * _largest(W.T @ W) * (1.0 + signal)

    def refined(
        self, coef: FloatArray, X: Any, Y: FloatArray, weights: FloatArray, alpha: Any, n_jobs: int | None = None
    ) -> FloatArray | None:
        """Coefficients corrected by the residual of the equations, which is read from the rows; None if that fails.

        A pass takes O(n m d) and adds four digits or more: (ΦᵀWΦ + α)⁻¹ of the sums at hand is near enough.
        """
        from gramgraph.kernels.inputs import count, take

        assert self.sums is not None
        size = np.inf
        for _ in range(4):
            dual = self.features.W @ coef

            def gradient(band: slice, dual: FloatArray = dual) -> FloatArray:
                total = np.zeros_like(dual)
                for part in row_blocks(band.stop - band.start):
                    rows = slice(band.start + part.start, band.start + part.stop)
                    K = self.kernel.gram(take(X, rows), self.features.landmarks)
                    total += K.T @ (weights[rows][:, None] * (Y[rows] - K @ dual))
                return total

            left = self.features.W.T @ np.sum(map_blocks(gradient, count(X), n_jobs), axis=0) - alpha * coef
            step = solve(FeatureSums(self.sums.G, left, self.sums.yy, self.sums.n), alpha)
            coef = coef + step
            before, size = size, float(np.abs(step).max() / max(np.abs(coef).max(), 1e-300))
            if size <= 1e-5:
                return coef
            if size > 0.1 * before:
                return None
        return None

    def loo_scores(
        self, X: Any, Y: FloatArray, weights: FloatArray, alphas: FloatArray, n_jobs: int | None = None
    ) -> FloatArray:
        """Weighted mean of squared leave-one-out residuals (e / (1 − w h))² for every penalty, (a,).

        With ΦᵀΦ = Q Λ Qᵀ the leverages are h = Σ (φᵀQ)² / (Λ + α): one more pass over the rows, n r² operations.
        """
        from gramgraph.kernels.inputs import count, take

        assert self.sums is not None
        values, Q = np.linalg.eigh(self.sums.G)
        shrink = 1.0 / (np.maximum(values, 0.0)[:, None] + alphas)  # (r, a)
        coefs = (Q.T @ self.sums.c)[:, :, None] * shrink[:, None, :]  # (r, t, a) in the basis Q
        t = Y.shape[1]

        def errors(band: slice) -> FloatArray:
            total = np.zeros(len(alphas))
            for part in row_blocks(band.stop - band.start):
                rows = slice(band.start + part.start, band.start + part.stop)
                S = self.features.transform(take(X, rows)) @ Q
                residuals = Y[rows][:, :, None] - (S @ coefs.reshape(len(S[0]), -1)).reshape(len(S), t, -1)
                np.square(S, out=S)
                left = np.maximum(1.0 - weights[rows][:, None] * (S @ shrink), 1e-12)
                total += weights[rows] @ ((residuals / left[:, None, :]) ** 2).mean(axis=1)
            return total

        total = np.sum(map_blocks(errors, count(X), n_jobs), axis=0)
        return np.asarray(total / weights.sum())


def _largest(A: FloatArray, steps: int = 20) -> float:
    """The largest eigenvalue of a positive semidefinite matrix by power iteration, to some percent."""
    v = np.random.default_rng(0).standard_normal(len(A))
    for _ in range(steps):
        v = A @ (v / np.linalg.norm(v))
    return float(np.linalg.norm(v))


def gcv_scores(sums: FeatureSums, weight: float, alphas: FloatArray) -> FloatArray:
    """Generalized cross-validation N · RSS / (N − trace H)² for every penalty, from the sums alone; (a,)."""
    values, Q = np.linalg.eigh(sums.G)
    values = np.maximum(values, 0.0)
    c = Q.T @ sums.c  # (r, t)
    shrink = 1.0 / (values[:, None] + alphas)
    # RSS = yᵀy − cᵀ(Λ + α)⁻¹c − α |(Λ + α)⁻¹c|², with eigenvectors as coordinates
    explained = (c**2).T @ (shrink + alphas * shrink**2)  # (t, a)
    rss = np.maximum(np.asarray(sums.yy)[:, None] - explained, 0.0).mean(axis=0)
    left = np.maximum(weight - (values[:, None] * shrink).sum(axis=0), 1e-12 * weight)
    return np.asarray(weight * rss / left**2)


def best_alpha(alphas: FloatArray, scores: FloatArray) -> int:
    """Index of the smallest score; the larger penalty at a tie."""
    ranked = np.flatnonzero(scores == scores.min())
    return int(ranked[np.argmax(alphas[ranked])])


def solve(sums: FeatureSums, alpha: Any) -> FloatArray:
    """(ΦᵀΦ + α I)⁻¹ Φᵀy, (r, t), with one α or one a target."""
    if np.ndim(alpha) == 0:
        return sums.weights(float(alpha))
    return np.stack([sums.factor(float(a)).solve(sums.c[:, j]) for j, a in enumerate(alpha)], axis=1)


def expansion(features: Any, coef: FloatArray, scale: float) -> FloatArray | None:
    """Weights of kernel columns, W c, where they keep the digits of features times coefficients; else None.

    `scale` is the size of the predictions. Saves the product with W for every new point.
    """
    if not isinstance(features, NystromMap):
        return None
    dual = features.W @ coef
    size = float(np.abs(dual).sum(axis=0).max(initial=0.0)) * float(np.max(features.kernel.diag(features.landmarks)))
    return dual if float(np.finfo(float).eps) * size <= 1e-9 * scale else None
