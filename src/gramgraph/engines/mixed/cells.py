"""Answers about models with discrete and real variables, from what engines say about groups of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gramgraph.answers import Belief, Key, MixtureBelief, RealAnswer
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.prepare import relevant_question
from gramgraph.questions.question import Group, Question
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


class Cells:
    """What an engine says about some variables of one group of cases: a table, or a mixture with a Gaussian a cell.

    `weights` are (cases, cells) and sum to one; `codes` gives the states of the discrete variables in each cell.
    """

    __slots__ = ("codes", "cov", "mean", "scope", "weights")

    def __init__(
        self, scope: tuple[Var, ...], weights: FloatArray, codes: Any, mean: FloatArray | None, cov: FloatArray | None
    ) -> None:
        self.scope, self.weights, self.codes, self.mean, self.cov = scope, weights, codes, mean, cov


#: Cells by key, log p(e) of every case, details.
Found = tuple[dict[Key, Cells], FloatArray, dict[str, Any]]


class CellEngine(Engine):
    """An engine whose beliefs are cells of one group of cases at a time: the classes that inherit it find them."""

    kinds: ClassVar[tuple[str, ...]] = ("mixed",)

    def beliefs(self, model: Any, group: Group, scopes: dict[Key, tuple[Var, ...]], run: Run) -> Found:
        """Cells of every scope, log p(e) of every case, details."""
        raise NotImplementedError

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Beliefs of all cases; those with the same observed variables and states are worked on together."""
        model, question = relevant_question(model, question)
        scopes: dict[Key, tuple[Var, ...]] = {}
        for key in question.keys(model):
            names = (key,) if isinstance(key, str) else key
            scopes[key] = tuple(model.var(name) for name in names)
        log_p = np.full(question.n_cases, -np.inf)
        found: list[tuple[Group, dict[Key, Cells]]] = []
        details: dict[str, Any] = {"index": question.index}
        groups = list(question.groups())
        work = run.each(lambda group: self.beliefs(model, group, scopes, run), groups, lambda group: len(group.rows))
        for group, (cells, logs, more) in zip(groups, work, strict=True):
            log_p[group.rows] = logs
            found.append((group, cells))
            for name, value in more.items():
                if question.batched and isinstance(value, (int, float, np.ndarray)) and np.ndim(value) <= 1:
                    details.setdefault(name, np.full(question.n_cases, np.nan))[group.rows] = value
                else:
                    details[name] = value

        def belief(key: Key) -> Any:
            return _belief(key, scopes[key], found, question, log_p, details)

        return RealAnswer(
            question.keys(model),
            belief,
            log_p if question.batched else float(log_p[0]),
            engine=self.name,
            exact=self.exact,
            batched=question.batched,
            details=details,
        )


def _belief(
    key: Key,
    scope: tuple[Var, ...],
    found: list[tuple[Group, dict[Key, Cells]]],
    question: Question,
    log_p: FloatArray,
    details: dict[str, Any],
) -> Belief | MixtureBelief:
    n = question.n_cases
    if all(var.is_discrete for var in scope):
        p = np.full((n, *(var.size for var in scope)), np.nan)
        for group, cells in found:
            table = np.zeros((len(group.rows), *(var.size for var in scope)))
            part = cells[key]
            for k, at in enumerate(part.codes):
                table[(slice(None), *at)] += part.weights[:, k]
            p[group.rows] = table
        p[log_p == -np.inf] = np.nan
        return Belief(scope, p if question.batched else p[0], batched=question.batched)
    d = sum(var.dimension for var in scope if not var.is_discrete)
    if len(found) == 1:
        part = found[0][1][key]
        assert part.mean is not None and part.cov is not None
        return MixtureBelief(
            scope, part.weights, part.mean, part.cov, batched=question.batched, codes=part.codes, diagnostics=details
        )
    first = found[0][1][key].codes if found else np.zeros((1, 0), np.int64)
    shared = all(np.array_equal(cells[key].codes, first) for _, cells in found)
    if shared or not any(var.is_discrete for var in scope):
        width = max((cells[key].weights.shape[1] for _, cells in found), default=1)
        starts, codes = [0] * len(found), first if shared else None
    else:  # groups of cases with other states observed: their configurations stand side by side
        parts = [cells[key].codes for _, cells in found]
        starts, codes = np.cumsum([0, *map(len, parts)])[:-1].tolist(), np.concatenate(parts)
        width = len(codes)
    weights, mean = np.zeros((n, width)), np.zeros((n, width, d))
    cov = np.zeros((n, width, d, d))
    for (group, cells), start in zip(found, starts, strict=True):
        part = cells[key]
        at = slice(start, start + part.weights.shape[1])
        weights[group.rows, at] = part.weights
        mean[group.rows, at], cov[group.rows, at] = part.mean, part.cov
    mean[log_p == -np.inf] = np.nan
    return MixtureBelief(scope, weights, mean, cov, batched=question.batched, codes=codes, diagnostics=details)
