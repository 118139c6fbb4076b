"""Numba: belief propagation where every factor joins two variables with the same number of states.

Variables u = edges[e, 0] and v = edges[e, 1] share the table psi[e] (K, K); messages[e, 0] goes to u, messages[e, 1] to
v. Messages are odds against the last state, so none is ever scaled. A variable keeps the product of all that it hears;
what it says through an edge is that product without what came through it, so a message costs K² multiplications
and 2 K − 1 divisions, whatever the number of neighbors. Tables are positive, and neither so extreme nor so many at a
variable that products of odds leave the range of doubles.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)
#: From this share of the sweeps on, messages that still move are damped by half.
LATE, LATE_DAMPING = 0.5, 0.5


@_jit(no_cpython_wrapper=True)
def hear_all(edges, unary, messages, products):
    """products[v] = unary[v] · all messages to v."""
    K = unary.shape[1]
    products[:] = unary
    for e in range(edges.shape[0]):
        for end in range(2):
            v = edges[e, end]
            for x in range(K - 1):
                products[v, x] *= messages[e, end, x]


@_jit(no_cpython_wrapper=True)
def _pass(edges, psi, messages, products, end, damping):
    """Renew all messages to this `end` of the edges, last edge first where it is the first end: the largest change."""
    m, last = edges.shape[0], products.shape[1] - 1
    said, new = np.empty(last + 1), np.empty(last + 1)
    largest = 0.0
    for i in range(m):
        e = m - 1 - i if end == 0 else i
        u, v = edges[e, 1 - end], edges[e, end]
        for x in range(last):
            said[x] = products[u, x] / messages[e, 1 - end, x]
        said[last] = products[u, last]
        for y in range(last + 1):
            total = 0.0
            for x in range(last + 1):
                total += said[x] * (psi[e, y, x] if end == 0 else psi[e, x, y])
            new[y] = total
        scale = 1.0 / new[last]
        for y in range(last):
            old = messages[e, end, y]
            value = (1.0 - damping) * new[y] * scale + damping * old
            change = value / old
            largest = max(largest, abs(change - 1.0))
            products[v, y] *= change
            messages[e, end, y] = value
    return largest


def _work(*args):
    """Cells of the tables, as often as there are sweeps; most settle within a few dozen."""
    psi, max_iter = args[1], args[6]
    return 2 * psi.size * min(max_iter, 30)


@_jit(work=_work)
def propagate_pairs(edges, psi, unary, messages, products, damping, max_iter, tol):
    """Pass messages forth and back through the edges until none moves by more than tol: (sweeps, settled).

    Exact on trees. unary (n, K) has ones in its last column. Negative damping: none at first, then LATE_DAMPING.
    """
    for sweep in range(max_iter):
        d = damping
        if damping < 0:
            d = LATE_DAMPING if sweep >= LATE * max_iter else 0.0
        hear_all(edges, unary, messages, products)  # once a sweep, so that rounding does not add up
        moved = _pass(edges, psi, messages, products, 1, d)
        moved = max(moved, _pass(edges, psi, messages, products, 0, d))
        if moved <= tol:
            return sweep + 1, True
    return max_iter, False


def _work_of_rounds(*args):
    """Cells of the tables, forth and back in every round."""
    psi, rounds = args[1], args[3]
    return 2 * psi.size * rounds


@_jit(work=_work_of_rounds)
def rounds_of_pairs(edges, psi, unary, rounds, messages, products, trace):
    """So many sweeps of `propagate_pairs`, settled or not; trace (2 · rounds, m, K − 1) keeps what each message was."""
    last = unary.shape[1] - 1
    hear_all(edges, unary, messages, products)
    for step in range(2 * rounds):
        end = 1 - step % 2
        for e in range(edges.shape[0]):
            for y in range(last):
                trace[step, e, y] = messages[e, end, y]
        _pass(edges, psi, messages, products, end, 0.0)


@_jit(work=_work_of_rounds)
def rounds_of_pairs_pull(edges, psi, unary, rounds, messages, products, trace, bar_products, bar_psi):
    """The reverse of `rounds_of_pairs`, which is undone on the way.

    bar_products (n, K − 1), the slope for the logs of the products at the end, becomes that for the logs of `unary`;
    the slope for the logs of `psi` is added to bar_psi.
    """
    m, last = edges.shape[0], unary.shape[1] - 1
    bar_messages = np.zeros((m, 2, last))
    said, bar_said, bar_new = np.empty(last + 1), np.empty(last + 1), np.empty(last + 1)
    for step in range(2 * rounds - 1, -1, -1):
        end = 1 - step % 2
        for i in range(m):
            e = i if end == 0 else m - 1 - i
            u, v = edges[e, 1 - end], edges[e, end]
            bar_new[last] = 0.0
            for y in range(last):
                old = trace[step, e, y]
                products[v, y] *= old / messages[e, end, y]
                messages[e, end, y] = old
                bar_new[y] = bar_products[v, y] + bar_messages[e, end, y]
                bar_new[last] -= bar_new[y]
                bar_messages[e, end, y] = -bar_products[v, y]
            for x in range(last):
                said[x] = products[u, x] / messages[e, 1 - end, x]
            said[last] = products[u, last]
            bar_said[:] = 0.0
            for y in range(last + 1):
                total = 0.0
                for x in range(last + 1):
                    total += said[x] * (psi[e, y, x] if end == 0 else psi[e, x, y])
                slope = bar_new[y] / total
                for x in range(last + 1):
                    part = slope * said[x] * (psi[e, y, x] if end == 0 else psi[e, x, y])
                    bar_said[x] += part
                    if end == 0:
                        bar_psi[e, y, x] += part
                    else:
                        bar_psi[e, x, y] += part
            for x in range(last):
                bar_products[u, x] += bar_said[x]
                bar_messages[e, 1 - end, x] -= bar_said[x]


@_jit
def conclude_pairs(edges, psi, unary, messages, nodes, beliefs):
    """log Z of Bethe; beliefs[e] of the pairs and nodes[v] of the variables, from messages that have settled.

    log Z = Σ_v log Σ φ Π m + Σ_e log (Σ said · ψ · said / Π_ends Σ said · m), and where `said` is the product of what a
    variable hears over m, Σ said · m is the sum of that product.
    """
    n, K = unary.shape
    hear_all(edges, unary, messages, nodes)
    log_z = 0.0
    for v in range(n):
        total = 0.0
        for x in range(K):
            total += nodes[v, x]
        for x in range(K):
            nodes[v, x] /= total
        log_z += np.log(total)
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        total = 0.0
        for x in range(K):
            for y in range(K):
                value = nodes[u, x] / messages[e, 0, x] * psi[e, x, y] * nodes[v, y] / messages[e, 1, y]
                beliefs[e, x, y] = value
                total += value
        for x in range(K):
            for y in range(K):
                beliefs[e, x, y] /= total
        log_z += np.log(total)
    return log_z
