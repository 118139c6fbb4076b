"""Contrastive divergence: expectations from short Gibbs chains that start at the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph.engines.approximate import whole
from gramgraph.exceptions import OptionError
from gramgraph.learn.ascent import Climb, subgradient
from gramgraph.learn.log_linear_design import Design
from gramgraph.learn.pseudo_likelihood import PseudoLikelihood
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.learn.log_linear import Problem

CHAINS = 2000
#: Uniform numbers that are drawn at a time.
NUMBERS = 1 << 20
#: Decay of the running means of the gradient and of its square (Kingma and Ba), and steps after which the rate halves.
FIRST, SECOND, HALVING = 0.9, 0.99, 60.0


def sweep(design: Design, logs: FloatArray, states: Array, sweeps: int, rng: np.random.Generator) -> None:
    """Gibbs sweeps over every column of `states` (variables, chains), in place: O(chains · sweeps · edges)."""
    from gramgraph._numerics.undirected.log_linear import sweep_columns

    free = np.flatnonzero(design.sizes > 1)
    block = max(NUMBERS // max(len(free) * states.shape[1], 1), 1)
    for begin in range(0, sweeps, block):
        uniforms = rng.random((min(block, sweeps - begin), len(free), states.shape[1]))
        sweep_columns(free, *design.blankets, logs, design.sizes, uniforms, states)


def _shares(design: Design, states: Array) -> FloatArray:
    """Relative frequencies of all cells among the chains."""
    from gramgraph._numerics.undirected.log_linear import count_columns

    low = design.lowered
    out = np.zeros(int(low.value_ptr[-1]))
    count_columns(low.scope_ptr, low.scope_idx, low.value_ptr, low.sizes, states, out)
    return np.asarray(out / states.shape[1])


def contrastive_divergence(
    problem: Problem, start: FloatArray, max_iter: int, tol: float, rng: np.random.Generator, report: Any
) -> tuple[Climb, dict[str, Any], float]:
    """Stochastic ascent: f̂ minus the features after `sweeps` Gibbs sweeps from rows of the data.

    With `persistent` the chains go on where they were (stochastic maximum likelihood) instead of starting at the data
    again. Steps are scaled by running means (Adam) and shrink; the answer is the mean of the second half of the steps.
    The trace is the pseudo-likelihood, which chains cannot fool.
    """
    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1 or not tol > 0:
        raise OptionError(f"max_iter is a count from 1 and tol a positive number, not {max_iter!r} and {tol!r}")
    given = problem.options
    sweeps = whole("sweeps", given.get("sweeps", 1))
    chains = min(whole("chains", given.get("chains", CHAINS)), 1 << 20)
    persistent, rate = given.get("persistent", False), given.get("learning_rate", 0.05)
    if not isinstance(persistent, bool):
        raise OptionError(f"persistent is True or False, not {persistent!r}")
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < 10:
        raise OptionError(f"learning_rate is a positive number such as 0.05, not {rate!r}")
    judge = PseudoLikelihood(problem.design, problem.table, problem.counts)
    walk = _Walk(problem, chains, sweeps, persistent, rng)
    weights, trace, last = _ascend(problem, walk, judge, start, max_iter, float(rate), report)
    value, _ = judge(weights)
    rest = float(np.abs(subgradient(weights, last, problem.l1, problem.l2)).max(initial=0.0))
    details = {"sweeps": sweeps, "chains": walk.chains, "persistent": persistent}
    return (
        Climb(weights, tuple(trace), rest <= max(tol, 4.0 / np.sqrt(walk.chains)), rest),
        details,
        (value * problem.table.total),
    )


class _Walk:
    """The chains, and the rows they start from."""

    def __init__(self, problem: Problem, chains: int, sweeps: int, persistent: bool, rng: np.random.Generator) -> None:
        self.design, self.sweeps, self.persistent, self.rng = problem.design, sweeps, persistent, rng
        self.rows = problem.table.matrix  # (variables, rows)
        self.share = None if problem.table.weights is None else problem.table.weights / problem.table.total
        self.chains = chains if self.share is not None else min(chains, self.rows.shape[1])
        self.shares = problem.design.shares(problem.counts)
        self.states = self._draw()

    def _draw(self) -> Array:
        rows = self.rows.shape[1]
        if self.share is None and self.chains == rows:
            return self.rows.copy()
        picked = self.rng.choice(rows, self.chains, replace=self.share is not None, p=self.share, shuffle=False)
        return np.ascontiguousarray(self.rows[:, picked])

    def gradient(self, weights: FloatArray) -> FloatArray:
        """What the data say less what the chains say, for every weight."""
        before = self.shares
        if not self.persistent:
            self.states = self._draw()
            before = _shares(self.design, self.states)
        sweep(self.design, self.design.log_values(weights), self.states, self.sweeps, self.rng)
        return self.design.pull(before - _shares(self.design, self.states))


@interruptible()
def _ascend(
    problem: Problem, walk: _Walk, judge: PseudoLikelihood, start: FloatArray, max_iter: int, rate: float, report: Any
) -> tuple[FloatArray, list[float], FloatArray]:
    """(weights, trace, mean gradient over the second half)."""
    w, mean, square = start.copy(), np.zeros(len(start)), np.zeros(len(start))
    total, total_gradient, kept = np.zeros(len(start)), np.zeros(len(start)), 0
    trace: list[float] = []

    def judged(at: FloatArray) -> float:
        return judge(at)[0] - float(problem.l1 @ np.abs(at)) - 0.5 * float(problem.l2 @ at**2)

    trace.append(judged(w))
    try:
        for step in range(max_iter):
            check_interrupt()
            raw = walk.gradient(w)
            gradient = raw - problem.l2 * w
            mean = FIRST * mean + (1 - FIRST) * gradient
            square = SECOND * square + (1 - SECOND) * gradient**2
            size = rate / (1 + step / HALVING)
            each = size / (np.sqrt(square / (1 - SECOND ** (step + 1))) + 1e-3)
            w = w + each * mean / (1 - FIRST ** (step + 1))
            w = np.sign(w) * np.maximum(np.abs(w) - each * problem.l1, 0.0)
            if 2 * step >= max_iter:
                total, total_gradient, kept = total + w, total_gradient + raw, kept + 1
            trace.append(judged(w))
            if report is not None:
                report(step + 1)
    except KeyboardInterrupt:
        pass
    if not kept:
        return w, trace, np.zeros(len(w))
    return np.where((problem.l1 > 0) & (w == 0), 0.0, total / kept), trace, total_gradient / kept
