"""A question in numbers: what is asked, and what was observed, after the names were looked up once by the reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

NO_COLUMNS = np.zeros(0, np.int64)
NO_VALUES = np.zeros((1, 0))
#: Weights of states (or their logarithms), by variable: (states,) for all cases, or (cases, states).
Weights = tuple[tuple[int, FloatArray], ...]


def over_rows(fold: np.ufunc, table: Any, wide: int = 64) -> Any:
    """fold.reduce(table, axis=0); of a long and narrow table many rows are taken as one, which NumPy is faster at."""
    whole = len(table) // wide * wide
    if whole > 16 * wide and table.flags.c_contiguous:
        first = fold.reduce(table[:whole].reshape(-1, wide * table.shape[1]), axis=0)
        table = np.concatenate([first.reshape(wide, -1), table[whole:]])
    return fold.reduce(table, axis=0)


class Singles(Sequence[tuple[int]]):
    """(0,), (1,), … (n - 1,): every variable wanted alone, without an object for each."""

    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, at: Any) -> Any:
        return tuple((v,) for v in range(self.n)[at]) if isinstance(at, slice) else (range(self.n)[at],)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Singles) and self.n == other.n

    def __hash__(self) -> int:
        return hash(("singles", self.n))


@dataclass(frozen=True, eq=False)
class Group:
    """Cases with the same observed variables, and the same observed states of the discrete ones."""

    rows: IntArray  # numbers of the cases
    seen: IntArray  # observed components
    X: FloatArray  # (cases, observed components)
    states: dict[int, int]  # discrete variable → state


@dataclass(frozen=True, eq=False)
class Question:
    """p(targets | evidence) for one case (`batched` false, one row) or a table of cases, about any kind of model.

    Variables are positions in the model's `variables`. States of discrete variables are `codes`; values of real-valued
    ones are `X`, a column for each component in the model's layout.
    """

    targets: Sequence[int]  # variables whose marginals are wanted: a tuple, or a range for all of them
    joints: tuple[tuple[int, ...], ...]  # sets whose joint beliefs are wanted, axes in this order
    observed: tuple[int, ...]  # discrete variables that have a column in `codes`
    codes: IntArray  # (cases, len(observed)) state indices; -1 = not observed in this case
    likelihoods: Weights = ()
    batched: bool = False
    #: Logarithms of likelihoods that reach over more than doubles hold; `likelihoods` have a least number for the lost.
    log_likelihoods: Weights = ()
    #: log of what the likelihoods were divided by when they were read: who tells log p(evidence) adds it.
    log_scale: float = 0.0
    everything: bool = False  # all variables were asked for: the answer lists those that are not observed
    columns: IntArray = field(default_factory=lambda: NO_COLUMNS)  # observed components of real variables
    owners: IntArray = field(default_factory=lambda: NO_COLUMNS)  # the variable of each column
    X: FloatArray = field(default_factory=lambda: NO_VALUES)  # (cases, columns); NaN = not observed in this case
    complete: bool = False  # known to have no gaps in X, and no codes (False: not looked at)
    soft: Mapping[int, FloatArray] = field(default_factory=dict)  # variable → what its belief shall become
    noisy: Mapping[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict)  # variable → (value, covariance)
    points: Mapping[int, Any] = field(default_factory=dict)  # variable → observed points, one per case; None = not
    index: Any = None  # labels of the cases
    keep: Any = None  # columns of the table of cases that the answer's frame shows: a data frame

    @property
    def n_cases(self) -> int:
        """Number of cases."""
        return int(self.codes.shape[0])

    # -------------------------------------------------------------------------------------- what was observed

    @property
    def seen(self) -> tuple[int, ...]:
        """All variables that are observed in some case, real-valued ones first."""
        return tuple(dict.fromkeys([*self.owners.tolist(), *self.observed, *self.points]))

    @cached_property
    def always(self) -> frozenset[int]:
        """Variables that are observed in every case."""
        if not self.n_cases:
            return frozenset()
        if self.complete:
            return frozenset(self.owners.tolist())
        known = over_rows(np.logical_and, self.codes >= 0)
        found = {v for v, ok in zip(self.observed, known.tolist(), strict=True) if ok}
        if len(self.columns):
            whole = np.asarray(~self.gaps.any(axis=0))
            found |= {v for v, ok in zip(self.owners.tolist(), whole.tolist(), strict=True) if ok}
        return frozenset(found.union(v for v, column in self.points.items() if all(x is not None for x in column)))

    @cached_property
    def gaps(self) -> Any:
        """Which cells of `X` were not observed."""
        return np.isnan(self.X)

    @cached_property
    def wanted(self) -> tuple[int, ...]:
        """Variables whose own beliefs are listed."""
        if not self.everything:
            return tuple(self.targets)
        always = self.always
        return tuple([v for v in self.targets if v not in always])

    def keys(self, model: GraphicalModel) -> tuple[Any, ...]:
        """What the answer lists: names, and tuples of names for joints."""
        found: list[Any] = [model.vars[v].name for v in self.wanted]
        return (*found, *(model.names_of(members) for members in self.joints))

    def hidden(self, model: GraphicalModel) -> frozenset[str]:
        """Names of observed variables that are not listed, because everything unobserved was asked for."""
        if not self.everything:
            return frozenset()
        return frozenset([model.vars[v].name for v in self.always])

    @property
    def details(self) -> dict[str, Any]:
        """What the answer's frame shows of a table of cases: its index, and the columns to keep."""
        if not self.batched:
            return {}
        return {"index": self.index} if self.keep is None else {"index": self.index, "keep": self.keep}

    # -------------------------------------------------------------------------------------- case by case

    def hard_evidence(self, case: int) -> dict[int, int]:
        """Discrete variable → observed state, in one case."""
        return {var: int(code) for var, code in zip(self.observed, self.codes[case], strict=True) if code >= 0}

    def soft_weights(self, case: int) -> dict[int, FloatArray]:
        """Variable → likelihood weights, in one case."""
        return {var: np.asarray(w if w.ndim == 1 else w[case]) for var, w in self.likelihoods}

    def soft_logs(self, case: int) -> dict[int, FloatArray]:
        """Variable → logarithms of the likelihood weights, in one case."""
        with np.errstate(divide="ignore"):
            found = {var: np.log(w) for var, w in self.soft_weights(case).items()}
        return found | {var: np.asarray(w if w.ndim == 1 else w[case]) for var, w in self.log_likelihoods}

    def of_rows(self, rows: IntArray) -> Question:
        """The same question about some of the cases."""
        parts = [
            tuple((v, w if w.ndim == 1 else w[rows]) for v, w in given)
            for given in (self.likelihoods, self.log_likelihoods)
        ]
        X = self.X[rows] if len(self.columns) else np.zeros((len(rows), 0))
        points = {v: column[rows] for v, column in self.points.items()}
        return replace(self, codes=self.codes[rows], X=X, likelihoods=parts[0], log_likelihoods=parts[1], points=points)

    def groups(self) -> Iterator[Group]:
        """Cases by pattern; one group where nothing is missing and no discrete variable is observed."""
        if self.complete and self.n_cases:
            yield Group(np.arange(self.n_cases), self.columns, self.X, {})
            return
        gaps = self.gaps
        if self.n_cases == 1 or (not gaps.any() and not self.observed):
            if self.n_cases:
                yield self._group(np.arange(self.n_cases), gaps[0])
            return
        keys = np.ascontiguousarray(np.hstack([gaps.astype(np.int64), self.codes]))
        flat = keys.view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1]))).reshape(-1)
        _, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(len(first) + 1))
        for g in np.argsort(first, kind="stable"):
            rows = order[starts[g] : starts[g + 1]]
            yield self._group(rows, gaps[rows[0]])

    def _group(self, rows: IntArray, gaps: Any) -> Group:
        states = self.hard_evidence(int(rows[0]))
        if len(rows) == self.n_cases and not gaps.any():
            return Group(rows, self.columns, self.X, states)
        return Group(rows, self.columns[~gaps], self.X[np.ix_(rows, ~gaps)], states)
