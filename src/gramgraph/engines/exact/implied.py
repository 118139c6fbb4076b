"""What the evidence implies by the zeros of the tables alone: variables of which only one state is left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gramgraph.engines.approximate import Cases
from gramgraph.engines.slices import possible_messages, slice_case
from gramgraph.questions.question import Question

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["with_implied"]


def with_implied(model: GraphicalModel, question: Question) -> Question | None:
    """The question of one case with what its evidence implies observed too; None where it implies nothing.

    A state is ruled out when every row of some table that agrees with it, and with the states that are left of the
    other variables, is zero; that is repeated until nothing changes. Answers do not change by observing what is
    certain, but plans do: in deterministic networks by many orders of magnitude. Cost: a few looks at each entry.
    """
    if question.n_cases != 1:
        return None
    cases = Cases.of(model, question)
    part = slice_case(cases, 0)
    messages = possible_messages(cases, part) if part.constant > -np.inf else None
    if messages is None:  # impossible: whoever asked says so, and why
        return None
    sizes, at = cases.low.sizes, cases.unary_ptr
    lengths = sizes[part.scope_idx]
    columns = np.arange(len(messages)) + np.repeat(at[part.scope_idx] - part.msg_ptr[:-1], lengths)
    left = part.unary > 0.0
    left[columns[messages == 0.0]] = False
    weighted = {v for v, _ in question.likelihoods}
    one = (np.add.reduceat(left, at[:-1]) == 1) & part.active & (sizes > 1)
    found = [v for v in np.flatnonzero(one[: cases.low.n_visible]).tolist() if v not in weighted]
    if not found:
        return None
    states = [int(np.argmax(left[at[v] : at[v + 1]])) for v in found]
    unseen = {v for v, code in zip(question.observed, question.codes[0].tolist(), strict=True) if code < 0}
    columns_kept = [j for j, v in enumerate(question.observed) if v not in unseen]
    observed = (*(question.observed[j] for j in columns_kept), *found)
    codes = np.concatenate([question.codes[:, columns_kept], [states]], axis=1)
    return replace(question, observed=observed, codes=codes)
