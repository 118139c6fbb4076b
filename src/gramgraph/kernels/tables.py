"""Points with named columns of several kinds: what a data frame becomes before kernels read its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.data.frames import is_frame, missing_cells, read_frame
from gramgraph.exceptions import did_you_mean, listing
from gramgraph.kernels.inputs import KernelError
from gramgraph.typing import Array

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel


class _Rows:
    """`table.iloc[rows]`, as frames have it."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __getitem__(self, rows: Any) -> Table:
        some = {name: column[rows] for name, column in self._table.arrays.items()}
        return Table(self._table.columns, some, len(np.arange(self._table.n)[rows]))


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, as NumPy arrays of any kind; rows are points. A name without an array was not requested.

    >>> table = Table.of({"a": [1.0, 2.0], "b": ["x", "y"]})
    >>> table.column("b").tolist(), table.iloc[1:].column("a").tolist()
    (['x', 'y'], [2.0])
    """

    columns: tuple[Any, ...]
    arrays: Mapping[Any, Array]
    n: int

    @classmethod
    def of(cls, frame: Any, names: Sequence[Any] | None = None) -> Table:
        """The columns of a frame of any kind, in the order of `names`."""
        if isinstance(frame, Table):
            return frame
        read = read_frame(frame, what="X")
        order = read.names if names is None else tuple(names)
        return cls(order, {name: read.array(name) for name in order if name in read}, read.n_rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and names."""
        return self.n, len(self.columns)

    def __len__(self) -> int:
        return self.n

    @property
    def iloc(self) -> _Rows:
        """Some of the rows: a slice or an array of their numbers."""
        return _Rows(self)

    def resolve(self, column: Any) -> Any:
        """The name of a column that is given by name, or by number where no such name is."""
        if column in self.columns:
            return column
        if isinstance(column, (int, np.integer)) and -len(self.columns) <= column < len(self.columns):
            return self.columns[column]
        return column

    def column(self, column: Any) -> Array:
        """One column, (n,)."""
        name = self.resolve(column)
        if name not in self.arrays:
            hint = did_you_mean(name, [str(known) for known in self.arrays])
            raise KernelError(f"{name!r} is not a column of the data. Columns: {listing(list(self.arrays))}.{hint}")
        return self.arrays[name]

    def to_numpy(self) -> Array:
        """All columns side by side, (n, d): numbers where all are numbers, else objects."""
        parts = [self.column(name) for name in self.columns]
        if all(part.dtype.kind in "fiub" for part in parts) and parts:
            return np.column_stack([part.astype(np.float64) for part in parts])
        whole = np.empty(self.shape, dtype=object)
        for j, part in enumerate(parts):
            whole[:, j] = part
        return whole

    def check_present(self, columns: Sequence[Any]) -> None:
        """Refuse columns that are missing, or hold missing or infinite values."""
        for column in columns:
            values = self.column(column)
            if values.dtype.kind == "f":
                bad = ~np.isfinite(values)
            elif values.dtype.kind == "O":
                bad = missing_cells(values)
            else:
                continue
            if bad.any():
                row = int(np.argmax(bad))
                raise KernelError(
                    f"Input X contains NaN, infinity or a missing value: column {self.resolve(column)!r} holds "
                    f"{values[row]} in row {row}. Try: leave such rows out, or fill them in."
                )


def columns_of(X: Any, columns: Any) -> Any:
    """Columns of a matrix (by number) or a data frame (by name, or by number where no such name is).

    One column comes as one axis, with values of any kind; a list of columns as a matrix.
    """
    single = isinstance(columns, (str, int, np.integer))
    wanted = [columns] if single else list(columns)
    if is_frame(X):
        X = Table.of(X)
    if isinstance(X, Table):
        found = [X.column(c) for c in wanted]
        return found[0] if single else found[0][:, None] if len(found) == 1 else _side_by_side(found)
    array = np.asarray(X)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise KernelError(f"columns {columns!r}: expected a matrix (n, d) or a data frame; got shape {array.shape}.")
    for c in wanted:
        if isinstance(c, str):
            raise KernelError(f"column {c!r} is given by name, which needs a data frame; got a matrix {array.shape}.")
        if not -array.shape[1] <= c < array.shape[1]:
            raise KernelError(f"column {c} does not exist: X has shape {array.shape}.")
    return array[:, wanted[0]] if single else array[:, wanted]


def _side_by_side(parts: list[Any]) -> Any:
    """Columns as one matrix: of numbers where all are, else of objects (NumPy would write numbers as text)."""
    if all(part.dtype.kind in "fiub" for part in parts):
        return np.column_stack(parts)
    whole = np.empty((len(parts[0]), len(parts)), dtype=object)
    for j, part in enumerate(parts):
        whole[:, j] = part
    return whole


def joined_tables(a: Any, b: Any) -> Table:
    """The rows of two tables or frames, one after the other."""
    a, b = Table.of(a), Table.of(b)
    both = {name: np.concatenate([a.arrays[name], b.column(name)]) for name in a.arrays}
    return Table(a.columns, both, a.n + b.n)


def _walk(kernel: Kernel) -> Iterator[Any]:
    """The column lists that parts of a kernel ask for; None for a part that reads whole points."""
    from gramgraph.kernels.input_maps import OnColumns, Tensor
    from gramgraph.kernels.stationary import Constant, White

    if isinstance(kernel, OnColumns):
        yield _listed(kernel.columns)
    elif isinstance(kernel, Tensor) and kernel.columns is not None:
        yield [name for part in kernel.columns for name in _listed(part)]
    elif not isinstance(kernel, (Constant, White)):  # which count points only
        from gramgraph.kernels.base import Kernel as Base

        parts = [part.value for part in kernel._parts() if isinstance(part.value, Base)]
        if not parts:
            yield None
        for part in parts:
            yield from _walk(part)


def _listed(columns: Any) -> list[Any]:
    return [columns] if isinstance(columns, (str, int, np.integer)) else list(columns)


def columns_read(kernel: Kernel) -> tuple[Any, ...]:
    """Columns that parts of a kernel ask for, by name or number, each once, in the order of the formula.

    >>> from gramgraph.kernels import RBF, Delta, White
    >>> columns_read(RBF().on("age") * Delta().on(["town", "age"]) + White(0.1))
    ('age', 'town')
    """
    return tuple(dict.fromkeys(name for names in _walk(kernel) if names is not None for name in names))


def names_columns(kernel: Kernel) -> bool:
    """Whether a part of the kernel asks for a column by name."""
    return any(isinstance(name, str) for name in columns_read(kernel))


def reads_everything(kernel: Kernel) -> bool:
    """Whether a part of the kernel reads whole points, not some columns."""
    return any(names is None for names in _walk(kernel))


def own_copy(found: Any, given: Any) -> Any:
    """Points that the caller cannot change later: a copy of those parts that are still the caller's own objects."""
    if isinstance(found, tuple):
        parts = given if isinstance(given, tuple) and len(given) == len(found) else (given,) * len(found)
        return tuple(own_copy(a, b) for a, b in zip(found, parts, strict=True))
    if isinstance(found, Table):
        return replace(found, arrays={name: np.array(values) for name, values in found.arrays.items()})
    if isinstance(found, np.ndarray):
        return found.copy() if not isinstance(given, np.ndarray) or np.may_share_memory(found, given) else found
    return list(found) if found is given and isinstance(found, list) else found
