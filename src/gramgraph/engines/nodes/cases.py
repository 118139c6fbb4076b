"""What the engines of this room share: cases one by one, what is known in each, and the answer to all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gramgraph.answers import Belief, Key, RealAnswer
from gramgraph.conditionals import LinearGaussian
from gramgraph.engines.base import Engine, Run
from gramgraph.engines.mixed.silent import silent_parts
from gramgraph.exceptions import ModelError
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Group, Question
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

Case = TypeVar("Case")


def solve_cases(question: Question, run: Run, solve: Callable[[Group], Case]) -> list[Case]:
    """What `solve` makes of every case, in the order of their rows."""
    tasks: list[tuple[int, Group]] = []
    for group in question.groups():
        for i, row in enumerate(group.rows.tolist()):
            tasks.append((row, replace(group, rows=group.rows[i : i + 1], X=group.X[i : i + 1])))
    found = run.each(lambda task: solve(task[1]), tasks)
    by_row = {row: case for (row, _), case in zip(tasks, found, strict=True)}
    return [by_row[row] for row in range(question.n_cases)]


def known_values(model: Any, group: Group) -> dict[Var, Array]:
    """Observed states and numbers of one case; a vector of which only a part was seen is not known."""
    layout = layout_of(model)
    known: dict[Var, Array] = {model.vars[v]: np.array([code]) for v, code in group.states.items()}
    owners = layout.owner[group.seen]
    for v in dict.fromkeys(owners.tolist()):
        columns = np.flatnonzero(owners == v)
        x = group.X[0, columns[np.argsort(group.seen[columns])]]
        if len(x) == model.vars[v].dimension:
            known[model.vars[v]] = x[None]
    return known


def fixed_values(model: Any) -> dict[Var, Array]:
    """Numbers that variables have for sure, as interventions set them: no noise, and nothing to depend on."""
    return {
        c.child: np.asarray(c.intercept, dtype=np.float64)[None]
        for c in model.conditionals
        if isinstance(c, LinearGaussian) and not c.parents and not np.any(c.covariance)
    }


def refuse_functions_of_hidden(model: Any, group: Group) -> None:
    """A `ModelError` where a variable is a function of hidden real parents: its density lies on a line that nodes miss.

    What has no noise and no such parents stands at points, which boxes hold.
    """
    for part in silent_parts(model, known_values(model, group) | fixed_values(model)):
        if part.hidden:
            raise ModelError(
                f"engine 'nodes' needs noise where a real-valued parent is not observed: {part.child.name} is a "
                f"function of {', '.join(var.name for var in part.hidden)} without noise. Ask with an exact engine or "
                "engine='likelihood_weighting', or give it a small variance"
            )


def state_table(
    scope: tuple[Var, ...], known: Mapping[Var, Array], log_p: float, joint: Callable[[tuple[Var, ...]], FloatArray]
) -> FloatArray:
    """Probabilities of discrete variables, known ones included; `joint` gives those of the others."""
    shape = tuple(var.size for var in scope)
    if log_p == -np.inf:
        return np.full(shape, np.nan)
    out = np.zeros(shape)
    free = tuple(var for var in scope if var not in known)
    out[tuple(int(known[var][0]) if var in known else slice(None) for var in scope)] = joint(free) if free else 1.0
    return out


def state_belief(scope: tuple[Var, ...], tables: list[FloatArray], question: Question) -> Belief:
    """The belief of discrete variables from one table for each case."""
    p = np.array(tables).reshape(len(tables), *(var.size for var in scope))
    return Belief(scope, p if question.batched else p[0], batched=question.batched)


def answer_of(
    engine: Engine,
    model: GraphicalModel,
    question: Question,
    log_p: list[float],
    belief: Callable[[Key], Any],
    details: dict[str, Any],
) -> RealAnswer:
    """The answer of an engine that has solved all cases."""
    return RealAnswer(
        question.keys(model),
        belief,
        np.array(log_p) if question.batched else float(log_p[0]),
        engine=engine.name,
        exact=engine.exact,
        batched=question.batched,
        details=details,
    )
