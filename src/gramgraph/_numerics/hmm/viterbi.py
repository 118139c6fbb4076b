"""Viterbi decoding of many sequences that stand one after the other; layout as in `hmm`."""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put_matrix
from gramgraph._numerics.vector8 import add8, fill8, load8, max8, store8


def _best_sums(logs, t, M):
    logs[t] += (logs[t - 1][:, None] + M).max(axis=0)


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True, forceinline=True, plain=_best_sums)
def _best_step(logs, t, M):
    """logs[t, j] += max_i logs[t − 1, i] + M[i, j]: eight columns at a time are compared in registers."""
    K = logs.shape[1]
    pairs = K - K % 2
    for j in range(0, K - 7, 8):
        even, odd = fill8(-math.inf), fill8(-math.inf)
        for i in range(0, pairs, 2):
            even = max8(even, add8(fill8(logs[t - 1, i]), load8(M, np.uint64(i * K + j))))
            odd = max8(odd, add8(fill8(logs[t - 1, i + 1]), load8(M, np.uint64(i * K + K + j))))
        if pairs < K:
            even = max8(even, add8(fill8(logs[t - 1, pairs]), load8(M, np.uint64(pairs * K + j))))
        at = np.uint64(t * K + j)
        store8(logs, at, add8(max8(even, odd), load8(logs, at)))
    for j in range(K - K % 8, K):
        top = -math.inf
        for i in range(K):
            x = logs[t - 1, i] + M[i, j]
            top = x if x > top else top
        logs[t, j] += top


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
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


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _best_of_eight(M, logs, first, stop, v, e):
    """logs[t, j] += max_i logs[t − 1, i] + M[i, j] for less than eight states: M (8, 8) and v, e (8,) end with −inf.

    The length of the inner loop is known, so that the states stay in registers.
    """
    K = logs.shape[1]
    for j in range(K):
        v[j] = logs[first, j]
    for t in range(first + 1, stop):
        for j in range(K):
            e[j] = logs[t, j]
        _step_of_eight(v, M, e, e)
        for j in range(K):
            logs[t, j] = v[j]


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
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


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _back_through_eight(log_AT, logs, first, stop, path):
    """Walk back from path[stop − 1] through eight states."""
    last = path[stop - 1]
    for t in range(stop - 2, first - 1, -1):
        last = _top_of_eight(logs[t], log_AT[last])
        path[t] = last


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
    small, v, e = np.full((8, 8), -math.inf), np.full(8, -math.inf), np.full(8, -math.inf)
    if K < 8:
        put_matrix(log_A, small)
    for s in range(lo, hi):
        first, stop = offsets[s], offsets[s + 1]
        for j in range(K):
            logs[first, j] += log_start[j]
        if K < 8:
            _best_of_eight(small, logs, first, stop, v, e)
        else:
            for t in range(first + 1, stop):
                _best_step(logs, t, log_A)
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
