"""Whether the numbers of a model and its evidence may leave the range of doubles: such questions go in logarithms."""

from __future__ import annotations

import numpy as np

from gramgraph.compile.lower import WIDE, Lowered
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray

#: Products of numbers that reach over less than e^640 ≈ 10^278 neither underflow nor overflow.
SAFE = 640.0
#: When tables beyond `WIDE` reach over more than e^300 together, or all tables over e^25 on average, small numbers
#: matter and may meet in one product.
MUCH, ON_AVERAGE = 300.0, 25.0


def _both(low: Lowered, question: Question | None) -> tuple[float, float]:
    """The reach of the model and of the evidence's likelihoods together."""
    every, wide = low.reach
    for _, weights in question.likelihoods if question is not None else ():
        span = _span(weights)
        every += span
        wide += span if span > WIDE else 0.0
    return every, wide


def _span(weights: FloatArray) -> float:
    positive = weights[weights > 0.0]
    if not positive.size:
        return 0.0
    return float(np.log(max(positive.max(), 1.0)) - np.log(min(positive.min(), 1.0)))


def may_underflow(low: Lowered, question: Question | None = None) -> bool:
    """Whether some product of entries could be smaller than the least double: if not, zero means impossible."""
    return not _is_mild(low, question) and _both(low, question)[0] > SAFE


def _is_mild(low: Lowered, question: Question | None) -> bool:
    """Whether a look at the largest and the least entry shows that all products stay in range."""
    return (question is None or not question.likelihoods) and low.rough_reach <= SAFE


def needs_logs(low: Lowered, question: Question | None = None) -> bool:
    """Whether linear numbers are not to be trusted with this question.

    Large models of ordinary numbers are: messages are scaled on the way, and what runs out of range is noticed there.
    """
    if question is not None and question.log_likelihoods:
        return True
    if _is_mild(low, question):
        return False
    every, wide = _both(low, question)
    return every > SAFE and (wide > MUCH or every > ON_AVERAGE * low.n_factors)
