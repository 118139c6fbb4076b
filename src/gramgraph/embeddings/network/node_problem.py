"""One node of an undirected kernel network: eigenfunctions of its axis, its pseudo-likelihood as a convex problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from gramgraph.embeddings.network.edge_ends import End
from gramgraph.typing import FloatArray

#: Features of the rows, those of the node itself, and those of its cells with their masses.
Part: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

_FEW, _MANY = 200, 600  # unknowns up to which Newton steps are cheap, and second derivatives at all
_STEPS, _ENOUGH = 50, 1e-8


def features_of(end: End, rank: int, width: float) -> tuple[FloatArray, FloatArray]:
    """The leading eigenfunctions of the kernel on cells, mean 0 and square 1 under q, (m, r); their eigenvalues as
    shares of the largest, (r,). A column of one value has none."""
    values, V = end.spectrum(width * end.axis.widths[-1])
    order = np.argsort(-values, kind="stable")[:rank]
    return np.asarray(V[:, order]), np.asarray(values[order] / values[order[:1]])


def penalty_of(lam: float, others: Sequence[FloatArray], own: FloatArray) -> FloatArray:
    """λ over the product of eigenvalues, the norm of the potential in its space; fields only faintly, (features, r)."""
    rows = [np.full(len(own), 1e-6), *(lam / np.outer(s, own) for s in others)]
    return np.vstack(rows)


def solve_node(parts: Sequence[Part], penalty: FloatArray, start: FloatArray | None = None) -> FloatArray:
    """B (features, r) that maximizes the mean of log p(uᵢ | features) − ½ Σ penalty · B².

    log p = θ·u − log Σ_c q_c exp(θ·u_c) with θ = Bᵀ x: convex. Newton steps where unknowns are few, else L-BFGS on B
    times √(1 + penalty), whose curvature is about one in all directions, as features have squares of about one.
    """
    B = np.zeros(penalty.shape) if start is None else start
    if not B.size:  # a column of one value: nothing to learn
        return B
    return _newton(parts, penalty, B) if penalty.size <= _FEW else _quasi_newton(parts, penalty, B)


def spread_of(parts: Sequence[Part], B: FloatArray, penalty: FloatArray) -> FloatArray:
    """The variance of every entry of B, times the number of rows: the diagonal of the inverse of the curvature, or the
    inverse of its diagonal where unknowns are many."""
    if penalty.size <= _MANY:
        return np.diag(np.linalg.inv(_curvature(parts, B, penalty))).reshape(B.shape)
    total, n = np.zeros_like(B), 0
    for X, _, F, q in parts:
        P = _shares(X @ B, F, q)[0]
        total += (X**2).T @ (P @ F**2 - (P @ F) ** 2)
        n += len(X)
    return np.asarray(1.0 / (total / n + penalty))


def _curvature(parts: Sequence[Part], B: FloatArray, penalty: FloatArray) -> FloatArray:
    """Second derivatives of what is to be small, (unknowns, unknowns), in the order of B's entries."""
    p, r = B.shape
    n = sum(len(X) for X, *_ in parts)
    H = np.zeros((p, r, p, r))
    pairs = [(a, b) for a in range(r) for b in range(a + 1)]
    for X, _, F, q in parts:
        P = _shares(X @ B, F, q)[0]
        mean = P @ F
        second = P @ np.stack([F[:, a] * F[:, b] for a, b in pairs], axis=1)
        for k, (a, b) in enumerate(pairs):
            H[:, a, :, b] += (X * (second[:, k] - mean[:, a] * mean[:, b])[:, None]).T @ X / n
    for a, b in pairs:
        H[:, b, :, a] = H[:, a, :, b]
    out = H.reshape(p * r, p * r)
    out[np.diag_indices(p * r)] += penalty.ravel()
    return out


def _shares(theta: FloatArray, F: FloatArray, q: FloatArray) -> tuple[FloatArray, float]:
    """(probabilities of the cells in every row, the sum of the logarithms of their normalizers)."""
    logs = theta @ F.T
    logs += np.log(np.maximum(q, 1e-300))
    top = logs.max(axis=1, keepdims=True)
    np.exp(logs - top, out=logs)
    total = logs.sum(axis=1, keepdims=True)
    logs /= total
    return logs, float((np.log(total) + top).sum())


def _cost(parts: Sequence[Part], B: FloatArray, penalty: FloatArray) -> tuple[float, FloatArray]:
    """What is to be small, and its slope."""
    value, slope, n = 0.0, np.zeros_like(B), 0
    for X, U, F, q in parts:
        theta = X @ B
        P, norm = _shares(theta, F, q)
        value += norm - float(np.einsum("nr,nr->", theta, U))
        slope += X.T @ (P @ F - U)
        n += len(X)
    return value / n + 0.5 * float((penalty * B**2).sum()), slope / n + penalty * B


def _newton(parts: Sequence[Part], penalty: FloatArray, B: FloatArray) -> FloatArray:
    value, slope = _cost(parts, B, penalty)
    for _ in range(_STEPS):
        step = np.linalg.solve(_curvature(parts, B, penalty), slope.ravel()).reshape(B.shape)
        fall, part = float((step * slope).sum()), 1.0
        if fall < _ENOUGH:
            return B - step if fall > 0.0 else B
        while True:
            after = B - part * step
            now, later = _cost(parts, after, penalty)
            if now <= value - 1e-4 * part * fall or part < 1e-6:
                break
            part *= 0.5
        B, value, slope = after, now, later
    return B


def _quasi_newton(parts: Sequence[Part], penalty: FloatArray, B: FloatArray) -> FloatArray:
    from scipy.optimize import minimize

    scale = 1.0 / np.sqrt(1.0 + penalty)

    def cost(flat: FloatArray) -> tuple[float, FloatArray]:
        value, slope = _cost(parts, flat.reshape(B.shape) * scale, penalty)
        return value, (slope * scale).ravel()

    found = minimize(cost, (B / scale).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 300, "gtol": 1e-7})
    return np.asarray(found.x.reshape(B.shape) * scale)
