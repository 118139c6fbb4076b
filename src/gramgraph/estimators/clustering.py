"""k-means in the space of a kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramgraph._validation import check_choice, check_count
from gramgraph.estimators._base import NamedKernelEstimator
from gramgraph.estimators._sound import SoundNumbers
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count, take
from gramgraph.machines.kmeans import FeatureSpace, GramSpace, kmeans, shares_of, squared_norms
from gramgraph.machines.ridge_features import make_features, row_blocks
from gramgraph.machines.sparse import dense
from gramgraph.typing import IntArray

_ROWS = 2048


@dataclass(eq=False, repr=False)
class KernelKMeans(ClusterMixin, NamedKernelEstimator):
    """Clusters around means μ_c of features.

    |φ(x) − μ_c|² = k(x, x) − (2/|c|) Σ_{i∈c} k(x, xᵢ) + (1/|c|²) Σ_{i,j∈c} k(xᵢ, xⱼ).

    Parameters
    ----------
    n_clusters : how many.
    kernel, gamma, degree, coef0 : as in `KernelRidge`. With "linear" this is k-means.
    n_init : runs from different k-means++ starts; the best is kept.
    max_iter : most rounds of a run; every round costs O(n² n_clusters) and never raises the inertia.
    approx : None, or for large n means of m = `n_components` features: "nystrom" (`landmarks` as `KernelRidge` has
        them) or "features" (random Fourier features); a round then costs O(n m n_clusters), memory is O(n m).
    n_components : features of approx.
    landmarks : how they are chosen, as in `KernelRidge`.
    random_state : seed.

    Attributes
    ----------
    labels_ (n,), inertia_ (sum of squared distances in the kernel's space), n_iter_, X_fit_; with approx features_ and
    cluster_centers_ (n_clusters, m), the means of the features, instead of X_fit_.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.estimators import KernelKMeans
    >>> KernelKMeans(2, random_state=0).fit_predict([[0.0], [0.1], [9.0], [9.1]]).tolist() in (
    ...     [0, 0, 1, 1],
    ...     [1, 1, 0, 0],
    ... )
    True
    """

    n_clusters: int = 8
    _: KW_ONLY
    n_init: int = 4
    max_iter: int = 300
    approx: str | None = None
    n_components: int = 200
    landmarks: Any = "uniform"
    random_state: Any = None

    _sparse_rows = "keep"

    def fit(self, X: Any, y: Any = None) -> KernelKMeans:
        """Find the clusters."""
        check_choice("approx", self.approx, (None, "nystrom", "features"))
        for name in ("n_clusters", "n_init", "max_iter", "n_components"):
            check_count(name, getattr(self, name))
        X = self._points(X, reset=True, keep=self.approx is None)
        n = count(X)
        if n < self.n_clusters:
            raise ModelError(f"n_clusters is {self.n_clusters}, but there are only n_samples={n} points.")
        self.kernel_ = self._resolve(X)
        for name in ("X_fit_", "features_", "cluster_centers_"):
            self.__dict__.pop(name, None)
        space = self._space(X)
        rng = check_random_state(self.random_state)
        found = kmeans(space, self.n_clusters, rng, n_init=self.n_init, max_iter=self.max_iter)
        self.labels_, self.inertia_, self.n_iter_ = found
        shares = shares_of(self.labels_, self.n_clusters)
        self._norms = squared_norms(shares, space.products(shares))
        if isinstance(space, FeatureSpace):
            self.cluster_centers_ = shares.T @ space.Phi
        else:
            self.X_fit_, self._shares = X, shares
        return self

    def _space(self, X: Any) -> GramSpace | FeatureSpace:
        if self.approx is None:
            return GramSpace(self.kernel_.gram(X))
        X = dense(X)
        self.features_ = make_features(
            self.kernel_, X, self.approx, self.n_components, self.landmarks, self.random_state, self.kernel
        )
        return FeatureSpace(np.concatenate([self.features_.transform(take(X, rows)) for rows in row_blocks(count(X))]))

    def predict(self, X: Any) -> IntArray:
        """The cluster with the nearest mean."""
        check_is_fitted(self, "labels_")
        X = self._points(X, reset=False)
        out = np.empty(count(X), dtype=self.labels_.dtype)
        for start in range(0, len(out), _ROWS):
            rows = slice(start, min(len(out), start + _ROWS))
            if self.approx is not None:
                S = self.features_.transform(dense(take(X, rows))) @ self.cluster_centers_.T
            else:
                S = self.kernel_.gram(take(X, rows), self.X_fit_) @ self._shares
            out[rows] = (self._norms - 2.0 * S).argmin(axis=1)
        return out


@dataclass(eq=False, repr=False)
class KMeans(ClusterMixin, TransformerMixin, SoundNumbers, BaseEstimator):  # type: ignore[misc]
    """k-means by scikit-learn's solver: s_n = argmin_k |x_n − m_k|², m_k the mean of its rows; the cost never rises.

    Parameters
    ----------
    n_clusters : how many.
    init : "k-means++", or "subset": the centers of a random tenth of the rows, clustered first; or centers (k, d).
    n_init, max_iter, tol : as scikit-learn has them.
    random_state : seed.

    Notes
    -----
    As a model: a mixture of Gaussians with one common variance σ² for all columns, as σ → 0, by hard EM.

    Attributes
    ----------
    cluster_centers_ (k, d), labels_ (n,), inertia_, n_iter_.

    Examples
    --------
    >>> from gramgraph.estimators import KMeans
    >>> KMeans(2, init="subset", random_state=0).fit([[0.0], [0.2], [9.0], [9.2]]).cluster_centers_.round(
    ...     1
    ... ).tolist() in (
    ...     [[0.1], [9.1]],
    ...     [[9.1], [0.1]],
    ... )
    True
    """

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> KMeans:
        """Find the centers."""
        from gramgraph.estimators._numbers import read_numbers
        from gramgraph.machines.mixtures.starts import cluster, subset_centers

        for name in ("n_clusters", "n_init", "max_iter"):
            check_count(name, getattr(self, name))
        if isinstance(self.init, str):
            check_choice("init", self.init, ("k-means++", "subset"))
        X = read_numbers(self, X, reset=True, gaps=False)
        if len(X) < self.n_clusters:
            raise ModelError(f"n_clusters is {self.n_clusters}, but there are only n_samples={len(X)} points.")
        rng = check_random_state(self.random_state)
        options: dict[str, Any] = {"max_iter": int(self.max_iter), "tol": float(self.tol)}
        if isinstance(self.init, str) and self.init == "subset":
            starts = [subset_centers(X, self.n_clusters, rng) for _ in range(self.n_init)]
            runs = [cluster(X, self.n_clusters, start, rng, **options) for start in starts]
            best = min(runs, key=lambda run: run.inertia_)
        else:
            init = self.init if isinstance(self.init, str) else np.asarray(self.init, dtype=np.float64)
            tries = self.n_init if isinstance(self.init, str) else 1
            best = cluster(X, self.n_clusters, init, rng, n_init=tries, **options)
        self.cluster_centers_, self.labels_ = best.cluster_centers_, best.labels_
        self.inertia_, self.n_iter_ = float(best.inertia_), int(best.n_iter_)
        return self

    def _new(self, X: Any) -> Any:
        from gramgraph.estimators._numbers import read_numbers

        check_is_fitted(self, "cluster_centers_")
        return read_numbers(self, X, reset=False, gaps=False)

    def predict(self, X: Any) -> IntArray:
        """The nearest center of each row."""
        from gramgraph.machines.mixtures.starts import nearest

        X = self._new(X)
        return nearest(X, self.cluster_centers_)

    def transform(self, X: Any) -> Any:
        """Distances to the centers, (n, k)."""
        from sklearn.metrics.pairwise import euclidean_distances

        X = self._new(X)
        return euclidean_distances(X, self.cluster_centers_)
