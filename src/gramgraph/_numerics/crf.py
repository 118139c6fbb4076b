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
from numba import njit

from gramgraph._numerics.grams import fast_exp
from gramgraph._numerics.hmm import log_sum
from gramgraph._numerics.vector8 import add8, fill8, fma8, load8, max8, mul8, store8, sub8

#: Scores beyond this are left to logarithms: exp of them, times transitions, could leave the range of numbers.
_LARGE = 300.0
#: A position whose sum is below this may have lost labels to underflow.
_SMALL = 1e-100


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


@njit(cache=True, nogil=True, boundscheck=False)
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


@njit(cache=True, nogil=True, boundscheck=False)
def _scale(v, at, E, row, width, lanes):
    """v[at:] ·= E[row:], then divided by its sum, which is returned."""
    total = fill8(0.0)
    for b in range(0, width, 8):
        x = mul8(load8(v, np.uint64(at + b)), load8(E, np.uint64(row + b)))
        store8(v, np.uint64(at + b), x)
        total = add8(total, x)
    store8(lanes, np.uint64(0), total)
    c = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
    inv = fill8(1.0 / c) if c > 0.0 else fill8(0.0)
    for b in range(0, width, 8):
        store8(v, np.uint64(at + b), mul8(load8(v, np.uint64(at + b)), inv))
    return c


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def exp_rows(E, n):
    """E[:n] = exp(E[:n])."""
    for i in range(n):
        E[i] = fast_exp(E[i])


@njit(cache=True, nogil=True, boundscheck=False)
def chain_posteriors(E, M, MT, start, T, K, width, alpha, scale, work):
    """Scaled forward–backward of one sequence; (log Z without the shift of the transitions, whether it can be trusted).

    E holds exp(scores) and becomes v with p(i at t, j at t + 1) = alpha[t, i] M[i, j] v[t + 1, j]; state probabilities
    are alpha ⊙ work, where work (T, width) holds the backward values.
    """
    lanes = np.empty(8)
    log_z = 0.0
    for t in range(T):
        at = t * width
        if t == 0:
            for b in range(width):
                alpha[b] = start[b]
        else:
            _step(alpha, at - width, M, K, width, alpha, at)
        c = _scale(alpha, at, E, at, width, lanes)
        if not c > _SMALL:
            return -math.inf, False
        scale[t] = c
        log_z += math.log(c)
    last = (T - 1) * width
    for b in range(width):
        work[last + b] = 1.0
    for t in range(T - 1, 0, -1):
        at = t * width
        inv = fill8(1.0 / scale[t])
        for b in range(0, width, 8):
            k = np.uint64(at + b)
            store8(E, k, mul8(mul8(load8(E, k), inv), load8(work, k)))
        _step(E, at, MT, K, width, work, at - width)
    total = 0.0
    for b in range(width):
        total += alpha[b] * work[b]
    return log_z, abs(total - 1.0) < 1e-6


@njit(cache=True, nogil=True, boundscheck=False)
def _add_pairs(alpha, v, T, K, width, pairs):
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
def chain_gradient(
    offsets, ptr, mid, ids, data, dense, sp_ptr, sp_label, sp_weight, n_dense, M, MT, K, width, first, last,
    g_dense, g_sparse, pairs, failed,
):  # fmt: skip
    """Σ log Z of the sequences first … last − 1, and expected counts added to g_dense, g_sparse and pairs (· M later).

    Sequences whose numbers leave the range are marked in `failed` and left out.
    """
    longest = 1
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    E, alpha, work = np.empty(longest * width), np.empty(longest * width), np.empty(longest * width)
    scale = np.empty(longest)
    start = np.zeros(width)
    start[:K] = 1.0
    weighted = data.shape[0] > 0
    total = 0.0
    for s in range(first, last):
        lo, hi = offsets[s], offsets[s + 1]
        T = hi - lo
        if T == 0:
            continue
        top = token_scores(ptr, mid, ids, data, dense, sp_ptr, sp_label, sp_weight, n_dense, width, lo, hi, E)
        good = top < _LARGE
        if good:
            exp_rows(E, T * width)
            log_z, good = chain_posteriors(E, M, MT, start, T, K, width, alpha, scale, work)
        if not good:
            failed[s] = True
            continue
        total += log_z
        _add_pairs(alpha, E, T, K, width, pairs)
        for t in range(T):
            at = t * width
            for b in range(0, width, 8):
                k = np.uint64(at + b)
                store8(work, k, mul8(load8(alpha, k), load8(work, k)))
            scatter(
                ptr, mid, ids, data, weighted, sp_ptr, sp_label, n_dense, width, lo + t, work, at, g_dense, g_sparse
            )
    return total


@njit(cache=True, nogil=True, boundscheck=False)
def scatter(ptr, mid, ids, data, weighted, sp_ptr, sp_label, n_dense, width, t, row, at, g_dense, g_sparse):
    """Add row[at:at + width] to the counts of the features of position t, each times its value."""
    a, m, z = ptr[t], mid[t], ptr[t + 1]
    for b in range(0, width, 8):
        x = load8(row, np.uint64(at + b))
        for e in range(a, m):
            k = np.uint64(ids[e] * width + b)
            if weighted:
                store8(g_dense, k, fma8(fill8(data[e]), x, load8(g_dense, k)))
            else:
                store8(g_dense, k, add8(x, load8(g_dense, k)))
    for e in range(m, z):
        value = data[e] if weighted else 1.0
        f = ids[e] - n_dense
        for p in range(sp_ptr[f], sp_ptr[f + 1]):
            g_sparse[p] += value * row[at + sp_label[p]]


@njit(cache=True, nogil=True, boundscheck=False)
def count_features(ptr, ids, data, y, K, low, high, counts, seen):
    """counts[(f − low)·K + label] += value and seen = 1 for the features low … high − 1 of all positions.

    A number −3 − f says that attribute f stands there with the value 0: seen, and nothing to count.
    """
    weighted = data.shape[0] > 0
    for t in range(y.shape[0]):
        for e in range(ptr[t], ptr[t + 1]):
            f = ids[e] if ids[e] >= 0 else -3 - ids[e]
            if low <= f < high:
                k = np.int64(f - low) * K + y[t]
                seen[k] = 1
                if ids[e] >= 0:
                    counts[k] += data[e] if weighted else 1.0


@njit(cache=True, nogil=True, boundscheck=False)
def part_features(ptr, ids, data, new_id, n_dense, mid):
    """Give features their new numbers in place, drop those of −1, put dense ones first; the number that is left."""
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
            f = new_id[ids[e]] if ids[e] >= 0 else -1
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


@njit(cache=True, nogil=True, boundscheck=False)
def count_uses(ids, uses):
    """uses[f] = how often attribute f stands in the data."""
    for e in range(ids.shape[0]):
        if ids[e] >= 0:
            uses[ids[e]] += 1


@njit(cache=True, nogil=True, boundscheck=False)
def marginals(
    offsets, ptr, mid, ids, data, dense, sp_ptr, sp_label, sp_weight, n_dense, M, MT, start, allowed, K, width, out,
    log_z, failed,
):  # fmt: skip
    """out (N, K) = p(label at t | x) and log_z (S,), without the shift of the transitions.

    M, MT and start are 0 for what is forbidden; allowed (N, K) likewise, or without rows.
    """
    S = offsets.shape[0] - 1
    longest = 1
    for s in range(S):
        longest = max(longest, offsets[s + 1] - offsets[s])
    E, alpha, work = np.empty(longest * width), np.empty(longest * width), np.empty(longest * width)
    scale = np.empty(longest)
    limited = allowed.shape[0] > 0
    for s in range(S):
        lo, hi = offsets[s], offsets[s + 1]
        T = hi - lo
        if T == 0:
            continue
        top = token_scores(ptr, mid, ids, data, dense, sp_ptr, sp_label, sp_weight, n_dense, width, lo, hi, E)
        good = top < _LARGE
        if good:
            exp_rows(E, T * width)
            if limited:
                for t in range(T):
                    for j in range(K):
                        if not allowed[lo + t, j]:
                            E[t * width + j] = 0.0
            log_z[s], good = chain_posteriors(E, M, MT, start, T, K, width, alpha, scale, work)
        if not good:
            failed[s] = True
            continue
        for t in range(T):
            total = 0.0
            for j in range(K):
                x = alpha[t * width + j] * work[t * width + j]
                out[lo + t, j] = x
                total += x
            for j in range(K):  # the sum is 1 but for rounding
                out[lo + t, j] /= total


@njit(cache=True, nogil=True, boundscheck=False)
def _best_path(E, A, AT, start, T, K, width, delta, labels, at):
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
        best[s] = _best_path(E, A, AT, start, hi - lo, K, width, delta, labels, lo)


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


@njit(cache=True, nogil=True, boundscheck=False)
def log_posteriors(scores, A, start, gamma, pairs):
    """log Z of one sequence with logarithms, for scores of any size; gamma (T, K) and pairs (K, K) are filled."""
    T, K = scores.shape
    alpha, beta, work = np.empty((T, K)), np.zeros((T, K)), np.empty(K)
    for j in range(K):
        alpha[0, j] = start[j] + scores[0, j]
    for t in range(1, T):
        for j in range(K):
            for i in range(K):
                work[i] = alpha[t - 1, i] + A[i, j]
            alpha[t, j] = log_sum(work) + scores[t, j]
    log_z = log_sum(alpha[T - 1])
    pairs[:] = 0.0
    if log_z == -math.inf:
        gamma[:] = 0.0
        return log_z
    for t in range(T - 1, 0, -1):
        for i in range(K):
            for j in range(K):
                work[j] = A[i, j] + scores[t, j] + beta[t, j]
                pairs[i, j] += math.exp(alpha[t - 1, i] + work[j] - log_z)
            beta[t - 1, i] = log_sum(work)
    for t in range(T):
        for j in range(K):
            gamma[t, j] = math.exp(alpha[t, j] + beta[t, j] - log_z)
    return log_z


@njit(cache=True, nogil=True, boundscheck=False)
def _shift_weights(ptr, mid, ids, data, sp_ptr, sp_label, n_dense, width, t, label, by, count, active, w, s, wl, sl):
    """Add `by` times the values to the weights of the features of position t with one label; sums for averages too."""
    weighted = data.shape[0] > 0
    for e in range(ptr[t], mid[t]):
        k = ids[e] * width + label
        if active[k]:
            x = by * (data[e] if weighted else 1.0)
            w[k] += x
            s[k] += count * x
    for e in range(mid[t], ptr[t + 1]):
        row = ids[e] - n_dense
        for p in range(sp_ptr[row], sp_ptr[row + 1]):
            if sp_label[p] == label:
                x = by * (data[e] if weighted else 1.0)
                wl[p] += x
                sl[p] += count * x


@njit(cache=True, nogil=True, boundscheck=False)
def perceptron_epoch(
    order, offsets, ptr, mid, ids, data, y, sp_ptr, sp_label, n_dense, K, width, active, active_steps, count,
    w, s, wl, sl, A, AT, sA,
):  # fmt: skip
    """One pass of the perceptron over the sequences in `order`; (share of wrong labels a sequence, steps counted).

    Weights w (dense), wl (sparse), A (transitions, AT its transpose); s, sl, sA add up count · change, so that the
    average over all steps is weight − sum / count.
    """
    longest = 1
    for n in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[n + 1] - offsets[n])
    E, delta = np.empty(longest * width), np.empty(longest * width)
    path = np.empty(longest, np.int32)
    start = np.full(width, -math.inf)
    start[:K] = 0.0
    loss = 0.0
    for n in order:
        lo, hi = offsets[n], offsets[n + 1]
        T = hi - lo
        if T == 0:
            continue
        token_scores(ptr, mid, ids, data, w, sp_ptr, sp_label, wl, n_dense, width, lo, hi, E)
        _best_path(E, A, AT, start, T, K, width, delta, path, 0)
        wrong = 0
        for t in range(T):
            if path[t] != y[lo + t]:
                wrong += 1
                for right in (True, False):
                    _shift_weights(
                        ptr, mid, ids, data, sp_ptr, sp_label, n_dense, width, lo + t, y[lo + t] if right else path[t],
                        1.0 if right else -1.0, count, active, w, s, wl, sl,
                    )  # fmt: skip
            if t > 0 and (path[t] != y[lo + t] or path[t - 1] != y[lo + t - 1]):
                for right in (True, False):
                    i, j = (y[lo + t - 1], y[lo + t]) if right else (path[t - 1], path[t])
                    if active_steps[i, j]:
                        by = 1.0 if right else -1.0
                        A[i * width + j] += by
                        AT[j * width + i] += by
                        sA[i, j] += count * by
        loss += wrong / T
        count += 1
    return loss, count
