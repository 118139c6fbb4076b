"""How small a variance may be: one rule for regressions, groups, classes and components of mixtures."""

from __future__ import annotations

import numpy as np

from gramgraph.typing import FloatArray

#: Of a column's variance: what a regression leaves is never taken for less, so that exact relations have a density.
FLOOR = 1e-12
#: Of the variance that the same regression leaves in all rows: that of one group is never taken for less.
GROUP_FLOOR = 1e-8


def at_least(C: FloatArray, least: FloatArray) -> FloatArray:
    """The covariance that fits best of those not below `least` (positive definite): eigenvalues against it cut at 1."""
    if len(C) == 1:
        return np.maximum(C, least)
    L = np.linalg.cholesky(least)
    white = np.linalg.solve(L, np.linalg.solve(L, C).T)
    values, vectors = np.linalg.eigh(0.5 * (white + white.T))
    if values[0] >= 1.0:
        return C
    root = L @ vectors
    out = (root * np.maximum(values, 1.0)) @ root.T
    return np.asarray(0.5 * (out + out.T))
