"""Sparse Bayesian functions on kernel columns: what a relevance vector machine solves, in units of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._numerics.rvm.regression import START, largest, regression, starters
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True)
class SparseFit:
    """One sparse Bayesian function: its columns, prior precisions, and posterior N(mu, sigma) of the weights."""

    relevance: IntArray  # (r,) training points whose kernel column is in the model, ascending
    bias: bool  # whether the constant column is in the model; its weight then stands first
    alpha: FloatArray  # (m,) with m = bias + r; 0 is a flat prior
    mu: FloatArray  # (m,)
    sigma: FloatArray  # (m, m)
    noise: float  # variance; 1 for classification, where it has no meaning
    evidence: FloatArray  # log evidence after each step
    n_iter: int
    converged: bool
    root: FloatArray | None = None  # (m, k) with sigma = root rootᵀ; files of earlier versions hold none

    def variance(self, features: FloatArray) -> FloatArray:
        """Variances of the function where the columns have these values, (points, m): without the noise."""
        if self.root is None:
            return np.maximum(np.einsum("ij,ij->i", features @ self.sigma, features), 0.0)
        return np.sum((features @ self.root) ** 2, axis=1)


@dataclass(frozen=True)
class Columns:
    """Candidate columns of a regression, scaled, centered and weighted once for all outputs."""

    T: FloatArray  # (M, n) centered when there is an intercept, times the root of the weights
    points: IntArray  # (M,) the training point of each column
    weights: FloatArray | None  # (n,) of the points; None: all one
    means: FloatArray | None  # (M,) of the columns; None without an intercept
    start: IntArray  # columns to start with
    K: FloatArray | None  # kernel matrix of the columns to start with, where it is asked for
    unit: float  # of the columns

    @classmethod
    def of(
        cls,
        T: FloatArray,
        points: IntArray,
        weights: FloatArray | None,
        kept: IntArray,
        *,
        bias: bool,
        kernel: bool,
    ) -> Columns:
        """From kernel columns T (M, n), overwritten; `points` count among the n used, which are `kept` of all.

        `kernel` says whether the kernel matrix of the columns to start with is kept.
        """
        unit = _unit("kernel's values", T)
        if unit != 1.0:
            T /= unit
        square = T if len(points) == len(kept) else T[:, points]
        start = np.arange(len(T)) if len(T) <= START else starters(square, _widest(T, weights, bias))
        K = square[np.ix_(start, start)] if kernel else None  # a copy: T is centered below
        means = _center(T, weights) if bias else None
        if weights is not None:
            T *= np.sqrt(weights)
        return cls(T, kept[points], weights, means, start, K, unit)


def fit_output(
    columns: Columns,
    t: FloatArray,  # (n,) targets
    *,
    noise: float | None,  # the known variance; None: learned
    tol: float,
    max_iter: int,
    again: Callable[[], FloatArray] | None = None,
) -> SparseFit:
    """The model of one output, its intercept put first; fitted in a unit of y of its own.

    It is the average with dense models where `columns` come with their kernel matrix. `again` gives T as it is with the
    same digits everywhere, which counts where all but the last digits are lost.
    """
    weights, means, start = columns.weights, columns.means, columns.start
    total = float(len(t) if weights is None else weights.sum())
    middle = 0.0
    if means is not None:
        middle = float(np.average(t, weights=weights))
        t = t - middle
        t[np.abs(t) <= 1e-14 * abs(middle)] = 0.0  # constant up to rounding
    unit_y = _unit("targets" if means is None else "targets' distances from their mean", t)
    t = t / unit_y if weights is None else t / unit_y * np.sqrt(weights)
    known = None if noise is None else noise / unit_y / unit_y
    free = total if means is None else max(total - 1.0, 0.5)
    found = regression(columns.T, t, noise=known, tol=tol, max_iter=max_iter, start=start, n=free, again=again)
    if columns.K is not None:  # only an average needs it
        from gramgraph._numerics.rvm.average import averaged

        found = averaged(columns.T, t, start, columns.K, found, noise=known, n=free)
    active, alpha, mu, root, variance, evidence, steps, converged = found
    ratio = unit_y / columns.unit
    alpha, mu, root, variance = alpha / ratio / ratio, mu * ratio, root * ratio, variance * unit_y * unit_y
    evidence = evidence - free * np.log(unit_y)
    if means is not None:
        evidence = evidence - 0.5 * np.log(total)
        alpha, mu, root = _with_intercept(alpha, mu, root, means[active] * columns.unit, middle, variance / total)
    return _sparse_fit(
        (active, alpha, mu, root, variance, evidence, steps, converged), columns.points[active], means is not None
    )


def fit_classes(
    T: FloatArray,  # (head + M, n) columns, a constant one first where there is an intercept
    codes: IntArray,  # (n,) classes
    points: IntArray,  # (M,) the training point of each column
    *,
    weights: FloatArray | None,
    tol: float,
    max_iter: int,
) -> list[SparseFit]:
    """One sparse function for two classes, else one per class with the weights of the joint softmax."""
    from gramgraph._numerics.rvm.classification import logistic, softmax_mode

    K = int(codes.max()) + 1
    Y = (codes == np.arange(K)[:, None]).astype(float)
    found = [logistic(T, t, tol=tol, max_iter=max_iter, weights=weights) for t in (Y[1:] if K == 2 else Y)]
    if K > 2:
        designs = [T[one[0]] for one in found]
        mus, root, _ = softmax_mode(designs, Y, [one[1] for one in found], [one[2] for one in found], weights=weights)
        ends = np.cumsum([0, *(len(mu) for mu in mus)])
        found = [
            (one[0], one[1], mu, root[a:b], *one[4:])
            for one, mu, a, b in zip(found, mus, ends[:-1], ends[1:], strict=True)
        ]
    head = len(T) - len(points)
    fits = []
    for one in found:
        bias = bool(head and len(one[0]) and one[0][0] == 0)
        fits.append(_sparse_fit(one, points[one[0][int(bias) :] - head], bias))
    return fits


def _sparse_fit(found: tuple[Any, ...], relevance: IntArray, bias: bool) -> SparseFit:
    _, alpha, mu, root, noise, evidence, steps, converged = found
    return SparseFit(
        relevance, bias, alpha, mu, root @ root.T, noise=float(noise), evidence=evidence, n_iter=int(steps),
        converged=bool(converged), root=root,
    )  # fmt: skip


def _widest(T: FloatArray, weights: FloatArray | None, bias: bool) -> int:
    """The row with the largest (weighted) sum of squares, around its mean with an intercept."""
    w = np.ones(T.shape[1]) if weights is None else weights
    squares = np.einsum("ij,ij,j->i", T, T, w, optimize=False)
    return int(largest(squares - (T @ w) ** 2 / w.sum() if bias else squares))


def _unit(what: str, values: FloatArray) -> float:
    """The largest power of two below the largest size of `values`: divided by it, their squares are in range.

    A power of two, so that no digit changes.
    """
    size = max(float(values.max()), -float(values.min()))
    if size == 0.0:
        return 1.0
    if not 1e-152 <= size <= 1e152:
        raise ModelError(
            f"the {what} reach {size:.3g}; their squares are out of the range of floats. Try: another unit."
        )
    return float(2.0 ** (np.frexp(size)[1] - 1))


def _center(T: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Take the (weighted) mean off every row, in place, and give the means."""
    means = T.mean(axis=1) if weights is None else T @ (weights / weights.sum())
    size = np.maximum(T.max(axis=1), -T.min(axis=1))
    T -= means[:, None]
    left = np.maximum(T.max(axis=1), -T.min(axis=1))
    T[left <= 1e-13 * size] = 0.0  # constant up to rounding: nothing beside the intercept
    return np.asarray(means)


def _with_intercept(
    alpha: FloatArray, mu: FloatArray, root: FloatArray, means: FloatArray, middle: float, variance: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """α, mean and a root of the covariance of (w₀, w), from those of w on centered columns: ȳ and w are independent."""
    m, k = root.shape
    whole = np.zeros((m + 1, k + 1))
    whole[0, 0], whole[0, 1:], whole[1:, 1:] = np.sqrt(variance), -(means @ root), root
    return np.concatenate([[0.0], alpha]), np.concatenate([[middle - float(mu @ means)], mu]), whole
