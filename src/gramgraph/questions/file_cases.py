"""Where the cases of a question come from whose answers go to a file: blocks of what was observed and what is kept.

Kept columns stay in Arrow from the source to the file, with the types that the source declares, so that no value passes
through a type that cannot hold it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gramgraph.data.cases import frame_of
from gramgraph.data.frames import read_frame
from gramgraph.data.map_reduce import RETRIES
from gramgraph.data.packed import choose
from gramgraph.data.stream import blocks_of, is_dask, is_stream, open_stream
from gramgraph.data.stream_files import INDEX, Source, is_text, readable
from gramgraph.exceptions import VariableError, did_you_mean, listing
from gramgraph.variables import Var

#: (block, types of kept columns, name → variable or None) → (frame of what was observed, Arrow table of what is kept)
Read = Callable[[Any, Any, Callable[[str], Var | None]], tuple[Any, Any]]


@dataclass(frozen=True)
class Cases:
    """A table that is read in blocks."""

    names: list[str]
    kept: Any  # the Arrow schema of the kept columns; null: not known before a block is read
    blocks: Callable[[int], Iterator[Any]]  # rows of a block → blocks, always the same ones
    read: Read
    rows: int = -1  # -1: not known
    client: Any = None
    identity: Any = None  # what tells that it is the same table again; None: it cannot be read twice
    path: str | None = None  # of the file or folder, for messages
    pieces: bool = False  # whether blocks are row groups of Parquet files


def open_cases(evidence: Any, keep: Sequence[str], client: Any) -> Cases:
    """A file, a stream, a Dask frame or a frame in memory, in blocks."""
    if is_dask(evidence):
        return _dask_cases(evidence, keep, client)
    if not is_stream(evidence):
        return _frame_cases(evidence, keep, client)
    with readable(evidence):
        source = open_stream(evidence, cases=True)
    choose(source.names, None)  # none stands there twice
    kept = _kept_types(source, keep)
    identity: list[Any] | None = None
    if isinstance(evidence, (str, os.PathLike)):
        files = [os.stat(file) for file, _ in source.schemas]
        about = zip(source.schemas, files, strict=True)
        identity = [(file, status.st_size, status.st_mtime_ns) for (file, _), status in about]
    if client is not None and source.pieces:
        identity = identity and ["row groups", *identity]  # other blocks than without a cluster
        pieces = lambda size: iter(source.pieces)  # noqa: E731
        return Cases(source.names, kept, pieces, _read_piece, source.rows, client, identity, pieces=True)

    def blocks(size: int) -> Iterator[Any]:
        first = 0
        with readable(evidence):
            for batches in blocks_of(source.batches(source.names), size):
                yield first, batches
                first += sum(batch.num_rows for batch in batches)

    read = _read_texts if source.texts else _read_batches
    path = None if identity is None else os.fspath(evidence)
    return Cases(source.names, kept, blocks, read, source.rows, client, identity, path)


def _unknown(name: str, names: Sequence[str]) -> VariableError:
    return VariableError(
        f"the table of cases has no column {name!r} to keep. Columns: {listing(names)}.{did_you_mean(name, names)}"
    )


# ------------------------------------------------------------------------------------------------ types of kept columns


def _kept_types(source: Source, keep: Sequence[str]) -> Any:
    """The Arrow schema of the kept columns, the same in all files of a table."""
    import pyarrow as pa

    fields = []
    for name in keep:
        if name not in source.names:
            raise _unknown(name, source.names)
        found: Any = None
        first = ""
        for file, schema in source.schemas:
            if name not in schema.names:
                raise VariableError(f"{file} has no column {name!r} to keep, which other files of the table have")
            kind = _plain(schema.field(name).type)
            both = kind if found is None else _common(found, kind)
            if both is None:
                raise VariableError(
                    f"the column {name!r} to keep is {kind} in {file}, but {found} in {first}: give it one type in all"
                )
            if both != found:
                first = file
            found = both
        fields.append(pa.field(name, found))
    return pa.schema(fields)


def _plain(kind: Any) -> Any:
    """The type in which a column is written: categories as their labels."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.large_string() if str(kind) == "string_view" else kind


def _common(one: Any, other: Any) -> Any:
    """A type that holds all values of both exactly, or None."""
    import pyarrow as pa

    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if is_text(one) and is_text(other):
        return pa.large_string()
    for alike in (pa.types.is_signed_integer, pa.types.is_unsigned_integer):
        if alike(one) and alike(other):
            return max(one, other, key=lambda kind: kind.bit_width)
    return None


def _cast(table: Any, kept: Any) -> Any:
    """The kept columns of an Arrow table with their types."""
    import pyarrow as pa

    columns = []
    for field in kept:
        column = table.column(field.name)
        kind = _plain(column.type) if pa.types.is_null(field.type) else field.type
        columns.append(column if column.type == kind else _labels(column).cast(kind))
    return pa.table(columns, names=kept.names) if columns else None


def _labels(column: Any) -> Any:
    """The cells of a column; those of categories one by one, which Arrow cannot do for all kinds of texts."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    kind = _plain(column.type)
    parts = [pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(kind)) for part in column.chunks]
    return pa.chunked_array([part.dictionary_decode() for part in parts], kind)


# ------------------------------------------------------------------------------------------------ frames in memory


def _frame_cases(evidence: Any, keep: Sequence[str], client: Any) -> Cases:
    """A frame, block by block."""
    table = read_frame(evidence, what="evidence").table
    table = table.set_axis(list(map(str, table.columns)), axis=1)
    names = list(table.columns)
    for name in keep:
        if name not in names:
            raise _unknown(name, names)
    kept = _kept_columns(evidence, table, keep)

    def blocks(size: int) -> Iterator[Any]:
        for first in range(0, len(table), size):
            yield table.iloc[first : first + size], None if kept is None else kept.slice(first, size)

    return Cases(names, _schema_of(kept), blocks, _read_both, len(table), client)


def _kept_columns(evidence: Any, table: Any, keep: Sequence[str]) -> Any:
    """The kept columns of a frame as an Arrow table, from where they are exact: pandas makes doubles of gaps."""
    import pandas as pd
    import pyarrow as pa

    if not keep:
        return None
    known: Any = {}
    if isinstance(evidence, Mapping):
        known = {name: evidence[name] for name in keep if isinstance(evidence.get(name), (list, tuple))}
    elif hasattr(evidence, "__arrow_c_stream__") and not isinstance(evidence, (pd.DataFrame, pd.Series)):
        known = pa.RecordBatchReader.from_stream(evidence).read_all()
        known = {name: known.column(name) for name in keep}
    columns = {name: _as_arrow(known.get(name, table[name]), name) for name in keep}
    plain = pa.schema([(name, _plain(column.type)) for name, column in columns.items()])
    return _cast(pa.table(columns), plain)


def _as_arrow(column: Any, name: str) -> Any:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return column
    try:
        return pa.chunked_array([pa.array(column, from_pandas=True)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise VariableError(
            f"the column {name!r} to keep holds values of different types ({error}): give it one, for example by "
            "astype(str)"
        ) from None


def _schema_of(table: Any) -> Any:
    import pyarrow as pa

    return pa.schema([]) if table is None else table.schema


def _read_both(block: tuple[Any, Any], kept: Any, variable: Any) -> tuple[Any, Any]:
    """A slice of a frame in memory, and of its kept columns."""
    table, columns = block
    return _observed(table, kept, variable), columns


def _observed(table: Any, kept: Any, variable: Any) -> Any:
    return table.drop(columns=[name for name in kept.names if variable(name) is None])


# ------------------------------------------------------------------------------------------------ Dask


def _dask_cases(evidence: Any, keep: Sequence[str], client: Any) -> Cases:
    """The partitions of a Dask frame: on the workers of a cluster, or here."""
    import pyarrow as pa
    from dask.base import tokenize

    parts = evidence.to_delayed()
    names = list(map(str, evidence.columns))
    choose(names, None)
    for name in keep:
        if name not in names:
            raise _unknown(name, names)
    some = evidence._meta.set_axis(names, axis=1)
    kept = pa.schema([(name, _plain(_as_arrow(some[name], name).type)) for name in keep])
    if client is None:
        return Cases(names, kept, lambda size: iter(parts), _read_delayed, identity=tokenize(evidence))

    def blocks(size: int) -> Iterator[Any]:
        return (client.compute(part, retries=RETRIES) for part in parts)

    return Cases(names, kept, blocks, _read_partition, client=client, identity=tokenize(evidence))


def _read_delayed(part: Any, kept: Any, variable: Any) -> tuple[Any, Any]:
    return _read_partition(part.compute(), kept, variable)


def _read_partition(table: Any, kept: Any, variable: Any) -> tuple[Any, Any]:
    import pyarrow as pa

    table = table.set_axis(list(map(str, table.columns)), axis=1)
    columns = {name: _as_arrow(table[name], name) for name in kept.names}
    return _observed(table, kept, variable), _cast(pa.table(columns), kept) if columns else None


# ------------------------------------------------------------------------------------------------ Arrow


def _read_piece(piece: tuple[str, int], kept: Any, variable: Any) -> tuple[Any, Any]:
    """A row group of a Parquet file, on the worker that reads it."""
    import pyarrow.parquet as pq

    file, group = piece
    return _parted(pq.ParquetFile(file).read_row_group(group), 0, kept, variable)


def _read_batches(block: tuple[int, list[Any]], kept: Any, variable: Any) -> tuple[Any, Any]:
    """Arrow batches, the first row of which has a number in the file."""
    import pyarrow as pa

    return _parted(pa.Table.from_batches(block[1]), block[0], kept, variable)


def _read_texts(block: tuple[int, list[Any]], kept: Any, variable: Any) -> tuple[Any, Any]:
    """Batches of a CSV file."""
    import pyarrow as pa

    return _parted(pa.Table.from_batches(block[1]), block[0], kept, variable, variable)


def _parted(table: Any, first: int, kept: Any, variable: Any, whose: Any = None) -> tuple[Any, Any]:
    apart = [name for name in kept.names if variable(name) is None]
    seen = [name for name in table.column_names if name not in apart and not name.startswith(INDEX)]
    frame = frame_of(table.select(seen), whose)
    frame.index = range(first, first + table.num_rows)  # rows of the file, for messages
    return frame, _cast(table, kept)
