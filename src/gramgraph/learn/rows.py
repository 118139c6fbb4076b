"""Rows to learn a graph from: counts of discrete columns, or a table where some columns are real-valued."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from gramgraph._progress import Progress
from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.data.frames import read_frame
from gramgraph.data.kinds import HEAD, kind_of
from gramgraph.data.packed import RealColumnError
from gramgraph.data.stream import is_stream, read_again, read_numbers, stream_counts
from gramgraph.data.stream_kinds import first_rows
from gramgraph.exceptions import ModelWarning, OptionError, VariableError
from gramgraph.learn.mixed_table import MixedTable, read_table


def read_rows(
    data: Any,
    weights: Any = None,
    missing: str = "rows",
    *,
    keep: Iterable[str] = (),
    client: Any = None,
    progress: Progress = False,
) -> Counts | MixedTable:
    """The rows without gaps (with a warning, if there are others), or, for missing="families", all of them."""
    if missing not in ("rows", "families"):
        raise OptionError(f"missing is 'rows' or 'families', not {missing!r}")
    table = read_all_rows(data, weights, keep=keep, client=client, progress=progress, stacklevel=3)
    if missing == "families" and isinstance(table, MixedTable):
        raise OptionError("missing='families' is for discrete columns; with real ones incomplete rows are left out")
    if missing == "families" or not table.has_missing:
        return table
    return whole_rows(table, stacklevel=3)


def whole_rows(table: Any, stacklevel: int) -> Any:
    """The rows without a missing cell; a warning says how many others there are."""
    whole, rows = table.complete(), _count(table)
    if not _count(whole):
        raise VariableError("every row has a missing cell: leave columns out, impute, or use missing='families'")
    text = f"{rows - _count(whole)} of {rows} rows have missing cells and are left out"
    warnings.warn(text, ModelWarning, stacklevel=stacklevel + 1)
    return whole


def _count(table: Any) -> int:
    return int(table.rows if isinstance(table, Counts) else len(table))


def read_all_rows(
    data: Any,
    weights: Any = None,
    *,
    keep: Iterable[str] = (),
    client: Any = None,
    progress: Progress = False,
    stacklevel: int = 3,
) -> Counts | MixedTable:
    """A frame, a file, a stream, or a table that is coded already; without columns that are dates or identifiers, of
    which a warning tells, unless `keep` names them."""
    table: Counts | MixedTable
    if is_stream(data):
        if weights is not None:
            raise OptionError("weights are for frames in memory, not for files and streams")
        head, data = first_rows(data)
        chosen, dates = _usable(head, keep, None, stacklevel)
        table = _read_stream(data, None if chosen is None else [str(c) for c in chosen], dates, client, progress)
    else:
        dates = []
        if not isinstance(data, (CodedTable, MixedTable)):
            data = read_frame(data).table
            chosen, dates = _usable(data, keep, weights, stacklevel)
            data = data if chosen is None else data[chosen]
        found = read_table(data, weights, dates)
        table = Counts(found) if isinstance(found, CodedTable) else found
    if not table.rows or not table.variables:
        raise VariableError("there are no rows or no columns to learn from")
    return table


def _usable(frame: Any, keep: Iterable[str], weights: Any, stacklevel: int) -> tuple[list[Any] | None, list[Any]]:
    """The columns to learn from (None: all of them), and which of these are dates."""
    kept = [keep] if isinstance(keep, str) else list(keep)
    for name in kept:
        if name not in frame.columns:
            raise VariableError.unknown(name, [str(c) for c in frame.columns])
    own = weights if isinstance(weights, str) else None
    left: dict[Any, str] = {}
    dates = []
    head = frame.iloc[:HEAD] if len(frame) > HEAD else frame
    for name in frame.columns:
        if name == own:
            continue
        found = kind_of(head[name])
        if name in kept:
            dates += [name] if found.kind == "date" else []
        elif found.kind == "date" or found.identifier:
            left[name] = "date" if found.kind == "date" else "identifier"
    if not left:
        return None, dates
    if len(left) == len(frame.columns) - (own in frame.columns):
        raise VariableError(f"no column is left to learn from: {_told(left)}. {_how(left)}")
    warnings.warn(f"left out of the structure: {_told(left)}. {_how(left)}", ModelWarning, stacklevel=stacklevel + 2)
    return [name for name in frame.columns if name not in left], dates


def _told(left: dict[Any, str]) -> str:
    words = {"date": "dates", "identifier": "identifiers or counters"}
    found = {kind: [repr(str(name)) for name, of in left.items() if of == kind] for kind in words}
    return "; ".join(f"{', '.join(names)} ({words[kind]})" for kind, names in found.items() if names)


def _how(left: dict[Any, str]) -> str:
    return f"keep={[str(name) for name in left]!r} keeps them; gg.describe(data) tells what each column is taken for"


def _read_stream(
    data: Any, columns: list[str] | None, dates: list[Any], client: Any, progress: Progress
) -> Counts | MixedTable:
    """Counts in one pass; a table with real-valued columns is read into memory, where it can be read a second time."""
    again = read_again(data)
    if not dates or not again:
        try:
            return stream_counts(data, columns=columns, client=client, progress=progress)
        except RealColumnError:
            if not again:
                raise
    found = read_table(read_numbers(data, columns), None, dates)
    return Counts(found) if isinstance(found, CodedTable) else found
