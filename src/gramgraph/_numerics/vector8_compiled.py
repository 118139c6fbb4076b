"""What `vector8` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from gramgraph._numerics.becoming import becomes
from gramgraph._numerics.vector8 import (
    _ALIGN,
    LANES,
    add8,
    div8,
    fill8,
    fma8,
    load8,
    max8,
    mul8,
    sqrt8,
    store8,
    store_columns8,
    stream8,
    stream_columns8,
    sub8,
    times_power8,
)

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_SINGLE = ir.VectorType(ir.FloatType(), LANES)


class _Vector8(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Vector8")


@register_model(_Vector8)
class _Vector8Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


_vector8 = _Vector8()


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, value=array).data
    vector = _SINGLE if array_type.dtype == types.float32 else _VECTOR
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _alignment(array_type: Any) -> int:
    return _ALIGN // 2 if array_type.dtype == types.float32 else _ALIGN


@becomes(load8, _vector8, None, types.uint64)
def _load8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    found = builder.load(_address(context, builder, kind, args[0], args[1]))
    found.align = _alignment(kind)
    return builder.fpext(found, _VECTOR) if kind.dtype == types.float32 else found


@becomes(store8, types.void, None, types.uint64, _vector8)
def _store8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    value = builder.fptrunc(args[2], _SINGLE) if kind.dtype == types.float32 else args[2]
    builder.store(value, _address(context, builder, kind, args[0], args[1]), align=_alignment(kind))
    return context.get_dummy_value()


@becomes(fill8, _vector8, types.float64)
def _fill8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0))
    every = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), every)


@becomes(add8, _vector8, _vector8, _vector8)
def _add8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.fadd(args[0], args[1])


@becomes(mul8, _vector8, _vector8, _vector8)
def _mul8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.fmul(args[0], args[1])


@becomes(div8, _vector8, _vector8, _vector8)
def _div8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.fdiv(args[0], args[1])


@becomes(max8, _vector8, _vector8, _vector8)
def _max8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])


@becomes(sub8, _vector8, _vector8, _vector8)
def _sub8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.fsub(args[0], args[1])


def _llvm(builder: Any, name: str, args: Any) -> Any:
    """Call LLVM's own function of vectors."""
    signature = ir.FunctionType(_VECTOR, [_VECTOR] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.v8f64"), args)


@becomes(fma8, _vector8, _vector8, _vector8, _vector8)
def _fma8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _llvm(builder, "fmuladd", args)  # fused where there is an instruction, never a call


@becomes(sqrt8, _vector8, _vector8)
def _sqrt8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _llvm(builder, "sqrt", args)


@becomes(times_power8, _vector8, _vector8, _vector8)
def _times_power8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    whole = ir.VectorType(ir.IntType(64), LANES)
    power = builder.shl(builder.bitcast(args[1], whole), ir.Constant(whole, [52] * LANES))  # k + 1023 as an exponent
    return builder.fmul(args[0], builder.bitcast(power, _VECTOR))


def _past_caches(builder: Any, store: Any) -> None:
    store.align = 8 * LANES
    store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))


@becomes(stream8, types.void, None, types.uint64, _vector8)
def _stream8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    _past_caches(builder, builder.store(args[2], _address(context, builder, signature.args[0], args[0], args[1])))
    return context.get_dummy_value()


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Columns of an 8 × 8 block: pairs of lanes, then of pairs, then of halves change places."""

    def mix(u: Any, v: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(u, v, ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes))

    even, odd = [0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15]
    low, high = [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]
    first, last = [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]
    ones = [mix(rows[k], rows[k + 1], lanes) for k in range(0, LANES, 2) for lanes in (even, odd)]
    twos = [mix(ones[h + o], ones[h + 2 + o], lanes) for h in (0, 4) for lanes in (low, high) for o in (0, 1)]
    return [mix(twos[c], twos[4 + c], lanes) for lanes in (first, last) for c in range(4)]


def _columns_writer(past_caches: bool) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        index = args[1]
        for column in _transposed(builder, cgutils.unpack_tuple(builder, args[3])):
            found = builder.store(column, _address(context, builder, signature.args[0], args[0], index))
            found.align = _ALIGN
            if past_caches:
                _past_caches(builder, found)
            index = builder.add(index, args[2])
        return context.get_dummy_value()

    return code


becomes(store_columns8, types.void, None, types.uint64, types.uint64, None)(_columns_writer(past_caches=False))
becomes(stream_columns8, types.void, None, types.uint64, types.uint64, None)(_columns_writer(past_caches=True))
