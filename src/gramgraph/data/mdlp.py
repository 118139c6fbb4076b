"""Cuts that tell classes apart: entropy and the description length of Fayyad and Irani."""

from __future__ import annotations

import numpy as np

from gramgraph.typing import Array, FloatArray


def mdlp_edges(values: FloatArray, classes: Array, weights: FloatArray, *, most: int | None = None) -> FloatArray:
    """Inner edges of a real column, by its classes: the cut with the smallest entropy of the classes on both sides,
    then the same within the parts.

    A cut of S (n rows, k classes, entropy H in bits) into S₁ and S₂ is made where its gain exceeds what it takes to
    describe it: gain > (log₂(n − 1) + log₂(3ᵏ − 2) − k H + k₁ H₁ + k₂ H₂) / n. Of the cuts that are made the `most`
    with the largest gain (times rows) stay. Cost: a sort, and rows × classes for every level of cuts.

    >>> mdlp_edges(np.array([1.0, 2, 3, 7, 8, 9]), np.array([0, 0, 0, 1, 1, 1]), np.ones(6)).tolist()
    [5.0]
    """
    found, place = np.unique(values, return_inverse=True)
    kinds = int(classes.max(initial=-1)) + 1
    sums = np.bincount(place * kinds + classes, weights=weights, minlength=len(found) * kinds)
    below = np.concatenate([np.zeros((1, kinds)), sums.reshape(len(found), kinds).cumsum(axis=0)])
    cuts: list[tuple[float, int]] = []
    parts = [(0, len(found))]
    while parts:
        low, high = parts.pop()
        gain, at = _best_cut(below[low : high + 1] - below[low])
        if at > 0:
            cuts.append((-gain, low + at))
            parts += [(low, low + at), (low + at, high)]
    kept = sorted(at for _, at in sorted(cuts)[:most])
    return np.array([(found[at - 1] + found[at]) / 2.0 for at in kept])


def _best_cut(below: FloatArray) -> tuple[float, int]:
    """(gain in bits of all rows, how many distinct values stay below the cut); 0 values where no cut is worth it."""
    whole = below[-1]
    n = whole.sum()
    if len(below) < 3 or n <= 1.0 or (whole > 0).sum() < 2:
        return 0.0, 0
    left = below[1:-1]
    right = whole - left
    bits_left, bits_right, bits = _bits(left), _bits(right), float(_bits(whole[np.newaxis])[0])
    at = int(np.argmin(bits_left + bits_right))
    gain = bits - float(bits_left[at] + bits_right[at])
    k, k1, k2 = (int((part > 1e-12).sum()) for part in (whole, left[at], right[at]))
    n1, n2 = left[at].sum(), right[at].sum()
    if not n1 > 0 or not n2 > 0:
        return 0.0, 0
    more = np.log2(3.0**k - 2.0) - (k * bits / n - k1 * bits_left[at] / n1 - k2 * bits_right[at] / n2)
    return (gain, at + 1) if gain > np.log2(n - 1.0) + more else (0.0, 0)


def _bits(counts: FloatArray) -> FloatArray:
    """n times the entropy of each row of counts, in bits."""
    n = counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 1e-12, counts * np.log2(np.maximum(n, 1e-300) / np.maximum(counts, 1e-300)), 0.0)
    return np.asarray(terms.sum(axis=1))
