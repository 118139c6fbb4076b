"""Nearest neighbors by the distance of features: |φ(x) − φ(y)|² = k(x, x) + k(y, y) − 2 k(x, y)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.kernels.inputs import count, take
from gramgraph.machines.kernels import ResolvedKernel
from gramgraph.typing import FloatArray, IntArray

_ROWS = 1024
_EQUAL = 1e-13  # of the kernel values at the points: squared distances that differ by less are equal up to rounding


def nearest(kernel: ResolvedKernel, Z: Any, diag: FloatArray, X: Any, k: int) -> tuple[FloatArray, IntArray]:
    """Distances of points X to the k nearest of Z, whose k(z, z) are `diag`, and their numbers; nearest first.

    Of distances that are equal up to rounding the earlier point comes first. With a precomputed matrix k(x, x) is
    unknown: distances are relative to the nearest one.
    """
    size = np.abs(diag).max(initial=0.0)
    distances, numbers = np.empty((count(X), k)), np.empty((count(X), k), dtype=np.int64)
    for start in range(0, count(X), _ROWS):
        rows = slice(start, min(count(X), start + _ROWS))
        part = take(X, rows)
        D = diag - 2.0 * kernel.gram(part, Z)
        if kernel.precomputed:
            D -= D.min(axis=1, keepdims=True)
            own = np.zeros((len(D), 1))
        else:
            own = kernel.diag(part)[:, None]
            D += own
        numbers[rows] = near = _smallest(D, k, _EQUAL * (np.abs(own) + size))
        distances[rows] = np.sqrt(np.maximum(np.take_along_axis(D, near, axis=1), 0.0))
    return distances, numbers


def _smallest(D: FloatArray, k: int, slack: FloatArray) -> IntArray:
    """Columns of the k smallest numbers of each row of D (m, n), ascending; of numbers that differ by less than `slack`
    (m, 1) the earlier column first. O(m n), more where many are equal to the k-th.
    """
    n = D.shape[1]
    top = np.partition(D, k - 1, axis=1)[:, k - 1, None] + slack
    c = int((top >= D).sum(axis=1).max(initial=k))  # candidates: what is equal to the k-th may come before it
    places = np.argpartition(D, c - 1, axis=1)[:, :c] if c < n else np.broadcast_to(np.arange(n), D.shape)
    values = np.take_along_axis(D, places, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    places, values = np.take_along_axis(places, order, axis=1), np.take_along_axis(values, order, axis=1)
    group = np.zeros(values.shape, dtype=np.int64)
    np.cumsum(np.diff(values, axis=1) > slack, axis=1, out=group[:, 1:])
    group[values > top] = n  # of the others any may be among these columns
    return np.asarray(np.sort(group * n + places, axis=1)[:, :k] % n)


def inverse_distances(distances: FloatArray, diag: FloatArray) -> FloatArray:
    """Weights 1/d of neighbors, (n, k), whose rows sum to one; points that are met exactly share everything."""
    scale = np.sqrt(np.abs(diag).max(initial=1e-300))
    exact = distances <= 1e-7 * scale  # √ of rounding in a difference of kernel values
    with np.errstate(divide="ignore"):
        W = np.where(exact.any(axis=1, keepdims=True), exact.astype(float), 1.0 / distances)
    return W / W.sum(axis=1, keepdims=True)
