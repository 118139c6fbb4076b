"""Answers about plate models from what engines compute: probabilities of sites, moments of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gramgraph.answers import Belief, PlateAnswer, PlateBeliefs
from gramgraph.engines.plates.counts import CountModel, Found
from gramgraph.exceptions import ModelError
from gramgraph.questions.plate_question import PlateQuestion
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

#: (members, states) of a discrete variable, or (means, variances) of another one, (members, dimension) each.
Moments = FloatArray | tuple[FloatArray, FloatArray]


def plate_answer(
    question: PlateQuestion,
    moments: Callable[[str], Moments],
    joint: Callable[[tuple[tuple[str, int], ...]], FloatArray],
    log_evidence: float,
    *,
    engine: str,
    exact: bool,
    details: Mapping[str, Any] | None = None,
) -> PlateAnswer:
    """Beliefs by key: `moments` gives all members of a variable, `joint` the table of several members."""
    layout, nodes = question.layout, question.model.template.nodes

    def whole(name: str) -> PlateBeliefs:
        found = moments(name)
        var = nodes[name].var
        if isinstance(found, tuple):
            return PlateBeliefs(var, layout, mean=found[0], variance=found[1])
        return PlateBeliefs(var, layout, probabilities=found)

    def make(key: Any) -> Any:
        target = question.targets[key]
        if isinstance(target, str):
            return whole(target)
        names = [name for name, _ in target]
        if not all(nodes[name].var.is_discrete for name in names):
            if len(target) == 1:
                return whole(names[0])[tuple(layout.rows(nodes[names[0]].plates)[target[0][1]])]
            raise ModelError(f"a joint belief is one of discrete members; {', '.join(names)} are not all")
        scope = tuple(Var(question.label(n, i), nodes[n].var.domain) for n, i in target)
        return Belief(scope, joint(target))

    keys = list(question.targets)
    return PlateAnswer(keys, make, log_evidence, engine=engine, exact=exact, details=details)  # type: ignore[arg-type]


def count_answer(question: PlateQuestion, model: CountModel, found: Found, *, engine: str) -> PlateAnswer:
    """The answer of an engine on urns."""
    nodes = question.model.template.nodes

    def moments(name: str) -> Moments:
        if name in model.sites:
            return found.marginals(model, *model.sites[name])
        if name in model.rows:
            first, last = model.rows[name]
            a, b = model.offset[first], model.offset[last]
            mean, square = (
                part[a:b].reshape(last - first, int((b - a) // max(last - first, 1))) for part in found.cells
            )
            if nodes[name].form == "beta":
                mean, square = mean[:, 1:], square[:, 1:]
            return mean, square - mean**2
        seen = question.observed[name]
        return seen, np.zeros_like(seen)

    def joint(target: tuple[tuple[str, int], ...]) -> FloatArray:
        return found.joint(model, [model.sites[name][0] + i for name, i in target])

    return plate_answer(
        question, moments, joint, found.log_evidence, engine=engine, exact=found.exact, details=found.details
    )
