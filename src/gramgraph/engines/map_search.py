"""Best assignments of models too wide for an exact answer: bounds from above, moves from below, until they meet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.compile.question import Question
from gramgraph.engines.map_blocks import block_move, choose_block, neighbor_sets
from gramgraph.engines.map_problem import FORBIDDEN, Found, MapProblem, all_cases
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["IteratedModes", "MapSearch", "TreeReweightedSequential"]

#: Seconds that a search takes where none are named.
TIME_LIMIT = 10.0
#: Sweeps between two looks at the bound, and the share of the time that they may take before moves begin.
CHUNK, MAX_SWEEPS, SHARE = 5, 2000, 0.3
#: The bound stands still when a chunk lowers it by less than this part of the gap.
SLOW = 1e-4
#: Largest tables of block moves, in powers of two, at the beginning and at the end.
FIRST_BITS, LAST_BITS = 10.0, 20.0
KICKS, KICK_SECONDS = 500, 0.1
#: Cells that propagation may go over.
SWEPT_CELLS = 2_000_000
#: Rounds without gain after which another assignment is begun, and the part of the time that a round may take.
STALE, LONG = 2, 0.03
#: The best assignment is gone over again and again where no more than this part of the variables still has a choice.
NARROWED = 0.9
#: Part of the time without any progress after which a search ends.
PATIENCE = 0.6


class Dual:
    """Messages of sequential reweighted propagation on one problem: a bound that only falls, and assignments."""

    def __init__(self, problem: MapProblem) -> None:
        from gramgraph._numerics.trws import ends_of, largest_table

        part = problem.part
        self.problem = problem
        self.order = problem.free
        rank = np.arange(len(problem.sizes))
        self.first, self.last = ends_of(part.scope_ptr, part.scope_idx, rank)
        self.message = np.zeros(int(part.msg_ptr[-1]))
        cells = int(largest_table(part.value_ptr))
        self.prefix, self.work = np.empty(cells + 1), np.empty(cells + 1)
        self.alive = np.ones(len(problem.log_unary), np.bool_)
        self.bound = self._value()

    def _value(self) -> float:
        from gramgraph._numerics.trws import dual_value

        p, part = self.problem, self.problem.part
        return float(
            dual_value(
                *p.tables, part.active, part.var_ptr, part.var_edge, part.msg_ptr, self.message, self.prefix, self.work
            )
        )

    def sweep(self, number: int = 1) -> float:
        """Forth and back; the bound."""
        from gramgraph._numerics.trws import sweep

        p = self.problem
        for _ in range(number):
            scratch = (self.message, self.prefix, self.work)
            sweep(*p.tables, *p.graph, self.order, self.first, self.last, *scratch)
            sweep(*p.tables, *p.graph, self.order[::-1], self.last, self.first, *scratch)
        self.bound = min(self.bound, self._value())
        return self.bound

    def rule_out(self, worth: float) -> IntArray:
        """Forbid states that no assignment better than `worth` can hold; the variables that still have a choice.

        With v on x the bound is lower by max b_v - b_v(x), where b_v is what v holds after its messages.
        """
        p, at = self.problem, self.problem.cases.unary_ptr
        part = p.part
        sizes = p.sizes[part.scope_idx]
        place = np.repeat(at[part.scope_idx] - part.msg_ptr[:-1], sizes) + np.arange(int(part.msg_ptr[-1]))
        belief = p.log_unary + np.bincount(place, weights=self.message, minlength=len(p.log_unary))
        top = np.repeat(np.maximum.reduceat(belief, at[:-1]), p.sizes)
        room = self._value() - worth
        dead = top - belief > room + 1e-6 * max(1.0, abs(worth), room)
        self.alive &= ~dead
        p.log_unary[~self.alive] = FORBIDDEN
        left = np.add.reduceat(self.alive.astype(np.int64), at[:-1])
        return p.free[left[p.free] > 1]

    def assignment(self, order: IntArray | None = None) -> IntArray:
        """States fixed one after the other by the messages."""
        from gramgraph._numerics.trws import fix_in_order

        p = self.problem
        state = p.start.copy()
        fix_in_order(
            *p.tables, *p.graph, self.order if order is None else order, self.message.copy(), self.prefix, self.work,
            state,
        )  # fmt: skip
        return state


class Climber:
    """Moves on one problem that never make an assignment worse."""

    def __init__(self, problem: MapProblem, rng: np.random.Generator) -> None:
        self.problem, self.rng = problem, rng
        self.total, self.score = np.zeros(len(problem.log_unary)), np.zeros(len(problem.log_unary))
        self.neighbors = neighbor_sets(problem)
        self.open = problem.free  # variables that still have a choice
        self.n_kicks = max(KICKS, 2 * len(problem.free))

    def forests(self, state: IntArray, rounds: int) -> IntArray:
        """The best of random forests, one after the other."""
        from gramgraph._numerics.map_moves import forest_move, forest_of

        p, part = self.problem, self.problem.part
        out, inside = state.copy(), np.zeros(len(p.sizes), np.bool_)
        graph = p.graph[:3]
        for _ in range(rounds):
            order = self.rng.permutation(self.open)
            forest_of(part.scope_ptr, part.scope_idx, *graph, order, inside)
            forest_move(*p.tables, *graph, inside, out, self.total)
        return out

    def kicks(self, state: IntArray, number: int, most: int) -> IntArray:
        """Single changes, and kicks of up to `most` neighboring variables."""
        from gramgraph._numerics.map_moves import climb_with_kicks

        p = self.problem
        out = state.copy()
        most = max(min(most, len(self.open)), 1)
        numbers = self.rng.random(number * (3 + most))
        if not len(self.open):
            return out
        climb_with_kicks(
            self.open, *p.blankets[1:], p.logs, p.sizes, p.log_unary, p.cases.unary_ptr, out, self.score, numbers, most
        )
        return out

    def block(self, state: IntArray, bits: float, loose: float) -> tuple[IntArray, bool]:
        """The best of a narrow part; whether that part was everything."""
        among = np.zeros(len(self.problem.sizes), np.bool_)
        among[self.open] = True
        order = choose_block(self.problem, self.neighbors, bits, self.rng, loose, among)
        if not order:
            return state, not len(self.open)
        return block_move(self.problem, order, state), len(order) == len(self.open)

    def fuse(self, state: IntArray, other: IntArray, bits: float) -> IntArray:
        """The best over the variables in which two assignments differ, as many as a narrow part can hold."""
        order = choose_block(self.problem, self.neighbors, bits, self.rng, among=state != other)
        return block_move(self.problem, order, state) if order else state

    def thrown(self, state: IntArray, share: float) -> IntArray:
        """A region of about this share of the variables at random states."""
        p = self.problem
        if not len(self.open):
            return state
        out, want = state.copy(), max(int(share * len(self.open)), 1)
        line = [int(self.rng.choice(self.open))]
        allowed = set(self.open.tolist())
        seen = set(line)
        for v in line:
            if len(line) >= want:
                break
            fresh = sorted((self.neighbors[v] & allowed) - seen)
            seen.update(fresh)
            line.extend(fresh)
        chosen = np.array(line[:want])
        out[chosen] = (self.rng.random(len(chosen)) * p.sizes[chosen]).astype(np.int64)
        return out


def search(
    problem: MapProblem, *, time_limit: float, gap: float, rng: np.random.Generator, feasible: bool = False
) -> Found:
    """The portfolio: a cut where one is exact, bounds and their assignments, propagation, then moves to the end.

    `feasible`: any assignment without zeros will do.
    """
    from gramgraph.engines.graph_cut import minimum_cut

    start = time.monotonic()
    cut = minimum_cut(problem)
    if cut is not None:
        return problem.found(cut[0], problem.value(cut[0]) + cut[1])
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

    _lower(dual, climber, offer, closed, start + SHARE * time_limit)
    if not closed():
        for state in _propagated(problem):
            offer(climber.kicks(state, 0, 1))
        _move(dual, climber, offer, closed, lambda: best, start, time_limit)
    return problem.found(best, dual.bound)


def _tolerance(problem: MapProblem, state: IntArray) -> float:
    """What rounding can make of a bound that is attained."""
    return 1e-9 * max(1.0, abs(problem.value(state)), abs(problem.value(state) + problem.constant))


def _lower(dual: Dual, climber: Climber, offer: Any, closed: Any, until: float) -> None:
    """Sweeps while they lower the bound and there is time; assignments on the way."""
    last, slow = dual.bound, 0
    for number in range(MAX_SWEEPS // CHUNK):
        dual.sweep(CHUNK)
        if number < 10 or number % 5 == 0:
            offer(climber.forests(dual.assignment(), 2))
            offer(dual.assignment(dual.order[::-1]))
        fell, last = last - dual.bound, dual.bound
        slow = slow + 1 if fell < SLOW * max(abs(dual.bound), 1.0) * 0.01 else 0
        if closed() or slow >= 5 or time.monotonic() > until:
            break
    offer(climber.forests(dual.assignment(), 3))


def _propagated(problem: MapProblem) -> list[IntArray]:
    """Assignments by max-product propagation, where the model is small enough to run it."""
    from gramgraph.engines.belief_propagation import RESIDUAL, SEQUENTIAL
    from gramgraph.engines.max_product import BOTH_CELLS, MAX_ITER, run_once

    schedules = (SEQUENTIAL, RESIDUAL) if len(problem.logs) <= BOTH_CELLS // 10 else (SEQUENTIAL,)
    sweeps = int(np.clip(SWEPT_CELLS // max(len(problem.logs), 1), 2, MAX_ITER))
    found = [run_once(problem.cases, problem.part, problem.observed, schedule, sweeps) for schedule in schedules]
    return [state for state in found if state is not None]


def _move(dual: Dual, climber: Climber, offer: Any, closed: Any, best: Any, start: float, time_limit: float) -> None:
    """Rounds on the best assignment and on others, which are fused with it, until the time is over."""
    problem, rng, end = climber.problem, climber.rng, start + time_limit
    bits, number, stale, moved = FIRST_BITS, 0, 0, time.monotonic()
    current, worth, on_best = best(), problem.value(best()), True
    while not closed():
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
        if now > end or now - moved > PATIENCE * time_limit:
            break


def _round(climber: Climber, state: IntArray, number: int, bits: float) -> tuple[IntArray, bool]:
    """Kicks, forests and a block, one after the other; whether the block was everything."""
    begun = time.monotonic()
    state = climber.kicks(state, climber.n_kicks, 4 + number * 4 % 28)
    took = time.monotonic() - begun
    climber.n_kicks = int(climber.n_kicks * float(np.clip(KICK_SECONDS / max(took, 1e-6), 0.5, 2.0))) + 1
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


class MapSearch:
    """Sequential reweighted messages for the bound; their assignments, kicks, forests and wide blocks for the value.

    Ends when value and bound meet (the assignment is then proved best), when nothing got better for more than half of
    the time, or after `time_limit` seconds. Binary models whose pairs can be made attractive are solved by one cut.
    """

    name = "search"

    def best(
        self,
        model: GraphicalModel,
        question: Question,
        *,
        time_limit: float | None = None,
        gap: float = 0.0,
        random_state: Any = 0,
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """(states, log p, bounds) of every case."""
        limit = TIME_LIMIT if time_limit is None else float(time_limit)
        rng = np.random.default_rng(random_state)
        return _checked(model, question, lambda problem: search(problem, time_limit=limit, gap=gap, rng=rng))


class TreeReweightedSequential:
    """TRW-S: sweeps until the bound stands still; the assignment that its messages give, improved by single changes."""

    name = "trws"

    def best(
        self,
        model: GraphicalModel,
        question: Question,
        *,
        time_limit: float | None = None,
        gap: float = 0.0,
        random_state: Any = 0,
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """(states, log p, bounds) of every case."""
        limit = TIME_LIMIT if time_limit is None else float(time_limit)
        rng = np.random.default_rng(random_state)

        def solve(problem: MapProblem) -> Found:
            dual, climber = Dual(problem), Climber(problem, rng)
            found: list[IntArray] = [dual.assignment()]

            def offer(state: Array) -> None:
                if problem.value(state) > problem.value(found[0]):
                    found[0] = state

            def closed() -> bool:
                return dual.bound - problem.value(found[0]) <= max(gap, _tolerance(problem, found[0]))

            _lower(dual, climber, offer, closed, time.monotonic() + limit)
            return problem.found(climber.kicks(found[0], 0, 1), dual.bound)

        return _checked(model, question, solve)


class IteratedModes:
    """Iterated conditional modes from the best states of the single terms: the baseline. It has no bound."""

    name = "icm"

    def best(
        self,
        model: GraphicalModel,
        question: Question,
        *,
        time_limit: float | None = None,
        gap: float = 0.0,
        random_state: Any = 0,
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """(states, log p, bounds) of every case."""

        def solve(problem: MapProblem) -> Found:
            state, at = problem.start.copy(), problem.cases.unary_ptr
            for v in problem.free:
                state[v] = int(problem.log_unary[at[v] : at[v + 1]].argmax())
            return problem.found(Climber(problem, np.random.default_rng(random_state)).kicks(state, 0, 1))

        return _checked(model, question, solve)
