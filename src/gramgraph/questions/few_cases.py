"""The straight road for a small table of plain observations: cell by cell, without a pass of pandas for every column.

Anything unusual (an unknown name or label, a likelihood, a set of states) is left to the general reader, which knows
what to say about it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.data.frames import is_missing
from gramgraph.typing import IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel
    from gramgraph.variables import Discrete

#: Tables of more cells than this are read column by column, unless that is asked for tables of so many rows.
FEW_CELLS, FEW_ROWS = 4096, 1000
#: Where the labels of the last table stand, with the variables that they name.
LAST_COLUMNS = ("lowered", "last labels")
Codes = tuple[list[int], IntArray]  # observed variables, and (cases, observed) states, -1 = missing


def codes_of_few(model: GraphicalModel, cases: Any, *, rows: int = 0) -> Codes | None:
    """The codes of a small pandas frame or list of dicts about a discrete model; None: ask the general reader.

    Up to `rows` rows a table counts as small however wide it is: a column costs pandas as much as thousands of cells.
    """
    if type(cases) is list:
        return _of_records(model, cases, rows)
    if not type(cases).__module__.startswith("pandas") or cases.ndim != 2:
        return None
    n, width = cases.shape
    if (n > rows and n * width > FEW_CELLS) or (observed := _variables_of(model, cases.columns)) is None:
        return None
    return _coded(model, observed, n, _columns_of(cases))


def _variables_of(model: GraphicalModel, columns: Any) -> list[int] | None:
    """The variable of each column; None unless all of them are variables. The last labels are remembered: pandas
    takes longer to list them, and they cannot change."""
    last: tuple[Any, list[int]] | None = model.plans.get(LAST_COLUMNS)
    if last is not None and last[0] is columns:
        return list(last[1])
    found = [model.positions.get(name, -1) if type(name) is str else -1 for name in columns.tolist()]
    if -1 in found or len(set(found)) < len(found):
        return None
    model.plans[LAST_COLUMNS] = columns, found
    return found


def _columns_of(frame: Any) -> Iterable[Any]:
    """The arrays of all columns; pandas' own way to them, where it has one, makes no Series of each."""
    arrays = getattr(frame, "_iter_column_arrays", None)
    return arrays() if arrays is not None else (column.array for _, column in frame.items())


def _of_records(model: GraphicalModel, cases: list[Any], rows: int) -> Codes | None:
    if not cases or len(cases) > FEW_CELLS or any(type(case) is not dict for case in cases):
        return None
    names = list(dict.fromkeys(name for case in cases for name in case))
    if len(cases) > rows and len(names) * len(cases) > FEW_CELLS:
        return None
    try:
        observed = [model.positions[name] for name in names]
    except KeyError:
        return None
    return _coded(model, observed, len(cases), ([case.get(name) for case in cases] for name in names))


def _coded(model: GraphicalModel, observed: list[int], n: int, columns: Iterable[Any]) -> Codes | None:
    codes = np.empty((n, len(observed)), np.int64)
    for j, (v, column) in enumerate(zip(observed, columns, strict=True)):
        found = _column_codes(model.vars[v].discrete, column)
        if found is None:
            return None
        codes[:, j] = found
    return observed, codes


def _column_codes(domain: Discrete, column: Any) -> Any:
    """State indices; None where a cell is no label."""
    if hasattr(column, "codes"):  # categories: each of them is looked up once
        found = [domain.find(label) for label in column.categories.tolist()]
        return None if -1 in found else np.array([*found, -1])[column.codes]
    known = domain.codes
    values = column if type(column) is list else _values(column)
    try:
        return [known[value] for value in values]
    except (KeyError, TypeError):  # something that is not a label: a gap, or a number
        pass
    codes = [
        known.get(value) if type(value) is str
        else -1 if value is None or (type(value) is float and value != value)
        else _code(domain, value)
        for value in values
    ]  # fmt: skip
    return None if None in codes else codes


def _values(column: Any) -> list[Any]:
    """The cells of a pandas array; strings of Arrow know a quicker way than through NumPy."""
    if getattr(column.dtype, "storage", "") == "pyarrow":
        return list(column.__arrow_array__().to_pylist())
    return list(column.tolist())


def _code(domain: Discrete, value: Any) -> int | None:
    """The state of a number or a truth value, -1 where it is missing; None for anything else."""
    if value is None:
        return -1
    if not isinstance(value, (bool, int, float, np.generic)):
        return -1 if np.ndim(value) == 0 and is_missing(value) else None
    if is_missing(value):
        return -1
    found = domain.find(value)
    return found if found >= 0 else None
