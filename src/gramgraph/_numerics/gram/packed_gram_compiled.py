"""What `packed_gram` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gramgraph._numerics.gram.packed_gram import bits_of, double_of


@intrinsic
def _bits_of(typing_context, x):
    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), codegen


@intrinsic
def _double_of(typing_context, bits):
    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), codegen


@overload(bits_of)
def _bits_of_compiled(x):
    return lambda x: _bits_of(x)


@overload(double_of)
def _double_of_compiled(bits):
    return lambda bits: _double_of(bits)
