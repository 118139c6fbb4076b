"""The one dispatcher: a question is read, an engine answers it, and what comes back is checked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph._validation import check_jobs
from gramgraph.answers import Answer, Assignment, Belief, MixtureBelief, RealAnswer
from gramgraph.answers.answer import unsettled
from gramgraph.answers.rows import frame_of, label_of, split, with_kept
from gramgraph.compile.budget import check_memory
from gramgraph.compile.lower import lower
from gramgraph.compile.range import needs_logs
from gramgraph.engines.approximate import parse_error
from gramgraph.engines.base import PLAIN, ApproximateWarning, Best, Engine, Run, parse_budget
from gramgraph.engines.best.policy import advised, check_limits, proved
from gramgraph.engines.cells.tables import by_tables
from gramgraph.engines.exact.impossible import raise_impossible
from gramgraph.engines.exact.single_case import quick_best, quick_best_table, quick_query, quick_table
from gramgraph.engines.fallback import automatic, automatic_best, automatic_draw, first_choice
from gramgraph.engines.gaussian.lower import log_joint
from gramgraph.engines.prepare import prepared, support_of, with_all_readings
from gramgraph.engines.registry import AUTO, engine_names, get_engine
from gramgraph.exceptions import (
    BudgetError,
    ConvergenceWarning,
    ImpossibleEvidenceError,
    ModelError,
    OptionError,
    VariableError,
    listing,
)
from gramgraph.models.base import GraphicalModel
from gramgraph.models.layout import layout_of
from gramgraph.models.on_cells import CellModel
from gramgraph.models.plated.model import PlateModel
from gramgraph.questions.planning import plan
from gramgraph.questions.plates import query_plates
from gramgraph.questions.question import Question
from gramgraph.questions.reading import read, refuse_soft
from gramgraph.questions.session import PlainSession
from gramgraph.typing import FloatArray, RandomState

#: Kinds of models that are answered by tables.
TABLES = ("tables", "cells")

__all__ = ["answer", "log_evidence", "map_query", "plan", "query", "sample", "session"]


def query(
    model: GraphicalModel,
    targets: Any,
    evidence: Any,
    *,
    virtual_evidence: Any = None,
    soft_evidence: Any = None,
    engine: str = AUTO,
    memory: float | None = None,
    n_jobs: int = 1,
    progress: Progress = False,
    random_state: RandomState = None,
    budget: Any = None,
    keep: Any = None,
    out: Any = None,
    client: Any = None,
    **options: Any,
) -> Any:
    """p(targets | evidence); see `GraphicalModel.query`."""
    if (
        (type(evidence) is dict or evidence is None)
        and engine == AUTO
        and virtual_evidence is soft_evidence is memory is budget is keep is out is client is None
        and not options
        and (quick := quick_query(model, targets, evidence or {})) is not None
    ):
        return quick
    if type(model) is PlateModel:  # `isinstance` of an abstract class costs as much as a step of the answer
        given = (virtual_evidence, soft_evidence, memory, keep)
        return query_plates(model, targets, evidence, engine, given, random_state, budget, options)
    if out is not None:
        said = {"virtual_evidence": virtual_evidence, "soft_evidence": soft_evidence, "engine": engine}
        said |= {"memory": memory, "random_state": random_state, "budget": budget}
        options |= {name: value for name, value in said.items() if value is not None}
        options |= {"out": out, "keep": keep, "client": client, "n_jobs": n_jobs, "progress": progress}
        return _to_file(model, targets, evidence, options)
    if client is not None:
        raise OptionError("client is for questions whose answers go to a file: give out='posteriors.parquet', too")
    if evidence is not None and not isinstance(evidence, Mapping):
        if (
            engine == AUTO
            and model.kind == "tables"
            and virtual_evidence is soft_evidence is memory is budget is keep is None
            and not options
            and _is_plain(n_jobs, progress)
            and (quick := quick_table(model, targets, evidence)) is not None
        ):
            return quick
        evidence = _in_memory(model, evidence)
    if isinstance(keep, bool):  # of samplers: whether to keep the draws
        options, keep = {**options, "keep": keep}, None
    draws, seconds = parse_budget(budget)
    question = read(model, targets, evidence, virtual_evidence, soft_evidence, keep)
    with _running(question, n_jobs, progress) as report:
        run = Run(memory, seconds, draws, random_state, n_jobs, report)
        found = answer(model, question, engine, run, options)
    return _checked(model, question, found)


def _is_plain(n_jobs: Any, progress: Progress) -> bool:
    """Whether one thread answers, and tells nobody how far it is."""
    return type(n_jobs) is int and n_jobs == 1 and progress is False


def _to_file(model: GraphicalModel, targets: Any, evidence: Any, options: dict[str, Any]) -> Any:
    from gramgraph.questions.files import query_file  # with it come readers of files, which few questions need

    return query_file(query, model, targets, evidence, **options)


def _in_memory(model: GraphicalModel, evidence: Any) -> Any:
    """Cases of a file or a stream as a frame; any other evidence as it is."""
    from gramgraph.data.stream import is_stream

    if not is_stream(evidence) or hasattr(evidence, "compute"):
        return evidence
    from gramgraph.data.cases import read_cases

    return read_cases(evidence, lambda name: model.var(name) if name in model.positions else None)


@contextmanager
def _running(question: Question, n_jobs: int, progress: Progress) -> Iterator[Any]:
    """Whom to tell how many cases are done."""
    check_jobs(n_jobs)
    if progress is False:
        yield None
        return
    with reporting(progress, question.n_cases) as report:
        yield report


def answer(
    model: GraphicalModel,
    question: Question,
    engine: str = AUTO,
    run: Run = PLAIN,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Answer:
    """The answer of the named engine, or of those that "auto" tries."""
    if question.soft:
        return _with_soft_evidence(model, question, engine, run, options)
    kind = model.kind
    model, question = prepared(model, question)
    found = _found(model, question, kind, engine, run, options)
    near = support_of(model, question)
    return found.replace(details={**found.details, "support": near}) if near else found


def _found(
    model: GraphicalModel, question: Question, kind: str, engine: str, run: Run, options: Mapping[str, Any]
) -> Answer:
    if engine == AUTO:
        parse_error(options.get("error"))
        if others := [name for name in options if name != "error" or kind not in TABLES]:
            raise OptionError(
                f"engine {AUTO!r} takes no option {others[0]!r}: it is exact where it can be. Options such as damping "
                'or max_iter belong to approximate engines: name one, e.g. engine="gibbs"'
            )
        return automatic(model, question, run, options.get("error"))
    worker = get_engine(engine, kind, **options)
    asked = getattr(worker, "worker", worker)  # the engine for tables that answers about cells
    if type(asked).answer is Engine.answer:
        there = f"Use map_query(…, engine={engine!r})" if worker is asked else f"Use engine={AUTO!r}"
        raise OptionError(f"engine {engine!r} looks for best assignments only. {there}")
    found: Answer = worker.answer(model, question, run)
    if not found.exact and kind in TABLES:
        _warn_unsettled(found)
        found = _with_raised(model, question, found)
    return found


def _with_soft_evidence(
    model: GraphicalModel, question: Question, engine: str, run: Run, options: Mapping[str, Any]
) -> Answer:
    from gramgraph.engines.exact.jeffrey import with_soft_evidence

    if engine != AUTO and not get_engine(engine, model.kind, **options).exact:
        raise OptionError(
            f"soft evidence is fitted by repeated exact answers, which engine {engine!r} does not give: use an exact "
            "engine, or gg.Likelihood(…) for weights"
        )
    if isinstance(model, CellModel):
        name = engine if engine in engine_names("tables") else AUTO
        return by_tables(
            model, replace(question, soft={}), run,
            lambda cells, asked: answer(cells, replace(asked, soft=question.soft), name, run, options),
        )  # fmt: skip
    if question.batched and not model.is_discrete:
        raise OptionError("soft evidence about a model with real-valued variables takes one case at a time (a dict)")
    plain = replace(question, soft={})

    def solve(asked: Question) -> Answer:
        if engine == AUTO:
            return first_choice(*prepared(model, asked), run)
        return answer(model, asked, engine, run, options)

    return with_soft_evidence(solve, model, plain, dict(question.soft))


def _warn_unsettled(answer: Answer) -> None:
    """One warning where messages did not come to rest."""
    if told := unsettled(answer):
        sweeps = answer.details.get("sweeps")
        after = "" if sweeps is None else f" after {int(np.max(sweeps))} sweeps"
        warnings.warn(
            f"engine {answer.engine!r} has{told.removeprefix(',')}{after}: the beliefs may be far off. "
            "Try: damping=0.5 or a larger max_iter (of engine='bp'), engine='join_graph', a sampler "
            "such as engine='gibbs', or an exact engine where one fits",
            ConvergenceWarning,
            stacklevel=5,
        )


def _with_raised(model: GraphicalModel, question: Question, answer: Answer) -> Answer:
    """Say that likelihoods reach over more than an approximate engine holds."""
    if not question.log_likelihoods:
        return answer
    names = tuple(model.vars[v].name for v, _ in question.log_likelihoods)
    warnings.warn(
        f"the likelihoods of {', '.join(names)} reach over more than doubles hold: engine {answer.engine!r} raises the "
        "smallest ones, which matters where the rest of the evidence rules the others out. An exact engine takes them "
        "as they are",
        ApproximateWarning,
        stacklevel=5,
    )
    return answer.replace(details={**answer.details, "raised_likelihoods": names})


def _checked(model: GraphicalModel, question: Question, answer: Answer) -> Answer:
    """The answer with log p of everything that was said; an error where one case is impossible."""
    if not answer.batched and answer.log_evidence == -np.inf:
        if not answer.exact and model.is_discrete and needs_logs(lower(model), question):
            raise ModelError(
                f"engine {answer.engine!r} was left with nothing: the evidence is impossible, or its products are "
                "smaller than the least double. An exact engine tells which"
            )
        _raise_impossible(model, question)
    if question.log_scale:
        details = answer.details
        if bounds := details.get("log_evidence_interval"):
            details = {**details, "log_evidence_interval": tuple(bound + question.log_scale for bound in bounds)}
        answer = answer.replace(log_evidence=answer.log_evidence + question.log_scale, details=details)
    if question.everything and isinstance(answer, RealAnswer) and model.kind not in TABLES:
        answer = answer.replace(observed=partial(_if_observed, model, question))
    if question.keep is not None and "keep" not in answer.details:
        answer = answer.replace(details={**answer.details, "keep": question.keep})
    return answer


def _raise_impossible(model: GraphicalModel, question: Question) -> None:
    if model.is_discrete:
        raise_impossible(model, question)
    if isinstance(model, CellModel):
        raise ImpossibleEvidenceError(
            "the evidence has probability 0: states that never occur together in tables without a floor. "
            "Use floor=1e-3 when learning.",
            conflict=model.names_of(question.seen),
        )
    names = model.names_of(question.seen)
    raise ImpossibleEvidenceError(
        f"the evidence has probability (density) zero: {listing(names)} cannot take these values together",
        conflict=names,
    )


def _if_observed(model: GraphicalModel, question: Question, key: Any) -> Belief | MixtureBelief | None:
    """The belief of a variable that was observed in all cases: all on its value; None for any other key."""
    v = model.positions.get(key) if isinstance(key, str) else None
    if v is None or v not in question.always:
        return None
    var, n = model.vars[v], question.n_cases
    if v in question.points:
        return None
    if var.is_discrete:
        p = np.eye(var.size)[question.codes[:, question.observed.index(v)]]
        return Belief((var,), p if question.batched else p[0], batched=question.batched)
    place = {int(c): j for j, c in enumerate(question.columns)}
    x = question.X[:, [place[int(c)] for c in layout_of(model).components(v)]]
    d = x.shape[1]
    return MixtureBelief((var,), np.ones((n, 1)), x[:, None], np.zeros((1, 1, d, d)), batched=question.batched)


def log_evidence(
    model: GraphicalModel, evidence: Any, *, virtual_evidence: Any = None, memory: float | None = None, n_jobs: int = 1
) -> float | FloatArray:
    """log p(evidence): a number, or one per case; -inf where the evidence is impossible. See `Asking.log_evidence`."""
    check_jobs(n_jobs)
    if isinstance(model, PlateModel):
        return query_plates(model, [], evidence, AUTO, (virtual_evidence, memory), 0, None, {}).log_evidence  # type: ignore[no-any-return]
    question = refuse_soft(model, read(model, [], evidence, virtual_evidence))
    part, asked = prepared(model, question)
    if part.kind not in (*TABLES, "gaussian") and 0 < len(part.vars) == len(asked.always):
        found: Any = _log_density(part, asked)  # nothing to integrate
        return found + question.log_scale if question.batched else float(found[0]) + question.log_scale
    run = Run(memory, random_state=None if model.kind in TABLES else 0, n_jobs=n_jobs)
    return automatic(part, asked, run, draw=False).log_evidence + question.log_scale  # type: ignore[no-any-return]


def _log_density(model: GraphicalModel, question: Question) -> FloatArray:
    """log of the joint density of cases in which everything is observed."""
    X = np.empty((question.n_cases, layout_of(model).size))
    X[:, question.columns] = question.X
    return log_joint(model, X, {v: question.codes[:, j] for j, v in enumerate(question.observed)})


# ---------------------------------------------------------------------------------------------- best assignments


def map_query(
    model: GraphicalModel,
    evidence: Any,
    *,
    targets: Any = None,
    k: int | None = None,
    virtual_evidence: Any = None,
    engine: str = AUTO,
    memory: float | None = None,
    n_jobs: int = 1,
    progress: Progress = False,
    gap: float = 0.0,
    time_limit: float | None = None,
    keep: Any = None,
) -> Any:
    """The most probable assignment; see `GraphicalModel.map_query`."""
    plain = engine == AUTO and targets is k is virtual_evidence is memory is time_limit is keep is None
    plain = plain and type(gap) is float and gap == 0.0 and _is_plain(n_jobs, progress)
    if plain and type(evidence) is dict and (quick := quick_best(model, evidence)) is not None:
        return quick
    if plain and model.kind == "tables" and (best := quick_best_table(model, evidence)) is not None:
        return frame_of(model, best[0], index=None if type(evidence) is list else evidence.index, log_prob=best[1])
    check_limits(gap, time_limit)
    check_memory(memory)
    if model.kind not in TABLES and (gap != 0.0 or time_limit is not None):
        raise OptionError("gap and time_limit are limits of searches in models of discrete variables alone")
    if k is not None and (not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1):
        raise OptionError(f"k is how many assignments are wanted, a whole number from 1, not {k!r}")
    question = refuse_soft(model, read(model, [], evidence, virtual_evidence, None, keep))
    wanted = () if targets is None else tuple(dict.fromkeys(model.positions_of(targets)))
    some = targets is not None and len({*wanted, *question.seen}) < len(model.vars)
    with _running(question, n_jobs, progress) as report:
        run = Run(memory, time_limit, n_jobs=n_jobs, report=report, gap=gap)
        if k is not None:
            if targets is not None:
                raise VariableError("k best assignments are available for all variables together: leave targets out")
            return _k_best(model, question, int(k), run)
        if some or (targets is not None and not wanted):
            return _best_of_some(model, question, wanted, run)
        larger, asked = with_all_readings(model, question)
        try:
            found = _best(larger, asked, engine, run)
        except BudgetError as error:
            raise (advised(error, model, engine) if model.is_discrete else error) from None
    return _assignments(model, question, found)


def _best(model: GraphicalModel, question: Question, engine: str, run: Run) -> Best:
    if engine == AUTO:
        return automatic_best(model, question, run)
    worker = get_engine(engine, model.kind)
    if not hasattr(worker, "best"):
        able = ", ".join(engine_names(model.kind, "best"))
        raise OptionError(f"engine {engine!r} does not look for best assignments; these do: {able}")
    found: Best = worker.best(model, question, run)
    return found


def _best_of_some(model: GraphicalModel, question: Question, wanted: tuple[int, ...], run: Run) -> Any:
    """Marginal MAP: the other variables are summed or integrated out."""
    if model.is_discrete:
        from gramgraph.engines.best.marginal_map import marginal_map

        names = model.names_of(wanted)
        return marginal_map(model, names, question, memory=run.memory, gap=run.gap, time_limit=run.seconds)
    if isinstance(model, CellModel):
        from gramgraph.engines.cells import best as on_cells

        if question.batched:
            raise VariableError("evidence of one case is needed here: a dict, not a table of cases")
        return on_cells.best_of_some(model, question, wanted, run)
    from gramgraph.engines.mixed.best import best_of_some

    seeded = replace(run, random_state=0)
    asked = replace(question, targets=wanted, everything=False)
    return best_of_some(model, asked, lambda m, q: _checked(m, q, answer(m, q, AUTO, seeded, {})))


def _k_best(model: GraphicalModel, question: Question, k: int, run: Run) -> list[Assignment]:
    """The k best assignments of all unobserved variables (of real-valued ones: at their best for each configuration
    of the discrete ones, of which a Gaussian has one)."""
    if question.batched:
        raise OptionError("the k best assignments are those of one case (a dict), not of a table of cases")
    if model.is_discrete:
        from gramgraph.engines.best.k_best import k_best

        try:
            return k_best(model, question, k)
        except BudgetError as error:
            raise advised(error, model, "junction_tree") from None
    from gramgraph.engines.mixed.best import best_few

    larger, asked = with_all_readings(model, question)
    if isinstance(model, CellModel):
        from gramgraph.engines.cells import best as on_cells

        found = on_cells.best_few(model, asked, k)
    elif model.kind == "gaussian":
        found = automatic_best(larger, asked, run)
    else:
        found = best_few(larger, asked, k)
    found = found._replace(log_prob=found.log_prob + question.log_scale, bound=found.bound + question.log_scale)
    if not (found.log_prob > -np.inf).any():
        _raise_impossible(model, question)
    return [_assignment(model, question, found, row) for row in range(len(found.log_prob))]


def _assignments(model: GraphicalModel, question: Question, found: Best) -> Any:
    """An `Assignment` of one case, or a frame with one row per case."""
    found = found._replace(log_prob=found.log_prob + question.log_scale, bound=found.bound + question.log_scale)
    if not question.batched:
        if found.log_prob[0] == -np.inf:
            _raise_impossible(model, question)
        return _assignment(model, question, found, 0)
    states = np.where(np.isfinite(found.log_prob)[:, None], found.states[:, : len(model.vars)], -1)
    X = None if found.X is None else found.X[:, : layout_of(model).size]
    frame = frame_of(model, states, X, index=question.index, log_prob=found.log_prob, points=question.points)
    return with_kept(frame, question.keep)


def _assignment(model: GraphicalModel, question: Question, found: Best, row: int) -> Assignment:
    """What one row says about the variables that were not observed."""
    seen: Any = question.hard_evidence(0)
    if found.X is not None:
        seen = {*seen, *question.owners.tolist(), *question.points}
    chosen = enumerate(zip(model.vars, found.states[row].tolist(), strict=False))
    out: dict[str, Any]
    if found.X is None:
        out = {var.name: var.domain.states[state] for v, (var, state) in chosen if v not in seen}  # type: ignore[attr-defined]
    else:
        X, layout = found.X[row], layout_of(model)
        out = {
            var.name: split(X[layout.components(v)], (var,))[0] if var.is_real else label_of(model, v, state)
            for v, (var, state) in chosen
            if v not in seen
        }
    value, above = float(found.log_prob[row]), float(found.bound[row])
    return Assignment(out, value, exact=proved(value, above), bound=above)


# ---------------------------------------------------------------------------------------------- draws


def sample(
    model: GraphicalModel,
    n: int,
    evidence: Any,
    *,
    virtual_evidence: Any = None,
    random_state: RandomState = None,
    memory: float | None = None,
    n_jobs: int = 1,
) -> Any:
    """n draws from p(all variables | evidence) as a data frame; `attrs["exact"]` says whether they are exact."""
    check_jobs(n_jobs)
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise OptionError(f"n is how many draws are wanted, a whole number from 0, not {n!r}")
    question = refuse_soft(model, read(model, [], evidence, virtual_evidence))
    if question.batched:
        raise VariableError("sample takes one case of evidence (a dict), not a table of cases")
    larger, asked = with_all_readings(model, question)
    drawn = automatic_draw(larger, asked, int(n), Run(memory, random_state=random_state))
    if drawn.log_evidence == -np.inf:
        _raise_impossible(model, question)
    X = None if drawn.X is None else drawn.X[:, : layout_of(model).size]
    points = {v: [column[0]] * int(n) for v, column in question.points.items()}
    frame = frame_of(model, drawn.states, X, points=points)
    if model.kind not in TABLES:
        frame.attrs["exact"] = drawn.exact
    return frame


def session(model: GraphicalModel, *, memory: float | None = None) -> Any:
    """A case whose observations come and go; see `Asking.session`."""
    if model.is_discrete:
        from gramgraph.engines.exact.session import Session

        return Session(model, memory=memory)
    return PlainSession(model, memory=memory)
