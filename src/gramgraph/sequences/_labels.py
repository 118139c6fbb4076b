"""A first guess of the hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.typing import FloatArray, IntArray


def first_labels(
    points: FloatArray, offsets: IntArray, n_states: int, mask: Any, rng: np.random.Generator, most: int = 20_000
) -> IntArray:
    """A first guess of the states: k-means of the points (of `most` of them, if there are more), NaN at the mean.

    For left-right models equal stretches of time.
    """
    n = len(points)
    if isinstance(mask, str):
        sizes = np.diff(offsets)
        place = np.arange(n) - np.repeat(offsets[:-1], sizes)
        return (place * n_states) // np.repeat(sizes, sizes)
    filled = points
    if np.isnan(points).any():
        seen = ~np.isnan(points)
        middle = np.where(seen, points, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        filled = np.where(seen, points, middle)
    spread = filled.std(axis=0)
    filled = (filled - filled.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    some = filled if n <= most else filled[rng.choice(n, most, replace=False)]
    return _nearest(filled, _centers(some, n_states, rng))[0]


def _centers(X: FloatArray, k: int, rng: np.random.Generator, most: int = 100) -> FloatArray:
    """Means of at most k clusters by Lloyd's rounds; fewer where there are fewer different points.

    A start needs no more than this, and the import of scikit-learn's clusters takes longer than most fits.
    """
    centers = _apart(X, k, rng)
    labels = np.full(len(X), -1)
    for _ in range(most):
        found, distances = _nearest(X, centers)
        if (found == labels).all():
            break
        labels = found
        sizes = np.bincount(labels, minlength=len(centers))
        sums = np.stack([np.bincount(labels, column, minlength=len(centers)) for column in X.T], axis=1)
        far = np.argsort(-distances, kind="stable")[: len(centers)]  # an empty cluster begins again at a far point
        centers = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], X[far])
    return centers


def _apart(X: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """First centers, each the best of a few points drawn by their squared distances to those before (k-means++)."""
    centers = [X[rng.integers(len(X))]]
    gaps = ((X - centers[0]) ** 2).sum(axis=1)
    while len(centers) < min(k, len(X)) and (total := gaps.sum()) > 0.0:
        drawn = np.searchsorted(np.cumsum(gaps), rng.random(2 + int(np.log(k))) * total).clip(max=len(X) - 1)
        nearer = [np.minimum(gaps, ((X - X[i]) ** 2).sum(axis=1)) for i in drawn]
        best = int(np.argmin([left.sum() for left in nearer]))
        centers.append(X[drawn[best]])
        gaps = nearer[best]
    return np.array(centers)


def _nearest(X: FloatArray, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """The center nearest to every point, and its squared distance."""
    apart = (X * X).sum(axis=1)[:, None] - 2.0 * (X @ centers.T) + (centers * centers).sum(axis=1)
    labels = apart.argmin(axis=1)
    return labels.astype(np.int64), apart[np.arange(len(X)), labels]
