"""What `bits` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from typing import Any

from numba import types

from gramgraph._numerics.becoming import becomes
from gramgraph._numerics.tree.bits import lowest_bit, popcount


@becomes(popcount, types.int64, types.uint64)
def _popcount(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.ctpop(args[0])


@becomes(lowest_bit, types.int64, types.uint64)
def _lowest_bit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.cttz(args[0], context.get_constant(types.boolean, True))
