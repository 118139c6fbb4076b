"""Support vector duals and their solution: problems as arrays, shrinking and the row cache around the loops."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramgraph.machines.svm.blocks import approach
from gramgraph.machines.svm.rows import Source, most_steps
from gramgraph.typing import Array, FloatArray, IntArray

_BATCH = 8  # rows computed at one miss: the row asked for and the next violators
_SHRINK_EVERY = 1000
_SHRINK_BELOW = 0.8
_HUGE = 1e9  # of p: above, the usual tolerance 1e-3 nears the rounding of sums
_ROUNDING = 1e-12  # the least tolerance, relative to p, that sums in double precision can reach
_LARGE = 4096  # points from which a search begins with blocks when the matrix has no room
#: Part of the room, in points, in which they end: blocks decide more in the time that a matrix which fills it takes.
_FILLED = 0.4


@dataclass(frozen=True)
class Dual:
    """min ½ βᵀKβ + Σ p α, 0 ≤ α ≤ U, β = Σ_c s_c α_c, with Σ s α (or the sum over each sign) as in `start`."""

    sign: FloatArray  # (copies, n)
    linear: FloatArray  # (copies, n): p
    upper: FloatArray  # (copies, n): U
    start: FloatArray  # (copies, n): a feasible α
    product: FloatArray | None = None  # (n,) Kβ at the start, where it is known
    groups: int = 1  # 1: one sum over all variables is fixed; 2: one sum for each sign


@dataclass(frozen=True)
class Solution:
    """The minimizer α, f = Kβ + s p there, and how the search ended."""

    alpha: FloatArray  # (copies, n)
    beta: FloatArray  # (n,)
    f: FloatArray  # (copies, n)
    objective: float
    rho: float  # decision(x) = Σ β k(x_i, x) − rho
    half_width: float  # groups = 2: half the distance of the two levels of f, else 0
    gap: float
    iterations: int
    converged: bool
    curved: bool  # a direction of negative curvature was met: K is not positive semi-definite
    statistics: dict[str, int] = field(default_factory=dict)


def classification(y: FloatArray, upper: FloatArray, start: tuple[FloatArray, FloatArray] | None = None) -> Dual:
    """C-SVC: y in ±1, U = C · weight; `start` is (α, Kβ)."""
    alpha, product = (np.zeros(len(y)), np.zeros(len(y))) if start is None else start
    return Dual(y[None], np.full((1, len(y)), -1.0), upper[None], alpha[None], product)


def nu_classification(y: FloatArray, weight: FloatArray, nu: float) -> Dual:
    """ν-SVC: the α of each class sum to ν Σ weight / 2, α ≤ weight."""
    start = np.zeros(len(y))
    for s in (1.0, -1.0):
        here = y == s
        start[here] = _poured(weight[here], 0.5 * nu * weight.sum())
    return Dual(y[None], np.zeros((1, len(y))), weight[None], start[None], groups=2)


def regression(y: FloatArray, upper: FloatArray, epsilon: float) -> Dual:
    """ε-SVR: two variables per point, one for each side of the tube."""
    one = np.ones(len(y))
    return Dual(
        np.stack([one, -one]), np.stack([epsilon - y, epsilon + y]), np.stack([upper, upper]), np.zeros((2, len(y)))
    )


def nu_regression(y: FloatArray, upper: FloatArray, nu: float) -> Dual:
    """ν-SVR: the variables of each side sum to ν Σ U / 2."""
    one, start = np.ones(len(y)), _poured(upper, 0.5 * nu * upper.sum())
    return Dual(np.stack([one, -one]), np.stack([-y, y]), np.stack([upper, upper]), np.stack([start, start]), groups=2)


def one_class(weight: FloatArray, total: float) -> Dual:
    """One class: Σ α = total (ν Σ weight), α ≤ weight."""
    n = len(weight)
    return Dual(np.ones((1, n)), np.zeros((1, n)), weight[None], _poured(weight, total)[None])


def _poured(upper: FloatArray, total: float) -> FloatArray:
    """α filled from the first variable on until the sum is `total`."""
    before = np.concatenate([[0.0], np.cumsum(upper)[:-1]])
    return np.clip(total - before, 0.0, upper)


def solve(
    dual: Dual,
    source: Source,
    *,
    tol: float,
    cache_bytes: float,
    max_iter: int = -1,
    shrinking: bool = True,
    precision: type | None = None,
) -> Solution:
    """Minimize the dual until the largest KKT violation is below `tol`. O(n) a step, O(n d) for a row not in the cache.

    Rows are kept in single precision where their rounding stays far below `tol`; sums are always double. Where p is
    so large that `tol` is below the rounding of f, the problem is solved in units of p, to rounding.
    """
    size = float(np.max(np.abs(dual.linear), initial=0.0))
    if size > _HUGE:
        small = _times(dual, 1.0 / size)
        found = solve(small, source, tol=max(tol / size, _ROUNDING), cache_bytes=cache_bytes, max_iter=max_iter,
                      shrinking=shrinking, precision=precision)  # fmt: skip
        alpha = np.where(found.alpha == small.upper, dual.upper, size * found.alpha)  # bounds stay exact
        return _enlarged(found, alpha, dual.sign, size)
    most = most_steps(max_iter, source.n)
    dtype: Any = precision or row_type(float(np.max(dual.upper, initial=0.0)), source, tol)
    source.settle(dtype)
    room = np.sqrt(cache_bytes / np.dtype(dtype).itemsize)
    steps = 0
    if source.n > max(room, _LARGE):
        enough = max(_FILLED * room, min(room, _LARGE / 2))
        dual, steps = approach(dual, source, tol=tol, room=enough, dtype=dtype, max_iter=most)
    return _Work(dual, source, tol, cache_bytes, dtype, steps).run(most, shrinking)


def _times(dual: Dual, factor: float) -> Dual:
    """The same problem in other units of p and α: the minimizer and its f are multiplied by the factor."""
    product = None if dual.product is None else factor * dual.product
    return replace(
        dual, linear=factor * dual.linear, upper=factor * dual.upper, start=factor * dual.start, product=product
    )


def _enlarged(found: Solution, alpha: FloatArray, sign: FloatArray, factor: float) -> Solution:
    """A solution in units of the user, from one in units of p."""
    scaled: dict[str, Any] = {name: factor * getattr(found, name) for name in ("f", "rho", "half_width", "gap")}
    objective = factor * (factor * found.objective)
    return replace(found, alpha=alpha, beta=(sign * alpha).sum(axis=0), objective=objective, **scaled)


def row_type(largest: float, source: Source, tol: float, n: int | None = None) -> type:
    """Single precision when its error in f, about 3e-8 · √n · U · max k(x, x), is below a tenth of the tolerance.

    n is the number of points of the (largest) problem, by default all of them.
    """
    size = source.n if n is None else n
    error = 3e-8 * np.sqrt(size) * largest * float(np.max(np.abs(source.diag), initial=0.0))
    return np.float32 if error < 0.1 * tol else np.float64


class _Work:
    """The state of one search: which points are active, their arrays, and the rows at hand."""

    def __init__(self, dual: Dual, source: Source, tol: float, cache_bytes: float, dtype: type, steps: int = 0) -> None:
        from gramgraph._numerics.svm import smo

        self.smo, self.dual, self.source, self.tol = smo, dual, source, tol
        self.n = source.n
        self.dtype: Any = dtype
        self.item = np.dtype(dtype).itemsize
        self.cache_bytes = cache_bytes
        self.alpha = dual.start.copy()
        if dual.product is None:
            self.f = self._gradient(np.arange(self.n))
        else:
            self.f = dual.product + dual.sign * dual.linear
        self.order = np.arange(self.n)  # the first m points are active
        self.state = np.zeros(smo.STATE_SIZE, np.int64)
        self.state[smo.STEPS] = steps
        self.computed = 0
        self.left_out: list[tuple[IntArray, FloatArray]] = []  # points that left, β of all then
        whole = self.n * self.n * self.item <= cache_bytes
        self.whole: Array | None = source.full(self.dtype) if whole else None
        self._open(self.n)
        self._new_cache()

    # -- arrays of the active points ----------------------------------------------------------------------------

    def _gradient(self, points: IntArray) -> FloatArray:
        beta = (self.dual.sign * self.alpha).sum(axis=0)
        support = np.flatnonzero(beta)
        product = self.source.times(points, support, beta[support])
        return product + (self.dual.sign * self.dual.linear)[:, points]

    def _open(self, m: int) -> None:
        """Arrays of the first m points of the order."""
        smo, here = self.smo, self.order[:m]
        self.m = m
        self.a_sign, self.a_upper = self.dual.sign[:, here].copy(), self.dual.upper[:, here].copy()
        self.a_alpha, self.a_f = self.alpha[:, here].copy(), self.f[:, here].copy()
        self.a_diag = self.source.diag[here].copy()
        self.a_diag32 = self.a_diag.astype(np.float32)
        shape = (self.dual.groups, len(self.a_alpha), m)
        self.up, self.lo = np.empty(shape, np.float32), np.empty(shape, np.float32)
        smo.fill_bounds(self.a_alpha, self.a_upper, self.a_sign, self.up, self.lo)
        self.ends = np.empty((*shape[:2], 3))  # least f of those that may grow, its place, largest that may fall
        smo.fill_ends(self.a_f, self.up, self.lo, self.ends)
        self.state[smo.PHASE] = 0

    def _store(self) -> None:
        here = self.order[: self.m]
        self.alpha[:, here], self.f[:, here] = self.a_alpha, self.a_f

    # -- rows ---------------------------------------------------------------------------------------------------

    def _new_cache(self) -> None:
        """Room for rows of the present length, empty unless the whole matrix is at hand."""
        m, self.compact = self.m, False
        if self.whole is not None:
            if m == self.n:
                self.K = self.whole
            else:
                here = self.order[:m]
                self.K = np.empty((m, m), self.dtype)
                self.smo.gather(self.whole, self.K, here, here)
            self.slot = np.arange(m)
            self.length = np.full(m, m)
            self.stamp = np.zeros(m, np.int64)
            return
        if m < self.n and m * m * self.item <= self.cache_bytes:  # all rows of those that are left have room
            self.compact = True
            self.K = self.source.subset(self.order[:m]).full(self.dtype)
            self.slot, self.owner = np.arange(m), np.arange(m)
            self.length, self.stamp = np.full(m, m), np.zeros(m, np.int64)
            self.computed += m
            return
        rows = int(max(2 * _BATCH, min(m, self.cache_bytes // (m * self.item))))
        self.K = np.empty((rows, m), self.dtype)
        self.slot = np.full(m, -1)
        self.owner = np.full(rows, -1)
        self.length = np.zeros(rows, np.int64)
        self.stamp = np.full(rows, -1, np.int64)
        self.source.arrange(self.order[:m])

    def _carry(self, old: tuple[Array, IntArray, IntArray, IntArray], columns: IntArray, place: IntArray) -> None:
        """Bring rows of the former cache over, newest first; place[k] is the new number of point k, −1 when it left."""
        K, owner, length, stamp = old
        width = len(columns)
        live = np.flatnonzero((owner >= 0) & (length >= min(K.shape[1], width)))
        live = live[place[owner[live]] >= 0]
        live = live[np.argsort(-stamp[live], kind="stable")][: len(self.K) - _BATCH]
        target = self.K[: len(live)]
        self.smo.gather(K, target, live, columns)
        self.owner[: len(live)] = place[owner[live]]
        self.slot[self.owner[: len(live)]] = np.arange(len(live))
        self.length[: len(live)] = width
        self.stamp[: len(live)] = stamp[live]

    def _fetch(self, wanted: IntArray) -> None:
        """Compute rows of the wanted points, in the slots that were idle longest."""
        places = np.argpartition(self.stamp, min(len(wanted), len(self.stamp) - 1))[: len(wanted)]
        self.slot[self.owner[places][self.owner[places] >= 0]] = -1
        self.K[places] = self.source.rows_of(self.order[wanted])
        self.slot[wanted], self.owner[places] = places, wanted
        self.length[places] = self.m
        # Rows fetched ahead are a little older than the one that was asked for.
        self.stamp[places] = self.state[self.smo.CLOCK]
        self.stamp[places[0]] += 1
        self.computed += len(wanted)

    def _extend(self, first: int) -> None:
        """Complete short rows, kept from a smaller active set: the one asked for and the newest others."""
        short = np.flatnonzero((self.owner >= 0) & (self.length < self.m))
        here = self.slot[first]
        short = short[np.argsort(-self.stamp[short], kind="stable")]
        chosen = np.concatenate([[here], short[short != here][: _BATCH - 1]])
        begin = int(self.length[here])
        chosen = chosen[self.length[chosen] == begin]
        self.K[chosen, begin:] = self.source.rows_of(self.order[self.owner[chosen]], begin)
        self.length[chosen] = self.m
        self.computed += len(chosen)

    # -- the search ---------------------------------------------------------------------------------------------

    def _steps(self, steps: int) -> int:
        """Run the loop, feeding it rows, until it ends otherwise."""
        smo, before = self.smo, int(self.state[self.smo.STEPS])
        wanted = np.empty(_BATCH, np.int64)
        while True:
            left = steps - (int(self.state[smo.STEPS]) - before)
            end = int(
                smo.run(
                    self.K, self.slot, self.length, self.stamp, self.a_sign, self.a_alpha, self.a_upper, self.a_diag,
                    self.a_diag32, self.a_f, self.up, self.lo, self.ends, self.tol, left, self.state,
                    wanted,
                )
            )  # fmt: skip
            if end == smo.MISSING:
                self._fetch(wanted[: int(self.state[smo.N_WANTED])].copy())
            elif end == smo.SHORT:
                self._extend(int(wanted[0]))
            else:
                return end

    def _gap(self) -> float:
        return float(np.max(self.ends[:, :, 2].max(axis=1) - self.ends[:, :, 0].min(axis=1)))

    def run(self, max_iter: int, shrinking: bool) -> Solution:
        """Steps, shrinking and taking back, until all points together satisfy the conditions."""
        smo = self.smo
        widened, end = False, smo.OUT_OF_STEPS
        often = shrinking and self.n > 64
        if shrinking and int(self.state[smo.STEPS]) and self._gap() > self.tol:  # most points are decided already
            self._shrink()
        while True:
            left = max_iter - int(self.state[smo.STEPS])
            if left <= 0:
                break
            end = self._steps(min(left, self.m if often else left, _SHRINK_EVERY))
            finished = end in (smo.CONVERGED, smo.STUCK)
            if finished and self.m == self.n:
                break
            # Close to the end all points are looked at once more, as those left out may have become violators.
            if self.m < self.n and (finished or (not widened and self._gap() <= 10 * self.tol)):
                widened = True
                anew = self.compact
                self._widen()
                if anew and self._gap() > self.tol:
                    self._shrink()
            elif often and not finished:
                self._shrink()
        if self.m < self.n:
            self._widen()
        self._store()
        return self._solution(end == smo.CONVERGED)

    def _shrink(self) -> None:
        keep = np.empty(self.m, np.bool_)
        count = int(self.smo.may_leave(self.a_f, self.up, self.lo, self.ends, keep))
        if count >= _SHRINK_BELOW * self.m or count < 2:
            return
        self._store()
        here, columns = self.order[: self.m].copy(), np.flatnonzero(keep)
        self.left_out.append((here[~keep], (self.dual.sign * self.alpha).sum(axis=0)))
        place = np.full(self.m, -1)
        place[columns] = np.arange(count)
        self.order[: self.m] = np.concatenate([here[keep], here[~keep]])
        old = None if self.whole is not None else (self.K, self.owner, self.length, self.stamp)
        self._open(count)
        self._new_cache()
        if old is not None and not self.compact:
            self._carry(old, columns, place)

    def _widen(self) -> None:
        """All points are active again; f of those that were left out is brought up to the present β."""
        self._store()
        m, beta = self.m, (self.dual.sign * self.alpha).sum(axis=0)
        for away, then in self.left_out:
            moved = np.flatnonzero(beta != then)
            self.f[:, away] += self.source.times(away, moved, (beta - then)[moved])
        self.left_out = []
        # Rows of a compact matrix are as quick to compute as to copy.
        drop = self.whole is not None or self.compact
        old = None if drop else (self.K, self.owner, self.length, self.stamp)
        if old is None:
            self.order = np.arange(self.n)
        self._open(self.n)
        self._new_cache()
        if old is not None:
            self._carry(old, np.arange(m), np.arange(m))

    def _solution(self, converged: bool) -> Solution:
        sign, alpha, f = self.dual.sign, self.alpha, self.f
        beta = (sign * alpha).sum(axis=0)
        # ½ Σ α (G + p) with the gradient G = s f.
        objective = 0.5 * float(np.sum(alpha * (sign * f + self.dual.linear)))
        levels = []
        for g in range(self.dual.groups):
            mine = np.ones_like(sign, dtype=bool) if self.dual.groups == 1 else sign == (1.0 if g == 0 else -1.0)
            free = mine & (alpha > 0) & (alpha < self.dual.upper)
            if free.any():
                levels.append(float(f[free].mean()))
            else:
                levels.append(middle(self.ends[g, :, 0].min(), self.ends[g, :, 2].max()))
        return Solution(
            alpha=alpha,
            beta=beta,
            f=f,
            objective=objective,
            rho=sum(levels) / len(levels),
            half_width=0.5 * (levels[0] - levels[-1]),
            gap=self._gap(),
            iterations=int(self.state[self.smo.STEPS]),
            converged=converged,
            curved=bool(self.state[self.smo.CURVED]),
            statistics={"rows": self.computed, "active": self.m},
        )


def middle(bottom: float, top: float) -> float:
    """The level between two ends; the finite one when the other does not exist."""
    if abs(bottom) > 1e29 or abs(top) > 1e29:
        return float(bottom if abs(bottom) < 1e29 else top if abs(top) < 1e29 else 0.0)
    return 0.5 * float(bottom + top)
