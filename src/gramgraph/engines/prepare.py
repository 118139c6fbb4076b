"""What is done to a question about real-valued variables before an engine sees it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.compile.cache import remember
from gramgraph.conditionals import LinearGaussian, Table
from gramgraph.conditionals.continuous import RealConditional
from gramgraph.engines.gaussian.lower import DENSE_LIMIT
from gramgraph.engines.point_states import with_point_states
from gramgraph.exceptions import OptionError
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Question
from gramgraph.variables import Var, binary, real

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


def prepared(model: GraphicalModel, question: Question) -> tuple[GraphicalModel, Question]:
    """The model and the question that an engine sees: noisy readings are observed children, and what says nothing
    about the question is left out. Tables, also those on cells, are cut by their engines."""
    if model.kind in ("tables", "cells"):
        return model, question
    model, question = with_all_readings(model, question)
    if model.kind == "gaussian" and layout_of(model).size <= DENSE_LIMIT:
        return model, question  # its joint covariance is kept, and serves all questions
    return relevant_question(model, question)


def relevant_part(model: GraphicalModel, positions: Iterable[int]) -> GraphicalModel:
    """The network of some variables and all their ancestors; the others say nothing about them."""
    parents = getattr(model, "parent_positions", None)
    if parents is None:
        return model
    seen = np.zeros(len(model.vars), bool)
    stack = list(positions)
    while stack:
        v = stack.pop()
        if not seen[v]:
            seen[v] = True
            stack.extend(parents[v])
    if seen.all():
        return model
    keep = np.flatnonzero(seen)
    key = ("part", keep.tobytes())
    found: GraphicalModel | None = model.plans.get(key)
    if found is None:
        conditionals = model.conditionals  # type: ignore[attr-defined]
        found = type(model).from_parts(  # type: ignore[attr-defined]
            [model.vars[v] for v in keep], [conditionals[v] for v in keep], check=False
        )
        remember(model, key, found)
    return found


def relevant_question(model: GraphicalModel, question: Question) -> tuple[GraphicalModel, Question]:
    """The relevant part of a network, and the question in its positions."""
    wanted = [*question.wanted, *(v for members in question.joints for v in members), *question.seen]
    part = relevant_part(model, wanted)
    if part is model:
        return model, question
    old, new, at = layout_of(model), layout_of(part), part.positions
    place = {v: at[var.name] for v, var in enumerate(model.vars) if var.name in at}
    move = np.full(old.size, -1, np.int64)
    for v, to in place.items():
        if not model.vars[v].is_discrete:
            move[old.components(v)] = new.components(to)
    columns = move[question.columns]
    return part, replace(
        question,
        targets=tuple(place[v] for v in question.wanted),
        joints=tuple(tuple(place[v] for v in members) for members in question.joints),
        everything=False,
        columns=columns,
        owners=new.owner[columns],
        observed=tuple(place[v] for v in question.observed),
    )


def support_of(model: GraphicalModel, question: Question) -> dict[str, Any]:
    """How near observed values lie to what conditionals were learned from, by variable: 1 among the data, 0 far away.

    A number for one case, an array for a table of cases; only variables of conditionals that have data are listed.
    """
    if model.kind in ("tables", "cells") or not question.seen:
        return {}
    learned = [c for c in getattr(model, "conditionals", ()) if isinstance(c, RealConditional)]
    learned = [c for c in learned if type(c).support is not RealConditional.support]
    out: dict[str, Any] = {}
    layout = layout_of(model)
    place = {int(component): j for j, component in enumerate(question.columns)}
    for c in learned:
        for var in c.scope:
            v = model.positions[var.name]
            if v not in question.seen or (var.is_discrete and var not in getattr(c, "point_states", {})):
                continue
            x: Any
            known: Any
            if var.is_discrete:
                x = question.codes[:, question.observed.index(v)]
                known = x >= 0
            else:
                columns = [place[int(k)] for k in layout.components(v) if int(k) in place]
                x = question.X[:, columns]
                known = ~np.isnan(x).any(axis=1)
            near = np.ones(question.n_cases)
            if known.any():
                near[known] = c.support({var: x[known]}).get(var.name, near[known])
            out[var.name] = np.minimum(out.get(var.name, 1.0), near)
    return {name: near if question.batched else float(near[0]) for name, near in out.items()}


def with_all_readings(model: GraphicalModel, question: Question) -> tuple[GraphicalModel, Question]:
    """The model with an observed child for each likelihood of a model with real-valued variables, and with states in
    the place of sets and strings."""
    model, question = with_point_states(model, question)
    if model.kind in ("tables", "cells") or not (question.likelihoods or question.noisy):
        return model, question
    return _with_readings(model, question)


def _with_readings(model: Any, question: Question) -> tuple[Any, Question]:
    """(larger network, question in which the readings are observed): a reading is a new child of its variable."""
    conditionals = getattr(model, "conditionals", None)
    if conditionals is None:
        raise OptionError(
            "virtual evidence on real-valued variables needs a Bayesian network. Use a Bayesian network with a child "
            "for the reading instead"
        )
    variables: list[Var] = list(model.vars)
    made = list(conditionals)
    observed, codes = list(question.observed), [question.codes]
    readings: list[np.ndarray[Any, Any]] = []
    for v, weights in question.likelihoods:
        var = model.vars[v]
        seen = binary(f"{var.name}·seen")
        p = weights  # the largest is one
        made.append(Table(seen, (var,), np.stack([1 - p, p], axis=1)))
        observed.append(len(variables))
        codes.append(np.ones((question.n_cases, 1), np.int64))
        variables.append(seen)
    for v, (value, noise) in question.noisy.items():
        var = model.vars[v]
        reading = real(f"{var.name}·read", var.dimension)
        made.append(LinearGaussian(reading, (var,), np.eye(var.dimension), np.zeros(var.dimension), noise))
        variables.append(reading)
        readings.append(value)
    larger = type(model).from_parts(variables, made, check=False)
    layout = layout_of(larger)
    new = np.arange(layout_of(model).size, layout.size)
    x = np.concatenate(readings) if readings else np.zeros(0)
    asked = replace(
        question,
        targets=question.wanted,
        everything=False,
        complete=False,
        columns=np.concatenate([question.columns, new]),
        owners=np.concatenate([question.owners, layout.owner[new]]),
        X=np.hstack([question.X, np.broadcast_to(x, (question.n_cases, len(x)))]),
        observed=tuple(observed),
        codes=np.hstack(codes),
        likelihoods=(),
        log_likelihoods=(),
        noisy={},
    )
    return larger, asked
