"""What transitions and emissions are allowed: masks, and parameters that are equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, IntArray


def masks_of(mask: Any, K: int) -> tuple[Array, Array]:
    """(states that may come first (K,), steps that may be (K, K))."""
    start = np.ones(K, dtype=bool)
    if mask is None:
        return start, np.ones((K, K), dtype=bool)
    if isinstance(mask, str):
        if mask != "left-right":
            raise ModelError(
                f"transition_mask must be None, 'left-right' or a matrix of {K} × {K} booleans; it is {mask!r}."
            )
        start[1:] = False
        return start, np.eye(K, dtype=bool) | np.eye(K, k=1, dtype=bool)
    found = np.asarray(mask)
    if found.shape != (K, K) or not np.isin(found, (0, 1)).all():
        raise ModelError(f"transition_mask must be a matrix of {K} × {K} booleans; its shape is {found.shape}.")
    if not found.any(axis=1).all():
        raise ModelError(f"transition_mask lets no step leave state {int(np.flatnonzero(~found.any(axis=1))[0])}.")
    return start, found.astype(bool)


def transition_labels(ties: Any, mask: Array) -> IntArray | None:
    """Labels 0, 1, … of the entries of the transition matrix (K, K); entries with one label are equal."""
    if ties is None:
        return None
    K = len(mask)
    found = np.asarray(ties)
    if found.shape != (K, K) or found.dtype.kind not in "iu":
        raise ModelError(
            f"transition_ties must be a matrix of {K} × {K} whole numbers, one label an entry; got an array of "
            f"{found.dtype} with shape {found.shape}."
        )
    labels = np.unique(found, return_inverse=True)[1].reshape(K, K).astype(np.int64)
    if (
        np.bincount(labels[mask], minlength=labels.max() + 1) * np.bincount(labels[~mask], minlength=labels.max() + 1)
    ).any():
        raise ModelError("transition_ties joins steps that transition_mask allows with steps that it forbids.")
    kinds = [tuple(sorted(row.tolist())) for row in labels]
    for i, kind in enumerate(kinds):
        for j in range(i):
            if kinds[j] != kind and not set(kinds[j]).isdisjoint(kind):
                raise ModelError(
                    f"transition_ties: rows {j} and {i} share a label but not all, each as often: rows that share a "
                    f"label must be the same up to their order."
                )
    return labels


def emission_labels(ties: Any, K: int) -> IntArray | None:
    """Labels 0, 1, … of the states (K,); states with one label share their emission."""
    if ties is None:
        return None
    found = np.asarray(ties)
    if found.shape != (K,):
        raise ModelError(f"emission_ties must have {K} labels, one per state; its shape is {found.shape}.")
    return np.unique(found, return_inverse=True)[1].astype(np.int64)
