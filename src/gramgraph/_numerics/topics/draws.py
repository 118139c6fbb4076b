"""Numba: collapsed Gibbs sweeps over the topics of tokens, from their exact conditionals.

Topics stand in rows of a multiple of eight, `stride`; the superfluous ones have weight 0. Counts are kept as floats
with the prior already added: `rows[w · stride + t]` = n_wt + β, `total[t]` = n_t + Σβ, `own[t]` = n_dt + α of the
document at hand, and `share` = own / total. Uniform numbers come in from outside, so that a seed gives the same draws
with and without the compiler.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.vector8 import fill8, fma8, load8, store8

_jit = njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")

ZERO, ONE, SEVEN, EIGHT = np.uint64(0), np.uint64(1), np.uint64(7), np.uint64(8)
_2, _3, _4, _5, _6 = np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(5), np.uint64(6)


@_jit(no_cpython_wrapper=True)
def accumulate(rows, at, share, start, stride, sums, place, lanes):
    """Sums of rows[at + t] · share[start + t] along eight lanes, t = 8b + lane, in sums[place:]; the sum of all.

    `lanes[j]` is what the lanes before j hold: topics are ordered by lane, then by block. Wherever the draw falls in
    that order, its chance is its weight, and all additions but the last eight run side by side.
    """
    run = fill8(0.0)
    b = ZERO
    while b < stride:
        run = fma8(load8(rows, at + b), load8(share, start + b), run)
        store8(sums, place + b, run)
        b += EIGHT
    last = place + stride - EIGHT
    s0, s1, s2, s3 = sums[last], sums[last + ONE], sums[last + _2], sums[last + _3]
    s4, s5, s6, s7 = sums[last + _4], sums[last + _5], sums[last + _6], sums[last + SEVEN]
    two, four, pair = s0 + s1, (s0 + s1) + (s2 + s3), s4 + s5
    lanes[0], lanes[1], lanes[2], lanes[3] = 0.0, s0, two, two + s2
    lanes[4], lanes[5], lanes[6], lanes[7] = four, four + s4, four + pair, four + pair + s6
    return four + (pair + (s6 + s7))


@_jit(no_cpython_wrapper=True)
def locate(t, stride, sums, place, lanes):
    """The topic in whose piece t falls."""
    lane = np.uint64(t >= lanes[1]) + np.uint64(t >= lanes[2]) + np.uint64(t >= lanes[3]) + np.uint64(t >= lanes[4])
    lane += np.uint64(t >= lanes[5]) + np.uint64(t >= lanes[6]) + np.uint64(t >= lanes[7])
    t -= lanes[lane]
    found = lane
    b = place + lane
    last = place + stride - EIGHT
    while b < last:
        found += EIGHT * np.uint64(t >= sums[b])
        b += EIGHT
    return found


def _work(ptr, words, z, u, rows, total, own, share, alpha, n_topics, first, last):
    return float(u.shape[0]) * alpha.shape[0]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", work=_work)
def fill(ptr, words, z, u, rows, total, own, share, alpha, n_topics, first, last):
    """Topics for the tokens of documents first … last − 1, which have none: each given those drawn before it.

    `u` begins with the first of these tokens. Cost: O(tokens · topics).
    """
    stride, n = np.uint64(alpha.shape[0]), np.uint64(n_topics)
    sums, lanes = np.empty(alpha.shape[0]), np.zeros(8)
    start = ptr[first]
    for d in range(first, last):
        for t in range(alpha.shape[0]):
            own[t] = alpha[t]
            share[t] = own[t] / total[t]
        for i in range(ptr[d], ptr[d + 1]):
            at = np.uint64(words[i]) * stride
            whole = accumulate(rows, at, share, ZERO, stride, sums, ZERO, lanes)
            new = locate(u[i - start] * whole, stride, sums, ZERO, lanes)
            if new >= n:  # beyond the last topic by rounding
                new = n - ONE
            rows[at + new] += 1.0
            own[new] += 1.0
            total[new] += 1.0
            share[new] = own[new] / total[new]
            z[i] = new


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", work=_work)
def sweep(ptr, words, z, u, rows, total, own, share, alpha, n_topics, first, last):
    """Draw every topic of documents first … last − 1 anew, given all others; `u` begins with their first token.

    P(z_i = t | rest) ∝ (n_wt + β)(n_dt + α)/(n_t + Σβ) over counts without token i. The token is not taken out of the
    counts beforehand: what its topic's piece is too long by, `gone`, is left out of the line that is drawn from. So
    nothing is written while topics stay as they are, and the processor works on several tokens at once.
    """
    stride, n = np.uint64(alpha.shape[0]), np.uint64(n_topics)
    sums, lanes = np.empty(alpha.shape[0]), np.zeros(8)
    start = ptr[first]
    for d in range(first, last):
        for t in range(alpha.shape[0]):
            own[t] = alpha[t]
        for i in range(ptr[d], ptr[d + 1]):
            own[z[i]] += 1.0
        for t in range(alpha.shape[0]):
            share[t] = own[t] / total[t]
        for i in range(ptr[d], ptr[d + 1]):
            at = np.uint64(words[i]) * stride
            old = np.uint64(z[i])
            whole = accumulate(rows, at, share, ZERO, stride, sums, ZERO, lanes)
            count = rows[at + old]
            gone = count * share[old] - (count - 1.0) * ((own[old] - 1.0) / (total[old] - 1.0))
            x = u[i - start] * (whole - gone)
            if x >= lanes[old & SEVEN] + sums[old] - gone:
                x += gone
            new = locate(x, stride, sums, ZERO, lanes)
            if new != old and new < n:
                rows[at + old] -= 1.0
                rows[at + new] += 1.0
                own[old] -= 1.0
                own[new] += 1.0
                total[old] -= 1.0
                total[new] += 1.0
                share[old] = own[old] / total[old]
                share[new] = own[new] / total[new]
                z[i] = new


@_jit
def count_documents(ptr, z, out):
    """out[d, t] = how many tokens of document d have topic t."""
    for d in range(ptr.shape[0] - 1):
        for i in range(ptr[d], ptr[d + 1]):
            out[d, z[i]] += 1


@_jit
def count_words(words, z, stride, rows):
    """Add one to rows[w · stride + t] for every token."""
    for i in range(words.shape[0]):
        rows[words[i] * stride + z[i]] += 1.0
