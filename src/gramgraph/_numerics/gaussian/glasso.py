"""The graphical lasso: min over Θ ≻ 0 of −log |Θ| + tr(SΘ) + Σ_{i≠j} L_ij |Θ_ij|, by block coordinate descent.

The dual problem, max log |W| over |W_ij − S_ij| ≤ L_ij with the diagonal of S, is solved one row at a time: with all
other rows fixed, row j of W is W β with β the solution of a lasso, min ½ βᵀWβ − βᵀs_j + Σ L_jk |β_k| (without j), and
Θ_jk = −β_k Θ_jj. The lasso is solved by coordinate descent that keeps q = s_j − Wβ: a coordinate that stays zero costs
O(1), one that changes O(p). Rows keep their β from sweep to sweep and from penalty to penalty.

W clipped to S ± L is feasible for the dual: the gap between both objectives bounds how far Θ is from the optimum, and
is what stops the sweeps. Source: Friedman, Hastie, Tibshirani, "Sparse inverse covariance estimation with the
graphical lasso" (2008).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf

from gramgraph._numerics.compiling import njit

_INNER = 500  # passes of coordinate descent over one row, at most
_CHECK = 10  # at least every so many passes all coordinates are visited


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"})
def sweep(S, L, W, B, q, eps):
    """One round over all rows: W and B (row j of B is β_j) are changed in place; q (p,) is scratch.

    A lasso ends when no coordinate moves a row of W by more than `eps`. Returns the largest change of W.
    """
    p = len(S)
    largest = 0.0
    for j in range(p):
        b = B[j]
        for k in range(p):
            q[k] = S[j, k]
        for k in range(p):
            v = b[k]
            if v != 0.0:
                Wk = W[k]
                for m in range(p):
                    q[m] -= v * Wk[m]
        whole = True  # a pass over all coordinates; between two of them only those that are not zero are visited
        for turn in range(_INNER):
            moved = 0.0
            for k in range(p):
                old = b[k]
                if k == j or (old == 0.0 and not whole):
                    continue
                Wk = W[k]
                d = Wk[k]
                z = q[k] + d * old
                l = L[j, k]
                if z > l:
                    new = (z - l) / d
                elif z < -l:
                    new = (z + l) / d
                else:
                    new = 0.0
                if new != old:
                    step = new - old
                    b[k] = new
                    for m in range(p):
                        q[m] -= step * Wk[m]
                    moved = max(moved, abs(step) * d)
            if moved <= eps:
                if whole:
                    break
                whole = True
            else:
                whole = turn % _CHECK == _CHECK - 1
        for k in range(p):
            if k != j:
                w = S[j, k] - q[k]
                largest = max(largest, abs(w - W[j, k]))
                W[j, k] = w
                W[k, j] = w
    return largest


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"})
def graph_sweep(S, start, index, W, B, C, x):
    """One round of maximum likelihood with given edges: every row of W is W β with W_NN β = s_N over its neighbors N.

    Neighbors of row j are index[start[j] : start[j + 1]]; C (m, m) and x (m,) are scratch for m neighbors. W and B are
    changed in place. Returns the largest change of W, or −1 where W has lost its definiteness: no maximum was found.
    """
    p = len(S)
    largest = 0.0
    for j in range(p):
        first = start[j]
        m = start[j + 1] - first
        for a in range(m):  # Cholesky factor of W_NN and the forward solution, row by row
            Wa = W[index[first + a]]
            for b in range(a + 1):
                total = Wa[index[first + b]]
                for k in range(b):
                    total -= C[a, k] * C[b, k]
                if b < a:
                    C[a, b] = total / C[b, b]
                elif total > 1e-14 * Wa[index[first + a]]:
                    C[a, a] = np.sqrt(total)
                else:
                    return -1.0
            total = S[j, index[first + a]]
            for k in range(a):
                total -= C[a, k] * x[k]
            x[a] = total / C[a, a]
        fit = 0.0
        for a in range(m):
            fit += x[a] * x[a]
        if fit >= S[j, j] * (1.0 - 1e-14):
            return -1.0
        for a in range(m - 1, -1, -1):
            total = x[a]
            for k in range(a + 1, m):
                total -= C[k, a] * x[k]
            x[a] = total / C[a, a]
            B[j, index[first + a]] = x[a]
        for k in range(p):
            if k != j:
                w = 0.0
                Wk = W[k]
                for a in range(m):
                    w += x[a] * Wk[index[first + a]]
                largest = max(largest, abs(w - W[j, k]))
                W[j, k] = w
                W[k, j] = w
    return largest


def fit_graph(S, graph, *, tol, max_iter, enough=np.inf):
    """Maximum likelihood with zeros of Θ outside the graph: Θ (or None), −log |Θ| + tr(SΘ), the duality gap, sweeps.

    The sweeps begin at W = S, which agrees with S on all edges as every later W does: log |W| + p bounds the optimum
    from below. They end early, with Θ = None, when that bound is above `enough`.
    """
    p = len(S)
    degrees = graph.sum(axis=1)
    start = np.zeros(p + 1, dtype=np.int64)
    np.cumsum(degrees, out=start[1:])
    index = np.nonzero(graph)[1]
    most = max(int(degrees.max()), 1)
    C, x, B = np.empty((most, most)), np.empty(most), np.zeros((p, p))
    W, none, T, value = S.copy(), np.zeros((p, p)), None, np.inf
    for sweeps in range(1, max_iter + 1):
        moved = graph_sweep(S, start, index, W, B, C, x)
        if moved < 0.0:
            return None, np.inf, np.inf, sweeps
        D, info = dpotrf(W.T, lower=1, clean=0)
        low = -np.inf if info else 2.0 * float(np.log(np.diagonal(D)).sum()) + p
        if low > enough:
            return None, np.inf, np.inf, sweeps
        T = precision_of(W, B)
        if T is None:
            continue
        value = primal_value(S, none, T)
        if value - low <= tol or moved <= 1e-14 * float(np.diagonal(S).max()):
            return T, value, max(0.0, value - low), sweeps
    return (T, value, value - low, max_iter) if np.isfinite(value) else (None, np.inf, np.inf, max_iter)


def precision_of(W, B):
    """Θ from the rows of the lassos: Θ_jj = 1/(W_jj − w_jᵀβ_j), Θ_jk = −β_jk Θ_jj, made symmetric; None if not ≻ 0."""
    rest = np.diagonal(W) - np.einsum("jk,jk->j", W, B)
    if not (rest > 0.0).all():
        return None
    T = B / -rest[:, None]
    T = np.where((T != 0.0) & (T.T != 0.0), 0.5 * (T + T.T), 0.0)
    T.flat[:: len(T) + 1] = 1.0 / rest
    return T


def primal_value(S, L, T):
    """−log |Θ| + tr(SΘ) + Σ L |Θ|; infinite where Θ is not positive definite."""
    C, info = dpotrf(T.T, lower=1, clean=0)
    if info:
        return np.inf
    return float(np.vdot(S, T) + np.vdot(L, np.abs(T)) - 2.0 * np.log(np.diagonal(C)).sum())


def dual_value(S, L, W):
    """log |W| + p of W clipped to S ± L, a lower bound of the objective; −inf where that is not positive definite."""
    inside = W - S
    np.clip(inside, -L, L, out=inside)
    inside += S
    inside.flat[:: len(S) + 1] = np.diagonal(S)
    C, info = dpotrf(inside.T, lower=1, clean=0, overwrite_a=1)
    return -np.inf if info else 2.0 * float(np.log(np.diagonal(C)).sum()) + len(S)


def solve(S, L, W, B, *, tol, max_iter):
    """Sweeps until the duality gap is below tol: Θ, its objective, the gap and the number of sweeps.

    S (p, p) has a positive diagonal, L (p, p) a zero one and no other zeros; both are symmetric and C-contiguous. W and
    B are where the sweeps begin (diag(S) and zeros, or those of a larger penalty) and where they end.
    """
    p = len(S)
    q = np.empty(p)
    scale = float(np.diagonal(S).max())
    eps = 1e-3 * scale
    best = None
    value, gap, sweeps = np.inf, np.inf, 0
    while sweeps < max_iter:
        moved = sweep(S, L, W, B, q, eps)
        sweeps += 1
        eps = min(max(1e-13 * scale, min(0.1 * moved, 0.3 * eps)), eps)
        T = precision_of(W, B)
        if T is None:
            if not np.isfinite(W).all():
                break
            continue
        found = primal_value(S, L, T)
        low = dual_value(S, L, W)
        if found < value or best is None:
            best, value = T, found
        gap = max(0.0, value - low)
        if gap <= tol or (moved <= 1e-13 * scale and sweeps > 3):
            break
    return best, value, gap, sweeps


def solve_from_afar(S, L, W, B, *, tol, max_iter, steps=15):
    """As `solve`, by way of larger penalties down from the one that leaves no edge: for where a direct start fails."""
    off = np.abs(S)[~np.eye(len(S), dtype=bool)] / L[~np.eye(len(S), dtype=bool)]
    W[:] = np.diag(np.diagonal(S))
    B[:] = 0.0
    sweeps = 0
    for factor in np.geomspace(max(float(off.max()), 1.0), 1.0, steps):
        best, value, gap, more = solve(S, factor * L, W, B, tol=tol, max_iter=max_iter)
        sweeps += more
        if best is None:
            break
    return best, value, gap, sweeps


def components(S, L):
    """Which block every variable belongs to, and how many blocks: pairs with |S_ij| > L_ij are linked.

    The solution is block diagonal with exactly these blocks (Witten, Friedman, Simon 2011), so each is solved alone.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    linked = np.abs(S) > L
    linked.flat[:: len(S) + 1] = False
    count, labels = connected_components(csr_array(linked), directed=False)
    return labels, count
