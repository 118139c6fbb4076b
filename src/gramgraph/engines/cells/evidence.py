"""Evidence about a model on cells: observed values between cells, likelihoods of cells, and questions about tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.cells.axes import Axis, Placed
from gramgraph.models.on_cells import CellModel
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

_BLOCK = 24_000_000  # numbers that the messages of a block of cases may take
_EVERY = slice(None)


@dataclass(frozen=True, eq=False)
class Seen:
    """What was observed, one row per case; variables are positions."""

    axes: tuple[Axis, ...]
    n_cases: int
    values: dict[int, Any]  # columns of observed values, one value per case
    weights: dict[int, FloatArray]  # likelihoods of cells, (m,) or (cases, m)

    @classmethod
    def of(cls, model: CellModel, question: Question) -> Seen:
        """The evidence of a question."""
        values: dict[int, Any] = dict(question.points)
        for v, codes in zip(question.observed, question.codes.T, strict=True):
            labels = np.array([*model.vars[v].states, None], dtype=object)
            values[v] = labels[codes]
        for v, column in zip(question.owners.tolist(), question.X.T, strict=True):
            values[v] = column
        return cls(model.cell_axes, question.n_cases, values, dict(question.likelihoods))

    @cached_property
    def placed(self) -> dict[int, Placed]:
        """Observed columns on cells."""
        return {v: self.axes[v].place(column) for v, column in self.values.items()}

    @cached_property
    def log_base(self) -> FloatArray:
        """log p of the observed values by themselves, summed, one number per case."""
        total = np.zeros(self.n_cases)
        for v, column in self.values.items():
            total += self.axes[v].log_base(column)
        return total

    @property
    def differ(self) -> bool:
        """Whether likelihoods differ from case to case."""
        return any(weights.ndim == 2 for weights in self.weights.values())

    def known(self, v: int) -> Array:
        """In which cases a variable was observed."""
        return self.placed[v].known if v in self.placed else np.zeros(self.n_cases, dtype=bool)

    def complete(self, nearest: float) -> Array:
        """Which cases know every variable, near to the data, and nothing else: they need no engine."""
        full = np.full(self.n_cases, len(self.placed) == len(self.axes) and not self.weights)
        for p in self.placed.values():
            full &= p.known & (p.near >= nearest)
        return full

    def on_tables(
        self,
        rows: Any = _EVERY,
        targets: Sequence[int] = (),
        joints: tuple[tuple[int, ...], ...] = (),
        more: Sequence[tuple[int, FloatArray]] = (),
    ) -> Question:
        """The question about the tables on cells: observations are likelihoods of cells; so are `more`."""
        found: dict[int, FloatArray] = {}
        for v, p in self.placed.items():
            at = p.take(rows)
            if at.known.any():
                found[v] = _likelihoods(self.axes[v], at)
        for v, weights in (*self.weights.items(), *more):
            own = weights if weights.ndim == 1 else weights[rows]
            found[v] = found[v] * own if v in found else own
        n = len(np.arange(self.n_cases)[rows])
        return Question(targets, joints, (), np.zeros((n, 0), np.int64), tuple(found.items()), batched=True)


def _likelihoods(axis: Axis, p: Placed) -> FloatArray:
    """p(observation | cell) of every case, a_j(x) / q_j, (cases, m); one where nothing was observed."""
    near = np.where(p.known, p.near, 0.0)[:, None]
    return np.asarray(near * p.shares(axis.m) / np.maximum(axis.q, 1e-300) + (1.0 - near))


def blocks(model: CellModel, cases: int) -> list[slice]:
    """Portions of the cases whose messages fit into memory."""
    size = max(64, _BLOCK // max(2 * sum(axis.m for axis in model.cell_axes), 1))
    return [slice(i, min(i + size, cases)) for i in range(0, cases, size)]


def with_complete(model: CellModel, seen: Seen) -> tuple[FloatArray, IntArray]:
    """log p of complete rows, which is a sum (of others that of the observed values alone), and the other rows."""
    log_p, full = seen.log_base.copy(), seen.complete(model.closed_from)
    if full.any():
        log_p[full] += model.log_ratio({v: p.take(full) for v, p in seen.placed.items()})
    return log_p, np.flatnonzero(~full)
