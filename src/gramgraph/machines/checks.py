"""Parameters and numbers that no machine can learn from, refused in the same words everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, did_you_mean, listing

__all__ = ["LARGEST", "check_option", "check_positive", "scale_the_columns"]

LARGEST = 1e150  # n d squares of such numbers still have a finite sum


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """`value` as a float, which must be positive (or zero where that is allowed) and finite."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ModelError(f"{name} must be a {'non-negative' if zero else 'positive'} number; it is {value!r}.")
    return float(value)


def check_option(name: str, value: object, options: tuple[object, ...]) -> None:
    """`value` must be one of the options."""
    if not any(value is option or (type(value) is type(option) and value == option) for option in options):
        hint = did_you_mean(value, [str(option) for option in options])
        raise ModelError(f"{name} must be one of {listing([repr(o) for o in options])}; it is {value!r}.{hint}")


def scale_the_columns(what: str, X: Any = None, meaning: str = "") -> ModelError:
    """The error for numbers out of range; `what` says where, `meaning` what it would have led to."""
    reach = _reach(X)
    size = f" The numbers of X reach {reach:.3g}." if np.isfinite(reach) else ""
    return ModelError(
        f"{what}{size}{' ' + meaning if meaning else ''} What helps: scale the columns to moderate numbers, such as "
        f"(X − mean) / deviation (sklearn.preprocessing.StandardScaler), and y likewise."
    )


def _reach(X: Any) -> float:
    try:
        values = X.data if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
        return float(np.abs(values).max(initial=0.0))
    except (TypeError, ValueError):  # points that are no numbers
        return np.nan
