"""Numba: mean field by coordinate ascent, and tree-reweighted propagation with its bound over forests.

Zeros of a table stand apart from its logarithms: `logs` is zero there and `zero` is one, so that the mass that a
factorized belief puts on impossible cells is a number of its own, exactly zero where there is none.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.messages.loopy import commit, edges_of, exp_normalize, factor_messages, factor_of_edges
from gramgraph._numerics.messages.loopy_run import conclude, first_messages, message_places, propagate

_jit = njit(cache=True, nogil=True, boundscheck=False)
#: Messages to states that are possible stay above this: the bound holds for any messages, zeros must be true zeros.
LEAST = 1e-150


@_jit(no_cpython_wrapper=True)
def _load(f, scope_ptr, scope_idx, sizes, unary_ptr, msg_ptr, q, to_factor):
    """The beliefs of the factor's variables as its incoming messages."""
    for e in range(scope_ptr[f], scope_ptr[f + 1]):
        u0, m = unary_ptr[scope_idx[e]], msg_ptr[e]
        for x in range(sizes[scope_idx[e]]):
            to_factor[m + x] = q[u0 + x]


@_jit(no_cpython_wrapper=True)
def mean_field_bound(
    scope_ptr, scope_idx, value_ptr, logs, zero, has_zero, sizes, unary, unary_ptr, active, msg_ptr,
    q, penalty, to_factor, fresh, prefix, work,
):  # fmt: skip
    """Σ_f E_q log ψ_f + Σ_v (E_q log φ_v + H(q_v)) - penalty · mass on zeros (-inf when the penalty is)."""
    total = 0.0
    for f in range(scope_ptr.shape[0] - 1):
        a, k = scope_ptr[f], scope_ptr[f + 1] - scope_ptr[f]
        _load(f, scope_ptr, scope_idx, sizes, unary_ptr, msg_ptr, q, to_factor)
        total += factor_messages(
            a, k, scope_idx, sizes, msg_ptr, logs, value_ptr[f], to_factor, fresh, prefix, work, False
        )
        if has_zero[f]:
            mass = factor_messages(
                a, k, scope_idx, sizes, msg_ptr, zero, value_ptr[f], to_factor, fresh, prefix, work, False
            )
            if mass > 0:
                total -= penalty * mass
    for v in range(sizes.shape[0]):
        if active[v]:
            for i in range(unary_ptr[v], unary_ptr[v] + sizes[v]):
                if q[i] > 0:
                    total += q[i] * (np.log(unary[i]) - np.log(q[i])) if unary[i] > 0 else -np.inf
    return total


@_jit
def ascend(
    scope_ptr, scope_idx, value_ptr, logs, zero, has_zero, sizes, unary, unary_ptr, active, var_ptr, var_edge,
    edge_factor, msg_ptr, q, penalty, max_iter, tol, bounds, stop,
):  # fmt: skip
    """Update one variable after the other, q_v ∝ φ_v exp Σ_f E[log ψ_f | x_v]: (sweeps, converged).

    bounds[i] is the bound after sweep i; it never falls once the mass on zeros is charged by the same penalty.
    """
    largest = 1
    for f in range(scope_ptr.shape[0] - 1):
        largest = max(largest, value_ptr[f + 1] - value_ptr[f])
    prefix, work = np.empty(2 * largest + 1), np.empty(largest)
    to_factor, fresh = np.empty(msg_ptr[-1]), np.empty(msg_ptr[-1])
    widest = sizes.max() if sizes.shape[0] else 1
    g, bad = np.empty(widest), np.empty(widest)
    for sweep in range(max_iter):
        for v in range(sizes.shape[0]):
            if not active[v]:
                continue
            size, u0 = sizes[v], unary_ptr[v]
            for x in range(size):
                g[x], bad[x] = (np.log(unary[u0 + x]) if unary[u0 + x] > 0 else -np.inf), 0.0
            for i in range(var_ptr[v], var_ptr[v + 1]):
                e = var_edge[i]
                f = edge_factor[e]
                a, k = scope_ptr[f], scope_ptr[f + 1] - scope_ptr[f]
                _load(f, scope_ptr, scope_idx, sizes, unary_ptr, msg_ptr, q, to_factor)
                factor_messages(
                    a, k, scope_idx, sizes, msg_ptr, logs, value_ptr[f], to_factor, fresh, prefix, work, False
                )
                for x in range(size):
                    g[x] += fresh[msg_ptr[e] + x]
                if has_zero[f]:
                    factor_messages(
                        a, k, scope_idx, sizes, msg_ptr, zero, value_ptr[f], to_factor, fresh, prefix, work, False
                    )
                    for x in range(size):
                        bad[x] += fresh[msg_ptr[e] + x]
            for x in range(size):
                if bad[x] > 0:
                    g[x] -= penalty * bad[x]
            if exp_normalize(g, 0, size):
                for x in range(size):
                    q[u0 + x] = g[x]
        bounds[sweep] = mean_field_bound(
            scope_ptr, scope_idx, value_ptr, logs, zero, has_zero, sizes, unary, unary_ptr, active, msg_ptr,
            q, penalty, to_factor, fresh, prefix, work,
        )  # fmt: skip
        if sweep > 0 and bounds[sweep] - bounds[sweep - 1] <= tol * max(1.0, abs(bounds[sweep])):
            return sweep + 1, True
        if stop[0]:
            return sweep + 1, False
        if sweep >= 20 and bounds[sweep] == -np.inf:  # mass on zeros that no single update removes
            return sweep + 1, False
    return max_iter, False


@_jit
def weighted_logs(v, size, unary, u0, var_ptr, var_edge, edge_factor, msg_ptr, rho, to_var, out, o0):
    """out = log φ_v + Σ_f ρ_f log m(f→v); -inf where any message is zero."""
    for x in range(size):
        out[o0 + x] = np.log(unary[u0 + x]) if unary[u0 + x] > 0 else -np.inf
    for i in range(var_ptr[v], var_ptr[v + 1]):
        m, weight = msg_ptr[var_edge[i]], rho[edge_factor[var_edge[i]]]
        for x in range(size):
            out[o0 + x] += weight * np.log(to_var[m + x]) if to_var[m + x] > 0 else -np.inf


@_jit
def reweighted(
    scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
    rho, to_var, to_factor, damping, max_iter, tol, residuals, stop,
):  # fmt: skip
    """Tree-reweighted messages, factor after factor forth and back: (sweeps, converged). Tables hold ψ^(1/ρ).

    Messages start with their true zeros, which stay; everything else stays above LEAST.
    """
    n = scope_ptr.shape[0] - 1
    largest = 1
    for f in range(n):
        largest = max(largest, value_ptr[f + 1] - value_ptr[f])
    prefix, work, fresh = np.empty(2 * largest + 1), np.empty(largest), np.empty(to_var.shape[0])
    for sweep in range(max_iter):
        residual = 0.0
        for i in range(2 * n):
            f = i if i < n else 2 * n - 1 - i
            a, b = scope_ptr[f], scope_ptr[f + 1]
            for e in range(a, b):
                v, m = scope_idx[e], msg_ptr[e]
                weighted_logs(
                    v, sizes[v], unary, unary_ptr[v], var_ptr, var_edge, edge_factor, msg_ptr, rho, to_var, to_factor, m
                )
                for x in range(sizes[v]):
                    if to_factor[m + x] > -np.inf:
                        to_factor[m + x] -= np.log(to_var[m + x])
                exp_normalize(to_factor, m, sizes[v])
            factor_messages(
                a, b - a, scope_idx, sizes, msg_ptr, values, value_ptr[f], to_factor, fresh, prefix, work, False
            )
            for e in range(a, b):
                m, size = msg_ptr[e], sizes[scope_idx[e]]
                residual = max(residual, commit(m, size, to_var, fresh, to_var, damping, LEAST))
        residuals[sweep] = residual
        if residual <= tol:
            return sweep + 1, True
        if stop[0]:
            return sweep + 1, False
    return max_iter, False


@_jit
def forest_log_z(
    scope_ptr, scope_idx, value_ptr, values, sizes, unary_ptr, active, inside, logs, to_var, msg_ptr,
):  # fmt: skip
    """log Z of one forest of the reparametrized model: the factors `inside` with the unaries logs - Σ log m."""
    n_vars = sizes.shape[0]
    n_out, n_edges, n_cells = 0, 0, 0
    for f in range(inside.shape[0]):
        if inside[f]:
            n_out += 1
            n_edges += scope_ptr[f + 1] - scope_ptr[f]
            n_cells += value_ptr[f + 1] - value_ptr[f]
    ptr, vptr = np.zeros(n_out + 1, np.int64), np.zeros(n_out + 1, np.int64)
    idx, table, unary = np.empty(n_edges, np.int64), np.empty(n_cells), logs.copy()
    m = 0
    for f in range(inside.shape[0]):
        if not inside[f]:
            continue
        a, k, c = ptr[m], scope_ptr[f + 1] - scope_ptr[f], value_ptr[f + 1] - value_ptr[f]
        for j in range(k):
            v, at = scope_idx[scope_ptr[f] + j], msg_ptr[scope_ptr[f] + j]
            idx[a + j] = v
            for x in range(sizes[v]):
                if unary[unary_ptr[v] + x] > -np.inf:
                    unary[unary_ptr[v] + x] -= np.log(to_var[at + x])
        for j in range(c):
            table[vptr[m] + j] = values[value_ptr[f] + j]
        ptr[m + 1], vptr[m + 1] = a + k, vptr[m] + c
        m += 1
    constant = 0.0
    for v in range(n_vars):
        top = -np.inf
        for x in range(sizes[v]):
            top = max(top, unary[unary_ptr[v] + x])
        for x in range(sizes[v]):
            if unary[unary_ptr[v] + x] > -np.inf:  # raised, so that rounding makes no zero: the bound stays one
                unary[unary_ptr[v] + x] = max(np.exp(unary[unary_ptr[v] + x] - top), 1e-250)
            else:
                unary[unary_ptr[v] + x] = 0.0
        if active[v]:
            constant += top
    var_ptr, var_edge = edges_of(idx, n_vars)
    edge_factor, places = factor_of_edges(ptr), message_places(idx, sizes)
    inner = first_messages(idx, sizes, places)
    back, residuals, beliefs = inner.copy(), np.empty(1), np.empty(unary.shape[0])
    _, _, possible = propagate(
        ptr, idx, vptr, table, sizes, unary, unary_ptr, var_ptr, var_edge, edge_factor, places,
        inner, back, 1, 0.0, 0.0, 1, 0.0, False, residuals,
    )  # fmt: skip
    if not possible:
        return -np.inf
    return constant + conclude(
        ptr,
        idx,
        vptr,
        table,
        sizes,
        unary,
        unary_ptr,
        active,
        var_ptr,
        var_edge,
        places,
        inner,
        back,
        False,
        0.0,
        beliefs,
    )
