"""Filters of discrete states that take observations as they come: beliefs are changed in place.

Beliefs stay as they were when an observation has probability zero; then the number of rows done tells which.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put_matrix

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit(no_cpython_wrapper=True)
def _weigh(pred, logs, now):
    """now ∝ pred exp(logs), sum one; log of what it summed to, −inf where that is zero. Works when pred is now."""
    K = pred.shape[0]
    top = -math.inf
    for j in range(K):
        if pred[j] > 0.0:
            x = math.log(pred[j]) + logs[j]
            if x > top:
                top = x
    if not -math.inf < top < math.inf:
        return -math.inf
    total = 0.0
    for j in range(K):
        x = math.exp(math.log(pred[j]) + logs[j] - top) if pred[j] > 0.0 else 0.0
        now[j] = x
        total += x
    for j in range(K):
        now[j] /= total
    return top + math.log(total)


@_jit(no_cpython_wrapper=True)
def _normalize(x):
    """x divided by its sum."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j]
    for j in range(x.shape[0]):
        x[j] /= total


@_jit(no_cpython_wrapper=True)
def _move(belief, A, out):
    """out = belief A, divided by its sum."""
    K = belief.shape[0]
    for j in range(K):
        out[j] = 0.0
    for i in range(K):
        b = belief[i]
        if b > 0.0:
            for j in range(K):
                out[j] += b * A[i, j]
    _normalize(out)


@_jit
def filter_rows(belief, A, inputs, logs, fresh, total, out):
    """out[t] = p(state | x up to t) for the rows logs (n, K); (rows done, total + log p(rows)).

    The move to row t is A[inputs[t]], A[0] where there are no inputs; a fresh filter does not move to the first row.
    """
    n = logs.shape[0]
    K = belief.shape[0]
    pred = np.empty(K)
    before = belief
    for t in range(n):
        if fresh and t == 0:
            for j in range(K):
                pred[j] = before[j]
        else:
            _move(before, A[inputs[t] if inputs.shape[0] else 0], pred)
        c = _weigh(pred, logs[t], out[t])
        if c == -math.inf:
            return t, total
        total += c
        before = out[t]
    if n:
        for j in range(K):
            belief[j] = out[n - 1, j]
    return n, total


@_jit
def sense_row(belief, likelihood, logs):
    """belief ∝ likelihood · belief; log of the sum, −inf where it is zero, NaN where likelihood is no likelihood."""
    for j in range(belief.shape[0]):
        p = likelihood[j]
        if not 0.0 <= p < math.inf:
            return math.nan
        logs[j] = math.log(p) if p > 0.0 else -math.inf
    return _weigh(belief, logs, belief)


@_jit
def act_row(belief, A, tolerance, out):
    """out = belief A, rows of A divided by their sums; False where A is no matrix of probabilities."""
    K = belief.shape[0]
    for j in range(K):
        out[j] = 0.0
    for i in range(K):
        row = 0.0
        for j in range(K):
            if not 0.0 <= A[i, j] < math.inf:
                return False
            row += A[i, j]
        if not abs(row - 1.0) <= tolerance:
            return False
        b = belief[i] / row
        if b > 0.0:
            for j in range(K):
                out[j] += b * A[i, j]
    _normalize(out)
    return True


@_jit
def duration_rows(belief, start, A, durations, logs, fresh, total, out):
    """The same for stays: belief[k, r] = p(state k, r more steps after this one | x so far), (K, D); out (n, K)."""
    n = logs.shape[0]
    K, D = durations.shape
    old, pred, states = belief.copy(), np.empty((K, D)), np.empty(K)
    for t in range(n):
        for k in range(K):
            enter = start[k] if fresh and t == 0 else 0.0
            for i in range(K):
                enter += old[i, 0] * A[i, k]
            states[k] = 0.0
            for r in range(D):
                pred[k, r] = enter * durations[k, r] + (old[k, r + 1] if r + 1 < D else 0.0)
                states[k] += pred[k, r]
        c = _weigh(states, logs[t], out[t])
        if c == -math.inf:
            return t, total
        total += c
        for k in range(K):
            share = out[t, k] / states[k] if states[k] > 0.0 else 0.0
            for r in range(D):
                old[k, r] = pred[k, r] * share
    put_matrix(old, belief)
    return n, total
