"""Numba: what documents say of their topics, by fixed points: variational shares, and shares under known topics.

Topics stand in rows of a multiple of eight, `stride`, as in `draws.py`.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put
from gramgraph._numerics.topics.draws import EIGHT, ZERO
from gramgraph._numerics.vector8 import add8, fill8, fma8, load8, mul8, store8

_jit = njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")

#: Products below this are summed again as logarithms.
TINY = 1e-250


@_jit(no_cpython_wrapper=True)
def digamma(x):
    """ψ(x) for x > 0, to about fifteen digits: the recurrence up to 6, then the asymptotic series."""
    out = 0.0
    while x < 6.0:
        out -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    tail = r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * 691.0 / 32760)))))
    return out + math.log(x) - 0.5 / x - tail


@_jit(no_cpython_wrapper=True)
def total8(v, eight):
    """The sum of eight numbers."""
    store8(eight, ZERO, v)
    return ((eight[0] + eight[1]) + (eight[2] + eight[3])) + ((eight[4] + eight[5]) + (eight[6] + eight[7]))


@_jit(no_cpython_wrapper=True)
def dot8(a, at, b, stride, eight):
    """Σ_t a[at + t] b[t]."""
    run = fill8(0.0)
    t = ZERO
    while t < stride:
        run = fma8(load8(a, at + t), load8(b, t), run)
        t += EIGHT
    return total8(run, eight)


@_jit(no_cpython_wrapper=True)
def add_scaled8(x, a, at, out, start, stride):
    """out[start + t] += x · a[at + t]."""
    v = fill8(x)
    t = ZERO
    while t < stride:
        store8(out, start + t, fma8(v, load8(a, at + t), load8(out, start + t)))
        t += EIGHT


@_jit(no_cpython_wrapper=True)
def responsible(logs, at, log_theta, n_topics, out):
    """Shares ∝ exp(logs[at + t] + log_theta[t]) of one word, where their products underflow; the log of their sum."""
    top = -np.inf
    for t in range(n_topics):
        out[t] = logs[at + np.uint64(t)] + log_theta[t]
        top = max(top, out[t])
    total = 0.0
    for t in range(n_topics):
        out[t] = math.exp(out[t] - top)
        total += out[t]
    for t in range(n_topics):
        out[t] /= total
    return top + math.log(total)


@_jit(no_cpython_wrapper=True)
def mean_logs(gamma, n_topics, log_theta, theta):
    """E log θ under Dir(γ), and its exponentials divided by the largest; that largest."""
    total, top = 0.0, -np.inf
    for t in range(n_topics):
        total += gamma[t]
    whole = digamma(total)
    for t in range(n_topics):
        log_theta[t] = digamma(gamma[t]) - whole
        top = max(top, log_theta[t])
    for t in range(n_topics):
        theta[t] = math.exp(log_theta[t] - top)
    return top


@_jit(no_cpython_wrapper=True)
def log_beta(gamma, n_topics):
    """Σ log Γ(γ_t) − log Γ(Σ γ_t)."""
    total = out = 0.0
    for t in range(n_topics):
        total += gamma[t]
        out += math.lgamma(gamma[t])
    return out - math.lgamma(total)


@_jit(no_cpython_wrapper=True)
def climb(first, last, index, count, B, logs, alpha, n_topics, own, log_theta, theta, space, max_iter, tol):
    """γ = α + Σ_w c r of one document until it moves by less than `tol` on average; the largest E log θ."""
    stride = np.uint64(alpha.shape[0])
    eight, acc, apart, shares = space[0], space[1], space[2], space[3]
    top = mean_logs(own, n_topics, log_theta, theta)
    for _ in range(max_iter):
        acc[:] = 0.0
        apart[:] = 0.0  # what words say whose products underflow
        for e in range(first, last):
            at = np.uint64(index[e]) * stride
            total = dot8(B, at, theta, stride, eight)
            if total > TINY:
                add_scaled8(count[e] / total, B, at, acc, ZERO, stride)
            else:
                responsible(logs, at, log_theta, n_topics, shares)
                for t in range(n_topics):
                    apart[t] += count[e] * shares[t]
        moved = 0.0
        for t in range(n_topics):
            new = alpha[t] + theta[t] * acc[t] + apart[t]
            moved += abs(new - own[t])
            own[t] = new
        top = mean_logs(own, n_topics, log_theta, theta)
        if moved < tol * n_topics:
            break
    return top


@_jit(no_cpython_wrapper=True)
def value(first, last, index, count, B, logs, tops, alpha, n_topics, own, log_theta, theta, top, space, keep, stats):
    """The bound of one document for its γ, with the best r; with `keep`, Σ c r is added to `stats`.

    Σ_w c log Σ_t exp(E log θ_t + E log φ_tw) + Σ_t (α_t − γ_t) E log θ_t + log B(γ).
    """
    stride = np.uint64(alpha.shape[0])
    eight, shares = space[0], space[3]
    bound = log_beta(own, n_topics)
    for t in range(n_topics):
        bound += (alpha[t] - own[t]) * log_theta[t]
    for e in range(first, last):
        at = np.uint64(index[e]) * stride
        total = dot8(B, at, theta, stride, eight)
        if total > TINY:
            bound += count[e] * (math.log(total) + top + tops[index[e]])
            t = ZERO
            scale = fill8(count[e] / total)
            while keep and t < stride:
                part = mul8(mul8(load8(B, at + t), load8(theta, t)), scale)
                store8(stats, at + t, add8(part, load8(stats, at + t)))
                t += EIGHT
        else:
            bound += count[e] * responsible(logs, at, log_theta, n_topics, shares)
            for t in range(n_topics if keep else 0):
                stats[at + np.uint64(t)] += count[e] * shares[t]
    return bound


def _work(ptr, index, count, B, logs, tops, alpha, n_topics, gamma, fresh, stats, max_iter, tol):
    return 4.0 * index.shape[0] * alpha.shape[0]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", work=_work)
def expect(ptr, index, count, B, logs, tops, alpha, n_topics, gamma, fresh, stats, max_iter, tol):
    """The E step: γ_d of every document from what it is; statistics Σ c r in `stats`; the documents' part of the bound.

    r_t ∝ exp(E log θ_dt + E log φ_tw). `logs[w · stride + t]` = E log φ_tw, `tops[w]` the largest of a word, B =
    exp(logs − tops). With `fresh` a document climbs from its words spread evenly, and keeps that where it is better
    than what it had: it leaves shares behind that early topics led it to, and the bound cannot fall. Cost: O(rounds ·
    pairs · topics).
    """
    wide = alpha.shape[0]
    space, log_theta, theta = np.zeros((4, wide)), np.zeros(wide), np.zeros(wide)
    before = np.zeros(n_topics)
    prior = log_beta(alpha, n_topics)
    bound = 0.0
    for d in range(ptr.shape[0] - 1):
        first, last, own = ptr[d], ptr[d + 1], gamma[d]
        best = -np.inf
        if fresh:
            put(own, before)
            top = mean_logs(own, n_topics, log_theta, theta)
            best = value(first, last, index, count, B, logs, tops, alpha, n_topics, own, log_theta, theta, top, space,
                         False, stats)  # fmt: skip
            words = 0.0
            for e in range(first, last):
                words += count[e]
            for t in range(n_topics):
                own[t] = alpha[t] + words / n_topics
        top = climb(first, last, index, count, B, logs, alpha, n_topics, own, log_theta, theta, space, max_iter, tol)
        if fresh:
            found = value(first, last, index, count, B, logs, tops, alpha, n_topics, own, log_theta, theta, top, space,
                          False, stats)  # fmt: skip
            if found < best:
                put(before, own)
                top = climb(first, last, index, count, B, logs, alpha, n_topics, own, log_theta, theta, space,
                            max_iter, tol)  # fmt: skip
        bound += value(first, last, index, count, B, logs, tops, alpha, n_topics, own, log_theta, theta, top, space,
                       True, stats) - prior  # fmt: skip
    return bound


def _shares_work(ptr, index, count, phi, alpha, n_topics, out, max_iter, tol):
    return 20.0 * index.shape[0] * alpha.shape[0]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", work=_shares_work)
def topic_shares(ptr, index, count, phi, alpha, n_topics, out, max_iter, tol):
    """out[d] = E θ_d under known topics φ, by collapsed variational shares of order zero.

    r_wt ∝ φ_tw (α_t + N_t − r_wt), N_t = Σ_w c r_wt; out = (α + N)/Σ. Updated word by word until no share of topics
    moves by more than `tol`. A document without words has the mean of the prior.
    """
    stride = np.uint64(alpha.shape[0])
    longest = 0
    for d in range(ptr.shape[0] - 1):
        longest = max(longest, ptr[d + 1] - ptr[d])
    r = np.zeros((longest, n_topics))
    N, new, before = np.zeros(n_topics), np.zeros(n_topics), np.zeros(n_topics)
    for d in range(ptr.shape[0] - 1):
        start, length, tokens = ptr[d], ptr[d + 1] - ptr[d], 0.0
        N[:] = 0.0
        for j in range(length):  # begin with φ times the prior
            at, total = np.uint64(index[start + j]) * stride, 0.0
            for t in range(n_topics):
                r[j, t] = phi[at + np.uint64(t)] * alpha[t]
                total += r[j, t]
            for t in range(n_topics):
                r[j, t] /= total
                N[t] += count[start + j] * r[j, t]
            tokens += count[start + j]
        for _ in range(max_iter if length > 0 else 0):
            put(N, before)
            for j in range(length):
                at, total, c = np.uint64(index[start + j]) * stride, 0.0, count[start + j]
                for t in range(n_topics):
                    new[t] = phi[at + np.uint64(t)] * max(alpha[t] + N[t] - r[j, t], 1e-300)
                    total += new[t]
                for t in range(n_topics):
                    new[t] /= total
                    N[t] += c * (new[t] - r[j, t])
                    r[j, t] = new[t]
            moved = 0.0
            for t in range(n_topics):
                moved = max(moved, abs(N[t] - before[t]))
            if moved < tol * tokens:
                break
        total = 0.0
        for t in range(n_topics):
            out[d, t] = alpha[t] + max(N[t], 0.0)
            total += out[d, t]
        for t in range(n_topics):
            out[d, t] /= total
