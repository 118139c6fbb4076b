"""Kernel ridge regression: one solve, a path of penalties, and what leaving one point out would change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.machines.ridge_features import best_alpha
from gramgraph.typing import FloatArray


@dataclass(frozen=True)
class RidgePath:
    """Solutions for several penalties: one slice of the last axis each."""

    alphas: FloatArray  # (a,)
    dual_coefs: FloatArray  # (n, t, a)
    loo_residuals: FloatArray  # (n, t, a): y_i − f₋ᵢ(x_i), f₋ᵢ learned without point i; NaN where its weight is 0
    loo_errors: FloatArray  # (a,) weighted mean of their squares
    gcv_errors: FloatArray  # (a,) generalized cross-validation: the same with all leverages at their mean
    degrees_of_freedom: FloatArray  # (a,) trace of the hat matrix

    @property
    def best(self) -> int:
        """Index of the smallest leave-one-out error; the larger penalty at a tie."""
        return best_alpha(self.alphas, self.loo_errors)


def ridge_path(
    K: FloatArray,  # (n, n)
    Y: FloatArray,  # (n, t)
    alphas: FloatArray,  # (a,) positive
    weights: FloatArray,  # (n,) non-negative
) -> RidgePath:
    """min_f Σ wᵢ (yᵢ − f(xᵢ))² + α |f|² for every α, from one tridiagonal reduction; K is overwritten.

    With S = diag(√w), S K S = Q T Qᵀ and G = (S K S + α I)⁻¹ = Q (T + α)⁻¹ Qᵀ, the coefficients are c = S u with
    u = G S y, and the residual of a left-out point is uᵢ / (Gᵢᵢ √wᵢ). One O(n³), then O(n²) a penalty.
    """
    from gramgraph.linalg.tridiagonal import Tridiagonal

    s = np.sqrt(weights)
    K *= s[:, None]
    K *= s
    reduced = Tridiagonal.of(K, overwrite=True)
    values = reduced.eigenvalues()
    _check_spectrum(values, float(alphas.min()))
    values = np.maximum(values, 0.0)
    shrink = 1.0 / (values[:, None] + alphas)  # (n, a)
    U, G = reduced.solve_shifted(s[:, None] * Y, alphas)
    dual = s[:, None, None] * U
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = U / (G * s[:, None])[:, None, :]
    silent = weights == 0.0
    if silent.any():  # a point without weight is left out already: its residual needs K, which is gone
        left_out[silent] = np.nan
    used = ~silent
    errors = np.average((left_out[used] ** 2).mean(axis=1), axis=0, weights=weights[used])
    freedom = (values[:, None] * shrink).sum(axis=0)
    total = float(weights.sum())
    rss = alphas**2 * (U**2).sum(axis=0).mean(axis=0)
    gcv = total * rss / np.maximum(total - freedom, 1e-12 * total) ** 2
    return RidgePath(alphas, dual, left_out, errors, gcv, freedom)


def _check_spectrum(values: FloatArray, alpha: float) -> None:
    if values[0] < -max(1e-9 * len(values) * abs(values[-1]), 0.0) - 1e-12:
        raise ModelError(
            f"The kernel matrix is not positive semidefinite: its smallest eigenvalue is {values[0]:.3g}, its largest "
            f"{values[-1]:.3g}, so that a penalty of {alpha:.3g} has no meaning. Try: check the kernel, or clip "
            f"the negative eigenvalues of a precomputed matrix."
        )


def _factor(K: FloatArray, s: FloatArray, alpha: float) -> Any:
    """The Cholesky factor of S K S + α I, in K's memory."""
    from gramgraph.linalg.base import PositiveDefiniteError
    from gramgraph.linalg.dense import Dense

    if not (s == 1.0).all():
        K *= s[:, None]
        K *= s
    K[np.diag_indices_from(K)] += alpha
    try:
        return Dense(K).factor(overwrite=True)
    except PositiveDefiniteError as error:
        raise ModelError(
            f"The kernel matrix plus alpha = {alpha:.3g} is not positive definite, so the kernel matrix is not "
            f"positive semidefinite. Try: check the kernel (or the precomputed matrix), or a larger alpha."
        ) from error


def _per_alpha(alpha: Any, t: int) -> list[tuple[float, Any]]:
    if np.ndim(alpha) == 0:
        return [(float(alpha), slice(None))]
    return [(float(a), np.flatnonzero(alpha == a)) for a in np.unique(alpha)]


def solve_dual(K: FloatArray, Y: FloatArray, alpha: Any, weights: FloatArray) -> FloatArray:
    """The dual coefficients, (n, t), for one penalty or one per output; overwrites K where it can."""
    s = np.sqrt(weights)
    out = np.empty_like(Y)
    groups = _per_alpha(alpha, Y.shape[1])
    for a, columns in groups:
        factor = _factor(K.copy() if len(groups) > 1 else K, s, a)
        out[:, columns] = s[:, None] * factor.solve(s[:, None] * Y[:, columns])
    return out


def loo_residuals(K: FloatArray, Y: FloatArray, alpha: Any, weights: FloatArray) -> FloatArray:
    """uᵢ / (Gᵢᵢ √wᵢ), see `ridge_path`; a point of weight zero has its plain residual."""
    s = np.sqrt(weights)
    out = np.empty_like(Y)
    silent = weights == 0.0
    for a, columns in _per_alpha(alpha, Y.shape[1]):
        factor = _factor(K.copy(), s, a)
        U = factor.solve(s[:, None] * Y[:, columns])
        safe = np.where(silent, 1.0, s * factor.inverse_diag())
        out[:, columns] = U / safe[:, None]
        if silent.any():
            out[np.ix_(silent, np.arange(Y.shape[1])[columns])] = Y[silent][:, columns] - K[silent] @ (s[:, None] * U)
    return out
