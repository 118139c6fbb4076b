"""Conditionals without a closed form, closed by the evidence: with its real parents observed, a softmax is a table and
a regressor a Gaussian with a known mean. What is left may be conditional-Gaussian, hence exact."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Belief, Key, MixtureBelief, RealAnswer
from gramgraph.conditionals import (
    Boosted,
    Conditional,
    ConditionalLinearGaussian,
    LinearGaussian,
    Predictor,
    Softmax,
    Table,
)
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.mixed.mixture import MixtureEngine, StrongEngine
from gramgraph.engines.mixed.strong_tree import StrongPlan
from gramgraph.exceptions import ModelError
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Group, Question
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Each case of a table has a network of its own: beyond this many, draws are made instead.
MOST_CASES = 2000


def closed_network(model: Any, group: Group) -> Any:
    """The conditional-Gaussian network that the observations of one case leave, or None if there is none.

    >>> import gramgraph as gg
    >>> from gramgraph.questions.reading import read
    >>> from gramgraph.variables import binary, real
    >>> x, s = real("x"), binary("s")
    >>> net = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), gg.conditionals.Softmax.logistic(s, (x,), [2.0])])
    >>> case = next(read(net, None, {"x": 1.0}).groups())
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
        made = closed_conditional(c, known)
        if made is None:
            return None
        parts.append(made)
    return type(model).from_parts(model.vars, parts, check=False)


def closed_conditional(c: Conditional, known: dict[Var, FloatArray]) -> Conditional | None:
    """The conditional for observed real parents: over its discrete parents alone."""
    if not isinstance(c, (Softmax, Predictor, Boosted)):
        return None
    if any(var not in known for var in c.real_parents) or getattr(c, "residuals", None) is not None:
        return None
    labelled = c.discrete_parents
    sizes = tuple(var.size for var in labelled)
    n = int(np.prod(sizes))
    grid = np.indices(sizes).reshape(len(sizes), n)
    values: dict[Var, Any] = {var: np.tile(known[var], (n, 1)) for var in c.real_parents}
    values |= {var: grid[i] for i, var in enumerate(labelled)}
    if c.child.is_discrete:
        return Table(c.child, labelled, c.probabilities(values, n).reshape(*sizes, -1))
    assert not isinstance(c, Softmax)  # its child is discrete
    k = c.child.dimension
    if isinstance(c, Boosted):
        means, covariances = c.predict(c.features(values, n)), np.full((n, 1, 1), c.noise) ** 2
    else:
        means, covariances = c.moments(values, n)
    mean, noise = means.reshape(*sizes, k), covariances.reshape(*sizes, k, k)
    nothing = np.zeros((*sizes, k, 0))
    if labelled:
        return ConditionalLinearGaussian(c.child, labelled, nothing, mean, noise)
    return LinearGaussian(c.child, (), nothing, mean, noise)


def closes(model: Any, question: Question) -> bool:
    """Whether the observations of every case leave a conditional-Gaussian network."""
    if question.n_cases > MOST_CASES:
        return False
    # It depends on what is observed, not on the values.
    return all(closed_network(model, replace(group, X=group.X[:1])) is not None for group in question.groups())


class Closed(Engine):
    """Each case has a network of its own, in which what is observed closed the conditionals without a closed form.

    >>> import gramgraph as gg
    >>> from gramgraph.variables import binary, real
    >>> x, s = real("x"), binary("s")
    >>> net = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), gg.conditionals.Softmax.logistic(s, (x,), [2.0])])
    >>> answer = net.query("s", {"x": 1.0})
    >>> round(answer["s"].prob("yes"), 4), answer.exact
    (0.8808, True)
    """

    name = "closed"
    exact = True
    kinds = ("general",)

    def plan(self, model: Any, question: Question) -> StrongPlan:
        """What a strong tree of the network takes that the evidence leaves."""
        return StrongEngine().plan(model, question)

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> RealAnswer:
        """The exact answer; a `ModelError` where the observations do not close the network."""
        if not closes(model, question):
            raise ModelError(
                "the evidence does not close this network: real-valued parents of a softmax or a predictor are not "
                "observed in every case. Use engine='likelihood_weighting' or 'gibbs' instead"
            )
        tasks: list[tuple[int, Group]] = []
        for group in question.groups():
            for i, row in enumerate(group.rows.tolist()):
                tasks.append((row, replace(group, rows=np.zeros(1, np.int64), X=group.X[i : i + 1])))

        def work(task: tuple[int, Group]) -> RealAnswer:
            net, asked = closed_network(model, task[1]), _one_case(model, question, task[1])
            worker = MixtureEngine() if MixtureEngine().is_small(net, asked) else StrongEngine()
            return worker.answer(net, asked, replace(run, n_jobs=1, report=None))

        cases = {row: found for (row, _), found in zip(tasks, run.each(work, tasks), strict=True)}
        if not question.batched:
            return cases[0]
        log_p = np.array([float(cases[row].log_evidence) for row in range(question.n_cases)])

        def belief(key: Key) -> Any:
            return _stacked([cases[row][key] for row in range(question.n_cases)])

        engines = sorted({found.engine for found in cases.values()}) or ["mixture"]
        details = {"index": question.index}
        keys = question.keys(model)
        return RealAnswer(keys, belief, log_p, engine=", ".join(engines), batched=True, details=details)


def _one_case(model: Any, question: Question, group: Group) -> Question:
    """The question about one case, with its gaps left out."""
    labelled = tuple(group.states)
    return replace(
        question,
        targets=question.wanted,
        everything=False,
        columns=group.seen,
        X=group.X,
        observed=labelled,
        owners=layout_of(model).owner[group.seen],
        codes=np.array([[group.states[v] for v in labelled]], np.int64).reshape(1, -1),
        batched=False,
        complete=False,
        index=None,
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
