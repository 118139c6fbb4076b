"""Parts of values that were put together before, without instructions that take them apart again.

An array is a value of several parts: Numba puts them together where a function begins, takes a part out for every item,
and all of them for every call. LLVM finds in the end that most of this comes to nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

__all__ = ["Builder", "drop_unused"]

_PARTS = (ir.instructions.InsertValue, ir.instructions.ExtractValue)
#: Instructions that do nothing but give a value.
_NAMES = "insertvalue extractvalue getelementptr load bitcast zext sext icmp fcmp select and or xor add sub mul"
_PURE = frozenset(_NAMES.split())


class Builder(ir.IRBuilder):  # type: ignore[misc]
    """LLVM's instructions, one after the other; none for a part that is known."""

    def extract_value(self, agg: Any, idx: int | Sequence[int], name: str = "") -> Any:
        """A part of a value."""
        path = tuple(idx) if isinstance(idx, (tuple, list)) else (idx,)
        while isinstance(agg, _PARTS):
            put = tuple(agg.indices)
            if isinstance(agg, ir.instructions.ExtractValue):
                agg, path = agg.aggregate, put + path
            elif path[: len(put)] == put:  # what was put in, or a part of it
                agg, path = agg.value, path[len(put) :]
                if not path:
                    return agg
            elif put[: len(path)] == path:  # a part of what is asked for was put in here
                break
            else:
                agg = agg.aggregate
        return super().extract_value(agg, path, name=name)


def drop_unused(function: Any) -> None:
    """Take out the instructions whose value nobody reads."""
    uses: Counter[int] = Counter()
    pure: list[Any] = []
    for block in function.blocks:
        for each in block.instructions:
            uses.update(map(id, _read_by(each)))
            if each.opname in _PURE:
                pure.append(each)
    unused = set()
    for each in reversed(pure):  # what reads one comes after it, but for loops that nothing leaves
        if not uses[id(each)]:
            unused.add(id(each))
            uses.subtract(map(id, each.operands))
    for block in function.blocks:
        block.instructions = [each for each in block.instructions if id(each) not in unused]


def _read_by(instruction: Any) -> Sequence[Any]:
    if isinstance(instruction, ir.instructions.PhiInstr):
        return [value for value, _ in instruction.incomings]
    return instruction.operands  # type: ignore[no-any-return]
