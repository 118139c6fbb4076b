"""What models on cells share: named variables of any kind, each with its axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramgraph.embeddings.network.axes import Axis, LineAxis, Placed
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, discrete

__all__ = ["CellModel"]


class CellModel:
    """Variables by name, their domains and cells.

        >>> from gramgraph.questions.question import Question
    from gramgraph.embeddings.network.axes import StateAxis
        >>> model = CellModel([StateAxis.of("a", ["x", "y"])])
        >>> model.variables, model.domains, model.states("a")
        (('a',), {'a': 'category'}, ('x', 'y'))
    """

    rows: int = 0  # how many samples it was learned from
    name: str = ""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes = tuple(axes)
        self._index = {axis.name: i for i, axis in enumerate(self.axes)}
        if len(self._index) < len(self.axes):
            raise ModelError("every variable of a model needs a name of its own.")

    @property
    def variables(self) -> tuple[str, ...]:
        """Names, in the order of the columns."""
        return tuple(self._index)

    @property
    def domains(self) -> dict[str, str]:
        """Name → kind of its values."""
        return {axis.name: axis.domain for axis in self.axes}

    @property
    def negative_mass(self) -> float:
        """The largest mass of an estimate that had to be lifted from below zero."""
        return 0.0

    def __len__(self) -> int:
        return len(self.axes)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def _kinds(self) -> str:
        kinds: dict[str, int] = {}
        for axis in self.axes:
            kinds[axis.domain] = kinds.get(axis.domain, 0) + 1
        return ", ".join(f"{count} {kind}" for kind, count in kinds.items())

    def index(self, name: str) -> int:
        """Position of a variable; `VariableError` with the nearest name when there is none."""
        try:
            return self._index[name]
        except (KeyError, TypeError):
            raise VariableError.unknown(name, self.variables) from None

    def axis(self, name: str) -> Axis:
        """The cells of a variable."""
        return self.axes[self.index(name)]

    def states(self, name: str) -> tuple[str, ...]:
        """Labels of a category."""
        return self.axis(name).var.states

    def _placed(self, columns: Mapping[str, Any]) -> dict[int, Placed]:
        """Observed columns on cells, by position."""
        return {self.index(name): self.axis(name).place(values) for name, values in columns.items()}

    def _cell_question(
        self,
        placed: Mapping[int, Placed],
        cases: int,
        targets: Sequence[int] = (),
        joints: tuple[tuple[int, ...], ...] = (),
        weights: Mapping[int, FloatArray] | None = None,
    ) -> Question:
        """One question about the network on cells: what was observed, and `weights`, as likelihoods of the cells."""
        found = {v: _cell_likelihoods(self.axes[v], p) for v, p in placed.items() if p.known.any()}
        for v, own in (weights or {}).items():
            found[v] = found[v] * own if v in found else own
        none = np.zeros((cases, 0), dtype=np.int64)
        return Question(targets, joints, (), none, tuple(found.items()), batched=True)

    def _cell_variables(self) -> list[Var]:
        """Discrete variables whose states are the cells: anchors as text, in increasing order."""
        return [
            discrete(axis.name, _labels(axis.grid_values[axis.anchors])) if isinstance(axis, LineAxis) else axis.var
            for axis in self.axes
        ]


def _cell_likelihoods(axis: Axis, p: Placed) -> FloatArray:
    """p(observation | cell) of every case, a_j(x) / q_j, (cases, m); one where nothing was observed."""
    share = np.zeros((len(p.a), axis.m))
    rows = np.arange(len(p.a))
    share[rows, p.a] += 1.0 - p.f
    share[rows, p.b] += p.f
    near = np.where(p.known, p.near, 0.0)[:, None]
    return np.asarray(near * share / np.maximum(axis.q, 1e-300) + (1.0 - near))


def _labels(values: FloatArray) -> list[str]:
    """Different texts for different numbers, as short as that allows."""
    for digits in range(4, 18):
        found = [f"{v:.{digits}g}" for v in values]
        if len(set(found)) == len(found):
            return found
    return [f"{v!r} ({i})" for i, v in enumerate(values)]
