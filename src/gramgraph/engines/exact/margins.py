"""The distribution nearest to a given one that has asked margins, on the joint table of the variables concerned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gramgraph.typing import FloatArray

#: Margins are met when they are off by no more than this; a fit that stops above, and below `ALLOWED`, says so.
MET, ALLOWED = 1e-12, 1e-8
SWEEPS, NEWTON_STEPS = 100, 60


class MarginConflict(Exception):
    """No distribution with these zeros has the asked margins; `members` are a smallest set of axes that conflict."""

    def __init__(self, members: tuple[int, ...], gap: float) -> None:
        self.members, self.gap = members, gap
        super().__init__(f"margins of the axes {members} cannot hold together")


@dataclass(frozen=True, eq=False)
class Fit:
    """r(x) ∝ p(x) Π_v exp(theta_v(x_v)) on the cells that may be positive.

    `whole` says that these are all cells with p > 0. Where they are not, only limits of such weights have the margins,
    and r itself must be used.
    """

    table: FloatArray
    theta: tuple[FloatArray, ...]
    steps: int
    gap: float  # largest difference of a margin from what was asked
    whole: bool


def fit_margins(table: FloatArray, wanted: Sequence[FloatArray]) -> Fit:
    """The I-projection of a table on the tables with these margins (one distribution for each axis).

    Iterative proportional fitting, then Newton steps on its concave dual, which also settle what converges slowly.
    Where both stop short, a linear program tells which cells must become zero, or that no table has these margins:
    `MarginConflict`. Cost: O(cells) a sweep, O(cells (Σ sizes)) a Newton step.
    """
    for v, q in enumerate(wanted):
        if (q[_margin(table, v) <= 0.0] > 0.0).any():
            raise MarginConflict((v,), 1.0)
    found = _fitted(table, wanted, whole=True)
    if found.gap <= MET:
        return found
    allowed = _possible_cells(table, wanted)
    if allowed is None:
        raise MarginConflict(_smallest_conflict(table, wanted), found.gap)
    if not allowed.all():
        inside = table.copy()
        inside[table > 0.0] *= allowed
        if all((_margin(inside, v)[q > 0.0] > 0.0).all() for v, q in enumerate(wanted)):
            closer = _fitted(inside / inside.sum(), wanted, whole=False)
            found = closer if closer.gap < found.gap else found
    if found.gap > ALLOWED:
        raise MarginConflict(tuple(range(len(wanted))), found.gap)
    return found


def _margin(table: FloatArray, v: int) -> FloatArray:
    return np.asarray(table.sum(axis=tuple(u for u in range(table.ndim) if u != v)))


def _along(values: FloatArray, v: int, ndim: int) -> FloatArray:
    """A vector as a table that varies along axis v alone."""
    return values.reshape([-1 if u == v else 1 for u in range(ndim)])


def _gap(table: FloatArray, wanted: Sequence[FloatArray]) -> float:
    return max(float(np.abs(_margin(table, v) - q).max()) for v, q in enumerate(wanted))


def _fitted(table: FloatArray, wanted: Sequence[FloatArray], *, whole: bool) -> Fit:
    """Sweeps, then Newton steps."""
    r, theta = table, [np.zeros(len(q)) for q in wanted]
    steps, gap = 0, np.inf
    while steps < SWEEPS and gap > MET:
        steps += 1
        for v, q in enumerate(wanted):
            now = _margin(r, v)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(q > 0.0, q / now, 0.0)
                theta[v] = np.where(q > 0.0, theta[v] + np.log(ratio), -np.inf)
            r = r * _along(ratio, v, r.ndim)
            if not np.isfinite(r).all():  # some state has lost all its mass: nothing further can be learned here
                return Fit(table, tuple(theta), steps, 1.0, whole)
        gap = _gap(r, wanted)
    best = Fit(r, tuple(theta), steps, gap, whole)
    while best.gap > MET and best.steps < SWEEPS + NEWTON_STEPS:
        better = _newton(table, wanted, best)
        if better is None:
            break
        best = better
    return best


def _newton(table: FloatArray, wanted: Sequence[FloatArray], fit: Fit) -> Fit | None:
    """One step that brings the margins nearer, or None where there is none."""
    margins = [_margin(fit.table, v) for v in range(len(wanted))]
    active = [np.flatnonzero(q > 0.0) for q in wanted]
    blocks = [[np.zeros((0, 0))] * len(wanted) for _ in wanted]
    for v, u in combinations(range(len(wanted)), 2):
        pair = fit.table.sum(axis=tuple(w for w in range(table.ndim) if w not in (v, u)))
        blocks[v][u] = (pair - np.outer(margins[v], margins[u]))[np.ix_(active[v], active[u])]
        blocks[u][v] = blocks[v][u].T
    for v, m in enumerate(margins):
        blocks[v][v] = (np.diag(m) - np.outer(m, m))[np.ix_(active[v], active[v])]
    gradient = np.concatenate([(q - m)[at] for q, m, at in zip(wanted, margins, active, strict=True)])
    step = np.linalg.lstsq(np.block(blocks), gradient, rcond=1e-13)[0]
    parts = np.split(step, np.cumsum([len(at) for at in active])[:-1])
    for size in 0.5 ** np.arange(12):
        theta = [t.copy() for t in fit.theta]
        for t, at, part in zip(theta, active, parts, strict=True):
            t[at] += size * part
        r = _tilted(table, theta)
        if r is not None and (gap := _gap(r, wanted)) < fit.gap:
            return Fit(r, tuple(theta), fit.steps + 1, gap, fit.whole)
    return None


def _tilted(table: FloatArray, theta: Sequence[FloatArray]) -> FloatArray | None:
    """table · exp(Σ theta), normalized; None where nothing finite is left."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        logs = np.log(table)
        for v, t in enumerate(theta):
            logs = logs + _along(t, v, table.ndim)
        r = np.exp(logs - logs.max())
        r = r / r.sum()
    return r if np.isfinite(r).all() else None


def _possible_cells(table: FloatArray, wanted: Sequence[FloatArray]) -> FloatArray | None:
    """Which of the positive cells are positive in some table with the margins; None where there is no such table.

    One linear program: tables with these margins, up to a common factor τ ≥ 1, are closed under sums, so that one of
    them has all possible cells at one or more.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    cells = np.nonzero(table > 0.0)
    n, sizes = len(cells[0]), [len(q) for q in wanted]
    first = np.cumsum([0, *sizes])
    rows = np.concatenate([first[v] + cells[v] for v in range(len(wanted))])
    A = csr_array((np.ones(len(rows)), (rows, np.tile(np.arange(n), len(wanted)))), shape=(int(first[-1]), n))
    q = np.concatenate(wanted)
    found = linprog(
        np.concatenate([-np.ones(n), np.zeros(n + 1)]),
        A_eq=hstack([A, A, csr_array(-q[:, None])]),
        b_eq=np.zeros(len(q)),
        bounds=[(0.0, 1.0)] * n + [(0.0, None)] * n + [(1.0, None)],
    )
    if found.status == 2:
        return None
    if found.x is None:
        return np.ones(n, bool)
    return np.asarray(found.x[:n] + found.x[n : 2 * n] > 1e-6)


def _smallest_conflict(table: FloatArray, wanted: Sequence[FloatArray]) -> tuple[int, ...]:
    """A smallest set of axes in conflict: pairs first, then all of them, less those that are not needed."""

    def conflict(members: Sequence[int]) -> bool:
        part = table.sum(axis=tuple(v for v in range(table.ndim) if v not in members))
        return _possible_cells(part, [wanted[v] for v in members]) is None

    for pair in combinations(range(len(wanted)), 2):
        if conflict(pair):
            return pair
    rest = tuple(range(len(wanted)))
    for v in range(len(wanted)):
        fewer = tuple(u for u in rest if u != v)
        if len(fewer) > 1 and conflict(fewer):
            rest = fewer
    return rest
