"""Rows of the kernel matrix for `svm_batch`, gathered from a Gram matrix or computed from points, and f in two places.

W, power, scale and offset give the kernel, as told there. Nothing is checked.
"""

from __future__ import annotations

from gramgraph._numerics.compiling import njit

__all__ = ["BIG", "HALF_BIG", "fetch", "pack", "products", "raise_", "split", "stretches", "value"]

BIG = 1e30  # stands for f where a point may not move; what is added to it in a search stays far below
HALF_BIG = 5e29


# Uncompiled, one entry at a time would be slow: these take all of them.


def _pack_at_once(W, columns, m, packed):
    packed[:, :m] = W[:, columns[:m]]


def _products_at_once(packed, x, m, target):
    target[:m] = x @ packed[:, :m]


def _raise_at_once(target, m, power, scale, offset):
    target[:m] = (scale * target[:m] + offset) ** power


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def stretches(columns, cuts):
    """Where columns stop being consecutive: cuts[0] = 0, …, cuts[count] = m. At most a sixteenth of m, else 0."""
    m = columns.shape[0]
    count = 0
    cuts[0] = 0
    for k in range(1, m):
        if columns[k] != columns[k - 1] + 1:
            count += 1
            if 16 * count > m:
                return 0
            cuts[count] = k
    cuts[count + 1] = m
    return count + 1


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _gather(W, row, columns, cuts, count, target):
    """target = W[row, columns]; whole stretches where there are few."""
    source = W[row]
    if count == 0:
        for k in range(columns.shape[0]):
            target[k] = source[columns[k]]
    for q in range(count):
        a = cuts[q]
        size = cuts[q + 1] - a
        start = columns[a]
        left = target[a : a + size]
        right = source[start : start + size]
        for k in range(size):
            left[k] = right[k]


@njit(cache=True, nogil=True, boundscheck=False, plain=_pack_at_once, no_cpython_wrapper=True)
def pack(W, columns, m, packed):
    """packed[:, k] = W[:, columns[k]]: the coordinates of the points of a problem side by side."""
    for j in range(W.shape[0]):
        source = W[j]
        target = packed[j]
        for k in range(m):
            target[k] = source[columns[k]]


@njit(cache=True, nogil=True, boundscheck=False, plain=_products_at_once, no_cpython_wrapper=True)
def products(packed, x, m, target):
    """target[k] = Σ_j packed[j, k] x_j, four coordinates in one pass over the points."""
    d = packed.shape[0]
    for k in range(m):
        target[k] = 0.0
    whole = d // 4 * 4
    for j in range(0, whole, 4):
        p0 = packed[j]
        p1 = packed[j + 1]
        p2 = packed[j + 2]
        p3 = packed[j + 3]
        a0 = x[j]
        a1 = x[j + 1]
        a2 = x[j + 2]
        a3 = x[j + 3]
        for k in range(m):
            target[k] += (a0 * p0[k] + a1 * p1[k]) + (a2 * p2[k] + a3 * p3[k])
    for j in range(whole, d):
        p0 = packed[j]
        a0 = x[j]
        for k in range(m):
            target[k] += a0 * p0[k]


@njit(cache=True, nogil=True, boundscheck=False, plain=_raise_at_once, no_cpython_wrapper=True)
def raise_(target, m, power, scale, offset):
    """target = (scale · target + offset)^power, by products."""
    if power == 1:
        if scale != 1.0 or offset != 0.0:
            for k in range(m):
                target[k] = scale * target[k] + offset
    elif power == 2:
        for k in range(m):
            t = scale * target[k] + offset
            target[k] = t * t
    elif power == 3:
        for k in range(m):
            t = scale * target[k] + offset
            target[k] = t * t * t
    else:
        for k in range(m):
            t = scale * target[k] + offset
            r = t
            for _ in range(power - 1):
                r *= t
            target[k] = r


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _row(packed, i, m, x, target, power, scale, offset):
    """target = K[i, :m] from the points of a problem."""
    for j in range(packed.shape[0]):
        x[j] = packed[j, i]
    products(packed, x, m, target)
    raise_(target, m, power, scale, offset)


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def fetch(i, there, K, W, columns, cuts, count, packed, x, power, scale, offset):
    """Row i of the matrix of the points in `columns`. Ask `there` before: the call costs a tenth of a step."""
    if power == 0:
        _gather(W, columns[i], columns, cuts, count, K[i])
    else:
        _row(packed, i, columns.shape[0], x, K[i], power, scale, offset)
    there[i] = True


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def split(k, f, beta, low, high, rise, fall):
    """f of point k among those that may grow and those that may shrink; a point is in one of them at least."""
    rise[k] = f if beta[k] < high[k] else BIG
    fall[k] = f if beta[k] > low[k] else -BIG


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def value(k, rise, fall):
    """f of point k."""
    return rise[k] if rise[k] < HALF_BIG else fall[k]
