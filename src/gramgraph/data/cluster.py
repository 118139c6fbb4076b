"""Counts of a Dask frame: every partition is packed where it lies; partition counts are added up."""

from __future__ import annotations

import sys
from collections.abc import Container, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.data.map_reduce import RETRIES, find_client, in_order, map_reduce, result_of
from gramgraph.data.packed import Collected, Labels, Packed, choose, pack_batches
from gramgraph.exceptions import VariableError
from gramgraph.typing import Array
from gramgraph.variables import Var, discrete

#: Packed partitions with together more bytes stay on the workers, where every table is then counted.
GATHERED = 2 << 30


def dask_counts(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    declared: Container[str] = (),
    client: Any = None,
    progress: Progress = False,
) -> Counts:
    """Counts of a `dask.dataframe`; see `stream_counts`.

    Without a `client`, that of the session is used, where there is one, else Dask's threads. Packed columns come here
    while they fit into 2 GB (one bit per row and state); more than that stays on the workers.
    """
    names = [str(name) for name in data.columns]
    chosen = choose(names, columns)
    chosen_data = data[[data.columns[names.index(name)] for name in chosen]]
    parts = chosen_data.to_delayed()
    if client is None:
        client = _session_client()
    if client is None:
        found = Collected(chosen, declared)
        with reporting(progress, len(parts), "partitions") as report:
            for i, part in enumerate(parts):
                found.add(pack_frame(part.compute(), chosen, declared))
                if report is not None:
                    report(i + 1)
        if not found.rows:
            raise VariableError("there are no rows to count")
        return found.counts()
    return _on_workers(parts, chosen, declared, find_client(client), progress)


def _session_client() -> Any:
    """The client that the user has started, if any."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _on_workers(parts: Any, names: list[str], declared: Container[str], client: Any, progress: Progress) -> Counts:
    from dask.delayed import delayed

    pack = delayed(pack_frame, pure=False)
    futures = client.compute([pack(part, names, declared) for part in parts], retries=RETRIES)
    labels, rows, size = Labels(names, declared), 0, 0
    with reporting(progress, len(futures), "partitions") as report:
        for i, (found, ordered, some, nbytes) in enumerate(in_order(_describe, futures, client=client)):
            labels.add(found, ordered)
            rows += some
            size += nbytes
            if report is not None:
                report(i + 1)
    if not rows:
        raise VariableError("there are no rows to count")
    if size > GATHERED:
        variables, orders = labels.states()
        return ClusterCounts(client, futures, variables, rows, labels.values(orders))
    gathered = Collected(names, declared)
    for future in futures:
        gathered.add(result_of(future))
    return gathered.counts()


def pack_frame(frame: Any, names: Sequence[str], declared: Container[str] = ()) -> Packed:
    """A pandas frame, packed."""
    import pandas as pd
    import pyarrow as pa

    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    try:
        batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise VariableError(
            f"a partition cannot be read as columns of labels: {'; '.join(map(str, error.args))}"
        ) from None
    kept = {name for name in frame.columns if isinstance(frame[name].dtype, pd.CategoricalDtype)}
    return pack_batches([batch], names=names, kept=kept, declared=declared)


def _describe(part: Packed) -> tuple[Any, Any, int, int]:
    return part.labels, part.ordered, part.rows, part.nbytes


class ClusterCounts(Counts):
    """Counts whose packed rows stay on the workers: a table is one task a partition, and the sum of their answers.

    A partition that is lost with its worker is read again. Tables that are announced by `prefetch` are counted in one
    round trip.
    """

    def __init__(
        self, client: Any, parts: Sequence[Any], variables: Sequence[Var], rows: int, labels: Sequence[Sequence[Any]]
    ) -> None:
        self._client, self._parts = client, list(parts)
        self._coded, self._weighted, self._bits, self._there = None, False, None, None
        self._describe(tuple(variables), float(rows), rows)
        self.labels = tuple(map(tuple, labels))
        self._packed = np.ones(len(self.variables), bool)

    def prefetch(self, families: Sequence[Sequence[int]]) -> None:
        """Count all of these tables that are not known yet, in one round trip."""
        asked = [tuple(sorted(family)) for family in families]
        new = [key for key in dict.fromkeys(asked) if key not in self._kept and key]
        if not new:
            return
        for key, found in zip(new, self._sum(new), strict=True):
            self._keep(key, found)

    def _by_bits(self, key: tuple[int, ...], cells: int) -> Array:
        return self._sum([key])[0]

    def _sum(self, keys: list[tuple[int, ...]]) -> list[Array]:
        count = partial(_count_part, keys=keys, variables=self.variables)
        zero = [np.zeros([self.sizes[c] for c in key], np.int64) for key in keys]
        return map_reduce(count, self._parts, _add, zero, client=self._client)

    @cached_property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        self.prefetch([(c,) for c in range(len(self.variables))])
        return any(int(self.table([c]).sum()) < self._rows for c in range(len(self.variables)))

    def vectors(self, n_jobs: int = 1) -> None:
        """The bit-vectors are on the workers."""

    def all_pairs(self) -> None:
        """Count every pair of columns in one round trip."""
        n = len(self.variables)
        self.prefetch([(i, j) for i in range(n) for j in range(i + 1, n)])

    def complete(self) -> Counts:
        """The counts of the rows without a missing cell."""
        if not self.has_missing:
            return self
        parts = self._client.map(_complete_part, self._parts, pure=False, retries=RETRIES)
        rows = map_reduce(_rows, parts, int.__add__, 0, client=self._client)
        return ClusterCounts(self._client, parts, self.variables, rows, self.labels)

    def to_table(self) -> CodedTable:
        """The rows as codes, one byte per cell, brought here."""
        found = Collected(self.names, self.names)
        for part in in_order(_itself, self._parts, client=self._client):
            found.add(part)
        return found.counts().to_table()


def _add(totals: list[Array], found: list[Array]) -> list[Array]:
    for total, more in zip(totals, found, strict=True):
        total += more
    return totals


def _itself(part: Packed) -> Packed:
    return part


def _rows(part: Packed) -> int:
    return part.rows


def _complete_part(part: Packed) -> Packed:
    if not part.rows:
        return part
    counts, _ = _local(part)
    whole = counts.complete()
    if whole is counts:
        return part
    assert whole._bits is not None
    bits = [whole._bits[a:b] for a, b in zip(whole._first[:-1], whole._first[1:], strict=True)]
    return Packed(part.names, part.labels, bits, whole.rows, part.ordered)


def _local(part: Packed) -> tuple[Counts, list[list[Any]]]:
    """Counts of one partition, its states in the order of its own labels."""
    variables = tuple(discrete(name, len(labels)) for name, labels in zip(part.names, part.labels, strict=True))
    return Counts.from_bits(variables, np.concatenate(part.bits), part.rows), [list(labels) for labels in part.labels]


def _count_part(part: Packed, *, keys: list[tuple[int, ...]], variables: tuple[Var, ...]) -> list[Array]:
    """The tables of one partition, in the states of the whole."""
    out = [np.zeros([variables[c].size for c in key], np.int64) for key in keys]
    if not part.rows:
        return out
    counts, labels = _local(part)
    used = sorted({c for key in keys for c in key})
    states = {c: np.array([variables[c].index(str(label)) for label in labels[c]], np.int64) for c in used}
    for total, key in zip(out, keys, strict=True):
        if all(len(states[c]) for c in key):
            total[np.ix_(*(states[c] for c in key))] = counts.table(key)
    return out
