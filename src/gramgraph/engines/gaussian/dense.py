"""Answers about all-Gaussian models, whichever engine finds the moments."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Key, MixtureBelief, RealAnswer
from gramgraph.engines.continuous.door import Group, RealQuestion, layout_of
from gramgraph.engines.gaussian.posterior import Posterior
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["answer", "log_evidence", "means_of_all"]


_MANY = 32  # patterns from which on rows are worked on one by one
_FEW = 64  # gaps of a row up to which that is quick


def answer(model: GraphicalModel, question: RealQuestion, engine: Any) -> RealAnswer:
    """Beliefs of all cases: cases with the same observed variables share one factorization."""
    layout = question.layout
    sets = _sets(model, question)
    parts = question.wanted
    if sets:
        parts = tuple(dict.fromkeys([*parts, *(v for members in sets.values() for v in members)]))
    found = _Found(question.n_cases, layout.of(parts), [layout.of(members) for members in sets.values()])
    singly = _row_by_row(model, question, engine) if not sets else None
    if singly is not None:
        mean, var, log_p = singly
        found.var = var[:, found.want]
        found.add(
            np.arange(len(mean)),
            Posterior(lambda: mean[:, found.want], found.var, [], lambda: log_p, sure=True, again=True),
        )
    else:
        groups = list(question.groups())
        parts_of = question.work.each(
            lambda group: _moments(model, group, found.want, found.blocks, engine),
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
            return MixtureBelief((model.vars[v],), ones, mean, S, batched=question.batched, diagnostics=found.details)
        members = sets[key]
        at = place[layout.of(members)]
        S = found.cov[list(sets).index(key)][:, None]
        scope = tuple(model.vars[v] for v in members)
        mean = found.mean[:, at][:, None]
        return MixtureBelief(scope, ones, mean, S, batched=question.batched, diagnostics=found.details)

    return RealAnswer(
        question.keys,
        belief,
        found.log_p if question.batched else lambda: float(found.log_p()[0]),
        engine=engine.name,
        exact=found.exact,
        batched=question.batched,
        details={**found.details, "index": question.index},
        table=(lambda: (_names(model, found.want), found.own_mean(), found.var)) if not sets else None,
    )


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


def _sets(model: GraphicalModel, question: RealQuestion) -> dict[Key, tuple[int, ...]]:
    """Keys whose belief needs a covariance matrix: joints, and vectors."""
    out: dict[Key, tuple[int, ...]] = {}
    if question.joints or not question.layout.scalar:
        for key in question.keys:
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


def _row_by_row(model: GraphicalModel, question: RealQuestion, engine: Any) -> Any:
    """Means, variances and log p(e) by compiled code, where there are many patterns and few gaps; else None."""
    n = question.n_cases
    if engine.name != "dense" or question.complete or n < _MANY or not len(question.columns):
        return None
    missing = question.layout.size - question.X.shape[1] + question.gaps.sum(axis=1)
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


def log_evidence(model: GraphicalModel, question: RealQuestion, engine: Any) -> FloatArray:
    """log p(e) of every case."""
    singly = _row_by_row(model, question, engine)
    if singly is not None:
        return singly[2]
    out = np.empty(question.n_cases)
    none = np.zeros(0, np.int64)

    def work(group: Group) -> None:
        out[group.rows] = engine.posterior(model, group.seen, group.X, none, []).log_p

    question.work.each(work, question.groups(), lambda group: len(group.rows))
    return out


def means_of_all(model: GraphicalModel, question: RealQuestion, engine: Any) -> tuple[FloatArray, Any]:
    """Posterior means of all components, observed ones at their value, and whether a case is possible at all."""
    size = question.layout.size
    out, possible = np.empty((question.n_cases, size)), np.ones(question.n_cases, bool)

    def work(group: Group) -> None:
        found = _moments(model, group, np.arange(size), [], engine)
        out[group.rows] = found.mean
        if not found.sure:
            possible[group.rows] = found.log_p > -np.inf

    question.work.each(work, question.groups(), lambda group: len(group.rows))
    return out, possible
