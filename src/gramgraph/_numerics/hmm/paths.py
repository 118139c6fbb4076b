"""The k most probable paths, transitions that change from step to step, and states with durations of their own.

Logarithms throughout; nothing is checked. logs (T, K) are log p(x_t | state) of one sequence.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.hmm.recursions import log_sum


@njit(cache=True, nogil=True, boundscheck=False)
def best_paths(log_start, log_AT, logs, n, paths, values):
    """The n most probable paths of one sequence, paths (n, T), values (n,), best first; −1 and −inf where none is left.

    values[t, j, r] is the r-th best log p(path to j at t, x up to t); each list is merged from the lists of the states
    before, which are sorted. O(T K (K + n K)) time, O(T K n) memory.
    """
    T, K = logs.shape
    value = np.full((T, K, n), -math.inf)
    from_state = np.zeros((T, K, n), dtype=np.int32)
    from_rank = np.zeros((T, K, n), dtype=np.int32)
    for j in range(K):
        value[0, j, 0] = log_start[j] + logs[0, j]
    at = np.zeros(K, dtype=np.int64)
    for t in range(1, T):
        for j in range(K):
            at[:] = 0
            for r in range(n):
                top, who = -math.inf, -1
                for i in range(K):
                    if at[i] < n:
                        x = value[t - 1, i, at[i]] + log_AT[j, i]
                        if x > top:
                            top, who = x, i
                if who < 0:
                    break
                value[t, j, r] = top + logs[t, j]
                from_state[t, j, r], from_rank[t, j, r] = who, at[who]
                at[who] += 1
    at[:] = 0
    for r in range(n):
        top, who = -math.inf, -1
        for i in range(K):
            if at[i] < n and value[T - 1, i, at[i]] > top:
                top, who = value[T - 1, i, at[i]], i
        values[r] = top
        if who < 0:
            for t in range(T):
                paths[r, t] = -1
            continue
        rank = at[who]
        at[who] += 1
        for t in range(T - 1, -1, -1):
            paths[r, t] = who
            who, rank = from_state[t, who, rank], from_rank[t, who, rank]


# --- transitions by an input: log_A (U, K, K), inputs (T,); the step to t is log_A[inputs[t]] ----------------------


@njit(cache=True, nogil=True, boundscheck=False)
def input_forward(log_start, log_A, inputs, logs, alpha):
    """Log of p(state | x up to t), alpha (T, K); (log p(x), first impossible row or −1)."""
    T, K = logs.shape
    work = np.empty(K)
    total = 0.0
    for t in range(T):
        for j in range(K):
            if t == 0:
                alpha[0, j] = log_start[j] + logs[0, j]
            else:
                for i in range(K):
                    work[i] = alpha[t - 1, i] + log_A[inputs[t], i, j]
                alpha[t, j] = log_sum(work) + logs[t, j]
        c = log_sum(alpha[t])
        if c == -math.inf:
            return c, t
        total += c
        for j in range(K):
            alpha[t, j] -= c
    return total, -1


@njit(cache=True, nogil=True, boundscheck=False)
def input_backward(log_A, inputs, logs, alpha, gamma, pairs):
    """gamma (T, K) and pairs (U, K, K) += expected transitions under each input, from `input_forward`'s alpha."""
    T, K = logs.shape
    beta, new, work = np.zeros(K), np.empty(K), np.empty(K)
    for t in range(T - 1, -1, -1):
        if t < T - 1:
            A = log_A[inputs[t + 1]]
            for i in range(K):
                for j in range(K):
                    work[j] = A[i, j] + logs[t + 1, j] + beta[j]
                new[i] = log_sum(work)
            for i in range(K):
                work[i] = alpha[t, i] + new[i] if alpha[t, i] > -math.inf else -math.inf
            norm = log_sum(work)
            for i in range(K):
                if alpha[t, i] > -math.inf:
                    for j in range(K):
                        x = alpha[t, i] + A[i, j] + logs[t + 1, j] + beta[j] - norm
                        pairs[inputs[t + 1], i, j] += math.exp(x)
            for i in range(K):
                beta[i] = new[i] - norm
        for i in range(K):
            work[i] = alpha[t, i] + beta[i] if alpha[t, i] > -math.inf else -math.inf
        norm = log_sum(work)
        for i in range(K):
            gamma[t, i] = math.exp(work[i] - norm)


@njit(cache=True, nogil=True, boundscheck=False)
def input_viterbi(log_start, log_A, inputs, logs, path):
    """The most probable states of one sequence, path (T,), and their log joint probability; overwrites logs."""
    T, K = logs.shape
    for j in range(K):
        logs[0, j] += log_start[j]
    for t in range(1, T):
        A = log_A[inputs[t]]
        for j in range(K):
            top = -math.inf
            for i in range(K):
                x = logs[t - 1, i] + A[i, j]
                if x > top:
                    top = x
            logs[t, j] += top
    last = 0
    for j in range(1, K):
        if logs[T - 1, j] > logs[T - 1, last]:
            last = j
    best = logs[T - 1, last]
    path[T - 1] = last
    for t in range(T - 2, -1, -1):
        A = log_A[inputs[t + 1]]
        last = 0
        for i in range(1, K):
            if logs[t, i] + A[i, path[t + 1]] > logs[t, last] + A[last, path[t + 1]]:
                last = i
        path[t] = last
    return best


# --- durations: log_D (K, D) of 1 … D steps, log_last for the last stay ---------------------------------


@njit(cache=True, nogil=True, boundscheck=False)
def duration_forward(log_start, log_A, log_D, log_last, logs, begin, end):
    """begin[t, j] = log p(x before t, a stay in j begins at t), end[t, j] = log p(x up to t, it ends at t); log p(x).

    log_last (K, D) takes the place of log_D for the stay that the end of the sequence ends.
    """
    T, K = logs.shape
    D = log_D.shape[1]
    work, stay = np.empty(K), np.empty(D)
    for t in range(T):
        for j in range(K):
            if t == 0:
                begin[0, j] = log_start[j]
            else:
                for i in range(K):
                    work[i] = end[t - 1, i] + log_A[i, j]
                begin[t, j] = log_sum(work)
        for j in range(K):
            run = 0.0
            longest = min(D, t + 1)
            for d in range(1, longest + 1):
                run += logs[t - d + 1, j]
                p = log_last[j, d - 1] if t == T - 1 else log_D[j, d - 1]
                stay[d - 1] = begin[t - d + 1, j] + p + run
            end[t, j] = log_sum(stay[:longest])
    return log_sum(end[T - 1])


@njit(cache=True, nogil=True, boundscheck=False)
def duration_backward(log_A, log_D, log_last, logs, begin, end, total, gamma, pairs, stays, cut):
    """gamma (T, K), pairs (K, K) += expected moves, stays (K, D) += expected durations, cut those of the last.

    From `duration_forward`'s begin and end, with total = log p(x).
    """
    T, K = logs.shape
    D = log_D.shape[1]
    after, work, terms = np.zeros((T, K)), np.empty(K), np.empty(D)  # after[t] = log p(x after t | a stay ends at t)
    since = np.zeros((T, K))  # log p(x from t on | a stay begins at t)
    for t in range(T - 1, -1, -1):
        if t < T - 1:
            for i in range(K):
                for j in range(K):
                    work[j] = log_A[i, j] + since[t + 1, j]
                after[t, i] = log_sum(work)
        for j in range(K):
            run = 0.0
            longest = min(D, T - t)
            for d in range(1, longest + 1):
                run += logs[t + d - 1, j]
                p = log_last[j, d - 1] if t + d == T else log_D[j, d - 1]
                terms[d - 1] = p + run + after[t + d - 1, j]
                x = begin[t, j] + terms[d - 1] - total
                if x > -700.0:
                    if t + d == T:
                        cut[j, d - 1] += math.exp(x)
                    else:
                        stays[j, d - 1] += math.exp(x)
            since[t, j] = log_sum(terms[:longest])
    for t in range(T):
        for j in range(K):
            here = gamma[t - 1, j] - math.exp(end[t - 1, j] + after[t - 1, j] - total) if t > 0 else 0.0
            here += math.exp(begin[t, j] + since[t, j] - total)
            gamma[t, j] = min(max(here, 0.0), 1.0)
        if t > 0:
            for i in range(K):
                for j in range(K):
                    x = end[t - 1, i] + log_A[i, j] + since[t, j] - total
                    if x > -700.0:
                        pairs[i, j] += math.exp(x)


@njit(cache=True, nogil=True, boundscheck=False)
def duration_viterbi(log_start, log_A, log_D, log_last, logs, path):
    """The most probable states with their stays, path (T,); log p(path, stays, x)."""
    T, K = logs.shape
    D = log_D.shape[1]
    begin, end = np.empty((T, K)), np.empty((T, K))
    came, length = np.zeros((T, K), dtype=np.int64), np.zeros((T, K), dtype=np.int64)
    for t in range(T):
        for j in range(K):
            if t == 0:
                begin[0, j] = log_start[j]
            else:
                top = -math.inf
                for i in range(K):
                    x = end[t - 1, i] + log_A[i, j]
                    if x > top:
                        top = x
                        came[t, j] = i
                begin[t, j] = top
        for j in range(K):
            run, top = 0.0, -math.inf
            for d in range(1, min(D, t + 1) + 1):
                run += logs[t - d + 1, j]
                x = begin[t - d + 1, j] + (log_last[j, d - 1] if t == T - 1 else log_D[j, d - 1]) + run
                if x > top:
                    top = x
                    length[t, j] = d
            end[t, j] = top
    state = 0
    for j in range(1, K):
        if end[T - 1, j] > end[T - 1, state]:
            state = j
    best = end[T - 1, state]
    t = T - 1
    while t >= 0 and best > -math.inf:
        d = length[t, state]
        for u in range(t - d + 1, t + 1):
            path[u] = state
        t -= d
        if t >= 0:
            state = came[t + 1, state]
    return best
