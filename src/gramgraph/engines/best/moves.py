"""What improves assignments of one problem, and what bounds them: messages, kicks, penalties, forests, blocks."""

from __future__ import annotations

import time

import numpy as np

from gramgraph._interrupt import check_interrupt
from gramgraph.engines.best.blocks import Blocks, block_move, elimination_order
from gramgraph.engines.best.problem import MapProblem
from gramgraph.typing import FloatArray, IntArray

#: Bits of the largest tables of mini-buckets (first, end, step), cells that they hold at once, growth of their time.
MINI_BITS, MINI_ROOM, GROWTH = (6, 20, 2), 2**25, 5.0
#: Seconds that kicks take in one go; and how many make the first.
SECONDS, KICKS = 0.02, 500
#: Local bests that one walk goes through, for each variable and at least.
WALK, SHORTEST = 8, 1000
#: Parts of a loss that a penalty adds, walk by walk; what is left of penalties in the next walk; how near to the
#: largest loss those that are taken are at least.
RATES, KEEP, NEAR = (1.0, 0.1, 0.5), 0.5, 0.8


class Dual:
    """Messages of sequential reweighted propagation on one problem: a bound that only falls, and assignments."""

    def __init__(self, problem: MapProblem) -> None:
        from gramgraph._numerics.best.trws import ends_of, largest_table

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
        from gramgraph._numerics.best.trws import dual_value

        p, part = self.problem, self.problem.part
        return float(
            dual_value(
                *p.tables, part.active, part.var_ptr, part.var_edge, part.msg_ptr, self.message, self.prefix, self.work
            )
        )

    def sweep(self, number: int = 1) -> float:
        """Forth and back; the bound."""
        from gramgraph._numerics.best.trws import sweep

        p = self.problem
        backwards = self.order[::-1].copy()  # a view would be compiled for once more
        for _ in range(number):
            scratch = (self.message, self.prefix, self.work)
            sweep(*p.tables, *p.graph, self.order, self.first, self.last, *scratch)
            sweep(*p.tables, *p.graph, backwards, self.last, self.first, *scratch)
        self.bound = min(self.bound, self._value())
        return self.bound

    def split(self, seconds: float) -> float:
        """The bound after mini-buckets of more and more cells, for about so many seconds at most."""
        from gramgraph._numerics.best.mini_buckets import mini_bucket_bound

        p, begun = self.problem, time.monotonic()
        order = elimination_order(p)
        for limit in range(*MINI_BITS) if order is not None else ():
            check_interrupt()
            before = time.monotonic()
            found = mini_bucket_bound(*p.tables, *p.graph, self.message, order, float(limit), MINI_ROOM)
            self.bound = min(self.bound, float(found))
            now = time.monotonic()
            if found == np.inf or GROWTH * (now - before) + now - begun > seconds:
                break
        return self.bound

    def beliefs(self) -> FloatArray:
        """What every variable holds at each of its states after its messages."""
        p, part = self.problem, self.problem.part
        sizes = p.sizes[part.scope_idx]
        place = np.repeat(p.cases.unary_ptr[part.scope_idx] - part.msg_ptr[:-1], sizes)
        place += np.arange(int(part.msg_ptr[-1]))
        return p.log_unary + np.bincount(place, weights=self.message, minlength=len(p.log_unary))

    def rule_out(self, worth: float) -> IntArray:
        """Forbid states that no assignment better than `worth` can hold; the variables that still have a choice.

        With v on x the bound is lower by max b_v - b_v(x), where b_v is what v holds after its messages.
        """
        p, at, belief = self.problem, self.problem.cases.unary_ptr, self.beliefs()
        top = np.repeat(np.maximum.reduceat(belief, at[:-1]), p.sizes)
        room = self._value() - worth
        dead = top - belief > room + 1e-6 * max(1.0, abs(worth), room)
        self.alive &= ~dead
        p.log_unary[~self.alive] = p.forbidden
        left = np.add.reduceat(self.alive.astype(np.int64), at[:-1])
        return p.free[left[p.free] > 1]

    def assignment(self, order: IntArray | None = None) -> IntArray:
        """States fixed one after the other by the messages."""
        from gramgraph._numerics.best.trws import fix_in_order

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
        self.blocks = Blocks(problem, rng)
        self.open = problem.free  # variables that still have a choice
        self.n_kicks = max(KICKS, 2 * len(problem.free))

    def forests(self, state: IntArray, rounds: int) -> IntArray:
        """The best of random forests, one after the other."""
        from gramgraph._numerics.best.moves import forest_move, forest_of

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
        from gramgraph._numerics.best.moves import climb_with_kicks

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

    def kicked(self, state: IntArray, most: int) -> IntArray:
        """Kicks for about SECONDS."""
        begun = time.monotonic()
        out = self.kicks(state, self.n_kicks, most)
        took = time.monotonic() - begun
        self.n_kicks = int(self.n_kicks * float(np.clip(SECONDS / max(took, 1e-6), 0.5, 2.0))) + 1
        return out

    def block(self, state: IntArray, bits: float, loose: float) -> tuple[IntArray, bool]:
        """The best of a narrow part; whether that part was everything."""
        among = np.zeros(len(self.problem.sizes), np.bool_)
        among[self.open] = True
        order = self.blocks.choose(bits, loose=loose, among=among)
        if not len(order):
            return state, not len(self.open)
        return block_move(self.problem, order, state), len(order) == len(self.open)

    def fuse(self, state: IntArray, other: IntArray, bits: float) -> IntArray:
        """The best over the variables in which two assignments differ, as many as a narrow part can hold."""
        order = self.blocks.choose(bits, among=state != other)
        return block_move(self.problem, order, state) if len(order) else state

    def thrown(self, state: IntArray, share: float) -> IntArray:
        """A region of about this share of the variables at random states."""
        p = self.problem
        if not len(self.open):
            return state
        out, chosen = state.copy(), self.blocks.region(self.open, max(int(share * len(self.open)), 1))
        out[chosen] = (self.rng.random(len(chosen)) * p.sizes[chosen]).astype(np.int64)
        return out


class Walker:
    """Guided local search that goes on from call to call, in walks that begin at the best of the walk before."""

    def __init__(self, problem: MapProblem, state: IntArray, rng: np.random.Generator) -> None:
        from gramgraph._numerics.best.penalties import tops_of

        self.problem, self.rng = problem, rng
        self.tops: FloatArray = tops_of(problem.part.value_ptr, problem.logs)
        self.weights, self.alone = problem.logs.copy(), problem.log_unary.copy()
        self.times, self.times_alone = np.zeros(len(self.weights)), np.zeros(len(self.alone))
        self.state, self.best = state.copy(), state.copy()
        self.length = max(WALK * len(problem.free), SHORTEST)
        self.made, self.walks, self.pace = 0, 0, 1e-4  # local bests of this walk, walks, seconds a local best

    def walk(self, seconds: float) -> IntArray:
        """The best of about so many seconds."""
        from gramgraph._numerics.best.penalties import guided_search

        p, begun = self.problem, time.monotonic()
        number = int(np.clip(seconds / self.pace, 10, self.length - self.made))
        found = self.state.copy()
        guided_search(
            *p.tables, self.tops, *p.blankets, self.state, found, self.weights, self.alone, self.times,
            self.times_alone, RATES[self.walks % len(RATES)], self.rng.uniform(NEAR, 1.0, size=number),
        )  # fmt: skip
        self.pace = max((time.monotonic() - begun) / number, 1e-7)
        self.made += number
        if p.value(found) > p.value(self.best):
            self.best = found
        if self.made + 10 > self.length:
            self._again()
        return found

    def _again(self) -> None:
        """Another walk, from the best of this one, with penalties that have faded."""
        self.state, self.made, self.walks = self.best.copy(), 0, self.walks + 1
        for weights, true, times in (
            (self.weights, self.problem.logs, self.times),
            (self.alone, self.problem.log_unary, self.times_alone),
        ):
            weights += (1.0 - KEEP) * (true - weights)
            times *= KEEP
