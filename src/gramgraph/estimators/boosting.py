"""AdaBoost, LogitBoost and GentleBoost with stumps, trees, or any weighted learner."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gramgraph._progress import reporting
from gramgraph._validation import check_choice, check_count
from gramgraph.estimators._boosting import BoostedClassifier
from gramgraph.machines.boosting.columns import BinnedColumns, SortedColumns
from gramgraph.machines.boosting.rounds import ada_rounds, gentle_rounds, logit_rounds, logit_rounds_many
from gramgraph.machines.boosting.stopping import Watch
from gramgraph.machines.boosting.weak import ModelSum, ModelWeak, StumpWeak, TreeWeak, WeakNumber
from gramgraph.tree_sum import Node, TreeSum
from gramgraph.typing import FloatArray, IntArray


@dataclass(eq=False, repr=False)
class AdaBoostClassifier(BoostedClassifier):
    """AdaBoost (discrete; SAMME for more than two classes): rounds of stumps that mind what the last ones got wrong.

    err = Σ v 1[wrong] / Σ v, α = log((1 − err) / err), v ← v exp(α 1[wrong]); the decision is the sign of Σ α φ(x).
    As the exponential loss is least at half the log odds, **p = σ(Σ α φ)**; `calibration` "sigmoid" or "isotonic"
    learns from held-out rows what the scores mean. A stump without error ends the rounds (with the α of half a wrong
    case), one no better than guessing ends them unused.

    Parameters
    ----------
    n_estimators : rounds, at most.
    criterion : "gini" chooses stumps as scikit-learn's trees do (decisions are then equal), "error" takes the smallest
        weighted error, as in the textbook.
    estimator : None for stumps, or any classifier of scikit-learn's kind whose `fit` takes weights.
    learning_rate : factor on α.
    n_iter_no_change : stop when the log loss on a held-out share of the rows (`validation_fraction`) has not fallen for
        so many rounds.
    calibration, categorical_features, random_state, progress : as they say; columns of labels in a frame are categories
        (split into sets), NaN is a gap, which goes to the side where it helps.
    validation_fraction : share of the rows held out for `n_iter_no_change`.

    Notes
    -----
    Cost: columns are sorted once, then one pass over them per round.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier(50).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.94)
    True
    """

    criterion: str = field(default="gini", kw_only=True)

    def _fit_scores(self, X: FloatArray, codes: IntArray, w: FloatArray) -> None:
        check_choice("criterion", self.criterion, ("gini", "error"))
        K, d = len(self.classes_), X.shape[1]
        train, watched = self._held_out(len(X), codes)
        if self.estimator is None:
            weak: Any = StumpWeak(SortedColumns(X[train], self._categories), self.criterion)
        else:
            weak = ModelWeak(self.estimator, X[train])
        base = np.zeros(1 if K == 2 else K)
        parts: list[Any] = []
        alphas: list[float] = []
        errors: list[float] = []
        loss = self._log_loss(codes[watched], w[watched])
        with reporting(self.progress, self.n_estimators, "rounds") as report:
            watch = Watch(X[watched], loss, patience=self.n_iter_no_change, report=report)
            for part, alpha, error in ada_rounds(
                weak, codes[train], K, w[train], self.n_estimators, float(self.learning_rate)
            ):
                parts.append(part)
                alphas.append(alpha)
                errors.append(error)
                if watch.done(len(parts), lambda: self._sum(parts[-1:], alphas[-1:], base, d), base):
                    break
        if watch.watching:
            parts, alphas, errors = (x[: max(watch.best_round, 1)] for x in (parts, alphas, errors))
        self.estimator_weights_, self.estimator_errors_ = np.array(alphas), np.array(errors)
        self.validation_loss_ = np.array(watch.history)
        self.ensemble_ = self._sum(parts, alphas, base, d)
        self._gains = None if self.estimator is not None else _weighted_features(parts, alphas, d)

    def _sum(self, parts: list[Any], alphas: list[float], base: FloatArray, d: int) -> Any:
        K = len(self.classes_)
        if self.estimator is not None:
            return ModelSum([p.model for p in parts], alphas, [0] * len(parts), base, K)
        if not parts:
            return TreeSum.of([[Node(value=np.zeros(len(base)))]], base=base, n_features=d)
        return TreeSum.of([p.tree(a, K) for p, a in zip(parts, alphas, strict=True)], base=base, n_features=d)

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        if scores.shape[1] == 1:
            return _two(scores[:, 0])
        K = scores.shape[1]
        return _softmax(scores * ((K - 1.0) / K))


def _weighted_features(parts: list[Any], alphas: list[float], d: int) -> FloatArray:
    """The share of α that goes through each feature."""
    gains = np.zeros(d)
    for part, alpha in zip(parts, alphas, strict=True):
        root = part.nodes[0][0]
        if root.feature >= 0:
            gains[root.feature] += max(alpha, 0.0)
    return gains


@dataclass(eq=False, repr=False)
class _RegressionBoost(BoostedClassifier):
    """LogitBoost and GentleBoost: every round is a weighted least-squares regression."""

    max_depth: int = field(default=1, kw_only=True)

    @property
    def _per_stage(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _weak(self, X: FloatArray) -> Any:
        if self.estimator is not None:
            return ModelWeak(self.estimator, X)
        check_count("max_depth", self.max_depth)
        if self.max_depth == 1:
            return StumpWeak(SortedColumns(X, self._categories))
        return TreeWeak(BinnedColumns(X, self._categories), self.max_depth)

    def _run(
        self, rounds: Any, factor: float, outputs: int, X: FloatArray, watch: Watch, center: bool = False
    ) -> tuple[Any, FloatArray | None]:
        """Collect the rounds of one run; each gives one regression or one per output."""
        base, d = np.zeros(outputs), X.shape[1]
        kept: list[WeakNumber] = []
        n = 0

        def last(size: int) -> Any:
            return self._sum(kept[-size:], factor, base, d, center)

        for n, part in enumerate(rounds, 1):
            kept += part if isinstance(part, list) else [part]
            size = len(part) if isinstance(part, list) else 1
            if watch.done(n, partial(last, size), base):
                break
        if watch.watching:
            kept = kept[: max(watch.best_round, 1) * (len(kept) // max(n, 1))]
        gains = np.zeros(d)
        for part in kept:
            for feature, gain in part.gains:
                gains[feature] += gain
        return self._sum(kept, factor, base, d, center), None if self.estimator is not None else gains

    def _sum(self, parts: list[WeakNumber], factor: float, base: FloatArray, d: int, center: bool) -> Any:
        """Σ factor · φ; with `center`, the mean over the outputs is taken off every one."""
        K = len(base)
        outputs = [i % K for i in range(len(parts))]
        if self.estimator is not None:
            return ModelSum([p.model for p in parts], [factor] * len(parts), outputs, base)
        trees = [
            [Node(**{**vars(node), "value": self._votes(node.value * factor, k, K, center)}) for node in p.nodes]
            for p, k in zip(parts, outputs, strict=True)
        ]
        return TreeSum.of(trees, outputs=[0] * len(trees) if center else outputs, base=base, n_features=d)

    @staticmethod
    def _votes(value: float, k: int, K: int, center: bool) -> Any:
        if not center:
            return value
        votes = np.full(K, -value / K)
        votes[k] += value
        return votes


class LogitBoostClassifier(_RegressionBoost):
    """LogitBoost: Newton steps for the log loss, one weighted least-squares regression per round.

    π = σ(2y), z = (t − π)/(π(1 − π)) clipped to ±4, v = π(1 − π); φ minimizes Σ v (z − φ)², y ← y + φ/2. The decision
    is the sign of Σ φ, which is the log odds: p = σ(Σ φ). With K classes there are K regressions per round.

    Parameters
    ----------
    n_estimators : rounds, at most.
    max_depth : 1 for stumps on sorted columns, more for trees on columns in at most 255 bins.
    estimator : None, or any regressor of scikit-learn's kind whose `fit` takes weights, such as
        `gg.estimators.BasisRegression`.
    learning_rate, n_iter_no_change, validation_fraction, calibration, categorical_features, random_state, progress :
        as in `AdaBoostClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogitBoostClassifier(50).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.94)
    True
    """

    def _fit_scores(self, X: FloatArray, codes: IntArray, w: FloatArray) -> None:
        K, rate = len(self.classes_), float(self.learning_rate)
        train, watched = self._held_out(len(X), codes)
        weak = self._weak(X[train])
        loss = self._log_loss(codes[watched], w[watched])
        with reporting(self.progress, self.n_estimators, "rounds") as report:
            watch = Watch(X[watched], loss, patience=self.n_iter_no_change, report=report)
            if K == 2:
                rounds: Any = logit_rounds(weak, codes[train].astype(float), w[train], self.n_estimators, rate)
                self.ensemble_, self._gains = self._run(rounds, rate, 1, X, watch)
            else:
                rounds = logit_rounds_many(weak, codes[train], K, w[train], self.n_estimators, rate)
                factor = rate * (K - 1.0) / K
                self.ensemble_, self._gains = self._run(rounds, factor, K, X, watch, center=self.estimator is None)
        self.validation_loss_ = np.array(watch.history)

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        return _two(scores[:, 0]) if scores.shape[1] == 1 else _softmax(scores)


class GentleBoostClassifier(_RegressionBoost):
    """GentleBoost: weighted least squares of t = ±1, F ← F + f, w ← w exp(−t f), renormalized.

    The decision is the sign of F = Σ f; half the log odds, so p = σ(2F). Steadier than LogitBoost, as no response is
    divided by a small weight. More than two classes: one against the rest, probabilities scaled to sum to one.
    Parameters as in `LogitBoostClassifier`.

    Parameters
    ----------
    n_estimators, max_depth, estimator, learning_rate, n_iter_no_change : as in `LogitBoostClassifier`.
    validation_fraction, calibration, categorical_features, random_state, progress : as in `LogitBoostClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GentleBoostClassifier(50).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.94)
    True
    """

    def _fit_scores(self, X: FloatArray, codes: IntArray, w: FloatArray) -> None:
        K, rate = len(self.classes_), float(self.learning_rate)
        train, watched = self._held_out(len(X), codes)
        weak = self._weak(X[train])
        loss = self._log_loss(codes[watched], w[watched])
        with reporting(self.progress, self.n_estimators, "rounds") as report:
            watch = Watch(X[watched], loss, patience=self.n_iter_no_change, report=report)
            targets = [np.where(codes[train] == k, 1.0, -1.0) for k in ([1] if K == 2 else range(K))]
            runs = [gentle_rounds(weak, t, w[train], self.n_estimators, rate) for t in targets]
            rounds: Any = runs[0] if K == 2 else map(list, zip(*runs, strict=True))
            self.ensemble_, self._gains = self._run(rounds, rate, 1 if K == 2 else K, X, watch)
        self.validation_loss_ = np.array(watch.history)

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        if scores.shape[1] == 1:
            return _two(2.0 * scores[:, 0])
        p = np.maximum(1.0 / (1.0 + np.exp(-np.clip(2.0 * scores, -500, 500))), 1e-300)
        return p / p.sum(axis=1, keepdims=True)


def _two(log_odds: FloatArray) -> FloatArray:
    from scipy.special import expit

    return np.stack((expit(-log_odds), expit(log_odds)), axis=1)


def _softmax(scores: FloatArray) -> FloatArray:
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
