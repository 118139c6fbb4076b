"""Bayesian networks as classifiers: naive Bayes, tree-augmented, or any structure; gaps in the data are welcome."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from gramgraph.conditionals import Table
from gramgraph.conditionals.continuous import log_density
from gramgraph.data.columns import CodedTable, code_table, distinct_values, smallest_integer
from gramgraph.data.describe import column_kinds
from gramgraph.data.discretize import Discretizer
from gramgraph.data.frames import read_frame
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.estimators._column_densities import choose_ways, density_of_numbers, multinomial_shares, numbers_of
from gramgraph.estimators._sound import SoundNumbers, read_matrix
from gramgraph.exceptions import ModelError, OptionError, VariableError, did_you_mean
from gramgraph.learn.methods import method_name
from gramgraph.learn.structure import METHODS, learn_structure
from gramgraph.models import BayesianNetwork
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import discrete

TARGET = "class"


@dataclass(eq=False, repr=False)
class BayesianNetworkClassifier(ClassifierMixin, SoundNumbers, BaseEstimator):  # type: ignore[misc]
    """Classify by p(class | features) of a Bayesian network that is learned from the training data.

    Parameters
    ----------
    structure : a method of `gg.learn_structure`: "hill_climb", "tabu", "ges", "exact", "pc", "chow_liu", "tan",
        "naive_bayes", …; or a graph that is given: a `gg.BayesianNetwork`, or edges (parent, child), over "class" and
        the features by their names in the frame ("x0", "x1", … in an array). Only its graph counts.
    criterion : the score of a search.
    pseudo_count : added to every cell of every table, so that nothing is impossible.
    bins : real features are cut into so many intervals of equal counts.

    Notes
    -----
    Features are labels, whole numbers (up to 20 different ones) or real numbers, in a frame or an array. Missing cells
    are not observed; a label that was not seen in training counts as missing. `network_` is the network, in which the
    class is called "class" and has the states "0", "1", … in the order of `classes_`.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(2000, random_state=0)
    >>> X, y = frame.drop(columns="dysp"), frame["dysp"]
    >>> gg.estimators.BayesianNetworkClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    structure: Any = "hill_climb"
    _: KW_ONLY
    criterion: str = "bic"
    pseudo_count: float = 1.0
    bins: int = 5

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the network from features X (rows, features) and classes y."""
        method = method_name(self._method())
        if isinstance(method, str) and method not in METHODS:
            raise OptionError(
                f"structure is one of {', '.join(METHODS)}, not {method!r}.{did_you_mean(method, METHODS)}"
            )
        number = isinstance(self.pseudo_count, (int, float)) and not isinstance(self.pseudo_count, bool)
        if not number or not self.pseudo_count >= 0:
            raise OptionError(f"pseudo_count is a number from 0, not {self.pseudo_count!r}")
        frame = self._frame(X, reset=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(frame, y)
        gaps = [i for i, label in enumerate(y.tolist()) if label is None or label != label]
        if gaps:
            raise ModelError(
                f"y contains NaN or None, first in row {gaps[0]}: every row that is learned from has a class"
            )
        check_classification_targets(y)
        assert_all_finite(y, input_name="y")
        weights = (
            None if sample_weight is None else _check_sample_weight(sample_weight, frame, ensure_non_negative=True)
        )
        if weights is not None and (weights == 0).any():
            kept = weights > 0
            frame, y, weights = frame[kept], y[kept], weights[kept]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ModelError(
                f"the training data hold one class only ({self.classes_[:1].tolist()}): two or more are needed"
            )
        self._learn(frame, codes, weights, method)
        return self

    def _learn(self, frame: Any, codes: Array, weights: FloatArray | None, method: Any) -> None:
        """The network from the columns and the classes in numbers."""
        table = self._learned_columns(frame, codes, weights)
        given: dict[str, Any] = {} if isinstance(method, str) else self._given(method, table.names)
        self.network_: BayesianNetwork = learn_structure(
            table, method="hill_climb" if given else method, score=self.criterion, target=TARGET, root=TARGET,
            prior=float(self.pseudo_count), missing="families", **given,
        )  # fmt: skip

    def _given(self, structure: Any, names: tuple[str, ...]) -> dict[str, Any]:
        """A given graph as constraints that leave no other; edges at columns without a value fall away."""
        edges = structure.edges if isinstance(structure, BayesianNetwork) else structure
        try:
            pairs = [(str(parent), str(child)) for parent, child in edges]
        except (TypeError, ValueError):
            raise OptionError(
                f"structure is a method, a BayesianNetwork, or edges (parent, child); not {structure!r}"
            ) from None
        own = getattr(self, "feature_names_in_", None)
        known = [f"x{j}" for j in range(self.n_features_in_)] if own is None else [str(name) for name in own]
        at = {TARGET: TARGET} | {name: f"x{j}" for j, name in enumerate(known)}
        for name in (name for pair in pairs for name in pair):
            if name not in at:
                raise VariableError.unknown(name, tuple(at))
        required = [(at[a], at[b]) for a, b in pairs if at[a] in names and at[b] in names]
        others = [(a, b) for a in names for b in names if a != b and (a, b) not in set(required)]
        return {"required": required, "forbidden": others}

    def predict_proba(self, X: Any) -> FloatArray:
        """p(class | features), (rows, classes); the share of each class where the features are impossible."""
        check_is_fitted(self)
        codes = self._codes(self._frame(X, reset=False))
        observed = tuple(range(1, 1 + codes.shape[1]))
        answer = JunctionTree().answer(self.network_, Question((0,), (), observed, codes, (), True))
        p = np.array(answer[TARGET].probabilities)
        lost = ~np.isfinite(p).all(axis=1)
        if lost.any():
            p[lost] = self.network_.query(TARGET)[TARGET].probabilities
        return p

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        p = self.predict_proba(X)
        return self.classes_[p.argmax(axis=1)]

    def _method(self) -> Any:
        return self.structure

    def _frame(self, X: Any, *, reset: bool) -> Any:
        """The features as a pandas frame with columns x0, x1, …."""
        import pandas as pd

        if hasattr(X, "columns") or hasattr(X, "__dataframe__"):
            read_frame(X[:0])  # says which name is there twice
            validate_data(self, X, reset=reset, skip_check_array=True)
            frame = read_frame(X).table
            if frame.shape[0] < 1 or frame.shape[1] < 1:
                check_array(np.empty(frame.shape))  # says what is missing, in scikit-learn's words
        else:
            found = read_matrix(self, X, limit=np.inf, reset=reset, dtype=None, ensure_all_finite="allow-nan")
            if found.dtype.kind == "c":
                raise ValueError("Complex data not supported")
            if found.dtype.kind in "OUS":
                found = _numbers_where_all_are(found)
            if found.dtype.kind == "f" and np.isinf(found).any():
                raise ValueError("Input X contains infinity or a value too large for dtype('float64').")
            frame = pd.DataFrame(found)
        return frame.set_axis([f"x{j}" for j in range(frame.shape[1])], axis=1).reset_index(drop=True)

    def _learned_columns(self, frame: Any, codes: Array, weights: FloatArray | None) -> CodedTable:
        """Choose the states of every feature; the class comes first."""
        kinds = column_kinds(frame)
        real = kinds.index[kinds["kind"] == "real"].tolist()
        self._cutter = Discretizer(self.bins, columns=real).fit(frame, weights=weights)
        self._features = [name for name in frame.columns if kinds["kind"][name] != "empty"]
        cut = self._cutter.transform(frame)[self._features]
        coded = code_table(cut)
        self._variables = coded.variables
        target = discrete(TARGET, len(self.classes_))
        first = codes.astype(smallest_integer(len(self.classes_)))
        return CodedTable((target, *coded.variables), (first, *coded.columns), weights)

    def _codes(self, frame: Any) -> Array:
        """State indices of new rows, -1 where a cell is missing or its label was not seen in training."""
        cut = self._cutter.transform(frame)
        out = np.empty((len(cut), len(self._features)), np.int64)
        for j, (name, var) in enumerate(zip(self._features, self._variables, strict=True)):
            values, kinds = distinct_values(cut[name])
            table = np.array([*(var.discrete.find(kind) for kind in kinds), -1], np.int64)
            out[:, j] = table[values]
        return out


class TANClassifier(BayesianNetworkClassifier):
    """Tree-augmented naive Bayes: every feature depends on the class and on at most one other feature.

    Parameters as in `BayesianNetworkClassifier`. Cost: one pass over all triples of the class and two features.

    Parameters
    ----------
    pseudo_count : added to every count.
    bins : intervals of a real-valued column.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(2000, random_state=0)
    >>> model = gg.estimators.TANClassifier().fit(frame.drop(columns="dysp"), frame["dysp"])
    >>> max(len(model.network_.parents(v)) for v in model.network_.variables)
    2
    """

    def __init__(self, *, pseudo_count: float = 1.0, bins: int = 5) -> None:
        super().__init__(pseudo_count=pseudo_count, bins=bins)

    def _method(self) -> str:
        return "tan"


class NaiveBayesClassifier(BayesianNetworkClassifier):
    """Naive Bayes: features are independent given the class; gaps, labels and real numbers side by side.

    Parameters
    ----------
    columns : what columns are given the class. None: numbers are Gaussian; labels, truth values and whole numbers with
        up to 20 different values are tables. A word for all columns that hold numbers, or a dict from names (or places)
        of columns to words: "gaussian"; "kernel", a kernel density; "bins", a table of intervals; "counts", Poisson;
        "multinomial", counts whose total is given (all such columns together); "labels", a table of the values.
    pseudo_count : added to every cell of every table; for "counts" the weight of the column's mean.
    bins : "bins" are so many intervals of equal counts.

    Notes
    -----
    Shares of the classes are those of the rows. `network_` is the model as a Bayesian network, without "multinomial"
    columns, which depend on their total too.

    Examples
    --------
    >>> import gramgraph as gg
    >>> model = gg.estimators.NaiveBayesClassifier().fit([["a", 1.5], ["b", None], ["a", 0.5]], ["yes", "no", "yes"])
    >>> model.predict([["b", 1.0], ["never seen", None]]).tolist()
    ['no', 'yes']
    """

    def __init__(self, *, columns: Any = None, pseudo_count: float = 1.0, bins: int = 5) -> None:
        super().__init__(pseudo_count=pseudo_count, bins=bins)
        self.columns = columns

    def _method(self) -> str:
        return "naive_bayes"

    def _learn(self, frame: Any, codes: Array, weights: FloatArray | None, method: Any) -> None:
        names = self._names()
        ways = choose_ways(frame, self.columns, names)
        pseudo, k = float(self.pseudo_count), len(self.classes_)
        tables = [name for name, way in ways.items() if way in ("bins", "labels")]
        table = self._coded(frame[tables], [name for name in tables if ways[name] == "bins"], codes, weights)
        learned = learn_structure(table, method=method, target=TARGET, root=TARGET, prior=pseudo, missing="families")
        label = table.variables[0]
        share = np.bincount(codes, weights, k)
        parts: dict[str, Any] = {TARGET: Table(label, (), share / share.sum())}
        parts |= {name: learned.conditional(name) for name in tables}
        for name, way in ways.items():
            if way in ("gaussian", "kernel", "counts"):
                x = numbers_of(frame[name], names[int(name[1:])], way)
                parts[name] = density_of_numbers(name, x, codes, weights, label, way=way, pseudo_count=pseudo)
        self._counted = [name for name, way in ways.items() if way == "multinomial"]
        counts = np.array([self._column(frame, name, "multinomial") for name in self._counted])
        self._log_shares = multinomial_shares(counts.reshape(-1, len(frame)).T, codes, weights, k, pseudo)
        made = [parts[name] for name in (TARGET, *ways) if name in parts]
        self.network_ = BayesianNetwork.from_parts([part.child for part in made], made)

    def _names(self) -> list[str]:
        """The names of the columns to the user."""
        given = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if given is None else [str(name) for name in given]

    def _column(self, frame: Any, name: str, way: str) -> FloatArray:
        return numbers_of(frame[name], self._names()[int(name[1:])], way)

    def _coded(self, frame: Any, cut: list[str], codes: Array, weights: FloatArray | None) -> CodedTable:
        """Tables: labels as they are, numbers cut into bins; the class comes first."""
        self._cutter = Discretizer(self.bins, columns=cut).fit(frame, weights=weights)
        self._features = list(frame.columns)
        coded = code_table(self._cutter.transform(frame)) if self._features else None
        self._variables = coded.variables if coded else ()
        target = discrete(TARGET, len(self.classes_))
        first = codes.astype(smallest_integer(len(self.classes_)))
        return CodedTable((target, *self._variables), (first, *(coded.columns if coded else ())), weights)

    def _log_joint(self, frame: Any) -> FloatArray:
        """log p(class) + log p(what the row shows | class), (rows, classes)."""
        parts = {c.child.name: c for c in self.network_.conditionals if c is not None}
        label = parts[TARGET].child
        with np.errstate(divide="ignore"):
            out = np.repeat(np.log(parts[TARGET].table())[None], len(frame), axis=0)
            codes = self._codes(frame) if self._features else np.zeros((len(frame), 0), np.int64)
            for name, at in zip(self._features, codes.T, strict=True):
                if parts[name].parents:
                    out += np.where(at[:, None] < 0, 0.0, np.log(parts[name].table())[:, at].T)
        for name, c in parts.items():
            if not c.child.is_discrete:
                x = self._column(frame, name, "gaussian")
                seen = np.flatnonzero(~np.isnan(x))
                for state in range(label.size):
                    values = {c.child: x[seen][:, None], label: np.full(len(seen), state)}
                    out[seen, state] += log_density(c, values)
        for j, name in enumerate(getattr(self, "_counted", ())):
            out += np.nan_to_num(self._column(frame, name, "multinomial"))[:, None] * self._log_shares[:, j]
        return out

    def predict_log_proba(self, X: Any) -> FloatArray:
        """log p(class | features), (rows, classes); those of the shares of classes where a row is impossible."""
        check_is_fitted(self)
        logs = self._log_joint(self._frame(X, reset=False))
        lost = ~np.isfinite(logs.max(axis=1))
        with np.errstate(divide="ignore"):
            logs[lost] = np.log(self.network_.conditional(TARGET).table())
        top = logs.max(axis=1, keepdims=True)
        return np.asarray(logs - top - np.log(np.exp(logs - top).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Any) -> FloatArray:
        """p(class | features), (rows, classes); the share of each class where the features are impossible."""
        return np.exp(self.predict_log_proba(X))


def _numbers_where_all_are(found: Array) -> Array:
    """An array of objects as numbers, if that is what it holds."""
    try:
        return found.astype(np.float64)
    except (TypeError, ValueError):
        return found
