"""Rows to learn a graph from: counts of discrete columns, or a table where some columns are real-valued."""

from __future__ import annotations

import os
import warnings
from typing import Any

from gramgraph._progress import Progress
from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.data.packed import RealColumnError
from gramgraph.data.stream import is_dask, is_stream, read_numbers, stream_counts
from gramgraph.exceptions import ModelWarning, OptionError, VariableError
from gramgraph.learn.mixed_table import MixedTable, read_table

__all__ = ["read_all_rows", "read_rows"]


def read_rows(
    data: Any, weights: Any = None, missing: str = "rows", *, client: Any = None, progress: Progress = False
) -> Counts | MixedTable:
    """The rows without gaps (with a warning, if there are others), or, for missing="families", all of them."""
    if missing not in ("rows", "families"):
        raise OptionError(f"missing is 'rows' or 'families', not {missing!r}")
    table = read_all_rows(data, weights, client=client, progress=progress)
    if missing == "families" and isinstance(table, MixedTable):
        raise OptionError("missing='families' is for discrete columns; with real ones incomplete rows are left out")
    if missing == "families" or not table.has_missing:
        return table
    whole = table.complete()
    if not whole.rows:
        raise VariableError("every row has a missing cell: leave columns out, impute, or use missing='families'")
    text = f"{table.rows - whole.rows} of {table.rows} rows have missing cells and are left out"
    warnings.warn(text, ModelWarning, stacklevel=4)
    return whole


def read_all_rows(
    data: Any, weights: Any = None, *, client: Any = None, progress: Progress = False
) -> Counts | MixedTable:
    """A frame, a file, a stream, or a table that is coded already."""
    table: Counts | MixedTable
    if is_stream(data):
        if weights is not None:
            raise OptionError("weights are for frames in memory, not for files and streams")
        table = _read_stream(data, client, progress)
    else:
        found = read_table(data, weights)
        table = Counts(found) if isinstance(found, CodedTable) else found
    if not table.rows or not table.variables:
        raise VariableError("there are no rows or no columns to learn from")
    return table


def _read_stream(data: Any, client: Any, progress: Progress) -> Counts | MixedTable:
    """Counts in one pass; a table with real-valued columns is read into memory, where it can be read a second time."""
    try:
        return stream_counts(data, client=client, progress=progress)
    except RealColumnError:
        if not (isinstance(data, (str, os.PathLike)) or is_dask(data)):
            raise
    found = read_table(read_numbers(data))
    return Counts(found) if isinstance(found, CodedTable) else found
