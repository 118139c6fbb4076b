"""Cost-complexity pruning: how strongly a tree is cut back, chosen by rows that were left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gramgraph.typing import FloatArray, IntArray

_MOST = 20  # of the smallest trees on the path
_LEAST = 1e-6  # of a probability: one sure mistake does not decide alone


class Pruning(NamedTuple):
    """Candidates for α and the mean loss of left-out rows at each, with its standard error over the folds."""

    alphas: FloatArray
    losses: FloatArray
    errors: FloatArray
    chosen: int


def choose_pruning(tree: Any, X: FloatArray, y: Any, w: FloatArray | None, folds: IntArray, *, rule: str) -> Pruning:
    """The α of scikit-learn's cost-complexity pruning, R(T) + α |leaves|, by the loss of left-out rows.

    Candidates lie between the α at which the whole tree loses its branches (their geometric means). The loss is the
    log loss of classes, or the squared error of numbers. `rule` "best" takes the least loss, "one_se" the smallest tree
    within one standard error of it.
    """
    from sklearn.base import clone

    path = clone(tree).cost_complexity_pruning_path(X, y, sample_weight=w).ccp_alphas
    path = np.unique(np.maximum(path, 0.0))
    alphas = np.append(np.sqrt(path[:-1] * path[1:]), path[-1] * 1.01)
    rest = max(len(alphas) - _MOST, 0)  # small trees are all looked at, of larger ones a few
    alphas = alphas[np.unique([*np.linspace(0, rest, 6).astype(int), *range(rest, len(alphas))])]
    n = int(folds.max()) + 1
    losses = np.empty((n, len(alphas)))
    for f in range(n):
        train, test = folds != f, folds == f
        for i, alpha in enumerate(alphas):
            made = clone(tree).set_params(ccp_alpha=float(alpha))
            made.fit(X[train], y[train], sample_weight=None if w is None else w[train])
            losses[f, i] = np.average(_losses(made, X[test], y[test]), weights=None if w is None else w[test])
    mean, error = losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(n)
    best = int(mean.argmin())
    limit = mean[best] + (error[best] if rule == "one_se" else 0.0)
    return Pruning(alphas, mean, error, int(np.flatnonzero(mean <= limit)[-1]))


def _losses(tree: Any, X: FloatArray, y: Any) -> FloatArray:
    if not hasattr(tree, "classes_"):
        return np.asarray((tree.predict(X) - y) ** 2)
    p = tree.predict_proba(X)
    at = np.searchsorted(tree.classes_, y).clip(0, len(tree.classes_) - 1)
    own = np.where(tree.classes_[at] == y, p[np.arange(len(y)), at], 0.0)
    return -np.log(np.maximum(own, _LEAST))
