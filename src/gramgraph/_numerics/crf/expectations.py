"""What one evaluation of a chain's likelihood needs: log Z and expected counts of all features, sequence by sequence.

Arrays are laid out as in `recursions`. Nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.crf.recursions import add_pairs, chain_posteriors, token_scores
from gramgraph._numerics.gram.grams import exp8
from gramgraph._numerics.vector8 import add8, fill8, fma8, load8, mul8, store8

#: Scores beyond this are left to logarithms: their exponentials could leave the range of numbers.
_LARGE = 300.0


def scratch(width, n_dense, longest):
    """Arrays that `expectations` works in; what it expects to be zero is zero."""
    weights = np.zeros(n_dense * width)
    return weights, np.zeros_like(weights), np.zeros(4 * width * width), np.empty(longest * (3 * width + 1))


@njit(cache=True, nogil=True, boundscheck=False)
def expectations(w, offsets, first, behind, features, layout, K, width, scratch, out, bad):
    """out = expected counts as w, of the sequences first … behind − 1; (Σ log Z, how many of them are marked in `bad`).

    features = (ptr, mid, ids, data), layout = (dense_at, sp_ptr, sp_label, transition_at), the places of transitions in
    a (K, K) matrix. Sequences whose numbers leave the range add nothing and are marked.
    """
    ptr, mid, ids, data = features
    dense_at, sp_ptr, sp_label, transition_at = layout
    dense, counts, square, chain = scratch
    n, m, n_dense = dense_at.shape[0], sp_label.shape[0], dense.shape[0] // width
    for i in range(n):
        dense[dense_at[i]] = w[i]
    for i in range(counts.shape[0]):
        counts[i] = 0.0
    lists, list_counts = w[n : n + m], out[n : n + m]
    for i in range(m):
        list_counts[i] = 0.0
    size = width * width
    M, MT, pairs, start = square[:size], square[size : 2 * size], square[2 * size : 3 * size], square[3 * size :]
    shift = _transitions(w[n + m :], transition_at, K, width, M, MT)
    for i in range(size):
        pairs[i] = 0.0
    for i in range(K):
        start[i] = 1.0
    total, lost = 0.0, 0
    for s in range(first, behind):
        lo, hi = offsets[s], offsets[s + 1]
        T = hi - lo
        if T == 0:
            continue
        size = T * width
        E, alpha, beta, scale = chain[:size], chain[size : 2 * size], chain[2 * size : 3 * size], chain[3 * size :]
        top = token_scores(ptr, mid, ids, data, dense, sp_ptr, sp_label, lists, n_dense, width, lo, hi, E)
        log_z, good = -math.inf, False
        if top < _LARGE:
            for b in range(0, size, 8):
                store8(E, np.uint64(b), exp8(load8(E, np.uint64(b))))
            log_z, good = chain_posteriors(E, M, MT, start, T, K, width, alpha, scale, beta)
        bad[s] = not good
        if not good:
            lost += 1
            continue
        total += log_z + shift * (T - 1)
        add_pairs(alpha, E, T, K, width, pairs)
        for b in range(0, size, 8):
            store8(alpha, np.uint64(b), mul8(load8(alpha, np.uint64(b)), load8(beta, np.uint64(b))))
        _add_counts(ptr, mid, ids, data, sp_ptr, sp_label, n_dense, width, lo, hi, alpha, counts, list_counts)
    for i in range(n):
        out[i] = counts[dense_at[i]]
    for i in range(transition_at.shape[0]):
        at = transition_at[i] // K * width + transition_at[i] % K
        out[n + m + i] = pairs[at] * M[at]
    return total, lost


@njit(cache=True, nogil=True, boundscheck=False)
def _transitions(w, transition_at, K, width, M, MT):
    """M = exp(transitions − shift), padded with zeros, and its transpose; the shift, which is the largest of them."""
    for i in range(K):
        for j in range(K):
            M[i * width + j] = 0.0
    for i in range(w.shape[0]):
        M[transition_at[i] // K * width + transition_at[i] % K] = w[i]
    shift = M[0]
    for i in range(K):
        for j in range(K):
            shift = max(shift, M[i * width + j])
    for i in range(K):
        for j in range(K):
            x = math.exp(M[i * width + j] - shift)
            M[i * width + j] = x
            MT[j * width + i] = x
    return shift


@njit(cache=True, nogil=True, boundscheck=False)
def _add_counts(ptr, mid, ids, data, sp_ptr, sp_label, n_dense, width, lo, hi, gamma, counts, list_counts):
    """Add p(label) at every position to all features that stand there: the reverse of `token_scores`."""
    weighted = data.shape[0] > 0
    for t in range(lo, hi):
        base = (t - lo) * width
        for e in range(ptr[t], mid[t]):
            row = ids[e] * width
            if weighted:
                value = fill8(data[e])
                for b in range(0, width, 8):
                    k = np.uint64(row + b)
                    store8(counts, k, fma8(value, load8(gamma, np.uint64(base + b)), load8(counts, k)))
            else:
                for b in range(0, width, 8):
                    k = np.uint64(row + b)
                    store8(counts, k, add8(load8(gamma, np.uint64(base + b)), load8(counts, k)))
        for e in range(mid[t], ptr[t + 1]):
            row = ids[e] - n_dense
            value = data[e] if weighted else 1.0
            for p in range(sp_ptr[row], sp_ptr[row + 1]):
                list_counts[p] += value * gamma[base + sp_label[p]]
