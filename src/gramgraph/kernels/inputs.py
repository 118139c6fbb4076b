"""The door: inputs of kernels, looked at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import GramGraphError
from gramgraph.typing import FloatArray


class KernelError(GramGraphError, ValueError):
    """A kernel, or an input of it, that cannot be used.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> try:
    ...     RBF(-1.0)
    ... except KernelError:
    ...     print("not a kernel")
    not a kernel
    """


def as_points(X: Any, *, name: str = "X") -> FloatArray:
    """Points as a finite float64 matrix (n, d).

    One axis is read as n numbers on the line, a column (n, 1); a single point of d numbers is written [[…]].

    Parameters
    ----------
    X : points.
    name : how an error calls them.

    Examples
    --------
    >>> as_points([1, 2, 3]).shape
    (3, 1)
    """
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.flags.c_contiguous and X.shape[1]:
        flat = X.ravel()
        if np.vdot(flat, flat) < np.inf:  # all are finite: one product tells, and these points need nothing else
            return X
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise KernelError(f"{name}: expected a dense matrix (n, d), got a sparse one. Try: {name}.toarray().")
    try:
        array = X if isinstance(X, np.ndarray) else np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    except ValueError:
        raise KernelError(f"{name}: expected a matrix (n, d), rows of equal length; they differ in length.") from None
    if array.dtype.kind in "USc" or (array.dtype.kind == "O" and any(isinstance(v, str) for v in array.ravel()[:1000])):
        raise KernelError(
            f"{name}: expected numbers, a matrix (n, d); got {array.dtype} values of shape {array.shape}. "
            "Kernels of words and labels are Delta, Spectrum and others; mixed columns go through .on(columns)."
        )
    try:
        array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise KernelError(f"{name}: expected numbers, a matrix (n, d); {error}.") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise KernelError(
            f"{name}: expected a matrix (n, d) of n points with d ≥ 1 columns, or n numbers; got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise KernelError(
            f"{name}: expected finite numbers; {name}[{row}, {column}] is {array[row, column]}. "
            "Try: leave such rows out, or fill them in."
        )
    return array


def same_columns(X: Any, Y: Any) -> None:
    """Refuse matrices with different numbers of columns; other inputs are their kernel's own affair."""
    if isinstance(X, np.ndarray) and isinstance(Y, np.ndarray) and X.ndim == 2 and Y.ndim == 2:
        if X.shape[1] != Y.shape[1]:
            raise KernelError(
                f"X and Y: expected the same number of columns; X is {X.shape}, Y is {Y.shape}."
                + (" A list of numbers is read as a column: write one point as [[…]]." if Y.shape[1] == 1 else "")
            )


def count(X: Any) -> int:
    """Number of points; a tuple holds the parts of points, each part with all of them."""
    return count(X[0]) if isinstance(X, tuple) else int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take(X: Any, rows: slice) -> Any:
    """Some of the points."""
    if isinstance(X, tuple):
        return tuple(take(part, rows) for part in X)
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
