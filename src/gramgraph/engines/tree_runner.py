"""A compiled tree with its buffers: numbers in, numbers out."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gramgraph._progress import Report
from gramgraph.compile.tree import TreePlan
from gramgraph.typing import FloatArray, IntArray

__all__ = ["TreeRunner"]

#: Eight cases side by side while the tables that work together stay in the processor's cache: measured, up to this
#: many cells a clique on average, and in all. Beyond, one at a time is quicker.
LANE_CELLS = 20_000
LANE_CELLS_IN_ALL = 4_000_000
#: Buffers up to this size are kept for the next call.
KEPT_BYTES = 1 << 30
NO_WEIGHTS = np.zeros((1, 1))


class TreeRunner:
    """Runs one plan on any number of cases, from any number of threads."""

    __slots__ = ("_after", "_between", "_pool", "no_weights", "plan")

    def __init__(self, plan: TreePlan) -> None:
        self.plan = plan
        program = plan.program
        self._between = program[4:13]
        self._after = (plan.mask_offset,)
        self._pool: dict[int, list[tuple[FloatArray, ...]]] = {1: [], 8: []}
        self.no_weights = np.full(len(plan.masked), -1, np.int64)

    def lanes_for(self, cases: int) -> int:
        """How many cases to run side by side."""
        plan = self.plan
        small = plan.cells <= min(LANE_CELLS * max(plan.n_cliques, 1), LANE_CELLS_IN_ALL)
        return 8 if cases >= 4 and small else 1

    def borrow(self, lanes: int) -> tuple[FloatArray, ...]:
        """A set of buffers, from the pool when one is free."""
        try:
            return self._pool[lanes].pop()
        except IndexError:
            return tuple(np.empty(max(size, 1) * lanes) for size in self.plan.work_sizes)

    def give_back(self, lanes: int, work: tuple[FloatArray, ...]) -> None:
        """Return buffers to the pool."""
        pool = self._pool[lanes]
        if len(pool) < 4 and work[0].nbytes <= KEPT_BYTES:
            pool.append(work)

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
        """Marginals and log p(e) of every case."""
        from gramgraph._numerics.tree_runner import sums

        cases = len(codes)
        lanes = self.lanes_for(cases)
        if weight_column is None:
            weight_column = self.no_weights
        p, low = self.plan.program, self.plan.lowered

        def block(first: int, stop: int) -> None:
            work = self.borrow(lanes)
            sums(
                lanes, first, stop, p.collect, p.distribute, p.roots, p.needed,
                *self._between, p.onehot, mask_columns, *self._after, weight_column, p.static, low.values,
                codes, weights, p.log_scale, work, out, log_z,
            )  # fmt: skip
            self.give_back(lanes, work)

        _in_blocks(block, cases, lanes, n_jobs, report)

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
        from gramgraph._numerics.tree_runner import best

        plan, low = self.plan, self.plan.lowered
        p = plan.program
        static, values, log_scale = p.static, low.values, p.log_scale
        if support_only:
            static, values = self._support()
            log_scale = 0.0 if np.isfinite(log_scale) else log_scale
            weights = (weights > 0).astype(np.float64)
        cases = len(codes)
        lanes = self.lanes_for(cases)
        columns = self.no_weights if weight_column is None else weight_column
        states = np.zeros((cases, len(low.sizes)), np.int64)
        log_z = np.empty(cases)

        def block(first: int, stop: int) -> None:
            work = self.borrow(lanes)
            best(
                lanes, first, stop, p.collect, plan.topo, p.cliques, plan.clique_ptr, p.ordered, p.n_sep, low.sizes,
                p.terms, p.members, p.maps_table, p.maps, p.slices, p.keys, p.constants,
                mask_columns, plan.mask_offset, columns, static, values, codes, weights, log_scale, work, states, log_z,
            )  # fmt: skip
            self.give_back(lanes, work)

        _in_blocks(block, cases, lanes, n_jobs, report)
        for column, v in enumerate(plan.sliced):
            states[:, v] = codes[:, column]
        return states, log_z

    def _support(self) -> tuple[FloatArray, FloatArray]:
        from gramgraph._numerics.tree_runner import fill_static

        plan, low, p = self.plan, self.plan.lowered, self.plan.program
        values = (low.values > 0).astype(np.float64)
        static = np.empty_like(p.static)
        fill_static(
            static, p.cliques, plan.clique_ptr, p.ordered, low.sizes, plan._homes, plan._is_static, low.scope_ptr,
            low.scope_idx, low.value_ptr, values,
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
        from gramgraph._numerics.tree_runner import collected, draw

        plan, low = self.plan, self.plan.lowered
        p = plan.program
        columns = self.no_weights if weight_column is None else weight_column
        log_z = np.empty(1)
        work = self.borrow(1)
        collected(
            1, p.collect, p.cliques, p.terms, p.members, p.maps_table, p.maps, p.slices, p.keys, p.constants,
            mask_columns, plan.mask_offset, columns, p.static, low.values, codes, weights, p.log_scale, work, log_z,
        )  # fmt: skip
        states = np.zeros((n, len(low.sizes)), np.int64)
        if np.isfinite(log_z[0]):
            uniforms = rng.random((plan.n_cliques, n))
            draw(plan.topo, p.cliques, plan.clique_ptr, p.ordered, p.n_sep, low.sizes, work[0], uniforms, states)
        self.give_back(1, work)
        for column, v in enumerate(plan.sliced):
            states[:, v] = codes[0, column]
        return states, float(log_z[0])


def _in_blocks(
    block: Callable[[int, int], None], cases: int, lanes: int, n_jobs: int, report: Report | None = None
) -> None:
    """Call block(first, stop) over all cases, in one thread or in several; the numbers do not depend on it."""
    jobs = (os.cpu_count() or 1) if n_jobs < 0 else n_jobs
    parts = max(jobs, 100 if report else 1)
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
