"""Two samples, one distribution? The maximum mean discrepancy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._validation import check_choice, check_count, generator
from gramgraph.embeddings.permutation import (
    KernelTest,
    Spread,
    centered,
    features_or_none,
    gamma_tail,
    permutation_moments,
    permutation_p_value,
)
from gramgraph.exceptions import ModelError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import domain_of, sample_of
from gramgraph.kernels.inputs import same_columns
from gramgraph.typing import FloatArray, RandomState

_BLOCK = 1 << 22


def mmd_test(
    X: Any,
    Y: Any,
    *,
    kernel: Kernel | None = None,
    domain: str | None = None,
    estimator: str = "unbiased",
    method: str = "permutation",
    n_permutations: int = 1000,
    random_state: RandomState = None,
) -> KernelTest:
    """Whether X and Y come from one distribution, by MMD² = ‖μ_X − μ_Y‖², the squared distance of their mean maps.

    `estimator` is "unbiased" (pairs of different points only; may be negative) or "biased" (the squared distance of the
    two sample embeddings itself). The null distribution comes from `n_permutations` random divisions of all points, all
    of them in one matrix product, O(N r B) with features of rank r (O(N² B) where the Gram matrix has no low rank), or
    from a gamma distribution with the exact mean and variance over all divisions (method="gamma"; biased estimator).
    The default kernel is that of the `domain`, its bandwidth the median distance of all points.

    Parameters
    ----------
    X, Y : samples, one point a row.
    kernel : a kernel; by default that of the domain.
    domain : "real", "circle", …; None: from the values.
    estimator, method : see above.
    n_permutations : random divisions.
    random_state : their seed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=200), rng.laplace(scale=1.5, size=150)
    >>> found = mmd_test(x, y, random_state=0)
    >>> found.p_value < 0.01, mmd_test(x[:100], x[100:], random_state=0).p_value > 0.05
    (True, True)
    """
    check_choice("estimator", estimator, ("unbiased", "biased"))
    check_choice("method", method, ("permutation", "gamma"))
    B = check_count("n_permutations", n_permutations)
    (kernel_, _, n), m = sample_of(X, kernel, domain, name="X"), sample_of(Y, kernel, domain, name="Y")[2]
    if kernel is None and domain is None and (domain_of(X) == "category") != (domain_of(Y) == "category"):
        raise ModelError("X and Y are of different kinds, one holds numbers and the other labels. Try: domain=…")
    if kernel is None:
        kernel_, pooled, _ = sample_of(joined(X, Y), None, domain, name="X and Y")
    else:
        pooled = _pool(kernel_.prepare(X), kernel_.prepare(Y))
    L = features_or_none(kernel_, pooled)
    K = kernel_.gram(pooled, pooled) if L is None else None  # compared with copies: noise takes no part
    sums = _Sums(K, L, n, m, estimator == "unbiased")
    first = np.zeros((n + m, 1))
    first[:n] = 1.0
    statistic = float(sums(first)[0])
    if method == "gamma":
        return _by_gamma(K, L, n, m, statistic, estimator)
    rng = generator(random_state)
    null = np.empty(B)
    step = max(1, _BLOCK // (n + m))
    for start in range(0, B, step):
        some = min(B, start + step) - start
        choices = rng.permuted(np.broadcast_to(first[:, 0] == 1.0, (some, n + m)), axis=1)
        null[start : start + some] = sums(choices.T.astype(np.float64))
    return KernelTest(statistic, permutation_p_value(statistic, null), method, null)


class _Sums:
    """MMD² of divisions of the pooled sample, from K or from features L with L Lᵀ ≈ K."""

    def __init__(self, K: FloatArray | None, L: FloatArray | None, n: int, m: int, unbiased: bool) -> None:
        self.K, self.L, self.n, self.m, self.unbiased = K, L, n, m, unbiased
        if L is not None:
            self.rows, self.diag = L @ L.sum(axis=0), np.einsum("ij,ij->i", L, L)
        else:
            assert K is not None
            self.rows, self.diag = K.sum(axis=1), K.diagonal().copy()

    def __call__(self, Z: FloatArray) -> FloatArray:
        """One number for each column of Z, 1 for points of the first part and 0 for those of the second."""
        if self.L is not None:
            product = self.L.T @ Z
            own = np.einsum("ij,ij->j", product, product)
        else:
            assert self.K is not None
            own = np.einsum("ij,ij->j", Z, self.K @ Z)
        n, m, total = self.n, self.m, float(self.rows.sum())
        across = self.rows @ Z - own
        other = total - own - 2.0 * across
        if not self.unbiased:
            return own / n**2 + other / m**2 - 2.0 * across / (n * m)
        d, trace = self.diag @ Z, float(self.diag.sum())
        return (own - d) / (n * (n - 1)) + (other - trace + d) / (m * (m - 1)) - 2.0 * across / (n * m)


def _by_gamma(
    K: FloatArray | None, L: FloatArray | None, n: int, m: int, statistic: float, estimator: str
) -> KernelTest:
    """MMD² is Σ K_ij sᵢsⱼ with s = 1/n or −1/m: permuting s, its first two moments have closed forms."""
    if estimator == "unbiased":
        raise ModelError("method='gamma' describes the biased estimator. Try: estimator='biased'.")
    if n + m < 4:
        raise ModelError(f"method='gamma' needs at least 4 points; there are {n + m}.")
    s = np.concatenate([np.full(n, 1.0 / n), np.full(m, -1.0 / m)])[:, None]
    if L is not None:
        spread = Spread.of_features(L - L.mean(axis=0))
    else:
        assert K is not None
        spread = Spread.of_gram(centered(K.copy()))
    mean, variance = permutation_moments(spread, Spread.of_features(s))
    return KernelTest(statistic, gamma_tail(statistic, mean, variance), "gamma", np.zeros(0))


def joined(X: Any, Y: Any) -> Any:
    """All points of two samples, before a kernel has looked at them."""
    if isinstance(X, tuple) and isinstance(Y, tuple):
        return tuple(joined(a, b) for a, b in zip(X, Y, strict=True))
    parts = [part.to_numpy() if hasattr(part, "to_numpy") else part for part in (X, Y)]
    if any(isinstance(part, np.ndarray) for part in parts) or np.isscalar(parts[0][0]):
        arrays = [np.asarray(part) for part in parts]
        if arrays[0].ndim != arrays[1].ndim:  # numbers on the line, once as a column
            arrays = [a[:, None] if a.ndim == 1 else a for a in arrays]
        return _pool(*arrays)
    return [*parts[0], *parts[1]]


def _pool(X: Any, Y: Any) -> Any:
    """Points of two samples that are prepared."""
    same_columns(X, Y)
    if isinstance(X, tuple):
        return tuple(_pool(a, b) for a, b in zip(X, Y, strict=True))
    return np.concatenate([X, Y]) if isinstance(X, np.ndarray) else [*X, *Y]
