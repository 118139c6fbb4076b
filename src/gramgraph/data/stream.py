"""Counts of files larger than memory: one pass of Arrow batches that packs every column to bits.

The table itself is never held: of n rows and S states in all there remain S·n/8 bytes, from which any contingency table
is counted afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.data.columns import MAX_INTEGER_STATES, smallest_integer
from gramgraph.data.counts import Counts, pack
from gramgraph.exceptions import OptionError, VariableError, did_you_mean, listing
from gramgraph.typing import Array
from gramgraph.variables import discrete

__all__ = ["MISSING", "is_stream", "read_labels", "stream_counts"]

#: Rows of a block, a multiple of 64.
BLOCK = 1 << 17
#: What stands for a missing cell in a CSV file.
MISSING = ("", "NA", "NaN", "?")
MAX_STATES = 10_000


def is_stream(data: Any) -> bool:
    """Whether data is a path of a CSV or Parquet file, or an Arrow stream that is not a frame in memory."""
    if isinstance(data, (str, os.PathLike)):
        return True
    return type(data).__name__ in ("RecordBatchReader", "DuckDBPyRelation", "LazyFrame", "Dataset")


def stream_counts(data: Any, *, columns: Sequence[str] | None = None, progress: Progress = False) -> Counts:
    """Counts of all discrete columns (or of `columns`) of a Parquet or CSV file, or of an Arrow stream.

    `data` is a path (`.parquet`, `.pq`, `.csv`, `.csv.gz`), a pyarrow reader or dataset, a DuckDB relation, or anything
    with `__arrow_c_stream__`. States are the labels that occur, sorted; cells of a CSV file are labels, and empty
    ones, NA, NaN and ? are missing. Memory: one bit per row and state, and a block of rows.

    >>> import os, tempfile
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "d.csv")
    ...     pd.DataFrame({"a": ["x", "y", "y"], "b": ["u", "u", "v"]}).to_csv(file, index=False)
    ...     counts = stream_counts(file)
    >>> counts.table(["a", "b"]).tolist()
    [[1, 0], [1, 1]]
    """
    import pyarrow as pa

    try:
        names, batches, total = _open(data)
        chosen = _chosen(names, columns)
        packers = [_Packer(name) for name in chosen]
        rows = 0
        with reporting(progress, total) as report:
            for batch in batches:
                for packer in packers:
                    packer.add(batch.column(names.index(packer.name)))
                rows += batch.num_rows
                if report is not None:
                    report(rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        where = f"{data}: " if isinstance(data, (str, os.PathLike)) else ""
        raise VariableError(f"{where}{error}") from None
    if not rows:
        raise VariableError("there are no rows to count")
    return _counts(packers, rows)


def read_labels(path: str | os.PathLike[str]) -> Any:
    """A CSV or Parquet file as a frame; cells of a CSV file are labels, so that TRUE or 01 stay what they are."""
    import pandas as pd

    if str(path).lower().endswith((".parquet", ".pq")):
        return pd.read_parquet(path)
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, na_values=list(MISSING))
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise VariableError(f"{path}: {error}") from None


def _chosen(names: list[str], columns: Sequence[str] | None) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise VariableError(f"the table has more than one column {name!r}: rename or drop one of them")
    if columns is None:
        return names
    for name in columns:
        if name not in names:
            known = listing(map(repr, names))
            raise VariableError(f"the table has no column {name!r}; it has {known}.{did_you_mean(name, names)}")
    return list(columns)


def _open(data: Any) -> tuple[list[str], Iterator[Any], int]:
    """(column names, batches, number of rows or -1 when it is not known)."""
    import pyarrow as pa

    if isinstance(data, (str, os.PathLike)):
        path = Path(data)
        suffix = "".join(path.suffixes[-2:]).lower()
        if suffix.endswith((".parquet", ".pq")):
            return _open_parquet(path)
        if suffix.endswith((".csv", ".csv.gz")):
            return _open_csv(path)
        raise OptionError(f"a table is read from .parquet, .pq, .csv or .csv.gz, not from {path.name!r}")
    if type(data).__name__ == "DuckDBPyRelation":
        data = data.fetch_arrow_reader(BLOCK)
    elif type(data).__name__ == "LazyFrame":
        data = data.collect()
    elif type(data).__name__ == "Dataset":
        data = data.scanner(batch_size=BLOCK).to_reader()
    if not hasattr(data, "__arrow_c_stream__"):
        raise VariableError(f"a path or an Arrow stream is expected, not {type(data).__name__}")
    reader = pa.RecordBatchReader.from_stream(data)
    return list(reader.schema.names), iter(reader), -1


def _open_parquet(path: Path) -> tuple[list[str], Iterator[Any], int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    file = pq.ParquetFile(path, read_dictionary=texts)
    names = [name for name in schema.names if name != "__index_level_0__"]
    return names, file.iter_batches(batch_size=BLOCK, columns=names), file.metadata.num_rows


def _open_csv(path: Path) -> tuple[list[str], Iterator[Any], int]:
    import pyarrow as pa
    from pyarrow import csv

    with csv.open_csv(path) as first:
        names = list(first.schema.names)
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=list(MISSING)
    )
    reader = csv.open_csv(path, convert_options=options, read_options=csv.ReadOptions(block_size=1 << 24))
    return names, iter(reader), -1


class _Packer:
    """One column on its way from batches to bit-vectors: labels seen so far, a block of codes, finished blocks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.codes: dict[Any, int] = {}  # label → code, in order of appearance
        self.block: Array = np.empty(BLOCK, np.int8)
        self.filled = 0
        self.done: list[Array] = []  # (states so far, words) each

    def add(self, column: Any) -> None:
        """Append a batch."""
        found = self._encode(column)
        at = 0
        while at < len(found):
            step = min(BLOCK - self.filled, len(found) - at)
            self.block[self.filled : self.filled + step] = found[at : at + step]
            self.filled += step
            at += step
            if self.filled == BLOCK:
                self.flush()

    def _encode(self, column: Any) -> Array:
        import pyarrow as pa

        kind = column.type
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_nested(kind):
            raise VariableError(
                f"column {self.name!r} holds {kind}, not labels; counts need states: cut it into intervals first"
            )
        if not pa.types.is_dictionary(kind):
            column = column.dictionary_encode()
        labels = column.dictionary.to_pylist()
        table = np.empty(len(labels) + 1, np.int32)
        for i, label in enumerate(labels):
            table[i] = -1 if label is None else self.codes.setdefault(label, len(self.codes))
        table[-1] = -1
        limit = MAX_INTEGER_STATES if pa.types.is_integer(kind) else MAX_STATES
        if len(self.codes) > limit:
            what = (
                "whole numbers: cut it into intervals first" if limit < MAX_STATES else "labels: too many for a table"
            )
            raise VariableError(f"column {self.name!r} has more than {limit} different {what}")
        wanted = smallest_integer(len(self.codes))
        if np.dtype(wanted).itemsize > self.block.dtype.itemsize:
            self.block = self.block.astype(wanted)
        places = column.indices.fill_null(len(labels)).to_numpy(zero_copy_only=False)
        return table.astype(self.block.dtype)[places]

    def flush(self) -> None:
        """Pack what the block holds."""
        if self.filled:
            bits = np.empty((max(len(self.codes), 1), -(-self.filled // 64)), np.uint64)
            pack(self.block[: self.filled], bits)
            self.done.append(bits)
            self.filled = 0


def _are_reals(labels: list[Any]) -> bool:
    """Whether all labels are texts of numbers, and some of them have a fraction."""
    if not all(isinstance(label, str) for label in labels):
        return False
    try:
        return any(not float(label).is_integer() for label in labels)
    except (ValueError, OverflowError):
        return False


def _counts(packers: list[_Packer], rows: int) -> Counts:
    variables, orders = [], []
    for packer in packers:
        packer.flush()
        labels = list(packer.codes)
        if not labels:
            raise VariableError(f"column {packer.name!r} has nothing but missing cells: leave it out")
        if _are_reals(labels):
            raise VariableError(
                f"column {packer.name!r} holds numbers with fractions, not labels; counts need states: cut it into "
                "intervals first (gg.Discretizer, or --bins on the shell)"
            )
        whole = all(isinstance(label, (bool, int)) for label in labels)
        orders.append(sorted(range(len(labels)), key=labels.__getitem__ if whole else lambda i, of=labels: str(of[i])))
        variables.append(discrete(packer.name, [labels[i] for i in orders[-1]]))
    bits = np.zeros((sum(var.size for var in variables), -(-rows // 64)), np.uint64)
    at = 0
    for packer, order in zip(packers, orders, strict=True):
        word = 0
        for part in packer.done:
            width = part.shape[1]
            for row, state in enumerate(order):
                if state < len(part):
                    bits[at + row, word : word + width] = part[state]
            word += width
        packer.done.clear()
        at += len(order)
    return Counts.from_bits(variables, bits, rows)
