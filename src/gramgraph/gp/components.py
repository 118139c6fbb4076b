"""A sum of kernels is a sum of processes: what the data say of every term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.row_blocks import without_noise
from gramgraph.kernels.algebra import Sum
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.gp.posterior import ExactPosterior
    from gramgraph.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class Component:
    """One term of the kernel, or the mean function (kernel None), given the data."""

    name: str
    kernel: Kernel | None
    mean: FloatArray  # (m, q)
    var: FloatArray  # (m,)


def components(process: ExactPosterior, X: Any) -> tuple[Component, ...]:
    """Posterior mean and variance of every term of a sum kernel at X, noise left out; the mean function comes first.

    The means add up to the posterior mean. Variances do not: terms that explain the same data are anticorrelated.

    >>> import numpy as np
    >>> from gramgraph.gp import fit_exact
    >>> from gramgraph.kernels import RBF, Periodic
    >>> t = np.linspace(0, 4, 30)[:, None]
    >>> process = fit_exact(RBF(2.0) + Periodic(), t, np.sin(2 * np.pi * t[:, 0]), noise=0.01)
    >>> found = components(process, t)
    >>> [part.name for part in found], bool(np.allclose(sum(part.mean for part in found), process.mean(t)))
    (['RBF(length_scale=2)', 'Periodic(length_scale=1, period=1)'], True)
    """
    if not hasattr(process, "factor") or not hasattr(process, "alpha"):
        raise ModelError("components need the exact posterior: approx='exact'.")
    smooth = without_noise(process.kernel)
    if smooth is None:
        return ()
    out = []
    trend = process._trend_mean(X)
    if process.trend is not None or process.trend_of.fixed(X) is not None:
        H = process.trend_of.basis(X)
        cov = np.zeros((H.shape[1],) * 2) if process.trend is None else process.trend.cov
        out.append(Component("mean", None, trend, np.einsum("ij,jk,ik->i", H, cov, H)))
    for term in smooth.terms if isinstance(smooth, Sum) else (smooth,):
        K = term.gram(process.X, X)
        half = process.factor.half_solve(K)
        var = term.diag(X) - np.einsum("ij,ij->j", half, half)
        if process.trend is not None and process.trend.A is not None:
            more = process.trend.A.half_solve(process.trend.KinvH.T @ K)
            var = var + np.einsum("ij,ij->j", more, more)
        out.append(Component(str(term), term, K.T @ process.alpha, np.maximum(var, 0.0)))
    return tuple(out)
