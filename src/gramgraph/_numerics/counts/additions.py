"""Numba: the likelihoods of a family with each of many further parents, from bits or by a scan of the codes.

`family` is what is known already: the parents that a child has, and the child. A cell of it is one configuration of
these parents (slow) with one state of the child (fast). No cell is missing, so the last state of a further parent is
what the others leave.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.counts.counting import BLOCK, both, ones, ones_of_both
from gramgraph._numerics.counts.scores import dirichlet, log_likelihood

#: Words that the way without loops works on at a time, and its seconds for one of them, in interpreted steps.
_AT_ONCE, _WORD = 1 << 17, 3e-3


def _work_by_bits(family, bits, first, sizes, chosen, weight, split, out):
    return 100.0 + _WORD * sizes[family].prod() * bits.shape[1] * sizes[chosen].sum()


def _work_by_scan(key, codes, sizes, chosen, configurations, states, weight, split, out):
    return 100.0 * len(chosen) + 2e-2 * len(key) * len(chosen)


def _by_bits_at_once(family, bits, first, sizes, chosen, weight, split, out):
    """The same without loops over cells, some columns at a time."""
    rows = np.full((1, bits.shape[1]), ~np.uint64(0))
    for c in family:
        rows = (rows[:, np.newaxis] & bits[first[c] : first[c] + sizes[c]]).reshape(-1, bits.shape[1])
    cells, states = rows.shape[0], sizes[family[-1]]
    step = max(_AT_ONCE // max(rows.size, 1), 1)
    begin = 0
    while begin < len(chosen):
        end, vectors = begin, 0
        while end < len(chosen) and (end == begin or vectors + sizes[chosen[end]] <= step):
            vectors += sizes[chosen[end]]
            end += 1
        part = chosen[begin:end]
        own = np.concatenate([np.arange(first[c], first[c] + sizes[c]) for c in part])
        starts = np.concatenate([[0], np.cumsum(sizes[part])[:-1]])
        counts = np.bitwise_count(bits[own][:, None] & rows).sum(axis=2, dtype=np.int64)
        tables = counts.reshape(len(own), cells // states, states)
        out[begin:end] = np.add.reduceat(
            _rows_at_once(tables, np.repeat(weight[begin:end], sizes[part]), split), starts
        )
        begin = end


def _by_scan_at_once(key, codes, sizes, chosen, configurations, states, weight, split, out):
    for i, c in enumerate(chosen):
        k = sizes[c]
        counts = np.bincount(key * k + codes[c], minlength=configurations * states * k)
        tables = counts.reshape(configurations, states, k).transpose(2, 0, 1)
        out[i] = _rows_at_once(tables, np.full(k, weight[i]), split).sum()


def _rows_at_once(tables, alpha, split):
    """The part of each table (configurations, states) in the score; the first axis runs over tables."""
    if not split:
        return _x_log_x(tables).sum(axis=(1, 2)) - _x_log_x(tables.sum(axis=2)).sum(axis=1)
    states = tables.shape[2]
    found = np.empty(len(tables))
    for a in np.unique(alpha):
        same = alpha == a
        cells, rows = tables[same], tables[same].sum(axis=2)
        found[same] = _rising(cells, a).sum(axis=(1, 2)) - _rising(rows, a * states).sum(axis=1)
    return found


def _x_log_x(counts):
    return counts * np.log(np.maximum(counts, 1))


def _rising(counts, alpha):
    """log Γ(alpha + count) - log Γ(alpha)."""
    values, place = np.unique(counts, return_inverse=True)
    base = math.lgamma(alpha)
    return np.array([math.lgamma(alpha + x) - base if x else 0.0 for x in values.tolist()])[place.reshape(counts.shape)]


_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit(work=_work_by_bits, plain=_by_bits_at_once)
def add_by_bits(family, bits, first, sizes, chosen, weight, split, out):
    """out[i] = log likelihood (or, with `split`, the Dirichlet score with weight[i] a cell) with parent chosen[i].

    Column c owns the vectors first[c] … first[c] + sizes[c] - 1 of `bits`; the child is the last of `family`.
    """
    words = bits.shape[1]
    states = sizes[family[-1]]
    cells = 1
    for c in family:
        cells *= sizes[c]
    configurations = cells // states
    whole = np.zeros(cells, np.int64)
    rows = np.empty((cells, BLOCK), np.uint64)  # the cells of the family, of one block: they stay in the cache
    at = np.zeros(chosen.shape[0] + 1, np.int64)
    for i in range(chosen.shape[0]):
        at[i + 1] = at[i] + sizes[chosen[i]] * configurations
    tables = np.zeros((at[-1], states), np.int64)
    alive = np.empty(cells, np.int64)
    for begin in range(0, words, BLOCK):
        stop = min(begin + BLOCK, words)
        length = stop - begin
        made = 1
        rows[0, :length] = ~np.uint64(0)
        for c in family:
            for cell in range(made - 1, -1, -1):  # from the back: what is read is not overwritten before
                for s in range(sizes[c] - 1, -1, -1):
                    both(rows[cell, :length], bits[first[c] + s, begin:stop], rows[cell * sizes[c] + s, :length])
            made *= sizes[c]
        left = 0
        for cell in range(cells):
            here = ones(rows[cell, :length])
            whole[cell] += here
            if here > 0:
                alive[left] = cell
                left += 1
        for i in range(chosen.shape[0]):
            c = chosen[i]
            for s in range(sizes[c] - 1):
                own = bits[first[c] + s, begin:stop]
                to = at[i] + s * configurations
                for cell in alive[:left]:
                    tables[to + cell // states, cell % states] += ones_of_both(rows[cell, :length], own)
    for i in range(chosen.shape[0]):
        table = tables[at[i] : at[i + 1]]
        k = sizes[chosen[i]]
        last = (k - 1) * configurations
        for cell in range(cells):
            left = whole[cell]
            for s in range(k - 1):
                left -= table[s * configurations + cell // states, cell % states]
            table[last + cell // states, cell % states] = left
        out[i] = dirichlet(table, weight[i]) if split else log_likelihood(table)


@_jit(work=_work_by_scan, plain=_by_scan_at_once)
def add_by_scan(key, codes, sizes, chosen, configurations, states, weight, split, out):
    """The same for many cells: key[i] is the cell of row i among the configurations that occur, codes (columns, n)."""
    n = key.shape[0]
    for i in range(chosen.shape[0]):
        c = chosen[i]
        k = sizes[c]
        table = np.zeros((configurations * k, states), np.int64)
        flat = table.reshape(configurations * k * states)
        own = codes[c]
        stride = configurations * states
        for row in range(n):
            flat[own[row] * stride + key[row]] += 1
        out[i] = dirichlet(table, weight[i]) if split else log_likelihood(table)
