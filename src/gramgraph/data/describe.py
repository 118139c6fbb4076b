"""`gg.describe`: what each column of a table will be taken for, and why."""

from __future__ import annotations

from typing import Any

from gramgraph.data.frames import read_frame
from gramgraph.data.kinds import Kind, kind_of
from gramgraph.data.stream import is_stream


def describe(data: Any) -> Any:
    """What each column will be taken for, and why, before anything is learned: a pandas frame with a row for each.

    "taken as" is `category` (labels, truth values, whole numbers with up to 20 different values), `ordered` (an ordered
    categorical), `real` (other numbers), `date`, `identifier` (a label of its own in nearly every row, or a counter) or
    `empty`. `fit`, `learn_structure`, classifiers and the command line follow it, for frames, dicts of columns, the
    paths of CSV and Parquet files, streams and Dask frames alike; a network that declares its variables decides itself.
    Learning a structure leaves dates and identifiers out, unless `keep=` names them.

    To have a column taken as labels, make it categorical (`frame["n"].astype("category")`); as numbers, write the
    variable as `n{real}`.

    Parameters
    ----------
    data : a frame, a dict of columns, or a file.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sky": ["sun", "rain"], "n": [1, 2], "x": [0.5, None]})
    >>> print(describe(frame)[["column", "taken as", "states", "missing"]])
      column  taken as  states  missing
    0    sky  category       2        0
    1      n  category       2        0
    2      x      real       0        1
    """
    import pandas as pd

    names, found = kinds_of(data)
    rows = [
        (name, kind.taken_as, kind.reason, len(kind.labels), missing)
        for name, (kind, missing) in zip(names, found, strict=True)
    ]
    return pd.DataFrame(rows, columns=["column", "taken as", "why", "states", "missing"])


def column_kinds(data: Any) -> Any:
    """The kinds of columns in fewer words than `gg.describe`: a frame with kind, number of states and missing cells.

    Kinds: `category` (labels, truth values), `ordered` (an ordered categorical), `integer` (whole numbers with up to
    20 distinct values, taken as categories), `real` (other numbers), `date`, `empty` (nothing but missing cells).

    Parameters
    ----------
    data : a pandas, polars or Arrow frame, or a dict of columns.

    Examples
    --------
    >>> import pandas as pd
    >>> print(column_kinds(pd.DataFrame({"sky": ["sun", "rain"], "n": [1, 2], "x": [0.5, None]})))
           kind  states  missing
    sky  category       2        0
    n     integer       2        0
    x        real       0        1
    """
    import pandas as pd

    names, found = kinds_of(data)
    rows = [(kind.kind, len(kind.labels), missing) for kind, missing in found]
    return pd.DataFrame(rows, columns=["kind", "states", "missing"], index=names)


def kinds_of(data: Any) -> tuple[list[Any], list[tuple[Kind, int]]]:
    """Names of the columns, and for each its kind and its missing cells."""
    if is_stream(data):
        from gramgraph.data.stream_kinds import stream_kinds

        return stream_kinds(data)  # type: ignore[return-value]
    frame = read_frame(data).table
    return list(frame.columns), [(kind_of(frame[name]), int(frame[name].isna().sum())) for name in frame.columns]
