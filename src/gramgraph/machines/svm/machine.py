"""One two-class machine: the dual of its kind is solved, scaled and named."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from gramgraph.exceptions import ModelError, ModelWarning
from gramgraph.machines.svm import dual as duals
from gramgraph.machines.svm.linear import Descent, descend
from gramgraph.machines.svm.products import SparseRows
from gramgraph.machines.svm.rows import Source
from gramgraph.typing import FloatArray, IntArray

_ROUNDS = 8  # of a ν machine, each with a tolerance that fits the margin found by the last
_FINEST = 1e-11  # tolerance of such a round, relative to the spread of the kernel: sums in double precision reach it
_CLEARLY = 0.1  # part of the least margin, to which one below it is solved
_LEAST_MARGIN = 1e-7  # of a ν machine, relative to the same, however small `tol`


@dataclass(frozen=True)
class Settings:
    """How a machine is fitted: the kind of dual and the numbers of the solver."""

    C: float
    nu: float | None
    tol: float
    cache_bytes: float
    max_iter: int
    shrinking: bool
    precision: type | None = None
    n_jobs: int = 1  # threads over problems


@dataclass(frozen=True)
class Machine:
    """decision(x) = Σ beta_i k(x_i, x) + intercept over the n points of the problem."""

    beta: FloatArray  # (n,) signed
    intercept: float
    bound: IntArray  # points whose multiplier stands at its upper bound
    objective: float  # of the dual as a minimum, before scaling (ν and hard margin scale afterwards)
    iterations: int
    converged: bool
    curved: bool
    alpha: FloatArray | None = None  # (n,) multipliers of the C dual
    product: FloatArray | None = None  # (n,) Kβ
    least_nu: float = 0.0  # where the ν asked for leaves no margin: the one of this machine (inf: none has), else 0

    def scaled(self, ratio: float) -> tuple[FloatArray, FloatArray]:
        """A start for C · ratio: multipliers at their bound stay there, and Kβ scales with them."""
        assert self.alpha is not None and self.product is not None
        return self.alpha * ratio, self.product * ratio


def fit_machine(
    source: Source,
    y: FloatArray,  # (n,) ±1
    weight: FloatArray,  # (n,) positive
    settings: Settings,
    *,
    start: tuple[FloatArray, FloatArray] | None = None,
    names: tuple[object, object] = ("-1", "+1"),
) -> Machine:
    """C-SVC, ν-SVC (`nu` given) or the hard margin (C infinite)."""
    if settings.nu is None and np.isinf(settings.C):
        return _hard_margin(source, y, settings, names)
    if settings.nu is not None:
        return _nu_machine(source, y, weight, settings, settings.nu, names)
    upper = settings.C * weight
    # min keeps a multiplier that stood at its bound there after scaling, whatever rounding says.
    begin = None if start is None else (np.minimum(start[0] * (1 + 1e-15), upper), start[1])
    if begin is None and isinstance(source, SparseRows) and source.linear:
        near = descend(source.X, source.squares, y, upper, settings.tol, settings.max_iter)
        if near.gap <= settings.tol or near.sweeps == settings.max_iter:
            return _linear(near, y, upper, settings.tol)
        begin = (near.alpha, near.f + y)
    found = _solve(duals.classification(y, upper, begin), source, settings)
    return replace(_named(found, upper, 1.0), product=found.f[0] + y)


def _named(found: duals.Solution, upper: FloatArray, scale: float) -> Machine:
    """The machine of a solution whose decisions are multiplied by the scale."""
    alpha = found.alpha[0]
    return Machine(
        found.beta * scale,
        -found.rho * scale,
        np.flatnonzero(alpha >= upper),
        found.objective,
        iterations=found.iterations,
        converged=found.converged,
        curved=found.curved,
        alpha=alpha,
    )


def _nu_machine(
    source: Source, y: FloatArray, weight: FloatArray, settings: Settings, nu: float, names: tuple[object, object]
) -> Machine:
    """ν-SVC, scaled to a margin of 1: the C-SVC with C = 1 / margin of its dual, found to `tol` in units of decisions.

    A tolerance of the dual is 1 / margin times as large in the decisions, so it becomes smaller as the margin is known.
    Where the margin stays below `tol` times the spread of the kernel, the C-SVC of that least margin stands for it: at
    the ν of that machine both are the same, and below it decisions would be divided by zero or by rounding.
    """
    total, least = weight.sum(), min(weight[y > 0].sum(), weight[y < 0].sum())
    if nu * total / 2 > least * (1 + 1e-12):
        raise ModelError(
            f"specified nu is infeasible: nu={nu:g} for classes {names[0]!r} and {names[1]!r} is above "
            f"{2 * least / total:.4g}, twice the share of the smaller one. Try: a smaller nu, or C instead."
        )
    spread = _spread(source)
    lowest = spread * max(settings.tol, _LEAST_MARGIN) * min(total / len(y), nu * total / 2)
    dual, tol, steps = duals.nu_classification(y, weight, nu), settings.tol, 0
    for _ in range(_ROUNDS):
        found = _solve(dual, source, _after(settings, steps), tol)
        steps, margin = steps + found.iterations, found.half_width
        wanted = max(settings.tol * margin, _FINEST * spread) if margin >= lowest else _CLEARLY * lowest
        if found.gap <= wanted or not found.converged:
            break
        # Kβ is computed anew, as coarser rounds keep rows in single precision.
        dual, tol = replace(dual, start=found.alpha), 0.5 * wanted
    if margin >= lowest or not found.converged:
        return replace(_named(found, weight, 1.0 / max(margin, lowest)), iterations=steps)
    upper = weight / lowest
    dual = replace(duals.classification(y, upper), start=np.minimum(found.alpha / lowest, upper), product=None)
    found = _solve(dual, source, _after(settings, steps))
    reached = float(found.alpha.sum()) * lowest / total
    least_nu = np.ceil(1e4 * reached) / 1e4
    least_nu = np.inf if least_nu >= 2 * least / total else least_nu
    return replace(_named(found, upper, 1.0), iterations=steps + found.iterations, least_nu=float(least_nu))


def _after(settings: Settings, steps: int) -> Settings:
    """What is left to do after some steps."""
    return settings if settings.max_iter < 0 else replace(settings, max_iter=max(settings.max_iter - steps, 0))


def _spread(source: Source) -> float:
    """½ max ‖φ(x) − φ(x₀)‖² for the first point x₀: the size of a kernel without what all points have in common."""
    first = source.block(np.zeros(1, np.int64), np.arange(source.n))[0].astype(np.float64)
    return 0.5 * float(np.max(source.diag - 2.0 * first + source.diag[0], initial=0.0)) or 1.0


def _linear(near: Descent, y: FloatArray, upper: FloatArray, tol: float) -> Machine:
    """The machine of a linear descent."""
    alpha, f, beta = near.alpha, near.f, y * near.alpha
    free = (alpha > 0) & (alpha < upper)
    grows, falls = np.where(y > 0, alpha < upper, alpha > 0), np.where(y > 0, alpha > 0, alpha < upper)
    level = f[free].mean() if free.any() else duals.middle(f[grows].min(initial=1e30), f[falls].max(initial=-1e30))
    objective = 0.5 * float(alpha @ (y * f - 1.0))
    done = near.gap <= tol
    at_bound = np.flatnonzero(alpha >= upper)
    return Machine(beta, -float(level), at_bound, objective, near.sweeps, done, False, alpha=alpha, product=f + y)


def _solve(dual: duals.Dual, source: Source, settings: Settings, tol: float | None = None) -> duals.Solution:
    return duals.solve(
        dual,
        source,
        tol=settings.tol if tol is None else tol,
        cache_bytes=settings.cache_bytes,
        max_iter=settings.max_iter,
        shrinking=settings.shrinking,
        precision=settings.precision,
    )


def _hard_margin(source: Source, y: FloatArray, settings: Settings, names: tuple[object, object]) -> Machine:
    """The widest margin: the nearest points of the two convex hulls, found with ever smaller tolerance.

    min ½ ‖Σ β φ‖² with the multipliers of each class summing to 1 always has a solution; the classes can be separated
    exactly when it is positive, and a direction along which all of one class lies above all of the other proves it.
    """
    plus, minus = y > 0, y < 0
    start = np.where(plus, 1.0 / plus.sum(), 1.0 / minus.sum())
    scale = float(np.max(np.abs(source.diag), initial=0.0)) or 1.0
    n_steps = 0
    for digits in range(1, 13):
        # The bound 2 is never reached, as each sum is 1.
        dual = duals.Dual(y[None], np.zeros((1, len(y))), np.full((1, len(y)), 2.0), start[None], groups=2)
        found = duals.solve(
            dual,
            source,
            tol=scale * 10.0**-digits,
            cache_bytes=settings.cache_bytes,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
            precision=np.float64,
        )
        n_steps += found.iterations
        f, start = found.f[0], found.alpha[0]
        width = found.half_width
        separated = f[plus].min() > f[minus].max()
        if separated and width > 0 and found.gap <= settings.tol * width:
            beta = found.beta / width
            norm2 = 2.0 * found.objective / width**2
            return Machine(
                beta, -found.rho / width, np.zeros(0, np.int64), -0.5 * norm2, n_steps, found.converged, found.curved
            )
        if not separated and found.objective < 1e-11 * scale:
            break
    raise ModelError(
        f"C=inf asks for a hard margin, but classes {names[0]!r} and {names[1]!r} cannot be separated by this kernel: "
        f"their hulls come as near as {np.sqrt(max(2 * found.objective, 0.0)):.3g} in feature space. "
        "Try: a finite C, or a richer kernel (smaller length scale, higher degree)."
    )


def warn_about_nu(nu: float | None, least_nu: float, name: str) -> None:
    """Say so when ν left no margin in some problem, and which one leaves a margin in all."""
    if least_nu:
        higher = f"nu={least_nu:.4g} or more, " if np.isfinite(least_nu) else ""
        warnings.warn(
            f"{name}: nu={nu:g} is smaller than these data allow: the margin it asks for is zero to the tolerance, and "
            f"the machine is that of the smallest nu with a margin. Try: {higher}C instead, a richer kernel (smaller "
            "length scale, higher degree).",
            ModelWarning,
            stacklevel=4,
        )


def warn_about(converged: bool, curved: bool, max_iter: int, name: str) -> None:
    """Say so when the search was stopped, or when the kernel turned out not to be positive semi-definite."""
    if not converged:
        from sklearn.exceptions import ConvergenceWarning

        limit = f"max_iter={max_iter} steps" if max_iter >= 0 else "ten million steps or a hundred a point"
        warnings.warn(
            f"{name}: stopped after {limit} before the tolerance was reached. Try: scaled columns, a larger tol"
            f"{', max_iter=-1' if max_iter >= 0 else ''}.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if curved:
        warnings.warn(
            f"{name}: the kernel is not positive semi-definite on these points; the result satisfies the conditions of "
            "a minimum but need not be the only one.",
            ModelWarning,
            stacklevel=4,
        )
