"""Numba: maximal cliques of an elimination order and the junction forest over them.

Families of cliques are CSR pairs ``(ptr, idx)`` as in `triangulation`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.tree.heaps import IntVector, pop, sift_down, sift_up
from gramgraph._numerics.tree.triangulation import FIXED_POINT

# How many cliques are looked at for a cheaper parent with the same separator: bounds the work on very wide stars.
MAX_PARENT_CANDIDATES = 256


@njit(cache=True, nogil=True, boundscheck=False)
def maximal_cliques(order: IntVector, clique_ptr: IntVector, clique_idx: IntVector) -> tuple[IntVector, IntVector]:
    """Those elimination cliques that lie in no other, in elimination order; nodes that are not in ``order`` lie in its
    last clique.

    The parent of clique i in the elimination tree is the clique of its next eliminated member, and contains all of
    clique i but ``order[i]``.  A clique lies in another one exactly when it has a child with just one member more.
    Cost O(sum of clique sizes).
    """
    m = len(order)
    top = -1
    for j in range(clique_ptr[m]):
        top = max(top, clique_idx[j])
    step_of = np.full(top + 1, m, np.int64)
    for i in range(m):
        step_of[order[i]] = i
    maximal = np.ones(m, np.uint8)
    for i in range(m):
        parent = m
        for j in range(clique_ptr[i], clique_ptr[i + 1]):
            step = step_of[clique_idx[j]]
            if i < step < parent:
                parent = step
        if parent < m:
            size = clique_ptr[i + 1] - clique_ptr[i]
            if size == clique_ptr[parent + 1] - clique_ptr[parent] + 1:
                maximal[parent] = 0
    count = 0
    total = 0
    for i in range(m):
        if maximal[i]:
            count += 1
            total += clique_ptr[i + 1] - clique_ptr[i]
    ptr = np.zeros(count + 1, np.int64)
    idx = np.empty(total, np.int64)
    k = 0
    used = 0
    for i in range(m):
        if maximal[i]:
            for j in range(clique_ptr[i], clique_ptr[i + 1]):
                idx[used] = clique_idx[j]
                used += 1
            k += 1
            ptr[k] = used
    return ptr, idx


@njit(restarts=True, cache=True, nogil=True, boundscheck=False)
def junction_forest(
    clique_ptr: IntVector, clique_idx: IntVector, n: int, log_sizes: NDArray[np.float64]
) -> tuple[IntVector, IntVector]:
    """Maximum spanning forest over separator sizes: ``(parent, visit)``.

    The cliques must be the maximal cliques of a chordal graph over nodes 0..n-1, in any order.  ``parent[i]`` is -1
    for a root; ``visit`` lists the cliques with parents first.  Each component is rooted at its heaviest clique (sum
    of log sizes, ties: lower index), components come in the order of their roots' weights.

    Grown from the root by Prim's rule (maximum cardinality search on cliques): next comes the clique that shares
    most members with those already placed (ties: lighter, then lower index).  In a chordal graph the shared members S
    lie together in one placed clique, so no pair of cliques is ever compared: the first clique that held the last
    placed member of S is one; lighter ones that also hold S are preferred, as messages along that edge cost less.
    Hence running intersection.  Cost O(s log m) for m cliques with s members in all.
    """
    m = len(clique_ptr) - 1
    parent = np.full(m, -1, np.int64)
    visit = np.empty(m, np.int64)
    weight = np.zeros(m, np.int64)
    member_ptr = np.zeros(n + 1, np.int64)
    for k in range(m):
        for j in range(clique_ptr[k], clique_ptr[k + 1]):
            v = clique_idx[j]
            weight[k] += round(log_sizes[v] * FIXED_POINT)
            member_ptr[v + 1] += 1
    for v in range(n):
        member_ptr[v + 1] += member_ptr[v]
    members = np.empty(len(clique_idx), np.int64)  # the cliques of each node, ascending
    fill_to = member_ptr[:n].copy()
    for k in range(m):
        for j in range(clique_ptr[k], clique_ptr[k + 1]):
            v = clique_idx[j]
            members[fill_to[v]] = k
            fill_to[v] += 1

    placed_at = np.full(n, -1, np.int64)  # position in `visit` of the first clique that held the node
    lightest = np.full(n, -1, np.int64)  # the lightest placed clique that holds the node
    marked = np.full(n, -1, np.int64)
    heap = np.empty(m, np.int64)
    pos = np.empty(m, np.int64)
    key = np.empty(m, np.float64)
    shared = np.zeros(m, np.int64)
    stamp = np.full(m, -1, np.int64)
    touched = np.empty(m, np.int64)
    for k in range(m):
        # Cliques that share nothing yet come last and heaviest first: the next root. The finite keys below are
        # -shared, which lie before any of these.
        heap[k] = k
        pos[k] = k
        key[k] = 1.0
    for k in range(m):
        weight[k] = -weight[k]
    for i in range(m // 2 - 1, -1, -1):
        sift_down(heap, pos, m, i, key, weight)

    for step in range(m):
        k = pop(heap, pos, m - step, key, weight)
        remaining = m - step - 1
        visit[step] = k
        lo, hi = clique_ptr[k], clique_ptr[k + 1]
        if shared[k] == 0:
            weight[k] = -weight[k]
        else:
            last = -1  # member of the separator that was placed last
            scarce = -1  # member of the separator in fewest cliques
            for j in range(lo, hi):
                v = clique_idx[j]
                if placed_at[v] >= 0:
                    marked[v] = step
                    if last < 0 or placed_at[v] > placed_at[last]:
                        last = v
                    if scarce < 0 or member_ptr[v + 1] - member_ptr[v] < member_ptr[scarce + 1] - member_ptr[scarce]:
                        scarce = v
            best = visit[placed_at[last]]
            if shared[k] == 1:
                best = lightest[last]
            else:
                end = min(member_ptr[scarce + 1], member_ptr[scarce] + MAX_PARENT_CANDIDATES)
                for i in range(member_ptr[scarce], end):
                    other = members[i]
                    if pos[other] >= 0 or other == k:
                        continue
                    if weight[other] > weight[best] or (weight[other] == weight[best] and other >= best):
                        continue
                    count = 0
                    for j in range(clique_ptr[other], clique_ptr[other + 1]):
                        if marked[clique_idx[j]] == step:
                            count += 1
                    if count == shared[k]:
                        best = other
            parent[k] = best
        n_touched = 0
        for j in range(lo, hi):
            v = clique_idx[j]
            if (
                lightest[v] < 0
                or weight[k] < weight[lightest[v]]
                or (weight[k] == weight[lightest[v]] and k < lightest[v])
            ):
                lightest[v] = k
            if placed_at[v] >= 0:
                continue
            placed_at[v] = step
            for i in range(member_ptr[v], member_ptr[v + 1]):
                other = members[i]
                if pos[other] < 0:
                    continue
                shared[other] += 1
                if stamp[other] != step:
                    stamp[other] = step
                    touched[n_touched] = other
                    n_touched += 1
        for i in range(n_touched):
            other = touched[i]
            if key[other] > 0.0:
                weight[other] = -weight[other]  # from "heaviest first" to "lightest first"
            key[other] = -float(shared[other])
            sift_up(heap, pos, pos[other], key, weight)
            sift_down(heap, pos, remaining, pos[other], key, weight)
    return parent, visit


@njit(cache=True, nogil=True, boundscheck=False)
def total_log_size(clique_ptr: IntVector, clique_idx: IntVector, log_sizes: NDArray[np.float64]) -> float:
    """log of the summed table sizes, log sum_k prod_{v in k} size(v); -inf without cliques.  Never overflows."""
    m = len(clique_ptr) - 1
    peak = -np.inf
    total = 0.0
    for k in range(m):
        log_size = 0.0
        for j in range(clique_ptr[k], clique_ptr[k + 1]):
            log_size += log_sizes[clique_idx[j]]
        if log_size <= peak:
            total += math.exp(log_size - peak)
        else:
            total = total * math.exp(peak - log_size) + 1.0
            peak = log_size
    return peak + math.log(total) if m > 0 else -np.inf
