"""What the analyses ask with: one case of evidence as a question, and the exact engine that answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.question import Question
from gramgraph.engines.elimination import Elimination
from gramgraph.exceptions import ImpossibleEvidenceError, VariableError
from gramgraph.models.base import GraphicalModel
from gramgraph.typing import FloatArray, IntArray

__all__ = ["ExactEngine", "ask", "exact_engine", "impossible", "names_of", "one_case", "with_cases"]

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
    return Elimination()


def ask(model: GraphicalModel, question: Question) -> Answer:
    """The exact answer."""
    return exact_engine().answer(model, question)


def one_case(model: GraphicalModel, evidence: Case) -> Question:
    """The evidence as a question about one case, with no targets yet."""
    if isinstance(evidence, Question):
        if evidence.n_cases != 1:
            raise VariableError(f"evidence of one case is needed here, not of {evidence.n_cases}")
        return replace(evidence, targets=(), joints=(), batched=False)
    seen = {model.index(name): model.var(name).index(state) for name, state in (evidence or {}).items()}
    return Question((), (), tuple(seen), np.array([list(seen.values())], dtype=np.int64).reshape(1, len(seen)))


def with_cases(question: Question, extra: Sequence[tuple[int, int]]) -> Question:
    """A table of cases from one: the case itself, then a case for each further observation (variable, state)."""
    columns = (*question.observed, *dict.fromkeys(var for var, _ in extra if var not in question.observed))
    codes = np.full((1 + len(extra), len(columns)), -1, dtype=np.int64)
    codes[:, : len(question.observed)] = question.codes
    for row, (var, state) in enumerate(extra, start=1):
        codes[row, columns.index(var)] = state
    likelihoods = tuple((var, weights if weights.ndim == 1 else weights[0]) for var, weights in question.likelihoods)
    return replace(question, observed=columns, codes=codes, likelihoods=likelihoods, batched=True)


def names_of(model: GraphicalModel, names: str | Sequence[str], question: Question) -> tuple[int, ...]:
    """Positions of variables that are asked for and not observed, each once."""
    wanted = (names,) if isinstance(names, str) else tuple(names)
    found = tuple(dict.fromkeys(model.index(name) for name in wanted))
    seen = question.hard_evidence(0)
    for i in found:
        if i in seen:
            raise VariableError(f"{model._vars[i].name} is observed; ask about a variable that is not")
    return found


def impossible(model: GraphicalModel, question: Question) -> ImpossibleEvidenceError:
    """The error for evidence of probability zero."""
    seen = [f"{model._vars[i].name}={model._vars[i].states[code]}" for i, code in question.hard_evidence(0).items()]
    return ImpossibleEvidenceError(
        f"the evidence has probability zero: {', '.join(seen[:12]) or 'by the model or its likelihoods alone'}",
        conflict=[name.split("=")[0] for name in seen] if len(seen) == 1 else (),
    )
