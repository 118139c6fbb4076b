"""Linear classifiers by their most probable weights: logistic, probit and softmax, with a Gaussian prior.

Weights v are (q, M): one row for two classes, one for each class of a softmax. With f = Zvᵀ the objective is
E(v) = −Σ log p(class | f) + ½ (v − m)ᵀ P (v − m); Newton's steps (IRLS) need its curvature A, which is the precision of
Laplace's posterior as well. Cost of a step: O(n q² M²).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._interrupt import check_interrupt
from gramgraph.typing import FloatArray, IntArray

LINKS = ("logistic", "probit", "softmax")
_BLOCK = 1 << 16  # entries of a block of rows: it stays in the cache
_FEWER = 8  # a first guess comes from every eighth row


@dataclass(frozen=True)
class GaussianPrior:
    """Mean (q M,) and precision (q M, q M) of all weights in a row; the precision may be singular."""

    mean: FloatArray
    precision: FloatArray

    def weaker(self, times: float) -> GaussianPrior:
        """The share that a part of the rows has of it."""
        return GaussianPrior(self.mean, self.precision / times)


@dataclass(frozen=True)
class Rows:
    """Features with a column of ones at the end, class numbers, weights of rows."""

    Z: FloatArray  # (n, M)
    codes: IntArray  # (n,)
    w: FloatArray | None
    link: str
    q: int

    def part(self, rows: Any) -> Rows:
        """Some of the rows."""
        w = None if self.w is None else self.w[rows]
        return Rows(
            np.ascontiguousarray(self.Z[rows]), self.codes[rows], w, self.link, self.q
        )  # fmt: skip


@dataclass(frozen=True)
class Mode:
    """The most probable weights (q, M), curvature A there, −log-likelihood, penalty, and how many steps it took."""

    weights: FloatArray
    precision: FloatArray
    loss: float
    penalty: float
    n_iter: int
    converged: bool


def find_mode(
    rows: Rows,
    prior: GaussianPrior,
    *,
    solver: str = "irls",
    start: FloatArray | None = None,
    max_iter: int = 100,
    tol: float = 1e-5,
) -> Mode:
    """Steps until one moves the weights by less than `tol` of their posterior deviations.

    Raises `LinAlgError` where the curvature is singular: a prior is missing then.
    """
    n, M = rows.Z.shape
    if start is None:
        start = np.zeros((rows.q, M))
        if n >= 50 * _FEWER * rows.q * M and solver == "irls":
            start = _guess(rows, prior, start)
    if solver == "gradient":
        return _by_gradient(rows, prior, start, max_iter, tol)
    return _newton(rows, prior, start, max_iter, tol)


def _guess(rows: Rows, prior: GaussianPrior, zero: FloatArray) -> FloatArray:
    """The mode of a part of the rows: near enough to save steps on all of them."""
    few = rows.part(slice(None, None, _FEWER))
    try:
        found = _newton(few, prior.weaker(_FEWER), zero, 15, 0.1)
    except np.linalg.LinAlgError:
        return zero
    return found.weights if np.isfinite(found.weights).all() else zero


def _newton(rows: Rows, prior: GaussianPrior, v: FloatArray, max_iter: int, tol: float) -> Mode:
    value, loss, penalty, g, A = _objective(rows, prior, v)
    converged, steps = False, 0
    for _ in range(max_iter):
        check_interrupt()
        steps += 1
        move = -_solve(A, g)
        gain = float(-g @ move)  # squared length in posterior deviations
        converged = gain <= tol * tol
        if converged:  # the last step is so small that the quadratic form tells all about it
            v = v + move.reshape(v.shape)
            off = v.reshape(-1) - prior.mean
            loss += penalty - 0.5 * gain - 0.5 * float(off @ prior.precision @ off)
            penalty = 0.5 * float(off @ prior.precision @ off)
            break
        size = 1.0
        while True:
            after = v + size * move.reshape(v.shape)
            found = _objective(rows, prior, after)
            if found[0] <= value - 1e-4 * size * gain or size < 1e-8:
                break
            size *= 0.5
        if not found[0] <= value:
            break
        v, (value, loss, penalty, g, A) = after, found
    return Mode(v, A, loss, penalty, steps, converged)


def _by_gradient(rows: Rows, prior: GaussianPrior, v: FloatArray, max_iter: int, tol: float) -> Mode:
    """Quasi-Newton steps from gradients alone, O(n q M) each; the curvature is computed once, at the end."""
    from scipy.optimize import minimize

    def value_and_slope(flat: FloatArray) -> tuple[float, FloatArray]:
        check_interrupt()
        value, _, _, g, _ = _objective(rows, prior, flat.reshape(v.shape), curved=False)
        return value, g

    options = {"maxiter": 20 * max_iter, "gtol": tol * 1e-3, "ftol": 1e-15}
    found = minimize(value_and_slope, v.reshape(-1), jac=True, method="L-BFGS-B", options=options)
    weights = found.x.reshape(v.shape)
    _, loss, penalty, _, A = _objective(rows, prior, weights)
    return Mode(weights, A, loss, penalty, int(found.nit), bool(found.success))


def _solve(A: FloatArray, g: FloatArray) -> FloatArray:
    from scipy.linalg import cho_solve

    scale = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))
    L = np.linalg.cholesky(A * np.outer(scale, scale))
    if np.diag(L).min() < 1e-7:
        raise np.linalg.LinAlgError("the curvature is singular")
    return np.asarray(scale * cho_solve((L, True), scale * g))


def _objective(
    rows: Rows, prior: GaussianPrior, v: FloatArray, *, curved: bool = True
) -> tuple[float, float, float, FloatArray, FloatArray]:
    """(E, −log-likelihood, penalty, gradient, curvature A)."""
    off = v.reshape(-1) - prior.mean
    pull = prior.precision @ off
    penalty = 0.5 * float(off @ pull)
    loss, G, H = _sweep(rows, v, curved)
    A = H.transpose(0, 2, 1, 3).reshape(v.size, v.size) + prior.precision
    return loss + penalty, loss, penalty, G.reshape(-1) + pull, A


def _sweep(rows: Rows, v: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray]:
    """−log-likelihood, its gradient (q, M), its curvature (q, q, M, M)."""
    n, M = rows.Z.shape
    q = rows.q
    loss, G, H = 0.0, np.zeros((q, M)), np.zeros((q, q, M, M))
    size = max(64, _BLOCK // M)
    scratch = np.empty((min(size, n), M))
    for at in range(0, n, size):
        Z, codes = rows.Z[at : at + size], rows.codes[at : at + size]
        w = None if rows.w is None else rows.w[at : at + size]
        own, slope, bend = _LIKELIHOODS[rows.link](Z @ v.T, codes)
        if w is not None:
            own, slope, bend = own * w, slope * w[:, None], bend * (w[:, None] if bend.ndim == 2 else w)
        loss += float(own.sum())
        G += slope.T @ Z
        if curved:
            _add_curvature(H, Z, bend, w, scratch[: len(Z)])
    for k in range(q):
        for j in range(k):
            H[k, j] = H[j, k]
    return loss, G, H


def _add_curvature(H: FloatArray, Z: FloatArray, bend: FloatArray, w: Any, S: FloatArray) -> None:
    """Σ_n bend_n z zᵀ; of a softmax p_k (δ_kj − p_j) for k ≤ j, where `bend` holds (weighted) probabilities."""
    if bend.ndim == 1:
        np.multiply(Z, np.sqrt(bend)[:, None], out=S)
        H[0, 0] += S.T @ S
        return
    P = bend if w is None else bend / np.where(w > 0.0, w, 1.0)[:, None]
    for k in range(bend.shape[1]):
        for j in range(k, bend.shape[1]):
            r = bend[:, k] * ((1.0 - P[:, j]) if k == j else P[:, j])
            np.multiply(Z, np.sqrt(np.maximum(r, 0.0))[:, None], out=S)
            if k == j:
                H[k, j] += S.T @ S
            else:
                H[k, j] -= S.T @ S


def _logistic(F: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    f = F[:, 0]
    e = np.exp(-np.abs(f))
    p = np.where(f >= 0.0, 1.0, e) / (1.0 + e)
    loss = np.log1p(e) + np.maximum(f, 0.0) - codes * f
    return loss, (p - codes)[:, None], e / (1.0 + e) ** 2


def _probit(F: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """−log Φ(s f), s = ±1; the ratio ρ = φ/Φ comes from erfcx, so that it holds far to the left."""
    from scipy.special import erfcx, log_ndtr

    s = 2.0 * codes - 1.0
    z = s * F[:, 0]
    near = np.clip(z, -1e6, 38.0)
    rho = np.sqrt(2.0 / np.pi) / erfcx(-near / np.sqrt(2.0))
    far = near < -1e3
    bend = np.where(far, 1.0 - 1.0 / near**2, np.clip(rho * (near + rho), 0.0, 1.0))
    return -log_ndtr(z), (-s * rho)[:, None], bend


def _softmax(F: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    F = F - F.max(axis=1, keepdims=True)
    P = np.exp(F)
    total = P.sum(axis=1)
    P /= total[:, None]
    at = np.arange(len(codes))
    loss = np.log(total) - F[at, codes]
    slope = P.copy()
    slope[at, codes] -= 1.0
    return loss, slope, P


_LIKELIHOODS = {"logistic": _logistic, "probit": _probit, "softmax": _softmax}


def are_separable(Z: FloatArray, codes: IntArray, k: int) -> bool:
    """Whether some weights leave no row on the wrong side and one on the right side: no finite weights are best then.

    A linear program in (k − 1) M unknowns, one line for each row and each other class.
    """
    from scipy.optimize import linprog

    n, M = Z.shape
    blocks = []
    for other in range(k):
        rows = codes != other
        D = np.zeros((int(rows.sum()), k, M))
        D[np.arange(len(D)), codes[rows]] = Z[rows]
        D[:, other] -= Z[rows]
        blocks.append(D[:, 1:].reshape(len(D), -1))
    D = np.concatenate(blocks)
    D /= np.maximum(np.abs(D).max(axis=1, keepdims=True), 1e-300)
    found = linprog(-D.sum(axis=0), A_ub=-D, b_ub=np.zeros(len(D)), bounds=(-1.0, 1.0), method="highs")
    return bool(found.status == 0 and -found.fun > 1e-6)
