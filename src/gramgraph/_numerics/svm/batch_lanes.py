"""Eight points at a time for the loops of `svm_whole`: as `smo_lanes`, with values of eight singles beside doubles.

A single-precision value searches the best gain: half the register of the doubles, and indices up to 2²⁴ are exact.
Uncompiled, values are small arrays. Indices are uint64; nothing is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

from gramgraph._numerics.svm.smo_lanes import _DOUBLES, _FLOATS, _fold, _larger, _read, _same, _smaller
from gramgraph._numerics.vector8 import LANES, _vector8

_TINY = np.float32(1e-12)
NOWHERE32 = np.float32(1e30)


class _Single8(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Single8")


@register_model(_Single8)
class _Single8Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _FLOATS)


_single8 = _Single8()


def change8(Ki: Any, Kj: Any, step: Any, k: Any) -> Any:
    """step · (Ki − Kj) at k, …, k + 7; the difference in the precision of the rows."""
    k = int(k)
    return step * (Ki[k : k + LANES] - Kj[k : k + LANES]).astype(np.float64)


def profit8(fall: Any, Ki: Any, diag: Any, fi: Any, di: Any, k: Any) -> Any:
    """max(fall − fi, 0)² / max(di + diag − 2 Ki, tiny) in single precision."""
    here = slice(int(k), int(k) + LANES)
    t = np.maximum((fall[here] - fi).astype(np.float32), np.float32(0))
    eta = np.float32(di) + diag[here] - np.float32(2) * Ki[here].astype(np.float32)
    return t * t / np.maximum(eta, _TINY)


def singles8(x: Any) -> Any:
    """The number x eight times, in single precision."""
    return np.full(LANES, x, np.float32)


def larger8(u: Any, v: Any) -> Any:
    """The larger of u and v, lane by lane."""
    return np.maximum(u, v)


def above8(v: Any, best: Any, at: Any, k: Any) -> Any:
    """k where v > best, else at."""
    return np.where(v > best, np.float32(k), at)


def greatest8(v: Any) -> Any:
    """The largest of the eight."""
    return v.max()


def earliest8(v: Any, at: Any, value: Any) -> Any:
    """The smallest at + lane among lanes with v = value; NOWHERE32 when there is none."""
    return np.where(v == value, at + np.arange(LANES, dtype=np.float32), NOWHERE32).min()


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
