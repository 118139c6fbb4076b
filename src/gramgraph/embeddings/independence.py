"""Are two variables independent? The Hilbert–Schmidt norm of their covariance operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.gram.permutations import permuted_products, random_orders
from gramgraph._validation import check_choice, check_count, generator
from gramgraph.embeddings.permutation import (
    KernelTest,
    Spread,
    centered,
    features_or_none,
    gamma_tail,
    permutation_moments,
    permutation_p_value,
    permuted_cross_norms,
)
from gramgraph.exceptions import ModelError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import check_pairs, sample_of
from gramgraph.typing import FloatArray, RandomState


def hsic_test(
    X: Any,
    Y: Any,
    *,
    kernel_x: Kernel | None = None,
    kernel_y: Kernel | None = None,
    domain_x: str | None = None,
    domain_y: str | None = None,
    method: str = "permutation",
    n_permutations: int = 1000,
    random_state: RandomState = None,
) -> KernelTest:
    """Whether X and Y, paired row by row, are independent, by HSIC = tr(K H L H) / n² = ‖C_YX‖².

    The null distribution comes from pairing the rows anew: by `n_permutations` random permutations, all in one matrix
    product, O(n r s B) with features of ranks r and s (O(n² B / 2) where the Gram matrices have no low rank); or from a
    gamma distribution with the exact mean and variance over all n! permutations (method="gamma", O(n²)).

    Parameters
    ----------
    X, Y : samples, one pair a row.
    kernel_x, kernel_y : kernels; by default those of the domains.
    domain_x, domain_y : "real", "circle", …; None: from the values.
    method : how the null distribution is found.
    n_permutations : random orders of Y.
    random_state : their seed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> hsic_test(x, x**2 + 0.5 * rng.normal(size=200), random_state=0).p_value < 0.01
    True
    >>> hsic_test(x, rng.normal(size=200), method="gamma").p_value > 0.05
    True
    """
    check_choice("method", method, ("permutation", "gamma"))
    B = check_count("n_permutations", n_permutations)
    kernel_x, X, n = sample_of(X, kernel_x, domain_x, name="X")
    kernel_y, Y, m = sample_of(Y, kernel_y, domain_y, name="Y")
    check_pairs(n, m)
    A, C = features_or_none(kernel_x, X), features_or_none(kernel_y, Y)
    low_rank = A is not None and C is not None and A.shape[1] * C.shape[1] <= max(2 * n, 2500)
    if low_rank:
        assert A is not None
        assert C is not None
        pair = _Pair(A - A.mean(axis=0), C - C.mean(axis=0), True)
    else:
        pair = _Pair(centered(_gram(kernel_x, X, A)), centered(_gram(kernel_y, Y, C)), False)
    value = pair.value()
    if method == "gamma":
        if n < 4:
            raise ModelError(f"method='gamma' needs at least 4 points; there are {n}. Try: permutations.")
        mean, variance = permutation_moments(pair.spread(0), pair.spread(1))
        return KernelTest(value / n**2, gamma_tail(value, mean, variance), method, np.zeros(0))
    own, null = pair.permuted(random_orders(n, B, generator(random_state)))
    return KernelTest(value / n**2, permutation_p_value(own, null), method, null / n**2)


def _gram(kernel: Kernel, X: Any, A: FloatArray | None) -> FloatArray:
    """K as it is, or as its features give it."""
    return kernel.gram(X, X) if A is None else A @ A.T


class _Pair:
    """Two centered Gram matrices, or features of both."""

    def __init__(self, P: FloatArray, Q: FloatArray, features: bool) -> None:
        if features and P.shape[1] > Q.shape[1]:
            P, Q = Q, P  # the narrower one is copied for every permutation; the sums are symmetric in both
        self.P, self.Q, self.features = P, Q, features

    def value(self) -> float:
        """Σ K_ij L_ij."""
        if self.features:
            product = self.P.T @ self.Q
            return float(np.vdot(product, product))
        return float(np.vdot(self.P, self.Q))

    def spread(self, i: int) -> Spread:
        part = (self.P, self.Q)[i]
        return Spread.of_features(part) if self.features else Spread.of_gram(part)

    def permuted(self, orders: Any) -> tuple[float, FloatArray]:
        """Σ K_ij L_ij and Σ K_ij L[π_i, π_j] for every row π, computed in one way and so comparable.

        Matrices are read in single precision (half the memory, twice the speed) and added up in double: the level of
        the test does not depend on it, the statistic is off by 1e-7 of itself.
        """
        if self.features:
            return self.value(), permuted_cross_norms(self.Q, self.P, orders)
        out = np.empty(len(orders) + 1)
        orders = np.concatenate([np.arange(orders.shape[1], dtype=orders.dtype)[None], orders])
        K, L = (np.ascontiguousarray(M, dtype=np.float32) for M in (self.P, self.Q))
        permuted_products(K, L, orders, out)
        return float(out[0]), out[1:]
