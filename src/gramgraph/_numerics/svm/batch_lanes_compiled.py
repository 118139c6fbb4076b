"""What `batch_lanes` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

from gramgraph._numerics.svm.batch_lanes import (
    _TINY,
    NOWHERE32,
    above8,
    change8,
    earliest8,
    greatest8,
    larger8,
    profit8,
    singles8,
)
from gramgraph._numerics.svm.smo_lanes_compiled import _DOUBLES, _FLOATS, _fold, _larger, _read, _same, _smaller
from gramgraph._numerics.vector8 import LANES
from gramgraph._numerics.vector8_compiled import _vector8


class _Single8(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Single8")


@register_model(_Single8)
class _Single8Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _FLOATS)


_single8 = _Single8()


# --- compiled -----------------------------------------------------------------------------------------------------


@intrinsic
def _change8(typing_context: Any, Ki: Any, Kj: Any, step: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        stored = _FLOATS if signature.args[0].dtype == types.float32 else _DOUBLES
        u = _read(context, builder, signature.args[0], args[0], args[3], stored)
        v = _read(context, builder, signature.args[1], args[1], args[3], stored)
        moved = builder.fsub(u, v)
        moved = builder.fpext(moved, _DOUBLES) if stored is _FLOATS else moved
        return builder.fmul(_same(builder, args[2], _DOUBLES), moved)

    return _vector8(Ki, Kj, types.float64, types.uint64), codegen


@intrinsic
def _profit8(typing_context: Any, fall: Any, Ki: Any, diag: Any, fi: Any, di: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        k = args[5]
        a = _read(context, builder, signature.args[0], args[0], k, _DOUBLES)
        t = builder.fptrunc(builder.fsub(a, _same(builder, args[3], _DOUBLES)), _FLOATS)
        t = _larger(builder, t, ir.Constant(_FLOATS, [0.0] * LANES))
        row = _read(context, builder, signature.args[1], args[1], k, _FLOATS)
        own = _read(context, builder, signature.args[2], args[2], k, _FLOATS)
        mine = _same(builder, builder.fptrunc(args[4], ir.FloatType()), _FLOATS)
        eta = builder.fsub(builder.fadd(mine, own), builder.fmul(ir.Constant(_FLOATS, [2.0] * LANES), row))
        eta = _larger(builder, eta, ir.Constant(_FLOATS, [float(_TINY)] * LANES))
        return builder.fdiv(builder.fmul(t, t), eta)

    return _single8(fall, Ki, diag, types.float64, types.float64, types.uint64), codegen


@intrinsic
def _singles8(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _same(builder, args[0], _FLOATS)

    return _single8(types.float32), codegen


@intrinsic
def _larger8(typing_context: Any, u: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _larger(builder, args[0], args[1])

    return _single8(_single8, _single8), codegen


@intrinsic
def _above8(typing_context: Any, v: Any, best: Any, at: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        here = _same(builder, builder.uitofp(args[3], ir.FloatType()), _FLOATS)
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), here, args[2])

    return _single8(_single8, _single8, _single8, types.uint64), codegen


@intrinsic
def _greatest8(typing_context: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fold(builder, args[0], _larger)

    return types.float32(_single8), codegen


@intrinsic
def _earliest8(typing_context: Any, v: Any, at: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = builder.fadd(args[1], ir.Constant(_FLOATS, [float(lane) for lane in range(LANES)]))
        same = builder.fcmp_ordered("==", args[0], _same(builder, args[2], _FLOATS))
        found = builder.select(same, places, ir.Constant(_FLOATS, [float(NOWHERE32)] * LANES))
        return _fold(builder, found, _smaller)

    return types.float32(_single8, _single8, types.float32), codegen


# Numba compares the parameters of an overload with those of its body, hence no annotations here.


@overload(change8)
def _change8_compiled(Ki, Kj, step, k):
    return lambda Ki, Kj, step, k: _change8(Ki, Kj, step, k)


@overload(profit8)
def _profit8_compiled(fall, Ki, diag, fi, di, k):
    return lambda fall, Ki, diag, fi, di, k: _profit8(fall, Ki, diag, fi, di, k)


@overload(singles8)
def _singles8_compiled(x):
    return lambda x: _singles8(x)


@overload(larger8)
def _larger8_compiled(u, v):
    return lambda u, v: _larger8(u, v)


@overload(above8)
def _above8_compiled(v, best, at, k):
    return lambda v, best, at, k: _above8(v, best, at, k)


@overload(greatest8)
def _greatest8_compiled(v):
    return lambda v: _greatest8(v)


@overload(earliest8)
def _earliest8_compiled(v, at, value):
    return lambda v, at, value: _earliest8(v, at, value)
