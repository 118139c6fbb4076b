"""How an interpreted function becomes code of its own; imported with the first compilation, as it needs Numba."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.extending import intrinsic, overload

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

        def call(*given: Any) -> Any:
            made = _CALLS[len(given)](found)
            made.__name__ = made.__qualname__ = function.__name__  # what compilations are told apart by
            return made

        overload(function, strict=False)(call)
        return found

    return register


def _names(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


#: A function of so many arguments that calls another one: Numba knows no other way to tell their number.
_CALLS: dict[int, Callable[[Any], Any]] = {
    1: lambda f: lambda a: f(a),
    2: lambda f: lambda a, b: f(a, b),
    3: lambda f: lambda a, b, c: f(a, b, c),
    4: lambda f: lambda a, b, c, d: f(a, b, c, d),
    5: lambda f: lambda a, b, c, d, e: f(a, b, c, d, e),
    6: lambda f: lambda a, b, c, d, e, g: f(a, b, c, d, e, g),
    7: lambda f: lambda a, b, c, d, e, g, h: f(a, b, c, d, e, g, h),
}
