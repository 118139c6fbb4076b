"""Recursions of hidden Markov chains over many sequences that stand one after the other.

Sequence s has rows offsets[s] … offsets[s + 1] − 1; every function does the sequences lo … hi − 1, so that threads can
share a batch. start (K,), A (K, K) with A[i, j] = p(j | i), AT its transpose; b (N, K) are p(x_t | state) up to a
factor a row. Arrays are C-ordered float64; nothing is checked.

Loops over the rows name no row of a matrix by itself: compiled code would count the references to it, up and down in
every step, and each count waits until all that was written before has left the processor.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.vector8 import add8, fill8, fma8, load8, store8

#: A row whose sum is below this may have lost states to underflow: the sequence is done again with logarithms.
_SMALL = 1e-100
#: Forward probabilities below this count as zero: their backward values could overflow.
_NOTHING = 1e-290


def _matrix_product(V, t, M, out):
    np.dot(V[t], M, out=out)


@njit(
    cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"}, no_cpython_wrapper=True, forceinline=True,
    plain=_matrix_product,
)  # fmt: skip
def _times(V, t, M, out):
    """out = V[t] M: eight columns at a time are summed in registers."""
    K = V.shape[1]
    pairs = K - K % 2
    for j in range(0, K - 7, 8):
        even, odd = fill8(0.0), fill8(0.0)
        for i in range(0, pairs, 2):
            even = fma8(fill8(V[t, i]), load8(M, np.uint64(i * K + j)), even)
            odd = fma8(fill8(V[t, i + 1]), load8(M, np.uint64(i * K + K + j)), odd)
        if pairs < K:
            even = fma8(fill8(V[t, pairs]), load8(M, np.uint64(pairs * K + j)), even)
        store8(out, np.uint64(j), add8(even, odd))
    for j in range(K - K % 8, K):
        x = 0.0
        for i in range(K):
            x += V[t, i] * M[i, j]
        out[j] = x


def _forward_by_rows(start, A, b, offsets, lo, hi, alpha, scale, failed):
    ones, pred = np.ones(len(start)), np.empty(len(start))
    for s in range(lo, hi):
        failed[s] = -1
        first, stop = int(offsets[s]), int(offsets[s + 1])
        pred[:] = start
        for t, seen, row in zip(range(first, stop), b[first:stop], alpha[first:stop], strict=True):
            np.multiply(pred, seen, row)
            total = ones.dot(row)
            if not total > _SMALL:
                failed[s] = t
                break
            scale[t] = total
            np.multiply(row, 1.0 / total, row)
            row.dot(A, pred)


@njit(
    cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"}, plain=_forward_by_rows,
)  # fmt: skip
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
            if t == first:
                for j in range(K):
                    pred[j] = start[j]
            else:
                _times(alpha, t - 1, A, pred)
            total = 0.0
            for j in range(K):
                x = pred[j] * b[t, j]
                alpha[t, j] = x
                total += x
            if not total > _SMALL:
                failed[s] = t
                break
            scale[t] = total
            inv = 1.0 / total
            for j in range(K):
                alpha[t, j] *= inv


def _backward_by_rows(AT, b, scale, offsets, lo, hi, alpha, failed, gamma):
    for s in range(lo, hi):
        rows = slice(int(offsets[s]), int(offsets[s + 1]))
        if failed[s] >= 0:
            b[rows] = 0.0
            alpha[rows] = 0.0
        else:
            gamma[rows] = alpha[rows]
            _smooth_rows(AT, b[rows], scale[rows], gamma[rows], b[rows])
            b[rows][:1] = 0.0


def _smooth_rows(AT, b, scale, alpha, weights):
    """alpha becomes p(state | all x) of one sequence, and weights those of pairs, but for the transitions; b may be
    the same array as weights."""
    lost = ~(alpha > _NOTHING)
    some_lost = lost.any(axis=1).tolist()
    ones, beta = np.ones(alpha.shape[1]), np.ones(alpha.shape[1])
    for t in range(len(alpha) - 1, -1, -1):
        row, weight = alpha[t], weights[t]
        if some_lost[t]:
            beta[lost[t]] = 0.0
        np.multiply(row, beta, row)
        inv = 1.0 / ones.dot(row)
        np.multiply(row, inv, row)
        np.multiply(beta, inv / scale[t], beta)
        np.multiply(beta, b[t], weight)
        weight.dot(AT, beta)


@njit(
    cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"}, plain=_backward_by_rows,
)  # fmt: skip
def backward(AT, b, scale, offsets, lo, hi, alpha, failed, gamma):
    """gamma[t] = p(state | all x); b becomes the weights of pairs.

    Then p(state i at t − 1, state j at t | all x) = alpha[t − 1, i] A[i, j] b[t, j]; b is 0 in first rows and in
    sequences that failed, so that Σ_t of it is one product of matrices.
    """
    K = b.shape[1]
    beta, weight = np.empty(K), np.empty((1, K))
    for s in range(lo, hi):
        first, stop = offsets[s], offsets[s + 1]
        if failed[s] >= 0:
            for t in range(first, stop):
                for j in range(K):
                    b[t, j] = 0.0
                    alpha[t, j] = 0.0
            continue
        for t in range(stop - 1, first - 1, -1):
            if t == stop - 1:
                for j in range(K):
                    beta[j] = 1.0
            else:
                _times(weight, 0, AT, beta)
            total = 0.0
            for j in range(K):
                x = alpha[t, j] * beta[j] if alpha[t, j] > _NOTHING else 0.0
                gamma[t, j] = x
                total += x
            inv = 1.0 / total
            step = inv / scale[t]
            for j in range(K):
                gamma[t, j] *= inv
                weight[0, j] = beta[j] * step * b[t, j] if alpha[t, j] > _NOTHING else 0.0
            if t == first:
                for j in range(K):
                    b[t, j] = 0.0
            else:
                for j in range(K):
                    b[t, j] = weight[0, j]


def _backward_in_place_by_rows(AT, b, scale, offsets, lo, hi, alpha, failed, pairs, wanted):
    for s in range(lo, hi):
        if failed[s] < 0:
            rows = slice(int(offsets[s]), int(offsets[s + 1]))
            before, weights = alpha[rows].copy(), np.empty_like(b[rows])
            _smooth_rows(AT, b[rows], scale[rows], alpha[rows], weights)
            if wanted:
                pairs += before[:-1].T @ weights[1:]


@njit(
    cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"},
    plain=_backward_in_place_by_rows,
)  # fmt: skip
def backward_in_place(AT, b, scale, offsets, lo, hi, alpha, failed, pairs, wanted):
    """alpha becomes p(state | all x); where wanted, pairs (K, K) += Σ_t alpha[t − 1]ᵀ weight[t], to be multiplied by A.

    For few states: one pass over memory less than `backward` and a product of matrices. Sequences that failed are left.
    """
    K = b.shape[1]
    beta, weight = np.empty(K), np.empty((1, K))
    for s in range(lo, hi):
        if failed[s] >= 0:
            continue
        first, stop = offsets[s], offsets[s + 1]
        for t in range(stop - 1, first - 1, -1):
            if t == stop - 1:
                for j in range(K):
                    beta[j] = 1.0
            else:
                if wanted:
                    for i in range(K):
                        x = alpha[t, i]
                        for j in range(K):
                            pairs[i, j] += x * weight[0, j]
                _times(weight, 0, AT, beta)
            total = 0.0
            for j in range(K):
                y = beta[j] if alpha[t, j] > _NOTHING else 0.0
                beta[j] = y
                x = alpha[t, j] * y
                alpha[t, j] = x
                total += x
            inv = 1.0 / total
            step = inv / scale[t]
            for j in range(K):
                alpha[t, j] *= inv
                weight[0, j] = beta[j] * step * b[t, j]


# --- with logarithms: slower, for sequences where numbers would underflow -----------------------------------------


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def log_sum(x):
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
                alpha[t, j] = log_sum(work) + logs[t, j]
        c = log_sum(alpha[t])
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
                new[i] = log_sum(work)
            norm = -math.inf
            for i in range(K):
                work[i] = alpha[t, i] + new[i] if alpha[t, i] > -math.inf else -math.inf
            norm = log_sum(work)
            for i in range(K):
                if alpha[t, i] > -math.inf:
                    for j in range(K):
                        pairs[i, j] += math.exp(alpha[t, i] + log_A[i, j] + logs[t + 1, j] + beta[j] - norm)
            for i in range(K):
                beta[i] = new[i] - norm
        for i in range(K):
            work[i] = alpha[t, i] + beta[i] if alpha[t, i] > -math.inf else -math.inf
        norm = log_sum(work)
        for i in range(K):
            gamma[t, i] = math.exp(work[i] - norm)


# --- most probable paths ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
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
    K = u.shape[1]
    step = np.empty(K)
    for t in range(1, u.shape[0]):
        _times(u, t - 1, M, step)
        for j in range(K):
            u[t, j] += step[j]
