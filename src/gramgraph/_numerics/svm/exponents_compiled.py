"""What `exponents` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gramgraph._numerics.becoming import becomes
from gramgraph._numerics.svm.exponents import (
    _exp_double,
    _exp_single,
    _lift_double,
    _lift_single,
    exp_down,
    exp_products,
    times_power32,
    turn8,
)


@becomes(times_power32, types.float32, types.float32, types.float32, types.float32)
def _times_power32(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    whole = ir.IntType(32)
    power = builder.shl(builder.bitcast(args[2], whole), ir.Constant(whole, 23))  # k + 127 as an exponent
    return builder.fmul(args[0], builder.bitcast(power, ir.FloatType()))


@overload(exp_down)
def _exp_down_compiled(row, scale):
    if row.dtype == types.float32:
        return lambda row, scale: _exp_single(row, scale)
    return lambda row, scale: _exp_double(row, scale)


@intrinsic
def _turn8(typing_context, K, i, j, n):
    def codegen(context, builder, signature, args):
        kind = signature.args[0].dtype
        vector = ir.VectorType(ir.FloatType() if kind == types.float32 else ir.DoubleType(), 8)
        data = context.make_array(signature.args[0])(context, builder, value=args[0]).data
        _, i, j, n = args

        def place(row, column, r):
            here = builder.mul(builder.add(row, ir.Constant(row.type, r)), n)
            return builder.bitcast(builder.gep(data, [builder.add(here, column)]), vector.as_pointer())

        align = 4 if kind == types.float32 else 8
        rows = [builder.load(place(i, j, r), align=align) for r in range(8)]
        for far in (4, 2, 1):  # blocks of this size beside the diagonal change places
            for r in range(8):
                if r & far:
                    continue
                u, v = rows[r], rows[r + far]
                low = [lane if not lane & far else 8 + lane - far for lane in range(8)]
                high = [lane + far if not lane & far else 8 + lane for lane in range(8)]
                whole = ir.VectorType(ir.IntType(32), 8)
                rows[r] = builder.shuffle_vector(u, v, ir.Constant(whole, low))
                rows[r + far] = builder.shuffle_vector(u, v, ir.Constant(whole, high))
        for r in range(8):
            builder.store(rows[r], place(j, i, r), align=align)
        return context.get_dummy_value()

    return types.void(K, types.uint64, types.uint64, types.uint64), codegen


@overload(turn8)
def _turn8_compiled(K, i, j):
    return lambda K, i, j: _turn8(K, np.uint64(i), np.uint64(j), np.uint64(K.shape[1]))


@overload(exp_products)
def _exp_products_compiled(row, half, own):
    if row.dtype == types.float32:
        return lambda row, half, own: _lift_single(row, half, own)
    return lambda row, half, own: _lift_double(row, half, own)
