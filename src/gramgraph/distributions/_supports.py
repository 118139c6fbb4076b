"""The places where points can live: which points belong to them, and one point of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.typing import FloatArray

_NEAR = 1e-6  # how far the sum of a simplex point, the length of a unit vector, a mirror entry may be off

#: Supports on which probabilities are sums.
DISCRETE = ("binary", "codes", "counts", "positive_integers", "composition", "binary_vector", "trials")


def _whole(x: FloatArray) -> Any:
    return np.isfinite(x) & (x == np.floor(x))


def _codes(x: FloatArray, known: dict[str, Any]) -> Any:
    return _whole(x) & (x >= 0.0) & (x < known["n_states"])


def _composition(x: FloatArray, known: dict[str, Any]) -> Any:
    return (_whole(x) & (x >= 0.0)).all(axis=-1) & (x.sum(axis=-1) == known["n_trials"])


def _simplex(x: FloatArray, known: dict[str, Any]) -> Any:
    return (np.isfinite(x) & (x >= 0.0)).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1.0) <= _NEAR)


def _sphere(x: FloatArray, known: dict[str, Any]) -> Any:
    return np.abs(np.linalg.norm(x, axis=-1) - 1.0) <= _NEAR


def _positive_definite(x: FloatArray, known: dict[str, Any]) -> Any:
    finite = np.isfinite(x).all(axis=(-2, -1))
    x = np.where(spread(finite, x), x, np.eye(x.shape[-1]))
    size = np.abs(x).max(axis=(-2, -1), initial=0.0)
    mirrored = np.abs(x - np.swapaxes(x, -1, -2)).max(axis=(-2, -1), initial=0.0) <= _NEAR * size
    return finite & mirrored & (np.linalg.eigvalsh(x)[..., 0] > 0.0)


_INSIDE: dict[str, Callable[[FloatArray, dict[str, Any]], Any]] = {
    "binary": lambda x, known: (x == 0.0) | (x == 1.0),
    "codes": _codes,
    "counts": lambda x, known: _whole(x) & (x >= 0.0),
    "trials": lambda x, known: _whole(x) & (x >= 0.0) & (x <= known["n_trials"]),
    "positive_integers": lambda x, known: _whole(x) & (x >= 1.0),
    "real": lambda x, known: np.isfinite(x),
    "non_negative": lambda x, known: np.isfinite(x) & (x >= 0.0),
    "positive": lambda x, known: np.isfinite(x) & (x > 0.0),
    "unit": lambda x, known: (x >= 0.0) & (x <= 1.0),
    "angle": lambda x, known: np.isfinite(x),
    "composition": _composition,
    "binary_vector": lambda x, known: ((x == 0.0) | (x == 1.0)).all(axis=-1),
    "vector": lambda x, known: np.isfinite(x).all(axis=-1),
    "simplex": _simplex,
    "sphere": _sphere,
    "positive_definite": _positive_definite,
}
_ANCHORS: dict[str, float] = {"positive_integers": 1.0, "non_negative": 1.0, "positive": 1.0, "unit": 0.5}


def inside(kind: str, x: FloatArray, known: dict[str, Any]) -> Any:
    """Which points lie in the support, boundary included where it has one; without the event's axes."""
    return _INSIDE[kind](x, known)


def anchor(kind: str, event_shape: tuple[int, ...]) -> Any:
    """A point at which every formula of a family with this support is finite."""
    if kind == "simplex":
        return np.full(event_shape, 1.0 / event_shape[0])
    if kind == "positive_definite":
        return np.eye(event_shape[0])
    return np.full(event_shape, _ANCHORS.get(kind, 0.0))


def spread(mask: Any, points: FloatArray) -> Any:
    """A mask over points as a mask over their entries."""
    return np.reshape(mask, np.shape(mask) + (1,) * (points.ndim - np.ndim(mask)))
