"""Numba: texts of an Arrow column as codes of the few labels that they are."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)

#: Places of the hash table, of which labels fill at most a quarter; the bits that a hash keeps; the length of an empty
#: place. Everything is unsigned: compiled code then need not ask whether an index counts from the end.
PLACES, _SHIFT = 512, np.uint64(55)
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_LAST, _ONE, _EIGHT = np.uint64(PLACES - 1), np.uint64(1), np.uint64(8)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@_jit(no_cpython_wrapper=True)
def _head(windows, start, length):
    """The first eight bytes of a text, or all of it and zeros."""
    head = windows[start]
    return head if length >= _EIGHT else head & ~(EMPTY << (_EIGHT * length))


@_jit(no_cpython_wrapper=True)
def _slot(head, length):
    return ((head ^ length) * _MULTIPLIER) >> _SHIFT


@_jit
def _same_end(data, one, other, length):
    """Whether two texts of one length agree behind their first eight bytes."""
    j = _EIGHT
    while j < length and data[one + j] == data[other + j]:
        j += _ONE
    return j >= length


@_jit
def enter_text(label, text, offsets, windows, heads, lengths, starts, labels):
    """Enter a text into the table of labels, whose empty places have the length EMPTY."""
    start = np.uint64(offsets[text])
    length = np.uint64(offsets[text + 1]) - start
    head = _head(windows, start, length)
    at = _slot(head, length)
    while lengths[at] != EMPTY:
        at = (at + _ONE) & _LAST
    heads[at] = head
    lengths[at] = length
    starts[at] = start
    labels[at] = label


@_jit
def encode_texts(begin, end, offsets, windows, data, heads, lengths, starts, labels, out):
    """out[i] = the label of text i, for i from begin to end; stops at the first text that is no label yet.

    Text i are the bytes offsets[i] … offsets[i + 1] - 1 of `data`; windows[j] are the eight bytes from j on. Returns
    the text it stopped at.
    """
    start = np.uint64(offsets[begin])
    for i in range(begin, end):
        stop = np.uint64(offsets[i + 1])
        length = stop - start
        head = _head(windows, start, length)
        at = _slot(head, length)
        while heads[at] != head or lengths[at] != length or not _same_end(data, start, starts[at], length):
            if lengths[at] == EMPTY:
                return i
            at = (at + _ONE) & _LAST
        out[i] = labels[at]
        start = stop
    return end
