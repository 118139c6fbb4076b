"""Integrals of likelihoods against Gaussians: trapezoid rules, which converge exponentially for such integrands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph.typing import FloatArray

_ROWS = 4096  # points of a block: (rows, nodes) arrays stay in the cache
_WIDE = 2.0  # standard deviation from which on the sigmoid is the narrower of the two functions
# Gaussian scale: ∫ g(μ + s t) φ(t) dt. The poles of the sigmoid lie π/s from the line: the error is exp(−2π²/(s h)).
_T = np.linspace(-12.0, 12.0, 97)
_LOG_PHI = -0.5 * _T**2 - 0.5 * np.log(2.0 * np.pi) + np.log(_T[1] - _T[0])
# Scale of the sigmoid, σ(f) = P(ε < f) with logistic ε: ∫ σ′(ε) Φ((μ − ε)/s) dε
_E = np.linspace(-40.0, 40.0, 161)
_LOG_DENSITY = -np.abs(_E) - 2.0 * np.log1p(np.exp(-np.abs(_E))) + np.log(_E[1] - _E[0])


def _log_sum(terms: FloatArray) -> FloatArray:
    """log Σ exp over the last axis."""
    top = terms.max(axis=-1)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return top + np.log(np.exp(terms - top[:, None]).sum(axis=-1))


def _blocks(function: Callable[..., Any], *arrays: FloatArray) -> tuple[FloatArray, ...]:
    """function over rows of equally long vectors, a block at a time."""
    n = len(arrays[0])
    if n <= _ROWS:
        return function(*arrays)
    parts = [function(*(a[i : i + _ROWS] for a in arrays)) for i in range(0, n, _ROWS)]
    return tuple(np.concatenate(pieces) for pieces in zip(*parts, strict=True))


def tilted(
    log_density: Callable[[FloatArray], FloatArray],
    slopes: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    mean: FloatArray,
    var: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log Z = log ∫ p(f) N(f; μ, v) df, ∂ log Z/∂μ, −∂² log Z/∂μ²; the functions take (n, nodes) latent values.

    The derivatives are averages over the tilted density: E[l′], and Var[l′] + E[l″] with the sign turned.
    """
    f = mean[:, None] + np.sqrt(var)[:, None] * _T
    terms = log_density(f) + _LOG_PHI
    log_z = _log_sum(terms)
    weight = np.exp(terms - log_z[:, None])
    first, second = slopes(f)
    kept = weight > 0.0  # a derivative far out may be infinite where its weight is 0
    first, second = np.where(kept, first, 0.0), np.where(kept, second, 0.0)
    slope = (weight * first).sum(axis=1)
    curvature = -(weight * (second + (first - slope[:, None]) ** 2)).sum(axis=1)
    return log_z, slope, _within(curvature, var)


def _within(curvature: FloatArray, var: FloatArray) -> FloatArray:
    """Log-concavity bounds the curvature by [0, 1/v); rounding may not leave it."""
    with np.errstate(divide="ignore"):
        return np.clip(curvature, 0.0, np.where(var > 0.0, (1.0 - 1e-12) / np.maximum(var, 1e-300), np.inf))


def log_sigmoid_integral(mean: FloatArray, var: FloatArray) -> FloatArray:
    """log ∫ σ(f) N(f; μ, v) df, elementwise.

    Only μ ≤ 0 is integrated: the value for −μ is one minus it. Where μ + v ≤ 0 the integrand sits in the exponential
    tail of σ, and σ(f) = eᶠ σ(−f) moves it: I(μ) = exp(μ + v/2) (1 − I(μ + v)), so nothing underflows.
    """
    mean, var = (np.array(a, dtype=np.float64) for a in np.broadcast_arrays(mean, var))
    shape = mean.shape
    mean, var = mean.ravel(), var.ravel()
    low = -np.abs(mean)
    tail = low + var <= 0.0
    (inner,) = _blocks(_plain, np.where(tail, low + var, low), np.sqrt(var))
    inner = np.minimum(inner, -np.log(2.0))
    value = np.where(tail, low + 0.5 * var + np.log1p(-np.exp(inner)), inner)
    return np.where(mean <= 0.0, value, np.log1p(-np.exp(np.minimum(value, -np.log(2.0))))).reshape(shape)


def _plain(mean: FloatArray, s: FloatArray) -> tuple[FloatArray]:
    from scipy.special import log_ndtr

    out = np.empty(len(mean))
    wide = s > _WIDE
    m, w = mean[~wide, None], s[~wide, None]
    out[~wide] = _log_sum(_LOG_PHI - np.logaddexp(0.0, -(m + w * _T)))
    m, w = mean[wide, None], s[wide, None]
    out[wide] = _log_sum(_LOG_DENSITY + log_ndtr((m - _E) / w))
    return (out,)


def sigmoid_moments(mean: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log Z of the sigmoid, its derivative by the mean and minus the second one."""
    mean, var = (np.array(a, dtype=np.float64) for a in np.broadcast_arrays(mean, var))
    return _blocks(_moments, mean, var)  # type: ignore[return-value]


def _moments(mean: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    from scipy.special import expit

    out = np.empty((3, len(mean)))
    wide = var > _WIDE**2
    narrow = ~wide
    out[:, narrow] = tilted(
        lambda f: -np.logaddexp(0.0, -f),
        lambda f: (expit(-f), -expit(f) * expit(-f)),
        mean[narrow],
        var[narrow],
    )
    out[0, narrow] = np.minimum(out[0, narrow], 0.0)
    out[:, wide] = _wide_moments(mean[wide], var[wide])
    return out[0], np.clip(out[1], 0.0, 1.0), out[2]


def _wide_moments(mean: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Z′ = ∫ σ′(f) N(f; μ, v) df and Z″ = ∫ σ′(f) ((f − μ)/v) N(f; μ, v) df; the far tail through I(−μ − v)."""
    tail = mean + var <= 0.0
    m = np.where(tail, -(mean + var), mean)[:, None]
    v = var[:, None]
    terms = _LOG_DENSITY - 0.5 * (_E - m) ** 2 / v - 0.5 * np.log(2.0 * np.pi * v)
    log_slope = _log_sum(terms)
    lean = (np.exp(terms - log_slope[:, None]) * (_E - m)).sum(axis=1) / var
    slope = np.exp(np.minimum(log_slope - log_sigmoid_integral(m[:, 0], var), 0.0))  # (log σ)′ is at most 1
    curvature = _within(slope * (slope - lean), var)
    return log_sigmoid_integral(mean, var), np.where(tail, 1.0 - slope, slope), curvature


# --- several classes ------------------------------------------------------------------------------------------------

_ORDER = {1: 64, 2: 40, 3: 16}  # Gauss–Hermite nodes along an axis
_POINTS = 2048  # of the quasi-random rule, taken with both signs


def softmax_integral(mean: FloatArray, cov: FloatArray) -> FloatArray:
    """∫ softmax(f) N(f; mean, cov) df for each row, (m, C).

    The softmax depends on the C − 1 differences to the last class only. Up to four classes: a product of
    Gauss–Hermite rules; beyond: 4,096 quasi-random nodes, the same ones for every row, error below about 1e-3.
    """
    m, C = mean.shape
    nodes, weights = _nodes(C - 1)
    shift = mean[:, :-1] - mean[:, -1:]
    spread = cov[:, :-1, :-1] - cov[:, :-1, -1:] - cov[:, -1:, :-1] + cov[:, -1:, -1:]
    half = symmetric_root(0.5 * (spread + np.swapaxes(spread, 1, 2)))
    out = np.empty((m, C))
    rows = max(1, 2_000_000 // (len(nodes) * C))
    for start in range(0, m, rows):
        here = slice(start, start + rows)
        f = np.zeros((len(shift[here]), len(nodes), C))
        f[:, :, :-1] = shift[here, None, :] + nodes @ half[here]
        f -= f.max(axis=2, keepdims=True)
        np.exp(f, out=f)
        f /= f.sum(axis=2, keepdims=True)
        out[here] = np.einsum("k,ikc->ic", weights, f)
    return out / out.sum(axis=1, keepdims=True)


def _nodes(d: int) -> tuple[FloatArray, FloatArray]:
    """Nodes (k, d) and weights of a rule for N(0, I)."""
    if d in _ORDER:
        t, w = np.polynomial.hermite_e.hermegauss(_ORDER[d])
        grid = np.stack(np.meshgrid(*[t] * d, indexing="ij"), axis=-1).reshape(-1, d)
        weights = np.stack(np.meshgrid(*[w / w.sum()] * d, indexing="ij"), axis=-1).reshape(-1, d).prod(axis=1)
        kept = weights > 1e-14
        return grid[kept], weights[kept] / weights[kept].sum()
    from scipy.special import ndtri

    # Additive recurrence with powers of the root of x^(d+1) = x + 1: low discrepancy in every dimension
    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (d + 1.0))
    steps = (1.0 / root) ** np.arange(1, d + 1)
    uniform = (0.5 + np.arange(1, _POINTS + 1)[:, None] * steps) % 1.0
    normal = ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12))
    return np.concatenate([normal, -normal]), np.full(2 * _POINTS, 0.5 / _POINTS)
