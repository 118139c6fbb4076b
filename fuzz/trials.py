"""What the random tests are made of: trials, the kinds of them, and the comparisons they share.

A *kind* is a function `trials(rng)` that draws one small world (a model, a data set) and yields trials about it. Two
rules make every fault reproducible: all drawing happens in `trials`, none in a `check`; and a check may be run again,
alone or after the others. One new kind is one module and one line in `KINDS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["KINDS", "Kind", "Trial", "Wrong", "close", "load_kind"]

#: Name of a kind → module and function. `trials(rng)` yields the trials of one world.
KINDS: dict[str, str] = {
    "tables": "fuzz.discrete:tables",
    "extreme": "fuzz.discrete:extreme",
    "soft": "fuzz.soft:trials",
    "approximate": "fuzz.approximate:trials",
    "mixed": "fuzz.mixed:trials",
    "sequences": "fuzz.sequences:trials",
    "estimators": "fuzz.estimators:trials",
}


class Wrong(AssertionError):
    """The library's answer is not the truth; the message holds both."""


def _nothing() -> str:
    return ""


@dataclass(frozen=True)
class Trial:
    """One question to the library. `check()` returns where the answer is right and raises where it is not.

    An error of the library that the truth does not call for is a fault too, as is a NumPy `RuntimeWarning`: whoever
    expects an error catches it inside `check`. `what` says in a few words what is asked, `about()` shows the model;
    both are printed with a fault. `counts` is how many questions the check asks.
    """

    what: str
    check: Callable[[], None]
    about: Callable[[], str] = _nothing
    counts: int = 1


Kind = Callable[[np.random.Generator], Iterator[Trial]]


def load_kind(name: str) -> Kind:
    """The function behind a name of `KINDS`."""
    module, _, function = KINDS[name].partition(":")
    found: Kind = getattr(importlib.import_module(module), function)
    return found


def close(found: Any, truth: Any, what: str, *, atol: float = 0.0, rtol: float = 0.0) -> None:
    """Raise `Wrong` unless shapes agree, no number is NaN and |found − truth| ≤ atol + rtol · |truth|.

    Infinite numbers must be equal.
    """
    a, b = np.asarray(found, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if a.shape != b.shape:
        raise Wrong(f"{what}: shape {a.shape}, expected {b.shape}")
    same = a == b
    if same.all():
        return
    if np.isnan(a).any():
        raise Wrong(f"{what}: NaN: {_shown(a)}, truth {_shown(b)}")
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.where(same, 0.0, np.abs(a - b))
        bad = ~(off <= atol + rtol * np.abs(b)) | (~same & ~(np.isfinite(a) & np.isfinite(b)))
    if bad.any():
        raise Wrong(f"{what}: {_shown(a)}, truth {_shown(b)}, largest difference {float(off[bad].max()):.3g}")


def _shown(values: np.ndarray) -> str:
    flat = values.reshape(-1)
    text = ", ".join(f"{x:.12g}" for x in flat[:8].tolist())
    return f"[{text}, … {flat.size} numbers]" if flat.size > 8 else f"[{text}]"
