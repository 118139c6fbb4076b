"""Classification and regression trees that are grown by stopping rules and pruned by left-out rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d

from gramgraph._validation import check_choice, check_count, check_positive
from gramgraph.estimators._classes import read_classes, weighed
from gramgraph.estimators._numbers import read_numbers, read_weights
from gramgraph.estimators._sound import SoundNumbers
from gramgraph.machines.pruning import choose_pruning
from gramgraph.typing import Array, FloatArray, IntArray

_INSTEAD = " Give it 0/1 columns (pandas.get_dummies), or use gg.AdaBoostClassifier, which takes labels"


@dataclass(eq=False, repr=False)
class _Pruned(SoundNumbers, BaseEstimator):  # type: ignore[misc]
    """What both kinds of trees share: scikit-learn's tree, and the choice of α."""

    _: KW_ONLY
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_gain: float = 0.0
    cv: Any = 5
    rule: str = "one_se"
    random_state: Any = 0

    def _grow(
        self, tree: Any, X: FloatArray, y: Array, w: FloatArray | None, groups: IntArray, given: IntArray | None
    ) -> None:
        check_choice("rule", self.rule, ("best", "one_se", "none"))
        if given is None:
            check_count("cv", self.cv, 2)
        check_count("min_samples_split", self.min_samples_split, 2)
        check_count("min_samples_leaf", self.min_samples_leaf)
        check_positive("min_gain", self.min_gain, zero=True)
        if self.max_depth is not None:
            check_count("max_depth", self.max_depth)
        tree.set_params(
            max_depth=self.max_depth, min_samples_split=self.min_samples_split, min_samples_leaf=self.min_samples_leaf,
            min_impurity_decrease=self.min_gain, random_state=self.random_state,
        )  # fmt: skip
        self.pruning_ = None
        self.alpha_ = 0.0
        if self.rule != "none" and (given is not None or len(X) >= 2 * self.cv):
            folds = self._folds(groups) if given is None else given
            self.pruning_ = choose_pruning(tree, X, y, w, folds, rule=self.rule)
            self.alpha_ = float(self.pruning_.alphas[self.pruning_.chosen])
        self.tree_ = tree.set_params(ccp_alpha=self.alpha_).fit(X, y, sample_weight=w)

    def _folds(self, groups: IntArray) -> IntArray:
        """A fold for every row, each class (or part of the line) spread evenly."""
        rng = np.random.default_rng(0 if self.random_state is None else self.random_state)
        order = rng.permutation(len(groups))
        order = order[np.argsort(groups[order], kind="stable")]
        out = np.empty(len(groups), dtype=np.int64)
        out[order] = np.arange(len(groups)) % self.cv
        return out

    def _given_folds(self, X: FloatArray, y: Any, sample_weight: Any) -> IntArray | None:
        """The folds of a splitter, or of pairs (train, test), for rows that count; −1 where a row is never left out."""
        if isinstance(self.cv, (int, np.integer)) or y is None:
            return None
        from sklearn.model_selection import check_cv

        out = np.full(len(X), -1, dtype=np.int64)
        for fold, (_, test) in enumerate(check_cv(self.cv, y).split(X, y)):
            out[test] = fold
        w = read_weights(sample_weight, X)
        return out if w is None else out[w > 0.0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _new(self, X: Any) -> FloatArray:
        check_is_fitted(self, "tree_")
        return read_numbers(self, X, reset=False, instead=_INSTEAD)

    def predict(self, X: Any) -> Array:
        """The class with most of the leaf's rows, or the leaf's mean."""
        X = self._new(X)
        return np.asarray(self.tree_.predict(X))

    @property
    def n_leaves_(self) -> int:
        """Leaves of the pruned tree."""
        check_is_fitted(self, "tree_")
        return int(self.tree_.get_n_leaves())

    @property
    def feature_importances_(self) -> FloatArray:
        """What the splits on each column gained, summing to one."""
        check_is_fitted(self, "tree_")
        return np.asarray(self.tree_.feature_importances_)


@dataclass(eq=False, repr=False)
class PrunedTree(ClassifierMixin, _Pruned):
    """A classification tree (scikit-learn's), grown by stopping rules and pruned by cross-validated cost complexity.

    Parameters
    ----------
    criterion : "gini" or "entropy", what a split lowers.
    max_depth, min_samples_split, min_samples_leaf, min_gain : where growing stops.
    cv : number of folds, or a splitter of scikit-learn.
    rule : "best" takes the α with the least log loss of left-out rows, "one_se" the smallest tree within one standard
        error of it, "none" does not prune.
    random_state : seed, or a generator.

    Notes
    -----
    `predict_proba` are shares of classes in the leaves. Cells may be missing.

    Attributes
    ----------
    tree_ : scikit-learn's tree; alpha_, n_leaves_, pruning_ (alphas, losses, errors, chosen), classes_.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = np.where(rng.random(300) < 0.1, 1 - (X[:, 0] > 0), X[:, 0] > 0)
    >>> gg.estimators.PrunedTree().fit(X, y).n_leaves_
    2
    """

    criterion: str = "gini"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow and prune the tree."""
        from sklearn.tree import DecisionTreeClassifier

        check_choice("criterion", self.criterion, ("gini", "entropy"))
        X = read_numbers(self, X, reset=True, instead=_INSTEAD)
        given = self._given_folds(X, y, sample_weight)
        X, y, w = weighed(X, y, sample_weight)
        self.classes_, codes = read_classes(y, X, name=type(self).__name__)
        self._grow(DecisionTreeClassifier(criterion=self.criterion), X, self.classes_[codes], w, codes, given)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Shares of the classes in the leaf of each row, (rows, classes)."""
        X = self._new(X)
        return np.asarray(self.tree_.predict_proba(X))


@dataclass(eq=False, repr=False)
class PrunedTreeRegressor(RegressorMixin, _Pruned):
    """A regression tree (scikit-learn's): means in the leaves, pruned by the squared error of left-out rows.

    Parameters and attributes as `PrunedTree`.

    Parameters
    ----------
    max_depth : splits from the root to a leaf, at most.
    min_samples_split : fewest rows of a node that is split.
    min_samples_leaf : fewest rows of a leaf.
    min_gain : least gain of a split.
    cv : number of folds, or a splitter of scikit-learn.
    rule : "best", or "one_se" for the smallest tree within one standard error of it.
    random_state : seed, or a generator.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> x = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = (x[:, 0] > 0.5) + 0.1 * np.random.default_rng(0).normal(size=200)
    >>> model = gg.estimators.PrunedTreeRegressor().fit(x, y)
    >>> model.n_leaves_, model.predict([[0.2], [0.8]]).round(1).tolist()
    (2, [0.0, 1.0])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow and prune the tree."""
        from sklearn.tree import DecisionTreeRegressor

        X = read_numbers(self, X, reset=True, instead=_INSTEAD)
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} learns from it."
            )
        given = self._given_folds(X, y, sample_weight)
        target = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), warn=True)
        check_consistent_length(X, target)
        X, target, w = weighed(X, target, sample_weight)
        order = np.argsort(np.argsort(target, kind="stable"), kind="stable") // 5  # neighbors on the line, spread
        self._grow(DecisionTreeRegressor(), X, np.asarray(target), w, order, given)
        return self
