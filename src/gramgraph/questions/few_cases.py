"""The straight road for a small table of plain observations: cell by cell, without a pass of pandas for every column.

Anything unusual (an unknown name or label, a likelihood, a set of states) is left to the general reader, which knows
what to say about it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Codes(NamedTuple):
    """What was observed in several cases."""

    observed: tuple[int, ...]  # variables
    codes: IntArray  # (cases, observed) states; -1 = missing
    gaps: bool  # whether any is missing


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
    return _coded(model, observed, n, _columns_of(cases, width))


def _variables_of(model: GraphicalModel, columns: Any) -> tuple[int, ...] | None:
    """The variable of each column; None unless all of them are variables. The last labels are remembered: pandas
    takes longer to list them, and they cannot change."""
    last: tuple[Any, tuple[int, ...]] | None = model.plans.get(LAST_COLUMNS)
    if last is not None and last[0] is columns:
        return last[1]
    found = tuple([model.positions.get(name, -1) if type(name) is str else -1 for name in columns.tolist()])
    if -1 in found or len(set(found)) < len(found):
        return None
    model.plans[LAST_COLUMNS] = columns, found
    return found


def _columns_of(frame: Any, width: int) -> Iterable[Any]:
    """The arrays of all columns; pandas' own way to them, where it has one, makes no Series of each."""
    array_of = getattr(getattr(frame, "_mgr", None), "iget_values", None)
    return (column.array for _, column in frame.items()) if array_of is None else map(array_of, range(width))


def _of_records(model: GraphicalModel, cases: list[Any], rows: int) -> Codes | None:
    if not cases or len(cases) > FEW_CELLS or any(type(case) is not dict for case in cases):
        return None
    names = list(dict.fromkeys(name for case in cases for name in case))
    if len(cases) > rows and len(names) * len(cases) > FEW_CELLS:
        return None
    try:
        observed = tuple([model.positions[name] for name in names])
    except KeyError:
        return None
    return _coded(model, observed, len(cases), ([case.get(name) for case in cases] for name in names))


def _coded(model: GraphicalModel, observed: tuple[int, ...], n: int, columns: Iterable[Any]) -> Codes | None:
    codes, gaps = np.empty((n, len(observed)), np.int64), False
    for j, (v, column) in enumerate(zip(observed, columns, strict=True)):
        found = _column_codes(model.vars[v].discrete, column)
        if found is None:
            return None
        codes[:, j], some = found
        gaps = gaps or some
    return Codes(observed, codes, gaps)


def _column_codes(domain: Discrete, column: Any) -> tuple[Any, bool] | None:
    """State indices, and whether any is missing; None where a cell is no label."""
    if type(column) is list:
        values = column
    elif getattr(column.dtype, "storage", "") == "pyarrow":  # these know a quicker way than through NumPy
        values = column.__arrow_array__().to_pylist()
    elif hasattr(column, "codes"):  # categories: each of them is looked up once
        found = [domain.find(label) for label in column.categories.tolist()]
        codes = np.array([*found, -1])[column.codes]
        return None if -1 in found else (codes, bool((codes < 0).any()))
    else:
        values = column.tolist()
    known = domain.codes
    try:
        return [known[value] for value in values], False
    except (KeyError, TypeError):  # something that is not a label: a gap, or a number
        pass
    out = [
        known.get(value) if type(value) is str
        else -1 if value is None or (type(value) is float and value != value)
        else _code(domain, value)
        for value in values
    ]  # fmt: skip
    return None if None in out else (out, -1 in out)


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
