"""Plate models summed over all states: exact where few members are hidden."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.answers import PlateAnswer
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.plates.answers import count_answer, plate_answer
from gramgraph.engines.plates.counts import CountModel, Found, lower_counts, refusal
from gramgraph.engines.plates.urns import enumerate_all
from gramgraph.engines.plates.variational import Field
from gramgraph.exceptions import BudgetError
from gramgraph.models.plated.model import PlateModel
from gramgraph.questions.plate_question import PlateQuestion
from gramgraph.typing import FloatArray, IntArray

#: Configurations of hidden members, and configurations times sites, at most.
MOST_CONFIGURATIONS, MOST_STEPS = 1 << 18, 1 << 24
#: Configurations that have a conjugate posterior each, at most.
MOST_FIELDS = 2048


class PlateEnumeration(Engine):
    """All states of the hidden members, with the parameters integrated out: exact.

    p(states) is a product of ratios of Gamma functions, computed one draw after the other as from Pólya's urns. Means
    and variances of the parameters are mixtures over the configurations. Other families, such as Gaussians, are updated
    in closed form for each configuration. Cost: O(configurations · members).

    >>> import gramgraph as gg
    >>> text = "theta{simplex 2} -> z[2]; plate draws: z"
    >>> model = gg.BayesianNetwork(text, cpds={"theta": gg.Dirichlet([1.0, 1.0])})
    >>> answer = model.query("z", {"z": [0, 0, None]}, engine="enumeration")
    >>> answer["z"].prob("0").round(3).tolist(), round(float(np.exp(answer.log_evidence)), 4)
    ([1.0, 1.0, 0.75], 0.3333)
    """

    name = "enumeration"
    exact = True
    kinds = ("plates",)

    def answer(self, model: PlateModel, question: PlateQuestion, run: Run = PLAIN) -> PlateAnswer:  # type: ignore[override]
        """Exact beliefs; a `BudgetError` where there are too many configurations."""
        if refusal(question):
            return self._given_states(question)
        counts = lower_counts(question)
        if not fits(counts):
            raise BudgetError(
                f"{counts.configurations:.3g} configurations of {len(counts.hidden)} hidden members are too many",
                clique=(),
                bytes=8.0 * counts.configurations,
                remedies=('engine="collapsed_gibbs"', 'engine="mean_field"'),
            )
        return count_answer(question, counts, summed(counts), engine=self.name)

    def _given_states(self, question: PlateQuestion) -> PlateAnswer:
        """Other families: all states of the hidden discrete members, each with its conjugate posterior."""
        field = Field(question, np.random.default_rng(0))
        hidden = hidden_states(question, field)
        if not fits_conjugate(question, field):
            raise BudgetError(
                f"{_number(question, hidden):.3g} configurations of {len(hidden)} hidden states are too many, or "
                "hidden numbers depend on each other",
                clique=(),
                bytes=8.0 * _number(question, hidden),
                remedies=('engine="mean_field"',),
            )
        return _Mixture(question, hidden).answer(self.name)


class _Summed(Found):
    """Tables of any hidden sites from the probabilities of all configurations."""

    def __init__(self, counts: CountModel) -> None:
        self.counts = counts
        self.weights, *cells, log_z = enumerate_all(counts)
        super().__init__(log_z, (cells[0], cells[1]), True, {"configurations": len(self.weights)})
        self.sizes = [int(counts.sizes[s]) for s in counts.hidden]
        self.place = {int(s): i for i, s in enumerate(counts.hidden)}

    def table(self, sites: tuple[int, ...]) -> FloatArray:
        """Joint probabilities of hidden sites."""
        digits = np.unravel_index(np.arange(len(self.weights)), self.sizes) if self.sizes else ()
        flat = np.zeros(len(self.weights), dtype=np.int64)
        for s in sites:
            flat = flat * self.sizes[self.place[s]] + digits[self.place[s]]
        shape = [self.sizes[self.place[s]] for s in sites]
        return np.asarray(np.bincount(flat, self.weights, minlength=int(np.prod(shape, initial=1))).reshape(shape))


def summed(counts: CountModel) -> Found:
    """The sum over all configurations."""
    return _Summed(counts)


class _Mixture:
    """The posterior as a mixture over all states of hidden members: weights, and the field of each."""

    def __init__(self, question: PlateQuestion, hidden: list[tuple[str, int]]) -> None:
        self.question, self.hidden = question, hidden
        self.sizes = [question.model.template.nodes[name].var.size for name, _ in hidden]
        logs, self.fields = [], []
        self.codes = np.array(list(np.ndindex(*self.sizes)), dtype=np.int64).reshape(-1, len(hidden))
        for states in self.codes:
            field = Field(_with_states(question, hidden, states), np.random.default_rng(0))
            field.ascend()
            logs.append(field.bound())
            field.complete()
            self.fields.append(field)
        top = max(logs)
        weights = np.exp(np.array(logs) - top)
        self.log_z = float(top + np.log(weights.sum()))
        self.weights = weights / weights.sum()

    def moments(self, name: str) -> Any:
        """Those of a mixture."""
        parts = [field.spread(name) for field in self.fields]
        if not isinstance(parts[0], tuple):
            return np.einsum("c,cnk->nk", self.weights, np.stack(parts))
        mean = np.einsum("c,cnk->nk", self.weights, np.stack([m for m, _ in parts]))
        square = np.einsum("c,cnk->nk", self.weights, np.stack([v + m**2 for m, v in parts]))
        return mean, square - mean**2

    def joint(self, target: tuple[tuple[str, int], ...]) -> FloatArray:
        """Tables of members: products under each configuration."""
        total: FloatArray = np.zeros(())
        for weight, field in zip(self.weights, self.fields, strict=True):
            part = np.ones(())
            for name, member in target:
                part = np.multiply.outer(part, field.spread(name)[member])
            total = total + weight * part
        return np.asarray(total)

    def answer(self, engine: str) -> PlateAnswer:
        """The exact answer."""
        details = {"configurations": len(self.weights)}
        return plate_answer(
            self.question, self.moments, self.joint, self.log_z, engine=engine, exact=True, details=details
        )


def hidden_states(question: PlateQuestion, field: Field) -> list[tuple[str, int]]:
    """Hidden discrete members on which something observed depends."""
    out = []
    for node in field.order:
        if node.var.is_discrete and node.form != "given":
            free = field.hidden[node.name] & field.active[node.name]
            out += [(node.name, int(i)) for i in np.flatnonzero(free)]
    return out


def _number(question: PlateQuestion, hidden: list[tuple[str, int]]) -> float:
    sizes = [question.model.template.nodes[name].var.size for name, _ in hidden]
    with np.errstate(over="ignore"):
        return float(np.exp(np.log(sizes).sum()))


def _with_states(question: PlateQuestion, hidden: list[tuple[str, int]], states: IntArray) -> PlateQuestion:
    observed = dict(question.observed)
    for name in dict.fromkeys(name for name, _ in hidden):
        seen = observed.get(name)
        observed[name] = np.full(question.layout.count(name), -1) if seen is None else seen.copy()
    for (name, member), state in zip(hidden, states, strict=True):
        observed[name][member] = state
    return replace(question, observed=observed)


def fits_conjugate(question: PlateQuestion, field: Field) -> bool:
    """Whether there are few configurations of hidden states, and given them every number stands alone."""
    hidden = hidden_states(question, field)
    if not hidden or _number(question, hidden) > MOST_FIELDS:
        return False
    zeros = np.zeros(len(hidden), dtype=np.int64)
    return Field(_with_states(question, hidden, zeros), np.random.default_rng(0)).is_exact()


def fits(counts: CountModel) -> bool:
    """Whether there are few enough configurations."""
    n = counts.configurations
    return n <= MOST_CONFIGURATIONS and n * max(len(counts.sizes), 1) <= MOST_STEPS
