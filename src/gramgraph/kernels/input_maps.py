"""Kernels made by mapping the inputs: warps, columns, tensor products, scaling by a function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from gramgraph.data.frames import is_frame
from gramgraph.kernels.algebra import Power, Product, Scale, Sum, bracket, product_weights
from gramgraph.kernels.base import Cotangent, Kernel, Pull
from gramgraph.kernels.inputs import KernelError, as_points, count
from gramgraph.kernels.maps import Map, as_map
from gramgraph.kernels.tables import columns_of
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class FunctionScaled(Kernel):
    """f(x) k(x, x′) f(x′), with f a function of the points (n, d) that gives n numbers.

    Parameters
    ----------
    base : the kernel k inside.
    function : the function itself.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import Constant
    >>> FunctionScaled(Constant(1.0), lambda X: X[:, 0]).gram([[2.0], [3.0]])
    array([[4., 6.],
           [6., 9.]])
    """

    base: Kernel
    function: Map

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", as_map(self.function))
        super().__post_init__()

    def _values(self, X: Any) -> FloatArray:
        found = self.function(X)
        if found.shape[1] != 1:
            raise KernelError(f"f in f(x) k f(x′): expected one number per point, got shape {found.shape}.")
        return found[:, 0]

    def _diag(self, X: Any) -> FloatArray:
        return self._values(X) ** 2 * self.base.diag(X)

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        base, pull_base = self.base.pullback(X, Y, inputs=inputs)
        f = self._values(X)
        g = f if Y is None else self._values(Y)

        def pull(bar_K: FloatArray) -> Cotangent:
            c = pull_base(f[:, None] * bar_K * g)
            W = bar_K * base
            left, right = W @ g, f @ W
            if Y is None:
                by_map, X_bar = self.function.pull(X, (left + right)[:, None])
                Y_bar = None
            else:
                by_map, X_bar = self.function.pull(X, left[:, None])
                more, Y_bar = self.function.pull(Y, right[:, None])
                by_map = by_map + more
            gradients = {"base": c.theta, "function": by_map}
            if not inputs:
                return self.cotangent(gradients)
            return self.cotangent(gradients, c.X + X_bar, None if Y is None else c.Y + Y_bar)  # type: ignore[operator]

        return f[:, None] * base * g, pull

    def formula(self, digits: int | None = None) -> str:
        """f(x) * k * f(x′)."""
        return f"{bracket(self.base, (Sum, Product, Scale, Power), digits)}.scaled_by({self.function.formula(digits)})"


@dataclass(frozen=True, eq=False, repr=False)
class Warp(Kernel):
    """k(φ(x), φ(x′)) with φ a function or a `Map`, whose parameters are learned with those of k.

    Parameters
    ----------
    base : the kernel k inside.
    phi : the map of the points.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import Linear
    >>> Warp(Linear(), lambda X: X**2).gram([[1.0], [2.0]])
    array([[ 1.,  4.],
           [ 4., 16.]])
    """

    base: Kernel
    phi: Map

    def __post_init__(self) -> None:
        object.__setattr__(self, "phi", as_map(self.phi))
        super().__post_init__()

    def _diag(self, X: Any) -> FloatArray:
        return self.base.diag(self.phi(X))

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        return self.base.gram(self.phi(X), None if Y is None else self.phi(Y))

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        learned = inputs or len(self.phi.theta) > 0
        K, pull_base = self.base.pullback(self.phi(X), None if Y is None else self.phi(Y), inputs=learned)

        def pull(bar_K: FloatArray) -> Cotangent:
            c = pull_base(bar_K)
            if not learned:
                return self.cotangent({"base": c.theta, "phi": np.zeros(0)})
            by_map, X_bar = self.phi.pull(X, c.X)  # type: ignore[arg-type]
            Y_bar = None
            if Y is not None:
                more, Y_bar = self.phi.pull(Y, c.Y)  # type: ignore[arg-type]
                by_map = by_map + more
            return self.cotangent({"base": c.theta, "phi": by_map}, *((X_bar, Y_bar) if inputs else (None, None)))

        return K, pull

    def formula(self, digits: int | None = None) -> str:
        """k.warp(φ)."""
        base = bracket(self.base, (Sum, Product, Scale, Power), digits)
        return f"{base}.warp({self.phi.formula(digits)})"


@dataclass(frozen=True, eq=False, repr=False)
class OnColumns(Kernel):
    """A kernel on some columns of a matrix (by number) or of a data frame (by name).

    Parameters
    ----------
    base : the kernel k inside.
    columns : numbers or names of columns.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> RBF().on([0]).gram([[0.0, 5.0], [0.0, 7.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    base: Kernel
    columns: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.columns, (str, int, np.integer)):
            object.__setattr__(self, "columns", tuple(self.columns))

    def prepare(self, X: Any) -> Any:
        """Unchanged: only the selected columns are read."""
        return X

    def _diag(self, X: Any) -> FloatArray:
        return self.base.diag(columns_of(X, self.columns))

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        return self.base.gram(columns_of(X, self.columns), None if Y is None else columns_of(Y, self.columns))

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        A = columns_of(X, self.columns)
        B = None if Y is None else columns_of(Y, self.columns)
        K, pull_base = self.base.pullback(A, B, inputs=inputs)
        single = isinstance(self.columns, (str, int, np.integer))
        shapes = [None if Z is None else as_points(Z).shape for Z in (X, Y)] if inputs else [None, None]

        def back(part: FloatArray | None, shape: tuple[int, int] | None) -> FloatArray | None:
            if part is None or shape is None:
                return None
            whole = np.zeros(shape)
            for c, column in enumerate([self.columns] if single else self.columns):
                whole[:, column] += part[:, c]  # a column may be named twice
            return whole

        def pull(bar_K: FloatArray) -> Cotangent:
            c = pull_base(bar_K)
            return self.cotangent({"base": c.theta}, back(c.X, shapes[0]), back(c.Y, shapes[1]))  # type: ignore[arg-type]

        return K, pull

    def formula(self, digits: int | None = None) -> str:
        """k.on(columns)."""
        shown = list(self.columns) if isinstance(self.columns, tuple) else self.columns
        return f"{bracket(self.base, (Sum, Product, Scale, Power), digits)}.on({shown!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Tensor(Kernel):
    """k₁(x, x′) k₂(z, z′) … on mixed inputs: tuples (x's, z's, …), or the named columns of a data frame.

    Gradients by the inputs stand side by side, (n, Σ d_j): the columns of the parts that are vectors, in their order;
    parts of other kinds (words, labels) have none. With `columns` and a matrix they have the shape of the matrix.

    Parameters
    ----------
    kernels : one a part of the input.
    columns : numbers or names of columns.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> Tensor((RBF(), RBF())).gram(([0.0, 0.0], [1.0, 1.0]))
    array([[1., 1.],
           [1., 1.]])
    """

    kernels: tuple[Kernel, ...]
    columns: tuple[Any, ...] | None = None

    def prepare(self, X: Any) -> Any:
        """A tuple with the part of each kernel."""
        want = len(self.kernels)
        if isinstance(X, tuple):
            if len(X) != want:
                raise KernelError(f"Tensor: expected a tuple of {want} parts, one a kernel; got {len(X)}.")
            parts = X
        elif self.columns is not None:
            if len(self.columns) != want:
                raise KernelError(f"Tensor.columns: expected {want} entries, one a kernel; got {len(self.columns)}.")
            parts = tuple(columns_of(X, columns) for columns in self.columns)
        else:
            raise KernelError(
                f"Tensor: expected a tuple of {want} parts, or columns=… for a frame; got {type(X).__name__}."
            )
        found = tuple(kernel.prepare(part) for kernel, part in zip(self.kernels, parts, strict=True))
        sizes = [count(part) for part in found]
        if len(set(sizes)) > 1:
            raise KernelError(f"Tensor: expected parts with the same number of points; got {sizes}.")
        return found

    def _diag(self, X: Any) -> FloatArray:
        return reduce(np.multiply, [k.diag(x) for k, x in zip(self.kernels, X, strict=True)])

    def pullback(self, X: Any, Y: Any | None = None, /, *, inputs: bool = False) -> tuple[FloatArray, Pull]:
        """As of any kernel; gradients by a matrix, of which `columns` names parts, go back to its columns."""
        K, pull = super().pullback(X, Y, inputs=inputs)
        if not inputs or isinstance(X, tuple):
            return K, pull
        parts = [[part] if isinstance(part, (str, int, np.integer)) else part for part in self.columns or ()]
        wanted: list[Any] = [column for part in parts for column in part]
        if is_frame(X):
            raise KernelError("Tensor: no gradient by a data frame. Try: a matrix, with columns by number.")

        def back(part: FloatArray | None, points: Any) -> FloatArray | None:
            if part is None:
                return None
            whole: FloatArray = np.zeros_like(as_points(points))
            for c, column in enumerate(wanted):
                whole[:, column] += part[:, c]
            return whole

        def scattered(bar_K: FloatArray) -> Cotangent:
            c = pull(bar_K)
            return c._replace(X=back(c.X, X), Y=back(c.Y, Y))

        return K, scattered

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        others = [None] * len(self.kernels) if Y is None else Y
        numeric = [inputs and isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind == "f" for x in X]
        if inputs and not any(numeric):
            raise KernelError("Tensor: none of its parts is a matrix of numbers, so there is no gradient by them.")
        done = [
            kernel.pullback(x, y, inputs=some)
            for kernel, x, y, some in zip(self.kernels, X, others, numeric, strict=True)
        ]

        def pull(bar_K: FloatArray) -> Cotangent:
            found = [part(weight) for (_, part), weight in zip(done, product_weights(bar_K, done), strict=True)]
            sides = [[c.X for c in found], [c.Y for c in found]] if inputs else [[], []]
            side_by_side = [np.hstack(kept) if (kept := [g for g in side if g is not None]) else None for side in sides]
            return self.cotangent({f"kernels[{i}]": c.theta for i, c in enumerate(found)}, *side_by_side)

        return reduce(np.multiply, [K for K, _ in done]) if len(done) > 1 else done[0][0].copy(), pull
