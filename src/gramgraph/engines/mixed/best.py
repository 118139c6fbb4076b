"""The best values of a model with discrete and real variables: of all of them, of some, and the k best."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Assignment, Belief
from gramgraph.engines.continuous.door import Group, RealQuestion
from gramgraph.engines.gaussian.lower import kind_of
from gramgraph.exceptions import ModelError, OptionError, VariableError

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["best", "best_few"]


def best(model: GraphicalModel, question: RealQuestion, some: bool, engine: str, memory: float | None) -> Any:
    """The values at which the density of all unobserved variables (or, with `some`, of the targets) is largest.

    Exact for conditional-Gaussian networks, by a strong tree. Where there is no closed form, the highest mode that
    Newton's method finds over all configurations of the discrete variables, else the best of many draws.
    """
    from gramgraph.engines.continuous.ask import assignments, log_joint
    from gramgraph.engines.mixed.mixture import StrongEngine

    if engine not in ("auto", "strong_tree", "laplace", "likelihood_weighting", "enumeration", "junction_tree"):
        raise OptionError(f"map_query of a mixed model takes engine='auto' or 'laplace', not {engine!r}")
    if some:
        return _best_of_some(model, question, memory)
    if kind_of(model) == "general" or engine in ("laplace", "likelihood_weighting"):
        return _without_closed_form(model, question, engine)
    n = question.n_cases
    X, states = np.zeros((n, question.layout.size)), np.zeros((n, len(model.vars)), np.int64)
    possible = np.ones(n, bool)

    def work(group: Group) -> None:
        x, codes, log_p = StrongEngine().best(model, group, memory)
        X[group.rows], states[group.rows], possible[group.rows] = x, codes, log_p > -np.inf

    question.work.each(work, question.groups(), lambda group: len(group.rows))
    labelled = {v: states[:, v] for v, var in enumerate(model.vars) if var.is_discrete}
    log_prob = np.where(possible, log_joint(model, X, labelled), -np.inf)
    return assignments(model, question, X, states, log_prob)


def _without_closed_form(model: GraphicalModel, question: RealQuestion, engine: str) -> Any:
    from gramgraph.engines.continuous.ask import assignments
    from gramgraph.engines.mixed.laplace import Laplace
    from gramgraph.engines.mixed.weighting import LikelihoodWeighting

    if engine != "likelihood_weighting":
        try:
            X, codes, logs = Laplace().best(model, question)
            return assignments(model, question, X, codes, logs, exact=False)
        except ModelError:  # a variable without noise, or a density without an inner mode
            if engine == "laplace":
                raise
    return LikelihoodWeighting().best(model, question)


def _best_of_some(model: GraphicalModel, question: RealQuestion, memory: float | None) -> Any:
    """Marginal MAP: all other variables are integrated out. Exact where the targets are discrete and the network is
    conditional-Gaussian; a real target's mode is the highest peak that is found of its mixture."""
    from gramgraph.engines.continuous.ask import _split
    from gramgraph.engines.mixed.dispatch import answer

    if question.batched:
        raise VariableError("targets take one case of evidence (a dict), not a table of cases")
    if not question.targets or question.joints:
        raise OptionError("targets of map_query are names of variables")
    names = tuple(model.vars[v].name for v in question.targets)
    joint = replace(question, targets=(), joints=(question.targets,), everything=False)
    found = answer(model, joint, kind_of(model), "auto", memory=memory, random_state=0)
    belief, log_p = found[names], float(found.log_evidence)
    if isinstance(belief, Belief):
        table = belief.probabilities
        at = np.unravel_index(int(table.argmax()), table.shape)
        states = {name: model.var(name).states[i] for name, i in zip(names, at, strict=True)}
        bound = None if found.exact else np.inf
        return Assignment(states, log_p + float(np.log(table[at])), exact=found.exact, bound=bound)
    labelled = [var for var in belief.scope if var.is_discrete]
    top: tuple[float, dict[str, Any]] = (-np.inf, {})
    for cell in np.unique(belief.codes, axis=0) if labelled else [()]:
        chosen: dict[str, Any] = {var.name: var.states[int(i)] for var, i in zip(labelled, cell, strict=True)}
        part = belief.given(chosen) if labelled else belief
        p = float(belief.weights[0, (belief.codes == cell).all(axis=1)].sum()) if labelled else 1.0
        if not p > 0.0:
            continue
        peak = part.mode()
        density = part.density(peak if part._scalar else np.asarray(peak)[None])
        with np.errstate(divide="ignore"):
            height = log_p + np.log(p) + float(np.log(np.atleast_1d(density)[0]))
        if height > top[0]:
            chosen |= dict(zip((var.name for var in part.scope), _split(peak, part.scope), strict=True))
            top = (height, chosen)
    values = {name: top[1][name] for name in names}
    return Assignment(values, top[0], exact=False, bound=np.inf)


def best_few(model: GraphicalModel, question: RealQuestion, k: Any, some: bool) -> list[Assignment]:
    """The k best configurations of the discrete variables, each with the real ones at their best values.

    All configurations are looked at (up to 4096). Exact for conditional-Gaussian networks.
    """
    from gramgraph.engines.mixed.laplace import Laplace, hidden_variables

    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise OptionError(f"k is how many assignments are wanted, a whole number from 1, not {k!r}")
    if some or question.batched:
        raise OptionError("the k best assignments are those of all unobserved variables, of one case (a dict)")
    kind = kind_of(model)
    if kind == "gaussian":
        raise OptionError(
            "a Gaussian has one best assignment, and none that comes second: values next to the mode are nearly as "
            "good. Ask map_query without k, or for intervals"
        )
    engine = Laplace()
    group = next(iter(question.groups()))
    rng = np.random.default_rng(0)
    labelled, _ = hidden_variables(model, group)
    count = np.prod([float(model.vars[v].size) for v in labelled])
    codes = engine.configurations(model, group, rng)
    if len(codes) < count:
        raise OptionError(
            f"the k best assignments look at all {count:.3g} configurations of the unobserved discrete variables: at "
            f"most {engine.most} are. What helps: observe some of them, or map_query without k"
        )
    from gramgraph.engines.continuous.ask import _impossible, assignments

    found = engine.modes(model, group, codes, rng)
    order = [int(i) for i in np.argsort(-found.top, kind="stable")[: int(k)] if found.top[i] > -np.inf]
    if not order:
        raise _impossible(model, question)
    out = []
    for i in order:
        X, states = np.zeros((1, question.layout.size)), np.zeros((1, len(model.vars)), np.int64)
        X[0, found.hidden] = found.mode[i]
        for v, c in found.codes.items():
            states[0, v] = c[i]
        out.append(assignments(model, question, X, states, found.top[i : i + 1], exact=kind == "mixed"))
    return out
