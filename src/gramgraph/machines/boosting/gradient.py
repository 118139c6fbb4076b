"""Gradient boosting with trees on binned columns, for any loss that has a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.losses import Loss
from gramgraph.machines.boosting.grow import Grower, Grown
from gramgraph.machines.boosting.stopping import Watch
from gramgraph.tree_sum import Node, TreeSum
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True)
class GradientRounds:
    """How to boost: number of rounds, step, and the sample of rows and columns of each tree."""

    n_rounds: int = 100
    learning_rate: float = 0.1
    subsample: float = 1.0
    max_features: int | None = None
    rng: Any = None

    def rows(self, n: int) -> Any:
        """A sorted sample of rows; None for all of them."""
        if self.subsample >= 1.0:
            return None
        return np.sort(self.rng.permutation(n)[: max(1, round(self.subsample * n))]).astype(np.int32)

    def columns(self, used: IntArray) -> Any:
        """A sorted sample of columns; None for all of them."""
        if self.max_features is None or self.max_features >= len(used):
            return None
        return np.sort(self.rng.permutation(used)[: self.max_features]).astype(np.int64)


def boost_scores(
    grower: Grower, t: FloatArray, weights: FloatArray, loss: Loss, rounds: GradientRounds, watch: Watch | None = None
) -> tuple[TreeSum, FloatArray]:
    """(f as a sum of trees, gains of the features): f ← f + ν φ, φ a tree for −∂L/∂f.

    Losses with a curvature take Newton steps in the leaves, the others the best constant of each leaf.
    """
    n = len(t)
    base = loss.best_constant(t, 0.0, weights)
    f = np.full(n, base)
    trees: list[list[Node]] = []
    gains = np.zeros(grower.columns.d)
    watch = watch or Watch()
    for m in range(rounds.n_rounds):
        rows = rounds.rows(n)
        gradient = weights * loss._gradient(t, f)
        bend = weights * loss.curvature(t, f) if loss.curved else weights.copy()
        grown = grower.grow(gradient, bend, rows=rows, columns=rounds.columns(grower.columns.used))
        if not loss.curved:
            for k, members in grown.leaves():
                grown.values[k] = loss.best_constant(t[members], f[members], weights[members])
        _add(grown, f, rounds, rows, trees, gains)
        if watch.done(m + 1, partial(_sum, trees[-1:], 1, grower.columns.d), base):
            break
        if len(trees[-1]) == 1 and rows is None and rounds.max_features is None:
            break  # no split helps, and none will
    _check(f)
    kept = trees[: watch.best_round] if watch.watching else trees
    return TreeSum.of(kept or [[Node()]], base=base, n_features=grower.columns.d), gains


def boost_classes(
    grower: Grower,
    codes: IntArray,
    n_classes: int,
    weights: FloatArray,
    rounds: GradientRounds,
    watch: Watch | None = None,
) -> tuple[TreeSum, FloatArray]:
    """(K scores whose softmax is p, gains): one tree per class and round for the log loss of K classes."""
    n = len(codes)
    T = np.zeros((n_classes, n))
    T[codes, np.arange(n)] = 1.0
    shares = np.maximum((T * weights).sum(axis=1) / weights.sum(), 1e-9)
    base = np.log(shares) - np.log(shares).mean()
    F = np.tile(base[:, None], (1, n))
    trees: list[list[Node]] = []
    gains = np.zeros(grower.columns.d)
    watch = watch or Watch()
    for m in range(rounds.n_rounds):
        rows = rounds.rows(n)
        p = np.exp(F - F.max(axis=0))
        p /= p.sum(axis=0)
        for k in range(n_classes):
            grown = grower.grow(
                weights * (p[k] - T[k]),
                weights * np.maximum(p[k] * (1.0 - p[k]), 1e-16),
                rows=rows,
                columns=rounds.columns(grower.columns.used),
            )
            _add(grown, F[k], rounds, rows, trees, gains)
        if watch.done(m + 1, partial(_sum, trees[-n_classes:], n_classes, grower.columns.d), base):
            break
    _check(F)
    kept = trees[: watch.best_round * n_classes] if watch.watching else trees
    outputs = [k % n_classes for k in range(len(kept))]
    return TreeSum.of(kept or [[Node()]], outputs=outputs or [0], base=base, n_features=grower.columns.d), gains


def _add(
    grown: Grown, f: FloatArray, rounds: GradientRounds, rows: Any, trees: list[list[Node]], gains: FloatArray
) -> None:
    """Take a step along a tree: into the scores, the list of trees and the gains."""
    grown.values *= rounds.learning_rate
    nodes = list(grown.nodes())
    if rows is None:
        for k, members in grown.leaves():
            f[members] += grown.values[k]
    else:
        _spread_by_bins(grown, f)
    trees.append(nodes)
    for feature, gain in grown.gains():
        gains[feature] += gain


def _spread_by_bins(grown: Grown, f: FloatArray) -> None:
    """Every row, also outside the sample, walks down by its bins."""
    todo = [(0, np.arange(len(f)))]
    while todo:
        node, members = todo.pop()
        feature = int(grown.ints[node, 0])
        if feature < 0:
            f[members] += grown.values[node]
            continue
        left = grown.sets[node][grown.columns.codes[feature, members]] != 0
        todo += [(int(grown.ints[node, 2]), members[left]), (int(grown.ints[node, 3]), members[~left])]


def _sum(trees: Sequence[Sequence[Node]], outputs: int, d: int) -> TreeSum:
    """Trees that take turns at the outputs, over a base of 0."""
    turns = [k % outputs for k in range(len(trees))]
    return TreeSum.of(trees, outputs=turns, base=np.zeros(outputs), n_features=d)


def _check(f: FloatArray) -> None:
    if not np.isfinite(f).all():
        raise ModelError("the scores left the range of floating point: scale the targets, or take smaller steps")


def log_odds(trees: TreeSum, loss: Loss) -> TreeSum:
    """Scores of `Log` and `Exponential` are half the log odds; scikit-learn's users expect them whole."""
    return trees.scaled(2.0) if loss.has_probability else trees
