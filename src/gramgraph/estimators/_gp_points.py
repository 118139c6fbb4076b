"""How estimators of Gaussian processes read their points."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.estimators._base import KernelEstimator
from gramgraph.estimators._sound import read_matrix


class ProcessPoints(KernelEstimator):
    """Arrays of numbers are read as scikit-learn reads them, whatever the kernel; all else as the kernel asks."""

    def _points(self, X: Any, *, reset: bool, least: int = 1, keep: bool = False) -> Any:
        if isinstance(X, np.ndarray) and (X.ndim == 2 or X.dtype.kind in "fiub"):  # scikit-learn says what is wrong
            return read_matrix(
                self,
                X,
                limit=self._limit(),
                reset=reset,
                dtype=np.float64,
                order="C",
                ensure_min_samples=least,
                copy=keep,
            )
        return super()._points(X, reset=reset, least=least, keep=keep)
