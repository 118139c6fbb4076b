"""What "auto" does when no exact plan fits into memory: propagation, with an interval for log p(evidence)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.budget import readable
from gramgraph.compile.lower import lower
from gramgraph.compile.question import Question
from gramgraph.exceptions import BudgetError

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["ApproximateWarning", "approximate_answer", "log_evidence_interval"]

#: Bounds are computed along with the answer up to this many table cells times cases.
BOUND_CELLS = 2_000_000


class ApproximateWarning(UserWarning):
    """An answer is approximate because an exact one does not fit into memory."""


def approximate_answer(model: GraphicalModel, question: Question, error: BudgetError) -> Answer:
    """Loopy propagation instead of the exact answer that does not fit; `details` hold the bounds where affordable."""
    from gramgraph.engines.belief_propagation import BeliefPropagation

    answer = BeliefPropagation().answer(model, question)
    details: dict[str, Any] = {**answer.details, "exact_bytes": error.bytes}
    if len(lower(model).values) * question.n_cases <= BOUND_CELLS:
        low, high = log_evidence_interval(model, question)
        details["log_evidence_interval"] = (low, high) if question.batched else (float(low[0]), float(high[0]))
    settled = bool(np.all(answer.details["converged"]))
    warnings.warn(
        f"an exact answer needs {readable(error.bytes)}: this one is approximate (loopy belief propagation, "
        f'{"converged" if settled else "NOT converged"}). engine="junction_tree" insists on the exact one',
        ApproximateWarning,
        stacklevel=4,
    )
    answer.details = details
    return answer


def log_evidence_interval(model: GraphicalModel, question: Question) -> tuple[Any, Any]:
    """(lower, upper) bounds of log p(evidence) of every case: mean field and tree-reweighted propagation."""
    from gramgraph.engines.mean_field import lower_bound
    from gramgraph.engines.tree_reweighted import upper_bound

    asked = replace(question, targets=(), joints=())  # what is not observed and above no evidence sums to one
    return lower_bound(model, asked), upper_bound(model, asked)
