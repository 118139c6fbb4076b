"""Rounds of MacKay's re-estimation of prior precisions: many columns by LAPACK, few in a compiled loop."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dpstrf, dtrtri

from gramgraph._numerics.compiling import njit

__all__ = ["LOOSE", "cholesky", "factor", "few_rounds", "inverse", "invert", "rounds_at_once", "solve", "square"]

#: Sums of compiled loops may be taken in another order, so that they are taken four or eight terms at a time.
LOOSE = {"reassoc", "contract"}

#: A column leaves when its prior is this much narrower than what the data say of its weight.
NARROW = 1e2
#: Share of the longest column's square that the space of many columns may leave over.
SPANNED = 1e-6
#: Rounds end when no log α moves by more.
MOVED = 1e-2
#: Columns are taken as vectors of their space while there are this many times more than it has dimensions.
WIDER = 2.0


def cholesky(A):
    """Lower factor of A; where rounding made A indefinite, of A with a small shift (which is left in it)."""
    L, info = dpotrf(A.T, lower=1, clean=1)  # Aᵀ has the order of LAPACK
    if info:
        A[np.diag_indices_from(A)] += 1e-10 * np.trace(A)
        L, _ = dpotrf(A.T, lower=1, clean=1)
    return L


def inverse(L):
    """(L Lᵀ)⁻¹."""
    if not len(L):  # no active column: LAPACK prints a complaint
        return np.zeros((0, 0))
    lower, _ = dpotri(L, lower=1)
    return np.tril(lower) + np.tril(lower, -1).T


def square(G, keep):
    """The products of some columns among themselves; rows first, which are copied whole."""
    return np.take(np.take(G, keep, axis=0), keep, axis=1)


def rounds_at_once(G, proj, alpha, beta, power, n, floor, learned, rounds, most, few):
    """Rounds for columns with products G, while more than `few` are left and Σ m³ stays below `most`.

    Returns (columns that are left, their α, noise precision, rounds and work that are left): no round where no α moves
    any more.
    """
    kept = np.arange(len(proj))
    norm = np.diagonal(G).copy()
    space = _Space(G, proj, power) if len(proj) > few else None
    while rounds and len(kept) > few:
        m = len(kept)
        most -= float(m) ** 3
        if most < 0.0:
            rounds = 0
            break
        rounds -= 1
        if space is not None and m < WIDER * space.rank:
            G, proj, space = square(G, kept), proj[kept], None
        mu, gamma, rss = _direct(G, proj, power, alpha, beta) if space is None else space.solve(kept, alpha, beta)
        gamma = np.minimum(np.maximum(gamma, 1e-12), 1.0)
        new = gamma / np.maximum(mu**2, 1e-300)
        moved = float(np.abs(np.log(new / alpha)).max())
        alpha = new
        if learned:
            beta = 1.0 / max(rss / max(n - float(gamma.sum()), 1e-3 * n), floor)
        keep = np.flatnonzero(alpha < NARROW * beta * norm)
        if len(keep) < m:
            kept, norm, alpha = kept[keep], norm[keep], alpha[keep]
            if space is None:
                G, proj = square(G, keep), proj[keep]
        if moved < MOVED:
            rounds = 0
    return kept, alpha, beta, rounds, most


def _direct(G, proj, power, alpha, beta):
    """(μ, γ, squared residual) from (β G + diag(α))⁻¹: O(m³)."""
    V, _ = dtrtri(_factored(lambda: _with_diagonal(beta * G, alpha)), lower=1, overwrite_c=1)
    mu = beta * ((V @ proj) @ V)
    gamma = 1.0 - alpha * _squares(V.T)
    return mu, gamma, power - 2.0 * float(mu @ proj) + float(mu @ G @ mu)


def _with_diagonal(A, more):
    """A with something added to its diagonal, in place."""
    A.ravel()[:: len(A) + 1] += more
    return A


def _factored(make):
    """`cholesky` of a matrix that can be made again: factored in its own place."""
    L, info = dpotrf(make().T, lower=1, clean=1, overwrite_a=1)
    return cholesky(make()) if info else L


def _squares(rows):
    """The squared length of each row."""
    return np.einsum("ij,ij->i", rows, rows)


class _Space:
    """Columns as vectors F (r, m) of the space that they span but for `SPANNED` of the longest: FᵀF ≈ G, Fᵀz ≈ proj.

    With C = I/β + F diag(α)⁻¹ Fᵀ a round costs O(m r²): γ = fᵀC⁻¹f/α, μ = fᵀC⁻¹z/α.
    """

    def __init__(self, G, proj, power):
        c, order, self.rank, _ = dpstrf(G.T, tol=SPANNED * float(np.diagonal(G).max()), lower=1)
        order, r = order - 1, int(self.rank)
        self.F = np.empty((r, len(G)))
        self.F[:, order] = np.tril(c[:, :r]).T
        self.z = dtrsm(1.0, c[:r, :r], proj[order[:r]][:, None], lower=1)[:, 0]
        self.rest = max(power - float(self.z @ self.z), 0.0)

    def solve(self, kept, alpha, beta):
        """(μ, γ, squared residual) of the columns that are left."""
        F = self.F if len(kept) == self.F.shape[1] else self.F[:, kept]
        scaled = F / np.sqrt(alpha)
        L = _factored(lambda: _with_diagonal(dsyrk(1.0, scaled.T, trans=1, lower=1).T, 1.0 / beta))
        V = dtrsm(1.0, L, F.T, side=1, lower=1, trans_a=1)  # (m, r), as LAPACK orders it
        mu = (V @ dtrsm(1.0, L, self.z[:, None], lower=1)[:, 0]) / alpha
        off = self.z - F @ mu
        return mu, _squares(V) / alpha, float(off @ off) + self.rest


@njit(cache=True, nogil=True, fastmath=LOOSE, plain=rounds_at_once)
def few_rounds(G, proj, alpha, beta, power, n, floor, learned, rounds, most, few):
    """`rounds_at_once` where m is so small that calls cost more than their work."""
    m = len(proj)
    kept = np.arange(m)
    G, proj, alpha = G.copy(), proj.copy(), alpha.copy()
    A, mu = np.empty((m, m)), np.empty(m)
    while rounds > 0 and m > few:
        most -= float(m) ** 3
        if most < 0.0:
            rounds = 0
            break
        rounds -= 1
        factor(G, alpha, beta, m, A)
        solve(A, proj, beta, m, mu)
        invert(A, m)
        moved = 0.0
        explained = 0.0
        for j in range(m):
            variance = A[j, j] * A[j, j]
            for i in range(j + 1, m):
                variance += A[j, i] * A[j, i]
            gamma = min(max(1.0 - alpha[j] * variance, 1e-12), 1.0)
            new = gamma / max(mu[j] * mu[j], 1e-300)
            moved = max(moved, abs(np.log(new / alpha[j])))
            alpha[j] = new
            explained += gamma
        if learned:
            rss = power
            for i in range(m):
                s = 0.0
                for j in range(m):
                    s += G[i, j] * mu[j]
                rss += mu[i] * (s - 2.0 * proj[i])
            beta = 1.0 / max(rss / max(n - explained, 1e-3 * n), floor)
        to = 0
        for i in range(m):
            if alpha[i] < NARROW * beta * G[i, i]:
                kept[to], proj[to], alpha[to] = kept[i], proj[i], alpha[i]
                for j in range(m):
                    G[to, j] = G[i, j]
                for j in range(m):
                    G[j, to] = G[j, i]
                to += 1
        m = to
        if moved < MOVED:
            rounds = 0
    return kept[:m].copy(), alpha[:m].copy(), beta, rounds, most


_helper = njit(cache=True, nogil=True, no_cpython_wrapper=True, fastmath=LOOSE)


@_helper
def factor(G, alpha, beta, m, A):
    """Lower Cholesky factor of β G + diag(α) into A; where rounding made it indefinite, with a small shift."""
    if _factor(G, alpha, beta, m, 0.0, A):
        return
    trace = 0.0
    for i in range(m):
        trace += beta * G[i, i] + alpha[i]
    _factor(G, alpha, beta, m, 1e-10 * trace, A)


@_helper
def _factor(G, alpha, beta, m, shift, A):
    """Lower Cholesky factor of β G + diag(α + shift) into A; whether there is one."""
    for i in range(m):
        for j in range(i + 1):
            s = beta * G[i, j]
            if i == j:
                s += alpha[i] + shift
            for t in range(j):
                s -= A[i, t] * A[j, t]
            if i > j:
                A[i, j] = s / A[j, j]
            elif s > 0.0:
                A[i, i] = np.sqrt(s)
            else:
                return False
    return True


@_helper
def solve(A, right, beta, m, x):
    """x = β (L Lᵀ)⁻¹ right with L in the lower triangle of A."""
    for i in range(m):
        s = beta * right[i]
        for j in range(i):
            s -= A[i, j] * x[j]
        x[i] = s / A[i, i]
    for i in range(m - 1, -1, -1):
        x[i] /= A[i, i]
        for j in range(i):
            x[j] -= A[i, j] * x[i]


@_helper
def invert(A, m):
    """L⁻¹, transposed, into the upper triangle of A, whose lower one holds L but for its diagonal."""
    for j in range(m):
        A[j, j] = 1.0 / A[j, j]
    for j in range(m):
        for i in range(j + 1, m):
            s = A[i, j] * A[j, j]
            for t in range(j + 1, i):
                s += A[i, t] * A[j, t]
            A[j, i] = -s * A[i, i]
