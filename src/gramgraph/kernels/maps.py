"""Maps of points, with or without parameters: what a kernel is warped or scaled by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.kernels.inputs import KernelError, as_points
from gramgraph.kernels.parameters import Parametrized, parameter
from gramgraph.typing import FloatArray


class Map(Parametrized, ABC):
    """φ: points (n, d) to points (n, e), row by row, with its reverse beside it.

    Parameters
    ----------
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels.maps import FunctionMap
    >>> isinstance(FunctionMap(np.square), Map)
    True
    """

    @abstractmethod
    def __call__(self, X: FloatArray) -> FloatArray:
        """φ(X), shape (n, e)."""

    @abstractmethod
    def pull(self, X: FloatArray, bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """∂loss/∂theta (p,) and ∂loss/∂X (n, d), from bar = ∂loss/∂φ(X)."""


@dataclass(frozen=True, eq=False, repr=False)
class LinearMap(Map):
    """φ(x) = Aᵀx with A a (d, e) matrix of parameters.

    Parameters
    ----------
    A : the matrix.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> LinearMap([[1.0], [2.0]])([[1.0, 1.0]])
    array([[3.]])
    """

    A: FloatArray = parameter(bounds=(-1e5, 1e5), transform="identity", max_ndim=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.A) != 2:
            raise KernelError(f"LinearMap.A: expected a matrix (d, e), got shape {np.shape(self.A)}.")

    def __call__(self, X: FloatArray) -> FloatArray:
        """X A, shape (n, e)."""
        X = as_points(X)
        if X.shape[1] != len(self.A):
            raise KernelError(f"LinearMap: expected points with {len(self.A)} columns, as A has rows; got {X.shape}.")
        return X @ self.A

    def pull(self, X: FloatArray, bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Exact."""
        return self.chain({"A": X.T @ bar}), bar @ self.A.T


@dataclass(frozen=True, eq=False, repr=False)
class FunctionMap(Map):
    """A plain function of all points, row by row. Its gradient by the points is numeric (central differences).

    Parameters
    ----------
    function : the function itself.
    step : of the central differences.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> RBF().warp(FunctionMap(np.square)).gram([[-1.0], [1.0]]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    function: Callable[[Any], Any]
    step: float = 6e-6

    def __call__(self, X: FloatArray) -> FloatArray:
        """function(X), one row per point."""
        found = as_points(self.function(X), name=f"{getattr(self.function, '__name__', 'function')}(X)")
        if len(found) != len(X):
            raise KernelError(f"a map must give one row per point: expected {len(X)} rows, got {found.shape}.")
        return found

    def pull(self, X: FloatArray, bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """2 d evaluations; relative error about 1e-10 for smooth functions of moderate size."""
        X = as_points(X)
        slopes = np.empty_like(X)
        for c in range(X.shape[1]):
            h = self.step * np.maximum(1.0, np.abs(X[:, c]))
            up, down = X.copy(), X.copy()
            up[:, c] += h
            down[:, c] -= h
            slopes[:, c] = ((self(up) - self(down)) * bar).sum(1) / (up[:, c] - down[:, c])
        return np.zeros(0), slopes

    def formula(self, digits: int | None = None) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", None) or repr(self.function)


def as_map(phi: Map | Callable[[Any], Any]) -> Map:
    """A map unchanged, or a plain function wrapped as a `FunctionMap`."""
    if isinstance(phi, Map):
        return phi
    if not callable(phi):
        raise KernelError(f"expected a Map or a function of the points, got {phi!r}.")
    return FunctionMap(phi)
