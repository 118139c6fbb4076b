"""A first guess of the hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.hmm.emissions import column_moments
from gramgraph._threads import in_threads
from gramgraph.typing import FloatArray, IntArray

#: Share of the points that may still change their cluster at the end.
_STILL = 1e-3
#: Points that a thread labels at a time: fewer would be over before it has Python's lock again.
_ROWS = 20_000


def first_labels(
    points: FloatArray,
    offsets: IntArray,
    n_states: int,
    mask: Any,
    rng: np.random.Generator,
    most: int = 5_000,
    *,
    n_jobs: int = 1,
) -> IntArray:
    """A first guess of the states: k-means of the points (of `most` of them, if there are more), NaN at the mean.

    For left-right models equal stretches of time. Threads share the points once the centers are known.
    """
    n = len(points)
    if isinstance(mask, str):
        sizes = np.diff(offsets)
        place = np.arange(n) - np.repeat(offsets[:-1], sizes)
        return (place * n_states) // np.repeat(sizes, sizes)
    _, (counts, middle, variances) = moments_of(points)
    spread = np.sqrt(variances * counts / n)  # with gaps at the mean
    spread = np.where(spread > 0.0, spread, 1.0)

    def scaled(rows: Any) -> FloatArray:
        return np.nan_to_num((points[rows] - middle) / spread, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)

    centers = _centers(scaled(slice(None) if n <= most else rng.choice(n, most, replace=False)), n_states, rng)
    parts = in_threads(lambda a: _nearest(scaled(slice(a, a + _ROWS)), centers)[0], range(0, n, _ROWS), n_jobs)
    return np.concatenate(parts)


def moments_of(X: FloatArray) -> tuple[int, tuple[FloatArray, FloatArray, FloatArray]]:
    """How many rows show something; numbers, mean and variance of the observed entries of every column."""
    found = np.empty(X.shape[1]), np.empty(X.shape[1]), np.empty(X.shape[1])
    return column_moments(np.ascontiguousarray(X), *found), found


def _centers(X: FloatArray, k: int, rng: np.random.Generator, most: int = 100) -> FloatArray:
    """Means of at most k clusters by Lloyd's rounds, until hardly a point moves; fewer where there are fewer points.

    A start needs no more than this, and the import of scikit-learn's clusters takes longer than most fits.
    """
    centers = _apart(X, k, rng)
    labels = np.full(len(X), -1)
    for _ in range(most):
        found, apart = _nearest(X, centers)
        if np.count_nonzero(found != labels) <= len(X) * _STILL:
            break
        labels = found
        sizes = np.bincount(labels, minlength=len(centers))
        sums = np.stack([np.bincount(labels, column, minlength=len(centers)) for column in X.T], axis=1)
        centers = sums / np.maximum(sizes, 1)[:, None]
        if not sizes.all():  # an empty cluster begins again at a far point
            distances = apart[labels, np.arange(len(X))] + np.einsum("ij,ij->i", X, X)
            far = np.argsort(-distances, kind="stable")[: len(centers)]
            centers = np.where(sizes[:, None] > 0, centers, X[far])
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
    """The center nearest to every point, and all squared distances less the square of the point, (centers, points)."""
    apart = (-2.0 * centers) @ X.T
    apart += (centers * centers).sum(axis=1)[:, None]
    labels, least = np.zeros(len(X), np.int64), apart[0].copy()
    for c in range(1, len(centers)):  # a row at a time: much quicker than argmin down the columns
        nearer = apart[c] < least
        labels[nearer] = c
        np.minimum(least, apart[c], out=least)
    return labels, apart
