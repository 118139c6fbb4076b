"""The best values of some variables of a model with discrete and real ones, and the k best configurations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Assignment, Belief
from gramgraph.answers.rows import split
from gramgraph.engines.base import Best
from gramgraph.engines.mixed.laplace import Laplace, hidden_variables
from gramgraph.exceptions import OptionError, VariableError
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Question

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


def best_of_some(model: GraphicalModel, question: Question, ask: Callable[[GraphicalModel, Question], Any]) -> Any:
    """Marginal MAP: all other variables are integrated out. Exact where the targets are discrete and the network is
    conditional-Gaussian; a real target's mode is the highest peak that is found of its mixture."""
    if question.batched:
        raise VariableError("targets take one case of evidence (a dict), not a table of cases")
    if not question.targets or question.joints:
        raise OptionError("targets of map_query are names of variables")
    names = tuple(model.vars[v].name for v in question.targets)
    joint = replace(question, targets=(), joints=(tuple(question.targets),), everything=False)
    found = ask(model, joint)
    belief, log_p = found[names], float(found.log_evidence)
    if isinstance(belief, Belief):
        table = belief.probabilities
        at = np.unravel_index(int(table.argmax()), table.shape)
        states = {name: model.var(name).states[i] for name, i in zip(names, at, strict=True)}
        bound = None if found.exact else np.inf
        return Assignment(states, log_p + float(np.log(table[at])), exact=found.exact, bound=bound)
    if model.kind == "gaussian":
        at = belief.mean()
        height = log_p + float(np.atleast_1d(belief.log_density(at if np.ndim(at) == 0 else np.asarray(at)[None]))[0])
        return Assignment(dict(zip(names, split(at, belief.scope), strict=True)), height)  # type: ignore[arg-type]
    labelled = [var for var in belief.scope if var.is_discrete]
    top: tuple[float, dict[str, Any]] = (-np.inf, {})
    for cell in np.unique(belief.codes, axis=0) if labelled else [()]:
        chosen: dict[str, Any] = {var.name: var.states[int(i)] for var, i in zip(labelled, cell, strict=True)}
        part = belief.given(chosen) if labelled else belief
        p = float(belief.weights[0, (belief.codes == cell).all(axis=1)].sum()) if labelled else 1.0
        if not p > 0.0:
            continue
        peak = part.mode()
        density = part.density(peak if part.is_scalar else np.asarray(peak)[None])
        with np.errstate(divide="ignore"):
            height = log_p + np.log(p) + float(np.log(np.atleast_1d(density)[0]))
        if height > top[0]:
            chosen |= dict(zip((var.name for var in part.scope), split(peak, part.scope), strict=True))
            top = (height, chosen)
    values = {name: top[1][name] for name in names}
    return Assignment(values, top[0], exact=False, bound=np.inf)


def best_few(model: GraphicalModel, question: Question, k: int) -> Best:
    """The k best configurations of the discrete variables, each with the real ones at their best values.

    All configurations are looked at (up to 4096). Exact for conditional-Gaussian networks. Observed variables are left
    at zero.
    """
    engine = Laplace()
    group = next(iter(question.groups()))
    rng = np.random.default_rng(0)
    labelled, _ = hidden_variables(model, group)
    count = np.prod([float(model.vars[v].size) for v in labelled])
    codes = engine.configurations(model, group, rng)
    if len(codes) < count:
        raise OptionError(
            f"the k best assignments look at all {count:.3g} configurations of the unobserved discrete variables: at "
            f"most {engine.most} are. Try: observe some of them, or map_query without k"
        )
    found = engine.modes(model, group, codes, rng)
    order = [int(i) for i in np.argsort(-found.top, kind="stable")[:k] if found.top[i] > -np.inf]
    X = np.zeros((len(order), layout_of(model).size))
    states = np.zeros((len(order), len(model.vars)), np.int64)
    X[:, found.hidden] = found.mode[order]
    for v, c in found.codes.items():
        states[:, v] = c[order]
    top = found.top[order]
    return Best(states, top, top if model.kind == "mixed" else np.full(len(top), np.inf), X)
