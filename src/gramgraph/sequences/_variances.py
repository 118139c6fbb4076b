"""Variances of a structural series by maximum likelihood: several starts, then scoring, with zeros where they pay.

The likelihood of variances has flat valleys, several tops, and often its maximum where some variance is zero. So first
many patterns of variances are compared at their best common scale, which needs no search; the best of them are climbed
in logarithms by Newton's steps with the average information, which costs little beside the gradient; a variance that
falls is tried at zero, and raised from there if that gains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from gramgraph._numerics.state_space.structural import scalar_filter, scalar_profile, scalar_score
from gramgraph.sequences._standing import Standing
from gramgraph.typing import FloatArray, IntArray

_STARTS = 3
_LOWEST = -32.0  # logarithm of the smallest positive variance, the largest being one
_STILL = 1e-7  # change in the logarithms of the variances that counts as none
_FARTHEST = 3.0  # change in them that one step may make


@dataclass(frozen=True)
class ScalarLikelihood:
    """log p(y | variances) of a series of numbers from an unknown start; variances are (noise, those of `driven`)."""

    A: FloatArray  # (s, s)
    H: FloatArray  # (1, s) or (T, s)
    driven: tuple[int, ...]  # the state that each noise but the first moves
    y: FloatArray  # (T,)
    seasons: tuple[slice, ...] = ()  # states that are the last effects of a season
    _model: Standing = field(init=False)
    _work: tuple[FloatArray, ...] = field(init=False)  # kinds of observations, innovations, their variances, gains

    def __post_init__(self) -> None:
        T = len(self.y)
        model = Standing.of(self.A, self.H, self.driven, self.seasons, T)
        work = np.zeros(T, np.int64), np.zeros(T), np.zeros(T), np.zeros((T, len(model.start)))
        object.__setattr__(self, "_model", model)
        object.__setattr__(self, "_work", work)

    @property
    def n_closed(self) -> int:
        """Directions of the first state that the observations determined when last asked."""
        return int((self._work[0] == 2).sum())

    @property
    def n_counted(self) -> int:
        """Observations that did something else."""
        return int((self._work[0] == 1).sum())

    def _given(self, variances: FloatArray) -> tuple[Any, ...]:
        return (*self._model.arrays(), self._model.start, variances[1:], variances[0], self.y, *self._work)

    def value(self, variances: FloatArray) -> float:
        """log p(y)."""
        return float(scalar_filter(*self._given(variances))[0])

    def with_gradient(self, variances: FloatArray) -> tuple[float, FloatArray]:
        """log p(y), and its derivative in the variances."""
        value = self.value(variances)
        n = len(variances)
        squares, informations = np.empty(n), np.empty(n)
        scalar_score(*self._model.arrays(), *self._work, np.empty((len(self.y), n)), squares, informations)
        return value, 0.5 * (squares - informations)

    def at_best_scale(self, variances: FloatArray) -> tuple[float, FloatArray]:
        """The highest log p(y) of multiples of these variances, and that multiple."""
        best, scale = _best_multiple(*scalar_filter(*self._given(variances)))
        return best, variances * scale

    def profile(self, variances: FloatArray) -> Profile:
        """The highest log p(y) of multiples of these variances, with slope and curvature there."""
        n = len(variances)
        scores, squares, informations, curve = np.empty((len(self.y), n)), np.empty(n), np.empty(n), np.empty((n, n))
        best, scale = _best_multiple(*scalar_profile(*self._given(variances), scores, squares, informations, curve))
        if best == -np.inf:
            return Profile(variances, best, variances, np.zeros(n), np.eye(n))
        return Profile(variances, best, variances * scale, 0.5 * (squares / scale - informations), 0.5 / scale * curve)


def _best_multiple(value: float, squares: float, n: int) -> tuple[float, float]:
    """The highest log p(y) that a common factor of the variances gives, and that factor."""
    scale = squares / max(n, 1)
    if not math.isfinite(value) or not scale > 0.0:
        return -math.inf, 1.0
    return value + 0.5 * (squares - n - n * math.log(scale)), scale


@dataclass(frozen=True)
class Profile:
    """The likelihood of all multiples of some variances; slope and curvature as if the best of them were given."""

    variances: FloatArray
    log_likelihood: float  # at the best multiple
    scaled: FloatArray  # that multiple
    slope: FloatArray  # in the variances before they are multiplied
    curve: FloatArray  # average information


@dataclass(frozen=True)
class Top:
    """Where the climb ended."""

    variances: FloatArray
    log_likelihood: float
    converged: bool


def highest(likelihood: ScalarLikelihood, max_iter: int) -> Top:
    """The highest top found; `converged` says that no direction leads up from it."""
    n = 1 + len(likelihood.driven)
    patterns = [np.exp(pattern) for pattern in _patterns(n)]
    tries = [(likelihood.at_best_scale(pattern)[0], pattern) for pattern in patterns]
    tries = sorted((found for found in tries if np.isfinite(found[0])), key=lambda found: -found[0])
    tops: list[Profile] = []
    for _, start in tries[:_STARTS]:
        top = _climbed(likelihood, likelihood.profile(start), max_iter, tops)
        if top is not None:
            tops.append(top)
    best = max(tops, key=lambda top: top.log_likelihood)
    still = bool((np.abs(best.slope * best.variances) < 1e-3).all())
    variances = best.scaled
    return Top(variances, likelihood.value(variances), still and _raised(likelihood, best) is None)


def _patterns(n: int) -> list[FloatArray]:
    """Logarithms of variances to begin with: all alike, some low, some far below the others."""
    rows = [np.zeros(n)]
    for deep in (-4.0, -9.0):
        for size in (1, 2, n - 1):
            rows += [np.where(np.isin(np.arange(n), high), 0.0, deep) for high in combinations(range(n), size)]
    return list({row.tobytes(): row for row in rows}.values())


def _climbed(likelihood: ScalarLikelihood, here: Profile, max_iter: int, known: list[Profile]) -> Profile | None:
    """The top above these variances; None where the way leads to one of those known."""
    for _ in range(2 * len(here.variances)):
        top = _stepped(likelihood, here, max_iter, known)
        if top is None:
            return None
        raised = _raised(likelihood, top)
        if raised is None:
            return top
        here = raised
    return top


def _stepped(likelihood: ScalarLikelihood, here: Profile, max_iter: int, known: list[Profile]) -> Profile | None:
    """Up in the logarithms of the positive variances, some of which may fall to zero; those that are zero stay."""
    damping = 1e-2
    for _ in range(max_iter):
        if any(_near(here, top) for top in known):
            return None
        free = np.flatnonzero(here.variances)
        v = here.variances[free]
        size = np.sqrt(here.curve.diagonal()[free])
        size[size == 0.0] = 1.0
        slope = here.slope[free] / size  # the variances' own units are gone, those of their logarithms not yet there
        curve = here.curve[free[:, None], free] / (size[:, None] * size)
        moved = None
        while moved is None and damping < 1e6:
            step = _newton(curve, slope, size * v, damping)
            near = np.abs(step).max() < 1e3 * _STILL
            if near and np.abs(_newton(curve, slope, size * v, 0.0)).max() < _STILL:
                return here
            moved = _moved(likelihood, here, free, step)
            damping = damping * 10.0 if moved is None else damping * 0.03
        if moved is None:
            return here
        here = moved
    return here


def _newton(curve: FloatArray, slope: FloatArray, unit: FloatArray, damping: float) -> FloatArray:
    """The step in the logarithms; that of the surest is none, as a common factor changes nothing."""
    damped = curve.copy()
    damped.ravel()[:: len(curve) + 1] += max(damping, 1e-13)
    step: FloatArray = np.linalg.solve(damped, slope) / unit
    return step - step[unit.argmax()]


def _moved(likelihood: ScalarLikelihood, here: Profile, free: IntArray, step: FloatArray) -> Profile | None:
    """After that step, or with variances that it takes far down set to zero; None where it does not lead up."""
    v = here.variances[free]
    ahead = v * np.exp(np.clip(step, -_FARTHEST, _FARTHEST))
    ahead = np.maximum(ahead / ahead.max(), np.exp(_LOWEST))
    falls = step < -1.0  # below zero, had the step been one in the variances themselves
    for low in (True, False) if falls.any() else (False,):
        trial = np.zeros_like(here.variances)
        trial[free] = np.where(falls, 0.0, ahead) if low else ahead
        found = likelihood.profile(trial)
        gain = found.log_likelihood - here.log_likelihood
        if low:
            if gain >= 0.0 and (found.slope[free[falls]] <= 0.0).all():
                return found
        elif gain > 1e-9 or (gain > -1e-9 and _tilt(found) < 0.5 * _tilt(here)):
            return found
    return None


def _tilt(here: Profile) -> float:
    return float(np.abs(here.slope * here.variances).max())


def _near(here: Profile, top: Profile) -> bool:
    """Whether these variances are those of the top but for little, and a common factor."""
    if here.log_likelihood > top.log_likelihood + 1e-6 or ((here.variances > 0.0) != (top.variances > 0.0)).any():
        return False
    free = top.variances > 0.0
    apart = np.log(here.scaled[free] / top.scaled[free])
    return bool(np.abs(apart).max() < 0.02)


def _raised(likelihood: ScalarLikelihood, here: Profile) -> Profile | None:
    """With a variance that is zero made positive, where that gains; None where none does."""
    top = float(here.variances.max())
    for i in np.flatnonzero((here.variances == 0.0) & (here.slope > 0.0)):
        for value in (here.slope[i] / max(here.curve[i, i], 1e-300), 1e-2 * top, 1e-4 * top, 1e-6 * top, 1e-8 * top):
            trial = here.variances.copy()
            trial[i] = value
            found = likelihood.profile(trial)
            if found.log_likelihood > here.log_likelihood + 1e-7:
                return found
    return None
