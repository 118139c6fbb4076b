"""Machine code of large functions: in memory under its symbol, and in the files of all functions that call it.

A caller holds the symbol of a large function only (`_numerics/separate.py`), so machine code in a file has to come with
that of all functions whose symbols it holds. Loading it needs no more of Numba than is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core.codegen import JITCodeLibrary

__all__ = ["Standing", "bundle", "needs_of", "stand", "unbundle"]

#: The newest Numba whose inner parts are known to be as they are here: a newer one compiles as it does by itself.
NEWEST = (0, 68)
if numba.version_info.short > NEWEST:
    raise ImportError("this Numba is newer than what is known of its inner parts")
_PARTS = ("add_linking_library", "finalize", "_ensure_finalized", "_get_compiled_object", "serialize_using_object_code")
if not all(hasattr(JITCodeLibrary, name) for name in _PARTS):
    raise ImportError("this Numba keeps the code of functions in another way")


@dataclass(frozen=True)
class Standing:
    """The machine code of a large function, in memory under its symbol."""

    symbol: str
    code: bytes
    environments: tuple[Any, ...]  # constants of the function and of those that became part of it
    needs: tuple[str, ...]  # symbols of the large functions that it calls


#: By symbol: those of this process.
_STANDING: dict[str, Standing] = {}


def bundle(result: Any, kept: Any) -> tuple[Any, ...]:
    """A compiled function for a file: its symbol if it is large, all that it needs, and what Numba keeps of it."""
    needs = needs_of(result.library._final_module)
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
            _load(target_context.codegen(), Standing(*other))
    result = rebuild(target_context, kept)
    if symbol is not None:
        stand(result.library, Standing(symbol, code, environments, needs))
        # What stands in the file in place of its code is not to be copied by callers that Numba compiles by itself.
        result.library._shared_module = llvm.parse_assembly("")
    return result


def _check(symbol: str | None, code: bytes) -> None:
    """Symbols count the compilations of a process, so that of another one may stand for other code here."""
    if symbol in _STANDING and _STANDING[symbol].code != code:
        raise KeyError(symbol)


def stand(library: Any, standing: Standing) -> None:
    """Let callers of this library hold its symbol only."""
    library.standing = _STANDING[standing.symbol] = standing


def _load(codegen: Any, standing: Standing) -> None:
    """Bring machine code into memory. (Numba wants code of LLVM beside it, to copy into callers: there is none.)"""
    codegen.unserialize_library((standing.symbol, "object", (standing.code, llvm.parse_assembly("").as_bitcode())))
    for environment in standing.environments:
        codegen.set_env(environment.env_name, environment)
    _STANDING[standing.symbol] = standing


def _closure(symbols: Iterable[str]) -> list[Standing]:
    """What stands under these symbols and all that it needs, callees first."""
    found: dict[str, Standing] = {}

    def add(symbol: str) -> None:
        if symbol not in found:
            for each in _STANDING[symbol].needs:
                add(each)
            found[symbol] = _STANDING[symbol]

    for symbol in symbols:
        add(symbol)
    return list(found.values())


def needs_of(module: Any) -> tuple[str, ...]:
    return tuple(each.name for each in module.functions if each.is_declaration and each.name in _STANDING)
