"""Questions about tables that are not in memory: blocks of cases in, a file of posteriors out, in constant memory.

Blocks are answered one after the other, on threads, or on the workers of a Dask cluster, and written as parts beside
the file; when all are there they become the file in one step. After an interruption the same call goes on with the
first block that is missing.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph._replace import replacing, write_whole
from gramgraph.answers.columns import posterior_columns
from gramgraph.data.frames import read_frame
from gramgraph.data.map_reduce import RETRIES, find_client, in_order
from gramgraph.data.stream import BLOCK, blocks_of, is_dask, is_stream, open_stream, readable
from gramgraph.exceptions import GramGraphError, OptionError, VariableError, did_you_mean, listing
from gramgraph.models.base import GraphicalModel

#: Bytes of posteriors that one block may have.
_BLOCK_BYTES = 64 << 20
_SUFFIXES = (".parquet", ".pq", ".csv", ".csv.gz")
_TYPES = ("float32", "float64")
_NOTE = "question.json"
#: How columns begin in which pandas and Dask keep the index of a frame.
_INDEX = ("__index_level_", "__null_dask_index__")


@dataclass(frozen=True)
class Posteriors:
    """A file of posteriors: where it is, and how many cases it holds.

    `impossible` cases have probability zero: their posteriors are empty and their log_evidence is -inf. `resumed` cases
    were answered by an earlier call that was interrupted.
    """

    path: str
    rows: int
    impossible: int
    resumed: int
    columns: tuple[str, ...]

    def to_frame(self) -> Any:
        """The whole file as a pandas frame."""
        import pandas as pd

        return pd.read_csv(self.path) if ".csv" in Path(self.path).suffixes else pd.read_parquet(self.path)

    def __str__(self) -> str:
        notes = [f"{self.impossible:,} impossible"] if self.impossible else []
        notes += [f"{self.resumed:,} answered before"] if self.resumed else []
        more = f" ({', '.join(notes)})" if notes else ""
        return f"{self.rows:,} cases{more} in {self.path}: {listing(self.columns)}"


@dataclass(frozen=True)
class Job:
    """What is asked about every block; it is sent to a cluster once."""

    ask: Callable[..., Any]  # (model, targets, frame, **options) → Answer
    model: GraphicalModel
    targets: Any
    keep: tuple[str, ...]
    dtype: str
    options: dict[str, Any]

    def size(self) -> int:
        """Rows whose posteriors fit into a block."""
        numbers = 1.0 + sum(_numbers(self.model, target) for target in self.targets)
        return int(min(BLOCK, max(256, _BLOCK_BYTES // (8 * numbers))))


def _numbers(model: GraphicalModel, target: Any) -> float:
    """About how many numbers a belief has."""
    names = (target,) if isinstance(target, str) else target
    sizes = [model.var(name).size if model.var(name).is_discrete else 64 for name in names]
    return float(math.prod(sizes))


def query_file(
    ask: Callable[..., Any],
    model: GraphicalModel,
    targets: Any,
    evidence: Any,
    *,
    out: str | os.PathLike[str],
    keep: Any = None,
    dtype: str = "float64",
    client: Any = None,
    n_jobs: int = 1,
    progress: Progress = False,
    **options: Any,
) -> Posteriors:
    """Answer every row of a file, a stream or a Dask frame, and write one row of posteriors per case.

    `ask(model, targets, frame, **options)` answers a block. Memory: a few blocks. With a `client` the workers of a
    cluster answer; they read Parquet files and partitions themselves, other blocks are read here and sent to them.
    """
    path = _checked_path(out, dtype)
    client = None if client is None else find_client(client)
    kept = (keep,) if isinstance(keep, str) else tuple(keep or ())
    source = _opened(evidence, client)
    for name in kept:
        if name not in source.names:
            raise VariableError(
                f"the table of cases has no column {name!r} to keep. Columns: {listing(source.names)}."
                f"{did_you_mean(name, source.names)}"
            )
    seen = [name for name in source.names if name not in kept]
    _refuse_others(model, seen)
    asked = [name for name in model.variables if name not in seen] if targets is None else _listed(targets)
    job = Job(ask, model, asked, kept, dtype, options)
    parts = _Parts(path, _fingerprint(job, source.identity))
    done = parts.begin()
    try:
        with reporting(progress, source.rows, "cases") as report, readable(evidence):
            rows = parts.rows(done)
            blocks = islice(source.blocks(job.size()), done, None)
            found = in_order(source.answer, blocks, shared=(job,), n_jobs=n_jobs, client=source.client)
            for number, table in enumerate(found, start=done):
                parts.write(number, table)
                rows += table.num_rows
                if report is not None:
                    report(rows)
    except GramGraphError:  # the question or the table is wrong: the same call would fail again
        parts.remove()
        raise
    return parts.finish(empty=lambda: _answered(_no_rows(source.names), job), before=done)


def _refuse_others(model: GraphicalModel, names: Sequence[str]) -> None:
    """`VariableError` for a column that is neither a variable nor kept, nor the index of a frame."""
    for name in names:
        if name not in model.positions and not name.startswith(_INDEX):
            said = VariableError.unknown(name, model.variables)
            raise VariableError(f"{said} A column that only passes through is named in keep=: keep=[{name!r}]")


def _listed(targets: Any) -> list[Any]:
    return [targets] if isinstance(targets, (str, tuple)) else list(targets)


def _checked_path(out: Any, dtype: str) -> Path:
    path = Path(os.fspath(out))
    if not path.name.lower().endswith(_SUFFIXES):
        raise OptionError(f"out is a file that ends in {', '.join(_SUFFIXES)}, not {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"there is no folder {str(path.parent)!r} for {path.name!r}")
    if dtype not in _TYPES:
        raise OptionError(f"dtype is {' or '.join(map(repr, _TYPES))}, not {dtype!r}")
    return path


# ------------------------------------------------------------------------------------------------ where cases come from


@dataclass(frozen=True)
class _Cases:
    """A table that is read in blocks."""

    names: list[str]
    blocks: Callable[[int], Iterator[Any]]  # rows of a block → blocks, always the same ones
    answer: Callable[[Any, Job], Any]  # (block, job) → Arrow table
    rows: int = -1  # -1: not known
    client: Any = None
    identity: Any = None  # what tells that it is the same table again; None: it cannot be read twice


def _opened(evidence: Any, client: Any) -> _Cases:
    if is_dask(evidence):
        return _dask_cases(evidence, client)
    if not is_stream(evidence):
        return _frame_cases(evidence, client)
    with readable(evidence):
        source = open_stream(evidence)
    identity: list[Any] | None = None
    if isinstance(evidence, (str, os.PathLike)):
        files = sorted({file for file, _ in source.pieces}) or [os.fspath(evidence)]
        identity = [(name, os.stat(name).st_size, os.stat(name).st_mtime_ns) for name in files]
    if client is not None and source.pieces:
        identity = identity and ["row groups", *identity]  # other blocks than without a cluster
        return _Cases(source.names, lambda size: iter(source.pieces), _answer_piece, source.rows, client, identity)

    def blocks(size: int) -> Iterator[Any]:
        first = 0
        for batches in blocks_of(source.batches(source.names), size):
            yield first, batches
            first += sum(batch.num_rows for batch in batches)

    return _Cases(source.names, blocks, _answer_batches, source.rows, client, identity)


def _frame_cases(evidence: Any, client: Any) -> _Cases:
    """A frame in memory, block by block."""
    table = read_frame(evidence, what="evidence").table

    def blocks(size: int) -> Iterator[Any]:
        return (table.iloc[first : first + size] for first in range(0, len(table), size))

    return _Cases(list(map(str, table.columns)), blocks, _answered, len(table), client)


def _dask_cases(evidence: Any, client: Any) -> _Cases:
    """The partitions of a Dask frame: on the workers of a cluster, or here."""
    from dask.base import tokenize

    parts = evidence.to_delayed()
    names = list(map(str, evidence.columns))
    if client is None:
        return _Cases(names, lambda size: iter(parts), _answer_delayed, identity=tokenize(evidence))

    def blocks(size: int) -> Iterator[Any]:
        return (client.compute(part, retries=RETRIES) for part in parts)

    return _Cases(names, blocks, _answered, client=client, identity=tokenize(evidence))


# ------------------------------------------------------------------------------------------------ answering a block


def _answer_batches(block: tuple[int, list[Any]], job: Job) -> Any:
    """Arrow batches, the first row of which has a number in the file."""
    first, batches = block
    return _answered(_as_frame(batches, job.keep, first), job)


def _answer_piece(piece: tuple[str, int], job: Job) -> Any:
    """A row group of a Parquet file, on the worker that reads it."""
    import pyarrow.parquet as pq

    file, group = piece
    table = pq.ParquetFile(file).read_row_group(group)
    try:
        return _answered(_as_frame(table.to_batches(), job.keep, 0), job)
    except GramGraphError as error:
        raise type(error)(f"{file}, row group {group}: {error}") from None


def _answer_delayed(part: Any, job: Job) -> Any:
    return _answered(part.compute(), job)


def _as_frame(batches: list[Any], keep: Sequence[str], first: int) -> Any:
    """A pandas frame in which texts are categories, so that every label is looked up once."""
    import pyarrow as pa

    table = pa.Table.from_batches(batches)
    table = table.drop_columns([name for name in table.column_names if name.startswith(_INDEX)])
    for place, field in enumerate(table.schema):
        text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        if text and field.name not in keep:
            table = table.set_column(place, field.name, table.column(place).dictionary_encode())
        elif field.name in keep and pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    frame = table.unify_dictionaries().to_pandas(ignore_metadata=True)
    frame.index = range(first, first + len(frame))  # rows of the file, for messages
    return frame


def _no_rows(names: Sequence[str]) -> Any:
    import pandas as pd

    return pd.DataFrame({name: pd.Series(dtype=object) for name in names})


def _answered(frame: Any, job: Job) -> Any:
    """The posteriors of a frame as an Arrow table: kept columns first."""
    import pyarrow as pa

    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    size = job.size()
    tables = []
    for first in range(0, max(len(frame), 1), size):
        part = frame.iloc[first : first + size]
        observed = part.drop(columns=[name for name in job.keep if name not in job.model.positions])
        answer = job.ask(job.model, job.targets, observed, **job.options)
        found = posterior_columns(answer, np.dtype(job.dtype))
        columns = {name: pa.array(part[name], from_pandas=True) for name in job.keep}
        tables.append(pa.table({**columns, **{name: pa.array(column) for name, column in found.items()}}))
    return pa.concat_tables(tables) if len(tables) > 1 else tables[0]


def _fingerprint(job: Job, identity: Any) -> str | None:
    """What must be the same for the parts of an earlier call to be used again."""
    if identity is None:
        return None
    said = (job.model, job.targets, job.keep, job.dtype, sorted(job.options.items(), key=lambda item: item[0]))
    try:
        known = pickle.dumps(said, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
    return hashlib.sha256(known + repr(identity).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------ parts and the file


class _Parts:
    """Numbered parts in a folder beside the file, and a note that says which question they answer."""

    def __init__(self, path: Path, fingerprint: str | None) -> None:
        self.path, self.fingerprint = path, fingerprint
        self.folder = path.with_name(f".{path.name}.parts")

    def begin(self) -> int:
        """How many parts are there already; those of another question are removed."""
        note = self.folder / _NOTE
        if self.folder.is_symlink() or (self.folder.exists() and not note.is_file()):
            raise OptionError(f"{str(self.folder)!r} is needed for parts of the result, but something else is there")
        if note.is_file():
            if self.fingerprint is not None and note.read_text("utf-8") == self._note():
                return next(number for number in count() if not self._part(number).is_file())
            self.remove()
        self.folder.mkdir(mode=0o700)
        write_whole(note, self._note())
        return 0

    def _note(self) -> str:
        return json.dumps({"format": "gramgraph parts", "version": 1, "question": self.fingerprint})

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:08d}.arrow"

    def remove(self) -> None:
        """Take the parts away."""
        shutil.rmtree(self.folder)

    def rows(self, first: int) -> int:
        """Rows of the first parts."""
        return sum(table.num_rows for table in self._tables(first))

    def write(self, number: int, table: Any) -> None:
        """Keep a part, whole or not at all."""
        import pyarrow as pa

        with replacing(self._part(number)) as stream, pa.ipc.new_file(stream, table.schema) as writer:
            writer.write_table(table)

    def _tables(self, first: int | None = None) -> Iterator[Any]:
        import pyarrow as pa

        for part in sorted(self.folder.glob("*.arrow"))[:first]:
            with pa.memory_map(str(part)) as stream:
                yield pa.ipc.open_file(stream).read_all()

    def finish(self, *, empty: Callable[[], Any], before: int) -> Posteriors:
        """Put the parts together, and remove them."""
        import pyarrow.compute as pc

        resumed = self.rows(before) if before else 0
        if not self._part(0).is_file():
            self.write(0, empty())
        rows = impossible = 0

        def counted() -> Iterator[Any]:
            nonlocal rows, impossible
            for table in self._tables():
                rows += table.num_rows
                impossible += int(pc.sum(pc.is_inf(table["log_evidence"])).as_py() or 0)
                yield table

        schema = next(self._tables(1)).schema
        with replacing(self.path) as stream:
            write = _write_csv if ".csv" in self.path.name.lower() else _write_parquet
            write(stream, schema, counted(), packed=self.path.name.lower().endswith(".gz"))
        self.remove()
        return Posteriors(str(self.path), rows, impossible, resumed, tuple(schema.names))


def _write_parquet(stream: Any, schema: Any, tables: Iterable[Any], *, packed: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    with pq.ParquetWriter(stream, schema, use_dictionary=repeated, write_statistics=False) as writer:
        for table in tables:
            writer.write_table(table.cast(schema))


def _write_csv(stream: Any, schema: Any, tables: Iterable[Any], *, packed: bool) -> None:
    from pyarrow import csv

    target = gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) if packed else stream
    for number, table in enumerate(tables):
        csv.write_csv(table, target, csv.WriteOptions(include_header=number == 0))
    if packed:
        target.close()
