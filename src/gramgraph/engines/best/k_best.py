"""The k most probable assignments, exactly."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramgraph.answers import Assignment
from gramgraph.engines.exact.impossible import raise_impossible
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.engines.exact.one_case import Case, one_case
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True)
class _Found:
    """The best assignment of a part of all assignments: the first `place` free variables are fixed to its own
    states, and the next one must not be in `excluded`."""

    codes: IntArray
    place: int
    excluded: tuple[int, ...]


def k_best(
    model: GraphicalModel,
    evidence: Case = None,
    k: int = 5,
    *,
    virtual_evidence: Mapping[str, Any] | None = None,
    engine: Any | None = None,
) -> list[Assignment]:
    """The k most probable assignments of all unobserved variables, best first; fewer when no more are possible.

    `log_prob` is log p(assignment, evidence). Each answer costs one batch of at most n maximizations.

    >>> from gramgraph.testing import random_bayesian_network
    >>> net = random_bayesian_network(np.random.default_rng(0), 4)
    >>> first, second = k_best(net, k=2)
    >>> first.log_prob >= second.log_prob
    True
    """
    question = one_case(model, evidence, virtual_evidence)
    seen = question.hard_evidence(0)
    found: list[Assignment] = []
    for codes, log_prob in k_best_codes(model, question, engine=engine):
        if len(found) == k:
            break
        states = {var.name: var.states[codes[i]] for i, var in enumerate(model.vars) if i not in seen}
        found.append(Assignment(states, log_prob))
    if not found and k > 0:
        raise_impossible(model, question)
    return found


def k_best_codes(
    model: GraphicalModel, question: Question, *, engine: Any | None = None
) -> Iterator[tuple[IntArray, float]]:
    """All possible assignments (state indices of all variables) with log p(x, e), the most probable first.

    Lawler's partition: what is left of a part after its best assignment x is taken out falls into the sets "as x up
    to variable i, different there"; the best of each is found by one maximization, all of them in one batch.
    """
    solve = engine or JunctionTree()
    question = one_case(model, question)
    seen = question.hard_evidence(0)
    free = [i for i, var in enumerate(model.vars) if i not in seen and var.size > 1]
    codes, values, *_ = solve.best(model, question)
    heap: list[tuple[float, int, _Found]] = []
    if values[0] > -np.inf:
        heap.append((-float(values[0]), 0, _Found(codes[0], 0, ())))
    made = 1
    while heap:
        value, _, best = heapq.heappop(heap)
        yield best.codes, question.log_scale - value
        parts = list(_split(model, free, best))
        if not parts:
            continue
        codes, values, *_ = solve.best(model, _batch(model, question, free, best, parts))
        for (place, excluded), row, log_prob in zip(parts, codes, values, strict=True):
            if log_prob > -np.inf:
                heapq.heappush(heap, (-float(log_prob), made, _Found(row, place, excluded)))
                made += 1


def _split(model: GraphicalModel, free: list[int], best: _Found) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The parts (place, states excluded there) that are left when the best one is taken out."""
    for place in range(best.place, len(free)):
        excluded = (*(best.excluded if place == best.place else ()), int(best.codes[free[place]]))
        if len(excluded) < model.vars[free[place]].size:
            yield place, excluded


def _batch(
    model: GraphicalModel, question: Question, free: list[int], best: _Found, parts: list[tuple[int, tuple[int, ...]]]
) -> Question:
    """One case for each part: the states before `place` as evidence, the excluded ones by a likelihood of zero."""
    columns = (*question.observed, *(i for i in free if i not in question.observed))
    codes = np.full((len(parts), len(columns)), -1, dtype=np.int64)
    codes[:, : len(question.observed)] = question.codes
    column = {var: c for c, var in enumerate(columns)}
    masks: dict[int, FloatArray] = {}
    for row, (place, excluded) in enumerate(parts):
        for i in free[:place]:
            codes[row, column[i]] = best.codes[i]
        var = free[place]
        allowed = [s for s in range(model.vars[var].size) if s not in excluded]
        if len(allowed) == 1:
            codes[row, column[var]] = allowed[0]
        else:
            mask = masks.setdefault(var, np.ones((len(parts), model.vars[var].size)))
            mask[row, list(excluded)] = 0.0
    likelihoods = dict(question.likelihoods)
    for var, mask in masks.items():
        likelihoods[var] = likelihoods[var] * mask if var in likelihoods else mask
    logs = dict(question.log_likelihoods)
    with np.errstate(divide="ignore"):
        logs |= {var: logs[var] + np.log(mask) for var, mask in masks.items() if var in logs}
    return replace(
        question, observed=columns, codes=codes, likelihoods=tuple(likelihoods.items()),
        log_likelihoods=tuple(logs.items()), batched=True,
    )  # fmt: skip
