"""Points that are not a matrix of numbers: words, sets, graphs, and frames with columns of several kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from gramgraph.data.frames import is_frame
from gramgraph.kernels.tables import Table, columns_read, names_columns, reads_everything
from gramgraph.machines.sparse import is_sparse

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel


def read_points(estimator: Any, kernel: Kernel, X: Any, *, reset: bool) -> Any | None:
    """The points as the kernel reads them; None where they are a matrix of numbers, which scikit-learn checks."""
    if is_frame(X):
        return _read_frame(estimator, kernel, X, reset=reset)
    if isinstance(X, tuple) and _has_parts(kernel):
        return kernel.prepare(X)
    if is_matrix(X):
        return None
    if columns_read(kernel) and not isinstance(X, tuple):  # rows of several kinds: NumPy would write numbers as text
        X = _rows_of_objects(X)
    elif hasattr(X, "to_numpy") and not hasattr(X, "columns"):
        X = X.to_numpy()
    return kernel.prepare(X)


def _read_frame(estimator: Any, kernel: Kernel, X: Any, *, reset: bool) -> Any | None:
    asked = columns_read(kernel)
    if not names_columns(kernel) and _is_numeric(X):
        return None
    if not asked:  # a kernel of labels or words that reads whole rows
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        values = Table.of(X).to_numpy()
        return kernel.prepare(values[:, 0] if values.shape[1] == 1 else values)
    if reset:
        validate_data(estimator, X, reset=True, skip_check_array=True)
    table = Table.of(X, None if reset else getattr(estimator, "feature_names_in_", None))
    table.check_present(list(table.columns) if reads_everything(kernel) else asked)
    return kernel.prepare(table)


def _has_parts(kernel: Kernel) -> bool:
    """Whether points are tuples of parts, one a kernel of a tensor product: no matrix, even where all are numbers."""
    from gramgraph.kernels.base import Kernel
    from gramgraph.kernels.input_maps import Tensor

    if isinstance(kernel, Tensor):
        return True
    return any(_has_parts(part.value) for part in kernel._parts() if isinstance(part.value, Kernel))


def _is_numeric(X: Any) -> bool:
    """Whether every column holds numbers, by the kind that the frame states or by its values."""
    return all(values.dtype.kind in "fiub" for values in Table.of(X).arrays.values())


def is_matrix(X: Any) -> bool:
    """Whether X is a matrix of numbers (array, frame or nested list), which every vector kernel takes."""
    if is_sparse(X) or is_frame(X):
        return True
    try:
        array = np.asarray(X)
    except ValueError:
        return False
    return array.ndim == 2 and array.dtype.kind in "fiub"


def _rows_of_objects(X: Any) -> Any:
    if isinstance(X, np.ndarray) or hasattr(X, "iloc"):
        return X
    try:
        rows = [list(row) if not isinstance(row, str) else [row] for row in X]
    except TypeError:
        return X
    if len({len(row) for row in rows}) != 1:
        return X
    found = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            found[i, j] = entry
    return found
