"""Ascent with a known curvature: few evaluations of an expensive objective whose shape a cheap one has told."""

from __future__ import annotations

import numpy as np

from gramgraph.gp.hyper import Objective, Search
from gramgraph.typing import FloatArray

_LONGEST = 2.0  # most that an entry of theta, a logarithm, moves in a step


def curvature_at(objective: Objective, theta: FloatArray, bounds: FloatArray, *, step: float = 1e-3) -> FloatArray:
    """Minus the Hessian of the objective, (p, p), by p differences of gradients, made positive definite.

    >>> A = np.array([[4.0, 1.0], [1.0, 2.0]])
    >>> wide = np.array([[-9.0, 9.0], [-9.0, 9.0]])
    >>> curvature_at(lambda t, gradient: (-0.5 * t @ A @ t, -A @ t), np.zeros(2), wide).round(4)
    array([[4., 1.],
           [1., 2.]])
    """
    p = len(theta)
    here = objective(theta, True)[1]
    H = np.zeros((p, p))
    for i in range(p):
        moved = theta.copy()
        moved[i] += step if theta[i] + step <= bounds[i, 1] else -step
        there = objective(moved, True)[1]
        if here is not None and there is not None:
            H[i] = (here - there) / (moved[i] - theta[i])
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    size = np.abs(values)
    # flat and rising directions get a curvature too, small but not so small that a step leaves the page
    return (vectors * np.maximum(size, 1e-2 + 1e-3 * size.max(initial=0.0))) @ vectors.T


def quasi_newton(
    objective: Objective,
    theta: FloatArray,
    bounds: FloatArray,
    curvature: FloatArray,  # (p, p) positive definite, about minus the Hessian
    *,
    tol: float = 1e-9,
    slope_tol: float = 1e-5,
    steps: int = 200,
) -> Search:
    """Climb inside the bounds by damped BFGS steps that begin with the given curvature.

    It ends when the gradient is below `slope_tol`, or when a step gains (or promises) less than `tol` of the value.

    >>> A = np.array([[4.0, 1.0], [1.0, 2.0]])
    >>> bounds = np.array([[-9.0, 9.0], [0.5, 9.0]])
    >>> found = quasi_newton(lambda t, gradient: (-0.5 * t @ A @ t, -A @ t), np.ones(2), bounds, A)
    >>> found.theta.round(6), found.converged
    (array([-0.125,  0.5  ]), True)
    """
    low, high = bounds[:, 0], bounds[:, 1]
    theta = np.clip(theta, low, high)
    value, slope = objective(theta, True)
    calls, H, converged = 1, curvature.copy(), False
    for _ in range(steps):
        if slope is None or not np.isfinite(value):
            break
        free = ~(((theta <= low) & (slope < 0.0)) | ((theta >= high) & (slope > 0.0)))
        if not free.any() or np.abs(slope[free]).max() <= slope_tol:
            converged = True
            break
        move = np.zeros_like(theta)
        move[free] = np.linalg.solve(H[np.ix_(free, free)], slope[free])
        if 0.5 * float(slope @ move) <= tol * max(abs(value), 1.0):  # what a step would gain
            converged = True
            break
        move *= min(1.0, _LONGEST / float(np.abs(move).max()))
        found = _line_search(objective, theta, value, slope, move, low, high)
        calls += found[3]
        if found[1] is None:  # no way up: rounding
            converged = True
            break
        new, gain = found[0], found[2] - value
        H = _updated(H, new - theta, slope - found[1])
        theta, slope, value = new, found[1], found[2]
        if gain <= tol * max(abs(value), 1.0):
            converged = True
            break
    return Search(theta, float(value), calls, converged, ((float(value), theta),))


def _line_search(
    objective: Objective,
    theta: FloatArray,
    value: float,
    slope: FloatArray,
    move: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> tuple[FloatArray, FloatArray | None, float, int]:
    """(theta, slope, value, calls) of the first length that climbs enough; slope None when none does."""
    length = 1.0
    for calls in range(1, 16):
        new = np.clip(theta + length * move, low, high)
        expected = float(slope @ (new - theta))
        there, new_slope = objective(new, True)
        if np.isfinite(there) and new_slope is not None and there >= value + 1e-4 * expected:
            return new, new_slope, there, calls
        # the top of the parabola through what is known, kept within reason
        short = 0.5 * expected / (expected + value - there) if np.isfinite(there) and expected > 0.0 else 0.1
        length *= min(max(short, 0.1), 0.5)
        if length * float(np.abs(move).max()) < 1e-9:
            break
    return theta, None, value, calls


def _updated(H: FloatArray, s: FloatArray, y: FloatArray) -> FloatArray:
    """BFGS for minus the Hessian, with Powell's damping: it stays positive definite."""
    Hs = H @ s
    bend = float(s @ Hs)
    if bend <= 0.0:
        return H
    inner = float(s @ y)
    share = 1.0 if inner >= 0.2 * bend else 0.8 * bend / (bend - inner)
    y = share * y + (1.0 - share) * Hs
    return H - np.outer(Hs, Hs) / bend + np.outer(y, y) / float(s @ y)
