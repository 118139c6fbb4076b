"""Tables of numbers with gaps: what mixtures and Gaussian classifiers read, and what they say of other columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from gramgraph.data.frames import is_frame, read_frame
from gramgraph.estimators._sound import read_matrix, squares_are_finite
from gramgraph.exceptions import ModelError, listing
from gramgraph.machines.checks import LARGEST, scale_the_columns
from gramgraph.typing import FloatArray


def read_numbers(
    estimator: Any, X: Any, *, reset: bool, gaps: bool = True, least: int = 1, instead: str = ""
) -> FloatArray:
    """X (rows, columns) as floats, NaN where a cell is missing; `instead` says what takes other columns."""
    if is_frame(X) and hasattr(X, "columns"):
        _check_kinds(type(estimator).__name__, X, instead)
    found = read_matrix(
        estimator,
        X,
        limit=np.inf,
        reset=reset,
        dtype=np.float64,
        order="C",
        ensure_min_samples=least,
        ensure_all_finite="allow-nan" if gaps else True,
    )
    if squares_are_finite(found):  # neither gaps nor numbers that are too large
        return np.asarray(found)
    low, high = found.min(initial=0.0), found.max(initial=0.0)
    if np.isnan(low):
        low, high = np.nanmin(found, initial=0.0), np.nanmax(found, initial=0.0)
    if max(-low, high) > LARGEST:
        raise scale_the_columns(f"{type(estimator).__name__}: squares of numbers beyond {LARGEST:.0e} overflow.", found)
    if reset and gaps and np.isnan(found).all(axis=0).any():
        names = column_names(estimator, found.shape[1])
        empty = [names[j] for j in np.flatnonzero(np.isnan(found).all(axis=0))]
        raise ModelError(f"there is nothing to learn from: no value in column {listing(empty)}. Leave it out")
    return np.asarray(found)


def column_names(estimator: Any, d: int) -> list[str]:
    """Names of the columns: those of the frame, else x0, x1, …."""
    own = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(d)] if own is None else [str(name) for name in own]


def read_weights(sample_weight: Any, X: FloatArray) -> FloatArray | None:
    """Weights of rows, or None where all count one."""
    if sample_weight is None:
        return None
    weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    if not weights.any():  # not all versions of scikit-learn say so
        raise ModelError("sample_weight must contain at least one non-zero number")
    return weights


def refuse_dates(name: str, X: Any) -> None:
    """An error for columns of dates or times, which says what to give instead."""
    frame = read_frame(X)
    for column in frame.names:
        if getattr(frame.column(column).dtype, "kind", "O") in "mM":
            raise ModelError(
                f"column {column!r} holds dates or times: {name} takes numbers. Give their distance from a day in "
                f"numbers, such as (frame[{column!r}] - frame[{column!r}].min()).dt.days"
            )


def _check_kinds(name: str, X: Any, instead: str) -> None:
    refuse_dates(name, X)
    frame = read_frame(X)
    for column in frame.names:
        values = frame.column(column)
        if getattr(values.dtype, "kind", "O") in "fiub":
            continue
        shown = [value for value in values.dropna().head(50).tolist() if isinstance(value, str)]
        if shown:
            raise ModelError(f"column {column!r} holds text ({shown[0]!r:.40}): {name} takes numbers.{instead}")
