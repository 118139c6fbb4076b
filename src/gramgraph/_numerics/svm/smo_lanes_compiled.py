"""What `smo_lanes` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from gramgraph._numerics.becoming import becomes
from gramgraph._numerics.svm.smo_lanes import (
    _TINY,
    NOWHERE,
    first8,
    gain8,
    least8,
    min8,
    most8,
    move8,
    over8,
    rest8,
    sum8,
    under8,
)
from gramgraph._numerics.vector8 import LANES
from gramgraph._numerics.vector8_compiled import _vector8

_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)


# --- compiled -----------------------------------------------------------------------------------------------------


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> tuple[Any, Any]:
    if array_type.layout != "C":
        raise TypeError(
            f"eight points at a time are read from arrays without gaps; got the layout {array_type.layout!r}"
        )
    single = array_type.dtype == types.float32
    vector = _FLOATS if single else _DOUBLES
    data = context.make_array(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer()), vector


def _read(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: Any) -> Any:
    """Eight entries, as doubles or floats whatever the array holds."""
    pointer, stored = _pointer(context, builder, array_type, array, index)
    found = builder.load(pointer)
    found.align = 4 if stored is _FLOATS else 8
    if stored is vector:
        return found
    return builder.fpext(found, vector) if vector is _DOUBLES else builder.fptrunc(found, vector)


def _same(builder: Any, value: Any, vector: Any) -> Any:
    """A number in every lane."""
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    every = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), every)


def _larger(builder: Any, u: Any, v: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", u, v), u, v)


def _smaller(builder: Any, u: Any, v: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", u, v), u, v)


@becomes(sum8, _vector8, None, None, types.uint64)
def _sum8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    a = _read(context, builder, signature.args[0], args[0], args[2], _DOUBLES)
    return builder.fadd(a, _read(context, builder, signature.args[1], args[1], args[2], _DOUBLES))


@becomes(rest8, _vector8, None, None, types.uint64)
def _rest8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    a = _read(context, builder, signature.args[0], args[0], args[2], _DOUBLES)
    return builder.fsub(a, _read(context, builder, signature.args[1], args[1], args[2], _DOUBLES))


@becomes(min8, _vector8, _vector8, _vector8)
def _min8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _smaller(builder, args[0], args[1])


def _place(sign: str) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        here = _same(builder, builder.uitofp(args[3], ir.DoubleType()), _DOUBLES)
        return builder.select(builder.fcmp_ordered(sign, args[0], args[1]), here, args[2])

    return code


becomes(under8, _vector8, _vector8, _vector8, _vector8, types.uint64)(_place("<"))
becomes(over8, _vector8, _vector8, _vector8, _vector8, types.uint64)(_place(">"))


@becomes(move8, types.void, None, None, None, types.float64, types.uint64)
def _move8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    a = _read(context, builder, signature.args[0], args[0], args[4], _DOUBLES)
    u = _read(context, builder, signature.args[1], args[1], args[4], _DOUBLES)
    v = _read(context, builder, signature.args[2], args[2], args[4], _DOUBLES)
    moved = builder.fadd(a, builder.fmul(_same(builder, args[3], _DOUBLES), builder.fsub(u, v)))
    builder.store(moved, _pointer(context, builder, signature.args[0], args[0], args[4])[0], align=8)
    return context.get_dummy_value()


@becomes(gain8, _vector8, None, None, None, None, types.float64, types.float64, types.uint64)
def _gain8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    k = args[6]
    a = _read(context, builder, signature.args[0], args[0], k, _DOUBLES)
    b = _read(context, builder, signature.args[1], args[1], k, _DOUBLES)
    t = builder.fsub(builder.fsub(a, b), _same(builder, args[4], _DOUBLES))
    t = builder.fptrunc(t, _FLOATS)
    t = _larger(builder, t, ir.Constant(_FLOATS, [0.0] * LANES))
    row = _read(context, builder, signature.args[2], args[2], k, _FLOATS)
    own = _read(context, builder, signature.args[3], args[3], k, _FLOATS)
    mine = _same(builder, builder.fptrunc(args[5], ir.FloatType()), _FLOATS)
    eta = builder.fsub(builder.fadd(mine, own), builder.fmul(ir.Constant(_FLOATS, [2.0] * LANES), row))
    # The constant must be a number of single precision to be written into the code.
    eta = _larger(builder, eta, ir.Constant(_FLOATS, [float(np.float32(_TINY))] * LANES))
    return builder.fpext(builder.fdiv(builder.fmul(t, t), eta), _DOUBLES)


def _fold(builder: Any, v: Any, choose: Any) -> Any:
    """One of the eight, by three rounds of halves against halves."""
    width = LANES
    while width > 1:
        width //= 2
        order = [lane + width if lane < width else lane for lane in range(LANES)]
        turned = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
        v = choose(builder, v, builder.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), turned))
    return builder.extract_element(v, ir.Constant(ir.IntType(32), 0))


@becomes(least8, types.float64, _vector8)
def _least8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _fold(builder, args[0], _smaller)


@becomes(most8, types.float64, _vector8)
def _most8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _fold(builder, args[0], _larger)


@becomes(first8, types.float64, _vector8, _vector8, types.float64)
def _first8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    places = builder.fadd(args[1], ir.Constant(_DOUBLES, [float(lane) for lane in range(LANES)]))
    same = builder.fcmp_ordered("==", args[0], _same(builder, args[2], _DOUBLES))
    found = builder.select(same, places, ir.Constant(_DOUBLES, [NOWHERE] * LANES))
    return _fold(builder, found, _smaller)
