"""Numba: the messages of belief propagation as logarithms, for odds beyond the range of doubles.

As in `loopy`, with sums of logarithms for products; messages are shifted so that their exponentials sum to one.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit(no_cpython_wrapper=True)
def safe_log(x):
    """Logarithms, -inf for zeros."""
    out = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = np.log(x[i]) if x[i] > 0 else -np.inf
    return out


@_jit(no_cpython_wrapper=True)
def _shift(logs, m, size):
    """Log of the sum of the exponentials, which is taken off; -inf when there is nothing."""
    top, total = -np.inf, 0.0
    for x in range(size):
        top = max(top, logs[m + x])
    if top == -np.inf:
        return -np.inf
    for x in range(size):
        total += np.exp(logs[m + x] - top)
    value = top + np.log(total)
    for x in range(size):
        logs[m + x] -= value
    return value


@_jit(no_cpython_wrapper=True)
def _add(a, b, maximize):
    """log(exp a + exp b), or the larger one."""
    high, low = max(a, b), min(a, b)
    if maximize or low == -np.inf:
        return high
    return high + np.log1p(np.exp(low - high))


@_jit(no_cpython_wrapper=True)
def log_variable_message(v, e, size, log_unary, u0, var_ptr, var_edge, msg_ptr, to_var, to_factor):
    """Message of v over edge e (-1: the belief, at u0 of to_factor): log weights plus all other messages."""
    m = msg_ptr[e] if e >= 0 else u0
    for x in range(size):
        to_factor[m + x] = log_unary[u0 + x]
    for i in range(var_ptr[v], var_ptr[v + 1]):
        if var_edge[i] != e:
            n = msg_ptr[var_edge[i]]
            for x in range(size):
                to_factor[m + x] += to_var[n + x]
    return _shift(to_factor, m, size)


@_jit(no_cpython_wrapper=True)
def log_factor_messages(a, k, scope_idx, sizes, msg_ptr, log_values, v0, cells, to_factor, out, maximize):
    """All messages of the factor with edges a … a+k-1 into `out`, each without what came over it; log of its total."""
    for e in range(a, a + k):
        for x in range(sizes[scope_idx[e]]):
            out[msg_ptr[e] + x] = -np.inf
    total = -np.inf
    for cell in range(cells):
        score, rest, n_low, low = log_values[v0 + cell], cell, 0, -1
        if score == -np.inf:
            continue
        for e in range(a + k - 1, a - 1, -1):
            size = sizes[scope_idx[e]]
            value = to_factor[msg_ptr[e] + rest % size]
            rest //= size
            if value == -np.inf:
                n_low, low = n_low + 1, e
            else:
                score += value
        if n_low > 1:
            continue
        if n_low == 0:
            total = _add(total, score, maximize)
        rest = cell
        for e in range(a + k - 1, a - 1, -1):
            size = sizes[scope_idx[e]]
            at = msg_ptr[e] + rest % size
            rest //= size
            if n_low == 0:
                out[at] = _add(out[at], score - to_factor[at], maximize)
            elif e == low:
                out[at] = _add(out[at], score, maximize)
    return total


@_jit(no_cpython_wrapper=True)
def log_update_factor(
    f, scope_ptr, scope_idx, value_ptr, log_values, sizes, log_unary, unary_ptr, var_ptr, var_edge, msg_ptr,
    to_var, write, to_factor, fresh, damping, maximize, change,
):  # fmt: skip
    """New messages of factor f; change[e] per edge, of probabilities. Their largest change, -1 for a conflict."""
    a, b = scope_ptr[f], scope_ptr[f + 1]
    for e in range(a, b):
        v = scope_idx[e]
        if (
            log_variable_message(v, e, sizes[v], log_unary, unary_ptr[v], var_ptr, var_edge, msg_ptr, to_var, to_factor)
            == -np.inf
        ):
            return -1.0
    log_factor_messages(
        a, b - a, scope_idx, sizes, msg_ptr, log_values, value_ptr[f], value_ptr[f + 1] - value_ptr[f], to_factor,
        fresh, maximize,
    )  # fmt: skip
    largest = 0.0
    for e in range(a, b):
        m, size, moved = msg_ptr[e], sizes[scope_idx[e]], 0.0
        if _shift(fresh, m, size) == -np.inf:
            return -1.0
        if damping > 0:
            for x in range(size):
                if fresh[m + x] > -np.inf and to_var[m + x] > -np.inf:
                    fresh[m + x] = (1 - damping) * fresh[m + x] + damping * to_var[m + x]
            _shift(fresh, m, size)
        for x in range(size):
            moved = max(moved, abs(np.exp(fresh[m + x]) - np.exp(to_var[m + x])))
            write[m + x] = fresh[m + x]
        change[e] = moved
        largest = max(largest, moved)
    return largest


@_jit(no_cpython_wrapper=True)
def log_conclude(
    scope_ptr, scope_idx, value_ptr, log_values, sizes, log_unary, unary_ptr, active, var_ptr, var_edge, msg_ptr,
    to_var, to_factor, maximize, beliefs,
):  # fmt: skip
    """Beliefs of all variables and log Z of Bethe, as in `conclude`; -inf when nothing is possible."""
    log_z, fresh = 0.0, np.empty(to_var.shape[0])
    for v in range(sizes.shape[0]):
        u0, size = unary_ptr[v], sizes[v]
        value = log_variable_message(v, -1, size, log_unary, u0, var_ptr, var_edge, msg_ptr, to_var, beliefs)
        if value == -np.inf:
            return -np.inf
        top = -np.inf
        for x in range(size):
            top = max(top, beliefs[u0 + x])
        if active[v]:
            log_z += value + top if maximize else value
        for x in range(size):
            beliefs[u0 + x] = np.exp(beliefs[u0 + x])
    for f in range(scope_ptr.shape[0] - 1):
        a, b = scope_ptr[f], scope_ptr[f + 1]
        for e in range(a, b):
            v, m, both = scope_idx[e], msg_ptr[e], -np.inf
            log_variable_message(v, e, sizes[v], log_unary, unary_ptr[v], var_ptr, var_edge, msg_ptr, to_var, to_factor)
            for x in range(sizes[v]):
                both = _add(both, to_factor[m + x] + to_var[m + x], maximize)
            if both == -np.inf:
                return -np.inf
            log_z -= both
        total = log_factor_messages(
            a, b - a, scope_idx, sizes, msg_ptr, log_values, value_ptr[f], value_ptr[f + 1] - value_ptr[f], to_factor,
            fresh, maximize,
        )  # fmt: skip
        if total == -np.inf:
            return -np.inf
        log_z += total
    return log_z
