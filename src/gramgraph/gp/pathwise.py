"""Draws of a posterior as functions: a draw of the prior, corrected by the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.row_blocks import row_blocks, without_noise
from gramgraph.kernels.inputs import KernelError, count
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.gp.posterior import ExactPosterior
    from gramgraph.kernels.base import Kernel


def has_features(kernel: Kernel, X: Any) -> bool:
    """Whether the kernel (without noise) has random Fourier features on these points.

    >>> from gramgraph.kernels import RBF, Linear
    >>> has_features(RBF(), np.zeros((1, 2))), has_features(Linear(), np.zeros((1, 2)))
    (True, False)
    """
    smooth = without_noise(kernel)
    if smooth is None or not isinstance(X, np.ndarray):
        return False
    try:
        smooth.spectral_sample(1, X.shape[1], 0)
    except KernelError:
        return False
    return True


def pathwise_draws(
    process: ExactPosterior, X: Any, n_samples: int, rng: np.random.Generator, n_features: int
) -> FloatArray:
    """f(x) + k(x, X) (K + σ²I)⁻¹ (y − f(X) − ε), (m, q, n_samples), with f from random Fourier features.

    Draws of the latent function (no `White` noise). The prior part has an error O(1/√n_features) in its covariance; the
    correction is exact. O((n + m) n_features + n² ) a draw.
    """
    smooth = without_noise(process.kernel)
    if smooth is None or not has_features(process.kernel, process.X):
        raise ModelError(
            f"pathwise draws need random Fourier features, which {process.kernel} has not. Try: method='cholesky'."
        )
    q = process.Y.shape[1]
    X = process.kernel.prepare(X)
    features = smooth.spectral_sample(n_features, process.X.shape[1], rng)
    w = rng.standard_normal((len(features.masses), q * n_samples))
    own = process.noise + np.maximum(process.kernel.diag(process.X) - smooth.diag(process.X), 0.0)
    seen = features.transform(process.X) @ w
    seen += np.sqrt(own)[:, None] * rng.standard_normal(seen.shape)
    correction = process.factor.solve(seen)
    trend = process.trend
    if trend is not None:  # the trend of the drawn data is taken out as that of the data is
        beta = np.zeros((trend.H.shape[1], seen.shape[1]))
        if trend.A is not None:
            beta = trend.A.solve(trend.H.T @ correction)
            if trend.lost == 0:  # a Gaussian prior: the draw has weights of its own
                raise ModelError("pathwise draws do not know Gaussian priors of the mean: method='cholesky'.")
        correction -= trend.KinvH @ beta
    out = np.repeat(process.mean(X), n_samples, axis=1)
    for rows, part in row_blocks(X):
        out[rows] += features.transform(part) @ w - process.kernel.gram(part, process.X) @ correction
        if trend is not None and trend.A is not None:
            out[rows] -= process.trend_of.basis(part) @ beta
    return out.reshape(count(X), q, n_samples)
