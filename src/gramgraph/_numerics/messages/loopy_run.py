"""Numba: schedules of belief propagation, the beliefs and the Bethe free energy at the end, and batches of cases."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put
from gramgraph._numerics.messages.forests import along_trees
from gramgraph._numerics.messages.loopy import (
    FLOODING,
    FLOOR,
    LATE,
    LATE_DAMPING,
    MANY,
    RESIDUAL,
    SEQUENTIAL,
    TREE,
    breadth_first,
    edges_of,
    exp_normalize,
    factor_messages,
    factor_of_edges,
    keep_sums,
    log_products,
    slice_factors,
    update_factor,
    variable_message,
)  # fmt: skip
from gramgraph._numerics.messages.loopy_log import log_conclude, log_update_factor, safe_log

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit(no_cpython_wrapper=True)
def _rise(heap, place, key, i):
    """Restore the heap (largest key first) after the key of its entry i has grown."""
    while i > 0:
        up = (i - 1) // 2
        if key[heap[up]] >= key[heap[i]]:
            break
        heap[up], heap[i] = heap[i], heap[up]
        place[heap[up]], place[heap[i]] = up, i
        i = up


@_jit(no_cpython_wrapper=True)
def _sink(heap, place, key, i):
    """The same after the key of entry i has shrunk."""
    n = heap.shape[0]
    while True:
        best, left = i, 2 * i + 1
        for child in range(left, min(left + 2, n)):
            if key[heap[child]] > key[heap[best]]:
                best = child
        if best == i:
            break
        heap[best], heap[i] = heap[i], heap[best]
        place[heap[best]], place[heap[i]] = best, i
        i = best


@_jit
def propagate(
    scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
    to_var, to_factor, schedule, damping, floor, max_iter, tol, maximize, residuals,
):  # fmt: skip
    """Sweep until messages move by at most tol: (sweeps, converged, possible); residuals[i] = largest move of sweep i.

    As `propagate_until`, which says what a sweep is, with nothing that stops it early.
    """
    return propagate_until(
        scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
        to_var, to_factor, schedule, damping, floor, max_iter, tol, maximize, False, residuals, np.zeros(1, np.uint8),
    )  # fmt: skip


@_jit(no_cpython_wrapper=True)
def propagate_until(
    scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
    to_var, to_factor, schedule, damping, floor, max_iter, tol, maximize, in_logs, residuals, stop,
):  # fmt: skip
    """Sweep until messages move by at most tol, or stop[0] is set (after a sweep): (sweeps, converged, possible).

    A sweep updates every factor once (flooding), backward and forward through the breadth-first order (sequential),
    along spanning forests that hold all factors (tree), or as many factors as there are, the one whose inputs moved
    most first (residual). Negative damping: none at first, then LATE_DAMPING. `floor`: see `commit`. With
    `in_logs` values, weights and messages are logarithms.
    """
    n, n_vars = scope_ptr.shape[0] - 1, sizes.shape[0]
    largest = 1
    for f in range(n):
        largest = max(largest, value_ptr[f + 1] - value_ptr[f])
    prefix, work = np.empty(2 * largest + 1), np.empty(largest)
    fresh, change = np.empty(to_var.shape[0]), np.zeros(scope_idx.shape[0])
    log_sum, n_zero = np.zeros(unary.shape[0]), np.zeros(unary.shape[0], np.int64)
    other = to_var.copy() if schedule == FLOODING else to_var
    in_place = schedule != FLOODING
    if schedule == TREE:
        order = along_trees(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor)
    else:
        order = breadth_first(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor)
    heap, place, key = np.arange(n), np.arange(n), np.full(n, np.inf)
    if schedule == RESIDUAL:  # ties at the start: the order of a tree
        put(order, heap)
        for i in range(n):
            place[order[i]] = i
    steps = 2 * n if schedule == SEQUENTIAL else order.shape[0]
    for sweep in range(max_iter):
        d = damping
        if damping < 0:
            d = LATE_DAMPING if sweep >= LATE * max_iter else 0.0
        for v in range(n_vars):  # once a sweep, so that rounding does not add up
            if var_ptr[v + 1] - var_ptr[v] > MANY and not in_logs:
                keep_sums(v, sizes[v], unary, unary_ptr[v], var_ptr, var_edge, msg_ptr, to_var, log_sum, n_zero)
        residual = 0.0
        for i in range(steps):
            if schedule == FLOODING:
                f = i
            elif schedule == RESIDUAL:
                f = heap[0]
                if key[f] <= tol:
                    break
            elif schedule == TREE:
                f = order[i]
            else:
                f = order[n - 1 - i] if i < n else order[i - n]
            if in_logs:
                moved = log_update_factor(
                    f, scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, var_ptr, var_edge, msg_ptr,
                    to_var, other, to_factor, fresh, d, maximize, change,
                )  # fmt: skip
            else:
                moved = update_factor(
                    f, scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, var_ptr, var_edge, msg_ptr,
                    to_var, other, to_factor, fresh, log_sum, n_zero, prefix, work, d, floor, maximize, change,
                    in_place,
                )  # fmt: skip
            if moved < 0:
                return sweep + 1, True, False
            residual = max(residual, moved)
            if schedule == RESIDUAL:
                key[f] = d / (1 - d) * moved if d > 0 else 0.0
                _sink(heap, place, key, place[f])
                for e in range(scope_ptr[f], scope_ptr[f + 1]):
                    v = scope_idx[e]
                    for j in range(var_ptr[v], var_ptr[v + 1]):
                        g = edge_factor[var_edge[j]]
                        if g != f and change[e] > key[g]:
                            key[g] = change[e]
                            _rise(heap, place, key, place[g])
        if schedule == FLOODING:
            put(other, to_var)
        if schedule == RESIDUAL:
            residual = key[heap[0]] if n > 0 else 0.0
        residuals[sweep] = residual
        if residual <= tol:
            return sweep + 1, True, True
        if stop[0]:
            return sweep + 1, False, True
    return max_iter, False, True


@_jit(no_cpython_wrapper=True)
def _add(total, lost, term):
    """(total + term, what rounding has lost so far): sums of a hundred thousand equal terms do not drift (Kahan)."""
    wanted = term - lost
    made = total + wanted
    return made, (made - total) - wanted


@_jit
def conclude(
    scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, active, var_ptr, var_edge, msg_ptr,
    to_var, to_factor, maximize, floor, beliefs,
):  # fmt: skip
    """Beliefs of all variables (at unary_ptr) and log Z of Bethe: exact on trees. -inf when nothing is possible.

    log Z = Σ_f log Σ ψ_f Π m(v→f) + Σ_v log Σ φ_v Π m(f→v) - Σ_edges log Σ m(v→f) m(f→v)
    """
    n = scope_ptr.shape[0] - 1
    largest = 1
    for f in range(n):
        largest = max(largest, value_ptr[f + 1] - value_ptr[f])
    prefix, work, fresh = np.empty(2 * largest + 1), np.empty(largest), np.empty(to_var.shape[0])
    log_sum, n_zero = np.zeros(unary.shape[0]), np.zeros(unary.shape[0], np.int64)
    log_z, lost = 0.0, 0.0
    for v in range(sizes.shape[0]):
        u0, size = unary_ptr[v], sizes[v]
        if var_ptr[v + 1] - var_ptr[v] > MANY:
            keep_sums(v, size, unary, u0, var_ptr, var_edge, msg_ptr, to_var, log_sum, n_zero)
        log_products(v, -1, size, unary, u0, var_ptr, var_edge, msg_ptr, to_var, beliefs, u0)
        top, total = -np.inf, 0.0
        for x in range(size):
            top = max(top, beliefs[u0 + x])
        for x in range(size):
            total += np.exp(beliefs[u0 + x] - top) if top > -np.inf else 0.0
        if not exp_normalize(beliefs, u0, size):
            return -np.inf
        if active[v]:
            log_z, lost = _add(log_z, lost, top if maximize else top + np.log(total))
    for f in range(n):
        a, b = scope_ptr[f], scope_ptr[f + 1]
        for e in range(a, b):
            v, m = scope_idx[e], msg_ptr[e]
            variable_message(
                v, e, sizes[v], unary, unary_ptr[v], var_ptr, var_edge, msg_ptr, to_var, log_sum, n_zero, to_factor
            )
            both = 0.0
            for x in range(sizes[v]):
                value = to_factor[m + x] * to_var[m + x]
                both = max(both, value) if maximize else both + value
            both = max(both, floor)
            if not both > 0:
                return -np.inf
            log_z, lost = _add(log_z, lost, -np.log(both))
        total = factor_messages(
            a, b - a, scope_idx, sizes, msg_ptr, values, value_ptr[f], to_factor, fresh, prefix, work, maximize
        )
        total = max(total, floor)
        if not total > 0:
            return -np.inf
        log_z, lost = _add(log_z, lost, np.log(total))
    return log_z


@_jit
def message_places(scope_idx, sizes):
    """Where the message of each edge begins, and behind them the length of all."""
    out = np.zeros(scope_idx.shape[0] + 1, np.int64)
    for e in range(scope_idx.shape[0]):
        out[e + 1] = out[e] + sizes[scope_idx[e]]
    return out


@_jit
def first_messages(scope_idx, sizes, msg_ptr):
    """Uniform messages."""
    out = np.empty(msg_ptr[-1])
    for e in range(scope_idx.shape[0]):
        for m in range(msg_ptr[e], msg_ptr[e + 1]):
            out[m] = 1.0 / sizes[scope_idx[e]]
    return out


@_jit
def possible_states(
    scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
    to_var, to_factor,
):  # fmt: skip
    """Make to_var uniform over the states that the zeros of the tables leave; False when some variable has none."""
    put(first_messages(scope_idx, sizes, msg_ptr), to_var)
    if values.shape[0] == 0 or values.min() > 0:
        if unary.shape[0] == 0 or unary.min() > 0:
            return True
    open_values, open_unary = (values > 0).astype(np.float64), (unary > 0).astype(np.float64)
    for v in range(sizes.shape[0]):
        left = 0.0
        for x in range(sizes[v]):
            left += open_unary[unary_ptr[v] + x]
        if left == 0:
            return False
    limit = to_var.shape[0] + 1  # each sweep rules out a state or is the last
    _, _, possible = propagate(
        scope_ptr, scope_idx, value_ptr, open_values, sizes, open_unary, unary_ptr, var_ptr, var_edge, edge_factor,
        msg_ptr, to_var, to_factor, SEQUENTIAL, 0.0, 0.0, limit, 1e-12, True, np.zeros(limit),
    )  # fmt: skip
    if not possible:
        return False
    for v in range(sizes.shape[0]):  # on a tree two messages may rule out everything together, neither by itself
        some = False
        for x in range(sizes[v]):
            left = open_unary[unary_ptr[v] + x] > 0
            for k in range(var_ptr[v], var_ptr[v + 1]):
                left = left and to_var[msg_ptr[var_edge[k]] + x] > 0
            some = some or left
        if not some:
            return False
    return True


def _work_of_cases(*args):
    """Cells, as often as there are cases and sweeps; most settle within a few dozen."""
    values, states, max_iter = args[3], args[8], args[12]
    return values.size * states.shape[0] * min(max_iter, 30)


@_jit(work=_work_of_cases)
def run_cases(
    scope_ptr, scope_idx, value_ptr, values, sizes, unary_ptr, keep, active, states, unaries,
    schedule, damping, max_iter, tol, in_logs, maximize, beliefs, log_z, sweeps, converged, last, residuals, stop,
):  # fmt: skip
    """Belief propagation for every case: states (cases, variables), -1 = not observed; unaries (cases or 1, columns).

    beliefs (cases, columns) of an observed variable stay on its state. `residuals` are those of the last case. When
    stop[0] is set, the case at work and each later one end after the sweep that they are at.
    """
    n_vars = sizes.shape[0]
    free = active.copy()
    for case in range(states.shape[0]):
        state, unary = states[case], unaries[min(case, unaries.shape[0] - 1)]
        ptr, idx, vptr, table, constant = slice_factors(scope_ptr, scope_idx, value_ptr, values, sizes, keep, state)
        log_z[case] = -np.inf
        sweeps[case], converged[case], last[case] = 0, True, 0.0
        if constant == -np.inf:
            continue
        for v in range(n_vars):
            free[v] = active[v] and state[v] < 0
            if state[v] >= 0:  # weights of an observed variable are a constant
                weight = unary[unary_ptr[v] + state[v]]
                constant += np.log(weight) if weight > 0 else -np.inf
        var_ptr, var_edge = edges_of(idx, n_vars)
        edge_factor, msg_ptr = factor_of_edges(ptr), message_places(idx, sizes)
        if constant == -np.inf:
            continue
        to_var = first_messages(idx, sizes, msg_ptr)
        to_factor = to_var.copy()
        floor, d = 0.0, damping
        for attempt in range(2):
            if attempt == 1:  # all zero: truly impossible, or only out of the range of doubles
                if not possible_states(
                    ptr, idx, vptr, table, sizes, unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
                    to_var, to_factor,
                ):  # fmt: skip
                    break
                floor, d = FLOOR, (damping if damping >= 0 else LATE_DAMPING)
            if in_logs:
                weights, logs, messages = safe_log(unary), safe_log(table), safe_log(to_var)
                n_sweeps, done, possible = propagate_until(
                    ptr, idx, vptr, logs, sizes, weights, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
                    messages, to_factor, schedule, d, 0.0, max_iter, tol, maximize, True, residuals, stop,
                )  # fmt: skip
                if possible:
                    log_z[case] = constant + log_conclude(
                        ptr, idx, vptr, logs, sizes, weights, unary_ptr, free, var_ptr, var_edge, msg_ptr,
                        messages, to_factor, maximize, beliefs[case],
                    )  # fmt: skip
            else:
                n_sweeps, done, possible = propagate_until(
                    ptr, idx, vptr, table, sizes, unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
                    to_var, to_factor, schedule, d, floor, max_iter, tol, maximize, False, residuals, stop,
                )  # fmt: skip
                if possible:
                    log_z[case] = constant + conclude(
                        ptr, idx, vptr, table, sizes, unary, unary_ptr, free, var_ptr, var_edge, msg_ptr,
                        to_var, to_factor, maximize, floor, beliefs[case],
                    )  # fmt: skip
            sweeps[case], converged[case] = n_sweeps, done
            if possible:
                last[case] = residuals[n_sweeps - 1]
            if log_z[case] > -np.inf or in_logs:
                break
        for v in range(n_vars):
            if state[v] >= 0:
                for x in range(sizes[v]):
                    beliefs[case, unary_ptr[v] + x] = 1.0 if x == state[v] else 0.0
