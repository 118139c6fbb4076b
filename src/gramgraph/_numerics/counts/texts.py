"""Numba: texts of an Arrow column as codes of the few labels that they are."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)
_inner = njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)

#: Places of the hash table, of which labels fill at most a quarter; the bits that a hash keeps; the key of an empty
#: place. Everything is unsigned: compiled code then need not ask whether an index counts from the end.
PLACES, _SHIFT = 512, np.uint64(55)
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_ZERO, _ONE, _TWO, _THREE, _FOUR, _SEVEN, _EIGHT = (np.uint64(k) for k in (0, 1, 2, 3, 4, 7, 8))
_LAST, _ALL = np.uint64(PLACES - 1), np.uint64(56)
_BYTE, _REST = np.uint64(255), np.uint64(127)  # the lowest byte becomes 128, which no short text and no empty place has
#: Texts that are looked up one by one after four that could not be looked up together.
_APART = np.uint64(64)


@_inner
def _short(window, length):
    """The bytes of a text of up to seven, and their number below them: no other text has the same key."""
    return ((window << _EIGHT) << (_ALL - _EIGHT * length)) | length


@_inner
def _key(windows, start, length):
    """The same for any text; a longer one may share its key, made of its first and last bytes, with other long ones."""
    if length <= _SEVEN:
        return _short(windows[start], length)
    return ((windows[start] * _MULTIPLIER + windows[start + length - _EIGHT]) | _BYTE) ^ _REST


@_inner
def _slot(key):
    return (key * _MULTIPLIER) >> _SHIFT


@_inner
def _same(windows, one, other, length):
    """Whether two texts of one length, of eight bytes or more, are equal."""
    last = length - _EIGHT
    j = _ZERO
    while j < last and windows[one + j] == windows[other + j]:
        j += _EIGHT
    return j >= last and windows[one + last] == windows[other + last]


@_jit
def enter_text(label, text, offsets, windows, keys, lengths, starts, labels):
    """Enter a text into the table of labels, whose empty places have the key EMPTY."""
    start = np.uint64(offsets[text])
    length = np.uint64(offsets[text + 1]) - start
    key = _key(windows, start, length)
    at = _slot(key)
    while keys[at] != EMPTY:
        at = (at + _ONE) & _LAST
    keys[at] = key
    lengths[at] = length
    starts[at] = start
    labels[at] = label


@_inner
def _four_by_four(begin, end, offsets, windows, keys, labels, out):
    """What `encode_texts` does, up to the first four texts that are not all short labels at their own places."""
    i = begin
    start = np.uint64(offsets[i])
    while i + _FOUR <= end:
        one, two = np.uint64(offsets[i + _ONE]), np.uint64(offsets[i + _TWO])
        three, stop = np.uint64(offsets[i + _THREE]), np.uint64(offsets[i + _FOUR])
        k, m, n, p = one - start, two - one, three - two, stop - three
        if (k | m | n | p) > _SEVEN:
            break
        a, b = _short(windows[start], k), _short(windows[one], m)
        c, d = _short(windows[two], n), _short(windows[three], p)
        at, bt, ct, dt = _slot(a), _slot(b), _slot(c), _slot(d)
        if (keys[at] ^ a) | (keys[bt] ^ b) | (keys[ct] ^ c) | (keys[dt] ^ d) != _ZERO:
            break
        out[i] = labels[at]
        out[i + _ONE] = labels[bt]
        out[i + _TWO] = labels[ct]
        out[i + _THREE] = labels[dt]
        start = stop
        i += _FOUR
    return i


@_jit
def encode_texts(begin, end, offsets, windows, keys, lengths, starts, labels, out):
    """out[i] = the label of text i, for i from begin to end; stops at the first text that is no label yet.

    Text i are the bytes from offsets[i] to offsets[i + 1]; windows[j] are the eight bytes from j on. Returns the text
    it stopped at.
    """
    i, last = np.uint64(begin), np.uint64(end)
    while i < last:
        i = _four_by_four(i, last, offsets, windows, keys, labels, out)
        until = min(i + _APART, last)
        while i < until:
            start = np.uint64(offsets[i])
            length = np.uint64(offsets[i + _ONE]) - start
            key = _key(windows, start, length)
            at = _slot(key)
            while keys[at] != key or (
                length > _SEVEN and (lengths[at] != length or not _same(windows, start, starts[at], length))
            ):
                if keys[at] == EMPTY:
                    return np.int64(i)
                at = (at + _ONE) & _LAST
            out[i] = labels[at]
            i += _ONE
    return end
