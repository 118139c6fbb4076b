"""What the tests share: their result, low-rank features of a sample, the null distribution under permutations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramgraph.kernels.base import Kernel
from gramgraph.kernels.inputs import count
from gramgraph.typing import FloatArray

_TOL = 1e-7  # part of the trace that low-rank features may leave out
_DENSE = 4000  # points up to which Gram matrices are made
_BLOCK = 1 << 22  # numbers in one block of permuted features


@dataclass(frozen=True, eq=False)
class KernelTest:
    """What a test found: the statistic, the p-value of the null hypothesis, and the null distribution it came from.

    `null` holds the statistic of every permutation (empty for method="gamma"); p = (1 + #{null ≥ statistic}) / (1 + B),
    which is never too small: P(p ≤ α) ≤ α under the null hypothesis.

    Parameters
    ----------
    statistic : the number that was found.
    p_value : probability of one as large under the null hypothesis.
    method : how the null distribution was found.
    null : the statistic of every permutation.

    Examples
    --------
    >>> from gramgraph.embeddings import hsic_test
    >>> found = hsic_test(["a", "b"] * 10, ["u", "v"] * 10, n_permutations=99, random_state=0)
    >>> found.p_value, found.reject(), len(found.null)
    (0.01, True, 99)
    """

    statistic: float
    p_value: float
    method: str  # "permutation", "gamma", "multiplier"
    null: FloatArray = field(repr=False)

    def reject(self, level: float = 0.05) -> bool:
        """Whether the null hypothesis is rejected at this level."""
        return self.p_value <= level


def features_or_none(kernel: Kernel, X: Any) -> FloatArray | None:
    """Features A (n, r) with A Aᵀ ≈ K from incomplete Cholesky, or None where K has no low rank and is small enough.

    What is left out is at most 1e-7 of the trace; above 4,000 points the rank is at most 50, whatever is left out. A
    test with A Aᵀ in place of K is a permutation test in its own right: its level does not suffer.
    """
    from gramgraph.linalg import pivoted_cholesky

    n = count(X)
    large = n > _DENSE
    found = pivoted_cholesky(kernel, X, tol=_TOL, max_rank=50 if large else max(1, min(n // 2, 120)))
    if not large and found.residual_trace > _TOL * float(kernel.diag(X).sum()):
        return None
    return np.ascontiguousarray(found.L)


def centered(K: FloatArray) -> FloatArray:
    """H K H, in K's own memory."""
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    return K


def permuted_cross_norms(A: FloatArray, B: FloatArray, orders: Any) -> FloatArray:
    """‖Aᵀ B_π‖² for every permutation π: blocks of permuted B side by side, one matrix product each; n r s a π."""
    n, s = B.shape
    out = np.empty(len(orders))
    step = max(1, _BLOCK // (n * max(s, 1)))
    for start in range(0, len(orders), step):
        some = orders[start : start + step]
        product = A.T @ B[some.T].reshape(n, -1)
        np.square(product, out=product)
        out[start : start + step] = product.sum(axis=0).reshape(len(some), s).sum(axis=1)
    return out


def permutation_p_value(statistic: float, null: FloatArray) -> float:
    """(1 + #{null ≥ statistic}) / (1 + B); values that differ by rounding count as equal."""
    slack = 1e-10 * max(abs(statistic), float(np.abs(null).max(initial=0.0)))
    return (1.0 + float((null >= statistic - slack).sum())) / (1.0 + len(null))


@dataclass(frozen=True)
class Spread:
    """What the moments need to know of a centered Gram matrix: its trace, that of its square, Σ of squared diagonal."""

    n: int
    trace: float
    square: float
    diagonal: float

    @classmethod
    def of_gram(cls, K: FloatArray) -> Spread:
        """From the matrix, O(n²)."""
        d = K.diagonal()
        return cls(len(K), float(d.sum()), float(np.vdot(K, K)), float(d @ d))

    @classmethod
    def of_features(cls, A: FloatArray) -> Spread:
        """From K = A Aᵀ, O(n r²)."""
        d, G = np.einsum("ij,ij->i", A, A), A.T @ A
        return cls(len(A), float(d.sum()), float(np.vdot(G, G)), float(d @ d))


def permutation_moments(K: Spread, L: Spread) -> tuple[float, float]:
    """Mean and variance of Σ K_ij L[π_i, π_j] over all n! permutations, exactly, for centered K and L; n ≥ 4."""
    n = K.n
    mean = K.trace * L.trace / (n - 1)
    a = 2.0 * ((n - 1) * K.square - K.trace**2) * ((n - 1) * L.square - L.trace**2)
    a /= (n - 1.0) ** 2 * (n + 1) * (n - 2)
    parts = [n * (n + 1) * M.diagonal - (n - 1) * (M.trace**2 + 2.0 * M.square) for M in (K, L)]
    b = parts[0] * parts[1] / ((n + 1.0) * n * (n - 1) * (n - 2) * (n - 3))
    return mean, max(a + b, 0.0)


def gamma_tail(statistic: float, mean: float, variance: float) -> float:
    """P(G ≥ statistic) for the gamma distribution with this mean and variance; 1 where nothing varies."""
    from scipy.special import gammaincc

    if not (variance > 1e-24 * mean**2 and mean > 0.0):
        return 1.0
    return float(gammaincc(mean**2 / variance, max(statistic, 0.0) * mean / variance))
