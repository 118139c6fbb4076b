"""Recursions of hidden Markov chains over many sequences that stand one after the other.

Sequence s has rows offsets[s] … offsets[s + 1] − 1; every function does the sequences lo … hi − 1, so that threads can
share a batch. start (K,), A (K, K) with A[i, j] = p(j | i), AT its transpose; b (N, K) are p(x_t | state) up to a
factor a row. Arrays are C-ordered float64; nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gramgraph._numerics.grams import fast_exp

#: A row whose sum is below this may have lost states to underflow: the sequence is done again with logarithms.
_SMALL = 1e-100
#: Forward probabilities below this count as zero: their backward values could overflow.
_NOTHING = 1e-290


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def likelihood_rows(logs, b, shift):
    """b = exp(logs − shift) with shift the largest of the row (0 for a row of −inf)."""
    n, K = logs.shape
    for t in range(n):
        top = -math.inf
        for k in range(K):
            if logs[t, k] > top:
                top = logs[t, k]
        if not top > -math.inf:
            shift[t] = 0.0
            for k in range(K):
                b[t, k] = 0.0
            continue
        shift[t] = top
        for k in range(K):
            x = logs[t, k] - top
            y = fast_exp(x)
            b[t, k] = y if x > -708.0 else 0.0


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _times(v, M, out):
    """out = v M, four rows at a time: out stays in registers, and columns vectorize."""
    K = v.shape[0]
    full = K - K % 4
    for j in range(K):
        out[j] = 0.0
    for i in range(0, full, 4):
        v0, v1, v2, v3 = v[i], v[i + 1], v[i + 2], v[i + 3]
        r0, r1, r2, r3 = M[i], M[i + 1], M[i + 2], M[i + 3]
        for j in range(K):
            out[j] += (v0 * r0[j] + v1 * r1[j]) + (v2 * r2[j] + v3 * r3[j])
    for i in range(full, K):
        v0, r0 = v[i], M[i]
        for j in range(K):
            out[j] += v0 * r0[j]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"})
def forward(start, A, b, offsets, lo, hi, alpha, scale, failed):
    """alpha[t] = p(state | x up to t); scale[t] = p(x_t | x before t), but for the row's factor.

    failed[s] is −1, or the first row of the sequence whose sum is too small to be trusted.
    """
    K = start.shape[0]
    pred = np.empty(K)
    for s in range(lo, hi):
        failed[s] = -1
        first = offsets[s]
        for t in range(first, offsets[s + 1]):
            row, now = b[t], alpha[t]
            if t == first:
                for j in range(K):
                    pred[j] = start[j]
            else:
                _times(alpha[t - 1], A, pred)
            total = 0.0
            for j in range(K):
                x = pred[j] * row[j]
                now[j] = x
                total += x
            if not total > _SMALL:
                failed[s] = t
                break
            scale[t] = total
            inv = 1.0 / total
            for j in range(K):
                now[j] *= inv


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"})
def backward(AT, b, scale, offsets, lo, hi, alpha, failed, gamma):
    """gamma[t] = p(state | all x); b becomes the weights of pairs.

    Then p(state i at t − 1, state j at t | all x) = alpha[t − 1, i] A[i, j] b[t, j]; b is 0 in first rows and in
    sequences that failed, so that Σ_t of it is one product of matrices.
    """
    K = AT.shape[0]
    beta, weight = np.empty(K), np.empty(K)
    for s in range(lo, hi):
        first, stop = offsets[s], offsets[s + 1]
        if failed[s] >= 0:
            for t in range(first, stop):
                for j in range(K):
                    b[t, j] = 0.0
                    alpha[t, j] = 0.0
            continue
        for t in range(stop - 1, first - 1, -1):
            now, row = alpha[t], gamma[t]
            if t == stop - 1:
                for j in range(K):
                    beta[j] = 1.0
            else:
                _times(weight, AT, beta)
            total = 0.0
            for j in range(K):
                x = now[j] * beta[j] if now[j] > _NOTHING else 0.0
                row[j] = x
                total += x
            inv = 1.0 / total
            step = inv / scale[t]
            for j in range(K):
                row[j] *= inv
                weight[j] = beta[j] * step * b[t, j] if now[j] > _NOTHING else 0.0
            if t == first:
                for j in range(K):
                    b[t, j] = 0.0
            else:
                for j in range(K):
                    b[t, j] = weight[j]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"})
def backward_in_place(AT, b, scale, offsets, lo, hi, alpha, failed, pairs, wanted):
    """alpha becomes p(state | all x); where wanted, pairs (K, K) += Σ_t alpha[t − 1]ᵀ weight[t], to be multiplied by A.

    For few states: one pass over memory less than `backward` and a product of matrices. Sequences that failed are left.
    """
    K = AT.shape[0]
    beta, weight = np.empty(K), np.empty(K)
    for s in range(lo, hi):
        if failed[s] >= 0:
            continue
        first, stop = offsets[s], offsets[s + 1]
        for t in range(stop - 1, first - 1, -1):
            now, row = alpha[t], b[t]
            if t == stop - 1:
                for j in range(K):
                    beta[j] = 1.0
            else:
                if wanted:
                    for i in range(K):
                        x, into = now[i], pairs[i]
                        for j in range(K):
                            into[j] += x * weight[j]
                _times(weight, AT, beta)
            total = 0.0
            for j in range(K):
                y = beta[j] if now[j] > _NOTHING else 0.0
                beta[j] = y
                x = now[j] * y
                now[j] = x
                total += x
            inv = 1.0 / total
            step = inv / scale[t]
            for j in range(K):
                now[j] *= inv
                weight[j] = beta[j] * step * row[j]


# --- with logarithms: slower, for sequences where numbers would underflow -----------------------------------------


@njit(cache=True, nogil=True, boundscheck=False)
def _log_sum(x):
    top = -math.inf
    for i in range(x.shape[0]):
        top = max(top, x[i])
    if top == -math.inf:
        return top
    total = 0.0
    for i in range(x.shape[0]):
        total += math.exp(x[i] - top)
    return top + math.log(total)


@njit(cache=True, nogil=True, boundscheck=False)
def log_forward(log_start, log_AT, logs, alpha):
    """Log of the forward probabilities of one sequence, alpha (T, K), each row normalized; (log p(x), first bad row).

    The row is −1, or that of the first observation of probability zero; then log p(x) = −inf.
    """
    T, K = logs.shape
    work = np.empty(K)
    total = 0.0
    for t in range(T):
        for j in range(K):
            if t == 0:
                alpha[0, j] = log_start[j] + logs[0, j]
            else:
                for i in range(K):
                    work[i] = alpha[t - 1, i] + log_AT[j, i]
                alpha[t, j] = _log_sum(work) + logs[t, j]
        c = _log_sum(alpha[t])
        if c == -math.inf:
            return c, t
        total += c
        for j in range(K):
            alpha[t, j] -= c
    return total, -1


@njit(cache=True, nogil=True, boundscheck=False)
def log_backward(log_A, logs, alpha, gamma, pairs):
    """gamma (T, K) and pairs (K, K) += Σ_t p(state i at t − 1, state j at t | x), from `log_forward`'s alpha."""
    T, K = logs.shape
    beta, new, work = np.zeros(K), np.empty(K), np.empty(K)
    for t in range(T - 1, -1, -1):
        if t < T - 1:
            for i in range(K):
                for j in range(K):
                    work[j] = log_A[i, j] + logs[t + 1, j] + beta[j]
                new[i] = _log_sum(work)
            norm = -math.inf
            for i in range(K):
                work[i] = alpha[t, i] + new[i] if alpha[t, i] > -math.inf else -math.inf
            norm = _log_sum(work)
            for i in range(K):
                if alpha[t, i] > -math.inf:
                    for j in range(K):
                        pairs[i, j] += math.exp(alpha[t, i] + log_A[i, j] + logs[t + 1, j] + beta[j] - norm)
            for i in range(K):
                beta[i] = new[i] - norm
        for i in range(K):
            work[i] = alpha[t, i] + beta[i] if alpha[t, i] > -math.inf else -math.inf
        norm = _log_sum(work)
        for i in range(K):
            gamma[t, i] = math.exp(work[i] - norm)


# --- most probable paths ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, boundscheck=False)
def _best_step(v, M, out):
    """out[j] = max_i v[i] + M[i, j], four rows at a time."""
    K = v.shape[0]
    full = K - K % 4
    for j in range(K):
        out[j] = -math.inf
    for i in range(0, full, 4):
        v0, v1, v2, v3 = v[i], v[i + 1], v[i + 2], v[i + 3]
        r0, r1, r2, r3 = M[i], M[i + 1], M[i + 2], M[i + 3]
        for j in range(K):
            x, y = v0 + r0[j], v1 + r1[j]
            x = x if x > y else y
            z, y = v2 + r2[j], v3 + r3[j]
            z = z if z > y else y
            x = x if x > z else z
            out[j] = x if x > out[j] else out[j]
    for i in range(full, K):
        v0, r0 = v[i], M[i]
        for j in range(K):
            x = v0 + r0[j]
            out[j] = x if x > out[j] else out[j]


@njit(cache=True, nogil=True, boundscheck=False)
def _best_of_eight(M, logs, first, stop, v, e):
    """logs[t, j] += max_i logs[t − 1, i] + M[i, j] for at most eight states: M (8, 8) and v, e (8,) end with −inf.

    The length of the inner loop is known, so that the eight states stay in registers; half the time of `_best_step`.
    """
    K = logs.shape[1]
    for j in range(K):
        v[j] = logs[first, j]
    for t in range(first + 1, stop):
        for j in range(K):
            e[j] = logs[t, j]
        v0, v1, v2, v3, v4, v5, v6, v7 = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
        for j in range(8):
            a, b = v0 + M[0, j], v1 + M[1, j]
            c, d = v2 + M[2, j], v3 + M[3, j]
            f, g = v4 + M[4, j], v5 + M[5, j]
            h, i = v6 + M[6, j], v7 + M[7, j]
            a = a if a > b else b
            c = c if c > d else d
            f = f if f > g else g
            h = h if h > i else i
            a = a if a > c else c
            f = f if f > h else h
            v[j] = (a if a > f else f) + e[j]
        for j in range(K):
            logs[t, j] = v[j]


@njit(cache=True, nogil=True, boundscheck=False)
def _top_of_eight(row, into):
    """Where row + into is the largest, in three rounds; the lowest of equals."""
    x0, x1, x2, x3 = row[0] + into[0], row[1] + into[1], row[2] + into[2], row[3] + into[3]
    x4, x5, x6, x7 = row[4] + into[4], row[5] + into[5], row[6] + into[6], row[7] + into[7]
    a, b, c, d = 0, 2, 4, 6
    if x1 > x0:
        a, x0 = 1, x1
    if x3 > x2:
        b, x2 = 3, x3
    if x5 > x4:
        c, x4 = 5, x5
    if x7 > x6:
        d, x6 = 7, x7
    if x2 > x0:
        a, x0 = b, x2
    if x6 > x4:
        c, x4 = d, x6
    return c if x4 > x0 else a


@njit(cache=True, nogil=True, boundscheck=False)
def _back_through_eight(log_AT, logs, first, stop, path):
    """Walk back from path[stop − 1] through eight states."""
    last = path[stop - 1]
    for t in range(stop - 2, first - 1, -1):
        last = _top_of_eight(logs[t], log_AT[last])
        path[t] = last


@njit(cache=True, nogil=True, boundscheck=False)
def _step_of_eight(v, M, row, out):
    """out = v ← max_i (v[i] + M[i, ·]) + row."""
    v0, v1, v2, v3, v4, v5, v6, v7 = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
    for j in range(8):
        a, b = v0 + M[0, j], v1 + M[1, j]
        c, d = v2 + M[2, j], v3 + M[3, j]
        f, g = v4 + M[4, j], v5 + M[5, j]
        h, i = v6 + M[6, j], v7 + M[7, j]
        a = a if a > b else b
        c = c if c > d else d
        f = f if f > g else g
        h = h if h > i else i
        a = a if a > c else c
        f = f if f > h else h
        y = (a if a > f else f) + row[j]
        v[j] = y
        out[j] = y


@njit(cache=True, nogil=True, boundscheck=False)
def viterbi_symbols(log_start, log_A, log_AT, columns, data, logs, offsets, lo, hi, path, best):
    """`viterbi` of eight states and symbols data (N,), rows of columns (M, 8); logs (N, 8) is memory to work in.

    Every step waits for the one before, so that a sequence is worked on from both ends at once: the best paths up to
    the middle, and from there on; and both halves of the path are walked from the middle outward.
    """
    v, w = np.empty(8), np.empty(8)
    for s in range(lo, hi):
        first, stop = offsets[s], offsets[s + 1]
        half = (stop - first) // 2
        for j in range(8):
            v[j] = log_start[j] + columns[data[first], j]
            logs[first, j] = v[j]
        if half:
            for j in range(8):
                w[j] = columns[data[stop - 1], j]
                logs[stop - 1, j] = w[j]
        for i in range(1, half):
            t, u = first + i, stop - 1 - i
            _step_of_eight(v, log_A, columns[data[t]], logs[t])
            _step_of_eight(w, log_AT, columns[data[u]], logs[u])
        middle = stop - 1 - half
        for t in range(first + max(half, 1), middle + 1):
            _step_of_eight(v, log_A, columns[data[t]], logs[t])
        left, right, top = 0, 0, -math.inf
        for i in range(8):
            for j in range(8):
                x = v[i] + log_A[i, j] + w[j] if half else v[i]
                if x > top:
                    left, right, top = i, j, x
        best[s] = top
        path[middle] = left
        if half:
            path[middle + 1] = right
        for i in range(1, half):
            left = _top_of_eight(logs[middle - i], log_AT[left])
            right = _top_of_eight(logs[middle + 1 + i], log_A[right])
            path[middle - i] = left
            path[middle + 1 + i] = right
        for t in range(middle - max(half, 1), first - 1, -1):
            left = _top_of_eight(logs[t], log_AT[left])
            path[t] = left


@njit(cache=True, nogil=True, boundscheck=False)
def viterbi(log_start, log_A, log_AT, logs, offsets, lo, hi, path, best):
    """The most probable states, path (N,), and their log joint probability, best (S,); overwrites logs.

    Only the values are carried forward; which state a value came from is looked up for the one path that is walked
    back. Of equal paths, the one with the lowest states from the end is taken. best = −inf: no path is possible.
    """
    K = log_start.shape[0]
    step, small = np.empty(K), np.full((8, 8), -math.inf)
    v, e = np.full(8, -math.inf), np.full(8, -math.inf)
    if K <= 8:
        small[:K, :K] = log_A
    for s in range(lo, hi):
        first, stop = offsets[s], offsets[s + 1]
        for j in range(K):
            logs[first, j] += log_start[j]
        if K <= 8:
            _best_of_eight(small, logs, first, stop, v, e)
        else:
            for t in range(first + 1, stop):
                _best_step(logs[t - 1], log_A, step)
                row = logs[t]
                for j in range(K):
                    row[j] += step[j]
        last = 0
        for j in range(1, K):
            if logs[stop - 1, j] > logs[stop - 1, last]:
                last = j
        best[s] = logs[stop - 1, last]
        path[stop - 1] = last
        if K == 8:
            _back_through_eight(log_AT, logs, first, stop, path)
            continue
        for t in range(stop - 2, first - 1, -1):
            row, into = logs[t], log_AT[path[t + 1]]
            last, top = 0, row[0] + into[0]
            for i in range(1, K):
                x = row[i] + into[i]
                if x > top:
                    last, top = i, x
            path[t] = last


# --- draws --------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, boundscheck=False)
def _draw(weights, u):
    """The index at which the running sum passes u times the total; never one of weight zero."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
    left = u * total
    last = 0
    for i in range(weights.shape[0]):
        if weights[i] > 0.0:
            last = i
            left -= weights[i]
            if left < 0.0:
                break
    return last


@njit(cache=True, nogil=True, boundscheck=False)
def draw_backward(alpha, AT, offsets, lo, hi, uniforms, path):
    """States drawn given the observations, from the last to the first: uniforms (N,), path (N,)."""
    K = AT.shape[0]
    weights = np.empty(K)
    for s in range(lo, hi):
        first, stop = offsets[s], offsets[s + 1]
        for t in range(stop - 1, first - 1, -1):
            for i in range(K):
                weights[i] = alpha[t, i] if t == stop - 1 else alpha[t, i] * AT[path[t + 1], i]
            path[t] = _draw(weights, uniforms[t])


@njit(cache=True, nogil=True, boundscheck=False)
def draw_chain(start, A, offsets, uniforms, path):
    """States drawn from the prior: uniforms (N,), path (N,)."""
    for s in range(offsets.shape[0] - 1):
        for t in range(offsets[s], offsets[s + 1]):
            path[t] = _draw(start if t == offsets[s] else A[path[t - 1]], uniforms[t])


# --- a linear recursion -------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def affine_rows(M, u):
    """u[t] += u[t − 1] M, from the second row on, in place."""
    K = M.shape[0]
    step = np.empty(K)
    for t in range(1, u.shape[0]):
        _times(u[t - 1], M, step)
        row = u[t]
        for j in range(K):
            row[j] += step[j]


# --- emissions ----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, boundscheck=False)
def symbol_counts(symbols, gamma, out):
    """out (M, K) += Σ_t gamma[t] in the row of its symbol; symbols below zero were not observed."""
    K = gamma.shape[1]
    for t in range(symbols.shape[0]):
        if symbols[t] >= 0:
            row = out[symbols[t]]
            for k in range(K):
                row[k] += gamma[t, k]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def _diagonal_of_eight(X, means, precisions, constants, out):
    """`diagonal_gaussian_logs` of eight states: loops of known length stay in registers."""
    n, d = X.shape
    total = np.empty(8)
    for t in range(n):
        for k in range(8):
            total[k] = 0.0
        for i in range(d):
            x = X[t, i]
            if x == x:
                for k in range(8):
                    y = x - means[i, k]
                    total[k] += constants[i, k] - 0.5 * (y * y) * precisions[i, k]
        for k in range(8):
            out[t, k] = total[k]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def diagonal_gaussian_logs(X, means, precisions, constants, out):
    """log N(x_t | mean_k, diag) of the observed entries; means, precisions, constants (d, K), out (N, K).

    constants[i, k] = −½ log(2π σ²). NaN entries of X were not observed.
    """
    n, d = X.shape
    K = means.shape[1]
    if K == 8:
        _diagonal_of_eight(X, means, precisions, constants, out)
        return
    for t in range(n):
        row = out[t]
        for k in range(K):
            row[k] = 0.0
        for i in range(d):
            x = X[t, i]
            if x == x:
                m, p, c = means[i], precisions[i], constants[i]
                for k in range(K):
                    y = x - m[k]
                    row[k] += c[k] - 0.5 * (y * y) * p[k]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def weighted_moments(X, gamma, weights, sums):
    """weights and sums (d, K) += Σ_t gamma[t, k] and Σ_t gamma[t, k] x_t over observed entries."""
    n, d = X.shape
    K = gamma.shape[1]
    done = n - n % 4
    for t in range(0, done, 4):  # four rows at a time: short loops over states cost more to begin than to run
        g0, g1, g2, g3 = gamma[t], gamma[t + 1], gamma[t + 2], gamma[t + 3]
        for i in range(d):
            # a gap weighs nothing
            w0 = 1.0 if X[t, i] == X[t, i] else 0.0
            w1 = 1.0 if X[t + 1, i] == X[t + 1, i] else 0.0
            w2 = 1.0 if X[t + 2, i] == X[t + 2, i] else 0.0
            w3 = 1.0 if X[t + 3, i] == X[t + 3, i] else 0.0
            x0 = X[t, i] if w0 > 0.0 else 0.0
            x1 = X[t + 1, i] if w1 > 0.0 else 0.0
            x2 = X[t + 2, i] if w2 > 0.0 else 0.0
            x3 = X[t + 3, i] if w3 > 0.0 else 0.0
            w, a = weights[i], sums[i]
            for k in range(K):
                w[k] += (g0[k] * w0 + g1[k] * w1) + (g2[k] * w2 + g3[k] * w3)
                a[k] += (g0[k] * x0 + g1[k] * x1) + (g2[k] * x2 + g3[k] * x3)
    for t in range(done, n):
        for i in range(d):
            x = X[t, i]
            if x == x:
                for k in range(K):
                    weights[i, k] += gamma[t, k]
                    sums[i, k] += gamma[t, k] * x


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})
def weighted_squares(X, gamma, means, squares):
    """squares (d, K) += Σ_t gamma[t, k] (x_t − mean_k)² over observed entries; means (d, K)."""
    n, d = X.shape
    K = gamma.shape[1]
    done = n - n % 4
    for t in range(0, n, 4):
        for i in range(d):
            m, q = means[i], squares[i]
            x0 = X[t, i]
            whole = t < done
            if whole:
                x1, x2, x3 = X[t + 1, i], X[t + 2, i], X[t + 3, i]
                total = (x0 + x1) + (x2 + x3)
                whole = total == total
            if whole:
                g0, g1, g2, g3 = gamma[t], gamma[t + 1], gamma[t + 2], gamma[t + 3]
                for k in range(K):
                    y0, y1, y2, y3 = x0 - m[k], x1 - m[k], x2 - m[k], x3 - m[k]
                    q[k] += (g0[k] * (y0 * y0) + g1[k] * (y1 * y1)) + (g2[k] * (y2 * y2) + g3[k] * (y3 * y3))
            else:
                for u in range(t, min(t + 4, n)):
                    x = X[u, i]
                    if x == x:
                        for k in range(K):
                            y = x - m[k]
                            q[k] += gamma[u, k] * (y * y)
