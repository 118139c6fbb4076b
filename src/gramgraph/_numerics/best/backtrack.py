"""Numba: an assignment without zeros by backtracking: zeros are followed through the tables after every choice.

States that no allowed cell of some table holds are taken away (generalized arc consistency). The variable with fewest
states for the conflicts of its tables so far is chosen next (dom/wdeg); after some conflicts the search begins anew,
with what was learned about the tables.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit(no_cpython_wrapper=True)
def _revise(f, scope_ptr, scope_idx, value_ptr, allowed, sizes, unary_ptr, alive, held, digit):
    """held[place, state] = whether an allowed cell of table f whose states are all alive holds it."""
    a, k = scope_ptr[f], scope_ptr[f + 1] - scope_ptr[f]
    for j in range(k):
        digit[j] = 0
        for x in range(sizes[scope_idx[a + j]]):
            held[j, x] = False
    for c in range(value_ptr[f], value_ptr[f + 1]):
        if allowed[c]:
            fits = True
            for j in range(k):
                if not alive[unary_ptr[scope_idx[a + j]] + digit[j]]:
                    fits = False
                    break
            if fits:
                for j in range(k):
                    held[j, digit[j]] = True
        j = k - 1
        while j >= 0:
            digit[j] += 1
            if digit[j] < sizes[scope_idx[a + j]]:
                break
            digit[j] = 0
            j -= 1


@_jit(no_cpython_wrapper=True)
def _enqueue(v, var_ptr, var_edge, edge_factor, queue, waiting, head, filled):
    for j in range(var_ptr[v], var_ptr[v + 1]):
        f = edge_factor[var_edge[j]]
        if not waiting[f]:
            waiting[f] = True
            queue[(head + filled) % queue.shape[0]] = f
            filled += 1
    return filled


@_jit(no_cpython_wrapper=True)
def _undo(to, n_trail, trail, owner, alive, left):
    """Give back what was taken away after place `to` of the trail."""
    while n_trail > to:
        n_trail -= 1
        alive[trail[n_trail]] = True
        left[owner[trail[n_trail]]] += 1
    return n_trail


@_jit
def backtrack(
    scope_ptr, scope_idx, value_ptr, allowed, sizes, unary_ptr, var_ptr, var_edge, edge_factor, alive, liked, weight,
    most, state,
):  # fmt: skip
    """1 with an assignment in `state`, -1 when there is none, 0 after `most` conflicts.

    `alive` marks possible states; those that turn out to be impossible whatever is chosen are taken away. Of the states
    of a variable the one that is `liked` most is tried first. `weight` counts the conflicts of the tables.
    """
    n, n_factors = sizes.shape[0], scope_ptr.shape[0] - 1
    widest = 1
    for f in range(n_factors):
        widest = max(widest, scope_ptr[f + 1] - scope_ptr[f])
    held, digit = np.zeros((widest, sizes.max()), np.bool_), np.zeros(widest, np.int64)
    queue, waiting = np.empty(max(n_factors, 1), np.int64), np.zeros(max(n_factors, 1), np.bool_)
    trail, n_trail = np.empty(alive.shape[0], np.int64), 0  # columns taken away, in order
    owner, left = np.empty(alive.shape[0], np.int64), np.zeros(n, np.int64)
    mark, chosen, level = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), 0
    for v in range(n):
        for x in range(sizes[v]):
            owner[unary_ptr[v] + x] = v
            left[v] += alive[unary_ptr[v] + x]
        if left[v] == 0:
            return -1
    head, filled, conflicts = 0, 0, 0
    for f in range(n_factors):
        queue[f], waiting[f] = f, True
    filled = n_factors
    while True:
        failed = -1
        while filled > 0:
            f = queue[head]
            head = (head + 1) % queue.shape[0]
            filled -= 1
            waiting[f] = False
            if failed >= 0:
                continue
            _revise(f, scope_ptr, scope_idx, value_ptr, allowed, sizes, unary_ptr, alive, held, digit)
            for j in range(scope_ptr[f + 1] - scope_ptr[f]):
                v = scope_idx[scope_ptr[f] + j]
                lost = False
                for x in range(sizes[v]):
                    c = unary_ptr[v] + x
                    if alive[c] and not held[j, x]:
                        alive[c] = False
                        trail[n_trail] = c
                        n_trail += 1
                        left[v] -= 1
                        lost = True
                if left[v] == 0:
                    failed = f
                    break
                if lost:
                    filled = _enqueue(v, var_ptr, var_edge, edge_factor, queue, waiting, head, filled)
        if failed >= 0:
            weight[failed] += 1.0
            conflicts += 1
            if level == 0:
                return -1
            if conflicts >= most:
                level = 0
                _undo(mark[0], n_trail, trail, owner, alive, left)
                return 0
            again = True
            while again:  # the last choice was wrong; if that leaves its variable nothing, so was the one before
                if level == 0:
                    return -1
                level -= 1
                n_trail = _undo(mark[level], n_trail, trail, owner, alive, left)
                c = chosen[level]
                v = owner[c]
                alive[c] = False
                trail[n_trail] = c
                n_trail += 1
                left[v] -= 1
                again = left[v] == 0
            filled = _enqueue(v, var_ptr, var_edge, edge_factor, queue, waiting, head, filled)
            continue
        best, least = -1, np.inf
        for v in range(n):
            if left[v] > 1:
                heavy = 1e-3
                for j in range(var_ptr[v], var_ptr[v + 1]):
                    heavy += weight[edge_factor[var_edge[j]]]
                if left[v] / heavy < least:
                    best, least = v, left[v] / heavy
        if best < 0:
            break
        top = -1
        for x in range(sizes[best]):
            c = unary_ptr[best] + x
            if alive[c] and (top < 0 or liked[c] > liked[top]):
                top = c
        mark[level], chosen[level] = n_trail, top
        level += 1
        for x in range(sizes[best]):
            c = unary_ptr[best] + x
            if alive[c] and c != top:
                alive[c] = False
                trail[n_trail] = c
                n_trail += 1
        left[best] = 1
        filled = _enqueue(best, var_ptr, var_edge, edge_factor, queue, waiting, head, filled)
    for v in range(n):
        for x in range(sizes[v]):
            if alive[unary_ptr[v] + x]:
                state[v] = x
    if level > 0:
        _undo(mark[0], n_trail, trail, owner, alive, left)
    return 1
