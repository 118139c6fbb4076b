"""Counts of files larger than memory: one pass of Arrow batches that packs every column to bits.

The table itself is never held: of n rows and S states in all there remain S·n/8 bytes, from which any contingency table
is counted afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gramgraph._progress import Progress, reporting
from gramgraph.data.counts import Counts
from gramgraph.data.map_reduce import in_order
from gramgraph.data.packed import Collected, Packed, choose, pack_batches
from gramgraph.data.stream_files import (
    BLOCK,
    MISSING,
    Source,
    categories,
    filled,
    holds_texts,
    is_csv,
    open_files,
    open_parquet,
    readable,
)
from gramgraph.exceptions import VariableError

#: Classes (and what inherits from them) that are read batch by batch.
STREAMS = ("RecordBatchReader", "DuckDBPyRelation", "LazyFrame", "Dataset", "Scanner")


def is_stream(data: Any) -> bool:
    """Whether data is the path of a CSV or Parquet file, a Dask frame, or an Arrow stream that is not in memory."""
    if isinstance(data, (str, os.PathLike)):
        return True
    return is_dask(data) or any(kind.__name__ in STREAMS for kind in type(data).__mro__)


def is_dask(data: Any) -> bool:
    """Whether data is a Dask frame."""
    return type(data).__module__.startswith("dask.") and hasattr(data, "to_delayed") and hasattr(data, "columns")


def read_again(data: Any) -> bool:
    """Whether a file or stream can be read more than once."""
    return not any(kind.__name__ in ("RecordBatchReader", "Scanner") for kind in type(data).__mro__)


def stream_counts(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    declared: Container[str] = (),
    n_jobs: int = 1,
    client: Any = None,
    progress: Progress = False,
) -> Counts:
    """Counts of all discrete columns (or of `columns`) of a Parquet or CSV file, an Arrow stream or a Dask frame.

    `data` is a path (`.parquet`, `.pq`, `.csv`, `.csv.gz`, a folder of such files, a pattern with `*`), a pyarrow
    reader or dataset, a DuckDB relation, a polars LazyFrame, a `dask.dataframe`, or anything with `__arrow_c_stream__`.
    States are the labels that occur, sorted (categories keep their order); in a CSV file empty cells, NA, NaN and ? are
    missing. Columns that `gg.describe` calls real are refused, unless they are in `declared`: their cells are labels,
    whatever they look like. Memory: one bit per row and state, and a block of rows.

    `n_jobs` threads pack blocks; a `client` (`distributed.Client` or its address) packs the row groups of Parquet files
    and the partitions of a Dask frame on its workers. The counts are the same, bit for bit.

    Parameters
    ----------
    data : a path, a stream or a Dask frame, as above.
    columns : names of the columns to use; None for all.
    declared : columns whose cells are labels, whatever they look like.
    n_jobs : number of threads; -1 for one per processor.
    client : a `distributed.Client` on whose workers the blocks are worked on, or None.
    progress : True shows how far it is, or a function of (done, total).

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "d.csv")
    ...     pd.DataFrame({"a": ["x", "y", "y"], "b": ["u", "u", "v"]}).to_csv(file, index=False)
    ...     counts = stream_counts(file)
    >>> counts.table(["a", "b"]).tolist()
    [[1, 0], [1, 1]]
    """
    if is_dask(data):
        from gramgraph.data.cluster import dask_counts

        return dask_counts(data, columns=columns, declared=declared, client=client, progress=progress)
    with readable(data):
        source = open_stream(data)
        chosen = choose(source.names, columns)
        blocks: Iterable[Any] = blocks_of(source.batches(chosen))
        pack: Any = partial(pack_batches, names=chosen, kept=source.kept, declared=declared)
        if client is not None and source.pieces:
            blocks, pack = source.pieces, partial(_pack_piece, names=chosen, kept=source.kept, declared=declared)
        else:  # what only we can read is packed here: to send it would take longer
            client = None
        found = Collected(chosen, declared)
        with reporting(progress, source.rows, "rows") as report:
            for packed in in_order(pack, blocks, n_jobs=n_jobs, client=client):
                found.add(packed)
                if report is not None:
                    report(found.rows)
    if not found.rows:
        raise VariableError("there are no rows to count")
    return found.counts()


def stream_names(data: Any) -> list[str]:
    """The names of the columns; reads no rows."""
    if is_dask(data):
        return [str(name) for name in data.columns]
    with readable(data):
        return open_stream(data, head=True).names


def read_labels(path: Any) -> Any:
    """A whole file (or stream) as a frame; cells of a CSV file are labels, so that TRUE or 01 stay what they are."""
    import pandas as pd

    if not isinstance(path, (str, os.PathLike)):
        return read_table(path)
    if not holds_texts(path):
        with readable(path):
            return pd.read_parquet(path)
    if not is_csv(path) or "*" in Path(path).name:  # several files
        return read_table(path)
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, na_values=list(MISSING), index_col=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise VariableError(f"{path}: {error}") from None


def read_table(data: Any, columns: Sequence[str] | None = None) -> Any:
    """Some columns (or all) of a file, a Dask frame or a stream as a pandas frame; cells of a CSV file are labels."""
    if is_dask(data):
        return data[choose([str(name) for name in data.columns], columns)].compute()
    with readable(data):
        source = open_stream(data)
        names = choose(source.names, columns)
        return plain_frame(list(source.batches(names)), names, source.kept)


def plain_frame(batches: Sequence[Any], names: Sequence[str], kept: Container[str]) -> Any:
    """Batches as a pandas frame; texts that were read as dictionaries are texts again."""
    import pandas as pd
    import pyarrow as pa

    if not batches:
        return pd.DataFrame({name: [] for name in names})
    table = pa.Table.from_batches(batches).select(names)
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and not field.type.ordered and field.name not in kept:
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table.to_pandas()


def read_numbers(data: Any, columns: Sequence[str] | None = None) -> Any:
    """A file or Dask frame (or some columns) as a pandas frame; columns of a CSV file that are real hold numbers."""
    from gramgraph.data.kinds import as_numbers, is_real, whole_numbers

    frame = read_table(data, columns)
    if not holds_texts(data):
        return frame
    for name in frame.columns:
        if is_real(frame[name]) or whole_numbers(frame[name].dropna().unique().tolist()) is not None:
            frame[name] = as_numbers(frame[name])
    return frame


def open_stream(data: Any, *, head: bool = False, cases: bool = False) -> Source:
    """A table that can be read in batches; with `head` for its names only, with `cases` as `open_files` reads them."""
    import pyarrow as pa

    if isinstance(data, (str, os.PathLike)):
        return open_files(Path(data), cases=cases)
    kinds = [kind.__name__ for kind in type(data).__mro__]
    if "LazyFrame" in kinds:
        schema = _lazy_schema(data)
        scan = lambda chosen: _lazy_batches(data.select(chosen))  # noqa: E731
        return Source(list(schema.names), scan, kept=_enumerations(data), schemas=(("", schema),))
    if "Dataset" in kinds:
        scan = lambda chosen: data.scanner(columns=chosen, batch_size=BLOCK).to_batches()  # noqa: E731
        return Source(list(data.schema.names), scan, kept=categories(data.schema), schemas=(("", data.schema),))
    if "Scanner" in kinds:
        data = data.to_reader()
    if head and "DuckDBPyRelation" in kinds:
        return Source(list(data.columns), None)
    if "DuckDBPyRelation" in kinds:
        read = getattr(data, "to_arrow_reader", None) or data.fetch_arrow_reader
        data = read(BLOCK)
    if not hasattr(data, "__arrow_c_stream__"):
        raise VariableError(f"a path or an Arrow stream is expected, not {type(data).__name__}")
    if head and hasattr(data, "schema") and hasattr(data.schema, "names"):
        names = data.schema.names
        return Source(list(names() if callable(names) else names), None)
    reader = pa.RecordBatchReader.from_stream(data)
    kept = categories(reader.schema) | _enumerations(data)
    return Source(list(reader.schema.names), lambda chosen: reader, kept=kept, schemas=(("", reader.schema),))


def _lazy_schema(lazy: Any) -> Any:
    """The Arrow schema of a polars query, which is not computed."""
    schema = lazy.collect_schema()
    if hasattr(schema, "to_arrow"):
        return schema.to_arrow()
    import polars

    return polars.DataFrame(schema=schema).to_arrow().schema


def _lazy_batches(lazy: Any) -> Iterator[Any]:
    """The batches of a polars query, computed piece by piece where polars can."""
    import pyarrow as pa

    frames = lazy.collect_batches(chunk_size=BLOCK) if hasattr(lazy, "collect_batches") else [lazy.collect()]
    for frame in frames:
        yield from pa.RecordBatchReader.from_stream(frame)


def _enumerations(frame: Any) -> frozenset[str]:
    """Enumerated columns of a polars frame, whose states keep their order: older versions do not tell Arrow so."""
    schema = frame.collect_schema() if hasattr(frame, "collect_schema") else {}
    return frozenset(name for name, dtype in schema.items() if type(dtype).__name__ == "Enum")


def _pack_piece(piece: tuple[str, int], *, names: list[str], kept: frozenset[str], declared: Container[str]) -> Packed:
    """A row group, on the worker that reads it."""
    import pyarrow.parquet as pq

    file, group = piece
    opened = open_parquet(file, pq.read_schema(file))
    there = [name for name in names if name in opened.schema_arrow.names]
    batches = opened.iter_batches(batch_size=BLOCK, row_groups=[group], columns=there)
    return pack_batches([filled(batch, names, {}) for batch in batches], names=names, kept=kept, declared=declared)


def blocks_of(batches: Iterable[Any], size: int = BLOCK) -> Iterator[list[Any]]:
    """Lists of batches with about `size` rows together and the same types."""
    held: list[Any] = []
    rows = 0
    for batch in batches:
        if held and batch.schema != held[0].schema:
            yield held
            held, rows = [], 0
        for start in range(0, batch.num_rows, size):
            held.append(batch.slice(start, size))
            rows += held[-1].num_rows
            if rows >= size:
                yield held
                held, rows = [], 0
    if held:
        yield held
