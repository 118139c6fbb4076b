"""Numba: belief propagation on factors in flat arrays, in sum and in max form.

Edge e joins a factor to the variable scope_idx[e]; its two messages stand at msg_ptr[e] of `to_var` (factor → variable)
and of `to_factor`, each summing to one. All outgoing messages of a factor come from two passes over shrinking tables,
so that a sweep costs about four operations a table cell, whatever the number of variables of the factor.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.messages.forests import reach

_jit = njit(cache=True, nogil=True, boundscheck=False)
#: Variables with more neighbors than this keep a sum of logarithms instead of multiplying their messages anew.
MANY = 12
FLOODING, SEQUENTIAL, RESIDUAL, TREE = 0, 1, 2, 3
#: From this share of the sweeps on, messages that still move are damped (where damping was left to the engine).
LATE = 0.5
LATE_DAMPING = 0.5
#: Messages to possible states stay above this when a run is repeated because rounding had made zeros of them.
FLOOR = 1e-100


@_jit
def slice_factors(scope_ptr, scope_idx, value_ptr, values, sizes, keep, state):
    """The kept factors with observed variables (state >= 0) fixed, each table scaled to a largest value of one.

    Gives (scope_ptr, scope_idx, value_ptr, values, log of what was taken out: -inf when a table vanishes).
    """
    n = keep.shape[0]
    widest, n_out, n_edges, n_cells = 1, 0, 0, 0
    for f in range(n):
        if not keep[f]:
            continue
        k, cells = 0, 1
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            if state[scope_idx[e]] < 0:
                k += 1
                cells *= sizes[scope_idx[e]]
        widest = max(widest, scope_ptr[f + 1] - scope_ptr[f])
        if k > 0:
            n_out += 1
            n_edges += k
            n_cells += cells
    ptr, vptr = np.zeros(n_out + 1, np.int64), np.zeros(n_out + 1, np.int64)
    idx, out = np.empty(n_edges, np.int64), np.empty(n_cells)
    stride, size, step, digit = (
        np.empty(widest, np.int64),
        np.empty(widest, np.int64),
        np.empty(widest, np.int64),
        np.empty(widest, np.int64),
    )
    constant, m, at_edge, at_cell = 0.0, 0, 0, 0
    for f in range(n):
        if not keep[f]:
            continue
        a, b = scope_ptr[f], scope_ptr[f + 1]
        s, base = 1, value_ptr[f]
        for e in range(b - 1, a - 1, -1):
            stride[e - a] = s
            s *= sizes[scope_idx[e]]
        k, cells = 0, 1
        for e in range(a, b):
            v = scope_idx[e]
            if state[v] >= 0:
                base += state[v] * stride[e - a]
            else:
                size[k], step[k], digit[k] = sizes[v], stride[e - a], 0
                idx[at_edge + k] = v
                k += 1
                cells *= sizes[v]
        if k == 0:
            constant += np.log(values[base]) if values[base] > 0 else -np.inf
            continue
        inner, inner_step = size[k - 1], step[k - 1]
        at, top, c = base, 0.0, at_cell
        for _ in range(cells // inner):
            p = at
            for _x in range(inner):
                out[c] = values[p]
                if values[p] > top:
                    top = values[p]
                p += inner_step
                c += 1
            j = k - 2
            while j >= 0:
                digit[j] += 1
                at += step[j]
                if digit[j] < size[j]:
                    break
                at -= step[j] * size[j]
                digit[j] = 0
                j -= 1
        if top > 0:
            constant += np.log(top)
            for i in range(at_cell, c):
                out[i] /= top
        else:
            constant = -np.inf
        at_edge += k
        at_cell = c
        m += 1
        ptr[m], vptr[m] = at_edge, at_cell
    return ptr, idx, vptr, out, constant


@_jit
def edges_of(scope_idx, n_vars):
    """Edges of every variable: edges var_edge[var_ptr[v]:var_ptr[v+1]], in the order of the factors."""
    var_ptr = np.zeros(n_vars + 1, np.int64)
    for e in range(scope_idx.shape[0]):
        var_ptr[scope_idx[e] + 1] += 1
    for v in range(n_vars):
        var_ptr[v + 1] += var_ptr[v]
    fill = var_ptr.copy()
    var_edge = np.empty(scope_idx.shape[0], np.int64)
    for e in range(scope_idx.shape[0]):
        var_edge[fill[scope_idx[e]]] = e
        fill[scope_idx[e]] += 1
    return var_ptr, var_edge


@_jit
def factor_of_edges(scope_ptr):
    """The factor of every edge."""
    out = np.empty(scope_ptr[-1], np.int64)
    for f in range(scope_ptr.shape[0] - 1):
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            out[e] = f
    return out


@_jit
def breadth_first(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor):
    """Factors in the order in which they are reached: on a tree, each one after its neighbor toward the root."""
    everywhere = np.ones(scope_ptr.shape[0] - 1, np.bool_)
    return reach(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor, everywhere)


@_jit(no_cpython_wrapper=True)
def _contract(T, t0, rows, s, message, m0, out, prefix, p0, S, maximize):
    """S[r] = Σ_x T[r, x] message[x] and out[x] = Σ_r prefix[r] T[r, x] in one pass; S may be T itself."""
    for x in range(s):
        out[m0 + x] = 0.0
    if maximize:
        for r in range(rows):
            best, p, t = 0.0, prefix[p0 + r], t0 + r * s
            for x in range(s):
                value = T[t + x]
                best = max(best, value * message[m0 + x])
                out[m0 + x] = max(out[m0 + x], p * value)
            S[r] = best
    elif s == 2:
        a, b, u, w = message[m0], message[m0 + 1], 0.0, 0.0
        for r in range(rows):
            p, x0, x1 = prefix[p0 + r], T[t0 + 2 * r], T[t0 + 2 * r + 1]
            S[r] = x0 * a + x1 * b
            u += p * x0
            w += p * x1
        out[m0], out[m0 + 1] = u, w
    else:
        for r in range(rows):
            total, p, t = 0.0, prefix[p0 + r], t0 + r * s
            for x in range(s):
                value = T[t + x]
                total += value * message[m0 + x]
                out[m0 + x] += p * value
            S[r] = total


@_jit(no_cpython_wrapper=True)
def factor_messages(a, k, scope_idx, sizes, msg_ptr, values, v0, to_factor, out, prefix, work, maximize):
    """All messages of the factor with edges a … a+k-1 into `out`, not normalized; its total Σ ψ Π to_factor."""
    p0, rows = 0, 1
    prefix[0] = 1.0
    for j in range(k - 1):
        s, m = sizes[scope_idx[a + j]], msg_ptr[a + j]
        p1 = p0 + rows
        for r in range(rows):
            for x in range(s):
                prefix[p1 + r * s + x] = prefix[p0 + r] * to_factor[m + x]
        p0 = p1
        rows *= s
    for j in range(k - 1, -1, -1):
        s, m = sizes[scope_idx[a + j]], msg_ptr[a + j]
        if j == k - 1:
            _contract(values, v0, rows, s, to_factor, m, out, prefix, p0, work, maximize)
        else:
            _contract(work, 0, rows, s, to_factor, m, out, prefix, p0, work, maximize)
        if j > 0:
            rows //= sizes[scope_idx[a + j - 1]]
            p0 -= rows
    return work[0]


@_jit(no_cpython_wrapper=True)
def log_products(v, skip, size, unary, u0, var_ptr, var_edge, msg_ptr, to_var, out, o0):
    """out = log of unary · Π of the messages to v, except that of edge `skip`."""
    for x in range(size):
        out[o0 + x] = np.log(unary[u0 + x]) if unary[u0 + x] > 0 else -np.inf
    for i in range(var_ptr[v], var_ptr[v + 1]):
        if var_edge[i] == skip:
            continue
        m = msg_ptr[var_edge[i]]
        for x in range(size):
            out[o0 + x] += np.log(to_var[m + x]) if to_var[m + x] > 0 else -np.inf


@_jit(no_cpython_wrapper=True)
def keep_sums(v, size, unary, u0, var_ptr, var_edge, msg_ptr, to_var, log_sum, n_zero):
    """Sum of the logarithms of what is not zero, and the number of zeros, for each state of v."""
    for x in range(size):
        log_sum[u0 + x] = np.log(unary[u0 + x]) if unary[u0 + x] > 0 else 0.0
        n_zero[u0 + x] = 0 if unary[u0 + x] > 0 else 1
    for i in range(var_ptr[v], var_ptr[v + 1]):
        m = msg_ptr[var_edge[i]]
        for x in range(size):
            if to_var[m + x] > 0:
                log_sum[u0 + x] += np.log(to_var[m + x])
            else:
                n_zero[u0 + x] += 1


@_jit(no_cpython_wrapper=True)
def variable_message(v, e, size, unary, u0, var_ptr, var_edge, msg_ptr, to_var, log_sum, n_zero, to_factor):
    """Message of v over edge e: unary times all other messages, normalized. False when nothing is left."""
    m, total = msg_ptr[e], 0.0
    if var_ptr[v + 1] - var_ptr[v] <= MANY:
        for x in range(size):
            to_factor[m + x] = unary[u0 + x]
        for i in range(var_ptr[v], var_ptr[v + 1]):
            if var_edge[i] != e:
                n = msg_ptr[var_edge[i]]
                for x in range(size):
                    to_factor[m + x] *= to_var[n + x]
        for x in range(size):
            total += to_factor[m + x]
        if total > 1e-200:
            for x in range(size):
                to_factor[m + x] /= total
            return True
        log_products(v, e, size, unary, u0, var_ptr, var_edge, msg_ptr, to_var, to_factor, m)
    else:
        for x in range(size):
            zero = to_var[m + x] == 0
            others = n_zero[u0 + x] - (1 if zero else 0)
            to_factor[m + x] = (log_sum[u0 + x] - (0.0 if zero else np.log(to_var[m + x]))) if others == 0 else -np.inf
    return exp_normalize(to_factor, m, size)


@_jit(no_cpython_wrapper=True)
def exp_normalize(logs, m, size):
    """Logarithms to probabilities, in place. False (and zeros) when all of them are -inf."""
    top, total = -np.inf, 0.0
    for x in range(size):
        top = max(top, logs[m + x])
    for x in range(size):
        logs[m + x] = np.exp(logs[m + x] - top) if top > -np.inf else 0.0
        total += logs[m + x]
    for x in range(size):
        logs[m + x] /= total if total > 0 else 1.0
    return total > 0


@_jit(no_cpython_wrapper=True)
def commit(m, size, old, new, write, damping, floor):
    """Normalize and damp one message and write it; the largest change, -1 when the message is all zero.

    A zero is final: it says that the state is impossible, and mixing it with what was believed before would hide that.
    With a floor, only the zeros of the old message are such; others came from rounding and are lifted to the floor.
    """
    total, change = 0.0, 0.0
    for x in range(size):
        total += new[m + x]
    if not total > 0:
        if floor == 0:
            return -1.0
        for x in range(size):  # lost to rounding: nothing new is said
            write[m + x] = old[m + x]
        return 0.0
    if damping > 0 or floor > 0:
        kept = 0.0
        for x in range(size):
            value = new[m + x] / total
            if floor > 0:
                value = max(value, floor) if old[m + x] > 0 else 0.0
            new[m + x] = (1 - damping) * value + damping * old[m + x] if value > 0 else 0.0
            kept += new[m + x]
        total = kept
    for x in range(size):
        value = new[m + x] / total
        change = max(change, abs(value - old[m + x]))
        write[m + x] = value
    return change


@_jit(no_cpython_wrapper=True)
def update_factor(
    f, scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, var_ptr, var_edge, msg_ptr,
    to_var, write, to_factor, fresh, log_sum, n_zero, prefix, work, damping, floor, maximize, change, in_place,
):  # fmt: skip
    """New messages of factor f from the current ones; change[e] per edge. Their largest change, -1 for a conflict."""
    a, b = scope_ptr[f], scope_ptr[f + 1]
    for e in range(a, b):
        v = scope_idx[e]
        u0 = unary_ptr[v]
        if not variable_message(
            v, e, sizes[v], unary, u0, var_ptr, var_edge, msg_ptr, to_var, log_sum, n_zero, to_factor
        ):
            return -1.0
    factor_messages(a, b - a, scope_idx, sizes, msg_ptr, values, value_ptr[f], to_factor, fresh, prefix, work, maximize)
    largest = 0.0
    for e in range(a, b):
        v, m = scope_idx[e], msg_ptr[e]
        size, u0 = sizes[v], unary_ptr[v]
        many = in_place and var_ptr[v + 1] - var_ptr[v] > MANY
        if many:
            for x in range(size):
                if to_var[m + x] > 0:
                    log_sum[u0 + x] -= np.log(to_var[m + x])
                else:
                    n_zero[u0 + x] -= 1
        moved = commit(m, size, to_var, fresh, write, damping, floor)
        if moved < 0:
            return -1.0
        if many:
            for x in range(size):
                if to_var[m + x] > 0:
                    log_sum[u0 + x] += np.log(to_var[m + x])
                else:
                    n_zero[u0 + x] += 1
        change[e] = moved
        largest = max(largest, moved)
    return largest
