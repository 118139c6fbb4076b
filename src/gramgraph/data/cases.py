"""Tables of cases that are asked about: what a cell of a CSV file says of a variable, and blocks as frames."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramgraph.data.stream import open_stream, read_table
from gramgraph.data.stream_files import files_of, holds_texts, is_text, need_arrow, readable
from gramgraph.exceptions import OptionError
from gramgraph.variables import Var

#: Words for "not observed", unless the variable has a state of this name. Where states are learned from the cells
#: themselves, fewer words stand for a gap (`stream_files.MISSING`): the others may be states.
NOT_OBSERVED = ("", "NA", "NaN", "nan", "N/A", "null", "None", "?", "*")
#: Whole numbers as pandas writes them, too, where a column has gaps: 1.0.
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0+)?")


def said_by(cell: str, var: Var) -> str | None:
    """What the cell of a CSV file says of a variable: a label, None where it is not observed, or the cell itself.

    >>> from gramgraph.variables import discrete
    >>> said_by("NA", discrete("r", ["NA", "EU"])), said_by("NA", discrete("r", ["US", "EU"]))
    ('NA', None)
    >>> said_by("1.0", discrete("dose", ["0", "1", "2"]))
    '1'
    """
    if not var.is_discrete:
        return None if cell in NOT_OBSERVED else cell
    if var.discrete.find(cell) >= 0:
        return cell
    if cell in NOT_OBSERVED:
        return None
    code = var.discrete.find(float(cell)) if _WHOLE.fullmatch(cell) else -1
    return cell if code < 0 else var.states[code]


def read_cases(data: Any, variable: Callable[[str], Var | None]) -> Any:
    """A whole file or stream of cases as a pandas frame."""
    if not holds_texts(data):
        return read_table(data)
    need_arrow()
    import pyarrow as pa

    with readable(data):
        source = open_stream(data, cases=True)
        schema = pa.schema([(name, pa.string()) for name in source.names])
        return frame_of(pa.Table.from_batches(source.batches(source.names), schema), variable)


def frame_of(table: Any, variable: Callable[[str], Var | None] | None = None) -> Any:
    """An Arrow table as a pandas frame in which texts are categories, so that each label is looked up once.

    `variable(name)` tells whose cells the texts of a CSV file are, None where they are nobody's; without it they are
    labels as they stand.
    """
    import pandas as pd

    said = {name: var for name in table.column_names if variable is not None and (var := variable(name)) is not None}
    for place, field in enumerate(table.schema):
        if is_text(field.type) and (variable is None or field.name in said):
            table = table.set_column(place, field.name, table.column(place).dictionary_encode())
    frame = table.unify_dictionaries().to_pandas(ignore_metadata=True)
    for name, var in said.items():
        frame[name] = _understood(frame[name], var)
    return frame if table.column_names else pd.DataFrame(index=range(table.num_rows))


def _understood(column: Any, var: Var) -> Any:
    """The categories of a column as labels and gaps of its variable."""
    import pandas as pd

    cells = column.cat.categories.tolist()
    said = [said_by(cell, var) for cell in cells]
    if said == cells:
        return column
    labels = list(dict.fromkeys(label for label in said if label is not None))
    places = np.array([-1 if label is None else labels.index(label) for label in [*said, None]], np.int64)
    return pd.Series(pd.Categorical.from_codes(places[column.cat.codes.to_numpy()], labels), column.index)


def refuse_own_input(out: str | os.PathLike[str], data: Any) -> None:
    """`OptionError` where the answers would be written over the cases that are read, or among them."""
    target = os.path.realpath(os.fspath(out))
    files: Sequence[Any] = getattr(data, "files", ())  # of a pyarrow dataset
    if isinstance(data, (str, os.PathLike)):
        given = Path(data)
        if given.is_dir() and Path(target).is_relative_to(os.path.realpath(given)):
            raise OptionError(
                f"out={os.fspath(out)!r} lies in {os.fspath(data)!r}, the folder of the cases: give another"
            )
        beside = os.path.dirname(target) == os.path.realpath(given.parent)
        if "*" in given.name and beside and fnmatch.fnmatch(os.path.basename(target), given.name):
            raise OptionError(
                f"out={os.fspath(out)!r} is one of the files that {os.fspath(data)!r} names: give another"
            )
        files = [given] if not given.is_dir() and "*" not in given.name else files_of(given)
    for file in files:
        if os.path.realpath(file) == target or _is_same(file, target):
            raise OptionError(
                f"out={os.fspath(out)!r} is the file of the cases, {os.fspath(file)!r}, which it would replace: give "
                "another name"
            )


def _is_same(file: Any, target: str) -> bool:
    try:
        return os.path.samefile(file, target)
    except OSError:  # one of them is not there
        return False
