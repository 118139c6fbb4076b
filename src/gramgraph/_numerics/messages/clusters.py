"""Numba: messages between clusters of variables, each a table, over the variables that an arc names.

Beliefs are kept: what goes from i to j over arc a is b_j ← b_j · (Σ b_i) / s_a with s_a ← Σ b_i, so that
Π b_i / Π s_a times a constant is the product of all factors at every moment, and the constant is the estimate of Z.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)
#: What is possible stays above this share in later sweeps, as a zero is final and rounding may make one.
LEAST = 1e-150


@_jit
def arc_map(scope_ptr, scope_idx, sizes, i, separator, out):
    """out[cell of cluster i] = cell of the separator, both in row-major order."""
    a, b = scope_ptr[i], scope_ptr[i + 1]
    k = b - a
    step, digit, size = np.zeros(k, np.int64), np.zeros(k, np.int64), np.empty(k, np.int64)
    for e in range(a, b):
        size[e - a] = sizes[scope_idx[e]]
    stride = 1
    for s in range(separator.shape[0] - 1, -1, -1):
        for e in range(a, b):
            if scope_idx[e] == separator[s]:
                step[e - a] = stride
        stride *= sizes[separator[s]]
    at = 0
    for cell in range(out.shape[0]):
        out[cell] = at
        j = k - 1
        while j >= 0:
            digit[j] += 1
            at += step[j]
            if digit[j] < size[j]:
                break
            at -= step[j] * size[j]
            digit[j] = 0
            j -= 1


@_jit(no_cpython_wrapper=True)
def _send(belief, i0, i1, map_i, mi, j0, j1, map_j, mj, old, o0, n, new, damping, least):
    """One message; (largest change of the separator, log of what was divided out of b_j, -inf when nothing is left)."""
    for s in range(n):
        new[s] = 0.0
    for c in range(i1 - i0):
        new[map_i[mi + c]] += belief[i0 + c]
    total = 0.0
    for s in range(n):
        total += new[s]
    if not total > 0:
        return 0.0, -np.inf
    kept = 0.0
    for s in range(n):
        value = new[s] / total
        if old[o0 + s] > 0:
            value = max(value, least)
            if damping > 0 and value > 0:
                value = value ** (1 - damping) * old[o0 + s] ** damping
        else:
            value = 0.0
        new[s] = value
        kept += value
    change = 0.0
    for s in range(n):
        value = new[s] / kept
        change = max(change, abs(value - old[o0 + s]))
        new[s] = value / old[o0 + s] if old[o0 + s] > 0 else 0.0
        old[o0 + s] = value
    total = 0.0
    for c in range(j1 - j0):
        belief[j0 + c] *= new[map_j[mj + c]]
        total += belief[j0 + c]
    if not 0 < total < np.inf:
        return change, -np.inf
    for c in range(j0, j1):
        belief[c] /= total
    return change, np.log(total)


@_jit
def cluster_sweep(
    belief, ptr, source, target, map_ptr, source_map, target_ptr, target_map, sep_ptr, sep, damping, least, stop
):
    """All arcs forth and back: (largest change, log of all that was divided out; -inf when nothing is left).

    What was possible stays above `least`.
    """
    n, widest = source.shape[0], 1
    for a in range(n):
        widest = max(widest, sep_ptr[a + 1] - sep_ptr[a])
    new, largest, log_z = np.empty(widest), 0.0, 0.0
    for step in range(2 * n):
        a = step if step < n else 2 * n - 1 - step
        i, j = source[a], target[a]
        k, o0 = sep_ptr[a + 1] - sep_ptr[a], sep_ptr[a]
        if step < n:
            change, log_total = _send(
                belief, ptr[i], ptr[i + 1], source_map, map_ptr[a], ptr[j], ptr[j + 1], target_map, target_ptr[a],
                sep, o0, k, new, damping, least,
            )  # fmt: skip
        else:
            change, log_total = _send(
                belief, ptr[j], ptr[j + 1], target_map, target_ptr[a], ptr[i], ptr[i + 1], source_map, map_ptr[a],
                sep, o0, k, new, damping, least,
            )  # fmt: skip
        if log_total == -np.inf:
            return largest, -np.inf
        largest = max(largest, change)
        log_z += log_total
        if stop[0]:
            break
    return largest, log_z


@_jit
def cluster_marginals(belief, ptr, scope_ptr, scope_idx, sizes, unary_ptr, home, out):
    """out at unary_ptr[v] += the belief of v in its cluster home[v] (-1: none)."""
    for v in range(home.shape[0]):
        i = home[v]
        if i < 0:
            continue
        inner, u0, size = 1, unary_ptr[v], sizes[v]
        e = scope_ptr[i + 1] - 1
        while scope_idx[e] != v:
            inner *= sizes[scope_idx[e]]
            e -= 1
        total = 0.0
        for c in range(ptr[i], ptr[i + 1]):
            total += belief[c]
        for c in range(ptr[i + 1] - ptr[i]):
            out[u0 + (c // inner) % size] += belief[ptr[i] + c] / total
