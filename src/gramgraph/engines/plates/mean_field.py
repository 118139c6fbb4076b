"""Mean field for plate models, and the exact answer where every hidden member stands alone."""

from __future__ import annotations

from time import monotonic
from typing import Any

import numpy as np

from gramgraph.answers import PlateAnswer
from gramgraph.engines.approximate import between, whole
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.plates.answers import plate_answer
from gramgraph.engines.plates.variational import Field
from gramgraph.exceptions import ModelError
from gramgraph.models.plated.model import PlateModel
from gramgraph.questions.plate_question import PlateQuestion
from gramgraph.typing import FloatArray


class PlateMeanField(Engine):
    """The product q = Π q(member) nearest to the posterior, for families that are conjugate or have a link.

    Each q has the family of its prior: Dirichlet, Beta, Gamma, Gaussian, Wishart, or probabilities of states. Where a
    real variable is not conjugate, in `gg.Exp` or `gg.Logistic`, q is the best Gaussian (moments in closed form or by
    64 Gauss–Hermite nodes). A sweep sets every factor to its best, given the others, or takes a step towards it that is
    shortened until the bound rises, so that the bound E log p − E log q ≤ log p(evidence) never falls;
    `details["bounds"]` holds it for every sweep, and `log_evidence` is the last. It ends when a sweep gains less than
    `tol` times the size of the bound. Of `restarts` random starts the best counts. Means are good, variances too small.
    Cost of a sweep: O(members · configurations of what chooses among their arguments).

    >>> import gramgraph as gg
    >>> text = "mu -> x{real}; tau -> x; plate cases: x"
    >>> cpds = {
    ...     "mu": gg.distributions.Normal(0.0, 100.0),
    ...     "tau": gg.distributions.Gamma(1.0, 1.0),
    ...     "x": gg.distributions.Normal("mu", precision="tau"),
    ... }
    >>> answer = gg.BayesianNetwork(text, cpds=cpds).query(["mu", "tau"], {"x": [1.0, 2.0, 3.0]}, engine="mean_field")
    >>> round(float(answer["mu"].mean()), 2), answer.exact
    (1.99, False)
    """

    name = "mean_field"
    kinds = ("plates",)
    options = ("max_iter", "tol", "restarts")

    def __init__(self, *, max_iter: int = 1000, tol: float = 1e-9, restarts: int = 3) -> None:
        super().__init__(max_iter=max_iter, tol=tol, restarts=restarts)
        self.max_iter, self.restarts = whole("max_iter", max_iter), whole("restarts", restarts)
        self.tol = between("tol", tol, 0.0, 1.0)

    def answer(self, model: PlateModel, question: PlateQuestion, run: Run = PLAIN) -> PlateAnswer:  # type: ignore[override]
        """Beliefs under the best q, and its bound."""
        best: tuple[float, Field, list[float], bool] | None = None
        end = None if run.seconds is None else monotonic() + run.seconds
        for rng in run.generator.spawn(self.restarts):
            field = Field(question, rng)
            bounds, settled = self._climb(field, end)
            if best is None or bounds[-1] > best[0]:
                best = bounds[-1], field, bounds, settled
            if not any(node.var.is_discrete or node.refs for node in field.sweeps):
                break  # one optimum
        assert best is not None
        _, field, bounds, settled = best
        details = {"bounds": np.array(bounds), "bound": bounds[-1], "converged": settled, "sweeps": len(bounds)}
        return field_answer(question, field, bounds[-1], engine=self.name, exact=False, details=details)

    def _climb(self, field: Field, end: float | None) -> tuple[list[float], bool]:
        bounds: list[float] = []
        for _ in range(self.max_iter):
            field.ascend()
            bounds.append(field.bound())
            if len(bounds) > 1 and bounds[-1] - bounds[-2] <= self.tol * (1.0 + abs(bounds[-1])):
                return bounds, True
            if end is not None and monotonic() > end:
                break
        return bounds, len(field.sweeps) <= 1


class Conjugate(Engine):
    """The exact posterior where no factor joins two hidden members: each is updated in closed form.

    Bayesian regression with known noise, naive Bayes with known classes, Gamma–Poisson rates, and so on.

    >>> import gramgraph as gg
    >>> text = "rate -> visits{count}; plate days: visits"
    >>> cpds = {"rate": gg.distributions.Gamma(2.0, 1.0), "visits": gg.distributions.Poisson("rate")}
    >>> answer = gg.BayesianNetwork(text, cpds=cpds).query("rate", {"visits": [3, 4, 5]})
    >>> float(answer["rate"].mean()), answer.engine, answer.exact
    (3.5, 'conjugate', True)
    """

    name = "conjugate"
    exact = True
    kinds = ("plates",)

    def answer(self, model: PlateModel, question: PlateQuestion, run: Run = PLAIN) -> PlateAnswer:  # type: ignore[override]
        """Exact beliefs; a `ModelError` where hidden members depend on each other."""
        field = Field(question, np.random.default_rng(0))
        if not field.is_exact():
            raise ModelError(
                "hidden variables depend on each other given the evidence, so that their posterior is no product. Use "
                'engine="enumeration", "collapsed_gibbs" or "mean_field" instead'
            )
        field.ascend()
        return field_answer(question, field, field.bound(), engine=self.name, exact=True)


def field_answer(question: PlateQuestion, field: Field, log_p: float, **how: Any) -> PlateAnswer:
    """Beliefs under q; a joint one is the product of its members'."""
    field.complete()

    def joint(target: tuple[tuple[str, int], ...]) -> FloatArray:
        out = np.ones(())
        for i, (name, member) in enumerate(target):
            if (name, member) in target[:i]:
                raise ModelError(f"{question.label(name, member)} stands twice in a joint belief")
            out = np.multiply.outer(out, field.spread(name)[member])
        return np.asarray(out)

    return plate_answer(question, field.spread, joint, log_p, **how)
