"""Columns of values before they stand on cells: numbers, labels, and what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.exceptions import StateError
from gramgraph.typing import Array, FloatArray


def column_of(values: Any) -> Array:
    """A column of values, which may be vectors."""
    out: Array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        out[i] = value
    return out


def single(value: Any) -> Array:
    """A column of one value, which may be a vector."""
    column: Array = np.empty(1, dtype=object)
    column[0] = value
    return column


def numbers_of(values: Any, name: str, *, positive: bool = False) -> FloatArray:
    """A column as floats, NaN where it is missing (None, NaN, NA)."""
    raw = np.asarray(values)
    if raw.dtype.kind in "fiu":
        x = raw.astype(np.float64)
    else:
        given = np.asarray(values, dtype=object).tolist()
        x = np.array([np.nan if is_absent(v) else _number(v, name) for v in given], dtype=np.float64)
    if np.isinf(x).any():
        raise StateError(f"{name} takes finite numbers; it was given {x[np.isinf(x)][0]}.")
    if positive and (x <= 0.0).any():
        raise StateError(f"{name} takes numbers above 0 (domain 'positive'); it was given {x[x <= 0.0][0]}.")
    return x


def _number(value: Any, name: str) -> float:
    if isinstance(value, (str, bytes, bool, np.bool_)):
        raise StateError(f"{name} is real-valued: a number expected, not {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise StateError(f"{name} is real-valued: a number expected, not {value!r}") from None


def is_absent(value: Any) -> bool:
    """Whether a value of a column is missing: None, NaN, NaT, NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):
        return str(value) == "<NA>"


def states_of(known: list[Any]) -> tuple[str, ...]:
    """Labels of the values that occur: numbers by size, all else by text."""
    found = {label_of(v): v for v in known}
    if all(isinstance(v, (int, float, np.number)) and not isinstance(v, (bool, np.bool_)) for v in known):
        return tuple(sorted(found, key=lambda label: (float(found[label]), label)))
    return tuple(sorted(found))


def label_of(value: Any) -> str:
    """The text of a state; 1.0 and 1 are one state."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def values_of(f: Callable[[Any], Any], x: FloatArray) -> FloatArray:
    """f at every point (every row of x), also where f knows no arrays or is constant."""
    try:
        found = np.asarray(f(x), dtype=np.float64)
    except (TypeError, ValueError):  # written for one number
        found = np.array([f(v.item() if x.ndim == 1 else v) for v in x], dtype=np.float64)
    return np.broadcast_to(found, x.shape[:1])
