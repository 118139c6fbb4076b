"""What users hand to a Gaussian, looked at once: coordinates, evidence, linear maps, points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph.distributions._check import array, covariance_like, matrix, vector
from gramgraph.distributions._root import psd_root
from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.typing import FloatArray

_FORMS = ("gain", "precision")


def check_form(form: str) -> None:
    """`form` must be "gain" or "precision"."""
    if form not in _FORMS:
        raise ModelError(f"form must be 'gain' or 'precision'; it is {form!r}.{did_you_mean(form, _FORMS)}")


def linear_map(A: Any, b: Any, noise: Any, d: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A (k, d), b (k,) and the noise covariance (k, k) of y = A x + b + ε."""
    A = array("A", A)
    if A.ndim == 0:
        A = A * np.eye(d)
    elif A.ndim == 1:
        A = A[None]
    A = matrix("A", A, (None, d))
    k = len(A)
    shift = np.zeros(k) if b is None else vector("b", b, k)
    if noise is None:
        return A, shift, np.zeros((k, k))
    R = covariance_like("noise", noise, k)
    diagonal = np.diagonal(R)
    if (diagonal < 0.0).any() or np.count_nonzero(R) != np.count_nonzero(diagonal):
        psd_root(R, "noise")  # for its error; diagonal noise needs no factorization
    return A, shift, R


def coordinates(indices: Any, d: int) -> list[int]:
    """Numbers of coordinates, each once and from 0 to d − 1; negative ones count from the end."""
    found = [indices] if isinstance(indices, (int, np.integer)) else list(indices)
    for i in found:
        if not isinstance(i, (int, np.integer)) or isinstance(i, bool):
            raise ModelError(f"Coordinates are integers from 0 to {d - 1}; got {i!r}.")
        if not -d <= i < d:
            raise ModelError(f"There is no coordinate {i}: this Gaussian has {d}, from 0 to {d - 1}.")
    out = [int(i) % d for i in found]
    if not out:
        raise ModelError("At least one coordinate must be named.")
    if len(dict.fromkeys(out)) != len(out):
        raise ModelError(f"Every coordinate may be named once; got {found}.")
    return out


def split_evidence(which: Any, values: Any, d: int) -> tuple[list[int], FloatArray, list[int]]:
    """Observed coordinates, their values, and the coordinates that are left."""
    if isinstance(which, Mapping):
        if values is not None:
            raise ModelError("Give either a mapping {coordinate: value}, or coordinates and values.")
        which, values = list(which.keys()), array("values", list(which.values()))
    elif values is None:
        raise ModelError("Values are missing: condition({0: 1.5}) or condition([0], [1.5]).")
    seen = coordinates(which, d)
    x = vector("values", values, len(seen))
    observed = set(seen)
    rest = [i for i in range(d) if i not in observed]
    if not rest:
        raise ModelError("All coordinates are observed: nothing is left to have a distribution.")
    return seen, x, rest


def rows_of(X: Any, d: int) -> tuple[FloatArray, bool]:
    """Points as rows (n, d), and whether one point was given alone."""
    X = array("X", X)
    if d == 1 and X.ndim <= 1:
        return X.reshape(-1, 1), X.ndim == 0
    if X.ndim == 1 and len(X) == d:
        return X[None], True
    if X.ndim != 2 or X.shape[1] != d:
        raise ModelError(f"X must be one point of shape ({d},) or rows of shape (n, {d}); its shape is {X.shape}.")
    return X, False
