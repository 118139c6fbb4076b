"""The words that all beliefs share, and what is checked alike in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gramgraph.exceptions import OptionError, VariableError, listing
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

#: Every belief has these methods; one that makes no sense for it is a `VariableError` that says what does.
WORDS = (
    "mean",
    "var",
    "mode",
    "quantile",
    "interval",
    "expect",
    "prob",
    "density",
    "sample",
    "entropy",
    "plot",
    "to_frame",
)


def need_scalar(what: str, scope: Sequence[Var], scalar: bool) -> None:
    """`VariableError` unless this is a belief about one scalar variable."""
    if not scalar:
        names = listing(var.name for var in scope)
        raise VariableError(f"{what} needs a single scalar variable; this belief is over ({names})")


def need_one_case(what: str, batched: bool) -> None:
    """`VariableError` for a belief about a table of cases."""
    if batched:
        raise VariableError(f"{what} needs a single case. Try: ask with evidence as a dict, or take one row")


def shares(q: Any) -> FloatArray:
    """Shares between 0 and 1, as an array."""
    found = np.asarray(q, dtype=np.float64)
    if not ((found >= 0.0) & (found <= 1.0)).all():
        raise OptionError(f"the share of a quantile lies between 0 and 1; it is {q!r}")
    return found


def tails(level: float) -> FloatArray:
    """The two shares between which `level` lies, with equal tails outside."""
    if not 0.0 < level < 1.0:
        raise OptionError(f"the level of an interval lies between 0 and 1; it is {level!r}")
    return np.array([0.5 - level / 2, 0.5 + level / 2])


def unit(base: float | None) -> float:
    """The logarithm of the base in which an entropy is told, 1 for nats."""
    if base is None:
        return 1.0
    if not base > 1.0:
        raise OptionError(f"the base of an entropy is a number above 1; it is {base!r}")
    return float(np.log(base))
