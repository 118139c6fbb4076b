"""Steps of Numba's compiler that only few functions need, left out for the others.

Each of them walks through the whole function several times, whether it finds something to do or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core import ir, types
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

from gramgraph._numerics.shortcuts import Writing

__all__ = ["INSTEAD"]


def _assignments(state: Any) -> Iterator[tuple[Any, Any]]:
    """(variable, expression) of every assignment of an expression."""
    for block in state.func_ir.blocks.values():
        for each in block.find_insts(ir.Assign):
            if isinstance(each.value, ir.Expr):
                yield each.target, each.value


@register_pass(mutates_CFG=True, analysis_only=False)
class _Closures(InlineClosureLikes):  # type: ignore[misc]
    """Functions and lists inside a function become part of it."""

    _name = "inline_closure_likes_if_any"

    def run_pass(self, state: Any) -> bool:
        if any(value.op in ("make_function", "build_list") for _, value in _assignments(state)):
            return bool(super().run_pass(state))
        return False


@register_pass(mutates_CFG=True, analysis_only=False)
class _ArrayExpressions(NopythonRewrites):  # type: ignore[misc]
    """Expressions of whole arrays become one loop."""

    _name = "nopython_rewrites_if_any"

    def run_pass(self, state: Any) -> bool:
        if any(_of_arrays(state, target, value) for target, value in _assignments(state)):
            return bool(super().run_pass(state))
        return False


def _of_arrays(state: Any, target: Any, value: Any) -> bool:
    if value.op == "build_list":
        return True
    if not isinstance(state.typemap[target.name], types.Array):
        return False
    called = state.typemap[value.func.name] if value.op == "call" else None
    return value.op in ("unary", "binop", "inplace_binop") or isinstance(getattr(called, "typing_key", None), np.ufunc)


#: Step of Numba → the one that looks first whether there is something to do.
INSTEAD = {InlineClosureLikes: _Closures, NopythonRewrites: _ArrayExpressions, NativeLowering: Writing}
