"""What all-Gaussian engines share: answers from posterior moments, whichever engine finds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Key, MixtureBelief, RealAnswer
from gramgraph.compile.plan import Plan, plan_of
from gramgraph.engines.base import PLAIN, Best, Engine, Run
from gramgraph.engines.gaussian.lower import log_joint, sparse_precision
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Group, Question
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

_MANY = 32  # patterns from which on rows are worked on one by one
_FEW = 64  # gaps of a row up to which that is quick


@dataclass(frozen=True, eq=False)
class Posterior:
    """Moments of cases with the same observed components."""

    find_mean: Callable[[], FloatArray]  # (cases, wanted): a new array at each call where `again`
    var: FloatArray  # (wanted,)
    blocks: list[FloatArray]  # covariances of sets of components
    find_log_p: Callable[[], FloatArray]  # (cases,): computed when it is asked for
    details: dict[str, Any] = field(default_factory=dict)
    exact: bool = True
    sure: bool = False  # whether no case can be impossible
    again: bool = False  # whether finding the means anew is as quick as copying them

    @cached_property
    def mean(self) -> FloatArray:
        """(cases, wanted), found when it is first asked for."""
        return self.find_mean()

    @cached_property
    def log_p(self) -> FloatArray:
        """log p(e) of every case."""
        return self.find_log_p()


class GaussianEngine(Engine):
    """An engine of all-Gaussian models: the classes that inherit it find posterior moments."""

    kinds = ("gaussian",)

    def posterior(
        self, model: GraphicalModel, seen: IntArray, X: FloatArray, want: IntArray, blocks: list[IntArray]
    ) -> Posterior:
        """Moments of the components `want`, covariances of the sets `blocks`, log p(e) of every case."""
        raise NotImplementedError

    def plan(self, model: GraphicalModel, question: Question) -> Plan:
        """The size of the factor of the precision of what is not observed."""
        from scipy.sparse import csc_array, triu

        from gramgraph._numerics.gaussian import sparse_cholesky as kernels

        hidden = np.ones(layout_of(model).size, bool)
        hidden[question.columns] = False
        free = np.flatnonzero(hidden)
        P = sparse_precision(model).P[free][:, free]
        n = len(free)
        columns = np.repeat(np.arange(n), np.diff(P.indptr))
        off = P.indices != columns
        ptr = np.concatenate([[0], np.cumsum(np.bincount(columns[off], minlength=n))]).astype(np.int64)
        order = kernels.minimum_degree(n, ptr, P.indices[off].astype(np.int64))
        upper = csc_array(triu(P[order][:, order], format="csc"))
        _, l_ptr = kernels.symbolic(n, upper.indptr.astype(np.int64), upper.indices.astype(np.int64))
        return plan_of(self, n, int(l_ptr[-1]), int(np.diff(l_ptr).max(initial=0)))

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Beliefs of all cases: cases with the same observed variables share one factorization."""
        layout = layout_of(model)
        sets = _sets(model, question)
        parts = question.wanted
        if sets:
            parts = tuple(dict.fromkeys([*parts, *(v for members in sets.values() for v in members)]))
        found = _Found(question.n_cases, layout.of(parts), [layout.of(members) for members in sets.values()])
        singly = _row_by_row(model, question, self) if not sets else None
        if singly is not None:
            mean, var, log_p = singly
            found.var = var[:, found.want]
            found.add(
                np.arange(len(mean)),
                Posterior(lambda: mean[:, found.want], found.var, [], lambda: log_p, sure=True, again=True),
            )
        else:
            groups = list(question.groups())
            parts_of = run.each(
                lambda group: _moments(model, group, found.want, found.blocks, self),
                groups,
                lambda group: len(group.rows),
            )
            for group, part in zip(groups, parts_of, strict=True):
                found.add(group.rows, part)
        found.mark_impossible()
        place = np.full(layout.size, -1, np.int64)
        place[found.want] = np.arange(len(found.want))
        ones = np.ones((question.n_cases, 1))

        def belief(key: Key) -> MixtureBelief:
            if key not in sets:
                v = model.positions[key]  # type: ignore[index]
                j = place[layout.first[v]]
                mean, S = found.mean[:, j, None, None], found.var[:, j, None, None, None]
                return MixtureBelief(
                    (model.vars[v],), ones, mean, S, batched=question.batched, diagnostics=found.details
                )
            members = sets[key]
            at = place[layout.of(members)]
            S = found.cov[list(sets).index(key)][:, None]
            scope = tuple(model.vars[v] for v in members)
            mean = found.mean[:, at][:, None]
            return MixtureBelief(scope, ones, mean, S, batched=question.batched, diagnostics=found.details)

        return RealAnswer(
            question.keys(model),
            belief,
            found.log_p if question.batched else lambda: float(found.log_p()[0]),
            engine=self.name,
            exact=found.exact,
            batched=question.batched,
            details={**found.details, "index": question.index},
            table=(lambda: (_names(model, found.want), found.own_mean(), found.var)) if not sets else None,
        )

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """The posterior means: a Gaussian is largest there."""
        size = layout_of(model).size
        X, possible = np.empty((question.n_cases, size)), np.ones(question.n_cases, bool)

        def work(group: Group) -> None:
            found = _moments(model, group, np.arange(size), [], self)
            X[group.rows] = found.mean
            if not found.sure:
                possible[group.rows] = found.log_p > -np.inf

        run.each(work, question.groups(), lambda group: len(group.rows))
        log_prob = np.where(possible, log_joint(model, X, {}), -np.inf)
        return Best(np.zeros((len(X), len(model.vars)), np.int64), log_prob, log_prob, X)


def _names(model: GraphicalModel, want: IntArray) -> Any:
    """The labels of a frame with a column for each of these components, made once."""
    key = ("labels", want.tobytes())
    found = model.plans.get(key)
    if found is None:
        import pandas as pd

        from gramgraph.compile.cache import remember

        owner = layout_of(model).owner
        found = remember(model, key, pd.Index([model.vars[owner[c]].name for c in want.tolist()]))
    return found


def _sets(model: GraphicalModel, question: Question) -> dict[Key, tuple[int, ...]]:
    """Keys whose belief needs a covariance matrix: joints, and vectors."""
    out: dict[Key, tuple[int, ...]] = {}
    if question.joints or not layout_of(model).scalar:
        for key in question.keys(model):
            members = tuple(model.positions[name] for name in ((key,) if isinstance(key, str) else key))
            if isinstance(key, tuple) or model.vars[members[0]].dimension > 1:
                out[key] = members
    return out


class _Found:
    """Moments of all cases, filled group by group; one group of all cases is taken as it is."""

    def __init__(self, n: int, want: IntArray, blocks: list[IntArray]) -> None:
        self.n, self.want, self.blocks = n, want, blocks
        self.var = np.empty((0, len(want)))
        self.cov: list[FloatArray] = [np.empty((0, len(at), len(at))) for at in blocks]
        self.parts: list[tuple[IntArray, Posterior]] = []
        self.details: dict[str, Any] = {}
        self.exact = True

    def add(self, rows: IntArray, found: Posterior) -> None:
        """The moments of some cases."""
        self.details, self.exact = self.details | found.details, self.exact and found.exact
        self.parts.append((rows, found))
        if len(rows) == self.n:
            self.var = np.atleast_2d(found.var)
            self.cov = [block[None] for block in found.blocks]
            return
        if not len(self.var):
            self.mean, self.var = np.empty((self.n, len(self.want))), np.empty((self.n, len(self.want)))
            self.cov = [np.empty((self.n, len(at), len(at))) for at in self.blocks]
        self.mean[rows], self.var[rows] = found.mean, found.var
        for whole, block in zip(self.cov, found.blocks, strict=True):
            whole[rows] = block

    @cached_property
    def mean(self) -> FloatArray:
        """(cases, wanted), those of one group found when they are first asked for."""
        return self.parts[0][1].mean if self.parts else np.empty((0, len(self.want)))

    def own_mean(self) -> FloatArray:
        """The means as an array that nobody else holds: one array in memory instead of two, where they were not yet
        asked for."""
        only = self.parts[0][1] if len(self.parts) == 1 else None
        again = only is not None and only.again and only.sure
        return only.find_mean() if only is not None and again else self.mean.copy(order="K")

    def mark_impossible(self) -> None:
        """Cases of probability zero have no means."""
        for rows, found in self.parts:
            if not found.sure and (found.log_p == -np.inf).any():
                self.mean[rows[found.log_p == -np.inf]] = np.nan

    def log_p(self) -> FloatArray:
        """log p(e) of every case."""
        out = np.empty(self.n)
        for rows, found in self.parts:
            out[rows] = found.log_p
        return out


def _row_by_row(model: GraphicalModel, question: Question, engine: Any) -> Any:
    """Means, variances and log p(e) by compiled code, where there are many patterns and few gaps; else None."""
    n = question.n_cases
    if not hasattr(engine, "rows") or question.complete or n < _MANY or not len(question.columns):
        return None
    missing = layout_of(model).size - question.X.shape[1] + question.gaps.sum(axis=1)
    if missing.max() > _FEW or not missing.max():
        return None
    packed = np.packbits(question.gaps, axis=1)
    if len(np.unique(packed, axis=0)) < _MANY:
        return None
    return engine.rows(model, question.columns, question.X)


def _moments(model: GraphicalModel, group: Group, want: IntArray, blocks: list[IntArray], engine: Any) -> Posterior:
    """The engine's moments; components that are observed have their value and no variance."""
    seen, X = group.seen, group.X
    place = np.full(layout_of(model).size, -1, np.int64)
    place[seen] = np.arange(len(seen))
    known = place[want] >= 0
    if not known.any():
        return engine.posterior(model, seen, X, want, blocks)
    found = engine.posterior(model, seen, X, want[~known], blocks)
    mean, var = np.empty((len(X), len(want))), np.zeros(len(want))
    mean[:, ~known], var[~known] = found.mean, found.var
    mean[:, known] = X[:, place[want[known]]]
    return Posterior(lambda: mean, var, found.blocks, found.find_log_p, found.details, found.exact, found.sure)
