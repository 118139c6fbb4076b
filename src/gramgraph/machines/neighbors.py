"""Nearest neighbors by the distance of features: |φ(x) − φ(y)|² = k(x, x) + k(y, y) − 2 k(x, y)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.kernels.inputs import count, take
from gramgraph.machines.kernels import ResolvedKernel
from gramgraph.typing import FloatArray, IntArray

_ROWS = 1024


def nearest(kernel: ResolvedKernel, Z: Any, diag: FloatArray, X: Any, k: int) -> tuple[FloatArray, IntArray]:
    """Distances of points X to the k nearest of Z, whose k(z, z) are `diag`, and their numbers; nearest first.

    With a precomputed matrix k(x, x) is unknown: distances are relative to the nearest one.
    """
    distances, numbers = np.empty((count(X), k)), np.empty((count(X), k), dtype=np.int64)
    for start in range(0, count(X), _ROWS):
        rows = slice(start, min(count(X), start + _ROWS))
        part = take(X, rows)
        D = diag - 2.0 * kernel.gram(part, Z)
        if kernel.precomputed:
            D -= D.min(axis=1, keepdims=True)
        else:
            D += kernel.diag(part)[:, None]
        near = np.argsort(D, axis=1, kind="stable")[:, :k]  # equal distances: the earlier point first
        numbers[rows] = near
        distances[rows] = np.sqrt(np.maximum(np.take_along_axis(D, near, axis=1), 0.0))
    return distances, numbers


def inverse_distances(distances: FloatArray, diag: FloatArray) -> FloatArray:
    """Weights 1/d of neighbors, (n, k), whose rows sum to one; points that are met exactly share everything."""
    scale = np.sqrt(np.abs(diag).max(initial=1e-300))
    exact = distances <= 1e-7 * scale  # √ of rounding in a difference of kernel values
    with np.errstate(divide="ignore"):
        W = np.where(exact.any(axis=1, keepdims=True), exact.astype(float), 1.0 / distances)
    return W / W.sum(axis=1, keepdims=True)
