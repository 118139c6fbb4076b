"""A table of cases in, a table of posteriors out, a chunk at a time: memory does not grow with the file."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from gramgraph._progress import progress_bar
from gramgraph.answers.columns import posterior_columns
from gramgraph.cli.cells import understood, write_csv
from gramgraph.cli.common import output, sampling_options
from gramgraph.data.cases import refuse_own_input, said_by
from gramgraph.evidence import Not
from gramgraph.exceptions import GramGraphError, StateError, VariableError, did_you_mean
from gramgraph.models import GraphicalModel
from gramgraph.questions.file_parts import checked_path, refuse_same_names


def query_cases(
    model: GraphicalModel, args: argparse.Namespace, *, targets: list[Any] | None, evidence: Any, virtual_evidence: Any
) -> int:
    """Write one row of posteriors per case: the kept columns, log_evidence, and a column `variable=state` each."""
    import pandas as pd

    if _is_table(args.cases) or _is_parquet(args.out):
        return _through_files(model, args, targets, evidence, virtual_evidence)

    def ask(frame: Any, likelihoods: Any) -> tuple[Any, Any]:
        # Without targets: what has no column. The columns of the output must be the same in every chunk.
        asked = [name for name in model.variables if name not in frame.columns] if targets is None else targets
        options = sampling_options(args)
        answer = model.query(
            asked, evidence=frame, virtual_evidence=likelihoods, engine=args.engine, memory=args.memory, **options
        )
        return pd.DataFrame(posterior_columns(answer)), np.asarray(answer.log_evidence)

    return _answer_cases(model, args, ask, evidence, virtual_evidence)


def _is_parquet(path: str | None) -> bool:
    return path is not None and path.lower().endswith((".parquet", ".pq"))


def _is_table(path: str) -> bool:
    """Whether the path is that of a Parquet file, of a folder, or a pattern."""
    return _is_parquet(path) or os.path.isdir(path) or "*" in os.path.basename(path)


def _through_files(model: GraphicalModel, args: argparse.Namespace, targets: Any, evidence: Any, virtual: Any) -> int:
    """Parquet in or out, or several files: as `query(…, out=…)` does it."""
    if args.out is None:
        what = "Parquet" if _is_parquet(args.cases) else f"{args.cases}, which is more than one file,"
        raise GramGraphError(f"{what} needs --out, a file that ends in .parquet or .csv")
    if evidence:
        raise GramGraphError("--evidence beside --cases is available for one CSV file: add a column instead")
    written = model.query(
        targets, evidence=args.cases, virtual_evidence=virtual, engine=args.engine, memory=args.memory,
        keep=args.keep, out=args.out, progress=True, n_jobs=args.jobs, **sampling_options(args),
    )  # fmt: skip
    sys.stderr.write(f"gramgraph: {written}\n")
    return 0


def map_cases(
    model: GraphicalModel, args: argparse.Namespace, *, evidence: Any, virtual_evidence: Any, **options: Any
) -> int:
    """Write the most probable states, one row per case."""

    def ask(frame: Any, likelihoods: Any) -> tuple[Any, Any]:
        best = model.map_query(frame, virtual_evidence=likelihoods, **options)
        log_prob = best["log_prob"] if "log_prob" in best.columns else np.zeros(len(frame))
        return best, np.asarray(log_prob)

    return _answer_cases(model, args, ask, evidence, virtual_evidence)


def _answer_cases(model: GraphicalModel, args: argparse.Namespace, ask: Any, evidence: Any, virtual: Any) -> int:
    import pandas as pd

    if _is_table(args.cases) or _is_parquet(args.out):
        raise GramGraphError(
            "the best states are read from one CSV file and written to another; Parquet and folders are for query"
        )
    if args.out is not None:
        _check_out(args)
    fixed, likelihoods = _split_evidence(model, evidence, virtual)
    impossible = done = 0
    with _reading(args) as (chunks, progress), output(args.out) as stream:
        for chunk in chunks:
            kept, frame = _observations(model, chunk, args, fixed)
            frame.index = range(done + 1, done + 1 + len(frame))  # rows of the file, for messages
            try:
                table, log_prob = ask(frame, likelihoods)
            except (StateError, VariableError) as error:
                raise type(error)(f"{args.cases}: {error}") from error
            refuse_same_names(args.keep, table.columns)
            table = pd.concat([kept.reset_index(drop=True), table.reset_index(drop=True)], axis=1)
            write_csv(table, stream, header=done == 0, raw=args.raw)
            impossible += int(np.isneginf(log_prob).sum())
            done += len(frame)
            progress(done)
    if impossible:
        sys.stderr.write(f"gramgraph: {impossible} of {done} cases have probability zero; their cells are empty\n")
    return 0


def _check_out(args: argparse.Namespace) -> None:
    """`OptionError` for a name that is not that of a CSV file, and for that of the cases themselves."""
    if os.path.isfile(args.out) or not os.path.exists(args.out):  # pipes and devices have the names that they have
        checked_path(args.out)
    refuse_own_input(args.out, args.cases)


def _split_evidence(
    model: GraphicalModel, evidence: dict[str, Any], virtual: dict[str, dict[str, float]] | None
) -> tuple[dict[str, Any], dict[str, dict[str, float]] | None]:
    """Labels become columns; "one of these" and "not these" become weights of 0 and 1 for every case."""
    fixed = {name: value for name, value in evidence.items() if isinstance(value, (str, float))}
    likelihoods = {name: dict(weights) for name, weights in (virtual or {}).items()}
    for name, value in evidence.items():
        if name not in fixed:
            allowed = [label for label in model.states(name) if (label in value.states) != isinstance(value, Not)]
            weights = likelihoods.setdefault(name, dict.fromkeys(model.states(name), 1.0))
            likelihoods[name] = {label: w for label, w in weights.items() if label in allowed}
    return fixed, likelihoods or None


def _observations(
    model: GraphicalModel, chunk: Any, args: argparse.Namespace, fixed: dict[str, str]
) -> tuple[Any, Any]:
    """(columns to copy, the evidence) of a chunk."""
    for name in args.keep:
        if name not in chunk.columns:
            raise VariableError(f"{args.cases} has no column {name!r}.{did_you_mean(name, chunk.columns)}")
    frame = chunk.drop(columns=args.keep).rename(columns=lambda name: understood(name, model.variables))
    for name in frame.columns:
        if name not in model:
            hint = did_you_mean(name, model.variables)
            keep = f"A column that is not an observation is copied by --keep {name}"
            raise VariableError(f"{args.cases}: column {name!r} is not a variable of the model.{hint} {keep}")
        var = model.var(name)
        labels = var.states if var.is_discrete else ()
        said = {cell: said_by(understood(cell, labels), var) for cell in frame[name].unique()}
        cells = frame[name].map(said).astype(object)
        frame[name] = cells.where(cells.notna(), None)
    for name, label in fixed.items():
        if name in frame.columns:
            raise GramGraphError(f"{name} is observed twice: by --evidence and by a column of {args.cases}")
        frame[name] = label
    return chunk[args.keep], frame


# ------------------------------------------------------------------------------------------ files, progress


@contextlib.contextmanager
def _reading(args: argparse.Namespace) -> Iterator[tuple[Any, Any]]:
    """The chunks of the file as text cells, and a function that shows how far it is."""
    import pandas as pd

    packed = "gzip" if args.cases.endswith(".gz") else None
    options: dict[str, Any] = {"dtype": str, "keep_default_na": False, "index_col": False, "compression": packed}
    with open(args.cases, "rb") as stream:
        try:
            header = pd.read_csv(stream, nrows=0, **options).columns
            stream.seek(0)
            # An empty line in a file of one column is a case in which nothing was observed.
            chunks = pd.read_csv(stream, chunksize=args.chunk, skip_blank_lines=len(header) > 1, **options)
        except (ValueError, EOFError, OSError) as error:
            raise GramGraphError(f"{args.cases}: {error}") from error
        with progress_bar(os.fstat(stream.fileno()).st_size) as advance:
            yield _guarded(chunks, args.cases), lambda done: advance(stream.tell(), done)


def _guarded(chunks: Any, path: str) -> Iterator[Any]:
    """The chunks, with pandas' complaints about the file as errors of ours."""
    from pandas.errors import ParserWarning

    rows = iter(chunks)
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", ParserWarning)
                chunk = next(rows)
        except StopIteration:
            return
        except (ValueError, EOFError, OSError, ParserWarning) as error:  # pandas' ParserError is a ValueError
            raise GramGraphError(f"{path}: {error}") from error
        yield chunk
