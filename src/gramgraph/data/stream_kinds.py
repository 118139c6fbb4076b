"""What the columns of a file or stream are taken for, found in one pass; and a look at its first rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from gramgraph.data.kinds import HEAD, MAX_INTEGER_STATES, Kind, kind_of, texts_kind
from gramgraph.data.packed import MAX_STATES, choose
from gramgraph.data.stream import is_dask, open_stream, plain_frame
from gramgraph.data.stream_files import readable


def stream_kinds(data: Any) -> tuple[list[str], list[tuple[Kind, int]]]:
    """Names of the columns, and for each what it is taken for and how many cells are missing."""
    with readable(data):
        names, batches, kept = _batches(data)
        columns = [_Column() for _ in names]
        head: list[Any] = []
        rows = 0
        for batch in batches:
            if rows < HEAD:
                head.append(batch.slice(0, HEAD - rows))
                rows += head[-1].num_rows
            for i, column in enumerate(columns):
                column.add(batch.column(i))
        frame = plain_frame(head, names, kept)
    return names, [(column.kind(frame[name]), column.missing) for name, column in zip(names, columns, strict=True)]


def first_rows(data: Any) -> tuple[Any, Any]:
    """The first rows as a pandas frame, and data that begins with them again."""
    import pyarrow as pa

    with readable(data):
        if is_dask(data):
            return data.partitions[0].compute().head(HEAD), data
        kinds = [kind.__name__ for kind in type(data).__mro__]
        if "LazyFrame" in kinds:
            from gramgraph.data.frames import read_frame

            return read_frame(data.head(HEAD).collect()).table, data
        once = "RecordBatchReader" in kinds or "Scanner" in kinds
        source = open_stream(data.limit(HEAD) if "DuckDBPyRelation" in kinds else data)
        choose(source.names, None)
        batches = iter(source.batches(source.names))
        first = list(_some(batches))
        frame = plain_frame([batch.slice(0, HEAD) for batch in first], source.names, source.kept).iloc[:HEAD]
        if once and first:
            data = pa.RecordBatchReader.from_batches(first[0].schema, chain(first, batches))
    return frame, data


def _some(batches: Iterator[Any]) -> Iterator[Any]:
    """Batches until there are enough rows."""
    rows = 0
    for batch in batches:
        yield batch
        rows += batch.num_rows
        if rows >= HEAD:
            return


def _batches(data: Any) -> tuple[list[str], Iterator[Any], frozenset[str]]:
    if not is_dask(data):
        source = open_stream(data)
        choose(source.names, None)
        return source.names, source.batches(source.names), source.kept
    import pandas as pd
    import pyarrow as pa

    names = [str(name) for name in data.columns]
    kept = frozenset(str(name) for name, kind in data.dtypes.items() if isinstance(kind, pd.CategoricalDtype))
    parts = (pa.RecordBatch.from_pandas(part.compute(), preserve_index=False) for part in data.to_delayed())
    return names, parts, kept


class _Column:
    """A column as its batches pass: labels until there are too many, missing cells, what kind of values."""

    def __init__(self) -> None:
        self.coded = self.ordered = False
        self.missing = 0
        self.labels: dict[Any, None] = {}
        self.numbers = self.real = self.fractions = False

    def add(self, column: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.missing += column.null_count
        coded = pa.types.is_dictionary(column.type)
        value = column.type.value_type if coded else column.type
        if pa.types.is_nested(value):
            self.real = True
            return
        self.ordered = self.ordered or (coded and column.type.ordered)
        if not coded and (pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_decimal(value)):
            self.numbers = True
            if pa.types.is_floating(value):
                self.missing += pc.sum(pc.is_nan(column)).as_py() or 0
        if self.real or len(self.labels) > MAX_STATES:
            return
        found = (column if coded else column.dictionary_encode()).dictionary.to_pylist()
        for label in found[: MAX_STATES + 1]:
            if label is not None and label == label:
                self.labels[label] = None
        if self.numbers:
            self.fractions = self.fractions or any(not float(x).is_integer() for x in self.labels)
            self.real = self.fractions or len(self.labels) > MAX_INTEGER_STATES

    def kind(self, head: Any) -> Kind:
        """What the column is taken for; what its first rows say of dates, identifiers and categories holds."""
        first = kind_of(head)
        labels = list(self.labels)
        if first.kind in ("date", "ordered") or (first.kind == "category" and hasattr(head, "cat")):
            return first
        if not labels and not self.real:
            return Kind("empty", "nothing but missing cells")
        if self.numbers:
            many = f"whole numbers, more than {MAX_INTEGER_STATES} different ones"
            real = Kind("real", "numbers with fractions" if self.fractions else many)
            found = real if self.real else texts_kind([str(int(label)) for label in labels])
        else:
            found = texts_kind(labels)
        alike = (found.kind in ("integer", "real")) == (first.kind in ("integer", "real"))
        return Kind(found.kind, found.why, found.labels, first.identifier if alike else "")
