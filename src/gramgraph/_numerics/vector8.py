"""Eight doubles as one value inside compiled loops.

`load8(a, i)` reads a[i:i+8], `store8(a, i, v)` writes it; `add8`, `mul8`, `max8`, `fill8` compute. Compiled, a value is
a vector register (two on processors with half as wide ones), whatever the compiler's own vectorizer thinks of the loop.
Uncompiled (NUMBA_DISABLE_JIT=1) it is a small array. Indices are uint64; nothing is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_ALIGN = 8  # arrays promise no more than the alignment of a double


class _Vector8(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Vector8")


@register_model(_Vector8)
class _Vector8Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


_vector8 = _Vector8()


def load8(a: Any, i: Any) -> Any:
    """a[i:i+8]."""
    return a[int(i) : int(i) + LANES].copy()


def store8(a: Any, i: Any, v: Any) -> None:
    """a[i:i+8] = v."""
    a[int(i) : int(i) + LANES] = v


def fill8(x: Any) -> Any:
    """The number x eight times."""
    return np.full(LANES, x)


def add8(u: Any, v: Any) -> Any:
    """u + v."""
    return u + v


def mul8(u: Any, v: Any) -> Any:
    """u · v."""
    return u * v


def max8(u: Any, v: Any) -> Any:
    """The larger of u and v, lane by lane."""
    return np.maximum(u, v)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@intrinsic
def _load8(typing_context: Any, a: Any, i: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.load(_address(context, builder, signature.args[0], args[0], args[1]))
        found.align = _ALIGN
        return found

    return _vector8(a, types.uint64), codegen


@intrinsic
def _store8(typing_context: Any, a: Any, i: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, signature.args[0], args[0], args[1]), align=_ALIGN)
        return context.get_dummy_value()

    return types.void(a, types.uint64, _vector8), codegen


@intrinsic
def _fill8(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0))
        every = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), every)

    return _vector8(types.float64), codegen


@intrinsic
def _add8(typing_context: Any, u: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(args[0], args[1])

    return _vector8(_vector8, _vector8), codegen


@intrinsic
def _mul8(typing_context: Any, u: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(args[0], args[1])

    return _vector8(_vector8, _vector8), codegen


@intrinsic
def _max8(typing_context: Any, u: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])

    return _vector8(_vector8, _vector8), codegen


# Numba compares the parameters of an overload with those of its body, hence no annotations here.


@overload(load8)
def _load8_compiled(a, i):
    return lambda a, i: _load8(a, i)


@overload(store8)
def _store8_compiled(a, i, v):
    return lambda a, i, v: _store8(a, i, v)


@overload(fill8)
def _fill8_compiled(x):
    return lambda x: _fill8(x)


@overload(add8)
def _add8_compiled(u, v):
    return lambda u, v: _add8(u, v)


@overload(mul8)
def _mul8_compiled(u, v):
    return lambda u, v: _mul8(u, v)


@overload(max8)
def _max8_compiled(u, v):
    return lambda u, v: _max8(u, v)
