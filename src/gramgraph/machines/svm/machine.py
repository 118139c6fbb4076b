"""One two-class machine: the dual of its kind is solved, scaled and named."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from gramgraph.exceptions import ModelError, ModelWarning
from gramgraph.machines.svm import dual as duals
from gramgraph.machines.svm.linear import Descent, descend
from gramgraph.machines.svm.products import SparseRows
from gramgraph.machines.svm.rows import Source
from gramgraph.typing import FloatArray, IntArray


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
        total, least = weight.sum(), min(weight[y > 0].sum(), weight[y < 0].sum())
        if settings.nu * total / 2 > least * (1 + 1e-12):
            raise ModelError(
                f"specified nu is infeasible: nu={settings.nu:g} for classes {names[0]!r} and {names[1]!r} is above "
                f"{2 * least / total:.4g}, twice the share of the smaller one. Try: a smaller nu, or C instead."
            )
        upper = weight
        found = _solve(duals.nu_classification(y, upper, settings.nu), source, settings)
        # The margin is half_width; dividing makes it 1, as for C-SVC with C = 1 / half_width.
        scale = 1.0 / found.half_width if found.half_width > 0 else 1.0
    else:
        upper = settings.C * weight
        # min keeps a multiplier that stood at its bound there after scaling, whatever rounding says.
        begin = None if start is None else (np.minimum(start[0] * (1 + 1e-15), upper), start[1])
        if begin is None and isinstance(source, SparseRows) and source.linear:
            near = descend(source.X, source.squares, y, upper, settings.tol, settings.max_iter)
            if near.gap <= settings.tol or near.sweeps == settings.max_iter:
                return _linear(near, y, upper, settings.tol)
            begin = (near.alpha, near.f + y)
        found = _solve(duals.classification(y, upper, begin), source, settings)
        scale = 1.0
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
        product=found.f[0] + y if settings.nu is None else None,
    )


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
