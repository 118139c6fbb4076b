"""The first part of a large search: hundreds of variables at a time, whose rows are never kept.

A step chooses the points that violate the conditions most, solves the dual over them alone on their small matrix, and
adds what they moved to f by one product: O(c n d) for the c points that moved. It needs no room for rows of length n,
works at the speed of matrix products, and ends when the points that are still undecided fit into the cache.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.machines.svm.rows import Source
from gramgraph.typing import Array, FloatArray, IntArray

_SIZE = 2048  # points of a step
_MOST = 400  # steps
_WORST_EARLY, _WORST_LATE = 0.1, 0.5  # share of the worst violators in it
_MANY = 2  # times as many violators as points of a step,
_EARLY = 0.5  # and this part of the widest gap, end the sampling
_INNER = 0.1  # part of the gap to which the points of a step are solved
_INNER_STEPS = 50  # a point
_SHRINK_BELOW = 0.8
_BIG = 1e29


def approach(dual: Any, source: Source, *, tol: float, room: float, dtype: Any, max_iter: int) -> tuple[Any, int]:
    """The dual with a better start (and Kβ there), and the steps inside; `room` in points ends it."""
    return _Approach(dual, source, tol, dtype).run(room, max_iter)


class _Approach:
    """α and f = Kβ + s p of all points; `active` are those whose f is kept up to date."""

    def __init__(self, dual: Any, source: Source, tol: float, dtype: Any) -> None:
        from gramgraph._numerics.svm import smo

        self.smo, self.dual, self.source, self.tol, self.dtype = smo, dual, source, tol, dtype
        self.alpha, self.steps, self.widest = dual.start.copy(), 0, 0.0
        self.active = np.arange(source.n)
        self.left_out: list[tuple[IntArray, FloatArray]] = []  # points that left, β of all then
        self.last = np.zeros(0, np.int64)
        self.rng = np.random.default_rng(0)  # the choice of points must not depend on anything but the data
        if dual.product is None:
            beta = self._beta()
            used = np.flatnonzero(beta)
            product = source.times(self.active, used, beta[used])
        else:
            product = dual.product
        self.f = product + dual.sign * dual.linear

    def _beta(self) -> FloatArray:
        return np.asarray((self.dual.sign * self.alpha).sum(axis=0))

    def _look(self) -> tuple[float, Array]:
        """Bounds and extremes of the active points: the gap, and which of them are undecided."""
        # np.take gives rows without gaps, which the loops rely on; indexing with [:, points] need not.
        sign, upper, alpha, f = (
            np.take(a, self.active, axis=1) for a in (self.dual.sign, self.dual.upper, self.alpha, self.f)
        )
        shape = (self.dual.groups, *f.shape)
        self.up, self.lo = np.empty(shape, np.float32), np.empty(shape, np.float32)
        ends, keep = np.empty((*shape[:2], 3)), np.empty(len(self.active), np.bool_)
        self.smo.fill_bounds(alpha, upper, sign, self.up, self.lo)
        self.smo.fill_ends(f, self.up, self.lo, ends)
        self.smo.may_leave(f, self.up, self.lo, ends, keep)
        return float(np.max(ends[:, :, 2].max(axis=1) - ends[:, :, 0].min(axis=1))), keep

    def _choose(self, gap: float) -> IntArray:
        """While violators are many: the worst and a sample of the others; then the worst and the last to have moved.

        The worst alone are much alike, and a sample lets more points move in one step.
        """
        f = self.f[:, self.active]
        sides = [side for g in range(self.dual.groups) for side in (f + self.up[g], self.lo[g] - f)]
        sides = [side.min(axis=0) for side in sides]  # the smaller, the more a point may rise, or fall
        violates = np.zeros(len(self.active), np.bool_)
        for rise, fall in zip(sides[::2], sides[1::2], strict=True):
            middle = 0.5 * (rise.min() - fall.min())
            violates |= (rise < middle) | (fall < -middle)
        others = np.flatnonzero(violates)
        self.widest = max(self.widest, gap)
        many = len(others) > _MANY * _SIZE and gap > _EARLY * self.widest
        worst = max(int((_WORST_EARLY if many else _WORST_LATE) * _SIZE) // len(sides), 1)
        worst = min(worst, len(self.active) - 1)
        tops = [(side, np.argpartition(side, worst)[: worst + 1]) for side in sides]
        chosen = [top[side[top] < _BIG] for side, top in tops]
        if many:
            chosen.append(self.rng.choice(others, int((1.0 - _WORST_EARLY) * _SIZE), replace=False))
        points = self.active[np.unique(np.concatenate(chosen))]
        stay = self.last[~np.isin(self.last, points)][: max(0, _SIZE - len(points))]
        return np.concatenate([points, stay])

    def _solve(self, points: IntArray, gap: float) -> None:
        """The dual over these points; what they moved goes to f."""
        smo, dual = self.smo, self.dual
        K = self.source.subset(points).full(self.dtype)
        sign, upper, alpha, f = (np.take(a, points, axis=1) for a in (dual.sign, dual.upper, self.alpha, self.f))
        diag, m = self.source.diag[points], len(points)
        shape = (dual.groups, *alpha.shape)
        up, lo = np.empty(shape, np.float32), np.empty(shape, np.float32)
        ends, state = np.empty((*shape[:2], 3)), np.zeros(smo.STATE_SIZE, np.int64)
        smo.fill_bounds(alpha, upper, sign, up, lo)
        smo.fill_ends(f, up, lo, ends)
        smo.run(
            K, np.arange(m), np.full(m, m), np.zeros(m, np.int64), sign, alpha, upper, diag, diag.astype(np.float32),
            f, up, lo, ends, max(self.tol, _INNER * gap), _INNER_STEPS * m, state, np.empty(8, np.int64),
        )  # fmt: skip
        change = (sign * (alpha - self.alpha[:, points])).sum(axis=0)
        self.alpha[:, points] = alpha
        moved = np.flatnonzero(change)
        self.f[:, self.active] += self.source.times(self.active, points[moved], change[moved])
        self.steps += int(state[smo.STEPS])
        self.last = points[moved]

    def _shrink(self, keep: Array) -> None:
        self.left_out.append((self.active[~keep], self._beta()))
        self.active = self.active[keep]
        self.last = self.last[np.isin(self.last, self.active)]

    def _widen(self) -> None:
        """f of the points that were left out is brought up to the present β."""
        beta = self._beta()
        for away, then in self.left_out:
            moved = np.flatnonzero(beta != then)
            self.f[:, away] += self.source.times(away, moved, (beta - then)[moved])
        self.left_out, self.active = [], np.arange(self.source.n)

    def run(self, room: float, max_iter: int) -> tuple[Any, int]:
        """Steps until the undecided fit into the room."""
        for _ in range(_MOST):
            gap, keep = self._look()
            undecided = int(np.count_nonzero(keep))
            if gap <= self.tol and self.left_out:
                self._widen()
                gap, keep = self._look()
                undecided = len(keep)
            if gap <= self.tol or undecided <= room or self.steps >= max_iter:
                break
            if undecided < _SHRINK_BELOW * len(keep):
                self._shrink(keep)
                gap, keep = self._look()
            self._solve(self._choose(gap), gap)
        self._widen()
        product = self.f[0] - (self.dual.sign * self.dual.linear)[0]
        return replace(self.dual, start=self.alpha, product=product), self.steps
