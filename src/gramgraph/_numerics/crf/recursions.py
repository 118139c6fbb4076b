"""Recursions of linear-chain conditional random fields over sparse features; sequences stand one after the other.

Sequence s has positions offsets[s] … offsets[s + 1] − 1. The features of position t are ids[ptr[t]:ptr[t + 1]], those
before mid[t] *dense* (a row of weights over all labels) and the others *sparse* (a list of labels and weights, from
sp_ptr[id − n_dense]); `data` holds their values, or nothing when all are 1. Rows of labels are padded to `width`, a
multiple of 8, and arrays are flat. M (width, width) = exp(transitions − their largest), zero in the padding, MT its
transpose. Nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit, source_of
from gramgraph._numerics.copies import put, put_matrix
from gramgraph._numerics.vector8 import add8, fill8, fma8, load8, max8, mul8, store8, sub8

#: A position whose sum is below this may have lost labels to underflow; one above may soon leave the range.
_SMALL, _LARGE = 1e-100, 1e140
#: Features up to which a loop is faster than NumPy, and positions that NumPy looks at together.
_FEW, _STRETCH = 64, 1 << 13


@njit(cache=True, nogil=True, boundscheck=False)
def token_scores(ptr, mid, ids, data, dense, sp_ptr, sp_label, sp_weight, n_dense, width, lo, hi, out):
    """out[(t − lo)·width + y] = Σ_f value_f · weight(f, y) for the positions lo … hi − 1; the largest magnitude."""
    weighted = data.shape[0] > 0
    top = fill8(0.0)
    one = fill8(0.0)
    for t in range(lo, hi):
        base = (t - lo) * width
        a, m, z = ptr[t], mid[t], ptr[t + 1]
        for b in range(0, width, 8):
            x, y = fill8(0.0), fill8(0.0)
            if weighted:
                for e in range(a, m):
                    x = fma8(fill8(data[e]), load8(dense, np.uint64(ids[e] * width + b)), x)
            else:
                even = a + (m - a) // 2 * 2
                for e in range(a, even, 2):
                    x = add8(x, load8(dense, np.uint64(ids[e] * width + b)))
                    y = add8(y, load8(dense, np.uint64(ids[e + 1] * width + b)))
                if even < m:
                    x = add8(x, load8(dense, np.uint64(ids[even] * width + b)))
            store8(out, np.uint64(base + b), add8(x, y))
        for e in range(m, z):
            row = ids[e] - n_dense
            value = data[e] if weighted else 1.0
            for p in range(sp_ptr[row], sp_ptr[row + 1]):
                out[base + sp_label[p]] += value * sp_weight[p]
        for b in range(0, width, 8):
            x = load8(out, np.uint64(base + b))
            top = max8(top, max8(x, sub8(one, x)))
    lanes = np.empty(8)
    store8(lanes, np.uint64(0), top)
    return lanes.max()


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _step(v, at, M, K, width, out, into):
    """out[into:] = v[at:] · M, four rows at a time."""
    for b in range(0, width, 8):
        x0, x1, x2, x3 = fill8(0.0), fill8(0.0), fill8(0.0), fill8(0.0)
        for i in range(0, K, 4):
            r = i * width + b
            x0 = fma8(fill8(v[at + i]), load8(M, np.uint64(r)), x0)
            x1 = fma8(fill8(v[at + i + 1]), load8(M, np.uint64(r + width)), x1)
            x2 = fma8(fill8(v[at + i + 2]), load8(M, np.uint64(r + 2 * width)), x2)
            x3 = fma8(fill8(v[at + i + 3]), load8(M, np.uint64(r + 3 * width)), x3)
        store8(out, np.uint64(into + b), add8(add8(x0, x1), add8(x2, x3)))


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _times(v, at, E, row, by, width, lanes):
    """v[at:] ·= by · E[row:]; the sum of v."""
    total, factor = fill8(0.0), fill8(by)
    for b in range(0, width, 8):
        x = mul8(load8(v, np.uint64(at + b)), mul8(load8(E, np.uint64(row + b)), factor))
        store8(v, np.uint64(at + b), x)
        total = add8(total, x)
    store8(lanes, np.uint64(0), total)
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def chain_posteriors(E, M, MT, start, T, K, width, alpha, scale, work):
    """Scaled forward–backward of one sequence; (log Z without the shift of the transitions, whether it can be trusted).

    E holds exp(scores) and becomes v with p(i at t, j at t + 1) = alpha[t, i] M[i, j] v[t + 1, j]; state probabilities
    are alpha ⊙ work, where work (T, width) holds the backward values. Every position is divided by the sum of the one
    before: its own would have to be waited for, while this one is ready when the products are.
    """
    lanes = np.empty(8)
    for b in range(width):
        alpha[b] = start[b]
    c = _times(alpha, 0, E, 0, 1.0, width, lanes)
    log_z, product = 0.0, 1.0
    for t in range(1, T):
        if not _SMALL < c < _LARGE:
            return -math.inf, False
        at = t * width
        scale[t] = 1.0 / c
        product *= c
        if not _SMALL < product < _LARGE:  # one logarithm for many positions
            log_z += math.log(product)
            product = 1.0
        _step(alpha, at - width, M, K, width, alpha, at)
        c = _times(alpha, at, E, at, scale[t], width, lanes)
    if not _SMALL < c < _LARGE:
        return -math.inf, False
    log_z += math.log(product) + math.log(c)
    last = (T - 1) * width
    for b in range(width):
        work[last + b] = 1.0 / c
    for t in range(T - 1, 0, -1):
        at = t * width
        factor = fill8(scale[t])
        for b in range(0, width, 8):
            k = np.uint64(at + b)
            store8(E, k, mul8(mul8(load8(E, k), factor), load8(work, k)))
        _step(E, at, MT, K, width, work, at - width)
    total = 0.0
    for b in range(width):
        total += alpha[b] * work[b]
    return log_z, abs(total - 1.0) < 1e-6


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def add_pairs(alpha, v, T, K, width, pairs):
    """pairs[i, j] += Σ_t alpha[t, i] v[t + 1, j], four positions at a time."""
    t = 0
    while t + 4 < T:
        p = t * width
        q = p + width
        for i in range(K):
            a0, a1 = fill8(alpha[p + i]), fill8(alpha[p + width + i])
            a2, a3 = fill8(alpha[p + 2 * width + i]), fill8(alpha[p + 3 * width + i])
            for b in range(0, width, 8):
                k = np.uint64(i * width + b)
                x = fma8(a0, load8(v, np.uint64(q + b)), load8(pairs, k))
                y = mul8(a1, load8(v, np.uint64(q + width + b)))
                x = fma8(a2, load8(v, np.uint64(q + 2 * width + b)), x)
                y = fma8(a3, load8(v, np.uint64(q + 3 * width + b)), y)
                store8(pairs, k, add8(x, y))
        t += 4
    while t + 1 < T:
        p = t * width
        for i in range(K):
            a0 = fill8(alpha[p + i])
            for b in range(0, width, 8):
                k = np.uint64(i * width + b)
                store8(pairs, k, fma8(a0, load8(v, np.uint64(p + width + b)), load8(pairs, k)))
        t += 1


@njit(cache=True, nogil=True, boundscheck=False)
def sequence_posteriors(values, M, start, pairs):
    """(log Z, whether it can be trusted, state probabilities (T, K)) of one sequence; values (T, K) = exp(scores).

    pairs (K, K) grows by what is to be multiplied by M. M (K, K), start (K,) and values are 0 for what is forbidden.
    """
    T, K = values.shape
    width = (K + 7) // 8 * 8
    E, alpha, work = np.zeros(T * width), np.empty(T * width), np.empty(T * width)
    padded, turned = np.zeros((width, width)), np.zeros((width, width))
    put_matrix(M, padded)
    put_matrix(M.T, turned)
    first, sums = np.zeros(width), np.zeros((width, width))
    put(start, first)
    gamma = np.zeros((T, K))
    for t in range(T):
        for j in range(K):
            E[t * width + j] = values[t, j]
    log_z, good = chain_posteriors(
        E, padded.ravel(), turned.ravel(), first, T, K, width, alpha, np.empty(T), work
    )  # fmt: skip
    if not good:
        return 0.0, False, gamma
    add_pairs(alpha, E, T, K, width, sums.ravel())
    pairs += sums[:K, :K]
    for t in range(T):
        for j in range(K):
            gamma[t, j] = alpha[t * width + j] * work[t * width + j]
    return log_z, True, gamma


def _part_with_numpy(ptr, ids, data, new_id, n_dense, mid):
    N = mid.shape[0]
    if ids.shape[0] < _FEW:
        return source_of(part_features)(ptr, ids, data, new_id, n_dense, mid)
    into, begin = 0, int(ptr[0])
    for a in range(0, N, _STRETCH):
        z = min(a + _STRETCH, N)
        sizes, end = np.diff(ptr[a : z + 1]), int(ptr[z])
        sizes[0] = ptr[a + 1] - begin  # the place before it has been written anew
        old = ids[begin:end]
        found = np.where(old >= 0, new_id[np.maximum(old, 0)], -1) if new_id.shape[0] else old
        dense, kept = (found >= 0) & (found < n_dense), found >= 0
        ends = np.cumsum(sizes)
        sums = [np.concatenate((np.zeros(1, np.int64), np.cumsum(some))) for some in (kept, dense)]
        (all_before, dense_before), (left, rows) = (some[ends - sizes] for some in sums), (some[ends] for some in sums)
        ptr[a:z], mid[a:z] = into + all_before, into + all_before + rows - dense_before
        # a sparse one stands behind the dense ones of its position, and behind the sparse ones before it
        apart = sums[0][:-1] - sums[1][:-1] + np.repeat(rows, sizes)
        place = np.where(dense, sums[1][:-1] + np.repeat(all_before - dense_before, sizes), apart)[kept]
        values = data[begin:end][kept] if data.shape[0] else data
        ids[into + place] = found[kept]
        if data.shape[0]:
            data[into + place] = values
        into, begin = into + int(left[-1]), end
    ptr[N] = into
    return into


@njit(cache=True, nogil=True, boundscheck=False, plain=_part_with_numpy)
def part_features(ptr, ids, data, new_id, n_dense, mid):
    """Give features their new numbers in place, drop those of −1, put dense ones first; the number that is left.

    Without new numbers (of length 0) they keep their own, and negative ones are dropped.
    """
    renamed = new_id.shape[0] > 0
    weighted = data.shape[0] > 0
    spare = np.empty(16, np.int32)
    spare_data = np.empty(16)
    into = np.int64(0)
    begin = ptr[0]
    for t in range(mid.shape[0]):
        a, z = begin, ptr[t + 1]
        begin = z
        if z - a > spare.shape[0]:
            spare, spare_data = np.empty(2 * (z - a), np.int32), np.empty(2 * (z - a))
        ptr[t] = into
        left = 0
        for e in range(a, z):
            f = ids[e]
            if renamed and f >= 0:
                f = new_id[f]
            if f < 0:
                continue
            if f < n_dense:
                ids[into] = f
                if weighted:
                    data[into] = data[e]
                into += 1
            else:
                spare[left] = f
                if weighted:
                    spare_data[left] = data[e]
                left += 1
        mid[t] = into
        for e in range(left):
            ids[into] = spare[e]
            if weighted:
                data[into] = spare_data[e]
            into += 1
    ptr[mid.shape[0]] = into
    return into


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def best_path(E, A, AT, start, T, K, width, delta, labels, at):
    """labels[at:at + T] = the path of the largest score, which is returned; A (width, width) with −inf in the padding.

    Only the largest values go forward; which label gave one is looked up on the way back, for the path alone.
    """
    for b in range(width):
        delta[b] = start[b] + E[b]
    for t in range(1, T):
        p, q = (t - 1) * width, t * width
        for b in range(0, width, 8):
            x, y = fill8(-math.inf), fill8(-math.inf)
            for i in range(0, K, 2):
                r = i * width + b
                x = max8(x, add8(fill8(delta[p + i]), load8(A, np.uint64(r))))
                y = max8(y, add8(fill8(delta[p + i + 1]), load8(A, np.uint64(r + width))))
            store8(delta, np.uint64(q + b), add8(max8(x, y), load8(E, np.uint64(q + b))))
    q = (T - 1) * width
    j = 0
    for i in range(1, K):
        if delta[q + i] > delta[q + j]:
            j = i
    best = delta[q + j]
    labels[at + T - 1] = j
    for t in range(T - 2, -1, -1):
        p, r = t * width, j * width
        k, top = 0, delta[p] + AT[r]
        for i in range(1, K):
            x = delta[p + i] + AT[r + i]
            if x > top:
                k, top = i, x
        j = k
        labels[at + t] = j
    return best


@njit(cache=True, nogil=True, boundscheck=False)
def viterbi(
    offsets, ptr, mid, ids, data, dense, sp_ptr, sp_label, sp_weight, n_dense, A, AT, start, allowed, K, width, labels,
    best,
):  # fmt: skip
    """labels (N,) = the best paths, best (S,) their scores; A, AT and start are −inf for what is forbidden."""
    S = offsets.shape[0] - 1
    longest = 1
    for s in range(S):
        longest = max(longest, offsets[s + 1] - offsets[s])
    E, delta = np.empty(longest * width), np.empty(longest * width)
    limited = allowed.shape[0] > 0
    for s in range(S):
        lo, hi = offsets[s], offsets[s + 1]
        if hi == lo:
            continue
        token_scores(ptr, mid, ids, data, dense, sp_ptr, sp_label, sp_weight, n_dense, width, lo, hi, E)
        if limited:
            for t in range(lo, hi):
                for j in range(K):
                    if not allowed[t, j]:
                        E[(t - lo) * width + j] = -math.inf
        best[s] = best_path(E, A, AT, start, hi - lo, K, width, delta, labels, lo)


@njit(cache=True, nogil=True, boundscheck=False)
def best_paths(scores, A, start, k, values, labels):
    """The k best paths of one sequence, best first: values (k,) and labels (k, T); how many there are.

    scores (T, K), A (K, K), start (K,) may be −inf. Every label keeps its k best ways to get there: O(T K² k) time.
    """
    T, K = scores.shape
    value = np.full((T, K, k), -math.inf)
    back = np.zeros((T, K, k), np.int64)  # label before · k + rank there
    at = np.empty(K, np.int64)
    for j in range(K):
        value[0, j, 0] = start[j] + scores[0, j]
    for t in range(1, T):
        for j in range(K):
            at[:] = 0
            for r in range(k):
                top, who = -math.inf, -1
                for i in range(K):
                    if at[i] < k:
                        x = value[t - 1, i, at[i]] + A[i, j]
                        if x > top:
                            top, who = x, i
                if who < 0:
                    break
                value[t, j, r] = top + scores[t, j]
                back[t, j, r] = who * k + at[who]
                at[who] += 1
    at[:] = 0
    for n in range(k):
        top, who = -math.inf, -1
        for j in range(K):
            if at[j] < k and value[T - 1, j, at[j]] > top:
                top, who = value[T - 1, j, at[j]], j
        if who < 0:
            return n
        values[n] = top
        j, r = who, at[who]
        at[who] += 1
        for t in range(T - 1, -1, -1):
            labels[n, t] = j
            j, r = back[t, j, r] // k, back[t, j, r] % k
    return k
