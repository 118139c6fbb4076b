"""Short ways through Numba's compiler for what our loops are made of: ranges, items of arrays, operations on numbers.

Numba looks at every operation through all templates for it, again in every round of the inference of types and once
more when it writes the code; and for a range or an item of an array it writes many instructions that LLVM takes out
again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core import ir as steps
from numba.core.compiler_machinery import register_pass
from numba.core.errors import LoweringError, new_error_context  # type: ignore[attr-defined]
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.types.containers import BaseTuple, Pair
from numba.np.arrayobj import load_item, store_item

from gramgraph._numerics.folding import Builder, drop_unused
from gramgraph._numerics.standing_values import standing_names

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

    def pointer(self, context: Any, builder: Any, array: Any, index: Any, counts: Sequence[bool]) -> Any:
        """The code that finds it; a negative index counts from the end. Those that `counts` says are never negative."""
        at = context.data_model_manager[self._array].get_field_position
        indices = [builder.extract_value(index, k) for k in range(len(self._kinds))] if self._whole else [index]
        sizes = [builder.extract_value(array, [at("shape"), k]) for k in range(self._array.ndim)]
        steps = [
            _from_the_start(context, builder, kind, each, None if known else size)
            for kind, each, size, known in zip(self._kinds, indices, sizes, counts, strict=False)
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
    if not kind.signed or size is None:
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


# -------------------------------------------------------------------------------------------- what is known of values


class _Definitions:
    """Where variables get their values, as far as each has one place for it."""

    def __init__(self, func_ir: Any) -> None:
        self._all, self._counts = func_ir._definitions, dict[str, bool]()

    def of(self, value: Any, *operations: str) -> Any:
        """The expression that a variable stands for, if it is one of these operations; else None."""
        while isinstance(value, steps.Var):
            places = self._all.get(value.name, ())
            value = places[0] if len(places) == 1 else None
        return value if isinstance(value, steps.Expr) and value.op in operations else None

    def constant(self, value: Any) -> Any:
        """The constant that a variable stands for, or None."""
        while isinstance(value, steps.Var):
            places = self._all.get(value.name, ())
            value = places[0] if len(places) == 1 else None
        return value.value if isinstance(value, (steps.Const, steps.Global, steps.FreeVar)) else None

    def bounds(self, value: Any) -> list[Any] | None:
        """The arguments of range(stop) or range(start, stop) that a variable stands for; else None."""
        call = self.of(value, "call")
        if call is None or call.kws or call.vararg is not None or self.constant(call.func) is not range:
            return None
        return list(call.args) if len(call.args) < 3 else None

    def counts(self, value: Any) -> bool:
        """Whether a number is surely not negative: a constant, the number of a round, or a sum or product of such."""
        name = value.name
        if name not in self._counts:
            self._counts[name] = False  # until more is known
            self._counts[name] = self._never_negative(value)
        return self._counts[name]

    def _never_negative(self, value: Any) -> bool:
        if type(found := self.constant(value)) is int:
            return found >= 0
        if (found := self.of(value, "binop")) is not None:
            return found.fn in (operator.add, operator.mul) and self.counts(found.lhs) and self.counts(found.rhs)
        for operation in ("pair_first", "iternext", "getiter"):
            if (found := self.of(value, operation)) is None:
                return False
            value = found.value
        bounds = self.bounds(value)
        return bounds is not None and (len(bounds) == 1 or self.counts(bounds[0]))


# ------------------------------------------------------------------------------------------------- writing of the code


class _Lower(Lower):  # type: ignore[misc]
    """Numba's writing of code, with ranges and items of arrays in few instructions and none for the end of a number."""

    def pre_lower(self) -> None:
        """Before everything else."""
        super().pre_lower()
        self._definitions = _Definitions(self.func_ir)
        notified = getattr(self, "_loc_notify_registry", ())  # older Numbas tell nobody of lines
        self._shown = bool(self.flags.debuginfo or config.DEBUG_JIT or notified)

    def setup_function(self, fndesc: Any) -> None:
        """The beginning of a function."""
        super().setup_function(fndesc)
        if not self._by_numba:
            self.builder = Builder(self.entry_block)

    def post_lower(self) -> None:
        """After everything else."""
        super().post_lower()
        if not self._by_numba:
            drop_unused(self.function)

    def _find_singly_assigned_variable(self) -> None:
        """The variables that need no place in memory, and those that are arguments: they belong to the caller."""
        self._borrowed = {
            each.target.name
            for block in self.blocks.values()
            for each in block.find_insts(steps.Assign)
            if isinstance(each.value, steps.Arg)
            and self.typeof(f"arg.{each.value.name}") == self.typeof(each.target.name)
        }
        self._by_numba = self.func_ir.func_id.is_generator or any(map(_is_vector, self.fndesc.typemap.values()))
        found = None if self._by_numba else standing_names(self.blocks, self._is_owner)
        if found is None:
            self._by_numba = True
            self._borrowed.clear()
            super()._find_singly_assigned_variable()
        else:
            self._borrowed &= found
            self._singly_assigned_vars, self._blk_local_varmap = found, dict[str, Any]()

    def _is_owner(self, name: str) -> bool:
        """Whether a variable holds a reference that it gives up when it is deleted."""
        return name not in self._borrowed and counted(self.context, self.typeof(name))

    def lower_block(self, block: Any) -> None:
        """A block, with one message about what went wrong in it where Numba prepares one for every statement."""
        self.pre_block(block)
        kind = partial(LoweringError, loc=block.loc)
        with new_error_context("lowering a block at {loc}", loc=block.loc, errcls_=kind):
            for each in block.body:
                self.loc = each.loc
                self.lower_inst(each)
        self.post_block(block)

    def lower_inst(self, inst: Any) -> None:
        """A statement. Numba writes each as a text first, in case somebody wants to see it."""
        if not self._shown and isinstance(inst, steps.Assign):
            name, argument = inst.target.name, inst.value
            index = argument.index + 1 if isinstance(argument, steps.Arg) else None
            self.storevar(self.lower_assign(self.typeof(name), inst), name, argidx=index)
        elif not self._shown and isinstance(inst, steps.Del):
            self.delvar(inst.value)
        else:
            super().lower_inst(inst)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """The value of an assignment."""
        if inst.target.name in self._borrowed:
            return self.fnargs[inst.value.index]
        return super().lower_assign(ty, inst)

    def lower_call(self, resty: Any, expr: Any) -> Any:
        """A call; that of range(stop) or range(start, stop) puts three numbers together."""
        if resty != types.range_state64_type or (bounds := self._definitions.bounds(expr)) is None:
            return super().lower_call(resty, expr)
        given = [self._cast_var(each, types.int64) for each in bounds]
        zero, one = (self.context.get_constant(types.int64, number) for number in (0, 1))
        return self._together(resty, [zero, *given, one] if len(given) == 1 else [*given, one])

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """An expression."""
        kind = self.typeof(expr.value.name) if expr.op in ("getiter", "iternext", "pair_first", "pair_second") else None
        if expr.op == "getiter" and kind == types.range_state64_type and self._definitions.bounds(expr.value):
            return self._first_round(resty, self.loadvar(expr.value.name))
        if expr.op == "iternext" and kind == types.range_iter64_type:
            return self._next_round(resty, self.loadvar(expr.value.name))
        if isinstance(kind, Pair):
            found = self.builder.extract_value(self.loadvar(expr.value.name), 0 if expr.op == "pair_first" else 1)
            self.incref(resty, found)
            return found
        return super().lower_expr(resty, expr)

    def _first_round(self, kind: Any, bounds: Any) -> Any:
        """What a loop over a range with steps of one keeps: its number, and how many rounds there are to come."""
        start, stop = (self.builder.extract_value(bounds, at) for at in (0, 1))
        with self.builder.goto_entry_block():
            number, rounds = (self.builder.alloca(start.type) for _ in range(2))
        self.builder.store(start, number)
        distance = self.builder.sub(stop, start)
        ahead = self.builder.icmp_signed(">", distance, distance.type(0))
        self.builder.store(self.builder.select(ahead, distance, distance.type(0)), rounds)  # known not to be negative
        return self._together(kind, [number, stop, start.type(1), rounds])

    def _next_round(self, kind: Any, kept: Any) -> Any:
        """(number of this round, whether there is one)."""
        builder = self.builder
        number_at, step, rounds_at = (builder.extract_value(kept, at) for at in (0, 2, 3))
        number, rounds = builder.load(number_at), builder.load(rounds_at)
        more = builder.icmp_signed(">", rounds, rounds.type(0))
        with builder.if_then(more):  # LLVM finds the loop in this form
            builder.store(builder.sub(rounds, rounds.type(1), flags=["nsw"]), rounds_at)
            builder.store(builder.add(number, step), number_at)
        return self._together(kind, [number, more])

    def _together(self, kind: Any, parts: Sequence[Any]) -> Any:
        made = ir.Constant(self.context.get_value_type(kind), ir.Undefined)
        for at, part in enumerate(parts):
            made = self.builder.insert_value(made, part, at)
        return made

    def _counting(self, index: Any) -> list[bool]:
        """Which numbers of an index are surely not negative."""
        several = self._definitions.of(index, "build_tuple")
        kind = self.typeof(index.name)
        if isinstance(kind, BaseTuple) and several is None:
            return [False] * len(kind)
        return [self._definitions.counts(each) for each in (several.items if several is not None else [index])]

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """value[index]."""
        kind, context, builder = signature.args[0], self.context, self.builder
        place = _Place(kind, signature.args[1])
        if context.enable_boundscheck or not place.is_plain:
            return super().lower_getitem(resty, expr, value, index, signature)
        array, at = self._cast_var(value, kind), self._cast_var(index, signature.args[1])
        pointer = place.pointer(context, builder, array, at, self._counting(index))
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
        at = self._cast_var(index_var, index_kind)
        pointer = place.pointer(self.context, self.builder, array, at, self._counting(index_var))
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
        """The variable is not used any more; of a number, or of what belongs to the caller, nothing is to be done."""
        if self._is_owner(name):
            super().delvar(name)
        elif self._by_numba and name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)
            self._alloca_var(name, self.typeof(name))


def _is_vector(kind: Any) -> bool:
    """Whether it is one of `vector8`: such loops fill the registers, and LLVM lays them out worse without detours."""
    return type(kind).__name__ in ("_Vector8", "_Single8")


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
