"""Numba: moves that improve an assignment: kicks with single changes, and the exact best of a random forest."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.joining import root_of

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit(no_cpython_wrapper=True)
def scores_of(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, logs, sizes, log_unary, unary_ptr,
              state, score):  # fmt: skip
    """score[v, x] = the terms that hold v, with v on x and all others where they are."""
    for j in range(variables.shape[0]):
        v = variables[j]
        u0 = unary_ptr[v]
        for x in range(sizes[v]):
            score[u0 + x] = log_unary[u0 + x]
        for i in range(var_ptr[v], var_ptr[v + 1]):
            at = base[i]
            for k in range(other_ptr[i], other_ptr[i + 1]):
                at += state[other_idx[k]] * other_stride[k]
            for x in range(sizes[v]):
                score[u0 + x] += logs[at + x * own[i]]


@_jit(no_cpython_wrapper=True)
def _change(v, y, var_ptr, base, own, other_ptr, other_idx, other_stride, logs, sizes, unary_ptr, state, score):
    """Put v on y and bring the scores of its neighbors up to date; what was gained."""
    x = state[v]
    gained = score[unary_ptr[v] + y] - score[unary_ptr[v] + x]
    for i in range(var_ptr[v], var_ptr[v + 1]):
        at = base[i]
        for k in range(other_ptr[i], other_ptr[i + 1]):
            at += state[other_idx[k]] * other_stride[k]
        for k in range(other_ptr[i], other_ptr[i + 1]):
            u, step = other_idx[k], other_stride[k]
            start = at - state[u] * step
            for z in range(sizes[u]):
                cell = start + z * step
                score[unary_ptr[u] + z] += logs[cell + y * own[i]] - logs[cell + x * own[i]]
    state[v] = y
    return gained


@_jit
def climb_with_kicks(
    variables, var_ptr, base, own, other_ptr, other_idx, other_stride, logs, sizes, log_unary, unary_ptr,
    state, score, numbers, most,
):  # fmt: skip
    """Single changes to a local best; then a few neighboring variables are thrown about, and what did not pay undone.

    Every kick takes three numbers and one for each variable thrown, at most `most`. Gives what was gained.
    """
    scores_of(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, logs, sizes, log_unary, unary_ptr,
              state, score)  # fmt: skip
    n = sizes.shape[0]
    free = np.zeros(n, np.bool_)
    for j in range(variables.shape[0]):
        free[variables[j]] = True
    queue, waiting = np.empty(n, np.int64), np.zeros(n, np.bool_)  # a ring of variables to look at
    log_of, was = np.empty(4 * n + 64, np.int64), np.empty(4 * n + 64, np.int64)
    ball, seen = np.empty(max(most, 1), np.int64), np.full(n, -1, np.int64)
    head, filled = 0, 0
    for j in range(variables.shape[0]):
        queue[filled] = variables[j]
        waiting[variables[j]] = True
        filled += 1
    gained_all, at_number, kick = 0.0, 0, 0
    first = True
    while first or (at_number + 3 + most <= numbers.shape[0] and variables.shape[0] > 0):
        n_log, gained = 0, 0.0
        if not first:
            kick += 1
            v = variables[min(int(numbers[at_number] * variables.shape[0]), variables.shape[0] - 1)]
            want = 1 + int(numbers[at_number + 1] * numbers[at_number + 1] * most)
            want = min(want, most)
            far = numbers[at_number + 2]
            at_number += 3
            ball[0], n_ball, look = v, 1, 0
            seen[v] = kick
            while look < n_ball and n_ball < want:
                u = ball[look]
                look += 1
                degree = var_ptr[u + 1] - var_ptr[u]
                for d in range(degree):
                    i = var_ptr[u] + (d + int(far * degree)) % degree
                    for k in range(other_ptr[i], other_ptr[i + 1]):
                        w = other_idx[k]
                        if n_ball < want and free[w] and seen[w] != kick:
                            seen[w] = kick
                            ball[n_ball] = w
                            n_ball += 1
            for b in range(n_ball):
                u = ball[b]
                y = int(numbers[at_number] * (sizes[u] - 1))
                at_number += 1
                y = min(y, sizes[u] - 2)
                if y >= state[u]:
                    y += 1
                log_of[n_log], was[n_log] = u, state[u]
                n_log += 1
                gained += _change(u, y, var_ptr, base, own, other_ptr, other_idx, other_stride, logs, sizes,
                                  unary_ptr, state, score)  # fmt: skip
                for i in range(var_ptr[u], var_ptr[u + 1]):
                    for k in range(other_ptr[i], other_ptr[i + 1]):
                        w = other_idx[k]
                        if free[w] and not waiting[w]:
                            waiting[w] = True
                            queue[(head + filled) % n] = w
                            filled += 1
            for b in range(n_ball):  # those thrown are looked at last, so that their neighbors can follow
                if not waiting[ball[b]]:
                    waiting[ball[b]] = True
                    queue[(head + filled) % n] = ball[b]
                    filled += 1
        while filled > 0:
            v = queue[head]
            head = (head + 1) % n
            filled -= 1
            waiting[v] = False
            if n_log >= log_of.shape[0] and not first:
                continue
            best = state[v]
            for x in range(sizes[v]):
                if score[unary_ptr[v] + x] > score[unary_ptr[v] + best] + 1e-11:
                    best = x
            if best == state[v]:
                continue
            if not first:
                log_of[n_log], was[n_log] = v, state[v]
                n_log += 1
            gained += _change(v, best, var_ptr, base, own, other_ptr, other_idx, other_stride, logs, sizes,
                              unary_ptr, state, score)  # fmt: skip
            for i in range(var_ptr[v], var_ptr[v + 1]):
                for k in range(other_ptr[i], other_ptr[i + 1]):
                    w = other_idx[k]
                    if free[w] and not waiting[w]:
                        waiting[w] = True
                        queue[(head + filled) % n] = w
                        filled += 1
        if gained < -1e-10 and not first:
            for b in range(n_log - 1, -1, -1):
                gained += _change(log_of[b], was[b], var_ptr, base, own, other_ptr, other_idx, other_stride, logs,
                                  sizes, unary_ptr, state, score)  # fmt: skip
        gained_all += gained
        first = False
    return gained_all


@_jit
def forest_of(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor, order, inside):
    """Mark variables, taken in this order, whose factors join only parts not yet joined: given the rest, a forest."""
    parent, stamp = np.arange(var_ptr.shape[0] - 1), np.full(var_ptr.shape[0] - 1, -1, np.int64)
    member = np.full(scope_ptr.shape[0] - 1, -1, np.int64)
    inside[:] = False
    for i in range(order.shape[0]):
        v, fits = order[i], True
        for j in range(var_ptr[v], var_ptr[v + 1]):
            u = member[edge_factor[var_edge[j]]]
            if u >= 0:
                root = root_of(parent, u)
                if stamp[root] == v:
                    fits = False
                    break
                stamp[root] = v
        if not fits:
            continue
        inside[v] = True
        for j in range(var_ptr[v], var_ptr[v + 1]):
            f = edge_factor[var_edge[j]]
            if member[f] >= 0:
                parent[root_of(parent, member[f])] = v
            member[f] = v


@_jit
def grow_region(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor, inside, start, most):
    """Up to `most` variables that are `inside`, breadth first from `start`; `inside` is used up."""
    line = np.empty(most, np.int64)
    line[0], head, tail = start, 0, 1
    inside[start] = False
    while head < tail:
        v = line[head]
        head += 1
        for j in range(var_ptr[v], var_ptr[v + 1]):
            f = edge_factor[var_edge[j]]
            for e in range(scope_ptr[f], scope_ptr[f + 1]):
                u = scope_idx[e]
                if inside[u] and tail < most:
                    inside[u] = False
                    line[tail] = u
                    tail += 1
    return line[:tail].copy()


@_jit(no_cpython_wrapper=True)
def _best_cells(f, x_parent, e_parent, scope_ptr, scope_idx, value_ptr, logs, sizes, unary_ptr, inside, total, state,
                digit, step, edge, write):  # fmt: skip
    """The best of factor f plus the totals of its inside variables, with the parent on x_parent; `write` sets them."""
    n, at, s = 0, value_ptr[f], 1
    for e in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
        v = scope_idx[e]
        if e == e_parent:
            at += x_parent * s
        elif inside[v]:
            digit[n], step[n], edge[n] = 0, s, e
            n += 1
        else:
            at += state[v] * s
        s *= sizes[v]
    best = -np.inf
    value = 0.0
    while True:
        value = logs[at]
        for j in range(n):
            value += total[unary_ptr[scope_idx[edge[j]]] + digit[j]]
        if value > best:
            best = value
            if write:
                for j in range(n):
                    state[scope_idx[edge[j]]] = digit[j]
        j = 0
        while j < n:
            digit[j] += 1
            at += step[j]
            if digit[j] < sizes[scope_idx[edge[j]]]:
                break
            at -= step[j] * digit[j]
            digit[j] = 0
            j += 1
        if j == n:
            return best


@_jit
def forest_move(
    scope_ptr, scope_idx, value_ptr, logs, sizes, log_unary, unary_ptr, var_ptr, var_edge, edge_factor, inside, state,
    total,
):  # fmt: skip
    """Put the variables of a forest (`inside`) on the best states given all others. Cost: the cells left open."""
    n, widest = sizes.shape[0], 1
    for f in range(scope_ptr.shape[0] - 1):
        widest = max(widest, scope_ptr[f + 1] - scope_ptr[f])
    digit, step, edge = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest, np.int64)
    line, above = (
        np.empty(n, np.int64),
        np.full(n, -1, np.int64),
    )  # breadth-first order; edge of the parent, at the lead
    done, used = np.zeros(n, np.bool_), np.zeros(scope_ptr.shape[0] - 1, np.bool_)
    tail = 0
    for root in range(n):
        if not inside[root] or done[root]:
            continue
        done[root] = True
        head = tail
        line[tail] = root
        tail += 1
        while head < tail:
            v = line[head]
            head += 1
            for x in range(sizes[v]):
                total[unary_ptr[v] + x] = log_unary[unary_ptr[v] + x]
            for j in range(var_ptr[v], var_ptr[v + 1]):
                e = var_edge[j]
                f = edge_factor[e]
                if used[f]:
                    continue
                used[f] = True
                leader = True
                for k in range(scope_ptr[f], scope_ptr[f + 1]):
                    u = scope_idx[k]
                    if inside[u] and not done[u]:
                        done[u] = True
                        line[tail] = u
                        tail += 1
                        if leader:
                            above[u] = e
                            leader = False
                if leader:  # v alone: a row of the table
                    for x in range(sizes[v]):
                        total[unary_ptr[v] + x] += _best_cells(
                            f, x, e, scope_ptr, scope_idx, value_ptr, logs, sizes, unary_ptr, inside, total, state,
                            digit, step, edge, False,
                        )  # fmt: skip
    for i in range(tail - 1, -1, -1):
        e = above[line[i]]
        if e >= 0:
            v = scope_idx[e]
            for x in range(sizes[v]):
                total[unary_ptr[v] + x] += _best_cells(
                    edge_factor[e], x, e, scope_ptr, scope_idx, value_ptr, logs, sizes, unary_ptr, inside, total, state,
                    digit, step, edge, False,
                )  # fmt: skip
    placed = np.zeros(n, np.bool_)
    for i in range(tail):
        v, e = line[i], above[line[i]]
        if e >= 0:
            f = edge_factor[e]
            _best_cells(
                f, state[scope_idx[e]], e, scope_ptr, scope_idx, value_ptr, logs, sizes, unary_ptr, inside, total,
                state, digit, step, edge, True,
            )  # fmt: skip
            for k in range(scope_ptr[f], scope_ptr[f + 1]):
                placed[scope_idx[k]] = True
        elif not placed[v]:
            best = 0
            for x in range(sizes[v]):
                if total[unary_ptr[v] + x] > total[unary_ptr[v] + best]:
                    best = x
            state[v] = best


@_jit
def value_of(scope_ptr, scope_idx, value_ptr, logs, sizes, log_unary, unary_ptr, active, state):
    """The sum of all terms at the state."""
    total = 0.0
    for f in range(scope_ptr.shape[0] - 1):
        at = 0
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            at = at * sizes[scope_idx[e]] + state[scope_idx[e]]
        total += logs[value_ptr[f] + at]
    for v in range(sizes.shape[0]):
        if active[v]:
            total += log_unary[unary_ptr[v] + state[v]]
    return total
