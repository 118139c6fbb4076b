"""Engines that follow the zeros of tables first, and answer case by case about what these leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.lower import Lowered, lower
from gramgraph.compile.tree import TreePlan
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.exact.factor_tree import FactorTree
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.engines.exact.smaller import Smaller, by_cases, smaller_cases, whole_answer
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray

#: Zeros that are fewer than this share of the entries leave nearly all of them: trees are for those. Tables of more
#: cases than this are not answered one by one.
FEW_ZEROS, FEW_CASES = 0.01, 16


def may_help(model: GraphicalModel, question: Question) -> bool:
    """Whether zeros are worth following where a tree does not fit."""
    return question.n_cases <= FEW_CASES and lower(model).zeros >= FEW_ZEROS


class Shrinking(Engine):
    """An engine that answers questions in which nothing is observed, about what the zeros leave of a case."""

    exact = True
    gives_up = True

    def plan(self, model: GraphicalModel, question: Question) -> TreePlan:
        """The tree of the same question: there is at most as much to do as it has cells, and how much less depends on
        what is observed."""
        return JunctionTree().plan(model, question)

    def repeated(self, model: GraphicalModel, question: Question) -> None:
        """Nothing is ready for other cases: what zeros leave depends on what is observed."""

    repeated_best = repeated

    def repeated_table(self, model: GraphicalModel, question: Question, *, best: bool = False) -> None:
        """Nor for other tables."""

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """Marginals, joint tables and log p(e) of every case; NaN and -inf where the evidence is impossible."""
        if question.log_likelihoods:  # beyond the range of doubles
            return FactorTree(log_space=True).answer(model, question, run).replace(engine=self.name)
        low = lower(model)
        run = for_each(run, question.n_cases)
        each: list[tuple[Smaller, Answer] | None] = []
        for one, small in zip(by_cases(question), smaller_cases(low, question), strict=True):
            found = None if small is None else self.about_smaller(small.model, small.question(one), run)
            possible = small is not None and found is not None and found.log_evidence > -np.inf
            each.append((small, found) if possible else None)  # type: ignore[arg-type]
            if run.report is not None:
                run.report(len(each))
        return whole_answer(model, question, each, engine=self.name)

    def about_smaller(self, model: GraphicalModel, question: Question, run: Run) -> Answer:
        """The answer to a question in which nothing is observed; every state of every variable is possible."""
        raise NotImplementedError


def for_each(run: Run, cases: int) -> Run:
    """The run of one of several cases."""
    return run if run.seconds is None or cases < 2 else replace(run, seconds=run.seconds / cases)


def listed(beliefs: list[FloatArray | None], low: Lowered, question: Question) -> FloatArray:
    """Beliefs of the targets one after the other; variables in no table are uniform."""
    sizes = [int(low.sizes[v]) for v in question.targets]
    parts = [np.full(n, 1.0 / n) if p is None else p for p, n in zip(beliefs, sizes, strict=True)]
    return np.concatenate(parts) if parts else np.zeros(0)
