"""Numba: sequential reweighted message passing (max-sum) on factors in flat arrays, and assignments from its messages.

`message[msg_ptr[e]:]` of edge e = (factor f, variable v) is what f has given to v: any messages λ leave the sum of all
terms at every assignment as it is, and

    max_x Σ θ(x)  ≤  Σ_v max (θ_v + Σ_f λ_fv)  +  Σ_f max (θ_f − Σ_v λ_fv).

A pass takes the variables in order; each collects from its factors what they can give, and shares it evenly among those
that reach on, which never raises the right-hand side.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)
#: Stands for plus infinity in messages of states that are ruled out.
HUGE = 1e30


@_jit(no_cpython_wrapper=True)
def collect(a, k, t, scope_idx, sizes, msg_ptr, logs, v0, message, prefix, work, out, o0):
    """out[x] = max over the cells of the factor (edges a … a+k-1) with x at place t of θ - Σ_(u≠t) λ_u."""
    if k == 1:
        for x in range(sizes[scope_idx[a]]):
            out[o0 + x] = logs[v0 + x]
        return
    if k == 2:
        s0, s1 = sizes[scope_idx[a]], sizes[scope_idx[a + 1]]
        if t == 0:
            m = msg_ptr[a + 1]
            for x in range(s0):
                best = -np.inf
                for y in range(s1):
                    best = max(best, logs[v0 + x * s1 + y] - message[m + y])
                out[o0 + x] = best
        else:
            m = msg_ptr[a]
            for y in range(s1):
                out[o0 + y] = -np.inf
            for x in range(s0):
                less = message[m + x]
                for y in range(s1):
                    out[o0 + y] = max(out[o0 + y], logs[v0 + x * s1 + y] - less)
        return
    rows, s = 1, 1
    for j in range(k):
        rows *= sizes[scope_idx[a + j]]
    in_work = False
    for j in range(k - 1, t, -1):  # the places behind t
        s, m = sizes[scope_idx[a + j]], msg_ptr[a + j]
        rows //= s
        for r in range(rows):
            best = -np.inf
            if in_work:
                for x in range(s):
                    best = max(best, work[r * s + x] - message[m + x])
            else:
                for x in range(s):
                    best = max(best, logs[v0 + r * s + x] - message[m + x])
            work[r] = best
        in_work = True
    n = 1
    prefix[0] = 0.0
    for j in range(t):  # the places before t, as one
        s, m = sizes[scope_idx[a + j]], msg_ptr[a + j]
        for r in range(n - 1, -1, -1):
            base = prefix[r]
            for x in range(s - 1, -1, -1):
                prefix[r * s + x] = base + message[m + x]
        n *= s
    s = sizes[scope_idx[a + t]]
    for x in range(s):
        out[o0 + x] = -np.inf
    for r in range(n):
        less = prefix[r]
        for x in range(s):
            value = work[r * s + x] if in_work else logs[v0 + r * s + x]
            out[o0 + x] = max(out[o0 + x], value - less)


@_jit
def ends_of(scope_ptr, scope_idx, rank):
    """For every edge: whether its variable is the first, and whether it is the last, of the factor by rank."""
    n = scope_idx.shape[0]
    first, last = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for f in range(scope_ptr.shape[0] - 1):
        a, b = scope_ptr[f], scope_ptr[f + 1]
        low = high = a
        for e in range(a, b):
            if rank[scope_idx[e]] < rank[scope_idx[low]]:
                low = e
            if rank[scope_idx[e]] > rank[scope_idx[high]]:
                high = e
        first[low], last[high] = True, True
    return first, last


@_jit
def largest_table(value_ptr):
    """Cells of the largest table."""
    most = 1
    for f in range(value_ptr.shape[0] - 1):
        most = max(most, value_ptr[f + 1] - value_ptr[f])
    return most


@_jit
def sweep(
    scope_ptr, scope_idx, value_ptr, logs, sizes, log_unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
    order, first, last, message, prefix, work,
):  # fmt: skip
    """One pass through the variables in `order`; `first` and `last` are exchanged for the way back."""
    belief = np.empty(sizes.max())
    for i in range(order.shape[0]):
        v = order[i]
        size, n_in, n_out = sizes[v], 0, 0
        for x in range(size):
            belief[x] = log_unary[unary_ptr[v] + x]
        for j in range(var_ptr[v], var_ptr[v + 1]):
            e = var_edge[j]
            f = edge_factor[e]
            if not first[e] or scope_ptr[f + 1] - scope_ptr[f] == 1:
                n_in += 1
                a = scope_ptr[f]
                collect(
                    a, scope_ptr[f + 1] - a, e - a, scope_idx, sizes, msg_ptr, logs, value_ptr[f], message, prefix,
                    work, message, msg_ptr[e],
                )  # fmt: skip
            if not last[e]:
                n_out += 1
            for x in range(size):
                belief[x] += message[msg_ptr[e] + x]
        if n_out == 0:
            continue
        share = 1.0 / max(n_in, n_out)
        top = -np.inf
        for x in range(size):
            top = max(top, belief[x])
        for j in range(var_ptr[v], var_ptr[v + 1]):
            e = var_edge[j]
            if not last[e]:
                for x in range(size):
                    # relative to the best state, so that messages do not grow; impossible states stay finite
                    message[msg_ptr[e] + x] -= share * (belief[x] - top)


@_jit
def dual_value(
    scope_ptr, scope_idx, value_ptr, logs, sizes, log_unary, unary_ptr, active, var_ptr, var_edge, msg_ptr, message,
    prefix, work,
):  # fmt: skip
    """The right-hand side of the inequality: never below the value of any assignment."""
    total = 0.0
    belief = np.empty(sizes.max())
    for v in range(sizes.shape[0]):
        if not active[v]:
            continue
        for x in range(sizes[v]):
            belief[x] = log_unary[unary_ptr[v] + x]
        for j in range(var_ptr[v], var_ptr[v + 1]):
            for x in range(sizes[v]):
                belief[x] += message[msg_ptr[var_edge[j]] + x]
        top = -np.inf
        for x in range(sizes[v]):
            top = max(top, belief[x])
        total += top
    for f in range(scope_ptr.shape[0] - 1):
        a = scope_ptr[f]
        collect(
            a, scope_ptr[f + 1] - a, 0, scope_idx, sizes, msg_ptr, logs, value_ptr[f], message, prefix, work, belief, 0
        )
        top = -np.inf
        for x in range(sizes[scope_idx[a]]):
            top = max(top, belief[x] - message[msg_ptr[a] + x])
        total += top
    return total


@_jit
def fix_in_order(
    scope_ptr, scope_idx, value_ptr, logs, sizes, log_unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
    order, message, prefix, work, state,
):  # fmt: skip
    """Each variable in turn on its best state, given those fixed before and the messages of the others.

    `message` is overwritten: fixed states count 0, all others are ruled out.
    """
    belief, part = np.empty(sizes.max()), np.empty(sizes.max())
    for i in range(order.shape[0]):
        v = order[i]
        for x in range(sizes[v]):
            belief[x] = log_unary[unary_ptr[v] + x]
        for j in range(var_ptr[v], var_ptr[v + 1]):
            e = var_edge[j]
            f = edge_factor[e]
            a = scope_ptr[f]
            collect(
                a, scope_ptr[f + 1] - a, e - a, scope_idx, sizes, msg_ptr, logs, value_ptr[f], message, prefix, work,
                part, 0,
            )  # fmt: skip
            for x in range(sizes[v]):
                belief[x] += part[x]
        best = 0
        for x in range(sizes[v]):
            if belief[x] > belief[best]:
                best = x
        state[v] = best
        for j in range(var_ptr[v], var_ptr[v + 1]):
            m = msg_ptr[var_edge[j]]
            for x in range(sizes[v]):
                message[m + x] = 0.0 if x == best else HUGE
