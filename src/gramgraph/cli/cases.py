"""A table of cases in, a table of posteriors out, a chunk at a time: memory does not grow with the file."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import sys
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from gramgraph._show import fraction_done, joined
from gramgraph.answers import Answer
from gramgraph.exceptions import GramGraphError, StateError, VariableError, did_you_mean
from gramgraph.models import GraphicalModel

__all__ = ["answer_cases", "output"]

#: Words for "not observed", unless the variable has a state of this name.
_MISSING = ("", "NA", "NaN", "nan", "N/A", "null", "None", "?", "*")


def answer_cases(
    model: GraphicalModel,
    args: argparse.Namespace,
    *,
    targets: list[Any] | None,
    evidence: dict[str, Any],
    virtual: dict[str, dict[str, float]] | None,
) -> int:
    """Write one row of posteriors a case: the kept columns, log_evidence, and a column `variable=state` each."""
    fixed, likelihoods = _split_evidence(model, evidence, virtual)
    impossible = done = 0
    with _reading(args) as (chunks, progress), output(args.out) as stream:
        for chunk in chunks:
            kept, frame = _observations(model, chunk, args, fixed)
            if targets is None:  # the columns must be the same in every chunk
                targets = [name for name in model.variables if name not in frame.columns]
            try:
                answer = model.query(
                    targets, evidence=frame, virtual_evidence=likelihoods, engine=args.engine, memory=args.memory
                )
            except (StateError, VariableError) as error:
                raise type(error)(f"{args.cases}, rows {done + 1} to {done + len(frame)}: {error}") from error
            posterior_frame(answer, kept).to_csv(stream, index=False, header=done == 0, lineterminator="\n")
            impossible += int(np.isneginf(np.asarray(answer.log_evidence)).sum())
            done += len(frame)
            progress(done)
    if impossible:
        sys.stderr.write(f"gramgraph: {impossible} of {done} cases have probability zero; their cells are empty\n")
    return 0


def posterior_frame(answer: Answer, kept: Any) -> Any:
    """The posteriors of a chunk as the columns of the output file."""
    import pandas as pd

    names = [f"{joined(key)}={joined(label)}" for key in answer for label in answer[key]._labels()]
    parts = [answer[key].probabilities.reshape(len(kept), -1) for key in answer]
    table = np.concatenate([np.zeros((len(kept), 0)), *parts], axis=1)
    frame = pd.DataFrame(table, columns=names, index=kept.index)
    frame.insert(0, "log_evidence", np.asarray(answer.log_evidence))
    return pd.concat([kept, frame], axis=1)


def _split_evidence(
    model: GraphicalModel, evidence: dict[str, Any], virtual: dict[str, dict[str, float]] | None
) -> tuple[dict[str, str], dict[str, dict[str, float]] | None]:
    """Labels become columns; "one of these" and "not these" become weights of 0 and 1 for every case."""
    fixed = {name: value for name, value in evidence.items() if isinstance(value, str)}
    likelihoods = {name: dict(weights) for name, weights in (virtual or {}).items()}
    for name, value in evidence.items():
        if name in fixed:
            continue
        inside = frozenset(value) if isinstance(value, list) else None
        outside = frozenset(getattr(value, "states", ()))
        weights = likelihoods.setdefault(name, dict.fromkeys(model.states(name), 1.0))
        for label in model.states(name):
            if (inside is not None and label not in inside) or label in outside:
                weights[label] = 0.0
    return fixed, likelihoods or None


def _observations(
    model: GraphicalModel, chunk: Any, args: argparse.Namespace, fixed: dict[str, str]
) -> tuple[Any, Any]:
    """(columns to copy, the evidence) of a chunk."""
    for name in args.keep:
        if name not in chunk.columns:
            raise VariableError(f"{args.cases} has no column {name!r}.{did_you_mean(name, chunk.columns)}")
    frame = chunk.drop(columns=args.keep)
    for name in frame.columns:
        if name not in model:
            hint = did_you_mean(name, model.variables)
            keep = f"A column that is no observation is copied by --keep {name}"
            raise VariableError(f"{args.cases}: column {name!r} is no variable of the model.{hint} {keep}")
        missing = [word for word in _MISSING if word not in model.states(name)]
        frame[name] = frame[name].where(~frame[name].isin(missing), None)
    for name, label in fixed.items():
        if name in frame.columns:
            raise GramGraphError(f"{name} is observed twice: by --evidence and by a column of {args.cases}")
        frame[name] = label
    return chunk[args.keep], frame


# ------------------------------------------------------------------------------------------ files, progress


@contextlib.contextmanager
def output(path: str | None) -> Iterator[IO[str]]:
    """Standard output, or a file (compressed for .gz) that appears only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    part = f"{path}.part"
    try:
        opener: Any = gzip.open if path.endswith(".gz") else open
        with opener(part, "wt", encoding="utf-8", newline="") as stream:
            yield stream
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise


@contextlib.contextmanager
def _reading(args: argparse.Namespace) -> Iterator[tuple[Any, Any]]:
    """The chunks of the file as text cells, and a function that shows how far it is."""
    import pandas as pd

    with open(args.cases, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        packed = "gzip" if args.cases.endswith(".gz") else None
        try:
            chunks = pd.read_csv(
                stream, dtype=str, keep_default_na=False, chunksize=args.chunk, compression=packed, index_col=False
            )
        except (ValueError, EOFError) as error:
            raise GramGraphError(f"{args.cases}: {error}") from error
        with _progress(size) as advance:
            yield _guarded(chunks, args.cases), lambda done: advance(stream.tell(), done)


def _guarded(chunks: Any, path: str) -> Iterator[Any]:
    """The chunks, with pandas' complaints about the file as errors of ours."""
    rows = iter(chunks)
    while True:
        try:
            chunk = next(rows)
        except StopIteration:
            return
        except (ValueError, EOFError, OSError) as error:  # pandas' ParserError is a ValueError
            raise GramGraphError(f"{path}: {error}") from error
        yield chunk


@contextlib.contextmanager
def _progress(size: int) -> Iterator[Any]:
    """A bar on a terminal (rich, where it is installed; else a line); nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda at, done: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:

        def plain(at: int, done: int) -> None:
            sys.stderr.write(f"\r{fraction_done(done, None)} ({100 * at // max(size, 1)} % of the file)")
            sys.stderr.flush()

        yield plain
        sys.stderr.write("\n")
        return
    columns = (BarColumn(), TextColumn("{task.percentage:.0f} %  {task.fields[cases]:,} cases"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("cases", total=size, cases=0)
        yield lambda at, done: bar.update(task, completed=at, cases=done)
