"""The only reader of frames: pandas, polars, Arrow, Dask, a dict of columns, a list of dicts, a Series as one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import VariableError, did_you_mean, listing
from gramgraph.typing import Array, FloatArray

#: Cells up to which a block of a frame is made on trial: that is quicker than a look at the types of its columns.
_SMALL = 100_000


@dataclass(frozen=True, eq=False)
class Frame:
    """Columns with names, each name once, one row per case. Columns are those that were given, not copies.

    >>> frame = read_frame([{"sky": "sun", "wind": 2.0}, {"sky": "rain"}])
    >>> frame.names, frame.n_rows, frame.column("wind").tolist()
    (('sky', 'wind'), 2, [2.0, nan])
    """

    table: Any  # a pandas frame: it holds blocks, categories and views without copies

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of the columns."""
        return tuple(self.table.columns.tolist())

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.table)

    @property
    def index(self) -> Any:
        """Labels of the rows (a pandas index)."""
        return self.table.index

    def __contains__(self, name: Any) -> bool:
        return name in self.table.columns

    def column(self, name: Any) -> Any:
        """One column, a pandas Series; `VariableError` with the nearest name where there is none."""
        if name not in self.table.columns:
            known = [str(column) for column in self.table.columns]
            raise VariableError(
                f"the frame has no column {name!r}; it has {listing(map(repr, known))}.{did_you_mean(name, known)}"
            )
        return self.table[name]

    def array(self, name: Any) -> Array:
        """One column as an array: numbers with gaps are floats with NaN, whatever the frame keeps them as."""
        column = self.column(name)
        if getattr(column.dtype, "kind", "O") in "fiu" and not isinstance(column.dtype, np.dtype):
            return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
        return np.asarray(column.to_numpy())

    def numbers(self, names: Sequence[Any] | None = None) -> FloatArray | None:
        """Some columns (or all) as one block (rows, columns), NaN where a cell is missing; None where one of them does
        not hold plain numbers. The block may be the frame's own: copy it before you keep it.
        """
        table = self.table if names is None else self.table[list(names)]
        if table.size <= _SMALL and (X := table.to_numpy()).dtype == np.float64:
            return X  # type: ignore[no-any-return]
        if any(getattr(kind, "kind", "O") not in "fiu" for kind in set(table.dtypes)):
            return None
        return table.to_numpy(dtype=np.float64, na_value=np.nan)  # type: ignore[no-any-return]


def read_frame(data: Any, *, what: str = "data") -> Frame:
    """Any table in memory; `what` is its name in error messages.

    >>> read_frame({"x": [1.0, 2.0], "y": [3.0]})
    Traceback (most recent call last):
        ...
    gramgraph.exceptions.VariableError: the columns of data differ in length: x has 2 rows, y has 1
    """
    import pandas as pd

    if type(data).__module__.startswith("dask.") and hasattr(data, "compute"):
        data = data.compute()
    if isinstance(data, Frame):
        return data
    if isinstance(data, pd.DataFrame):
        table = data
    elif isinstance(data, pd.Series):
        table = _records([data], what)
    elif isinstance(data, Mapping):
        table = _columns(data, what)
    elif isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        table = _records(data, what)
    else:
        table = _other(data, what)
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise VariableError(f"{what} has more than one column {twice!r}: rename or drop one of them")
    return Frame(table)


def is_frame(data: Any) -> bool:
    """Whether data has named columns, as frames of pandas, polars and Arrow do."""
    described = hasattr(data, "dtypes") or hasattr(data, "column_names")
    return described and hasattr(data, "columns") and hasattr(data, "shape")


def is_missing(value: Any) -> bool:
    """Whether a value means "not observed": None, NaN, pandas' NA and NaT.

    >>> [is_missing(value) for value in (None, float("nan"), 0.0, "", np.datetime64("NaT"))]
    [True, True, False, False, True]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # without pandas
        return True
    return isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)) and bool(value != value)


def missing_cells(values: Any) -> Array:
    """For each value of a column whether it is missing, (rows,) of truth values."""
    import pandas as pd

    return np.asarray(pd.isna(values if hasattr(values, "dtype") else pd.Series(values, dtype=object)))


def _columns(data: Mapping[Any, Any], what: str) -> Any:
    import pandas as pd

    cells = {name: _cells(column) for name, column in data.items()}
    rows = {name: len(column) for name, column in cells.items() if np.ndim(column) or hasattr(column, "__len__")}
    single = [name for name in cells if name not in rows or isinstance(cells[name], (str, bytes, Mapping))]
    if single:
        raise VariableError(
            f"{what} as a dict holds a column of cells for each name; {single[0]} is {cells[single[0]]!r}. "
            f"Write one row as a list of one dict: [{{{single[0]!r}: …}}]"
        )
    if len(set(rows.values())) > 1:
        first, *others = rows.items()
        name, count = next((name, count) for name, count in others if count != first[1])
        raise VariableError(
            f"the columns of {what} differ in length: {first[0]} has {first[1]} rows, {name} has {count}"
        )
    table = pd.DataFrame(cells)
    if rows and len(table) != next(iter(rows.values())):  # Series are aligned by the labels of their rows
        raise VariableError(
            f"the columns of {what} have different row labels (index): use reset_index(drop=True), or one frame"
        )
    return table


def _records(data: Sequence[Any], what: str) -> Any:
    import pandas as pd

    rows = list(data)
    if not all(type(case) is dict for case in rows):  # the usual case, without a copy
        rows = [_record(case, row, what) for row, case in enumerate(rows)]
    index = range(len(rows))
    # Rows in which nothing is observed have no column that pandas 2 could begin with.
    return pd.DataFrame.from_records(rows, index=index) if any(rows) else pd.DataFrame(index=index)


def _record(case: Any, row: int, what: str) -> dict[Any, Any]:
    import pandas as pd

    if not isinstance(case, (Mapping, pd.Series)):
        raise VariableError(f"{what} must be a data frame, a dict or a list of dicts; item {row} is {case!r}")
    if isinstance(case, pd.Series) and not case.index.is_unique:
        twice = case.index[case.index.duplicated()][0]
        raise VariableError(f"{what} has more than one column {twice!r}: rename or drop one of them")
    return dict(case)


def _other(data: Any, what: str) -> Any:
    """Frames of other libraries, through narwhals."""
    import narwhals as nw
    import pandas as pd

    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError:
        lazy = ". Use its collect() instead" if hasattr(data, "collect") else ""
        raise VariableError(
            f"{what} must be a data frame, a dict or a list of dicts, not {type(data).__name__}{lazy}"
        ) from None
    return pd.DataFrame({name: _series_cells(frame[name]) for name in frame.columns})


def _cells(column: Any) -> Any:
    """A column of a dict: what pandas knows as it is, columns of other libraries as their frames are read."""
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return list(column)  # vectors
    if isinstance(column, (list, tuple, range, np.ndarray)) or hasattr(column, "iloc"):
        return column
    import narwhals as nw

    found = nw.from_native(column, series_only=True, pass_through=True)
    return _series_cells(found) if isinstance(found, nw.Series) else column


def _series_cells(column: Any) -> Any:
    """The cells of a narwhals column; enumerated labels and ordered dictionaries keep their order."""
    import narwhals as nw
    import pandas as pd

    if isinstance(column.dtype, nw.Enum):
        return pd.Categorical(column.to_list(), list(column.to_native().dtype.categories), ordered=True)
    kind: Any = getattr(column.to_native(), "type", None)
    if type(kind).__name__ == "DictionaryType":
        chunks = column.to_native().unify_dictionaries().chunks
        labels = chunks[0].dictionary.to_pylist() if chunks else []
        return pd.Categorical(
            column.to_list(), labels if kind.ordered else sorted(labels, key=str), ordered=kind.ordered
        )
    return column.to_numpy()
