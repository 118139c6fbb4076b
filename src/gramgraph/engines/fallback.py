"""What "auto" does when no exact plan fits into memory: propagation with bounds, else sampling; the answer says so."""

from __future__ import annotations

import warnings
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.budget import readable
from gramgraph.compile.lower import lower
from gramgraph.compile.question import Question
from gramgraph.engines.approximate import parse_budget, parse_error
from gramgraph.exceptions import BudgetError, GramGraphError
from gramgraph.typing import RandomState

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["ApproximateWarning", "approximate_answer", "log_evidence_interval"]

#: Bounds are computed along with the answer up to this many table cells times cases.
BOUND_CELLS = 2_000_000
#: Without a budget a sampler makes about this many updates of one variable, within these numbers of draws.
UPDATES, FEWEST, MOST = 200_000_000, 400, 40_000
#: A sampler whose chains disagree more, or with fewer effective draws, is not preferred to propagation.
TRUSTED_R_HAT, TRUSTED_DRAWS = 1.1, 50


class ApproximateWarning(UserWarning):
    """An answer is approximate because an exact one does not fit into memory."""


def approximate_answer(
    model: GraphicalModel,
    question: Question,
    over: BudgetError,
    *,
    budget: Any = None,
    error: Any = None,
    random_state: RandomState = None,
) -> Answer:
    """An answer to a question whose exact plan does not fit.

    Loopy propagation where it settles (with bounds of log p(evidence) where affordable); where it does not, or a
    standard `error` is asked for, a sampler, within the `budget` and until the error is reached (without bounds where
    the time is over). `details` hold `exact_bytes` and `tried`: what was run, and how it went.
    """
    from gramgraph.engines.belief_propagation import BeliefPropagation

    goal, (_, seconds), begun = parse_error(error), parse_budget(budget, 1), monotonic()
    answer = BeliefPropagation().answer(model, question)
    settled = bool(np.all(answer.details["converged"]))
    tried = {"bp": "converged" if settled else "NOT converged"}
    impossible = bool(np.any(np.isneginf(answer.log_evidence))) and not question.batched
    if not impossible and (goal is not None or not settled):
        left = None if seconds is None else max(seconds - (monotonic() - begun), 0.05)
        drawn = _sampled(model, question, f"{left}s" if left is not None else budget, goal, random_state, tried)
        answer = answer if drawn is None else drawn
    details: dict[str, Any] = {**answer.details, "exact_bytes": over.bytes, "tried": tried}
    over_time = seconds is not None and monotonic() - begun > seconds
    if not impossible and not over_time and len(lower(model).values) * question.n_cases <= BOUND_CELLS:
        low, high = log_evidence_interval(model, question)
        details["log_evidence_interval"] = (low, high) if question.batched else (float(low[0]), float(high[0]))
    warnings.warn(
        f"an exact answer needs {readable(over.bytes)}: this one is approximate ({_told(answer.engine, tried)}). "
        'engine="junction_tree" insists on the exact one',
        ApproximateWarning,
        stacklevel=4,
    )
    answer.details = details
    return answer


def _told(engine: str, tried: dict[str, str]) -> str:
    """What was done, in words."""
    names = {"bp": "loopy belief propagation"}
    if engine == "bp":
        return f"loopy belief propagation, {tried['bp']}"
    return f"{names.get(engine, engine)}, {tried[engine]}; loopy belief propagation: {tried['bp']}"


def _sampled(
    model: GraphicalModel, question: Question, budget: Any, goal: float | None, seed: RandomState, tried: dict[str, str]
) -> Answer | None:
    """The answer of a sampler that can be trusted, or None."""
    from gramgraph.engines.registry import get_engine

    options: dict[str, Any] = {} if goal is None else {"error": goal}
    for name in _samplers(model, question):
        if budget is None:
            n = max(len(model._vars) * question.n_cases, 1)
            draws: Any = int(np.clip(UPDATES // n, FEWEST, MOST))
        else:
            draws = budget
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what they say is told by `tried`
                answer: Answer = get_engine(name).answer(model, question, random_state=seed, budget=draws, **options)
        except KeyboardInterrupt:
            tried[name] = "interrupted"
            return None
        except (GramGraphError, MemoryError) as failure:
            tried[name] = str(failure).split(".")[0].split(":")[0][:120]
            continue
        tried[name], good = _judged(answer, goal)
        if good:
            return answer
    return None


def _judged(answer: Answer, goal: float | None) -> tuple[str, bool]:
    """How a sampler went, in words, and whether its answer is to be preferred."""
    details = answer.details
    errors = [np.nanmax(details["standard_error"][key], initial=0.0) for key in answer]
    worst = float(max(errors, default=0.0))
    r_hat = float(np.max(details.get("max_r_hat", 1.0), initial=1.0))
    effective = details["min_effective_draws"] if "max_r_hat" in details else details["effective_draws"]
    least = float(np.min(effective, initial=np.inf))
    text = f"largest standard error {worst:.2g}"
    if goal is not None and worst > goal:
        text += f" (not {goal:.2g}: a larger budget is needed)"
    if r_hat > 1.01:
        text += f", R-hat {r_hat:.3g}"
    return text, r_hat <= TRUSTED_R_HAT and least >= TRUSTED_DRAWS


def _samplers(model: GraphicalModel, question: Question) -> tuple[str, ...]:
    """Samplers to try, in order."""
    if getattr(model, "_parents", None) is not None:
        return ("importance", "gibbs")
    low = lower(model, structured=False)
    if np.diff(low.scope_ptr).max(initial=0) <= 2:
        return ("swendsen_wang", "gibbs", "tempering")
    return ("gibbs", "tempering")


def log_evidence_interval(model: GraphicalModel, question: Question) -> tuple[Any, Any]:
    """(lower, upper) bounds of log p(evidence) of every case: mean field and tree-reweighted propagation."""
    from gramgraph.engines.mean_field import lower_bound
    from gramgraph.engines.tree_reweighted import upper_bound

    asked = replace(question, targets=(), joints=())  # what is not observed and above no evidence sums to one
    return lower_bound(model, asked), upper_bound(model, asked)
