"""What the columns of a file or stream are taken for, found in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gramgraph.data.columns import MAX_INTEGER_STATES
from gramgraph.data.packed import MAX_STATES, are_reals
from gramgraph.data.stream import choose, is_dask, open_stream, readable

__all__ = ["stream_kinds"]


def stream_kinds(data: Any) -> tuple[list[str], list[tuple[str, int, int]]]:
    """Names of the columns, and for each (kind, number of states, missing cells); see `column_kinds`."""
    with readable(data):
        names, batches = _batches(data)
        columns = [_Column() for _ in names]
        for batch in batches:
            for i, column in enumerate(columns):
                column.add(batch.column(i))
    return names, [column.kind() for column in columns]


def _batches(data: Any) -> tuple[list[str], Iterator[Any]]:
    if not is_dask(data):
        source = open_stream(data)
        choose(source.names, None)
        return source.names, source.batches(source.names)
    import pyarrow as pa

    parts = (pa.RecordBatch.from_pandas(part.compute(), preserve_index=False) for part in data.to_delayed())
    return [str(name) for name in data.columns], parts


class _Column:
    """A column as its batches pass: labels until there are too many, missing cells, what kind of values."""

    def __init__(self) -> None:
        self.ordered = False
        self.missing = 0
        self.labels: dict[Any, None] = {}
        self.numbers = self.real = False

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
            self.real = len(self.labels) > MAX_INTEGER_STATES or any(not float(x).is_integer() for x in self.labels)

    def kind(self) -> tuple[str, int, int]:
        labels = list(self.labels)
        if self.real or (not self.numbers and labels and are_reals(labels)):
            return "real", 0, self.missing
        if not labels:
            return "empty", 0, self.missing
        return ("integer" if self.numbers else "ordered" if self.ordered else "category"), len(labels), self.missing
