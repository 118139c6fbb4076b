"""What "auto" does: the engine that `choose` names, and what comes next where that does not fit; the answer says so."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.answers.quality import TRUSTED_DRAWS, TRUSTED_R_HAT
from gramgraph.compile.budget import readable
from gramgraph.compile.lower import lower
from gramgraph.engines.approximate import parse_error
from gramgraph.engines.base import PLAIN, ApproximateWarning, Best, Drawn, IllConditioned, Run
from gramgraph.engines.best.policy import best_of_tables
from gramgraph.engines.cells.tables import by_tables
from gramgraph.engines.exact.cold import answer_as_rent
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.engines.exact.smaller import may_shrink, smaller_case
from gramgraph.engines.registry import choose, get_engine, next_choice
from gramgraph.exceptions import BudgetError, GramGraphError, ModelError
from gramgraph.questions.question import Question
from gramgraph.typing import Array

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: From this many draws on a network without evidence is drawn from forward, variable by variable.
MANY_DRAWS = 10_000
#: Bounds are computed along with the answer up to this many table cells times cases.
BOUND_CELLS = 5_000_000
#: Beyond this many cells bounds that were given no time have these seconds: they hold whenever they are stopped.
LONG_BOUND_CELLS, BOUND_SECONDS = 200_000, 3.0
#: Join graphs are made up to this many places of variables in factors, times cases.
CLUSTER_EDGES = 100_000
#: Shares of a time budget, of what is left at each step: messages, clusters, a sampler; bounds have the rest.
SHARES = {"bp": 0.25, "join_graph": 0.5, "sampler": 0.5}
#: Without a budget the first answer comes after about so many seconds: a longer one as `budget` improves it.
FIRST_SECONDS = 8.0
#: The largest change of a separator in the last sweep of a join graph that is still on its way.
STILL_MOVING = 0.02
#: Zeros that leave more than this share of the variables are not worth a model of its own.
SHRUNK = 0.95
#: Without a budget a sampler makes about this many updates of one variable (the second number where join graphs have
#: answered and no error is asked for), within these numbers of draws.
UPDATES, FEWER_UPDATES, FEWEST, MOST = 200_000_000, 40_000_000, 400, 40_000
#: With fewer effective draws than this, weighted draws give way to chains.
FEW_DRAWS = 200.0


def first_choice(model: GraphicalModel, question: Question, run: Run) -> Answer:
    """The answer of the engine that `choose` names; where that loses digits, or cannot, of `next_choice`."""
    name, _ = choose(model, question, run)
    worker = get_engine(name, model.kind)
    worker.strict = True
    tried = [name]
    try:
        return answer_as_rent(worker, model, question, run)
    except (BudgetError, IllConditioned, ModelError) as failure:
        told, other = failure, next_choice("answer", model, question, name, failure)
        if other is None:
            raise
    while other is not None and other not in tried:
        tried.append(other)
        worker = get_engine(other, model.kind)
        worker.strict = worker.gives_up
        try:
            return worker.answer(model, question, run)  # type: ignore[no-any-return]
        except BudgetError as failure:
            told = told if worker.gives_up else failure  # trees say how large the tables are
            other = next_choice("answer", model, question, other, failure)
    raise told


def automatic(model: GraphicalModel, question: Question, run: Run, error: Any = None, draw: bool = True) -> Answer:
    """The answer of the first choice; where that is too large for tables, or hardly any draw counts, of the next one.

    Who gives `memory` for tables gets the exact answer or a `BudgetError`. `error` is a standard error that samplers
    go on for; without `draw` there are none.
    """
    begun = monotonic()
    try:
        answer = first_choice(model, question, run)
    except BudgetError as failure:
        if run.memory is not None or model.kind not in ("tables", "cells"):
            raise
        spent = monotonic() - begun
        run = run if run.seconds is None else replace(run, seconds=_left(run.seconds, spent))
        instead = partial(_approximate, over=failure, run=run, spent=spent, error=error, draw=draw)
        return instead(model, question) if model.is_discrete else by_tables(model, question, run, instead)
    if model.kind != "general" or answer.exact or question.batched or "effective_draws" not in answer.details:
        return answer
    return _or_chains(model, question, run, answer)


def _left(seconds: float, spent: float) -> float:
    """What tries of exact engines have left of a time for approximate ones: at least half of it."""
    return max(seconds - spent, 0.5 * seconds)


def _or_chains(model: GraphicalModel, question: Question, run: Run, found: Answer) -> Answer:
    """Chains of Gibbs sampling where hardly any weighted draw explains the evidence."""
    if not 0.0 < found.details["effective_draws"] < FEW_DRAWS:
        return found
    try:
        chains: Answer = get_engine("gibbs", model.kind).answer(model, question, run)
    except ModelError:  # a variable without noise: chains would not move
        return found
    details = {
        **chains.details,
        "log_evidence_error": found.details["log_evidence_error"],
        "note": f"of {found.details['draws']} weighted draws only {found.details['effective_draws']:.0f} count: "
        "the beliefs come from Gibbs sampling, log p(e) from the weighted draws",
    }
    return chains.replace(log_evidence=found.log_evidence, details=details)


def automatic_best(model: GraphicalModel, question: Question, run: Run) -> Best:
    """The best assignments by the engine that `choose` names; where that fails, by the next one."""
    if model.kind == "tables":
        return best_of_tables(model, question, run)
    name, _ = choose(model, question, run, "best")
    try:
        return get_engine(name, model.kind).best(model, question, run)  # type: ignore[no-any-return]
    except (IllConditioned, ModelError) as failure:
        other = next_choice("best", model, question, name, failure)
        if other is None:
            raise
    return get_engine(other, model.kind).best(model, question, run)  # type: ignore[no-any-return]


def automatic_draw(model: GraphicalModel, question: Question, n: int, run: Run) -> Drawn:
    """n draws given one case, exact where that is possible.

    Forward draws serve where there are many of them and nothing is observed, and where the tree does not fit.
    """
    if model.kind == "tables":
        from gramgraph.engines.sampling.importance import can_forward, forward_rows

        free = can_forward(model, question)
        if free and n >= MANY_DRAWS:
            return Drawn(forward_rows(model, n, run.generator), 0.0)
        try:
            return JunctionTree().draw(model, question, n, run)
        except BudgetError:
            if not free or run.memory is not None:
                raise
            return Drawn(forward_rows(model, n, run.generator), 0.0)
    name, _ = choose(model, question, run, "draw")
    try:
        return get_engine(name, model.kind).draw(model, question, n, run)  # type: ignore[no-any-return]
    except (BudgetError, IllConditioned, ModelError) as failure:
        other = next_choice("draw", model, question, name, failure)
        if other is None:
            raise
    return get_engine(other, model.kind).draw(model, question, n, run)  # type: ignore[no-any-return]


def _approximate(model: GraphicalModel, question: Question, over: BudgetError, run: Run, **options: Any) -> Answer:
    """An approximate answer about what zeros leave of the model for one case: it has fewer loops."""
    low = lower(model)
    small = None
    if not question.batched and not question.joints and may_shrink(low, question, hopeless=True):
        small = smaller_case(low, question)
    if small is None or len(small.model.vars) + len(question.always) > SHRUNK * len(model.vars):
        return approximate_answer(model, question, over, run, **options)
    found = approximate_answer(small.model, small.question(question), over, run, **options)
    return small.whole(model, question, found)


def approximate_answer(
    model: GraphicalModel,
    question: Question,
    over: BudgetError,
    run: Run = PLAIN,
    *,
    spent: float = 0.0,
    error: Any = None,
    draw: bool = True,
) -> Answer:
    """An answer to a question whose exact plan does not fit.

    Loopy propagation, then propagation on join graphs, which is preferred where its time was enough; a sampler, until
    the error is reached (with `draw`), where neither settles, where a standard `error` is asked for, and where nothing
    is observed: then draws are independent, and neither messages that settle nor log p = 0 tell how far off beliefs
    are; and bounds of log p(evidence), within which its estimate is kept. A time as `budget` is shared between them
    (without any budget or error these are `FIRST_SECONDS` with those `spent` before), and Ctrl-C returns what there is.
    `details` hold `exact_bytes`, `log_evidence_interval` and `tried`: what was run, and how it went.
    """
    from gramgraph.engines.propagation.belief_propagation import BeliefPropagation
    from gramgraph.engines.sampling.importance import can_forward

    goal = parse_error(error)
    if goal is None and run.draws is None and run.seconds is None:
        run = replace(run, seconds=_left(FIRST_SECONDS, spent))
    time = _Time(run)
    answer = BeliefPropagation().answer(model, question, time.share("bp"))
    settled = bool(np.all(answer.details["converged"]))
    tried = {"bp": _word(answer)}
    impossible = bool(np.any(np.isneginf(answer.log_evidence))) and not question.batched
    go_on = not impossible and answer.details.get("stopped") != "interrupt"
    if go_on and (found := _clustered(model, question, time, tried)) is not None:
        answer = answer if settled and _cut_short(found) else found
        settled = settled or bool(np.all(found.details["converged"]))
        go_on = found.details.get("stopped") != "interrupt"
    estimate = answer.log_evidence
    if draw and go_on and (goal is not None or not settled or can_forward(model, question)):
        drawn = _sampled(model, question, time, goal, tried)
        answer = answer if drawn is None else drawn
    details: dict[str, Any] = {**answer.details, "exact_bytes": over.bytes, "tried": tried}
    if go_on and len(lower(model).values) * question.n_cases <= BOUND_CELLS:  # they hold after a sweep each
        low, high = log_evidence_interval(model, question, seconds=time.share("").seconds)
        details["log_evidence_interval"] = (low, high) if question.batched else (float(low[0]), float(high[0]))
        estimate = np.clip(estimate, low, high) if question.batched else float(np.clip(estimate, low[0], high[0]))
    warnings.warn(
        f"an exact answer needs {readable(over.bytes)}: this one is approximate ({_told(answer.engine, tried)})"
        f"{_between(details)}. "
        'A longer time as budget="60s" improves it; engine="junction_tree" insists on the exact one',
        ApproximateWarning,
        stacklevel=6,
    )
    return answer.replace(log_evidence=estimate, details=details)


class _Time:
    """A time budget and what is left of it; without one there is no end."""

    def __init__(self, run: Run) -> None:
        self.run, self.begun = run, monotonic()

    @property
    def left(self) -> float:
        return np.inf if self.run.seconds is None else max(self.run.seconds - (monotonic() - self.begun), 0.0)

    @property
    def over(self) -> bool:
        return self.left <= 0.0

    def share(self, step: str) -> Run:
        """The run of a step, which has a part of the time that is left."""
        if self.run.seconds is None:
            return self.run
        return replace(self.run, seconds=max(SHARES.get(step, 1.0) * self.left, 0.05))


def _word(answer: Answer) -> str:
    """How messages went."""
    return "converged" if np.all(answer.details["converged"]) else "NOT converged"


def _cut_short(answer: Answer) -> bool:
    """Whether the time was over while messages of a join graph still moved: it says less than messages that settled."""
    return "stopped" in answer.details and float(np.max(answer.details["residual"])) > STILL_MOVING


def _clustered(model: GraphicalModel, question: Question, time: _Time, tried: dict[str, str]) -> Answer | None:
    """The answer of join graphs, None where they are too large, or nothing is left of the time."""
    from gramgraph.engines.propagation.join_graph import JoinGraph

    if time.over or len(lower(model).scope_idx) * question.n_cases > CLUSTER_EDGES:
        return None
    try:
        answer = JoinGraph().answer(model, question, time.share("join_graph"))
    except (BudgetError, MemoryError):
        tried["join_graph"] = "too large"
        return None
    if not np.isfinite(answer.log_evidence).all():
        tried["join_graph"] = "out of range"
        return None
    tried["join_graph"] = _word(answer)
    return answer


def _between(details: dict[str, Any]) -> str:
    """The bounds of one case, in words."""
    found = details.get("log_evidence_interval")
    if found is None or np.ndim(found[0]):
        return ""
    return f", log p(evidence) in [{found[0]:.6g}, {found[1]:.6g}]"


def _told(engine: str, tried: dict[str, str]) -> str:
    """What was done, in words."""
    names = {"bp": "loopy belief propagation", "join_graph": "propagation on join graphs"}
    first = [engine, *(name for name in ("join_graph", "bp") if name in tried and name != engine)]
    return "; ".join(f"{names.get(name, name)}, {tried[name]}" for name in first)


def _sampled(
    model: GraphicalModel, question: Question, time: _Time, goal: float | None, tried: dict[str, str]
) -> Answer | None:
    """The answer of a sampler that can be trusted, or None."""
    options: dict[str, Any] = {} if goal is None else {"error": goal}
    drawn = False
    for name in _samplers(model, question):
        if drawn and time.over:
            return None
        run = time.share("sampler")
        if run.draws is None and run.seconds is None:
            n = max(len(model.vars) * question.n_cases, 1)
            updates = FEWER_UPDATES if "join_graph" in tried and goal is None else UPDATES
            run = replace(run, draws=int(np.clip(updates // n, FEWEST, MOST)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what they say is told by `tried`
                answer: Answer = get_engine(name, **options).answer(model, question, run)
        except KeyboardInterrupt:
            tried[name] = "interrupted"
            return None
        except (GramGraphError, MemoryError) as failure:
            tried[name] = str(failure).split(".")[0].split(":")[0][:120]
            continue
        drawn = True
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
    if getattr(model, "parent_positions", None) is not None:
        return ("importance", "gibbs")
    low = lower(model, structured=False)
    if np.diff(low.scope_ptr).max(initial=0) <= 2:
        return ("swendsen_wang", "gibbs", "tempering")
    return ("gibbs", "tempering")


def log_evidence_interval(
    model: GraphicalModel, question: Question, *, seconds: float | None = None
) -> tuple[Any, Any]:
    """(lower, upper) bounds of log p(evidence) of every case: structured mean field, tree-reweighted propagation."""
    from gramgraph.engines.anytime import anytime
    from gramgraph.engines.propagation.structured_mean_field import structured_lower_bound
    from gramgraph.engines.propagation.tree_reweighted import upper_bound

    asked = replace(question, targets=(), joints=())  # what is not observed and above no evidence sums to one
    cells = len(lower(model).values) * question.n_cases
    if seconds is None and cells > LONG_BOUND_CELLS:
        seconds = BOUND_SECONDS
    half = None if seconds is None else max(seconds / 2, 0.05)

    def below(stop: Array) -> Any:
        return structured_lower_bound(model, asked, stop=stop)

    def above(stop: Array) -> Any:
        return upper_bound(model, asked, stop=stop)

    return anytime(below, half, cells)[0], anytime(above, half, cells)[0]
