"""Numba: greedy elimination on lists of neighbors, for graphs too large for rows of bits.

The orders are those of `triangulation.eliminate`, to the last tie. A graph is a CSR pair ``(ptr, idx)`` with ``idx`` in
int32: node ``v`` has the neighbors ``idx[ptr[v]:ptr[v+1]]``. Memory grows with the number of edges, not of pairs.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put
from gramgraph._numerics.tree.heaps import IntVector, pop, sift_down, sift_up
from gramgraph._numerics.tree.triangulation import FIXED_POINT, _priority, _size

#: How an elimination ended: no node is left; none of those left is free of fill; a clique became too heavy; the lists
#: outgrew their room.
ALL_GONE, NEEDS_FILL, TOO_HEAVY, NO_ROOM = 0, 1, 2, 3


@njit(cache=True, nogil=True, boundscheck=False)
def neighbor_lists(
    n: int, scope_ptr: IntVector, scope_idx: IntVector, keep: NDArray[Any]
) -> tuple[IntVector, NDArray[np.int32]]:
    """CSR lists of the graph that links all pairs inside a scope, each neighbor once; nodes with ``keep == 0`` take no
    part.

    Cost O(sum over scopes of k²) for scopes of k members; memory for the links that there are, not for repeated ones.
    """
    m = len(scope_ptr) - 1
    where_ptr = np.zeros(n + 1, np.int64)
    for j in range(len(scope_idx)):
        where_ptr[scope_idx[j] + 1] += 1
    for v in range(n):
        where_ptr[v + 1] += where_ptr[v]
    where = np.empty(len(scope_idx), np.int32)
    for s in range(m - 1, -1, -1):  # backwards, so that the pointers end where they began
        for j in range(scope_ptr[s], scope_ptr[s + 1]):
            v = scope_idx[j]
            where_ptr[v + 1] -= 1
            where[where_ptr[v + 1]] = s
    mark = np.full(n, -1, np.int32)
    ptr = np.zeros(n + 1, np.int64)
    idx = np.empty(0, np.int32)
    for sweep in range(2):  # count, then fill
        used = 0
        for v in range(n):
            lo = where_ptr[v + 1]
            hi = where_ptr[v + 2] if v + 2 <= n else len(scope_idx)
            token = v + sweep * n
            mark[v] = token
            if keep[v]:
                for q in range(lo, hi):
                    s = where[q]
                    for j in range(scope_ptr[s], scope_ptr[s + 1]):
                        u = scope_idx[j]
                        if keep[u] and mark[u] != token:
                            mark[u] = token
                            if sweep:
                                idx[used] = u
                            used += 1
            ptr[v + 1] = used
        if sweep == 0:
            idx = np.empty(used, np.int32)
    return ptr, idx


@njit(restarts=True, cache=True, nogil=True, boundscheck=False)
def eliminate_sparse(
    ptr: IntVector,
    idx: NDArray[np.int32],
    log_sizes: NDArray[np.float64],  # (n,)
    keep: NDArray[Any],  # (n,) bool or uint8; linked nodes are kept
    mode: int,
    only_simplicial: bool,
    max_log_size: float,
    max_links: int,
) -> tuple[int, IntVector, IntVector, IntVector]:
    """Greedy elimination order and its cliques: ``(end, order, clique_ptr, clique_idx)``.

    Rules, ties and counts are those of `triangulation.eliminate` without noise. With ``only_simplicial`` it stops
    before the first node whose elimination would add an edge: what is then left needs a search, and what is gone does
    not depend on it. It also stops at a clique whose log size exceeds ``max_log_size``, and when the lists of neighbors
    would hold more than ``max_links`` entries.

    Lists may name nodes that are gone; they are dropped when the list is read. Cost O(sum of degrees of v's neighbors)
    for each eliminated node v that adds edges and O(deg(b)) for each added edge a-b, beside O(d log n) for the heap; at
    the start O(smaller degree) for each edge.
    """
    n = len(ptr) - 1
    weighted = mode == 2
    fill = np.zeros(n, np.int64)
    degree = np.zeros(n, np.int64)
    weight = np.zeros(n, np.int64)
    log_weight = np.empty(n, np.int64)
    heap = np.empty(n, np.int64)
    pos = np.full(n, -1, np.int64)
    tie = np.empty(n, np.int64)
    key = np.empty(n, np.float64)
    size_of = np.ones(n if weighted else 1)
    size_sum = np.zeros(n if weighted else 1)
    weighted_fill = np.zeros(n if weighted else 1)
    mark = np.full(n, -1, np.int64)  # the node, or the pair of step and node, whose neighbors are marked
    gone = np.zeros(n, np.uint8)
    for v in range(n):
        log_weight[v] = round(log_sizes[v] * FIXED_POINT)
        if weighted:
            size_of[v] = _size(log_sizes[v])
    kept = 0
    for v in range(n):
        if not keep[v]:
            continue
        heap[kept] = v
        pos[v] = kept
        kept += 1
        degree[v] = ptr[v + 1] - ptr[v]
        weight[v] = log_weight[v]
        for j in range(ptr[v], ptr[v + 1]):
            weight[v] += log_weight[idx[j]]
            if weighted:
                size_sum[v] += size_of[idx[j]]
    for a in range(n):
        if not keep[a]:
            continue
        for j in range(ptr[a], ptr[a + 1]):
            mark[idx[j]] = a
        for j in range(ptr[a], ptr[a + 1]):
            b = idx[j]
            # each edge once, from the end with more neighbors: the hub of a star is not read again for every leaf
            if degree[b] > degree[a] or (degree[b] == degree[a] and b > a):
                continue
            common = 0
            common_size = 0.0
            for i in range(ptr[b], ptr[b + 1]):
                if mark[idx[i]] == a:
                    common += 1
                    if weighted:
                        common_size += size_of[idx[i]]
            fill[a] += degree[a] - 1 - common
            fill[b] += degree[b] - 1 - common
            if weighted:
                weighted_fill[a] += size_of[b] * (size_sum[a] - size_of[b] - common_size)
                weighted_fill[b] += size_of[a] * (size_sum[b] - size_of[a] - common_size)
    for i in range(kept):
        v = heap[i]
        fill[v] >>= 1
        extra = 0.0
        if weighted:
            weighted_fill[v] *= 0.5
            extra = weighted_fill[v]
        key[v] = _priority(mode, fill[v], weight[v], extra, 0.0)
        tie[v] = weight[v]
    for i in range(kept // 2 - 1, -1, -1):
        sift_down(heap, pos, kept, i, key, tie)

    # lists that can grow: node v has links[start[v] : start[v] + length[v]], with room for some more
    links = idx if only_simplicial else idx.copy()
    start = ptr if only_simplicial else ptr[:n].copy()
    length = degree.copy()
    room = degree.copy() if not only_simplicial else degree
    links_used = len(idx)
    dirty = np.empty(n if not only_simplicial else 0, np.int64)
    stamp = np.full(len(dirty), -1, np.int64)
    nbr = np.empty(64, np.int64)

    order = np.empty(kept, np.int64)
    clique_ptr = np.zeros(kept + 1, np.int64)
    clique_idx = np.empty(3 * kept + 64, np.int64)
    used = 0
    steps = 0
    tokens = n  # marks from here on are new ones
    end = ALL_GONE
    while steps < kept:
        v = heap[0]
        if only_simplicial and fill[v] > 0:
            end = NEEDS_FILL
            break
        if weight[v] > max_log_size * FIXED_POINT:
            end = TOO_HEAVY
            break
        d = degree[v]
        if len(nbr) < d:
            nbr = np.empty(2 * d, np.int64)
        at = 0
        for j in range(start[v], start[v] + length[v]):
            u = np.int64(links[j])
            if gone[u] == 0:
                spot = at  # ascending
                while spot > 0 and nbr[spot - 1] > u:
                    nbr[spot] = nbr[spot - 1]
                    spot -= 1
                nbr[spot] = u
                at += 1
        n_dirty = 0
        if fill[v] > 0:
            for i in range(d):
                a = nbr[i]
                token = tokens
                tokens += 1
                at = start[a]
                for j in range(start[a], start[a] + length[a]):
                    u = links[j]
                    if gone[u] == 0:
                        links[at] = u
                        at += 1
                        mark[u] = token
                length[a] = at - start[a]
                for k in range(i + 1, d):
                    b = nbr[k]
                    if mark[b] == token:
                        continue
                    common = 0
                    common_size = 0.0
                    for j in range(start[b], start[b] + length[b]):
                        c = links[j]
                        if gone[c] == 0 and mark[c] == token:
                            common += 1
                            fill[c] -= 1
                            if weighted:
                                common_size += size_of[c]
                                weighted_fill[c] -= size_of[a] * size_of[b]
                            if stamp[c] != steps:
                                stamp[c] = steps
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
                    mark[b] = token
                    for x in (a, b):
                        if length[x] == room[x]:
                            wide = 2 * room[x] + 4
                            if links_used + wide > len(links):
                                if 2 * (links_used + wide) > max_links:
                                    end = NO_ROOM
                                    break
                                longer = np.empty(2 * (links_used + wide), np.int32)
                                put(links[:links_used], longer)
                                links = longer
                            put(links[start[x] : start[x] + length[x]], links[links_used:])
                            start[x] = links_used
                            room[x] = wide
                            links_used += wide
                        links[start[x] + length[x]] = b if x == a else a
                        length[x] += 1
                    if end == NO_ROOM:
                        break
                if end == NO_ROOM:
                    break
        if end == NO_ROOM:
            break
        pop(heap, pos, kept - steps, key, tie)
        remaining = kept - steps - 1
        if used + d + 1 > len(clique_idx):
            more = np.empty(2 * len(clique_idx) + d, np.int64)
            put(clique_idx[:used], more)
            clique_idx = more
        i = 0
        while i < d and nbr[i] < v:
            clique_idx[used + i] = nbr[i]
            i += 1
        clique_idx[used + i] = v
        while i < d:
            clique_idx[used + i + 1] = nbr[i]
            i += 1
        used += d + 1
        order[steps] = v
        clique_ptr[steps + 1] = used
        gone[v] = 1
        for i in range(d):
            u = nbr[i]
            fill[u] -= degree[u] - d
            if weighted:
                weighted_fill[u] -= size_of[v] * (size_sum[u] - size_of[v] - (size_sum[v] - size_of[u]))
                size_sum[u] -= size_of[v]
            degree[u] -= 1
            weight[u] -= log_weight[v]
            if n_dirty == 0 or stamp[u] != steps:  # among the dirty ones it comes later
                extra = weighted_fill[u] if weighted else 0.0
                key[u] = _priority(mode, fill[u], weight[u], extra, 0.0)
                tie[u] = weight[u]
                sift_up(heap, pos, pos[u], key, tie)
                sift_down(heap, pos, remaining, pos[u], key, tie)
        for i in range(n_dirty):
            u = dirty[i]
            if pos[u] < 0:
                continue
            extra = weighted_fill[u] if weighted else 0.0
            key[u] = _priority(mode, fill[u], weight[u], extra, 0.0)
            tie[u] = weight[u]
            sift_up(heap, pos, pos[u], key, tie)
            sift_down(heap, pos, remaining, pos[u], key, tie)
        steps += 1
    return end, order[:steps].copy(), clique_ptr[: steps + 1].copy(), clique_idx[:used].copy()
