"""Limited-memory quasi-Newton descent, smooth (L-BFGS) or with an L1 penalty (OWL-QN).

The rules for stopping are those of CRFsuite's users: little slope, or little progress over some iterations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
    steps: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=memory)
    f, g = evaluate(w)
    value = f + c1 * float(np.abs(w).sum()) if c1 else f
    history = [value]
    iteration = 0
    while True:
        slope = _steepest(w, g, c1)
        if np.linalg.norm(slope) <= epsilon * max(1.0, float(np.linalg.norm(w))):
            return Descent(w, value, tuple(history), "gradient")
        if max_iter is not None and iteration >= max_iter:
            return Descent(w, value, tuple(history), "max_iterations")
        direction = _direction(slope, steps)
        if c1:
            direction[direction * slope >= 0.0] = 0.0
        if not direction @ slope < 0.0:
            direction = -slope
            steps.clear()
        step = 1.0 if steps else 1.0 / float(np.linalg.norm(direction))
        found = _search_l1(evaluate, w, value, slope, direction, step, c1) if c1 else _search(
            evaluate, w, value, slope, direction, step
        )  # fmt: skip
        if found is None:
            if steps:  # curvature of the past may mislead: once more along the plain slope
                steps.clear()
                continue
            return Descent(w, value, tuple(history), "line search")
        moved, value, new_g = found
        s, y = moved - w, new_g - g
        if (sy := float(s @ y)) > 1e-10 * float(y @ y) ** 0.5 * float(s @ s) ** 0.5:
            steps.append((s, y, sy))
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


def _direction(slope: FloatArray, steps: deque[tuple[FloatArray, FloatArray, float]]) -> FloatArray:
    """− H · slope by the two-loop recursion, H a guess of the inverse Hessian."""
    q = -slope
    weights = []
    for s, y, sy in reversed(steps):
        a = float(s @ q) / sy
        q -= a * y
        weights.append(a)
    if steps:
        s, y, sy = steps[-1]
        q *= sy / float(y @ y)
    for (s, y, sy), a in zip(steps, reversed(weights), strict=True):
        q += (a - float(y @ q) / sy) * s
    return q


def _search(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    w: FloatArray, value: float, g: FloatArray, d: FloatArray, step: float,
) -> tuple[FloatArray, float, FloatArray] | None:  # fmt: skip
    """A step with sufficient decrease and a flatter slope (weak Wolfe), by bracketing; None when none is found."""
    low, high = 0.0, np.inf
    slope = float(g @ d)
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
