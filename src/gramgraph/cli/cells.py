"""Cells of CSV files that a spreadsheet shows as text, whatever the labels of a model are.

A spreadsheet takes a cell that begins with = + - @, a tab or a line break for a formula and runs it when the file is
opened; labels come from files that somebody else may have written. Such a cell gets an apostrophe in front, which
spreadsheets take for "this is text". Numbers stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import IO, Any

_RISKY = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def as_text(cell: str) -> str:
    """The cell, with an apostrophe in front where a spreadsheet would take it for a formula.

    >>> as_text("=1+1"), as_text("-40"), as_text("-"), as_text("a=b")
    ("'=1+1", '-40', "'-", 'a=b')
    """
    return f"'{cell}" if cell.startswith(_RISKY) and not _NUMBER.fullmatch(cell) else cell


def understood(cell: str, known: Iterable[str]) -> str:
    """The name or label that `as_text` wrote as this cell, if it is known and the cell itself is not.

    >>> understood("'=a", ["=a", "b"]), understood("'=a", ["=a", "'=a"]), understood("'b", ["b"])
    ('=a', "'=a", "'b")
    """
    plain = cell.removeprefix("'")
    return plain if plain != cell and as_text(plain) == cell and plain in known and cell not in known else cell


def write_csv(frame: Any, stream: IO[str], *, header: bool = True, raw: bool = False) -> None:
    """Write a frame without its index; `raw` leaves all cells as they are, for programs."""
    if not raw:
        frame = frame.rename(columns=lambda name: as_text(str(name)))
        for place, name in enumerate(frame.columns):
            column = _column_as_text(frame.iloc[:, place])
            if column is not None:
                frame = frame.assign(**{name: column})
    frame.to_csv(stream, index=False, header=header, lineterminator="\n")


def _column_as_text(column: Any) -> Any:
    """The column with safe cells, or None where it has nothing else; each label is looked at once."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):
        return None
    labels = [label for label in pd.unique(column) if isinstance(label, str)]
    changed = {label: text for label in labels if (text := as_text(label)) != label}
    return column.astype(object).map(lambda cell: changed.get(cell, cell)) if changed else None
