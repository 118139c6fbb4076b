"""Numba: rounds of collapsed variational inference of order zero over pairs of document and word.

Topics stand in rows of a multiple of eight, `stride`, as in `draws.py`; `shares[e · stride + t]` = r_et, the share of
topic t in each token of pair e, in single precision. Counts hold the prior: `rows[w · stride + t]` = Σ c r + β of word
w, `total[t]` their sum over words, `own[t]` = Σ c r + α of the document at hand.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put
from gramgraph._numerics.topics.draws import EIGHT, ONE, ZERO
from gramgraph._numerics.topics.expectations import total8
from gramgraph._numerics.vector8 import add8, div8, fill8, fma8, load8, max8, mul8, store8, sub8

#: What rounding may leave of a count that is all prior.
_LEAST = 1e-12


def _spread_work(count, z, shares, stride):
    return float(z.shape[0])


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", work=_spread_work)
def spread(count, z, shares, stride):
    """Shares of pairs from the topics of their tokens, which stand one after the other."""
    i = 0
    for e in range(count.shape[0]):
        c = int(count[e])
        for _ in range(c):
            shares[e * stride + z[i]] += 1.0
            i += 1
        for t in range(stride if c > 1 else 0):
            shares[e * stride + t] /= c


def _work(ptr, index, count, shares, rows, total, own, alpha, new):
    return float(index.shape[0]) * alpha.shape[0]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", work=_work)
def collapse(ptr, index, count, shares, rows, total, own, alpha, new):
    """One round: r_et ∝ (n_wt + β)(n_dt + α)/(n_t + Σβ), counts without one token of e; Σ c log p(w | all others).

    That last sum is over the shares before each update, so that every token is foretold by the rest. Cost: O(pairs ·
    topics).
    """
    stride = np.uint64(alpha.shape[0])
    eight = np.zeros(8)
    least, nothing = fill8(_LEAST), fill8(0.0)
    prior = 0.0
    for t in range(alpha.shape[0]):
        prior += alpha[t]
    log_p = 0.0
    for d in range(ptr.shape[0] - 1):
        first, last = np.uint64(ptr[d]), np.uint64(ptr[d + 1])
        length = 0.0
        put(alpha, own)
        e = first
        while e < last:
            c, at, t = fill8(count[e]), e * stride, ZERO
            length += count[e]
            while t < stride:
                store8(own, t, fma8(c, load8(shares, at + t), load8(own, t)))
                t += EIGHT
            e += ONE
        e = first
        while e < last:
            at, word, run, t = e * stride, np.uint64(index[e]) * stride, fill8(0.0), ZERO
            while t < stride:
                x = load8(shares, at + t)
                weight = mul8(max8(sub8(load8(rows, word + t), x), least), max8(sub8(load8(own, t), x), nothing))
                weight = div8(weight, sub8(load8(total, t), x))
                store8(new, t, weight)
                run = add8(run, weight)
                t += EIGHT
            s = total8(run, eight)
            log_p += count[e] * math.log(s)
            scale, c, t = fill8(1.0 / s), fill8(count[e]), ZERO
            while t < stride:
                r = mul8(load8(new, t), scale)
                moved = mul8(c, sub8(r, load8(shares, at + t)))
                store8(shares, at + t, r)
                store8(rows, word + t, add8(load8(rows, word + t), moved))
                store8(own, t, add8(load8(own, t), moved))
                store8(total, t, add8(load8(total, t), moved))
                t += EIGHT
            e += ONE
        log_p -= length * math.log(max(length - 1.0 + prior, _LEAST))
    return log_p
