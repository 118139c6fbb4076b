"""Numbers that no machine can learn from, refused in the same words everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError

LARGEST = 1e150  # n d squares of such numbers still have a finite sum


def scale_the_columns(what: str, X: Any = None, meaning: str = "") -> ModelError:
    """The error for numbers out of range; `what` says where, `meaning` what it would have led to."""
    reach = _reach(X)
    size = f" The numbers of X reach {reach:.3g}." if np.isfinite(reach) else ""
    return ModelError(
        f"{what}{size}{' ' + meaning if meaning else ''} Try: scale the columns to moderate numbers, such as "
        f"(X − mean) / deviation (sklearn.preprocessing.StandardScaler), and y likewise."
    )


def _reach(X: Any) -> float:
    try:
        values = X.data if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
        return float(np.abs(values).max(initial=0.0))
    except (TypeError, ValueError):  # points that are not numbers
        return np.nan
