"""Gradient boosting with trees on binned columns, over any loss of `gg.losses`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length

from gramgraph._progress import reporting
from gramgraph._validation import check_count, check_fraction, check_positive, generator
from gramgraph.estimators._boosting import BoostedClassifier, BoostedEstimator
from gramgraph.estimators.boosting import _softmax, _two
from gramgraph.exceptions import ModelError, OptionError, did_you_mean, listing
from gramgraph.losses import EpsilonInsensitive, Exponential, Hinge, Huber, Log, Loss, Quantile, Squared
from gramgraph.machines.boosting.columns import BinnedColumns
from gramgraph.machines.boosting.gradient import GradientRounds, boost_classes, boost_scores, log_odds
from gramgraph.machines.boosting.grow import Grower
from gramgraph.machines.boosting.stopping import Watch
from gramgraph.machines.boosting.weak import ModelSum, ModelWeak
from gramgraph.tree_sum import TreeSum, join_trees
from gramgraph.typing import FloatArray, IntArray

_NAMED: dict[str, type[Loss]] = {
    "epsilon_insensitive": EpsilonInsensitive,
    "exponential": Exponential,
    "hinge": Hinge,
    "huber": Huber,
    "log": Log,
    "quantile": Quantile,
    "squared": Squared,
}

#: Rows of a leaf by default, as in other libraries of binned trees: with fewer, small data sets are learned by heart.
FEW_IN_A_LEAF = 20


@dataclass(eq=False, repr=False)
class _GradientBoosting(BoostedEstimator):
    n_estimators: int = 100
    _: KW_ONLY
    loss: Any = None
    learning_rate: float = 0.1
    max_depth: int = 3
    max_leaf_nodes: int = 31
    min_samples_leaf: int | None = None
    l2: float = 0.0
    subsample: float = 1.0
    max_features: float | None = None
    max_bins: int = 255

    def _loss(self, default: Loss, *, of_margin: bool) -> Loss:
        given = default if self.loss is None else self.loss
        if isinstance(given, str):
            if given not in _NAMED:
                raise OptionError(
                    f"loss must be one of {listing(_NAMED)} or a value of gg.losses, not {given!r}."
                    f"{did_you_mean(given, _NAMED)}"
                )
            given = _NAMED[given]()
        if not isinstance(given, Loss):
            raise OptionError(f"loss must be a value of gg.losses, such as gg.losses.Huber(1.5), not {given!r:.80}")
        if given.of_margin != of_margin:
            what = "classes" if of_margin else "numbers"
            raise OptionError(f"{type(given).__name__} is not a loss of {what}: use another value of gg.losses")
        given.gradient(np.ones(1), np.zeros(1))  # the 0-1 loss says here that it has none
        return given

    def _check_common(self) -> None:
        super()._check_common()
        check_count("max_depth", self.max_depth)
        check_count("max_leaf_nodes", self.max_leaf_nodes, 2)
        if self.min_samples_leaf is not None:
            check_count("min_samples_leaf", self.min_samples_leaf)
        check_positive("l2", self.l2, zero=True)
        check_fraction("subsample", self.subsample, ends=True)
        check_count("max_bins", self.max_bins, 2, 255)
        if not self.subsample > 0:
            raise OptionError("subsample must be above 0")
        if self.max_features is not None:
            check_fraction("max_features", self.max_features, ends=True)

    def _grower(self, X: FloatArray, w: FloatArray) -> Grower:
        least = self.min_samples_leaf
        if least is None:  # by weight, so that a row of weight two is two rows
            least = int(min(FEW_IN_A_LEAF, max(1.0, w.sum() // 5)))
        return Grower(
            BinnedColumns(X, self._categories, max_bins=self.max_bins),
            max_depth=self.max_depth,
            max_leaves=self.max_leaf_nodes,
            least_rows=least,
            l2=self.l2,
            mass=None if (w == 1.0).all() else w,
        )

    def _rounds(self, d: int) -> GradientRounds:
        few = None if self.max_features is None else max(1, round(float(self.max_features) * d))
        return GradientRounds(
            self.n_estimators, float(self.learning_rate), float(self.subsample), few, generator(self.random_state)
        )

    def _boost(
        self, X: FloatArray, t: FloatArray, w: FloatArray, loss: Loss, watch: Watch
    ) -> tuple[Any, FloatArray | None]:
        if self.estimator is not None:
            return self._boost_models(X, t, w, loss, watch), None
        return boost_scores(self._grower(X, w), t, w, loss, self._rounds(X.shape[1]), watch)

    def _boost_models(self, X: FloatArray, t: FloatArray, w: FloatArray, loss: Loss, watch: Watch) -> ModelSum:
        """f ← f + ν φ with any regressor φ, fitted to −∂L/∂f, as the textbook writes it."""
        weak, rate = ModelWeak(self.estimator, X), float(self.learning_rate)
        base = loss.best_constant(t, 0.0, w)
        f = np.full(len(t), base)
        models: list[Any] = []
        for m in range(self.n_estimators):
            part = weak.regress(-loss.gradient(t, f), w)
            f += rate * part.values
            models.append(part.model)
            if watch.done(m + 1, lambda: ModelSum(models[-1:], [rate], [0], 0.0), base):
                break
        models = models[: watch.best_round] if watch.watching else models
        return ModelSum(models, [rate] * len(models), [0] * len(models), base)


class GradientBoostingRegressor(RegressorMixin, _GradientBoosting):
    """Gradient boosting for numbers: f ← f + ν φ, where φ is a tree fitted to the gradient of any loss of `gg.losses`.

    Parameters
    ----------
    n_estimators : rounds, at most.
    loss : a value of `gg.losses` (`Squared()`, the default, `EpsilonInsensitive`, `Huber`, `Quantile`) or its name.
    learning_rate : ν, the share of each step that is taken.
    max_depth, max_leaf_nodes, min_samples_leaf, l2 : size of the trees, and what is added to the curvature of a leaf.
        A leaf has 20 rows by default, or a fifth of the data where that is less.
    subsample, max_features : share of the rows and of the columns that a tree sees.
    max_bins : columns are cut into so many bins, at most 255.
    estimator : None for trees of our own, or any regressor of scikit-learn's kind whose `fit` takes weights.
    n_iter_no_change, validation_fraction : stop when the loss on held-out rows has not fallen for so many rounds.
    categorical_features, random_state, progress : as in `AdaBoostClassifier`.

    Notes
    -----
    Gaps (NaN) go to the side where they help; columns of labels in a frame are split into sets of categories. Cost: one
    pass over bins for the rows of the smaller child of every split.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (500, 1))
    >>> model = GradientBoostingRegressor().fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=500))
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.1)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GradientBoostingRegressor:
        """Learn from rows X (n, features) and numbers y."""
        self._check_common()
        loss = self._loss(Squared(), of_margin=False)
        rows = self._rows(X, reset=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: numbers are needed.")
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        if y.ndim == 2 and y.shape[1] == 1:
            import warnings

            from sklearn.exceptions import DataConversionWarning

            text = "A column-vector y was passed when a 1d array was expected; use y.ravel() instead."
            warnings.warn(text, DataConversionWarning, stacklevel=2)
            y = y.ravel()
        if y.ndim != 1:
            raise ValueError(f"y must hold one number per row; its shape is {y.shape}")
        check_consistent_length(rows, y)
        w = self._weights(sample_weight, rows)
        rows, y, w = rows[w > 0], y[w > 0], w[w > 0]
        train, watched = self._held_out(len(rows), None)

        def held_out(scores: FloatArray) -> float:
            return float((w[watched] * loss(y[watched], scores[:, 0])).sum() / w[watched].sum())

        with reporting(self.progress, self.n_estimators, "rounds") as report:
            watch = Watch(rows[watched], held_out, patience=self.n_iter_no_change, report=report)
            self.ensemble_, self._gains = self._boost(rows[train], y[train], w[train], loss, watch)
        self.validation_loss_ = np.array(watch.history)
        return self

    def predict(self, X: Any) -> FloatArray:
        """f(x) of every row."""
        return self._scores(X)[:, 0]

    def staged_predict(self, X: Any) -> Iterator[FloatArray]:
        """f(x) after one round, two rounds, …"""
        for scores in self._staged_scores(X):
            yield scores[:, 0]


@dataclass(eq=False, repr=False)
class GradientBoostingClassifier(BoostedClassifier, _GradientBoosting):
    """Gradient boosting for classes, by Newton steps on the log loss (or another loss of margins).

    Two classes: the decision is the log odds, p = σ of it. More: one tree per class and round, p = softmax; losses
    other than `Log` are boosted one class against the rest. Parameters as in `GradientBoostingRegressor`; `loss` is
    `Log()`, `Exponential()` or `Hinge()` (which has no probabilities unless `calibration` gives them), or its name.

    Parameters
    ----------
    loss : `Log()`, `Exponential()` or `Hinge()`, or its name.
    calibration : None, or how decisions become probabilities, as in `LogitBoostClassifier`.
    n_estimators, learning_rate, max_depth, max_leaf_nodes, min_samples_leaf, l2 : as in `GradientBoostingRegressor`.
    subsample, max_features, max_bins, estimator, n_iter_no_change : as in `GradientBoostingRegressor`.
    validation_fraction, categorical_features, random_state, progress : as in `GradientBoostingRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GradientBoostingClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.94)
    True
    """

    n_estimators: int = 100  # as in `_GradientBoosting`, which stands behind the other base
    learning_rate: float = field(default=0.1, kw_only=True)

    def _fit_scores(self, X: FloatArray, codes: IntArray, w: FloatArray) -> None:
        loss = self._loss(Log(), of_margin=True)
        self._kind = type(loss).__name__
        K = len(self.classes_)
        train, watched = self._held_out(len(X), codes)
        log_loss = self._log_loss(codes[watched], w[watched])

        def held_out(scores: FloatArray) -> float:
            if K > 2 and isinstance(loss, Log):
                return log_loss(scores)
            t = np.where(codes[watched] == 1, 1.0, -1.0)
            return float((w[watched] * loss(t, scores[:, 0])).sum() / w[watched].sum())

        with reporting(self.progress, self.n_estimators, "rounds") as report:
            watch = Watch(X[watched], held_out, patience=self.n_iter_no_change, report=report)
            if K > 2 and isinstance(loss, Log) and self.estimator is None:
                grower = self._grower(X[train], w[train])
                self.ensemble_, self._gains = boost_classes(
                    grower, codes[train], K, w[train], self._rounds(X.shape[1]), watch
                )
            elif K == 2:
                t = np.where(codes[train] == 1, 1.0, -1.0)
                found, self._gains = self._boost(X[train], t, w[train], loss, watch)
                self.ensemble_ = self._whole_odds(found, loss)
            else:
                self._one_against_rest(X[train], codes[train], w[train], loss, K)
        self.validation_loss_ = np.array(watch.history)

    @staticmethod
    def _whole_odds(found: Any, loss: Loss) -> Any:
        if isinstance(found, TreeSum):
            return log_odds(found, loss)
        factor = 2.0 if loss.has_probability else 1.0
        return ModelSum(found.models, [factor * a for a in found.weights], found.outputs, factor * found.base)

    def _one_against_rest(self, X: FloatArray, codes: IntArray, w: FloatArray, loss: Loss, K: int) -> None:
        runs = []
        for k in range(K):
            found, gains = self._boost(X, np.where(codes == k, 1.0, -1.0), w, loss, Watch())
            runs.append((self._whole_odds(found, loss), gains))
        base = np.concatenate([one.base for one, _ in runs])
        if self.estimator is not None:
            models = [m for one, _ in runs for m in one.models]
            outputs = [k for k, (one, _) in enumerate(runs) for _ in one.models]
            self.ensemble_ = ModelSum(models, [a for one, _ in runs for a in one.weights], outputs, base)
            self._gains = None
            return
        # every run is of the same length: trees that were not grown add nothing
        self.ensemble_ = _interleaved([one for one, _ in runs], base, self.n_estimators)
        self._gains = sum(gains for _, gains in runs if gains is not None)

    @property
    def _per_stage(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        if self._kind == "Hinge":
            if self.calibration is None and not getattr(self, "_calibrating", False):
                raise ModelError(
                    'scores of the hinge loss are not probabilities: use calibration="sigmoid", or the log loss'
                )
        if scores.shape[1] == 1:
            return _two(scores[:, 0])
        if self._kind == "Log":
            return _softmax(scores)
        p = np.stack([_two(column)[:, 1] for column in scores.T], axis=1)
        return p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)


def _interleaved(runs: list[TreeSum], base: FloatArray, n_rounds: int) -> TreeSum:
    """Trees of several sums round by round: output k takes those of run k."""
    from dataclasses import replace

    from gramgraph.tree_sum import Node

    parts = []
    pad = [[Node()]]
    for m in range(n_rounds):
        for k, run in enumerate(runs):
            if m < run.n_trees:
                end = int(run.roots[m + 1]) if m + 1 < run.n_trees else len(run.feature)
                part = _cut(run, int(run.roots[m]), end)
            else:
                part = TreeSum.of(pad, n_features=run.n_features)
            parts.append(replace(part, output=np.array([k]), base=np.zeros(len(base))))
    return join_trees(parts, base)


def _cut(run: TreeSum, start: int, end: int) -> TreeSum:
    """The one tree whose nodes stand at start … end − 1."""
    from dataclasses import replace

    cut = {
        name: getattr(run, name)[start:end]
        for name in ("feature", "threshold", "missing_left", "set_start", "set_size", "value")
    }
    return replace(
        run, **cut, left=run.left[start:end] - start, right=run.right[start:end] - start, roots=np.array([0]),
        output=np.array([0]),
    )  # fmt: skip
