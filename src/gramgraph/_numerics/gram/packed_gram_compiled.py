"""What `packed_gram` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from gramgraph._numerics.becoming import becomes
from gramgraph._numerics.gram.packed_gram import bits_of, double_of


@becomes(bits_of, types.uint64, types.float64)
def _bits_of(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.bitcast(args[0], ir.IntType(64))


@becomes(double_of, types.float64, types.uint64)
def _double_of(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.bitcast(args[0], ir.DoubleType())
