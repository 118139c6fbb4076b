"""What `bits` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from typing import Any

from numba import types
from numba.extending import intrinsic, overload

from gramgraph._numerics.tree.bits import lowest_bit, popcount


def _emit_ctpop(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


def _emit_cttz(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), codegen


_ctpop: Any = intrinsic(_emit_ctpop)
_cttz: Any = intrinsic(_emit_cttz)


@overload(popcount)
def _popcount_compiled(x: Any) -> Any:
    def compiled(x: Any) -> Any:
        return _ctpop(x)

    return compiled


@overload(lowest_bit)
def _lowest_bit_compiled(x: Any) -> Any:
    def compiled(x: Any) -> Any:
        return _cttz(x)

    return compiled
