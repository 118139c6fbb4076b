"""Tables with real-valued columns: numbers beside codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.data.columns import CodedTable, code_table, position_of
from gramgraph.data.frames import read_frame
from gramgraph.data.kinds import as_numbers, is_real
from gramgraph.exceptions import OptionError, VariableError, did_you_mean
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Real, Var


@dataclass(frozen=True, eq=False)
class MixedTable:
    """Columns of numbers (NaN: missing) and of state indices (-1: missing), with an optional weight for each row.

    >>> import pandas as pd
    >>> table = read_table(pd.DataFrame({"x": [0.5, 1.5, None], "sex": ["f", "m", "f"]}))
    >>> table.variables, len(table.complete())
    ((x{real}, sex{f|m}), 2)
    """

    variables: tuple[Var, ...]
    columns: tuple[Array, ...]
    weights: FloatArray | None
    frame: Any  # pandas: the same rows, for the parameters

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(var.name for var in self.variables)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self)

    @property
    def total(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(len(self)) if self.weights is None else float(self.weights.sum())

    @cached_property
    def real(self) -> tuple[bool, ...]:
        """Which columns are real-valued."""
        return tuple(not var.is_discrete for var in self.variables)

    @property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return bool(self._gaps().any())

    def _gaps(self) -> Array:
        out = np.zeros(len(self), bool)
        for column, real in zip(self.columns, self.real, strict=True):
            out |= np.isnan(column) if real else column < 0
        return out

    def position(self, name: str) -> int:
        """Position of a column."""
        return position_of(name, self.names)

    def complete(self) -> MixedTable:
        """The rows without a missing cell."""
        gaps = self._gaps()
        return self.take(np.flatnonzero(~gaps)) if gaps.any() else self

    def take(self, rows: Array) -> MixedTable:
        """The table of some rows, which may repeat."""
        weights = None if self.weights is None else self.weights[rows]
        frame = self.frame.iloc[rows].reset_index(drop=True)
        return MixedTable(self.variables, tuple(column[rows] for column in self.columns), weights, frame)

    def configurations(self, columns: Sequence[int]) -> tuple[IntArray, int]:
        """Number of the combination of states of each row, and how many combinations there are."""
        out = np.zeros(len(self), np.int64)
        count = 1
        for c in columns:
            size = self.variables[c].size
            out = out * size + self.columns[c]
            count *= size
        return out, count


def read_table(data: Any, weights: Any = None, dates: Sequence[str] = ()) -> CodedTable | MixedTable:
    """A frame as codes, or, where it has real-valued columns, as numbers and codes; `dates` are taken as numbers."""
    if isinstance(data, (CodedTable, MixedTable)):
        return data
    frame = read_frame(data).table
    own = weights if isinstance(weights, str) else None
    real = [name for name in frame.columns if name != own and (name in dates or is_real(frame[name]))]
    if not real:
        return code_table(frame, weights=weights)
    if isinstance(weights, str):
        if weights not in frame:
            raise VariableError(f"the frame has no column {weights!r}.{did_you_mean(weights, list(frame.columns))}")
        weights, frame = np.asarray(frame[weights], np.float64), frame.drop(columns=weights)
    labels = [name for name in frame.columns if name not in real]
    coded = code_table(frame, needed=labels)
    at = {var.name: i for i, var in enumerate(coded.variables)}
    variables, columns, cells = [], [], {}
    for name in frame.columns:
        if name in real:
            variables.append(Var(str(name), Real()))
            columns.append(_numbers(frame[name]))
            cells[name] = columns[-1]
        else:
            variables.append(coded.variables[at[str(name)]])
            columns.append(coded.columns[at[str(name)]])
            cells[name] = frame[name].array
    frame = type(frame)(cells, copy=False)
    return MixedTable(tuple(variables), tuple(columns), _sound(weights, len(frame)), frame)


def _numbers(column: Any) -> FloatArray:
    out = as_numbers(column)
    if np.isinf(out).any():
        row = column.index[int(np.isinf(out).argmax())]
        raise VariableError(
            f"column {column.name!r}, row {row}: a finite number or a missing cell is expected, not inf"
        )
    return out


def _sound(weights: Any, n: int) -> FloatArray | None:
    if weights is None:
        return None
    out = np.ascontiguousarray(weights, dtype=np.float64)
    if out.shape != (n,) or not np.isfinite(out).all() or (out < 0).any():
        raise OptionError(f"weights are {n} finite numbers from 0 on, one for each row")
    return out
