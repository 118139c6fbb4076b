"""Entropy, mutual information, and what to observe next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.analysis.on_cells import on_tables
from gramgraph.analysis.real_information import (
    Estimate,
    free_names,
    real_entropy,
    real_mutual_information,
    real_ranking,
)
from gramgraph.answers import Answer
from gramgraph.engines.exact.impossible import raise_impossible
from gramgraph.engines.exact.one_case import Case, ask, free_positions, one_case, with_cases
from gramgraph.exceptions import ModelError, OptionError, VariableError
from gramgraph.models.base import GraphicalModel
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.on_cells import CellModel
from gramgraph.questions.question import Question
from gramgraph.questions.reading import read
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

Names = str | Sequence[str]


def entropy(model: GraphicalModel, targets: Names, evidence: Case = None, *, base: float | None = None) -> float:
    """H(targets | e) = -Σ p log p of the joint posterior, in nats (`base=2`: bits). Cost: one joint query.

    Where real-valued variables take part it is the differential entropy: a closed form for Gaussians, an estimate from
    draws for mixtures (the number's `exact` and `error` tell).

    Parameters
    ----------
    model : the network or other graphical model.
    targets : one name, or several for their joint.
    evidence : what is known, as `query` takes it: values by variable, or None.
    base : base of the logarithm; None for nats, 2 for bits.

    Examples
    --------
    >>> from gramgraph.testing import random_bayesian_network
    >>> net = random_bayesian_network(np.random.default_rng(0), 4)
    >>> bool(0.0 <= entropy(net, "v0", base=2) <= np.log2(net.var("v0").size))
    True
    """
    if not model.is_discrete:
        found = real_entropy(model, free_names(model, targets, evidence), evidence)
        return Estimate(found / _unit(base), found.error / _unit(base), found.exact)
    question = one_case(model, evidence)
    table = _joint(model, question, free_positions(model, targets, question))
    return float(_entropy(table.reshape(1, -1))[0]) / _unit(base)


def mutual_information(
    model: GraphicalModel, a: Names, b: Names, evidence: Case = None, *, base: float | None = None
) -> float:
    """I(a; b | e) = H(a) + H(b) - H(a, b) under p(· | e), in nats (`base=2`: bits); zero when independent given e.

    Parameters
    ----------
    model : the network or other graphical model.
    a : one name, or several.
    b : one name, or several, none of them in `a`.
    evidence : what is known, as `query` takes it: values by variable, or None.
    base : base of the logarithm; None for nats, 2 for bits.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> round(mutual_information(net, "smoke", "lung"), 4), mutual_information(net, "asia", "smoke")
    (0.0224, 0.0)
    """
    if isinstance(model, CellModel):
        model, evidence = on_tables(model, evidence, model.names_of((*model.positions_of(a), *model.positions_of(b))))
    question = one_case(model, evidence) if model.is_discrete else None
    left, right = (
        model.positions_of(free_names(model, names, evidence))
        if question is None
        else free_positions(model, names, question)
        for names in (a, b)
    )
    both = [model.vars[i].name for i in left if i in right]
    if both:
        raise VariableError(
            f"{', '.join(both)} stands on both sides: the information of a variable about itself is entropy"
        )
    if question is None:
        found = real_mutual_information(model, model.names_of(left), model.names_of(right), evidence)
        return Estimate(found / _unit(base), found.error / _unit(base), found.exact)
    table = _joint(model, question, (*left, *right))
    p = table.reshape(int(np.prod(table.shape[: len(left)], dtype=np.int64)), -1)
    row, column = np.broadcast_arrays(p.sum(axis=1, keepdims=True), p.sum(axis=0, keepdims=True))
    # Σ p log(p / p_a / p_b) rather than three entropies: near independence nothing cancels. The product p_a p_b of
    # tiny numbers could be zero; p / p_a is p(b | a), of ordinary size.
    inside = p > 0.0
    ratios = p[inside] / row[inside] / column[inside]
    return max(float((p[inside] * np.log(ratios)).sum()), 0.0) / _unit(base)


def most_informative(
    model: GraphicalModel,
    target: Names,
    evidence: Case = None,
    *,
    candidates: Sequence[str] | None = None,
    base: float | None = None,
    time_limit: float | None = None,
) -> pd.DataFrame:
    """How much each observation would be expected to tell about the target, the most telling one first.

    For a candidate c: reduction = H(target | e) - Σ_c p(c | e) H(target | e, c), which is I(target; c | e). One batched
    query, with a case for each state of each candidate (default: all variables that are neither observed nor target).
    Columns: variable, expected_entropy, reduction, share (of the entropy that there is).

    With `time_limit` it looks at the candidates nearest to the target in the graph first, a few at a time, and stops
    after so many seconds: `attrs["left"]` names the others, which a further call takes as `candidates`.

    Parameters
    ----------
    model : the network or other graphical model.
    target : the variable that is asked about, or several.
    evidence : what is known, as `query` takes it: values by variable, or None.
    candidates : what could be observed; None for all variables that are neither observed nor target.
    base : base of the logarithm; None for nats, 2 for bits.
    time_limit : seconds after which it stops, or None.

    Examples
    --------
    >>> import gramgraph as gg
    >>> found = most_informative(gg.datasets.asia(), "lung", {"dysp": "yes"})
    >>> found["variable"].tolist()[:2]
    ['either', 'xray']
    """
    if isinstance(model, CellModel):
        return _ranking_on_cells(model, target, candidates, evidence, base, time_limit)
    if not model.is_discrete:
        wanted_names = free_names(model, target, evidence)

        def rank(names: Sequence[str] | None) -> pd.DataFrame:
            return real_ranking(model, wanted_names, names, evidence, _unit(base))

        tried_names = candidates
    else:
        question = one_case(model, evidence)
        wanted = free_positions(model, target, question)
        wanted_names = model.names_of(wanted)
        tried_names = candidates
        if tried_names is None:
            seen = question.hard_evidence(0)
            tried_names = [var.name for i, var in enumerate(model.vars) if i not in seen and i not in wanted]

        def rank(names: Sequence[str] | None) -> pd.DataFrame:
            return _table_ranking(model, question, wanted, names or (), _unit(base))

    if time_limit is None:
        return rank(tried_names)
    if tried_names is None:
        known = set(model.names_of(read(model, [], evidence).seen))
        tried_names = [name for name in model.variables if name not in known and name not in wanted_names]
    return _ranked_until(rank, _nearest_first(model, wanted_names, tried_names), time_limit)


def _table_ranking(
    model: GraphicalModel, question: Question, wanted: tuple[int, ...], names: Sequence[str], unit: float
) -> pd.DataFrame:
    """The ranking of candidates with states, in one query."""
    import pandas as pd

    tried = free_positions(model, tuple(names), question)
    if overlap := [model.vars[i].name for i in tried if i in wanted]:
        raise VariableError(f"{', '.join(overlap)} cannot be both target and candidate")
    cases = [(i, state) for i in tried for state in range(model.vars[i].size)]
    answer = ask(model, replace(with_cases(question, cases), joints=(wanted,)))
    weights, entropies = _case_entropies(model, answer, wanted)
    if np.isnan(entropies[0]):
        raise_impossible(model, question)
    rows, start = [], 1
    for i in tried:
        stop = start + model.vars[i].size
        possible = weights[start:stop] > 0.0
        expected = float((weights[start:stop][possible] * entropies[start:stop][possible]).sum()) / unit
        before = float(entropies[0]) / unit
        gain = max(before - expected, 0.0)
        rows.append((model.vars[i].name, expected, gain, gain / before if before > 0 else 0.0))
        start = stop
    frame = pd.DataFrame(rows, columns=["variable", "expected_entropy", "reduction", "share"])
    return frame.sort_values("reduction", ascending=False, kind="stable", ignore_index=True)


#: Candidates that are looked at together when there is a limit of time; more and more while it goes quickly.
FIRST_CANDIDATES = 4


def _ranked_until(rank: Callable[[Sequence[str]], pd.DataFrame], names: list[str], seconds: float) -> pd.DataFrame:
    """Rankings of a few candidates at a time, put together; at least one round, then as the time allows."""
    import pandas as pd

    if not seconds > 0.0:
        raise OptionError(f"time_limit is a number of seconds above 0, not {seconds!r}")
    start, size, at = monotonic(), FIRST_CANDIDATES, 0
    parts: list[pd.DataFrame] = []
    while at < len(names) or not parts:
        before = monotonic()
        parts.append(rank(names[at : at + size]))
        at += size
        left = start + seconds - monotonic()
        if left <= 0.0:
            break
        pace = (monotonic() - before) / size
        size = max(1, min(4 * size, int(0.5 * left / max(pace, 1e-6))))
    frame = pd.concat(parts, ignore_index=True)
    frame = frame.sort_values("reduction", ascending=False, kind="stable", ignore_index=True)
    frame.attrs["left"] = tuple(names[at:])
    return frame


def _nearest_first(model: GraphicalModel, targets: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names by their distance from the targets in the graph; those that it does not join come last."""
    near: dict[str, list[str]] = {}
    for a, b in getattr(model, "edges", ()):
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    far = dict.fromkeys(targets, 0)
    queue = list(targets)
    for name in queue:
        for other in near.get(name, ()):
            if other not in far:
                far[other] = far[name] + 1
                queue.append(other)
    return sorted(names, key=lambda name: far.get(name, len(model.vars)))


def _ranking_on_cells(
    model: CellModel,
    target: Names,
    candidates: Sequence[str] | None,
    evidence: Any,
    base: float | None,
    time_limit: float | None,
) -> pd.DataFrame:
    """Reductions are those of the cells; entropies of numbers are differential, and may be negative."""
    wanted = free_names(model, target, evidence)
    seen = {*wanted, *model.names_of(one_case(model, evidence).seen)}
    names = [name for name in model.variables if name not in seen] if candidates is None else candidates
    cells, asked = on_tables(model, evidence, (*wanted, *names))
    found = most_informative(cells, wanted, asked, candidates=names, base=base, time_limit=time_limit)
    before = entropy(model, wanted, evidence, base=base)
    share = found["reduction"] / before if before > 0.0 else 0.0
    return found.assign(expected_entropy=before - found["reduction"], share=share)


def kl_divergence(p: Any, q: Any, *, base: float | None = None) -> float:
    """KL(p ‖ q) = Σ_x p(x) log(p(x) / q(x)) (an integral where x is real); infinite where q(x) = 0 < p(x).

    Of two models: log p and log q are sums over factors, so only the joints under p of the factors' scopes are needed:
    the cost is that of asking p about the families of q. Both must have the same variables with the same states; models
    of real-valued variables must be linear-Gaussian. Of two distributions of one family it is `p.kl(q)`.

    Parameters
    ----------
    p : the model, or distribution, that the mean is taken under.
    q : the one it is compared with.
    base : base of the logarithm; None for nats, 2 for bits.

    Examples
    --------
    >>> import gramgraph as gg
    >>> round(kl_divergence(gg.distributions.Normal(0.0, 1.0), gg.distributions.Normal(1.0, 1.0)), 6)
    0.5
    """
    if callable(getattr(p, "kl", None)) and callable(getattr(q, "kl", None)):
        return float(p.kl(q)) / _unit(base)
    for value in (p, q):
        if not hasattr(value, "vars"):
            raise ModelError(
                "the Kullback-Leibler divergence is one of two models, or of two distributions of one family, not of "
                f"{type(p).__name__} and {type(q).__name__}"
            )
    if not (p.is_discrete and q.is_discrete):
        return _gaussian_kl(p, q) / _unit(base)
    if {var.name: var.states for var in p.vars} != {var.name: var.states for var in q.vars}:
        raise ModelError("the Kullback-Leibler divergence is of two models with the same variables and states")
    value = _expected_log(p, p) - _log_z(p) - _expected_log(p, q) + _log_z(q)
    return max(value, 0.0) / _unit(base)


def _gaussian_kl(p: GraphicalModel, q: GraphicalModel) -> float:
    """KL of two linear-Gaussian models, whose variables may stand in different orders."""
    from gramgraph.distributions.gaussian import Gaussian

    if {var.name: var.domain for var in p.vars} != {var.name: var.domain for var in q.vars}:
        raise ModelError("the Kullback-Leibler divergence is of two models with the same variables and states")
    ours, theirs = p.to_gaussian(), q.to_gaussian()
    start = dict(zip(q.variables, np.cumsum([0, *(var.dimension for var in q.vars)]), strict=False))
    order = np.concatenate([start[var.name] + np.arange(var.dimension) for var in p.vars])
    return float(ours.kl(Gaussian(theirs.mean[order], theirs.cov[np.ix_(order, order)])))


def _joint(model: GraphicalModel, question: Question, wanted: tuple[int, ...]) -> FloatArray:
    """p(wanted | e) with one axis per variable."""
    asked = replace(question, joints=(wanted,))
    answer = ask(model, asked)
    if answer.log_evidence == -np.inf:
        raise_impossible(model, asked)
    return answer[tuple(model.vars[i].name for i in wanted)].probabilities


def _case_entropies(model: GraphicalModel, answer: Answer, wanted: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """p(case | first case) and the entropy of the target in each case."""
    logs = np.asarray(answer.log_evidence)
    tables = answer[tuple(model.vars[i].name for i in wanted)].probabilities
    with np.errstate(invalid="ignore"):
        weights = np.exp(logs - logs[0])
    return weights, _entropy(tables.reshape(len(logs), -1))


def _entropy(p: FloatArray) -> FloatArray:
    """-Σ p log p of every row, with 0 log 0 = 0."""
    safe = np.where(p > 0.0, p, 1.0)
    return np.asarray(-(np.where(np.isnan(p), np.nan, p) * np.log(safe)).sum(axis=1)) + 0.0


def _unit(base: float | None) -> float:
    if base is None:
        return 1.0
    if not base > 1.0:
        raise OptionError(f"the base of the logarithm must be greater than 1 (2 gives bits), not {base!r}")
    return log(base)


def _log_z(model: GraphicalModel) -> float:
    if isinstance(model, BayesianNetwork):
        return 0.0
    return float(ask(model, one_case(model, None)).log_evidence)


def _expected_log(p: GraphicalModel, q: GraphicalModel) -> float:
    """E_p[Σ log f] over the factors of q."""
    factors = q.factors(structured=False)
    scopes = [tuple(p.index(var.name) for var in factor.scope) for factor in factors]
    answer = ask(p, replace(one_case(p, None), joints=tuple(dict.fromkeys(scope for scope in scopes if scope))))
    total = 0.0
    for factor, scope in zip(factors, scopes, strict=True):
        belief = answer[tuple(p.vars[i].name for i in scope)].probabilities if scope else np.ones(())
        logs = factor.log_values()
        inside = belief > 0.0
        total += float((belief[inside] * logs[inside]).sum())
    return total
