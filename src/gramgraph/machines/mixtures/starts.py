"""Where EM begins: shares of rows in components, (n, k), from k-means or from random rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.typing import FloatArray, IntArray

STARTS = ("kmeans", "k-means++", "subset", "random", "random_from_data")


def fill_gaps(X: FloatArray, w: FloatArray | None = None) -> FloatArray:
    """Missing cells at the mean of their column."""
    gone = np.isnan(X)
    if not gone.any():
        return X
    weight = ~gone * (1.0 if w is None else w[:, None])
    n = weight.sum(axis=0)
    mean = (weight * np.where(gone, 0.0, X)).sum(axis=0) / np.where(n > 0.0, n, 1.0)
    return np.where(gone, mean, X)


def shares(
    X: FloatArray,  # (n, d) without gaps, in units in which distances mean something
    k: int,
    way: str,
    rng: np.random.RandomState,
    w: FloatArray | None = None,
) -> FloatArray:
    """(n, k): which component a row is given to at first."""
    n = len(X)
    if way == "random":
        R = rng.uniform(size=(n, k))
        return np.asarray(R / R.sum(axis=1, keepdims=True))
    if way == "kmeans":
        return np.asarray(np.eye(k)[cluster(X, k, "k-means++", rng, w).labels_])
    if way == "random_from_data":
        rows = rng.choice(n, size=k, replace=False)
    elif way == "k-means++":
        from sklearn.cluster import kmeans_plusplus

        rows = kmeans_plusplus(X, k, sample_weight=w, random_state=rng)[1]
    else:
        return np.asarray(np.eye(k)[nearest(X, subset_centers(X, k, rng, w))])
    R = np.zeros((n, k))
    R[rows, np.arange(k)] = 1.0
    return R


def nearest(X: FloatArray, centers: FloatArray) -> IntArray:
    """The nearest center of each row."""
    from sklearn.metrics import pairwise_distances_argmin

    return np.asarray(pairwise_distances_argmin(X, centers))


def subset_centers(
    X: FloatArray, k: int, rng: np.random.RandomState, w: FloatArray | None = None, *, size: int | None = None
) -> FloatArray:
    """Centers of a small random set of rows that was clustered first: at least 10 rows for each center."""
    size = min(len(X), max(10 * k, len(X) // 10) if size is None else size)
    rows = rng.choice(len(X), size=size, replace=False)
    return np.asarray(cluster(X[rows], k, "k-means++", rng, None if w is None else w[rows]).cluster_centers_)


def cluster(
    X: FloatArray,
    k: int,
    init: Any,
    rng: np.random.RandomState,
    w: FloatArray | None = None,
    *,
    n_init: int = 1,
    max_iter: int = 300,
    tol: float = 1e-4,
) -> Any:
    """scikit-learn's k-means, whose warning about fewer distinct rows than clusters tells nothing here."""
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        made = KMeans(k, init=init, n_init=n_init, max_iter=max_iter, tol=tol, random_state=rng)
        return made.fit(X, sample_weight=w)
