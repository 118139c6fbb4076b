"""Plate models summed over all states: exact where few members are hidden."""

from __future__ import annotations

import numpy as np

from gramgraph.answers import PlateAnswer
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.plates.answers import count_answer
from gramgraph.engines.plates.counts import CountModel, lower_counts
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
        weights, mean, square, log_z = enumerate_all(counts)
        hidden = counts.hidden
        sizes = [int(counts.sizes[s]) for s in hidden]
        place = {int(s): i for i, s in enumerate(hidden)}

        def table(sites: tuple[int, ...]) -> FloatArray:
            codes = np.unravel_index(np.arange(len(weights)), sizes) if sizes else ()
            shape = [sizes[place[s]] for s in sites]
            flat = np.zeros(len(weights), dtype=np.int64)
            for s in sites:
                flat = flat * sizes[place[s]] + codes[place[s]]
            return np.bincount(flat, weights, minlength=int(np.prod(shape, initial=1))).reshape(shape)

        def marginals(first: int, last: int) -> FloatArray:
            size = int(counts.sizes[first]) if last > first else 0
            out = np.zeros((last - first, size))
            for s in range(first, last):
                out[s - first] = table((s,)) if counts.value[s] < 0 else np.eye(size)[counts.value[s]]
            return out

        details = {"configurations": len(weights)}
        return count_answer(
            question, counts, table, marginals, (mean, square), log_z, engine=self.name, exact=True, details=details
        )


def fits(counts: CountModel) -> bool:
    """Whether there are few enough configurations."""
    n = counts.configurations
    return n <= MOST_CONFIGURATIONS and n * max(len(counts.sizes), 1) <= MOST_STEPS
