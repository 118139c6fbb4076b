"""Conditionals without a closed form, closed by the evidence: with its real parents observed, a softmax is a table and
a regressor a Gaussian with a known mean. What is left may be conditional-Gaussian, hence exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.answers import Belief, Key, MixtureBelief, RealAnswer
from gramgraph.conditionals import (
    Conditional,
    ConditionalLinearGaussian,
    LinearGaussian,
    Predictor,
    Softmax,
    Table,
)
from gramgraph.engines.continuous.case_loop import ONE_BY_ONE
from gramgraph.engines.continuous.door import Group, RealQuestion, layout_of
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

__all__ = ["MOST_CASES", "closed_answer", "closed_network"]

#: Each case of a table has a network of its own: beyond this many, draws are made instead.
MOST_CASES = 2000


def closed_network(model: Any, group: Group) -> Any:
    """The conditional-Gaussian network that the observations of one case leave, or None if there is none.

    >>> import gramgraph as gg
    >>> from gramgraph.engines.continuous.door import read_question
    >>> from gramgraph.variables import binary, real
    >>> x, s = real("x"), binary("s")
    >>> net = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), gg.conditionals.Softmax.logistic(s, (x,), [2.0])])
    >>> case = next(read_question(net, None, {"x": 1.0}).groups())
    >>> closed_network(net, case).conditional("s").table().round(4).tolist()
    [0.1192, 0.8808]
    """
    layout = layout_of(model)
    known: dict[Var, FloatArray] = {}
    owners = layout.owner[group.seen]
    for v in dict.fromkeys(owners.tolist()):
        columns = np.flatnonzero(owners == v)
        known[model.vars[v]] = group.X[0, columns[np.argsort(group.seen[columns])]]
    parts: list[Conditional] = []
    for c in model.conditionals:
        if c.tabular or isinstance(c, (LinearGaussian, ConditionalLinearGaussian)):
            parts.append(c)
            continue
        made = _closed(c, known) if isinstance(c, (Softmax, Predictor)) else None
        if made is None:
            return None
        parts.append(made)
    return type(model).from_parts(model.vars, parts, check=False)


def _closed(c: Softmax | Predictor, known: dict[Var, FloatArray]) -> Conditional | None:
    """The conditional for observed real parents: over its discrete parents alone."""
    if any(var not in known for var in c.real_parents):
        return None
    labelled = c.discrete_parents
    sizes = tuple(var.size for var in labelled)
    n = int(np.prod(sizes))
    grid = np.indices(sizes).reshape(len(sizes), n)
    values: dict[Var, Any] = {var: np.tile(known[var], (n, 1)) for var in c.real_parents}
    values |= {var: grid[i] for i, var in enumerate(labelled)}
    if isinstance(c, Softmax):
        return Table(c.child, labelled, c.probabilities(values, n).reshape(*sizes, -1))
    if c.child.is_discrete:
        return Table(c.child, labelled, c._probabilities(values, n).reshape(*sizes, -1))
    k = c.child.dimension
    means, covariances = c.moments(values, n)
    mean, noise = means.reshape(*sizes, k), covariances.reshape(*sizes, k, k)
    nothing = np.zeros((*sizes, k, 0))
    if labelled:
        return ConditionalLinearGaussian(c.child, labelled, nothing, mean, noise)
    return LinearGaussian(c.child, (), nothing, mean, noise)


def closed_answer(model: Any, question: RealQuestion, memory: float | None) -> RealAnswer | None:
    """The exact answer where every case closes its network; else None."""
    from gramgraph.engines.mixed.dispatch import answer

    if question.n_cases > MOST_CASES:
        return None
    tasks: list[tuple[int, Group]] = []
    for group in question.groups():
        one = replace(group, rows=np.zeros(1, np.int64), X=group.X[:1])
        if closed_network(model, one) is None:  # it depends on what is observed, not on the values
            return None
        for i, row in enumerate(group.rows.tolist()):
            tasks.append((row, replace(group, rows=np.zeros(1, np.int64), X=group.X[i : i + 1])))

    def work(task: tuple[int, Group]) -> RealAnswer:
        asked = _one_case(question, task[1])
        return answer(closed_network(model, task[1]), asked, "mixed", "auto", memory=memory)

    found_all = question.work.each(work, tasks)
    cases = {row: found for (row, _), found in zip(tasks, found_all, strict=True)}
    if not question.batched:
        return cases[0]
    log_p = np.array([float(cases[row].log_evidence) for row in range(question.n_cases)])

    def belief(key: Key) -> Any:
        return _stacked([cases[row][key] for row in range(question.n_cases)])

    engines = sorted({found.engine for found in cases.values()}) or ["mixture"]
    exact = all(found.exact for found in cases.values())
    details = {"index": question.index}
    return RealAnswer(
        question.keys, belief, log_p, engine=", ".join(engines), exact=exact, batched=True, details=details
    )


def _one_case(question: RealQuestion, group: Group) -> RealQuestion:
    """The question about one case, with its gaps left out."""
    labelled = tuple(group.states)
    return replace(
        question,
        targets=question.wanted,
        everything=False,
        columns=group.seen,
        X=group.X,
        labelled=labelled,
        codes=np.array([[group.states[v] for v in labelled]], np.int64).reshape(1, -1),
        batched=False,
        complete=False,
        index=None,
        work=ONE_BY_ONE,
    )


def _stacked(parts: list[Any]) -> Any:
    if isinstance(parts[0], Belief):
        return Belief(parts[0].scope, np.stack([p.probabilities for p in parts]), batched=True)
    width = max(p.weights.shape[1] for p in parts)
    d = parts[0].means.shape[-1]
    weights, means = np.zeros((len(parts), width)), np.zeros((len(parts), width, d))
    covs = np.zeros((len(parts), width, d, d))
    for row, p in enumerate(parts):
        k = p.weights.shape[1]
        weights[row, :k], means[row, :k], covs[row, :k] = p.weights[0], p.means[0], p.covariances[0]
    return MixtureBelief(parts[0].scope, weights, means, covs, batched=True)
