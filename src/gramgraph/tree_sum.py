"""Sums of decision trees as plain arrays: what boosting makes, and what boosted conditionals and files hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray

__all__ = ["Node", "TreeSum", "join_trees"]


@dataclass(frozen=True)
class Node:
    """One node of a tree that is being written down; a leaf has no feature.

    `goes_left` holds the categories that go to the left, where the feature has categories.
    """

    feature: int = -1
    threshold: float = 0.0
    left: int = -1
    right: int = -1
    missing_left: bool = False
    value: Any = 0.0
    goes_left: Sequence[bool] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class TreeSum:
    """f(x) = base + Σ_t value[leaf of x in tree t], one or several outputs.

    Node arrays run over all trees: `feature` (−1: a leaf), `threshold` (x ≤ threshold goes left), `left`, `right` (node
    numbers, larger than their parent's), `missing_left` (where NaN goes), `value` (nodes, m); where `set_start` is not
    negative the feature holds category codes and `sets[set_start : set_start + set_size]` says which go left. Tree t
    starts at `roots[t]` and adds to the outputs from `output[t]` on. With `single`, values of x and sums are rounded to
    single precision, as XGBoost does; with `single_inputs` only x is, as scikit-learn's trees do.

    >>> stump = TreeSum.of([[Node(0, 0.5, 1, 2), Node(value=-1.0), Node(value=1.0)]])
    >>> stump.scores(np.array([[0.2], [0.9], [np.nan]])).ravel().tolist()
    [-1.0, 1.0, 1.0]
    """

    feature: Array
    threshold: FloatArray
    left: Array
    right: Array
    missing_left: Array
    set_start: Array
    set_size: Array
    sets: Array
    value: FloatArray
    roots: Array
    output: Array
    base: FloatArray
    n_features: int
    single: bool = False
    single_inputs: bool = False

    def __post_init__(self) -> None:
        for name, kind in _TYPES.items():
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        wrong = self._faults()
        if wrong:
            raise ModelError(f"not a sum of trees: {wrong}")

    def _faults(self) -> str:
        n, m = len(self.feature), self.value.shape[1] if self.value.ndim == 2 else 0
        if any(getattr(self, name).shape != (n,) for name in _NODE_ARRAYS) or self.value.shape != (n, m) or m < 1:
            return "node arrays differ in length"
        if self.roots.ndim != 1 or self.roots.shape != self.output.shape or self.base.ndim != 1:
            return "roots and outputs do not fit together"
        if not (np.isfinite(self.value).all() and np.isfinite(self.threshold).all() and np.isfinite(self.base).all()):
            return "a number is not finite"
        inner = np.flatnonzero(self.feature >= 0)
        if (self.feature < -1).any() or (self.feature >= self.n_features).any():
            return f"a feature is outside 0 … {self.n_features - 1}"
        for side in (self.left, self.right):  # children come later: every walk ends
            if (side[inner] <= inner).any() or (side[inner] >= n).any():
                return "a child stands before its parent or nowhere"
        if len(self.roots) and not (self.roots.min() >= 0 and self.roots.max() < n):
            return "a tree starts nowhere"
        if len(self.roots) and not (self.output.min() >= 0 and self.output.max() + m <= len(self.base)):
            return "a tree adds to an output that does not exist"
        with_set = self.set_start >= 0
        if (self.set_size[with_set] < 0).any() or (
            self.set_start[with_set].astype(np.int64) + self.set_size[with_set] > len(self.sets)
        ).any():
            return "a set of categories ends nowhere"
        return ""

    @classmethod
    def of(
        cls,
        trees: Sequence[Sequence[Node]],
        *,
        outputs: Sequence[int] | None = None,
        base: Any = 0.0,
        n_features: int | None = None,
        **options: Any,
    ) -> Self:
        """Trees that are written down node by node; children are numbered within their tree."""
        nodes = [node for tree in trees for node in tree]
        starts = np.concatenate(([0], np.cumsum([len(tree) for tree in trees]))).astype(np.int64)
        shift = np.repeat(starts[:-1], [len(tree) for tree in trees])
        sizes = [0 if node.goes_left is None else len(node.goes_left) for node in nodes]
        set_starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)[:-1]
        value = np.array([np.atleast_1d(node.value) for node in nodes], dtype=np.float64).reshape(len(nodes), -1)
        feature = np.array([node.feature for node in nodes], dtype=np.int64)
        return cls(
            feature=feature,
            threshold=np.array([node.threshold for node in nodes], dtype=np.float64),
            left=np.array([node.left for node in nodes], dtype=np.int64) + shift,
            right=np.array([node.right for node in nodes], dtype=np.int64) + shift,
            missing_left=np.array([node.missing_left for node in nodes]),
            set_start=np.where([node.goes_left is not None for node in nodes], set_starts, -1),
            set_size=np.array(sizes),
            sets=np.array([bool(b) for node in nodes for b in (node.goes_left or ())], dtype=np.uint8),
            value=value if value.shape[1] else np.zeros((len(nodes), 1)),
            roots=starts[:-1],
            output=np.zeros(len(trees)) if outputs is None else np.array(outputs),
            base=np.atleast_1d(np.asarray(base, dtype=np.float64)),
            n_features=int(feature.max(initial=0)) + 1 if n_features is None else n_features,
            **options,
        )

    def __repr__(self) -> str:
        return f"TreeSum({self.n_trees} trees, {len(self.base)} output{'s' if len(self.base) > 1 else ''})"

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.roots)

    def _arrays(self) -> tuple[Array, ...]:
        return (*(getattr(self, name) for name in _NODE_ARRAYS), self.sets)

    def _read(self, X: Any) -> FloatArray:
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ModelError(f"X must have {self.n_features} columns; its shape is {X.shape}")
        if self.single or self.single_inputs:
            X = X.astype(np.float32)
        return np.ascontiguousarray(X, dtype=np.float64)

    def scores(self, X: Any) -> FloatArray:
        """f(x) of every row, (n, outputs)."""
        *_, last = self.staged(X, each=False)
        return last

    def staged(self, X: Any, *, per_stage: int = 1, each: bool = True) -> Iterator[FloatArray]:
        """f(x) after each `per_stage` trees (the same array, changed); with each=False only at the end."""
        from gramgraph._numerics.boosting.scoring import add_scores

        X = self._read(X)
        start = self.base.astype(np.float32) if self.single else self.base
        out = np.tile(start, (len(X), 1))
        step = per_stage if each else max(self.n_trees, 1)
        for first in range(0, self.n_trees, step):
            stop = min(first + step, self.n_trees)
            add_scores(X, *self._arrays(), self.value, self.roots, self.output, first, stop, out)
            if each:
                yield out.astype(np.float64)
        if not each:
            yield out.astype(np.float64)

    def leaves(self, X: Any) -> IntArray:
        """The node number of the leaf of every row in every tree, (n, trees)."""
        from gramgraph._numerics.boosting.scoring import find_leaves

        X = self._read(X)
        out = np.empty((len(X), self.n_trees), dtype=np.int64)
        find_leaves(X, *self._arrays(), self.roots, out)
        return out

    def breakpoints(self, feature: int) -> FloatArray:
        """Every threshold of a feature, rising: between them f is constant in it."""
        here = (self.feature == feature) & (self.set_start < 0)
        return np.unique(self.threshold[here])

    def first(self, n_trees: int) -> TreeSum:
        """The sum of the first trees."""
        if n_trees >= self.n_trees:
            return self
        end = int(self.roots[n_trees]) if n_trees else 0
        cut: dict[str, Any] = {name: getattr(self, name)[:end] for name in (*_NODE_ARRAYS, "value")}
        return replace(self, **cut, roots=self.roots[:n_trees], output=self.output[:n_trees])

    def scaled(self, factor: Any, *, base: Any = None) -> TreeSum:
        """factor · f, with another base where one is given."""
        new = self.base * factor if base is None else np.atleast_1d(np.asarray(base, dtype=np.float64))
        return replace(self, value=self.value * factor, base=new)

    def to_fields(self) -> dict[str, Any]:
        """Plain lists of numbers that JSON can hold."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in found.items()}

    @classmethod
    def from_fields(cls, given: Mapping[str, Any]) -> Self:
        """What `to_fields` wrote."""
        known = {field.name for field in fields(cls)}
        if not isinstance(given, Mapping) or set(given) - known or known - set(given) - {"single", "single_inputs"}:
            raise ModelError(f"the fields of a sum of trees are {', '.join(sorted(known))}")
        try:
            found: dict[str, Any] = {
                name: np.array(v, dtype=_TYPES[name]) if name in _TYPES else v for name, v in given.items()
            }
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"not a sum of trees: {error}") from None
        if type(found["n_features"]) is not int or found["n_features"] < 0:
            raise ModelError("n_features of a sum of trees must be a whole number")
        if found["value"].ndim == 1 and not len(found["value"]):
            found["value"] = found["value"].reshape(0, 1)
        return cls(**found)


_NODE_ARRAYS = ("feature", "threshold", "left", "right", "missing_left", "set_start", "set_size")
_TYPES: dict[str, Any] = {
    "feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "missing_left": np.uint8,
    "set_start": np.int32, "set_size": np.int32, "sets": np.uint8, "value": np.float64, "roots": np.int32,
    "output": np.int32, "base": np.float64,
}  # fmt: skip


def join_trees(parts: Sequence[TreeSum], base: Any) -> TreeSum:
    """All trees of several sums after each other, over a new base."""
    if not parts:
        raise ModelError("at least one sum of trees is needed")
    if len(parts) == 1:
        return replace(parts[0], base=np.atleast_1d(np.asarray(base, dtype=np.float64)))
    nodes = np.concatenate(([0], np.cumsum([len(p.feature) for p in parts])))[:-1]
    flags = np.concatenate(([0], np.cumsum([len(p.sets) for p in parts])))[:-1]

    def joined(name: str, shifts: Any = None) -> Array:
        arrays = [getattr(p, name) for p in parts]
        if shifts is None:
            return np.concatenate(arrays)
        return np.concatenate([a + shift for a, shift in zip(arrays, shifts, strict=True)])

    changed: dict[str, Any] = {
        name: joined(name) for name in ("feature", "threshold", "missing_left", "set_size", "sets", "value")
    }
    changed |= {name: joined(name, nodes) for name in ("left", "right", "roots")}
    starts = [np.where(p.set_start >= 0, p.set_start + at, -1) for p, at in zip(parts, flags, strict=True)]
    return replace(
        parts[0],
        **changed,
        set_start=np.concatenate(starts),
        output=joined("output"),
        base=np.atleast_1d(np.asarray(base, dtype=np.float64)),
    )
