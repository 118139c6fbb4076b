"""Greedy triangulation as Numba loops.

A graph is a matrix of bits: row ``v`` of ``adj`` holds the neighbors of node ``v``, 64 to a word, as uint64 of shape
(n, ceil(n/64)).  Families of sets (scopes, cliques) are CSR pairs ``(ptr, idx)`` of int64: set ``i`` is
``idx[ptr[i]:ptr[i+1]]``.  Nothing is checked here.  Memory is n²/8 bytes for ``adj`` (5 MB for 6,400 nodes).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.tree.bits import ONE, ZERO, Bits, bit, lowest_bit, popcount
from gramgraph._numerics.tree.heaps import IntVector, pop, sift_down, sift_up

MIN_FILL, MIN_WEIGHT, WEIGHTED_MIN_FILL = 0, 1, 2

# Sums of log sizes are kept in fixed point: integer sums do not drift when they are updated in place, so equal
# weights stay equal and ties are broken by index, not by rounding.
FIXED_POINT = 2.0**32
# Sizes enter the weighted fill as products; capped so that they cannot overflow.
MAX_LOG_SIZE = 40.0


# --- the interaction graph ----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, boundscheck=False)
def build_adjacency(n: int, scope_ptr: IntVector, scope_idx: IntVector, keep: NDArray[Any]) -> Bits:
    """Bit rows of the graph that links all pairs inside a scope; nodes with ``keep == 0`` take no part.

    Cost O(sum over scopes of k · min(k, n/64)) for scopes of k members.
    """
    words = (n + 63) >> 6
    adj = np.zeros((n, words), np.uint64)
    row = np.zeros(words, np.uint64)
    for s in range(len(scope_ptr) - 1):
        lo, hi = scope_ptr[s], scope_ptr[s + 1]
        if hi - lo <= words:
            for i in range(lo, hi):
                a = scope_idx[i]
                if keep[a]:
                    for j in range(i + 1, hi):
                        b = scope_idx[j]
                        if keep[b] and a != b:
                            adj[a, b >> 6] |= bit(b)
                            adj[b, a >> 6] |= bit(a)
        else:
            for w in range(words):
                row[w] = ZERO
            for i in range(lo, hi):
                a = scope_idx[i]
                if keep[a]:
                    row[a >> 6] |= bit(a)
            for i in range(lo, hi):
                a = scope_idx[i]
                if keep[a]:
                    for w in range(words):
                        adj[a, w] |= row[w]
                    adj[a, a >> 6] &= ~bit(a)
    return adj


# --- elimination --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _priority(mode: int, fill: int, weight: int, weighted_fill: float, noise: float) -> float:
    # A node whose neighbors are all linked costs nothing that can be avoided: it goes first in every mode.
    if fill == 0:
        return -np.inf
    if mode == 0:
        return fill + noise
    if mode == 1:
        return weight / FIXED_POINT + noise
    # Logarithm: same order without noise, and noise then means a relative change.
    return math.log1p(max(weighted_fill, 0.0)) + noise


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _size(log_size: float) -> float:
    """exp(log_size), exactly whole where it is whole up to rounding: sums of whole numbers do not drift."""
    size = math.exp(min(log_size, MAX_LOG_SIZE))
    whole = math.floor(size + 0.5)
    return whole if abs(size - whole) < 1e-9 * size else size


@njit(pauses=True, cache=True, nogil=True, boundscheck=False)
def eliminate(
    adj: Bits,  # (n, words), left unchanged
    log_sizes: NDArray[np.float64],  # (n,)
    keep: NDArray[Any],  # (n,) bool or uint8
    mode: int,
    noise: NDArray[np.float64],  # (n,)
) -> tuple[IntVector, IntVector, IntVector]:
    """Greedy elimination order and its cliques: ``(order, clique_ptr, clique_idx)``.

    ``mode`` 0 takes the node that adds the fewest edges, 1 the one with the lightest clique (sum of log sizes),
    2 the one whose added edges have the smallest sum of size products; nodes that add no edge always go first.
    ``noise`` is added to the number of edges (0), to the log size (1), or to log(1 + weighted fill) (2).  Remaining
    ties: lighter clique, then lower index.  Clique i is ``order[i]`` with its neighbors when it is eliminated,
    ascending.

    The counts are kept exact by increments.  When an edge a-b is added, each common neighbor loses one missing pair
    and a gains deg(a) - |common| missing pairs (b alike); when v goes, whose neighbors are then all linked, a
    neighbor u loses deg(u) - deg(v).  Cost O(n/64 + |common|) per added edge and O(d log n) per eliminated node of
    degree d.
    """
    n, words = adj.shape
    adj = adj.copy()
    ints = np.empty((12, n), np.int64)
    fill, degree, weight, log_weight, heap, pos = ints[0], ints[1], ints[2], ints[3], ints[4], ints[5]
    # `tie` is the weight as the heap knows it: `weight` changes for many nodes before the heap hears of it.
    tie, nbr, stamp, dirty = ints[6], ints[7], ints[8], ints[9]
    # Only words first[v]..last[v] of row v can be non-zero.
    first, last = ints[10], ints[11]
    floats = np.empty((4, n), np.float64)
    key, size_of, size_sum, weighted_fill = floats[0], floats[1], floats[2], floats[3]
    weighted = mode == 2

    kept = 0
    for v in range(n):
        pos[v] = -1
        stamp[v] = -1
        fill[v] = 0
        weighted_fill[v] = 0.0
        log_weight[v] = round(log_sizes[v] * FIXED_POINT)
        size_of[v] = _size(log_sizes[v]) if weighted else 1.0
        if not keep[v]:
            continue
        heap[kept] = v
        pos[v] = kept
        kept += 1
    for v in range(n):
        if not keep[v]:
            continue
        degree[v] = 0
        weight[v] = log_weight[v]
        size_sum[v] = 0.0
        first[v], last[v] = words, -1
        for w in range(words):
            x = adj[v, w]
            if x != ZERO:
                first[v] = min(first[v], w)
                last[v] = w
            while x != ZERO:
                u = (w << 6) + lowest_bit(x)
                x &= x - ONE
                degree[v] += 1
                weight[v] += log_weight[u]
                size_sum[v] += size_of[u]
    for a in range(n):
        if not keep[a]:
            continue
        for w in range(first[a], last[a] + 1):
            x = adj[a, w]
            while x != ZERO:
                b = (w << 6) + lowest_bit(x)
                x &= x - ONE
                if b < a:
                    continue
                common = 0
                common_size = 0.0
                for w2 in range(max(first[a], first[b]), min(last[a], last[b]) + 1):
                    y = adj[a, w2] & adj[b, w2]
                    common += popcount(y)
                    if weighted:
                        while y != ZERO:
                            common_size += size_of[(w2 << 6) + lowest_bit(y)]
                            y &= y - ONE
                # Missing pairs among the neighbors of a, each counted from both ends.
                fill[a] += degree[a] - 1 - common
                fill[b] += degree[b] - 1 - common
                if weighted:
                    weighted_fill[a] += size_of[b] * (size_sum[a] - size_of[b] - common_size)
                    weighted_fill[b] += size_of[a] * (size_sum[b] - size_of[a] - common_size)
    for i in range(kept):
        v = heap[i]
        fill[v] >>= 1
        weighted_fill[v] *= 0.5
        key[v] = _priority(mode, fill[v], weight[v], weighted_fill[v], noise[v])
        tie[v] = weight[v]
    for i in range(kept // 2 - 1, -1, -1):
        sift_down(heap, pos, kept, i, key, tie)

    order = np.empty(kept, np.int64)
    clique_ptr = np.zeros(kept + 1, np.int64)
    clique_idx = np.empty(8 * kept + 64, np.int64)
    used = 0
    for step in range(kept):
        v = pop(heap, pos, kept - step, key, tie)
        remaining = kept - step - 1
        order[step] = v
        d = 0
        for w in range(first[v], last[v] + 1):
            x = adj[v, w]
            while x != ZERO:
                nbr[d] = (w << 6) + lowest_bit(x)
                d += 1
                x &= x - ONE
        if used + d + 1 > len(clique_idx):
            longer = np.empty(2 * len(clique_idx) + d, np.int64)
            for i in range(used):
                longer[i] = clique_idx[i]
            clique_idx = longer
        i = 0
        while i < d and nbr[i] < v:
            clique_idx[used + i] = nbr[i]
            i += 1
        clique_idx[used + i] = v
        while i < d:
            clique_idx[used + i + 1] = nbr[i]
            i += 1
        used += d + 1
        clique_ptr[step + 1] = used

        n_dirty = 0
        if fill[v] > 0:
            for i in range(d):
                a = nbr[i]
                for w in range(a >> 6, last[v] + 1):
                    x = adj[v, w] & ~adj[a, w]
                    if w == a >> 6:  # only partners above a: each pair once
                        x &= ~(bit(a) | (bit(a) - ONE))
                    while x != ZERO:
                        b = (w << 6) + lowest_bit(x)
                        x &= x - ONE
                        common = 0
                        common_size = 0.0
                        for w2 in range(max(first[a], first[b]), min(last[a], last[b]) + 1):
                            y = adj[a, w2] & adj[b, w2]
                            while y != ZERO:
                                c = (w2 << 6) + lowest_bit(y)
                                y &= y - ONE
                                common += 1
                                fill[c] -= 1
                                if weighted:
                                    common_size += size_of[c]
                                    weighted_fill[c] -= size_of[a] * size_of[b]
                                if stamp[c] != step:
                                    stamp[c] = step
                                    dirty[n_dirty] = c
                                    n_dirty += 1
                        fill[a] += degree[a] - common
                        fill[b] += degree[b] - common
                        if weighted:
                            weighted_fill[a] += size_of[b] * (size_sum[a] - common_size)
                            weighted_fill[b] += size_of[a] * (size_sum[b] - common_size)
                            size_sum[a] += size_of[b]
                            size_sum[b] += size_of[a]
                        degree[a] += 1
                        degree[b] += 1
                        weight[a] += log_weight[b]
                        weight[b] += log_weight[a]
                        adj[a, b >> 6] |= bit(b)
                        adj[b, a >> 6] |= bit(a)
                        first[a] = min(first[a], b >> 6)
                        last[a] = max(last[a], b >> 6)
                        first[b] = min(first[b], a >> 6)
                        last[b] = max(last[b], a >> 6)
        for i in range(d):
            u = nbr[i]
            fill[u] -= degree[u] - d
            if weighted:
                weighted_fill[u] -= size_of[v] * (size_sum[u] - size_of[v] - (size_sum[v] - size_of[u]))
                size_sum[u] -= size_of[v]
            degree[u] -= 1
            weight[u] -= log_weight[v]
            adj[u, v >> 6] &= ~bit(v)
            if stamp[u] != step:
                stamp[u] = step
                dirty[n_dirty] = u
                n_dirty += 1
        for i in range(n_dirty):
            u = dirty[i]
            if pos[u] < 0:
                continue
            key[u] = _priority(mode, fill[u], weight[u], weighted_fill[u], noise[u])
            tie[u] = weight[u]
            sift_up(heap, pos, pos[u], key, tie)
            sift_down(heap, pos, remaining, pos[u], key, tie)
    return order, clique_ptr, clique_idx[:used].copy()
