"""Questions about plate models: read, given to an engine, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gramgraph.answers import PlateAnswer
from gramgraph.engines.base import Run, parse_budget
from gramgraph.engines.registry import choose_engine
from gramgraph.exceptions import ImpossibleEvidenceError, OptionError
from gramgraph.models.plated.model import PlateModel
from gramgraph.questions.plate_question import read_plate_question
from gramgraph.typing import RandomState


def query_plates(
    model: PlateModel,
    targets: Any,
    evidence: Any,
    engine: str,
    unable: Sequence[Any],
    random_state: RandomState,
    budget: Any,
    options: Mapping[str, Any],
) -> PlateAnswer:
    """p(targets | evidence) of a plate model; the option `sizes` gives plates that the evidence does not show."""
    if any(value is not None for value in unable):
        raise OptionError(
            "a plate model takes evidence alone: no likelihoods, memory or kept columns; unroll it for these"
        )
    others = dict(options)
    question = read_plate_question(model, targets, evidence, others.pop("sizes", None))
    draws, seconds = parse_budget(budget)
    worker = choose_engine(engine, model, question, others)
    found: PlateAnswer = worker.answer(model, question, Run(None, seconds, draws, random_state))
    if found.log_evidence == -float("inf"):
        raise ImpossibleEvidenceError(
            "the evidence has probability zero under the model", conflict=tuple(question.observed)
        )
    return found
