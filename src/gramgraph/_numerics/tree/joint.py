"""Numba: marginals of a joint table so small that walking through it beats planning a way around it."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit


def pack(sizes, scope_ptr, scope_idx, value_ptr):
    """The integers of a model in one array: every array that is handed over costs a part of a short call."""
    return np.concatenate(([len(value_ptr) - 1], sizes, scope_ptr, value_ptr, scope_idx), dtype=np.int64)


# Not without the lock of the interpreter: a call is shorter than waiting for it.
@njit(cache=True, boundscheck=False, error_model="numpy")
def joint_sums(codes, packed, values, out):
    """Σ over all combinations of the unobserved variables (code -1) of the product of the factors, as `packed`.

    Behind the codes stands a column for each variable: the normalized marginal of v goes to out[column[v]:] where
    column[v] ≥ 0. The sum is returned.
    """
    n, n_factors = codes.shape[0] // 2, packed[0]
    column, sizes = codes[n:], packed[1 : n + 1]
    at_ptr = n + 1
    scope_ptr = packed[at_ptr : at_ptr + n_factors + 1]
    value_ptr = packed[at_ptr + n_factors + 1 : at_ptr + 2 * n_factors + 2]
    scope_idx = packed[at_ptr + 2 * n_factors + 2 :]
    stride = np.zeros((n_factors, n), np.int64)
    at = np.empty(n_factors, np.int64)
    for f in range(n_factors):
        at[f] = value_ptr[f]
        step = 1
        for j in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
            v = scope_idx[j]
            stride[f, v] = step
            step *= sizes[v]
            if codes[v] > 0:
                at[f] += stride[f, v] * codes[v]
    digits = np.empty(n, np.int64)
    for v in range(n):
        digits[v] = max(codes[v], 0)
    for i in range(out.shape[0]):
        out[i] = 0.0
    total = 0.0
    v = n
    while v >= 0:
        p = 1.0
        for f in range(n_factors):
            p *= values[at[f]]
        total += p
        for u in range(n):
            if column[u] >= 0:
                out[column[u] + digits[u]] += p
        v = n - 1
        while v >= 0:
            if codes[v] < 0:
                digits[v] += 1
                if digits[v] < sizes[v]:
                    for f in range(n_factors):
                        at[f] += stride[f, v]
                    break
                for f in range(n_factors):
                    at[f] -= stride[f, v] * (sizes[v] - 1)
                digits[v] = 0
            v -= 1
    for i in range(out.shape[0]):
        out[i] /= total
    return total
