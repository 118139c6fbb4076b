"""Numba: sets as rows of bits, 64 to a word (uint64)."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramgraph._numerics.compiling import njit, when_compiled

when_compiled("gramgraph._numerics.tree.bits_compiled")

Bits: TypeAlias = NDArray[np.uint64]

ZERO = np.uint64(0)
ONE = np.uint64(1)


def popcount(x: np.uint64) -> int:
    """Number of set bits; one machine instruction when compiled."""
    return int(x).bit_count()


def lowest_bit(x: np.uint64) -> int:
    """Position of the lowest set bit of ``x != 0``; one machine instruction when compiled."""
    value = int(x)
    return (value & -value).bit_length() - 1


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def bit(v: int) -> np.uint64:
    """The word in which only the bit of member v is set."""
    return ONE << np.uint64(v & 63)


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def members_of(row: Bits, out: NDArray[np.int64]) -> int:
    """Write the members of a set into `out`, ascending; returns how many there are."""
    d = 0
    for w in range(len(row)):
        x = row[w]
        while x != ZERO:
            out[d] = (w << 6) + lowest_bit(x)
            d += 1
            x &= x - ONE
    return d
