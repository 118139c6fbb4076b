"""Numba: sets as rows of bits, 64 to a word (uint64)."""

from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from gramgraph._numerics.compiling import njit

Bits: TypeAlias = NDArray[np.uint64]

ZERO = np.uint64(0)
ONE = np.uint64(1)


def _emit_ctpop(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


def _emit_cttz(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), codegen


_ctpop: Any = intrinsic(_emit_ctpop)
_cttz: Any = intrinsic(_emit_cttz)


def popcount(x: np.uint64) -> int:
    """Number of set bits; one machine instruction when compiled."""
    return int(x).bit_count()


def lowest_bit(x: np.uint64) -> int:
    """Position of the lowest set bit of ``x != 0``; one machine instruction when compiled."""
    value = int(x)
    return (value & -value).bit_length() - 1


@overload(popcount)
def _popcount_compiled(x: Any) -> Any:
    def compiled(x: Any) -> Any:
        return _ctpop(x)

    return compiled


@overload(lowest_bit)
def _lowest_bit_compiled(x: Any) -> Any:
    def compiled(x: Any) -> Any:
        return _cttz(x)

    return compiled


@njit(cache=True, nogil=True, boundscheck=False)
def bit(v: int) -> np.uint64:
    """The word in which only the bit of member v is set."""
    return ONE << np.uint64(v & 63)


@njit(cache=True, nogil=True, boundscheck=False)
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
