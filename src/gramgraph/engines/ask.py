"""Questions asked by name: the door, the engine, the checks on what comes back."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.answers import Answer, Assignment
from gramgraph.answers.answer import unsettled
from gramgraph.compile.budget import check_jobs
from gramgraph.compile.lower import lower
from gramgraph.compile.question import Question
from gramgraph.compile.range import needs_logs
from gramgraph.compile.tree import TreePlan
from gramgraph.engines.approximate import parse_budget, parse_error
from gramgraph.engines.best.registry import (
    MAP_ENGINES,
    Best,
    advised,
    best_assignments,
    check_limits,
    no_bounds,
    proved,
    searched,
    too_slow,
    too_wide,
)
from gramgraph.engines.door import Parsed, build_question, parse_evidence, parse_targets, refuse_soft
from gramgraph.engines.exact.impossible import raise_impossible
from gramgraph.engines.exact.single_case import quick_query
from gramgraph.engines.frames import state_frame
from gramgraph.engines.registry import ENGINES, get_engine
from gramgraph.exceptions import BudgetError, ConvergenceWarning, ModelError, OptionError, VariableError
from gramgraph.models.base import GraphicalModel
from gramgraph.typing import FloatArray, RandomState

__all__ = ["log_evidence", "map_query", "plan", "query", "sample", "warmup"]

#: From this many draws on a network without evidence is drawn from forward, variable by variable.
MANY_DRAWS = 10_000


def query(
    model: GraphicalModel,
    targets: Any,
    evidence: Any,
    *,
    virtual_evidence: Any = None,
    soft_evidence: Any = None,
    engine: str = "auto",
    memory: float | None = None,
    n_jobs: int = 1,
    progress: Progress = False,
    random_state: RandomState = None,
    budget: Any = None,
    **options: Any,
) -> Answer:
    """p(targets | evidence); see `GraphicalModel.query`."""
    if options:
        _refuse_options(engine, options)
    if budget is not None:
        parse_budget(budget, 1)  # also where nothing needs one
    plain = engine == "auto" and virtual_evidence is None and soft_evidence is None and memory is None
    if plain and (type(evidence) is dict or evidence is None):
        answer = quick_query(model, targets, evidence or {})
        if answer is not None:
            return answer
    check_jobs(n_jobs)
    singles, joints = parse_targets(model, targets)
    parsed = parse_evidence(model, evidence, virtual_evidence, soft_evidence)
    question = build_question(model, singles, joints, parsed)
    hidden: frozenset[str] = frozenset()
    if singles is None:
        hidden = _hidden(model, question)
    details = {"index": parsed[5]} if parsed[4] else None
    worker = get_engine(engine)
    if not worker.exact:
        _refuse_soft_sampling(worker.name, parsed)
        if getattr(worker, "threaded", False):
            options = {"n_jobs": n_jobs, **options}
        answer = worker.answer(model, question, memory=memory, random_state=random_state, budget=budget, **options)
        _warn_unsettled(answer)
        answer = _with_raised(model, question, answer)
    elif parsed[3]:
        from gramgraph.engines.exact.jeffrey import with_soft_evidence

        answer = with_soft_evidence(worker, model, question, parsed[3], memory=memory)
    elif worker.name == "junction_tree":
        try:
            with reporting(progress, question.n_cases) as report:
                answer = worker.answer(
                    model, question, memory=memory, n_jobs=n_jobs, report=report, hidden=hidden, details=details
                )
            return _checked(model, question, answer)
        except BudgetError as error:
            if engine != "auto" or memory is not None:
                raise  # who names the engine or the memory gets the exact answer or an error
            from gramgraph.engines.fallback import approximate_answer

            answer = approximate_answer(
                model, question, error, budget=budget, error=options.get("error"), random_state=random_state
            )
    else:
        answer = worker.answer(model, question, memory=memory)
    answer = answer.replace(hidden=hidden, details={**answer.details, **(details or {})})
    return _checked(model, question, answer)


def _refuse_options(engine: str, options: dict[str, Any]) -> None:
    """`OptionError` for options of approximate engines that an exact one does not know."""
    if engine == "auto":
        parse_error(options.get("error"))
        options = {name: value for name, value in options.items() if name != "error"}
    if options and get_engine(engine).exact:
        raise OptionError(
            f"engine {engine!r} takes no option {next(iter(options))!r}: it is exact. Options such as damping or "
            'max_iter belong to approximate engines, e.g. engine="bp"'
        )


def _refuse_soft_sampling(engine: str, parsed: Parsed) -> None:
    if parsed[3]:
        raise OptionError(
            f"soft evidence is fitted by repeated exact answers, which engine {engine!r} does not give: use an exact "
            "engine, or gg.Likelihood(…) for weights"
        )


def _warn_unsettled(answer: Answer) -> None:
    """One warning where messages did not come to rest."""
    if told := unsettled(answer):
        sweeps = answer.details.get("sweeps")
        after = "" if sweeps is None else f" after {int(np.max(sweeps))} sweeps"
        warnings.warn(
            f"engine {answer.engine!r} has{told.removeprefix(',')}{after}: the beliefs may be far off. "
            "What helps: damping=0.5 or a larger max_iter (of engine='bp'), engine='join_graph', a sampler "
            "such as engine='gibbs', or an exact engine where one fits",
            ConvergenceWarning,
            stacklevel=4,
        )


def _with_raised(model: GraphicalModel, question: Question, answer: Answer) -> Answer:
    """Say that likelihoods reach over more than an approximate engine holds."""
    if not question.log_likelihoods:
        return answer
    from gramgraph.engines.fallback import ApproximateWarning

    names = tuple(model.vars[v].name for v, _ in question.log_likelihoods)
    warnings.warn(
        f"the likelihoods of {', '.join(names)} reach over more than doubles hold: engine {answer.engine!r} raises the "
        "smallest ones, which matters where the rest of the evidence rules the others out. An exact engine takes them "
        "as they are",
        ApproximateWarning,
        stacklevel=4,
    )
    return answer.replace(details={**answer.details, "raised_likelihoods": names})


def _checked(model: GraphicalModel, question: Question, answer: Answer) -> Answer:
    if not answer.batched and answer.log_evidence == -np.inf:
        if not answer.exact and needs_logs(lower(model), question):
            raise ModelError(
                f"engine {answer.engine!r} was left with nothing: the evidence is impossible, or its products are "
                "smaller than the least double. An exact engine tells which"
            )
        raise_impossible(model, question)
    if question.log_scale:
        details = answer.details
        if bounds := details.get("log_evidence_interval"):
            details = {**details, "log_evidence_interval": tuple(bound + question.log_scale for bound in bounds)}
        return answer.replace(log_evidence=answer.log_evidence + question.log_scale, details=details)
    return answer


def _hidden(model: GraphicalModel, question: Question) -> frozenset[str]:
    """Observed variables: not listed when everything unobserved was asked for."""
    if not question.batched:
        return frozenset([model.vars[v].name for v in question.observed])
    if not question.n_cases:
        return frozenset()
    always = np.asarray((question.codes >= 0).all(axis=0))
    return frozenset(model.vars[v].name for j, v in enumerate(question.observed) if always[j])


def log_evidence(
    model: GraphicalModel, evidence: Any, *, virtual_evidence: Any = None, memory: float | None = None, n_jobs: int = 1
) -> float | FloatArray:
    """log p(evidence): a number, or one per case; -inf where the evidence is impossible. See `Asking.log_evidence`."""
    check_jobs(n_jobs)
    parsed = parse_evidence(model, evidence, virtual_evidence)
    refuse_soft(model, parsed)
    question = build_question(model, (), (), parsed)
    try:
        answer: Answer = get_engine("junction_tree").answer(model, question, memory=memory, n_jobs=n_jobs)
    except BudgetError as error:
        if memory is not None:
            raise
        from gramgraph.engines.fallback import approximate_answer

        answer = approximate_answer(model, question, error, draw=False)
    return answer.log_evidence + question.log_scale


def map_query(
    model: GraphicalModel,
    evidence: Any,
    *,
    targets: Any = None,
    k: int | None = None,
    virtual_evidence: Any = None,
    engine: str = "auto",
    memory: float | None = None,
    n_jobs: int = 1,
    progress: Progress = False,
    gap: float = 0.0,
    time_limit: float | None = None,
) -> Any:
    """The most probable assignment; see `GraphicalModel.map_query`."""
    check_jobs(n_jobs)
    check_limits(gap, time_limit)
    parsed = parse_evidence(model, evidence, virtual_evidence)
    refuse_soft(model, parsed)
    if k is not None and (not isinstance(k, (int, np.integer)) or k < 1):
        raise OptionError(f"k is how many assignments are wanted, a whole number from 1, not {k!r}")
    question = build_question(model, (), (), parsed)
    if targets is not None:
        from gramgraph.engines.best.marginal_map import marginal_map

        names = [targets] if isinstance(targets, str) else list(targets)
        rest = [v for v in model.variables if v not in names and model.index(v) not in question.observed]
        if rest or k is not None:
            if k is not None:
                raise VariableError("k best assignments are available for all variables together: leave targets out")
            return marginal_map(
                model, names, evidence, virtual_evidence=virtual_evidence, memory=memory, gap=gap, time_limit=time_limit
            )
    if k is not None:
        from gramgraph.engines.best.k_best import k_best

        try:
            return k_best(model, evidence, k, virtual_evidence=virtual_evidence)
        except BudgetError as error:
            raise advised(error, model, "junction_tree") from None
    try:
        states, log_p, bound = _best(model, question, engine, memory, n_jobs, progress, gap, time_limit)
    except BudgetError as error:
        raise advised(error, model, engine) from None
    log_p, bound = log_p + question.log_scale, bound + question.log_scale
    if not parsed[4]:
        if log_p[0] == -np.inf:
            raise_impossible(model, question)
        value, above = float(log_p[0]), float(bound[0])
        labels = _labels(model, states[0], question, 0)
        return Assignment(labels, value, exact=proved(value, above), bound=above)
    return _frame_of_best(model, question, states, log_p, parsed)


def _best(
    model: GraphicalModel,
    question: Question,
    engine: str,
    memory: float | None,
    n_jobs: int,
    progress: Progress,
    gap: float,
    time_limit: float | None,
) -> Best:
    """(states, log p, bounds) of every case by the engine of this name."""
    if engine in MAP_ENGINES:
        return best_assignments(engine, model, question, time_limit=time_limit, gap=gap)
    worker = get_engine(engine)
    if not hasattr(worker, "mpe"):
        able = [name for name in ENGINES if hasattr(get_engine(name), "mpe")] + list(MAP_ENGINES)
        raise OptionError(f"engine {engine!r} does not look for best assignments; these do: {', '.join(able)}")
    free = engine == "auto" and memory is None  # who names the engine or the memory gets it or an error
    if free and time_limit is not None and (why := too_slow(model, question, worker, time_limit)):
        return searched(why, model, question, time_limit=time_limit, gap=gap)
    if worker.name == "junction_tree":
        try:
            with reporting(progress, question.n_cases) as report:
                states, log_p = worker.mpe(model, question, memory=memory, n_jobs=n_jobs, report=report)
        except BudgetError as error:
            if not free:
                raise
            return searched(too_wide(error), model, question, time_limit=time_limit, gap=gap)
    else:
        states, log_p = worker.mpe(model, question, memory=memory)
    return states, log_p, no_bounds(log_p, worker.exact)


def _labels(model: GraphicalModel, states: Any, question: Question, case: int) -> dict[str, str]:
    """Labels of the variables that were not observed."""
    seen = question.hard_evidence(case)
    chosen = zip(model.vars, states.tolist(), strict=False)
    return {var.name: var.states[s] for v, (var, s) in enumerate(chosen) if v not in seen}


def _frame_of_best(model: GraphicalModel, question: Question, states: Any, log_p: FloatArray, parsed: Parsed) -> Any:
    """One row a case: the state of every variable, and log_prob."""
    frame = state_frame(model, np.where(np.isfinite(log_p)[:, None], states[:, : len(model.vars)], -1), parsed[5])
    frame["log_prob"] = log_p
    return frame


def sample(
    model: GraphicalModel,
    n: int,
    evidence: Any,
    *,
    virtual_evidence: Any = None,
    random_state: RandomState = None,
    memory: float | None = None,
) -> Any:
    """n draws from p(all variables | evidence) as a DataFrame of categories."""
    parsed = parse_evidence(model, evidence, virtual_evidence)
    refuse_soft(model, parsed)
    if parsed[4]:
        raise VariableError("sample takes one case of evidence (a dict), not a table of cases")
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise OptionError(f"n is how many draws are wanted, a whole number from 0, not {n!r}")
    question = build_question(model, (), (), parsed)
    rng = np.random.default_rng(random_state)
    states, log_z = _draws(model, question, n, rng, memory)
    if log_z == -np.inf:
        raise_impossible(model, question)
    return state_frame(model, states)


def _draws(
    model: GraphicalModel, question: Question, n: int, rng: np.random.Generator, memory: float | None
) -> tuple[Any, float]:
    """(draws, variables) of state numbers: from the tree, or forward through a network without evidence.

    Forward draws serve where there are many of them, and where the tree does not fit.
    """
    from gramgraph.engines.sampling.importance import can_forward, forward_rows

    free = can_forward(model, question)
    if free and n >= MANY_DRAWS:
        return forward_rows(model, n, rng), 0.0
    try:
        found: tuple[Any, float] = get_engine("junction_tree").sample(model, question, n, rng, memory)
    except BudgetError:
        if not free or memory is not None:
            raise
        return forward_rows(model, n, rng), 0.0
    return found


def plan(
    model: GraphicalModel, targets: Any = None, given: Any = (), *, engine: str = "auto", memory: float | None = None
) -> TreePlan:
    """What a query would cost: induced width, largest clique, bytes, flops, time. Nothing is allocated.

    With `memory` (bytes), a plan that would not fit raises `BudgetError`, as the query would.

    >>> import gramgraph as gg
    >>> gg.plan(gg.datasets.asia(), given=["smoke"]).width
    2
    """
    if not isinstance(model, GraphicalModel):
        raise OptionError(f"plan takes a model, such as gg.datasets.asia(), not {model!r}")
    singles, joints = parse_targets(model, targets)
    names = [given] if isinstance(given, str) else list(() if given is None else given)
    observed = tuple(model.index(name) for name in names)
    codes = np.zeros((1, len(observed)), np.int64)
    question = Question(range(len(model.vars)) if singles is None else singles, joints, observed, codes)
    made: TreePlan = get_engine(engine).plan(model, question)
    if memory is not None:
        made.check_budget(memory)
    return made


def warmup() -> None:
    """Compile (or load from the cache) everything that a discrete model needs."""
    import pandas as pd

    from gramgraph import datasets

    net = datasets.asia()
    net.query(None, {"smoke": "yes"})
    net.query(None, pd.DataFrame({"smoke": ["yes", "no"] * 20}))
    net.map_query({"smoke": "yes"})
    net.map_query(pd.DataFrame({"smoke": ["yes", "no"] * 20}))
    net.sample(10, {"smoke": "yes"}, random_state=0)
