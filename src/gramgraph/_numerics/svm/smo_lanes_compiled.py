"""What `smo_lanes` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

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


@intrinsic
def _sum8(typing_context: Any, f: Any, up: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a = _read(context, builder, signature.args[0], args[0], args[2], _DOUBLES)
        return builder.fadd(a, _read(context, builder, signature.args[1], args[1], args[2], _DOUBLES))

    return _vector8(f, up, types.uint64), codegen


@intrinsic
def _rest8(typing_context: Any, f: Any, lo: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a = _read(context, builder, signature.args[0], args[0], args[2], _DOUBLES)
        return builder.fsub(a, _read(context, builder, signature.args[1], args[1], args[2], _DOUBLES))

    return _vector8(f, lo, types.uint64), codegen


@intrinsic
def _min8(typing_context: Any, u: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _smaller(builder, args[0], args[1])

    return _vector8(_vector8, _vector8), codegen


def _place(sign: str) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        here = _same(builder, builder.uitofp(args[3], ir.DoubleType()), _DOUBLES)
        return builder.select(builder.fcmp_ordered(sign, args[0], args[1]), here, args[2])

    return _vector8(_vector8, _vector8, _vector8, types.uint64), codegen


@intrinsic
def _under8(typing_context: Any, v: Any, best: Any, at: Any, k: Any) -> Any:
    return _place("<")


@intrinsic
def _over8(typing_context: Any, v: Any, best: Any, at: Any, k: Any) -> Any:
    return _place(">")


@intrinsic
def _move8(typing_context: Any, f: Any, Ki: Any, Kj: Any, step: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a = _read(context, builder, signature.args[0], args[0], args[4], _DOUBLES)
        u = _read(context, builder, signature.args[1], args[1], args[4], _DOUBLES)
        v = _read(context, builder, signature.args[2], args[2], args[4], _DOUBLES)
        moved = builder.fadd(a, builder.fmul(_same(builder, args[3], _DOUBLES), builder.fsub(u, v)))
        builder.store(moved, _pointer(context, builder, signature.args[0], args[0], args[4])[0], align=8)
        return context.get_dummy_value()

    return types.void(f, Ki, Kj, types.float64, types.uint64), codegen


@intrinsic
def _gain8(typing_context: Any, f: Any, lo: Any, Ki: Any, diag: Any, fi: Any, di: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
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

    return _vector8(f, lo, Ki, diag, types.float64, types.float64, types.uint64), codegen


def _fold(builder: Any, v: Any, choose: Any) -> Any:
    """One of the eight, by three rounds of halves against halves."""
    width = LANES
    while width > 1:
        width //= 2
        order = [lane + width if lane < width else lane for lane in range(LANES)]
        turned = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
        v = choose(builder, v, builder.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), turned))
    return builder.extract_element(v, ir.Constant(ir.IntType(32), 0))


@intrinsic
def _least8(typing_context: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fold(builder, args[0], _smaller)

    return types.float64(_vector8), codegen


@intrinsic
def _most8(typing_context: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fold(builder, args[0], _larger)

    return types.float64(_vector8), codegen


@intrinsic
def _first8(typing_context: Any, v: Any, at: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = builder.fadd(args[1], ir.Constant(_DOUBLES, [float(lane) for lane in range(LANES)]))
        same = builder.fcmp_ordered("==", args[0], _same(builder, args[2], _DOUBLES))
        found = builder.select(same, places, ir.Constant(_DOUBLES, [NOWHERE] * LANES))
        return _fold(builder, found, _smaller)

    return types.float64(_vector8, _vector8, types.float64), codegen


# Numba compares the parameters of an overload with those of its body, hence no annotations here.


@overload(sum8)
def _sum8_compiled(f, up, k):
    return lambda f, up, k: _sum8(f, up, k)


@overload(rest8)
def _rest8_compiled(f, lo, k):
    return lambda f, lo, k: _rest8(f, lo, k)


@overload(move8)
def _move8_compiled(f, Ki, Kj, step, k):
    return lambda f, Ki, Kj, step, k: _move8(f, Ki, Kj, step, k)


@overload(gain8)
def _gain8_compiled(f, lo, Ki, diag, fi, di, k):
    return lambda f, lo, Ki, diag, fi, di, k: _gain8(f, lo, Ki, diag, fi, di, k)


@overload(min8)
def _min8_compiled(u, v):
    return lambda u, v: _min8(u, v)


@overload(under8)
def _under8_compiled(v, best, at, k):
    return lambda v, best, at, k: _under8(v, best, at, k)


@overload(over8)
def _over8_compiled(v, best, at, k):
    return lambda v, best, at, k: _over8(v, best, at, k)


@overload(least8)
def _least8_compiled(v):
    return lambda v: _least8(v)


@overload(most8)
def _most8_compiled(v):
    return lambda v: _most8(v)


@overload(first8)
def _first8_compiled(v, at, value):
    return lambda v, at, value: _first8(v, at, value)
