"""What `feature_dicts` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gramgraph._numerics.crf.feature_dicts import _word_at


@intrinsic
def _load_word(typing_context, address):
    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        return builder.load(builder.inttoptr(args[0], word.as_pointer()))

    return types.int64(types.int64), codegen


@overload(_word_at)
def _word_at_compiled(address):
    return lambda address: _load_word(address)
