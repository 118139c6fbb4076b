"""Kernels of words (strings, or sequences of anything hashable) and of graphs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gramgraph.kernels.base import Cotangent, Kernel, KernelError, Pull, parameter
from gramgraph.kernels.discrete import encode
from gramgraph.kernels.parameters import is_whole
from gramgraph.typing import Array, FloatArray, IntArray

Word: TypeAlias = Sequence[Hashable]


@dataclass(frozen=True, eq=False, repr=False)
class _WordKernel(Kernel):
    """Inputs are lists of strings, or of tuples of letters."""

    def prepare(self, X: Any) -> list[Word]:
        """A list of words."""
        if isinstance(X, str):
            raise KernelError(f"{type(self).__name__}: expected a sequence of words, got one string, {X[:20]!r}.")
        if hasattr(X, "to_numpy"):
            X = X.to_numpy()
        if isinstance(X, np.ndarray):
            X = (X[:, 0] if X.ndim == 2 and X.shape[1] == 1 else X).tolist()
        words: list[Word] = []
        for i, word in enumerate(X):
            if isinstance(word, list):
                word = tuple(word)
            if not isinstance(word, (str, bytes, tuple)):
                raise KernelError(
                    f"{type(self).__name__}: expected words, strings or sequences of letters; entry {i} is {word!r}."
                )
            words.append(word)
        return words

    def _no_inputs(self, inputs: bool) -> None:
        if inputs:
            raise KernelError(f"{type(self).__name__}: its inputs are words, so there is no gradient by them.")


def _packed(words: Sequence[Word], known: dict[Hashable, int]) -> tuple[IntArray, IntArray]:
    """Letters as codes in one array, and where the words end."""
    codes = np.array([known.setdefault(c, len(known)) for word in words for c in word], dtype=np.int64)
    ends = np.concatenate([[0], np.cumsum([len(word) for word in words])]).astype(np.int64)
    return codes, ends


def _pair(X: list[Word], Y: list[Word] | None) -> tuple[IntArray, IntArray, IntArray, IntArray, bool]:
    known: dict[Hashable, int] = {}
    x, x_ends = _packed(X, known)
    y, y_ends = (x, x_ends) if Y is None else _packed(Y, known)
    return x, x_ends, y, y_ends, Y is None


def _whole(value: Any, name: str) -> int:
    if not is_whole(value) or value < 1:
        raise KernelError(f"{name}: expected a whole number ≥ 1, got {value!r}.")
    return int(value)


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(_WordKernel):
    """k(s, t) = Σ_u count(u in s) · count(u in t) over all pieces u of `length` letters in a row.

    `blended=True` counts pieces of 1 to `length` letters. Cost: the letters, and a sparse product.

    Parameters
    ----------
    length : letters of a piece.
    blended : whether shorter pieces count, too.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Spectrum(length=2).gram(["banana"], ["banana", "bandana", "x"])
    array([[9., 7., 0.]])
    """

    length: int = 3
    blended: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "length", _whole(self.length, "Spectrum.length"))

    def _counts(self, X: list[Word], known: dict[Word, int]) -> tuple[Array, Array, int]:
        lengths = range(1, self.length + 1) if self.blended else (self.length,)
        rows, columns = [], []
        for i, word in enumerate(X):
            for k in lengths:
                for start in range(len(word) - k + 1):
                    rows.append(i)
                    columns.append(known.setdefault(word[start : start + k], len(known)))
        return np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64), len(X)

    def _matrices(self, *sides: list[Word]) -> list[Any]:
        from scipy import sparse

        known: dict[Word, int] = {}
        found = [self._counts(X, known) for X in sides]
        size = max(1, len(known))
        return [sparse.coo_array((np.ones(len(r)), (r, c)), shape=(n, size)).tocsr() for r, c, n in found]

    def _diag(self, X: list[Word]) -> FloatArray:
        (A,) = self._matrices(X)
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()

    def _gram(self, X: list[Word], Y: list[Word] | None) -> FloatArray:
        A, *rest = self._matrices(X) if Y is None else self._matrices(X, Y)
        B = rest[0] if rest else A
        K: FloatArray = (A @ B.T).toarray()
        return K

    def _pullback(self, X: list[Word], Y: list[Word] | None, inputs: bool) -> tuple[FloatArray, Pull]:
        self._no_inputs(inputs)
        return self._gram(X, Y), lambda bar: self.cotangent({})


@dataclass(frozen=True, eq=False, repr=False)
class Subsequence(_WordKernel):
    """k(s, t) = Σ_u Σ_{places of u in s} Σ_{places of u in t} decay^(span in s + span in t), |u| = length.

    u runs over subsequences, gaps allowed; a place's span is the distance from its first to its last letter, both
    counted. `decay` in (0, 1) makes gaps cost. `.normalized()` takes out the lengths of the words. A dynamic program,
    O(length · |s| · |t|) a pair.

    Parameters
    ----------
    length : letters of a piece.
    decay : in (0, 1), the price of a letter of the span.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> round(float(Subsequence(length=2, decay=0.5).gram(["cat"], ["car"])[0, 0]), 6)  # only "ca": 0.5⁴
    0.0625
    """

    length: int = 3
    decay: float = parameter(0.5, bounds=(1e-3, 1.0 - 1e-6), transform="logit")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "length", _whole(self.length, "Subsequence.length"))

    def _diag(self, X: list[Word]) -> FloatArray:
        from gramgraph._numerics.gram.strings import subsequence_diag

        out = np.zeros(len(X))
        subsequence_diag(*_packed(X, {}), self.length, self.decay, out)
        return out

    def _pullback(self, X: list[Word], Y: list[Word] | None, inputs: bool) -> tuple[FloatArray, Pull]:
        from gramgraph._numerics.gram.strings import subsequence_gram, subsequence_slope

        self._no_inputs(inputs)
        pair = _pair(X, Y)
        K = np.zeros((len(X), len(X if Y is None else Y)))
        subsequence_gram(*pair, self.length, self.decay, K)

        def pull(bar: FloatArray) -> Cotangent:
            D = np.zeros_like(K)
            subsequence_slope(*pair, self.length, self.decay, D)
            return self.cotangent({"decay": np.vdot(bar, D)})

        return K, pull


@dataclass(frozen=True, eq=False, repr=False)
class EditDistance(_WordKernel):
    """k(s, t) = exp(−γ d(s, t)), d the edit distance: insertions, deletions and replacements.

    Not always positive definite (`positive_definite` is False): a large enough γ makes a given Gram matrix so.
    Cost O(|s| · |t|) a pair.

    Parameters
    ----------
    gamma : γ.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> EditDistance(gamma=1.0).distances(["kitten"], ["sitting", "kitten"])
    array([[3., 0.]])
    """

    positive_definite = False

    gamma: float = parameter(1.0)

    def distances(self, X: Any, Y: Any | None = None, /) -> FloatArray:
        """d (n, m)."""
        from gramgraph._numerics.gram.strings import edit_distances

        first, second = self._both(X, Y)
        D = np.zeros((len(first), len(first if second is None else second)))
        edit_distances(*_pair(first, second), D)
        return D

    def _diag(self, X: list[Word]) -> FloatArray:
        return np.ones(len(X))

    def _pullback(self, X: list[Word], Y: list[Word] | None, inputs: bool) -> tuple[FloatArray, Pull]:
        self._no_inputs(inputs)
        D = self.distances(X, Y)
        K = np.exp(-self.gamma * D)
        return K, lambda bar: self.cotangent({"gamma": -np.vdot(bar * K, D)})


# ------------------------------------------------------------------------------------------------------ graphs


class Graph(NamedTuple):
    """A graph as the random-walk kernel sees it.

    Parameters
    ----------
    adjacency : (v, v) weights of the edges.
    labels : of the nodes, or None.

    Examples
    --------
    >>> Graph(np.array([[0.0, 1.0], [1.0, 0.0]])).adjacency.shape
    (2, 2)
    """

    adjacency: FloatArray  # (v, v), entries ≥ 0: weights of edges
    labels: Array | None = None  # (v,) labels of nodes

    @property
    def radius(self) -> float:
        """Largest absolute eigenvalue of the adjacency matrix."""
        A = self.adjacency
        found = np.linalg.eigvalsh(A) if np.array_equal(A, A.T) else np.linalg.eigvals(A)
        return float(np.abs(found).max(initial=0.0))


def _as_graph(item: Any, i: int) -> Graph:
    if isinstance(item, Graph):
        return item
    matrix, labels = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
    A = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise KernelError(f"RandomWalk: expected square adjacency matrices; graph {i} has shape {A.shape}.")
    if not np.isfinite(A).all() or A.min() < 0:
        raise KernelError(f"RandomWalk: expected finite edge weights ≥ 0; graph {i} has others.")
    if labels is None:
        return Graph(A)
    named = np.empty(len(A), dtype=object)
    if len(labels) != len(A):
        raise KernelError(f"RandomWalk: graph {i} has {len(A)} nodes and {len(labels)} labels.")
    for v, label in enumerate(labels):
        named[v] = label
    return Graph(A, named)


@dataclass(frozen=True, eq=False, repr=False)
class RandomWalk(Kernel):
    """k(G, G′) = Σ_ℓ decay^ℓ · (weight of common walks of ℓ steps) / (v v′)²: the geometric random-walk kernel.

    Inputs are adjacency matrices (v, v), or pairs (adjacency, labels of nodes): then only walks through equal labels
    count. With W = A ⊗ A′ (restricted to pairs of equal labels) it is pᵀ(I − decay·W)⁻¹p, p = 1/(v v′); the product
    graph is never built: a step is X ↦ A X A′ᵀ, and the system is solved by conjugate gradients (undirected) or by the
    fixed point x = p + decay·W x (directed). The sum converges for decay < 1 / ρ², ρ the largest spectral radius;
    otherwise an error says so. Cost O(v v′(v + v′)) a step.

    Parameters
    ----------
    decay : weight of one more step or letter.
    tol : relative residual at which the solver stops.
    max_iter : most steps of the solver.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> triangle, path = np.ones((3, 3)) - np.eye(3), np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0.0]])
    >>> RandomWalk(decay=0.1).gram([triangle, path]).round(4)
    array([[0.1852, 0.153 ],
           [0.153 , 0.1363]])
    """

    decay: float = parameter(0.05, bounds=(1e-6, 1.0))
    tol: float = 1e-12
    max_iter: int = 10_000

    def prepare(self, X: Any) -> list[Graph]:
        """A list of graphs."""
        if isinstance(X, Graph) or (isinstance(X, np.ndarray) and X.ndim == 2):
            raise KernelError("RandomWalk: expected a sequence of graphs, got a single matrix. Write [matrix].")
        graphs = [_as_graph(item, i) for i, item in enumerate(X)]
        if len({g.labels is None for g in graphs}) > 1:
            raise KernelError("RandomWalk: expected labels of nodes for all graphs or for none.")
        return graphs

    def _check_sum(self, graphs: list[Graph]) -> None:
        radius = max((g.radius for g in graphs), default=0.0)
        if self.decay * radius * radius >= 1.0 - 1e-12:  # the radius is exact to rounding only
            raise KernelError(
                f"RandomWalk: the sum over walks diverges: decay = {self.decay:.6g} is not below 1/ρ² = "
                f"{1 / radius**2:.6g}, where ρ = {radius:.6g} is the largest spectral radius. "
                f"Try: decay={0.9 / radius**2:.3g}, or adjacency matrices divided by their degrees."
            )

    def _common(self, X: list[Graph], Y: list[Graph]) -> tuple[list[IntArray], list[IntArray]] | None:
        """Codes of labels that both sides share, or None without labels."""
        found = [g.labels for g in [*X, *Y]]
        if all(labels is None for labels in found):
            return None
        if any(labels is None for labels in found):
            raise KernelError("RandomWalk: expected labels of nodes for all graphs or for none.")
        codes, _ = encode(found)
        return codes[: len(X)], codes[len(X) :]

    def _walks(self, A: FloatArray, B: FloatArray, mask: FloatArray | None) -> FloatArray:
        """x = (I − decay·W)⁻¹ p as a matrix (v, v′)."""
        p = np.full((len(A), len(B)), 1.0 / (len(A) * len(B)))
        if mask is not None:
            p *= mask
        step = _step(A, B, mask)
        if np.array_equal(A, A.T) and np.array_equal(B, B.T):
            return self._conjugate_gradients(p, step)
        x = p
        for _ in range(self.max_iter):
            new = p + self.decay * step(x)
            if np.abs(new - x).max() <= self.tol * np.abs(new).max():
                return new
            x = new
        raise self._not_converged()

    def _conjugate_gradients(self, p: FloatArray, step: Any) -> FloatArray:
        x = np.zeros_like(p)
        r, direction = p.copy(), p.copy()
        rr = start = float(np.vdot(r, r))
        for _ in range(self.max_iter):
            if rr <= self.tol**2 * start:
                return x
            image = direction - self.decay * step(direction)
            curvature = float(np.vdot(direction, image))
            if not curvature > 0.0:  # next to divergence, lost in rounding
                break
            alpha = rr / curvature
            x += alpha * direction
            r -= alpha * image
            new = float(np.vdot(r, r))
            direction = r + (new / rr) * direction
            rr = new
        raise self._not_converged()

    def _not_converged(self) -> KernelError:
        return KernelError(
            f"RandomWalk: no convergence to tol = {self.tol:g} in max_iter = {self.max_iter} steps. "
            "Try: a smaller decay, or a larger max_iter."
        )

    def _entry(self, g: Graph, h: Graph, mask: FloatArray | None, slope: bool) -> tuple[float, float]:
        """k(g, h), and its derivative by decay: yᵀW x with y = (I − decay·Wᵀ)⁻¹p."""
        A, B = g.adjacency, h.adjacency
        x = self._walks(A, B, mask)
        value = float((x if mask is None else x * mask).sum()) / x.size
        if not slope:
            return value, 0.0
        symmetric = np.array_equal(A, A.T) and np.array_equal(B, B.T)
        y = x if symmetric else self._walks(A.T, B.T, mask)
        return value, float(np.vdot(y, _step(A, B, mask)(x)))

    def _fill(self, X: list[Graph], Y: list[Graph] | None, slope: bool) -> FloatArray:
        Z = X if Y is None else Y
        self._check_sum([*X, *(Y or [])])
        codes = self._common(X, Z)
        out = np.zeros((len(X), len(Z)))
        for i in range(len(X)):
            for j in range(i if Y is None else 0, len(Z)):
                mask = None if codes is None else (codes[0][i][:, None] == codes[1][j][None, :]).astype(np.float64)
                out[i, j] = self._entry(X[i], Z[j], mask, slope)[int(slope)]
                if Y is None:
                    out[j, i] = out[i, j]
        return out

    def _diag(self, X: list[Graph]) -> FloatArray:
        return np.array([self._fill([g], None, False)[0, 0] for g in X])

    def _pullback(self, X: list[Graph], Y: list[Graph] | None, inputs: bool) -> tuple[FloatArray, Pull]:
        if inputs:
            raise KernelError("RandomWalk: its inputs are graphs, so there is no gradient by them.")
        K = self._fill(X, Y, False)
        return K, lambda bar: self.cotangent({"decay": np.vdot(bar, self._fill(X, Y, True))})


def _step(A: FloatArray, B: FloatArray, mask: FloatArray | None) -> Any:
    """x ↦ W x, one step of both walks."""

    def step(x: FloatArray) -> FloatArray:
        if mask is None:
            return A @ x @ B.T
        return mask * (A @ (mask * x) @ B.T)

    return step
