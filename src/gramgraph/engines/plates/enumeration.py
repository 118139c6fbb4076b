"""Plate models summed over all states: exact where few members are hidden."""

from __future__ import annotations

import numpy as np

from gramgraph.answers import PlateAnswer
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.plates.answers import count_answer
from gramgraph.engines.plates.counts import CountModel, Found, lower_counts
from gramgraph.engines.plates.urns import enumerate_all
from gramgraph.exceptions import BudgetError
from gramgraph.models.plated.model import PlateModel
from gramgraph.questions.plate_question import PlateQuestion
from gramgraph.typing import FloatArray

__all__ = ["PlateEnumeration"]

#: Configurations of hidden members, and configurations times sites, at most.
MOST_CONFIGURATIONS, MOST_STEPS = 1 << 18, 1 << 24


class PlateEnumeration(Engine):
    """All states of the hidden members, with the Dirichlet and Beta parameters integrated out: exact.

    p(states) is a product of ratios of Gamma functions, computed one draw after the other as from Pólya's urns. Means
    and variances of the parameters are mixtures over the configurations. Cost: O(configurations · members).

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
        counts = lower_counts(question)
        if not fits(counts):
            raise BudgetError(
                f"{counts.configurations:.3g} configurations of {len(counts.hidden)} hidden members are too many to sum",
                clique=(),
                bytes=8.0 * counts.configurations,
                remedies=('engine="collapsed_gibbs"', 'engine="mean_field"'),
            )
        return count_answer(question, counts, summed(counts), engine=self.name)


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
        return np.bincount(flat, self.weights, minlength=int(np.prod(shape, initial=1))).reshape(shape)


def summed(counts: CountModel) -> Found:
    """The sum over all configurations."""
    return _Summed(counts)


def fits(counts: CountModel) -> bool:
    """Whether there are few enough configurations."""
    n = counts.configurations
    return n <= MOST_CONFIGURATIONS and n * max(len(counts.sizes), 1) <= MOST_STEPS
