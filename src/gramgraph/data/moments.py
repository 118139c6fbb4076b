"""First and second moments of real columns, in memory, in files and on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.data.frames import read_frame
from gramgraph.data.map_reduce import in_order
from gramgraph.data.packed import choose
from gramgraph.data.stream import blocks_of, is_dask, is_stream, open_stream
from gramgraph.data.stream_files import readable
from gramgraph.exceptions import VariableError
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Moments:
    """n, mean and Σ (x − mean)(x − mean)ᵀ of the rows that show every column; `left_out` rows do not.

    Parameters
    ----------
    names : of the columns.
    n : number of rows.
    mean : (d,) means.
    scatter : (d, d) sums of products of deviations.
    left_out : rows with gaps, which do not count.

    Examples
    --------
    >>> import pandas as pd
    >>> moments = moments_of(pd.DataFrame({"x": [0.0, 2.0, None], "y": [1.0, 5.0, 3.0]}))
    >>> moments.n, moments.mean.tolist(), moments.covariance.tolist(), moments.left_out
    (2, [1.0, 3.0], [[1.0, 2.0], [2.0, 4.0]], 1)
    """

    names: tuple[str, ...]
    n: int
    mean: FloatArray  # (d,)
    scatter: FloatArray  # (d, d)
    left_out: int = 0

    @property
    def covariance(self) -> FloatArray:
        """Maximum-likelihood covariance, scatter / n."""
        return self.scatter / max(self.n, 1)

    def merge(self, other: Moments, /) -> Moments:
        """The moments of both sets of rows; means are shifted, so that nothing is lost to cancellation."""
        n = self.n + other.n
        if not n:
            return Moments(self.names, 0, self.mean, self.scatter, self.left_out + other.left_out)
        step = other.mean - self.mean
        mean = self.mean + step * (other.n / n)
        scatter = self.scatter + other.scatter + np.outer(step, step) * (self.n * other.n / n)
        return Moments(self.names, n, mean, scatter, self.left_out + other.left_out)

    @classmethod
    def of_rows(cls, X: FloatArray, names: Sequence[str]) -> Moments:
        """Of rows of numbers, NaN where they are missing. O(n d²)."""
        shown = ~np.isnan(X).any(axis=1)
        kept = X if shown.all() else X[shown]
        mean = kept.mean(axis=0) if len(kept) else np.zeros(X.shape[1])
        off = kept - mean
        return cls(tuple(names), len(kept), mean, off.T @ off, len(X) - len(kept))


def moments_of(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    n_jobs: int = 1,
    client: Any = None,
    progress: Progress = False,
) -> Moments:
    """Moments of the columns (or some of them) of a frame, a file, a stream or a Dask frame, each read once.

    `data` and `n_jobs` are those of `stream_counts`, `client` is for Dask frames. Blocks are merged in their order, so
    that the numbers do not depend on how many threads or workers there are. Memory: a block of rows, and d² numbers.

    Parameters
    ----------
    data : a frame, a path, a stream or a Dask frame, as in `stream_counts`.
    columns : names of the columns to use; None for all.
    n_jobs : number of threads; -1 for one per processor.
    client : a `distributed.Client` on whose workers the blocks are worked on, or None.
    progress : True shows how far it is, or a function of (done, total).

    Examples
    --------
    >>> moments = moments_of({"x": [0.0, 2.0], "y": [1.0, 5.0]})
    >>> moments.n, moments.mean.tolist(), moments.scatter.tolist()
    (2, [1.0, 3.0], [[2.0, 4.0], [4.0, 8.0]])
    """
    total: Moments | None = None
    with readable(data):
        names, rows, blocks, work = _blocks(data, columns, client)
        with reporting(progress, rows, "rows") as report:
            for found in in_order(work, blocks, n_jobs=n_jobs, client=client if is_dask(data) else None):
                total = found if total is None else total.merge(found)
                if report is not None:
                    report(total.n + total.left_out)
    return total if total is not None else Moments.of_rows(np.zeros((0, len(names))), names)


def _blocks(data: Any, columns: Sequence[str] | None, client: Any) -> tuple[list[str], int, Iterator[Any], Any]:
    """(names, number of rows or -1, blocks, function from a block to its moments)."""
    if is_dask(data):
        names = [str(name) for name in data.columns]
        chosen = choose(names, columns)
        parts = data[[data.columns[names.index(name)] for name in chosen]].to_delayed()
        if client is None:
            return chosen, -1, (part.compute() for part in parts), partial(_of_frame, names=chosen)
        from gramgraph.data.map_reduce import find_client

        return chosen, -1, iter(find_client(client).compute(list(parts))), partial(_of_frame, names=chosen)
    if not is_stream(data):
        frame = read_frame(data).table
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        chosen = choose(list(frame.columns), columns)
        return chosen, len(frame), iter([frame[chosen]]), partial(_of_frame, names=chosen)
    source = open_stream(data)
    chosen = choose(source.names, columns)
    return chosen, source.rows, blocks_of(source.batches(chosen)), partial(_of_batches, names=chosen)


def _of_frame(frame: Any, names: Sequence[str]) -> Moments:
    X = np.empty((len(frame), len(names)), order="F")
    for i, name in enumerate(frame.columns):
        try:
            X[:, i] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            raise _no_numbers(names[i]) from None
    return Moments.of_rows(X, names)


def _of_batches(batches: Sequence[Any], names: Sequence[str]) -> Moments:
    found = [_of_batch(batch, names) for batch in batches]
    return reduce(Moments.merge, found)


def _of_batch(batch: Any, names: Sequence[str]) -> Moments:
    import pyarrow as pa

    X = np.empty((batch.num_rows, len(names)), order="F")
    for i, name in enumerate(names):
        column = batch.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            X[:, i] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise _no_numbers(name) from None
    return Moments.of_rows(X, names)


def _no_numbers(name: str) -> VariableError:
    return VariableError(f"column {name!r} does not hold numbers: moments are of real columns (columns=… chooses them)")
