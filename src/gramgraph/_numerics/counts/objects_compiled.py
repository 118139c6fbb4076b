"""What `objects` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gramgraph._numerics.counts.objects import real_at, word_at


def _load(kind, code):
    @intrinsic
    def load(context, address):
        def body(context, builder, signature, args):
            return builder.load(builder.inttoptr(args[0], code.as_pointer()))

        return kind(types.int64), body

    return load


_word, _real = _load(types.int64, ir.IntType(64)), _load(types.float64, ir.DoubleType())


@overload(word_at)
def _word_at(address):
    return lambda address: _word(address)


@overload(real_at)
def _real_at(address):
    return lambda address: _real(address)
