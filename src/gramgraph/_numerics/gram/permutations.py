"""Sums over a pair of Gram matrices, one of them permuted. Nothing is checked."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True, boundscheck=False)
def permuted_products(K, L, orders, out):
    """out[b] = Σ_ij K_ij L[π_i, π_j] with π = orders[b]; K and L are symmetric (n, n). n² / 2 products each."""
    n = len(K)
    for b in range(len(orders)):
        order = orders[b]
        total = 0.0
        for i in range(n):
            row, other = K[i], L[order[i]]
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            stop = i - i % 4
            for j in range(0, stop, 4):
                s0 += row[j] * other[order[j]]
                s1 += row[j + 1] * other[order[j + 1]]
                s2 += row[j + 2] * other[order[j + 2]]
                s3 += row[j + 3] * other[order[j + 3]]
            for j in range(stop, i):
                s0 += row[j] * other[order[j]]
            total += 2.0 * ((s0 + s1) + (s2 + s3)) + row[i] * other[order[i]]
        out[b] = total


def random_orders(n, number, rng):
    """`number` permutations of 0 … n − 1, one a row."""
    return rng.permuted(np.broadcast_to(np.arange(n, dtype=np.int32), (number, n)), axis=1)
