"""Numba: forests of factors, and the order in which a schedule along trees visits them."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put
from gramgraph._numerics.joining import root_of
from gramgraph._numerics.orders import order_of

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def grow_forest(scope_ptr, scope_idx, order, n_vars, inside):
    """Mark in `inside` the factors, taken in this order, that join only parts not yet joined: a forest."""
    root = np.arange(n_vars)
    inside[:] = False
    for i in range(order.shape[0]):
        f = order[i]
        a, b = scope_ptr[f], scope_ptr[f + 1]
        fits = True
        for e in range(a, b):
            v = root_of(root, scope_idx[e])
            for d in range(a, e):
                if root_of(root, scope_idx[d]) == v:
                    fits = False
            if not fits:
                break
        if not fits:
            continue
        inside[f] = True
        u = root_of(root, scope_idx[a])
        for e in range(a + 1, b):
            root[root_of(root, scope_idx[e])] = u


@_jit
def reach(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor, inside):
    """The factors `inside`, breadth first: on a tree, each one after its neighbor toward the root."""
    n = scope_ptr.shape[0] - 1
    order, seen = np.empty(n, np.int64), np.zeros(n, np.uint8)
    reached = np.zeros(var_ptr.shape[0] - 1, np.uint8)
    tail = 0
    for root in range(n):
        if seen[root] or not inside[root]:
            continue
        seen[root] = 1
        order[tail] = root
        head = tail
        tail += 1
        while head < tail:
            f = order[head]
            head += 1
            for e in range(scope_ptr[f], scope_ptr[f + 1]):
                v = scope_idx[e]
                if reached[v]:
                    continue
                reached[v] = 1
                for i in range(var_ptr[v], var_ptr[v + 1]):
                    g = edge_factor[var_edge[i]]
                    if not seen[g] and inside[g]:
                        seen[g] = 1
                        order[tail] = g
                        tail += 1
    return order[:tail]


@_jit(no_cpython_wrapper=True)
def along_trees(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor):
    """Factors in the order of a sweep along spanning forests: each forest to its roots and back, until all were used.

    A forest prefers factors that no earlier one holds; a tree is one forest, and its sweep is exact.
    """
    n, n_vars = scope_ptr.shape[0] - 1, var_ptr.shape[0] - 1
    used, inside = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    out, length, missing = np.empty(4 * n + 1, np.int64), 0, n
    while missing > 0:
        grow_forest(scope_ptr, scope_idx, order_of(used), n_vars, inside)
        order = reach(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor, inside)
        k = order.shape[0]
        if length + 2 * k > out.shape[0]:
            longer = np.empty(2 * (length + 2 * k), np.int64)
            put(out[:length], longer)
            out = longer
        for i in range(k):
            out[length + i], out[length + 2 * k - 1 - i] = order[k - 1 - i], order[k - 1 - i]
            if used[order[i]] == 0:
                missing -= 1
            used[order[i]] += 1
        length += 2 * k
    return out[:length].copy()
