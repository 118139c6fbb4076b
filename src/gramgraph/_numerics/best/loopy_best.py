"""Numba: from max-product messages to an assignment, and to one that no single change improves."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def decode(scope_ptr, scope_idx, value_ptr, values, sizes, beliefs, unary_ptr, order, msg_ptr, to_factor, state):
    """Fill state (-1 = open): factor after factor its best cell given what is fixed; the best assignment on a tree.

    The order is breadth first, so that on a tree each factor finds at most one of its variables fixed and its incoming
    messages speak for everything beyond. What is in no factor takes its most probable state.
    """
    for i in range(order.shape[0]):
        f = order[i]
        a, b = scope_ptr[f], scope_ptr[f + 1]
        best, best_cell = -1.0, 0
        for cell in range(value_ptr[f + 1] - value_ptr[f]):
            score, rest, fits = values[value_ptr[f] + cell], cell, True
            for e in range(b - 1, a - 1, -1):
                v = scope_idx[e]
                x = rest % sizes[v]
                rest //= sizes[v]
                if state[v] < 0:
                    score *= to_factor[msg_ptr[e] + x]
                elif state[v] != x:
                    fits = False
            if fits and score > best:
                best, best_cell = score, cell
        rest = best_cell
        for e in range(b - 1, a - 1, -1):
            v = scope_idx[e]
            if state[v] < 0:
                state[v] = rest % sizes[v]
            rest //= sizes[v]
    for v in range(sizes.shape[0]):
        if state[v] < 0:
            state[v] = 0
            for x in range(sizes[v]):
                if beliefs[unary_ptr[v] + x] > beliefs[unary_ptr[v] + state[v]]:
                    state[v] = x


@_jit
def improve(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, logs, sizes, log_unary, unary_ptr,
            state, rounds):  # fmt: skip
    """Iterated conditional modes: each variable on its best state given the others, until nothing changes."""
    for _ in range(rounds):
        changed = False
        for j in range(variables.shape[0]):
            v = variables[j]
            best, best_x = -np.inf, state[v]
            now = -np.inf
            for x in range(sizes[v]):
                score = log_unary[unary_ptr[v] + x]
                for i in range(var_ptr[v], var_ptr[v + 1]):
                    at = base[i] + x * own[i]
                    for k in range(other_ptr[i], other_ptr[i + 1]):
                        at += state[other_idx[k]] * other_stride[k]
                    score += logs[at]
                if score > best:
                    best, best_x = score, x
                if x == state[v]:
                    now = score
            if best > now + 1e-12:
                state[v] = best_x
                changed = True
        if not changed:
            break


@_jit
def log_value(scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, active, state):
    """log of the product of all factors and unaries at the state."""
    total = 0.0
    for f in range(scope_ptr.shape[0] - 1):
        at = 0
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            at = at * sizes[scope_idx[e]] + state[scope_idx[e]]
        value = values[value_ptr[f] + at]
        total += np.log(value) if value > 0 else -np.inf
    for v in range(sizes.shape[0]):
        if active[v]:
            value = unary[unary_ptr[v] + state[v]]
            total += np.log(value) if value > 0 else -np.inf
    return total
