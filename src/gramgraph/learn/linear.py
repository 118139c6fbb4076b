"""Linear Gaussian conditionals from second moments: maximum likelihood, or a conjugate prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import OptionError
from gramgraph.typing import FloatArray

__all__ = ["LinearGaussianPrior", "regress"]


@dataclass(frozen=True)
class LinearGaussianPrior:
    """A conjugate prior of a linear Gaussian: w | σ² ~ N(0, σ² / precision), σ² ~ InverseGamma(shape, scale).

    w are the coefficients (the intercept has a flat prior unless `intercept_precision` is given); for a vector-valued
    child σ² becomes a covariance with the matching inverse Wishart prior. A network that is fitted with it
    takes the posterior means of w and σ². With real data in other units than one, set `scale` accordingly.

    >>> import gramgraph as gg, pandas as pd
    >>> data = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 2.0, 4.0, 6.0]})
    >>> net = gg.BayesianNetwork("x{real} -> y{real}").fit(data, prior=gg.LinearGaussianPrior(precision=5.0))
    >>> net.conditional("y").coefficients.tolist()
    [[1.0]]
    """

    precision: float = 1.0
    shape: float = 1.0
    scale: float = 1.0
    intercept_precision: float = 0.0

    def __post_init__(self) -> None:
        for name in ("precision", "shape", "scale", "intercept_precision"):
            value = getattr(self, name)
            low = name in ("precision", "intercept_precision")
            if (
                not isinstance(value, (int, float, np.number))
                or not np.isfinite(value)
                or value < 0
                or (not low and value == 0)
            ):
                raise OptionError(
                    f"{name} of a normal–inverse-Gamma prior must be a {'number from 0' if low else 'positive number'}"
                )


def regress(
    n: float,
    mean: FloatArray,  # (m + k,) of parents and child
    S: FloatArray,  # (m + k, m + k) centered second moments, Σ w (x − mean)(x − mean)ᵀ
    k: int,
    prior: LinearGaussianPrior | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(coefficients, intercept, covariance) of the last k components given the others. O(m³).

    Maximum likelihood divides the residual squares by n. With a prior, posterior means.
    """
    m = len(mean) - k
    S_xx, S_xy, S_yy = S[:m, :m], S[:m, m:], S[m:, m:]
    x, y = mean[:m], mean[m:]
    if prior is None:
        W: FloatArray = np.asarray(np.linalg.lstsq(S_xx, S_xy, rcond=1e-12)[0].T, np.float64) if m else np.zeros((k, 0))
        residual = S_yy - W @ S_xy - (W @ S_xy).T + W @ S_xx @ W.T
        return W, y - W @ x, _positive(residual / n)
    kappa = prior.intercept_precision
    # A flat intercept leaves the centered moments; a proper one shrinks the mean towards zero.
    shrink = n * kappa / (n + kappa) if kappa > 0 else 0.0
    A = S_xx + shrink * np.outer(x, x) + prior.precision * np.eye(m)
    B = S_xy + shrink * np.outer(x, y)
    W = np.asarray(np.linalg.solve(A, B).T, np.float64) if m else np.zeros((k, 0))
    total = S_yy + shrink * np.outer(y, y) - W @ B
    b = (y - W @ x) * (n / (n + kappa) if n > 0 else 0.0)
    shape = prior.shape + 0.5 * n - (0.5 if kappa == 0 else 0.0)
    scale = prior.scale * np.eye(k) + 0.5 * total
    return W, b, _positive(scale / max(shape - 1.0, 0.5 * shape))


def _positive(S: FloatArray) -> FloatArray:
    """Symmetric, without the small negative eigenvalues of rounding."""
    S = 0.5 * (S + S.T)
    if len(S) == 1:
        return np.maximum(S, 0.0)
    values, vectors = np.linalg.eigh(S)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T) if values[0] < 0 else S


def moments(X: FloatArray, weights: Any = None) -> tuple[float, FloatArray, FloatArray]:
    """(total weight, mean, centered second moments) of rows."""
    w = np.ones(len(X)) if weights is None else weights
    n = float(w.sum())
    mean = (w @ X) / n if n > 0 else np.zeros(X.shape[1])
    off = X - mean
    return n, mean, off.T @ (w[:, None] * off)
