"""Sparse Bayesian regression where products of columns lose their digits: slower, and exact up to rounding.

With next to no noise, given or true, smooth columns are used whose differences carry the curve: their weights are large
and cancel. The products ΦᵀΦ hold such differences in half as many digits as the columns do, and updates add up what is
lost. Here columns are coordinates in an orthonormal basis of what they span, and posteriors come from

    [√β Φ; diag(√α)] = [U; W] R   (QR),   Σ⁻¹ = RᵀR,   μ = √β R⁻¹Uᵀt,   (I/β + Φ diag(α)⁻¹Φᵀ)⁻¹ = β (I − UUᵀ),

from which S and Q follow without differences of large numbers: for another column φ with p = Uᵀφ, S/β = ‖φ − Up‖² +
‖Wp‖². Changes count when the evidence made anew has risen. A posterior costs O(r M m) in r dimensions. Everything is
interpreted, so that both tiers end at the same model.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgeqrf

from gramgraph._numerics.rvm.posterior import LONG, NEAR, PARALLEL, SETTLED, Posterior, improve_noise, result
from gramgraph._numerics.rvm.rounds import Space

__all__ = ["careful_changes", "coordinates", "evidence", "inside"]

#: Length outside the basis, by that of the longest column, which is left out.
LEFT = 2e-15
#: Share of `tol` by which the evidence must rise at a change: less may be rounding, and would not end.
RISE = 0.1
#: Dimensions, at most: with more of them a fit would take minutes.
MOST = 256
#: Changes in a batch, at most.
BATCH = 8


def coordinates(T, t):
    """Columns and targets as a `Space` that holds all of the columns.

    One pivot after another, O(N M r); where more than half of the N dimensions are needed, all are kept as they are.
    None where there are too many.
    """
    left, basis = T.copy(), np.empty((min(T.shape[1] // 2, MOST), T.shape[1]))
    size = np.einsum("ij,ij->i", left, left)
    least, rank = LEFT**2 * size.max(initial=0.0), 0
    while size.max(initial=0.0) > least:
        if rank == len(basis):
            return Space(T, t, 0.0) if len(t) <= MOST else None
        unit = left[int(np.argmax(size))]
        unit = unit / np.linalg.norm(unit)
        unit -= (basis[:rank] @ unit) @ basis[:rank]  # rounding left a part in the span
        basis[rank] = unit / np.linalg.norm(unit)
        left -= np.outer(left @ basis[rank], basis[rank])
        size = np.einsum("ij,ij->i", left, left)
        rank += 1
    basis = basis[:rank]
    z = basis @ t
    rest = t - z @ basis
    return Space(T @ basis.T, z, float(rest @ rest))


class _Exact(Posterior):
    """Its numbers made anew at every change; `rest` is the squared length of the targets outside the basis."""

    def __init__(self, F, z, rest, beta, active, alpha):
        self.z, self.rest, self.case_weights, self.gram = z, rest, None, None
        self.T, self.diag, self.proj, self.beta = F, np.einsum("ij,ij->i", F, F), F @ z, beta
        self.active, self.alpha = active, alpha
        self.refresh()

    def factored(self, beta):
        """(U, W, R, Uᵀt) of the formula above; O(r m²)."""
        P = self.T[self.active]
        m, r = P.shape
        stack = np.empty((r + m, m))
        stack[:r], stack[r:] = np.sqrt(beta) * P.T, np.diag(np.sqrt(self.alpha))
        Q, R = qr(stack, mode="economic", overwrite_a=True, check_finite=False)
        return Q[:r], Q[r:], R, Q[:r].T @ self.z

    def refresh(self, found=None):
        """Σ, μ, S, Q from what `factored` has found."""
        U, W, R, part = self.factored(self.beta) if found is None else found
        self.G = np.concatenate([self.T[self.active] @ self.T.T, np.empty((BATCH, len(self.T)))])
        near = self.rows**2 >= PARALLEL * self.diag[self.active][:, None] * self.diag
        self.twins = np.count_nonzero(near, axis=0)
        inside = self.T @ U
        outside, shrunk = self.T - inside @ U.T, inside @ W.T
        self.S = self.beta * (np.einsum("ij,ij->i", outside, outside) + np.einsum("ij,ij->i", shrunk, shrunk))
        self.Q = self.beta * (self.T @ (self.z - U @ part))
        root = solve_triangular(R, np.eye(len(R)), check_finite=False) if len(R) else R
        self.mu, self.sigma, self.factor = np.sqrt(self.beta) * (root @ part), root @ root.T, root

    def root(self):
        """Σ as it was factored."""
        return self.factor

    def look(self, _, beta, n, found=None):
        """As `Posterior.look`; no column is bad."""
        U, W, R, part = self.factored(beta) if found is None else found
        left, shrunk = self.z - U @ part, W @ part
        rss = float(left @ left) + self.rest
        logdet = 2.0 * np.log(np.abs(np.diagonal(R))).sum() - np.log(self.alpha).sum()
        value = -0.5 * (n * np.log(2 * np.pi / beta) + logdet + beta * (rss + float(shrunk @ shrunk)))
        return value, rss, len(self.active) - float(np.einsum("ij,ij->", W, W)), 1.0


def inside(F, z, rest, alpha, beta):
    """(μ, γ, squared residual), as `rounds_in_space` asks for, from the triangular root of I/β + Fᵀ diag(α)⁻¹ F."""
    m, r = F.shape
    stack = np.zeros((m + r, r), order="F")
    np.divide(F, np.sqrt(alpha)[:, None], out=stack[:m])
    stack[np.arange(m, m + r), np.arange(r)] = 1.0 / np.sqrt(beta)
    R = np.triu(dgeqrf(stack, overwrite_a=1)[0][:r])
    V = dtrsm(1.0, R, F.T, trans_a=1)
    mu = (dtrsm(1.0, R, z[:, None], trans_a=1)[:, 0] @ V) / alpha
    off = z - mu @ F
    return mu, np.einsum("ij,ij->j", V, V) / alpha, float(off @ off) + rest


def _batch(model, closed, tol, most):
    """Make the best changes one after another, at most so many: (their gains, the last column)."""
    gains, j = [], -1
    while len(gains) < most:
        gain, best, alpha = model.best(closed)
        if not gain >= tol:
            break
        model.apply(best, alpha)
        gains.append(gain)
        j = best
    return np.array(gains), j


def _changes(model, learned, n, floor, tol, steps):
    """As `posterior.changes`: (log evidence at the beginning and after each change, steps, whether none is left).

    Changes are made in batches, which count when the evidence made anew is the one foretold. A column whose change does
    not raise it, made alone, is closed until another one has.
    """
    trace, step, closed, batch, repeats = [model.look(None, model.beta, n)[0]], 0, set(), 1, 0
    while True:
        if learned and repeats:
            trace[-1], moved, _, _ = improve_noise(model, None, floor, repeats, n)
            if moved:
                model.refresh()
            if repeats == LONG and moved >= SETTLED:
                closed.clear()
                step, repeats = step + 1, 0
        if step >= steps:
            return np.array(trace), step, False
        before = list(model.active), model.alpha.copy()
        gains, j = _batch(model, closed, tol, min(batch, steps - step))
        if not len(gains):
            if repeats == LONG or not learned:
                return np.array(trace), step, True
            repeats = LONG
            continue
        found = model.factored(model.beta)
        value = model.look(None, model.beta, n, found)[0]
        foretold = trace[-1] + np.cumsum(gains)
        step += len(gains)
        right = len(gains) == 1 or abs(value - foretold[-1]) <= NEAR * (n + abs(value))
        if right and value >= trace[-1] + RISE * tol:
            trace += [*np.minimum(foretold[:-1], value), value]
            closed.clear()
            model.refresh(found)
            batch, repeats = min(2 * batch, BATCH), 1
            continue
        if len(gains) == 1:
            closed.add(j)
        model.active, model.alpha = before
        model.refresh()
        batch, repeats = 1, 0


def evidence(F, z, rest, active, alpha, beta, n):
    """The log evidence of these columns with these α."""
    return _Exact(F, z, rest, beta, active.tolist(), alpha).look(None, beta, n)[0]


def careful_changes(F, z, rest, start, alpha, beta, n, floor, learned, tol, steps):
    """What `regression.regression` returns: single changes from the columns `start` on, with these α and this β."""
    model = _Exact(F, z, rest, beta, start.tolist(), alpha)
    trace, step, converged = _changes(model, learned, n, floor, tol, steps)
    return result(model, 1.0 / model.beta, trace, step, converged)
