"""Numba: the probability of documents under known topics, token after token."""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put, put_matrix
from gramgraph._numerics.topics.draws import ONE, ZERO, accumulate, locate

_jit = njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")


@_jit(no_cpython_wrapper=True)
def resample(weights, u, parents):
    """Parents of particles with chances by their weights: one uniform number, evenly spaced points."""
    n = weights.shape[0]
    at, upto = 0, weights[0]
    for j in range(n):
        point = (j + u) / n
        while point >= upto and at < n - 1:
            at += 1
            upto += weights[at]
        parents[j] = at


@_jit(no_cpython_wrapper=True)
def inherit(parents, counts, z, length, old_counts, old_z):
    """Let every particle go on from its parent."""
    n = parents.shape[0]
    put_matrix(counts, old_counts)
    for j in range(n):
        for i in range(length):
            old_z[j, i] = z[j, i]
    for j in range(n):
        p = parents[j]
        if p != j:
            put(old_counts[p], counts[j])
            for i in range(length):
                z[j, i] = old_z[p, i]


@_jit(no_cpython_wrapper=True)
def redraw(phi, words, start, length, stride, n, flat, first, z, sums, lanes, u, at):
    """One Gibbs sweep over the topics of a particle's first tokens, given each other; the next uniform number."""
    for i in range(length):
        old = np.uint64(z[i])
        flat[first + old] -= 1.0
        whole = accumulate(phi, np.uint64(words[start + i]) * stride, flat, first, stride, sums, ZERO, lanes)
        new = locate(u[at] * whole, stride, sums, ZERO, lanes)
        at += 1
        if new >= n:
            new = old
        flat[first + new] += 1.0
        z[i] = new
    return at


def _work(ptr, words, begin, phi, alpha, n_topics, n_particles, u, u_ptr, out):
    return float(u.shape[0]) * alpha.shape[0]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", work=_work)
def left_to_right(ptr, words, begin, phi, alpha, n_topics, n_particles, u, u_ptr, out):
    """out[d] = an estimate of log p(tokens of d from begin[d] on | those before, φ, α); u[u_ptr[d]:] are uniform.

    A particle is the topics of the tokens so far. The next token has probability Σ_t φ_tw (n_t + α_t)/(n + Σα) under
    it; particles are weighted by that, drawn anew by weight where few count, extended by the token's topic, and moved
    by a Gibbs sweep whenever the length has doubled. With begin = 0 the estimate of p itself has no bias. Cost:
    O(tokens · particles · topics); 3 n_particles + 1 uniform numbers for each token.
    """
    stride, n = np.uint64(alpha.shape[0]), np.uint64(n_topics)
    wide = alpha.shape[0]
    longest = 0
    for d in range(ptr.shape[0] - 1):
        longest = max(longest, ptr[d + 1] - ptr[d])
    counts, old_counts = np.zeros((n_particles, wide)), np.zeros((n_particles, wide))
    z, old_z = np.zeros((n_particles, longest), np.uint16), np.zeros((n_particles, longest), np.uint16)
    flat = counts.ravel()
    sums, lanes = np.zeros(wide), np.zeros(8)
    weights, chances, parents = np.zeros(n_particles), np.zeros(n_particles), np.zeros(n_particles, np.int64)
    drawn = np.zeros(n_particles, np.uint16)
    prior = alpha.sum()
    for d in range(ptr.shape[0] - 1):
        start, length, at = ptr[d], ptr[d + 1] - ptr[d], u_ptr[d]
        for j in range(n_particles):
            put(alpha, counts[j])
            weights[j] = 1.0 / n_particles
        again = 2
        out[d] = 0.0
        for i in range(length):
            word = np.uint64(words[start + i]) * stride
            total = 0.0
            for j in range(n_particles):
                whole = accumulate(phi, word, flat, np.uint64(j * wide), stride, sums, ZERO, lanes)
                new = locate(u[at] * whole, stride, sums, ZERO, lanes)
                at += 1
                drawn[j] = min(new, n - ONE)
                chances[j] = weights[j] * whole
                total += chances[j]
            if i >= begin[d]:
                out[d] += math.log(total / (prior + i))
            squares = 0.0
            for j in range(n_particles):
                counts[j, drawn[j]] += 1.0
                z[j, i] = drawn[j]
                weights[j] = chances[j] / total
                squares += weights[j] * weights[j]
            if squares * n_particles > 2.0 or i + 1 == again:
                resample(weights, u[at], parents)
                inherit(parents, counts, z, i + 1, old_counts, old_z)
                weights[:] = 1.0 / n_particles
            at += 1
            if i + 1 == again:
                again *= 2
                for j in range(n_particles):
                    at = redraw(
                        phi, words, start, i + 1, stride, n, flat, np.uint64(j * wide), z[j], sums, lanes, u, at
                    )
