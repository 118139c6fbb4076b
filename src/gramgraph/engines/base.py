"""What an engine is: a name, whether it is exact, and an answer to a question about a model."""

from __future__ import annotations

from typing import Any, Protocol

from gramgraph.answers import Answer
from gramgraph.compile.question import Question
from gramgraph.models.base import GraphicalModel

__all__ = ["Engine"]


class Engine(Protocol):
    """One inference algorithm. Engines hold no state: what is worth keeping stands in the model's plan cache."""

    name: str
    exact: bool

    def plan(self, model: GraphicalModel, question: Question) -> Any:
        """Structure only: what will be computed and what it costs (`width`, `bytes`, `str(plan)`)."""
        ...

    def answer(self, model: GraphicalModel, question: Question, *, memory: float | None = None) -> Answer:
        """Beliefs and log p(evidence). Impossible evidence: log_evidence -inf and NaN beliefs for that case."""
        ...
