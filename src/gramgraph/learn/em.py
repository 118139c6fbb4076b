"""Expectation–maximization: tables of a network from rows with missing cells or hidden variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph._progress import Progress, reporting
from gramgraph._show import Listing
from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.data.map_reduce import in_order
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.learn.ascent import Traced
from gramgraph.learn.normalized import tables_from
from gramgraph.models import BayesianNetwork
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray, RandomState

#: Rows that are answered together: their joint tables are held in memory.
ROWS = 2048
#: What EM climbs, without and with a prior.
OBJECTIVES = ("log-likelihood", "log-likelihood + log prior")


@dataclass(frozen=True, repr=False)
class EMReport(Traced):
    """How EM went: `trace[i]` is the objective before step i + 1; it never falls.

    `objective` says what that is: "log-likelihood", or "log-likelihood + log prior" (up to a constant) where a prior
    was given or groups of few rows were filled up.
    """

    log_likelihood: float
    trace: tuple[float, ...]
    converged: bool
    restarts: int
    objective: str = "log-likelihood"

    @property
    def n_iter(self) -> int:
        """Number of steps taken."""
        return len(self.trace)

    def _shown(self) -> Listing:
        rows = [
            ("log-likelihood", f"{self.log_likelihood:.8g}"),
            ("steps", self.n_iter),
            ("converged", "yes" if self.converged else "NO"),
            ("starts", self.restarts),
            ("objective", self.objective),
        ]
        rows += [("first and last value", f"{self.trace[0]:.8g}, {self.trace[-1]:.8g}")] if self.trace else []
        return Listing("expectation-maximization", ("", "value"), rows)


#: Expected counts below this share of their row's are none.
TRACE = 1e-20


@dataclass(frozen=True)
class Rows:
    """Distinct rows with their total weights."""

    codes: IntArray  # (distinct rows, variables)
    weights: FloatArray

    @classmethod
    def of(cls, table: CodedTable) -> Rows:
        """Those of a coded table; rows without weight are left out."""
        from gramgraph._numerics.counts.rows import distinct_rows

        codes = np.ascontiguousarray(table.matrix.T, dtype=np.int64)
        first, kind = distinct_rows(codes, len(codes))
        weights = np.bincount(kind, weights=table.weights, minlength=len(first)).astype(np.float64)
        kept = weights > 0
        return cls(np.ascontiguousarray(codes[first][kept]), weights[kept])


def expected_counts(
    net: BayesianNetwork, codes: IntArray, weights: FloatArray, n_jobs: int = 1
) -> tuple[list[FloatArray], float]:
    """Σ over rows of weight · p(family | what the row shows), for every family, and the log-likelihood.

    Cost: one batched run of the junction tree; rows with equal codes should be given once, with their weight. Blocks of
    rows are shared out among threads and added up in their order.
    """
    n = len(net.vars)
    families = tuple((*net.parent_positions[v], v) for v in range(n))
    totals = [np.zeros(tuple(net.vars[u].size for u in family)) for family in families]
    log_likelihood = 0.0
    engine = JunctionTree()

    def block(start: int) -> tuple[float, list[FloatArray]]:
        part, weight = codes[start : start + ROWS], weights[start : start + ROWS]
        found, log_p = engine.totals(net, Question((), families, tuple(range(n)), part, (), True), weight)
        if not np.isfinite(log_p).all():
            raise ModelError("a row of the data is impossible under the tables: give a prior, such as prior='bdeu'")
        return float(weight @ log_p), found

    blocks = range(0, len(codes), ROWS)
    for log_p, found in in_order(block, blocks, n_jobs=min(n_jobs, max(len(blocks), 1))):
        log_likelihood += log_p
        for total, more in zip(totals, found, strict=True):
            total += more
    return totals, log_likelihood


def fit_em(
    net: BayesianNetwork,
    table: CodedTable,
    extra: list[FloatArray],
    *,
    max_iter: int = 200,
    tol: float = 1e-5,
    restarts: int = 1,
    random_state: RandomState = None,
    n_jobs: int = 1,
    progress: Progress = False,
) -> tuple[BayesianNetwork, EMReport]:
    """EM from the tables that complete rows give (hidden variables: from random ones), the best of `restarts`.

    `extra` are pseudo-counts: every step then raises log-likelihood + Σ extra · log θ. It stops when a step gains less
    than `tol` per row. Ctrl-C keeps the best tables so far.
    """
    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1 or not tol >= 0:
        raise OptionError(f"max_iter is a count from 1 and tol a number from 0, not {max_iter!r} and {tol!r}")
    if not isinstance(restarts, (int, np.integer)) or restarts < 1:
        raise OptionError(f"restarts is a count from 1, not {restarts!r}")
    rows = Rows.of(table)
    rng = np.random.default_rng(random_state)
    best: tuple[BayesianNetwork, EMReport] | None = None
    with reporting(progress, restarts * max_iter) as report:
        for attempt in range(restarts):
            start = first_tables(net, table, extra, rng, shake=attempt > 0)

            def tell(step: int, attempt: int = attempt) -> None:
                if report is not None:
                    report(attempt * max_iter + step)

            found, trace, log_likelihood, converged, stopped = _climb(start, rows, extra, max_iter, tol, tell, n_jobs)
            what = OBJECTIVES[any(bool(more.any()) for more in extra)]
            made = EMReport(log_likelihood, tuple(trace), converged, restarts, what)
            if best is None or trace[-1] > best[1].trace[-1]:
                best = (found, made)
            if stopped:
                break
    assert best is not None
    return best


def _without_traces(counts: FloatArray) -> FloatArray:
    """The counts without those that no row has a use for: they would shrink for ever, and never be zero.

    An entry whose count is less than `TRACE` of its row's adds no more than that to the probability of any row of data.
    Small numbers in many tables, on the other hand, make every question about the network one in logarithms.
    """
    return np.where(counts < TRACE * counts.sum(axis=-1, keepdims=True), 0.0, counts)


@interruptible()
def _climb(
    net: BayesianNetwork, rows: Rows, extra: list[FloatArray], max_iter: int, tol: float, tell: Any, n_jobs: int
) -> tuple[BayesianNetwork, list[float], float, bool, bool]:
    """(network, objective before every step, log-likelihood, converged, stopped by Ctrl-C)."""
    trace: list[float] = []
    log_likelihood = -np.inf
    least = tol * float(rows.weights.sum())
    try:
        for step in range(max_iter):
            check_interrupt()
            counts, log_likelihood = expected_counts(net, rows.codes, rows.weights, n_jobs)
            trace.append(log_likelihood + _log_prior(net, extra))
            if step and trace[-1] - trace[-2] <= least:
                return net, trace, log_likelihood, True, False
            counts = [_without_traces(c + more) for c, more in zip(counts, extra, strict=True)]
            net = tables_from(net, net.vars, counts)
            tell(step + 1)
    except KeyboardInterrupt:
        if not trace:
            raise
        return net, trace, log_likelihood, False, True
    return net, trace, log_likelihood, False, False


def _log_prior(net: BayesianNetwork, extra: list[FloatArray]) -> float:
    total = 0.0
    for conditional, more in zip(net.conditionals, extra, strict=True):
        used = more > 0
        if used.any():
            with np.errstate(divide="ignore"):
                total += float((more[used] * np.log(conditional.table()[used])).sum())  # type: ignore[union-attr]
    return total


def first_tables(
    net: BayesianNetwork, table: CodedTable, extra: list[FloatArray], rng: np.random.Generator, *, shake: bool
) -> BayesianNetwork:
    """Tables from the rows that show a whole family, smoothed by one row; random where nothing is seen."""
    counts = Counts(table)
    hidden = {v for v, column in enumerate(table.columns) if not (column >= 0).any()}
    numbers = []
    for v, more in enumerate(extra):
        family = (*net.parent_positions[v], v)
        if shake or hidden.intersection(family):
            numbers.append(rng.dirichlet(np.ones(more.shape[-1]), size=more.shape[:-1]))
        else:
            seen = counts.table(family) + more
            numbers.append(seen + 1.0 / seen.size)
    return tables_from(net, table.variables, numbers)
