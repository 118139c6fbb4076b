"""Climbing a concave objective with L1 and L2 penalties, and the report of how it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph._progress import Report
from gramgraph._show import Listing, Shown
from gramgraph.exceptions import OptionError
from gramgraph.typing import Array, FloatArray

#: weights → (value, gradient) of what is to be maximized; a value of -inf makes the line search turn back.
Objective = Callable[[FloatArray], tuple[float, FloatArray]]
#: Weights below this that the penalty holds are zero.
TINY = 1e-9
#: Values of the objective cannot tell weights apart whose gradients are smaller than about this.
ROUNDING = 2e-8
MEMORY = 20


class Climb(NamedTuple):
    """Where a climb ended."""

    weights: FloatArray
    trace: tuple[float, ...]
    converged: bool
    gradient: float  # largest entry of the (sub)gradient
    interrupted: bool = False  # whether Ctrl-C ended it


#: Weights that are printed, the largest ones; `to_frame` has all.
SHOWN_WEIGHTS = 20


class Traced(Shown):
    """Reports of a climb: the objective at every step."""

    trace: tuple[float, ...]
    objective: str

    def plot(self, ax: Any = None) -> Any:
        """The objective at every step."""
        if ax is None:
            from matplotlib import pyplot as plt

            ax = plt.subplots()[1]
        ax.plot(range(len(self.trace)), self.trace, marker=".")
        ax.set_xlabel("step")
        ax.set_ylabel(self.objective)
        return ax


@dataclass(frozen=True, repr=False)
class UndirectedReport(Traced):
    """How an undirected model was fitted; `trace` is the penalized objective, a row's average, at every step."""

    method: str
    objective: str  # "log-likelihood", "Bethe log-likelihood", "log pseudo-likelihood" or "KL divergence"
    value: float  # of the objective without penalties, summed over the rows
    trace: tuple[float, ...]
    converged: bool
    gradient: float  # largest difference between what the data and the model say of a feature (penalties included)
    rows: float  # number of rows, or the sum of their weights
    dropped: int = 0  # rows left out because of missing cells
    names: tuple[str, ...] = ()
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def n_iter(self) -> int:
        """Number of steps taken."""
        return max(len(self.trace) - 1, 0)

    @property
    def n_active(self) -> int:
        """Number of weights that are not zero."""
        return int(np.count_nonzero(self.weights))

    def to_frame(self) -> Any:
        """One row a weight."""
        import pandas as pd

        return pd.DataFrame({"feature": list(self.names), "weight": self.weights})

    def _shown(self) -> Listing:
        end = "converged" if self.converged else "not converged"
        title = (
            f"{self.method}: {self.objective} {self.value:.6g}, {self.n_iter} steps, {end}, "
            f"{self.n_active} of {len(self.weights)} weights not zero"
        )
        order = np.argsort(-np.abs(self.weights), kind="stable")[:SHOWN_WEIGHTS]
        rows = [(self.names[i], f"{self.weights[i]:.6g}") for i in order.tolist() if i < len(self.names)]
        return Listing(title, ("feature", "weight") if rows else (), rows, len(self.names) - len(rows))


def subgradient(weights: FloatArray, gradient: FloatArray, l1: FloatArray, l2: FloatArray) -> FloatArray:
    """The smallest subgradient of objective - Σ l1 |θ| - ½ Σ l2 θ²: zero exactly at the maximum."""
    smooth = gradient - l2 * weights
    at_zero = np.sign(smooth) * np.maximum(np.abs(smooth) - l1, 0.0)
    return np.asarray(np.where(weights != 0, smooth - l1 * np.sign(weights), at_zero))


@interruptible()
def climb(
    objective: Objective,
    start: FloatArray,
    *,
    l1: FloatArray,  # (weights,)
    l2: FloatArray,  # (weights,)
    max_iter: int,
    tol: float,
    report: Report | None = None,
) -> Climb:
    """Maximize objective(θ) - Σ l1 |θ| - ½ Σ l2 θ² by L-BFGS, until no entry of the subgradient exceeds `tol`.

    Where l1 > 0 a weight is split into its positive and negative part, both bounded by zero, so that zeros are exact.
    The trace never falls. Ctrl-C keeps the best weights so far.
    """
    from scipy.optimize import minimize

    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1 or not tol > 0:
        raise OptionError(f"max_iter is a count from 1 and tol a positive number, not {max_iter!r} and {tol!r}")
    n = len(start)
    split = np.flatnonzero(l1 > 0)

    def join(z: FloatArray) -> FloatArray:
        w = z[:n].copy()
        w[split] -= z[n:]
        return w

    def loss(z: FloatArray) -> tuple[float, FloatArray]:
        check_interrupt()
        w = join(z)
        value, gradient = objective(w)
        down = l2 * w - gradient
        total = -value + 0.5 * float(l2 @ w**2) + float(l1[split] @ (z[split] + z[n:]))
        minus = l1[split] - down[split]
        down[split] += l1[split]
        return (total, np.concatenate([down, minus])) if np.isfinite(total) else (np.inf, np.zeros(len(z)))

    first = np.concatenate([start, np.maximum(-start[split], 0.0)])
    first[split] = np.maximum(start[split], 0.0)
    trace = [-loss(first)[0]]
    best, interrupted = first.copy(), False

    def after(intermediate_result: Any) -> None:
        trace.append(-float(intermediate_result.fun))
        best[:] = intermediate_result.x
        if report is not None:
            report(min(len(trace) - 1, max_iter))

    if n:
        try:
            minimize(
                loss, first, jac=True, method="L-BFGS-B", callback=after, bounds=_bounds(n, split),
                options={"maxiter": max_iter, "maxfun": 20 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": MEMORY},
            )  # fmt: skip
        except KeyboardInterrupt:
            interrupted = True
    return _finish(objective, join(best), trace, l1, l2, tol)._replace(interrupted=interrupted)


def _bounds(n: int, split: Array) -> list[tuple[float | None, None]] | None:
    if not len(split):
        return None
    held = set(split.tolist())
    return [(0.0 if i in held else None, None) for i in range(n)] + [(0.0, None)] * len(split)


def _finish(
    objective: Objective, w: FloatArray, trace: list[float], l1: FloatArray, l2: FloatArray, tol: float
) -> Climb:
    w = np.where((l1 > 0) & (np.abs(w) < TINY), 0.0, w)
    gradient = objective(w)[1]
    rest = float(np.abs(subgradient(w, gradient, l1, l2)).max(initial=0.0))
    return Climb(w, tuple(trace), rest <= max(1.01 * tol, ROUNDING), rest)
