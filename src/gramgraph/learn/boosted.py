"""Learning boosted arrows from a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.conditionals.boosted import Boosted
from gramgraph.conditionals.predictor import _columns, _shown
from gramgraph.data.frames import missing_cells, read_frame
from gramgraph.exceptions import ModelError, VariableError, listing
from gramgraph.losses import Log, Squared
from gramgraph.machines.boosting.columns import BinnedColumns
from gramgraph.machines.boosting.gradient import GradientRounds, boost_classes, boost_scores, log_odds
from gramgraph.machines.boosting.grow import Grower
from gramgraph.tree_sum import TreeSum
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

_FOLDS = 5


def fit_boosted(
    spec: Boosted, child: Var | str, parents: Sequence[Var | str] | Var | str, data: Any, *, weights: Any = None
) -> Boosted:
    """The boosted conditional of a child given its parents, with the options of `spec`.

    A variable given by its name is real-valued, or takes the labels of its column as states. Gaps in parents are fine;
    rows without the child are left out. The noise of a real child is the deviation on held-out rows (five folds).
    """
    table = read_frame(data).table
    own = _shown(child, table)
    given = tuple(_shown(p, table) for p in ((parents,) if isinstance(parents, (str, Var)) else parents))
    lost = [var.name for var in (own, *given) if not _columns(var, table)]
    if lost:
        raise VariableError(f"the data have no column for {listing(lost)}")
    w = np.ones(len(table)) if weights is None else np.asarray(weights, dtype=np.float64)
    kept = ~np.asarray(missing_cells(table[_columns(own, table)[0]]), dtype=bool) & (w > 0)
    if kept.sum() < 2:
        raise ModelError(f"{own.name} has a value in {int(kept.sum())} rows: at least two are needed")
    table, w = table[kept], w[kept]
    X = np.hstack([np.zeros((len(table), 0)), *(_feature(var, table) for var in given)])
    categories = [m for var in given for m in ([var.size] if var.is_discrete else [0] * var.dimension)]
    if own.is_discrete:
        codes = np.array([own.index(label) for label in table[own.name]], dtype=np.int64)
        return replace(spec, child=own, parents=given, trees=_classes(spec, X, categories, codes, own.size, w))
    y = np.asarray(table[_columns(own, table)], dtype=np.float64)
    if y.shape[1] != 1:
        raise ModelError(f"boosted trees give one number; {own.name} has {y.shape[1]}")
    trees = _numbers(spec, X, categories, y[:, 0], w)
    noise = max(_held_out_noise(spec, X, categories, y[:, 0], w), 1e-9 * (float(np.ptp(y)) or 1.0))
    return replace(spec, child=own, parents=given, trees=trees, noise=noise)


def _feature(var: Var, table: Any) -> FloatArray:
    if not var.is_discrete:
        return np.asarray(table[_columns(var, table)], dtype=np.float64)
    gaps = missing_cells(table[var.name])
    codes = [np.nan if gap else float(var.index(v)) for v, gap in zip(table[var.name], gaps, strict=True)]
    return np.array(codes)[:, None]


def _grower(spec: Boosted, X: FloatArray, categories: list[int], w: FloatArray) -> Grower:
    if max(categories, default=0) > 254:
        raise ModelError("a parent has more than 254 states: boosted trees take fewer")
    mass = None if (w == 1.0).all() else w
    return Grower(
        BinnedColumns(X, categories), max_depth=spec.max_depth, max_leaves=31, least_rows=spec.min_samples_leaf,
        l2=1.0, mass=mass,
    )  # fmt: skip


def _rounds(spec: Boosted) -> GradientRounds:
    return GradientRounds(int(spec.n_estimators), float(spec.learning_rate))


def _classes(spec: Boosted, X: FloatArray, categories: list[int], codes: Any, k: int, w: FloatArray) -> TreeSum:
    grower = _grower(spec, X, categories, w)
    if k == 2:
        loss = Log()
        return log_odds(boost_scores(grower, np.where(codes == 1, 1.0, -1.0), w, loss, _rounds(spec))[0], loss)
    return boost_classes(grower, codes, k, w, _rounds(spec))[0]


def _numbers(spec: Boosted, X: FloatArray, categories: list[int], y: FloatArray, w: FloatArray) -> TreeSum:
    return boost_scores(_grower(spec, X, categories, w), y, w, Squared(), _rounds(spec))[0]


def _held_out_noise(spec: Boosted, X: FloatArray, categories: list[int], y: FloatArray, w: FloatArray) -> float:
    fold = np.arange(len(y)) % min(_FOLDS, len(y))
    error = np.zeros(len(y))
    for f in range(int(fold.max()) + 1):
        train, test = fold != f, fold == f
        error[test] = y[test] - _numbers(spec, X[train], categories, y[train], w[train]).scores(X[test])[:, 0]
    return float(np.sqrt((w * error * error).sum() / w.sum()))
