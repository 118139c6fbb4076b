"""Rounds of MacKay's re-estimation of prior precisions: many columns by LAPACK, few in a compiled loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dgeqrf, dorgqr, dpotrf, dpotri, dpstrf, dtrtri

from gramgraph._numerics.compiling import njit

__all__ = [
    "LOOSE",
    "TIED",
    "cholesky",
    "few_rounds",
    "inverse",
    "inverse_root",
    "largest",
    "narrowed",
    "orthonormal",
    "rounds_in_space",
    "rounds_of_columns",
    "space_of",
    "square",
]

#: Sums of compiled loops may be taken in another order, so that they are taken four or eight terms at a time.
LOOSE = {"reassoc", "contract"}

#: A column leaves when its prior is this much narrower than what the data say of its weight.
NARROW = 1e2
#: Share of the longest column's square that a space of many columns and of few may leave over.
SPANNED, SPANNED_FEW = 1e-6, 1e-12
#: Columns longer by this much at most are as long as one another.
TILT = 1e-7
#: Values that differ by this share at most are as large as one another.
TIED = 1e-9
#: Rounds end when no log α moves by more.
MOVED = 1e-2
#: Columns are many while there are more; many are taken as vectors of their space if it has this many times fewer
#: dimensions, few always.
FEW, WIDER = 48, 2.0
#: Dimensions of a space that need not become fewer: calls would cost more than the work that they save.
SMALL = 16


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


def inverse_root(L):
    """Root of (L Lᵀ)⁻¹: it times its transpose."""
    return dtrtri(L, lower=1)[0].T if len(L) else np.zeros((0, 0))


def largest(values):
    """The first entry that is the largest up to rounding, so that ties do not hang on the last digit."""
    top = float(values.max())
    return int(np.argmax(values >= top - TIED * abs(top)))


def orthonormal(rows):
    """(Q, R) with the rows (k, N) as columns of Q R: Q (N, min(k, N)) orthonormal, R upper triangular."""
    k = min(rows.shape)
    R, tau, _, _ = dgeqrf(rows.T)
    Q, _, _ = dorgqr(R[:, :k], tau)
    return Q, np.triu(R[:k])


def square(G, keep):
    """The products of some columns among themselves; rows first, which are copied whole."""
    return np.take(np.take(G, keep, axis=0), keep, axis=1)


class Space(NamedTuple):
    """Columns and targets as vectors of a space that holds the columns: what rounds need to know of them.

    With C = I/β + Fᵀ diag(α)⁻¹ F a round costs O(m r²): γ = fᵀC⁻¹f/α, μ = fᵀC⁻¹z/α. Neither is a difference of large
    numbers, however near to one another the columns are: last digits of a kernel do not decide which of them are left.
    """

    F: np.ndarray  # (m, r) one row a column
    z: np.ndarray  # (r,)
    rest: float  # squared length of the targets outside

    def few(self):
        """So many columns are few enough to look for a narrower space, which a small one is already."""
        least = min(self.F.shape)
        return least // 2 if least > SMALL else 0


def space_of(P, t, G):
    """The `Space` of columns P (m, N) with products G; None where many have too many dimensions.

    It is made of some of the columns, one pivot after another; of equal ones the one nearer to the targets. The factor
    of the products is exact enough for many columns; few are turned themselves.
    """
    if not len(P):
        return Space(P, np.zeros(P.shape[1]), float(t @ t))
    proj, diagonal = P @ t, np.diagonal(G)
    few, top = len(P) <= FEW, float(diagonal.max())
    near = TILT * np.abs(proj) / max(float(np.abs(proj).max()), 1e-300)
    if few:
        tilt = 1.0 + near
        _, order, r, _ = dpstrf(tilt[:, None] * G * tilt, tol=SPANNED_FEW * top, lower=1)
        return _seen(Space(P, t, 0.0), P[order[:r] - 1])
    A = _with_diagonal(G.copy(), 2.0 * near * diagonal)  # less than what the space leaves over
    L, order, r, _ = dpstrf(A.T, tol=SPANNED * top, lower=1, overwrite_a=1)
    if WIDER * r > len(P):
        return None
    F, order = np.empty((len(P), r)), order - 1
    F[order[:r]], F[order[r:]] = np.tril(L[:r, :r]), L[r:, :r]
    z = dtrsm(1.0, F[order[:r]], proj[order[:r]][:, None], lower=1)[:, 0]
    return Space(F, z, max(float(t @ t) - float(z @ z), 0.0))


def narrowed(space):
    """The same columns in as many dimensions as there are columns, where these have become fewer."""
    m, r = space.F.shape
    return _seen(space, space.F) if m < r else space


def _seen(space, rows):
    """The same columns and targets in an orthonormal basis of what these rows span."""
    Q, _ = orthonormal(rows)
    z = space.z @ Q
    off = space.z - Q @ z
    return Space(space.F @ Q, z, space.rest + float(off @ off))


def rounds_of_columns(G, proj, alpha, beta, power, n, floor, learned, rounds, most, few):
    """Rounds for columns with products G, while more than `few` are left and Σ m³ stays below `most`.

    Returns (columns that are left, their α, noise precision, rounds and work that are left): no round where no α moves
    any more.
    """
    kept = np.arange(len(proj))
    while rounds and len(kept) > few:
        most -= float(len(kept)) ** 3
        if most < 0.0:
            rounds = 0
            break
        rounds -= 1
        mu, gamma, rss = _direct(G, proj, power, alpha, beta)
        alpha, beta, keep, moved = _renewed(mu, gamma, rss, alpha, beta, np.diagonal(G), n, floor, learned)
        if len(keep) < len(kept):
            kept, alpha, G, proj = kept[keep], alpha[keep], square(G, keep), proj[keep]
        if moved < MOVED:
            rounds = 0
    return kept, alpha, beta, rounds, most


def rounds_in_space(F, z, rest, alpha, beta, n, floor, learned, rounds, most, few, inside=None):
    """`rounds_of_columns` in a `Space`, of Σ m r², by `inside` or `_inside`."""
    inside = _inside if inside is None else inside
    kept, norm = np.arange(len(F)), _squares(F)
    while rounds and len(kept) > few:
        most -= float(len(kept)) * F.shape[1] ** 2
        if most < 0.0:
            rounds = 0
            break
        rounds -= 1
        mu, gamma, rss = inside(F, z, rest, alpha, beta)
        alpha, beta, keep, moved = _renewed(mu, gamma, rss, alpha, beta, norm, n, floor, learned)
        if len(keep) < len(kept):
            kept, alpha, norm, F = kept[keep], alpha[keep], norm[keep], F[keep]
        if moved < MOVED:
            rounds = 0
    return kept, alpha, beta, rounds, most


def _renewed(mu, gamma, rss, alpha, beta, norm, n, floor, learned):
    """(α, noise precision, places of the columns that stay, how far log α moved) after a round; α before they leave."""
    gamma = np.minimum(np.maximum(gamma, 1e-12), 1.0)
    new = gamma / np.maximum(mu**2, 1e-300)
    moved = float(np.abs(np.log(new / alpha)).max())
    if learned:
        beta = 1.0 / max(rss / max(n - float(gamma.sum()), 1e-3 * n), floor)
    return new, beta, np.flatnonzero(new < NARROW * beta * norm), moved


def _direct(G, proj, power, alpha, beta):
    """(μ, γ, squared residual) from (β G + diag(α))⁻¹: O(m³)."""
    V, _ = dtrtri(_factored(lambda: _with_diagonal(beta * G, alpha)), lower=1, overwrite_c=1)
    mu = beta * ((V @ proj) @ V)
    gamma = 1.0 - alpha * _squares(V.T)
    return mu, gamma, power - 2.0 * float(mu @ proj) + float(mu @ G @ mu)


def _inside(F, z, rest, alpha, beta):
    """(μ, γ, squared residual) from C of `Space`: O(m r²)."""
    scaled = F / np.sqrt(alpha)[:, None]
    L = _factored(lambda: _with_diagonal(dsyrk(1.0, scaled.T, lower=1).T, 1.0 / beta))
    V = dtrsm(1.0, L, F, side=1, lower=1, trans_a=1)  # (m, r), as LAPACK orders it
    mu = (V @ dtrsm(1.0, L, z[:, None], lower=1)[:, 0]) / alpha
    off = z - mu @ F
    return mu, _squares(V) / alpha, float(off @ off) + rest


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


_helper = njit(cache=True, nogil=True, no_cpython_wrapper=True, fastmath=LOOSE)


@_helper
def _products(F, alpha, m, more, W):
    """more · I + F diag(α)⁻¹ Fᵀ of the first m columns of F (r, m) into the upper triangle of W, two rows at a time."""
    r, line, other = len(F), np.empty(m), np.empty(m)
    for i in range(0, r, 2):
        last = min(i + 1, r - 1)
        for k in range(m):
            line[k], other[k] = F[i, k] / alpha[k], F[last, k] / alpha[k]
        for j in range(i, r, 2):
            next_ = min(j + 1, r - 1)
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(m):
                a += line[k] * F[j, k]
                b += line[k] * F[next_, k]
                c += other[k] * F[j, k]
                d += other[k] * F[next_, k]
            W[i, j], W[i, next_], W[last, j], W[last, next_] = a, b, c, d
        W[i, i] += more
        if last > i:
            W[last, last] += more


@_helper
def _eliminate(W, width):
    """[C | B] becomes [Lᵀ | L⁻¹ B] in the first columns of W, C symmetric and L its factor; whether there is one."""
    r = len(W)
    for i in range(r):
        for j in range(0, i - 3, 4):
            a, b, c, d = W[j, i], W[j + 1, i], W[j + 2, i], W[j + 3, i]
            for k in range(i, width):
                W[i, k] -= a * W[j, k] + b * W[j + 1, k] + c * W[j + 2, k] + d * W[j + 3, k]
        for j in range(i - i % 4, i):
            a = W[j, i]
            for k in range(i, width):
                W[i, k] -= a * W[j, k]
        if not W[i, i] > 0.0:
            return False
        a = 1.0 / np.sqrt(W[i, i])
        for k in range(i, width):
            W[i, k] *= a
    return True


@_helper
def _lower(F, z, alpha, m, more, W):
    """L⁻¹ [F | z] into W beside the factor L of C; where rounding made C indefinite, with a small shift."""
    r = len(F)
    for _ in range(2):
        _products(F, alpha, m, more, W)
        for i in range(r):
            for k in range(m):
                W[i, r + k] = F[i, k]
            W[i, r + m] = z[i]
        trace = 0.0
        for i in range(r):
            trace += W[i, i]
        if _eliminate(W, r + m + 1):
            break
        more += 1e-10 * trace


@njit(cache=True, nogil=True, fastmath=LOOSE, plain=rounds_in_space)
def few_rounds(F, z, rest, alpha, beta, n, floor, learned, rounds, most, few):
    """`rounds_in_space` where m is so small that calls cost more than their work."""
    m, r = F.shape
    kept, norm, alpha = np.arange(m), np.zeros(m), alpha.copy()
    turned, W, mu, gamma = np.empty((r, m)), np.empty((r, r + m + 1)), np.empty(m), np.empty(m)
    for i in range(m):
        for k in range(r):
            turned[k, i] = F[i, k]
            norm[i] += F[i, k] * F[i, k]
    while rounds > 0 and m > few:
        most -= float(m) * r**2
        if most < 0.0:
            rounds = 0
            break
        rounds -= 1
        _lower(turned, z, alpha, m, 1.0 / beta, W)
        for i in range(m):
            mu[i], gamma[i] = 0.0, 0.0
        for k in range(r):
            part = W[k, r + m]
            for i in range(m):
                mu[i] += W[k, r + i] * part
                gamma[i] += W[k, r + i] * W[k, r + i]
        moved, explained, rss = 0.0, 0.0, rest
        for i in range(m):
            mu[i] /= alpha[i]
            gamma[i] = min(max(gamma[i] / alpha[i], 1e-12), 1.0)
            new = gamma[i] / max(mu[i] * mu[i], 1e-300)
            moved = max(moved, abs(np.log(new / alpha[i])))
            alpha[i] = new
            explained += gamma[i]
        if learned:
            for k in range(r):
                off = z[k]
                for i in range(m):
                    off -= mu[i] * turned[k, i]
                rss += off * off
            beta = 1.0 / max(rss / max(n - explained, 1e-3 * n), floor)
        to = 0
        for i in range(m):
            if alpha[i] < NARROW * beta * norm[i]:
                kept[to], norm[to], alpha[to] = kept[i], norm[i], alpha[i]
                for k in range(r):
                    turned[k, to] = turned[k, i]
                to += 1
        m = to
        if moved < MOVED:
            rounds = 0
    return kept[:m].copy(), alpha[:m].copy(), beta, rounds, most
