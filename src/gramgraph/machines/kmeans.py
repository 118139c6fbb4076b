"""k-means in the space of a kernel: points by their Gram matrix or by features, starts, and rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.typing import FloatArray, IntArray


class GramSpace:
    """Points by their Gram matrix."""

    def __init__(self, K: FloatArray) -> None:
        self.K, self.diag = K, np.diagonal(K)

    def row(self, i: int) -> FloatArray:
        """k(xᵢ, ·), (n,)."""
        return self.K[i]

    def products(self, shares: FloatArray) -> FloatArray:
        """⟨φ(xᵢ), Σⱼ shares[j, c] φ(xⱼ)⟩, (n, k)."""
        return self.K @ shares


class FeatureSpace:
    """Points by their features, with ΦΦᵀ near the Gram matrix."""

    def __init__(self, Phi: FloatArray) -> None:
        self.Phi, self.diag = Phi, np.einsum("ij,ij->i", Phi, Phi)

    def row(self, i: int) -> FloatArray:
        """φ(xᵢ)ᵀφ(·), (n,)."""
        return self.Phi @ self.Phi[i]

    def products(self, shares: FloatArray) -> FloatArray:
        """⟨φ(xᵢ), Σⱼ shares[j, c] φ(xⱼ)⟩, (n, k)."""
        return self.Phi @ (self.Phi.T @ shares)


def kmeans(
    space: GramSpace | FeatureSpace, k: int, rng: Any, *, n_init: int, max_iter: int
) -> tuple[IntArray, float, int]:
    """(labels, sum of squared distances, rounds) of the best of `n_init` runs from k-means++ starts."""
    runs = [_run(space, _starts(space, k, rng), max_iter) for _ in range(n_init)]
    return min(runs, key=lambda run: run[1])


def shares_of(labels: IntArray, k: int) -> FloatArray:
    """Shares (n, k) with μ_c = Σᵢ shares[i, c] φ(xᵢ)."""
    shares = np.zeros((len(labels), k))
    shares[np.arange(len(labels)), labels] = 1.0
    return shares / np.maximum(shares.sum(axis=0), 1.0)


def squared_norms(shares: FloatArray, P: FloatArray) -> FloatArray:
    """|μ_c|² from P = products(shares); an empty cluster is infinitely far."""
    return np.where(shares.sum(axis=0) > 0.0, np.einsum("ic,ic->c", shares, P), np.inf)


def _starts(space: GramSpace | FeatureSpace, k: int, rng: Any) -> IntArray:
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


def _run(space: GramSpace | FeatureSpace, labels: IntArray, max_iter: int) -> tuple[IntArray, float, int]:
    k = int(labels.max()) + 1
    diag = space.diag
    rows = np.arange(len(diag))
    rounds = 0
    while True:
        shares = shares_of(labels, k)
        P = space.products(shares)
        D = diag[:, None] - 2.0 * P + squared_norms(shares, P)
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
