"""Answers about models with discrete and real variables: which engine, and what its numbers mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Belief, Key, MixtureBelief, RealAnswer
from gramgraph.engines.continuous.door import Group, RealQuestion
from gramgraph.engines.continuous.registry import get_engine
from gramgraph.engines.gaussian.posterior import IllConditioned
from gramgraph.exceptions import BudgetError, ModelError
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["Cells", "answer", "draw"]

#: With fewer effective draws than this, "auto" turns from weighting to chains.
FEW_DRAWS = 200.0


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
    options: Mapping[str, Any] | None = None,
) -> RealAnswer:
    """Beliefs of all cases; "auto" is exact while that fits into memory, else draws samples and says so.

    Where weighted draws leave too few effective ones, chains of Gibbs sampling take over.
    """
    if kind == "general" and engine == "auto":
        from gramgraph.engines.mixed.closing import closed_answer

        found = closed_answer(model, question, memory)
        if found is not None:
            return found
    if kind == "general" and engine == "auto":
        return _by_draws(model, question, random_state, budget)
    if engine in ("likelihood_weighting", "gibbs"):
        worker = get_engine(kind, engine, options)
        return worker.answer(model, question, random_state=random_state, budget=budget)  # type: ignore[no-any-return]
    if engine != "auto":
        worker = get_engine(kind, engine, options)
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


def _by_draws(
    model: GraphicalModel, question: RealQuestion, random_state: RandomState, budget: float | None
) -> RealAnswer:
    """Weighted draws; chains of Gibbs sampling where hardly any draw explains the evidence."""
    found: RealAnswer = get_engine("general", "likelihood_weighting").answer(
        model, question, random_state=random_state, budget=budget
    )
    if question.batched or not 0.0 < found.details["effective_draws"] < FEW_DRAWS:
        return found
    try:
        chains: RealAnswer = get_engine("general", "gibbs").answer(
            model, question, random_state=random_state, budget=budget
        )
    except ModelError:  # a variable without noise: chains would not move
        return found
    keep = ("log_evidence_error",)
    details = {
        **chains.details,
        **{key: found.details[key] for key in keep},
        "note": f"of {found.details['draws']} weighted draws only {found.details['effective_draws']:.0f} count: "
        "the beliefs come from Gibbs sampling, log p(e) from the weighted draws",
    }
    return chains.replace(log_evidence=found.log_evidence, details=details)


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
    groups = list(question.groups())
    work = question.work.each(
        lambda group: engine.beliefs(model, group, scopes, **options), groups, lambda group: len(group.rows)
    )
    for group, (cells, logs, more) in zip(groups, work, strict=True):
        log_p[group.rows] = logs
        found.append((group, cells))
        for name, value in more.items():
            if question.batched and isinstance(value, (int, float, np.ndarray)) and np.ndim(value) <= 1:
                details.setdefault(name, np.full(question.n_cases, np.nan))[group.rows] = value
            else:
                details[name] = value

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
    first = found[0][1][key].codes if found else np.zeros((1, 0), np.int64)
    shared = all(np.array_equal(cells[key].codes, first) for _, cells in found)
    if shared or not any(var.is_discrete for var in scope):
        width = max((cells[key].weights.shape[1] for _, cells in found), default=1)
        starts, codes = [0] * len(found), first if shared else None
    else:  # groups of cases with other states observed: their configurations stand side by side
        parts = [cells[key].codes for _, cells in found]
        starts, codes = np.cumsum([0, *map(len, parts)])[:-1].tolist(), np.concatenate(parts)
        width = len(codes)
    weights, mean = np.zeros((n, width)), np.zeros((n, width, d))
    cov = np.zeros((n, width, d, d))
    for (group, cells), start in zip(found, starts, strict=True):
        part = cells[key]
        at = slice(start, start + part.weights.shape[1])
        weights[group.rows, at] = part.weights
        mean[group.rows, at], cov[group.rows, at] = part.mean, part.cov
    mean[log_p == -np.inf] = np.nan
    return MixtureBelief(scope, weights, mean, cov, batched=question.batched, codes=codes, diagnostics=details)


# ---------------------------------------------------------------------------------------------- draws


def draw(model: GraphicalModel, question: RealQuestion, n: int, rng: np.random.Generator, memory: float | None) -> Any:
    """n draws given the evidence: exact for conditional-Gaussian networks, else by weighting and resampling."""
    from gramgraph.engines.continuous.ask import _impossible, frame_of
    from gramgraph.engines.gaussian.lower import kind_of
    from gramgraph.engines.mixed.mixture import StrongEngine
    from gramgraph.engines.mixed.weighting import LikelihoodWeighting

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
