"""Limited-memory quasi-Newton descent, smooth (L-BFGS) or with an L1 penalty (OWL-QN).

The rules for stopping are those of CRFsuite's users: little slope, or little progress over some iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gramgraph._numerics import descent as _loops
from gramgraph.typing import FloatArray

_ARMIJO, _CURVATURE, _MOST_TRIALS = 1e-4, 0.9, 20


@dataclass(frozen=True)
class Descent:
    """Where a descent ended: the point, its value (with penalties), the values on the way, and why it stopped."""

    w: FloatArray
    value: float
    history: tuple[float, ...]
    reason: str

    @property
    def converged(self) -> bool:
        """Whether a rule for stopping was met."""
        return self.reason in ("gradient", "progress")


def minimize(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    w: FloatArray,
    *,
    c1: float = 0.0,
    memory: int = 6,
    max_iter: int | None = None,
    epsilon: float = 1e-5,
    period: int = 10,
    delta: float = 1e-5,
    callback: Callable[[int, float], object] | None = None,
) -> Descent:
    """The least f(w) + c1 ‖w‖₁, where `evaluate` gives f and its gradient.

    It stops when ‖gradient‖ / max(1, ‖w‖) < epsilon, when `period` iterations improved the value by less than `delta`
    of it, after max_iter iterations, when no step improves it any more, or when `callback` returns True. One iteration
    costs one evaluation (rarely two) and 4 · memory · p additions.

    >>> found = minimize(lambda w: (float(((w - 3) ** 2).sum()), 2 * (w - 3)), np.zeros(2), c1=2.0)
    >>> found.w.round(6).tolist(), round(found.value, 6)
    ([2.0, 2.0], 10.0)
    """
    past = _Past(memory, len(w))
    f, g = evaluate(w)
    value = f + c1 * float(np.abs(w).sum()) if c1 else f
    history = [value]
    iteration = 0
    while True:
        slope = _steepest(w, g, c1)
        if _norm(slope) <= epsilon * max(1.0, _norm(w)):
            return Descent(w, value, tuple(history), "gradient")
        if max_iter is not None and iteration >= max_iter:
            return Descent(w, value, tuple(history), "max_iterations")
        direction, down = past.direction(slope)
        if c1:
            direction[direction * slope >= 0.0] = 0.0
            down = float(direction @ slope)
        if not down < 0.0:
            direction, down = -slope, -float(slope @ slope)
            past.forget()
        step = 1.0 if past.count else 1.0 / _norm(direction)
        found = _search_l1(evaluate, w, value, slope, direction, step, c1) if c1 else _search(
            evaluate, w, value, down, direction, step
        )  # fmt: skip
        if found is None:
            if past.count:  # curvature of the past may mislead: once more along the plain slope
                past.forget()
                continue
            return Descent(w, value, tuple(history), "line search")
        moved, value, new_g = found
        past.add(w, moved, g, new_g)
        w, g = moved, new_g
        iteration += 1
        history.append(value)
        if callback is not None and callback(iteration, value) is True:
            return Descent(w, value, tuple(history), "callback")
        if iteration >= period and history[-1 - period] - value <= max(delta, 1e-15) * abs(value):
            return Descent(w, value, tuple(history), "progress")


def _steepest(w: FloatArray, g: FloatArray, c1: float) -> FloatArray:
    """The gradient, or with an L1 penalty the least of the subgradients: 0 where staying at zero is best."""
    if not c1:
        return g
    at_zero = np.sign(g) * np.maximum(np.abs(g) - c1, 0.0)
    return np.where(w != 0.0, g + c1 * np.sign(w), at_zero)


class _Past:
    """The last moves and what they did to the slope."""

    def __init__(self, most: int, size: int) -> None:
        self._moves, self._changes = np.empty((most, size)), np.empty((most, size))
        self._products = np.empty(most)
        self._newest, self.count = -1, 0

    def add(self, w: FloatArray, moved: FloatArray, g: FloatArray, new: FloatArray) -> None:
        """Remember a move, if the slope grew along it."""
        at = (self._newest + 1) % len(self._products)
        if _loops.remember(w, moved, g, new, self._moves, self._changes, self._products, at):
            self._newest, self.count = at, min(self.count + 1, len(self._products))

    def forget(self) -> None:
        """Begin anew."""
        self.count = 0

    def direction(self, slope: FloatArray) -> tuple[FloatArray, float]:
        """− H · slope, H a guess of the inverse Hessian, and its product with the slope."""
        found: tuple[FloatArray, float] = _loops.quasi_newton(
            slope, self._moves, self._changes, self._products, self._newest, self.count
        )
        return found


def _norm(x: FloatArray) -> float:
    return math.sqrt(float(x @ x))


def _search(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    w: FloatArray, value: float, slope: float, d: FloatArray, step: float,
) -> tuple[FloatArray, float, FloatArray] | None:  # fmt: skip
    """A step along d with sufficient decrease and a flatter slope (weak Wolfe), by bracketing; None if none is found.

    `slope` is that along d at its beginning.
    """
    low, high = 0.0, np.inf
    best: tuple[FloatArray, float, FloatArray] | None = None
    for _ in range(_MOST_TRIALS):
        moved = w + step * d
        f, new = evaluate(moved)
        if not f <= value + _ARMIJO * step * slope:
            high = step
            # the parabola through both values and the slope at the start, kept off the ends
            guess = -0.5 * slope * step * step / (f - value - slope * step) if np.isfinite(f) else 0.1 * step
            step = low + 0.5 * (high - low) if low else float(np.clip(guess, 0.1 * step, 0.6 * step))
            continue
        best = (moved, f, new)
        if float(new @ d) >= _CURVATURE * slope:
            return best
        low = step
        step = 2.0 * step if np.isinf(high) else 0.5 * (low + high)
    return best


def _search_l1(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    w: FloatArray, value: float, slope: FloatArray, d: FloatArray, step: float, c1: float,
) -> tuple[FloatArray, float, FloatArray] | None:  # fmt: skip
    """Halving steps inside the orthant of w (of the descent where w is 0); what would leave it stays at 0."""
    orthant = np.where(w != 0.0, np.sign(w), -np.sign(slope))
    for _ in range(_MOST_TRIALS):
        moved = w + step * d
        moved[moved * orthant <= 0.0] = 0.0
        f, new = evaluate(moved)
        total = f + c1 * float(np.abs(moved).sum())
        if total <= value + _ARMIJO * float(slope @ (moved - w)):
            return moved, total, new
        step *= 0.5
    return None
