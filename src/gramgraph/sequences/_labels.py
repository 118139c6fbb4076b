"""A first guess of the hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.typing import FloatArray, IntArray

__all__ = ["first_labels"]


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
    from warnings import catch_warnings, simplefilter

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    filled = points
    if np.isnan(points).any():
        seen = ~np.isnan(points)
        middle = np.where(seen, points, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        filled = np.where(seen, points, middle)
    spread = filled.std(axis=0)
    filled = (filled - filled.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    some = filled if n <= most else filled[rng.choice(n, most, replace=False)]
    with threadpool_limits(1), catch_warnings():  # few points: threads would wait for each other
        simplefilter("ignore", ConvergenceWarning)  # fewer different points than states: the others begin empty
        found = KMeans(min(n_states, len(some)), n_init=1, random_state=int(rng.integers(2**31 - 1))).fit(some)
    return found.predict(filled).astype(np.int64)
