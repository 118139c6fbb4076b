"""Short ways through the compiler lead to the same: items and parts of arrays, types of operations, references."""

from __future__ import annotations

import operator
import sys
from functools import partial

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from gramgraph._numerics import compiling, machine_code
from gramgraph._numerics.compiling import njit

pytestmark = pytest.mark.skipif(
    compiling.disabled() or machine_code.standing is None, reason="nothing is compiled, or by Numba alone"
)


@njit
def items(a, b, c, k, u):
    """Items at indices of both signs, and parts of arrays that are read and written."""
    total = 0.0
    for i in range(b.shape[0]):
        row = b[i]
        for j in range(b.shape[1]):
            total += row[j] * c[i, j, -1] + a[-1] + a[u]
            b[i, -j - 1] += 1
    plane, cell = c[-1], c[1, k]
    cell[1], b[np.uint8(1), 0], a[k] = 7, total > 0, b[0, 1]
    return total, plane[1, 1], plane.size, plane.shape, cell.strides, b[-1, -1], a


@njit
def new_row(n):
    """A part of an array that nothing else holds, after many that are gone."""
    found = np.zeros((2, 3))
    for i in range(n):
        other = np.full((4, 3), float(i))
        found = other if i % 2 else found
        row = found[-1]
        row[0] += 1
        kept = row
    return kept


@njit
def exchanged(x, n, late):
    """Arrays that change places, are needed on one way only, are put together, and given back."""
    old, new, first = np.zeros(3), np.ones(3), np.full(3, 5.0)
    extra, total = np.full(3, 2.0), first[0]
    aside = np.full(3, 4.0)
    if late:
        total += aside[2]
    for i in range(n):
        made = np.full(3, float(i))
        if i % 2:
            total += made[1] + extra[0]
            old, new = new, old
        elif late:
            x = made
        pair = made, new
        a, b, c, d = pair[0], pair[1], x, old
        b[0] += a[0] + c[1] + d[2]
    if late:
        total += extra[1]
        return x, total
    return new, total


@njit(boundscheck=True)
def beyond(x, k):
    """An item that may not be there."""
    x[k] = 1.0
    return x[k]


LAYOUTS = {
    "rows": lambda x: x,
    "steps": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backward": lambda x: x[::-1],
    "columns": np.asfortranarray,
}


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [("rows", np.float64), ("rows", np.int32), ("steps", np.int32), ("backward", np.int32), ("columns", np.float32)],
)
def test_items_and_parts_of_arrays_are_those_of_numpy(layout, dtype):
    def arguments():
        rng = np.random.default_rng(0)
        arrays = (rng.integers(0, 9, size=shape).astype(dtype) for shape in ((5,), (3, 4), (3, 4, 2)))
        return [*map(LAYOUTS[layout], arrays), -2, np.uint32(3)]

    ours, theirs = arguments(), arguments()
    with compiling.tier("compiled"):
        found = items(*ours)
    with compiling.tier("plain"):
        expected = items(*theirs)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1:4] == expected[1:4] and found[5] == expected[5]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_part_keeps_its_array_and_all_others_are_given_back(request):
    _nrt_python.memsys_enable_stats()
    request.addfinalizer(_nrt_python.memsys_disable_stats)
    with compiling.tier("compiled"):
        new_row(3)
        before = rtsys.get_allocation_stats()
        for n in (1, 4, 7):
            with compiling.tier("plain"):
                expected = new_row(n)
            np.testing.assert_array_equal(new_row(n), expected)
        after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free > 10


@pytest.mark.parametrize("late", [True, False])
def test_arrays_are_given_back_once_whatever_way_is_taken(late, request):
    _nrt_python.memsys_enable_stats()
    request.addfinalizer(_nrt_python.memsys_disable_stats)
    x = np.arange(3.0)
    holders = sys.getrefcount(x)
    with compiling.tier("compiled"):
        exchanged(x, 3, late)
        before = rtsys.get_allocation_stats()
        for n in (0, 1, 4, 7):
            with compiling.tier("plain"):
                expected = exchanged(x, n, late)
            found = exchanged(x, n, late)
            np.testing.assert_array_equal(found[0], expected[0])
            assert found[1] == expected[1] and np.shares_memory(found[0], x) == (late and n == 0)
            del found, expected
        after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free > 10
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
    assert sys.getrefcount(x) == holders


def test_indices_are_checked_where_that_is_asked_for():
    with compiling.tier("compiled"):
        assert beyond(np.zeros(3), -1) == 1.0
        for k in (3, -4):
            with pytest.raises(IndexError):
                beyond(np.zeros(3), k)


KINDS = (np.int64(5), np.int32(-3), np.uint8(200), np.float32(0.5), 2.0, True, np.arange(1.0, 3.0))


@pytest.mark.parametrize("name", ["add", "truediv", "floordiv", "lt", "and_", "isub", "iadd"])
def test_types_of_operations_are_those_that_numba_finds(name):
    operation = getattr(operator, name)
    with compiling.tier("compiled"):
        new_row(1)  # now they are remembered
    context = numba.core.registry.cpu_target.typing_context
    kind = context.resolve_value_type(operation)
    for one in KINDS:
        for other in KINDS:
            args = (numba.typeof(one), numba.typeof(other))
            remembered = [_found(kind.get_call_type, context, args) for _ in range(2)]
            assert remembered == [_found(partial(type(kind).get_call_type, kind), context, args)] * 2


def _found(find, context, args):
    try:
        return find(context, args, {})
    except numba.core.errors.TypingError:
        return None


# ------------------------------------------------------------------------------------------------- parts of values


def test_parts_that_were_put_together_need_no_instructions():
    from llvmlite import ir

    from gramgraph._numerics import folding

    number, pair = ir.IntType(64), ir.ArrayType(ir.IntType(64), 2)
    whole = ir.LiteralStructType([number, pair])
    function = ir.Function(ir.Module(), ir.FunctionType(number, [number, number, whole]), "f")
    builder = folding.Builder(function.append_basic_block())
    one, two, given = function.args
    made = builder.insert_value(ir.Constant(whole, ir.Undefined), one, 0)
    made = builder.insert_value(made, two, [1, 1])
    assert builder.extract_value(made, 0) is one and builder.extract_value(made, (1, 1)) is two
    assert builder.extract_value(builder.extract_value(made, 1), 1) is two  # the pair was never put in as one
    made = builder.insert_value(given, builder.insert_value(ir.Constant(pair, ir.Undefined), two, 0), 1)
    assert builder.extract_value(made, [1, 0]) is two
    kept = builder.extract_value(builder.extract_value(given, 1), 0)
    builder.add(one, two)
    builder.ret(kept)
    folding.drop_unused(function)
    assert [each.opname for block in function.blocks for each in block.instructions] == ["extractvalue", "ret"]
