"""How an interpreted function becomes code of its own; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.extending import intrinsic

from gramgraph._numerics import compiling

Code = Callable[[Any, Any, Any, Any], Any]  # context, builder, signature, values of the arguments → a value


def becomes(function: Callable[..., Any], result: Any, *kinds: Any) -> Callable[[Code], Any]:
    """Decorator of the code that compiled functions hold where `function` is called.

    `result` and `kinds` are its types; None stands for the type that an argument has.
    """

    def register(code: Code) -> Any:
        def typed(typing_context: Any, *given: Any) -> Any:
            return result(*(own if kind is None else kind for kind, own in zip(kinds, given, strict=True))), code

        own = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in _names(function)]
        first = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        typed.__signature__ = inspect.Signature([first, *own])  # type: ignore[attr-defined]
        typed.__name__ = f"_{function.__name__}"
        found = intrinsic(typed)

        compiling.replace(function, found)
        return found

    return register


def _names(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)
