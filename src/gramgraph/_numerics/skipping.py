"""Steps of Numba's compiler that only few functions need, left out for the others.

Each of them walks through the whole function several times, whether it finds something to do or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core import event, ir, types
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.rewrites import rewrite_registry
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import (
    AnnotateTypes,
    NativeLowering,
    NopythonRewrites,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import GenericRewrites, InlineClosureLikes, IRProcessing, ReconstructSSA

from gramgraph._numerics.inferring import Inference
from gramgraph._numerics.renaming import Renaming
from gramgraph._numerics.shortcuts import Writing

__all__ = ["INSTEAD", "Steps"]


class Steps(PassManager):  # type: ignore[misc]
    """Numba's steps, one after the other.

    Numba itself looks after each of them where every variable lives and whether the function is still in order. That
    has to be known in the end, when the code is written, and for that it is found out anew.
    """

    def _runPass(self, index: int, step: Any, state: Any) -> None:
        step.analysis = self._analysis
        function = state.func_id
        told = {"name": step.name(), "qualname": function.func_qualname, "module": function.modname}
        with event.trigger_event("numba:run_pass", data=told):
            step.run_initialization(state)
            step.run_pass(state)
            step.run_finalizer(state)


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


@register_pass(mutates_CFG=True, analysis_only=False)
class _Loops(IRProcessing):  # type: ignore[misc]
    """Every loop is made to go back in one place."""

    _name = "ir_processing_of_loops"

    def run_pass(self, state: Any) -> bool:
        if state.func_ir.is_generator:
            return bool(super().run_pass(state))
        state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Rewrites(GenericRewrites):  # type: ignore[misc]
    """Simpler forms of some statements (a constant index, an error) that Numba knows."""

    _name = "rewrites_of_statements"

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        for each in rewrite_registry.rewrites["before-inference"]:
            rewrite, waiting = each(state), list(blocks)
            while waiting:
                at = waiting.pop()
                if rewrite.match(state.func_ir, blocks[at], state.typemap, state.calltypes):
                    blocks[at] = rewrite.apply()
                    waiting.append(at)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Joins(PreLowerStripPhis):  # type: ignore[misc]
    """Where several values of a variable meet, each is assigned at the end of the way it comes."""

    _name = "strip_phis_only"

    def run_pass(self, state: Any) -> bool:
        if state.func_ir.is_generator:
            return bool(super().run_pass(state))
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _NoTypes(AnnotateTypes):  # type: ignore[misc]
    """The source with the types of all variables beside it, which nobody reads."""

    _name = "annotate_nothing"

    def run_pass(self, state: Any) -> bool:
        state.type_annotation = ""
        return False


#: Step of Numba → the one that looks first whether there is something to do.
INSTEAD = {
    IRProcessing: _Loops,
    InlineClosureLikes: _Closures,
    GenericRewrites: _Rewrites,
    ReconstructSSA: Renaming,
    NopythonTypeInference: Inference,
    PreLowerStripPhis: _Joins,
    NopythonRewrites: _ArrayExpressions,
    AnnotateTypes: _NoTypes,
    NativeLowering: Writing,
}
