"""k-means in the space of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramgraph._validation import check_choice, check_count
from gramgraph.estimators._base import KernelEstimator
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count, take
from gramgraph.machines.kernels import KernelSpec
from gramgraph.machines.ridge_features import make_features, row_blocks
from gramgraph.machines.sparse import dense
from gramgraph.typing import FloatArray, IntArray

__all__ = ["KernelKMeans"]

_ROWS = 2048


class KernelKMeans(ClusterMixin, KernelEstimator):
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

    Attributes
    ----------
    labels_ (n,), inertia_ (sum of squared distances in the kernel's space), n_iter_, X_fit_; with approx features_ and
    cluster_centers_ (n_clusters, m), the means of the features, instead of X_fit_.

    >>> import numpy as np
    >>> from gramgraph.estimators import KernelKMeans
    >>> KernelKMeans(2, random_state=0).fit_predict([[0.0], [0.1], [9.0], [9.1]]).tolist() in (
    ...     [0, 0, 1, 1],
    ...     [1, 1, 0, 0],
    ... )
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: KernelSpec = "rbf",
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        n_init: int = 4,
        max_iter: int = 300,
        approx: str | None = None,
        n_components: int = 200,
        landmarks: Any = "uniform",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_init = n_init
        self.max_iter = max_iter
        self.approx = approx
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state

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
        runs = [_run(space, _starts(space, self.n_clusters, rng), self.max_iter) for _ in range(self.n_init)]
        self.labels_, self.inertia_, self.n_iter_ = min(runs, key=lambda run: run[1])
        shares = _shares(self.labels_, self.n_clusters)
        self._norms = _norms(shares, space.products(shares))
        if isinstance(space, _FeatureSpace):
            self.cluster_centers_ = shares.T @ space.Phi
        else:
            self.X_fit_, self._shares = X, shares
        return self

    def _space(self, X: Any) -> _GramSpace | _FeatureSpace:
        if self.approx is None:
            return _GramSpace(self.kernel_.gram(X))
        X = dense(X)
        self.features_ = make_features(
            self.kernel_, X, self.approx, self.n_components, self.landmarks, self.random_state, self.kernel
        )
        return _FeatureSpace(np.concatenate([self.features_.transform(take(X, rows)) for rows in row_blocks(count(X))]))

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


class _GramSpace:
    """Points by their Gram matrix."""

    def __init__(self, K: FloatArray) -> None:
        self.K, self.diag = K, np.diagonal(K)

    def row(self, i: int) -> FloatArray:
        """k(xᵢ, ·), (n,)."""
        return self.K[i]

    def products(self, shares: FloatArray) -> FloatArray:
        """⟨φ(xᵢ), Σⱼ shares[j, c] φ(xⱼ)⟩, (n, k)."""
        return self.K @ shares


class _FeatureSpace:
    """Points by their features, with ΦΦᵀ near the Gram matrix."""

    def __init__(self, Phi: FloatArray) -> None:
        self.Phi, self.diag = Phi, np.einsum("ij,ij->i", Phi, Phi)

    def row(self, i: int) -> FloatArray:
        """φ(xᵢ)ᵀφ(·), (n,)."""
        return self.Phi @ self.Phi[i]

    def products(self, shares: FloatArray) -> FloatArray:
        """⟨φ(xᵢ), Σⱼ shares[j, c] φ(xⱼ)⟩, (n, k)."""
        return self.Phi @ (self.Phi.T @ shares)


def _shares(labels: IntArray, k: int) -> FloatArray:
    """Shares (n, k) with μ_c = Σᵢ shares[i, c] φ(xᵢ)."""
    shares = np.zeros((len(labels), k))
    shares[np.arange(len(labels)), labels] = 1.0
    return shares / np.maximum(shares.sum(axis=0), 1.0)


def _norms(shares: FloatArray, P: FloatArray) -> FloatArray:
    """|μ_c|² from P = products(shares); an empty cluster is infinitely far."""
    return np.where(shares.sum(axis=0) > 0.0, np.einsum("ic,ic->c", shares, P), np.inf)


def _starts(space: _GramSpace | _FeatureSpace, k: int, rng: Any) -> IntArray:
    """Labels by k-means++: every next center is drawn with chances by its squared distance to those before."""
    diag, n = space.diag, len(space.diag)
    chosen = [int(rng.randint(n))]
    rows = [space.row(chosen[0])]
    nearest = np.maximum(diag + diag[chosen[0]] - 2.0 * rows[0], 0.0)
    while len(chosen) < k:
        total = nearest.sum()
        fresh = int(rng.choice(n, p=nearest / total)) if total > 0.0 else int(rng.randint(n))
        chosen.append(fresh)
        rows.append(space.row(fresh))
        nearest = np.minimum(nearest, np.maximum(diag + diag[fresh] - 2.0 * rows[-1], 0.0))
    return (diag[chosen][:, None] - 2.0 * np.array(rows)).argmin(axis=0)


def _run(space: _GramSpace | _FeatureSpace, labels: IntArray, max_iter: int) -> tuple[IntArray, float, int]:
    k = int(labels.max()) + 1
    diag = space.diag
    rows = np.arange(len(diag))
    rounds = 0
    while True:
        shares = _shares(labels, k)
        P = space.products(shares)
        D = diag[:, None] - 2.0 * P + _norms(shares, P)
        inertia = float(np.maximum(D[rows, labels], 0.0).sum())
        if rounds == max_iter:
            return labels, inertia, rounds
        rounds += 1
        new = D.argmin(axis=1)
        # A point moves only to a mean that is really nearer: equal distances would let points wander for ever.
        slack = 1e-12 * max(float(np.abs(diag).max()), 1e-300)
        new = np.where(D[rows, new] < D[rows, labels] - slack, new, labels)
        if (new == labels).all():
            return labels, inertia, rounds
        labels = new
