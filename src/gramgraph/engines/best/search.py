"""Best assignments of models too wide for an exact answer: bounds from above, moves from below, until they meet."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph.engines.base import PLAIN, Best, Engine, Run
from gramgraph.engines.best.blocks import block_move, whole_order
from gramgraph.engines.best.feasible import allowed_state
from gramgraph.engines.best.moves import Climber, Dual, Walker
from gramgraph.engines.best.problem import Found, MapProblem, all_cases
from gramgraph.engines.best.reduction import reduced
from gramgraph.exceptions import ModelError
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Seconds that a search takes where none are named.
TIME_LIMIT = 10.0
#: Sweeps between two looks at the bound, and the share of the time that they may take before moves begin.
CHUNK, MAX_SWEEPS, SHARE = 5, 2000, 0.3
#: The bound stands still when a chunk lowers it by less than this part of its size.
SLOW = 1e-6
#: Largest tables of block moves, in powers of two, at the beginning and at the end.
FIRST_BITS, LAST_BITS = 10.0, 20.0
#: Parts of the time for mini-buckets, and for backtracking where nothing else avoids the zeros.
SPLIT, ALLOWED = 0.1, 0.3
#: Time of guided local search for each second of other moves.
WALKING = 0.5
#: Cells of exact elimination a second, about, and how many it may have at most (half a gigabyte).
CELLS_PER_SECOND, MOST_CELLS = 5e7, 2.0**27
#: Cells that propagation may go over, and the part of the time that is left which each of its schedules may take.
SWEPT_CELLS, PROPAGATING = 2_000_000, 0.2
#: Rounds without gain after which another assignment is begun, and the part of the time that a round may take.
STALE, LONG = 2, 0.03
#: The best assignment is gone over again and again where no more than this part of the variables still has a choice.
NARROWED = 0.9
#: Seconds for each case that is left after Ctrl-C.
HURRY = 0.01
#: Part of the time without any progress after which a search ends.
PATIENCE = 0.6


def search(
    problem: MapProblem, *, time_limit: float, gap: float, rng: np.random.Generator, feasible: bool = False
) -> Found:
    """The portfolio: a cut where one is exact; a smaller problem with the same best, elimination where it is narrow;
    else bounds and their assignments, propagation, then moves to the end.

    `feasible`: any assignment without zeros will do. A bound of minus infinity says that there is none.
    """
    from gramgraph.engines.best.graph_cut import minimum_cut

    start = time.monotonic()
    cut = minimum_cut(problem)
    if cut is not None:
        return problem.found(cut[0], problem.value(cut[0]) + cut[1])
    smaller = reduced(problem)
    if smaller is None:
        return Found(problem.start, -np.inf, -np.inf)
    small, steps = smaller
    state, bound, stopped = _solve(small, start, time_limit, gap, rng, feasible)
    if bound == -np.inf:
        return Found(problem.start, -np.inf, -np.inf)
    for step in reversed(steps):
        state = step.lift(state)
    return problem.found(state, bound + small.constant - problem.constant)._replace(stopped=stopped)


def _solve(
    problem: MapProblem, start: float, time_limit: float, gap: float, rng: np.random.Generator, feasible: bool
) -> tuple[IntArray, float, bool]:
    """An assignment, a bound on the sum of terms, and whether Ctrl-C ended the search."""
    order = whole_order(problem, min(CELLS_PER_SECOND * SHARE * time_limit, MOST_CELLS))
    if order is not None:
        state = block_move(problem, order, problem.start)
        if problem.log_prob(state) == -np.inf:  # the best has a zero: so has every other
            return state, -np.inf, False
        return state, problem.value(state), False
    dual, climber = Dual(problem), Climber(problem, rng)
    best = climber.kicks(dual.assignment(), 0, 1)
    worth = problem.value(best)
    tolerance = max(gap, _tolerance(problem, best))

    def offer(state: IntArray) -> bool:
        nonlocal best, worth
        value = problem.value(state)
        if value > worth + 1e-10:
            best, worth = state, value
            return True
        return False

    def closed() -> bool:
        return dual.bound - worth <= tolerance or (feasible and problem.log_prob(best) > -np.inf)

    try:
        _lower(dual, climber, offer, closed, start + SHARE * time_limit)
        if problem.log_prob(best) == -np.inf:
            allowed, impossible = allowed_state(problem, dual.beliefs(), ALLOWED * time_limit, rng)
            if impossible:
                return best, -np.inf, False
            if allowed is not None:
                offer(climber.kicks(allowed, 0, 1))
        if not closed() and not feasible:
            dual.split(SPLIT * time_limit)
        if not closed():
            for state in _propagated(problem, PROPAGATING * max(start + time_limit - time.monotonic(), 0.0)):
                check_interrupt()
                offer(climber.kicks(state, 0, 1))
            _move(dual, climber, offer, closed, lambda: best, start, time_limit)
    except KeyboardInterrupt:
        return best, dual.bound, True
    return best, dual.bound, False


def _tolerance(problem: MapProblem, state: IntArray) -> float:
    """What rounding can make of a bound that is attained."""
    return 1e-9 * max(1.0, abs(problem.value(state)), abs(problem.value(state) + problem.constant))


def _lower(dual: Dual, climber: Climber, offer: Any, closed: Any, until: float) -> None:
    """Sweeps while they lower the bound and there is time; assignments on the way."""
    last, slow = dual.bound, 0
    for number in range(MAX_SWEEPS // CHUNK):
        check_interrupt()
        dual.sweep(CHUNK)
        if number < 10 or number % 5 == 0:
            offer(climber.forests(dual.assignment(), 2))
            offer(dual.assignment(dual.order[::-1].copy()))
        fell, last = last - dual.bound, dual.bound
        slow = slow + 1 if fell < SLOW * max(abs(dual.bound), 1.0) else 0
        if closed() or slow >= 5 or time.monotonic() > until:
            break
    offer(climber.forests(dual.assignment(), 3))


def _propagated(problem: MapProblem, seconds: float) -> list[IntArray]:
    """Assignments by max-product propagation, each schedule for about so many seconds."""
    from gramgraph.engines.best.max_product import BOTH_CELLS, MAX_ITER, run_once
    from gramgraph.engines.slices import RESIDUAL, SEQUENTIAL

    schedules = (SEQUENTIAL, RESIDUAL) if len(problem.logs) <= BOTH_CELLS // 10 else (SEQUENTIAL,)
    sweeps = int(np.clip(SWEPT_CELLS // max(len(problem.logs), 1), 2, MAX_ITER))
    cases, part, observed = problem.cases, problem.part, problem.observed
    found = [run_once(cases, part, observed, schedule, sweeps, seconds) for schedule in schedules]
    return [state for state in found if state is not None]


def _move(dual: Dual, climber: Climber, offer: Any, closed: Any, best: Any, start: float, time_limit: float) -> None:
    """Rounds on the best assignment and on others, which are fused with it, until the time is over."""
    problem, rng, end = climber.problem, climber.rng, start + time_limit
    bits, number, stale, moved = FIRST_BITS, 0, 0, time.monotonic()
    current, worth, on_best = best(), problem.value(best()), True
    walker = Walker(problem, best(), rng)
    while not closed():
        check_interrupt()
        number += 1
        if number % 4 == 1:
            dual.sweep(CHUNK)
            climber.open = dual.rule_out(problem.value(best()))
        begun = time.monotonic()
        state, everything = _round(climber, current, number, bits)
        took, value = time.monotonic() - begun, problem.value(state)
        stale = 0 if value > worth + 1e-10 else stale + 1
        current, worth = state, value
        better = offer(state)
        walked = walker.walk(min(WALKING * took, max(end - time.monotonic(), 0.0)))
        better |= offer(climber.fuse(best(), walked, bits)) | offer(walked)
        if everything and on_best:  # nothing with a choice was left out: nothing is better
            dual.bound = min(dual.bound, problem.value(best()))
        if stale:
            bits = min(bits + 1.0, LAST_BITS) if took < LONG * time_limit else max(bits - 1.0, FIRST_BITS)
        if stale >= STALE:
            better |= offer(climber.fuse(best(), current, bits))
            if number % 3:
                current = climber.thrown(best(), float(rng.choice([0.05, 0.15, 0.4])))
            else:
                dual.sweep(CHUNK)
                current = dual.assignment(rng.permutation(dual.order))
            worth, stale, on_best = -np.inf, 0, False
            if number % 2 and len(climber.open) < NARROWED * len(problem.free):  # another block of what is still open
                current, worth, on_best = best(), problem.value(best()), True
        now = time.monotonic()
        moved = now if better else moved
        if now > end or (now - moved > PATIENCE * time_limit and problem.log_prob(best()) > -np.inf):
            break


def _round(climber: Climber, state: IntArray, number: int, bits: float) -> tuple[IntArray, bool]:
    """Kicks, forests and a block, one after the other; whether the block was everything."""
    state = climber.kicked(state, 4 + number * 4 % 28)
    return climber.block(climber.forests(state, 3), bits, (0.0, 0.02, 0.1)[number % 3])


def _checked(model: GraphicalModel, question: Question, solve: Any) -> tuple[IntArray, FloatArray, FloatArray]:
    codes, best, bound = all_cases(model, question, solve)
    lost = np.flatnonzero((codes >= 0).all(axis=1) & np.isneginf(best))
    if len(lost) and codes.shape[1]:
        raise ModelError(
            "the search found no assignment that the zeros of the tables allow; use an exact engine or more time: "
            "time_limit=…" + (f" (case {lost[0]})" if question.batched else "")
        )
    return codes, best, bound


class MapSearch(Engine):
    """Sequential reweighted messages for the bound; their assignments, kicks, forests and wide blocks for the value.

    Ends when value and bound meet (the assignment is then proved best), when nothing got better for more than half of
    the time, after `time_limit` seconds, or at Ctrl-C, with the best so far. Binary models whose pairs can be made
    attractive are solved by one cut; before anything else states that zeros rule out are left away, variables with few
    neighbors are maximized away, and what is left is eliminated exactly where that is narrow.
    """

    name = "search"

    @interruptible()
    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """(states, log p, bounds) of every case."""
        limit, rng, gap = run.seconds or TIME_LIMIT, np.random.default_rng(run.random_state or 0), run.gap

        def solve(problem: MapProblem) -> Found:
            nonlocal limit
            try:
                found = search(problem, time_limit=limit, gap=gap, rng=rng)
            except KeyboardInterrupt:  # before there was anything to return
                found = _modes(problem, rng)._replace(stopped=True)
            limit = HURRY if found.stopped else limit  # the other cases are answered as well, but at once
            return found

        return Best(*_checked(model, question, solve))


class TreeReweightedSequential(Engine):
    """TRW-S: sweeps until the bound stands still; the assignment that its messages give, improved by single changes."""

    name = "trws"

    @interruptible()
    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """(states, log p, bounds) of every case."""
        limit, rng, gap = run.seconds or TIME_LIMIT, np.random.default_rng(run.random_state or 0), run.gap

        def solve(problem: MapProblem) -> Found:
            dual, climber = Dual(problem), Climber(problem, rng)
            found: list[IntArray] = [dual.assignment()]

            def offer(state: Array) -> None:
                if problem.value(state) > problem.value(found[0]):
                    found[0] = state

            def closed() -> bool:
                return dual.bound - problem.value(found[0]) <= max(gap, _tolerance(problem, found[0]))

            with suppress(KeyboardInterrupt):
                _lower(dual, climber, offer, closed, time.monotonic() + limit)
            return problem.found(climber.kicks(found[0], 0, 1), dual.bound)

        return Best(*_checked(model, question, solve))


class IteratedModes(Engine):
    """Iterated conditional modes from the best states of the single terms: the baseline. It has no bound."""

    name = "icm"

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """(states, log p, bounds) of every case."""

        return Best(
            *_checked(model, question, lambda problem: _modes(problem, np.random.default_rng(run.random_state or 0)))
        )


def _modes(problem: MapProblem, rng: np.random.Generator) -> Found:
    """Each variable at the best state of its single terms, then single changes while they gain."""
    state, at = problem.start.copy(), problem.cases.unary_ptr
    for v in problem.free:
        state[v] = int(problem.log_unary[at[v] : at[v + 1]].argmax())
    return problem.found(Climber(problem, rng).kicks(state, 0, 1))
