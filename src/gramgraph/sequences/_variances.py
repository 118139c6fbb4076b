"""Variances of a structural series by maximum likelihood: several starts, then Newton steps, with zeros where they pay.

The likelihood of variances has flat valleys, several tops, and often its maximum where some variance is zero. So first
many patterns of variances are compared at their best common scale, which needs no search; the best of them are climbed
in logarithms; and at the top each variance is set to zero if that costs nothing, or raised from it if that gains.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from gramgraph._numerics.state_space.structural import scalar_filter, scalar_score
from gramgraph.typing import FloatArray, IntArray

__all__ = ["ScalarLikelihood", "Top", "highest"]

_STARTS = 3
_LOWEST, _HIGHEST = -32.0, 12.0  # logarithms of variances of a series whose own is one
_FLAT = 1e-6  # slope in the logarithm of a variance that counts as none


@dataclass(frozen=True)
class ScalarLikelihood:
    """log p(y | variances) of a series of numbers from an unknown start; variances are (noise, those of `driven`)."""

    A: FloatArray  # (s, s)
    H: FloatArray  # (1, s) or (T, s)
    driven: tuple[int, ...]  # the state that each noise but the first moves
    y: FloatArray  # (T,)
    _sparse: tuple[tuple[IntArray, IntArray, FloatArray], ...] = field(init=False)
    _work: tuple[FloatArray, ...] = field(init=False)

    def __post_init__(self) -> None:
        T, s = len(self.y), len(self.A)
        object.__setattr__(self, "_sparse", (_rows(self.A), _rows(self.A.T)))
        work = np.zeros(T, np.int64), np.zeros(T), np.zeros(T), np.zeros((T, s))
        object.__setattr__(self, "_work", work)

    @property
    def n_closed(self) -> int:
        """Directions of the first state that the observations determined when last asked."""
        return int((self._work[0] == 2).sum())

    @property
    def n_counted(self) -> int:
        """Observations that did something else."""
        return int((self._work[0] == 1).sum())

    def _places(self) -> IntArray:
        T = len(self.y)
        return np.zeros(T, np.int64) if len(self.H) == 1 else np.arange(T)

    def _run(self, variances: FloatArray) -> tuple[float, float, int]:
        q = np.zeros(len(self.A))
        q[list(self.driven)] = variances[1:]
        found = scalar_filter(*self._sparse[0], q, self.H, self._places(), variances[0], self.y, *self._work)
        return float(found[0]), float(found[1]), int(found[2])

    def value(self, variances: FloatArray) -> float:
        """log p(y)."""
        return self._run(variances)[0]

    def with_gradient(self, variances: FloatArray) -> tuple[float, FloatArray]:
        """log p(y), and its derivative in the variances."""
        value = self._run(variances)[0]
        score = np.empty(1 + len(self.A))
        scalar_score(*self._sparse[1], self.H, self._places(), *self._work, score)
        return value, score[[0, *(1 + state for state in self.driven)]]

    def at_best_scale(self, variances: FloatArray) -> tuple[float, FloatArray]:
        """The highest log p(y) of multiples of these variances, and that multiple."""
        value, squares, n = self._run(variances)
        scale = squares / max(n, 1)
        if not np.isfinite(value) or not scale > 0.0:
            return -np.inf, variances
        return value + 0.5 * (squares - n - n * float(np.log(scale))), variances * scale


@dataclass(frozen=True)
class Top:
    """Where the climb ended."""

    variances: FloatArray
    log_likelihood: float
    converged: bool


def highest(likelihood: ScalarLikelihood, max_iter: int) -> Top:
    """The highest top found; `converged` says that no direction leads up from it."""
    n = 1 + len(likelihood.driven)
    tries = [likelihood.at_best_scale(np.exp(pattern)) for pattern in _patterns(n)]
    tries = sorted((found for found in tries if np.isfinite(found[0])), key=lambda found: -found[0])
    tops = [_settled(likelihood, _climbed(likelihood, start, max_iter), max_iter) for _, start in tries[:_STARTS]]
    return max(tops, key=lambda top: top.log_likelihood)


def _patterns(n: int) -> list[FloatArray]:
    """Logarithms of variances to begin with: all alike, some low, some far below the others."""
    rows = [np.zeros(n)]
    for deep in (-4.0, -9.0):
        for size in (1, 2, n - 1):
            rows += [np.where(np.isin(np.arange(n), high), 0.0, deep) for high in combinations(range(n), size)]
    return list({row.tobytes(): row for row in rows}.values())


def _climbed(likelihood: ScalarLikelihood, start: FloatArray, max_iter: int) -> FloatArray:
    """Up in the logarithms of the positive variances; those that are zero stay."""
    from scipy.optimize import minimize

    free = start > 0.0

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        here = start.copy()
        here[free] = np.exp(z)
        value, slope = likelihood.with_gradient(here)
        if not np.isfinite(value):
            return 1e300, np.zeros_like(z)
        return -value, -(slope * here)[free]

    limits = [(_LOWEST, _HIGHEST)] * int(free.sum())
    found = minimize(
        objective, np.clip(np.log(start[free]), _LOWEST, _HIGHEST), jac=True, method="L-BFGS-B", bounds=limits,
        options={"maxiter": max_iter, "ftol": 1e-13, "gtol": 1e-6, "maxcor": 20},
    )  # fmt: skip
    out = start.copy()
    out[free] = np.exp(found.x)
    return out


def _settled(likelihood: ScalarLikelihood, variances: FloatArray, max_iter: int) -> Top:
    """The top near these variances: zeros tried, Newton steps, and variances raised from zero where that gains."""
    for _ in range(2 * len(variances)):
        variances = _newton(likelihood, _with_zeros(likelihood, variances), max_iter)
        value, slope = likelihood.with_gradient(variances)
        raised = _raised(likelihood, variances, value, slope)
        if raised is None:
            break
        variances = _climbed(likelihood, raised, max_iter)
    value, slope = likelihood.with_gradient(variances)
    still = bool((np.abs(slope * variances) < 1e-3).all())
    return Top(variances, value, still and _raised(likelihood, variances, value, slope) is None)


def _with_zeros(likelihood: ScalarLikelihood, variances: FloatArray) -> FloatArray:
    """Variances that add nothing are zero: the smallest first."""
    best = likelihood.value(variances)
    for i in np.argsort(variances):
        trial = variances.copy()
        trial[i] = 0.0
        value = likelihood.value(trial)
        if trial.any() and value >= best - 1e-8:
            variances, best = trial, value
    return variances


def _raised(likelihood: ScalarLikelihood, variances: FloatArray, value: float, slope: FloatArray) -> FloatArray | None:
    """With a variance that is zero made positive, where that gains; None where none does."""
    top = float(variances.max())
    for i in np.flatnonzero((variances == 0.0) & (slope > 0.0)):
        for share in (1e-2, 1e-4, 1e-6, 1e-8):
            trial = variances.copy()
            trial[i] = share * top
            if likelihood.value(trial) > value + 1e-7:
                return trial
    return None


def _newton(likelihood: ScalarLikelihood, variances: FloatArray, max_iter: int) -> FloatArray:
    """Newton's steps in the logarithms of the positive variances: the last digits, which a climb leaves open."""
    free = np.flatnonzero(variances > 0.0)

    def at(z: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        here = variances.copy()
        here[free] = np.exp(z)
        value, slope = likelihood.with_gradient(here)
        return value, (slope * here)[free], here

    z = np.log(variances[free])
    value, slope, here = at(z)
    for _ in range(min(max_iter, 12)):
        if np.abs(slope).max() < _FLAT * 1e-3:
            break
        columns = [(at(z + step)[1] - at(z - step)[1]) / 2e-4 for step in 1e-4 * np.eye(len(z))]
        curve, axes = np.linalg.eigh(0.5 * (np.array(columns) + np.array(columns).T))
        move = axes @ ((axes.T @ slope) / np.maximum(np.abs(curve), 1e-6))
        move *= min(1.0, 3.0 / float(np.abs(move).max()))
        for _ in range(20):
            trial = at(np.clip(z + move, _LOWEST, _HIGHEST))
            if trial[0] > value - 1e-12 * abs(value) and np.isfinite(trial[0]):
                break
            move *= 0.25
        else:
            break
        z = np.clip(z + move, _LOWEST, _HIGHEST)
        done = trial[0] - value < 1e-11 and np.abs(trial[1]).max() >= 0.5 * np.abs(slope).max()
        value, slope, here = trial
        if done:
            break
    return here


def _rows(A: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """(starts, columns, values) of the entries that are not zero, row by row."""
    rows, cols = np.nonzero(A)
    starts = np.searchsorted(rows, np.arange(len(A) + 1)).astype(np.int64)
    return starts, cols.astype(np.int64), np.ascontiguousarray(A[rows, cols], dtype=np.float64)
