"""Answers about models with discrete and real variables: which engine, and what its numbers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Belief, Key
from gramgraph.engines.continuous.door import Group, RealQuestion
from gramgraph.engines.continuous.posterior import IllConditioned
from gramgraph.engines.continuous.registry import get_engine
from gramgraph.exceptions import BudgetError, ModelError
from gramgraph.real_answers import MixtureBelief, RealAnswer
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["Cells", "answer", "best", "draw"]


class Cells:
    """What an engine says about some variables of one group of cases: a table, or a mixture with a Gaussian a cell.

    `weights` are (cases, cells) and sum to one; `codes` gives the states of the discrete variables in each cell.
    """

    __slots__ = ("codes", "cov", "mean", "scope", "weights")

    def __init__(
        self, scope: tuple[Var, ...], weights: FloatArray, codes: Any, mean: FloatArray | None, cov: FloatArray | None
    ) -> None:
        self.scope, self.weights, self.codes, self.mean, self.cov = scope, weights, codes, mean, cov


def answer(
    model: GraphicalModel,
    question: RealQuestion,
    kind: str,
    engine: str,
    *,
    random_state: RandomState = None,
    budget: float | None = None,
    memory: float | None = None,
) -> RealAnswer:
    """Beliefs of all cases; "auto" is exact while that fits into memory, else draws samples and says so."""
    if kind == "general" and engine == "auto":
        from gramgraph.engines.continuous.closing import closed_answer

        found = closed_answer(model, question, memory)
        if found is not None:
            return found
    if kind == "general" or engine == "likelihood_weighting":
        worker = get_engine(kind, "likelihood_weighting" if engine == "auto" else engine)
        return worker.answer(model, question, random_state=random_state, budget=budget)
    if engine != "auto":
        worker = get_engine(kind, engine)
        return _collect(model, question, worker, random_state, budget, memory)
    worker = get_engine(kind, "mixture")
    worker.strict = True
    if not worker.is_small(model, question):
        worker = get_engine(kind, "strong_tree")
    try:
        return _collect(model, question, worker, random_state, budget, memory)
    except IllConditioned:
        return _collect(model, question, get_engine(kind, "strong_tree"), random_state, budget, memory)
    except BudgetError:
        return _collect(model, question, get_engine(kind, "rao_blackwell"), random_state, budget, memory)
    except ModelError:
        if worker.name != "strong_tree":
            raise
        return _collect(model, question, get_engine(kind, "mixture"), random_state, budget, memory)


def _collect(
    model: GraphicalModel,
    question: RealQuestion,
    engine: Any,
    random_state: RandomState,
    budget: float | None,
    memory: float | None,
) -> RealAnswer:
    scopes: dict[Key, tuple[Var, ...]] = {}
    for key in question.keys:
        names = (key,) if isinstance(key, str) else key
        scopes[key] = tuple(model.var(name) for name in names)
    log_p = np.full(question.n_cases, -np.inf)
    found: list[tuple[Group, dict[Key, Cells]]] = []
    details: dict[str, Any] = {"index": question.index}
    options: dict[str, Any] = {"memory": memory}
    if not engine.exact:
        options |= {"random_state": random_state, "budget": budget}
    for group in question.groups():
        cells, logs, more = engine.beliefs(model, group, scopes, **options)
        log_p[group.rows] = logs
        found.append((group, cells))
        details |= more

    def belief(key: Key) -> Any:
        return _belief(key, scopes[key], found, question, log_p, details)

    return RealAnswer(
        question.keys,
        belief,
        log_p if question.batched else float(log_p[0]),
        engine=engine.name,
        exact=engine.exact,
        batched=question.batched,
        details=details,
    )


def _belief(
    key: Key,
    scope: tuple[Var, ...],
    found: list[tuple[Group, dict[Key, Cells]]],
    question: RealQuestion,
    log_p: FloatArray,
    details: dict[str, Any],
) -> Belief | MixtureBelief:
    n = question.n_cases
    if all(var.is_discrete for var in scope):
        p = np.full((n, *(var.size for var in scope)), np.nan)
        for group, cells in found:
            table = np.zeros((len(group.rows), *(var.size for var in scope)))
            part = cells[key]
            for k, at in enumerate(part.codes):
                table[(slice(None), *at)] += part.weights[:, k]
            p[group.rows] = table
        p[log_p == -np.inf] = np.nan
        return Belief(scope, p if question.batched else p[0], batched=question.batched)
    d = sum(var.dimension for var in scope if not var.is_discrete)
    if len(found) == 1:
        part = found[0][1][key]
        assert part.mean is not None and part.cov is not None
        return MixtureBelief(
            scope, part.weights, part.mean, part.cov, batched=question.batched, codes=part.codes, diagnostics=details
        )
    width = max((cells[key].weights.shape[1] for _, cells in found), default=1)
    weights, mean = np.zeros((n, width)), np.zeros((n, width, d))
    cov = np.zeros((n, width, d, d))
    codes: Any = None
    for group, cells in found:
        part = cells[key]
        k = part.weights.shape[1]
        weights[group.rows, :k] = part.weights
        mean[group.rows, :k], cov[group.rows, :k] = part.mean, part.cov
        codes = part.codes if codes is None or len(part.codes) > len(codes) else codes
    mean[log_p == -np.inf] = np.nan
    shared = all(np.array_equal(cells[key].codes, codes) for _, cells in found)
    return MixtureBelief(
        scope, weights, mean, cov, batched=question.batched, codes=codes if shared else None, diagnostics=details
    )


# ---------------------------------------------------------------------------------------------- best values, draws


def best(model: GraphicalModel, question: RealQuestion, some: bool, engine: str, memory: float | None) -> Any:
    """The values at which the density of all unobserved variables is largest."""
    from gramgraph.engines.continuous.ask import assignments, log_joint
    from gramgraph.engines.continuous.lower import kind_of
    from gramgraph.engines.continuous.mixture import StrongEngine

    if kind_of(model) == "general":
        from gramgraph.engines.continuous.weighting import LikelihoodWeighting

        return LikelihoodWeighting().best(model, question, some)
    if some:
        return _best_states(model, question, memory)
    n = question.n_cases
    X, states = np.zeros((n, question.layout.size)), np.zeros((n, len(model._vars)), np.int64)
    possible = np.ones(n, bool)
    for group in question.groups():
        x, codes, log_p = StrongEngine().best(model, group, memory)
        X[group.rows], states[group.rows], possible[group.rows] = x, codes, log_p > -np.inf
    labelled = {v: states[:, v] for v, var in enumerate(model._vars) if var.is_discrete}
    log_prob = np.where(possible, log_joint(model, X, labelled), -np.inf)
    return assignments(model, question, X, states, log_prob)


def _best_states(model: GraphicalModel, question: RealQuestion, memory: float | None) -> Any:
    """Marginal MAP of discrete variables: the real ones, and all others, are integrated out exactly."""
    from dataclasses import replace

    from gramgraph.answers import Assignment
    from gramgraph.exceptions import OptionError

    names = tuple(model._vars[v].name for v in question.targets)
    if question.batched or any(not model._vars[v].is_discrete for v in question.targets):
        raise OptionError(
            "targets of map_query in a mixed model are discrete variables, of one case; the mode of a real one is "
            "net.query(name, evidence)[name].mode()"
        )
    joint = replace(question, targets=(), joints=(question.targets,), everything=False)
    found = answer(model, joint, "mixed", "auto", memory=memory)
    table = found[names].probabilities
    at = np.unravel_index(int(table.argmax()), table.shape)
    values = {name: model.var(name).states[i] for name, i in zip(names, at, strict=True)}
    return Assignment(values, float(found.log_evidence) + float(np.log(table[at])), exact=found.exact)


def draw(model: GraphicalModel, question: RealQuestion, n: int, rng: np.random.Generator, memory: float | None) -> Any:
    """n draws given the evidence: exact for conditional-Gaussian networks, else by weighting and resampling."""
    from gramgraph.engines.continuous.ask import _impossible, frame_of
    from gramgraph.engines.continuous.lower import kind_of
    from gramgraph.engines.continuous.mixture import StrongEngine
    from gramgraph.engines.continuous.weighting import LikelihoodWeighting

    nothing = not len(question.columns) and not question.labelled
    exact = nothing or kind_of(model) != "general"
    if nothing or not exact:
        X, states, log_p = LikelihoodWeighting().draws(model, question, n, rng)
    else:
        try:
            X, states, log_p = StrongEngine().sample(model, next(iter(question.groups())), n, rng, memory)
        except (BudgetError, ModelError):  # too large, or without noise
            X, states, log_p = LikelihoodWeighting().draws(model, question, n, rng)
            exact = False
    if log_p == -np.inf:
        raise _impossible(model, question)
    frame = frame_of(model, X, states)
    frame.attrs["exact"] = exact
    return frame
