"""Eight points at a time for the loops of `smo`: minima, maxima and gains that the compiler leaves scalar by itself.

As in `vector8`: compiled, a value of eight doubles is a register; uncompiled it is a small array. Arrays may hold
single or double precision. Indices are uint64; nothing is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gramgraph._numerics.vector8 import LANES, _vector8

_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_TINY = 1e-12


def low8(least: Any, f: Any, up: Any, k: Any) -> Any:
    """min(least, f + up) at k, …, k + 7."""
    k = int(k)
    return np.minimum(least, f[k : k + LANES] + up[k : k + LANES])


def high8(most: Any, f: Any, lo: Any, k: Any) -> Any:
    """max(most, f − lo) at k, …, k + 7."""
    k = int(k)
    return np.maximum(most, f[k : k + LANES] - lo[k : k + LANES])


def move8(f: Any, Ki: Any, Kj: Any, step: Any, k: Any) -> None:
    """f += step · (Ki − Kj) at k, …, k + 7."""
    k = int(k)
    f[k : k + LANES] += step * (Ki[k : k + LANES].astype(np.float64) - Kj[k : k + LANES])


def gain8(best: Any, f: Any, lo: Any, Ki: Any, diag: Any, fi: Any, di: Any, k: Any) -> Any:
    """max(best, max(f − lo − fi, 0)² / max(di + diag − 2 Ki, tiny)), the quotient in single precision."""
    k = int(k)
    here = slice(k, k + LANES)
    t = np.maximum((f[here] - lo[here] - fi).astype(np.float32), np.float32(0))
    eta = np.float32(di) + diag[here] - np.float32(2) * Ki[here].astype(np.float32)
    return np.maximum(best, (t * t / np.maximum(eta, np.float32(_TINY))).astype(np.float64))


def least8(v: Any) -> Any:
    """The smallest of the eight."""
    return v.min()


def most8(v: Any) -> Any:
    """The largest of the eight."""
    return v.max()


# --- compiled -----------------------------------------------------------------------------------------------------


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> tuple[Any, Any]:
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
def _low8(typing_context: Any, least: Any, f: Any, up: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a = _read(context, builder, signature.args[1], args[1], args[3], _DOUBLES)
        b = _read(context, builder, signature.args[2], args[2], args[3], _DOUBLES)
        return _smaller(builder, args[0], builder.fadd(a, b))

    return _vector8(_vector8, f, up, types.uint64), codegen


@intrinsic
def _high8(typing_context: Any, most: Any, f: Any, lo: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a = _read(context, builder, signature.args[1], args[1], args[3], _DOUBLES)
        b = _read(context, builder, signature.args[2], args[2], args[3], _DOUBLES)
        return _larger(builder, args[0], builder.fsub(a, b))

    return _vector8(_vector8, f, lo, types.uint64), codegen


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
def _gain8(typing_context: Any, best: Any, f: Any, lo: Any, Ki: Any, diag: Any, fi: Any, di: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        k = args[7]
        a = _read(context, builder, signature.args[1], args[1], k, _DOUBLES)
        b = _read(context, builder, signature.args[2], args[2], k, _DOUBLES)
        t = builder.fsub(builder.fsub(a, b), _same(builder, args[5], _DOUBLES))
        t = builder.fptrunc(t, _FLOATS)
        t = _larger(builder, t, ir.Constant(_FLOATS, [0.0] * LANES))
        row = _read(context, builder, signature.args[3], args[3], k, _FLOATS)
        own = _read(context, builder, signature.args[4], args[4], k, _FLOATS)
        mine = _same(builder, builder.fptrunc(args[6], ir.FloatType()), _FLOATS)
        eta = builder.fsub(builder.fadd(mine, own), builder.fmul(ir.Constant(_FLOATS, [2.0] * LANES), row))
        # The constant must be a number of single precision to be written into the code.
        eta = _larger(builder, eta, ir.Constant(_FLOATS, [float(np.float32(_TINY))] * LANES))
        gain = builder.fdiv(builder.fmul(t, t), eta)
        return _larger(builder, args[0], builder.fpext(gain, _DOUBLES))

    return _vector8(_vector8, f, lo, Ki, diag, types.float64, types.float64, types.uint64), codegen


def _fold(builder: Any, v: Any, choose: Any) -> Any:
    found = builder.extract_element(v, ir.Constant(ir.IntType(32), 0))
    for lane in range(1, LANES):
        found = choose(builder, found, builder.extract_element(v, ir.Constant(ir.IntType(32), lane)))
    return found


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


# Numba compares the parameters of an overload with those of its body, hence no annotations here.


@overload(low8)
def _low8_compiled(least, f, up, k):
    return lambda least, f, up, k: _low8(least, f, up, k)


@overload(high8)
def _high8_compiled(most, f, lo, k):
    return lambda most, f, lo, k: _high8(most, f, lo, k)


@overload(move8)
def _move8_compiled(f, Ki, Kj, step, k):
    return lambda f, Ki, Kj, step, k: _move8(f, Ki, Kj, step, k)


@overload(gain8)
def _gain8_compiled(best, f, lo, Ki, diag, fi, di, k):
    return lambda best, f, lo, Ki, diag, fi, di, k: _gain8(best, f, lo, Ki, diag, fi, di, k)


@overload(least8)
def _least8_compiled(v):
    return lambda v: _least8(v)


@overload(most8)
def _most8_compiled(v):
    return lambda v: _most8(v)
