"""Numba: contingency tables, by the bits of packed columns or by one scan of the codes.

A packed column is one bit-vector per state: bit i of word w says that row 64 w + i has the state. A cell of a table is
then the number of ones in the AND of a few vectors, and a row with a missing cell falls out by itself.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit, when_compiled

when_compiled("gramgraph._numerics.counts.counting_compiled")

_jit = njit(cache=True, nogil=True, boundscheck=False)
#: Words of a column that are worked on together: all vectors of a table then stay in the first-level cache.
BLOCK = 256
#: Rows whose cells are computed together in a scan.
ROWS = 2048


def count_ones(word):
    """Number of ones of a 64-bit word."""
    return int(word).bit_count()


def equal64(codes, i, state):
    """The word whose bit j says that codes[i + j] == state, for the 64 bytes from i on."""
    return np.packbits(codes[int(i) : int(i) + 64] == state, bitorder="little").view(np.uint64)[0]


def _pack_at_once(codes, out):
    """The same for a state at a time."""
    flags = np.zeros(64 * out.shape[1], bool)
    for k in range(out.shape[0]):
        np.equal(codes, k, out=flags[: codes.shape[0]])
        out[k] = np.packbits(flags, bitorder="little").view(np.uint64)


@_jit(plain=_pack_at_once)
def pack_bytes(codes, out):
    """Bit-vectors of one column of bytes: out (states, words); codes below zero are missing and set no bit."""
    n = codes.shape[0]
    whole = n // 64
    for w in range(whole):
        for k in range(out.shape[0]):
            out[k, w] = equal64(codes, 64 * w, k)
    pack_rest(codes, 64 * whole, out)


@_jit
def pack_rest(codes, start, out):
    """The same from row `start` on, a multiple of 64, for codes of any integer type."""
    n = codes.shape[0]
    for w in range(start // 64, out.shape[1]):
        for k in range(out.shape[0]):
            out[k, w] = np.uint64(0)
        for i in range(w * 64, min(w * 64 + 64, n)):
            if codes[i] >= 0:
                out[codes[i], w] |= np.uint64(1) << np.uint64(i & 63)


# The loops below take slices: their index starts at zero, which spares a test at every access and lets the compiler
# count eight words at a time.


def _ones_at_once(a, b):
    return int.from_bytes((a & b).tobytes(), "little").bit_count()


@_jit(no_cpython_wrapper=True)
def ones(a):
    total = 0
    for w in range(a.shape[0]):
        total += count_ones(a[w])
    return total


@_jit(plain=_ones_at_once, no_cpython_wrapper=True)
def ones_of_both(a, b):
    total = 0
    for w in range(a.shape[0]):
        total += count_ones(a[w] & b[w])
    return total


@_jit(no_cpython_wrapper=True)
def both(a, b, out):
    """out = a & b; whether any bit is left."""
    left = np.uint64(0)
    for w in range(out.shape[0]):
        out[w] = a[w] & b[w]
        left |= out[w]
    return left != 0


def _count_at_once(bits, first, sizes, out):
    for begin in range(0, bits.shape[1], BLOCK):
        part = bits[:, begin : begin + BLOCK]
        both = part[first[0] : first[0] + sizes[0]]
        for start, size in zip(first[1:], sizes[1:], strict=True):
            both = (both[:, None] & part[None, start : start + size]).reshape(-1, part.shape[1])
        out += np.bitwise_count(both).sum(axis=1, dtype=np.int64)


@_jit(plain=_count_at_once)
def count_bits(bits, first, sizes, out):
    """out[flat cell] += rows whose columns have these states.

    Column j owns the vectors first[j] … first[j] + sizes[j] - 1 of `bits`; the last column runs fastest. The ANDs of
    all columns but the last are kept per level, so that each cell costs one AND and one count a word; where such an
    AND is empty, all cells below it are passed over.
    """
    depth = sizes.shape[0]
    words = bits.shape[1]
    above = depth - 1
    prefix = np.empty((max(above, 1), BLOCK), np.uint64)
    state = np.zeros(depth, np.int64)
    stride = np.ones(depth, np.int64)
    for j in range(above - 1, -1, -1):
        stride[j] = stride[j + 1] * sizes[j + 1]
    vectors = first[above]
    for begin in range(0, words, BLOCK):
        stop = min(begin + BLOCK, words)
        length = stop - begin
        state[:] = 0
        level = 0  # the first level whose AND is out of date
        while True:
            empty = -1
            for j in range(level, above):
                own = bits[first[j] + state[j], begin:stop]
                if not both(own if j == 0 else prefix[j - 1, :length], own, prefix[j, :length]):
                    empty = j
                    break
            if empty < 0:
                cell = 0
                for j in range(above):
                    cell += state[j] * stride[j]
                for k in range(sizes[above]):
                    own = bits[vectors + k, begin:stop]
                    out[cell + k] += ones(own) if above == 0 else ones_of_both(prefix[above - 1, :length], own)
                empty = above - 1
            level = empty
            while level >= 0:
                state[level] += 1
                if state[level] < sizes[level]:
                    break
                state[level] = 0
                level -= 1
            if level < 0:
                break


@_jit
def count_pairs(bits, first, last, out):
    """out[a, b] += rows that have both states, for every pair of vectors of different columns, a before b.

    Column j owns the vectors first[j] … last[j] - 1.
    """
    words = bits.shape[1]
    columns = first.shape[0]
    for begin in range(0, words, BLOCK):
        stop = min(begin + BLOCK, words)
        for i in range(columns):
            for a in range(first[i], last[i]):
                for j in range(i + 1, columns):
                    for b in range(first[j], last[j]):
                        out[a, b] += ones_of_both(bits[a, begin:stop], bits[b, begin:stop])


@_jit
def count_scan(codes, columns, strides, weights, out):
    """out[flat cell] += weight of each row without a missing cell; codes is (all columns, rows).

    `weights` of length one weigh every row alike.
    """
    n = codes.shape[1]
    cell = np.empty(ROWS, np.int64)
    missing = np.empty(ROWS, np.int64)
    shared = weights.shape[0] == 1
    for begin in range(0, n, ROWS):
        length = min(ROWS, n - begin)
        for i in range(length):
            cell[i] = 0
            missing[i] = 0
        for j in range(columns.shape[0]):
            c, step = columns[j], strides[j]
            for i in range(length):
                code = np.int64(codes[c, begin + i])
                cell[i] += step * code
                missing[i] |= code
        if shared:
            w = weights[0]
            for i in range(length):
                if missing[i] >= 0:
                    out[cell[i]] += w
        else:
            for i in range(length):
                if missing[i] >= 0:
                    out[cell[i]] += weights[begin + i]
