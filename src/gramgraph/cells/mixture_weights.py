"""Weights of a mixture of given densities."""

from __future__ import annotations

import numpy as np

from gramgraph.typing import Array, FloatArray

_DEAD = 1e-4
_FASTEST = 16.0


def mixture_weights(L: Array, counts: Array | None = None, *, sweeps: int = 100, tol: float = 1e-5) -> FloatArray:
    """Weights w ≥ 0, Σ w = 1, with the largest Σ_i counts_i log Σ_k w_k L[k, i]; L[k, i] is density k at point i.

    EM multiplies every weight by g_k = mean_i L_ki / (wL)_i. Here the factor is g_k^power; the power grows while the
    likelihood does and falls back to 1, plain EM, when it does not. Parts of less than 10⁻⁴ that shrink are left out.
    Stops when a sweep gains less than `tol` nats a point. Two matrix-vector products a sweep.

    >>> mixture_weights(np.array([[2.0, 2.0, 0.5], [0.5, 0.5, 2.0]]), tol=1e-9).round(3)
    array([0.778, 0.222])
    """
    parts, n = L.shape
    share = np.full(n, 1.0 / n, dtype=L.dtype) if counts is None else (counts / counts.sum()).astype(L.dtype)
    live = np.arange(parts)
    w = old = np.full(parts, 1.0 / parts)
    power, before = 1.0, -np.inf
    for _ in range(sweeps):
        mixed = w.astype(L.dtype) @ L
        score = float(share @ np.log(mixed))
        if score < before:
            w = old
            if power == 1.0:
                break
            power, before = 1.0, -np.inf
            continue
        if power > 1.0 and score - before < tol:
            break
        power, before, old = min(2.0 * power, _FASTEST), score, w
        w = w * (L @ (share / mixed)).astype(np.float64) ** power
        w /= w.sum()
        keep = (w >= _DEAD) | (w >= old)
        if not keep.all():
            live, L, w, old = live[keep], L[keep], w[keep] / w[keep].sum(), old[keep] / old[keep].sum()
            before = -np.inf if len(live) < 2 else before - tol
    out = np.zeros(parts)
    out[live] = w / w.sum()
    return out
