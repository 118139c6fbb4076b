"""Hyper-parameters: bounded ascent with warm-started restarts, slice sampling and quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from gramgraph._threads import in_threads, one_thread, spare_threads
from gramgraph._validation import generator
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray

#: (theta, gradient wanted) ↦ (value, gradient or None), to be maximized.
Objective: TypeAlias = Callable[[FloatArray, bool], tuple[float, FloatArray | None]]
_LITTLE = 0.25  # gradient of entries that matter little, by a logarithm; their curvature is below its inverse
_STEEP = 1.0  # nats by a logarithm: less is left near a top
_ENOUGH = 1e-4  # nats that the last steps on all points may leave behind


# --- ascent -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Search:
    """The best theta that was found, and how."""

    theta: FloatArray
    value: float
    evaluations: int  # of the full objective, with or without gradient
    converged: bool
    optima: tuple[tuple[float, FloatArray], ...] = ()  # (value, theta) of every start that was followed to its end


def ascend(
    objective: Objective, theta: FloatArray, bounds: FloatArray, *, tol: float = 1e-9, steps: int = 500
) -> Search:
    """L-BFGS inside the bounds from one start. Where the objective fails it counts as very bad, not as an error.

    Its line search may give up on a slope, after one step into a cliff: then short steps go on from there.
    """
    from scipy.optimize import minimize

    worst = 1e25
    calls = 0

    def negative(t: FloatArray) -> tuple[float, FloatArray]:
        nonlocal calls
        calls += 1
        value, slope = objective(t, True)
        if not np.isfinite(value) or slope is None or not np.isfinite(slope).all():
            return worst, np.zeros_like(t)
        return -value, -slope

    start = np.clip(theta, bounds[:, 0], bounds[:, 1])
    if len(start) == 0:
        return Search(start, objective(start, False)[0], 1, True)
    found = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(low if np.isfinite(low) else None, high if np.isfinite(high) else None) for low, high in bounds],
        options={"ftol": tol, "gtol": 1e-5, "maxiter": steps, "maxfun": 2 * steps},
    )
    value = -float(found.fun) if found.fun < worst else -np.inf
    best = (value, np.asarray(found.x))
    end = Search(best[1], value, calls, bool(found.success), (best,))
    usual = max(_STEEP, 10.0 * np.sqrt(tol) * abs(value))  # of an end that is within tol · |value| of a sharp top
    if found.nit >= steps or not np.isfinite(value) or _ahead(end.theta, -found.jac, bounds) <= usual:
        return end
    guess = curvature_inverse(objective, end.theta, bounds, 1.0)
    further = quasi_newton(objective, end.theta, bounds, guess, tol=tol, steps=steps)
    calls += further.evaluations + len(start) + 1
    return replace(further if further.value > value else end, evaluations=calls)


def _ahead(theta: FloatArray, slope: FloatArray, bounds: FloatArray) -> float:
    """The steepest slope by an entry that the bounds let move."""
    held = ((theta <= bounds[:, 0]) & (slope < 0.0)) | ((theta >= bounds[:, 1]) & (slope > 0.0))
    return float(np.abs(np.where(held, 0.0, slope)).max())


def random_starts(theta: FloatArray, bounds: FloatArray, restarts: int, rng: np.random.Generator) -> list[FloatArray]:
    """Starts by turns near the given theta (e^±1.5 in scale) and uniform between the bounds."""
    low, high = bounds[:, 0], bounds[:, 1]
    wide = np.isfinite(low) & np.isfinite(high)
    starts = []
    for i in range(restarts):
        near = theta + 1.5 * rng.standard_normal(len(theta))
        far = rng.uniform(np.where(wide, low, theta - 3.0), np.where(wide, high, theta + 3.0))
        starts.append(np.clip(near if i % 2 == 0 else far, low, high))
    return starts


def quasi_newton(
    objective: Objective,
    theta: FloatArray,
    bounds: FloatArray,
    inverse: FloatArray,  # (p, p) guess of the inverse of −Hessian
    *,
    tol: float = 1e-9,
    enough: float = 0.0,
    steps: int = 200,
) -> Search:
    """BFGS inside the bounds from a guess of the curvature: a few steps where the guess is good.

    Entries at a bound that the gradient pushes outward stay there; steps are halved until they climb. It ends where the
    curvature promises less than `enough`, or after steps that gained nothing.
    """
    low, high = bounds[:, 0], bounds[:, 1]
    theta = np.clip(theta, low, high)
    value, slope = objective(theta, True)
    calls, small_gains = 1, 0
    M, tried = inverse.copy(), np.zeros(len(theta), np.bool_)
    if slope is None or not np.isfinite(value):
        return Search(theta, -np.inf, calls, False)
    for _ in range(steps):
        free = ~(((theta <= low) & (slope < 0)) | ((theta >= high) & (slope > 0)))
        if not free.any() or np.abs(slope[free]).max() < 1e-5:
            return Search(theta, value, calls, True, ((value, theta),))
        step = np.zeros_like(theta)
        step[free] = M[np.ix_(free, free)] @ slope[free]
        if 0.0 <= 0.5 * float(step @ slope) < enough:
            return Search(theta, value, calls, True, ((value, theta),))
        if step @ slope <= 0:  # the guess has failed: plain ascent, and learn again
            M = np.eye(len(theta)) / max(1.0, float(np.abs(slope).max()))
            step = np.where(free, M @ slope, 0.0)
        step *= min(1.0, 2.0 / float(np.abs(step).max()))
        ends = np.where(free & ~tried, _far_end(theta, slope, M, low, high), theta) - theta
        far = ends != 0.0
        tried |= far
        for _ in range(20):
            new = np.clip(theta + np.where(far, ends, step), low, high)
            new_value, new_slope = objective(new, True)
            calls += 1
            moved = new - theta
            wanted = 0.5 * float(slope @ step) if far.any() else 1e-4 * float(slope @ moved)
            if np.isfinite(new_value) and new_slope is not None and new_value >= value + wanted:
                break
            step = step if far.any() else 0.3 * step
            far[:] = False
        else:
            return Search(theta, value, calls, small_gains > 0, ((value, theta),))
        M = _bfgs(M, np.where(far, 0.0, moved), np.where(far, 0.0, slope - new_slope))
        gain = (new_value - value) / max(abs(value), abs(new_value), 1.0)
        theta, value, slope = new, new_value, new_slope
        small_gains = small_gains + 1 if gain < tol else 0
        if small_gains >= 2 or gain < 1e-3 * tol:
            return Search(theta, value, calls, True, ((value, theta),))
    return Search(theta, value, calls, False, ((value, theta),))


def _far_end(theta: FloatArray, slope: FloatArray, M: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The bound ahead of every entry that matters little, and theta for the others.

    The length scale of an idle column gains ever less the longer it gets: steps of the size of one would go on for
    long, and teach a curvature that is none. One trial tells whether it may go to its end at once.
    """
    end = np.where(slope > 0.0, high, low)
    little = (np.abs(slope) < _LITTLE) & (np.diagonal(M) > _LITTLE) & (np.abs(end - theta) > 1.0)
    return np.where(little & np.isfinite(end), end, theta)


def _bfgs(M: FloatArray, s: FloatArray, y: FloatArray) -> FloatArray:
    """The update of an inverse Hessian by a step s over which the (negative) gradient changed by y."""
    sy = float(s @ y)
    if sy <= 1e-12 * float(np.linalg.norm(s) * np.linalg.norm(y)):
        return M
    My = M @ y
    return M + (1.0 + float(y @ My) / sy) * np.outer(s, s) / sy - (np.outer(My, s) + np.outer(s, My)) / sy


def curvature_inverse(
    objective: Objective, theta: FloatArray, bounds: FloatArray, times: float, n_jobs: int = 1
) -> FloatArray:
    """(−Hessian · times)⁻¹ from differences of gradients, made positive definite; p + 1 evaluations."""
    h = 1e-3
    base = np.clip(theta, bounds[:, 0], bounds[:, 1] - h)
    p = len(theta)
    slopes = in_threads(lambda at: objective(at, True)[1], [base, *(base + h * np.eye(p))], n_jobs)
    if any(slope is None for slope in slopes):
        return np.eye(p)
    Hessian = (np.array(slopes[1:]) - slopes[0]) / h
    if not np.isfinite(Hessian).all():
        return np.eye(p)
    values, vectors = np.linalg.eigh(-0.5 * times * (Hessian + Hessian.T))
    return (vectors / np.maximum(np.abs(values), 1e-2)) @ vectors.T


def search(
    objective: Objective,
    theta: FloatArray,
    bounds: FloatArray,
    *,
    restarts: int = 0,
    small: Objective | None = None,
    share: float = 1.0,
    middle: tuple[Objective, float] | None = None,
    tol: float = 1e-9,
    random_state: Any = None,
    n_jobs: int = 1,
) -> Search:
    """The best of several ascents, on `n_jobs` threads, which share the matrices of a single one.

    With `small`, the objective of a `share` of the points, the starts are followed there first, where a step is cheap.
    The ends are ranked by the full objective; the best (and the second, when it is near) goes on there with the
    curvature that the subset has shown. With `middle`, the objective of a larger share (and that share), this happens
    there, and all points are asked for the last few steps alone: from near the top, with the curvature found there.
    """
    starts = [np.clip(theta, bounds[:, 0], bounds[:, 1])]
    starts += random_starts(starts[0], bounds, restarts, generator(random_state))
    if small is None or not len(theta):
        found = _each(lambda start: ascend(objective, start, bounds, tol=tol), starts, n_jobs)
        evaluations = 0
    elif middle is not None:
        larger, portion = middle
        near = search(larger, theta, bounds, restarts=restarts, small=small, share=share / portion, tol=1e-7,
                      random_state=random_state, n_jobs=n_jobs)  # fmt: skip
        guess = curvature_inverse(larger, near.theta, bounds, 1.0 / portion, n_jobs)
        last = partial(quasi_newton, objective, bounds=bounds, inverse=guess, tol=tol, enough=_ENOUGH)
        found = _each(last, [near.theta], n_jobs)
        evaluations = 0
    else:
        with one_thread():
            climb = partial(ascend, small, bounds=bounds, tol=1e-6, steps=100)
            ends = in_threads(climb, starts, n_jobs)
        ends = _different(sorted(ends, key=lambda e: -e.value))[:4]
        ranked = [(0.0, ends[0].theta)]
        if len(ends) > 1:
            values = in_threads(lambda end: objective(end.theta, False)[0], ends, n_jobs)
            pairs = zip(values, [end.theta for end in ends], strict=True)
            ranked = sorted(pairs, key=lambda pair: -pair[0])
        evaluations = len(ends) if len(ends) > 1 else 0
        tops = [t for v, t in ranked[:2] if v > ranked[0][0] - max(10.0, 0.02 * abs(ranked[0][0]))] or [starts[0]]

        def finish(top: FloatArray) -> Search:
            guess = curvature_inverse(small, top, bounds, 1.0 / share, n_jobs if len(tops) == 1 else 1)
            return quasi_newton(objective, top, bounds, guess, tol=tol)

        found = _each(finish, tops, n_jobs)
    best = max(found, key=lambda s: s.value)
    evaluations += sum(s.evaluations for s in found)
    optima = tuple(s.optima[0] for s in found if s.optima)
    return Search(best.theta, best.value, evaluations, best.converged, optima)


def _each(ascent: Callable[[FloatArray], Search], starts: list[FloatArray], n_jobs: int) -> list[Search]:
    """One ascent from each start; a single one has all threads for its matrices."""
    if len(starts) > 1:
        return in_threads(ascent, starts, n_jobs)
    with spare_threads(n_jobs):
        return [ascent(start) for start in starts]


def _different(ends: list[Search], distance: float = 0.3) -> list[Search]:
    """One of each hill: ends of nearly the same value differ in directions that do not matter."""
    kept: list[Search] = []
    for end in ends:
        same = any(
            np.abs(end.theta - other.theta).max() < distance or abs(end.value - other.value) < 0.2 for other in kept
        )
        if not same:
            kept.append(end)
    return kept


# --- beyond a point -----------------------------------------------------------------------------------------------


def slice_sample(
    log_density: Callable[[FloatArray], float],
    theta: FloatArray,
    bounds: FloatArray,
    n: int,
    *,
    burn: int = 20,
    width: float = 1.0,
    random_state: Any = None,
) -> FloatArray:
    """n draws of theta, one per row, by slice sampling one coordinate after the other (step out, shrink in).

    Every kept draw is one sweep over all coordinates; about 4 evaluations a coordinate.

    Parameters
    ----------
    log_density : function of theta, up to a constant.
    theta : where the chain begins.
    bounds : (p, 2) of theta.
    n : number of draws.
    burn : sweeps before the first draw.
    width : of the first interval along a coordinate.
    random_state : seed, or a generator.

    Examples
    --------
    >>> draws = slice_sample(lambda t: -0.5 * float(t @ t), np.zeros(1), np.array([[-9.0, 9.0]]), 500, random_state=0)
    >>> bool(abs(draws.mean()) < 0.2 and abs(draws.std() - 1.0) < 0.2)
    True
    """
    rng = generator(random_state)
    low, high = bounds[:, 0], bounds[:, 1]
    theta = np.clip(np.array(theta, dtype=float), low, high)
    value = log_density(theta)
    if not np.isfinite(value):
        raise ModelError("slice sampling needs a start of positive density.")
    kept = np.empty((n, len(theta)))
    for sweep in range(-burn, n):
        for i in range(len(theta)):
            level = value - rng.exponential()

            def at(x: float, i: int = i) -> float:
                moved = theta.copy()
                moved[i] = x
                found = log_density(moved)
                return found if np.isfinite(found) else -np.inf

            left = theta[i] - width * rng.uniform()
            right = left + width
            for _ in range(30):
                if left <= low[i] or at(left) <= level:
                    break
                left -= width
            for _ in range(30):
                if right >= high[i] or at(right) <= level:
                    break
                right += width
            left, right = max(left, low[i]), min(right, high[i])
            while True:
                x = rng.uniform(left, right)
                new = at(x)
                if new > level or right - left < 1e-12:
                    break
                left, right = (x, right) if x < theta[i] else (left, x)
            if new > level:
                theta[i], value = x, new
        if sweep >= 0:
            kept[sweep] = theta
    return kept


def quadrature(
    log_density: Callable[[FloatArray], float],
    mode: FloatArray,
    bounds: FloatArray,
    *,
    order: int = 3,
    most: int = 1000,
) -> tuple[FloatArray, FloatArray, float]:
    """Nodes (m, p), weights (m,) that add up to 1, and log ∫ exp(log_density).

    Gauss–Hermite nodes in the axes of the Laplace approximation at the mode (its curvature by differences), weighted
    by the ratio of the density to that approximation: exact for a Gaussian, order^p evaluations.

    Parameters
    ----------
    log_density : function of theta, up to a constant.
    mode : where the density is largest.
    bounds : (p, 2) of theta.
    order : nodes along an axis.
    most : nodes altogether, at most.

    Examples
    --------
    >>> nodes, weights, log_z = quadrature(lambda t: -2.0 * float(t @ t), np.zeros(1), np.array([[-9.0, 9.0]]))
    >>> bool(abs(log_z - 0.5 * np.log(np.pi / 2.0)) < 1e-6), round(float(weights @ nodes[:, 0] ** 2), 4)
    (True, 0.25)
    """
    p = len(mode)
    if p == 0:
        return mode[None, :], np.ones(1), float(log_density(mode))
    if order**p > most:
        raise ModelError(
            f"quadrature over {p} hyper-parameters needs {order**p} evaluations, more than {most}. Try: fix "
            f"some of them (kernel.fix(…)), a lower order, or slice sampling."
        )
    root = _laplace_root(log_density, mode, bounds)
    x, w = np.polynomial.hermite_e.hermegauss(order)
    grid = np.stack(np.meshgrid(*[x] * p, indexing="ij"), axis=-1).reshape(-1, p)
    log_w = np.log(np.stack(np.meshgrid(*[w] * p, indexing="ij"), axis=-1)).reshape(-1, p).sum(1)
    nodes = np.clip(mode + grid @ root.T, bounds[:, 0], bounds[:, 1])
    logs = np.array([log_density(node) for node in nodes]) + 0.5 * (grid**2).sum(1) + log_w
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    top = logs.max()
    weights = np.exp(logs - top)
    log_z = float(top + np.log(weights.sum()) + np.linalg.slogdet(root)[1])
    return nodes, weights / weights.sum(), log_z


def _laplace_root(
    log_density: Callable[[FloatArray], float], mode: FloatArray, bounds: FloatArray, step: float = 1e-2
) -> FloatArray:
    """C with C Cᵀ = (−Hessian)⁻¹; flat or rising directions (a mode at a bound) get the scale 1."""
    p = len(mode)
    inner = np.clip(mode, bounds[:, 0] + 2 * step, bounds[:, 1] - 2 * step)
    eye = step * np.eye(p)
    center = log_density(inner)
    Hessian = np.empty((p, p))
    for i in range(p):
        for j in range(i + 1):
            if i == j:
                found = log_density(inner + eye[i]) - 2.0 * center + log_density(inner - eye[i])
            else:
                found = 0.25 * (
                    log_density(inner + eye[i] + eye[j])
                    - log_density(inner + eye[i] - eye[j])
                    - log_density(inner - eye[i] + eye[j])
                    + log_density(inner - eye[i] - eye[j])
                )
            Hessian[i, j] = Hessian[j, i] = found / step**2
    values, vectors = np.linalg.eigh(-Hessian)
    return vectors / np.sqrt(np.where(values > 1.0, values, np.maximum(values, 0.25)))
