"""k-means in the space of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramgraph.estimators._base import KernelEstimator, KernelSpec
from gramgraph.exceptions import ModelError
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

    Attributes
    ----------
    labels_ (n,), inertia_ (sum of squared distances in the kernel's space), n_iter_, X_fit_.

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
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> KernelKMeans:
        """Find the clusters."""
        for name in ("n_clusters", "n_init", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise ModelError(f"{name} must be an integer of at least 1; it is {value!r}.")
        X = self._points(X, reset=True)
        self.kernel_ = self._resolve(X)
        K = self.kernel_.gram(X)
        if len(K) < self.n_clusters:
            raise ModelError(f"n_clusters is {self.n_clusters}, but there are only n_samples={len(K)} points.")
        rng = check_random_state(self.random_state)
        runs = [_run(K, _starts(K, self.n_clusters, rng), self.max_iter) for _ in range(self.n_init)]
        self.labels_, self.inertia_, self.n_iter_ = min(runs, key=lambda run: run[1])
        self.X_fit_ = X
        self._shares, self._norms = _means(K, self.labels_, self.n_clusters)
        return self

    def predict(self, X: Any) -> IntArray:
        """The cluster with the nearest mean."""
        from gramgraph.kernels.inputs import count, take

        check_is_fitted(self, "labels_")
        X = self._points(X, reset=False)
        out = np.empty(count(X), dtype=self.labels_.dtype)
        for start in range(0, len(out), _ROWS):
            rows = slice(start, min(len(out), start + _ROWS))
            K = self.kernel_.gram(take(X, rows), self.X_fit_)
            out[rows] = (self._norms - 2.0 * K @ self._shares).argmin(axis=1)
        return out


def _means(K: FloatArray, labels: IntArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Shares (n, k) with μ_c = Σᵢ shares[i, c] φ(xᵢ), and |μ_c|²; an empty cluster is infinitely far."""
    shares = np.zeros((len(labels), k))
    shares[np.arange(len(labels)), labels] = 1.0
    sizes = shares.sum(axis=0)
    shares /= np.maximum(sizes, 1.0)
    norms = np.einsum("ic,ic->c", shares, K @ shares)
    return shares, np.where(sizes > 0.0, norms, np.inf)


def _starts(K: FloatArray, k: int, rng: Any) -> IntArray:
    """Labels by k-means++: every next center is drawn with chances by its squared distance to those before."""
    diag = np.diagonal(K)
    chosen = [int(rng.randint(len(K)))]
    nearest = np.maximum(diag + diag[chosen[0]] - 2.0 * K[chosen[0]], 0.0)
    while len(chosen) < k:
        total = nearest.sum()
        fresh = int(rng.choice(len(K), p=nearest / total)) if total > 0.0 else int(rng.randint(len(K)))
        chosen.append(fresh)
        nearest = np.minimum(nearest, np.maximum(diag + diag[fresh] - 2.0 * K[fresh], 0.0))
    return (diag[chosen] - 2.0 * K[:, chosen]).argmin(axis=1)


def _run(K: FloatArray, labels: IntArray, max_iter: int) -> tuple[IntArray, float, int]:
    k = int(labels.max()) + 1
    diag = np.diagonal(K)
    rows = np.arange(len(K))
    rounds = 0
    while True:
        shares = np.zeros((len(K), k))
        shares[rows, labels] = 1.0
        shares /= np.maximum(shares.sum(axis=0), 1.0)
        P = K @ shares
        empty = shares.sum(axis=0) == 0.0
        D = diag[:, None] - 2.0 * P + np.where(empty, np.inf, np.einsum("ic,ic->c", shares, P))
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
