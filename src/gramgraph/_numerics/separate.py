"""Numba's compiler as our functions go through it: a large function is compiled once, and called where it is.

Numba itself copies the code of a function into every one that calls it, however large, and optimizes and emits it there
again. That is worth its price for small ones, which become part of their callers. Code of a large one stays a call; so
here it is left out, and the caller holds its symbol only. Machine code in a file then has to come with that of all
functions whose symbols it holds (`bundle`, `unbundle`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import llvmlite.binding as llvm
import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.environment import lookup_environment
from numba.core.runtime.context import NRTContext

from gramgraph._numerics.shortcuts import counted, remember
from gramgraph._numerics.skipping import INSTEAD, Steps

__all__ = ["Pipeline", "bundle", "unbundle"]

#: The newest Numba whose inner parts are known to be as they are here: a newer one compiles as it does by itself.
NEWEST = (0, 68)
if numba.version_info.short > NEWEST:
    raise ImportError("this Numba is newer than what is known of its inner parts")
_PARTS = ("add_linking_library", "finalize", "_ensure_finalized", "_get_compiled_object", "serialize_using_object_code")
if not all(hasattr(JITCodeLibrary, name) for name in _PARTS):
    raise ImportError("this Numba keeps the code of functions in another way")

#: How the symbol begins of what leads to a function from Python.
_FROM_PYTHON = "_ZN7cpython"
#: Instructions from which a function is large. LLVM makes no more than about half as many part of a caller.
LARGE = 120


@dataclass(frozen=True)
class _Standing:
    """The machine code of a large function, in memory under its symbol."""

    symbol: str
    code: bytes
    environments: tuple[Any, ...]  # constants of the function and of those that became part of it
    needs: tuple[str, ...]  # symbols of the large functions that it calls


#: By symbol: those of this process.
_STANDING: dict[str, _Standing] = {}


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
            _stand(self, _Standing(symbol, self._get_compiled_object(), environments, _needs(self._final_module)))

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


def bundle(result: Any, kept: Any) -> tuple[Any, ...]:
    """A compiled function for a file: its symbol if it is large, all that it needs, and what Numba keeps of it."""
    needs = _needs(result.library._final_module)
    standing = getattr(result.library, "standing", None)
    others = tuple((each.symbol, each.code, each.environments, each.needs) for each in _closure(needs))
    return standing and standing.symbol, needs, others, kept


def unbundle(target_context: Any, payload: tuple[Any, ...], rebuild: Callable[[Any, Any], Any]) -> Any:
    """The function that `bundle` has written, with all that it needs in memory; `rebuild` is Numba's own way."""
    symbol, needs, others, kept = payload
    (_, _, (code, _)), environments = kept[0], kept[-1]
    _check(symbol, code)
    for other in others:
        _check(other[0], other[1])
        if other[0] not in _STANDING:
            _load(target_context.codegen(), _Standing(*other))
    result = rebuild(target_context, kept)
    if symbol is not None:
        _stand(result.library, _Standing(symbol, code, environments, needs))
        # What stands in the file in place of its code is not to be copied by callers that Numba compiles by itself.
        result.library._shared_module = llvm.parse_assembly("")
    return result


def _check(symbol: str | None, code: bytes) -> None:
    """Symbols count the compilations of a process, so that of another one may stand for other code here."""
    if symbol in _STANDING and _STANDING[symbol].code != code:
        raise KeyError(symbol)


def _stand(library: Any, standing: _Standing) -> None:
    """Let callers of this library hold its symbol only."""
    library.standing = _STANDING[standing.symbol] = standing


def _load(codegen: Any, standing: _Standing) -> None:
    """Bring machine code into memory. (Numba wants code of LLVM beside it, to copy into callers: there is none.)"""
    codegen.unserialize_library((standing.symbol, "object", (standing.code, llvm.parse_assembly("").as_bitcode())))
    for environment in standing.environments:
        codegen.set_env(environment.env_name, environment)
    _STANDING[standing.symbol] = standing


def _closure(symbols: Iterable[str]) -> list[_Standing]:
    """What stands under these symbols and all that it needs, callees first."""
    found: dict[str, _Standing] = {}

    def add(symbol: str) -> None:
        if symbol not in found:
            for each in _STANDING[symbol].needs:
                add(each)
            found[symbol] = _STANDING[symbol]

    for symbol in symbols:
        add(symbol)
    return list(found.values())


def _needs(module: Any) -> tuple[str, ...]:
    return tuple(each.name for each in module.functions if each.is_declaration and each.name in _STANDING)


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
