"""Paths of graphical lassos: one penalty after another, block by block, each beginning where the last one ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gramgraph._numerics.gaussian import glasso
from gramgraph._validation import check_count
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray


class Solution(NamedTuple):
    """One graphical lasso: Θ, its objective, how far that may be from the optimum, and the sweeps it took."""

    alpha: float
    precision: FloatArray  # (p, p)
    objective: float
    dual_gap: float
    n_iter: int


@dataclass(frozen=True, eq=False)
class GraphicalLassoPath:
    """Graphical lassos over falling penalties.

    Parameters
    ----------
    alphas : penalties, falling.
    precisions : one matrix for each penalty.
    objectives : their values.
    dual_gaps : what certifies them.
    n_iter : sweeps of each.

    Attributes
    ----------
    alphas (k,), precisions (k, p, p), objectives (k,), dual_gaps (k,), n_iter (k,), n_edges (k,).

    Examples
    --------
    >>> path = graphical_lasso_path([[1.0, 0.5], [0.5, 1.0]], [0.5, 0.0])
    >>> path.precisions[1].round(4).tolist()
    [[1.3333, -0.6667], [-0.6667, 1.3333]]
    """

    alphas: FloatArray
    precisions: FloatArray
    objectives: FloatArray
    dual_gaps: FloatArray
    n_iter: IntArray

    @property
    def n_edges(self) -> IntArray:
        """Pairs of variables with a partial correlation, at every penalty."""
        p = self.precisions.shape[1]
        return ((self.precisions != 0.0).sum(axis=(1, 2)) - p) // 2


def graphical_lasso_path(
    covariance: Any,
    alphas: Any = None,
    *,
    n_alphas: int = 20,
    alpha_min_ratio: float = 0.01,
    weights: Any = None,
    tol: float = 1e-4,
    max_iter: int = 200,
) -> GraphicalLassoPath:
    """Precisions Θ that minimize −log |Θ| + tr(SΘ) + α Σ_{i≠j} w_ij |Θ_ij|, for every α.

    Penalties fall from the least one that leaves no edge, and every solution begins at the one before. At each
    penalty the pairs with |S_ij| > α w_ij cut the problem into blocks, exactly; each is solved by block coordinate
    descent until its duality gap certifies that the objective is within `tol` of the optimum.

    Parameters
    ----------
    covariance : S, (p, p), with a positive diagonal
    alphas : penalties; without them `n_alphas` from the largest useful one down to `alpha_min_ratio` of it
    weights : w, (p, p) positive, of an adaptive penalty; the diagonal is never penalized
    tol : duality gap at which a solution is taken
    max_iter : most sweeps over all variables, for a block
    n_alphas : how many penalties.
    alpha_min_ratio : the least penalty as a share of the first.

    Examples
    --------
    >>> S = [[1.0, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 1.0]]
    >>> graphical_lasso_path(S, [0.6, 0.3, 0.1]).n_edges.tolist()
    [0, 2, 2]
    """
    S = check_covariance(covariance)
    p = len(S)
    w = np.ones((p, p)) if weights is None else _check_weights(weights, p)
    grid = alpha_grid(S, w, alphas, n_alphas, alpha_min_ratio)
    found = list(solutions(S, w, grid, tol=tol, max_iter=max_iter))
    return GraphicalLassoPath(
        grid,
        np.stack([one.precision for one in found]),
        np.array([one.objective for one in found]),
        np.array([one.dual_gap for one in found]),
        np.array([one.n_iter for one in found]),
    )


def solutions(S: FloatArray, w: FloatArray, alphas: FloatArray, *, tol: float, max_iter: int) -> Iterator[Solution]:
    """The solutions for falling penalties, one at a time; nothing is checked."""
    p = len(S)
    diagonal = np.diagonal(S)
    W, B = np.diag(diagonal).copy(), np.zeros((p, p))
    for alpha in alphas:
        if alpha == 0.0:
            yield _unpenalized(S)
            continue
        L = alpha * w
        L.flat[:: p + 1] = 0.0
        labels, count = glasso.components(S, L)
        T = np.diag(1.0 / diagonal)
        value = float(np.log(diagonal).sum() + p)
        gap, sweeps = 0.0, 0
        order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels, minlength=count)
        for block in np.split(order, np.cumsum(sizes)[:-1]):
            if len(block) == 1:
                continue
            at = np.ix_(block, block)
            Wb, Bb = np.ascontiguousarray(W[at]), np.ascontiguousarray(B[at])
            Sb, Lb = np.ascontiguousarray(S[at]), np.ascontiguousarray(L[at])
            options = {"tol": tol * len(block) / p, "max_iter": max_iter}
            part, v, g, n = glasso.solve(Sb, Lb, Wb, Bb, **options)
            if part is None or not np.isfinite(g):
                part, v, g, n = glasso.solve_from_afar(Sb, Lb, Wb, Bb, **options)
            if part is None:
                raise _stuck(float(alpha))
            W[at], B[at], T[at] = Wb, Bb, part
            value += v - float(np.log(diagonal[block]).sum()) - len(block)
            gap, sweeps = gap + g, max(sweeps, n)
        yield Solution(float(alpha), T, value, gap, sweeps)


def _unpenalized(S: FloatArray) -> Solution:
    """The inverse of S, the limit of the path where it exists."""
    from scipy.linalg.lapack import dpotrf, dpotri

    C, info = dpotrf(S.T, lower=1, clean=1)
    if info or float(np.diagonal(C).min()) ** 2 <= 1e-12 * float(np.diagonal(S).max()):
        raise ModelError("alpha = 0 needs a positive definite covariance; this one is singular. Try: alpha > 0.")
    T = dpotri(C, lower=1)[0]
    T = np.tril(T) + np.tril(T, -1).T
    return Solution(0.0, T, 2.0 * float(np.log(np.diagonal(C)).sum()) + len(S), 0.0, 0)


def _stuck(alpha: float) -> ModelError:
    return ModelError(
        f"The graphical lasso found no positive definite precision at alpha = {alpha:.3g}. Try: a larger "
        f"max_iter or alpha; leave out one of two variables that are nearly copies of each other."
    )


# --- what the path is made of --------------------------------------------------------------------------------------


def check_covariance(covariance: Any) -> FloatArray:
    """A finite symmetric matrix with a positive diagonal, C-contiguous."""
    S = np.array(covariance, dtype=np.float64, order="C")
    if S.ndim != 2 or S.shape[0] != S.shape[1] or not len(S):
        raise ModelError(f"covariance must be a square matrix; its shape is {S.shape}.")
    if not np.isfinite(S).all():
        raise ModelError("covariance holds NaN or infinity.")
    if np.abs(S - S.T).max() > 1e-8 * np.abs(S).max():
        raise ModelError("covariance must be symmetric. Try: (S + S.T) / 2.")
    if (np.diagonal(S) <= 0.0).any():
        i = int(np.flatnonzero(np.diagonal(S) <= 0.0)[0])
        raise ModelError(f"covariance must have a positive diagonal; variable {i} does not vary.")
    size = np.sqrt(np.diagonal(S))
    if (np.abs(S) > 1.0000001 * np.outer(size, size)).any():
        raise ModelError("covariance must be positive semidefinite; some |S_ij| is above √(S_ii S_jj).")
    return 0.5 * (S + S.T)


def _check_weights(weights: Any, p: int) -> FloatArray:
    w = np.array(weights, dtype=np.float64)
    off = ~np.eye(p, dtype=bool)
    if w.shape != (p, p) or not np.isfinite(w).all() or (w[off] <= 0.0).any() or not np.allclose(w, w.T):
        raise ModelError(f"weights must be a symmetric ({p}, {p}) matrix of positive numbers off its diagonal.")
    return w


def alpha_grid(
    S: FloatArray, w: FloatArray, alphas: Any, n_alphas: int, ratio: float | None, n: int | None = None
) -> FloatArray:
    """Falling penalties: those given, or a geometric grid down from the least that leaves no edge.

    Without a ratio it ends at a quarter of √(log p / n), the size of correlations that n rows show by chance.
    """
    if alphas is not None:
        grid = np.sort(np.atleast_1d(np.asarray(alphas, dtype=np.float64)))[::-1]
        if grid.ndim != 1 or not grid.size or not np.isfinite(grid).all() or (grid < 0.0).any():
            raise ModelError(f"alphas must be non-negative numbers; got {alphas!r}.")
        return grid
    check_count("n_alphas", n_alphas)
    off = np.abs(S) / np.where(np.eye(len(S), dtype=bool), np.inf, w)
    top = float(off.max(initial=0.0))
    top = top if top > 0.0 else float(np.diagonal(S).max())
    if ratio is None:
        chance = np.sqrt(np.log(max(len(S), 2)) / (n or 10_000)) * float(np.diagonal(S).mean())
        ratio = min(max(0.25 * chance / top, 1e-3), 0.5)
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float, np.floating)) or not 0.0 < ratio < 1.0:
        raise ModelError(f"alpha_min_ratio must be a number between 0 and 1; it is {ratio!r}.")
    return np.geomspace(top, ratio * top, int(n_alphas)) if n_alphas > 1 else np.array([top])


def refit(S: FloatArray, graph: Any, *, tol: float, max_iter: int, enough: float = np.inf) -> Solution | None:
    """The maximum likelihood precision with zeros outside the graph.

    None where there is none (too many edges for the data), or where its objective is sure to be above `enough`.
    """
    p = len(S)
    diagonal = np.diagonal(S)
    out = np.diag(1.0 / diagonal)
    value = float(np.log(diagonal).sum() + p)
    gap, sweeps = 0.0, 0
    labels, count = glasso.components(np.where(graph, 1.0, 0.0), np.zeros((p, p)))
    sizes = np.bincount(labels, minlength=count)
    for label in np.flatnonzero(sizes > 1):
        block = np.flatnonzero(labels == label)
        at = np.ix_(block, block)
        alone = float(np.log(diagonal[block]).sum()) + len(block)
        part, v, g, n = glasso.fit_graph(
            np.ascontiguousarray(S[at]),
            graph[at],
            tol=tol * len(block) / p,
            max_iter=max_iter,
            enough=enough - value + alone if count == p - len(block) + 1 else np.inf,
        )
        if part is None:
            return None
        out[at] = part
        value += v - alone
        gap, sweeps = gap + g, max(sweeps, n)
    return Solution(0.0, out, value, gap, sweeps)


def ebic_path(
    S: FloatArray, n: int, w: FloatArray, alphas: FloatArray, *, gamma: float, tol: float, max_iter: int
) -> tuple[FloatArray, Solution]:
    """−2 log likelihood + E log n + 4 γ E log p with E edges, for the graph at every penalty, and the best solution.

    The likelihood is the largest that the graph allows: that of the penalized Θ falls short by its bias, which would
    call for more edges the more data there are. Of one graph the solution with the least penalty is taken. The path
    ends where graphs have so many edges that none can win, as no likelihood is above that of the full graph; what was
    not tried, is sure to lose, or has no finite fit to n rows, scores infinity.
    """
    p = len(S)
    price = np.log(n) + 4.0 * gamma * np.log(p)
    sign, log_det = np.linalg.slogdet(S)
    floor = n * (log_det + p) if sign > 0 and n > p else -np.inf
    scores = np.full(len(alphas), np.inf)
    last, best = None, None
    for i, one in enumerate(solutions(S, w, alphas, tol=tol, max_iter=max_iter)):
        graph = (one.precision != 0.0) & ~np.eye(p, dtype=bool)
        edges = int(graph.sum()) // 2
        if last is not None and np.array_equal(graph, last):
            scores[i] = scores[i - 1]
        elif floor + edges * price > scores.min():
            break
        elif int(graph.sum(axis=1).max(initial=0)) < n - 1:
            enough = (float(scores.min()) - edges * price) / n
            found = refit(S, graph, tol=max(tol, 1e-2 / n), max_iter=max_iter, enough=enough)
            scores[i] = np.inf if found is None else n * found.objective + edges * price
        if best is None or (scores[i] < np.inf and scores[i] <= scores[:i].min(initial=np.inf)):
            best = one
        last = graph
    assert best is not None
    return scores, best


def cv_scores(
    X: FloatArray,
    splits: list[tuple[Array, Array]],
    w: FloatArray,
    alphas: FloatArray,
    *,
    scaled: bool,
    tol: float,
    max_iter: int,
) -> FloatArray:
    """Mean log likelihood of held-out rows, up to a constant, (folds, penalties)."""
    out = np.empty((len(splits), len(alphas)))
    for row, (train, test) in enumerate(splits):
        mean = X[train].mean(axis=0)
        A, Z = X[train] - mean, X[test] - mean
        size = np.sqrt(np.mean(A * A, axis=0))
        if not (size > 0.0).all():
            raise ModelError(
                f"Column {int(np.flatnonzero(size == 0.0)[0])} is constant in fold {row}. Try: fewer folds."
            )
        if scaled:
            A, Z = A / size, Z / size
        S, held_out = A.T @ A / len(A), Z.T @ Z / len(Z)
        for column, one in enumerate(solutions(S, w, alphas, tol=tol, max_iter=max_iter)):
            T = one.precision
            out[row, column] = 0.5 * (np.linalg.slogdet(T)[1] - np.vdot(held_out, T))
    return out
