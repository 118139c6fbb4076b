"""What `grams` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gramgraph._numerics.gram.grams import times_power


@intrinsic
def _times_power(typing_context, p, k, z):
    def codegen(context, builder, signature, args):
        whole = ir.IntType(64)
        shifted = builder.shl(builder.bitcast(args[2], whole), ir.Constant(whole, 52))
        return builder.bitcast(builder.add(builder.bitcast(args[0], whole), shifted), ir.DoubleType())

    return types.float64(types.float64, types.float64, types.float64), codegen


@overload(times_power)
def _times_power_compiled(p, k, z):
    return lambda p, k, z: _times_power(p, k, z)
