"""Soft evidence (Jeffrey's rule): beliefs in some variables become given probabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.question import Question
from gramgraph.exceptions import ImpossibleEvidenceError
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["with_soft_evidence"]

MAX_SWEEPS = 1000
TOLERANCE = 1e-12


def with_soft_evidence(
    engine: Any, model: GraphicalModel, question: Question, wanted: dict[int, FloatArray], *, memory: float | None
) -> Answer:
    """The model nearest to p(· | hard and virtual evidence) whose marginals of `wanted` are as given.

    Iterative proportional fitting: each sweep multiplies a likelihood q / p onto one variable after the other. One
    soft observation is exact after a single step; several converge geometrically. `log_evidence` is that of the
    hard and virtual evidence alone.
    """
    names = {v: model._vars[v].name for v in wanted}
    base = engine.answer(model, replace(question, targets=tuple(wanted), joints=()), memory=memory)
    weights: dict[int, FloatArray] = {v: np.array(w) for v, w in question.likelihoods}
    for sweep in range(MAX_SWEEPS):
        gap = 0.0
        for v, q in wanted.items():
            now = _ask(engine, model, question, weights, (v,), memory)[names[v]].probabilities
            if ((now <= 0) & (q > 0)).any():
                raise ImpossibleEvidenceError(f"soft evidence gives {names[v]} a state that the rest makes impossible")
            gap = max(gap, float(np.nanmax(np.abs(now - q))))
            ratio = np.where(now > 0, q / np.where(now > 0, now, 1.0), 0.0)
            weights[v] = weights[v] * ratio if v in weights else ratio
        if gap < TOLERANCE or (sweep == 0 and len(wanted) == 1):
            break
    answer: Answer = engine.answer(model, replace(question, likelihoods=tuple(weights.items())), memory=memory)
    answer.log_evidence = base.log_evidence
    answer.details = {**answer.details, "soft_evidence_sweeps": sweep + 1}
    return answer


def _ask(
    engine: Any, model: GraphicalModel, question: Question, weights: dict[int, FloatArray], targets: Any, memory: Any
) -> Answer:
    asked = replace(question, targets=targets, joints=(), likelihoods=tuple(weights.items()))
    answer: Answer = engine.answer(model, asked, memory=memory)
    return answer
