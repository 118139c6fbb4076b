"""Weak learners: stumps on sorted columns, trees on binned ones, and any estimator that takes weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, OptionError
from gramgraph.machines.boosting.columns import BinnedColumns, SortedColumns, Split
from gramgraph.machines.boosting.grow import Grower
from gramgraph.tree_sum import Node
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True)
class WeakClass:
    """A weak classifier: its classes on the training rows, and what makes them (nodes of a tree, or an estimator)."""

    codes: IntArray
    nodes: tuple[tuple[Node, int], ...] = ()  # node and, for a leaf, its class
    model: Any = None

    def tree(self, alpha: float, n_classes: int) -> list[Node]:
        """The nodes with what they add to the decision: ±α, or α and −α/(K − 1) for K classes."""
        found = []
        for node, code in self.nodes:
            if code < 0:
                found.append(Node(**{**vars(node), "value": np.zeros(_width(n_classes))}))
            else:
                found.append(Node(value=class_votes(code, n_classes) * alpha))
        return found


@dataclass(frozen=True)
class WeakNumber:
    """A weak regression: its values on the training rows, and what makes them."""

    values: FloatArray
    nodes: tuple[Node, ...] = ()
    gains: tuple[tuple[int, float], ...] = ()
    model: Any = None


def _width(n_classes: int) -> int:
    return 1 if n_classes == 2 else n_classes


def class_votes(code: int, n_classes: int) -> FloatArray:
    """±1 for two classes, else 1 for the class and −1/(K − 1) for the others."""
    if n_classes == 2:
        return np.array([2.0 * code - 1.0])
    votes = np.full(n_classes, -1.0 / (n_classes - 1))
    votes[code] = 1.0
    return votes


class StumpWeak:
    """Stumps: one split of one column, found in one pass over columns that were sorted once."""

    def __init__(self, columns: SortedColumns, criterion: str = "gini") -> None:
        self.columns, self.criterion = columns, criterion

    def classify(self, v: FloatArray, codes: IntArray, n_classes: int) -> WeakClass:
        """The best stump for classes with weights v; the larger class everywhere where no column splits."""
        columns = self.columns
        if n_classes == 2:
            s = np.where(codes == 1, v, -v)
            split = columns.error(v, s) if self.criterion == "error" else columns.square(v, s)
        else:
            split = columns.classes(v, codes, n_classes, self.criterion)
        if split is None:
            code = int(np.argmax(np.bincount(codes, weights=v, minlength=n_classes)))
            return WeakClass(np.full(len(v), code), ((Node(), code),))
        left = np.bincount(codes[split.left], weights=v[split.left], minlength=n_classes)
        right = np.bincount(codes[~split.left], weights=v[~split.left], minlength=n_classes)
        a, b = int(np.argmax(left)), int(np.argmax(right))
        if n_classes == 2 and self.criterion == "error":  # (feature, threshold, sign): the sides differ
            a = int(left[1] - left[0] > right[1] - right[0])
            b = 1 - a
        return WeakClass(np.where(split.left, a, b), ((split.node(), -1), (Node(), a), (Node(), b)))

    def regress(self, z: FloatArray, v: FloatArray) -> WeakNumber:
        """The stump with the least Σ v (z − φ)²."""
        vz = v * z
        split = self.columns.square(v, vz)
        if split is None:
            mean = float(vz.sum() / v.sum())
            return WeakNumber(np.full(len(z), mean), (Node(value=mean),))
        a, b = (_mean(vz, v, rows) for rows in (split.left, ~split.left))
        gain = _gain(vz, v, split)
        nodes = (split.node(), Node(value=a), Node(value=b))
        return WeakNumber(np.where(split.left, a, b), nodes, ((split.feature, gain),))


def _mean(vz: FloatArray, v: FloatArray, rows: Any) -> float:
    return float(vz[rows].sum() / v[rows].sum())


def _gain(vz: FloatArray, v: FloatArray, split: Split) -> float:
    parts = [(float(vz[rows].sum()), float(v[rows].sum())) for rows in (split.left, ~split.left)]
    whole = (parts[0][0] + parts[1][0]) ** 2 / (parts[0][1] + parts[1][1])
    return sum(s * s / w for s, w in parts) - whole


class TreeWeak:
    """Least-squares trees of some depth on binned columns."""

    def __init__(self, columns: BinnedColumns, max_depth: int, min_samples_leaf: int = 1) -> None:
        self.grower = Grower(
            columns, max_depth=max_depth, max_leaves=1 << min(max_depth, 10), least_rows=min_samples_leaf
        )

    def regress(self, z: FloatArray, v: FloatArray) -> WeakNumber:
        """The tree, grown by greedy splits, for Σ v (z − φ)²."""
        grown = self.grower.grow(-v * z, v)
        return WeakNumber(grown.spread(), tuple(grown.nodes()), tuple(grown.gains()))


class ModelWeak:
    """Any scikit-learn estimator whose `fit` takes sample_weight."""

    def __init__(self, estimator: Any, X: Any) -> None:
        from sklearn.utils.validation import has_fit_parameter

        if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
            raise OptionError(f"estimator must be None or an estimator of scikit-learn's kind, not {estimator!r:.80}")
        if not has_fit_parameter(estimator, "sample_weight"):
            raise OptionError(f"{type(estimator).__name__} does not take sample_weight, which boosting needs")
        self.estimator, self.X = estimator, X

    def _fitted(self, y: Any, v: FloatArray) -> Any:
        from sklearn.base import clone

        return clone(self.estimator).fit(self.X, y, sample_weight=v)

    def classify(self, v: FloatArray, codes: IntArray, n_classes: int) -> WeakClass:
        """A clone of the estimator, fitted to the classes with weights v."""
        model = self._fitted(codes, v)
        return WeakClass(np.asarray(model.predict(self.X), dtype=np.int64), model=model)

    def regress(self, z: FloatArray, v: FloatArray) -> WeakNumber:
        """A clone of the estimator, fitted to z with weights v."""
        model = self._fitted(z, v)
        return WeakNumber(np.asarray(model.predict(self.X), dtype=np.float64).ravel(), model=model)


class ModelSum:
    """f(x) = base + Σ weight · prediction, over fitted estimators: as `TreeSum`, where the parts are not trees."""

    def __init__(
        self, models: Sequence[Any], weights: Sequence[float], outputs: Sequence[int], base: Any, n_classes: int = 0
    ) -> None:
        self.models, self.weights, self.outputs = list(models), list(weights), list(outputs)
        self.base, self.n_classes = np.atleast_1d(np.asarray(base, dtype=np.float64)), n_classes

    @property
    def n_trees(self) -> int:
        """The number of parts."""
        return len(self.models)

    def _part(self, X: Any, t: int, out: FloatArray) -> None:
        found = np.asarray(self.models[t].predict(X))
        if self.n_classes:
            table = np.array([class_votes(code, self.n_classes) for code in range(self.n_classes)])
            out += self.weights[t] * table[found.astype(np.int64)]
        else:
            out[:, self.outputs[t]] += self.weights[t] * found.ravel()

    def staged(self, X: Any, *, per_stage: int = 1, each: bool = True) -> Iterator[FloatArray]:
        """f(x) after each `per_stage` parts; with each=False only at the end."""
        out = np.tile(self.base, (len(X), 1))
        for t in range(self.n_trees):
            self._part(X, t, out)
            if each and (t + 1) % per_stage == 0:
                yield out.copy()
        if not each:
            yield out

    def scores(self, X: Any) -> FloatArray:
        """f(x) of every row, (n, outputs)."""
        *_, last = self.staged(X, each=False)
        return last

    def first(self, n: int) -> ModelSum:
        """The sum of the first parts."""
        return ModelSum(self.models[:n], self.weights[:n], self.outputs[:n], self.base, self.n_classes)

    def breakpoints(self, feature: int) -> FloatArray:
        """Not known: the parts are not trees."""
        raise ModelError("the weak learners are not trees: there are no thresholds")
