"""Ordinary networks of Dirichlet parameters and categories, such as an unrolled plate model, as urns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.answers import Belief, RealAnswer
from gramgraph.conditionals import FromFamily
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.plates.collapsed_gibbs import CollapsedGibbs
from gramgraph.engines.plates.counts import CountModel, Found
from gramgraph.engines.plates.enumeration import fits, summed
from gramgraph.exceptions import BudgetError, ModelError
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray


def lower_network(model: Any) -> tuple[CountModel, dict[int, int]]:
    """Urns of a network, and the site of each discrete variable; a `ModelError` where a conditional does not fit."""
    rows: dict[int, int] = {}  # parameter → its row
    weights: list[FloatArray] = []
    steps: list[float] = []
    site_of: dict[int, int] = {}
    sizes: list[int] = []
    table: list[int] = []
    choice: list[int] = []
    parents: list[list[tuple[int, int]]] = []

    def add_row(values: FloatArray, step: float) -> int:
        weights.append(np.asarray(values, dtype=np.float64))
        steps.append(step)
        return len(weights) - 1

    for name in model.topological_order():
        v = model.index(name)
        c = model.conditionals[v]
        if not model.vars[v].is_discrete:
            rows[v] = add_row(_weights(c), 1.0)
            continue
        own, choosers = _choices(model, c, rows, add_row)
        stride, given = 1, []
        for chooser in reversed(choosers):
            given.append((site_of[chooser], stride))
            stride *= model.vars[chooser].size
        site_of[v] = len(sizes)
        sizes.append(model.vars[v].size)
        table.append(len(choice))
        choice += own
        parents.append(given)
    widths = [len(w) for w in weights]
    flat = [pair for given in parents for pair in given]
    made = CountModel(
        sizes=_whole(sizes),
        value=np.full(len(sizes), -1),
        table=_whole(table),
        choice=_whole(choice),
        ptr=_whole(np.concatenate([[0], np.cumsum([len(given) for given in parents])])),
        idx=_whole([site for site, _ in flat]),
        stride=_whole([stride for _, stride in flat]),
        offset=_whole(np.concatenate([[0], np.cumsum(widths)])),
        alpha=np.concatenate([np.zeros(0), *weights]),
        step=np.array(steps),
        log_constant=0.0,
        sites={},
        rows={},
    )
    return made, site_of


def _whole(values: Any) -> IntArray:
    return np.asarray(values, dtype=np.int64).reshape(-1)


def _weights(c: Any) -> FloatArray:
    if isinstance(c, FromFamily) and not c.parents and c.form in ("dirichlet", "beta"):
        if c.form == "beta":
            return np.array([float(np.asarray(c.arguments[word])) for word in ("b", "a")])
        return np.broadcast_to(np.asarray(c.arguments["alpha"], dtype=np.float64), (c.child.dimension,))
    raise ModelError(
        f"{c.child.name} is not a Dirichlet or Beta variable with known weights, so this engine cannot integrate it "
        'out. Use engine="likelihood_weighting" instead'
    )


def _choices(
    model: Any, c: Any, rows: dict[int, int], add_row: Callable[[FloatArray, float], int]
) -> tuple[list[int], list[int]]:
    """Rows from which a discrete variable may draw, and the variables whose states choose."""
    if c.tabular:
        table = c.table().reshape(-1, c.child.size)
        return [add_row(row, 0.0) for row in table], [model.index(p.name) for p in c.parents]
    if isinstance(c, FromFamily) and c.form in ("categorical", "bernoulli"):
        given = c.arguments["probabilities"]
        if not isinstance(given, dict):
            p = np.atleast_1d(given)
            return [add_row(np.array([1.0 - p[0], p[0]]) if c.form == "bernoulli" else p, 0.0)], []
        if "parent" in given:
            return [rows[model.index(c.parents[given["parent"]].name)]], []
        if "choose" in given:
            of = [rows[model.index(c.parents[i].name)] for i in given["choose"]]
            return of, [model.index(c.parents[j].name) for j in given["by"]]
    raise ModelError(f"the conditional of {c.child.name} does not draw from probabilities, so it has no urn")


def sums(model: Any, question: Question) -> bool:
    """Whether all states can be summed over, in every case."""
    if not _plain(model, question):
        return False
    try:
        counts, site_of = lower_network(model)
    except ModelError:
        return False
    return question.n_cases <= 32 and all(fits(_seen(counts, site_of, question, i)) for i in range(question.n_cases))


def _plain(model: Any, question: Question) -> bool:
    """Observed states of discrete variables, and questions about them, alone."""
    asked = {*question.wanted, *(v for joint in question.joints for v in joint)}
    soft = question.likelihoods or question.log_likelihoods or question.noisy or len(question.columns)
    return not soft and all(model.vars[v].is_discrete for v in asked)


def _seen(counts: CountModel, site_of: dict[int, int], question: Question, case: int) -> CountModel:
    value = np.full(len(counts.sizes), -1)
    for v, code in question.hard_evidence(case).items():
        value[site_of[v]] = code
    return replace(counts, value=value)


class _OnNetwork(Engine):
    """Case by case: the urns of the network, with the observed states put in."""

    kinds = ("general",)

    def answer(self, model: Any, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Beliefs about discrete variables, the parameters integrated out."""
        if not _plain(model, question):
            raise ModelError(
                "this engine answers about the discrete variables of a network, given states of them. Ask the plate "
                'model about its parameters, or use engine="likelihood_weighting"'
            )
        counts, site_of = lower_network(model)
        keys = question.keys(model)
        sets = {key: [site_of[model.index(n)] for n in ((key,) if isinstance(key, str) else key)] for key in keys}
        cases = [_seen(counts, site_of, question, i) for i in range(question.n_cases)]
        found = [self.found(case, list(sets.values()), run) for case in cases]

        def make(key: Any) -> Belief:
            scope = tuple(model.var(n) for n in ((key,) if isinstance(key, str) else key))
            tables = [one.joint(case, sets[key]) for one, case in zip(found, cases, strict=True)]
            return Belief(scope, np.stack(tables) if question.batched else tables[0], batched=question.batched)

        logs = np.array([one.log_evidence for one in found])
        details = {**question.details, **({} if question.batched else found[0].details)}
        return RealAnswer(
            keys, make, logs if question.batched else float(logs[0]), engine=self.name, exact=self.exact,
            batched=question.batched, details=details,
        )  # fmt: skip

    def found(self, counts: CountModel, sets: list[list[int]], run: Run) -> Found:
        """What is known of one case."""
        raise NotImplementedError


class NetworkEnumeration(_OnNetwork):
    """The sum over all hidden states of a network whose parameters are Dirichlet or Beta variables: exact.

    >>> import gramgraph as gg
    >>> text = "theta{simplex 2} -> z[2]; plate draws: z"
    >>> net = gg.BayesianNetwork(text, cpds={"theta": gg.Dirichlet([1.0, 1.0])}).unroll(draws=3)
    >>> answer = net.query("z[2]", {"z[0]": 0, "z[1]": 0})
    >>> round(answer["z[2]"].prob("0"), 4), answer.engine, answer.exact
    (0.75, 'enumeration', True)
    """

    name = "enumeration"
    exact = True

    def found(self, counts: CountModel, sets: list[list[int]], run: Run) -> Found:
        """All configurations."""
        if not fits(counts):
            raise BudgetError(
                f"{counts.configurations:.3g} configurations of hidden variables are too many to sum",
                clique=(),
                bytes=8.0 * counts.configurations,
                remedies=('engine="collapsed_gibbs"',),
            )
        return summed(counts)


class NetworkGibbs(_OnNetwork, CollapsedGibbs):  # type: ignore[misc]
    """Collapsed Gibbs sampling of a network whose parameters are Dirichlet or Beta variables; see `CollapsedGibbs`."""

    name = "collapsed_gibbs"
    kinds = ("general",)

    def found(self, counts: CountModel, sets: list[list[int]], run: Run) -> Found:
        """Chains."""
        free = [tuple(dict.fromkeys(s for s in sites if counts.value[s] < 0)) for sites in sets]
        return self.sampled(counts, [key for key in free if len(key) > 1], run)
