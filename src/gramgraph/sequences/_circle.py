"""Numbers of which some are angles: differences the short way round, and means on the circle."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray

_ROUNDS = 20


def angles_of(name: str, given: Any, n: int) -> IntArray:
    """The places of angles among n numbers."""
    found = np.atleast_1d(np.array([] if given is None else given))
    if found.size == 0:
        return np.zeros(0, np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= n:
        raise ModelError(f"{name} must name places of angles, whole numbers from 0 to {n - 1}; it is {given!r}.")
    return np.unique(found).astype(np.int64)


def turned(gaps: FloatArray, angles: IntArray) -> FloatArray:
    """Rows with their angles brought between −π and π: the short way round."""
    if len(angles) == 0:
        return gaps
    out = np.array(gaps, dtype=np.float64)
    part = out[..., angles]
    out[..., angles] = np.where(np.abs(part) <= np.pi, part, np.pi - np.mod(np.pi - part, 2.0 * np.pi))
    return out


def mean_of(values: FloatArray, weights: FloatArray, angles: IntArray) -> FloatArray:
    """Weighted mean of rows; of angles the one that the weighted ways to all rows start from and add up to nothing.

    Weights may be negative, as those of sigma points are: sums of sines and cosines then point anywhere, ways do not.
    Where no way crosses half a turn it is the ordinary mean.
    """
    mean: FloatArray = weights @ values
    if len(angles) == 0:
        return mean
    part = values[:, angles]
    weigh = weights if (weights >= 0.0).all() else np.full(len(weights), 1.0 / len(weights))
    here = np.arctan2(weigh @ np.sin(part), weigh @ np.cos(part))
    every = np.arange(len(angles))
    for _ in range(_ROUNDS):
        step = weights @ turned(part - here, every)
        here = here + step
        if np.abs(step).max() < 1e-14:
            break
    mean[angles] = turned(here, every)
    return mean
