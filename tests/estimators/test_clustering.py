"""k-means in a kernel's space."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from gramgraph import kernels
from gramgraph.estimators import KernelKMeans
from gramgraph.exceptions import GramGraphError, ModelError


def test_the_linear_kernel_gives_k_means() -> None:
    X, _ = make_blobs(120, centers=3, cluster_std=0.6, random_state=0)
    ours = KernelKMeans(3, kernel="linear", n_init=10, random_state=0).fit(X)
    theirs = KMeans(3, n_init=10, random_state=0).fit(X)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1.0
    new = X[::7] + 0.05
    assert adjusted_rand_score(ours.predict(new), theirs.predict(new)) == 1.0
    assert (ours.predict(X) == ours.labels_).all()


def test_rings_come_apart_where_k_means_fails() -> None:
    X, y = make_circles(200, factor=0.2, noise=0.03, random_state=1)
    # |x|² tells the rings apart: the kernel (xᵀx′)² sees it
    found = KernelKMeans(2, kernel="poly", gamma=1.0, degree=2, coef0=0.0, n_init=20, random_state=0).fit_predict(X)
    plain = KMeans(2, n_init=5, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, plain) < 0.1
    radius = KernelKMeans(2, kernel=kernels.RBF(0.3).warp(lambda P: (P**2).sum(axis=1, keepdims=True)), random_state=0)
    assert adjusted_rand_score(y, radius.fit_predict(X)) == 1.0
    assert len(np.unique(found)) == 2


def test_more_rounds_never_raise_the_inertia(rng: np.random.Generator) -> None:
    X = rng.normal(size=(80, 2))
    inertias = [KernelKMeans(5, n_init=1, max_iter=m, random_state=3).fit(X).inertia_ for m in (1, 2, 4, 8, 100)]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(inertias))
    K = kernels.RBF(1.0).gram(X)
    model = KernelKMeans(4, kernel="precomputed", random_state=0).fit(K)
    brute = 0.0
    for c in range(4):
        inside = K[np.ix_(model.labels_ == c, model.labels_ == c)]
        brute += np.trace(inside) - inside.sum() / len(inside)
    assert model.inertia_ == pytest.approx(brute, rel=1e-10)


def test_bad_and_degenerate_input() -> None:
    with pytest.raises(ModelError, match="only n_samples=2"):
        KernelKMeans(3).fit([[0.0], [1.0]])
    with pytest.raises(ModelError, match="n_clusters must be a whole number"):
        KernelKMeans(0).fit([[0.0], [1.0]])
    with pytest.raises(ValueError, match="NaN"):
        KernelKMeans(1).fit([[np.nan], [1.0]])
    same = KernelKMeans(2, random_state=0).fit(np.ones((5, 2)))
    assert same.inertia_ == pytest.approx(0.0, abs=1e-12)
    assert KernelKMeans(1).fit([[2.0]]).predict([[5.0]]).tolist() == [0]
    assert KernelKMeans(2, random_state=0).fit([[0.0], [0.0], [5.0], [5.0]]).inertia_ == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("approx", ["nystrom", "features"])
def test_features_find_the_clusters_of_the_kernel(rng: np.random.Generator, approx: str) -> None:
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    X = np.repeat(centers, 100, axis=0) + rng.normal(size=(300, 2))
    exact = KernelKMeans(3, gamma=0.1, random_state=0).fit(X)
    fast = KernelKMeans(3, gamma=0.1, approx=approx, n_components=150, random_state=0).fit(X)
    assert adjusted_rand_score(exact.labels_, fast.labels_) > 0.97
    assert adjusted_rand_score(exact.predict(centers), fast.predict(centers)) == 1.0
    assert fast.cluster_centers_.shape[0] == 3 and not hasattr(fast, "X_fit_")
    np.testing.assert_array_equal(fast.predict(X), fast.labels_)
    assert fast.inertia_ == pytest.approx(exact.inertia_, rel=0.15)


def test_all_points_as_landmarks_are_exact(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3))
    exact = KernelKMeans(4, gamma=0.5, random_state=0).fit(X)
    same = KernelKMeans(4, gamma=0.5, approx="nystrom", n_components=60, random_state=0).fit(X)
    np.testing.assert_array_equal(exact.labels_, same.labels_)
    assert same.inertia_ == pytest.approx(exact.inertia_, rel=1e-9)


def test_features_of_words_and_of_what_has_none(rng: np.random.Generator) -> None:
    from gramgraph.kernels import Spectrum

    words = ["abab", "baba", "abba", "cdcd", "dcdc", "cddc"] * 5
    found = KernelKMeans(2, kernel=Spectrum(1).normalized(), approx="nystrom", n_components=6, random_state=0)
    assert adjusted_rand_score(found.fit(words).labels_, [word[0] in "ab" for word in words]) == 1.0
    with pytest.raises(GramGraphError, match="no known spectral density"):
        KernelKMeans(2, kernel=Spectrum(1), approx="features").fit(words)
    with pytest.raises(GramGraphError, match="approx"):
        KernelKMeans(2, kernel="precomputed", approx="nystrom").fit(np.eye(5))
