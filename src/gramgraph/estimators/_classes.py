"""Classes as the targets of classifiers: one reading for all."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d

from gramgraph.estimators._numbers import read_weights
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray


def weighed(X: FloatArray, y: Any, sample_weight: Any) -> tuple[FloatArray, Any, FloatArray | None]:
    """Rows, classes and weights without the rows that count nothing."""
    w = read_weights(sample_weight, X)
    if w is None or y is None or (w > 0.0).all():
        return X, y, w
    kept = w > 0.0
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    return X[kept], y[kept], w[kept]


def read_classes(y: Any, X: Any, *, name: str, least: int = 2) -> tuple[Array, IntArray]:
    """(classes in order, codes of the rows); a clear error for gaps, one class only, or real numbers."""
    if y is None:
        raise ValueError(f"requires y to be passed, but the target y is None: {name} learns from classes.")
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    gaps = [] if y.dtype.kind in "iub" else [i for i, one in enumerate(y.tolist()) if one is None or one != one]
    if gaps:
        raise ModelError(f"y is missing (NaN) in row {gaps[0]}: every row {name} learns from has a class")
    classes, codes = _counted(y) or _sorted(y)
    if len(classes) < least:
        raise ModelError(f"the training data hold one class only ({classes[:1].tolist()}): two or more are needed")
    return classes, codes


def _sorted(y: Any) -> tuple[Array, IntArray]:
    check_classification_targets(y)
    assert_all_finite(y, input_name="y")
    return np.unique(y, return_inverse=True)


def _counted(y: Any) -> tuple[Array, IntArray] | None:
    """The same of many integers that lie close together, without sorting."""
    if y.dtype.kind != "i" or not len(y):
        return None
    low, high = int(y.min()), int(y.max())
    if high - low >= len(y) // 2:
        return None
    codes = y.astype(np.intp) - low
    there = np.bincount(codes) > 0
    if not there.all():
        codes = (np.cumsum(there) - 1)[codes]
    return (low + np.flatnonzero(there)).astype(y.dtype), codes
