"""The information form: precisions Y = P⁻¹ and z = Y m in the place of moments.

Forward, an observation adds Hᵀ R⁻¹ H and Hᵀ R⁻¹ y; a move x′ = A x + b + G e with e ~ N(0, I) takes M = A⁻ᵀ Y A⁻¹ to
M − M G (I + GᵀMG)⁻¹ GᵀM. Backward, the same without inverses of A says what the later observations tell of x_t; the
sum of both is the smoother (Fraser and Potter, 1969).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramgraph._numerics.gaussian.root import root
from gramgraph.exceptions import ModelError
from gramgraph.sequences._square_root import stacked
from gramgraph.sequences._state_space import Model, even
from gramgraph.typing import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))


class _Step(NamedTuple):
    """What one step of time does."""

    A: FloatArray
    G: FloatArray  # root of Q
    b: FloatArray
    C: FloatArray  # Hᵀ R⁻¹ H of what was observed
    c: FloatArray  # Hᵀ R⁻¹ y
    constant: float  # −½ (o log 2π + log |R| + yᵀ R⁻¹ y); 0 where nothing was observed
    seen: int


def _steps(model: Model, y: FloatArray, shift: FloatArray | None) -> list[_Step]:
    T = len(y)
    (A, at), (H, ht), (R, rt), (Q, qt) = (stacked(M, T) for M in (model.A, model.H, model.R, model.Q))
    roots = [root(S) for S in Q]
    none = np.zeros(model.n_states)
    out = []
    for t in range(T):
        shown = ~np.isnan(y[t])
        h = H[ht[t]][shown]
        try:
            L = np.linalg.cholesky(R[rt[t]][np.ix_(shown, shown)])
        except np.linalg.LinAlgError:
            raise ModelError(f"the information form needs an invertible R; that of step {t} is singular.") from None
        W, v = np.linalg.solve(L, h), np.linalg.solve(L, y[t, shown])
        constant = -0.5 * (len(v) * _LOG_2PI + float(v @ v)) - float(np.log(np.diagonal(L)).sum())
        b = none if shift is None else shift[t]
        out.append(_Step(A[at[t]], roots[qt[t]], b, W.T @ W, W.T @ v, constant, int(shown.sum())))
    return out


def _thinned(M: FloatArray, G: FloatArray) -> tuple[FloatArray, FloatArray]:
    """M − M G (I + GᵀMG)⁻¹ GᵀM, and I − M G (I + GᵀMG)⁻¹ Gᵀ: information that noise G e has passed over."""
    MG = M @ G
    back = np.linalg.solve(np.eye(G.shape[1]) + G.T @ MG, MG.T)
    return even(M - MG @ back), np.eye(len(M)) - back.T @ G.T


def _forward(model: Model, steps: list[_Step]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Y, z after and before each observation, and log p(y_t | y before)."""
    T, s = len(steps), model.n_states
    Y, Yp = np.empty((T, s, s)), np.empty((T, s, s))
    z, zp, logs = np.empty((T, s)), np.empty((T, s)), np.zeros(T)
    for t, step in enumerate(steps):
        if t == 0:
            Yp[0] = _precision(model.P0)
            zp[0] = Yp[0] @ model.m0
        else:
            try:
                back = np.linalg.inv(step.A)
            except np.linalg.LinAlgError:
                raise ModelError(f"the information form needs an invertible A; that of step {t} is singular.") from None
            Yp[t], keep = _thinned(back.T @ Y[t - 1] @ back, step.G)
            zp[t] = keep @ back.T @ z[t - 1] + Yp[t] @ step.b
        Y[t], z[t] = even(Yp[t] + step.C), zp[t] + step.c
        if step.seen:
            before, after = (np.linalg.slogdet(M)[1] for M in (Yp[t], Y[t]))
            gain = float(z[t] @ np.linalg.solve(Y[t], z[t]) - zp[t] @ np.linalg.solve(Yp[t], zp[t]))
            logs[t] = step.constant + 0.5 * (before - after + gain)
    return Y, z, Yp, zp, logs


def _precision(P0: FloatArray) -> FloatArray:
    try:
        np.linalg.cholesky(P0)
        return even(np.linalg.inv(P0).astype(np.float64))
    except np.linalg.LinAlgError:
        raise ModelError("the information form needs an invertible P0; this one is singular.") from None


def _inverse(Y: FloatArray) -> FloatArray:
    """Y⁻¹ of a precision whose states may have very different units."""
    d = 1.0 / np.sqrt(np.diagonal(Y))
    scaled = even(Y * d * d[:, None])
    try:
        found: FloatArray = np.linalg.inv(scaled).astype(np.float64)
    except np.linalg.LinAlgError:
        found = np.linalg.pinv(scaled, hermitian=True).astype(np.float64)
    return even(found * d * d[:, None])


def _moments(Y: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance."""
    P = _inverse(Y)
    return P @ z, P


def _all_moments(Y: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    found = [_moments(M, v) for M, v in zip(Y, z, strict=True)]
    return np.array([m for m, _ in found]), np.array([P for _, P in found])


def information_filter(model: Model, y: FloatArray, shift: FloatArray | None) -> tuple[FloatArray, ...]:
    """(means, covariances, predicted means, predicted covariances, log p(y_t | y before))."""
    Y, z, Yp, zp, logs = _forward(model, _steps(model, y, shift))
    return *_all_moments(Y, z), *_all_moments(Yp, zp), logs


def information_smoother(
    model: Model, y: FloatArray, shift: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """(means, covariances, Cov(x_t, x_{t+1}), log p(y)): what the past says plus what the future says."""
    steps = _steps(model, y, shift)
    Y, z, _, _, logs = _forward(model, steps)
    T, s = len(y), model.n_states
    means, covs, cross = np.empty((T, s)), np.empty((T, s, s)), np.empty((T - 1, s, s))
    later, told = np.zeros((s, s)), np.zeros(s)
    means[-1], covs[-1] = _moments(Y[-1], z[-1])
    for t in range(T - 2, -1, -1):
        step = steps[t + 1]
        full, heard = later + step.C, told + step.c
        r = step.G.shape[1]
        J = np.block([
            [Y[t] + step.A.T @ full @ step.A, step.A.T @ full @ step.G],
            [step.G.T @ full @ step.A, np.eye(r) + step.G.T @ full @ step.G],
        ])  # fmt: skip
        joint = _inverse(even(J))
        cross[t] = joint[:s, :s] @ step.A.T + joint[:s, s:] @ step.G.T
        thin, keep = _thinned(full, step.G)
        later = even(step.A.T @ thin @ step.A)
        told = step.A.T @ (keep @ heard - thin @ step.b)
        means[t], covs[t] = _moments(Y[t] + later, z[t] + told)
    return means, covs, cross, float(logs.sum())
