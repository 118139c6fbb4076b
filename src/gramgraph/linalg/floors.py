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
    values, root = _against(C, least)
    return C if values[0] >= 1.0 else _square(root)


def root_at_least(C: FloatArray, least: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`at_least`, and R with R Rᵀ = that: its small directions keep the digits that they lose in the product."""
    if len(C) == 1:
        C = np.maximum(C, least)
        return C, np.sqrt(C)
    values, root = _against(C, least)
    return C if values[0] >= 1.0 else _square(root), root


def _against(C: FloatArray, least: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of C against `least`, and a root of C in which they are at least 1."""
    L = np.linalg.cholesky(least)
    white = np.linalg.solve(L, np.linalg.solve(L, C).T)
    values, vectors = np.linalg.eigh(0.5 * (white + white.T))
    return values, (L @ vectors) * np.sqrt(np.maximum(values, 1.0))


def _square(root: FloatArray) -> FloatArray:
    out = root @ root.T
    return np.asarray(0.5 * (out + out.T))
