"""Points of any kind: matrices, frames, sequences, and tuples of their parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.typing import IntArray


def take_points(X: Any, rows: IntArray) -> Any:
    """Some of the points, which may be a matrix or any sequence."""
    if isinstance(X, tuple):
        return tuple(take_points(part, rows) for part in X)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if isinstance(X, np.ndarray) or hasattr(X, "tocsr") else [X[i] for i in rows.tolist()]
