"""Kernels given by a matrix or by a function of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import did_you_mean
from gramgraph.kernels.base import Cotangent, Kernel, KernelError, Parametrized, Pull, parameter
from gramgraph.kernels.parameters import show_number
from gramgraph.typing import FloatArray, IntArray

_STEP = 6e-6  # near the cube root of the rounding unit, where rounding and curvature errors balance


@dataclass(frozen=True, eq=False, repr=False)
class Precomputed(Kernel):
    """k(i, j) = K[i, j] for a given matrix; inputs are indices into it. O(n m).

    `check=True` looks at the eigenvalues, O(N³), and refuses a matrix that is not positive semi-definite to rounding.

    Parameters
    ----------
    matrix : K, (N, N).
    check : whether eigenvalues are looked at.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Precomputed([[2.0, 1.0], [1.0, 3.0]]).gram([1, 0], [1])
    array([[3.],
           [1.]])
    """

    matrix: FloatArray
    check: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            K = np.array(self.matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise KernelError(f"Precomputed: expected a square matrix of numbers, got {self.matrix!r:.60}.") from None
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise KernelError(f"Precomputed: expected a square matrix (n, n), got shape {K.shape}.")
        if not np.isfinite(K).all():
            raise KernelError("Precomputed: expected finite numbers; the matrix has NaN or infinite entries.")
        size = float(np.abs(K).max(initial=0.0))
        gap = float(np.abs(K - K.T).max(initial=0.0))
        if gap > 1e-8 * size:
            raise KernelError(f"Precomputed: expected a symmetric matrix; it differs from its transpose by {gap:.3g}.")
        K = 0.5 * (K + K.T)
        if self.check and len(K):
            least = float(np.linalg.eigvalsh(K)[0])
            if least < -1e-8 * len(K) * size:
                raise KernelError(
                    f"Precomputed: expected a positive semi-definite matrix; its smallest eigenvalue is {least:.6g}. "
                    f"Try: add {-least:.3g} to its diagonal, or check=False."
                )
        K.flags.writeable = False
        object.__setattr__(self, "matrix", K)

    def prepare(self, X: Any) -> IntArray:
        """Indices (n,) or (n, 1), from 0 on."""
        given = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
        index = given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given
        if index.ndim != 1 or (index.size and (index.dtype.kind not in "iuf" or (index != np.floor(index)).any())):
            raise KernelError(
                f"Precomputed: expected indices (n,), whole numbers below {len(self.matrix)}; got {given.dtype} values "
                f"of shape {given.shape}."
            )
        found: IntArray = index.astype(np.int64)
        if found.size and (found.min() < 0 or found.max() >= len(self.matrix)):
            raise KernelError(
                f"Precomputed: expected indices from 0 to {len(self.matrix) - 1}, got {found.min()} to {found.max()}."
            )
        return found

    def _diag(self, X: IntArray) -> FloatArray:
        return np.diag(self.matrix)[X]

    def _gram(self, X: IntArray, Y: IntArray | None) -> FloatArray:
        return self.matrix[np.ix_(X, X if Y is None else Y)]

    def _pullback(self, X: IntArray, Y: IntArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        if inputs:
            raise KernelError("Precomputed: its inputs are indices, so there is no gradient by them.")
        return self._gram(X, Y), lambda bar: self.cotangent({})


@dataclass(frozen=True, eq=False, repr=False)
class _Real(Parametrized):
    """A named number on the whole line."""

    name: str
    value: float = parameter(bounds=(-1e5, 1e5), transform="identity")

    def formula(self, digits: int | None = None) -> str:
        """`name=value`."""
        return f"{self.name}={show_number(self.value, digits)}"


@dataclass(frozen=True, eq=False, repr=False)
class _Positive(Parametrized):
    """A named positive number."""

    name: str
    value: float = parameter()

    def formula(self, digits: int | None = None) -> str:
        """`name=value`."""
        return f"{self.name}={show_number(self.value, digits)}"


@dataclass(frozen=True, eq=False, repr=False)
class FunctionKernel(Kernel):
    """k(x, x′) = function(x, x′, **parameters), for inputs of any kind.

    `parameters` {name: number} can be learned; those in `positive` stay so (their logarithm stands in theta). With
    `vectorized=True` the function takes two sequences of points and gives the (n, m) matrix; otherwise it is called
    once a pair, for one half of them without Y. The gradient is numeric: central differences, two Gram matrices a
    parameter, each contracted at once, so memory is O(n m); points that are rows of real numbers have one too. That the
    function is positive definite is the user's promise, `positive_definite`.

    Parameters
    ----------
    function : the function itself.
    parameters : names and numbers that can be learned.
    positive : names of parameters that stay positive.
    vectorized : whether the function takes all points at once.
    positive_definite : the promise that it is.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> laplace = lambda x, y, width: np.exp(-abs(x - y) / width)
    >>> k = FunctionKernel(laplace, parameters={"width": 2.0}, positive=["width"])
    >>> k.gram([0.0, 2.0]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    >>> K, pull = k.pullback([0.0, 2.0])
    >>> pull(np.ones((2, 2))).theta.round(4)
    array([0.7358])
    """

    function: Callable[..., Any]
    parameters: Any = ()
    positive: tuple[str, ...] = ()
    vectorized: bool = False
    positive_definite: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(
            self, "positive", (self.positive,) if isinstance(self.positive, str) else tuple(self.positive)
        )
        if isinstance(self.parameters, Mapping):
            for name in self.positive:
                if name not in self.parameters:
                    hint = did_you_mean(name, self.parameters)
                    raise KernelError(f"FunctionKernel.positive: {name!r} is not one of the parameters.{hint}")
            made = [(_Positive if name in self.positive else _Real)(name, v) for name, v in self.parameters.items()]
            object.__setattr__(self, "parameters", tuple(made))

    @property
    def values(self) -> dict[str, float]:
        """The parameters as the function gets them."""
        return {part.name: part.value for part in self.parameters}

    def prepare(self, X: Any) -> Any:
        """Arrays as they are, other sequences as lists: what points are is the function's affair."""
        if hasattr(X, "to_numpy"):
            return X.to_numpy()
        return X if isinstance(X, (np.ndarray, list)) else list(X)

    def _diag(self, X: Any) -> FloatArray:
        values = self.values
        if self.vectorized:
            return np.array([self._gram(X[i : i + 1], None)[0, 0] for i in range(len(X))])
        return np.array([float(self.function(x, x, **values)) for x in X])

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        values, Z = self.values, X if Y is None else Y
        if self.vectorized:
            K = np.array(self.function(X, Z, **values), dtype=np.float64)
            if K.shape != (len(X), len(Z)):
                raise KernelError(
                    f"FunctionKernel: expected a matrix {(len(X), len(Z))} from the vectorized function, got {K.shape}."
                )
            return K
        K = np.empty((len(X), len(Z)))
        for i, x in enumerate(X):
            for j in range(i if Y is None else 0, len(Z)):
                K[i, j] = self.function(x, Z[j], **values)
                if Y is None:
                    K[j, i] = K[i, j]
        return K

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        slopes = self._slopes(X, Y) if inputs else None

        def pull(bar: FloatArray) -> Cotangent:
            theta = self.theta
            found = np.empty(len(theta))
            for i, t in enumerate(theta):
                step = np.zeros(len(theta))
                step[i] = _STEP * max(1.0, abs(t))
                change = self.with_theta(theta + step)._gram(X, Y)
                change -= self.with_theta(theta - step)._gram(X, Y)
                found[i] = np.vdot(bar, change) / (2.0 * step[i])
            return Cotangent(found) if slopes is None else Cotangent(found, *slopes(bar))

        return self._gram(X, Y), pull

    def _slopes(self, X: Any, Y: Any | None) -> Callable[[FloatArray], tuple[FloatArray, ...]]:
        """bar_K → gradients by the points, from central differences: two Gram matrices a column."""
        for Z in (X, Y):
            if Z is not None and (np.asarray(Z).dtype.kind != "f" or np.ndim(Z) > 2):
                raise KernelError(
                    "FunctionKernel: expected points that are rows of real numbers for a gradient by them; other "
                    "kinds have none."
                )

        def one_sided(A: FloatArray, B: FloatArray, bar: FloatArray) -> FloatArray:
            columns = A[:, None] if A.ndim == 1 else A
            out = np.empty(columns.shape)
            for c in range(columns.shape[1]):
                step = _STEP * np.maximum(1.0, np.abs(columns[:, c]))
                up, down = columns.copy(), columns.copy()
                up[:, c] += step
                down[:, c] -= step
                change = self._gram(up.reshape(A.shape), B) - self._gram(down.reshape(A.shape), B)
                out[:, c] = (bar * change).sum(axis=1) / (up[:, c] - down[:, c])
            return out

        def slopes(bar: FloatArray) -> tuple[FloatArray, ...]:
            if Y is None:  # k(x_i, x_j) moves with both of its points, alike by symmetry
                return (one_sided(np.asarray(X), np.asarray(X), bar + bar.T),)
            return one_sided(np.asarray(X), np.asarray(Y), bar), one_sided(np.asarray(Y), np.asarray(X), bar.T)

        return slopes
