"""From two classes to many: pairs and rests, votes, the decision graph, probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """(0, 1), (0, 2), …, (k−2, k−1)."""
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def class_factors(class_weight: Any, classes: Array, label: IntArray, weight: FloatArray) -> FloatArray:
    """The factor of every class on C: 1, "balanced" (total weight / (k · weight of the class)) or by name."""
    k = len(classes)
    if class_weight is None:
        return np.ones(k)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return weight.sum() / (k * np.bincount(label, weights=weight, minlength=k))
    if not isinstance(class_weight, dict):
        raise ModelError(f"class_weight must be None, 'balanced' or a dict; it is {class_weight!r}.")
    known = classes.tolist()
    unknown = [name for name in class_weight if name not in known]
    if unknown:
        raise ModelError(f"class_weight names {unknown[0]!r}, which is not a class. Classes: {known}.")
    return np.array([float(class_weight.get(name, 1.0)) for name in known])


def elect(D: FloatArray, n_classes: int) -> FloatArray:
    """Votes of all pairs, (n, k); ties are broken by the summed decisions, squeezed into less than half a vote.

    D[:, p] > 0 speaks for the first class of pair p.
    """
    votes, trust = count_votes(D, n_classes), np.zeros((len(D), n_classes))
    for p, (i, j) in enumerate(pairs_of(n_classes)):
        trust[:, i] += D[:, p]
        trust[:, j] -= D[:, p]
    return votes + trust / (3.0 * (np.abs(trust) + 1.0))


def count_votes(D: FloatArray, n_classes: int) -> FloatArray:
    """Votes of all pairs, (n, k); D[:, p] > 0 speaks for the first class of pair p."""
    votes = np.zeros((len(D), n_classes))
    for p, (i, j) in enumerate(pairs_of(n_classes)):
        first = D[:, p] > 0
        votes[:, i] += first
        votes[:, j] += ~first
    return votes


def ranks_of(label: IntArray, weight: FloatArray, n_classes: int) -> IntArray:
    """The place of every class by its weight, the largest first; equal ones (to rounding) stay in order."""
    share = np.bincount(label, weights=weight, minlength=n_classes) / weight.sum()
    rank = np.empty(n_classes, np.int64)
    rank[np.argsort(-share.round(9), kind="stable")] = np.arange(n_classes)
    return rank


def untied(D: FloatArray, rank: IntArray, within: float) -> FloatArray:
    """D (n, k), in which the largest of every row is the first by rank of those that are so near to the largest.

    Points on the margin of several machines have the same decision in all, and its rounding must not choose.
    """
    best = D.argmax(axis=1)
    top = D[np.arange(len(D)), best]
    winner = np.where((top - within)[:, None] <= D, rank, len(rank)).argmin(axis=1)
    rows = np.flatnonzero(winner != best)
    if len(rows):
        D = D.copy()
        D[rows, winner[rows]] = np.nextafter(top[rows], np.inf)
    return D


def dag_scores(D: FloatArray, n_classes: int) -> FloatArray:
    """Rounds survived in the decision graph, (n, k): first against last remaining class, the loser leaves.

    k − 1 of the k (k − 1) / 2 decisions are looked at for a point. The winner has k − 1.
    """
    number = {pair: p for p, pair in enumerate(pairs_of(n_classes))}
    table = np.zeros((n_classes, n_classes), np.int64)
    for (i, j), p in number.items():
        table[i, j] = p
    rows = np.arange(len(D))
    first, last = np.zeros(len(D), np.int64), np.full(len(D), n_classes - 1)
    scores = np.zeros((len(D), n_classes))
    for step in range(n_classes - 1):
        stays = D[rows, table[first, last]] > 0
        scores[rows, np.where(stays, last, first)] = step
        last, first = np.where(stays, last - 1, last), np.where(stays, first, first + 1)
    scores[rows, first] = n_classes - 1
    return scores


def sigmoid(d: FloatArray, slope: float, shift: float) -> FloatArray:
    """1 / (1 + exp(slope · d + shift)) without overflow."""
    t = slope * d + shift
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, small / (1 + small), 1 / (1 + small))


def platt(d: FloatArray, positive: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """(slope, shift) of p(positive | d) = 1 / (1 + exp(slope · d + shift)) by regularized maximum likelihood.

    Targets are (N₊ + 1) / (N₊ + 2) and 1 / (N₋ + 2); Newton's method with backtracking (Lin, Lin and Weng, 2007).
    """
    n_plus, n_minus = float(weight[positive > 0].sum()), float(weight[positive <= 0].sum())
    target = np.where(positive > 0, (n_plus + 1) / (n_plus + 2), 1 / (n_minus + 2))

    def loss(a: float, b: float) -> float:
        t = a * d + b
        return float(weight @ (np.logaddexp(0.0, -t) + (1 - (1 - target)) * t))

    a, b = 0.0, float(np.log((n_minus + 1) / (n_plus + 1)))
    value = loss(a, b)
    for _ in range(100):
        p = sigmoid(d, a, b)
        # The gradient of the loss by t is target − p; its curvature p (1 − p).
        r, h = weight * (target - p), weight * p * (1 - p)
        g = np.array([r @ d, r.sum()])
        if np.max(np.abs(g)) < 1e-7:
            break
        H = np.array([[h @ (d * d), h @ d], [h @ d, h.sum()]]) + 1e-12 * np.eye(2)
        step = -np.linalg.solve(H, g)
        size = 1.0
        while size > 1e-10:
            trial = loss(a + size * step[0], b + size * step[1])
            if trial < value + 1e-4 * size * float(g @ step):
                a, b, value = a + size * float(step[0]), b + size * float(step[1]), trial
                break
            size /= 2
        else:
            break
    return a, b


def couple(R: FloatArray) -> FloatArray:
    """Class probabilities from pairwise ones: R[:, i, j] = p(i | i or j, x).

    min Σ_{i<j} (r_ji p_i − r_ij p_j)² on the simplex (Wu, Lin and Weng, 2004): one linear system per point, O(k³).
    """
    n, k, _ = R.shape
    Q = -np.swapaxes(R, 1, 2) * R
    own = np.arange(k)
    squares = np.swapaxes(R, 1, 2) ** 2
    squares[:, own, own] = 0.0
    Q[:, own, own] = squares.sum(axis=2)
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = Q
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((n, k + 1, 1))
    right[:, k] = 1.0
    P = np.clip(np.linalg.solve(system, right)[:, :k, 0], 0.0, 1.0)
    return P / P.sum(axis=1, keepdims=True)


def agree(P: FloatArray, chosen: IntArray) -> FloatArray:
    """Probabilities whose largest entry is that of the chosen class, as near to P as that allows.

    Where another class is ahead, it and the chosen class get their common mean (the nearest point in the Euclidean
    sense with P[chosen] ≥ P[others]), with a hair's breadth for the chosen one.
    """
    P = P.copy()
    rows = np.flatnonzero(P.argmax(axis=1) != chosen)
    for row in rows:
        p, c = P[row], int(chosen[row])
        others = np.delete(np.argsort(-p, kind="stable"), np.flatnonzero(np.argsort(-p, kind="stable") == c))
        total, count = p[c], 1
        for k in others:
            if p[k] < total / count:
                break
            total, count = total + p[k], count + 1
        p[others[: count - 1]] = total / count
        p[c] = total / count
        p[others[: count - 1]] -= 1e-9 / max(count - 1, 1) * p[c]
        p[c] += 1e-9 * p[c]
    return P


def folds(y: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Fold number of every point; every class is spread over the folds as evenly as its size allows."""
    fold = np.empty(len(y), np.int64)
    start = 0
    for label in np.unique(y):
        here = rng.permutation(np.flatnonzero(y == label))
        fold[here] = (np.arange(len(here)) + start) % n_folds
        start += len(here)
    return fold


def held_out(
    y: FloatArray, n_folds: int, rng: np.random.Generator, decide: Callable[[IntArray, IntArray], FloatArray]
) -> FloatArray:
    """Decision values of every point by a machine that has not seen it; `decide(train, test)` fits and evaluates."""
    fold = folds((y > 0).astype(np.int64), n_folds, rng)
    found = np.zeros(len(y))
    for k in range(n_folds):
        test, train = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        if not len(test):
            continue
        sides = np.unique(y[train])
        found[test] = decide(train, test) if len(sides) == 2 else (sides[0] if len(sides) else 0.0)
    return found
