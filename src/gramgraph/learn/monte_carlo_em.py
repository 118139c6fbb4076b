"""Monte Carlo EM: what is missing is drawn, then the tables are those of the completed rows."""

from __future__ import annotations

import numpy as np

from gramgraph._interrupt import check_interrupt
from gramgraph._progress import Progress, reporting
from gramgraph.data.columns import CodedTable
from gramgraph.engines.base import Run
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.learn.em import EMReport, Rows, first_tables
from gramgraph.learn.normalized import tables_from
from gramgraph.models import BayesianNetwork
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray, RandomState

#: Draws of a row in the first step, their growth from step to step, and the most.
FIRST_DRAWS, GROWTH, MOST_DRAWS = 20, 1.2, 2000
#: Steps whose average log-likelihood is compared with that of as many before.
WINDOW = 4
#: Ways to fill the gaps of one row that are listed, at most.
MOST_WAYS = 4096


def fit_mcem(
    net: BayesianNetwork,
    table: CodedTable,
    extra: list[FloatArray],
    *,
    max_iter: int = 200,
    tol: float = 1e-5,
    random_state: RandomState = None,
    progress: Progress = False,
) -> tuple[BayesianNetwork, EMReport]:
    """EM whose expectation is an average over exact draws of what is missing, more of them in every step.

    One step: z ~ p(z | x, θ) for every row, then θ maximizes Σ log p(x, z | θ) (with pseudo-counts `extra`). The
    log-likelihood in the report is exact; it rises up to the noise of the draws. It stops when the average of four
    steps gains less than `tol` a row over the four before.
    """
    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1 or not tol >= 0:
        raise OptionError(f"max_iter is a count from 1 and tol a number from 0, not {max_iter!r} and {tol!r}")
    rows = Rows.of(table)
    rng = np.random.default_rng(random_state)
    net = first_tables(net, table, extra, rng, shake=False)
    ways = Completions(net, rows.codes, rows.weights)
    trace: list[float] = []
    least = max(tol, 1e-12) * float(rows.weights.sum())
    settled = False
    with reporting(progress, max_iter) as report:
        for step in range(max_iter):
            check_interrupt()
            n = int(min(FIRST_DRAWS * GROWTH**step, MOST_DRAWS))
            counts, log_likelihood = ways.drawn_counts(net, n, rng)
            trace.append(log_likelihood)
            net = tables_from(net, net.vars, [c + more for c, more in zip(counts, extra, strict=True)])
            if report is not None:
                report(step + 1)
            recent, before = trace[-WINDOW:], trace[-2 * WINDOW : -WINDOW]
            if len(before) == WINDOW and np.mean(recent) - np.mean(before) <= least:
                settled = True
                break
    return net, EMReport(trace[-1], tuple(trace), settled, 1)


class Completions:
    """All ways to fill the gaps of rows, side by side: draws are then counts of a multinomial for each row.

    Rows with too many ways are drawn by the junction tree instead.
    """

    def __init__(self, net: BayesianNetwork, codes: IntArray, weights: FloatArray) -> None:
        self.families = [(*net.parent_positions[v], v) for v in range(len(net.vars))]
        self.shapes = [tuple(net.vars[u].size for u in family) for family in self.families]
        sizes = np.array([var.size for var in net.vars])
        ways = np.where(codes < 0, sizes, 1).astype(np.float64).prod(axis=1)
        small = ways <= MOST_WAYS
        self.large, self.large_weights = codes[~small], weights[~small]
        self.weights = weights[small]
        filled = [_filled(row, sizes) for row in codes[small]]
        self.start = np.cumsum([0, *map(len, filled)])
        whole = np.concatenate([np.zeros((0, len(sizes)), dtype=np.int64), *filled])
        self.at = [
            np.ravel_multi_index(tuple(whole[:, u] for u in family), shape)
            for family, shape in zip(self.families, self.shapes, strict=True)
        ]

    def drawn_counts(
        self, net: BayesianNetwork, n: int | None, rng: np.random.Generator
    ) -> tuple[list[FloatArray], float]:
        """Σ over rows of weight · the average over n draws of the completed row's families; and the log-likelihood.

        Without n each of the `weight` rows with the same cells is drawn once, for itself.
        """
        totals = [np.zeros(int(np.prod(shape))) for shape in self.shapes]
        share, log_likelihood = self._shares(net, n, rng)
        for total, at in zip(totals, self.at, strict=True):
            total += np.bincount(at, share, minlength=len(total))
        log_likelihood += self._add_large(net, n, rng, totals)
        return [total.reshape(shape) for total, shape in zip(totals, self.shapes, strict=True)], log_likelihood

    def _shares(self, net: BayesianNetwork, n: int | None, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """The weight of each completion: its part of n draws, times the weight of the row."""
        logs = np.zeros(int(self.start[-1]))
        with np.errstate(divide="ignore"):
            for c, at in zip(net.conditionals, self.at, strict=True):
                logs += np.log(c.table().ravel()[at])  # type: ignore[union-attr]
        out, total = np.zeros(int(self.start[-1])), 0.0
        for weight, a, b in zip(self.weights.tolist(), self.start[:-1], self.start[1:], strict=True):
            part = logs[a:b]
            top = part.max()
            if top == -np.inf:
                raise ModelError("a row of the data is impossible under the tables: give a prior, such as prior='bdeu'")
            p = np.exp(part - top)
            total += weight * float(top + np.log(p.sum()))
            m = _times(weight) if n is None else n
            out[a:b] = weight if b - a == 1 else rng.multinomial(m, p / p.sum()) * (weight / m)
        return out, total

    def _add_large(
        self, net: BayesianNetwork, n: int | None, rng: np.random.Generator, totals: list[FloatArray]
    ) -> float:
        every, log_likelihood, engine = tuple(range(len(net.vars))), 0.0, JunctionTree()
        for row, weight in zip(self.large, self.large_weights.tolist(), strict=True):
            question = Question((), (), every, row[None], (), False)
            m = _times(weight) if n is None else n
            states, log_p, *_ = engine.draw(net, question, m, Run(random_state=rng))
            if not np.isfinite(log_p):
                raise ModelError("a row of the data is impossible under the tables: give a prior, such as prior='bdeu'")
            log_likelihood += float(weight * log_p)
            for total, family, shape in zip(totals, self.families, self.shapes, strict=True):
                at = np.ravel_multi_index(tuple(states[:, u] for u in family), shape)
                total += np.bincount(at, minlength=len(total)) * (weight / m)
        return log_likelihood


def _times(weight: float) -> int:
    return max(round(weight), 1)


def _filled(row: IntArray, sizes: IntArray) -> IntArray:
    """Every way to fill the gaps of a row."""
    gaps = np.flatnonzero(row < 0)
    shape = sizes[gaps]
    out = np.tile(row, (int(np.prod(shape)), 1))
    out[:, gaps] = np.indices(tuple(shape.tolist())).reshape(len(gaps), -1).T if len(gaps) else 0
    return out
