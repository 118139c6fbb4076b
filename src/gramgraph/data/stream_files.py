"""Tables in files: which files a path, a folder or a pattern names, and their rows as Arrow batches.

Several files are one table with the columns of all of them; a column that a file lacks is missing in its rows.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramgraph.exceptions import OptionError, VariableError

#: Rows of a block, a multiple of 64.
BLOCK = 1 << 17
#: What stands for a missing cell in a CSV file that is learned from.
MISSING = ("", "NA", "NaN", "?")
#: How names of Parquet files and of CSV files end.
PARQUET, CSV = (".parquet", ".pq"), (".csv", ".csv.gz")
#: How columns begin in which pandas and Dask keep the index of a frame.
INDEX = ("__index_level_", "__null_dask_index__")


@dataclass(frozen=True)
class Source:
    """An opened table: its batches for some columns, or pieces of files that workers can read themselves."""

    names: list[str]
    batches: Any  # chosen names → iterator of batches
    rows: int = -1  # -1: not known
    kept: frozenset[str] = frozenset()  # columns whose labels keep the order of their dictionary
    pieces: tuple[tuple[str, int], ...] = ()  # (Parquet file, row group)
    schemas: tuple[tuple[str, Any], ...] = ()  # (file, Arrow schema as declared); a stream has no file: ""
    texts: bool = False  # cells are the texts of a CSV file


@dataclass(frozen=True)
class _File:
    path: str
    schema: Any
    read: Callable[[list[str]], Iterator[Any]] = field(repr=False)  # names → batches
    rows: int = -1
    groups: int = 0


def need_arrow() -> None:
    """`OptionError` with what helps where pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise OptionError("files and streams are read with pyarrow: pip install 'gramgraph[data]'") from None


@contextlib.contextmanager
def readable(data: Any) -> Iterator[None]:
    """Errors of the reader as `VariableError` with the name of the file."""
    need_arrow()
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError as error:
        raise VariableError(f"{_named(data)}the texts are not UTF-8 ({error}): save the file as UTF-8") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowIndexError) as error:
        raise VariableError(f"{_named(data)}{_fault_of_csv(data) or error}") from None
    except OSError as error:
        if error.errno is not None:  # the system's own: a file that is not there, a full disk
            raise
        raise VariableError(f"{_named(data)}{error}. The file is damaged, or not what its name says") from None


def _named(data: Any) -> str:
    return f"{os.fspath(data)}: " if isinstance(data, (str, os.PathLike)) else ""


def _fault_of_csv(path: Any) -> str:
    """What one thread finds wrong with a CSV file: it counts rows, which several threads do not."""
    import pyarrow as pa
    from pyarrow import csv

    if not isinstance(path, (str, os.PathLike)) or not str(path).lower().endswith(CSV):
        return ""
    try:
        for _ in csv.open_csv(path, read_options=csv.ReadOptions(use_threads=False, block_size=1 << 24)):
            pass
    except (OSError, UnicodeDecodeError, pa.ArrowInvalid) as error:
        return str(error)
    return ""


def files_of(path: Path) -> list[Path]:
    """The files that a path, a folder or a pattern with `*` names: all of them Parquet, or all of them CSV."""
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if _suffixed(file) and file.is_file())
        _refuse_partitions(path, found)
    elif "*" in path.name:
        found = sorted(file for file in path.parent.glob(path.name) if _suffixed(file))
    elif _suffixed(path):
        path.stat()  # one that is not there is named here, in the system's words
        return [path]
    else:
        raise OptionError(f"a table is read from .parquet, .pq, .csv or .csv.gz, not from {path.name!r}")
    if not found:
        raise VariableError(f"{path}: there is no Parquet file and no CSV file")
    if len({is_csv(file) for file in found}) > 1:
        pattern = str((path if path.is_dir() else path.parent) / "*.parquet")
        raise OptionError(f"{path} names both Parquet and CSV files: choose with a pattern such as {pattern!r}")
    return found


def _suffixed(path: Path) -> bool:
    return path.name.lower().endswith((*PARQUET, *CSV))


def is_csv(path: str | os.PathLike[str]) -> bool:
    """Whether the name is that of a CSV file."""
    return os.fspath(path).lower().endswith(CSV)


def holds_texts(data: Any) -> bool:
    """Whether data is the path, the folder or the pattern of CSV files."""
    return isinstance(data, (str, os.PathLike)) and is_csv(files_of(Path(data))[0])


def _refuse_partitions(folder: Path, files: Sequence[Path]) -> None:
    """`OptionError` where names of folders hold values of a column, which no file does."""
    for file in files:
        for part in file.relative_to(folder).parent.parts:
            if "=" in part:
                raise OptionError(
                    f"{folder} is parted into folders such as {part!r}, whose names hold values of a column. A pyarrow "
                    f"dataset reads them: pyarrow.dataset.dataset({str(folder)!r}, partitioning='hive')"
                )


def open_files(path: Path, *, cases: bool = False) -> Source:
    """The table of a path, a folder or a pattern; `cases`: cells of CSV files are texts, as they stand there."""
    files = []
    for name in files_of(path):
        with readable(name):
            files.append(_csv(name, cases) if is_csv(name) else _parquet(name))
        _refuse_twice(files[-1])
    types: dict[str, Any] = {}
    for file in files:
        for column in file.schema:
            types.setdefault(column.name, column.type)
    names = [name for name in types if not name.startswith(INDEX)]

    def batches(chosen: list[str]) -> Iterator[Any]:
        for file in files:
            known = set(file.schema.names)
            there = [name for name in chosen if name in known]
            with readable(file.path):
                for batch in file.read(there):
                    yield filled(batch, chosen, types)

    pieces = tuple((file.path, group) for file in files for group in range(file.groups))
    rows = -1 if any(file.rows < 0 for file in files) else sum(file.rows for file in files)
    schemas = tuple((file.path, file.schema) for file in files)
    return Source(names, batches, rows, categories(files[0].schema), pieces, schemas, is_csv(files[0].path))


def _refuse_twice(file: _File) -> None:
    names = file.schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise VariableError(f"{file.path} has more than one column {twice!r}: rename or drop one of them")


def filled(batch: Any, chosen: list[str], types: dict[str, Any]) -> Any:
    """The batch with all chosen columns, missing (of these types, or texts) where the file lacks them."""
    import pyarrow as pa

    if batch.schema.names == chosen:
        return batch
    there = set(batch.schema.names)
    if there.issuperset(chosen):
        return batch.select(chosen)
    columns = [
        batch.column(x) if x in there else pa.nulls(batch.num_rows, _read_as(types.get(x, pa.string()))) for x in chosen
    ]
    return pa.record_batch(columns, names=chosen)


def categories(schema: Any) -> frozenset[str]:
    """Columns that were categories of pandas: their states keep their order."""
    noted = (schema.pandas_metadata or {}).get("columns", ())
    return frozenset(str(note["field_name"]) for note in noted if note.get("pandas_type") == "categorical")


def _parquet(path: Path) -> _File:
    import pyarrow.parquet as pq

    about = pq.read_metadata(path)
    schema = about.schema.to_arrow_schema()
    read = lambda names: open_parquet(path, schema).iter_batches(batch_size=BLOCK, columns=names)  # noqa: E731
    return _File(str(path), schema, read, about.num_rows, about.num_row_groups)


def open_parquet(file: Path | str, schema: Any) -> Any:
    """The file, with texts read as dictionaries."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, read_dictionary=[column.name for column in schema if is_text(column.type)])


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is that of texts."""
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _read_as(kind: Any) -> Any:
    import pyarrow as pa

    return pa.dictionary(pa.int32(), kind) if is_text(kind) else kind


def _csv(path: Path, cases: bool) -> _File:
    import pyarrow as pa
    from pyarrow import csv

    with csv.open_csv(path) as first:
        names = list(first.schema.names)
    # An empty line in a file of one column is a case in which nothing was observed.
    lines = cases and len(names) == 1

    def read(chosen: list[str]) -> Iterator[Any]:
        skipped = _empty_lines(path) if lines else 0
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            null_values=[""] if cases else list(MISSING),
            include_columns=chosen,
        )
        how = csv.ReadOptions(block_size=1 << 24, skip_rows=skipped)
        parse = csv.ParseOptions(ignore_empty_lines=not lines)
        return iter(csv.open_csv(path, convert_options=convert, read_options=how, parse_options=parse))

    return _File(str(path), pa.schema([(name, pa.string()) for name in names]), read)


def _empty_lines(path: Path) -> int:
    """How many empty lines stand before the names of the columns."""
    import pyarrow as pa

    with pa.input_stream(str(path)) as stream:
        start = stream.read(1 << 16)
    return len(start[: len(start) - len(start.lstrip(b"\r\n"))].splitlines())
