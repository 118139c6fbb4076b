"""What `feature_dicts` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic, overload

from gramgraph._numerics.crf.feature_dicts import _word_at, floats_at, ints_at, longs_at


@intrinsic
def _load_word(typing_context, address):
    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        return builder.load(builder.inttoptr(args[0], word.as_pointer()))

    return types.int64(types.int64), codegen


@overload(_word_at)
def _word_at_compiled(address):
    return lambda address: _load_word(address)


def _pointer(element, make):
    """A function of compiled code that takes an address for a pointer to such elements."""

    @intrinsic
    def pointer(typing_context, address):
        def codegen(context, builder, signature, args):
            return builder.inttoptr(args[0], make.as_pointer())

        return types.CPointer(element)(types.int64), codegen

    return pointer


_to_floats = _pointer(types.float64, ir.DoubleType())
_to_longs = _pointer(types.int64, ir.IntType(64))
_to_ints = _pointer(types.int32, ir.IntType(32))


@overload(floats_at)
def _floats_at_compiled(address, n):
    return lambda address, n: carray(_to_floats(address), (n,))


@overload(longs_at)
def _longs_at_compiled(address, n):
    return lambda address, n: carray(_to_longs(address), (n,))


@overload(ints_at)
def _ints_at_compiled(address, n):
    return lambda address, n: carray(_to_ints(address), (n,))
