"""Greedy triangulation, maximal cliques and junction forests as Numba loops.

A graph is a matrix of bits: row ``v`` of ``adj`` holds the neighbors of node ``v``, 64 to a word, as uint64 of shape
(n, ceil(n/64)).  Families of sets (scopes, cliques) are CSR pairs ``(ptr, idx)`` of int64: set ``i`` is
``idx[ptr[i]:ptr[i+1]]``.  Nothing is checked here.  Memory is n²/8 bytes for ``adj`` (5 MB for 6,400 nodes).
"""

import math
from typing import Any, TypeAlias

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

IntVector: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.uint64]

MIN_FILL, MIN_WEIGHT, WEIGHTED_MIN_FILL = 0, 1, 2

ZERO = np.uint64(0)
ONE = np.uint64(1)
# Sums of log sizes are kept in fixed point: integer sums do not drift when they are updated in place, so equal
# weights stay equal and ties are broken by index, not by rounding.
FIXED_POINT = 2.0**32
# Sizes enter the weighted fill as products; capped so that they cannot overflow.
MAX_LOG_SIZE = 40.0
# How many cliques are looked at for a cheaper parent with the same separator: bounds the work on very wide stars.
MAX_PARENT_CANDIDATES = 256


def _emit_ctpop(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


def _emit_cttz(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), codegen


_ctpop: Any = intrinsic(_emit_ctpop)
_cttz: Any = intrinsic(_emit_cttz)


def popcount(x: np.uint64) -> int:
    """Number of set bits; one machine instruction when compiled."""
    return int(x).bit_count()


def lowest_bit(x: np.uint64) -> int:
    """Position of the lowest set bit of ``x != 0``; one machine instruction when compiled."""
    value = int(x)
    return (value & -value).bit_length() - 1


@overload(popcount)
def _popcount_compiled(x: Any) -> Any:
    def compiled(x: Any) -> Any:
        return _ctpop(x)

    return compiled


@overload(lowest_bit)
def _lowest_bit_compiled(x: Any) -> Any:
    def compiled(x: Any) -> Any:
        return _cttz(x)

    return compiled


@njit(cache=True, nogil=True, boundscheck=False)
def _bit(v: int) -> np.uint64:
    return ONE << np.uint64(v & 63)


# --- a binary heap that knows where each item stands: smallest (key, tie, index) on top ---------------------------


@njit(cache=True, nogil=True, boundscheck=False)
def _before(a: int, b: int, key: NDArray[np.float64], tie: IntVector) -> bool:
    if key[a] != key[b]:
        return bool(key[a] < key[b])
    if tie[a] != tie[b]:
        return bool(tie[a] < tie[b])
    return a < b


@njit(cache=True, nogil=True, boundscheck=False)
def _sift_down(heap: IntVector, pos: IntVector, size: int, i: int, key: NDArray[np.float64], tie: IntVector) -> None:
    item = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child + 1], heap[child], key, tie):
            child += 1
        if not _before(heap[child], item, key, tie):
            break
        heap[i] = heap[child]
        pos[heap[i]] = i
        i = child
    heap[i] = item
    pos[item] = i


@njit(cache=True, nogil=True, boundscheck=False)
def _sift_up(heap: IntVector, pos: IntVector, i: int, key: NDArray[np.float64], tie: IntVector) -> None:
    item = heap[i]
    while i > 0:
        above = (i - 1) >> 1
        if not _before(item, heap[above], key, tie):
            break
        heap[i] = heap[above]
        pos[heap[i]] = i
        i = above
    heap[i] = item
    pos[item] = i


@njit(cache=True, nogil=True, boundscheck=False)
def _pop(heap: IntVector, pos: IntVector, size: int, key: NDArray[np.float64], tie: IntVector) -> int:
    """Take the top item off a heap of ``size`` items; the caller counts ``size`` down."""
    top = int(heap[0])
    pos[top] = -1
    if size > 1:
        heap[0] = heap[size - 1]
        pos[heap[0]] = 0
        _sift_down(heap, pos, size - 1, 0, key, tie)
    return top


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
                            adj[a, b >> 6] |= _bit(b)
                            adj[b, a >> 6] |= _bit(a)
        else:
            row[:] = ZERO
            for i in range(lo, hi):
                a = scope_idx[i]
                if keep[a]:
                    row[a >> 6] |= _bit(a)
            for i in range(lo, hi):
                a = scope_idx[i]
                if keep[a]:
                    for w in range(words):
                        adj[a, w] |= row[w]
                    adj[a, a >> 6] &= ~_bit(a)
    return adj


# --- elimination --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, boundscheck=False)
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


@njit(cache=True, nogil=True, boundscheck=False)
def _size(log_size: float) -> float:
    """exp(log_size), exactly whole where it is whole up to rounding: sums of whole numbers do not drift."""
    size = math.exp(min(log_size, MAX_LOG_SIZE))
    whole = math.floor(size + 0.5)
    return whole if abs(size - whole) < 1e-9 * size else size


@njit(cache=True, nogil=True, boundscheck=False)
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
        _sift_down(heap, pos, kept, i, key, tie)

    order = np.empty(kept, np.int64)
    clique_ptr = np.zeros(kept + 1, np.int64)
    clique_idx = np.empty(8 * kept + 64, np.int64)
    used = 0
    for step in range(kept):
        v = _pop(heap, pos, kept - step, key, tie)
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
            longer[:used] = clique_idx[:used]
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
                        x &= ~(_bit(a) | (_bit(a) - ONE))
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
                        adj[a, b >> 6] |= _bit(b)
                        adj[b, a >> 6] |= _bit(a)
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
            adj[u, v >> 6] &= ~_bit(v)
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
            _sift_up(heap, pos, pos[u], key, tie)
            _sift_down(heap, pos, remaining, pos[u], key, tie)
    return order, clique_ptr, clique_idx[:used].copy()


# --- cliques and their forest -------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, boundscheck=False)
def maximal_cliques(order: IntVector, clique_ptr: IntVector, clique_idx: IntVector) -> tuple[IntVector, IntVector]:
    """Those elimination cliques that lie in no other, in elimination order.

    The parent of clique i in the elimination tree is the clique of its next eliminated member, and contains all of
    clique i but ``order[i]``.  A clique lies in another one exactly when it has a child with just one member more.
    Cost O(sum of clique sizes).
    """
    m = len(order)
    top = -1
    for i in range(m):
        top = max(top, order[i])
    step_of = np.full(top + 1, m, np.int64)
    for i in range(m):
        step_of[order[i]] = i
    maximal = np.ones(m, np.bool_)
    for i in range(m):
        parent = m
        for j in range(clique_ptr[i], clique_ptr[i + 1]):
            step = step_of[clique_idx[j]]
            if i < step < parent:
                parent = step
        if parent < m:
            size = clique_ptr[i + 1] - clique_ptr[i]
            if size == clique_ptr[parent + 1] - clique_ptr[parent] + 1:
                maximal[parent] = False
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


@njit(cache=True, nogil=True, boundscheck=False)
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
        _sift_down(heap, pos, m, i, key, weight)

    for step in range(m):
        k = _pop(heap, pos, m - step, key, weight)
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
            _sift_up(heap, pos, pos[other], key, weight)
            _sift_down(heap, pos, remaining, pos[other], key, weight)
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
