"""One node of an undirected kernel network: eigenfunctions of its axis, its pseudo-likelihood as a convex problem."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramgraph.embeddings.network.edge_ends import End
from gramgraph.typing import FloatArray


def features_of(end: End, rank: int, width: float) -> tuple[FloatArray, FloatArray]:
    """The leading eigenfunctions of the kernel on cells, mean 0 and square 1 under q, (m, r); their eigenvalues as
    shares of the largest, (r,)."""
    values, V = end.spectrum(width * end.axis.widths[-1])
    order = np.argsort(-values, kind="stable")[:rank]
    return np.asarray(V[:, order]), np.asarray(values[order] / values[order[0]])


def penalty_of(lam: float, others: Sequence[FloatArray], own: FloatArray) -> FloatArray:
    """λ over the product of eigenvalues, the norm of the potential in its space; fields only faintly, (features, r)."""
    rows = [np.full(len(own), 1e-6), *(lam / np.outer(s, own) for s in others)]
    return np.vstack(rows)


def solve_node(
    parts: Sequence[tuple[FloatArray, FloatArray, FloatArray, FloatArray]], penalty: FloatArray
) -> FloatArray:
    """B (features, r) that maximizes the mean of log p(uᵢ | features) − ½ Σ penalty · B².

    log p = θ·u − log Σ_c q_c exp(θ·u_c) with θ = Bᵀ x: convex, by L-BFGS on B times √(1 + penalty), whose curvature is
    about one in all directions, as features have squares of about one.
    """
    from scipy.optimize import minimize

    p, r = parts[0][0].shape[1], parts[0][2].shape[1]
    n = sum(len(X) for X, *_ in parts)
    scale = 1.0 / np.sqrt(1.0 + penalty)

    def cost(flat: FloatArray) -> tuple[float, FloatArray]:
        B = flat.reshape(p, r) * scale
        value, slope = 0.0, np.zeros_like(B)
        for X, U, F, q in parts:
            theta = X @ B
            logs = theta @ F.T
            logs += np.log(np.maximum(q, 1e-300))
            top = logs.max(axis=1, keepdims=True)
            np.exp(logs - top, out=logs)
            total = logs.sum(axis=1, keepdims=True)
            value += float((np.log(total) + top).sum() - np.einsum("nr,nr->", theta, U))
            slope += X.T @ ((logs / total) @ F - U)
        return value / n + 0.5 * float((penalty * B**2).sum()), ((slope / n + penalty * B) * scale).ravel()

    found = minimize(cost, np.zeros(p * r), jac=True, method="L-BFGS-B", options={"maxiter": 300, "gtol": 1e-7})
    return np.asarray(found.x.reshape(p, r) * scale)
