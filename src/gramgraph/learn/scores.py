"""Decomposable scores: how well a set of parents explains a child, as one number per family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from gramgraph.data.counts import Counts
from gramgraph.exceptions import OptionError, did_you_mean
from gramgraph.learn.passes import Passes
from gramgraph.learn.ties import largest_terms
from gramgraph.typing import Array, FloatArray, IntArray

#: A family whose table would have more cells is not considered.
MAX_CELLS = 2_000_000


def _log_likelihood(counts: Array, n: float, ess: float) -> float:
    from gramgraph._numerics.counts.scores import log_likelihood

    return float(log_likelihood(counts))


def _parameters(counts: Array) -> int:
    return counts.shape[0] * (counts.shape[1] - 1)


def _aic(counts: Array, n: float, ess: float) -> float:
    return _log_likelihood(counts, n, ess) - PENALTIES["aic"](n) * _parameters(counts)


def _bic(counts: Array, n: float, ess: float) -> float:
    return _log_likelihood(counts, n, ess) - PENALTIES["bic"](n) * _parameters(counts)


def _bdeu(counts: Array, n: float, ess: float) -> float:
    from gramgraph._numerics.counts.scores import dirichlet

    return float(dirichlet(counts, ess / counts.size))


def _k2(counts: Array, n: float, ess: float) -> float:
    from gramgraph._numerics.counts.scores import dirichlet

    return float(dirichlet(counts, 1.0))


@cache
def _coin_regret(n: int) -> float:
    from gramgraph._numerics.counts.scores import log_binomial_regret

    return float(log_binomial_regret(n))


def _fnml(counts: Array, n: float, ess: float) -> float:
    from gramgraph._numerics.counts.scores import log_regret

    rows = np.rint(counts.sum(axis=1)).astype(np.int64).tolist()
    return _log_likelihood(counts, n, ess) - sum(log_regret(row, counts.shape[1], _coin_regret(row)) for row in rows)


Function = Callable[[Array, float, float], float]

#: Name → score of a family from its counts (parent configurations, child states), the number of rows, and the
#: equivalent sample size (which only bdeu uses). Larger is better; all are in nats.
SCORES: dict[str, Function] = {
    "log_likelihood": _log_likelihood,
    "aic": _aic,
    "bic": _bic,
    "bdeu": _bdeu,
    "k2": _k2,
    "fnml": _fnml,
}

#: Scores that are a log likelihood less so much for each parameter, from the number of rows.
PENALTIES: dict[str, Callable[[float], float]] = {
    "log_likelihood": lambda n: 0.0,
    "aic": lambda n: 1.0,
    "bic": lambda n: 0.5 * math.log(max(n, 1.0)),
}
#: Scores that are marginal likelihoods under a Dirichlet prior.
DIRICHLET = ("bdeu", "k2")
#: Scores that are equal for equivalent graphs.
EQUIVALENT = ("bic", "aic", "log_likelihood", "bdeu")


class FamilyScores:
    """Scores of families, each computed once.

    Where cells are missing, a family is counted on the rows that show it, and the counts are scaled to all rows.

    >>> import pandas as pd
    >>> from gramgraph.data import Counts, code_table
    >>> counts = Counts(code_table(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]})))
    >>> scores = FamilyScores(counts, "bic")
    >>> round(scores.family(1, (0,)), 4) > round(scores.family(1, ()), 4)
    True
    """

    def __init__(
        self, counts: Counts, score: str = "bic", *, equivalent_sample_size: float = 10.0, n_jobs: int = 1
    ) -> None:
        if score not in SCORES:
            raise OptionError(f"no such score: {score!r}. There are {', '.join(SCORES)}.{did_you_mean(score, SCORES)}")
        if not equivalent_sample_size > 0:
            raise OptionError(f"equivalent_sample_size is a positive number, not {equivalent_sample_size!r}")
        self.counts = counts
        self.name = score
        self._score = SCORES[score]
        self._ess = float(equivalent_sample_size)
        self._n = counts.total
        self.size = largest_terms(self._n)  #: of the largest terms of a score
        self._sizes = counts.sizes
        self._gaps = counts.has_missing
        self._known: dict[tuple[int, tuple[int, ...]], float] = {}
        self._whole = counts.table(()).dtype.kind == "i"  # no weights
        #: Whether graphs of one equivalence class score the same.
        self.equivalent = score in EQUIVALENT and not self._gaps
        self._passes = None
        if self._whole and not self._gaps and (score in PENALTIES or score in DIRICHLET):
            self._passes = Passes.over(counts, n_jobs)

    def family(self, child: int, parents: Sequence[int]) -> float:
        """The score of a child with these parents, -inf where the table would be too large."""
        key = (child, tuple(sorted(parents)))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compute(child, key[1])
        return found

    def _compute(self, child: int, parents: tuple[int, ...]) -> float:
        rows = math.prod(self._sizes[p] for p in parents)
        if rows * self._sizes[child] > MAX_CELLS:
            return -math.inf
        table: Any = self.counts.table((*parents, child)).reshape(rows, self._sizes[child])
        if self._gaps:  # families that fewer rows show must not win by that: count as if all rows did
            shown = table.sum()
            if not shown:
                return -math.inf
            table = table * (self._n / shown)
        return self._score(table, self._n, self._ess)

    def additions(self, child: int, parents: Sequence[int], more: IntArray) -> FloatArray:
        """The scores of a child with these parents and one of `more`, for each of them; -inf where it is too large.

        Cost: a pass over the bits of `more` for each cell of the family as it is, or one over their codes where that
        is cheaper.
        """
        rows = math.prod(self._sizes[p] for p in parents)
        cells = rows * self._sizes[child] * np.array(self._sizes)[more]
        out = np.full(len(more), -math.inf)
        fits = np.flatnonzero(cells <= MAX_CELLS)
        if self._passes is None or not self._passes.reaches(rows * self._sizes[child]):
            self.prefetch(child, [(*parents, p) for p in more[fits].tolist()])
            out[fits] = [self.family(child, (*parents, p)) for p in more[fits].tolist()]
            return out
        weight = self._ess / cells[fits] if self.name == "bdeu" else np.ones(len(fits))
        out[fits] = self._passes.additions(child, tuple(sorted(parents)), more[fits], weight, self.name in DIRICHLET)
        if self.name in PENALTIES:
            free = cells[fits] - cells[fits] // self._sizes[child]
            out[fits] -= PENALTIES[self.name](self._n) * free
        return out

    def closed(self, child: int, parents: Sequence[int], best: float) -> bool:
        """Whether no set with more parents can beat `best`, the largest score of a set within `parents`.

        The likelihood is at most 1 and the penalty at least doubles with one parent more. A Dirichlet score pays at
        least log r for every cell that is not empty (a state has at most probability 1 / r when it first occurs with
        its parents), fNML for every combination of parents that occurs; more parents never make these fewer.
        """
        rows = math.prod(self._sizes[p] for p in parents)
        if rows * self._sizes[child] * 2 > MAX_CELLS:
            return True
        if self.name in ("bic", "aic"):
            return best >= -2.0 * PENALTIES[self.name](self._n) * rows * (self._sizes[child] - 1)
        if self.name in ("bdeu", "k2", "fnml") and self._whole and not self._gaps:
            columns = tuple(parents) if self.name == "fnml" else (*parents, child)
            seen = int(np.count_nonzero(self.counts.table(columns)))
            return best >= -seen * math.log(self._sizes[child])
        return False

    def prefetch(self, child: int, sets: Sequence[Sequence[int]]) -> None:
        """Announce parent sets whose scores will be needed, so that a cluster can count their tables together."""
        room = MAX_CELLS // self._sizes[child]
        self.counts.prefetch([(*s, child) for s in sets if math.prod(self._sizes[p] for p in s) <= room])

    def all_pairs(self) -> None:
        """Count all pairs of columns in one pass, as a search asks for every one of them."""
        self.counts.all_pairs()

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """The score of a graph: the sum over its families."""
        return math.fsum(self.family(child, found) for child, found in enumerate(parents))
