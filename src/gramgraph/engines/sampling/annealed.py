"""Annealed importance sampling: log p(evidence), or log Z, with a standard error."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph._numerics.sampling.draws import forward, tally
from gramgraph.answers import Answer
from gramgraph.compile.budget import check_memory
from gramgraph.compile.lower import lower
from gramgraph.engines.approximate import ApproximatePlan, Cases, whole
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.sampling.blankets import Compiled, compile_case, compile_rows
from gramgraph.engines.sampling.chains import impossible_case
from gramgraph.engines.sampling.importance import sampler
from gramgraph.engines.sampling.sampled import Total, Wants, sampled_answer
from gramgraph.engines.slices import Sliced, slice_case
from gramgraph.exceptions import OptionError
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

LEVELS, PARTICLES, FEW_PARTICLES = 64, 1000, 20
#: Updates of one variable that the default number of particles may take, and cells of states held at a time.
UPDATES, STATES = 400_000_000, 1 << 25
#: What stands for a zero before the last level.
CROSSED = 1e-6


class Bridge(NamedTuple):
    """From a distribution that is drawn from directly to the wanted one."""

    part: Sliced
    levels: tuple[Compiled, ...]
    log_base: float  # log of the sum of products at the first level


class Annealed(Engine):
    """Particles start from an easy distribution and are led to the posterior through `n_levels` powers of the factors.

    The easy distribution is the network without what was observed (its evidence is raised to the powers), and for
    undirected models the uniform one (all factors are). After each level a Gibbs sweep follows, and what the level
    changed is the particle's weight: their mean is an unbiased estimate of p(evidence) or Z. Particles are independent,
    so the errors are those of weighted draws: `details` tell `log_evidence_error`, `draws` (particles),
    `effective_draws` and `standard_error`. `budget` is the number of particles, or a time. Few effective draws ask for
    more levels. Cost: O(particles × n_levels × variables).

    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(3, 3, coupling=0.5)
    >>> answer = net.query("x0_0", engine="annealed", random_state=0)
    >>> abs(answer.log_evidence - net.log_evidence()) < 4 * answer.details["log_evidence_error"]
    True
    """

    name = "annealed"
    options = ("n_levels",)

    def plan(self, model: GraphicalModel, question: Question) -> ApproximatePlan:
        """The tables that are read."""
        return ApproximatePlan.of(self.name, lower(model, structured=False))

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """Estimates for every case, with their errors in `details`."""
        check_memory(run.memory)
        n_levels = whole("n_levels", self.given.get("n_levels", LEVELS))
        rng = run.generator
        cases = Cases.of(model, question, structured=False)
        wants = Wants.of(cases.low.sizes, (*((v,) for v in question.targets), *question.joints))
        n, each = question.n_cases, max(int(cases.active.sum()) * n_levels, 1)
        default = int(np.clip(UPDATES // each, FEW_PARTICLES, PARTICLES // (10 if question.batched else 1)))
        draws, seconds = run.draws or default, run.seconds
        p, error = np.full((n, wants.cells), np.nan), np.full((n, wants.cells), np.nan)
        log_z, log_error, effective, made = np.full(n, -np.inf), np.full(n, np.nan), np.zeros(n), np.zeros(n, np.int64)
        for case in range(n):
            part = slice_case(cases, case)
            if impossible_case(cases, part):
                continue
            bridge = _bridge(cases, part, case, n_levels)
            total = _anneal(model, cases, case, bridge, wants, draws, None if seconds is None else seconds / n, rng)
            made[case], log_z[case] = total.draws, np.nan
            if total.weight > 0:
                p[case], error[case], effective[case] = total.estimates()
                mean, log_error[case] = total.log_mean()
                log_z[case] = mean + bridge.log_base + part.constant + cases.low.log_scale
        if not question.batched and np.isnan(log_z[0]):
            raise OptionError(
                f"none of {made[0]:,} particles reached a possible state: the evidence is impossible or very "
                'improbable. Raise budget=…, or use engine="bp" or an exact engine'
            )
        details = {"draws": made, "effective_draws": effective, "log_evidence_error": log_error, "n_levels": n_levels}
        return sampled_answer(model, question, wants, p, error, log_z, engine=self.name, details=details)


def _bridge(cases: Cases, part: Sliced, case: int, n_levels: int) -> Bridge:
    """The levels: what is raised to powers, and what stays."""
    from gramgraph._numerics.messages.loopy import slice_factors

    compiled, low = compile_case(cases, part), cases.low
    seen = cases.states[case]
    if low.parents is None:
        stays = np.zeros(len(part.values), np.bool_)
        log_base = float(np.log(low.sizes[compiled.variables]).sum())
    else:
        drawn = cases.keep & (seen[low.owner] < 0)
        log_base = -float(slice_factors(*cases.arrays, drawn, seen)[4])
        stays = np.repeat(_left(cases, drawn, seen), np.diff(part.value_ptr))
    powers = np.linspace(0.0, 1.0, n_levels + 1)
    levels = []
    for power in powers[:-1]:
        values = np.where(stays, part.values, np.maximum(part.values, CROSSED) ** power)
        levels.append(compiled._replace(values=values, unary=np.maximum(part.unary, CROSSED) ** power))
    return Bridge(part, (*levels, compiled), log_base)


def _left(cases: Cases, drawn: Array, seen: Array) -> Array:
    """For every factor of the sliced case, in its order, whether it belongs to `drawn`."""
    low = cases.low
    free = np.add.reduceat(seen[low.scope_idx] < 0, low.scope_ptr[:-1]) if low.n_factors else np.zeros(0)
    return np.asarray(drawn[cases.keep & (free > 0)])


@interruptible()
def _anneal(
    model: GraphicalModel,
    cases: Cases,
    case: int,
    bridge: Bridge,
    wants: Wants,
    draws: int,
    seconds: float | None,
    rng: np.random.Generator,
) -> Total:
    """Particles, as many at a time as fit, until there are enough, or the time is over, or Ctrl-C comes."""
    total = Total(wants.cells)
    end = None if seconds is None else monotonic() + seconds
    most = max(STATES // max(len(cases.low.sizes), 1), 1)
    try:
        while total.draws < draws or end is not None:
            check_interrupt()
            size = min(most, FEW_PARTICLES if end is not None else draws - total.draws)
            states, log_w = _particles(model, cases, case, bridge, size, rng)
            w = total.add(log_w)
            if w is not None:
                tally(states, w, *wants[:4], False, total.sums, total.squares)
            if end is not None and monotonic() >= end:
                break
    except KeyboardInterrupt:
        if not total.draws:
            raise
    return total


def _particles(
    model: GraphicalModel, cases: Cases, case: int, bridge: Bridge, size: int, rng: np.random.Generator
) -> tuple[Array, FloatArray]:
    """(states, log weights) of `size` particles."""
    from gramgraph._numerics.sampling.chains import gibbs_many, total_logs

    states = _start(model, cases, case, size, rng)
    part, c = bridge.part, bridge.levels[-1]
    graph = part.scope_ptr, part.scope_idx, part.value_ptr
    log_w, before, after = np.zeros(size), np.empty(size), np.empty(size)
    weights = np.empty(int(c.sizes.max(initial=1)))
    for k in range(1, len(bridge.levels)):
        for level, out in ((bridge.levels[k - 1], before), (bridge.levels[k], after)):
            total_logs(*graph, level.values, c.sizes, c.variables, level.unary, c.unary_ptr, states, out)
        log_w += after - before
        if k + 1 < len(bridge.levels):
            rows = compile_rows(bridge.levels[k])
            gibbs_many(*bridge.levels[k], *rows, rng.random((size, len(c.variables))), states, weights)
    return states, log_w


def _start(model: GraphicalModel, cases: Cases, case: int, size: int, rng: np.random.Generator) -> Array:
    """Draws of the first level."""
    seen, sizes = cases.states[case], cases.low.sizes
    if cases.low.parents is None:
        drawn = np.where(seen >= 0, seen, rng.random((size, len(sizes))) * sizes)
        return np.asarray(drawn.astype(np.int32))
    ready = sampler(model)
    order = ready.order[cases.active[ready.order]]
    states, log_w = np.zeros((size, len(sizes)), np.int32), np.empty(size)
    unary, never = np.ones(int(cases.unary_ptr[-1])), np.zeros(len(sizes), np.bool_)
    forward(
        order, *ready[1:], sizes, seen, unary, cases.unary_ptr, never, rng.random((size, len(order))), states, log_w
    )
    return states
