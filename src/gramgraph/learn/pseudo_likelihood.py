"""Besag's pseudo-likelihood: Σ_v log p(x_v | its neighbors), without a partition function."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.learn.log_linear_design import Design
from gramgraph.typing import Array, FloatArray, IntArray

#: Surroundings with at most this many joint states, or as many as there are rows, are counted; larger ones are scanned.
PATTERN_CELLS = 1024
#: Places and counts of patterns that are held; variables beyond are scanned.
MAX_NUMBERS = 20_000_000
#: What a number of a product of matrices costs, beside a cell of a table that is read row by row (measured).
MATRIX_COST = 0.06
#: Numbers that are held at a time.
BLOCK = 1 << 21


class _Patterns(NamedTuple):
    """Distinct surroundings of the variables with the counts of their own states, in flat arrays."""

    variables: IntArray
    pattern_ptr: IntArray
    place_ptr: IntArray
    places: IntArray
    count_ptr: IntArray
    counts: FloatArray


class PseudoLikelihood:
    """(1/N) Σ_rows Σ_v log p(x_v | x_others) of a design, with its gradient.

    Rows in which the neighbors of a variable agree are counted once: after one pass over the data an evaluation costs
    O(Σ_v patterns · states · neighbors), whatever the number of rows. Variables whose neighbors have too many joint
    states are scanned, O(rows · edges), or, where tables are pairs and many, go through a product of matrices.

    >>> import gramgraph as gg
    >>> from gramgraph.data import code_table
    >>> from gramgraph.learn.log_linear_design import design_of_network
    >>> net = gg.MarkovNetwork(edges="a - b", states={"a": 2, "b": 2})
    >>> rows = code_table({"a": [0, 0, 1], "b": [0, 1, 1]}, net.vars)
    >>> value, gradient = PseudoLikelihood(design_of_network(net, net.vars), rows)(np.zeros(3))
    >>> round(float(value / np.log(2)), 6), gradient.round(6).tolist()
    (-2.0, [-0.333333, 0.333333, 0.666667])
    """

    def __init__(self, design: Design, table: CodedTable, counts: Counts | None = None) -> None:
        self.design = design
        self.total = table.total
        counts = Counts(table) if counts is None else counts
        sizes, limit = design.sizes, max(PATTERN_CELLS, len(table))
        free = [v for v in range(len(sizes)) if sizes[v] > 1]
        around = {v: design.blanket(v) for v in free}
        small, large, held = list[int](), list[int](), 0
        for v in free:
            cells = prod(int(sizes[u]) for u in (*around[v], v))
            needed = min(cells, len(table)) * (len(around[v]) + int(sizes[v]))
            counted = cells <= limit and held + needed <= MAX_NUMBERS
            (small if counted else large).append(v)
            held += needed if counted else 0
        self._patterns = self._count(small, around, counts)
        self._scanned = np.array(large, np.int64)
        self._rows = (table.matrix, np.ones(1) if table.weights is None else table.weights) if large else None
        self._pairs = _Pairs.of(design, self._scanned)
        self._offset_gone = np.isneginf(design.offset)

    def _count(self, variables: list[int], around: dict[int, tuple[int, ...]], counts: Counts) -> _Patterns:
        from gramgraph._numerics.undirected.pseudo_likelihood import pattern_places

        design, b = self.design, self.design.blankets
        sizes = design.sizes
        places: list[Array] = []
        found: list[Array] = []
        for v in variables:
            shape = tuple(int(sizes[u]) for u in around[v])
            table = np.asarray(counts.table((*around[v], v)), np.float64).reshape(-1, int(sizes[v]))
            kept = np.flatnonzero(table.any(axis=1))
            codes = np.stack(np.unravel_index(kept, shape), axis=1) if shape else np.zeros((len(kept), 0), np.int64)
            column = np.full(len(sizes), -1, np.int64)
            column[list(around[v])] = np.arange(len(around[v]))
            out = np.empty((len(kept), int(b.var_ptr[v + 1] - b.var_ptr[v])), np.int64)
            pattern_places(codes, column, v, b.var_ptr, b.base, b.other_ptr, b.other_idx, b.other_stride, out)
            places.append(out.reshape(-1))
            found.append(table[kept])
        return _Patterns(
            np.array(variables, np.int64),
            _starts([len(part) for part in found]),
            _starts([part.size for part in places]),
            np.concatenate(places) if places else np.zeros(0, np.int64),
            _starts([part.size for part in found]),
            np.concatenate([part.reshape(-1) for part in found]) if found else np.zeros(0),
        )

    def cells(self, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(the sum over rows of log p(x_v | others) for every variable, the gradient of all for every cell)."""
        from gramgraph._numerics.undirected.pseudo_likelihood import by_patterns, by_rows

        b, sizes = self.design.blankets, self.design.sizes
        grad, values = np.zeros(len(logs)), np.zeros(len(sizes))
        if len(self._patterns.variables):
            by_patterns(*self._patterns, b.var_ptr, b.own, sizes, logs, grad, values)
        if self._rows is not None and self._pairs is not None:
            self._pairs.add(*self._rows, logs, grad, values)
        elif self._rows is not None:
            by_rows(self._scanned, *self._rows, *b, sizes, logs, grad, values)
        return values, grad

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at these weights, per row."""
        values, grad = self.cells(self.design.log_values(weights))
        if self._offset_gone.any():
            grad[self._offset_gone] = 0.0
        return float(values.sum()) / self.total, self.design.pull(grad) / self.total


class _Pairs:
    """Scores of many variables at once, where all their tables are over one or two variables: S = bias + X A.

    X has a column for each state but the first of every neighbor, A the logarithms of the tables relative to the first
    states. `recipe` makes (bias, A) of the cells, and its transpose takes gradients back.
    """

    def __init__(self, design: Design, variables: IntArray, around: list[int], recipe: Any) -> None:
        self.variables, self.around, self.recipe, self.back = variables, around, recipe, recipe.T.tocsr()
        self.sizes = design.sizes
        self.first = _starts([int(design.sizes[v]) - 1 for v in variables])
        self.wide = sum(int(design.sizes[u]) - 1 for u in around)

    @classmethod
    def of(cls, design: Design, variables: IntArray) -> _Pairs | None:
        """None where a table has three variables or a zero, or where a scan of the rows is quicker."""
        from scipy.sparse import csr_matrix

        b, sizes = design.blankets, design.sizes
        edges = [(v, i) for v in variables.tolist() for i in range(int(b.var_ptr[v]), int(b.var_ptr[v + 1]))]
        if not edges or max(b.other_ptr[i + 1] - b.other_ptr[i] for _, i in edges) > 1 or np.isinf(design.offset).any():
            return None
        around = sorted({int(b.other_idx[b.other_ptr[i]]) for _, i in edges if b.other_ptr[i] < b.other_ptr[i + 1]})
        row_of = dict(zip(around, _starts([int(sizes[u]) - 1 for u in around]).tolist(), strict=False))
        first = dict(zip(variables.tolist(), _starts([int(sizes[v]) - 1 for v in variables]).tolist(), strict=False))
        columns = sum(int(sizes[v]) - 1 for v in variables)
        rows = sum(int(sizes[u]) - 1 for u in around)
        if MATRIX_COST * rows * columns > sum(int(sizes[v]) for v, _ in edges):
            return None
        at, cell, sign = list[int](), list[int](), list[float]()

        def put(row: int, column: int, *cells: tuple[int, float]) -> None:
            for c, s in cells:
                at.append(row * columns + column)
                cell.append(c)
                sign.append(s)

        for v, i in edges:
            base, own = int(b.base[i]), int(b.own[i])
            for y in range(1, int(sizes[v])):
                column = first[v] + y - 1
                put(0, column, (base + y * own, 1.0), (base, -1.0))
                if b.other_ptr[i] == b.other_ptr[i + 1]:
                    continue
                u, stride = int(b.other_idx[b.other_ptr[i]]), int(b.other_stride[b.other_ptr[i]])
                for x in range(1, int(sizes[u])):
                    c = base + x * stride
                    put(row_of[u] + x, column, (c + y * own, 1.0), (c, -1.0), (base + y * own, -1.0), (base, 1.0))
        recipe = csr_matrix((sign, (at, cell)), shape=((rows + 1) * columns, int(design.value_ptr[-1])))
        return cls(design, variables, around, recipe)

    def add(self, codes: Array, weights: FloatArray, logs: FloatArray, grad: FloatArray, values: FloatArray) -> None:
        """Add what these variables contribute, block by block of the rows."""
        from gramgraph._numerics.undirected.pseudo_likelihood import soften

        A = (self.recipe @ logs).reshape(self.wide + 1, -1)
        G = np.zeros_like(A)
        block = max(BLOCK // (self.wide + A.shape[1] + 1), 64)
        for begin in range(0, codes.shape[1], block):
            part = codes[:, begin : begin + block]
            X = np.concatenate(
                [np.ones((1, part.shape[1])), *(part[u] == np.arange(1, self.sizes[u])[:, None] for u in self.around)]
            )
            S = X.T @ A
            soften(self.variables, self.first, self.sizes, codes, begin, weights, S, values)
            G += X @ S
        grad += self.back @ G.reshape(-1)


def _starts(lengths: list[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
