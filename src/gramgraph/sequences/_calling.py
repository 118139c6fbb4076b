"""How a user's function wants to be called, and an error in words where it cannot be called as it will be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gramgraph.exceptions import ModelError

CONTROLS = ("u", "control", "controls")


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Those that can be given by position; None where Python does not know them."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    return [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]


def takes_more(function: Callable[..., Any], given: int, names: Sequence[str] = CONTROLS) -> tuple[str, ...]:
    """Names of the parameters after the first `given` that are to be filled: needed ones, and optional ones so named.

    >>> takes_more(lambda x: x, 1), takes_more(lambda x, u: x, 1), takes_more(lambda x, scale=2.0: x, 1)
    ((), ('u',), ())
    """
    found = _parameters(function) or []
    more = [p for p in found[given:] if p.kind is not p.VAR_POSITIONAL]
    return tuple(p.name for p in more if p.default is p.empty or p.name in names)


def check_call(name: str, function: Any, arguments: Sequence[str], hint: str = "") -> None:
    """An error where `function` cannot be called with these arguments by position."""
    call = f"{name}({', '.join(arguments)})"
    if not callable(function):
        raise ModelError(f"{name} must be a function, called as {call}; it is {function!r}.")
    n = len(arguments)
    most = getattr(function, "nin", None)  # NumPy's own: a further argument would be written over
    found = None if most is not None else _parameters(function)
    if most is not None:
        fits, takes = n == most, f"{most} argument{'s' if most > 1 else ''}"
    elif found is not None:
        plain = [p for p in found if p.kind is not p.VAR_POSITIONAL]
        least = sum(p.default is p.empty for p in plain)
        fits = least <= n and (len(plain) < len(found) or n <= len(plain))
        fits = fits and not _needs_keywords(function)
        takes = f"({', '.join(str(p) for p in found)})"
    else:
        fits, takes = True, ""
    if not fits:
        raise ModelError(f"{name} is called as {call}, but the function given takes {takes}.{hint}")


def _needs_keywords(function: Callable[..., Any]) -> bool:
    found = inspect.signature(function).parameters.values()
    return any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in found)
