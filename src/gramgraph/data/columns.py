"""Frames as columns of codes: which kind each column is, what its states are, where cells are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.data.frames import Frame, read_frame
from gramgraph.data.kinds import kind_of
from gramgraph.data.texts import FEW, distinct_texts, text_codes
from gramgraph.exceptions import StateError, VariableError
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var, discrete

#: Cells of which a column is looked at, and objects among them up to which it is taken for one of few.
MANY_ROWS, FEW_OBJECTS = 1000, 50
#: Seconds that pandas takes more for a number among few.
_SAVED = 1.2e-8
#: The states of a variable of which nothing was said.
DEFAULT_STATES = ("no", "yes")


def position_of(name: str, names: tuple[str, ...]) -> int:
    """Position of a name; `VariableError` for one that is not there."""
    try:
        return names.index(name)
    except ValueError:
        raise VariableError.unknown(name, names) from None


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table of discrete columns as state indices, -1 where a cell is missing, with an optional weight for each row.

    Parameters
    ----------
    variables : of the columns, with their states.
    columns : state numbers of each row, -1 where a cell is missing.
    weights : one weight for each row, or None.

    Examples
    --------
    >>> import pandas as pd
    >>> table = code_table(pd.DataFrame({"sky": ["sun", "rain", None], "wet": [False, True, True]}))
    >>> table.variables, [column.tolist() for column in table.columns]
    ((sky{rain|sun}, wet{False|True}), [[1, 0, -1], [0, 1, 1]])
    """

    variables: tuple[Var, ...]
    columns: tuple[Array, ...]  # (rows,) each, the smallest signed integer type that holds the states
    weights: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(var.name for var in self.variables)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of states of each column."""
        return tuple(var.size for var in self.variables)

    @cached_property
    def matrix(self) -> Array:
        """All codes, (columns, rows); made at the first scan."""
        kind = max((column.dtype for column in self.columns), key=lambda t: t.itemsize, default=np.dtype(np.int8))
        out = np.empty((len(self.columns), len(self)), kind)
        for row, column in zip(out, self.columns, strict=True):
            row[:] = column
        return out

    @cached_property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return any(bool((column < 0).any()) for column in self.columns)

    @property
    def total(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(len(self)) if self.weights is None else float(self.weights.sum())

    def position(self, name: str) -> int:
        """Position of a column."""
        return position_of(name, self.names)

    def complete(self) -> CodedTable:
        """The rows without a missing cell."""
        shown = np.ones(len(self), bool)
        for column in self.columns:
            shown &= column >= 0
        return self if shown.all() else self.take(np.flatnonzero(shown))

    def take(self, rows: Array) -> CodedTable:
        """The table of some rows, which may repeat."""
        weights = None if self.weights is None else self.weights[rows]
        return CodedTable(self.variables, tuple(column[rows] for column in self.columns), weights)


def smallest_integer(states: int) -> Any:
    """The smallest signed integer type for codes -1 … states - 1."""
    return np.int8 if states <= 127 else np.int16 if states <= 32_767 else np.int32


def code_table(
    data: Any,
    variables: Sequence[Var] | None = None,
    *,
    weights: Any = None,
    needed: Sequence[str] | None = None,
) -> CodedTable:
    """The discrete columns of a frame as codes; with `variables`, in their order and with their states.

    Without them every column must be discrete, and its states are its categories, or the labels that occur, sorted.
    `weights` is the name of a column or one number for each row.

    Parameters
    ----------
    data : a pandas, polars or Arrow frame, or a dict of columns.
    variables : with their states, in the order that is wanted; None takes all columns as they are.
    weights : name of a column, or one number for each row.
    needed : names that must be columns; others may be absent.

    Examples
    --------
    >>> table = code_table({"sky": ["sun", "rain", None]})
    >>> table.variables, table.columns[0].tolist()
    ((sky{rain|sun},), [1, 0, -1])
    """
    frame = read_frame(data)
    weights, frame = _weights(weights, frame)
    if variables is None:
        found = [_infer(frame.column(name)) for name in (frame.names if needed is None else needed)]
        return CodedTable(tuple(v for v, _ in found), tuple(codes for _, codes in found), weights)
    codes = []
    for var in variables:
        if needed is not None and var.name not in needed and var.name not in frame:
            codes.append(np.full(frame.n_rows, -1, np.int8))
        else:
            codes.append(encode(frame.column(var.name), var))
    return CodedTable(tuple(variables), tuple(codes), weights)


def _weights(weights: Any, frame: Frame) -> tuple[FloatArray | None, Frame]:
    if weights is None:
        return None, frame
    if isinstance(weights, str):
        column = frame.column(weights)
        frame, weights = Frame(frame.table.drop(columns=weights)), column
    found = np.ascontiguousarray(weights, dtype=np.float64)
    if found.shape != (frame.n_rows,):
        raise VariableError(f"one weight for each of the {frame.n_rows} rows is expected, not shape {found.shape}")
    if not np.isfinite(found).all() or (found < 0).any():
        raise VariableError("weights are finite numbers from 0 on")
    return found, frame


def _infer(column: Any) -> tuple[Var, Array]:
    import pandas as pd

    known = None if getattr(column.dtype, "kind", "O") in "iufMm" else _distinct(column)
    found = kind_of(column, None if known is None else known[1])
    kind, labels = found.kind, list(found.labels)
    if kind == "date":  # asked for as a column of states
        labels = sorted(column.dropna().unique().tolist())
    if kind == "real":
        raise VariableError(
            f"column {column.name!r} is real-valued; counts need states. Cut it into intervals, for example by "
            "gg.data.Discretizer(bins=5).fit_transform(frame)"
        )
    if kind == "empty":
        raise VariableError(f"column {column.name!r} has nothing but missing cells: drop it, or give its states")
    var = discrete(str(column.name), labels)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return var, np.ascontiguousarray(column.cat.codes.to_numpy().astype(smallest_integer(len(labels)), copy=False))
    return var, encode(column, var, known=known)


def _distinct(column: Any) -> tuple[Array, list[Any]]:
    try:
        return distinct_values(column)
    except TypeError:  # a cell that has no hash
        raise VariableError(
            f"column {column.name!r} holds values that cannot be states (lists, sets or dicts)"
        ) from None


def distinct_values(column: Any) -> tuple[Array, list[Any]]:
    """Where each cell of a pandas column stands among its distinct values (-1: missing), and these values."""
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return column.array.codes, _labels(kind.categories)
    if (texts := _arrow_texts(column)) is not None:
        return distinct_texts(texts)
    if kind == np.dtype(object) and (found := _distinct_objects(column.to_numpy())) is not None:
        return found
    found, values = pd.factorize(column)
    return found, list(values)


def _labels(categories: Any) -> list[Any]:
    """The values of a pandas index; Arrow makes a list of its texts faster than pandas does."""
    texts = _arrow_texts(categories)
    return categories.tolist() if texts is None else texts.to_pylist()


def _arrow_texts(column: Any) -> Any:
    """The Arrow column of texts that a pandas column (or index) holds, or None."""
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.StringDtype):
        return column.array.__arrow_array__() if kind.storage.startswith("pyarrow") else None
    return column.array.__arrow_array__() if str(kind) in ("string[pyarrow]", "large_string[pyarrow]") else None


def _distinct_objects(cells: Array) -> tuple[Array, list[Any]] | None:
    """The same of a column of few objects that stand in many rows, by their addresses; None where they are many.

    Texts of a file, or of a choice among labels, are often the same objects, and numbers are compared faster.
    """
    import ctypes

    import pandas as pd

    step, odd = divmod(cells.strides[0], 8)
    if len(cells) < MANY_ROWS or step < 1 or odd:
        return None
    if len({id(cell) for cell in cells[:MANY_ROWS] if type(cell) is not float or cell == cell}) > FEW_OBJECTS:
        return None
    span = (len(cells) - 1) * step + 1  # a column of a table in the order of its rows is spread over it
    addresses = np.ctypeslib.as_array((ctypes.c_ssize_t * span).from_address(cells.ctypes.data))
    if (known := _by_address(addresses, step)) is None:
        return None
    place, found = known
    objects = np.empty(len(found), object)
    objects[:] = [ctypes.cast(address, ctypes.py_object).value for address in found.tolist()]
    codes, values = pd.factorize(objects)
    return _looked_up(place, np.append(codes, -1).astype(smallest_integer(len(values)))), list(values)


def _by_address(addresses: Array, step: int) -> tuple[Array, Array] | None:
    """Where each address, `step` after the one before, stands among the distinct ones (-1: a gap), and these."""
    import pandas as pd

    from gramgraph._numerics.compiling import pays
    from gramgraph._numerics.counts.objects import FEW as MOST
    from gramgraph._numerics.counts.objects import can_look_into, few_objects

    n = -(-len(addresses) // step)
    if can_look_into() and pays(few_objects, _SAVED * n):
        found, place = np.empty(MOST, np.int64), np.empty(n, np.int8)
        count = few_objects(addresses, step, id(float), found, place)
        return None if count < 0 else (place, found[:count])
    if len(set(addresses[: MANY_ROWS * step : step].tolist())) > FEW_OBJECTS:  # gaps that are objects of their own
        return None
    return pd.factorize(np.ascontiguousarray(addresses[::step]))


def _looked_up(places: Array, table: Array) -> Array:
    """table[places], where -1 is the last entry; small tables are looked up by bytes, which is much faster."""
    if table.itemsize > 1 or len(table) > 256:
        return table[places]
    entries = np.full(256, table[-1], np.int8)
    entries[: len(table) - 1] = table[:-1]
    return np.frombuffer(bytearray(places.astype(np.uint8)).translate(entries.tobytes()), np.int8)


def with_states_of(var: Var, frame: Any) -> Var:
    """The variable, or where its column shows other states the variable of the column."""
    if var.name not in frame.columns:
        return var
    try:
        encode(frame[var.name], var)
    except StateError:
        return code_table(frame, needed=[var.name]).variables[0]
    return var


def encode(column: Any, var: Var, *, hint: str = "", known: tuple[Array, list[Any]] | None = None) -> Array:
    """State indices of a pandas column, -1 where it is missing; `StateError` with the row of an unknown label.

    `hint` says what helps where a cell holds something else than a label; `known` are its distinct values, where they
    have been looked for.
    """
    if known is None and var.size <= FEW and (texts := _arrow_texts(column)) is not None:
        codes = text_codes(texts, var.discrete.find)
        if codes is not None:
            return codes
    try:
        found, labels = distinct_values(column) if known is None else known
    except TypeError:  # a cell that has no hash: a set, a list, a dict
        row = next(i for i, value in enumerate(column) if isinstance(value, (set, list, dict)))
        raise StateError(_no_label(column.index[row], var, column.iloc[row], hint)) from None
    kind = smallest_integer(max(var.size, 1))
    states = []
    for i, label in enumerate(labels):
        code = var.discrete.find(label)
        if code < 0 and (found == i).any():
            row = column.index[int(np.argmax(found == i))]
            if not isinstance(label, (str, bytes, bool, int, float, np.generic)):
                raise StateError(_no_label(row, var, label, hint))
            raise StateError(f"row {row}: {StateError.unknown(label, var.name, var.states)}")
        states.append(code)
    if states == list(range(len(labels))):
        return np.ascontiguousarray(found.astype(kind, copy=False))
    return _looked_up(found, np.array([*states, -1], kind))


def _no_label(row: Any, var: Var, value: Any, hint: str) -> str:
    return f"row {row}: a table of cases holds states of {var.name} or missing cells, not {value!r}{hint}"
