"""Support vectors with one objective for all classes (Crammer and Singer), in the dual with any kernel.

min ½ Σ_m |w_m|² + Σ_i C_i ξ_i with ξ_i = max_m (1 − [m = y_i] + f_m(x_i)) − f_{y_i}(x_i).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph._interrupt import check_interrupt
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True)
class AllClasses:
    """Coefficients (n, k), the objective at them, how far it may be from the smallest one, and rounds."""

    alpha: FloatArray
    objective: float
    gap: float
    n_iter: int
    converged: bool


def solve_all_classes(
    K: FloatArray, codes: IntArray, k: int, bound: FloatArray, *, tol: float, max_iter: int, rng: np.random.RandomState
) -> AllClasses:
    """Rounds until objective and dual are apart by less than `tol` times the objective; O(n² k) a round."""
    from gramgraph._numerics.svm.all_classes import round_of_all_classes

    n = len(codes)
    alpha, F = np.zeros((n, k)), np.zeros((n, k))
    B, D = np.empty(k), np.empty(k)
    K = np.ascontiguousarray(K)
    codes = np.ascontiguousarray(codes, dtype=np.int64)
    primal, gap, step = 0.0, np.inf, 0
    for step in range(1, max_iter + 1):
        check_interrupt()
        worst = round_of_all_classes(K, codes, bound, rng.permutation(n).astype(np.int64), alpha, F, B, D)
        if step % 20 == 0:
            F = np.ascontiguousarray(K @ alpha)  # rounding adds up
        primal, gap = _values(codes, bound, alpha, F)
        if gap <= tol * primal or worst == 0.0:
            return AllClasses(alpha, primal, gap, step, True)
    return AllClasses(alpha, primal, gap, step, False)


def _values(codes: IntArray, bound: FloatArray, alpha: FloatArray, F: FloatArray) -> tuple[float, float]:
    at = np.arange(len(codes))
    half = 0.5 * float(np.vdot(alpha, F))
    margins = F + 1.0
    margins[at, codes] -= 1.0
    slack = margins.max(axis=1) - F[at, codes]
    primal = half + float(bound @ slack)
    dual = -half + float(alpha[at, codes].sum())
    return primal, primal - dual
