"""All points of a discrete support, and integrals over a continuous one: what normalization is checked with."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from gramgraph.typing import FloatArray

_MOST = 200_000  # points of a discrete support that are still counted


def every_point(distribution: Any, draws: FloatArray) -> FloatArray | None:
    """All points of a discrete support (of an infinite one, all that could matter); None when they are too many."""
    kind, d = distribution.support, distribution.event_shape
    if kind == "binary":
        return np.array([0.0, 1.0])
    if kind == "codes":
        return np.arange(float(distribution.n_states))
    if kind == "trials":
        return np.arange(distribution.n_trials + 1.0)
    if kind in ("counts", "positive_integers"):
        return np.arange(float(kind == "positive_integers"), 4.0 * float(draws.max(initial=0.0)) + 100.0)
    if kind == "binary_vector":
        return None if 2 ** d[0] > _MOST else np.array(list(itertools.product((0.0, 1.0), repeat=d[0])))
    n = distribution.n_trials
    if (n + 1) ** (d[0] - 1) > _MOST:
        return None
    rows = [row for row in itertools.product(range(n + 1), repeat=d[0] - 1) if sum(row) <= n]
    return np.array([(*row, n - sum(row)) for row in rows], dtype=np.float64)


def total_mass(distribution: Any, draws: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    """∫ p(x) dx over a continuous support, and what it may be off by chance or by the grid.

    Numbers: the trapezoidal rule in a coordinate that covers the whole line. Vectors and matrices: importance
    sampling in such coordinates, from a t distribution with the moments of the draws.
    """
    kind = distribution.support
    if kind == "angle":
        x = np.linspace(-np.pi, np.pi, 20_000, endpoint=False)
        return float(distribution.density(x).mean() * 2.0 * np.pi), 1e-6
    if kind == "sphere":
        x = rng.standard_normal((40_000, draws.shape[1]))
        area = np.exp(_log_area(draws.shape[1]))
        w = area * distribution.density(x / np.linalg.norm(x, axis=1, keepdims=True))
        return float(w.mean()), 5.0 * float(w.std()) / np.sqrt(len(w)) + 1e-9
    u = to_coordinates(kind, draws)
    center, spread = u.mean(axis=0), np.atleast_2d(np.cov(u.T))
    if u.shape[1] == 1:
        width = float(np.sqrt(spread[0, 0]))
        grid = np.linspace(center[0] - 40.0 * width, center[0] + 40.0 * width, 40_001)
        x, log_stretch = _from_coordinates(kind, grid[:, None], distribution.event_shape)
        values = np.exp(distribution.log_density(x) + log_stretch)
        return float(values.sum() * (grid[1] - grid[0])), 1e-4
    L = np.linalg.cholesky(spread + 1e-12 * np.eye(len(spread)) * np.trace(spread))
    z = rng.standard_normal((40_000, len(L)))
    z /= np.sqrt(rng.chisquare(5.0, size=(len(z), 1)) / 5.0)
    x, log_stretch = _from_coordinates(kind, center + z @ L.T, distribution.event_shape)
    w = np.exp(distribution.log_density(x) + log_stretch - _log_t(z, 5.0) + np.log(np.diagonal(L)).sum())
    return float(w.mean()), 5.0 * float(w.std()) / np.sqrt(len(w)) + 1e-9


def to_coordinates(kind: str, x: FloatArray) -> FloatArray:
    """Points of a continuous support as points of R^k, (n, k)."""
    if kind == "real":
        return x[:, None]
    if kind == "vector":
        return x
    if kind in ("positive", "non_negative"):
        return np.log(np.maximum(x, 1e-300))[:, None]
    if kind == "unit":
        safe = np.clip(x, 1e-300, 1.0 - 1e-16)
        return (np.log(safe) - np.log1p(-safe))[:, None]
    if kind == "simplex":
        logs = np.log(np.maximum(x, 1e-300))
        return logs[:, :-1] - logs[:, -1:]
    L = np.linalg.cholesky(x)
    i, j = np.tril_indices(x.shape[-1])
    return np.where(i == j, np.log(np.where(i == j, L[:, i, j], 1.0)), L[:, i, j])


def _from_coordinates(kind: str, u: FloatArray, event_shape: tuple[int, ...]) -> tuple[FloatArray, Any]:
    """Points of the support, and the log of the volume that a unit of volume in R^k becomes."""
    if kind == "real":
        return u[:, 0], 0.0
    if kind == "vector":
        return u, 0.0
    if kind in ("positive", "non_negative"):
        return np.exp(u[:, 0]), u[:, 0]
    if kind == "unit":
        with np.errstate(over="ignore"):
            x = np.clip(1.0 / (1.0 + np.exp(-u[:, 0])), 1e-300, 1.0 - 2.0**-53)  # a density may be infinite at 1
        return x, -np.logaddexp(0.0, -u[:, 0]) - np.logaddexp(0.0, u[:, 0])
    if kind == "simplex":
        logs = np.concatenate([u, np.zeros((len(u), 1))], axis=1)
        logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        return np.exp(logs), logs.sum(axis=1)
    d = event_shape[0]
    i, j = np.tril_indices(d)
    L = np.zeros((len(u), d, d))
    L[:, i, j] = np.where(i == j, np.exp(np.where(i == j, u, 0.0)), u)
    powers = d - np.arange(d)  # dX = 2^d Π L_ii^(d−i) dL for i = 0 …, and dL_ii = L_ii du_ii
    stretch = d * np.log(2.0) + u[:, i == j] @ (powers + 1.0)
    return L @ np.swapaxes(L, -1, -2), stretch


def _log_t(z: FloatArray, dof: float) -> FloatArray:
    """Log density of the spherical t distribution."""
    from scipy.special import gammaln

    k = z.shape[1]
    scale = gammaln(0.5 * (dof + k)) - gammaln(0.5 * dof) - 0.5 * k * np.log(dof * np.pi)
    return np.asarray(scale - 0.5 * (dof + k) * np.log1p((z * z).sum(axis=1) / dof))


def _log_area(d: int) -> float:
    from scipy.special import gammaln

    return float(np.log(2.0) + 0.5 * d * np.log(np.pi) - gammaln(0.5 * d))
