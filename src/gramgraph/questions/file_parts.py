"""The file of posteriors: numbered parts in a folder beside it, which one process at a time writes, and their sum."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from gramgraph._replace import replacing, write_whole
from gramgraph.data.stream_files import CSV, PARQUET
from gramgraph.exceptions import GramGraphError, OptionError, VariableError, listing

_NOTE = "question.json"
SUFFIXES = (*PARQUET, *CSV)


def checked_path(out: Any) -> Path:
    """The file that is asked for; `OptionError` for one that cannot be written."""
    path = Path(os.fspath(out))
    if not path.name.lower().endswith(SUFFIXES):
        raise OptionError(f"out is a file that ends in {', '.join(SUFFIXES)}, not {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"there is no folder {str(path.parent)!r} for {path.name!r}")
    return path


def refuse_same_names(kept: Iterable[str], answers: Collection[str]) -> None:
    """`OptionError` where a kept column and a column of the answers have one name."""
    for name in kept:
        if name in answers:
            raise OptionError(
                f"the column {name!r} to keep has the name of a column of the answers: rename it in the table of cases"
            )


class Parts:
    """Numbered parts in a folder beside the file, and a note that says which question they answer."""

    def __init__(self, path: Path, fingerprint: str | None) -> None:
        self.path, self.fingerprint = path, fingerprint
        target = Path(os.path.realpath(path))  # of a link: what it leads to, on whose disk the parts belong
        self.folder = target.with_name(f".{target.name}.parts")
        self._lock = -1
        self._csv = path.name.lower().endswith(CSV)

    def check(self, kept: Any) -> None:
        """`OptionError` for a column (of an Arrow schema) that a file of this kind does not hold."""
        import pyarrow as pa

        for field in kept:
            table = pa.schema([field]).empty_table()
            try:
                (_write_csv if self._csv else _write_parquet)(io.BytesIO(), table.schema, [table], packed=False)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
                other = "a Parquet file does" if self._csv else "drop or convert it"
                raise OptionError(
                    f"{self.path.name!r} cannot hold the column {field.name!r} of {field.type}: {other}"
                ) from None

    @contextlib.contextmanager
    def writing(self) -> Iterator[int]:
        """How many parts are there already; meanwhile nobody else writes the file, and of a mistake nothing stays."""
        self._take()
        try:
            done = self._begin(self.folder / _NOTE)
            try:
                yield done
            except GramGraphError:  # the question or the table is wrong: the same call would fail again
                self.remove()
                raise
            except BaseException:
                if self.is_empty():  # nothing to go on with
                    self.remove()
                raise
        finally:
            self._release()

    def _begin(self, note: Path) -> int:
        """How many parts are there already; those of another question are removed."""
        for left in self.folder.glob(".*.part"):  # of a process that was killed while it wrote
            left.unlink()
        if note.is_file():
            if self.fingerprint is not None and note.read_text("utf-8") == self._note():
                return next(number for number in count() if not self._part(number).is_file())
            for part in self.folder.glob("*.arrow"):
                part.unlink()
        elif any(self.folder.iterdir()):
            raise self._foreign()
        write_whole(note, self._note())
        return 0

    def _take(self) -> None:
        """Make the folder, or take it over, and lock it: the system frees the lock of a process that dies."""
        while True:
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir(mode=0o700)
            if self.folder.is_symlink() or not self.folder.is_dir():
                if not os.path.lexists(self.folder):  # another process has just finished
                    continue
                raise self._foreign()
            try:
                lock = _locked(self.folder)
            except FileNotFoundError:
                continue
            except BlockingIOError:
                raise OptionError(
                    f"another process is writing {str(self.path)!r}: wait until it has ended, or give another out"
                ) from None
            self._lock = lock
            if lock < 0 or _is_still(lock, self.folder):
                return
            self._release()

    def _foreign(self) -> OptionError:
        return OptionError(f"{str(self.folder)!r} is needed for parts of the result, but something else is there")

    def _release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _note(self) -> str:
        return json.dumps({"format": "gramgraph parts", "version": 2, "question": self.fingerprint})

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:08d}.arrow"

    def remove(self) -> None:
        """Take the parts away."""
        shutil.rmtree(self.folder, ignore_errors=True)

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

    def is_empty(self) -> bool:
        """Whether no part has been written."""
        return not self._part(0).is_file()

    def finish(self) -> tuple[int, int, tuple[str, ...]]:
        """Put the parts together, and remove them: (cases, impossible ones, names of the columns)."""
        import pyarrow.compute as pc

        rows = impossible = 0

        def counted() -> Iterator[Any]:
            nonlocal rows, impossible
            for table in self._tables():
                rows += table.num_rows
                impossible += int(pc.sum(pc.is_inf(table["log_evidence"])).as_py() or 0)
                yield table

        schema = self._schema()
        with replacing(self.path, within=self.folder) as stream:
            write = _write_csv if self._csv else _write_parquet
            write(stream, schema, counted(), packed=self.path.name.lower().endswith(".gz"))
        self.remove()
        return rows, impossible, tuple(schema.names)

    def _schema(self) -> Any:
        """The types of all parts: columns of objects in a Dask frame have none in partitions without cells."""
        import pyarrow as pa

        found = list(dict.fromkeys(table.schema for table in self._tables()))
        try:
            return pa.unify_schemas(found, promote_options="default")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            for name in found[0].names:
                kinds = list(dict.fromkeys(str(schema.field(name).type) for schema in found))
                if len({kind for kind in kinds if kind != "null"}) > 1:
                    raise VariableError(
                        f"column {name!r} is {listing(kinds)} in different partitions: give it one type, by astype"
                    ) from None
            raise


def _locked(folder: Path) -> int:
    """The descriptor of a folder that nobody else has locked, or -1 where the system has no such locks."""
    try:
        import fcntl
    except ImportError:  # Windows: two processes with one file are not told of each other
        return -1
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise
    except OSError:  # a disk in the network without locks
        pass
    return lock


def _is_still(lock: int, folder: Path) -> bool:
    """Whether the folder that was locked still has its name: who had it before may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(folder))
    except FileNotFoundError:
        return False


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
        csv.write_csv(table.cast(schema), target, csv.WriteOptions(include_header=number == 0))
    if packed:
        target.close()
