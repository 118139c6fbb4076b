"""Numba's compiler as our functions go through it: a large function is compiled once, and called where it is.

Numba itself copies the code of a function into every one that calls it, however large, and optimizes and emits it there
again. That is worth its price for small ones, which become part of their callers. Code of a large one stays a call; so
here it is left out, and the caller holds its symbol only. Imported when something is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.environment import lookup_environment
from numba.core.runtime.context import NRTContext

from gramgraph._numerics.shortcuts import counted, remember
from gramgraph._numerics.skipping import INSTEAD, Steps
from gramgraph._numerics.standing import Standing, needs_of, stand

__all__ = ["Pipeline"]

#: How the symbol begins of what leads to a function from Python.
_FROM_PYTHON = "_ZN7cpython"
#: Instructions from which a function is large. LLVM makes no more than about half as many part of a caller.
LARGE = 120


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """The code of one function of ours and of the small ones that it calls."""

    def add_linking_library(self, library: Any) -> None:
        """The function calls that of `library`."""
        library._ensure_finalized()
        if not hasattr(library, "standing"):
            super().add_linking_library(library)
        elif hasattr(self, "_reload_init"):  # older Numbas keep it elsewhere
            self._reload_init.update(library._reload_init)

    def _optimize_functions(self, module: Any) -> None:
        """Improve the functions of a part by themselves, before all that it calls is there too.

        What leads to a function from Python has little to gain from that, and symbols of others nothing.
        """
        if not hasattr(self._codegen, "_pass_builder"):  # older Numbas have one manager for all
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        for each in module.functions:
            if not each.is_declaration and not each.name.startswith(_FROM_PYTHON):
                passes, builder = self._codegen._function_pass_manager()
                passes.run(each, builder)

    def finalize(self) -> None:
        """Compile it."""
        super().finalize()
        if (symbol := _large_function(self._final_module)) is not None:
            environments = _environments(self._final_module)
            stand(self, Standing(symbol, self._get_compiled_object(), environments, needs_of(self._final_module)))

    def serialize_using_object_code(self) -> tuple[Any, ...]:
        """What is kept in a file: machine code, and what a caller copies. Nobody copies a large one."""
        if not hasattr(self, "standing"):
            return tuple(super().serialize_using_object_code())
        own = [each.name for each in self._final_module.functions if not each.is_declaration]
        names = llvm.parse_assembly("\n".join(f'define void @"{name}"() {{ ret void }}' for name in own))
        return self.name, "object", (self._get_compiled_object(), names.as_bitcode())


class _Counting(NRTContext):  # type: ignore[misc]
    """The counting of references to arrays, with an instruction where Numba writes nine that LLVM takes out again."""

    def _call_incref_decref(self, builder: Any, typ: Any, value: Any, funcname: str) -> None:
        """Count all counters inside a value up or down: numbers have none."""
        if counted(self._context, typ):
            super()._call_incref_decref(builder, typ, value, funcname)

    def get_meminfos(self, builder: Any, ty: Any, val: Any) -> list[tuple[Any, Any]]:
        """(type, counter) of all counters inside a value."""
        model = self._context.data_model_manager[ty]
        found = [(ty, model.get_nrt_meminfo(builder, val))] if model.has_nrt_meminfo() else []
        for kind, part in model.traverse(builder):
            if self._context.data_model_manager[kind].contains_nrt_meminfo():
                found += self.get_meminfos(builder, kind, part(val))
        return found


class _Sizes:
    """Bytes of a type, asked once for each: LLVM reads a module of text to tell."""

    _known: ClassVar[dict[str, int]] = {}  # of all functions: each is compiled in a context of its own

    def __init__(self, ask: Callable[[Any], int]) -> None:
        self._ask = ask

    def __call__(self, kind: Any) -> int:
        if (name := str(kind)) not in self._known:
            self._known[name] = self._ask(kind)
        return self._known[name]


class _Refresh:
    """Numba reads all its registries anew for each call of an intrinsic: here only when one has grown."""

    def __init__(self, context: Any) -> None:
        self._context, self._refresh, self._size = context, context.refresh, -1

    def __call__(self) -> None:
        if self._entries() != self._size:
            self._refresh()
            self._size = self._entries()

    def _entries(self) -> int:
        registries = (*self._context._registries, *self._context.typing_context._registries)
        return sum(len(each) for registry in registries for each in vars(registry).values() if isinstance(each, list))


class _Shared(Flags):  # type: ignore[misc]
    """Options of a caller of Numba's functions: those that they take over (error model, fast mathematics, counting).

    Numba compiles a function of its own (np.empty) anew for every set of options with which it is called, so the others
    are as in its own calls. It also looks up each call by them: a digest is computed once, and equal ones are one.
    """

    _known: ClassVar[dict[str, _Shared]] = {}
    digest: int

    @classmethod
    def of(cls, options: Any) -> _Shared:
        """The one that stands for these options."""
        made = cls(options)
        made.discard("release_gil")
        made.discard("no_cfunc_wrapper")
        made.no_cpython_wrapper, made.boundscheck = True, False
        made.digest = Flags.__hash__(made)
        return cls._known.setdefault(made.summary(), made)

    def __hash__(self) -> int:
        return self.digest

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, _Shared) else bool(super().__eq__(other))

    def copy(self) -> Any:
        """One that can be changed."""
        return Flags(self)


class _Options(Flags):  # type: ignore[misc]
    """Options of a function of ours."""

    def copy(self) -> _Shared:
        """What the functions that it calls are to see."""
        return _Shared.of(self)


class Pipeline(CompilerBase):  # type: ignore[misc]
    """Numba's own steps from a function to machine code, with our kind of library."""

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        if "refresh" not in vars(targetctx):
            vars(targetctx)["refresh"] = _Refresh(targetctx)
        super().__init__(typingctx, targetctx, library, args, return_type, _Options(flags), locals)

    def define_pipelines(self) -> list[Any]:
        """One list of steps."""
        if self.state.library is None:
            self.state.library = _Library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()  # as Numba's own step would
        ours = vars(self.state.targetctx)
        ours["nrt"] = _Counting(self.state.targetctx, self.state.targetctx.enable_nrt)
        if "get_abi_sizeof" not in ours:
            ours["get_abi_sizeof"] = _Sizes(self.state.targetctx.get_abi_sizeof)
        remember(self.state.typingctx)
        steps = Steps("nopython")
        for step, text in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            steps.add_pass(INSTEAD.get(step, step), text)
        steps.finalize()
        return [steps]


def _environments(module: Any) -> tuple[Any, ...]:
    names = (each.name for each in module.global_variables)
    found = (lookup_environment(name) for name in names if name.startswith("_ZN08NumbaEnv"))
    return tuple(each for each in found if each is not None and each.can_cache())


def _large_function(module: Any) -> str | None:
    """The symbol of the function that the module was made for, if it is large.

    The functions that it calls are there for it alone, in case LLVM has not made them part of it.
    """
    own = [each for each in module.functions if not each.is_declaration and each.linkage == llvm.Linkage.external]
    own = [each for each in own if not each.name.startswith((_FROM_PYTHON, "cfunc."))]
    if len(own) != 1 or any(b"alwaysinline" in attribute for attribute in own[0].attributes):
        return None
    return own[0].name if str(own[0]).count("\n  ") >= LARGE else None  # an instruction is a line, set in
