"""Forward draws of discrete networks, compiled: likelihood weighting, and rejection."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph._numerics.compiling import expect_calls
from gramgraph._numerics.sampling.draws import cumulate, forward, forward_columns, tally
from gramgraph.answers import Answer
from gramgraph.compile.budget import check_memory
from gramgraph.compile.lower import Lowered, lower
from gramgraph.engines.approximate import ApproximatePlan, Cases, parse_error
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.sampling.sampled import Total, Wants, sampled_answer
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.graphs import Digraph, topological_order
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

DRAWS, BATCH_DRAWS = 100_000, 10_000  # for one case, and for each of a table of cases
#: Draws at a time, fewer where their uniform numbers would pass the second.
BLOCK, NUMBERS = 4096, 1 << 23
#: Cells of a dense table, at most, where small factors could do.
LARGE_TABLE = 1 << 20
#: A requested error is pursued up to this many times the draws of the budget.
PATIENCE = 64


class Sampler(NamedTuple):
    """A network ready for forward draws."""

    order: IntArray
    table: IntArray
    parent_ptr: IntArray
    parent_idx: IntArray
    stride: IntArray
    values: FloatArray
    cdf: FloatArray


def sampler(model: GraphicalModel) -> Sampler:
    """Cumulative tables in topological order; made once per model."""
    found = model.plans.get("forward")
    if found is None:
        found = model.plans["forward"] = _sampler(lower(model, structured=has_large_tables(model)))
    return found  # type: ignore[no-any-return]


def has_large_tables(model: GraphicalModel) -> bool:
    """Whether some dense table is so large that draws go through the hidden variables of small factors instead.

    These make weights less even than the dense table, which is preferred where it can be made.
    """
    conditionals = getattr(model, "conditionals", ())
    return any(c is not None and c.size > LARGE_TABLE and c.is_structured for c in conditionals)


def _sampler(low: Lowered) -> Sampler:
    assert low.parents is not None
    n = len(low.sizes)
    table, ptr = np.full(n, -1, np.int64), np.zeros(n + 1, np.int64)
    cdf, scopes = np.empty(len(low.values)), {}
    made: list[list[int]] = [[] for _ in range(low.n_visible)]  # hidden variables on the way to each child
    for f, child in enumerate(low.owner.tolist()):
        scope = low.scope_idx[low.scope_ptr[f] : low.scope_ptr[f + 1]]
        v = int(scope[-1])
        if v == child or (v >= low.n_visible and table[v] < 0):  # else what is made has one state and needs no draw
            part = slice(int(low.value_ptr[f]), int(low.value_ptr[f + 1]))
            cumulate(low.values[part], int(low.sizes[v]), cdf[part])
            table[v], scopes[v] = part.start, scope
            if v != child:
                made[child].append(v)
    idx: list[int] = []
    stride: list[int] = []
    for v in range(n):
        step = int(low.sizes[v])
        for u in scopes.get(v, np.zeros(1, np.int64))[-2::-1]:
            idx.append(int(u))
            stride.append(step)
            step *= int(low.sizes[u])
        ptr[v + 1] = len(idx)
    order = [u for v in topological_order(Digraph(low.parents)) for u in (*made[v], v)]
    return Sampler(
        np.array(order, np.int64), table, ptr, np.array(idx, np.int64), np.array(stride, np.int64), low.values, cdf
    )


def can_forward(model: GraphicalModel, question: Question) -> bool:
    """Whether the question has no evidence and the model is a network of plain tables."""
    conditionals = getattr(model, "conditionals", None)
    if conditionals is None or question.observed or question.likelihoods:
        return False
    return not any(c is None or c.is_structured for c in conditionals)


def forward_rows(model: GraphicalModel, n: int, rng: np.random.Generator) -> Array:
    """(n, variables) state numbers drawn from the network, parents first; columns are contiguous."""
    ready, sizes = sampler(model), lower(model, structured=False).sizes
    width = len(ready.order)
    out = np.zeros((width, n), np.int8 if sizes.max(initial=1) <= 127 else np.int32)
    block = int(np.clip(NUMBERS // 8 // max(width, 1), 16, BLOCK))
    uniforms, state = np.empty((block, width)), np.zeros(width, np.int32)
    for first in range(0, n, block):
        rng.random(out=uniforms)
        stop = min(first + block, n)
        forward_columns(*ready[:5], ready.cdf, uniforms[: stop - first], state, out[:, first:stop])
    return out.T


class Drawer:
    """Weighted draws for one case, from the network itself; classes that inherit it draw in other ways."""

    def __init__(self, model: GraphicalModel, cases: Cases, case: int) -> None:
        self.ready, self.low, self.cases = sampler(model), cases.low, cases
        self.order = self.ready.order[cases.active[self.ready.order]]
        self.seen, self.unary = cases.states[case], cases.unaries[min(case, len(cases.unaries) - 1)]
        odd = self.unary != 1.0
        some = odd.any() and len(self.low.sizes)
        self.weighted: Array = (
            np.add.reduceat(odd, cases.unary_ptr[:-1]) > 0 if some else np.zeros(len(self.low.sizes), np.bool_)
        )
        #: Whether all weights are one.
        self.plain = not some and not bool((self.seen[self.order] >= 0).any())
        self.block = int(np.clip(NUMBERS // max(len(self.order), 1), 16, BLOCK))
        self.uniforms = np.empty((self.block, len(self.order)))

    def draw(self, states: Array, log_w: FloatArray, rng: np.random.Generator) -> None:
        """Fill states (draws, variables) and their log weights."""
        rng.random(out=self.uniforms)
        forward(
            self.order, *self.ready[1:], self.low.sizes, self.seen, self.unary, self.cases.unary_ptr, self.weighted,
            self.uniforms, states, log_w,
        )  # fmt: skip


class WeightedEngine(Engine):
    """The engine of one kind of weighted draws; see the classes that inherit it."""

    options: ClassVar[tuple[str, ...]] = ("error",)

    def plan(self, model: GraphicalModel, question: Question) -> ApproximatePlan:
        """The tables that are drawn from."""
        return ApproximatePlan.of(self.name, lower(model, structured=has_large_tables(model)))

    def drawer(
        self, model: GraphicalModel, cases: Cases, case: int, options: dict[str, Any], rng: np.random.Generator
    ) -> Drawer:
        """What draws for one case."""
        return Drawer(model, cases, case)

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """Estimates for every case, with their errors in `details`."""
        check_memory(run.memory)
        if getattr(model, "parent_positions", None) is None:
            raise ModelError(
                f'{self.name.replace("_", " ")} needs directed edges; ask an undirected model with engine="gibbs"'
            )
        draws, seconds = run.draws or (BATCH_DRAWS if question.batched else DRAWS), run.seconds
        goal = parse_error(self.given.get("error"))
        rng = run.generator
        cases = Cases.of(model, question, structured=has_large_tables(model))
        wants = Wants.of(cases.low.sizes, (*((v,) for v in question.targets), *question.joints))
        n = question.n_cases
        p, error = np.full((n, wants.cells), np.nan), np.full((n, wants.cells), np.nan)
        log_z, log_error, effective, made = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n), np.zeros(n, np.int64)
        end = None if seconds is None else monotonic() + seconds
        for case in range(n):
            share = None if end is None else monotonic() + (end - monotonic()) / (n - case)
            drawer = self.drawer(model, cases, case, self.given, rng)
            total = _weigh(drawer, wants, draws, share, goal, rng)
            made[case] = total.draws
            if total.weight > 0:
                p[case], error[case], effective[case] = total.estimates()
                log_z[case], log_error[case] = total.log_mean()
        if not question.batched and not effective[0]:
            raise OptionError(
                f"none of {made[0]:,} draws agrees with the evidence: it is impossible or very improbable. Raise "
                'budget=…, or use engine="importance", engine="bp" or an exact engine'
            )
        details = {"draws": made, "effective_draws": effective, "log_evidence_error": log_error}
        return sampled_answer(model, question, wants, p, error, log_z, engine=self.name, details=details)


@interruptible()
def _weigh(
    drawer: Drawer, wants: Wants, draws: int, end: float | None, goal: float | None, rng: np.random.Generator
) -> Total:
    """Draw block after block for one case, until there are enough, or the time is over, or Ctrl-C comes."""
    total = Total(wants.cells)
    states, log_w = np.zeros((drawer.block, len(drawer.low.sizes)), np.int32), np.empty(drawer.block)
    most = draws if goal is None else PATIENCE * draws
    check = draws
    for loop in (forward, tally):
        expect_calls(loop, -(-draws // drawer.block))
    try:
        while total.draws < most or end is not None:
            check_interrupt()
            size = drawer.block if end is not None else min(drawer.block, most - total.draws)
            drawer.draw(states[:size], log_w[:size], rng)
            w = total.add(log_w[:size])
            if w is not None:
                tally(states[:size], w, *wants[:4], drawer.plain, total.sums, total.squares)
            if end is not None and monotonic() >= end:
                break
            if goal is not None and total.draws >= check and total.weight > 0:
                if drawer.plain:
                    total.squares[:] = total.sums
                if total.estimates()[1].max(initial=0.0) <= goal:
                    break
                check = total.draws * 5 // 4
    except KeyboardInterrupt:
        if not total.draws:
            raise
    if drawer.plain:
        total.squares[:] = total.sums
    return total


class DiscreteWeighting(WeightedEngine):
    """Draws from the network, parents first; each observation multiplies a draw's weight by its probability.

    Cost: O(draws × variables above targets and evidence). `budget` is the number of draws, or a time ("5s"); `error`
    asks for a standard error, and draws go on until it is reached; Ctrl-C ends early with what was drawn. `details`
    tell `draws`, `effective_draws` = (Σw)²/Σw², `standard_error` (by target, shaped as its probabilities) and
    `log_evidence_error`. Where no draw agrees with the evidence nothing is known: one case is an error, in a table of
    cases its beliefs and log evidence are NaN. For unlikely evidence there is `engine="importance"`.

    >>> import gramgraph as gg
    >>> answer = gg.datasets.asia().query("lung", {"xray": "yes"}, engine="likelihood_weighting", random_state=0)
    >>> error = answer.details["standard_error"]["lung"]
    >>> exact = gg.datasets.asia().query("lung", {"xray": "yes"})
    >>> bool((abs(answer["lung"].probabilities - exact["lung"].probabilities) < 4 * error).all())
    True
    """

    name = "likelihood_weighting"


class RejectionDrawer(Drawer):
    """Draws that pay no heed to the evidence, and a weight of one or zero."""

    def __init__(self, model: GraphicalModel, cases: Cases, case: int) -> None:
        super().__init__(model, cases, case)
        self.observed = self.order[self.seen[self.order] >= 0]
        self.never = np.full(len(self.seen), -1, np.int64)
        self.unweighted = np.zeros(len(self.seen), np.bool_)
        self.likely = np.flatnonzero(self.weighted)

    def draw(self, states: Array, log_w: FloatArray, rng: np.random.Generator) -> None:
        """Fill states, and log weights 0 for what agrees with the evidence; likelihoods reject at random."""
        rng.random(out=self.uniforms)
        forward(
            self.order, *self.ready[1:], self.low.sizes, self.never, self.unary, self.cases.unary_ptr, self.unweighted,
            self.uniforms, states, log_w,
        )  # fmt: skip
        agrees = (states[:, self.observed] == self.seen[self.observed]).all(axis=1)
        for v in self.likely:
            weights = self.unary[self.cases.unary_ptr[v] : self.cases.unary_ptr[v + 1]]
            top = max(float(weights.max()), 1e-300)
            agrees &= rng.random(len(states)) * top < weights[states[:, v]]
            log_w += np.log(top)
        log_w[~agrees] = -np.inf


class Rejection(WeightedEngine):
    """Draws from the network, of which those that agree with the evidence are kept; p(e) is their share.

    The simplest sampler, and its draws are independent: for evidence that is not rare. `effective_draws` are those
    kept. A likelihood keeps a draw with probability weight/largest weight. Options and answers as of
    `engine="likelihood_weighting"`, which loses no draw.

    >>> import gramgraph as gg
    >>> answer = gg.datasets.asia().query("lung", {"smoke": "yes"}, engine="rejection", random_state=0)
    >>> round(answer["lung"].prob("yes"), 2), round(answer.details["effective_draws"] / answer.details["draws"], 1)
    (0.1, 0.5)
    """

    name = "rejection"

    def drawer(
        self, model: GraphicalModel, cases: Cases, case: int, options: dict[str, Any], rng: np.random.Generator
    ) -> Drawer:
        """Plain forward draws."""
        return RejectionDrawer(model, cases, case)
