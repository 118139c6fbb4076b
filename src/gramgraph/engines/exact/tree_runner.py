"""A compiled tree with its buffers: numbers in, numbers out."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gramgraph._numerics.tree.columns import P_WORK
from gramgraph._progress import Report
from gramgraph.compile.cache import MemoryPool
from gramgraph.compile.tree import Program, TreePlan
from gramgraph.typing import FloatArray, IntArray

#: Eight cases side by side up to this many cells a clique on average: beyond, the tables that work together leave the
#: processor's cache, and one at a time is quicker. And while their buffers stay below so many numbers a case: eight
#: times 32 MB.
LANE_CELLS, LANE_NUMBERS = 20_000, 4_000_000
#: Where the buffers of eight cases hold more numbers than this, tables up to so many cells are made anew on the way
#: down, in one place, instead of being kept: that takes a fraction of the memory and, by the cache, no more time.
ALL_NUMBERS, IN_TURN_CELLS = 1_000_000, 150_000
#: Buffers up to this many numbers stay with their tree; larger ones go back to the model's pool.
OWN_MEMORY = 1 << 17
NO_WEIGHTS = np.zeros((1, 1))
#: So many columns are copied one by one before NumPy has read which ones they are.
FEW_COLUMNS = 4
#: From this many cases on it pays to look for equal ones, which share one answer.
LOOK_FOR_EQUAL = 16
#: Seconds of work below which one thread does it all; and copied numbers from which on several pay.
WORTH_THREADS, WORTH_COPIES = 0.005, 2_000_000
#: Blocks for each thread: what one of them is late by, another takes over.
BLOCKS = 4


class TreeRunner:
    """Runs one plan on any number of cases, from any number of threads."""

    __slots__ = (
        "_in_turn", "_own", "_pool", "_sliced", "_wide", "loops", "memory_size", "no_weights", "plan", "program",
    )  # fmt: skip

    def __init__(self, plan: TreePlan, pool: MemoryPool, program: Program | None = None) -> None:
        import gramgraph._numerics.tree.runner as loops

        self.loops = loops  # the module, whose functions are others when they have been compiled
        self.plan = plan
        self._pool = pool
        self.program = plan.program if program is None else program
        self._in_turn: TreeRunner | None = None
        self._own: dict[int, list[FloatArray]] = {1: [], 8: []}
        self.memory_size = sum(self.program.section(P_WORK).tolist())
        self.no_weights = np.full(len(plan.masked), -1, np.int64)
        self._sliced = np.array(plan.sliced, np.int64)
        self._wide = plan.cells > LANE_CELLS * max(plan.n_cliques, 1)

    def _way_of(self, cases: int) -> tuple[int, TreeRunner]:
        """How many cases to run side by side, and the runner: one whose tables take turns where all are too many."""
        if cases < 4 or self._wide:
            return 1, self
        if 8 * self.memory_size <= ALL_NUMBERS:
            return 8, self
        if self._in_turn is None:
            self._in_turn = TreeRunner(self.plan, self._pool, self.program.in_turn(IN_TURN_CELLS))
        return (8, self._in_turn) if self._in_turn.memory_size <= LANE_NUMBERS else (1, self)

    def borrow(self, lanes: int) -> FloatArray:
        """Memory for the runner's buffers."""
        size = self.memory_size * lanes
        if size > OWN_MEMORY:
            return self._pool.borrow(size)
        try:
            return self._own[lanes].pop()
        except IndexError:
            return np.empty(size)

    def give_back(self, lanes: int, memory: FloatArray) -> None:
        """Return borrowed memory."""
        if self.memory_size * lanes > OWN_MEMORY:
            self._pool.give_back(memory)
        elif len(self._own[lanes]) < 8:
            self._own[lanes].append(memory)

    def sums(
        self,
        codes: IntArray,  # (cases, columns): sliced variables first, in the plan's order
        mask_columns: IntArray,  # (masked,) column of each masked variable, or -1
        out: FloatArray,  # (cases, output columns)
        log_z: FloatArray,  # (cases,)
        *,
        weights: FloatArray = NO_WEIGHTS,
        weight_column: IntArray | None = None,
        n_jobs: int = 1,
        report: Report | None = None,
    ) -> None:
        """Marginals and log p(e) of every case; equal cases are answered once."""
        from gramgraph._numerics.tree.runner import sums

        equal = _equal_cases(codes, weights)
        if equal is not None:
            first, kind = equal
            each, each_z = np.empty((len(first), out.shape[1])), np.empty(len(first))
            self.sums(
                codes[first], mask_columns, each, each_z,
                weights=weights, weight_column=weight_column, n_jobs=n_jobs, report=_stretched(report, first, kind),
            )  # fmt: skip
            _take_rows(each, kind, out, n_jobs)
            np.take(each_z, kind, out=log_z)
            return
        lanes, runner = self._way_of(len(codes))
        columns = self.no_weights if weight_column is None else weight_column
        p, values = runner.program, self.plan.lowered.values

        def block(first: int, stop: int) -> None:
            memory = runner.borrow(lanes)
            sums(
                lanes, first, stop, p.ints, p.static, values, codes, mask_columns, columns, weights, p.log_scale,
                memory, out, log_z,
            )  # fmt: skip
            runner.give_back(lanes, memory)

        _in_blocks(block, len(codes), lanes, self._threads(len(codes), n_jobs), report)

    def _threads(self, cases: int, n_jobs: int) -> int:
        """How many threads the cases are worth: one while a thread takes longer to begin than to work."""
        return n_jobs if n_jobs != 1 and self.plan.seconds * cases > WORTH_THREADS else 1

    def best(
        self,
        codes: IntArray,
        mask_columns: IntArray,
        *,
        weights: FloatArray = NO_WEIGHTS,
        weight_column: IntArray | None = None,
        support_only: bool = False,
        n_jobs: int = 1,
        report: Report | None = None,
    ) -> tuple[IntArray, FloatArray]:
        """Most probable states (cases, variables) and the logarithm of their value.

        With `support_only` every positive number counts as one: the value is then 0 where the evidence is possible
        and -inf where it is not, whatever the size of the numbers.
        """
        from gramgraph._numerics.tree.runner import best

        equal = _equal_cases(codes, weights)
        if equal is not None:
            first, kind = equal
            each, value = self.best(
                codes[first], mask_columns, weights=weights, weight_column=weight_column, support_only=support_only,
                n_jobs=n_jobs, report=_stretched(report, first, kind),
            )  # fmt: skip
            return each[kind], value[kind]
        lanes, runner = self._way_of(len(codes))
        p, low = runner.program, self.plan.lowered
        static, values, log_scale = p.static, low.values, p.log_scale
        if support_only:
            static, values = self._support()
            log_scale = 0.0 if np.isfinite(log_scale) else log_scale
            weights = (weights > 0).astype(np.float64)
        columns = self.no_weights if weight_column is None else weight_column
        states = np.zeros((len(codes), len(low.sizes)), np.int64)
        log_z = np.empty(len(codes))

        def block(first: int, stop: int) -> None:
            memory = runner.borrow(lanes)
            best(
                lanes, first, stop, p.ints, static, values, codes, mask_columns, columns, weights, log_scale, memory,
                states, log_z,
            )  # fmt: skip
            runner.give_back(lanes, memory)

        _in_blocks(block, len(codes), lanes, self._threads(len(codes), n_jobs), report)
        if len(self._sliced) <= FEW_COLUMNS:
            for column, v in enumerate(self.plan.sliced):
                states[:, v] = codes[:, column]
        else:
            states[:, self._sliced] = codes[:, : len(self._sliced)]
        return states, log_z

    def _support(self) -> tuple[FloatArray, FloatArray]:
        """The tables with every positive number replaced by one."""
        low, p, tree = self.plan.lowered, self.program, self.plan.tree
        values = (low.values > 0).astype(np.float64)
        static = np.empty_like(p.static)
        self.loops.fill_static(
            static, p.ints, tree.home, tree.is_static, low.scope_ptr, low.scope_idx, low.value_ptr, values
        )  # fmt: skip
        return static, values

    def draw(
        self,
        n: int,
        codes: IntArray,
        mask_columns: IntArray,
        rng: np.random.Generator,
        *,
        weights: FloatArray = NO_WEIGHTS,
        weight_column: IntArray | None = None,
    ) -> tuple[IntArray, float]:
        """n exact samples (n, variables) given one case of evidence, and log p(e)."""
        from gramgraph._numerics.tree.runner import draw

        p, low = self.program, self.plan.lowered
        columns = self.no_weights if weight_column is None else weight_column
        log_z = np.empty(1)
        states = np.zeros((n, len(low.sizes)), np.int64)
        uniforms = rng.random((self.plan.n_cliques, n))
        memory = self.borrow(1)
        draw(
            n, p.ints, p.static, low.values, codes, mask_columns, columns, weights, p.log_scale, memory, uniforms,
            states, log_z,
        )  # fmt: skip
        self.give_back(1, memory)
        states[:, self._sliced] = codes[0, : len(self._sliced)]
        return states, float(log_z[0])


def _equal_cases(codes: IntArray, weights: FloatArray) -> tuple[IntArray, IntArray] | None:
    """(first case of each kind, the kind of every case) when at least half of the cases repeat others."""
    if len(codes) < LOOK_FOR_EQUAL or len(weights) > 1:
        return None
    from gramgraph._numerics.counts.rows import distinct_rows

    first, kind = distinct_rows(codes, len(codes) // 2)
    return (first, kind) if len(first) else None


def _take_rows(each: FloatArray, kind: IntArray, out: FloatArray, n_jobs: int) -> None:
    """out[i] = each[kind[i]], in threads where there is much to copy."""

    def block(first: int, stop: int) -> None:
        np.take(each, kind[first:stop], axis=0, out=out[first:stop], mode="clip")  # "raise" would copy twice

    _in_blocks(block, len(kind), 1, n_jobs if out.size > WORTH_COPIES else 1)


def _stretched(report: Report | None, first: IntArray, kind: IntArray) -> Report | None:
    """A report of distinct cases, told as a share of all of them."""
    return None if report is None else lambda done: report(done * len(kind) // len(first))


def _in_blocks(
    block: Callable[[int, int], None], cases: int, lanes: int, n_jobs: int, report: Report | None = None
) -> None:
    """Call block(first, stop) over all cases, in one thread or in several; the numbers do not depend on it."""
    if n_jobs == 1 and report is None:
        block(0, cases)
        return
    jobs = (os.cpu_count() or 1) if n_jobs < 0 else n_jobs
    parts = max(BLOCKS * jobs if jobs > 1 else 1, 100 if report else 1)
    step = -(-cases // (parts * lanes)) * lanes
    if step >= cases:
        block(0, cases)
        if report:
            report(cases)
        return
    starts = range(0, cases, step)
    if jobs == 1:
        for at in starts:
            block(at, min(at + step, cases))
            if report:
                report(min(at + step, cases))
        return
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(block, at, min(at + step, cases)) for at in starts]
        for number, future in enumerate(waiting, start=1):
            future.result()
            if report:
                report(min(number * step, cases))
