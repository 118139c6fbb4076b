"""Variables that need no place in memory: each is given a value once, on the way to all that use it.

Numba keeps every variable that several blocks name on the stack: each use loads it, whole arrays with their shapes and
steps, and LLVM takes all of that out again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.unsafe import eh

__all__ = ["standing_names"]


def standing_names(blocks: dict[int, Any], is_owner: Callable[[str], bool]) -> set[str] | None:
    """The names that are given a value once, in a block that comes before all others that name them.

    `is_owner` tells of which ones a reference is given up where Numba deletes them. It may delete one twice, as it
    empties its place the first time: such a variable needs the place. None where a block can be left in its middle, by
    an error that is caught.
    """
    first: dict[str, int] = {}  # name → the block that gives it its value
    others: dict[str, set[int]] = defaultdict(set)  # name → other blocks that name it
    ends: dict[str, set[int]] = defaultdict(set)  # name of an owner → blocks that delete it
    unfit: set[str] = set()

    def note(name: str, at: int) -> None:
        if name not in first:
            unfit.add(name)
        elif first[name] != at:
            others[name].add(at)

    for at in sorted(blocks):  # the order in which code is written
        for statement in blocks[at].body:
            if isinstance(statement, ir.Del):
                if is_owner(statement.value):
                    note(statement.value, at)
                    ends[statement.value].add(at)
                continue
            value = statement.value if isinstance(statement, ir.Assign) else statement
            if isinstance(value, ir.Global) and value.value is eh.exception_check:
                return None
            for name in _named_by(value):
                note(name, at)
            if isinstance(statement, ir.Assign):
                name = statement.target.name
                if name in first:
                    unfit.add(name)
                first[name] = at
    graph = compute_cfg_from_blocks(blocks)
    before = graph.dominators()
    for name in others.keys() - unfit:
        if not all(first[name] in before.get(at, ()) for at in others[name]) or _ends_twice(
            graph, first[name], ends.get(name, set())
        ):
            unfit.add(name)
    return first.keys() - unfit


def _named_by(value: Any) -> list[str]:
    if isinstance(value, ir.Var):
        return [value.name]
    return [each.name for each in value.list_vars()] if isinstance(value, ir.Inst) else []


def _ends_twice(graph: Any, first: int, ends: set[int]) -> bool:
    """Whether a way leads from a block of `ends` to another one, or back to it, without a new value on the way."""
    waiting = [after for at in ends for after, _ in graph.successors(at)]
    seen = {first}
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        if at in ends:
            return True
        seen.add(at)
        waiting += [after for after, _ in graph.successors(at)]
    return False
