"""Structural EM: graph and tables together, from rows with missing cells or hidden variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph._validation import generator
from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.exceptions import OptionError
from gramgraph.learn.scores import FamilyScores
from gramgraph.learn.search import Constraints, Move, Search, hill_climb
from gramgraph.learn.ties import LEAST_GAIN
from gramgraph.typing import Array, FloatArray, IntArray

#: Rows that the completions of all rows may come to.
MAX_ROWS = 4_000_000
#: Steps of EM for the tables of one graph, and rounds of graph and tables.
EM_STEPS, ROUNDS = 30, 50
#: A round that gains less for each row ends the search.
TOLERANCE = 1e-7

Tables = list[FloatArray]
Parents = list[tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Completion:
    """Every way to fill the gaps of every distinct row: the filled rows, and which row each belongs to."""

    variables: tuple[object, ...]
    sizes: tuple[int, ...]
    columns: tuple[Array, ...]  # (filled rows,) codes
    row: IntArray  # (filled rows,)
    weights: FloatArray  # of the distinct rows

    @classmethod
    def of(cls, table: CodedTable) -> Completion:
        """All completions; a text about what helps where there are too many."""
        from gramgraph._numerics.counts.rows import distinct_rows

        codes = np.ascontiguousarray(table.matrix.T, dtype=np.int64)
        first, kind = distinct_rows(codes, len(codes))
        weights = np.bincount(kind, weights=table.weights, minlength=len(first)).astype(np.float64)
        rows = codes[first]
        ways = np.where(rows < 0, np.array(table.sizes), 1).astype(np.float64).prod(axis=1)
        if ways.sum() > MAX_ROWS:
            raise OptionError(
                f"the gaps of the rows can be filled in {ways.sum():.3g} ways, more than {MAX_ROWS:,}: structural EM "
                "takes tables with fewer gaps, rows or columns; or fill them (net.impute), or use missing='families'"
            )
        repeat = ways.astype(np.int64)
        row = np.repeat(np.arange(len(rows)), repeat)
        number = np.arange(len(row)) - np.repeat(np.cumsum(repeat) - repeat, repeat)
        columns = []
        for v, size in enumerate(table.sizes):  # the number of a completion, digit by digit
            shown = rows[row, v]
            gap = shown < 0
            columns.append(np.where(gap, number % size, shown).astype(table.columns[v].dtype))
            number = np.where(gap, number // size, number)
        return cls(table.variables, table.sizes, tuple(columns), row, weights)

    def expect(self, parents: Parents, tables: Tables) -> tuple[FloatArray, float]:
        """(weight of each filled row, log-likelihood of what the rows show) under tables p(v | parents)."""
        log_p = np.zeros(len(self.row))
        for v, found in enumerate(parents):
            with np.errstate(divide="ignore"):
                log_p += np.log(tables[v])[tuple(self.columns[u] for u in (*found, v))]
        top = np.full(len(self.weights), -np.inf)
        np.maximum.at(top, self.row, log_p)
        share = np.exp(log_p - np.where(np.isfinite(top), top, 0.0)[self.row])
        total = np.bincount(self.row, share, len(self.weights))
        with np.errstate(divide="ignore"):
            log_row = np.log(total) + top
        return share / total[self.row] * self.weights[self.row], float(self.weights @ log_row)

    def counts(self, weights: FloatArray) -> Counts:
        """Expected counts of any columns."""
        return Counts(CodedTable(self.variables, self.columns, weights))  # type: ignore[arg-type]


@interruptible()
def structural_em(
    table: CodedTable,
    score: str,
    constraints: Constraints,
    start: Parents,
    *,
    patience: int = 10,
    random_state: int = 0,
    tell: Callable[[int], object] | None = None,
    ended: Event | None = None,
) -> tuple[Parents, Tables, float, list[Move]]:
    """Parents of the best graph found, expected counts of its families, its score, and what every round changed.

    The score is the log-likelihood of what the rows show less ½ log n ("bic") or 1 ("aic") for each parameter. A round
    fills the gaps in all ways, weighted by their probability under the graph and tables at hand, searches a graph on
    the expected counts from the graph at hand, and improves its tables by EM: the score never goes down. `start` is the
    first graph. Ctrl-C keeps the graph of the last round and sets `ended`. Source: N. Friedman, UAI 1998.
    Cost: rounds × (completions × families that are scored).
    """
    if score not in ("bic", "aic"):
        raise OptionError(f"structural EM raises 'bic' or 'aic', not {score!r}")
    filled = Completion.of(table)
    n = float(filled.weights.sum())
    step = 1.0 if score == "aic" else 0.5 * math.log(max(n, 1.0))
    rng = generator(random_state)
    parents = list(start)
    tables = [
        rng.dirichlet(np.full(size, 2.0), [table.sizes[p] for p in parents[v]]) for v, size in enumerate(table.sizes)
    ]
    weights, log_likelihood = _em(filled, parents, tables, n)
    best = log_likelihood - step * _parameters(filled.sizes, parents)
    moves: list[Move] = []
    try:
        for done in range(ROUNDS):
            check_interrupt()
            search = Search(FamilyScores(filled.counts(weights), score), constraints, list(parents))
            found = hill_climb(search, patience=patience)
            if search.interrupted:
                raise KeyboardInterrupt
            ordered = [tuple(sorted(row)) for row in found]
            first = _maximize(filled, ordered, weights)
            new_weights, log_likelihood = _em(filled, ordered, first, n)
            value = log_likelihood - step * _parameters(filled.sizes, ordered)
            if value <= best + max(TOLERANCE * n, LEAST_GAIN):
                break
            moves += _changes(parents, ordered, value - best, value)
            parents, weights, best = ordered, new_weights, value
            if tell:
                tell(done + 1)
    except KeyboardInterrupt:
        if ended is not None:
            ended.set()
    counts = filled.counts(weights)
    tables = [np.asarray(counts.table((*found, v)), np.float64) for v, found in enumerate(parents)]
    return parents, tables, best, moves


def _em(filled: Completion, parents: Parents, tables: Tables, n: float) -> tuple[FloatArray, float]:
    """(weights of the filled rows, log-likelihood) after steps of EM."""
    weights, log_likelihood = filled.expect(parents, tables)
    for _ in range(EM_STEPS):
        check_interrupt()
        after = _maximize(filled, parents, weights)
        new_weights, value = filled.expect(parents, after)
        if not value > log_likelihood:
            break
        gain, weights, log_likelihood = value - log_likelihood, new_weights, value
        if gain <= 1e-6 * n:
            break
    return weights, log_likelihood


def _maximize(filled: Completion, parents: Parents, weights: FloatArray) -> Tables:
    out = []
    for v, found in enumerate(parents):
        shape = tuple(filled.sizes[u] for u in (*found, v))
        at = np.ravel_multi_index(tuple(filled.columns[u] for u in (*found, v)), shape)
        counts = np.bincount(at, weights, math.prod(shape)).reshape(shape)
        sums = counts.sum(axis=-1, keepdims=True)
        out.append(np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), 1.0 / shape[-1]))
    return out


def _parameters(sizes: tuple[int, ...], parents: Parents) -> int:
    return sum(math.prod(sizes[p] for p in found) * (sizes[v] - 1) for v, found in enumerate(parents))


def _changes(before: Parents, after: Parents, gain: float, score: float) -> list[Move]:
    """The edges that a round has changed; its gain stands with the first."""
    moves: list[Move] = []
    for v, (old, new) in enumerate(zip(before, after, strict=True)):
        for p in (*(p for p in new if p not in old), *(p for p in old if p not in new)):
            moves.append(Move("add" if p in new else "remove", p, v, gain if not moves else 0.0, score))
    return moves or [Move("tables", -1, -1, gain, score)]
