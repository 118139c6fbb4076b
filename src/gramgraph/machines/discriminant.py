"""Classes as Gaussians, and the direction that parts them: moments by class, EM where cells are missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramgraph.machines.mixtures.em import climb
from gramgraph.machines.mixtures.gaussian import GaussianParameters, GaussianRows, Scale
from gramgraph.machines.mixtures.sweeps import Moments
from gramgraph.typing import FloatArray, IntArray

#: Squares below this have lost digits.
_TINY = 1e-200
_ROWS = 2048  # of a block that stays in the cache


def scaled_moments(X: FloatArray, codes: IntArray, k: int, w: FloatArray | None) -> tuple[Moments, Scale]:
    """Moments of every class, and the units of all rows in which they are told. O(n d²).

    The units come from the moments themselves, which saves passes over the rows, unless squares leave the range of
    doubles on the way.
    """
    d = X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        raw = class_moments(X, codes, k, w, Scale(np.zeros(d), np.ones(d)))
        total = float(raw.n.sum())
        center = raw.n @ raw.mean / total
        squares = np.einsum("kii->i", raw.scatter) + raw.n @ (raw.mean - center) ** 2
    fine = np.isfinite(squares) & ((squares == 0.0) | (squares > _TINY))
    if not fine.all() or (squares == 0.0).any():
        scale = Scale.of(X, w, "full")
        return class_moments(X, codes, k, w, scale), scale
    scale = Scale.of_moments(center, squares / total, "full")
    u = scale.unit
    return Moments(raw.n, scale.enter(raw.mean), raw.scatter / np.outer(u, u)), scale


def class_moments(X: FloatArray, codes: IntArray, k: int, w: FloatArray | None, scale: Scale) -> Moments:
    """Weight, mean and centered second moments of the rows of every class, in units of `scale`. O(n d²).

    Rows of a class are brought together in blocks that stay in the cache.
    """
    d = X.shape[1]
    found = Moments(np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d)))
    order = np.argsort(codes.astype(np.uint16) if k < 1 << 16 else codes, kind="stable")  # short integers sort faster
    ends = np.cumsum(np.bincount(codes, minlength=k))
    scratch = np.empty((min(_ROWS, len(X)), d))
    for c, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            found.n[c], found.mean[c], found.scatter[c] = _moments(X, rows, w, scale, scratch)
    return found


def _moments(
    X: FloatArray, rows: IntArray, w: FloatArray | None, scale: Scale, scratch: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """(weight, mean, centered second moments) of some rows.

    They are counted from the mean of the first block, which costs at most log10(blocks) digits: were it farther from
    the mean of all than their spread, its own rows would make the spread larger.
    """
    d = X.shape[1]
    total, first, second = 0.0, np.zeros(d), np.zeros((d, d))
    ones = np.ones(len(scratch))
    start = first
    in_units = (scale.unit == 1.0).all()
    for at in range(0, len(rows), _ROWS):
        part = rows[at : at + _ROWS]
        x = np.take(X, part, axis=0, out=scratch[: len(part)], mode="clip")
        v = ones[: len(part)] if w is None else w[part]
        if not at:
            start = (v @ x) / v.sum()
        x -= start
        if not in_units:
            x /= scale.unit
        total += v.sum()
        first += v @ x
        second += x.T @ x if w is None else x.T @ (v[:, None] * x)
    shift = first / total
    return total, scale.enter(start) + shift, second - total * np.outer(shift, shift)


@dataclass
class _Labelled:
    """Rows with known classes and missing cells, as `Mixture` of `em` asks for them; weights of classes stay."""

    parts: list[GaussianRows]
    whole: GaussianRows  # all rows, for their shape, floor and prior
    total: float

    def expect(self, p: GaussianParameters) -> tuple[Any, float]:
        found, total = [], 0.0
        for c, part in enumerate(self.parts):
            (_, moments), log_likelihood = part.expect(replace(p.take(np.array([c])), weights=np.ones(1)))
            found.append(moments)
            total += log_likelihood
        n = np.array([part.total for part in self.parts])
        mean, scatter = (np.concatenate([getattr(m, name) for m in found]) for name in ("mean", "scatter"))
        return (n, Moments(n, mean, scatter)), total

    def maximize(self, statistics: Any, before: GaussianParameters) -> GaussianParameters:
        n, moments = statistics
        return replace(self.whole.components(n, moments, before), weights=before.weights)

    def log_prior(self, p: GaussianParameters) -> float:
        return self.whole.log_prior(p)


def labelled_gaussians(
    X: FloatArray, codes: IntArray, k: int, w: FloatArray | None, shape: str, *, max_iter: int = 500, tol: float = 1e-8
) -> Moments:
    """Expected moments by class where cells of X (in units of order 1) are missing; EM for Gaussians of `shape`."""
    whole = GaussianRows(X, w, shape)
    own = [codes == c for c in range(k)]
    parts = [GaussianRows(X[rows], None if w is None else w[rows], shape) for rows in own]
    start = whole.from_responsibilities(np.eye(k)[codes])
    run = climb(_Labelled(parts, whole, whole.total), start, max_iter, tol)
    (_, moments), _ = _Labelled(parts, whole, whole.total).expect(run.parameters)
    return (
        moments
        if moments.scatter.ndim == 3
        else replace(moments, scatter=moments.scatter[:, :, None] * np.eye(X.shape[1]))
    )


def posterior_means(moments: Moments, prior: Any, shared: bool) -> tuple[FloatArray, FloatArray]:
    """(means, covariances) that a normal–inverse-Wishart prior (mean, count, dof, scale) leads to: posterior means.

    Where the posterior has too few degrees of freedom for a mean of Σ, its mode.
    """
    m, kappa, dof, scale = prior
    n, d = moments.n, len(m)
    off = moments.mean - m
    mean = (n[:, None] * moments.mean + kappa * m) / (n + kappa)[:, None]
    S = moments.scatter + (kappa * n / (kappa + n))[:, None, None] * off[:, :, None] * off[:, None, :]
    if shared:
        free = dof + n.sum()
        C = (S.sum(axis=0) + scale) / (free - d - 1.0 if free > d + 1.0 else free + d + 1.0)
        return mean, np.repeat(C[None], len(n), axis=0)
    free = dof + n
    return mean, (S + scale) / np.where(free > d + 1.0, free - d - 1.0, free + d + 1.0)[:, None, None]


def linear_scores(
    log_weights: FloatArray, means: FloatArray, C: FloatArray, least: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(coefficients (k, d), intercepts (k,)) of log p(class) + log p(x | class) less what all classes share.

    C is seen against the smallest covariance, so that directions without spread lose no digits.
    """
    middle = means.mean(axis=0)
    off = means - middle
    L = np.linalg.cholesky(least)
    white = np.linalg.solve(L, np.linalg.solve(L, C).T)
    values, vectors = np.linalg.eigh(0.5 * (white + white.T))
    seen = vectors.T @ np.linalg.solve(L, off.T)
    W = np.linalg.solve(L.T, vectors @ (seen / np.maximum(values, 1.0)[:, None])).T
    return W, log_weights - np.einsum("kd,kd->k", W, middle + 0.5 * off)


def fisher_directions(moments: Moments, weighting: str, least: float) -> tuple[FloatArray, FloatArray]:
    """Directions (k − 1 at most, d) that part the classes, the best first, and how well: eigenvalues of S_W⁻¹ S_B.

    "pooled" adds the scatter of all classes; "equal" divides that of each class by its count before.
    """
    n, mean = moments.n, moments.mean
    if weighting == "pooled":
        S_W = moments.scatter.sum(axis=0) / n.sum()
        share = n / n.sum()
    else:
        S_W = (moments.scatter / n[:, None, None]).sum(axis=0)
        share = np.full(len(n), 1.0 / len(n))
    values, vectors = np.linalg.eigh(0.5 * (S_W + S_W.T))
    root = vectors / np.sqrt(np.maximum(values, least))
    off = np.sqrt(share)[:, None] * (mean - share @ mean)
    U, s, _ = np.linalg.svd(root.T @ off.T, full_matrices=False)
    kept = min(len(n) - 1, len(S_W))
    W = (root @ U[:, :kept]).T
    # the sign that gives the last class the larger value
    turn = np.where(W @ (mean[-1] - mean[0]) < 0.0, -1.0, 1.0)
    return W * turn[:, None], s[:kept] ** 2


def distinct_rows(X: FloatArray, codes: IntArray, k: int, enough: int) -> FloatArray:
    """How many different rows every class has; classes with more than `enough` rows are not looked at closely."""
    found = np.bincount(codes, minlength=k).astype(np.float64)
    for c in np.flatnonzero(found <= enough):
        found[c] = len(np.unique(X[codes == c], axis=0, equal_nan=False))
    return found


def fill_up(moments: Moments, shown: FloatArray, few: float, spread: FloatArray) -> Moments:
    """Groups with fewer than `few` different rows, filled up to so many by rows that spread as told."""
    more = np.maximum(few - shown, 0.0) * moments.n / shown
    return Moments(moments.n + more, moments.mean, moments.scatter + more[:, None, None] * spread)
