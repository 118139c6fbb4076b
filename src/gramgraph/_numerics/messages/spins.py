"""Numba: max-product between two-state variables on any graph, one number a message.

Slot j of variable v (neighbor_ptr[v] ≤ j < neighbor_ptr[v + 1]) is its neighbor neighbor[j] with the coupling J[j];
back[j] is the slot of v at that neighbor. Messages are half log-odds, inbox[j] what has come through slot j.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def spin_graph(first, second, coupling, n):
    """(neighbor_ptr, neighbor, J, back) of the edges first[i] – second[i]."""
    ptr = np.zeros(n + 1, np.int64)
    for i in range(first.shape[0]):
        ptr[first[i] + 1] += 1
        ptr[second[i] + 1] += 1
    for v in range(n):
        ptr[v + 1] += ptr[v]
    place = ptr[:-1].copy()
    neighbor, back = np.empty(ptr[-1], np.int64), np.empty(ptr[-1], np.int64)
    J = np.empty(ptr[-1])
    for i in range(first.shape[0]):
        a, b = first[i], second[i]
        p, q = place[a], place[b]
        place[a] += 1
        place[b] += 1
        neighbor[p], back[p], J[p] = b, q, coupling[i]
        neighbor[q], back[q], J[q] = a, p, coupling[i]
    return ptr, neighbor, J, back


@_jit(no_cpython_wrapper=True)
def spins_in_breadth(ptr, neighbor):
    """All variables, each component from its first one outward."""
    n = ptr.shape[0] - 1
    order, seen, filled = np.empty(n, np.int64), np.zeros(n, np.bool_), 0
    for start in range(n):
        if seen[start]:
            continue
        seen[start] = True
        order[filled] = start
        at, filled = filled, filled + 1
        while at < filled:
            v = order[at]
            at += 1
            for j in range(ptr[v], ptr[v + 1]):
                if not seen[neighbor[j]]:
                    seen[neighbor[j]] = True
                    order[filled] = neighbor[j]
                    filled += 1
    return order


@_jit(no_cpython_wrapper=True)
def _settle(field, ptr, neighbor, J, spins, rounds):
    """Turn spins one by one while that improves; gives Σ J x_s x_t + Σ field x."""
    n = field.shape[0]
    for _ in range(rounds):
        moved = False
        for v in range(n):
            total = field[v]
            for j in range(ptr[v], ptr[v + 1]):
                total += J[j] * spins[neighbor[j]]
            if total * spins[v] < -1e-12:
                spins[v] = -spins[v]
                moved = True
        if not moved:
            break
    value = 0.0
    for v in range(n):
        total = field[v]
        for j in range(ptr[v], ptr[v + 1]):
            total += 0.5 * J[j] * spins[neighbor[j]]
        value += total * spins[v]
    return value


@_jit(no_cpython_wrapper=True)
def _send(field, ptr, J, back, order, damping, max_iter, tol, inbox):
    """Sweeps inward and outward through the order, until no message moves by more than tol; whether that happened."""
    n = field.shape[0]
    inbox[:] = 0.0
    for _ in range(max_iter):
        change = 0.0
        for i in range(2 * n):
            v = order[n - 1 - i] if i < n else order[i - n]
            total = field[v]
            for j in range(ptr[v], ptr[v + 1]):
                total += inbox[j]
            for j in range(ptr[v], ptr[v + 1]):
                c, to = abs(J[j]), back[j]
                new = max(-c, min(c, total - inbox[j]))
                new = (1.0 - damping) * (new if J[j] >= 0 else -new) + damping * inbox[to]
                change = max(change, abs(new - inbox[to]))
                inbox[to] = new
        if change <= tol:
            return True
    return False


@_jit
def best_spins(field, ptr, neighbor, J, back, damping, max_iter, tol, rounds):
    """Spins (-1.0 or +1.0) of a good assignment of Σ J x_s x_t + Σ field x: the best one on a tree.

    Sweeps through the breadth-first order: two of them on a tree; where there are loops anew and damped, as waves that
    run through a grid undamped end in worse assignments. Then each spin in this order takes its better side given those
    before it (which is back-tracking on a tree), or each the side of its own belief; both are improved by single turns,
    and the better one is taken.
    """
    n = field.shape[0]
    order, inbox = spins_in_breadth(ptr, neighbor), np.zeros(neighbor.shape[0])
    if not _send(field, ptr, J, back, order, 0.0, 2, tol, inbox):
        _send(field, ptr, J, back, order, damping, max_iter, tol, inbox)
    spins, alone = np.zeros(n), np.zeros(n)
    for i in range(n):
        v = order[i]
        given = belief = field[v]
        for j in range(ptr[v], ptr[v + 1]):
            x = spins[neighbor[j]]
            given += inbox[j] if x == 0 else J[j] * x
            belief += inbox[j]
        spins[v] = 1.0 if given > 0 else -1.0
        alone[v] = spins[v] if belief == 0 else np.sign(belief)
    first = _settle(field, ptr, neighbor, J, spins, rounds)
    second = _settle(field, ptr, neighbor, J, alone, rounds)
    return alone if second > first + 1e-9 * abs(first) else spins
