"""Kernels of labels, rows of labels, and sets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import did_you_mean, listing
from gramgraph.kernels.base import Cotangent, Kernel, KernelError, Pull, parameter
from gramgraph.kernels.dot_product import psd_factor
from gramgraph.typing import FloatArray, IntArray


def as_labels(X: Any, *, name: str = "X") -> Any:
    """Labels as an array: (n,) or, for rows of labels, (n, d). Anything hashable is a label."""
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if not isinstance(X, np.ndarray):
        items = list(X)
        rows = bool(items) and all(isinstance(item, (list, np.ndarray)) for item in items)
        if rows and len({len(item) for item in items}) > 1:
            raise KernelError(f"{name}: expected rows of labels of one length; they have several.")
        plain = {type(item) for item in items} if not rows else {type(v) for item in items for v in item}
        X = np.empty((len(items), len(items[0])) if rows else len(items), dtype=object)
        for i, item in enumerate(items):  # one by one: a tuple may be a label, NumPy would spread it
            X[i] = item
        if len(plain) == 1 and next(iter(plain)) in (int, float, bool, str):
            X = np.array(X.tolist())
    if X.ndim not in (1, 2):
        raise KernelError(f"{name}: expected labels (n,) or rows of labels (n, d); got shape {X.shape}.")
    missing = X.dtype.kind == "f" and bool(np.isnan(X).any())
    if missing or (X.dtype.kind == "O" and any(v is None or v != v for v in X.ravel())):
        raise KernelError(f"{name}: expected labels; one of them is missing (None or NaN).")
    return X


def encode(values: Sequence[Any]) -> tuple[list[IntArray], int]:
    """Arrays of labels as codes 0, 1, … in common, and how many there are; equal labels have equal codes."""
    flat = [np.asarray(v).ravel() for v in values]
    kinds = {v.dtype.kind for v in flat}
    if kinds <= set("iufb") or kinds <= {"U"}:
        found, codes = np.unique(np.concatenate(flat), return_inverse=True)
        size = len(found)
    else:
        known: dict[Hashable, int] = {}
        items = [v for part in flat for v in part.tolist()]
        codes, size = np.array([known.setdefault(v, len(known)) for v in items], dtype=np.int64), 0
        size = len(known)
    ends = np.cumsum([v.size for v in flat])[:-1]
    parts = np.split(codes.astype(np.int64), ends)
    return [part.reshape(np.shape(v)) for part, v in zip(parts, values, strict=True)], size


def _codes(X: Any, Y: Any | None) -> tuple[IntArray, IntArray]:
    found, _ = encode([X] if Y is None else [X, Y])
    return found[0], found[-1]


@dataclass(frozen=True, eq=False, repr=False)
class Delta(Kernel):
    """k(x, x′) = 1 where x = x′, else 0. Labels of any kind; rows of a matrix are equal where all of them is. O(n m).

    Parameters
    ----------
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Delta().gram(["red", "blue", "red"])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    def prepare(self, X: Any) -> Any:
        """Labels (n,) or rows of labels (n, d)."""
        return as_labels(X)

    def _diag(self, X: Any) -> FloatArray:
        return np.ones(len(X))

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        a, b = _codes(X, Y)
        if a.ndim == 1:
            return (a[:, None] == b[None, :]).astype(np.float64)
        same = np.ones((len(a), len(b)), dtype=bool)
        for j in range(a.shape[1]):
            same &= a[:, j, None] == b[None, :, j]
        return same.astype(np.float64)

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        _no_inputs(self, inputs)
        return self._gram(X, Y), lambda bar: self.cotangent({})


def _no_inputs(kernel: Kernel, inputs: bool) -> None:
    if inputs:
        raise KernelError(f"{type(kernel).__name__}: its inputs are not numbers, so there is no gradient by them.")


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(Kernel):
    """k(a, b) = S[a, b] with S = L Lᵀ (+ diag): a learned likeness of categories.

    `factor` is L, a matrix (c, r) with one row a category (a vector is one column); `own` > 0 adds to the diagonal what
    a category shares with no other. `Categorical.from_similarity(categories, S)` takes a given S. Cost O(n m).

    Parameters
    ----------
    categories : the labels, in the order of the rows of L.
    factor : L, a matrix or a vector.
    own : what a category shares with no other.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> k = Categorical.from_similarity(["low", "mid", "high"], [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]])
    >>> k.gram(["low"], ["low", "mid", "high"]).round(6) + 0.0
    array([[1. , 0.5, 0. ]])
    """

    categories: tuple[Hashable, ...]
    factor: FloatArray = parameter(bounds=(-1e5, 1e5), transform="identity", max_ndim=2)
    own: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "categories", tuple(self.categories))
        if len(set(self.categories)) != len(self.categories):
            raise KernelError(f"Categorical.categories: expected different labels, got {listing(self.categories)}.")
        if np.ndim(self.factor) == 0 or len(self.factor) != len(self.categories):
            raise KernelError(
                f"Categorical.factor: expected one row for each of {len(self.categories)} categories, "
                f"got shape {np.shape(self.factor)}."
            )
        if self.own is not None and not (np.isfinite(self.own) and self.own >= 0):
            raise KernelError(f"Categorical.own: expected a number ≥ 0, got {self.own!r}.")

    @classmethod
    def from_similarity(cls, categories: Iterable[Hashable], similarity: Any) -> Categorical:
        """From a symmetric positive semi-definite matrix of likeness, one row and column a category."""
        return cls(tuple(categories), psd_factor(similarity, "similarity"))

    @property
    def similarity(self) -> FloatArray:
        """S (c, c)."""
        L = self.factor.reshape(len(self.categories), -1)
        S: FloatArray = L @ L.T
        S.flat[:: len(S) + 1] += self.own or 0.0
        return S

    def prepare(self, X: Any) -> Any:
        """Labels (n,), each one of the categories."""
        labels = as_labels(X)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise KernelError(f"Categorical: expected one label per point, shape (n,); got shape {labels.shape}.")
        self._positions(labels)
        return labels

    def _positions(self, labels: Any) -> IntArray:
        at = {label: i for i, label in enumerate(self.categories)}
        try:
            return np.array([at[v] for v in labels.tolist()], dtype=np.int64)
        except KeyError as error:
            word = error.args[0]
            hint = did_you_mean(word, [str(label) for label in self.categories])
            raise KernelError(f"{word!r} is not a category. Categories: {listing(self.categories)}.{hint}") from None

    def _diag(self, X: Any) -> FloatArray:
        return np.diag(self.similarity)[self._positions(X)]

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        _no_inputs(self, inputs)
        a = self._positions(X)
        b = a if Y is None else self._positions(Y)

        def pull(bar: FloatArray) -> Cotangent:
            c = len(self.categories)
            by_rows = np.zeros((c, len(b)))
            np.add.at(by_rows, a, bar)
            bar_S = np.zeros((c, c))
            np.add.at(bar_S.T, b, by_rows.T)
            by_factor = (bar_S + bar_S.T) @ self.factor.reshape(c, -1)
            return self.cotangent({"factor": by_factor.reshape(self.factor.shape)})

        return self.similarity[np.ix_(a, b)], pull


@dataclass(frozen=True, eq=False, repr=False)
class Hamming(Kernel):
    """k(x, x′) = exp(−Σ_j γ_j [x_j ≠ x′_j]) on rows of labels; γ is one number, or one per column. Cost O(n m d).

    It is a product of one kernel per column, 1 for equal and e^−γ for different labels, so it is positive definite.

    Parameters
    ----------
    gamma : γ.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Hamming(gamma=np.log(2)).gram([["a", "b", "c"]], [["a", "b", "c"], ["a", "x", "y"]])
    array([[1.  , 0.25]])
    """

    gamma: float | FloatArray = parameter(1.0, max_ndim=1)

    def prepare(self, X: Any) -> Any:
        """Rows of labels (n, d); words of one length are rows of letters."""
        if not hasattr(X, "dtype") and not hasattr(X, "to_numpy"):
            X = [list(row) if isinstance(row, (str, tuple)) else row for row in X]
        elif isinstance(X, np.ndarray) and X.ndim == 1:
            X = [list(row) for row in X.tolist()] if X.dtype.kind in "UO" else X[:, None]
        labels = as_labels(X)
        if labels.ndim != 2:
            raise KernelError(f"Hamming: expected rows of labels, shape (n, d); got shape {labels.shape}.")
        if np.ndim(self.gamma) and labels.shape[1] != np.size(self.gamma):
            raise KernelError(
                f"Hamming: gamma has {np.size(self.gamma)} numbers, one per column; X has shape {labels.shape}."
            )
        return labels

    def _diag(self, X: Any) -> FloatArray:
        return np.ones(len(X))

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        _no_inputs(self, inputs)
        Z = X if Y is None else Y
        columns = [_codes(X[:, j], Z[:, j]) for j in range(X.shape[1])]
        gamma = np.broadcast_to(self.gamma, len(columns))
        exponent = np.zeros((len(X), len(Z)))
        for g, (a, b) in zip(gamma, columns, strict=True):
            exponent -= g * (a[:, None] != b[None, :])
        K = np.exp(exponent)

        def pull(bar: FloatArray) -> Cotangent:
            W = bar * K
            if np.ndim(self.gamma) == 0:
                return self.cotangent({"gamma": np.vdot(W, exponent) / self.gamma})
            return self.cotangent({"gamma": np.array([-W[a[:, None] != b[None, :]].sum() for a, b in columns])})

        return K, pull


@dataclass(frozen=True, eq=False, repr=False)
class SetKernel(Kernel):
    """k(A, B) = (1 + w)^|A ∩ B| on finite sets; w = 1 gives 2^|A ∩ B|, the number of common subsets.

    Weighted: k(A, B) = Π_{a ∈ A ∩ B} (1 + w_a), with `weight` a vector and `elements` the elements it speaks of, in
    the same order. It is the inner product of the indicators of subsets S, each with weight Π_{a ∈ S} √w_a.
    Cost O(n m) and the sizes of the sets (sparse).

    Parameters
    ----------
    weight : w, one number or one an element.
    elements : the elements that `weight` speaks of.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> SetKernel().gram([{"a", "b"}, {"b", "c", "d"}])
    array([[4., 2.],
           [2., 8.]])
    """

    weight: float | FloatArray = parameter(1.0, max_ndim=1)
    elements: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.elements is not None:
            object.__setattr__(self, "elements", tuple(self.elements))
        expected = np.shape(self.weight)[0] if np.ndim(self.weight) else None
        found = None if self.elements is None else len(set(self.elements))
        if expected != found:
            raise KernelError(
                "SetKernel: a vector of weights needs `elements`, as many different ones; got "
                f"{'one number' if expected is None else expected} and {found} elements."
            )

    def prepare(self, X: Any) -> list[frozenset[Hashable]]:
        """A list of frozen sets."""
        if isinstance(X, (str, set, frozenset, dict)):
            raise KernelError(f"SetKernel: expected a sequence of sets, got one {type(X).__name__}.")
        sets = []
        for i, item in enumerate(X):
            if isinstance(item, str) or not isinstance(item, Iterable):
                raise KernelError(f"SetKernel: expected a sequence of sets; entry {i} is {item!r}.")
            sets.append(item if isinstance(item, frozenset) else frozenset(item))
        known = None if self.elements is None else set(self.elements)
        for i, item in enumerate(sets):
            if known is not None and not item <= known:
                word = min(item - known, key=repr)
                raise KernelError(
                    f"SetKernel: {word!r} in set {i} has no weight. Elements: {listing(self.elements or ())}."
                )
        return sets

    def _indicators(self, X: list[frozenset[Hashable]], Y: list[frozenset[Hashable]] | None) -> tuple[Any, Any]:
        """Sparse 0/1 matrices, one row per set, one column per element."""
        from scipy import sparse

        order = {e: i for i, e in enumerate(self.elements or ())}
        for item in [*X, *(Y or [])]:
            for e in item:  # the order of new columns does not reach the result: counts and sums of equal terms
                order.setdefault(e, len(order))
        rows = []
        for sets in (X, X if Y is None else Y):
            ends = np.concatenate([[0], np.cumsum([len(item) for item in sets])]).astype(np.int64)
            at = np.array([i for item in sets for i in sorted(order[e] for e in item)], dtype=np.int64)
            rows.append(sparse.csr_array((np.ones(len(at)), at, ends), shape=(len(sets), len(order))))
        return rows[0], rows[1]

    def _diag(self, X: list[frozenset[Hashable]]) -> FloatArray:
        if self.elements is None:
            return self._raised(np.array([len(item) for item in X], dtype=np.float64))
        factors = dict(zip(self.elements, np.log1p(self.weight), strict=True))
        return np.exp([sum(sorted(factors[e] for e in item)) for item in X])

    def _raised(self, counts: FloatArray) -> FloatArray:
        """(1 + w)^counts."""
        if counts.size and counts.max() * np.log1p(self.weight) > 700.0:
            raise KernelError(
                f"SetKernel: (1 + {self.weight:g})^{int(counts.max())} is beyond the range of numbers. "
                "Try: a smaller weight."
            )
        K: FloatArray = (1.0 + self.weight) ** counts
        return K

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        _no_inputs(self, inputs)
        A, B = self._indicators(X, Y)
        if self.elements is None:
            counts = (A @ B.T).toarray()
            K = self._raised(counts)
            return K, lambda bar: self.cotangent({"weight": np.vdot(bar * K, counts) / (1.0 + self.weight)})
        from scipy import sparse

        weight = np.asarray(self.weight)
        K = np.exp((A @ sparse.diags_array(np.log1p(weight)) @ B.T).toarray())

        def pull(bar: FloatArray) -> Cotangent:
            # Σ_ij W_ij A_ie B_je, element by element: the dense (n, e) product W B against the sparse A
            WB = (B.T @ (bar * K).T).T
            return self.cotangent({"weight": np.asarray(A.multiply(WB).sum(axis=0)).ravel() / (1.0 + weight)})

        return K, pull
