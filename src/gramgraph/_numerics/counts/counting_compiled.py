"""What `counting` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gramgraph._numerics.counts.counting import count_ones, equal64


@intrinsic
def _ctpop(context, word):
    def code(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), code


@intrinsic
def _equal64(context, codes, i, state):
    bytes64 = ir.VectorType(ir.IntType(8), 64)

    def code(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, value=args[0]).data
        found = builder.load(builder.bitcast(builder.gep(data, [args[1]]), bytes64.as_pointer()))
        found.align = 1
        one = builder.insert_element(ir.Constant(bytes64, ir.Undefined), args[2], ir.Constant(ir.IntType(32), 0))
        first = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        every = builder.shuffle_vector(one, ir.Constant(bytes64, ir.Undefined), first)
        return builder.bitcast(builder.icmp_signed("==", found, every), ir.IntType(64))

    return types.uint64(codes, types.uint64, types.int8), code


@overload(count_ones)
def _count_ones(word):
    return lambda word: _ctpop(np.uint64(word))


@overload(equal64)
def _equal64_overload(codes, i, state):
    return lambda codes, i, state: _equal64(codes, np.uint64(i), np.int8(state))
