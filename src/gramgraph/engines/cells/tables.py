"""Models on cells answered on their tables: observations become likelihoods of cells, then an engine for tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.answers import Answer, RealAnswer
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.cells.answers import Masses, answer_of, check_beliefs
from gramgraph.engines.cells.conditioning import asked_on_tables
from gramgraph.engines.cells.evidence import Seen, blocks, with_complete
from gramgraph.exceptions import OptionError
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question

Ask = Callable[[GraphicalModel, Question], Answer]


class OnTables(Engine):
    """An engine for tables that answers about models on cells; it keeps its name, options and exactness."""

    kinds = ("cells",)

    def __init__(self, worker: Engine) -> None:
        self.worker = worker
        self.name, self.exact, self.options = worker.name, worker.exact, worker.options  # type: ignore[misc]

    def answer(self, model: Any, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Posterior masses of cells, and log p(evidence)."""
        return by_tables(model, question, run, lambda cells, asked: self.worker.answer(cells, asked, run))

    def plan(self, model: Any, question: Question) -> Any:
        """What the tables would cost; `OptionError` where the engine makes no plan."""
        if not hasattr(self.worker, "plan"):
            raise OptionError(f"engine {self.name!r} makes no plan")
        axes, n = model.cell_axes, question.n_cases
        heard = tuple((v, np.ones(axes[v].m)) for v in question.seen)
        asked = Question(question.wanted, question.joints, (), np.zeros((n, 0), np.int64), heard)
        return self.worker.plan(model.cells, asked)


def by_tables(model: Any, question: Question, run: Run, ask: Ask) -> RealAnswer:
    """The answer to one question about the discrete model on cells, with likelihoods of all cases.

    Of rows that know everything, log p is a sum where nothing else is asked for.
    """
    seen = Seen.of(model, question)
    check_beliefs(model, question, run.memory)
    wanted, groups, axes = question.wanted, question.joints, model.cell_axes
    masses = {v: np.empty((seen.n_cases, axes[v].m)) for v in wanted}
    joint = {group: np.empty((seen.n_cases, *(axes[v].m for v in group))) for group in groups}
    log_p, rest = seen.log_base.copy(), np.arange(seen.n_cases)
    if not wanted and not groups:
        log_p, rest = with_complete(model, seen)
    found: Any = None
    for block in blocks(model, len(rest)):
        rows = rest[block]
        asked, more = asked_on_tables(model, seen, rows, wanted, groups)
        found = ask(model.cells, asked)
        log_p[rows] += np.asarray(found.log_evidence) + more
        for v in wanted:
            masses[v][rows] = found[axes[v].name].probabilities
        for group in groups:
            joint[group][rows] = found[model.names_of(group)].probabilities
    if found is None:
        return answer_of(model, question, seen, Masses(masses, joint, log_p, "cells"))
    return answer_of(model, question, seen, Masses(masses, joint, log_p, found.engine, found.exact, found.details))
