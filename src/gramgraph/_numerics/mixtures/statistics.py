"""Statistics of rows that Gaussian components are linear in."""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit

_VANISHES = -746.0  # exp of less is 0
_LANES = 64  # rows that one turn of the loops takes: what they need stays next to the processor


def _statistics_at_once(x, out):
    d = x.shape[0]
    at = 0
    for i in range(d):
        np.multiply(x[i:], x[i], out=out[at : at + d - i])
        at += d - i
    out[at : at + d] = x


def _statistics_work(x, out):
    return x.shape[0] + out.size / 100.0


@njit(cache=True, nogil=True, plain=_statistics_at_once, work=_statistics_work)
def quadratic_statistics(x, out):
    """For a block of columns x (d, b): products x[i] x[j], i ≤ j, then x itself, one line of `out` each.

    The last line of `out`, (d(d+1)/2 + d + 1, b), is not touched.
    """
    d, b = x.shape
    at = 0
    for i in range(d):
        for j in range(i, d):
            for t in range(b):
                out[at, t] = x[i, t] * x[j, t]
            at += 1
    for i in range(d):
        for t in range(b):
            out[at, t] = x[i, t]
        at += 1


def _squares_at_once(x, means, whiten, out):
    for c in range(len(means)):
        y = whiten[c] @ (x - means[c][:, None])
        out[c] = np.einsum("ib,ib->b", y, y)


@njit(cache=True, nogil=True, boundscheck=False, plain=_squares_at_once)
def whitened_squares(x, means, whiten, out):
    """|whiten[c] (x − means[c])|² of columns x (d, b) for every component, in `out` (k, b).

    `whiten` is lower triangular. Loops over lanes have a constant length and four products each, so that they become
    vector instructions.
    """
    d, b = x.shape
    z, y, total = np.zeros((d, _LANES)), np.zeros(_LANES), np.zeros(_LANES)
    for at in range(0, b, _LANES):
        n = min(_LANES, b - at)
        for c in range(len(means)):
            for j in range(d):
                m = means[c, j]
                for t in range(n):
                    z[j, t] = x[j, at + t] - m
            for t in range(_LANES):
                total[t] = 0.0
            for i in range(d):
                for t in range(_LANES):
                    y[t] = 0.0
                fours = (i + 1) // 4 * 4
                for j in range(0, fours, 4):
                    a0, a1, a2, a3 = whiten[c, i, j], whiten[c, i, j + 1], whiten[c, i, j + 2], whiten[c, i, j + 3]
                    for t in range(_LANES):
                        y[t] += a0 * z[j, t] + a1 * z[j + 1, t] + (a2 * z[j + 2, t] + a3 * z[j + 3, t])
                for j in range(fours, i + 1):
                    a0 = whiten[c, i, j]
                    for t in range(_LANES):
                        y[t] += a0 * z[j, t]
                for t in range(_LANES):
                    total[t] += y[t] * y[t]
            for t in range(n):
                out[c, at + t] = total[t]


def _normalize_at_once(logs):
    top = logs.max(axis=0)
    lost = None if np.isfinite(top.sum()) else ~np.isfinite(top)
    if lost is not None:
        logs[:, lost] = 0.0
        top[lost] = 0.0
    logs -= top
    flat = logs.reshape(-1)
    between = np.flatnonzero((flat > _VANISHES) & (flat < 0.0))  # `exp` of the others is 1 or 0, and slow near 0
    values = np.exp(flat[between])
    np.equal(flat, 0.0, out=flat, casting="unsafe")
    flat[between] = values
    total = logs.sum(axis=0)
    logs *= 1.0 / total
    top += np.log(total)
    if lost is not None:
        top[lost] = -np.inf
    return top


def _normalize_work(logs):
    return logs.size / 50.0


@njit(cache=True, nogil=True, boundscheck=False, plain=_normalize_at_once, work=_normalize_work)
def normalize_logs(logs):
    """Turn log joints (k, b), in C order, into responsibilities, in place; the log normalizers (b,) come back.

    A row that no component explains belongs to all alike. What is too small for a number is 0 without asking `exp`,
    which takes its time over such arguments.
    """
    k, b = logs.shape
    found = np.empty(b)
    for t in range(b):
        top = logs[0, t]
        for c in range(1, k):
            top = max(top, logs[c, t])
        total = 0.0
        for c in range(k):
            off = logs[c, t] - top
            value = 1.0 if off == 0.0 else math.exp(off) if off > _VANISHES else 0.0
            logs[c, t] = value
            total += value
        if not (math.isfinite(top) and total > 0.0):
            for c in range(k):
                logs[c, t] = 1.0 / k
            found[t] = -math.inf
        else:
            share = 1.0 / total
            for c in range(k):
                logs[c, t] *= share
            found[t] = top + math.log(total)
    return found
