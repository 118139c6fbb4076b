"""Numba: guided local search. Terms that are bad at a local best are made worse there until single changes leave it."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.best.moves import _change, scores_of
from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit(no_cpython_wrapper=True)
def _cell(f, scope_ptr, scope_idx, value_ptr, sizes, state):
    at = 0
    for e in range(scope_ptr[f], scope_ptr[f + 1]):
        at = at * sizes[scope_idx[e]] + state[scope_idx[e]]
    return value_ptr[f] + at


@_jit
def tops_of(value_ptr, logs):
    """The largest entry of every table."""
    out = np.empty(value_ptr.shape[0] - 1)
    for f in range(out.shape[0]):
        out[f] = logs[value_ptr[f] : value_ptr[f + 1]].max()
    return out


@_jit
def guided_search(
    scope_ptr, scope_idx, value_ptr, logs, sizes, log_unary, unary_ptr, tops,
    variables, var_ptr, base, own, other_ptr, other_idx, other_stride,
    state, best_state, weights, alone, times, times_alone, rate, draws,
):  # fmt: skip
    """Go from `state` through a local best of the weighted sum of terms for each of `draws`; the best is put down.

    At each local best the terms with the largest loss / (1 + times) lose `rate` of their loss more, in the cell where
    they stand; those at least draws[round] times as large as the largest are taken. `weights` and `alone` are tables
    and single terms as they are weighted, `times` and `times_alone` count: all go on from call to call. `best_state`
    is the best of the true sum on the way, the first state counted; gives what it gained on that.
    """
    n = sizes.shape[0]
    score = np.zeros(alone.shape[0])
    scores_of(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, weights, sizes, alone, unary_ptr,
              state, score)  # fmt: skip
    free = np.zeros(n, np.bool_)
    queue, waiting = np.empty(n, np.int64), np.zeros(n, np.bool_)
    head, filled = 0, 0
    for j in range(variables.shape[0]):
        v = variables[j]
        free[v], waiting[v] = True, True
        queue[filled] = v
        filled += 1
    put(state, best_state)
    gained, best = 0.0, 0.0
    n_factors = scope_ptr.shape[0] - 1
    for turn in range(draws.shape[0]):
        moves = 0
        while filled > 0:
            v = queue[head]
            head = (head + 1) % n
            filled -= 1
            waiting[v] = False
            u0 = unary_ptr[v]
            x = y = state[v]
            for z in range(sizes[v]):
                if score[u0 + z] > score[u0 + y] + 1e-11:
                    y = z
            if x == y:
                continue
            gained += log_unary[u0 + y] - log_unary[u0 + x]
            for i in range(var_ptr[v], var_ptr[v + 1]):
                at = base[i]
                for k in range(other_ptr[i], other_ptr[i + 1]):
                    at += state[other_idx[k]] * other_stride[k]
                    w = other_idx[k]
                    if free[w] and not waiting[w]:
                        waiting[w] = True
                        queue[(head + filled) % n] = w
                        filled += 1
                gained += logs[at + y * own[i]] - logs[at + x * own[i]]
            _change(v, y, var_ptr, base, own, other_ptr, other_idx, other_stride, weights, sizes, unary_ptr, state,
                    score)  # fmt: skip
            moves += 1
            if gained > best + 1e-9 and moves % 64 == 0:
                best = gained
                put(state, best_state)
        if gained > best + 1e-9:
            best = gained
            put(state, best_state)
        worst = 0.0
        for f in range(n_factors):
            c = _cell(f, scope_ptr, scope_idx, value_ptr, sizes, state)
            loss = (tops[f] - logs[c]) / (1.0 + times[c])
            worst = max(worst, loss)
        for j in range(variables.shape[0]):
            u0 = unary_ptr[variables[j]]
            top = log_unary[u0]
            for z in range(1, sizes[variables[j]]):
                top = max(top, log_unary[u0 + z])
            c = u0 + state[variables[j]]
            worst = max(worst, (top - log_unary[c]) / (1.0 + times_alone[c]))
        if worst <= 1e-12:
            break
        for f in range(n_factors):
            c = _cell(f, scope_ptr, scope_idx, value_ptr, sizes, state)
            loss = tops[f] - logs[c]
            if loss / (1.0 + times[c]) >= worst * draws[turn]:
                times[c] += 1.0
                weights[c] -= rate * loss
                for e in range(scope_ptr[f], scope_ptr[f + 1]):
                    u = scope_idx[e]
                    score[unary_ptr[u] + state[u]] -= rate * loss
                    if free[u] and not waiting[u]:
                        waiting[u] = True
                        queue[(head + filled) % n] = u
                        filled += 1
        for j in range(variables.shape[0]):
            v = variables[j]
            u0 = unary_ptr[v]
            top = log_unary[u0]
            for z in range(1, sizes[v]):
                top = max(top, log_unary[u0 + z])
            c = u0 + state[v]
            loss = top - log_unary[c]
            if loss / (1.0 + times_alone[c]) >= worst * draws[turn]:
                times_alone[c] += 1.0
                alone[c] -= rate * loss
                score[c] -= rate * loss
                if not waiting[v]:
                    waiting[v] = True
                    queue[(head + filled) % n] = v
                    filled += 1
    return best
