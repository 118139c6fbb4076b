"""What the analyses of tables ask with: one case of evidence as a question, and the exact answer to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.exceptions import VariableError
from gramgraph.questions.question import Question
from gramgraph.questions.reading import read, refuse_soft

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Evidence of an analysis: names with their states, or a question of one case that was made from it.
Case = Mapping[str, Any] | Question | None


def ask(model: GraphicalModel, question: Question) -> Answer:
    """The exact answer."""
    return JunctionTree().answer(model, question)


def one_case(model: GraphicalModel, evidence: Case, virtual_evidence: Mapping[str, Any] | None = None) -> Question:
    """The evidence as a question about one case, with no targets yet."""
    if isinstance(evidence, Question):
        if evidence.n_cases != 1:
            raise VariableError(f"evidence of one case is needed here, not of {evidence.n_cases}")
        weights, logs = (
            tuple((var, w if w.ndim == 1 else w[0]) for var, w in given)
            for given in (evidence.likelihoods, evidence.log_likelihoods)
        )
        return replace(evidence, targets=(), joints=(), likelihoods=weights, log_likelihoods=logs, batched=False)
    question = refuse_soft(model, read(model, [], evidence, virtual_evidence))
    if question.batched:
        raise VariableError("evidence of one case is needed here: a dict, not a table of cases")
    return question


def with_cases(question: Question, extra: Sequence[tuple[int, int]]) -> Question:
    """A table of cases from one: the case itself, then a case for each further observation (variable, state)."""
    columns = (*question.observed, *dict.fromkeys(var for var, _ in extra if var not in question.observed))
    codes = np.full((1 + len(extra), len(columns)), -1, dtype=np.int64)
    codes[:, : len(question.observed)] = question.codes
    place = {var: column for column, var in enumerate(columns)}
    for row, (var, state) in enumerate(extra, start=1):
        codes[row, place[var]] = state
    return replace(question, observed=columns, codes=codes, batched=True)


def free_positions(model: GraphicalModel, names: str | Sequence[str], question: Question) -> tuple[int, ...]:
    """Positions of variables that are asked for and not observed, each once."""
    found = tuple(dict.fromkeys(model.positions_of(names)))
    seen = question.hard_evidence(0)
    for i in found:
        if i in seen:
            raise VariableError(f"{model.vars[i].name} is observed; ask about a variable that is not")
    return found
