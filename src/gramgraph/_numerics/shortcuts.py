"""Short ways through Numba's compiler for what our loops are made of: items of arrays, and operations on numbers.

Numba looks at every operation through all templates for it, again in every round of the inference of types and once
more when it writes the code; and for an item of an array it writes many instructions that LLVM takes out again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.types.containers import BaseTuple
from numba.np.arrayobj import load_item, store_item

__all__ = ["Writing", "counted", "remember"]

# ------------------------------------------------------------------------------------------------- types of operations

_NAMES = """add sub mul truediv floordiv mod lshift rshift and_ or_ xor lt le gt ge eq ne neg pos invert not_ getitem
setitem iadd isub imul itruediv ifloordiv imod ilshift irshift iand ior ixor"""
_OPERATIONS = [getattr(operator, name) for name in _NAMES.split()]


class _Remembered:
    """The signature of an operation for kinds of numbers and arrays, found once.

    Only what is the same whatever the options of a function are: the code of the operation itself, not of a function
    that Numba compiles for it.
    """

    def __init__(self, operation: Any) -> None:
        self._operation, self._find = operation, operation.get_call_type
        self._known: dict[tuple[Any, ...], Any] = {}

    def __call__(self, context: Any, args: Sequence[Any], kws: dict[str, Any]) -> Any:
        key = tuple(args)
        if key in self._known:
            return self._known[key]
        found = self._find(context, args, kws)
        if not kws and found is not None and all(map(_plain, key)):
            if self._operation._impl_keys.get(found.args) is self._operation.typing_key:
                self._known[key] = found
        return found


def _plain(kind: Any) -> bool:
    if isinstance(kind, BaseTuple):
        return all(map(_plain, kind.types))
    return isinstance(kind, (types.Number, types.Boolean, types.Array))


def remember(typing_context: Any) -> None:
    """Let the types of operations be looked up once. (New templates come with a new type, which is asked anew.)"""
    for each in _OPERATIONS:
        kind = typing_context.resolve_value_type(each)
        if hasattr(kind, "_impl_keys") and "get_call_type" not in vars(kind):
            vars(kind)["get_call_type"] = _Remembered(kind)


# ---------------------------------------------------------------------------------------------------- items of arrays


class _Place:
    """What an index of integers denotes in an array of numbers: an item, or a part with fewer axes."""

    def __init__(self, array: Any, index: Any) -> None:
        self._array = array
        self._whole = isinstance(index, BaseTuple)
        self._kinds = tuple(index.types) if self._whole else (index,)

    @property
    def is_plain(self) -> bool:
        """Whether it is one, of an array that lies in rows or in steps."""
        return (
            isinstance(self._array, types.Array)
            and self._array.layout in "CA"
            and isinstance(self._array.dtype, (types.Number, types.Boolean))
            and 0 < len(self._kinds) <= self._array.ndim
            and all(type(kind) is types.Integer for kind in self._kinds)
        )

    @property
    def is_item(self) -> bool:
        """Whether it is an item."""
        return self.is_plain and len(self._kinds) == self._array.ndim

    def pointer(self, context: Any, builder: Any, array: Any, index: Any) -> Any:
        """The code that finds it; a negative index counts from the end."""
        at = context.data_model_manager[self._array].get_field_position
        indices = [builder.extract_value(index, k) for k in range(len(self._kinds))] if self._whole else [index]
        sizes = [builder.extract_value(array, [at("shape"), k]) for k in range(self._array.ndim)]
        steps = [
            _from_the_start(context, builder, kind, each, size)
            for kind, each, size in zip(self._kinds, indices, sizes, strict=False)
        ]
        start = builder.extract_value(array, at("data"))
        if self._array.layout == "C":
            return builder.gep(start, [_in_rows(builder, steps, sizes)])
        widths = (builder.extract_value(array, [at("strides"), k]) for k in range(len(indices)))
        offsets = [builder.mul(width, step) for width, step in zip(widths, steps, strict=True)]
        return cgutils.pointer_add(builder, start, _sum(builder, offsets))

    def part(self, context: Any, builder: Any, result: Any, array: Any, pointer: Any) -> Any:
        """The array of the axes that no index was given for."""
        at = context.data_model_manager[self._array].get_field_position
        put = context.data_model_manager[result].get_field_position
        made = ir.Constant(context.get_value_type(result), ir.Undefined)
        for name in ("meminfo", "parent", "itemsize"):
            made = builder.insert_value(made, builder.extract_value(array, at(name)), put(name))
        made = builder.insert_value(made, pointer, put("data"))
        items = context.get_constant(types.intp, 1)
        for to, axis in enumerate(range(len(self._kinds), self._array.ndim)):
            size = builder.extract_value(array, [at("shape"), axis])
            items = builder.mul(items, size, flags=["nsw"])
            made = builder.insert_value(made, size, [put("shape"), to])
            made = builder.insert_value(made, builder.extract_value(array, [at("strides"), axis]), [put("strides"), to])
        return builder.insert_value(made, items, put("nitems"))


def _from_the_start(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    index = context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)
    if not kind.signed:
        return index
    return builder.select(builder.icmp_signed("<", index, size.type(0)), builder.add(index, size), index)


def _in_rows(builder: Any, steps: list[Any], sizes: list[Any]) -> Any:
    """How many items stand before those at `steps` of the first axes."""
    terms: list[Any] = []
    items = None  # those of one step
    for axis in reversed(range(len(sizes))):
        if axis < len(steps):
            terms.append(steps[axis] if items is None else builder.mul(steps[axis], items))
        if axis > 0:
            items = sizes[axis] if items is None else builder.mul(items, sizes[axis])
    return _sum(builder, terms[::-1])


def _sum(builder: Any, terms: list[Any]) -> Any:
    total = terms[0]
    for each in terms[1:]:
        total = builder.add(total, each)
    return total


# ------------------------------------------------------------------------------------------------- writing of the code


class _Lower(Lower):  # type: ignore[misc]
    """Numba's writing of code, with items of arrays in few instructions and none for the end of a number."""

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """value[index]."""
        kind, context, builder = signature.args[0], self.context, self.builder
        place = _Place(kind, signature.args[1])
        if context.enable_boundscheck or not place.is_plain:
            return super().lower_getitem(resty, expr, value, index, signature)
        array, at = self._cast_var(value, kind), self._cast_var(index, signature.args[1])
        pointer = place.pointer(context, builder, array, at)
        if place.is_item:
            found = load_item(context, builder, kind, pointer)
        else:
            found = place.part(context, builder, signature.return_type, array, pointer)
            self.incref(signature.return_type, found)
        return context.cast(builder, found, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """target[index] = value."""
        kind, index_kind, value_kind = signature.args
        place = _Place(kind, index_kind)
        scalar = isinstance(value_kind, (types.Number, types.Boolean))
        if self.context.enable_boundscheck or not scalar or not place.is_item:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        array = self._cast_var(target_var, kind)
        pointer = place.pointer(self.context, self.builder, array, self._cast_var(index_var, index_kind))
        value = self.context.cast(self.builder, self._cast_var(value_var, value_kind), value_kind, kind.dtype)
        return store_item(self.context, self.builder, kind, value, pointer)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """name = value; what was there before is a number, or its references are counted down."""
        kind = self.typeof(name)
        if argidx is not None or name in self._singly_assigned_vars or counted(self.context, kind):
            super().storevar(value, name, argidx)
        else:
            self._alloca_var(name, kind)
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """The variable is not used any more; of a number nothing needs to be done."""
        kind = self.typeof(name)
        if counted(self.context, kind):
            super().delvar(name)
        elif name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)
            self._alloca_var(name, kind)


_COUNTED: dict[Any, bool] = {}


def counted(context: Any, kind: Any) -> bool:
    """Whether references to values of this type are counted."""
    if kind not in _COUNTED:
        _COUNTED[kind] = bool(context.data_model_manager[kind].contains_nrt_meminfo())
    return _COUNTED[kind]


@register_pass(mutates_CFG=True, analysis_only=False)
class Writing(NativeLowering):  # type: ignore[misc]
    """Numba's step that writes the code of a function."""

    _name = "native_lowering_with_shortcuts"

    @property
    def lowering_class(self) -> Callable[..., Any]:
        """What writes it."""
        return _Lower
