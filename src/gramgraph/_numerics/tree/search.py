"""Numba: the search for an elimination order whose junction tree has few cells.

Graphs are rows of bits, and families of cliques CSR pairs ``(ptr, idx)``, as in `triangulation`.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.tree.bits import ONE, ZERO, bit, lowest_bit, popcount
from gramgraph._numerics.tree.clique_forests import maximal_cliques, total_log_size
from gramgraph._numerics.tree.triangulation import eliminate

MAX_SEARCH_SECONDS = 0.4
#: Restarts save a factor of a few hundred at most: beyond this no tree will fit in memory.
HOPELESS_LOG_CELLS = 32.0
#: Trees with more than exp(this) cells are worth some restarts, however quickly they answer: so many seconds, and so
#: many tries on the whole graph.
SEARCHED_LOG_CELLS, LEAST_SECONDS, LEAST_TRIES = 8.0, 5e-5, 0.5
#: Rules with amounts of noise, each tried a few times; the two that do best on average get all further tries.
RESTART_RULES = np.array([0, 0, 1, 1, 2, 2, 2])
RESTART_NOISE = np.array([0.5, 3.0, 0.7, 3.0, 0.3, 0.7, 1.5])
#: The cores that are tried after the whole graph: what the best order leaves where the first clique is made that is
#: smaller than the largest by a factor of exp(this) at most.
CORES = np.array([7.0, 3.0])
#: Seconds that a greedy order takes, and for a node of the whole graph, and of a core, whose nodes have many neighbors.
LEAST_TRY, NODE_SECONDS, CORE_SECONDS = 5e-6, 0.7e-6, 1.8e-6


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def log_sum(a, b):
    """log(exp(a) + exp(b)) without overflow; either may be -inf."""
    if a == -np.inf:
        return b
    top = max(a, b)
    return top + np.log(np.exp(a - top) + np.exp(b - top))


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def count_edges(adjacency):
    """Number of edges of a graph in rows of bits."""
    ends = 0
    for v in range(adjacency.shape[0]):
        for w in range(adjacency.shape[1]):
            ends += popcount(adjacency[v, w])
    return ends // 2


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def core_of(adjacency, order, ptr, idx, log_sizes, ids, below):
    """What an order leaves of a graph where its large cliques begin: (1 for the steps that are in the core, its nodes
    ascending, its graph, their log sizes and their `ids`). A large clique is smaller than the largest by a factor of
    exp(below) at most; those of the first nodes whose neighbors are all linked do not count: no order does better.

    The nodes outside the core leave before any large clique is made of what they link. They may all leave first, and
    their cliques stay what they are: a clique depends on the steps below it in the elimination tree alone.
    """
    n, m = adjacency.shape[0], order.shape[0]
    step = np.full(n, m, np.int64)
    logs = np.zeros(m, np.float64)
    row = np.zeros(adjacency.shape[1], np.uint64)
    free = 0
    linked = True
    while linked and free < m:
        for j in range(ptr[free], ptr[free + 1]):
            row[idx[j] >> 6] |= bit(idx[j])
        for j in range(ptr[free], ptr[free + 1]):
            for w in range(row.shape[0]):
                if row[w] & ~adjacency[idx[j], w] & ~(bit(idx[j]) if w == idx[j] >> 6 else ZERO) != ZERO:
                    linked = False
        for j in range(ptr[free], ptr[free + 1]):
            row[idx[j] >> 6] = ZERO
        free += 1 if linked else 0
    peak = 0.0
    for i in range(m):
        step[order[i]] = i
        for j in range(ptr[i], ptr[i + 1]):
            logs[i] += log_sizes[idx[j]]
        if i >= free:
            peak = max(peak, logs[i])
    inside = np.zeros(m + 1, np.uint8)
    parent = np.full(m, m, np.int64)
    k = 0
    for i in range(m):
        for j in range(ptr[i], ptr[i + 1]):
            s = step[idx[j]]
            if i < s < parent[i]:
                parent[i] = s
        if inside[i] or (i >= free and logs[i] > peak - below):
            inside[i] = 1
            inside[parent[i]] = 1
            k += 1
    nodes, core_ids, core_sizes = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.float64)
    place = np.full(n, -1, np.int64)
    k = 0
    for v in range(n):
        if step[v] < m and inside[step[v]]:
            nodes[k], core_ids[k], core_sizes[k] = v, ids[v], log_sizes[v]
            place[v] = k
            k += 1
    rows = np.zeros((k, (k + 63) >> 6), np.uint64)
    for a in range(k):
        for w in range(adjacency.shape[1]):
            x = adjacency[nodes[a], w]
            while x != ZERO:
                b = place[(w << 6) + lowest_bit(x)]
                x &= x - ONE
                if b >= 0:
                    rows[a, b >> 6] |= bit(b)
    for i in range(m):
        if inside[i] == 0 and inside[parent[i]] == 1:  # what other steps link lies in the cliques of these
            for j in range(ptr[i], ptr[i + 1]):
                a = place[idx[j]]
                for q in range(j + 1, ptr[i + 1]):
                    b = place[idx[q]]
                    if a >= 0 and b >= 0:
                        rows[a, b >> 6] |= bit(b)
                        rows[b, a >> 6] |= bit(a)
    return inside, nodes, rows, core_sizes, core_ids


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def restart(adjacency, log_sizes, keep, nodes, n, log_before, tries):
    """The best of so many orders with noise: (order, clique_ptr, clique_idx, rule).

    The noise of a node is the same whatever else is in the graph, so that similar graphs have similar orders.
    """
    n_ways = RESTART_RULES.shape[0]
    random = np.uint64(88172645463325252)
    noise = np.zeros(log_sizes.shape[0], np.float64)
    sum_of = np.zeros(n_ways, np.float64)
    order, ptr, idx = nodes[:0], nodes[:0], nodes[:0]
    best = np.inf
    rule = 0
    first = 0
    second = 1
    for attempt in range(tries):
        if attempt < 4 * n_ways:
            way = attempt % n_ways
        else:
            if attempt == 4 * n_ways:
                if sum_of[1] < sum_of[0]:
                    first, second = 1, 0
                for other_way in range(2, n_ways):
                    if sum_of[other_way] < sum_of[first]:
                        first, second = other_way, first
                    elif sum_of[other_way] < sum_of[second]:
                        second = other_way
            way = second if attempt % 3 == 0 else first
        at = 0
        for v in range(n):
            random ^= random << np.uint64(13)  # xorshift
            random ^= random >> np.uint64(7)
            random ^= random << np.uint64(17)
            if at < nodes.shape[0] and nodes[at] == v:
                noise[at] = RESTART_NOISE[way] * (np.float64(random >> np.uint64(11)) / 9007199254740992.0)
                at += 1
        other, other_ptr, other_idx = eliminate(adjacency, log_sizes, keep, RESTART_RULES[way], noise)
        sum_of[way] += log_sum(log_before, total_log_size(other_ptr, other_idx, log_sizes))
        clique_ptr, clique_idx = maximal_cliques(other, other_ptr, other_idx)
        size = total_log_size(clique_ptr, clique_idx, log_sizes)
        if size < best - 1e-9:
            order, ptr, idx, best, rule = other, other_ptr, other_idx, size, RESTART_RULES[way]
    return order, ptr, idx, rule


@njit(restarts=True, cache=True, nogil=True)
def search_order(adjacency, log_sizes, keep, nodes, n, log_before, cases, seconds_per_cell):
    """The best of three greedy orders and of randomized restarts: (order, clique_ptr, clique_idx, rule, restarted).

    The graph may be what is left of one with `n` nodes: `nodes` says which of them, ascending, and `log_before` is the
    log of the cells of the cliques that are already made. Restarts begin with the whole graph and go on with the cores
    of the best order: there a try takes little, and cells are to be saved. How many they are follows from sizes alone,
    never from a clock: the same model gives the same tree.
    """
    noise = np.zeros(log_sizes.shape[0], np.float64)
    order, ptr, idx = eliminate(adjacency, log_sizes, keep, 0, noise)
    if idx.shape[0] - order.shape[0] == count_edges(adjacency):  # none was added: every tree has these cliques
        return order, ptr, idx, 0, False
    best = log_sum(log_before, total_log_size(ptr, idx, log_sizes))
    rule = 0
    for mode in range(1, 3):
        if best > 2 * HOPELESS_LOG_CELLS:  # no rule makes up for that: the numbers say how far out of reach it is
            break
        other, other_ptr, other_idx = eliminate(adjacency, log_sizes, keep, mode, noise)
        size = log_sum(log_before, total_log_size(other_ptr, other_idx, log_sizes))
        if size < best - 1e-9:
            order, ptr, idx, best, rule = other, other_ptr, other_idx, size, mode
    whole_try = LEAST_TRY + NODE_SECONDS * n
    seconds = 0.2 * seconds_per_cell * np.exp(min(best, 50.0)) * min(cases, 1000)
    if best > SEARCHED_LOG_CELLS:
        seconds += LEAST_SECONDS + LEAST_TRIES * whole_try
    seconds = min(seconds, MAX_SEARCH_SECONDS)
    if cases == 0 or best >= HOPELESS_LOG_CELLS or seconds < LEAST_TRY:
        return order, ptr, idx, rule, False
    restarted = False
    clique_ptr, clique_idx = maximal_cliques(order, ptr, idx)
    best = total_log_size(clique_ptr, clique_idx, log_sizes)
    levels = CORES.shape[0]
    tries = int(seconds / (levels + 1) / whole_try)
    seconds -= tries * whole_try
    for level in range(-1, levels):
        if level < 0:
            if tries == 0:
                continue
            other, other_ptr, other_idx, way = restart(adjacency, log_sizes, keep, nodes, n, log_before, tries)
        else:
            inside, core, rows, core_sizes, ids = core_of(adjacency, order, ptr, idx, log_sizes, nodes, CORES[level])
            one_try = LEAST_TRY + CORE_SECONDS * core.shape[0]
            tries = int(seconds / (levels - level) / one_try)
            seconds -= tries * one_try
            if tries == 0:
                continue
            every = np.full(core.shape[0], 1, np.uint8)
            found, found_ptr, found_idx, way = restart(rows, core_sizes, every, ids, n, -np.inf, tries)
            m = order.shape[0]
            other, other_ptr = np.empty(m, np.int64), np.zeros(m + 1, np.int64)
            other_idx = np.empty(idx.shape[0] + found_idx.shape[0], np.int64)
            at, used = 0, 0
            for i in range(m):  # the steps outside the core as they were, and then those of another order of it
                if inside[i] == 0:
                    for j in range(ptr[i], ptr[i + 1]):
                        other_idx[used] = idx[j]
                        used += 1
                    other[at] = order[i]
                    at += 1
                    other_ptr[at] = used
            for i in range(core.shape[0]):
                for j in range(found_ptr[i], found_ptr[i + 1]):
                    other_idx[used] = core[found_idx[j]]
                    used += 1
                other[at] = core[found[i]]
                at += 1
                other_ptr[at] = used
            other_idx = other_idx[:used].copy()
        clique_ptr, clique_idx = maximal_cliques(other, other_ptr, other_idx)
        size = total_log_size(clique_ptr, clique_idx, log_sizes)
        if size < best - 1e-9:
            order, ptr, idx, best, rule, restarted = other, other_ptr, other_idx, size, way, True
    return order, ptr, idx, rule, restarted
