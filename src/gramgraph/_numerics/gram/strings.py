"""Dynamic programs over pairs of words: gap-weighted subsequences and edit distance.

Words are codes in one array; word i is codes[ends[i]:ends[i + 1]]. Results are written into (n, m) arrays; with
`symmetric` the second words are the first, and only one half is computed.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _subsequence_pair(s, t, length, decay, before, here):
    """Σ over common subsequences u of the length, over its places in s and t, of decay^(spans)."""
    n, m = len(s), len(t)
    square = decay * decay
    for i in range(n + 1):
        for j in range(m + 1):
            before[i, j] = 1.0
    for _ in range(length - 1):
        for j in range(m + 1):
            here[0, j] = 0.0
        for i in range(1, n + 1):
            here[i, 0] = 0.0
            run = 0.0
            for j in range(1, m + 1):
                run *= decay
                if s[i - 1] == t[j - 1]:
                    run += square * before[i - 1, j - 1]
                here[i, j] = decay * here[i - 1, j] + run
        before, here = here, before
    total = 0.0
    for i in range(n):
        for j in range(m):
            if s[i] == t[j]:
                total += square * before[i, j]
    return total


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _subsequence_pair_slope(s, t, length, decay, before, here, d_before, d_here):
    """The derivative by decay of `_subsequence_pair`: every recursion with its derivative beside it."""
    n, m = len(s), len(t)
    square = decay * decay
    for i in range(n + 1):
        for j in range(m + 1):
            before[i, j] = 1.0
            d_before[i, j] = 0.0
    for _ in range(length - 1):
        for j in range(m + 1):
            here[0, j] = 0.0
            d_here[0, j] = 0.0
        for i in range(1, n + 1):
            here[i, 0] = 0.0
            d_here[i, 0] = 0.0
            run = 0.0
            d_run = 0.0
            for j in range(1, m + 1):
                d_run = run + decay * d_run
                run *= decay
                if s[i - 1] == t[j - 1]:
                    d_run += 2.0 * decay * before[i - 1, j - 1] + square * d_before[i - 1, j - 1]
                    run += square * before[i - 1, j - 1]
                d_here[i, j] = here[i - 1, j] + decay * d_here[i - 1, j] + d_run
                here[i, j] = decay * here[i - 1, j] + run
        before, here = here, before
        d_before, d_here = d_here, d_before
    total = 0.0
    for i in range(n):
        for j in range(m):
            if s[i] == t[j]:
                total += 2.0 * decay * before[i, j] + square * d_before[i, j]
    return total


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _longest(ends):
    longest = 0
    for i in range(len(ends) - 1):
        longest = max(longest, ends[i + 1] - ends[i])
    return longest


@njit(cache=True, nogil=True, boundscheck=False)
def subsequence_gram(x, x_ends, y, y_ends, symmetric, length, decay, K):
    """K of the gap-weighted subsequence kernel; O(length |s| |t|) a pair."""
    a, b = _longest(x_ends) + 1, _longest(y_ends) + 1
    before, here = np.empty((a, b)), np.empty((a, b))
    for i in range(len(x_ends) - 1):
        s = x[x_ends[i] : x_ends[i + 1]]
        for j in range(i if symmetric else 0, len(y_ends) - 1):
            K[i, j] = _subsequence_pair(s, y[y_ends[j] : y_ends[j + 1]], length, decay, before, here)
            if symmetric:
                K[j, i] = K[i, j]


@njit(cache=True, nogil=True, boundscheck=False)
def subsequence_slope(x, x_ends, y, y_ends, symmetric, length, decay, D):
    """D = ∂K/∂decay."""
    a, b = _longest(x_ends) + 1, _longest(y_ends) + 1
    before, here = np.empty((a, b)), np.empty((a, b))
    d_before, d_here = np.empty((a, b)), np.empty((a, b))
    for i in range(len(x_ends) - 1):
        s = x[x_ends[i] : x_ends[i + 1]]
        for j in range(i if symmetric else 0, len(y_ends) - 1):
            t = y[y_ends[j] : y_ends[j + 1]]
            D[i, j] = _subsequence_pair_slope(s, t, length, decay, before, here, d_before, d_here)
            if symmetric:
                D[j, i] = D[i, j]


@njit(cache=True, nogil=True, boundscheck=False)
def subsequence_diag(x, x_ends, length, decay, out):
    """k(s, s) for every word."""
    a = _longest(x_ends) + 1
    before, here = np.empty((a, a)), np.empty((a, a))
    for i in range(len(x_ends) - 1):
        s = x[x_ends[i] : x_ends[i + 1]]
        out[i] = _subsequence_pair(s, s, length, decay, before, here)


@njit(cache=True, nogil=True, boundscheck=False)
def edit_distances(x, x_ends, y, y_ends, symmetric, D):
    """Fewest insertions, deletions and replacements that turn one word into the other; O(|s| |t|) a pair."""
    row = np.empty(_longest(y_ends) + 1)
    for i in range(len(x_ends) - 1):
        s = x[x_ends[i] : x_ends[i + 1]]
        for j in range(i if symmetric else 0, len(y_ends) - 1):
            t = y[y_ends[j] : y_ends[j + 1]]
            for b in range(len(t) + 1):
                row[b] = b
            for a in range(len(s)):
                corner = row[0]
                row[0] = a + 1
                for b in range(len(t)):
                    above = row[b + 1]
                    best = corner if s[a] == t[b] else corner + 1.0
                    row[b + 1] = min(best, above + 1.0, row[b] + 1.0)
                    corner = above
            D[i, j] = row[len(t)]
            if symmetric:
                D[j, i] = D[i, j]
