"""What `grams` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from gramgraph._numerics.becoming import becomes
from gramgraph._numerics.gram.grams import times_power


@becomes(times_power, types.float64, types.float64, types.float64, types.float64)
def _times_power(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    whole = ir.IntType(64)
    power = builder.shl(builder.bitcast(args[2], whole), ir.Constant(whole, 52))  # k + 1023 as an exponent
    return builder.fmul(args[0], builder.bitcast(power, ir.DoubleType()))
