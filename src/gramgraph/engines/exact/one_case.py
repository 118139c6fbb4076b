"""What the analyses ask with: one case of evidence as a question, and the exact engine that answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.question import Question
from gramgraph.engines.door import build_question, parse_evidence, refuse_soft
from gramgraph.engines.registry import get_engine
from gramgraph.exceptions import VariableError
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["Case", "ExactEngine", "ask", "exact_engine", "free_positions", "one_case", "with_cases"]

#: Evidence of an analysis: names with their states, or a question of one case that was made from it.
Case = Mapping[str, Any] | Question | None


class ExactEngine(Protocol):
    """An engine for beliefs and for the most probable assignment."""

    def answer(self, model: GraphicalModel, question: Question, *, memory: float | None = None) -> Answer:
        """Beliefs and log p(evidence)."""
        ...

    def mpe(
        self, model: GraphicalModel, question: Question, *, memory: float | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Most probable full assignments, (cases, variables), and their log probabilities."""
        ...


def exact_engine() -> ExactEngine:
    """The fastest exact engine."""
    engine: ExactEngine = get_engine("junction_tree")
    return engine


def ask(model: GraphicalModel, question: Question) -> Answer:
    """The exact answer."""
    return exact_engine().answer(model, question)


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
    parsed = parse_evidence(model, evidence, virtual_evidence)
    if parsed[4]:
        raise VariableError("evidence of one case is needed here: a dict, not a table of cases")
    refuse_soft(model, parsed)
    return build_question(model, (), (), parsed)


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
