"""Evidence that cannot happen: say so, and which observations contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from gramgraph.compile.lower import lower
from gramgraph.exceptions import ImpossibleEvidenceError
from gramgraph.questions.question import Question

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: With more observations than this, the search for a smallest conflict would cost too much.
MAX_OBSERVATIONS = 200
MAX_CELLS = 2_000_000


def raise_impossible(model: GraphicalModel, question: Question) -> NoReturn:
    """`ImpossibleEvidenceError` naming a smallest set of observations that cannot hold together."""
    conflict = find_conflict(model, question)
    if conflict:
        text = ", ".join(conflict)
        raise ImpossibleEvidenceError(
            f"the evidence has probability zero: {text} cannot {'hold' if len(conflict) == 1 else 'hold together'}.",
            conflict=conflict,
        )
    raise ImpossibleEvidenceError("the evidence has probability zero under this model.")


def find_conflict(model: GraphicalModel, question: Question) -> tuple[str, ...]:
    """A smallest conflicting set of hard observations, as `name=state`; empty when there is none or it is costly.

    Single observations and pairs are tried first, all at once; then observations that are not needed are removed
    one after the other, which leaves a set none of whose members can be spared.
    """
    from gramgraph.engines.exact.junction_tree import _jobs

    observed = [v for v, code in zip(question.observed, question.codes[0].tolist(), strict=True) if code >= 0]
    codes = {v: int(c) for v, c in zip(question.observed, question.codes[0], strict=True)}
    if not observed or len(observed) > MAX_OBSERVATIONS:
        return ()

    def possible(sets: list[list[int]]) -> list[bool]:
        rows = np.full((len(sets), len(observed)), -1, np.int64)
        for row, members in zip(rows, sets, strict=True):
            for j, v in enumerate(observed):
                if v in members:
                    row[j] = codes[v]
        asked = Question((), (), tuple(observed), rows, (), True)
        out = np.empty(len(sets))
        for work in _jobs(model, lower(model), asked, None):
            job = work.make()
            if job.runner.plan.cells > MAX_CELLS:
                raise MemoryError
            _, value = job.runner.best(job.codes, job.mask_columns, support_only=True)
            out[slice(None) if job.rows is None else job.rows] = value
        return [bool(x) for x in np.isfinite(out)]

    def names(members: list[int]) -> tuple[str, ...]:
        return tuple(f"{model.vars[v].name}={model.vars[v].states[codes[v]]}" for v in members)

    try:
        if possible([observed])[0]:
            return ()
        small = [[v] for v in observed]
        if len(observed) <= 40:
            small += [[a, b] for i, a in enumerate(observed) for b in observed[i + 1 :]]
        for members, fine in zip(small, possible(small), strict=True):
            if not fine:
                return names(members)
        rest = list(observed)
        for v in observed:
            fewer = [u for u in rest if u != v]
            if not possible([fewer])[0]:
                rest = fewer
        return names(rest)
    except MemoryError:
        return ()
