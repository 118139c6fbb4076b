"""Cross-validated grids of costs and kernels: one Gram matrix serves all folds, pairs of classes and costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph._threads import in_threads
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.machines.svm.classes import class_factors, count_votes, elect, pairs_of
from gramgraph.machines.svm.kernel import ChosenKernel, gram_of_matrix
from gramgraph.machines.svm.machine import Settings
from gramgraph.machines.svm.many import Problems, pair_problems, solve_paths
from gramgraph.machines.svm.rows import GramRows
from gramgraph.typing import Array, FloatArray, IntArray

_BAND = 256  # rows of a matrix that are made at a time
_LARGE = 1 << 19  # entries from which threads are worth their start


class Grams:
    """Gram matrices of one set of points for several kernels; RBF ones share the squared distances."""

    def __init__(self, X: Any, n: int, tol: float, largest: float, n_jobs: int = 1) -> None:
        self.X, self.n, self.n_jobs = X, n, n_jobs if n * n > _LARGE else 1
        error = 3e-8 * np.sqrt(n) * largest
        self.dtype: Any = np.float32 if error < 0.1 * tol else np.float64
        self.distances: FloatArray | None = None

    def of(self, choice: ChosenKernel) -> GramRows:
        """The matrix of this kernel."""
        if choice.kind == "precomputed":
            return GramRows(np.asarray(gram_of_matrix(self.X), dtype=self.dtype))
        if choice.kind != "rbf":
            source = choice.source(self.X, self.n)
            scale = float(np.max(np.abs(source.diag), initial=0.0))
            # Entries above 1 scale the error of single precision, which was judged for a largest entry of 1.
            return GramRows(source.full(self.dtype if scale <= 1.0 else np.float64))
        from gramgraph._numerics.svm.exponents import exp_rows

        D = self._squared_distances() if self.distances is None else self.distances
        K = np.empty_like(D)

        def band(rows: slice) -> None:
            K[rows] = D[rows]
            exp_rows(K[rows], -choice.gamma)

        in_threads(band, self._bands(), self.n_jobs)
        return GramRows(K)

    def _squared_distances(self) -> FloatArray:
        Z = self.X - self.X.mean(axis=0)
        squares = np.einsum("ij,ij->i", Z, Z)
        found = self.distances = np.empty((self.n, self.n), self.dtype)

        def band(rows: slice) -> None:
            D = Z[rows] @ Z.T
            D *= -2.0
            D += squares[rows, None]
            D += squares
            found[rows] = np.maximum(D, 0.0, out=D)

        in_threads(band, self._bands(), self.n_jobs)
        np.fill_diagonal(found, 0.0)
        return found

    def _bands(self) -> list[slice]:
        """Rows that a thread works on at a time; the same for any number of threads."""
        return [slice(start, start + _BAND) for start in range(0, self.n, _BAND)]


@dataclass(frozen=True)
class Grid:
    """What all cells of the grid share: points in the order of their classes, folds, costs in growing order."""

    X: Any
    classes: Array
    label: IntArray
    weight: FloatArray
    splits: list[tuple[IntArray, IntArray]]
    class_weight: Any
    break_ties: bool
    settings: Settings
    costs: FloatArray

    @cached_property
    def grams(self) -> Grams:
        """Gram matrices, made on demand."""
        return Grams(self.X, count(self.X), self.settings.tol, float(self.costs[-1]), self.settings.n_jobs)

    @cached_property
    def folds(self) -> list[list[tuple[IntArray, FloatArray, FloatArray]]]:
        """(points, sides, weights) of the pairs of classes, for every fold."""
        return [self._pairs(train) for train, _ in self.splits]

    def _pairs(self, train: IntArray) -> list[tuple[IntArray, FloatArray, FloatArray]]:
        k = len(self.classes)
        factors = class_factors(self.class_weight, self.classes, self.label[train], self.weight[train])
        weight = self.weight * factors[self.label]
        problems = pair_problems(self.label, k, train[self.weight[train] > 0])
        found = []
        for q, (i, j) in enumerate(pairs_of(k)):
            points, side = problems.part(q)
            if len(points) < 2 or side[0] == side[-1]:  # the first class stands before the second
                raise ModelError(
                    f"A fold has training points of one of the classes {self.classes[i]!r} and {self.classes[j]!r} "
                    "only. Try: fewer folds."
                )
            found.append((points, side, weight[points]))
        return found

    def scores(self, choice: ChosenKernel, folds: list[int]) -> tuple[FloatArray, IntArray]:
        """(costs, folds) each: accuracy on the held-out points, and steps."""
        matrix = self.grams.of(choice)
        pairs = [pair for s in folds for pair in self.folds[s]]
        problems = Problems.of([(points, side) for points, side, _ in pairs])
        weight = np.concatenate([w for _, _, w in pairs])
        beta, told = solve_paths(matrix, problems, weight, self.costs, self.settings)
        n_pairs, tests = len(self.folds[0]), [self.splits[s][1] for s in folds]

        def machines(at: int) -> tuple[IntArray, FloatArray]:
            return self._machines(matrix, problems, range(at * n_pairs, (at + 1) * n_pairs), beta)

        def right(part: tuple[int, IntArray]) -> IntArray:
            at, test = part
            return self._right(matrix, *known[at], told[at * n_pairs : (at + 1) * n_pairs, :, 0], test)

        known = in_threads(machines, range(len(folds)), self.grams.n_jobs)
        parts = [(at, half) for at, test in enumerate(tests) for half in np.array_split(test, 2)]
        counts = np.array(in_threads(right, parts, self.grams.n_jobs)).reshape(len(folds), 2, -1).sum(axis=1)
        found = (counts / np.array([[len(test)] for test in tests])).T
        steps = told[:, :, 2].reshape(len(folds), n_pairs, -1).sum(axis=1).T.astype(np.int64)
        return found, steps

    def _machines(
        self, matrix: GramRows, problems: Problems, mine: range, beta: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """The points that the machines of one fold use, and their weights, (points, costs · pairs)."""
        W = np.zeros((matrix.n, len(self.costs), len(mine)), matrix.K.dtype)
        for q, problem in enumerate(mine):
            here = slice(int(problems.first[problem]), int(problems.first[problem + 1]))
            W[problems.points[here], :, q] = beta[:, here].T
        used = np.flatnonzero(W.any(axis=(1, 2)))
        return used, W[used].reshape(len(used), -1)

    def _right(self, matrix: GramRows, used: IntArray, W: FloatArray, level: FloatArray, test: IntArray) -> IntArray:
        """(costs,): how many of these points the machines of one fold, whose levels are (pairs, costs), put right."""
        D = (matrix.block(test, used) @ W).astype(np.float64)
        D = D.reshape(len(test), len(self.costs), -1) - level.T
        ballot = elect if self.break_ties else count_votes
        found = [ballot(D[:, c], len(self.classes)).argmax(axis=1) == self.label[test] for c in range(len(self.costs))]
        return np.array([np.count_nonzero(right) for right in found])
