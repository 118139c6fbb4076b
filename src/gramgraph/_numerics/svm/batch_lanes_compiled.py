"""What `batch_lanes` becomes when it is compiled; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import models, register_model

from gramgraph._numerics.becoming import becomes
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


@becomes(change8, _vector8, None, None, types.float64, types.uint64)
def _change8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    stored = _FLOATS if signature.args[0].dtype == types.float32 else _DOUBLES
    u = _read(context, builder, signature.args[0], args[0], args[3], stored)
    v = _read(context, builder, signature.args[1], args[1], args[3], stored)
    moved = builder.fsub(u, v)
    moved = builder.fpext(moved, _DOUBLES) if stored is _FLOATS else moved
    return builder.fmul(_same(builder, args[2], _DOUBLES), moved)


@becomes(profit8, _single8, None, None, None, types.float64, types.float64, types.uint64)
def _profit8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
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


@becomes(singles8, _single8, types.float32)
def _singles8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _same(builder, args[0], _FLOATS)


@becomes(larger8, _single8, _single8, _single8)
def _larger8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _larger(builder, args[0], args[1])


@becomes(above8, _single8, _single8, _single8, _single8, types.uint64)
def _above8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    here = _same(builder, builder.uitofp(args[3], ir.FloatType()), _FLOATS)
    return builder.select(builder.fcmp_ordered(">", args[0], args[1]), here, args[2])


@becomes(greatest8, types.float32, _single8)
def _greatest8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _fold(builder, args[0], _larger)


@becomes(earliest8, types.float32, _single8, _single8, types.float32)
def _earliest8(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    places = builder.fadd(args[1], ir.Constant(_FLOATS, [float(lane) for lane in range(LANES)]))
    same = builder.fcmp_ordered("==", args[0], _same(builder, args[2], _FLOATS))
    found = builder.select(same, places, ir.Constant(_FLOATS, [float(NOWHERE32)] * LANES))
    return _fold(builder, found, _smaller)
