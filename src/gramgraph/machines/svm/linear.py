"""Linear machines over sparse rows: coordinate descent on w, whose memory is that of the data.

The dual has one condition besides its boxes, Σ y α = 0. It is met by the method of multipliers: sweeps of coordinate
descent on the augmented Lagrangian, whose multiplier is the intercept b and moves after every sweep. A sweep is
O(nonzeros); no entry of the kernel matrix is ever computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.typing import FloatArray

_SWEEPS = 1000  # without convergence after so many, steps on pairs go on from there
_RHO = 0.1  # of the mean of |x|²: more makes the sweeps slower, less the multiplier
_FAR = 1e300


@dataclass(frozen=True)
class Descent:
    """Multipliers with Σ y α = 0, f = Kβ − y there, and how the sweeps ended."""

    alpha: FloatArray
    f: FloatArray
    gap: float
    sweeps: int


def descend(X: Any, squares: FloatArray, y: FloatArray, upper: FloatArray, tol: float, max_iter: int) -> Descent:
    """min ½ |Σ y α x|² − Σ α over 0 ≤ α ≤ upper, Σ y α = 0, to a KKT gap of `tol`; X in rows, as SciPy keeps them."""
    from gramgraph._numerics.svm import coordinates as loops

    n = len(y)
    rho = _RHO * float(squares.mean()) or 1.0
    alpha, w, level = np.zeros(n), np.zeros(X.shape[1]), 0.0
    order, size, state = np.arange(n), n, np.zeros(loops.STATE_SIZE)
    state[loops.OLD_TOP], state[loops.OLD_BOTTOM] = _FAR, -_FAR
    rng = np.random.default_rng(0)  # the order of the steps must not depend on anything but the data
    first, indices = (part.view(f"u{part.itemsize}") for part in (X.indptr, X.indices))
    curve = squares + rho
    most = min(_SWEEPS, max_iter) if max_iter >= 0 else _SWEEPS
    found = Descent(alpha, -y, _FAR, 0)
    for sweep in range(1, most + 1):
        whole = size == n
        rng.shuffle(order[:size])
        size = loops.sweep(first, indices, X.data, y, upper, curve, alpha, w, order, size, rho, level, state)
        level += rho * state[loops.TOTAL]
        top, bottom = state[loops.TOP], state[loops.BOTTOM]
        if sweep < most and (top - bottom > tol or rho * abs(state[loops.TOTAL]) > tol):
            state[loops.OLD_TOP] = top if top > 0.0 else _FAR
            state[loops.OLD_BOTTOM] = bottom if bottom < 0.0 else -_FAR
            continue
        if whole or sweep == most:
            found = _closed(X, y, upper, alpha, w, level, sweep)
            if found.gap <= tol:
                break
        size, state[loops.OLD_TOP], state[loops.OLD_BOTTOM] = n, _FAR, -_FAR
    return found


def _closed(
    X: Any, y: FloatArray, upper: FloatArray, alpha: FloatArray, w: FloatArray, level: float, sweeps: int
) -> Descent:
    """The solution with Σ y α = 0 to rounding: what is missing goes to the points nearest to the margin."""
    beta = y * alpha
    low, high = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    missing = float(beta.sum())
    near = np.argsort(np.abs(X @ w - y + level), kind="stable")
    room = (beta - low if missing > 0 else high - beta)[near]
    shares = np.diff(np.minimum(np.cumsum(room), abs(missing)), prepend=0.0)
    beta[near] = np.clip(beta[near] - np.sign(missing) * shares, low[near], high[near])
    f = X @ (X.T @ beta) - y
    grows, falls = beta < high, beta > low
    gap = float(f[falls].max(initial=-_FAR) - f[grows].min(initial=_FAR))
    return Descent(y * beta, f, gap, sweeps)
