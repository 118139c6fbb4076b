"""Numba: texts of an Arrow column as codes of the few labels that they are."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)

#: Places of the hash table, of which labels fill at most a quarter; the bits that a hash keeps.
PLACES, _SHIFT = 512, np.uint64(55)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BYTE = np.uint64(8)
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@_jit
def _head(windows, start, length):
    """The first eight bytes of a text, or all of it and zeros."""
    head = windows[start]
    return head if length >= 8 else head & ~(_FULL << (_BYTE * np.uint64(length)))


@_jit
def _slot(head, length):
    return np.int64(((head ^ np.uint64(length)) * _MULTIPLIER) >> _SHIFT)


@_jit
def enter_text(label, start, length, windows, heads, lengths, starts, labels):
    """Enter the text at `start` into the table of labels, whose empty places have the length -1."""
    head = _head(windows, start, length)
    at = _slot(head, length)
    while lengths[at] >= 0:
        at = (at + 1) & np.int64(PLACES - 1)
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
    for i in range(begin, end):
        start = np.int64(offsets[i])
        length = np.int64(offsets[i + 1]) - start
        head = _head(windows, start, length)
        at = _slot(head, length)
        while True:
            if heads[at] == head and lengths[at] == length:
                equal = True
                for j in range(8, length):
                    if data[start + j] != data[starts[at] + j]:
                        equal = False
                if equal:
                    break
            if lengths[at] < 0:
                return i
            at = (at + 1) & np.int64(PLACES - 1)
        out[i] = labels[at]
    return end
