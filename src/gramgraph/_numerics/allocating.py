"""New arrays in compiled code, without a function of Numba's own for each.

Numba compiles np.empty and np.zeros as functions: anew for every kind of array and set of options, a tenth of all
compiling. Here their few instructions stand in the caller. Functions of this folder see a module in the place of `np`
that differs in these names only. Imported when something is compiled.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.extending import intrinsic
from numba.np.arrayobj import _empty_nd_impl, _parse_shape, store_item

__all__ = ["NUMPY"]


def _kind(shape: Any, dtype: Any) -> Any:
    """The type of an array; numbers are float64 where nothing else is said."""
    dtype = types.float64 if dtype is None else parse_dtype(dtype)
    ndim = parse_shape(shape)
    return None if dtype is None or ndim is None else types.Array(dtype, ndim, "C")


def _new(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _empty_nd_impl(
        context, builder, signature.return_type, _parse_shape(context, builder, signature.args[0], values[0])
    )


def _given(shape: Any, dtype: Any, made: Any) -> Any:
    return made(shape, types.none if dtype is None else dtype)


@intrinsic
def empty(typing_context, shape, dtype=None):  # type: ignore[no-untyped-def]
    """np.empty."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _new(context, builder, signature, values)._getvalue()

    made = _kind(shape, dtype)
    return None if made is None else (_given(shape, dtype, made), code)


@intrinsic
def zeros(typing_context, shape, dtype=None):  # type: ignore[no-untyped-def]
    """np.zeros."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = _new(context, builder, signature, values)
        cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
        return array._getvalue()

    made = _kind(shape, dtype)
    return None if made is None else (_given(shape, dtype, made), code)


def _fill(context: Any, builder: Any, array: Any, kind: Any, value: Any) -> Any:
    with cgutils.for_range(builder, array.nitems) as loop:
        store_item(context, builder, kind, value, cgutils.gep(builder, array.data, loop.index))
    return array._getvalue()


@intrinsic
def ones(typing_context, shape, dtype=None):  # type: ignore[no-untyped-def]
    """np.ones."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = signature.return_type
        one = context.cast(builder, context.get_constant(types.intp, 1), types.intp, kind.dtype)
        return _fill(context, builder, _new(context, builder, signature, values), kind, one)

    made = _kind(shape, dtype)
    return None if made is None else (_given(shape, dtype, made), code)


@intrinsic
def full(typing_context, shape, fill_value, dtype=None):  # type: ignore[no-untyped-def]
    """np.full."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = signature.return_type
        value = context.cast(builder, values[1], signature.args[1], kind.dtype)
        return _fill(context, builder, _new(context, builder, signature, values), kind, value)

    dtype_of = types.unliteral(fill_value) if dtype is None else parse_dtype(dtype)
    ndim = parse_shape(shape)
    if dtype_of is None or ndim is None:
        return None
    made = types.Array(dtype_of, ndim, "C")
    return made(shape, fill_value, types.none if dtype is None else dtype), code


def _in_place_of_numpy() -> ModuleType:
    made = ModuleType("numpy")
    vars(made).update(vars(np), empty=empty, zeros=zeros, ones=ones, full=full)
    return made


#: What compiled functions see as `np`.
NUMPY = _in_place_of_numpy()
