"""Questions about models with real-valued variables: the door, the engine, the answer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.answers import Assignment, Belief, MixtureBelief, RealAnswer
from gramgraph.compile.budget import check_jobs
from gramgraph.conditionals.continuous import log_density
from gramgraph.engines.continuous.case_loop import Work
from gramgraph.engines.continuous.door import Layout, RealQuestion, layout_of, read_question
from gramgraph.engines.continuous.registry import gaussian_engine
from gramgraph.engines.gaussian import dense as gaussian
from gramgraph.engines.gaussian.lower import (
    DENSE_LIMIT,
    joint_moments,
    kind_of,
    log_joint_of_scalars,
    relevant_part,
    sparse_precision,
)
from gramgraph.engines.gaussian.posterior import IllConditioned
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError, OptionError, VariableError, listing
from gramgraph.typing import Array, FloatArray, IntArray, RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["log_evidence", "map_query", "partial_correlations", "query", "sample", "to_gaussian"]


#: Engines that treat an all-Gaussian model as any other.
_NOT_GAUSSIAN = ("likelihood_weighting", "strong_tree", "gibbs", "laplace")


def query(
    model: GraphicalModel,
    targets: Any,
    evidence: Any,
    *,
    virtual_evidence: Any = None,
    soft_evidence: Any = None,
    engine: str = "auto",
    random_state: RandomState = None,
    budget: float | None = None,
    memory: float | None = None,
    n_jobs: int = 1,
    progress: Progress = False,
    **options: Any,
) -> RealAnswer:
    """p(targets | evidence); see `GraphicalModel.query`."""
    question = read_question(model, targets, evidence, virtual_evidence, soft_evidence)
    if options and engine == "auto":
        names = ", ".join(options)
        raise OptionError(
            f"engine 'auto' takes no options ({names}); of models with real variables engine='bp', 'gibbs' and "
            "'laplace' do"
        )
    if n_jobs == 1 and progress is False:
        found = _answer(model, question, engine, random_state, budget, memory, options)
    else:
        check_jobs(n_jobs)
        with reporting(progress, question.n_cases) as report:
            asked = replace(question, work=Work(n_jobs, report))
            found = _answer(model, asked, engine, random_state, budget, memory, options)
    if not question.batched and found.log_evidence == -np.inf:
        raise _impossible(model, question)
    if question.everything:
        return found.replace(observed=partial(_if_observed, model, question))
    return found


def _if_observed(model: GraphicalModel, question: RealQuestion, key: Any) -> Belief | MixtureBelief | None:
    """The belief of a variable that was observed in all cases; None for any other key."""
    v = model.positions.get(key) if isinstance(key, str) else None
    return None if v is None or v not in question.always else _as_observed(model, question, v)


def _as_observed(model: GraphicalModel, question: RealQuestion, v: int) -> Belief | MixtureBelief:
    """All belief on what was observed."""
    var, n = model.vars[v], question.n_cases
    if var.is_discrete:
        p = np.eye(var.size)[question.codes[:, question.labelled.index(v)]]
        return Belief((var,), p if question.batched else p[0], batched=question.batched)
    place = {int(c): j for j, c in enumerate(question.columns)}
    x = question.X[:, [place[int(c)] for c in question.layout.components(v)]]
    d = x.shape[1]
    return MixtureBelief((var,), np.ones((n, 1)), x[:, None], np.zeros((1, 1, d, d)), batched=question.batched)


def _answer(
    model: GraphicalModel,
    question: RealQuestion,
    engine: str,
    random_state: RandomState,
    budget: float | None,
    memory: float | None,
    options: Any = None,
) -> RealAnswer:
    if question.weights or question.noisy:
        from gramgraph.engines.mixed.virtual import with_readings

        larger, asked, scale = with_readings(model, question)
        found = _answer(larger, asked, engine, random_state, budget, memory, options)
        return found.replace(log_evidence=found.log_evidence + scale)
    kind = kind_of(model)
    if kind == "gaussian" and engine not in _NOT_GAUSSIAN:
        part, asked = _part(model, question) if question.layout.size > DENSE_LIMIT else (model, question)
        try:
            return gaussian.answer(part, asked, gaussian_engine(part, engine, asked.layout.size, options))
        except IllConditioned:
            engine = "strong_tree"
    from gramgraph.engines.mixed.dispatch import answer

    part, asked = _part(model, question)
    return answer(part, asked, kind, engine, random_state=random_state, budget=budget, memory=memory, options=options)


def _part(model: GraphicalModel, question: RealQuestion) -> tuple[GraphicalModel, RealQuestion]:
    """The relevant part of a network, and the question in its positions."""
    names = [var.name for var in model.vars]
    wanted = [*question.wanted, *(v for members in question.joints for v in members), *question.observed]
    part = relevant_part(model, wanted)
    if part is model:
        return model, question
    old, new = question.layout, layout_of(part)
    at = part.positions
    move = np.full(old.size, -1, np.int64)
    for v, var in enumerate(model.vars):
        if var.name in at and not var.is_discrete:
            move[old.components(v)] = new.components(at[var.name])
    return part, replace(
        question,
        layout=new,
        targets=tuple(at[names[v]] for v in question.wanted),
        joints=tuple(tuple(at[names[v]] for v in members) for members in question.joints),
        everything=False,
        columns=move[question.columns],
        labelled=tuple(at[names[v]] for v in question.labelled),
    )


def _impossible(model: GraphicalModel, question: RealQuestion) -> ImpossibleEvidenceError:
    names = [model.vars[v].name for v in question.observed]
    return ImpossibleEvidenceError(
        f"the evidence has probability (density) zero: {listing(names)} cannot take these values together",
        conflict=names,
    )


def log_evidence(
    model: GraphicalModel,
    evidence: Any,
    *,
    virtual_evidence: Any = None,
    memory: float | None = None,
    n_jobs: int = 1,
) -> float | FloatArray:
    """log p(evidence): a number, or one per case; the log of a density where real variables were observed."""
    check_jobs(n_jobs)
    question = replace(read_question(model, [], evidence, virtual_evidence), work=Work(n_jobs))
    if kind_of(model) == "gaussian" and not question.weights and not question.noisy:
        part, asked = _part(model, question) if question.layout.size > DENSE_LIMIT else (model, question)
        try:
            found = gaussian.log_evidence(part, asked, gaussian_engine(part, "auto", asked.layout.size))
            return found if question.batched else float(found[0])
        except IllConditioned:
            return _answer(model, question, "strong_tree", 0, None, memory).log_evidence
    if not question.weights and not question.noisy and len(question.always) == len(model.vars):
        labelled = {v: question.codes[:, j] for j, v in enumerate(question.labelled)}
        X = np.empty((question.n_cases, question.layout.size))
        X[:, question.columns] = question.X
        found = log_joint(model, X, labelled)  # nothing to integrate
        return found if question.batched else float(found[0])
    return _answer(model, question, "auto", 0, None, memory).log_evidence


# ---------------------------------------------------------------------------------------------- best values


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
    """The values at which p(unobserved | evidence) is largest; see `GraphicalModel.map_query`."""
    check_jobs(n_jobs)
    if gap != 0.0 or time_limit is not None:
        raise OptionError("gap and time_limit are those of marginal MAP in models of discrete variables alone")
    question = read_question(model, None if targets is None else targets, evidence, virtual_evidence)
    with reporting(progress, question.n_cases) as report:
        asked = replace(question, work=Work(n_jobs, report))
        return _best_values(model, asked, targets is not None, k, engine, memory)


def _best_values(
    model: GraphicalModel, question: RealQuestion, some: bool, k: int | None, engine: str, memory: float | None
) -> Any:
    if question.weights or question.noisy:
        raise OptionError("the best assignment is found for observed values, not for virtual evidence")
    if k is not None:
        from gramgraph.engines.mixed.best import best_few

        return best_few(model, question, k, some)
    if kind_of(model) != "gaussian":
        from gramgraph.engines.mixed.best import best

        return best(model, question, some, engine, memory)
    if some and set(question.targets) | set(question.observed) != set(range(len(model.vars))):
        return _best_of_some(model, question, engine)
    worker = gaussian_engine(model, engine, question.layout.size)
    try:
        values, possible = gaussian.means_of_all(model, question, worker)
    except IllConditioned:
        from gramgraph.engines.mixed.best import best

        return best(model, question, False, engine, memory)
    log_prob = np.where(possible, log_joint(model, values, {}), -np.inf)
    return assignments(model, question, values, np.zeros((len(values), 0)), log_prob)


def _best_of_some(model: GraphicalModel, question: RealQuestion, engine: str) -> Assignment:
    """Of a Gaussian, the marginal's mode is its mean."""
    if question.batched:
        raise VariableError("targets take one case of evidence (a dict), not a table of cases")
    names = tuple(model.vars[v].name for v in question.targets)
    joint = replace(question, targets=(), joints=(question.targets,), everything=False)
    found = _answer(model, joint, engine, 0, None, None)
    belief = found[names]
    log_prob = float(found.log_evidence) + float(np.atleast_1d(belief.log_density(_as_points(belief)))[0])
    values = dict(zip(names, _split(belief.mean(), belief.scope), strict=True))
    return Assignment(values, log_prob)  # type: ignore[arg-type]


def _as_points(belief: Any) -> Any:
    return belief.mean() if belief._scalar else np.asarray(belief.mean())[None]


def _split(values: Any, scope: tuple[Var, ...]) -> list[Any]:
    """A long vector as one number or vector a variable."""
    flat, out, at = np.atleast_1d(values), [], 0
    for var in scope:
        part = flat[at : at + var.dimension]
        out.append(float(part[0]) if var.dimension == 1 else part)
        at += var.dimension
    return out


def values_of(model: GraphicalModel, X: FloatArray, codes: dict[int, IntArray]) -> dict[Var, Array]:
    """Components and state codes of many cases, by variable."""
    layout: Layout = layout_of(model)
    return {var: X[:, layout.components(v)] if v not in codes else codes[v] for v, var in enumerate(model.vars)}


def log_joint(model: GraphicalModel, X: FloatArray, codes: dict[int, IntArray]) -> FloatArray:
    """log of the joint density at full assignments."""
    conditionals = getattr(model, "conditionals", None)
    if conditionals is not None:
        quick = log_joint_of_scalars(model, X)
        if quick is not None:
            return quick
        values = values_of(model, X, codes)
        return np.sum([log_density(c, values) for c in conditionals], axis=0)
    low = sparse_precision(model)
    off = X - low.mean
    return np.asarray(low.log_norm - 0.5 * np.einsum("ij,ji->i", off, low.P @ off.T))


def assignments(
    model: GraphicalModel,
    question: RealQuestion,
    X: FloatArray,
    states: Any,
    log_prob: FloatArray,
    *,
    exact: bool = True,
) -> Any:
    """An `Assignment` of one case, or a frame with one row a case. `states`: (cases, variables) state codes."""
    layout = question.layout
    if question.batched:
        return frame_of(model, X, states, index=question.index, log_prob=log_prob)
    if log_prob[0] == -np.inf:
        raise _impossible(model, question)
    seen = set(question.observed)
    out: dict[str, Any] = {}
    for v, var in enumerate(model.vars):
        if v in seen:
            continue
        if var.is_discrete:
            out[var.name] = var.states[int(states[0, v])]
        else:
            out[var.name] = _split(X[0, layout.components(v)], (var,))[0]
    return Assignment(out, float(log_prob[0]), exact=exact, bound=None if exact else np.inf)


def frame_of(
    model: GraphicalModel, X: FloatArray, states: Any, *, index: Any = None, log_prob: FloatArray | None = None
) -> Any:
    """A data frame with a column a variable (vectors: a column a component), and one with `log_prob` if given."""
    import pandas as pd

    layout = layout_of(model)
    if layout.scalar and layout.size == len(model.vars):  # one block of numbers
        names = list(layout.names)
        if log_prob is not None:
            names, X = [*names, "log_prob"], np.vstack([X.T, log_prob]).T
        return pd.DataFrame(X, columns=names, index=index)
    columns: dict[str, Any] = {}
    for v, var in enumerate(model.vars):
        if var.is_discrete:
            columns[var.name] = pd.Categorical.from_codes(np.asarray(states)[:, v].astype(int), list(var.states))
        else:
            at = layout.components(v)
            for i, c in enumerate(at):
                columns[var.name if len(at) == 1 else f"{var.name}[{i}]"] = X[:, c]
    if log_prob is not None:
        columns["log_prob"] = log_prob
    return pd.DataFrame(columns, index=index)


# ---------------------------------------------------------------------------------------------- draws


def sample(
    model: GraphicalModel,
    n: int,
    evidence: Any,
    *,
    virtual_evidence: Any = None,
    random_state: RandomState = None,
    memory: float | None = None,
) -> Any:
    """n draws from p(all variables | evidence) as a DataFrame; `attrs["exact"]` says whether they are exact."""
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise OptionError(f"n is how many draws are wanted, a whole number from 0, not {n!r}")
    question = read_question(model, [], evidence, virtual_evidence)
    if question.batched:
        raise VariableError("sample takes one case of evidence (a dict), not a table of cases")
    rng = np.random.default_rng(random_state)
    if question.weights or question.noisy:
        from gramgraph.engines.mixed.virtual import with_readings

        names = list(model.variables)
        larger, asked, _ = with_readings(model, question)
        drawn = _draw(larger, asked, n, rng, memory)
        keep = [c for c in drawn.columns if c in names or c.rpartition("[")[0] in names]
        return drawn[keep]
    return _draw(model, question, n, rng, memory)


def _draw(model: GraphicalModel, question: RealQuestion, n: int, rng: np.random.Generator, memory: float | None) -> Any:
    if kind_of(model) == "gaussian":
        worker = gaussian_engine(model, "auto", question.layout.size)
        try:
            X, log_p = worker.sample(model, question.columns, question.X[0], n, rng)
        except IllConditioned:
            from gramgraph.engines.mixed.dispatch import draw

            return draw(model, question, n, rng, memory)
        if log_p == -np.inf:
            raise _impossible(model, question)
        frame = frame_of(model, X, None)
        frame.attrs["exact"] = True
        return frame
    from gramgraph.engines.mixed.dispatch import draw

    return draw(model, question, n, rng, memory)


# ---------------------------------------------------------------------------------------------- the whole joint


def _need_gaussian(model: GraphicalModel, what: str) -> None:
    if model.is_discrete or kind_of(model) != "gaussian":
        raise ModelError(f"{what} is one of a model whose variables are all real-valued and linear-Gaussian")


def to_gaussian(model: GraphicalModel) -> Any:
    """The joint distribution as a `Gaussian`; O(n²) memory."""
    from gramgraph.distributions.gaussian import Gaussian

    _need_gaussian(model, "a joint Gaussian")
    mean, cov, _ = joint_moments(model)
    return Gaussian(mean, cov)


def partial_correlations(model: GraphicalModel) -> Any:
    """−P_ij / √(P_ii P_jj) as a data frame."""
    import pandas as pd

    _need_gaussian(model, "a partial correlation")
    P = sparse_precision(model).P.toarray()
    root = np.sqrt(np.diagonal(P))
    R = -P / np.outer(root, root)
    np.fill_diagonal(R, 1.0)
    names = list(frame_of(model, np.zeros((0, len(P))), None).columns)
    return pd.DataFrame(R + 0.0, index=names, columns=names)
