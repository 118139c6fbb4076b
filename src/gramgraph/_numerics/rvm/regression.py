"""Sparse Bayesian regression: one basis at a time enters, is re-estimated, or leaves (Tipping and Faul, 2003).

Where the steps begin decides at which maximum they end. From the empty model they put the first columns where signal
and noise together are largest; regression therefore begins with all columns in the model (or `starters`, many that
span the others), re-estimates their α together until most have left (MacKay's fixed point), and goes on with single
changes from there (`posterior.py`). Where these lose digits, nothing is kept of them: `careful.py` makes the fit. If
that has too many dimensions, the fit ends where they were lost, and has not converged.

All designs come transposed, `T` of shape (M, N): one row a basis. Weighted cases come multiplied by the root of their
weight, an intercept with a flat prior as rows and targets with their (weighted) mean taken off.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrs

from gramgraph._numerics.rvm.careful import careful_changes, coordinates, evidence, inside
from gramgraph._numerics.rvm.few_changes import few_changes
from gramgraph._numerics.rvm.posterior import PARALLEL, changes
from gramgraph._numerics.rvm.rounds import (
    FEW,
    TIED,
    WIDER,
    cholesky,
    few_rounds,
    inverse_root,
    largest,
    narrowed,
    rounds_in_space,
    rounds_of_columns,
    space_of,
    square,
)

__all__ = ["NOISE_FLOOR", "distinct", "largest", "regression", "spread", "starters"]

#: The noise variance stays above this share of the mean square of the targets.
NOISE_FLOOR = 1e-9
#: Columns that the first re-estimation begins with, at most.
START = 350
#: Of these the ones that are to span the others, at most, and the share of the kernel's diagonal they may leave over.
SPREAD, SPREAD_REST = 200, 1e-6
#: Values of a kernel below this share of the largest are next to underflow.
FAINT = 1e-290
#: Changes go on in a compiled loop while not more columns are active.
FEW_ACTIVE = 64
#: Columns whose products are compared at a time, which the cache of a processor holds.
BLOCK = 64
#: Rounds of the first re-estimation, at most, and their total of m³ for m columns, by that of the first round.
ROUNDS, ROUNDS_WORK = 1500, 60
#: Where digits are lost the rounds begin with α so much smaller: large weights that cancel are free from the beginning.
WIDE = 1e-10


def _ascending(values):
    """Places of the values in ascending order; those that are equal up to rounding stay in the order they have."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    group = np.cumsum(np.diff(ascending, prepend=ascending[:1]) > TIED * np.abs(ascending))
    return order[np.lexsort((order, group))]


def _values_with(K, first):
    """Values of all columns with column `first`; those that are next to underflow, which hang on the loop, are zero."""
    values = K[first]
    return np.where(np.abs(values) < FAINT * np.abs(values).max(initial=0.0), 0.0, values)


def spread(K, first, *, most=SPREAD, rest=SPREAD_REST):
    """Columns of a kernel matrix K (M, M) that span it, by pivoted Cholesky from column `first` on: O(M m²).

    Copies of a point are never taken twice. `first` is given because equal diagonals would leave it to the order; of
    columns that leave as much over the one with the smallest value with `first` is taken.
    """
    d = np.diagonal(K).astype(np.float64)
    top = d.max(initial=0.0)
    L = np.empty((min(most, len(K)), len(K)))
    values, taken = _values_with(K, first), []
    for i in range(len(L)):
        tied = np.flatnonzero(d >= d.max() - TIED * top)
        j = first if i == 0 else int(tied[largest(-values[tied])])
        if not d[j] > rest * top:
            break
        L[i] = (K[j] - L[:i, j] @ L[:i]) / np.sqrt(d[j])
        d -= L[i] ** 2
        d[j] = -np.inf
        taken.append(j)
    return np.asarray(taken, dtype=np.intp)


def starters(K, first, *, most=START):
    """Columns to begin with: all, or `most` of them, those that span the others first and the rest evenly.

    Evenly by their value with column `first`, so that the order of the points does not matter.
    """
    if len(K) <= most:
        return np.arange(len(K))
    pivots = spread(K, first, most=min(SPREAD, most))
    others = np.setdiff1d(np.arange(len(K)), pivots)
    others = others[_ascending(_values_with(K, first)[others])]
    evenly = others[np.linspace(0, len(others) - 1, most - len(pivots)).round().astype(np.intp)]
    return np.sort(np.concatenate([pivots, evenly]))


def distinct(G):
    """Of columns with products G the ones that are not zero, and of copies (equal directions) the first."""
    norm = np.diagonal(G)
    keep = norm > 0.0
    for at in range(0, len(G), BLOCK):
        near = (PARALLEL * norm[at : at + BLOCK])[:, None] * norm <= G[at : at + BLOCK] ** 2
        if np.count_nonzero(near) > len(near):  # else each column is near itself alone
            keep[at : at + BLOCK] &= ~np.tril(near & (norm > 0.0), at - 1).any(axis=1)
    return np.flatnonzero(keep)


def _first(G, power, noise, n, floor):
    """α and noise precision with which the re-estimation of columns with products G begins."""
    beta = 1.0 / max(0.1 * power / n, floor) if noise is None else 1.0 / noise
    return np.full(len(G), max(0.1 * float(np.trace(G)) / max(power, n * floor), 1e-300)), beta


def _together(P, t, G, start, noise, n, floor):
    """MacKay's re-estimation α = γ/μ², σ² = ‖t − Φμ‖²/(n − Σγ) of the columns in `start`, all at once.

    P are these columns and G their products. Columns whose prior has become narrow leave. Returns (columns, α, noise
    precision); O(m³) a round, or O(m r²) where they span r dimensions; m falls quickly.
    """
    keep = distinct(G)
    if len(keep) < len(start):
        start, G, P = start[keep], square(G, keep), P[keep]
    power = float(t @ t)
    alpha, beta = _first(G, power, noise, n, floor)
    rounds, most = ROUNDS, ROUNDS_WORK * float(max(len(start), 100)) ** 3
    known = (n, floor, noise is None)
    kept, proj, space = np.arange(len(start)), P @ t, space_of(P, t, G)
    if len(start) > FEW:
        if space is not None:
            enough = max(FEW, int(WIDER * space.F.shape[1]))
            kept, alpha, beta, rounds, most = rounds_in_space(*space, alpha, beta, *known, rounds, most, enough)
        if len(kept) > FEW:
            found = rounds_of_columns(square(G, kept), proj[kept], alpha, beta, power, *known, rounds, most, FEW)
            keep, alpha, beta, rounds, most = found
            kept = kept[keep]
        space = space_of(P[kept], t, square(G, kept))
    while rounds and len(kept):
        keep, alpha, beta, rounds, most = few_rounds(*space, alpha, beta, *known, rounds, most, space.few())
        kept, space = kept[keep], narrowed(space._replace(F=space.F[keep]))
    return start[kept], alpha, beta


def regression(T, t, *, noise, tol, max_iter, start=None, n=None, again=None):
    """Evidence maximum over α, and over the noise variance where `noise` is None.

    `start` names the columns to begin with (None: none). `n` is the number of cases that speak of the noise (None: all
    of them): the sum of the weights, less one for an intercept. `again` makes T anew where digits of a fit were lost.
    Returns (active, alpha, mu, root, noise, trace of the log evidence, steps, converged): the weights have the mean μ
    and the covariance root rootᵀ, whose own digits would be lost where weights cancel.
    """
    n, power = float(len(t) if n is None else n), float(t @ t)
    floor = NOISE_FLOOR * (power / n or 1.0)
    beta = 1.0 / (max(0.1 * power / n, floor) if noise is None else noise)
    proj, gram = T @ t, np.empty((0, 0))
    active, alpha = np.empty(0, dtype=np.intp), np.empty(0)
    if start is not None and len(start) == len(T):
        gram = T @ T.T  # of all columns: every product that is needed later is in it
        active, alpha, beta = _together(T, t, gram, start, noise, n, floor)
    elif start is not None and len(start):
        P = T[start]
        active, alpha, beta = _together(P, t, P @ P.T, start, noise, n, floor)
    diag = np.diagonal(gram).copy() if gram.size else np.einsum("ij,ij->i", T, T)
    columns = (T, gram, t, diag, proj)
    active, alpha, beta, trace, step, converged, lost = _climb(
        columns, active, alpha, float(beta), (noise is None, n, floor, tol), max_iter
    )
    if lost:
        T = T if again is None else again()
        proj, space = T @ t, coordinates(T, t)
        if space is not None:
            return _carefully(space, (active, alpha, beta), power, start, noise, n, floor, tol, max_iter)
        trace, converged = trace[: max(len(trace) - 1, 1)], False  # what was foretold last did not come true
    order = np.argsort(active, kind="stable")
    active, alpha = active[order], alpha[order]
    mu, root = _weights(T[active], proj[active], alpha, beta)
    return active, alpha, mu, root, 1.0 / beta, trace, step, converged


def _carefully(space, reached, power, start, noise, n, floor, tol, max_iter):
    """What `regression` returns, without products of columns; see `careful.py`.

    From the beginning again, or from the model that was `reached` (columns, their α, noise precision) where that has
    the higher evidence.
    """
    start = np.empty(0, dtype=np.intp) if start is None else start
    F = space.F[start]
    keep = distinct(F @ F.T)
    start, F = start[keep], F[keep]
    alpha, beta = _first(F @ F.T, power, noise, n, floor)
    known, most = (n, floor, noise is None), ROUNDS_WORK * float(max(len(start), 100)) ** 3
    if len(start):
        limits = (ROUNDS, most, 0)
        keep, alpha, beta, _, _ = rounds_in_space(F, *space[1:], WIDE * alpha, beta, *known, *limits, inside)
        start = start[keep]
    found = careful_changes(*space, start, alpha, beta, *known, tol, max_iter)
    if evidence(*space, *reached, n) > found[5][-1]:
        return careful_changes(*space, *reached, *known, tol, max_iter)
    return found


def _climb(columns, active, alpha, beta, known, max_iter):
    """What `changes` returns, by the compiled loop as long as few columns are active."""
    traces, done, converged, lost = [np.empty(0)], 0, False, False
    loops = [(few_changes, FEW_ACTIVE), (changes, len(columns[0]))]
    for loop, limit in loops if len(active) <= FEW_ACTIVE else loops[1:]:
        if done < max_iter or not done:
            T, gram = columns[:2]
            rows = gram[active] if gram.size else T[active] @ T.T
            active, alpha, beta, trace, steps, converged, lost = loop(
                *columns, rows, active, alpha, beta, *known, max_iter - done, limit
            )
            traces, done = [*traces[:-1], traces[-1][:-1], trace], done + steps
        if converged or lost:
            break
    return active, alpha, beta, np.concatenate(traces), done, converged, lost


def _weights(P, proj, alpha, beta):
    """Mean of the weights of columns P, and a root of their covariance."""
    if not len(P):
        return np.empty(0), np.empty((0, 0))
    A = beta * (P @ P.T)
    A.ravel()[:: len(A) + 1] += alpha
    L = cholesky(A)
    return beta * dpotrs(L, proj, lower=1)[0], inverse_root(L)
