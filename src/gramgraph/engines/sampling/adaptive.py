"""Importance sampling with proposals that know the evidence: from beliefs of propagation, and learned from draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gramgraph._numerics.sampling.draws import cumulate, family_counts, forward_proposal, tilt
from gramgraph.engines.approximate import Cases, one_of
from gramgraph.engines.sampling.importance import Drawer, WeightedEngine
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

PROPOSALS = ("adaptive", "bp", "prior")
#: Rounds of fitting the tables to the beliefs, and the share of the network's own tables that every proposal keeps.
ROUNDS, FLOOR = 4, 0.1
#: Rounds of learning, draws in each, and the draws that a row of the proposal counts for beforehand.
LESSONS, LESSON_DRAWS, TRUST = 6, 4000, 30.0


class ProposalDrawer(Drawer):
    """Draws from other tables than the network's."""

    def __init__(self, model: GraphicalModel, cases: Cases, case: int, beliefs: FloatArray | None) -> None:
        super().__init__(model, cases, case)
        self.plain = False
        ready = self.ready
        self.ends = np.where(ready.table >= 0, ready.table + _cells(ready, self.low.sizes), -1)
        self.proposal = ready.values.copy()
        if beliefs is not None:
            tilt(
                self.order, *ready[1:6], self.ends, self.low.sizes, self.seen, cases.unary_ptr, beliefs, ROUNDS, FLOOR,
                self.proposal,
            )  # fmt: skip
        self.cdf = self._cumulate()

    def _cumulate(self) -> FloatArray:
        cdf = self.ready.cdf.copy()
        for v in self.order:
            if self.ready.table[v] >= 0 and self.seen[v] < 0:
                part = slice(int(self.ready.table[v]), int(self.ends[v]))
                cumulate(self.proposal[part], int(self.low.sizes[v]), cdf[part])
        return cdf

    def draw(self, states: Array, log_w: FloatArray, rng: np.random.Generator) -> None:
        """Fill states and their log weights: network over proposal."""
        rng.random(out=self.uniforms)
        forward_proposal(
            self.order, *self.ready[1:6], self.proposal, self.cdf, self.low.sizes, self.seen, self.unary,
            self.cases.unary_ptr, self.weighted, self.uniforms, states, log_w,
        )  # fmt: skip

    def learn(self, rng: np.random.Generator) -> None:
        """Draw, and move the rows of the proposal toward the weighted shares of what was drawn."""
        n = min(LESSON_DRAWS, self.block)
        states, log_w = np.zeros((n, len(self.low.sizes)), np.int32), np.empty(n)
        self.draw(states, log_w, rng)
        top = log_w.max()
        if top == -np.inf:
            return
        w = np.exp(log_w - top)
        w *= w.sum() / (w @ w)  # as many as there are effective draws
        counts = np.zeros(len(self.proposal))
        family_counts(self.order, *self.ready[1:5], states, w, counts)
        for v in self.order:
            if self.ready.table[v] >= 0 and self.seen[v] < 0:
                part = slice(int(self.ready.table[v]), int(self.ends[v]))
                size = int(self.low.sizes[v])
                seen, old = counts[part].reshape(-1, size), self.proposal[part].reshape(-1, size)
                new = (TRUST * old + seen) / (TRUST + seen.sum(axis=1, keepdims=True))
                own = self.ready.values[part].reshape(-1, size)
                self.proposal[part] = ((1 - FLOOR) * new + FLOOR * own).reshape(-1)
        self.cdf = self._cumulate()


def _cells(ready: Any, sizes: Array) -> Array:
    """Cells of the table of every variable."""
    n = len(ready.table)
    out = sizes[:n].copy()
    for v in np.flatnonzero(np.diff(ready.parent_ptr)):
        out[v] *= np.prod(sizes[ready.parent_idx[ready.parent_ptr[v] : ready.parent_ptr[v + 1]]])
    return np.asarray(out)


class AdaptiveImportance(WeightedEngine):
    """Draws from tables that lean toward the evidence, weighted by network over proposal: for unlikely evidence.

    `proposal="bp"` tilts each table p(x | parents) λ(x) so that x gets its belief of loopy propagation (evidence
    pre-propagation); "adaptive" (the default) goes on from there, and learns the tables from weighted draws in a few
    rounds, whose draws are not used again (self-importance); "prior" is likelihood weighting. A tenth of every row
    stays the network's own, so that weights are bounded. Options and answers as of `engine="likelihood_weighting"`.

    >>> import gramgraph as gg
    >>> net, seen = gg.datasets.asia(), {"asia": "yes", "xray": "yes", "dysp": "yes"}
    >>> found = [net.query("lung", seen, engine=e, random_state=0) for e in ("importance", "likelihood_weighting")]
    >>> found[0].details["effective_draws"] > 3 * found[1].details["effective_draws"]
    True
    """

    name = "importance"
    options: ClassVar[tuple[str, ...]] = ("error", "proposal")

    def drawer(
        self, model: GraphicalModel, cases: Cases, case: int, options: dict[str, Any], rng: np.random.Generator
    ) -> Drawer:
        """Tables for one case."""
        how = one_of("proposal", options.get("proposal", "adaptive"), PROPOSALS)
        if how == "prior" or (not (cases.states[case] >= 0).any() and (cases.unaries == 1.0).all()):
            return Drawer(model, cases, case)
        drawer = ProposalDrawer(model, cases, case, _beliefs(model, cases, case))
        if how == "adaptive":
            for _ in range(LESSONS):
                drawer.learn(rng)
        return drawer


def _beliefs(model: GraphicalModel, cases: Cases, case: int) -> FloatArray | None:
    """Beliefs of loopy propagation in one case, all variables side by side; None where it finds a contradiction."""
    from gramgraph.engines.propagation.belief_propagation import beliefs_of_all

    n = cases.low.n_visible
    seen, unary = cases.states[case], cases.unaries[min(case, len(cases.unaries) - 1)]
    observed = tuple(int(v) for v in np.flatnonzero(seen >= 0))
    likely = tuple(
        (v, unary[cases.unary_ptr[v] : cases.unary_ptr[v + 1]])
        for v in range(n)
        if (unary[cases.unary_ptr[v] : cases.unary_ptr[v + 1]] != 1.0).any()
    )
    wanted = tuple(int(v) for v in np.flatnonzero(cases.active[:n]))
    asked = Question(wanted, (), observed, seen[None, list(observed)], likely)
    beliefs, log_z = beliefs_of_all(model, asked, schedule="sequential", max_iter=50)
    if not log_z[0] > -np.inf:
        return None
    return np.nan_to_num(beliefs[0, : int(cases.unary_ptr[-1])], nan=1.0)  # NaN: what does not matter
