"""Soft evidence (Jeffrey's rule): beliefs in some variables become given probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gramgraph.answers import Answer, Key
from gramgraph.engines.exact.margins import ALLOWED, MET, Fit, MarginConflict, fit_margins
from gramgraph.exceptions import BudgetError, ConvergenceWarning, ImpossibleEvidenceError
from gramgraph.questions.question import Question
from gramgraph.questions.reading import LEAST
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

MAX_SWEEPS = 1000
#: Up to this many joint states the table of all soft variables is made, on which the fit is quick and conflicts show.
JOINT_CELLS = 20_000
Solve = Callable[[Question], Answer]


def with_soft_evidence(
    solve: Solve, model: GraphicalModel, question: Question, wanted: dict[int, FloatArray]
) -> Answer:
    """The model nearest to p(· | hard and virtual evidence) whose marginals of `wanted` are as given.

    That is p times one weight for each state of the soft variables, found on their joint table (`fit_margins`), or by
    sweeps of exact answers where that is too large. `log_evidence` is that of the hard and virtual evidence alone.
    `ImpossibleEvidenceError` names soft variables whose probabilities cannot hold together; a fit that stops between
    1e-12 and 1e-8 has `exact` False, and a warning. `details` tell `soft_evidence_sweeps` and `soft_evidence_gap`, the
    largest difference of a marginal from what was asked.
    """
    soft = tuple(wanted)
    if not model.is_discrete or prod(model.vars[v].size for v in soft) * question.n_cases > JOINT_CELLS:
        return _by_sweeps(solve, model, question, wanted)
    try:
        base = solve(replace(question, targets=(), joints=(soft,)))
    except BudgetError:
        return _by_sweeps(solve, model, question, wanted)
    names = tuple(model.vars[v].name for v in soft)
    tables = np.asarray(base[names].probabilities).reshape(question.n_cases, *(model.vars[v].size for v in soft))
    where = [f" in case {case}" if question.batched else "" for case in range(question.n_cases)]
    fits = [_fit(model, soft, table, wanted, place) for table, place in zip(tables, where, strict=True)]
    answer: Answer = solve(_weighted(question, soft, tables.shape[1:], fits))
    apart = {case: fit for case, fit in enumerate(fits) if fit is not None and not fit.whole}
    if apart:
        found = {key: table.copy() for key, table in answer.tables().items()}
        for case, fit in apart.items():
            for key, mixed in _mixed(solve, question, soft, fit, case).items():
                found[key][case if question.batched else ...] = mixed
        answer = answer.with_tables(found)
    done = [fit for fit in fits if fit is not None]
    gap, steps = max((f.gap for f in done), default=0.0), max((f.steps for f in done), default=0)
    return _finished(answer, base.log_evidence, gap, steps, names)


def _fit(
    model: GraphicalModel,
    soft: tuple[int, ...],
    table: FloatArray,
    wanted: dict[int, FloatArray],
    where: str,
) -> Fit | None:
    """The fit of one case; None where its hard evidence is impossible."""
    if not np.isfinite(table).all():
        return None
    try:
        return fit_margins(table, [wanted[v] for v in soft])
    except MarginConflict as conflict:
        _refuse(model, {soft[i]: wanted[soft[i]] for i in conflict.members}, where)


def _refuse(model: GraphicalModel, members: dict[int, FloatArray], where: str) -> NoReturn:
    """`ImpossibleEvidenceError` that names the soft variables in conflict."""
    shown = tuple(
        f"{model.vars[v].name}=({', '.join(f'{s}: {p:.6g}' for s, p in zip(model.vars[v].states, q, strict=True))})"
        for v, q in members.items()
    )
    if len(shown) == 1:
        text = f"{shown[0]} gives weight to a state that the model and the other evidence make impossible"
    else:
        text = f"{' and '.join(shown)} cannot hold together"
    raise ImpossibleEvidenceError(f"the soft evidence{where} contradicts itself: {text}.", conflict=shown)


def _weighted(question: Question, soft: tuple[int, ...], sizes: Sequence[int], fits: list[Fit | None]) -> Question:
    """The question with the weights of all fits as further likelihoods, in logarithms where they reach far."""
    weights, logs = dict(question.likelihoods), dict(question.log_likelihoods)
    for i, (v, size) in enumerate(zip(soft, sizes, strict=True)):
        more = np.stack([np.zeros(size) if fit is None or not fit.whole else fit.theta[i] for fit in fits])
        with np.errstate(divide="ignore"):
            total = more + (logs[v] if v in logs else np.log(weights[v]) if v in weights else 0.0)
        total = total - total.max(axis=1, keepdims=True)
        if not question.batched:
            total = total[0]
        plain = np.exp(total)
        if (plain[np.isfinite(total)] < LEAST).any():
            logs[v] = total
            plain = np.where(np.isfinite(total), np.maximum(plain, LEAST), 0.0)
        else:
            logs.pop(v, None)
        weights[v] = plain
    return replace(question, likelihoods=tuple(weights.items()), log_likelihoods=tuple(logs.items()))


def _mixed(solve: Solve, question: Question, soft: tuple[int, ...], fit: Fit, case: int) -> dict[Key, FloatArray]:
    """Σ r(s) p(· | s, evidence) of one case, where no weights of single variables give r."""
    at = np.nonzero(fit.table > 0.0)
    share = fit.table[at]
    own = question.of_rows(np.array([case]))
    kept = [j for j, v in enumerate(own.observed) if v not in soft]
    seen = np.repeat(own.codes[:, kept], len(share), axis=0)
    asked = replace(
        own, observed=(*(own.observed[j] for j in kept), *soft), codes=np.column_stack([seen, *at]), batched=True
    )
    parts: Answer = solve(asked)
    out = {}
    for key, table in parts.tables().items():
        mixed = np.tensordot(share, np.nan_to_num(table), axes=1)
        out[key] = mixed / mixed.sum()
    return out


def _by_sweeps(solve: Solve, model: GraphicalModel, question: Question, wanted: dict[int, FloatArray]) -> Answer:
    """Iterative proportional fitting with exact answers: a sweep multiplies q / p onto one variable after the other."""
    names = {v: model.vars[v].name for v in wanted}
    base = solve(replace(question, targets=tuple(wanted), joints=()))
    if not question.batched and base.log_evidence == -np.inf:
        return base  # type: ignore[no-any-return]
    weights: dict[int, FloatArray] = {v: np.array(w) for v, w in question.likelihoods}
    possible = np.isfinite(base.log_evidence)[:, None] if question.batched else True
    gaps: dict[int, float] = {}
    for sweep in range(1, MAX_SWEEPS + 1):
        for v, q in wanted.items():
            asked = replace(question, targets=(v,), joints=(), likelihoods=tuple(weights.items()), log_likelihoods=())
            now = np.asarray(solve(asked)[names[v]].probabilities)
            now = np.where(possible, now, q)  # cases whose hard evidence is impossible stay so
            if ((now <= 0) & (q > 0)).any() or np.isnan(now).any():
                _refuse(model, wanted if sweep > 1 else {v: q}, "")
            gaps[v] = float(np.abs(now - q).max())
            ratio = np.where(now > 0, q / np.where(now > 0, now, 1.0), 0.0)
            made = weights[v] * ratio if v in weights else ratio
            weights[v] = made / made.max(axis=-1, keepdims=True)
        if max(gaps.values()) < MET:
            break
    gap = max(gaps.values())
    if gap > ALLOWED:
        _refuse(model, {v: wanted[v] for v in wanted if gaps[v] > ALLOWED}, "")
    asked = replace(question, likelihoods=tuple(weights.items()), log_likelihoods=())
    answer: Answer = solve(asked)
    return _finished(answer, base.log_evidence, gap, sweep, tuple(names.values()))


def _finished(answer: Answer, log_evidence: Any, gap: float, steps: int, names: tuple[str, ...]) -> Answer:
    """The answer with what the fit says about itself."""
    if gap > MET:
        warnings.warn(
            f"the soft evidence of {', '.join(names)} was met up to {gap:.2g} only, when its fit stood still",
            ConvergenceWarning,
            stacklevel=7,
        )
    details = {**answer.details, "soft_evidence_sweeps": steps, "soft_evidence_gap": gap}
    return answer.replace(log_evidence=log_evidence, details=details, exact=answer.exact and gap <= MET)
