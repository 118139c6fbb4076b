"""What boosted estimators share: reading columns, held-out rows, scores, importances, calibrated probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, column_or_1d

from gramgraph._progress import Progress
from gramgraph._validation import check_choice, check_count, check_fraction, check_positive, generator
from gramgraph.data.frames import is_frame, read_frame
from gramgraph.estimators._numbers import refuse_dates
from gramgraph.estimators._sound import SoundNumbers, read_matrix
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.typing import Array, FloatArray, IntArray

_MOST_CATEGORIES = 254


@dataclass(eq=False, repr=False)
class BoostedEstimator(SoundNumbers, BaseEstimator):
    """Base of boosted models: rows are numbers, gaps (NaN) and categories; `ensemble_` gives the scores."""

    n_estimators: int = 50
    _: KW_ONLY
    estimator: Any = None
    learning_rate: float = 1.0
    n_iter_no_change: int | None = None
    validation_fraction: float = 0.1
    categorical_features: Any = None
    random_state: Any = None
    progress: Progress = False
    ensemble_: Any = field(init=False)  # a `TreeSum`, or a `ModelSum` of other learners
    _gains: Any = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        tags.input_tags.categorical = True
        return tags

    # ------------------------------------------------------------------------------------------------ reading

    def _rows(self, X: Any, *, reset: bool) -> FloatArray:
        """X as numbers: categories as codes, gaps and categories never seen as NaN."""
        gaps: Any = "allow-nan" if self.estimator is None else True
        if is_frame(X) and not hasattr(X, "tocsr"):
            X = self._frame_codes(X, reset=reset)
        elif reset:
            self._labels: list[Any] = []
        found = read_matrix(self, X, limit=np.inf, reset=reset, dtype=np.float64, ensure_all_finite=gaps)
        if not is_frame(X):
            found = self._array_codes(found, reset=reset)
        return np.ascontiguousarray(found)

    def _frame_codes(self, X: Any, *, reset: bool) -> Any:
        """A frame whose columns of labels are replaced by codes."""
        refuse_dates(type(self).__name__, X)
        table = read_frame(X).table
        asked = self._asked(list(table.columns))
        if reset:
            self._labels = [
                _labels(table[name], name) if name in asked or _holds_labels(table[name]) else None
                for name in table.columns
            ]
        labels = getattr(self, "_labels", [])
        if len(labels) == table.shape[1] and any(known is not None for known in labels):
            table = table.copy()
            for name, known in zip(list(table.columns), labels, strict=True):
                if known is not None:
                    table[name] = _coded(table[name].to_numpy(dtype=object), known)
        return table

    def _array_codes(self, found: FloatArray, *, reset: bool) -> FloatArray:
        asked = self._asked(list(range(found.shape[1])))
        if reset:
            self._labels = [_labels(found[:, j], j) if j in asked else None for j in range(found.shape[1])]
        if not any(known is not None for known in self._labels):
            return found
        found = found.copy()
        for j, known in enumerate(self._labels):
            if known is not None:
                found[:, j] = _coded(found[:, j].astype(object), known)
        return found

    def _asked(self, columns: list[Any]) -> set[Any]:
        """Columns that the user calls categories."""
        given = self.categorical_features
        if given is None:
            return set()
        given = [given] if isinstance(given, (str, int)) else list(given)
        odd = [name for name in given if name not in columns]
        if odd:
            raise OptionError(f"categorical_features names {odd[0]!r}, which is not a column of X")
        return set(given)

    @property
    def _categories(self) -> list[int]:
        return [0 if known is None else len(known) for known in self._labels] or [0] * self.n_features_in_

    def _weights(self, sample_weight: Any, X: FloatArray) -> FloatArray:
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not w.sum() > 0:
            raise ModelError("all weights are zero: at least one row must count")
        return w

    def _held_out(self, n: int, codes: IntArray | None) -> tuple[IntArray, IntArray]:
        """(rows to learn from, rows to watch); all and none without early stopping."""
        if self.n_iter_no_change is None:
            return np.arange(n), np.arange(0)
        check_count("n_iter_no_change", self.n_iter_no_change)
        check_fraction("validation_fraction", self.validation_fraction)
        rng = generator(self.random_state)
        order = rng.permutation(n)
        size = max(1, round(self.validation_fraction * n))
        watched = order[:size]
        if codes is not None:  # the same share of every class
            ranks = np.empty(n)
            for code in np.unique(codes):
                members = order[codes[order] == code]
                ranks[members] = (np.arange(len(members)) + rng.random()) / len(members)
            watched = np.argsort(ranks, kind="stable")[:size]
        if n - size < 1:
            raise ModelError(f"{n} rows are too few for early stopping: use n_iter_no_change=None instead")
        kept = np.ones(n, dtype=bool)
        kept[watched] = False
        return np.flatnonzero(kept), np.sort(watched)

    def _check_common(self) -> None:
        check_count("n_estimators", self.n_estimators)
        check_positive("learning_rate", self.learning_rate)

    # ------------------------------------------------------------------------------------------------ questions

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self, "ensemble_")
        return self.ensemble_.scores(self._rows(X, reset=False))

    def _staged_scores(self, X: Any) -> Iterator[FloatArray]:
        check_is_fitted(self, "ensemble_")
        yield from self.ensemble_.staged(self._rows(X, reset=False), per_stage=self._per_stage)

    @property
    def _per_stage(self) -> int:
        return 1

    @property
    def feature_importances_(self) -> FloatArray:
        """The share of each feature in what the splits gained; they sum to one where anything was split."""
        check_is_fitted(self, "ensemble_")
        gains = self._gains
        if gains is None:
            raise AttributeError("importances are known for trees only, not for other weak learners")
        return gains / gains.sum() if gains.sum() > 0 else gains

    def partial_dependence(self, X: Any, feature: Any, *, grid: Any = 50) -> Any:
        """The mean response over the rows of X when one feature is set to each value of a grid, as a data frame.

        `grid` is a number of quantiles of the feature, or the values. The response is the mean prediction of a
        regressor, or the mean probability of each class.
        """
        import pandas as pd

        check_is_fitted(self, "ensemble_")
        names = getattr(self, "feature_names_in_", None)
        if isinstance(feature, str) and names is not None and feature in list(names):
            j = list(names).index(feature)
        elif isinstance(feature, (int, np.integer)) and 0 <= feature < self.n_features_in_:
            j = int(feature)
        else:
            raise OptionError(f"feature must be a column of X, by name or number, not {feature!r}")
        rows = self._rows(X, reset=False).copy()
        known = self._labels[j] if self._labels else None
        if known is not None:
            points, shown = np.arange(len(known), dtype=float), list(known)
        else:
            x = rows[:, j][~np.isnan(rows[:, j])]
            whole = isinstance(grid, (int, np.integer))
            points = np.unique(np.quantile(x, np.linspace(0, 1, int(grid)))) if whole else np.asarray(grid, float)
            shown = points.tolist()
        found = []
        for value in points:
            rows[:, j] = value
            found.append(np.atleast_1d(self._response(self.ensemble_.scores(rows)).mean(axis=0)))
        columns = [str(c) for c in self.classes_] if hasattr(self, "classes_") else ["response"]
        return pd.DataFrame(found, index=pd.Index(shown, name=str(feature)), columns=columns)

    def _response(self, scores: FloatArray) -> FloatArray:
        return scores[:, 0]


@dataclass(eq=False, repr=False)
class BoostedClassifier(ClassifierMixin, BoostedEstimator):  # type: ignore[misc]
    """Base of boosted classifiers: classes, decisions, probabilities, calibration."""

    calibration: str | None = field(default=None, kw_only=True)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from rows X (n, features) and classes y; weights count rows more or less often."""
        self._check_common()
        check_choice("calibration", self.calibration, (None, "sigmoid", "isotonic"))
        rows = self._rows(X, reset=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: classes are needed.")
        y = column_or_1d(y, warn=True)
        check_consistent_length(rows, y)
        if any(label is None or label != label for label in (y.tolist() if y.dtype.kind in "Of" else ())):
            raise ModelError("y contains NaN or None: every row that is learned from needs a class")
        check_classification_targets(y)
        w = self._weights(sample_weight, rows)
        kept = w > 0
        self.classes_, codes = np.unique(y[kept], return_inverse=True)
        if len(self.classes_) < 2:
            raise ModelError(
                f"the training data hold one class only ({self.classes_[:1].tolist()}): two or more are needed"
            )
        self._fit_scores(rows[kept], codes.astype(np.int64), w[kept])
        self._calibrate(X, y, sample_weight)
        return self

    def _fit_scores(self, X: FloatArray, codes: IntArray, w: FloatArray) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ probabilities

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        """(n, classes) from scores: σ of log odds, softmax, or shares of σ."""
        raise NotImplementedError

    def _log_loss(self, codes: IntArray, w: FloatArray) -> Any:
        def loss(scores: FloatArray) -> float:
            p = self._probabilities(scores)[np.arange(len(codes)), codes]
            return float(-(w * np.log(np.maximum(p, 1e-300))).sum() / w.sum())

        return loss

    def _calibrate(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Learn from held-out scores (five folds) what they mean."""
        self._calibrators: list[Any] = []
        if self.calibration is None:
            return
        from sklearn.model_selection import StratifiedKFold

        table = read_frame(X).table if is_frame(X) else np.asarray(X)
        w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
        if folds < 2:
            raise ModelError("calibration needs two or more rows of every class")
        held = np.empty((len(y), len(self.classes_)))
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(np.zeros(len(y)), y):
            take = table.iloc if hasattr(table, "iloc") else table
            part = clone(self).set_params(calibration=None).fit(take[train], y[train], w[train])
            part._calibrating = True  # scores that are not probabilities yet
            held[test] = part.predict_proba(take[test])
        logits = _logit(held)
        for k in range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_)):
            self._calibrators.append(_calibrator(self.calibration, logits[:, k], y == self.classes_[k], w))

    def predict_proba(self, X: Any) -> FloatArray:
        """p(class | x), (n, classes)."""
        return self._response(self._scores(X))

    def _response(self, scores: FloatArray) -> FloatArray:
        p = self._probabilities(scores)
        if not getattr(self, "_calibrators", None):
            return p
        logits = _logit(p)
        if len(self.classes_) == 2:
            q = _calibrated(self._calibrators[0], logits[:, 1])
            return np.stack((1.0 - q, q), axis=1)
        q = np.stack([_calibrated(c, logits[:, k]) for k, c in enumerate(self._calibrators)], axis=1)
        return q / q.sum(axis=1, keepdims=True)

    def decision_function(self, X: Any) -> FloatArray:
        """The score whose sign decides, (n,), or one score per class, (n, classes)."""
        return self._decision(self._scores(X))

    def _decision(self, scores: FloatArray) -> FloatArray:
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _chosen(self, scores: FloatArray) -> Array:
        codes = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def predict(self, X: Any) -> Array:
        """The class of every row."""
        return self._chosen(self._scores(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Classes after one round, two rounds, …"""
        for scores in self._staged_scores(X):
            yield self._chosen(scores)

    def staged_predict_proba(self, X: Any) -> Iterator[FloatArray]:
        """Probabilities after one round, two rounds, … (not calibrated)."""
        for scores in self._staged_scores(X):
            yield self._probabilities(scores)

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Decisions after one round, two rounds, …"""
        for scores in self._staged_scores(X):
            yield self._decision(scores)


def _holds_labels(column: Any) -> bool:
    kind = getattr(column.dtype, "kind", "O")
    if hasattr(column, "cat"):
        return True
    if kind in "fiub":
        return False
    values = [value for value in column.tolist() if value is not None and value == value]
    return any(isinstance(value, str) for value in values)


def _labels(column: Any, name: Any) -> list[Any]:
    """Categories of a column, the most frequent ones where there are very many."""
    values = column.tolist()
    counts: dict[Any, int] = {}
    for value in values:
        if value is not None and value == value:
            counts[value] = counts.get(value, 0) + 1
    known = sorted(counts, key=str)
    if len(known) > _MOST_CATEGORIES:
        known = sorted(sorted(known, key=lambda label: -counts[label])[:_MOST_CATEGORIES], key=str)
    if not known:
        raise ModelError(f"column {name!r} holds no value")
    return known


def _coded(values: Array, known: list[Any]) -> FloatArray:
    at = {label: float(code) for code, label in enumerate(known)}
    return np.array(
        [at.get(value, np.nan) if value == value else np.nan for value in values.tolist()], dtype=np.float64
    )


def _logit(p: FloatArray) -> FloatArray:
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return np.log(p) - np.log1p(-p)


def _calibrator(kind: str, x: FloatArray, hit: Array, w: FloatArray) -> tuple[str, FloatArray, FloatArray]:
    """What turns log odds into probabilities: (kind, points, values), plain numbers."""
    if kind == "isotonic":
        from sklearn.isotonic import IsotonicRegression

        found = IsotonicRegression(y_min=1e-6, y_max=1 - 1e-6, out_of_bounds="clip").fit(x, hit, sample_weight=w)
        return kind, np.asarray(found.X_thresholds_, float), np.asarray(found.y_thresholds_, float)
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(C=1e6).fit(x[:, None], hit, sample_weight=w)
    return kind, np.array([float(found.coef_[0, 0])]), np.array([float(found.intercept_[0])])


def _calibrated(calibrator: Any, x: FloatArray) -> FloatArray:
    kind, points, values = calibrator
    if kind == "isotonic":
        return np.interp(x, points, values)
    return 1.0 / (1.0 + np.exp(-np.clip(points[0] * x + values[0], -500, 500)))
