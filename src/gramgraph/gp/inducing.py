"""Inducing points that are moved to where the bound of the evidence is largest, with the kernel's parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.hyper import Search, ascend
from gramgraph.gp.sparse import Sparse
from gramgraph.linalg.base import PositiveDefiniteError
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel


def move_inducing(
    method: Sparse,
    kernel: Kernel,
    bounds: FloatArray,  # (p, 2) of theta
    *,
    learn: bool = True,
    density: Callable[[FloatArray], tuple[float, FloatArray]] | None = None,  # log prior of theta and its gradient
    steps: int = 100,
) -> tuple[Sparse, Kernel, Search]:
    """L-BFGS over theta and Z at once, from given ones on; without `learn` over Z alone.

    Columns of Z are measured in standard deviations of the data's columns and stay within the data's range. For
    "titsias" the objective is a lower bound of the evidence, so that moving points cannot overfit; for "fitc" and "sor"
    it is not a bound. A step costs twice that of the evidence, O(n m²).

    Parameters
    ----------
    method : the approximation, with its points.
    kernel : the kernel.
    bounds : (p, 2) of theta.
    learn : whether theta is learned, too.
    density : log prior of theta with its gradient, or None.
    steps : most steps.

    Examples
    --------
    >>> from gramgraph.gp.means import Mean
    >>> from gramgraph.gp.methods import Data
    >>> from gramgraph.kernels import RBF
    >>> x = np.linspace(0.0, 6.0, 80)[:, None]
    >>> start = Sparse(Data(x, np.sin(x), np.full(80, 0.01), Mean()), x[[0, 1, 2, 3]])
    >>> moved, kernel, search = move_inducing(start, RBF(), RBF().bounds)
    >>> bool(search.value > start.evidence(RBF(), False)[0] + 100), bool(moved.Z.max() > 4.0)
    (True, True)
    """
    X, Z = method.data.X, method.Z
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        raise ModelError("optimize_inducing needs points that are vectors: other points cannot be moved.")
    unit = np.where(X.std(0) > 0.0, X.std(0), 1.0)
    p = len(kernel.theta) if learn else 0
    size = (len(Z), 1)
    box = np.column_stack([np.tile(X.min(0) / unit, size).ravel(), np.tile(X.max(0) / unit, size).ravel()])

    def objective(v: FloatArray, gradient: bool) -> tuple[float, FloatArray | None]:
        here = kernel.with_theta(v[:p]) if learn else kernel
        try:
            value, by_theta, by_places = replace(method, Z=v[p:].reshape(Z.shape) * unit).evidence_by_points(here)
        except PositiveDefiniteError:
            return -np.inf, None
        if density is not None and learn:
            more, slope = density(v[:p])
            value, by_theta = value + more, by_theta + slope
        return value, np.concatenate([by_theta[:p], (by_places * unit).ravel()])

    start = np.concatenate([kernel.theta[:p], (Z / unit).ravel()])
    found = ascend(objective, start, np.concatenate([bounds[:p], box]), tol=1e-7, steps=steps)
    if not np.isfinite(found.value):
        return method, kernel, found
    moved = replace(method, Z=found.theta[p:].reshape(Z.shape) * unit)
    return moved, kernel.with_theta(found.theta[:p]) if learn else kernel, replace(found, theta=found.theta[:p])
