"""The square-root filter for models with stacks of matrices and with controls."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.gaussian.root import root
from gramgraph.exceptions import ModelError
from gramgraph.sequences._state_space import Model
from gramgraph.typing import FloatArray, IntArray


def stacked(M: FloatArray, T: int) -> tuple[FloatArray, IntArray]:
    """A stack of matrices and the place of each step in it."""
    if M.ndim == 2:
        return M[None], np.zeros(T, dtype=np.int64)
    if len(M) < T:
        raise ModelError(f"there are {len(M)} matrices in a stack, but {T} steps.")
    return M, np.arange(T)


def lower_root(S: FloatArray) -> FloatArray:
    """A lower triangular matrix with root rootᵀ = S, S singular or not."""
    L = root(S)
    if np.triu(L, 1).any():
        L = np.linalg.qr(L.T)[1].T
    return np.ascontiguousarray(np.tril(L))


def without_controls(model: Model, y: FloatArray, controls: Any) -> tuple[FloatArray, FloatArray | None]:
    """y − D u, and B u_{t−1} at step t (None: controls move no state)."""
    if model.B is None and model.D is None:
        if controls is not None:
            raise ModelError("the model takes no controls: give it B or D.")
        return y, None
    width = next(M.shape[1] for M in (model.B, model.D) if M is not None)
    if controls is None:
        raise ModelError("the model has B or D, so that it needs controls, one row per step.")
    u = np.array(controls, dtype=np.float64)
    u = u[:, None] if u.ndim == 1 and width == 1 else u
    short = model.D is None and len(u) == len(y) - 1  # the last control moves nothing any more
    if u.ndim != 2 or u.shape[1] != width or (len(u) < len(y) and not short) or not np.isfinite(u).all():
        raise ModelError(f"controls must be {len(y)} rows of {width} finite numbers; their shape is {u.shape}.")
    seen = y if model.D is None else y - u[: len(y)] @ model.D.T
    if model.B is None:
        return seen, None
    shift = np.zeros((len(y), model.n_states))
    shift[1:] = u[: len(y) - 1] @ model.B.T
    return seen, shift


def moves_of(
    model: Model, T: int, shift: FloatArray | None
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray, tuple[FloatArray, IntArray], tuple[FloatArray, IntArray]]:
    """A, roots of Q and the place of each step in both, shifts (one row: none), and the stacks of H and R."""
    (A, at), (Q, qt) = stacked(model.A, T), stacked(model.Q, T)
    roots = np.array([lower_root(S) for S in Q])
    roots = np.ascontiguousarray(roots[:, :, roots.any(axis=(0, 1))])  # noises that drive something
    if len(roots) > 1 and len(A) == 1:
        A, at = np.broadcast_to(A, (len(roots), *A.shape[1:])).copy(), qt
    elif len(A) > 1 and len(roots) == 1:
        roots = np.broadcast_to(roots, (len(A), *roots.shape[1:])).copy()
    b = np.zeros((1, model.n_states)) if shift is None else shift
    return A, roots, at, b, stacked(model.H, T), stacked(model.R, T)


def rooted_filter(
    model: Model,
    y: FloatArray,
    m0: FloatArray,
    P0: FloatArray,
    shift: FloatArray | None,
    means: FloatArray,
    covs: FloatArray,
    pred_means: FloatArray,
    pred_covs: FloatArray,
    logs: FloatArray,
) -> int:
    """Fill the moments; the number of steps done."""
    from gramgraph._numerics.state_space.square_root import square_root_filter

    A, roots, at, b, (H, ht), (R, rt) = moves_of(model, len(y), shift)
    done = int(
        square_root_filter(
            A, roots, at, b, H, ht, R, rt, y, m0, lower_root(P0), means, covs, pred_means, pred_covs, logs
        )
    )
    for L in (covs, pred_covs):
        _squared(L[: done + 1])  # steps after a refused one were never written
    return done


def _squared(L: FloatArray, block: int = 65536) -> None:
    """L Lᵀ in place, block by block."""
    for a in range(0, len(L), block):
        part = L[a : a + block]
        part[:] = part @ part.transpose(0, 2, 1)
