"""Questions about tables that are not in memory: blocks of cases in, a file of posteriors out, in constant memory.

Blocks are answered one after the other, on threads, or on the workers of a Dask cluster, and written as parts beside
the file; when all are there they become the file in one step. After an interruption the same call goes on with the
first block that is missing.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.answers.columns import posterior_columns
from gramgraph.data.cases import refuse_own_input
from gramgraph.data.map_reduce import find_client, in_order
from gramgraph.data.stream_files import BLOCK, INDEX, need_arrow, readable
from gramgraph.exceptions import GramGraphError, OptionError, VariableError, listing
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.file_cases import Cases, Read, open_cases
from gramgraph.questions.file_parts import Parts, checked_path, refuse_same_names
from gramgraph.variables import Var

#: Bytes of posteriors that one block may have.
_BLOCK_BYTES = 64 << 20
_TYPES = ("float32", "float64")


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
    kept: Any  # the Arrow schema of the columns that pass through
    dtype: str
    options: dict[str, Any]

    def size(self) -> int:
        """Rows whose posteriors fit into a block."""
        numbers = 1.0 + sum(_numbers(self.model, target) for target in self.targets)
        return int(min(BLOCK, max(256, _BLOCK_BYTES // (8 * numbers))))

    def variable(self, name: str) -> Var | None:
        """The variable of this name, if there is one."""
        return self.model.var(name) if name in self.model.positions else None


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
    need_arrow()
    path = checked_path(out)
    if dtype not in _TYPES:
        raise OptionError(f"dtype is {' or '.join(map(repr, _TYPES))}, not {dtype!r}")
    client = None if client is None else find_client(client)
    refuse_own_input(path, evidence)
    source = open_cases(evidence, _names(keep), client)
    seen = [name for name in source.names if name not in source.kept.names]
    _refuse_others(model, seen)
    asked = [name for name in model.variables if name not in seen] if targets is None else _listed(targets)
    job = Job(ask, model, asked, source.kept, dtype, options)
    parts = Parts(path, _fingerprint(job, source.identity))
    parts.check(source.kept)
    with parts.writing() as done:
        resumed = parts.rows(done)
        _answer_all(source, job, parts, done, resumed, n_jobs, progress)
        if parts.is_empty():
            parts.write(0, _answered(_no_rows(source.names, source.kept), source.kept.empty_table(), job))
        rows, impossible, columns = parts.finish()
    return Posteriors(str(path), rows, impossible, resumed, columns)


def _answer_all(source: Cases, job: Job, parts: Parts, done: int, rows: int, n_jobs: int, progress: Progress) -> None:
    """Answer and write all blocks but the first, which are done."""
    answer = partial(_answer_piece if source.pieces else _answer, read=source.read, path=source.path)
    with reporting(progress, source.rows, "cases") as report:
        blocks = islice(source.blocks(job.size()), done, None)
        found = in_order(answer, blocks, shared=(job,), n_jobs=n_jobs, client=source.client)
        for number, table in enumerate(found, start=done):
            parts.write(number, table)
            rows += table.num_rows
            if report is not None:
                report(rows)


def _names(keep: Any) -> tuple[str, ...]:
    return (keep,) if isinstance(keep, str) else tuple(dict.fromkeys(keep or ()))


def _refuse_others(model: GraphicalModel, names: Sequence[str]) -> None:
    """`VariableError` for a column that is neither a variable nor kept, nor the index of a frame."""
    for name in names:
        if name not in model.positions and not name.startswith(INDEX):
            said = VariableError.unknown(name, model.variables)
            raise VariableError(f"{said} A column that only passes through is named in keep=: keep=[{name!r}]")


def _listed(targets: Any) -> list[Any]:
    return [targets] if isinstance(targets, (str, tuple)) else list(targets)


# ------------------------------------------------------------------------------------------------ answering a block


def _no_rows(names: Sequence[str], kept: Any) -> Any:
    import pandas as pd

    return pd.DataFrame({name: pd.Series(dtype=object) for name in names if name not in kept.names})


def _answer(block: Any, job: Job, *, read: Read, path: str | None) -> Any:
    """The posteriors of a block as an Arrow table, here or on a worker."""
    with readable(path):
        observed, kept = read(block, job.kept, job.variable)
    return _answered(observed, kept, job)


def _answer_piece(piece: tuple[str, int], job: Job, *, read: Read, path: str | None) -> Any:
    """Those of a row group of a Parquet file, the rows of which have numbers of their own."""
    file, group = piece
    try:
        return _answer(piece, job, read=read, path=None)
    except GramGraphError as error:
        raise type(error)(f"{file}, row group {group}: {error}") from None


def _answered(observed: Any, kept: Any, job: Job) -> Any:
    """The posteriors of a frame as an Arrow table: kept columns first."""
    import pyarrow as pa

    size = job.size()
    tables = []
    for first in range(0, max(len(observed), 1), size):
        answer = job.ask(job.model, job.targets, observed.iloc[first : first + size], **job.options)
        found = posterior_columns(answer, np.dtype(job.dtype))
        refuse_same_names(job.kept.names, found)
        columns = {} if kept is None else dict(zip(kept.column_names, kept.slice(first, size).columns, strict=True))
        tables.append(pa.table({**columns, **{name: pa.array(column) for name, column in found.items()}}))
    return pa.concat_tables(tables) if len(tables) > 1 else tables[0]


def _fingerprint(job: Job, identity: Any) -> str | None:
    """What must be the same for the parts of an earlier call to be used again."""
    if identity is None:
        return None
    said = (job.model, job.targets, job.kept, job.dtype, sorted(job.options.items(), key=lambda item: item[0]))
    try:
        known = pickle.dumps(said, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
    return hashlib.sha256(known + repr(identity).encode()).hexdigest()
